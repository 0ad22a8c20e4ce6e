//! Segments and rings: on which side a point is, and where two segments meet.

use std::cmp::Ordering;

use junctor_model::geometry::{Point, Ring};

/// A straight line between two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Segment {
    pub from: Point,
    pub to: Point,
}

/// The common points of two segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meeting {
    /// No point.
    None,
    /// One point that is inside both.
    Cross(Point),
    /// One point that is an end of at least one of them.
    Touch(Point),
    /// All points between these two.
    Overlap(Point, Point),
}

/// Where a point is in relation to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingSide {
    Inside,
    On,
    Outside,
}

/// Whether `point` is on the left (greater), on the right (less) or on the line through two points.
pub(super) fn orientation(from: Point, to: Point, point: Point) -> Ordering {
    let coord = |point: Point| robust::Coord { x: point.x, y: point.y };
    let sign = robust::orient2d(coord(from), coord(to), coord(point));
    // Coordinates near the limit of their type overflow; the sign is unknown then.
    sign.partial_cmp(&0.0).unwrap_or(Ordering::Equal)
}

/// The segments of a line.
pub(super) fn segments(line: &[Point]) -> impl Iterator<Item = Segment> + '_ {
    line.windows(2).map(|pair| Segment { from: pair[0], to: pair[1] })
}

impl Segment {
    /// Whether both ends are one point.
    pub(super) fn is_point(&self) -> bool {
        self.from == self.to
    }

    /// Whether a point of the line through the segment is between its ends.
    fn spans(&self, point: Point) -> bool {
        let between = |a: f64, b: f64, value: f64| a.min(b) <= value && value <= a.max(b);
        between(self.from.x, self.to.x, point.x) && between(self.from.y, self.to.y, point.y)
    }

    /// Whether a point is on the segment.
    pub(super) fn has(&self, point: Point) -> bool {
        self.spans(point) && orientation(self.from, self.to, point) == Ordering::Equal
    }

    /// The coordinate in which the ends differ most: it orders the points of the segment.
    pub(super) fn position(&self, point: Point) -> f64 {
        let is_flat = (self.to.x - self.from.x).abs() >= (self.to.y - self.from.y).abs();
        if is_flat { point.x } else { point.y }
    }

    /// Whether the boxes around two segments have a point in common.
    fn is_near(&self, other: &Segment) -> bool {
        let apart = |a: f64, b: f64, c: f64, d: f64| a.max(b) < c.min(d) || c.max(d) < a.min(b);
        !apart(self.from.x, self.to.x, other.from.x, other.to.x)
            && !apart(self.from.y, self.to.y, other.from.y, other.to.y)
    }

    /// The common points with another segment. Neither segment is a point.
    pub(super) fn meeting(&self, other: &Segment) -> Meeting {
        if !self.is_near(other) {
            return Meeting::None;
        }
        let of_other = [other.from, other.to].map(|point| orientation(self.from, self.to, point));
        let of_self = [self.from, self.to].map(|point| orientation(other.from, other.to, point));
        if of_other == [Ordering::Equal; 2] {
            return self.overlap(other);
        }
        let ends = [(of_other[0], other.from), (of_other[1], other.to)];
        let touched = ends.into_iter().find(|(side, point)| *side == Ordering::Equal && self.spans(*point));
        let own = [(of_self[0], self.from), (of_self[1], self.to)];
        let touching = own.into_iter().find(|(side, point)| *side == Ordering::Equal && other.spans(*point));
        if let Some((_, point)) = touched.or(touching) {
            return Meeting::Touch(point);
        }
        let is_split = |sides: [Ordering; 2]| sides[0] == sides[1].reverse() && sides[0] != Ordering::Equal;
        match is_split(of_other) && is_split(of_self) {
            true => Meeting::Cross(self.crossing(other)),
            false => Meeting::None,
        }
    }

    /// The common points with a segment on the same line.
    fn overlap(&self, other: &Segment) -> Meeting {
        let mut shared = [self.from, self.to].into_iter().filter(|point| other.spans(*point)).collect::<Vec<_>>();
        shared.extend([other.from, other.to].into_iter().filter(|point| self.spans(*point)));
        let first = shared.first().copied();
        match (first, first.and_then(|first| shared.iter().find(|point| **point != first))) {
            (None, _) => Meeting::None,
            (Some(first), None) => Meeting::Touch(first),
            (Some(first), Some(second)) => Meeting::Overlap(first, *second),
        }
    }

    /// The point at which two segments cross, rounded.
    fn crossing(&self, other: &Segment) -> Point {
        let cross = |point: Point| {
            (other.to.x - other.from.x) * (point.y - other.from.y)
                - (other.to.y - other.from.y) * (point.x - other.from.x)
        };
        let (start, end) = (cross(self.from), cross(self.to));
        let share = start / (start - end);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
        let between = |from: f64, to: f64| from * (1.0 - share) + to * share;
        Point { x: between(self.from.x, self.to.x), y: between(self.from.y, self.to.y) }
    }
}

/// Where a point is in relation to a ring.
pub(super) fn ring_side(ring: &Ring, point: Point) -> RingSide {
    let mut is_inside = false;
    for Segment { from, to } in segments(ring) {
        let is_beside = (from.y > point.y) != (to.y > point.y);
        if !is_beside && from.y != point.y && to.y != point.y {
            continue;
        }
        let segment = Segment { from, to };
        let side = orientation(from, to, point);
        if side == Ordering::Equal && segment.spans(point) {
            return RingSide::On;
        }
        let is_left = if to.y > from.y { Ordering::Greater } else { Ordering::Less };
        is_inside ^= is_beside && side == is_left;
    }
    if is_inside { RingSide::Inside } else { RingSide::Outside }
}

/// Whether the points of a ring run against the clock. False for a ring without an area.
pub(super) fn runs_against_clock(ring: &Ring) -> bool {
    // The lowest and then leftmost point is a corner of the hull, so that the turn there is the ring's.
    let order = |a: &Point, b: &Point| a.y.total_cmp(&b.y).then(a.x.total_cmp(&b.x));
    let corners = &ring[..ring.len() - 1];
    let Some(lowest) = corners.iter().copied().min_by(order) else { return false };
    let Some(at) = corners.iter().position(|point| *point == lowest) else { return false };
    let different = |mut places: Box<dyn Iterator<Item = usize>>| {
        places.find_map(|place| Some(corners[place]).filter(|point| *point != lowest))
    };
    let count = corners.len();
    let next = different(Box::new((1..count).map(move |step| (at + step) % count)));
    let previous = different(Box::new((1..count).map(move |step| (at + count - step) % count)));
    let (Some(next), Some(previous)) = (next, previous) else { return false };
    orientation(previous, lowest, next) == Ordering::Greater
}
