//! Whether a geometry is valid by the rules of the Open Geospatial Consortium.

use std::collections::BTreeSet;

use junctor_model::error::Result;
use junctor_model::geometry::{Point, Ring, Shape};

use super::check_pairs;
use super::relate::{Part, in_polygon, key_of, relate};
use super::segment::{Meeting, RingSide, Segment, ring_side, segments};

/// Whether lines have two different points, rings meet neither themselves nor each other but in single
/// points, holes are inside, the interior of each polygon is connected, and the polygons of one geometry
/// are apart. Error: 1436 for too many points.
pub(crate) fn is_valid(shape: &Shape) -> Result<bool> {
    let points = ring_points(shape);
    check_pairs(points, points)?;
    is_valid_part(shape)
}

/// Number of points of all rings.
fn ring_points(shape: &Shape) -> usize {
    match shape {
        Shape::Polygon(rings) => rings.iter().map(Vec::len).sum(),
        Shape::MultiPolygon(polygons) => polygons.iter().flatten().map(Vec::len).sum(),
        Shape::Collection(elements) => elements.iter().map(ring_points).sum(),
        _ => 0,
    }
}

fn is_valid_part(shape: &Shape) -> Result<bool> {
    match shape {
        Shape::Point(_) | Shape::MultiPoint(_) => Ok(true),
        Shape::LineString(line) => Ok(is_line(line)),
        Shape::MultiLineString(lines) => Ok(lines.iter().all(|line| is_line(line))),
        Shape::Polygon(rings) => Ok(is_polygon(rings)),
        Shape::MultiPolygon(polygons) => are_apart(polygons),
        Shape::Collection(elements) => {
            for element in elements {
                if !is_valid_part(element)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn is_line(line: &[Point]) -> bool {
    line.iter().any(|point| *point != line[0])
}

fn are_apart(polygons: &[Vec<Ring>]) -> Result<bool> {
    if !polygons.iter().all(|rings| is_polygon(rings)) {
        return Ok(false);
    }
    for (number, rings) in polygons.iter().enumerate() {
        let one = Shape::Polygon(rings.clone());
        for other in &polygons[number + 1..] {
            let relation = relate(&one, &Shape::Polygon(other.clone()))?;
            if relation.is_some_and(|relation| !relation.are_apart()) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn is_polygon(rings: &[Ring]) -> bool {
    let edges: Vec<Vec<Segment>> =
        rings.iter().map(|ring| segments(ring).filter(|segment| !segment.is_point()).collect()).collect();
    if !edges.iter().all(|ring| is_simple(ring)) {
        return false;
    }
    // Where two rings meet. A cycle of rings that meet cuts the interior into pieces.
    let mut touches: BTreeSet<(u64, u64, usize)> = BTreeSet::new();
    for first in 0..rings.len() {
        for second in first + 1..rings.len() {
            for edge in &edges[first] {
                for other in &edges[second] {
                    match edge.meeting(other) {
                        Meeting::None => {}
                        Meeting::Touch(point) => {
                            let (x, y) = key_of(point);
                            touches.extend([(x, y, first), (x, y, second)]);
                        }
                        Meeting::Cross(_) | Meeting::Overlap(..) => return false,
                    }
                }
            }
        }
    }
    let is_inside = |inner: &Ring, outer: &Ring| inner.iter().any(|point| ring_side(outer, *point) == RingSide::Inside);
    let is_outside =
        |inner: &Ring, outer: &Ring| inner.iter().any(|point| ring_side(outer, *point) == RingSide::Outside);
    let Some((shell, holes)) = rings.split_first() else { return false };
    for (number, hole) in holes.iter().enumerate() {
        // Rings do not cross here, so that one point tells. A hole with all corners on the shell cuts it.
        let is_nested = |other: &Ring| is_inside(hole, other) || is_inside(other, hole);
        if is_outside(hole, shell) || !is_inside(hole, shell) || holes[number + 1..].iter().any(is_nested) {
            return false;
        }
    }
    is_connected(rings.len(), &touches)
}

/// Whether the segments of a ring meet only their neighbours, and these only in their common point.
fn is_simple(ring: &[Segment]) -> bool {
    if ring.len() < 3 {
        return false;
    }
    for (first, edge) in ring.iter().enumerate() {
        for (second, other) in ring.iter().enumerate().skip(first + 1) {
            let is_next = second == first + 1 || first == 0 && second == ring.len() - 1;
            match edge.meeting(other) {
                Meeting::None => {}
                Meeting::Touch(_) if is_next => {}
                _ => return false,
            }
        }
    }
    true
}

/// Whether rings and the points in which they meet form no cycle. `touches` has each ring at each such point.
fn is_connected(rings: usize, touches: &BTreeSet<(u64, u64, usize)>) -> bool {
    let mut places: Vec<(u64, u64)> = touches.iter().map(|(x, y, _)| (*x, *y)).collect();
    places.dedup();
    let mut parent: Vec<usize> = (0..rings + places.len()).collect();
    let root = |parent: &[usize], mut node: usize| {
        while parent[node] != node {
            node = parent[node];
        }
        node
    };
    for (x, y, ring) in touches {
        let Ok(place) = places.binary_search(&(*x, *y)) else { continue };
        let (one, other) = (root(&parent, *ring), root(&parent, rings + place));
        if one == other {
            return false;
        }
        parent[one] = other;
    }
    true
}

/// Whether a point is in a polygon or on its boundary.
pub(super) fn has_point(rings: &[Ring], point: Point) -> bool {
    in_polygon(rings, point) != Part::Exterior
}
