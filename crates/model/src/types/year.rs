//! YEAR.

use super::{DataType, Family, Form, Packed, TypeDescriptor, WireType};
use crate::error::Result;
use crate::key::KeyPart;
use crate::number::parse_integer;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::{Scratch, excerpt, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::temporal::{Temporal, TemporalKind};
use crate::value::{Value, ValueRef};

/// The first year.
const FIRST: i128 = 1901;
/// The last year.
const LAST: i128 = 2155;

pub(super) struct Year;

impl DataType {
    /// YEAR.
    pub const fn year() -> DataType {
        DataType::plain(Family::Year)
    }
}

impl TypeDescriptor for Year {
    fn name(&self, _: &DataType) -> &'static str {
        "year"
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Temporal(TemporalKind::Year)
    }

    fn packed(&self, _: &DataType) -> Option<Packed> {
        Some(Packed::Year)
    }

    fn packed_key(&self, _: &DataType) -> KeyPart {
        KeyPart::Encoded(Packed::Year)
    }

    fn wire(&self, _: &DataType) -> WireType {
        let flags = column_flag::UNSIGNED | column_flag::ZEROFILL;
        WireType { code: wire_type::YEAR, length: 4, decimals: 0, flags }
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Temporal(Temporal::year(0))
    }

    fn store<'r>(
        &self,
        _: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        // MySQL stores the text of a document.
        let value = match value {
            ValueRef::Json(_) => ValueRef::Bytes(to_text(value, scratch)?),
            value => value,
        };
        let (number, is_text) = match value {
            ValueRef::Bytes(text) => {
                let parsed = parse_integer(text, true);
                if parsed.is_missing {
                    target.wrong_value("integer", &excerpt(text), scratch)?;
                    // Not 2000, which is the text '0'.
                    return Ok(ValueRef::Temporal(Temporal::year(0)));
                } else if parsed.is_truncated {
                    target.truncated(scratch)?;
                }
                (parsed.value, text.trim_ascii().len() != 4)
            }
            ValueRef::Temporal(value) if value.kind != TemporalKind::Time => (value.parts().year.into(), false),
            other => match other.as_number() {
                ValueRef::Int(value) => (value.into(), false),
                ValueRef::UInt(value) => (value.into(), false),
                // A negative number is out of range even if it is cut or rounded to 0.
                ValueRef::Double(value) if value < 0.0 => (-1, false),
                ValueRef::Double(value) => (value as i128, false),
                ValueRef::Decimal(value) if value.is_negative() => (-1, false),
                ValueRef::Decimal(value) => (crate::decimal::to_integer(value), false),
                _ => (0, false),
            },
        };
        Ok(ValueRef::Temporal(Temporal::year(match number {
            // The number 0 is the year 0000, the text '0' the year 2000.
            0 if is_text => 2000,
            0 => 0,
            1..=69 => 2000 + number as u16,
            70..=99 => 1900 + number as u16,
            FIRST..=LAST => number as u16,
            _ => {
                target.out_of_range(scratch)?;
                0
            }
        })))
    }

    fn stored(&self, _: &DataType) -> StoredType {
        StoredType::Year {}
    }
}
