//! Functions of geometries. Each reads the bytes of its arguments, checks their reference systems, and leaves
//! the computation to `crate::geometry`.
//!
//! A function without a result for a reference system says so (errors 3618, 3704 and 3705): distances, areas
//! and relations on an ellipsoid are not computed.

mod build;
mod code;
mod derive;
mod json;
mod line;
mod measure;
mod part;
mod relation;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{Geometry, GeometryKind, ReferenceSystem, Shape, SystemKind};
use junctor_model::value::ValueRef;

use super::{Call, TypedCall, function};
use crate::program::Expression;
use crate::result_type::ResultType;

pub(super) use build::TABLE as BUILD;
pub(super) use code::TABLE as CODE;
pub(super) use derive::TABLE as DERIVE;
pub(super) use json::TABLE as JSON;
pub(super) use line::TABLE as LINE;
pub(super) use measure::TABLE as MEASURE;
pub(super) use part::TABLE as PART;
pub(super) use relation::TABLE as RELATION;

/// MySQL's functions of geometries that are not there.
const MISSING: &[&str] = &[
    "ST_BUFFER",
    "ST_BUFFER_STRATEGY",
    "ST_COLLECT",
    "ST_DIFFERENCE",
    "ST_INTERSECTION",
    "ST_SYMDIFFERENCE",
    "ST_UNION",
];

/// The name of a function of MySQL's that is not there, in upper case.
pub(super) fn missing(name: &str) -> Option<&'static str> {
    MISSING.iter().copied().find(|missing| missing.eq_ignore_ascii_case(name))
}

/// The result is a geometry, or NULL.
fn resolve_geometry(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::geometry().with_nullable(true) })
}

/// The result is an integer of a geometry, or NULL.
fn resolve_integer(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 10).with_nullable(true) })
}

/// The result is a number of a geometry, or NULL.
fn resolve_number(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::double().with_nullable(true) })
}

/// Error 3037.
#[cold]
fn invalid(name: &str) -> Box<Error> {
    Error::new(ErrorCode::InvalidGeometry, format!("Invalid GIS data provided to function {name}."))
}

/// Error 3548 for a reference system that does not exist.
fn check_system(id: u32) -> Result<()> {
    match ReferenceSystem::is_known(id) {
        true => Ok(()),
        false => {
            let message = format!("There's no spatial reference system with SRID {id}.");
            Err(Error::new(ErrorCode::NoReferenceSystem, message))
        }
    }
}

/// Whether coordinates of this reference system are degrees on an ellipsoid.
fn is_geographic(id: u32) -> bool {
    ReferenceSystem::find(id).is_some_and(|system| system.kind == SystemKind::Geographic)
}

/// Error 3516 for a geometry of another class than `wanted`.
#[cold]
fn unexpected(wanted: &str, found: GeometryKind, name: &str) -> Box<Error> {
    let found = found.name().to_ascii_uppercase();
    let message = format!("{wanted} value is a geometry of unexpected type {found} in {name}.");
    Error::new(ErrorCode::UnexpectedGeometryType, message)
}

/// A longitude or latitude outside its range, and whether it is that of an argument other than a geometry.
#[cold]
fn out_of_range(is_longitude: bool, value: f64, of_geometry: bool, name: &str) -> Box<Error> {
    let (what, low, high, bracket) = match is_longitude {
        true => ("longitude", -180.0, 180.0, '('),
        false => ("latitude", -90.0, 90.0, '['),
    };
    let range = format!("It must be within {bracket}{low:.6}, {high:.6}].");
    let (code, message) = match (of_geometry, is_longitude) {
        (true, true) => (ErrorCode::GeometryLongitudeOutOfRange, String::new()),
        (true, false) => (ErrorCode::GeometryLatitudeOutOfRange, String::new()),
        (false, true) => (ErrorCode::LongitudeOutOfRange, format!("Longitude {value:.6} is")),
        (false, false) => (ErrorCode::LatitudeOutOfRange, format!("Latitude {value:.6} is")),
    };
    let message = match of_geometry {
        true => format!(
            "A parameter of function {name} contains a geometry with {what} {value:.6}, which is out of range. {range}"
        ),
        false => format!("{message} out of range in function {name}. {range}"),
    };
    Error::new(code, message)
}

/// Error for a longitude or latitude of a shape that is outside its range.
fn check_degrees(shape: &Shape, of_geometry: bool, name: &str) -> Result<()> {
    let mut outcome = Ok(());
    shape.for_each_point(&mut |point| {
        if outcome.is_ok() {
            outcome =
                check_longitude(point.x, of_geometry, name).and_then(|()| check_latitude(point.y, of_geometry, name));
        }
    });
    outcome
}

fn check_longitude(value: f64, of_geometry: bool, name: &str) -> Result<()> {
    match value > -180.0 && value <= 180.0 {
        true => Ok(()),
        false => Err(out_of_range(true, value, of_geometry, name)),
    }
}

fn check_latitude(value: f64, of_geometry: bool, name: &str) -> Result<()> {
    match (-90.0..=90.0).contains(&value) {
        true => Ok(()),
        false => Err(out_of_range(false, value, of_geometry, name)),
    }
}

/// Error 3618 for geometries of a geographic reference system, for which the function has no result.
fn check_plane(name: &str, geometries: &[&Geometry]) -> Result<()> {
    if !geometries.iter().any(|geometry| is_geographic(geometry.system)) {
        return Ok(());
    }
    Err(not_for(ErrorCode::NotForGeographicSystem, "geographic", name, geometries))
}

/// The error that a function has no result for a kind of reference system.
#[cold]
fn not_for(code: ErrorCode, kind: &str, name: &str, geometries: &[&Geometry]) -> Box<Error> {
    let types: Vec<String> =
        geometries.iter().map(|geometry| geometry.shape.kind().name().to_ascii_uppercase()).collect();
    let types = types.join(", ");
    let message = format!("{name}({types}) has not been implemented for {kind} spatial reference systems.");
    Error::new(code, message)
}

/// Error 1690 for a number that `what` cannot be.
#[cold]
fn value_out_of_range(what: &str, name: &str) -> Box<Error> {
    Error::new(ErrorCode::NumericOutOfRange, format!("{what} value is out of range in '{name}'"))
}

impl<'r> Call<'r> {
    /// The argument as a geometry; `None` for NULL. Errors: 3037, 3548, 3731, 3732.
    fn geometry(&self, position: usize) -> Result<Option<Geometry>> {
        let bytes = match self.value(position)? {
            ValueRef::Null => return Ok(None),
            ValueRef::Bytes(bytes) => bytes,
            _ => return Err(invalid(&self.function_name())),
        };
        let Some(geometry) = Geometry::read(bytes) else { return Err(invalid(&self.function_name())) };
        check_system(geometry.system)?;
        if is_geographic(geometry.system) {
            check_degrees(&geometry.shape, true, &self.function_name())?;
        }
        Ok(Some(geometry))
    }

    /// Two geometries of one reference system. Error: 3033.
    fn geometries(&self) -> Result<Option<(Geometry, Geometry)>> {
        let (Some(left), Some(right)) = (self.geometry(0)?, self.geometry(1)?) else { return Ok(None) };
        if left.system != right.system {
            return Err(different_systems(&self.function_name(), left.system, right.system));
        }
        Ok(Some((left, right)))
    }

    /// Checks the unit of length in an argument, if there is one. `None` for NULL. Errors: 3882 for
    /// geometries without a reference system, 1235 for another unit than the metre.
    fn check_unit(&self, position: usize, system: u32) -> Result<Option<()>> {
        if self.count() <= position {
            return Ok(Some(()));
        }
        let Some(unit) = self.text(position)? else { return Ok(None) };
        let (unit, name) = (String::from_utf8_lossy(unit), self.function_name());
        if system == 0 {
            let message = format!(
                "The geometry passed to function {name} is in SRID 0, which doesn't specify a length unit. Can't \
                 convert to '{unit}'."
            );
            return Err(Error::new(ErrorCode::UnknownLengthUnit, message));
        }
        match unit.eq_ignore_ascii_case("metre") {
            true => Ok(Some(())),
            false => Err(Error::not_supported(&format!("this unit of length in {name}"))),
        }
    }

    /// A value for a geometry.
    fn geometry_value(&self, geometry: &Geometry) -> Result<ValueRef<'r>> {
        self.build(|buffer| geometry.append(buffer))
    }

    /// The id of a reference system; `None` for NULL. Errors: 1690, 3548.
    fn system(&self, position: usize) -> Result<Option<u32>> {
        let Some(id) = self.integer(position)? else { return Ok(None) };
        let Ok(id) = u32::try_from(id) else { return Err(value_out_of_range("SRID", &self.function_name())) };
        check_system(id)?;
        Ok(Some(id))
    }
}

#[cold]
fn different_systems(name: &str, left: u32, right: u32) -> Box<Error> {
    let message = format!(
        "Binary geometry function {name} given two geometries of different srids: {left} and {right}, which should \
         have been identical."
    );
    Error::new(ErrorCode::DifferentReferenceSystems, message)
}
