//! Well-known binary: a byte for the order of bytes, the number of the class, and counts with coordinates of
//! 64 bits.

use super::shape::{Geometry, GeometryKind, Point, Ring, Shape};

/// Maximum depth of collections inside collections.
pub const DEPTH_MAX: u32 = 100;
/// Bytes of a point's coordinates.
const POINT_BYTES: usize = 16;
/// Bytes of a geometry's order and class.
const HEADER_BYTES: usize = 5;
/// Bytes of a count.
const COUNT_BYTES: usize = 4;
/// Minimum number of points of a line.
const LINE_POINTS_MIN: usize = 2;
/// Minimum number of points of a ring.
const RING_POINTS_MIN: usize = 4;

/// The bytes that are not read yet.
struct Reader<'b> {
    bytes: &'b [u8],
    /// Whether numbers are little-endian.
    is_little: bool,
}

/// The shape of WKB in either order of bytes, which must be all of `bytes`; `None` for malformed bytes: a
/// count of more than the bytes hold, a coordinate that is not finite, a line of one point, a ring that is
/// not closed, an element of the wrong class, or collections deeper than [`DEPTH_MAX`].
pub fn read_wkb(bytes: &[u8]) -> Option<Shape> {
    let mut reader = Reader { bytes, is_little: true };
    let shape = reader.shape(0)?;
    reader.bytes.is_empty().then_some(shape)
}

/// Appends WKB in little-endian order.
pub fn append_wkb(shape: &Shape, out: &mut Vec<u8>) {
    append_header(shape.kind(), out);
    match shape {
        Shape::Point(point) => append_point(*point, out),
        Shape::LineString(points) => append_points(points, out),
        Shape::Polygon(rings) => append_lines(rings, out),
        Shape::MultiPoint(points) => {
            append_count(points.len(), out);
            for point in points {
                append_header(GeometryKind::Point, out);
                append_point(*point, out);
            }
        }
        Shape::MultiLineString(lines) => {
            append_count(lines.len(), out);
            for line in lines {
                append_header(GeometryKind::LineString, out);
                append_points(line, out);
            }
        }
        Shape::MultiPolygon(polygons) => {
            append_count(polygons.len(), out);
            for rings in polygons {
                append_header(GeometryKind::Polygon, out);
                append_lines(rings, out);
            }
        }
        Shape::Collection(elements) => {
            append_count(elements.len(), out);
            elements.iter().for_each(|element| append_wkb(element, out));
        }
    }
}

impl Geometry {
    /// The geometry of a value; `None` for bytes that are none.
    pub fn read(value: &[u8]) -> Option<Geometry> {
        let (system, wkb) = value.split_first_chunk()?;
        Some(Geometry { system: u32::from_le_bytes(*system), shape: read_wkb(wkb)? })
    }

    /// The reference system and class of a value; `None` for bytes that are no geometry or whose parts are
    /// not little-endian, as no column stores them.
    pub fn check_stored(value: &[u8]) -> Option<(u32, GeometryKind)> {
        let geometry = Geometry::read(value)?;
        let mut again = Vec::with_capacity(value.len());
        geometry.append(&mut again);
        (again == value).then(|| (geometry.system, geometry.shape.kind()))
    }

    /// Appends the value.
    pub fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.system.to_le_bytes());
        append_wkb(&self.shape, out);
    }
}

impl<'b> Reader<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.take()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// A count of parts with at least `part_bytes` each. The bytes that are left bound it.
    fn count(&mut self, part_bytes: usize, min: usize) -> Option<usize> {
        let count = self.number()? as usize;
        (count >= min && count <= self.bytes.len() / part_bytes).then_some(count)
    }

    fn coordinate(&mut self) -> Option<f64> {
        let bytes = self.take()?;
        let number = if self.is_little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) };
        number.is_finite().then_some(number)
    }

    fn point(&mut self) -> Option<Point> {
        Some(Point { x: self.coordinate()?, y: self.coordinate()? })
    }

    fn points(&mut self, min: usize) -> Option<Vec<Point>> {
        let count = self.count(POINT_BYTES, min)?;
        (0..count).map(|_| self.point()).collect()
    }

    fn ring(&mut self) -> Option<Ring> {
        self.points(RING_POINTS_MIN).filter(|ring| ring.first() == ring.last())
    }

    fn rings(&mut self) -> Option<Vec<Ring>> {
        let count = self.count(COUNT_BYTES + RING_POINTS_MIN * POINT_BYTES, 1)?;
        (0..count).map(|_| self.ring()).collect()
    }

    /// The order of bytes and the class.
    fn header(&mut self) -> Option<GeometryKind> {
        self.is_little = match self.take()? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        GeometryKind::of_number(self.number()?)
    }

    /// At least one element of a class.
    fn elements<T>(
        &mut self,
        kind: GeometryKind,
        body_bytes: usize,
        read: fn(&mut Reader<'b>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.count(HEADER_BYTES + body_bytes, 1)?;
        let order = self.is_little;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            if self.header()? != kind {
                return None;
            }
            elements.push(read(self)?);
            self.is_little = order;
        }
        Some(elements)
    }

    fn shape(&mut self, depth: u32) -> Option<Shape> {
        Some(match self.header()? {
            GeometryKind::Geometry => return None,
            GeometryKind::Point => Shape::Point(self.point()?),
            GeometryKind::LineString => Shape::LineString(self.points(LINE_POINTS_MIN)?),
            GeometryKind::Polygon => Shape::Polygon(self.rings()?),
            GeometryKind::MultiPoint => {
                Shape::MultiPoint(self.elements(GeometryKind::Point, POINT_BYTES, Reader::point)?)
            }
            GeometryKind::MultiLineString => {
                let read = |reader: &mut Reader<'b>| reader.points(LINE_POINTS_MIN);
                Shape::MultiLineString(self.elements(GeometryKind::LineString, COUNT_BYTES, read)?)
            }
            GeometryKind::MultiPolygon => {
                Shape::MultiPolygon(self.elements(GeometryKind::Polygon, COUNT_BYTES, Reader::rings)?)
            }
            GeometryKind::Collection if depth < DEPTH_MAX => {
                let count = self.count(HEADER_BYTES + COUNT_BYTES, 0)?;
                let order = self.is_little;
                // Each of the collections inside each other can claim all bytes that are left, so that room
                // for as many elements as they claim would be a multiple of the bytes.
                let mut elements = Vec::new();
                for _ in 0..count {
                    elements.push(self.shape(depth + 1)?);
                    self.is_little = order;
                }
                Shape::Collection(elements)
            }
            GeometryKind::Collection => return None,
        })
    }
}

fn append_header(kind: GeometryKind, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&(kind as u32).to_le_bytes());
}

fn append_count(count: usize, out: &mut Vec<u8>) {
    // A value of more than 4 GB does not exist.
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn append_point(point: Point, out: &mut Vec<u8>) {
    out.extend_from_slice(&point.x.to_le_bytes());
    out.extend_from_slice(&point.y.to_le_bytes());
}

fn append_points(points: &[Point], out: &mut Vec<u8>) {
    append_count(points.len(), out);
    points.iter().for_each(|point| append_point(*point, out));
}

fn append_lines(lines: &[Vec<Point>], out: &mut Vec<u8>) {
    append_count(lines.len(), out);
    lines.iter().for_each(|line| append_points(line, out));
}
