//! DOUBLE.

use super::{DataType, Family, Form, TypeDescriptor, WireType};
use crate::error::Result;
use crate::number::parse_double;
use crate::row::SlotKind;
use crate::row_encoding::{DECIMALS_NOT_FIXED, wire_type};
use crate::scratch::Scratch;
use crate::store::StoreTarget;
use crate::stored_schema::StoredType;
use crate::value::{Value, ValueRef};

pub(super) struct Double;

impl DataType {
    /// DOUBLE.
    pub const fn double() -> DataType {
        DataType::plain(Family::Double)
    }
}

impl TypeDescriptor for Double {
    fn name(&self, _: &DataType) -> &'static str {
        "double"
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Double
    }

    fn slot(&self, _: &DataType) -> SlotKind {
        SlotKind::Double
    }

    fn key_bytes(&self, _: &DataType) -> Option<usize> {
        Some(8)
    }

    fn wire(&self, _: &DataType) -> WireType {
        WireType { code: wire_type::DOUBLE, length: 22, decimals: DECIMALS_NOT_FIXED, flags: 0 }
    }

    fn digits(&self, _: &DataType) -> (Option<u64>, Option<u64>) {
        (Some(22), None)
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Double(0.0)
    }

    fn store<'r>(
        &self,
        _: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        number_of(value, target, scratch).map(ValueRef::Double)
    }

    fn stored(&self, _: &DataType) -> StoredType {
        StoredType::Double {}
    }
}

/// The value as a double. Error or warning 1265 for a text that is only partly a number, 1264 for a number
/// out of range.
pub(super) fn number_of(value: ValueRef<'_>, target: &StoreTarget<'_>, scratch: &Scratch) -> Result<f64> {
    match value.to_double() {
        Ok(number) => Ok(number),
        Err(text) => {
            let parsed = parse_double(text);
            if parsed.is_truncated {
                target.truncated(scratch)?;
            } else if parsed.is_out_of_range {
                target.out_of_range(scratch)?;
            }
            Ok(parsed.value)
        }
    }
}
