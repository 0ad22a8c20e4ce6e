//! Geometries from text, from WKB and from other geometries.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, GeometryKind, Point, Shape, append_wkb, read_wkb};
use junctor_model::value::ValueRef;

use super::{
    check_degrees, check_system, different_systems, function, invalid, is_geographic, resolve_geometry, unexpected,
};
use crate::function::{ANY, Call, Function, TypedCall, generated_text};
use crate::geometry::text;
use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};
use junctor_model::collation::CollationId;

use GeometryKind::{Collection, LineString, MultiLineString, MultiPoint, MultiPolygon, Polygon};

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_GEOMFROMTEXT", 1, 3, resolve_read, |call| from_text(call, GeometryKind::Geometry)),
    function("ST_GEOMETRYFROMTEXT", 1, 3, resolve_read, |call| from_text(call, GeometryKind::Geometry)),
    function("ST_POINTFROMTEXT", 1, 3, resolve_read, |call| from_text(call, GeometryKind::Point)),
    function("ST_LINEFROMTEXT", 1, 3, resolve_read, |call| from_text(call, LineString)),
    function("ST_LINESTRINGFROMTEXT", 1, 3, resolve_read, |call| from_text(call, LineString)),
    function("ST_POLYFROMTEXT", 1, 3, resolve_read, |call| from_text(call, Polygon)),
    function("ST_POLYGONFROMTEXT", 1, 3, resolve_read, |call| from_text(call, Polygon)),
    function("ST_MPOINTFROMTEXT", 1, 3, resolve_read, |call| from_text(call, MultiPoint)),
    function("ST_MULTIPOINTFROMTEXT", 1, 3, resolve_read, |call| from_text(call, MultiPoint)),
    function("ST_MLINEFROMTEXT", 1, 3, resolve_read, |call| from_text(call, MultiLineString)),
    function("ST_MULTILINESTRINGFROMTEXT", 1, 3, resolve_read, |call| from_text(call, MultiLineString)),
    function("ST_MPOLYFROMTEXT", 1, 3, resolve_read, |call| from_text(call, MultiPolygon)),
    function("ST_MULTIPOLYGONFROMTEXT", 1, 3, resolve_read, |call| from_text(call, MultiPolygon)),
    function("ST_GEOMCOLLFROMTEXT", 1, 3, resolve_read, |call| from_text(call, Collection)),
    function("ST_GEOMCOLLFROMTXT", 1, 3, resolve_read, |call| from_text(call, Collection)),
    function("ST_GEOMETRYCOLLECTIONFROMTEXT", 1, 3, resolve_read, |call| from_text(call, Collection)),
    function("ST_GEOMFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, GeometryKind::Geometry)),
    function("ST_GEOMETRYFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, GeometryKind::Geometry)),
    function("ST_POINTFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, GeometryKind::Point)),
    function("ST_LINEFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, LineString)),
    function("ST_LINESTRINGFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, LineString)),
    function("ST_POLYFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, Polygon)),
    function("ST_POLYGONFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, Polygon)),
    function("ST_MPOINTFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, MultiPoint)),
    function("ST_MULTIPOINTFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, MultiPoint)),
    function("ST_MLINEFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, MultiLineString)),
    function("ST_MULTILINESTRINGFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, MultiLineString)),
    function("ST_MPOLYFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, MultiPolygon)),
    function("ST_MULTIPOLYGONFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, MultiPolygon)),
    function("ST_GEOMCOLLFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, Collection)),
    function("ST_GEOMETRYCOLLECTIONFROMWKB", 1, 3, resolve_read, |call| from_wkb(call, Collection)),
    function("ST_ASTEXT", 1, 2, resolve_text, as_text),
    function("ST_ASWKT", 1, 2, resolve_text, as_text),
    function("ST_ASBINARY", 1, 2, resolve_bytes, as_binary),
    function("ST_ASWKB", 1, 2, resolve_bytes, as_binary),
    function("POINT", 2, 2, resolve_point, point),
    function("LINESTRING", 1, ANY, resolve_parts, |call| joined(call, line_of)),
    function("POLYGON", 1, ANY, resolve_parts, |call| joined(call, polygon_of)),
    function("MULTIPOINT", 1, ANY, resolve_parts, |call| joined(call, points_of)),
    function("MULTILINESTRING", 1, ANY, resolve_parts, |call| joined(call, lines_of)),
    function("MULTIPOLYGON", 1, ANY, resolve_parts, |call| joined(call, polygons_of)),
    function("GEOMETRYCOLLECTION", 0, ANY, resolve_parts, |call| joined(call, collection_of)),
    function("GEOMCOLLECTION", 0, ANY, resolve_parts, |call| joined(call, collection_of)),
    function("ST_SWAPXY", 1, 1, resolve_geometry, swap_xy),
];

/// Characters of a geometry as text, as clients see it.
const TEXT_CHARACTERS: u32 = u32::MAX / 4;

fn resolve_read(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::geometry().with_nullable(true) })
}

fn resolve_text(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, TEXT_CHARACTERS)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn resolve_bytes(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::BINARY, Coercibility::Implicit, u32::MAX).with_nullable(true);
    Ok(TypedCall { arguments, result })
}

fn resolve_point(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::geometry().with_nullable(true) })
}

/// Error 1367 for an argument that is no geometry. The type of a parameter is not known yet.
fn resolve_parts(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    for argument in &arguments {
        let is_open = argument.result.kind == Kind::Null || matches!(argument.node, Node::Parameter(_));
        if !argument.result.is_bytes() && !is_open {
            let shown = argument.describe(crate::parameter::Parameters::NONE);
            let message = format!("Illegal non geometric '{shown}' value found during parsing");
            return Err(Error::new(ErrorCode::IllegalValue, message));
        }
    }
    Ok(TypedCall { arguments, result: ResultType::geometry().with_nullable(true) })
}

/// The order of the coordinates in texts and WKB.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AxisOrder {
    OfSystem,
    LatitudeFirst,
    LongitudeFirst,
}

impl AxisOrder {
    fn is_latitude_first(self, system: u32) -> bool {
        // All geographic systems have the latitude first. The option does not concern other systems.
        is_geographic(system) && self != AxisOrder::LongitudeFirst
    }
}

impl Call<'_> {
    /// The option `axis-order` in the argument; `None` for NULL.
    fn axis_order(&self, position: usize) -> Result<Option<AxisOrder>> {
        if position >= self.count() {
            return Ok(Some(AxisOrder::OfSystem));
        }
        let Some(options) = self.text(position)? else { return Ok(None) };
        let options = String::from_utf8_lossy(options).to_ascii_lowercase();
        let mut order = AxisOrder::OfSystem;
        for pair in options.split(',').map(str::trim).filter(|_| !options.trim().is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            order = match (key.trim(), value.trim()) {
                ("axis-order", "lat-long") => AxisOrder::LatitudeFirst,
                ("axis-order", "long-lat") => AxisOrder::LongitudeFirst,
                ("axis-order", "srid-defined") => AxisOrder::OfSystem,
                _ => return Err(Error::not_supported(&format!("the option {pair} of {}", self.function_name()))),
            };
        }
        Ok(Some(order))
    }
}

fn from_text(call: Call<'_>, wanted: GeometryKind) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let Some((system, order)) = system_and_order(&call)? else { return Ok(ValueRef::Null) };
    let Some(shape) = text::read(text) else { return Err(invalid(&call.function_name())) };
    finish_reading(call, shape, wanted, (system.unwrap_or(0), order))
}

/// The reference system, `None` if none is named, and the order of coordinates; `None` if one of the two is
/// NULL.
fn system_and_order(call: &Call<'_>) -> Result<Option<(Option<u32>, AxisOrder)>> {
    let system = match call.count() {
        1 => None,
        _ => match call.system(1)? {
            Some(system) => Some(system),
            None => return Ok(None),
        },
    };
    Ok(call.axis_order(2)?.map(|order| (system, order)))
}

fn finish_reading<'r>(
    call: Call<'r>,
    shape: Shape,
    wanted: GeometryKind,
    (system, order): (u32, AxisOrder),
) -> Result<ValueRef<'r>> {
    let name = call.function_name();
    if wanted != GeometryKind::Geometry && shape.kind() != wanted {
        return Err(unexpected(&wanted.name().to_ascii_uppercase(), shape.kind(), &name));
    }
    let shape = if order.is_latitude_first(system) { shape.swapped() } else { shape };
    if is_geographic(system) {
        check_degrees(&shape, false, &name)?;
    }
    call.geometry_value(&Geometry { system, shape })
}

/// The argument may also be a geometry, which stays as it is.
fn from_wkb(call: Call<'_>, wanted: GeometryKind) -> Result<ValueRef<'_>> {
    let bytes = match call.value(0)? {
        ValueRef::Null => return Ok(ValueRef::Null),
        ValueRef::Bytes(bytes) => bytes,
        _ => return Err(invalid(&call.function_name())),
    };
    let Some((system, order)) = system_and_order(&call)? else { return Ok(ValueRef::Null) };
    if call.arguments[0].result.kind == Kind::Geometry {
        let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
        let system = system.unwrap_or(geometry.system);
        return finish_reading(call, geometry.shape, wanted, (system, AxisOrder::LongitudeFirst));
    }
    let Some(shape) = read_wkb(bytes) else { return Err(invalid(&call.function_name())) };
    finish_reading(call, shape, wanted, (system.unwrap_or(0), order))
}

/// A geometry with its coordinates in the order of texts and WKB; `None` for NULL.
fn for_writing(call: &Call<'_>) -> Result<Option<Shape>> {
    let (Some(geometry), Some(order)) = (call.geometry(0)?, call.axis_order(1)?) else { return Ok(None) };
    Ok(Some(match order.is_latitude_first(geometry.system) {
        true => geometry.shape.swapped(),
        false => geometry.shape,
    }))
}

fn as_text(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(shape) = for_writing(&call)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| text::append(&shape, buffer))
}

fn as_binary(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(shape) = for_writing(&call)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| append_wkb(&shape, buffer))
}

fn point(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(x), Some(y)) = (call.double(0)?, call.double(1)?) else { return Ok(ValueRef::Null) };
    call.geometry_value(&Geometry { system: 0, shape: Shape::Point(Point { x, y }) })
}

/// A geometry of the arguments, which have one reference system. `join` has `None` for shapes that it cannot
/// join: error 3037.
fn joined(call: Call<'_>, join: fn(Vec<Shape>) -> Option<Shape>) -> Result<ValueRef<'_>> {
    let mut system = None;
    let mut shapes = Vec::with_capacity(call.count());
    for position in 0..call.count() {
        let Some(geometry) = call.geometry(position)? else { return Ok(ValueRef::Null) };
        let first = *system.get_or_insert(geometry.system);
        if first != geometry.system {
            return Err(different_systems(&call.function_name(), first, geometry.system));
        }
        shapes.push(geometry.shape);
    }
    let Some(shape) = join(shapes) else { return Err(invalid(&call.function_name())) };
    let mut value = Vec::new();
    Geometry { system: system.unwrap_or(0), shape }.append(&mut value);
    // Collections may be too deep.
    match Geometry::check_stored(&value) {
        Some((id, _)) => check_system(id).and_then(|()| call.build(|buffer| buffer.extend_from_slice(&value))),
        None => Err(invalid(&call.function_name())),
    }
}

fn points(shapes: Vec<Shape>) -> Option<Vec<Point>> {
    let point = |shape| if let Shape::Point(point) = shape { Some(point) } else { None };
    shapes.into_iter().map(point).collect()
}

fn lines(shapes: Vec<Shape>) -> Option<Vec<Vec<Point>>> {
    let line = |shape| if let Shape::LineString(line) = shape { Some(line) } else { None };
    shapes.into_iter().map(line).collect()
}

fn line_of(shapes: Vec<Shape>) -> Option<Shape> {
    points(shapes).map(Shape::LineString)
}

fn polygon_of(shapes: Vec<Shape>) -> Option<Shape> {
    lines(shapes).map(Shape::Polygon)
}

fn points_of(shapes: Vec<Shape>) -> Option<Shape> {
    points(shapes).map(Shape::MultiPoint)
}

fn lines_of(shapes: Vec<Shape>) -> Option<Shape> {
    lines(shapes).map(Shape::MultiLineString)
}

fn polygons_of(shapes: Vec<Shape>) -> Option<Shape> {
    let rings = |shape| if let Shape::Polygon(rings) = shape { Some(rings) } else { None };
    shapes.into_iter().map(rings).collect::<Option<_>>().map(Shape::MultiPolygon)
}

fn collection_of(shapes: Vec<Shape>) -> Option<Shape> {
    Some(Shape::Collection(shapes))
}

fn swap_xy(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(Geometry { system, shape }) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    let shape = shape.swapped();
    if is_geographic(system) {
        check_degrees(&shape, false, &call.function_name())?;
    }
    call.geometry_value(&Geometry { system, shape })
}
