//! Lengths, areas, distances, centroids and envelopes in a plane.

use junctor_model::error::Result;
use junctor_model::geometry::{Point, Ring, Shape};

use super::segment::{Meeting, Segment, segments};
use super::validity::has_point;
use super::{check_pairs, point_count};

/// The smallest box around a geometry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Envelope {
    pub min: Point,
    pub max: Point,
}

impl Envelope {
    /// The envelope; `None` for an empty geometry.
    pub(crate) fn of(shape: &Shape) -> Option<Envelope> {
        let mut envelope: Option<Envelope> = None;
        shape.for_each_point(&mut |point| {
            let around = envelope.get_or_insert(Envelope { min: point, max: point });
            around.min = Point { x: around.min.x.min(point.x), y: around.min.y.min(point.y) };
            around.max = Point { x: around.max.x.max(point.x), y: around.max.y.max(point.y) };
        });
        envelope
    }

    /// A point, a line or a rectangle.
    pub(crate) fn shape(&self) -> Shape {
        let Envelope { min, max } = *self;
        if min == max {
            return Shape::Point(min);
        }
        if min.x == max.x || min.y == max.y {
            return Shape::LineString(vec![min, max]);
        }
        let corner = |x, y| Point { x, y };
        Shape::Polygon(vec![vec![min, corner(max.x, min.y), max, corner(min.x, max.y), min]])
    }
}

/// The length of a line, or of several; `None` for other shapes.
pub(crate) fn length(shape: &Shape) -> Option<f64> {
    match shape {
        Shape::LineString(line) => Some(line_length(line)),
        Shape::MultiLineString(lines) => Some(lines.iter().map(|line| line_length(line)).sum()),
        _ => None,
    }
}

fn line_length(line: &[Point]) -> f64 {
    segments(line).map(|segment| distance_of_points(segment.from, segment.to)).sum()
}

/// The area of a polygon, or of several; `None` for other shapes.
pub(crate) fn area(shape: &Shape) -> Option<f64> {
    match shape {
        Shape::Polygon(rings) => Some(polygon_area(rings)),
        Shape::MultiPolygon(polygons) => Some(polygons.iter().map(|rings| polygon_area(rings)).sum()),
        _ => None,
    }
}

fn polygon_area(rings: &[Ring]) -> f64 {
    let mut areas = rings.iter().map(|ring| ring_moments(ring).area.abs());
    let shell = areas.next().unwrap_or(0.0);
    areas.fold(shell, |area, hole| area - hole)
}

/// The area of a ring, positive against the clock, and the moments around the axes.
struct Moments {
    area: f64,
    x: f64,
    y: f64,
}

/// The moments of a ring in relation to its first point, so that large coordinates lose no digits.
fn ring_moments(ring: &[Point]) -> Moments {
    let origin = ring[0];
    let mut moments = Moments { area: 0.0, x: 0.0, y: 0.0 };
    for Segment { from, to } in segments(ring) {
        let (from_x, from_y) = (from.x - origin.x, from.y - origin.y);
        let (to_x, to_y) = (to.x - origin.x, to.y - origin.y);
        let cross = from_x * to_y - to_x * from_y;
        moments.area += cross / 2.0;
        moments.x += (from_x + to_x) * cross / 6.0;
        moments.y += (from_y + to_y) * cross / 6.0;
    }
    moments
}

/// The center of gravity of the parts of the greatest dimension; `None` for an empty geometry.
pub(crate) fn centroid(shape: &Shape) -> Option<Point> {
    let dimension = shape.dimension()?;
    let origin = Envelope::of(shape)?.min;
    let mut sum = WeightedSum { origin, weight: 0.0, x: 0.0, y: 0.0 };
    sum.add_shape(shape, dimension);
    if sum.weight == 0.0 {
        // An area or a line without extent.
        shape.for_each_point(&mut |point| sum.add(point, 1.0));
    }
    let center = |sum_of: f64, origin: f64| origin + sum_of / sum.weight;
    let point = Point { x: center(sum.x, origin.x), y: center(sum.y, origin.y) };
    (point.x.is_finite() && point.y.is_finite()).then_some(point)
}

struct WeightedSum {
    origin: Point,
    weight: f64,
    x: f64,
    y: f64,
}

impl WeightedSum {
    fn add(&mut self, point: Point, weight: f64) {
        self.weight += weight;
        self.x += (point.x - self.origin.x) * weight;
        self.y += (point.y - self.origin.y) * weight;
    }

    fn add_shape(&mut self, shape: &Shape, dimension: u8) {
        match shape {
            Shape::Collection(elements) => elements.iter().for_each(|element| self.add_shape(element, dimension)),
            shape if shape.dimension() != Some(dimension) => {}
            Shape::Point(point) => self.add(*point, 1.0),
            Shape::MultiPoint(points) => points.iter().for_each(|point| self.add(*point, 1.0)),
            Shape::LineString(line) => self.add_line(line),
            Shape::MultiLineString(lines) => lines.iter().for_each(|line| self.add_line(line)),
            Shape::Polygon(rings) => self.add_polygon(rings),
            Shape::MultiPolygon(polygons) => polygons.iter().for_each(|rings| self.add_polygon(rings)),
        }
    }

    fn add_line(&mut self, line: &[Point]) {
        for Segment { from, to } in segments(line) {
            let middle = Point { x: from.x / 2.0 + to.x / 2.0, y: from.y / 2.0 + to.y / 2.0 };
            self.add(middle, distance_of_points(from, to));
        }
    }

    fn add_polygon(&mut self, rings: &[Ring]) {
        for (number, ring) in rings.iter().enumerate() {
            let moments = ring_moments(ring);
            if moments.area == 0.0 {
                continue;
            }
            // Holes have a negative weight, whatever their direction.
            let weight = if number == 0 { moments.area.abs() } else { -moments.area.abs() };
            let center = Point { x: ring[0].x + moments.x / moments.area, y: ring[0].y + moments.y / moments.area };
            self.add(center, weight);
        }
    }
}

fn distance_of_points(a: Point, b: Point) -> f64 {
    let (x, y) = (a.x - b.x, a.y - b.y);
    (x * x + y * y).sqrt()
}

/// The smallest distance of two points, one of each geometry; `None` if one of them is empty. Error: 1436 for
/// too many points.
pub(crate) fn distance(left: &Shape, right: &Shape) -> Result<Option<f64>> {
    check_pairs(point_count(left), point_count(right))?;
    Ok(distance_of_shapes(left, right))
}

fn distance_of_shapes(left: &Shape, right: &Shape) -> Option<f64> {
    match (left, right) {
        (Shape::Collection(elements), other) | (other, Shape::Collection(elements)) => {
            let mut smallest: Option<f64> = None;
            for element in elements {
                if let Some(found) = distance_of_shapes(element, other) {
                    smallest = Some(smallest.map_or(found, |smallest| smallest.min(found)));
                }
            }
            smallest
        }
        _ => Some(distance_of_parts(&Parts::of(left), &Parts::of(right))),
    }
}

/// A geometry as segments, points among them, and areas.
struct Parts<'g> {
    segments: Vec<Segment>,
    areas: Vec<&'g [Ring]>,
}

impl<'g> Parts<'g> {
    fn of(shape: &'g Shape) -> Parts<'g> {
        let mut parts = Parts { segments: Vec::new(), areas: Vec::new() };
        match shape {
            Shape::Point(point) => parts.segments.push(Segment { from: *point, to: *point }),
            Shape::MultiPoint(points) => {
                parts.segments.extend(points.iter().map(|point| Segment { from: *point, to: *point }));
            }
            Shape::LineString(line) => parts.segments.extend(segments(line)),
            Shape::MultiLineString(lines) => parts.segments.extend(lines.iter().flat_map(|line| segments(line))),
            Shape::Polygon(rings) => parts.areas.push(rings),
            Shape::MultiPolygon(polygons) => parts.areas.extend(polygons.iter().map(Vec::as_slice)),
            // The caller takes collections apart.
            Shape::Collection(_) => {}
        }
        for rings in &parts.areas {
            parts.segments.extend(rings.iter().flat_map(|ring| segments(ring)));
        }
        parts
    }

    fn has(&self, point: Point) -> bool {
        self.areas.iter().any(|rings| has_point(rings, point))
    }
}

fn distance_of_parts(left: &Parts<'_>, right: &Parts<'_>) -> f64 {
    let is_inside = |parts: &Parts<'_>, other: &Parts<'_>| {
        !other.areas.is_empty() && parts.segments.iter().any(|segment| other.has(segment.from))
    };
    if is_inside(left, right) || is_inside(right, left) {
        return 0.0;
    }
    let mut smallest = f64::INFINITY;
    for own in &left.segments {
        for other in &right.segments {
            smallest = smallest.min(distance_of_segments(own, other));
        }
    }
    smallest
}

fn distance_of_segments(one: &Segment, other: &Segment) -> f64 {
    if !one.is_point() && !other.is_point() && one.meeting(other) != Meeting::None {
        return 0.0;
    }
    let ends = [
        distance_to_segment(one.from, other),
        distance_to_segment(one.to, other),
        distance_to_segment(other.from, one),
        distance_to_segment(other.to, one),
    ];
    ends.into_iter().fold(f64::INFINITY, f64::min)
}

/// The distance of a point to its projection on a segment, or to the nearer end.
fn distance_to_segment(point: Point, segment: &Segment) -> f64 {
    let (x, y) = (segment.to.x - segment.from.x, segment.to.y - segment.from.y);
    let along = x * (point.x - segment.from.x) + y * (point.y - segment.from.y);
    let whole = x * x + y * y;
    if along <= 0.0 || whole == 0.0 {
        return distance_of_points(point, segment.from);
    }
    if whole <= along {
        return distance_of_points(point, segment.to);
    }
    let share = along / whole;
    distance_of_points(point, Point { x: segment.from.x + share * x, y: segment.from.y + share * y })
}
