//! Geometries in memory.

/// The class of a geometry, with the number that WKB has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GeometryKind {
    /// Any: only a column has this class, no value.
    Geometry = 0,
    /// One point.
    Point = 1,
    /// A line of straight segments.
    LineString = 2,
    /// An area with holes.
    Polygon = 3,
    /// Points.
    MultiPoint = 4,
    /// Lines.
    MultiLineString = 5,
    /// Areas.
    MultiPolygon = 6,
    /// Geometries of any class.
    Collection = 7,
}

impl GeometryKind {
    /// All, by their numbers.
    pub const ALL: [GeometryKind; 8] = [
        GeometryKind::Geometry,
        GeometryKind::Point,
        GeometryKind::LineString,
        GeometryKind::Polygon,
        GeometryKind::MultiPoint,
        GeometryKind::MultiLineString,
        GeometryKind::MultiPolygon,
        GeometryKind::Collection,
    ];

    /// The name of the column type in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "geometry",
            GeometryKind::Point => "point",
            GeometryKind::LineString => "linestring",
            GeometryKind::Polygon => "polygon",
            GeometryKind::MultiPoint => "multipoint",
            GeometryKind::MultiLineString => "multilinestring",
            GeometryKind::MultiPolygon => "multipolygon",
            GeometryKind::Collection => "geomcollection",
        }
    }

    /// The class of a number in WKB; `None` for numbers that no value has.
    pub fn of_number(number: u32) -> Option<GeometryKind> {
        GeometryKind::ALL.get(number as usize).copied().filter(|kind| *kind != GeometryKind::Geometry)
    }

    /// The class that a column type's name in lower case denotes.
    pub fn of_name(name: &str) -> Option<GeometryKind> {
        GeometryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A point. Its coordinates are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The first coordinate: the longitude in a geographic system.
    pub x: f64,
    /// The second coordinate: the latitude in a geographic system.
    pub y: f64,
}

/// A closed line of at least four points, of which the last one is the first one.
pub type Ring = Vec<Point>;

/// A geometry without its reference system. A line has at least two points; a polygon has its outer ring
/// first. Only a collection can be empty.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// POINT.
    Point(Point),
    /// LINESTRING.
    LineString(Vec<Point>),
    /// POLYGON.
    Polygon(Vec<Ring>),
    /// MULTIPOINT.
    MultiPoint(Vec<Point>),
    /// MULTILINESTRING.
    MultiLineString(Vec<Vec<Point>>),
    /// MULTIPOLYGON.
    MultiPolygon(Vec<Vec<Ring>>),
    /// GEOMETRYCOLLECTION.
    Collection(Vec<Shape>),
}

/// A geometry with its reference system.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// The id of the reference system.
    pub system: u32,
    /// The shape.
    pub shape: Shape,
}

impl Shape {
    /// The class.
    pub fn kind(&self) -> GeometryKind {
        match self {
            Shape::Point(_) => GeometryKind::Point,
            Shape::LineString(_) => GeometryKind::LineString,
            Shape::Polygon(_) => GeometryKind::Polygon,
            Shape::MultiPoint(_) => GeometryKind::MultiPoint,
            Shape::MultiLineString(_) => GeometryKind::MultiLineString,
            Shape::MultiPolygon(_) => GeometryKind::MultiPolygon,
            Shape::Collection(_) => GeometryKind::Collection,
        }
    }

    /// Whether it is a collection without a point in any of its elements.
    pub fn is_empty(&self) -> bool {
        match self {
            Shape::Collection(elements) => elements.iter().all(Shape::is_empty),
            _ => false,
        }
    }

    /// 0 for points, 1 for lines, 2 for areas, and the greatest of its elements for a collection; `None` if
    /// it is empty.
    pub fn dimension(&self) -> Option<u8> {
        match self {
            Shape::Point(_) | Shape::MultiPoint(_) => Some(0),
            Shape::LineString(_) | Shape::MultiLineString(_) => Some(1),
            Shape::Polygon(_) | Shape::MultiPolygon(_) => Some(2),
            Shape::Collection(elements) => elements.iter().filter_map(Shape::dimension).max(),
        }
    }

    /// Calls `visit` for each point.
    pub fn for_each_point(&self, visit: &mut dyn FnMut(Point)) {
        match self {
            Shape::Point(point) => visit(*point),
            Shape::LineString(points) | Shape::MultiPoint(points) => points.iter().for_each(|point| visit(*point)),
            Shape::Polygon(lines) | Shape::MultiLineString(lines) => {
                lines.iter().flatten().for_each(|point| visit(*point));
            }
            Shape::MultiPolygon(polygons) => polygons.iter().flatten().flatten().for_each(|point| visit(*point)),
            Shape::Collection(elements) => elements.iter().for_each(|element| element.for_each_point(visit)),
        }
    }

    /// Replaces each point.
    pub fn change_points(&mut self, change: fn(&mut Point)) {
        match self {
            Shape::Point(point) => change(point),
            Shape::LineString(points) | Shape::MultiPoint(points) => points.iter_mut().for_each(change),
            Shape::Polygon(lines) | Shape::MultiLineString(lines) => lines.iter_mut().flatten().for_each(change),
            Shape::MultiPolygon(polygons) => polygons.iter_mut().flatten().flatten().for_each(change),
            Shape::Collection(elements) => elements.iter_mut().for_each(|element| element.change_points(change)),
        }
    }

    /// The shape with the coordinates of each point exchanged.
    pub fn swapped(mut self) -> Shape {
        self.change_points(|point| std::mem::swap(&mut point.x, &mut point.y));
        self
    }
}
