//! FLOAT.

use super::{DataType, Family, Form, Packed, TypeDescriptor, WireType, double};
use crate::error::Result;
use crate::key::KeyPart;
use crate::row_encoding::{DECIMALS_NOT_FIXED, wire_type};
use crate::scratch::Scratch;
use crate::store::StoreTarget;
use crate::stored_schema::StoredType;
use crate::value::{Value, ValueRef};

pub(super) struct Float;

impl DataType {
    /// FLOAT.
    pub const fn float() -> DataType {
        DataType::plain(Family::Float)
    }
}

impl TypeDescriptor for Float {
    fn name(&self, _: &DataType) -> &'static str {
        "float"
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Float
    }

    fn packed(&self, _: &DataType) -> Option<Packed> {
        Some(Packed::Float)
    }

    fn packed_key(&self, _: &DataType) -> KeyPart {
        KeyPart::Double
    }

    fn wire(&self, _: &DataType) -> WireType {
        WireType { code: wire_type::FLOAT, length: 12, decimals: DECIMALS_NOT_FIXED, flags: 0 }
    }

    fn digits(&self, _: &DataType) -> (Option<u64>, Option<u64>) {
        (Some(12), None)
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Float(0.0)
    }

    fn store<'r>(
        &self,
        _: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let number = double::number_of(value, target, scratch)?;
        let stored = number as f32;
        if !stored.is_finite() {
            target.out_of_range(scratch)?;
        }
        Ok(ValueRef::Float(stored.clamp(-f32::MAX, f32::MAX)))
    }

    fn stored(&self, _: &DataType) -> StoredType {
        StoredType::Float {}
    }
}
