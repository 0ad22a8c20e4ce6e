//! Relations, measures and texts of known and of random geometries.

use junctor_model::geometry::{Point, Shape};
use proptest::prelude::*;

use super::measure::{Envelope, area, centroid, distance, length};
use super::relate::{Relation, intersect, relate};
use super::validity::is_valid;
use super::{hash, sphere, text};

fn shape(written: &str) -> Shape {
    text::read(written.as_bytes()).unwrap_or_else(|| panic!("{written}"))
}

fn written(shape: &Shape) -> String {
    let mut out = Vec::new();
    text::append(shape, &mut out);
    String::from_utf8(out).unwrap()
}

fn relation(left: &str, right: &str) -> Relation {
    relate(&shape(left), &shape(right)).unwrap().unwrap()
}

#[test]
fn texts_are_read_and_written_in_one_form() {
    for (given, expected) in [
        ("point(1 2)", "POINT(1 2)"),
        (" LineString ( 0 0 , -1.5e2 .25 ) ", "LINESTRING(0 0,-150 0.25)"),
        ("POLYGON((0 0,0 1,1 1,0 0),(0 0,0 1,1 1,0 0))", "POLYGON((0 0,0 1,1 1,0 0),(0 0,0 1,1 1,0 0))"),
        ("MULTIPOINT(0 0,(1 1))", "MULTIPOINT((0 0),(1 1))"),
        ("MULTILINESTRING((0 0,1 1),(2 2,3 3))", "MULTILINESTRING((0 0,1 1),(2 2,3 3))"),
        ("MULTIPOLYGON(((0 0,0 1,1 1,0 0)))", "MULTIPOLYGON(((0 0,0 1,1 1,0 0)))"),
        ("GEOMETRYCOLLECTION()", "GEOMETRYCOLLECTION EMPTY"),
        ("GeomCollection empty", "GEOMETRYCOLLECTION EMPTY"),
        (
            "GEOMETRYCOLLECTION(POINT(1e20 0),GEOMETRYCOLLECTION EMPTY)",
            "GEOMETRYCOLLECTION(POINT(1e20 0),GEOMETRYCOLLECTION EMPTY)",
        ),
    ] {
        assert_eq!(written(&shape(given)), expected);
    }
    for wrong in [
        "",
        "POINT",
        "POINT()",
        "POINT EMPTY",
        "POINT(1)",
        "POINT(1 2 3)",
        "POINT(1,2)",
        "POINT(1 2",
        "POINT(1 2) x",
        "POINT(1e999 0)",
        "POINT(inf 0)",
        "LINESTRING(0 0)",
        "POLYGON((0 0,0 1,1 1))",
        "POLYGON((0 0,0 1,1 1,2 2))",
        "POLYGON((0 0,0 1,1 1,0 0),())",
        "GEOMETRY(0 0)",
        "GEOMETRYCOLLECTION EMPTYNESS",
        "GEOMETRYCOLLECTION(POINT(0 0),)",
        "CIRCLE(0 0)",
    ] {
        assert_eq!(text::read(wrong.as_bytes()), None, "{wrong}");
    }
    let deep = "GEOMETRYCOLLECTION(".repeat(200) + &")".repeat(200);
    assert_eq!(text::read(deep.as_bytes()), None);
}

#[test]
fn relations_are_those_of_the_standard() {
    let square = "POLYGON((0 0,4 0,4 4,0 4,0 0))";
    let ring = "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 3,3 3,3 1,1 1))";
    assert!(relation("POINT(2 2)", square).is_within());
    assert!(!relation("POINT(0 2)", square).is_within() && relation("POINT(0 2)", square).touches());
    assert!(relation("POINT(0 2)", square).is_covered());
    assert!(!relation("POINT(2 2)", ring).intersects() && relation("POINT(1 2)", ring).touches());
    assert!(relation(square, "POLYGON((4 4,4 0,0 0,0 4,4 4))").equals());
    assert!(relation(square, "POLYGON((0 0,2 0,4 0,4 4,0 4,0 0))").equals());
    assert!(relation(square, "POLYGON((4 0,8 0,8 4,4 4,4 0))").touches());
    assert!(relation(square, "POLYGON((4 4,8 4,8 8,4 8,4 4))").touches());
    assert!(relation(square, "POLYGON((2 2,6 2,6 6,2 6,2 2))").overlaps(2));
    assert!(relation(square, "POLYGON((1 1,2 1,2 2,1 2,1 1))").contains());
    assert!(relation(square, "POLYGON((0 0,2 0,2 2,0 2,0 0))").contains());
    assert!(relation("POLYGON((1 1,3 1,3 3,1 3,1 1))", ring).touches());
    assert!(relation(ring, square).is_within() && !relation(ring, square).equals());
    assert!(relation("LINESTRING(-1 2,5 2)", square).crosses(1, 2));
    assert!(relation("LINESTRING(0 0,4 0)", square).touches());
    assert!(!relation("LINESTRING(0 0,4 0)", square).is_within());
    assert!(relation("LINESTRING(0 0,4 4)", square).is_within());
    assert!(relation("LINESTRING(0 0,4 4)", "LINESTRING(0 4,4 0)").crosses(1, 1));
    assert!(relation("LINESTRING(0 0,4 0)", "LINESTRING(2 0,6 0)").overlaps(1));
    assert!(relation("LINESTRING(0 0,4 0)", "LINESTRING(4 0,2 0,0 0)").equals());
    assert!(relation("LINESTRING(0 0,2 0)", "LINESTRING(2 0,2 2)").touches());
    assert!(relation("MULTIPOINT(0 0,9 9)", "MULTIPOINT(0 0,5 5)").overlaps(0));
    assert!(relation("MULTIPOINT(0 0,9 9)", "LINESTRING(0 0,1 1)").touches());
    // The boundary of lines is the ends that an odd number of them has.
    assert!(!relation("POINT(1 1)", "MULTILINESTRING((0 0,1 1),(1 1,2 2))").touches());
    assert!(relation("POINT(2 2)", "MULTILINESTRING((0 0,1 1),(1 1,2 2))").touches());
    assert!(intersect(&shape("GEOMETRYCOLLECTION(POINT(9 9),POINT(2 2))"), &shape(square)).unwrap());
    assert!(!intersect(&shape("GEOMETRYCOLLECTION(POINT(9 9))"), &shape(square)).unwrap());
    assert!(relate(&shape("GEOMETRYCOLLECTION(POINT(9 9))"), &shape(square)).unwrap().is_none());
}

#[test]
fn too_many_points_are_refused() {
    let points = (0..20_000).map(|number| Point { x: f64::from(number), y: 0.0 }).collect::<Vec<_>>();
    let many = Shape::LineString(points);
    assert_eq!(relate(&many, &many).unwrap_err().code.errno(), 1436);
    assert_eq!(distance(&many, &many).unwrap_err().code.errno(), 1436);
    let points = (0..20_000).map(|number| Shape::Point(Point { x: f64::from(number), y: 0.5 }));
    let apart = Shape::Collection(points.collect());
    assert_eq!(intersect(&apart, &many).unwrap_err().code.errno(), 1436);
    assert_eq!(distance(&apart, &many).unwrap_err().code.errno(), 1436);
    // Empty elements count, and so do those that have only one element.
    let mut nested = vec![Shape::Collection(Vec::new()); 200];
    for _ in 0..50 {
        nested.iter_mut().for_each(|element| *element = Shape::Collection(vec![element.clone()]));
    }
    for elements in [vec![Shape::Collection(Vec::new()); 10_000], nested] {
        let empty = Shape::Collection(elements);
        assert_eq!(intersect(&empty, &many).unwrap_err().code.errno(), 1436);
        assert_eq!(distance(&many, &empty).unwrap_err().code.errno(), 1436);
    }
    let ring = (0..3000).map(|number| Point { x: f64::from(number), y: f64::from(number % 2) });
    let ring: Vec<Point> = ring.chain([Point { x: 0.0, y: 9.0 }, Point { x: 0.0, y: 0.0 }]).collect();
    let rings = Shape::Collection(vec![Shape::Polygon(vec![ring]); 3]);
    assert_eq!(is_valid(&rings).unwrap_err().code.errno(), 1436);
    assert!(is_valid(&many).unwrap());
}

/// A ring of this many points around the origin.
fn circle(count: u32) -> Vec<Point> {
    let point = |number: u32| {
        let angle = f64::from(number % (count - 1)) / f64::from(count - 1) * std::f64::consts::TAU;
        Point { x: angle.cos(), y: angle.sin() }
    };
    (0..count).map(point).collect()
}

/// A search for each vertex in its own operand would take minutes here.
#[test]
fn large_operands_are_compared_with_small_ones() {
    let point = shape("POINT(0.25 0.25)");
    let area = Shape::Polygon(vec![circle(100_000)]);
    assert!(relate(&area, &point).unwrap().unwrap().contains());
    assert!(relate(&point, &area).unwrap().unwrap().is_within());
    let line = Shape::LineString((0..100_000).map(|number| Point { x: f64::from(number), y: 0.0 }).collect());
    assert!(!relate(&line, &point).unwrap().unwrap().intersects());
    assert!(relate(&shape("POINT(99999 0)"), &line).unwrap().unwrap().touches());
    assert!(relate(&shape("POINT(7 0)"), &line).unwrap().unwrap().is_within());
    let lines = (0..50_000).map(f64::from).map(|x| vec![Point { x, y: 0.0 }, Point { x: x + 1.0, y: 0.0 }]);
    let lines = Shape::MultiLineString(lines.collect());
    assert!(relate(&shape("POINT(0 0)"), &lines).unwrap().unwrap().touches());
    assert!(relate(&lines, &shape("POINT(7 0)")).unwrap().unwrap().contains());
    let points = Shape::MultiPoint(circle(100_000));
    assert!(relate(&shape("POINT(1 0)"), &points).unwrap().unwrap().is_within());
}

/// A line that runs to and fro on one segment.
fn to_and_fro(count: u32, from: Point, to: Point) -> Shape {
    Shape::LineString((0..count).map(|number| if number % 2 == 0 { from } else { to }).collect())
}

#[test]
fn edges_that_meet_too_often_are_refused() {
    let (start, end) = (Point { x: 0.0, y: 0.0 }, Point { x: 1000.0, y: 0.0 });
    let own = to_and_fro(4000, start, end);
    // Each edge has all of the other line in common.
    let steps = Shape::LineString((0..4000).map(|number| Point { x: f64::from(number % 1000), y: 0.0 }).collect());
    assert_eq!(relate(&own, &steps).unwrap_err().code.errno(), 1436);
    let own = to_and_fro(100, start, end);
    let steps = Shape::LineString((0..=1000).map(|number| Point { x: f64::from(number), y: 0.0 }).collect());
    assert!(relate(&own, &steps).unwrap().unwrap().covers());
    // The teeth of a comb touch the line, and none of the pieces between them is inside.
    let teeth = (0..2000).map(|number| Point { x: f64::from(number) / 2.0, y: -f64::from(number % 2) });
    let closing = [Point { x: 1000.0, y: -9.0 }, Point { x: 0.0, y: -9.0 }, start];
    let comb = Shape::Polygon(vec![teeth.chain(closing).collect()]);
    assert_eq!(relate(&own, &comb).unwrap_err().code.errno(), 1436);
    let own = to_and_fro(16, start, end);
    assert!(relate(&own, &comb).unwrap().unwrap().touches());
}

#[test]
fn rings_that_meet_themselves_or_each_other_are_invalid() {
    for valid in [
        "POINT(0 0)",
        "LINESTRING(0 0,1 1)",
        "LINESTRING(0 0,1 1,0 0)",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 2,2 2,2 1,1 1))",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(0 0,1 2,2 2,0 0))",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,1 2,1 1),(2 1,3 1,3 2,2 1))",
        "MULTIPOLYGON(((0 0,1 0,1 1,0 1,0 0)),((1 1,2 1,2 2,1 2,1 1)))",
        "MULTIPOLYGON(((0 0,9 0,9 9,0 9,0 0),(1 1,1 8,8 8,8 1,1 1)),((2 2,3 2,3 3,2 3,2 2)))",
        "GEOMETRYCOLLECTION EMPTY",
    ] {
        assert!(is_valid(&shape(valid)).unwrap(), "{valid}");
    }
    for invalid in [
        "LINESTRING(0 0,0 0)",
        "POLYGON((0 0,4 4,4 0,0 4,0 0))",
        "POLYGON((0 0,4 0,0 0,0 4,0 0))",
        "POLYGON((0 0,0 0,0 0,0 0))",
        "POLYGON((0 0,1 1,2 2,0 0))",
        "POLYGON((0 0,2 0,2 2,1 0,0 2,0 0))",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(5 5,6 5,6 6,5 5))",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,5 1,1 2,1 1))",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(0 0,4 0,2 2,0 0))",
        "POLYGON((0 0,9 0,9 9,0 9,0 0),(1 1,8 1,8 8,1 8,1 1),(2 2,3 2,3 3,2 2))",
        "POLYGON((0 0,4 0,4 4,0 4,0 0),(0 0,2 1,4 4,1 2,0 0))",
        "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((1 1,3 1,3 3,1 3,1 1)))",
        "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((2 0,4 0,4 2,2 2,2 0)))",
        "GEOMETRYCOLLECTION(POINT(0 0),LINESTRING(1 1,1 1))",
    ] {
        assert!(!is_valid(&shape(invalid)).unwrap(), "{invalid}");
    }
}

#[test]
fn measures_are_those_of_a_plane() {
    let ring = shape("POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 3,3 3,3 1,1 1))");
    assert_eq!((area(&ring), length(&shape("LINESTRING(0 0,3 4,3 5)"))), (Some(12.0), Some(6.0)));
    assert_eq!(centroid(&ring), Some(Point { x: 2.0, y: 2.0 }));
    assert_eq!(centroid(&shape("GEOMETRYCOLLECTION(POINT(9 9),LINESTRING(0 0,2 0))")), Some(Point { x: 1.0, y: 0.0 }));
    assert_eq!(centroid(&shape("GEOMETRYCOLLECTION EMPTY")), None);
    for (left, right, expected) in [
        ("POINT(0 0)", "POINT(3 4)", 5.0),
        ("POINT(2 2)", "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 3,3 3,3 1,1 1))", 1.0),
        ("POINT(0.5 2)", "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 3,3 3,3 1,1 1))", 0.0),
        ("LINESTRING(0 0,4 4)", "LINESTRING(0 4,4 0)", 0.0),
        ("LINESTRING(0 0,4 0)", "LINESTRING(1 2,3 5)", 2.0),
        ("GEOMETRYCOLLECTION(POINT(9 0),POINT(1 0))", "POINT(0 0)", 1.0),
    ] {
        assert_eq!(distance(&shape(left), &shape(right)).unwrap(), Some(expected), "{left} {right}");
        assert_eq!(distance(&shape(right), &shape(left)).unwrap(), Some(expected), "{right} {left}");
    }
    assert_eq!(distance(&shape("GEOMETRYCOLLECTION EMPTY"), &shape("POINT(0 0)")).unwrap(), None);
    let envelope = |text| written(&Envelope::of(&shape(text)).unwrap().shape());
    assert_eq!(envelope("LINESTRING(3 1,0 2)"), "POLYGON((0 1,3 1,3 2,0 2,0 1))");
    assert_eq!(envelope("LINESTRING(3 1,0 1)"), "LINESTRING(0 1,3 1)");
}

#[test]
fn geohashes_and_arcs_are_those_of_mysql() {
    let encoded = |x, y, digits| {
        let mut out = Vec::new();
        hash::encode(Point { x, y }, digits, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(encoded(180.0, 0.0, 10), "xbpbpbpbpb");
    assert_eq!(encoded(-180.0, 0.0, 25), "8000000000000000000002pbp");
    assert_eq!(encoded(100.0, 45.0, 60), "y0p0581b0bh2n0p0581b0b");
    assert_eq!(encoded(180.0, 90.0, 40), "zzzzzzzzzzzzzzzzzzzzzz");
    assert_eq!(encoded(0.0001, -0.0001, 30), "kpbpbpbp6m6e6p6bpntebbpkpnqbuf");
    for (text, longitude, latitude) in [
        ("0", -158.0, -68.0),
        ("0123456789", -179.55743, -82.774507),
        ("7zzzm", -0.1, -0.1),
        ("s00d", 1.0, 0.4),
        ("zyxwvutsrqpnmkjhgfedcb", 179.55743439816956, 82.77450549262497),
        ("bcdefghjkmnpqrstuvwxyz", -142.6078415216915, 54.11408847964353),
        ("0123456789bcdefghjkmnpqrstuvwxyz", -179.55743439816956, -82.77450549262497),
        ("0z0z0z0z0z0z0z0z0z0z0z0z0z0z0z0z", -145.16129032258067, -49.35483870967742),
        ("99999999999999999999", -110.3225806451612, 8.7096774193548),
    ] {
        let point = hash::decode(text.as_bytes()).unwrap();
        let error = (point.x - longitude).abs().max((point.y - latitude).abs());
        // The last digit of longer ones depends on the order of MySQL's additions.
        assert!(error == 0.0 || text.len() > 20 && error < 1e-13, "{text}: {point:?}");
    }
    assert!(["", "a", "12 3"].iter().all(|text| hash::decode(text.as_bytes()).is_none()));
    let arc = |x, y| sphere::distance(Point { x: 0.0, y: 0.0 }, Point { x, y }, sphere::DEFAULT_RADIUS);
    assert_eq!(
        format!("{:.5} {:.5} {:.5}", arc(180.0, 0.0), arc(1.0, 1.0), arc(0.0, 90.0)),
        "20015042.81372 157249.03572 10007521.40686"
    );
}

fn grid_point() -> impl Strategy<Value = Point> {
    (0..5i8, 0..5i8).prop_map(|(x, y)| Point { x: f64::from(x), y: f64::from(y) })
}

/// Geometries with corners on a small grid, so that most pairs touch. Polygons may be invalid.
fn grid_shape() -> impl Strategy<Value = Shape> {
    let line = || prop::collection::vec(grid_point(), 2..5);
    let triangle =
        (grid_point(), grid_point(), grid_point()).prop_map(|(a, b, c)| Shape::Polygon(vec![vec![a, b, c, a]]));
    let rectangle = (grid_point(), grid_point()).prop_map(|(a, b)| {
        let corner = |x, y| Point { x, y };
        Shape::Polygon(vec![vec![a, corner(b.x, a.y), b, corner(a.x, b.y), a]])
    });
    prop_oneof![
        1 => prop::collection::vec(grid_point(), 1..4).prop_map(Shape::MultiPoint),
        1 => line().prop_map(Shape::LineString),
        1 => prop::collection::vec(line(), 1..3).prop_map(Shape::MultiLineString),
        3 => triangle,
        3 => rectangle,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A point of the plane is in one of the nine intersections, so that this one is not empty.
    #[test]
    fn relations_agree_with_each_point_of_the_plane(left in grid_shape(), right in grid_shape()) {
        prop_assume!(is_valid(&left).unwrap() && is_valid(&right).unwrap());
        let relation = relate(&left, &right).unwrap().unwrap();
        for step in 0..41 * 41 {
            let point = Shape::Point(Point { x: f64::from(step % 41) / 8.0 - 0.5, y: f64::from(step / 41) / 8.0 - 0.5 });
            let of = |shape: &Shape| relate(&point, shape).unwrap().unwrap();
            let (own, other) = (of(&left), of(&right));
            let is_inside = |relation: &Relation| relation.is_within();
            let is_met = |relation: &Relation| relation.intersects();
            prop_assert!(!is_met(&own) || !is_met(&other) || relation.intersects());
            if is_inside(&own) && is_inside(&other) {
                prop_assert!(!relation.touches());
            }
            if is_met(&own) && !is_met(&other) {
                prop_assert!(!relation.is_covered());
            }
            if !is_met(&own) && is_met(&other) {
                prop_assert!(!relation.covers());
            }
        }
        let turned = relate(&right, &left).unwrap().unwrap();
        prop_assert_eq!(relation.contains(), turned.is_within());
        prop_assert_eq!(relation.touches(), turned.touches());
        prop_assert_eq!(relation.equals(), turned.equals());
        prop_assert!(relate(&left, &left).unwrap().unwrap().equals());
        let apart = distance(&left, &right).unwrap().unwrap();
        prop_assert_eq!(apart == 0.0, relation.intersects());
    }

    /// Nothing panics, whatever the coordinates and however invalid the rings are.
    #[test]
    fn no_shape_panics(left in wild_shape(), right in wild_shape()) {
        let _ = (relate(&left, &right), intersect(&left, &right), distance(&left, &right));
        for shape in [&left, &right] {
            let _ = (is_valid(shape), area(shape), length(shape), centroid(shape));
            prop_assert_eq!(&text::read(written(shape).as_bytes()).unwrap(), shape);
        }
    }

    #[test]
    fn no_text_panics(text in "[A-Z(), 0-9.e+-]{0,40}") {
        let _ = text::read(text.as_bytes());
        let _ = text::read(format!("GEOMETRYCOLLECTION({text}").as_bytes());
    }
}

fn wild_shape() -> impl Strategy<Value = Shape> {
    let coordinate = || prop_oneof![(-2..3i8).prop_map(f64::from), -1e308..1e308f64, -1e-300..1e-300f64];
    let point = move || (coordinate(), coordinate()).prop_map(|(x, y)| Point { x: x + 0.0, y: y + 0.0 });
    let ring = move || {
        prop::collection::vec(point(), 3..6).prop_map(|mut points| {
            points.push(points[0]);
            points
        })
    };
    prop_oneof![
        point().prop_map(Shape::Point),
        prop::collection::vec(point(), 2..5).prop_map(Shape::LineString),
        prop::collection::vec(ring(), 1..4).prop_map(Shape::Polygon),
        prop::collection::vec(prop::collection::vec(ring(), 1..3), 1..3).prop_map(Shape::MultiPolygon),
        prop::collection::vec(grid_shape(), 0..3).prop_map(Shape::Collection),
    ]
}
