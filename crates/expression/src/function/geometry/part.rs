//! Properties and parts of geometries.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, Point, Ring, Shape};
use junctor_model::value::ValueRef;

use super::{
    check_degrees, check_latitude, check_longitude, function, is_geographic, resolve_geometry, resolve_integer,
    unexpected,
};
use crate::function::{Call, Function, TypedCall, generated_text};
use crate::program::Expression;
use crate::result_type::ResultType;

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_X", 1, 2, resolve_coordinate, |call| coordinate(call, Axis::First)),
    function("ST_Y", 1, 2, resolve_coordinate, |call| coordinate(call, Axis::Second)),
    function("ST_LATITUDE", 1, 2, resolve_coordinate, |call| coordinate(call, Axis::Latitude)),
    function("ST_LONGITUDE", 1, 2, resolve_coordinate, |call| coordinate(call, Axis::Longitude)),
    function("ST_SRID", 1, 2, resolve_system, system),
    function("ST_GEOMETRYTYPE", 1, 1, resolve_type, type_name),
    function("ST_DIMENSION", 1, 1, resolve_integer, dimension),
    function("ST_ISEMPTY", 1, 1, resolve_integer, is_empty),
    function("ST_ISCLOSED", 1, 1, resolve_integer, is_closed),
    function("ST_STARTPOINT", 1, 1, resolve_geometry, |call| line_point(call, |line| line.first().copied())),
    function("ST_ENDPOINT", 1, 1, resolve_geometry, |call| line_point(call, |line| line.last().copied())),
    function("ST_POINTN", 2, 2, resolve_geometry, point_n),
    function("ST_NUMPOINTS", 1, 1, resolve_integer, num_points),
    function("ST_EXTERIORRING", 1, 1, resolve_geometry, exterior_ring),
    function("ST_INTERIORRINGN", 2, 2, resolve_geometry, interior_ring_n),
    function("ST_NUMINTERIORRING", 1, 1, resolve_integer, num_interior_rings),
    function("ST_NUMINTERIORRINGS", 1, 1, resolve_integer, num_interior_rings),
    function("ST_NUMGEOMETRIES", 1, 1, resolve_integer, num_geometries),
    function("ST_GEOMETRYN", 2, 2, resolve_geometry, geometry_n),
];

/// Characters of the longest name of a class.
const TYPE_CHARACTERS: u32 = 20;

/// A coordinate of a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    /// The first one in texts: the latitude in a geographic system.
    First,
    Second,
    Latitude,
    Longitude,
}

/// With a second argument, the result is a point with another coordinate.
fn resolve_coordinate(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = if arguments.len() == 1 { ResultType::double() } else { ResultType::geometry() };
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

fn resolve_system(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = if arguments.len() == 1 { ResultType::integer(true, 10) } else { ResultType::geometry() };
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

fn resolve_type(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, TYPE_CHARACTERS)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn coordinate(call: Call<'_>, axis: Axis) -> Result<ValueRef<'_>> {
    let Some(Geometry { system, shape }) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let Shape::Point(mut point) = shape else { return Err(unexpected("POINT", shape.kind(), &name)) };
    let geographic = is_geographic(system);
    if !geographic && matches!(axis, Axis::Latitude | Axis::Longitude) {
        let message = format!(
            "Function {name} is only defined for geographic spatial reference systems, but one of its arguments is in \
             SRID {system}, which is not geographic."
        );
        return Err(Error::new(ErrorCode::NotGeographic, message));
    }
    let is_latitude = match axis {
        Axis::Latitude => true,
        Axis::Longitude => false,
        Axis::First => geographic,
        Axis::Second => !geographic,
    };
    let place = if is_latitude { &mut point.y } else { &mut point.x };
    if call.count() == 1 {
        return Ok(ValueRef::Double(*place));
    }
    let Some(value) = call.double(1)? else { return Ok(ValueRef::Null) };
    match (geographic, is_latitude) {
        (false, _) => {}
        (true, true) => check_latitude(value, false, &name)?,
        (true, false) => check_longitude(value, false, &name)?,
    }
    *place = value;
    call.geometry_value(&Geometry { system, shape: Shape::Point(point) })
}

/// The reference system, or the same coordinates in another one.
fn system(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    if call.count() == 1 {
        return Ok(ValueRef::UInt(geometry.system.into()));
    }
    let Some(system) = call.system(1)? else { return Ok(ValueRef::Null) };
    if is_geographic(system) {
        check_degrees(&geometry.shape, true, &call.function_name())?;
    }
    call.geometry_value(&Geometry { system, ..geometry })
}

fn type_name(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    let name = geometry.shape.kind().name().to_ascii_uppercase();
    call.build(|buffer| buffer.extend_from_slice(name.as_bytes()))
}

fn dimension(call: Call<'_>) -> Result<ValueRef<'_>> {
    let dimension = call.geometry(0)?.and_then(|geometry| geometry.shape.dimension());
    Ok(dimension.map_or(ValueRef::Null, |dimension| ValueRef::Int(dimension.into())))
}

fn is_empty(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.geometry(0)?.map_or(ValueRef::Null, |geometry| ValueRef::Int(geometry.shape.is_empty().into())))
}

fn is_closed(call: Call<'_>) -> Result<ValueRef<'_>> {
    let closed = |line: &Vec<Point>| line.first() == line.last();
    Ok(match call.geometry(0)?.map(|geometry| geometry.shape) {
        Some(Shape::LineString(line)) => ValueRef::Int(closed(&line).into()),
        Some(Shape::MultiLineString(lines)) => ValueRef::Int(lines.iter().all(closed).into()),
        _ => ValueRef::Null,
    })
}

fn count(count: usize) -> ValueRef<'static> {
    ValueRef::Int(count as i64)
}

/// A point of a line; NULL for other geometries.
fn line_point(call: Call<'_>, find: impl Fn(&[Point]) -> Option<Point>) -> Result<ValueRef<'_>> {
    let Some(Geometry { system, shape: Shape::LineString(line) }) = call.geometry(0)? else {
        return Ok(ValueRef::Null);
    };
    match find(&line) {
        Some(point) => call.geometry_value(&Geometry { system, shape: Shape::Point(point) }),
        None => Ok(ValueRef::Null),
    }
}

impl Call<'_> {
    /// A position from 1 on, as one from 0 on; `None` for NULL and for numbers below 1.
    fn place(&self, position: usize) -> Result<Option<usize>> {
        let number = self.integer(position)?;
        Ok(number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1)))
    }
}

fn point_n(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(place) = call.place(1)? else { return Ok(ValueRef::Null) };
    line_point(call, |line| line.get(place).copied())
}

fn num_points(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.geometry(0)?.map(|geometry| geometry.shape) {
        Some(Shape::LineString(line)) => count(line.len()),
        _ => ValueRef::Null,
    })
}

/// The rings of a polygon; `None` for NULL and other geometries.
fn rings(call: &Call<'_>) -> Result<Option<(u32, Vec<Ring>)>> {
    Ok(match call.geometry(0)? {
        Some(Geometry { system, shape: Shape::Polygon(rings) }) => Some((system, rings)),
        _ => None,
    })
}

fn ring_at(call: Call<'_>, place: usize) -> Result<ValueRef<'_>> {
    let Some((system, mut rings)) = rings(&call)? else { return Ok(ValueRef::Null) };
    match place < rings.len() {
        true => call.geometry_value(&Geometry { system, shape: Shape::LineString(rings.swap_remove(place)) }),
        false => Ok(ValueRef::Null),
    }
}

fn exterior_ring(call: Call<'_>) -> Result<ValueRef<'_>> {
    ring_at(call, 0)
}

fn interior_ring_n(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.place(1)? {
        Some(place) => ring_at(call, place.saturating_add(1)),
        None => Ok(ValueRef::Null),
    }
}

fn num_interior_rings(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(rings(&call)?.map_or(ValueRef::Null, |(_, rings)| count(rings.len() - 1)))
}

fn num_geometries(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.geometry(0)?.map(|geometry| geometry.shape) {
        Some(Shape::MultiPoint(points)) => count(points.len()),
        Some(Shape::MultiLineString(lines)) => count(lines.len()),
        Some(Shape::MultiPolygon(polygons)) => count(polygons.len()),
        Some(Shape::Collection(elements)) => count(elements.len()),
        _ => ValueRef::Null,
    })
}

fn geometry_n(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(Geometry { system, shape }), Some(place)) = (call.geometry(0)?, call.place(1)?) else {
        return Ok(ValueRef::Null);
    };
    let element = match shape {
        Shape::MultiPoint(points) => points.get(place).copied().map(Shape::Point),
        Shape::MultiLineString(mut lines) => (place < lines.len()).then(|| Shape::LineString(lines.swap_remove(place))),
        Shape::MultiPolygon(mut polygons) => {
            (place < polygons.len()).then(|| Shape::Polygon(polygons.swap_remove(place)))
        }
        Shape::Collection(mut elements) => (place < elements.len()).then(|| elements.swap_remove(place)),
        _ => None,
    };
    match element {
        Some(shape) => call.geometry_value(&Geometry { system, shape }),
        None => Ok(ValueRef::Null),
    }
}
