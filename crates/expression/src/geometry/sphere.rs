//! Distances on a sphere.

use junctor_model::geometry::Point;

/// The radius in meters that MySQL has for points without a reference system.
pub(crate) const DEFAULT_RADIUS: f64 = 6_370_986.0;

/// The length of the arc between two points in degrees, by the haversine formula.
pub(crate) fn distance(from: Point, to: Point, radius: f64) -> f64 {
    let [from_longitude, from_latitude] = [from.x, from.y].map(f64::to_radians);
    let [to_longitude, to_latitude] = [to.x, to.y].map(f64::to_radians);
    let haversine = |angle: f64| {
        let half = (angle / 2.0).sin();
        half * half
    };
    let chord = haversine(to_latitude - from_latitude)
        + from_latitude.cos() * to_latitude.cos() * haversine(to_longitude - from_longitude);
    // Rounding can exceed 1 for opposite points.
    2.0 * chord.min(1.0).sqrt().asin() * radius
}
