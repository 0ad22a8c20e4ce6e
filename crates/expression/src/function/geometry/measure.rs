//! Lengths, areas, distances and centers of geometries.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, GeometryKind, Point, ReferenceSystem, Shape, SystemKind};
use junctor_model::value::ValueRef;

use super::{
    check_latitude, check_longitude, check_plane, function, is_geographic, not_for, resolve_geometry, resolve_integer,
    resolve_number,
};
use crate::function::{Call, Function, TypedCall};
use crate::geometry::measure::{self, Envelope};
use crate::geometry::{sphere, validity};
use crate::program::Expression;
use crate::result_type::ResultType;

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_LENGTH", 1, 2, resolve_number, length),
    function("ST_AREA", 1, 1, resolve_number, area),
    function("ST_CENTROID", 1, 1, resolve_geometry, centroid),
    function("ST_ENVELOPE", 1, 1, resolve_geometry, envelope),
    function("ST_DISTANCE", 2, 3, resolve_distance, distance),
    function("ST_DISTANCE_SPHERE", 2, 3, resolve_distance, distance_sphere),
    function("ST_ISVALID", 1, 1, resolve_integer, is_valid),
    function("ST_VALIDATE", 1, 1, resolve_geometry, validate),
];

fn resolve_distance(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::double().with_nullable(true) })
}

/// A number; error 1690 for one that is not finite.
fn finite<'r>(call: &Call<'r>, number: f64) -> Result<ValueRef<'r>> {
    match number.is_finite() {
        true => Ok(ValueRef::Double(number)),
        false => Err(super::value_out_of_range("Result", &call.function_name())),
    }
}

fn length(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    if call.check_unit(1, geometry.system)?.is_none() {
        return Ok(ValueRef::Null);
    }
    let Some(length) = measure::length(&geometry.shape) else { return Ok(ValueRef::Null) };
    check_plane(&call.function_name(), &[&geometry])?;
    finite(&call, length)
}

fn area(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let Some(area) = measure::area(&geometry.shape) else {
        return Err(super::unexpected("POLYGON/MULTIPOLYGON", geometry.shape.kind(), &name));
    };
    check_plane(&name, &[&geometry])?;
    finite(&call, area)
}

fn centroid(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    check_plane(&call.function_name(), &[&geometry])?;
    match measure::centroid(&geometry.shape) {
        Some(point) => call.geometry_value(&Geometry { system: geometry.system, shape: Shape::Point(point) }),
        None => Ok(ValueRef::Null),
    }
}

fn envelope(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    check_plane(&call.function_name(), &[&geometry])?;
    let shape = Envelope::of(&geometry.shape).map_or(Shape::Collection(Vec::new()), |envelope| envelope.shape());
    call.geometry_value(&Geometry { system: geometry.system, shape })
}

fn distance(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some((left, right)) = call.geometries()? else { return Ok(ValueRef::Null) };
    if call.check_unit(2, left.system)?.is_none() {
        return Ok(ValueRef::Null);
    }
    check_plane(&call.function_name(), &[&left, &right])?;
    match measure::distance(&left.shape, &right.shape)? {
        Some(distance) => finite(&call, distance),
        None => Ok(ValueRef::Null),
    }
}

/// The mean radius of the ellipsoid of a geographic system.
fn mean_radius() -> f64 {
    let (axis, inverse_flattening) = ReferenceSystem::WGS84;
    let other_axis = axis * (1.0 - 1.0 / inverse_flattening);
    (2.0 * axis + other_axis) / 3.0
}

/// The smallest distance of two points on a sphere. Coordinates without a reference system are longitude and
/// latitude.
fn distance_sphere(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some((left, right)) = call.geometries()? else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let operands = [&left, &right];
    let geographic = is_geographic(left.system);
    if ReferenceSystem::find(left.system).is_some_and(|system| system.kind == SystemKind::Projected) {
        return Err(not_for(ErrorCode::NotForProjectedSystem, "projected", &name, &operands));
    }
    let is_points =
        |geometry: &&Geometry| matches!(geometry.shape.kind(), GeometryKind::Point | GeometryKind::MultiPoint);
    if !operands.iter().all(is_points) {
        return Err(match geographic {
            true => not_for(ErrorCode::NotForGeographicSystem, "geographic", &name, &operands),
            false => not_for(ErrorCode::NotForCartesianSystem, "Cartesian", &name, &operands),
        });
    }
    let radius = match call.count() {
        2 if geographic => mean_radius(),
        2 => sphere::DEFAULT_RADIUS,
        _ => match call.double(2)? {
            None => return Ok(ValueRef::Null),
            Some(radius) if radius > 0.0 => radius,
            Some(_) => {
                let message = format!("Invalid radius provided to function {name}: Radius must be greater than zero.");
                return Err(Error::new(ErrorCode::NonPositiveRadius, message));
            }
        },
    };
    let [mut from, mut to]: [Vec<Point>; 2] = Default::default();
    left.shape.for_each_point(&mut |point| from.push(point));
    right.shape.for_each_point(&mut |point| to.push(point));
    for point in from.iter().chain(&to) {
        check_longitude(point.x, true, &name)?;
        check_latitude(point.y, true, &name)?;
    }
    crate::geometry::check_pairs(from.len(), to.len())?;
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to)));
    let distance = pairs.map(|(from, to)| sphere::distance(from, to, radius)).fold(f64::INFINITY, f64::min);
    finite(&call, distance)
}

/// Whether a geometry is valid; `None` for NULL.
fn validity(call: &Call<'_>) -> Result<Option<(Geometry, bool)>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(None) };
    // Points are valid everywhere.
    if geometry.shape.dimension() != Some(0) {
        check_plane(&call.function_name(), &[&geometry])?;
    }
    let is_valid = validity::is_valid(&geometry.shape)?;
    Ok(Some((geometry, is_valid)))
}

fn is_valid(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(validity(&call)?.map_or(ValueRef::Null, |(_, is_valid)| ValueRef::Int(is_valid.into())))
}

/// The geometry if it is valid, otherwise NULL.
fn validate(call: Call<'_>) -> Result<ValueRef<'_>> {
    match validity(&call)? {
        Some((geometry, true)) => call.geometry_value(&geometry),
        _ => Ok(ValueRef::Null),
    }
}
