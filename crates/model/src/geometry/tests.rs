//! Values read back, and hostile bytes are refused.

use proptest::prelude::*;

use super::*;

fn point() -> impl Strategy<Value = Point> {
    let coordinate = prop_oneof![(-9..9i32).prop_map(f64::from), -1e308..1e308f64];
    (coordinate.clone(), coordinate).prop_map(|(x, y)| Point { x, y })
}

fn line() -> impl Strategy<Value = Vec<Point>> {
    prop::collection::vec(point(), 2..5)
}

fn rings() -> impl Strategy<Value = Vec<Ring>> {
    let ring = prop::collection::vec(point(), 3..6).prop_map(|mut points| {
        points.push(points[0]);
        points
    });
    prop::collection::vec(ring, 1..3)
}

fn shape() -> impl Strategy<Value = Shape> {
    let plain = prop_oneof![
        point().prop_map(Shape::Point),
        line().prop_map(Shape::LineString),
        rings().prop_map(Shape::Polygon),
        prop::collection::vec(point(), 1..4).prop_map(Shape::MultiPoint),
        prop::collection::vec(line(), 1..3).prop_map(Shape::MultiLineString),
        prop::collection::vec(rings(), 1..3).prop_map(Shape::MultiPolygon),
    ];
    plain.prop_recursive(3, 12, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Shape::Collection))
}

fn wkb_of(shape: &Shape) -> Vec<u8> {
    let mut wkb = Vec::new();
    append_wkb(shape, &mut wkb);
    wkb
}

proptest! {
    #[test]
    fn a_geometry_reads_back(shape in shape(), system in any::<u32>()) {
        let geometry = Geometry { system, shape };
        let mut value = Vec::new();
        geometry.append(&mut value);
        prop_assert_eq!(Geometry::check_stored(&value), Some((system, geometry.shape.kind())));
        prop_assert_eq!(Geometry::read(&value), Some(geometry));
    }

    #[test]
    fn damaged_bytes_are_refused_or_are_another_geometry(
        shape in shape(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = wkb_of(&shape);
        let mut wkb = whole.clone();
        let at = at.index(wkb.len());
        wkb[at] = byte;
        if let Some(read) = read_wkb(&wkb) {
            prop_assert_eq!(read_wkb(&wkb_of(&read)), Some(read));
        }
        prop_assert_eq!(read_wkb(&whole[..cut.index(whole.len())]), None);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Geometry::check_stored(&bytes);
        let mut typed = vec![1, bytes.first().copied().unwrap_or(0) % 9, 0, 0, 0];
        typed.extend_from_slice(&bytes);
        let _ = read_wkb(&typed);
    }
}

#[test]
fn counts_beyond_the_bytes_are_refused() {
    for kind in 2..=7u8 {
        for count in [1u32, 2, u32::MAX] {
            let mut wkb = vec![1, kind, 0, 0, 0];
            wkb.extend_from_slice(&count.to_le_bytes());
            assert_eq!(read_wkb(&wkb), None, "{kind} {count}");
        }
    }
}

#[test]
fn both_orders_of_bytes_are_read_and_only_one_is_stored() {
    let mut big = vec![0, 0, 0, 0, 4, 0, 0, 0, 2];
    big.extend_from_slice(&[0, 0, 0, 0, 1]);
    big.extend_from_slice(&1f64.to_be_bytes());
    big.extend_from_slice(&2f64.to_be_bytes());
    big.extend_from_slice(&[1, 1, 0, 0, 0]);
    big.extend_from_slice(&3f64.to_le_bytes());
    big.extend_from_slice(&4f64.to_le_bytes());
    let points = vec![Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }];
    assert_eq!(read_wkb(&big), Some(Shape::MultiPoint(points)));
    let stored: Vec<u8> = [&[0; 4], &big[..]].concat();
    assert_eq!(Geometry::check_stored(&stored), None);
    assert!(Geometry::read(&stored).is_some());
}

#[test]
fn collections_have_a_maximum_depth() {
    let nested = |depth: u32| (0..depth).fold(Shape::Collection(Vec::new()), |inner, _| Shape::Collection(vec![inner]));
    assert!(read_wkb(&wkb_of(&nested(DEPTH_MAX - 1))).is_some());
    assert!(read_wkb(&wkb_of(&nested(DEPTH_MAX))).is_none());
}

#[test]
fn what_is_no_geometry_is_refused() {
    let with = |kind: u8, numbers: &[f64], count: u32| {
        let mut wkb = vec![1, kind, 0, 0, 0];
        if kind > 1 {
            wkb.extend_from_slice(&count.to_le_bytes());
        }
        numbers.iter().for_each(|number| wkb.extend_from_slice(&number.to_le_bytes()));
        read_wkb(&wkb)
    };
    assert!(with(1, &[1.0, 2.0], 0).is_some());
    assert!(with(1, &[1.0, f64::NAN], 0).is_none());
    assert!(with(1, &[1.0, f64::INFINITY], 0).is_none());
    assert!(with(1, &[1.0, 2.0, 3.0], 0).is_none(), "bytes are left");
    assert!(with(2, &[1.0, 2.0], 1).is_none(), "a line of one point");
    assert!(with(0, &[], 0).is_none() && with(8, &[], 0).is_none() && with(7, &[], 0).is_some());
    assert!(read_wkb(&[2, 1, 0, 0, 0]).is_none(), "an unknown order of bytes");
    let open: Vec<u8> = [&[1, 3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0][..], &[0; 48], &1f64.to_le_bytes(), &[0; 8]].concat();
    assert!(read_wkb(&open).is_none(), "a ring that is not closed");
}

/// Each collection claims all bytes that are left. Room for as many elements would be 350 times the bytes.
#[test]
fn collections_that_claim_more_than_they_have_are_refused() {
    let bytes = 9_000_000;
    let mut wkb = Vec::new();
    for _ in 0..DEPTH_MAX {
        wkb.extend_from_slice(&[1, GeometryKind::Collection as u8, 0, 0, 0]);
        let left = bytes - wkb.len() - 4;
        wkb.extend_from_slice(&((left / 9) as u32).to_le_bytes());
    }
    wkb.resize(bytes, 0);
    assert_eq!(read_wkb(&wkb), None);
}
