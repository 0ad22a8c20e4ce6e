//! Functions of geometries that make another one of it, and ST_ISSIMPLE.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, Point, ReferenceSystem};
use junctor_model::value::ValueRef;

use super::{check_plane, check_system, function, resolve_geometry, resolve_integer};
use crate::function::{Call, Function};
use crate::geometry::derive;

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_CONVEXHULL", 1, 1, resolve_geometry, convex_hull),
    function("ST_SIMPLIFY", 2, 2, resolve_geometry, simplify),
    function("ST_ISSIMPLE", 1, 1, resolve_integer, is_simple),
    function("ST_TRANSFORM", 2, 2, resolve_geometry, transform),
];

/// WGS 84: longitude and latitude.
const DEGREES: u32 = 4326;
/// WGS 84 / Pseudo-Mercator: metres.
const MERCATOR: u32 = 3857;

fn convex_hull(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    check_plane(&call.function_name(), &[&geometry])?;
    match derive::convex_hull(&geometry.shape) {
        Some(shape) => call.geometry_value(&Geometry { shape, ..geometry }),
        None => Ok(ValueRef::Null),
    }
}

/// Errors: 1210 for a distance that is not greater than 0, 1235 for a shape with an area.
fn simplify(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(geometry), Some(distance)) = (call.geometry(0)?, call.double(1)?) else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    if distance.is_nan() || distance <= 0.0 {
        return Err(Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {name}")));
    }
    check_plane(&name, &[&geometry])?;
    match derive::simplified(&geometry.shape, distance)? {
        Some(shape) => call.geometry_value(&Geometry { shape, ..geometry }),
        None => Err(Error::not_supported(&format!("a polygon in {name}"))),
    }
}

fn is_simple(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    if geometry.shape.dimension() != Some(0) {
        check_plane(&call.function_name(), &[&geometry])?;
    }
    Ok(ValueRef::Int(derive::is_simple(&geometry.shape)?.into()))
}

/// Errors: 3741 and 3742 for geometries without a reference system.
fn transform(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(geometry), Some(wanted)) = (call.geometry(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    let Ok(wanted) = u32::try_from(wanted) else {
        return Err(super::value_out_of_range("SRID", &call.function_name()));
    };
    check_system(wanted)?;
    if geometry.system == wanted {
        return call.geometry_value(&geometry);
    }
    let change = match (geometry.system, wanted) {
        (DEGREES, MERCATOR) => to_mercator,
        (MERCATOR, DEGREES) => to_degrees,
        (0, _) => return Err(not_transformed(ErrorCode::TransformSource, "from", 0)),
        (_, other) => return Err(not_transformed(ErrorCode::TransformTarget, "to", other)),
    };
    let mut shape = geometry.shape;
    shape.change_points(change);
    let mut is_finite = true;
    shape.for_each_point(&mut |point| is_finite &= point.x.is_finite() && point.y.is_finite());
    match is_finite {
        true => call.geometry_value(&Geometry { system: wanted, shape }),
        false => Err(super::value_out_of_range("Result", &call.function_name())),
    }
}

fn to_mercator(point: &mut Point) {
    let (axis, _) = ReferenceSystem::WGS84;
    point.x = axis * point.x.to_radians();
    point.y = axis * point.y.to_radians().tan().asinh();
}

fn to_degrees(point: &mut Point) {
    let (axis, _) = ReferenceSystem::WGS84;
    point.x = (point.x / axis).to_degrees();
    point.y = (point.y / axis).sinh().atan().to_degrees();
}

#[cold]
fn not_transformed(code: ErrorCode, direction: &str, system: u32) -> Box<Error> {
    Error::new(code, format!("Transformation {direction} SRID {system} is not supported."))
}
