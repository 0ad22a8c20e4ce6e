//! The relation of two geometries: the nine intersections of their interiors, boundaries and exteriors
//! (DE-9IM, by Clementini, Sharma and Egenhofer).
//!
//! Each segment of one geometry is split where it meets segments of the other one. What lies between two
//! splits is on a segment of the other geometry, or wholly inside or outside of it.

use std::collections::BTreeSet;

use junctor_model::error::Result;
use junctor_model::geometry::{Point, Ring, Shape};

use super::segment::{Meeting, RingSide, Segment, ring_side, runs_against_clock, segments};
use super::{check_pairs, point_count, too_large};

/// A part of the plane in relation to a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Interior = 0,
    Boundary = 1,
    Exterior = 2,
}

use Part::{Boundary, Exterior, Interior};

/// The dimensions of the nine intersections; `None` for an empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relation([[Option<u8>; 3]; 3]);

/// A geometry of one dimension as an operand.
enum Operand<'g> {
    Points(Vec<Point>),
    Lines(Vec<&'g [Point]>),
    Areas(Vec<&'g [Ring]>),
}

/// Maximum number of points in which the edges of two operands meet. They are sorted for each edge.
const SPLITS_MAX: usize = 1 << 22;

/// A segment of an operand.
struct Edge {
    segment: Segment,
    /// Whether the interior of the area is on the left of the segment.
    is_left: bool,
}

/// Whether two geometries, also collections, have a point in common. Error: 1436 for too many points.
pub(crate) fn intersect(left: &Shape, right: &Shape) -> Result<bool> {
    check_pairs(point_count(left), point_count(right))?;
    intersect_parts(left, right)
}

fn intersect_parts(left: &Shape, right: &Shape) -> Result<bool> {
    match (left, right) {
        (Shape::Collection(elements), other) | (other, Shape::Collection(elements)) => {
            for element in elements {
                if intersect_parts(element, other)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => relate(left, right).map(|relation| relation.is_some_and(|relation| relation.intersects())),
    }
}

/// The relation of two geometries; `None` if one of them is a collection. Error: 1436 for too many points.
pub(crate) fn relate(left: &Shape, right: &Shape) -> Result<Option<Relation>> {
    let (Some(left), Some(right)) = (Operand::of(left), Operand::of(right)) else { return Ok(None) };
    let (left_edges, right_edges) = (left.edges(), right.edges());
    check_pairs(left.size().max(left_edges.len()), right.size().max(right_edges.len()))?;
    let mut relation = Relation([[None; 3]; 3]);
    relation.add(Exterior, Exterior, 2);
    let (left_ends, right_ends) = (left.ends(), right.ends());
    left.for_each_vertex(&mut |point| relation.add(left.part_of_vertex(&left_ends, point), right.locate(point), 0));
    right.for_each_vertex(&mut |point| relation.add(left.locate(point), right.part_of_vertex(&right_ends, point), 0));
    add_edges(&mut relation, (&left, &left_edges), (&right, &right_edges))?;
    let mut turned = relation.transposed();
    add_edges(&mut turned, (&right, &right_edges), (&left, &left_edges))?;
    Ok(Some(turned.transposed()))
}

/// Adds what the edges of the first operand tell. Error: 1436 for edges that meet too often.
fn add_edges(
    relation: &mut Relation,
    (own, edges): (&Operand<'_>, &[Edge]),
    (other, others): (&Operand<'_>, &[Edge]),
) -> Result<()> {
    let is_area = matches!(own, Operand::Areas(_));
    let other_is_area = matches!(other, Operand::Areas(_));
    if is_area && !other_is_area {
        relation.add(Interior, Exterior, 2);
    }
    let part = if is_area { Boundary } else { Interior };
    let other_part = if other_is_area { Boundary } else { Interior };
    let mut split_count = 0;
    // Pieces that are searched in the other operand, and where they were.
    let mut search_count = 0;
    let (mut was_inside, mut was_outside) = (false, false);
    for edge in edges {
        let mut splits = vec![edge.segment.from, edge.segment.to];
        let mut shared: Vec<(f64, f64, bool)> = Vec::new();
        for candidate in others {
            match edge.segment.meeting(&candidate.segment) {
                Meeting::None => {}
                Meeting::Touch(point) => splits.push(point),
                Meeting::Cross(point) => {
                    relation.add(part, other_part, 0);
                    splits.push(point);
                }
                Meeting::Overlap(start, end) => {
                    let (start_at, end_at) = (edge.segment.position(start), edge.segment.position(end));
                    let is_same_side = (edge.is_left == candidate.is_left) == runs_along(edge, candidate);
                    shared.push((start_at.min(end_at), start_at.max(end_at), is_same_side));
                    splits.extend([start, end]);
                }
            }
        }
        // The ends are no meetings.
        split_count += splits.len() - 2;
        if split_count > SPLITS_MAX {
            return Err(too_large(edges.len(), others.len()));
        }
        splits.sort_by(|a, b| edge.segment.position(*a).total_cmp(&edge.segment.position(*b)));
        splits.dedup();
        shared.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mut starts = shared.iter().peekable();
        // Among the shared pieces that start before the window, the one that ends last.
        let mut last: Option<&(f64, f64, bool)> = None;
        for pair in splits.windows(2) {
            let (start, end) = (edge.segment.position(pair[0]), edge.segment.position(pair[1]));
            while let Some(piece) = starts.next_if(|(low, ..)| *low <= start) {
                if last.is_none_or(|(_, high, _)| *high < piece.1) {
                    last = Some(piece);
                }
            }
            match last.filter(|(_, high, _)| end <= *high) {
                Some((_, _, is_same_side)) => {
                    relation.add(part, other_part, 1);
                    if is_area && other_is_area {
                        relation.add_shared(*is_same_side);
                    }
                }
                // Points and lines cover no part between two splits.
                None if !other_is_area => relation.add(part, Exterior, 1),
                // Another piece of either place adds nothing.
                None if was_inside && was_outside => {}
                None => {
                    search_count += 1;
                    check_pairs(search_count, others.len())?;
                    let middle = |a: f64, b: f64| a / 2.0 + b / 2.0;
                    let point = Point { x: middle(pair[0].x, pair[1].x), y: middle(pair[0].y, pair[1].y) };
                    let place = other.locate(point);
                    was_inside |= place == Interior;
                    was_outside |= place == Exterior;
                    relation.add_between(is_area, place);
                }
            }
        }
    }
    Ok(())
}

/// Whether two edges on one line have the same direction.
fn runs_along(edge: &Edge, other: &Edge) -> bool {
    let ascends = |segment: &Segment| edge.segment.position(segment.from) < edge.segment.position(segment.to);
    ascends(&edge.segment) == ascends(&other.segment)
}

impl Relation {
    fn add(&mut self, own: Part, other: Part, dimension: u8) {
        let cell = &mut self.0[own as usize][other as usize];
        *cell = (*cell).max(Some(dimension));
    }

    /// Adds what two areas with a piece of boundary in common have beside it.
    fn add_shared(&mut self, is_same_side: bool) {
        match is_same_side {
            true => self.add(Interior, Interior, 2),
            false => {
                self.add(Interior, Exterior, 2);
                self.add(Exterior, Interior, 2);
            }
        }
    }

    /// Adds a piece of an edge that meets no edge of the other operand, which is an area.
    fn add_between(&mut self, is_area: bool, place: Part) {
        match (is_area, place) {
            // Only a point that is rounded can be there.
            (_, Boundary) => {}
            (false, place) => self.add(Interior, place, 1),
            (true, Interior) => {
                self.add(Boundary, Interior, 1);
                self.add(Interior, Interior, 2);
                self.add(Exterior, Interior, 2);
            }
            (true, Exterior) => {
                self.add(Boundary, Exterior, 1);
                self.add(Interior, Exterior, 2);
            }
        }
    }

    fn transposed(&self) -> Relation {
        let mut turned = Relation([[None; 3]; 3]);
        for (row, cells) in self.0.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                turned.0[column][row] = *cell;
            }
        }
        turned
    }

    fn has(&self, own: Part, other: Part) -> bool {
        self.0[own as usize][other as usize].is_some()
    }

    /// Whether the two have a point in common.
    pub(crate) fn intersects(&self) -> bool {
        self.has(Interior, Interior) || self.touches()
    }

    /// Whether they have points in common, but none of both interiors.
    pub(crate) fn touches(&self) -> bool {
        let is_met = self.has(Interior, Boundary) || self.has(Boundary, Interior) || self.has(Boundary, Boundary);
        is_met && !self.has(Interior, Interior)
    }

    /// Whether no point of the first one is outside of the second one, and the interiors meet.
    pub(crate) fn is_within(&self) -> bool {
        self.has(Interior, Interior) && !self.has(Interior, Exterior) && !self.has(Boundary, Exterior)
    }

    /// As [`Self::is_within`], with the two exchanged.
    pub(crate) fn contains(&self) -> bool {
        self.transposed().is_within()
    }

    /// Whether no point of the first one is outside of the second one.
    pub(crate) fn is_covered(&self) -> bool {
        self.intersects() && !self.has(Interior, Exterior) && !self.has(Boundary, Exterior)
    }

    /// As [`Self::is_covered`], with the two exchanged.
    pub(crate) fn covers(&self) -> bool {
        self.transposed().is_covered()
    }

    /// Whether both have the same points.
    pub(crate) fn equals(&self) -> bool {
        self.is_within() && self.contains()
    }

    /// Whether the interiors meet, in a dimension below that of one of the two, and the first one also has
    /// points outside of the second one.
    pub(crate) fn crosses(&self, left: u8, right: u8) -> bool {
        match left == 1 && right == 1 {
            true => self.0[0][0] == Some(0),
            false => self.has(Interior, Interior) && self.has(Interior, Exterior),
        }
    }

    /// Whether the interiors of two geometries of this dimension meet in that dimension, and each has points
    /// outside of the other one.
    pub(crate) fn overlaps(&self, dimension: u8) -> bool {
        let meets = if dimension == 1 { self.0[0][0] == Some(1) } else { self.has(Interior, Interior) };
        meets && self.has(Interior, Exterior) && self.has(Exterior, Interior)
    }

    /// Whether two areas share neither points of both interiors nor a piece of boundary.
    pub(super) fn are_apart(&self) -> bool {
        !self.has(Interior, Interior) && self.0[1][1] != Some(1)
    }
}

impl<'g> Operand<'g> {
    fn of(shape: &'g Shape) -> Option<Operand<'g>> {
        Some(match shape {
            Shape::Point(point) => Operand::Points(vec![*point]),
            Shape::MultiPoint(points) => Operand::Points(points.clone()),
            Shape::LineString(line) => Operand::Lines(vec![line]),
            Shape::MultiLineString(lines) => Operand::Lines(lines.iter().map(Vec::as_slice).collect()),
            Shape::Polygon(rings) => Operand::Areas(vec![rings]),
            Shape::MultiPolygon(polygons) => Operand::Areas(polygons.iter().map(Vec::as_slice).collect()),
            Shape::Collection(_) => return None,
        })
    }

    fn for_each_vertex(&self, visit: &mut dyn FnMut(Point)) {
        match self {
            Operand::Points(points) => points.iter().for_each(|point| visit(*point)),
            Operand::Lines(lines) => lines.iter().copied().flatten().for_each(|point| visit(*point)),
            Operand::Areas(areas) => areas.iter().copied().flatten().flatten().for_each(|point| visit(*point)),
        }
    }

    /// The ends that an odd number of lines has, other than closed ones.
    fn ends(&self) -> BTreeSet<(u64, u64)> {
        let mut odd = BTreeSet::new();
        let Operand::Lines(lines) = self else { return odd };
        for line in lines.iter().filter(|line| line.first() != line.last()) {
            for end in [line.first(), line.last()].into_iter().flatten() {
                if !odd.remove(&key_of(*end)) {
                    odd.insert(key_of(*end));
                }
            }
        }
        odd
    }

    /// As [`Self::locate`] for a vertex of the operand itself, given its [`Self::ends`], without a search.
    /// The vertices of an area are all its boundary if it is valid.
    fn part_of_vertex(&self, ends: &BTreeSet<(u64, u64)>, point: Point) -> Part {
        match self {
            Operand::Points(_) => Interior,
            Operand::Lines(_) if ends.contains(&key_of(point)) => Boundary,
            Operand::Lines(_) => Interior,
            Operand::Areas(_) => Boundary,
        }
    }

    fn size(&self) -> usize {
        let mut size = 0;
        self.for_each_vertex(&mut |_| size += 1);
        size
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut add = |line: &[Point], is_left: bool| {
            let long = segments(line).filter(|segment| !segment.is_point());
            edges.extend(long.map(|segment| Edge { segment, is_left }));
        };
        match self {
            Operand::Points(_) => {}
            Operand::Lines(lines) => lines.iter().for_each(|line| add(line, false)),
            Operand::Areas(areas) => {
                for rings in areas {
                    for (number, ring) in rings.iter().enumerate() {
                        add(ring, runs_against_clock(ring) == (number == 0));
                    }
                }
            }
        }
        edges
    }

    fn locate(&self, point: Point) -> Part {
        match self {
            Operand::Points(points) => {
                if points.contains(&point) {
                    Interior
                } else {
                    Exterior
                }
            }
            Operand::Lines(lines) => on_lines(lines, point),
            Operand::Areas(areas) => {
                let places = areas.iter().map(|rings| in_polygon(rings, point));
                places.min_by_key(|place| *place as u8).unwrap_or(Exterior)
            }
        }
    }
}

/// The bits of the coordinates. Both zeros are one number.
pub(super) fn key_of(point: Point) -> (u64, u64) {
    ((point.x + 0.0).to_bits(), (point.y + 0.0).to_bits())
}

/// Where a point is in relation to lines. Their boundary is the ends that an odd number of lines has, other
/// than closed ones.
fn on_lines(lines: &[&[Point]], point: Point) -> Part {
    let open = lines.iter().filter(|line| line.first() != line.last());
    let ends = open.flat_map(|line| [line.first(), line.last()]).flatten().filter(|end| **end == point).count();
    if ends % 2 == 1 {
        return Boundary;
    }
    let is_on = lines.iter().any(|line| segments(line).any(|segment| segment.has(point)));
    if is_on { Interior } else { Exterior }
}

/// Where a point is in relation to a polygon.
pub(super) fn in_polygon(rings: &[Ring], point: Point) -> Part {
    let mut place = Exterior;
    for (number, ring) in rings.iter().enumerate() {
        match (ring_side(ring, point), number) {
            (RingSide::On, _) => return Boundary,
            (RingSide::Outside, 0) => return Exterior,
            (RingSide::Inside, 0) => place = Interior,
            (RingSide::Inside, _) => return Exterior,
            (RingSide::Outside, _) => {}
        }
    }
    place
}
