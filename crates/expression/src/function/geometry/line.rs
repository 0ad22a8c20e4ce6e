//! Points on lines, the rectangle of two points, and how far lines are apart.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, Point, Shape};
use junctor_model::value::ValueRef;

use super::{check_plane, function, not_for, resolve_geometry, resolve_number, unexpected};
use crate::function::{Call, Function};
use crate::geometry::check_pairs;
use crate::geometry::measure::{Envelope, length};

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_LINEINTERPOLATEPOINT", 2, 2, resolve_geometry, |call| on_line(call, Wanted::Fraction)),
    function("ST_LINEINTERPOLATEPOINTS", 2, 2, resolve_geometry, |call| on_line(call, Wanted::EachFraction)),
    function("ST_POINTATDISTANCE", 2, 2, resolve_geometry, |call| on_line(call, Wanted::Distance)),
    function("ST_MAKEENVELOPE", 2, 2, resolve_geometry, make_envelope),
    function("ST_FRECHETDISTANCE", 2, 3, resolve_number, |call| apart(call, frechet)),
    function("ST_HAUSDORFFDISTANCE", 2, 3, resolve_number, |call| apart(call, hausdorff)),
];

/// The share of a length by which sums of distances may differ from it.
const ROUNDING: f64 = 1e-12;

/// Points of one result. A greater one would be longer than the longest packet.
const POINTS_MAX: f64 = 1e6;

/// The points of a line that a function gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The point after a fraction of the length.
    Fraction,
    /// The points after each multiple of a fraction of the length.
    EachFraction,
    /// The point after a distance.
    Distance,
}

/// Errors: 3516 for a geometry that is no line, 1690 for a place that is not on it.
fn on_line(call: Call<'_>, wanted: Wanted) -> Result<ValueRef<'_>> {
    let (Some(geometry), Some(place)) = (call.geometry(0)?, call.double(1)?) else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let Shape::LineString(line) = &geometry.shape else {
        return Err(unexpected("LINESTRING", geometry.shape.kind(), &name));
    };
    check_plane(&name, &[&geometry])?;
    let Some(total) = length(&geometry.shape) else { return Ok(ValueRef::Null) };
    let (most, what) = match wanted {
        Wanted::Distance => (total, "Distance"),
        _ => (1.0, "Fractional distance"),
    };
    if !(0.0..=most).contains(&place) {
        return Err(super::value_out_of_range(what, &name));
    }
    let distance = if wanted == Wanted::Distance { place } else { place * total };
    let shape = match wanted {
        Wanted::EachFraction => Shape::MultiPoint(points_at_each(line, distance, total)?),
        _ => Shape::Point(Walk::new(line).point_at(distance)),
    };
    call.geometry_value(&Geometry { system: geometry.system, shape })
}

/// The points after each multiple of a distance; the first point for the distance 0. Error: a result of too
/// many points.
fn points_at_each(line: &[Point], distance: f64, total: f64) -> Result<Vec<Point>> {
    let mut walk = Walk::new(line);
    if distance <= 0.0 {
        return Ok(vec![walk.point_at(0.0)]);
    }
    let count = (total / distance * (1.0 + ROUNDING)).floor();
    if count > POINTS_MAX {
        let message = format!("ST_LINEINTERPOLATEPOINTS with more than {POINTS_MAX} points");
        return Err(Error::new(ErrorCode::StatementTooComplex, message));
    }
    Ok((1..=count as usize).map(|number| walk.point_at((number as f64 * distance).min(total))).collect())
}

/// Goes along a line, to greater distances only.
struct Walk<'l> {
    rest: &'l [Point],
    /// The distance of the first point of `rest` from the start of the line.
    walked: f64,
}

impl Walk<'_> {
    fn new(line: &[Point]) -> Walk<'_> {
        Walk { rest: line, walked: 0.0 }
    }

    fn point_at(&mut self, distance: f64) -> Point {
        while let [from, to, ..] = self.rest {
            let segment = (to.x - from.x).hypot(to.y - from.y);
            if distance < self.walked + segment {
                let share = (distance - self.walked) / segment;
                return Point { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
            }
            self.walked += segment;
            self.rest = &self.rest[1..];
        }
        self.rest.first().copied().unwrap_or(Point { x: 0.0, y: 0.0 })
    }
}

/// The point, line or rectangle of two points. Error 1210 for other geometries and for two reference systems.
fn make_envelope(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(left), Some(right)) = (call.geometry(0)?, call.geometry(1)?) else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let (Shape::Point(first), Shape::Point(second)) = (&left.shape, &right.shape) else {
        return Err(Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {name}")));
    };
    if left.system != right.system {
        return Err(Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {name}")));
    }
    check_plane(&name, &[&left, &right])?;
    let both = Shape::MultiPoint(vec![*first, *second]);
    let shape = Envelope::of(&both).map_or(both, |envelope| envelope.shape());
    call.geometry_value(&Geometry { system: left.system, shape })
}

/// A discrete distance of two geometries, which looks at their points only. Errors: 1235 for a unit of
/// length, 1436 for too many points, 1690 for a number that is not finite, 3033, 3618, 3704.
fn apart(call: Call<'_>, measure: fn(&Shape, &Shape) -> Option<f64>) -> Result<ValueRef<'_>> {
    let name = call.function_name();
    let Some((left, right)) = call.geometries()? else { return Ok(ValueRef::Null) };
    if call.check_unit(2, left.system)?.is_none() {
        return Ok(ValueRef::Null);
    }
    check_plane(&name, &[&left, &right])?;
    check_pairs(points_of(&left.shape).len(), points_of(&right.shape).len())?;
    match measure(&left.shape, &right.shape) {
        Some(distance) if distance.is_finite() => Ok(ValueRef::Double(distance)),
        Some(_) => Err(super::value_out_of_range("Result", &name)),
        None => Err(not_for(ErrorCode::NotForCartesianSystem, "Cartesian", &name, &[&left, &right])),
    }
}

fn points_of(shape: &Shape) -> Vec<Point> {
    let mut points = Vec::new();
    shape.for_each_point(&mut |point| points.push(point));
    points
}

fn between(left: Point, right: Point) -> f64 {
    (left.x - right.x).hypot(left.y - right.y)
}

/// The least leash for walks along both lines that go from point to point; `None` for other geometries.
fn frechet(left: &Shape, right: &Shape) -> Option<f64> {
    let (Shape::LineString(left), Shape::LineString(right)) = (left, right) else { return None };
    let mut before: Vec<f64> = Vec::new();
    for from in left {
        let mut row: Vec<f64> = Vec::with_capacity(right.len());
        for (place, to) in right.iter().enumerate() {
            let diagonal = place.checked_sub(1).and_then(|place| before.get(place));
            let ways = [before.get(place), row.last(), diagonal];
            // The first pair of points has no way to it.
            let shortest = ways.into_iter().flatten().copied().reduce(f64::min).unwrap_or(0.0);
            row.push(shortest.max(between(*from, *to)));
        }
        before = row;
    }
    before.last().copied()
}

/// The greatest distance from a point of the first geometry to the nearest point of the second, as in MySQL;
/// `None` for other geometries than lines and points of several elements.
fn hausdorff(left: &Shape, right: &Shape) -> Option<f64> {
    let is_possible = matches!(
        (left, right),
        (Shape::MultiPoint(_), Shape::MultiPoint(_))
            | (Shape::LineString(_) | Shape::MultiLineString(_), Shape::LineString(_) | Shape::MultiLineString(_))
    );
    if !is_possible {
        return None;
    }
    let right = points_of(right);
    let nearest = |from: Point| right.iter().map(|to| between(from, *to)).fold(f64::INFINITY, f64::min);
    points_of(left).into_iter().map(nearest).reduce(f64::max)
}
