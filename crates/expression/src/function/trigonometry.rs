//! Trigonometric functions.

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::math::finite;
use super::{Call, Function, function, resolve_double};

pub(super) const TABLE: &[Function] = &[
    function("SIN", 1, 1, resolve_double, |call| of(call, f64::sin)).of_numbers(),
    function("COS", 1, 1, resolve_double, |call| of(call, f64::cos)).of_numbers(),
    function("TAN", 1, 1, resolve_double, |call| of(call, f64::tan)).of_numbers(),
    function("COT", 1, 1, resolve_double, |call| of(call, |value| 1.0 / value.tan())).of_numbers(),
    function("ASIN", 1, 1, resolve_double, |call| of_unit(call, f64::asin)).of_numbers(),
    function("ACOS", 1, 1, resolve_double, |call| of_unit(call, f64::acos)).of_numbers(),
    function("ATAN", 1, 2, resolve_double, atan).of_numbers(),
    function("ATAN2", 1, 2, resolve_double, atan).of_numbers(),
    function("DEGREES", 1, 1, resolve_double, |call| of(call, |value| value * (180.0 / std::f64::consts::PI)))
        .of_numbers(),
    function("RADIANS", 1, 1, resolve_double, |call| of(call, |value| value * (std::f64::consts::PI / 180.0)))
        .of_numbers(),
];

/// Error 1690 for a result that is infinite.
fn of(call: Call<'_>, function: fn(f64) -> f64) -> Result<ValueRef<'_>> {
    match call.double(0)? {
        Some(value) => finite(call, function(value)),
        None => Ok(ValueRef::Null),
    }
}

/// NULL for a value outside -1 to 1.
fn of_unit(call: Call<'_>, function: fn(f64) -> f64) -> Result<ValueRef<'_>> {
    match call.double(0)? {
        Some(value) if (-1.0..=1.0).contains(&value) => Ok(ValueRef::Double(function(value))),
        _ => Ok(ValueRef::Null),
    }
}

fn atan(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.count() == 1 {
        return of(call, f64::atan);
    }
    // A NULL decides without the second operand.
    let Some(y) = call.double(0)? else { return Ok(ValueRef::Null) };
    let Some(x) = call.double(1)? else { return Ok(ValueRef::Null) };
    finite(call, y.atan2(x))
}
