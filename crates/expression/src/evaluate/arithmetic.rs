//! Hot path: at most 60 instructions per operation on integers.
//!
//! Arithmetic and bit operators.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::value::{Decimal, ValueRef};

use super::Context;
use super::convert::{to_decimal, to_double, to_integer};
use crate::decimal::{self, DECIMAL_SCALE_MAX, DOUBLES_END};
use crate::program::{ArithmeticOperator, BitOperator, Expression, Node};
use crate::result_type::Kind;

pub(super) fn arithmetic<'r>(
    expression: &'r Expression,
    operator: ArithmeticOperator,
    operands: &'r [Expression; 2],
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    let left = number_of(operands[0].value(context)?);
    let right = number_of(operands[1].value(context)?);
    if left.is_null() || right.is_null() {
        return of_null(expression, left, right, context);
    }
    match expression.result.kind {
        Kind::Int | Kind::UInt => integers(expression, operator, left, right, context),
        Kind::Double => doubles(expression, operator, left, right, context),
        Kind::Decimal => decimals(expression, operator, left, right, context),
        _ => unreachable!("the constructor gives arithmetic a numeric type"),
    }
}

/// The number that a value is. A text or a document is read where its type of number is known.
#[inline]
fn number_of(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::Json(_) => value,
        value => value.as_number(),
    }
}

/// NULL. A text beside it is still read as a number, for its warning: in doubles on both sides, in exact
/// numbers only on the left.
#[inline(never)]
fn of_null<'r>(
    expression: &'r Expression,
    left: ValueRef<'r>,
    right: ValueRef<'r>,
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    match expression.result.kind {
        Kind::Double => {
            to_double(left, context.scratch)?;
            to_double(right, context.scratch)?;
        }
        _ => {
            to_decimal(left, context.scratch)?;
        }
    }
    Ok(ValueRef::Null)
}

pub(super) fn negate<'r>(
    expression: &'r Expression,
    operand: &'r Expression,
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    let value = number_of(operand.value(context)?);
    match (value, expression.result.kind) {
        (ValueRef::Null, _) => Ok(ValueRef::Null),
        (value, Kind::Int) => integer_result(expression, Some(-to_integer(value, context.scratch)?), context),
        (value, Kind::Decimal) => Ok(ValueRef::Decimal(decimal::negate(to_decimal(value, context.scratch)?))),
        (value, _) => Ok(ValueRef::Double(-to_double(value, context.scratch)?)),
    }
}

pub(super) fn bits<'r>(
    operator: BitOperator,
    operands: &'r [Expression; 2],
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    let (left, right) = (operands[0].value(context)?, operands[1].value(context)?);
    if left.is_null() || right.is_null() {
        return Ok(ValueRef::Null);
    }
    let (left, right) = (to_bits(left, context)?, to_bits(right, context)?);
    let distance = u32::try_from(right).unwrap_or(u32::MAX);
    Ok(ValueRef::UInt(match operator {
        BitOperator::And => left & right,
        BitOperator::Or => left | right,
        BitOperator::Xor => left ^ right,
        BitOperator::ShiftLeft => left.checked_shl(distance).unwrap_or(0),
        BitOperator::ShiftRight => left.checked_shr(distance).unwrap_or(0),
    }))
}

pub(super) fn bit_not<'r>(operand: &'r Expression, context: &Context<'r>) -> Result<ValueRef<'r>> {
    let value = operand.value(context)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    Ok(ValueRef::UInt(!to_bits(value, context)?))
}

#[inline]
fn integers<'r>(
    expression: &'r Expression,
    operator: ArithmeticOperator,
    left: ValueRef<'r>,
    right: ValueRef<'r>,
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    let exact = |value| matches!(value, ValueRef::Int(_) | ValueRef::UInt(_));
    // DIV of decimals gives an integer type although the operands are not integers.
    if !(exact(left) && exact(right)) {
        let is_beyond = |value| matches!(value, ValueRef::Double(value) if value.abs() >= DOUBLES_END);
        if is_beyond(left) || is_beyond(right) {
            // A divisor that is 0 as a decimal divides by zero.
            if !is_beyond(right) && to_decimal(right, context.scratch)?.is_zero() {
                return divided_by_zero(context);
            }
            // No decimal has so many digits.
            let (left, right) = (to_double(left, context.scratch)?, to_double(right, context.scratch)?);
            return integer_result(expression, Some((left / right) as i128), context);
        }
        let (left, right) = (to_decimal(left, context.scratch)?, to_decimal(right, context.scratch)?);
        if right.is_zero() {
            return divided_by_zero(context);
        }
        return integer_result(expression, decimal::divide_integer(left, right), context);
    }
    // 64-bit operands cannot overflow an i128 in a sum, so only the product needs a check.
    let (left, right) = (to_integer(left, context.scratch)?, to_integer(right, context.scratch)?);
    let result = match operator {
        ArithmeticOperator::Add => Some(left + right),
        ArithmeticOperator::Subtract => Some(left - right),
        ArithmeticOperator::Multiply => left.checked_mul(right),
        ArithmeticOperator::Divide | ArithmeticOperator::DivideInteger | ArithmeticOperator::Remainder
            if right == 0 =>
        {
            return divided_by_zero(context);
        }
        ArithmeticOperator::Divide | ArithmeticOperator::DivideInteger => Some(left / right),
        ArithmeticOperator::Remainder => Some(left % right),
    };
    integer_result(expression, result, context)
}

fn integer_result<'r>(expression: &'r Expression, result: Option<i128>, context: &Context<'r>) -> Result<ValueRef<'r>> {
    if expression.result.kind == Kind::UInt {
        return match result.and_then(|result| u64::try_from(result).ok()) {
            Some(result) => Ok(ValueRef::UInt(result)),
            None => Err(expression.out_of_range("BIGINT UNSIGNED", context)),
        };
    }
    match result.and_then(|result| i64::try_from(result).ok()) {
        Some(result) => Ok(ValueRef::Int(result)),
        None => Err(expression.out_of_range("BIGINT", context)),
    }
}

fn doubles<'r>(
    expression: &'r Expression,
    operator: ArithmeticOperator,
    left: ValueRef<'r>,
    right: ValueRef<'r>,
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    let (left, right) = (to_double(left, context.scratch)?, to_double(right, context.scratch)?);
    let result = match operator {
        ArithmeticOperator::Add => left + right,
        ArithmeticOperator::Subtract => left - right,
        ArithmeticOperator::Multiply => left * right,
        _ if right == 0.0 => return divided_by_zero(context),
        ArithmeticOperator::Divide | ArithmeticOperator::DivideInteger => left / right,
        ArithmeticOperator::Remainder => left % right,
    };
    if !result.is_finite() {
        return Err(expression.out_of_range("DOUBLE", context));
    }
    Ok(ValueRef::Double(result))
}

fn decimals<'r>(
    expression: &'r Expression,
    operator: ArithmeticOperator,
    left: ValueRef<'r>,
    right: ValueRef<'r>,
    context: &Context<'r>,
) -> Result<ValueRef<'r>> {
    let (left, right) = (to_decimal(left, context.scratch)?, to_decimal(right, context.scratch)?);
    let result = match operator {
        ArithmeticOperator::Add => decimal::add(left, right),
        ArithmeticOperator::Subtract => decimal::subtract(left, right),
        ArithmeticOperator::Multiply => {
            decimal::multiply(left, right, (left.scale() + right.scale()).min(DECIMAL_SCALE_MAX))
        }
        _ if right.is_zero() => return divided_by_zero(context),
        ArithmeticOperator::Divide | ArithmeticOperator::DivideInteger => {
            decimal::divide_with_guard_digits(left, right, increment_of(expression))
        }
        ArithmeticOperator::Remainder => decimal::remainder(left, right),
    };
    match result {
        Some(zero) if zero.is_zero() && is_plain_zero(operator, left) => {
            Ok(ValueRef::Decimal(decimal::from_integer(0)))
        }
        Some(result) => Ok(ValueRef::Decimal(result)),
        None => Err(expression.out_of_range("DECIMAL", context)),
    }
}

/// Whether an operation that gives 0 gives it without digits after the point, as in MySQL: a difference of
/// equal numbers, or 0 divided by a number. The text of a column shows it.
fn is_plain_zero(operator: ArithmeticOperator, left: Decimal) -> bool {
    match operator {
        ArithmeticOperator::Add => !left.is_zero(),
        ArithmeticOperator::Subtract => true,
        ArithmeticOperator::Multiply => false,
        ArithmeticOperator::Divide | ArithmeticOperator::DivideInteger | ArithmeticOperator::Remainder => {
            left.is_zero()
        }
    }
}

/// Number of digits that this division adds after the point, derived from its type.
fn increment_of(division: &Expression) -> u8 {
    match &division.node {
        Node::Arithmetic(_, operands) => division.result.scale().saturating_sub(operands[0].result.scale()),
        _ => 0,
    }
}

/// NULL with warning 1365, which is an error in a strict write.
#[cold]
pub(super) fn divided_by_zero<'r>(context: &Context<'r>) -> Result<ValueRef<'r>> {
    context.scratch.warn(ErrorCode::DivisionByZero, || "Division by 0".into())?;
    Ok(ValueRef::Null)
}

/// The 64 bits of the nearest integer in the signed or unsigned range; negative numbers in two's complement.
pub(crate) fn to_bits(value: ValueRef<'_>, context: &Context<'_>) -> Result<u64> {
    let integer = to_integer(value, context.scratch)?;
    Ok(match integer < 0 {
        true => integer.max(i64::MIN.into()) as i64 as u64,
        false => integer.min(u64::MAX.into()) as u64,
    })
}
