//! Relations of two geometries, and of the envelopes around them.

use junctor_model::error::{Error, Result};
use junctor_model::geometry::{Geometry, GeometryKind, Shape};
use junctor_model::value::ValueRef;

use super::{check_plane, function};
use crate::function::{Call, Function, TypedCall};
use crate::geometry::measure::Envelope;
use crate::geometry::relate::{Relation, intersect, relate};
use crate::program::Expression;
use crate::result_type::ResultType;

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_INTERSECTS", 2, 2, resolve, |call| intersects(call, true)),
    function("ST_DISJOINT", 2, 2, resolve, |call| intersects(call, false)),
    function("ST_EQUALS", 2, 2, resolve, |call| related(call, Relation::equals)),
    function("ST_CONTAINS", 2, 2, resolve, |call| related(call, Relation::contains)),
    function("ST_WITHIN", 2, 2, resolve, |call| related(call, Relation::is_within)),
    function("ST_TOUCHES", 2, 2, resolve, touches),
    function("ST_CROSSES", 2, 2, resolve, crosses),
    function("ST_OVERLAPS", 2, 2, resolve, overlaps),
    function("MBRINTERSECTS", 2, 2, resolve, |call| of_envelopes(call, Relation::intersects)),
    function("MBRDISJOINT", 2, 2, resolve, |call| of_envelopes(call, |relation| !relation.intersects())),
    function("MBREQUALS", 2, 2, resolve, |call| of_envelopes(call, Relation::equals)),
    function("MBRCONTAINS", 2, 2, resolve, |call| of_envelopes(call, Relation::contains)),
    function("MBRWITHIN", 2, 2, resolve, |call| of_envelopes(call, Relation::is_within)),
    function("MBRCOVERS", 2, 2, resolve, |call| of_envelopes(call, Relation::covers)),
    function("MBRCOVEREDBY", 2, 2, resolve, |call| of_envelopes(call, Relation::is_covered)),
    function("MBRTOUCHES", 2, 2, resolve, |call| of_envelopes(call, Relation::touches)),
    function("MBROVERLAPS", 2, 2, resolve, envelopes_overlap),
];

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 1).with_nullable(true) })
}

fn truth(value: bool) -> ValueRef<'static> {
    ValueRef::Int(value.into())
}

/// Two geometries in a plane; `None` if one of them is NULL or empty. Error: 3618.
fn operands(call: &Call<'_>) -> Result<Option<(Geometry, Geometry)>> {
    let Some((left, right)) = call.geometries()? else { return Ok(None) };
    check_plane(&call.function_name(), &[&left, &right])?;
    Ok((!left.shape.is_empty() && !right.shape.is_empty()).then_some((left, right)))
}

fn intersects(call: Call<'_>, wanted: bool) -> Result<ValueRef<'_>> {
    let Some((left, right)) = operands(&call)? else { return Ok(ValueRef::Null) };
    Ok(truth(intersect(&left.shape, &right.shape)? == wanted))
}

/// The relation of two shapes, and their dimensions; `None` if one of them is NULL or empty. Error: 1235 for
/// a collection.
fn relation(call: &Call<'_>) -> Result<Option<(Relation, u8, u8)>> {
    let Some((left, right)) = operands(call)? else { return Ok(None) };
    let (Some(own), Some(other)) = (left.shape.dimension(), right.shape.dimension()) else { return Ok(None) };
    match relate(&left.shape, &right.shape)? {
        Some(relation) => Ok(Some((relation, own, other))),
        None => Err(Error::not_supported(&format!("a geometry collection in {}", call.function_name()))),
    }
}

fn related(call: Call<'_>, test: fn(&Relation) -> bool) -> Result<ValueRef<'_>> {
    Ok(relation(&call)?.map_or(ValueRef::Null, |(relation, ..)| truth(test(&relation))))
}

/// NULL for points alone, as in MySQL.
fn touches(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match relation(&call)? {
        None | Some((_, 0, 0)) => ValueRef::Null,
        Some((relation, ..)) => truth(relation.touches()),
    })
}

/// NULL for an area as the first operand and for points as the second one, as in MySQL.
fn crosses(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match relation(&call)? {
        None | Some((_, 2, _) | (_, _, 0)) => ValueRef::Null,
        Some((relation, own, other)) => truth(relation.crosses(own, other)),
    })
}

/// NULL for geometries of different dimensions, as in MySQL.
fn overlaps(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match relation(&call)? {
        Some((relation, own, other)) if own == other => truth(relation.overlaps(own)),
        _ => ValueRef::Null,
    })
}

/// The relation of the envelopes, and their dimensions; `None` if one of the geometries is NULL or empty.
/// Error: 3618 for other geometries than points of a geographic system, in which the envelope of a line
/// contains more than those of its points.
fn envelope_relation(call: &Call<'_>) -> Result<Option<(Relation, u8, u8)>> {
    let Some((left, right)) = call.geometries()? else { return Ok(None) };
    let is_point = |geometry: &Geometry| geometry.shape.kind() == GeometryKind::Point;
    if !is_point(&left) || !is_point(&right) {
        check_plane(&call.function_name(), &[&left, &right])?;
    }
    let envelope = |geometry: &Geometry| Envelope::of(&geometry.shape).map(|envelope| envelope.shape());
    let (Some(left), Some(right)) = (envelope(&left), envelope(&right)) else { return Ok(None) };
    let dimension = |shape: &Shape| shape.dimension().unwrap_or(0);
    let dimensions = (dimension(&left), dimension(&right));
    Ok(relate(&left, &right)?.map(|relation| (relation, dimensions.0, dimensions.1)))
}

fn of_envelopes(call: Call<'_>, test: fn(&Relation) -> bool) -> Result<ValueRef<'_>> {
    Ok(envelope_relation(&call)?.map_or(ValueRef::Null, |(relation, ..)| truth(test(&relation))))
}

fn envelopes_overlap(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(envelope_relation(&call)?
        .map_or(ValueRef::Null, |(relation, own, other)| truth(own == other && relation.overlaps(own))))
}
