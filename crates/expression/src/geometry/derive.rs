//! Shapes that are made of one other: hulls and simpler lines; and whether a shape is simple.

use junctor_model::error::Result;
use junctor_model::geometry::{Point, Shape};

use super::segment::{Meeting, Segment, orientation, segments};
use super::{check_pairs, point_count};

/// The smallest convex shape with all points: a point, a line, or a polygon that runs against the clock from
/// its leftmost point. `None` for a shape without points.
pub(crate) fn convex_hull(shape: &Shape) -> Option<Shape> {
    let mut points = Vec::new();
    shape.for_each_point(&mut |point| points.push(point));
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    points.dedup();
    let (first, last) = (*points.first()?, *points.last()?);
    if points.len() == 1 {
        return Some(Shape::Point(first));
    }
    // Andrew's monotone chain.
    let lower = half_hull(points.iter().copied());
    let upper = half_hull(points.iter().rev().copied());
    if lower.len() == 2 && upper.len() == 2 {
        return Some(Shape::LineString(vec![first, last]));
    }
    let mut ring = lower;
    ring.pop();
    ring.extend(upper);
    Some(Shape::Polygon(vec![ring]))
}

fn half_hull(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., before, last] = hull.as_slice()
            && !orientation(*before, *last, point).is_gt()
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The shape with fewer points: those of a line that are farther than `distance` from the line through the
/// others stay (Douglas and Peucker). Points stay as they are. `None` for a shape with an area. Error: 1436
/// for too many points.
pub(crate) fn simplified(shape: &Shape, distance: f64) -> Result<Option<Shape>> {
    let line = |points: &Vec<Point>| -> Result<Vec<Point>> {
        check_pairs(points.len(), points.len())?;
        Ok(simplified_line(points, distance))
    };
    Ok(Some(match shape {
        Shape::Point(_) | Shape::MultiPoint(_) => shape.clone(),
        Shape::LineString(points) => Shape::LineString(line(points)?),
        Shape::MultiLineString(lines) => Shape::MultiLineString(lines.iter().map(line).collect::<Result<_>>()?),
        Shape::Polygon(_) | Shape::MultiPolygon(_) => return Ok(None),
        Shape::Collection(elements) => {
            let mut simpler = Vec::with_capacity(elements.len());
            for element in elements {
                match simplified(element, distance)? {
                    Some(element) => simpler.push(element),
                    None => return Ok(None),
                }
            }
            Shape::Collection(simpler)
        }
    }))
}

fn simplified_line(points: &[Point], distance: f64) -> Vec<Point> {
    if points.len() < 3 {
        return points.to_vec();
    }
    let mut stays = vec![false; points.len()];
    let last = points.len() - 1;
    (stays[0], stays[last]) = (true, true);
    let mut open = vec![(0, last)];
    while let Some((from, to)) = open.pop() {
        let mut farthest: Option<(usize, f64)> = None;
        for place in from + 1..to {
            let apart = square_distance(points[place], points[from], points[to]);
            if farthest.is_none_or(|(_, known)| apart > known) {
                farthest = Some((place, apart));
            }
        }
        if let Some((place, apart)) = farthest.filter(|(_, apart)| distance * distance < *apart)
            && apart.is_finite()
        {
            stays[place] = true;
            open.extend([(from, place), (place, to)]);
        }
    }
    points.iter().zip(stays).filter_map(|(point, stays)| stays.then_some(*point)).collect()
}

/// The square of the distance of a point from a segment. The steps of the computation are those of MySQL, so
/// that points at equal distances are rounded alike.
fn square_distance(point: Point, from: Point, to: Point) -> f64 {
    let square = |x: f64, y: f64| x * x + y * y;
    let (along_x, along_y) = (to.x - from.x, to.y - from.y);
    let share = (point.x - from.x) * along_x + (point.y - from.y) * along_y;
    if share <= 0.0 {
        return square(point.x - from.x, point.y - from.y);
    }
    let whole = square(along_x, along_y);
    if whole <= share {
        return square(point.x - to.x, point.y - to.y);
    }
    let share = share / whole;
    square(point.x - (from.x + share * along_x), point.y - (from.y + share * along_y))
}

/// Whether points are different, lines meet themselves and each other in their ends only, and rings have no
/// point twice in a row. Error: 1436 for too many points.
pub(crate) fn is_simple(shape: &Shape) -> Result<bool> {
    let points = point_count(shape);
    check_pairs(points, points)?;
    Ok(match shape {
        Shape::Point(_) => true,
        Shape::MultiPoint(points) => {
            let mut sorted = points.clone();
            sorted.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
            sorted.windows(2).all(|pair| pair[0] != pair[1])
        }
        Shape::LineString(line) => is_simple_line(line),
        Shape::MultiLineString(lines) => {
            lines.iter().all(|line| is_simple_line(line))
                && lines
                    .iter()
                    .enumerate()
                    .all(|(place, line)| lines[place + 1..].iter().all(|other| meet_in_ends(line, other)))
        }
        Shape::Polygon(rings) => rings.iter().all(|ring| has_no_repetition(ring)),
        Shape::MultiPolygon(polygons) => polygons.iter().flatten().all(|ring| has_no_repetition(ring)),
        Shape::Collection(elements) => {
            for element in elements {
                if !is_simple(element)? {
                    return Ok(false);
                }
            }
            true
        }
    })
}

fn has_no_repetition(line: &[Point]) -> bool {
    line.windows(2).all(|pair| pair[0] != pair[1])
}

fn is_simple_line(line: &[Point]) -> bool {
    if !has_no_repetition(line) {
        return false;
    }
    let parts: Vec<Segment> = segments(line).collect();
    let is_closed = line.len() > 2 && line.first() == line.last();
    parts.iter().enumerate().all(|(first, part)| {
        parts.iter().enumerate().skip(first + 1).all(|(second, other)| match part.meeting(other) {
            Meeting::None => true,
            Meeting::Touch(point) if second == first + 1 => point == part.to,
            Meeting::Touch(point) => is_closed && first == 0 && second == parts.len() - 1 && point == line[0],
            Meeting::Cross(_) | Meeting::Overlap(..) => false,
        })
    })
}

/// Whether two lines meet only in points that are ends of both.
fn meet_in_ends(left: &[Point], right: &[Point]) -> bool {
    let ends = |line: &[Point]| match (line.first(), line.last()) {
        (Some(first), Some(last)) if first != last => vec![*first, *last],
        _ => Vec::new(),
    };
    let (of_left, of_right) = (ends(left), ends(right));
    segments(left).all(|part| {
        segments(right).all(|other| match part.meeting(&other) {
            Meeting::None => true,
            Meeting::Touch(point) => of_left.contains(&point) && of_right.contains(&point),
            Meeting::Cross(_) | Meeting::Overlap(..) => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        super::super::text::read(text.as_bytes()).expect("the text of a shape")
    }

    #[test]
    fn hulls_run_against_the_clock_from_the_leftmost_point() {
        for (given, hull) in [
            ("MULTIPOINT(5 0,25 0,15 10,15 25)", "POLYGON((5 0,25 0,15 25,5 0))"),
            ("LINESTRING(0 0,1 1,2 2,3 3)", "LINESTRING(0 0,3 3)"),
            ("MULTIPOINT(1 1,1 1)", "POINT(1 1)"),
            ("POLYGON((0 0,0 2,1 1,2 2,2 0,0 0))", "POLYGON((0 0,2 0,2 2,0 2,0 0))"),
        ] {
            assert_eq!(convex_hull(&shape(given)), Some(shape(hull)), "{given}");
        }
        assert_eq!(convex_hull(&Shape::Collection(Vec::new())), None);
    }

    #[test]
    fn lines_lose_the_points_near_the_line_through_others() {
        let line = "LINESTRING(0 0,0 1,1 1,1 2,2 2,2 3,3 3)";
        for (distance, simpler) in [(0.5, "LINESTRING(0 0,0 1,1 1,2 3,3 3)"), (1.0, "LINESTRING(0 0,3 3)")] {
            assert_eq!(simplified(&shape(line), distance).unwrap(), Some(shape(simpler)));
        }
        assert_eq!(simplified(&shape("POLYGON((0 0,1 0,1 1,0 0))"), 1.0).unwrap(), None);
        assert!(simplified(&shape("LINESTRING(0 0,1e308 1e308,-1e308 5)"), 1.0).unwrap().is_some());
    }

    #[test]
    fn simple_lines_meet_in_their_ends_only() {
        for (text, simple) in [
            ("POINT(1 1)", true),
            ("MULTIPOINT(1 1,2 2)", true),
            ("MULTIPOINT(1 1,2 2,1 1)", false),
            ("LINESTRING(0 0,1 1,2 0)", true),
            ("LINESTRING(0 0,2 2,2 0,0 2)", false),
            ("LINESTRING(0 0,1 0,1 1,0 0)", true),
            ("LINESTRING(0 0,2 0,2 1,1 0)", false),
            ("LINESTRING(0 0,2 0,1 0)", false),
            ("LINESTRING(0 0,1 0,1 0,2 0)", false),
            ("MULTILINESTRING((0 0,1 1),(1 1,2 0))", true),
            ("MULTILINESTRING((0 0,2 2),(1 1,2 0))", false),
            ("MULTILINESTRING((0 0,2 2),(0 2,2 0))", false),
            ("POLYGON((0 0,1 0,1 1,0 0))", true),
            ("GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,2 2,2 0,0 2))", false),
        ] {
            assert_eq!(is_simple(&shape(text)).unwrap(), simple, "{text}");
        }
    }
}
