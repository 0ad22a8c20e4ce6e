//! VECTOR.

use super::{DataType, Family, Form, TypeDescriptor, WireType};
use crate::error::{Error, ErrorCode, Result};
use crate::row::SlotKind;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::Scratch;
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Value, ValueRef};

/// Maximum number of entries of a vector.
pub const VECTOR_ENTRIES_MAX: u32 = 16_383;
/// Bytes of an entry: a little-endian number of 32 bits.
pub const VECTOR_ENTRY_BYTES: u32 = 4;

pub(super) struct VectorType;

impl DataType {
    /// VECTOR of up to `entries` numbers, at most [`VECTOR_ENTRIES_MAX`]. A value is a binary string.
    pub const fn vector(entries: u16) -> DataType {
        let mut data_type = DataType::plain(Family::Vector);
        data_type.length = entries as u32 * VECTOR_ENTRY_BYTES;
        data_type
    }

    /// Whether the type is VECTOR, which no key can have.
    pub fn is_vector(&self) -> bool {
        self.family == Family::Vector
    }
}

impl TypeDescriptor for VectorType {
    fn name(&self, _: &DataType) -> &'static str {
        "vector"
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        out.push_str(&format!("({})", data_type.length / VECTOR_ENTRY_BYTES));
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Bytes
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

    fn wire(&self, data_type: &DataType) -> WireType {
        let flags = column_flag::BLOB | column_flag::BINARY;
        WireType { code: wire_type::VECTOR, length: data_type.length, decimals: 0, flags }
    }

    fn text_lengths(&self, data_type: &DataType) -> Option<(i64, i64)> {
        Some((data_type.length.into(), data_type.length.into()))
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Bytes(Vec::new())
    }

    /// A binary string with at least one entry and at most as many as the type has, all of them finite.
    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        _: &StoreTarget<'_>,
        _: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let (what, size) = match value {
            ValueRef::Bytes(bytes) if bytes.len() <= data_type.length as usize && is_vector(bytes) => return Ok(value),
            // The implicit default of the type.
            ValueRef::Bytes([]) => return Ok(value),
            ValueRef::Bytes(bytes) => ("string", bytes.len()),
            ValueRef::Double(_) | ValueRef::Float(_) => ("double", 8),
            ValueRef::Decimal(_) => ("decimal", 8),
            ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Bit(_) => ("longlong", 8),
            _ => ("string", 0),
        };
        let entries = data_type.length / VECTOR_ENTRY_BYTES;
        let text = format!("Value of type '{what}, size: {size}' cannot be converted to 'vector({entries})' type.");
        Err(Error::new(ErrorCode::IncompatibleWithVector, text))
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        StoredType::Vector { entries: (data_type.length / VECTOR_ENTRY_BYTES) as u16 }
    }
}

/// Whether bytes are finite numbers of 32 bits, at least one.
fn is_vector(bytes: &[u8]) -> bool {
    let (entries, rest) = bytes.as_chunks::<4>();
    rest.is_empty() && !entries.is_empty() && entries.iter().all(|entry| f32::from_le_bytes(*entry).is_finite())
}
