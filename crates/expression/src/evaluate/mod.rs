//! Hot path: at most 40 instructions per comparison of a column with a constant or parameter.
//!
//! Numbers, columns, constants and parameters need no allocation.
//!
//! Evaluation walks the expression tree. Values borrow from the row, the parameters, the expression or the
//! scratch memory.

mod arithmetic;
mod cast;
mod compare;
mod convert;
mod document;
mod temporal;
mod truth;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row::RowView;
use junctor_model::value::{Decimal, ValueRef};

use crate::decimal;
use crate::function::Call;
use crate::parameter::Parameters;
use crate::program::{CastTarget, Expression, Node};
use crate::result_type::Kind;
use crate::scratch::Scratch;

pub(crate) use arithmetic::to_bits;
pub use compare::compare_values;
pub(crate) use compare::order_in_domain;
pub(crate) use convert::{text_to_signed, to_decimal, to_double, to_integer, to_kind};
pub(crate) use temporal::to_temporal;

/// The inputs of an evaluation, and the memory for the strings that it builds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'r> {
    pub row: Option<RowView<'r>>,
    pub parameters: Parameters<'r>,
    pub scratch: &'r Scratch,
}

impl Expression {
    /// The value for one row: NULL or a value of `self.result.kind`. If `row` is `None`, a column is the
    /// parameter with its number.
    ///
    /// Errors: 1690 when a number is out of range; 1292, 1364 and 1365 in strict writes, where other
    /// statements get a warning; 1041 when the strings of one row exceed the memory limit; 1105 for a column
    /// without a row.
    #[inline]
    pub fn evaluate<'r>(
        &'r self,
        row: Option<RowView<'r>>,
        parameters: Parameters<'r>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        self.rounded_value(&Context { row, parameters, scratch })
    }

    /// Like [`Expression::evaluate`], but an exact number may have guard digits: digits beyond the scale of
    /// its type. It may also have fewer digits than that, as a number that CASE chooses. Aggregates and
    /// assignments use this function because they round only the final result.
    #[inline]
    pub fn evaluate_unrounded<'r>(
        &'r self,
        row: Option<RowView<'r>>,
        parameters: Parameters<'r>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        self.value(&Context { row, parameters, scratch })
    }

    /// Whether the value is true, that is neither NULL nor 0. A conjunction stops at its first condition that
    /// is not true, so later conditions cause neither errors nor warnings. Errors as
    /// [`Expression::evaluate`].
    #[inline]
    pub fn is_true<'r>(
        &'r self,
        row: Option<RowView<'r>>,
        parameters: Parameters<'r>,
        scratch: &'r Scratch,
    ) -> Result<bool> {
        let context = Context { row, parameters, scratch };
        if let Node::And(conditions) = &self.node {
            // Unlike `truth`, this also stops at NULL, because a filter rejects the row for NULL as well as
            // for false.
            for condition in conditions {
                if condition.truth(&context)? != Some(true) {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Ok(self.truth(&context)? == Some(true))
    }

    /// The value with the scale of its type.
    #[inline]
    pub(crate) fn rounded_value<'r>(&'r self, context: &Context<'r>) -> Result<ValueRef<'r>> {
        let value = self.value(context)?;
        match value {
            ValueRef::Decimal(number) if number.scale() != self.result.decimals => Ok(self.scaled(number)),
            value => Ok(value),
        }
    }

    /// An exact number with the digits after the point that its type has: rounded, or with zeros behind it.
    #[inline(never)]
    fn scaled<'r>(&self, number: Decimal) -> ValueRef<'r> {
        let scale = self.result.decimals;
        ValueRef::Decimal(match number.scale() > scale {
            true => decimal::with_scale(number, scale).unwrap_or(number),
            false if self.result.kind == Kind::Decimal => decimal::with_scale_at_most(number, scale),
            false => number,
        })
    }

    /// The value, or its text where the text depends on the type and not only on the value.
    pub(crate) fn printable_value<'r>(&'r self, context: &Context<'r>) -> Result<ValueRef<'r>> {
        match self.rounded_value(context)? {
            value if value.is_null() || !self.result.is_formatted() => Ok(value),
            value => self.result.printed(value, context.scratch).map(ValueRef::Bytes),
        }
    }

    /// The value. An exact number may have guard digits, or fewer digits than its type.
    #[inline]
    pub(crate) fn value<'r>(&'r self, context: &Context<'r>) -> Result<ValueRef<'r>> {
        match &self.node {
            Node::Column { index, .. } => match &context.row {
                Some(row) => Ok(context.scratch.in_session_zone(row.column(*index))),
                None => self.slot(index.0, context),
            },
            Node::Constant(value) => Ok(value.as_ref()),
            Node::Parameter(ordinal) => {
                self.parameter_value(context.scratch.in_session_zone(context.parameters.get(*ordinal)), context)
            }
            _ => self.computed_value(context),
        }
    }

    /// A column of a joined row, whose values are parameters.
    #[inline(never)]
    fn slot<'r>(&'r self, index: u16, context: &Context<'r>) -> Result<ValueRef<'r>> {
        match usize::from(index) < context.parameters.count() {
            true => self.parameter_value(context.parameters.get(index), context),
            false => Err(no_row(self)),
        }
    }

    /// A parameter's type is fixed when the statement is planned, but each execution may send a value of
    /// another type.
    #[inline]
    fn parameter_value<'r>(&'r self, value: ValueRef<'r>, context: &Context<'r>) -> Result<ValueRef<'r>> {
        match (value, self.result.kind) {
            (ValueRef::Null, _)
            | (ValueRef::Int(_), Kind::Int)
            | (ValueRef::Bytes(_), Kind::String)
            | (ValueRef::UInt(_), Kind::UInt)
            | (ValueRef::Double(_), Kind::Double)
            | (ValueRef::Decimal(_), Kind::Decimal) => Ok(value),
            (ValueRef::Temporal(temporal), kind) if Some(temporal.kind) == kind.temporal() => Ok(value),
            _ => to_kind(value, &self.result, context.scratch),
        }
    }

    fn computed_value<'r>(&'r self, context: &Context<'r>) -> Result<ValueRef<'r>> {
        match &self.node {
            Node::Column { .. } | Node::Constant(_) | Node::Parameter(_) => self.value(context),
            Node::MissingDefault { column, value } => {
                let message = || format!("Field '{column}' doesn't have a default value");
                context.scratch.warn(ErrorCode::NoDefault, message)?;
                Ok(value.as_ref())
            }
            Node::Convert(operand) => {
                let value = match self.result.kind {
                    Kind::String => operand.printable_value(context)?,
                    _ => operand.rounded_value(context)?,
                };
                to_kind(value, &self.result, context.scratch)
            }
            Node::Cast(target @ (CastTarget::Char { .. } | CastTarget::Binary { .. }), operand) => {
                cast::cast_text(*target, operand.printable_value(context)?, operand, &self.result, context.scratch)
            }
            Node::Cast(target, operand) => {
                cast::cast(*target, operand.rounded_value(context)?, &self.result, context.scratch)
            }
            Node::Collate(operand) => operand.value(context),
            Node::Compare(..)
            | Node::And(_)
            | Node::Or(_)
            | Node::Xor(_)
            | Node::Not(_)
            | Node::Is { .. }
            | Node::Between { .. }
            | Node::InList { .. }
            | Node::InParameters { .. }
            | Node::Like { .. } => Ok(match self.truth(context)? {
                Some(truth) => ValueRef::Int(i64::from(truth)),
                None => ValueRef::Null,
            }),
            Node::Arithmetic(operator, operands) => arithmetic::arithmetic(self, *operator, operands, context),
            Node::Negate(operand) => arithmetic::negate(self, operand, context),
            Node::Bits(operator, operands) => arithmetic::bits(*operator, operands, context),
            Node::BitNot(operand) => arithmetic::bit_not(operand, context),
            Node::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if condition.truth(context)? == Some(true) {
                        return result.value(context);
                    }
                }
                otherwise.as_ref().map_or(Ok(ValueRef::Null), |otherwise| otherwise.value(context))
            }
            Node::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.value(context)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(ValueRef::Null)
            }
            Node::NullIf(domain, operands) => {
                let [left, right] = &**operands;
                let value = left.rounded_value(context)?;
                let equal = compare::equal_in_domain(*domain, value, right.rounded_value(context)?, context.scratch)?;
                Ok(if equal == Some(true) { ValueRef::Null } else { value })
            }
            Node::Call(function, arguments) => {
                function.evaluate(Call { arguments, result: &self.result, expression: self, context: *context })
            }
        }
    }

    /// Error 1690: the result of this expression is out of range for `type_name`.
    #[cold]
    pub(crate) fn out_of_range(&self, type_name: &str, context: &Context<'_>) -> Box<Error> {
        let text = self.describe(context.parameters);
        Error::new(ErrorCode::NumericOutOfRange, format!("{type_name} value is out of range in '{text}'"))
    }
}

#[cold]
fn no_row(expression: &Expression) -> Box<Error> {
    let text = expression.describe(Parameters::NONE);
    Error::new(ErrorCode::UnknownError, format!("Column {text} has no value here"))
}
