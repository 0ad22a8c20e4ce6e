//! DECIMAL.

use super::{DataType, Family, Form, Packed, TypeDescriptor, WireType};
use crate::decimal::{self, NARROW_DIGITS_MAX};
use crate::error::Result;
use crate::number::parse_decimal;
use crate::row_encoding::wire_type;
use crate::scratch::{Scratch, excerpt, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Decimal, Value, ValueRef};

pub(super) struct DecimalType;

impl DataType {
    /// DECIMAL(precision, scale).
    pub const fn decimal(precision: u8, scale: u8, unsigned: bool) -> DataType {
        let mut data_type = DataType::plain(Family::Decimal);
        data_type.bytes = precision;
        data_type.scale = scale;
        data_type.unsigned = unsigned;
        data_type
    }
}

impl TypeDescriptor for DecimalType {
    fn name(&self, _: &DataType) -> &'static str {
        "decimal"
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        out.push_str(&format!("({},{})", data_type.bytes, data_type.scale));
        data_type.append_number_attributes(out);
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Decimal
    }

    fn packed(&self, data_type: &DataType) -> Option<Packed> {
        let (precision, scale) = (data_type.bytes, data_type.scale);
        Some(match precision <= NARROW_DIGITS_MAX {
            true => Packed::Decimal { precision, scale },
            false => Packed::WideDecimal { precision, scale },
        })
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let point = u32::from(data_type.scale > 0);
        let length = u32::from(data_type.bytes) + point + u32::from(!data_type.unsigned);
        let flags = data_type.number_flags();
        WireType { code: wire_type::NEWDECIMAL, length, decimals: data_type.scale, flags }
    }

    fn digits(&self, data_type: &DataType) -> (Option<u64>, Option<u64>) {
        (Some(data_type.bytes.into()), Some(data_type.scale.into()))
    }

    fn implicit_default(&self, data_type: &DataType) -> Value {
        Value::Decimal(Decimal::Narrow { mantissa: 0, scale: data_type.scale })
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        // MySQL stores the text of a document.
        let value = match value {
            ValueRef::Json(_) => ValueRef::Bytes(to_text(value, scratch)?),
            value => value,
        };
        let is_negative = |value: ValueRef<'_>| match value {
            ValueRef::Bytes(text) => text.trim_ascii_start().starts_with(b"-"),
            value => value.to_double().is_ok_and(|number| number < 0.0),
        };
        // `None` for a number of too many digits.
        let number = match value.as_number() {
            ValueRef::Decimal(number) => Some(number),
            ValueRef::Int(number) => Some(decimal::from_integer(number.into())),
            ValueRef::UInt(number) => Some(decimal::from_integer(number.into())),
            ValueRef::Double(number) => decimal::from_double(number, None),
            ValueRef::Bytes(text) => {
                let parsed = parse_decimal(text);
                if parsed.is_missing {
                    target.wrong_value("decimal", &excerpt(text), scratch)?;
                } else if parsed.is_truncated {
                    target.truncated(scratch)?;
                }
                parsed.value
            }
            _ => Some(decimal::from_integer(0)),
        };
        let rounded = number.and_then(|number| decimal::with_scale(number, data_type.scale));
        // MySQL tests the sign before it rounds: -0.4 is out of range although it would be stored as 0.
        let has_wrong_sign = data_type.unsigned && number.is_some_and(Decimal::is_negative);
        let fits = rounded.filter(|rounded| decimal::fits_digits(*rounded, data_type.bytes) && !has_wrong_sign);
        if let Some(rounded) = fits {
            if number != Some(rounded) {
                target.note_truncation(scratch);
            }
            return Ok(ValueRef::Decimal(rounded));
        }
        target.out_of_range(scratch)?;
        Ok(ValueRef::Decimal(match is_negative(value) && data_type.unsigned {
            true => Decimal::Narrow { mantissa: 0, scale: data_type.scale },
            false => decimal::largest(data_type.bytes, data_type.scale, is_negative(value)),
        }))
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        let (precision, scale) = (data_type.bytes, data_type.scale);
        StoredType::Decimal { precision, scale, unsigned: data_type.unsigned, zerofill: data_type.zerofill }
    }
}
