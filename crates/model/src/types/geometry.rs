//! GEOMETRY, POINT and the other spatial types.

use super::{DataType, Family, Form, TypeDescriptor, WireType};
use crate::error::{Error, ErrorCode, Result};
use crate::geometry::{Geometry, GeometryKind};
use crate::row::SlotKind;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::Scratch;
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Value, ValueRef};

pub(super) struct GeometryType;

impl DataType {
    /// A spatial type. With `system` (SRID), all values have that reference system.
    pub const fn geometry(kind: GeometryKind, system: Option<u32>) -> DataType {
        let mut data_type = DataType::plain(Family::Geometry);
        data_type.bytes = kind as u8;
        data_type.system = system;
        data_type.length = u32::MAX;
        data_type
    }

    /// The class of a spatial type; `None` for other types.
    pub fn geometry_kind(&self) -> Option<GeometryKind> {
        match self.family {
            Family::Geometry => GeometryKind::ALL.get(usize::from(self.bytes)).copied(),
            _ => None,
        }
    }

    /// The attribute SRID of a spatial type.
    pub fn reference_system(&self) -> Option<u32> {
        self.system
    }
}

impl TypeDescriptor for GeometryType {
    fn name(&self, data_type: &DataType) -> &'static str {
        data_type.geometry_kind().unwrap_or(GeometryKind::Geometry).name()
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Geometry
    }

    fn slot(&self, _: &DataType) -> SlotKind {
        SlotKind::Variable
    }

    fn key_bytes(&self, _: &DataType) -> Option<usize> {
        None
    }

    fn row_bytes(&self, _: &DataType) -> usize {
        // A length prefix and a pointer, as of a BLOB.
        4 + 8
    }

    fn wire(&self, _: &DataType) -> WireType {
        let flags = column_flag::BLOB | column_flag::BINARY;
        WireType { code: wire_type::GEOMETRY, length: u32::MAX, decimals: 0, flags }
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Bytes(Vec::new())
    }

    /// A value of the class and reference system of the column. Errors: 1416, 3643.
    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        _: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let checked = match value {
            ValueRef::Bytes(bytes) => Geometry::check_stored(bytes),
            _ => None,
        };
        let Some((system, kind)) = checked else { return Err(no_geometry()) };
        let wanted = data_type.geometry_kind().unwrap_or(GeometryKind::Geometry);
        if wanted != GeometryKind::Geometry && wanted != kind {
            return Err(no_geometry());
        }
        match data_type.system {
            Some(own) if own != system => Err(wrong_system(&target.column.name, system, own)),
            _ => Ok(value),
        }
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        StoredType::Geometry { class: self.name(data_type).into(), srid: data_type.system }
    }
}

/// Error 1416, also in lenient mode.
#[cold]
fn no_geometry() -> Box<Error> {
    Error::new(ErrorCode::NoGeometry, "Cannot get geometry object from data you send to the GEOMETRY field")
}

#[cold]
fn wrong_system(column: &str, system: u32, own: u32) -> Box<Error> {
    let text = format!(
        "The SRID of the geometry does not match the SRID of the column '{column}'. The SRID of the geometry is \
         {system}, but the SRID of the column is {own}. Consider changing the SRID of the geometry or the SRID \
         property of the column."
    );
    Error::new(ErrorCode::WrongReferenceSystem, text)
}
