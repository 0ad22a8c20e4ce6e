//! Hot path: at most 10 instructions for two integers.
//!
//! The order of two values in a domain.

use std::cmp::Ordering;

use junctor_model::error::Result;
use junctor_model::json;
use junctor_model::temporal::{
    DIGITS_MAX, DateRules, Temporal, TemporalKind, number_parts, parse_number, year_of_digits,
};
use junctor_model::value::{Value, ValueRef};

use super::Context;
use super::convert::{to_decimal, to_double, to_number};
use super::temporal::{to_date_time, to_time};
use crate::decimal;
use crate::number::parse_integer;
use crate::program::{CompareDomain, CompareOperator, Expression, Node};
use crate::scratch::{Scratch, to_text};

/// An integer or NULL. It is small enough to stay in registers, unlike a `ValueRef`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Integer {
    Null,
    Int(i64),
    UInt(u64),
}

impl Expression {
    /// The value of an operand of an integer comparison.
    #[inline]
    pub(super) fn integer<'r>(&'r self, context: &Context<'r>) -> Result<Integer> {
        match (&self.node, &context.row) {
            (Node::Column { index, .. }, Some(row)) => match row.column(*index) {
                ValueRef::Int(value) => Ok(Integer::Int(value)),
                ValueRef::UInt(value) => Ok(Integer::UInt(value)),
                ValueRef::Null => Ok(Integer::Null),
                value => Ok(integer_of(value, self)),
            },
            (Node::Constant(Value::Int(value)), _) => Ok(Integer::Int(*value)),
            _ => self.integer_slow(context),
        }
    }

    fn integer_slow<'r>(&'r self, context: &Context<'r>) -> Result<Integer> {
        Ok(match self.value(context)? {
            ValueRef::Int(value) => Integer::Int(value),
            ValueRef::UInt(value) => Integer::UInt(value),
            ValueRef::Null => Integer::Null,
            value => integer_of(value, self),
        })
    }
}

/// The number of a YEAR, BIT or another type whose number is an integer. Stops the node for other values,
/// because treating them as NULL would lose rows.
#[inline(never)]
fn integer_of(value: ValueRef<'_>, operand: &Expression) -> Integer {
    match value.as_number() {
        ValueRef::Int(value) => Integer::Int(value),
        ValueRef::UInt(value) => Integer::UInt(value),
        _ => panic!("an operand of an integer comparison is an integer or NULL: {operand:?}"),
    }
}

/// The result of an integer comparison; `None` for NULL.
#[inline]
pub(super) fn compare_integers(operator: CompareOperator, left: Integer, right: Integer) -> Option<bool> {
    let order = match (left, right) {
        (Integer::Int(left), Integer::Int(right)) => left.cmp(&right),
        (Integer::UInt(left), Integer::UInt(right)) => left.cmp(&right),
        (Integer::Int(left), Integer::UInt(right)) => i128::from(left).cmp(&i128::from(right)),
        (Integer::UInt(left), Integer::Int(right)) => i128::from(left).cmp(&i128::from(right)),
        (Integer::Null, other) | (other, Integer::Null) => {
            let both = matches!(other, Integer::Null);
            return (operator == CompareOperator::NullSafeEqual).then_some(both);
        }
    };
    Some(operator.holds(order))
}

/// The result of a comparison; `None` for NULL.
#[inline]
pub(super) fn compare(
    operator: CompareOperator,
    domain: CompareDomain,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    scratch: &Scratch,
) -> Result<Option<bool>> {
    match operator {
        CompareOperator::NullSafeEqual if left.is_null() || right.is_null() => {
            return Ok(Some(left.is_null() && right.is_null()));
        }
        CompareOperator::Equal | CompareOperator::NullSafeEqual => {
            return equal_in_domain(domain, left, right, scratch);
        }
        CompareOperator::NotEqual => {
            return Ok(equal_in_domain(domain, left, right, scratch)?.map(|equal| !equal));
        }
        _ => {}
    }
    if left.is_null() || right.is_null() {
        return Ok(None);
    }
    Ok(Some(operator.holds(order_in_domain(domain, left, right, scratch)?)))
}

/// Whether two values are equal; `None` if either is NULL.
#[inline]
pub(super) fn equal_in_domain(
    domain: CompareDomain,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    scratch: &Scratch,
) -> Result<Option<bool>> {
    match (domain, left, right) {
        (_, ValueRef::Null, _) | (_, _, ValueRef::Null) => Ok(None),
        (CompareDomain::String(collation), ValueRef::Bytes(left), ValueRef::Bytes(right)) => {
            Ok(Some(collation.equal(left, right)))
        }
        _ => Ok(Some(order_in_domain(domain, left, right, scratch)?.is_eq())),
    }
}

/// The order of two values, neither of which is NULL.
#[inline]
pub(crate) fn order_in_domain(
    domain: CompareDomain,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    scratch: &Scratch,
) -> Result<Ordering> {
    match (domain, left, right) {
        (CompareDomain::Integer, ValueRef::Int(left), ValueRef::Int(right)) => Ok(left.cmp(&right)),
        (CompareDomain::Integer, ValueRef::UInt(left), ValueRef::UInt(right)) => Ok(left.cmp(&right)),
        (CompareDomain::String(collation), ValueRef::Bytes(left), ValueRef::Bytes(right)) => {
            Ok(collation.compare(left, right))
        }
        _ => order_converted(domain, left, right, scratch),
    }
}

/// Converts a string to a number if the domain is numeric; returns other values unchanged. A caller converts
/// a value before it compares the value several times. A string that is not a number then causes only one
/// warning.
#[inline]
pub(super) fn text_to_number<'r>(
    domain: CompareDomain,
    value: ValueRef<'r>,
    scratch: &Scratch,
) -> Result<ValueRef<'r>> {
    match (domain, value) {
        (CompareDomain::Double | CompareDomain::FixedDouble(_), ValueRef::Bytes(_)) => {
            Ok(ValueRef::Double(to_double(value, scratch)?))
        }
        (CompareDomain::Integer | CompareDomain::Number, ValueRef::Bytes(_)) => to_number(value, scratch),
        (CompareDomain::DateTime, ValueRef::Bytes(_)) => Ok(ValueRef::Temporal(to_date_time(value, scratch)?)),
        (CompareDomain::Time, ValueRef::Bytes(_)) => Ok(ValueRef::Temporal(to_time(value, scratch)?)),
        _ => Ok(value),
    }
}

fn order_converted(
    domain: CompareDomain,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    scratch: &Scratch,
) -> Result<Ordering> {
    match domain {
        CompareDomain::Integer => Ok(order_numbers(to_number(left, scratch)?, to_number(right, scratch)?)),
        CompareDomain::Number => {
            if let Some(order) = order_as_read(left, right) {
                return Ok(order);
            }
            Ok(order_numbers(to_number(left, scratch)?, to_number(right, scratch)?))
        }
        CompareDomain::Decimal => Ok(to_decimal(left, scratch)?.cmp(&to_decimal(right, scratch)?)),
        CompareDomain::Double => Ok(order_doubles(to_double(left, scratch)?, to_double(right, scratch)?)),
        CompareDomain::FixedDouble(decimals) => {
            Ok(order_fixed(to_double(left, scratch)?, to_double(right, scratch)?, decimals))
        }
        CompareDomain::String(collation) => Ok(collation.compare(to_text(left, scratch)?, to_text(right, scratch)?)),
        CompareDomain::DateTime => Ok(to_date_time(left, scratch)?.packed.cmp(&to_date_time(right, scratch)?.packed)),
        CompareDomain::Time => Ok(to_time(left, scratch)?.packed.cmp(&to_time(right, scratch)?.packed)),
        CompareDomain::Json => Ok(json::compare(to_document(left, scratch)?, to_document(right, scratch)?)),
    }
}

/// The order of a day or year and a number that is read as one; `None` if the number is none.
fn order_as_read(left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Ordering> {
    match (left, right) {
        (ValueRef::Temporal(value), number) => order_with_number(value, number),
        (number, ValueRef::Temporal(value)) => order_with_number(value, number).map(Ordering::reverse),
        _ => None,
    }
}

fn order_with_number(value: Temporal, number: ValueRef<'_>) -> Option<Ordering> {
    if value.kind == TemporalKind::Year {
        return year_of(number).map(|year| value.whole_number().cmp(&year));
    }
    if !matches!(number, ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Decimal(_)) {
        return None;
    }
    let (whole, nanoseconds, negative) = number_parts(number);
    match value.kind {
        TemporalKind::Year | TemporalKind::Time => None,
        TemporalKind::Date | TemporalKind::DateTime | TemporalKind::Timestamp if negative => None,
        TemporalKind::Date | TemporalKind::DateTime | TemporalKind::Timestamp => {
            let parts = parse_number(whole, nanoseconds, DateRules::FUZZY).parts?;
            let read = Temporal::from_parts(TemporalKind::DateTime, DIGITS_MAX, &parts);
            Some(value.to_date_time().packed.cmp(&read.packed))
        }
    }
}

/// The year that a number or text is, as a YEAR column would store it; `None` for other numbers and texts.
fn year_of(value: ValueRef<'_>) -> Option<i64> {
    let (number, is_text) = match value {
        ValueRef::Int(number) => (number.into(), false),
        ValueRef::UInt(number) => (number.into(), false),
        ValueRef::Decimal(number) => (decimal::to_integer(number), false),
        ValueRef::Double(number) => (number as i128, false),
        ValueRef::Bytes(text) => {
            let parsed = parse_integer(text, true);
            if parsed.is_missing || parsed.is_truncated {
                return None;
            }
            (parsed.value, text.trim_ascii().len() != 4)
        }
        _ => return None,
    };
    match i64::try_from(number).ok()? {
        0 if is_text => Some(2000),
        number => Some(year_of_digits(number)),
    }
}

/// A value as a document: other types than JSON are scalars.
pub(crate) fn to_document<'r>(value: ValueRef<'r>, scratch: &'r Scratch) -> Result<&'r [u8]> {
    match value {
        ValueRef::Json(document) => Ok(document),
        value => scratch.build_text(|buffer| json::append_value(value, buffer)),
    }
}

/// The order of two values of one kind for ORDER BY, MIN and MAX: NULL first, strings by collation.
pub fn compare_values(
    collation: junctor_model::collation::CollationId,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
) -> Ordering {
    match (left, right) {
        (ValueRef::Bytes(left), ValueRef::Bytes(right)) => collation.compare(left, right),
        (ValueRef::Choice(left), ValueRef::Choice(right)) => {
            collation.compare(&left.to_choice().text, &right.to_choice().text)
        }
        (ValueRef::Json(left), ValueRef::Json(right)) => json::compare(left, right),
        (ValueRef::Temporal(left), ValueRef::Temporal(right)) => left.packed.cmp(&right.packed),
        (ValueRef::Null, ValueRef::Null) => Ordering::Equal,
        (ValueRef::Null, _) => Ordering::Less,
        (_, ValueRef::Null) => Ordering::Greater,
        // Values of one kind are never a string and a number. This arm only makes the order total.
        (ValueRef::Bytes(_), _) => Ordering::Greater,
        (_, ValueRef::Bytes(_)) => Ordering::Less,
        (left, right) => order_numbers(left.as_number(), right.as_number()),
    }
}

/// The order of two numbers, exact unless one is a double.
fn order_numbers(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    match (left, right) {
        (ValueRef::Double(left), right) => order_doubles(left, as_double(right)),
        (left, ValueRef::Double(right)) => order_doubles(as_double(left), right),
        (ValueRef::Decimal(left), right) => left.cmp(&as_decimal(right)),
        (left, ValueRef::Decimal(right)) => as_decimal(left).cmp(&right),
        (left, right) => as_integer(left).cmp(&as_integer(right)),
    }
}

/// Expressions never yield NaN, so every pair of doubles has an order.
fn order_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// The order of two doubles with this many digits after the point.
fn order_fixed(left: f64, right: f64, decimals: u8) -> Ordering {
    let half_unit = 5.0 / 10f64.powi(i32::from(decimals) + 1);
    match (left - right).abs() < half_unit {
        true => Ordering::Equal,
        false => order_doubles(left, right),
    }
}

fn as_integer(value: ValueRef<'_>) -> i128 {
    match value {
        ValueRef::Int(value) => i128::from(value),
        ValueRef::UInt(value) => i128::from(value),
        other => unreachable!("NULLs and strings are handled before numbers are ordered: {other:?}"),
    }
}

fn as_decimal(value: ValueRef<'_>) -> junctor_model::value::Decimal {
    match value {
        ValueRef::Decimal(value) => value,
        other => crate::decimal::from_integer(as_integer(other)),
    }
}

fn as_double(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Double(value) => value,
        ValueRef::Decimal(value) => value.to_double(),
        other => as_integer(other) as f64,
    }
}
