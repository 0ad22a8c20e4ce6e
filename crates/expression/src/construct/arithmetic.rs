//! Arithmetic and bit operators, and the types of their results.

use junctor_model::row_encoding::DECIMALS_NOT_FIXED;
use junctor_model::value::{Decimal, Value};

use crate::decimal::DECIMAL_SCALE_MAX;
use crate::program::{ArithmeticOperator, BitOperator, Expression, Node};
use crate::result_type::{DECIMAL_PRECISION_MAX, DIVISION_SCALE_INCREMENT, Kind, ResultType};

/// Maximum number of characters of a BIGINT, including its sign.
const INTEGER_LENGTH_MAX: u32 = 21;

impl Expression {
    /// `left operator right`. DIV always gives an integer. For the other operators, a double or a string as
    /// an operand gives a double. Otherwise `/` gives a decimal, and `+`, `-`, `*` and `%` give an integer
    /// for integers and a decimal for other exact numbers. An integer result is unsigned if an operand is.
    /// `/` adds four digits after the decimal point; see [`Self::divide`].
    pub fn arithmetic(operator: ArithmeticOperator, left: Expression, right: Expression) -> Expression {
        let divides = matches!(
            operator,
            ArithmeticOperator::Divide | ArithmeticOperator::DivideInteger | ArithmeticOperator::Remainder
        );
        let nullable = divides || left.result.nullable || right.result.nullable;
        let result = arithmetic_type(operator, &left.result, &right.result).with_nullable(nullable);
        Expression { node: Node::Arithmetic(operator, Box::new([left, right])), result }
    }

    /// `left / right`. If both operands are exact, the result has `increment` (`div_precision_increment`)
    /// more digits after the decimal point than `left`.
    pub fn divide(left: Expression, right: Expression, increment: u8) -> Expression {
        let result = division_type(&left.result, &right.result, increment).with_nullable(true);
        Expression { node: Node::Arithmetic(ArithmeticOperator::Divide, Box::new([left, right])), result }
    }

    /// Unary minus. A negated literal is a literal, so that `-9223372036854775808` is a BIGINT.
    pub fn negate(operand: Expression) -> Expression {
        let negated = match &operand.node {
            Node::Constant(Value::Int(value)) => Some(match value.checked_neg() {
                Some(value) => Value::Int(value),
                None => Value::Decimal(Decimal::Narrow { mantissa: -i128::from(*value), scale: 0 }),
            }),
            Node::Constant(Value::UInt(value)) => Some(match 0i64.checked_sub_unsigned(*value) {
                Some(value) => Value::Int(value),
                None => Value::Decimal(Decimal::Narrow { mantissa: -i128::from(*value), scale: 0 }),
            }),
            Node::Constant(Value::Double(value)) => Some(Value::Double(-value)),
            Node::Constant(Value::Decimal(value)) => Some(Value::Decimal(crate::decimal::negate(*value))),
            _ => None,
        };
        if let Some(value) = negated {
            return Expression::constant(value, operand.result.collation);
        }
        let number = operand.result.as_number();
        let result = match number.kind {
            // MySQL takes days and times for texts here.
            _ if operand.result.kind.has_day() || operand.result.kind == Kind::Time => ResultType::double(),
            // As for a constant, the result can be below the smallest integer.
            Kind::UInt if exceeds_integers(&operand) => ResultType::decimal(20, 0),
            Kind::Int | Kind::UInt => ResultType::integer(false, number.length + 1),
            Kind::Decimal => ResultType { is_unsigned: false, ..number },
            _ => ResultType { decimals: float_decimals(&operand.result), ..ResultType::double() },
        };
        let result = result.with_nullable(operand.result.nullable);
        Expression { node: Node::Negate(Box::new(operand)), result }
    }

    /// A bit operator: `& | ^ << >>`.
    pub fn bits(operator: BitOperator, left: Expression, right: Expression) -> Expression {
        let nullable = left.result.nullable || right.result.nullable;
        let result = ResultType::integer(true, INTEGER_LENGTH_MAX).with_nullable(nullable);
        Expression { node: Node::Bits(operator, Box::new([left, right])), result }
    }

    /// The function that a bit operator is between binary strings.
    pub fn function_of_bytes(operator: BitOperator) -> &'static str {
        match operator {
            BitOperator::And => "BYTES &",
            BitOperator::Or => "BYTES |",
            BitOperator::Xor => "BYTES ^",
            BitOperator::ShiftLeft => "BYTES <<",
            BitOperator::ShiftRight => "BYTES >>",
        }
    }

    /// Bitwise NOT: `~`.
    pub fn bit_not(operand: Expression) -> Expression {
        let result = ResultType::integer(true, INTEGER_LENGTH_MAX).with_nullable(operand.result.nullable);
        Expression { node: Node::BitNot(Box::new(operand)), result }
    }
}

fn arithmetic_type(operator: ArithmeticOperator, left: &ResultType, right: &ResultType) -> ResultType {
    if operator == ArithmeticOperator::Divide {
        return division_type(left, right, DIVISION_SCALE_INCREMENT);
    }
    let decimals = float_decimals(left).max(float_decimals(right));
    let (left, right) = (&left.as_number(), &right.as_number());
    let unsigned = left.kind == Kind::UInt || right.kind == Kind::UInt;
    if operator == ArithmeticOperator::DivideInteger {
        let unsigned = unsigned || left.is_unsigned || right.is_unsigned;
        return ResultType::integer(unsigned, left.length.clamp(1, INTEGER_LENGTH_MAX));
    }
    if is_inexact(left) || is_inexact(right) {
        return ResultType { decimals, ..ResultType::double() };
    }
    // A difference of unsigned numbers may be negative.
    let is_unsigned = match operator {
        ArithmeticOperator::Subtract => false,
        ArithmeticOperator::Remainder => left.has_no_sign(),
        _ => left.has_no_sign() && right.has_no_sign(),
    };
    let decimal = |precision, scale| ResultType { is_unsigned, ..ResultType::unbounded_decimal(precision, scale) };
    let bounded = |precision: u32, scale| decimal(precision.min(DECIMAL_PRECISION_MAX), scale);
    let (left_digits, right_digits) = (left.integer_digits(), right.integer_digits());
    let scale_max = left.scale().max(right.scale());
    let integers = left.kind != Kind::Decimal && right.kind != Kind::Decimal;
    match operator {
        ArithmeticOperator::Remainder if integers => {
            ResultType::integer(left.kind == Kind::UInt, left.length.max(right.length).max(1))
        }
        ArithmeticOperator::Remainder => bounded(left_digits.max(right_digits) + u32::from(scale_max), scale_max),
        ArithmeticOperator::Multiply if integers => {
            ResultType::integer(unsigned, (left.length + right.length).clamp(1, INTEGER_LENGTH_MAX))
        }
        ArithmeticOperator::Multiply => {
            let scale = (left.scale() + right.scale()).min(DECIMAL_SCALE_MAX);
            bounded(left_digits + right_digits + u32::from(scale), scale)
        }
        _ if integers => ResultType::integer(unsigned, (left.length.max(right.length) + 1).min(INTEGER_LENGTH_MAX)),
        _ => decimal(left_digits.max(right_digits) + 1 + u32::from(scale_max), scale_max),
    }
}

fn division_type(left: &ResultType, right: &ResultType, increment: u8) -> ResultType {
    let decimals = float_decimals(left).max(float_decimals(right));
    let (left, right) = (&left.as_number(), &right.as_number());
    if is_inexact(left) || is_inexact(right) {
        let decimals = decimals.saturating_add(increment).min(DECIMALS_NOT_FIXED);
        return ResultType { decimals, ..ResultType::double() };
    }
    let scale = left.scale().saturating_add(increment).min(DECIMAL_SCALE_MAX);
    let integer_digits = left.integer_digits() + u32::from(right.scale());
    let is_unsigned = left.has_no_sign() && right.has_no_sign();
    ResultType { is_unsigned, ..ResultType::decimal(integer_digits + u32::from(scale), scale) }
}

/// The digits after the point that an operand gives a double.
fn float_decimals(operand: &ResultType) -> u8 {
    match operand.kind {
        Kind::Null => 0,
        _ => operand.decimals,
    }
}

fn is_inexact(result: &ResultType) -> bool {
    // MySQL takes NULL for a text here.
    matches!(result.kind, Kind::Double | Kind::String | Kind::Null)
}

/// Whether the operand of a minus is a number that is given as an unsigned one. Literals are, if they are
/// beyond the signed integers.
fn exceeds_integers(operand: &Expression) -> bool {
    match &operand.node {
        Node::Parameter(_) => operand.result.kind == Kind::UInt,
        Node::Constant(Value::UInt(value)) => i64::try_from(*value).is_err(),
        Node::Cast(_, operand) => exceeds_integers(operand),
        _ => false,
    }
}
