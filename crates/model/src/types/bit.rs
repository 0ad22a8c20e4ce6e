//! BIT.

use super::{DataType, Family, Form, Packed, TypeDescriptor, WireType, packed::width_of_bits};
use crate::decimal;
use crate::error::Result;
use crate::key::KeyPart;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::{Scratch, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::temporal::TemporalKind;
use crate::value::{Bit, Value, ValueRef};

/// Maximum number of bits.
pub const BITS_MAX: u8 = 64;
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

pub(super) struct BitType;

impl DataType {
    /// BIT of 1 to 64 bits.
    pub const fn bit(bits: u8) -> DataType {
        let mut data_type = DataType::plain(Family::Bit);
        data_type.bytes = bits;
        data_type
    }
}

impl TypeDescriptor for BitType {
    fn name(&self, _: &DataType) -> &'static str {
        "bit"
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        out.push_str(&format!("({})", data_type.bytes));
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Bit
    }

    fn packed(&self, data_type: &DataType) -> Option<Packed> {
        Some(Packed::Bit(data_type.bytes))
    }

    fn packed_key(&self, data_type: &DataType) -> KeyPart {
        KeyPart::Integer { bytes: width_of_bits(data_type.bytes.into()), unsigned: true }
    }

    fn key_bytes(&self, data_type: &DataType) -> Option<usize> {
        Some(usize::from(data_type.bytes.div_ceil(8)))
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let flags = column_flag::UNSIGNED;
        WireType { code: wire_type::BIT, length: data_type.bytes.into(), decimals: 0, flags }
    }

    fn digits(&self, data_type: &DataType) -> (Option<u64>, Option<u64>) {
        (Some(data_type.bytes.into()), None)
    }

    fn implicit_default(&self, data_type: &DataType) -> Value {
        Value::Bit(of(data_type, 0))
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let most = u64::MAX >> (BITS_MAX - data_type.bytes);
        let number = match value {
            // The bytes of a text are the bits.
            ValueRef::Bytes(text) => bits_of(text),
            ValueRef::Json(_) => bits_of(to_text(value, scratch)?),
            ValueRef::Temporal(temporal) if temporal.kind != TemporalKind::Year => bits_of(to_text(value, scratch)?),
            value => match value.as_number() {
                ValueRef::UInt(number) => Some(number),
                // A negative number has the bits of its two's complement.
                ValueRef::Int(number) => Some(number as u64),
                // The fraction is cut; a double beyond 64 bits has the bits of the smallest integer.
                ValueRef::Double(number) if number.abs() >= TWO_TO_63 => Some(1 << 63),
                ValueRef::Double(number) => Some(number as i64 as u64),
                // Unlike an integer, a negative decimal is out of range.
                ValueRef::Decimal(number) if number.is_negative() => {
                    target.out_of_range(scratch)?;
                    Some(0)
                }
                ValueRef::Decimal(number) => u64::try_from(decimal::to_integer(number)).ok(),
                _ => Some(0),
            },
        };
        match number.filter(|number| *number <= most) {
            Some(number) => Ok(ValueRef::Bit(of(data_type, number))),
            None => {
                match target.is_strict() {
                    true => target.too_long(scratch)?,
                    false => target.out_of_range(scratch)?,
                }
                Ok(ValueRef::Bit(of(data_type, most)))
            }
        }
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        StoredType::Bit { bits: data_type.bytes }
    }
}

fn of(data_type: &DataType, number: u64) -> Bit {
    Bit { number, bytes: data_type.bytes.div_ceil(8) }
}

/// Big-endian bytes as a number; `None` for more than 64 bits.
fn bits_of(text: &[u8]) -> Option<u64> {
    let start = text.iter().position(|byte| *byte != 0).unwrap_or(text.len());
    let significant = &text[start..];
    (significant.len() <= 8).then(|| significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
