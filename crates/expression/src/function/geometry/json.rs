//! GeoJSON.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, GeometryKind, Point, ReferenceSystem, Shape};
use junctor_model::json::{Elements, Json, Members, append_array, append_object};
use junctor_model::value::ValueRef;

use super::{check_degrees, check_system, function, is_geographic};
use crate::function::{Call, Function, TypedCall};
use crate::geometry::measure::Envelope;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(in crate::function) const TABLE: &[Function] = &[
    function("ST_ASGEOJSON", 1, 3, resolve_write, as_geojson),
    function("ST_GEOMFROMGEOJSON", 1, 3, resolve_read, from_geojson),
];

/// The reference system of GeoJSON that names none.
const DEFAULT_SYSTEM: u32 = 4326;
/// Decimals from which on a number stays as it is.
const DECIMALS_MAX: i64 = 308;
/// The option of ST_ASGEOJSON for `bbox`.
const WITH_BOX: i64 = 1;
/// The options for a short and for a long name of the reference system.
const WITH_SHORT_SYSTEM: i64 = 2;
const WITH_LONG_SYSTEM: i64 = 4;

fn resolve_write(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    for (argument, what) in arguments[1..].iter().zip(["max decimal digits", "options"]) {
        check_integer(&name.to_ascii_lowercase(), what, argument)?;
    }
    Ok(TypedCall { arguments, result: ResultType::json().with_nullable(true) })
}

fn resolve_read(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    for (argument, what) in arguments[1..].iter().zip(["options", "SRID"]) {
        check_integer(&name.to_ascii_lowercase(), what, argument)?;
    }
    Ok(TypedCall { arguments, result: ResultType::geometry().with_nullable(true) })
}

/// Error 3064 for an argument that is neither an integer, a text nor NULL.
fn check_integer(name: &str, what: &str, argument: &Expression) -> Result<()> {
    match argument.result.is_integer() || argument.result.is_text() || argument.result.kind == Kind::Null {
        true => Ok(()),
        false => {
            let message = format!("Incorrect type for argument {what} in function {name}.");
            Err(Error::new(ErrorCode::IncorrectArgumentType, message))
        }
    }
}

#[cold]
fn wrong_value(what: &str, value: i64, name: &str) -> Box<Error> {
    let message = format!("Incorrect {what} value: '{value}' for function {name}");
    Error::new(ErrorCode::WrongValueForFunction, message)
}

/// The options of ST_ASGEOJSON.
struct Writer {
    decimals: i64,
    with_box: bool,
}

fn as_geojson(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(geometry) = call.geometry(0)? else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let mut decimals = DECIMALS_MAX;
    if call.count() > 1 {
        let Some(given) = call.integer(1)? else { return Ok(ValueRef::Null) };
        if !(0..=i64::from(i32::MAX)).contains(&given) {
            return Err(wrong_value("max decimal digits", given, &name));
        }
        decimals = given.min(DECIMALS_MAX);
    }
    let mut options = 0;
    if call.count() > 2 {
        let Some(given) = call.integer(2)? else { return Ok(ValueRef::Null) };
        if !(0..=7).contains(&given) {
            return Err(wrong_value("options", given, &name));
        }
        options = given;
    }
    let writer = Writer { decimals, with_box: options & WITH_BOX != 0 };
    let system = match (geometry.system, options) {
        (0, _) => None,
        (id, options) if options & WITH_LONG_SYSTEM != 0 => Some(format!("urn:ogc:def:crs:EPSG::{id}")),
        (id, options) if options & WITH_SHORT_SYSTEM != 0 => Some(format!("EPSG:{id}")),
        _ => None,
    };
    call.json(|buffer| writer.append(&geometry.shape, system.as_deref(), buffer))
}

impl<'r> Call<'r> {
    /// The argument, a geometry, as a document. Error: 3157, as collections may be nested more deeply than
    /// documents.
    pub(in crate::function) fn geojson(&self, position: usize) -> Result<&'r [u8]> {
        let geometry = self.geometry(position)?;
        let writer = Writer { decimals: DECIMALS_MAX, with_box: false };
        self.new_document(|buffer| match &geometry {
            Some(geometry) => writer.append(&geometry.shape, None, buffer),
            None => Json::Null.append(buffer),
        })
    }
}

impl Writer {
    fn append(&self, shape: &Shape, system: Option<&str>, out: &mut Vec<u8>) {
        let type_name = text(geojson_name(shape.kind()));
        let content = match shape {
            Shape::Point(point) => self.point(point),
            Shape::LineString(points) | Shape::MultiPoint(points) => self.points(points),
            Shape::Polygon(lines) | Shape::MultiLineString(lines) => self.lines(lines),
            Shape::MultiPolygon(polygons) => array(polygons, |rings| self.lines(rings)),
            Shape::Collection(elements) => array(elements, |element| {
                let mut document = Vec::new();
                self.append(element, None, &mut document);
                document
            }),
        };
        let content_name: &[u8] = if matches!(shape, Shape::Collection(_)) { b"geometries" } else { b"coordinates" };
        let mut members: Vec<(&[u8], &[u8])> = vec![(b"type", &type_name), (content_name, &content)];
        let around = Envelope::of(shape).filter(|_| self.with_box);
        let around =
            around.map(|Envelope { min, max }| array(&[min.x, min.y, max.x, max.y], |number| self.number(*number)));
        if let Some(around) = &around {
            members.push((b"bbox", around));
        }
        let system = system.map(named_system);
        if let Some(system) = &system {
            members.push((b"crs", system));
        }
        append_object(members, out);
    }

    fn number(&self, number: f64) -> Vec<u8> {
        let mut document = Vec::new();
        Json::Double(self.rounded(number)).append(&mut document);
        document
    }

    fn rounded(&self, number: f64) -> f64 {
        if self.decimals >= DECIMALS_MAX {
            // The product with so large a factor is rounded itself.
            return number;
        }
        let factor = 10f64.powi(self.decimals as i32);
        let rounded = (number * factor).round() / factor;
        if rounded.is_finite() { rounded } else { number }
    }

    fn point(&self, point: &Point) -> Vec<u8> {
        array(&[point.x, point.y], |number| self.number(*number))
    }

    fn points(&self, points: &[Point]) -> Vec<u8> {
        array(points, |point| self.point(point))
    }

    fn lines(&self, lines: &[Vec<Point>]) -> Vec<u8> {
        array(lines, |line| self.points(line))
    }
}

fn array<T>(list: &[T], document_of: impl Fn(&T) -> Vec<u8>) -> Vec<u8> {
    let elements: Vec<Vec<u8>> = list.iter().map(document_of).collect();
    let mut document = Vec::new();
    append_array(elements.iter().map(Vec::as_slice), &mut document);
    document
}

fn text(text: &str) -> Vec<u8> {
    let mut document = Vec::new();
    Json::String(text.as_bytes()).append(&mut document);
    document
}

/// `{"type": "name", "properties": {"name": name}}`
fn named_system(name: &str) -> Vec<u8> {
    let (type_name, name) = (text("name"), text(name));
    let mut properties = Vec::new();
    append_object(vec![(b"name", &name)], &mut properties);
    let mut document = Vec::new();
    append_object(vec![(b"type", &type_name), (b"properties", &properties)], &mut document);
    document
}

fn geojson_name(kind: GeometryKind) -> &'static str {
    match kind {
        GeometryKind::Geometry => "Geometry",
        GeometryKind::Point => "Point",
        GeometryKind::LineString => "LineString",
        GeometryKind::Polygon => "Polygon",
        GeometryKind::MultiPoint => "MultiPoint",
        GeometryKind::MultiLineString => "MultiLineString",
        GeometryKind::MultiPolygon => "MultiPolygon",
        GeometryKind::Collection => "GeometryCollection",
    }
}

/// The options of ST_GEOMFROMGEOJSON.
struct Reader {
    /// Whether coordinates after the first two are left out, which are an error otherwise.
    leaves_out: bool,
    name: String,
}

/// The geometry of a document, of a feature or of a collection of features; NULL for a feature without one.
fn from_geojson(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(document) = call.document(0)? else { return Ok(ValueRef::Null) };
    let name = call.function_name();
    let mut leaves_out = false;
    if call.count() > 1 {
        let Some(option) = call.integer(1)? else { return Ok(ValueRef::Null) };
        if !(1..=4).contains(&option) {
            return Err(wrong_value("options", option, &name));
        }
        leaves_out = option > 1;
    }
    let reader = Reader { leaves_out, name };
    let Json::Object(members) = Json::of(document) else { return Err(reader.invalid()) };
    let system = match call.count() {
        3 => match call.system(2)? {
            Some(system) => system,
            None => return Ok(ValueRef::Null),
        },
        _ => reader.system(&members)?.unwrap_or(DEFAULT_SYSTEM),
    };
    check_system(system)?;
    let Some(shape) = reader.object(&members)? else { return Ok(ValueRef::Null) };
    if is_geographic(system) {
        check_degrees(&shape, false, &reader.name)?;
    }
    // A line of one point and a ring that is not closed are no geometries.
    let mut value = Vec::new();
    Geometry { system, shape }.append(&mut value);
    match Geometry::check_stored(&value) {
        Some(_) => call.build(|buffer| buffer.extend_from_slice(&value)),
        None => Err(reader.invalid()),
    }
}

impl Reader {
    #[cold]
    fn invalid(&self) -> Box<Error> {
        let message = format!("Invalid GeoJSON data provided to function {}", self.name);
        Error::new(ErrorCode::InvalidGeoJson, message)
    }

    #[cold]
    fn wrong_type(&self, member: &str, expected: &str) -> Box<Error> {
        let message = format!(
            "Invalid GeoJSON data provided to function {}: Member '{member}' is expected to be of type '{expected}'",
            self.name
        );
        Error::new(ErrorCode::GeoJsonWrongType, message)
    }

    /// A member. Error: 3060.
    fn member<'d>(&self, members: &Members<'d>, name: &str) -> Result<Json<'d>> {
        match members.get(name.as_bytes()) {
            Some(value) => Ok(Json::of(value)),
            None => {
                let message = format!(
                    "Invalid GeoJSON data provided to function {}: Missing required member '{name}'",
                    self.name
                );
                Err(Error::new(ErrorCode::GeoJsonMissingMember, message))
            }
        }
    }

    fn text<'d>(&self, members: &Members<'d>, name: &str) -> Result<&'d [u8]> {
        match self.member(members, name)? {
            Json::String(text) => Ok(text),
            _ => Err(self.wrong_type(name, "string")),
        }
    }

    fn array<'d>(&self, members: &Members<'d>, name: &str) -> Result<Elements<'d>> {
        match self.member(members, name)? {
            Json::Array(elements) => Ok(elements),
            _ => Err(self.wrong_type(name, "array")),
        }
    }

    /// The reference system that `crs` names; `None` without one.
    fn system(&self, members: &Members<'_>) -> Result<Option<u32>> {
        let system = match members.get(b"crs").map(Json::of) {
            None | Some(Json::Null) => return Ok(None),
            Some(Json::Object(system)) => system,
            Some(_) => return Err(self.wrong_type("crs", "object")),
        };
        if self.text(&system, "type")? != b"name" {
            return Err(self.invalid());
        }
        let Json::Object(properties) = self.member(&system, "properties")? else {
            return Err(self.wrong_type("properties", "object"));
        };
        let name = String::from_utf8_lossy(self.text(&properties, "name")?).into_owned();
        if name == "urn:ogc:def:crs:OGC:1.3:CRS84" {
            return Ok(Some(DEFAULT_SYSTEM));
        }
        let number = name.strip_prefix("urn:ogc:def:crs:EPSG::").or(name.strip_prefix("EPSG:"));
        match number.and_then(|number| number.parse().ok()) {
            Some(id) if ReferenceSystem::is_known(id) => Ok(Some(id)),
            Some(id) => check_system(id).map(|()| Some(id)),
            None => Err(self.invalid()),
        }
    }

    fn object(&self, members: &Members<'_>) -> Result<Option<Shape>> {
        let kind = self.text(members, "type")?.to_ascii_lowercase();
        match kind.as_slice() {
            b"feature" => match self.member(members, "geometry")? {
                Json::Null => Ok(None),
                Json::Object(geometry) => self.object(&geometry),
                _ => Err(self.wrong_type("geometry", "object")),
            },
            b"featurecollection" => self.objects(self.array(members, "features")?),
            b"geometrycollection" => self.objects(self.array(members, "geometries")?),
            kind => self.shape(kind, self.array(members, "coordinates")?).map(Some),
        }
    }

    fn objects(&self, elements: Elements<'_>) -> Result<Option<Shape>> {
        let mut shapes = Vec::with_capacity(elements.len());
        for element in elements {
            let Json::Object(members) = Json::of(element) else { return Err(self.invalid()) };
            shapes.extend(self.object(&members)?);
        }
        Ok(Some(Shape::Collection(shapes)))
    }

    fn shape(&self, kind: &[u8], coordinates: Elements<'_>) -> Result<Shape> {
        Ok(match kind {
            b"point" => Shape::Point(self.point(coordinates)?),
            b"linestring" => Shape::LineString(self.list(coordinates, Self::point)?),
            b"multipoint" => Shape::MultiPoint(self.list(coordinates, Self::point)?),
            b"polygon" => Shape::Polygon(self.list(coordinates, Self::line)?),
            b"multilinestring" => Shape::MultiLineString(self.list(coordinates, Self::line)?),
            b"multipolygon" => Shape::MultiPolygon(self.list(coordinates, Self::polygon)?),
            _ => return Err(self.invalid()),
        })
    }

    fn list<T>(&self, elements: Elements<'_>, read: fn(&Self, Elements<'_>) -> Result<T>) -> Result<Vec<T>> {
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            let Json::Array(inner) = Json::of(element) else { return Err(self.wrong_type("coordinates", "array")) };
            list.push(read(self, inner)?);
        }
        Ok(list)
    }

    fn line(&self, elements: Elements<'_>) -> Result<Vec<Point>> {
        self.list(elements, Self::point)
    }

    fn polygon(&self, elements: Elements<'_>) -> Result<Vec<Vec<Point>>> {
        self.list(elements, Self::line)
    }

    fn point(&self, elements: Elements<'_>) -> Result<Point> {
        let count = elements.len();
        if count < 2 {
            return Err(self.invalid());
        }
        if count > 2 && !self.leaves_out {
            let message = format!(
                "Unsupported number of coordinate dimensions in function {}: Found {count}, expected 2",
                self.name
            );
            return Err(Error::new(ErrorCode::UnsupportedDimension, message));
        }
        let number = |position: usize| match elements.get(position).map(Json::of) {
            Some(Json::Int(number)) => Ok(number as f64),
            Some(Json::UInt(number)) => Ok(number as f64),
            Some(Json::Double(number)) => Ok(number),
            Some(Json::Decimal(number)) => Ok(number.to_double()),
            _ => Err(self.wrong_type("coordinates", "array of numbers")),
        };
        Ok(Point { x: number(0)?, y: number(1)? })
    }
}
