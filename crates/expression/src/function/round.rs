//! FLOOR, CEILING, ROUND and TRUNCATE.

use junctor_model::error::Result;
use junctor_model::row_encoding::DECIMALS_NOT_FIXED;
use junctor_model::value::{Decimal, ValueRef};

use super::function;
use super::{Call, Function, TypedCall, any_nullable};
use crate::decimal::{self, DECIMAL_SCALE_MAX};
use crate::evaluate::{to_double, to_integer};
use crate::parameter::Parameters;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};
use crate::scratch::Scratch;

pub(super) const TABLE: &[Function] = &[
    function("FLOOR", 1, 1, resolve_whole, floor).of_numbers(),
    function("CEIL", 1, 1, resolve_whole, ceiling).of_numbers(),
    function("CEILING", 1, 1, resolve_whole, ceiling).of_numbers(),
    function("ROUND", 1, 2, resolve_places, round).of_numbers(),
    function("TRUNCATE", 2, 2, resolve_places, truncate).of_numbers(),
];

/// Number of digits that always fit a BIGINT.
const BIGINT_DIGITS: u32 = 18;
/// Rounding to more places than this changes no double, in either direction.
const PLACES_MAX: i64 = 400;

fn resolve_whole(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let operand = arguments[0].result;
    let result = match operand.kind {
        Kind::Int | Kind::UInt | Kind::Bit | Kind::Year => operand.as_number(),
        Kind::Decimal if operand.integer_digits() < BIGINT_DIGITS => {
            ResultType::integer(operand.is_unsigned, operand.integer_digits() + 2)
        }
        Kind::Decimal => {
            let is_unsigned = operand.is_unsigned;
            ResultType { is_unsigned, ..ResultType::decimal(operand.integer_digits() + 1, 0) }
        }
        _ => ResultType::double(),
    };
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

fn resolve_places(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let operand = arguments[0].result;
    let places = match arguments.get(1) {
        None => Some(0),
        Some(places) => constant_places(places),
    };
    let result = match operand.kind {
        Kind::Int | Kind::UInt | Kind::Bit | Kind::Year => operand.as_number(),
        Kind::Decimal => {
            let scale = places.unwrap_or(operand.scale()).min(DECIMAL_SCALE_MAX);
            let is_unsigned = operand.is_unsigned;
            ResultType { is_unsigned, ..ResultType::decimal(operand.integer_digits() + 1 + u32::from(scale), scale) }
        }
        _ => ResultType { decimals: places.unwrap_or(DECIMALS_NOT_FIXED), ..ResultType::double() },
    };
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

/// The digits after the point that a constant expression gives; `None` if it is NULL or depends on a row or a
/// parameter.
fn constant_places(places: &Expression) -> Option<u8> {
    if !places.is_constant() {
        return None;
    }
    let scratch = Scratch::new();
    let value = places.evaluate(None, Parameters::NONE, &scratch).ok().filter(|value| !value.is_null())?;
    let number = to_integer(value, &scratch).ok()?;
    Some(number.clamp(0, DECIMALS_NOT_FIXED.into()) as u8)
}

fn floor(call: Call<'_>) -> Result<ValueRef<'_>> {
    to_whole(call, decimal::floor, f64::floor)
}

fn ceiling(call: Call<'_>) -> Result<ValueRef<'_>> {
    to_whole(call, decimal::ceiling, f64::ceil)
}

fn to_whole(call: Call<'_>, of_decimal: fn(Decimal) -> Decimal, of_double: fn(f64) -> f64) -> Result<ValueRef<'_>> {
    Ok(match call.integer_or_value(0)? {
        value @ (ValueRef::Null | ValueRef::Int(_) | ValueRef::UInt(_)) => value,
        ValueRef::Decimal(value) => {
            let whole = of_decimal(value);
            let integer = whole.narrow_mantissa().and_then(|whole| i64::try_from(whole).ok());
            match (call.result.kind, integer) {
                (Kind::Int, Some(whole)) => ValueRef::Int(whole),
                (Kind::Int, None) => return Err(call.expression.out_of_range("BIGINT", &call.context)),
                // A number without a sign, of at most 18 digits.
                (Kind::UInt, whole) => ValueRef::UInt(whole.unwrap_or(0).unsigned_abs()),
                _ => ValueRef::Decimal(whole),
            }
        }
        other => ValueRef::Double(of_double(to_double(other, call.scratch())?)),
    })
}

fn round(call: Call<'_>) -> Result<ValueRef<'_>> {
    to_places(call, false)
}

fn truncate(call: Call<'_>) -> Result<ValueRef<'_>> {
    to_places(call, true)
}

fn to_places(call: Call<'_>, truncates: bool) -> Result<ValueRef<'_>> {
    let places = if call.count() > 1 { call.integer(1)? } else { Some(0) };
    let value = call.integer_or_value(0)?;
    let Some(places) = places else { return Ok(ValueRef::Null) };
    let places = places.clamp(-PLACES_MAX, PLACES_MAX) as i32;
    let of_decimal = |value: Decimal| match truncates {
        true => Some(decimal::truncate(value, places)),
        false => decimal::round(value, places),
    };
    let of_integer = |value: i128| of_decimal(decimal::from_integer(value)).and_then(Decimal::narrow_mantissa);
    Ok(match value {
        ValueRef::Null => ValueRef::Null,
        ValueRef::Int(value) => match of_integer(value.into()).map(i64::try_from) {
            Some(Ok(value)) => ValueRef::Int(value),
            _ => return Err(call.expression.out_of_range("BIGINT", &call.context)),
        },
        ValueRef::UInt(value) => match of_integer(value.into()).map(u64::try_from) {
            Some(Ok(value)) => ValueRef::UInt(value),
            _ => return Err(call.expression.out_of_range("BIGINT UNSIGNED", &call.context)),
        },
        ValueRef::Decimal(value) => {
            let scaled = of_decimal(value).and_then(|value| decimal::with_scale(value, call.result.decimals));
            match scaled.or_else(|| of_decimal(value)) {
                Some(value) => ValueRef::Decimal(value),
                None => return Err(call.expression.out_of_range("DECIMAL", &call.context)),
            }
        }
        other => ValueRef::Double(round_double(to_double(other, call.scratch())?, places, truncates)),
    })
}

/// Rounds half to even at the last kept place. A value too large to scale is returned unchanged; a value
/// smaller than the last place becomes 0.
pub(super) fn round_double(value: f64, places: i32, truncates: bool) -> f64 {
    let whole = |value: f64| if truncates { value.trunc() } else { value.round_ties_even() };
    let factor = 10f64.powi(places.abs());
    if places >= 0 {
        let scaled = value * factor;
        if scaled.is_finite() && factor.is_finite() { whole(scaled) / factor } else { value }
    } else if factor.is_finite() {
        whole(value / factor) * factor
    } else {
        0.0
    }
}
