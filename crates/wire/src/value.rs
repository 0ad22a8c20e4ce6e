//! Values that a client sends: a tag byte and the content. The tags match those of `expression/parameter.rs`.

use junctor_model::decimal::Wide;
use junctor_model::row_encoding::append_text;
use junctor_model::value::{Decimal, ValueRef};

use super::field::{FieldReader, Malformed};

const TAG_NULL: u8 = 0;
const TAG_INT: u8 = 1;
const TAG_UINT: u8 = 2;
const TAG_DOUBLE: u8 = 3;
const TAG_DECIMAL: u8 = 4;
const TAG_BYTES: u8 = 5;
const TAG_WIDE_DECIMAL: u8 = 13;

/// Maximum number of digits after the decimal point.
const SCALE_MAX: u8 = 30;
/// Minimum absolute mantissa that is refused, because a number with more than 38 digits has a tag of its own.
const MANTISSA_END: u128 = 10u128.pow(38);

/// Appends a value with its tag. [`read_value`] reads it.
#[inline]
pub fn encode_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut number = |tag: u8, bytes: [u8; 8]| {
        out.push(tag);
        out.extend_from_slice(&bytes);
    };
    match value {
        ValueRef::Null => out.push(TAG_NULL),
        ValueRef::Int(value) => number(TAG_INT, value.to_le_bytes()),
        ValueRef::UInt(value) => number(TAG_UINT, value.to_le_bytes()),
        ValueRef::Double(value) => number(TAG_DOUBLE, value.to_le_bytes()),
        ValueRef::Decimal(Decimal::Narrow { mantissa, scale }) => {
            out.extend_from_slice(&[TAG_DECIMAL, scale]);
            out.extend_from_slice(&mantissa.to_le_bytes());
        }
        ValueRef::Decimal(Decimal::Wide(wide)) => {
            out.extend_from_slice(&[TAG_WIDE_DECIMAL, wide.scale()]);
            out.extend_from_slice(&wide.to_bytes());
        }
        ValueRef::Bytes(bytes) => {
            out.push(TAG_BYTES);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        ValueRef::Float(value) => number(TAG_DOUBLE, f64::from(value).to_le_bytes()),
        // Other values travel as their text, which a column of the type reads.
        value => {
            let mut text = Vec::new();
            append_text(value, &mut text);
            encode_value(ValueRef::Bytes(&text), out);
        }
    }
}

/// Reads a value that [`encode_value`] appended.
///
/// # Errors
/// The value is incomplete, its tag is unknown, a double is infinite or not a number, or a decimal number has
/// too many digits.
#[inline]
pub fn read_value<'a>(fields: &mut FieldReader<'a>) -> Result<ValueRef<'a>, Malformed> {
    const FIELD: &str = "value";
    Ok(match fields.u8(FIELD)? {
        TAG_NULL => ValueRef::Null,
        TAG_INT => ValueRef::Int(fields.u64(FIELD)? as i64),
        TAG_UINT => ValueRef::UInt(fields.u64(FIELD)?),
        TAG_DOUBLE => {
            let number = f64::from_bits(fields.u64(FIELD)?);
            // SQL has neither infinite numbers nor NaN.
            if !number.is_finite() {
                return Err(Malformed { field: FIELD });
            }
            ValueRef::Double(number)
        }
        TAG_DECIMAL => {
            let scale = fields.u8(FIELD)?;
            let mantissa = i128::from_le_bytes(fields.array(FIELD)?);
            if scale > SCALE_MAX || mantissa.unsigned_abs() >= MANTISSA_END {
                return Err(Malformed { field: FIELD });
            }
            ValueRef::Decimal(Decimal::Narrow { mantissa, scale })
        }
        TAG_WIDE_DECIMAL => {
            let scale = fields.u8(FIELD)?;
            let bytes = fields.array(FIELD)?;
            ValueRef::Decimal(Wide::from_bytes(&bytes, scale).ok_or(Malformed { field: FIELD })?)
        }
        TAG_BYTES => {
            let length = fields.u32(FIELD)? as usize;
            ValueRef::Bytes(fields.bytes(length, FIELD)?)
        }
        _ => return Err(Malformed { field: FIELD }),
    })
}
