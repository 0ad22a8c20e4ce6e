//! Geohashes.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, Point, Shape};
use junctor_model::scratch::excerpt;
use junctor_model::value::ValueRef;

use super::{function, is_geographic, unexpected, value_out_of_range};
use crate::function::{Call, Function, TypedCall, generated_text};
use crate::geometry::hash;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_GEOHASH", 2, 3, resolve_hash, geohash),
    function("ST_LATFROMGEOHASH", 1, 1, resolve_degrees, |call| degrees(call, |point| point.y)),
    function("ST_LONGFROMGEOHASH", 1, 1, resolve_degrees, |call| degrees(call, |point| point.x)),
    function("ST_POINTFROMGEOHASH", 2, 2, resolve_point, point),
];

/// Maximum number of digits of a geohash.
const DIGITS_MAX: i64 = 100;

fn resolve_hash(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, DIGITS_MAX as u32)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn resolve_degrees(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::double().with_nullable(true) })
}

fn resolve_point(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::geometry().with_nullable(true) })
}

/// Error 3064 for an argument that is no text.
fn check_hash_type(name: &str, argument: &Expression) -> Result<()> {
    let is_text = argument.result.is_text() && !argument.result.is_bytes();
    match is_text || argument.result.kind == Kind::Null {
        true => Ok(()),
        false => {
            let message = format!("Incorrect type for argument geohash in function {name}.");
            Err(Error::new(ErrorCode::IncorrectArgumentType, message))
        }
    }
}

/// The geohash of a longitude and a latitude, or of a point, with at most so many digits.
fn geohash(call: Call<'_>) -> Result<ValueRef<'_>> {
    let name = call.function_name();
    let point = match call.count() {
        3 => match (call.double(0)?, call.double(1)?) {
            (Some(x), Some(y)) => Point { x, y },
            _ => return Ok(ValueRef::Null),
        },
        _ => match call.geometry(0)? {
            None => return Ok(ValueRef::Null),
            Some(Geometry { shape: Shape::Point(point), .. }) => point,
            Some(Geometry { shape, .. }) => return Err(unexpected("POINT", shape.kind(), &name)),
        },
    };
    let Some(digits) = call.integer(call.count() - 1)? else { return Ok(ValueRef::Null) };
    if !(1..=DIGITS_MAX).contains(&digits) {
        return Err(value_out_of_range("max geohash length", &name));
    }
    if !(-180.0..=180.0).contains(&point.x) {
        return Err(value_out_of_range("longitude", &name));
    }
    if !(-90.0..=90.0).contains(&point.y) {
        return Err(value_out_of_range("latitude", &name));
    }
    call.build(|buffer| hash::encode(point, digits as usize, buffer))
}

/// The point of a geohash; `None` for NULL. Errors: 1411, 3064. `name` is the function's name.
fn decoded(call: &Call<'_>, name: &str) -> Result<Option<Point>> {
    check_hash_type(name, &call.arguments[0])?;
    let Some(text) = call.text(0)? else { return Ok(None) };
    match hash::decode(text) {
        Some(point) => Ok(Some(point)),
        None => {
            let message = format!("Incorrect geohash value: '{}' for function {name}", excerpt(text));
            Err(Error::new(ErrorCode::WrongValueForFunction, message))
        }
    }
}

fn degrees(call: Call<'_>, coordinate: fn(Point) -> f64) -> Result<ValueRef<'_>> {
    // MySQL names these two in upper case.
    let name = call.function_name().to_ascii_uppercase();
    Ok(decoded(&call, &name)?.map_or(ValueRef::Null, |point| ValueRef::Double(coordinate(point))))
}

fn point(call: Call<'_>) -> Result<ValueRef<'_>> {
    let name = call.function_name();
    let (Some(point), Some(system)) = (decoded(&call, &name)?, call.system(1)?) else { return Ok(ValueRef::Null) };
    let shape = Shape::Point(point);
    if is_geographic(system) {
        super::check_degrees(&shape, false, &name)?;
    }
    call.geometry_value(&Geometry { system, shape })
}
