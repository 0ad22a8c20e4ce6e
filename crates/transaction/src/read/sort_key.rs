//! Keys of computed values that compare as bytes in SQL order. Among the keys of one expression, none is a
//! prefix of another.

use junctor_expression::{Kind, ResultType};
use junctor_model::decimal::{self, NARROW_DIGITS_MAX};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::key::{KeyPart, append_value};
use junctor_model::value::{Decimal, ValueRef};

/// Maximum number of bytes of a string in a sort key. Later bytes do not affect the order.
const SORT_BYTES_MAX: usize = 4096;

/// Appends the key of a value of this type.
#[inline]
pub(super) fn append_key(result: &ResultType, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let part = match result.kind {
        Kind::Null => return out.push(0),
        Kind::Int => KeyPart::Integer { bytes: 8, unsigned: false },
        Kind::UInt => KeyPart::Integer { bytes: 8, unsigned: true },
        Kind::Double => KeyPart::Double,
        Kind::String | Kind::Geometry => KeyPart::Text(result.collation),
        Kind::Decimal => return append_decimal(result, value, out),
        Kind::Json => return append_json(value, out),
        Kind::Float => KeyPart::Double,
        Kind::Bit | Kind::Enum | Kind::Set => KeyPart::Integer { bytes: 8, unsigned: true },
        Kind::Year | Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => {
            return append_temporal(value, out);
        }
    };
    append_value(part, true, value, out);
}

/// As `append_key`, in reversed order if `descending`, and of bounded length. Returns true if the key was
/// truncated.
#[inline]
pub(super) fn append_sort_key(result: &ResultType, value: ValueRef<'_>, descending: bool, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    append_key(result, value, out);
    let is_cut = out.len() - start > SORT_BYTES_MAX;
    if is_cut {
        out.truncate(start + SORT_BYTES_MAX - 2);
        out.extend_from_slice(&[0, 0]);
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    is_cut
}

fn append_json(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let ValueRef::Json(document) = value else { return out.push(0) };
    out.push(1);
    junctor_model::json::append_sort_key(document, out);
}

/// Temporal values of one expression have the order of one number.
fn append_temporal(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let ValueRef::Temporal(value) = value else { return out.push(0) };
    out.push(1);
    out.extend_from_slice(&(value.packed as u64 ^ 1 << 63).to_be_bytes());
}

/// The floor, then the fraction at the expression's scale if that is not 0. Both fit where the mantissa at
/// that scale does not, as that of 38 digits before the point with the scale of another operand.
fn append_decimal(result: &ResultType, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let scale = result.scale();
    let (floor, fraction) = match value {
        ValueRef::Null => return out.push(0),
        ValueRef::Decimal(Decimal::Narrow { mantissa, scale: own }) if own <= scale => {
            split_decimal(mantissa, own, scale)
        }
        ValueRef::Decimal(value) => return append_wide(value, scale, out),
        ValueRef::Int(value) => (i128::from(value), 0),
        ValueRef::UInt(value) => (i128::from(value), 0),
        _ => (0, 0),
    };
    append_floor(floor, out);
    if scale > 0 {
        out.extend_from_slice(&fraction.to_be_bytes());
    }
}

fn append_floor(floor: i128, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&(floor as u128 ^ 1 << 127).to_be_bytes());
}

/// The floor, and the fraction above it as a number of units of `scale` digits.
fn split_decimal(mantissa: i128, own: u8, scale: u8) -> (i128, u128) {
    let factor = power_of_ten(own);
    let fraction = mantissa.rem_euclid(factor) * power_of_ten(scale - own);
    (mantissa.div_euclid(factor), fraction as u128)
}

/// As for other numbers, but a floor of more than 38 digits is that limit of `i128` that no other number has,
/// followed by its bytes.
#[cold]
fn append_wide(value: Decimal, scale: u8, out: &mut Vec<u8>) {
    let value = if value.scale() > scale { decimal::with_scale(value, scale).unwrap_or(value) } else { value };
    let floor = decimal::floor(value);
    let fraction = decimal::subtract(value, floor).and_then(|fraction| decimal::with_scale(fraction, scale));
    match floor {
        Decimal::Narrow { mantissa, .. } => append_floor(mantissa, out),
        Decimal::Wide(wide) => {
            append_floor(if wide.is_negative() { i128::MIN } else { i128::MAX }, out);
            let mut bytes = wide.to_bytes();
            // From the most significant byte on; those of negative numbers have the opposite order.
            bytes[1..].reverse();
            out.extend(bytes[1..].iter().map(|byte| if wide.is_negative() { !byte } else { *byte }));
        }
    }
    if scale > 0 {
        let fraction = fraction.and_then(Decimal::narrow_mantissa).unwrap_or(0);
        out.extend_from_slice(&(fraction as u128).to_be_bytes());
    }
}

fn power_of_ten(exponent: u8) -> i128 {
    10i128.pow(u32::from(exponent.min(NARROW_DIGITS_MAX)))
}

/// The length of a key as entries encode it.
///
/// # Errors
/// 1436 if the length does not fit.
#[inline]
pub(super) fn key_length(bytes: usize) -> Result<[u8; 2]> {
    match u16::try_from(bytes) {
        Ok(length) => Ok(length.to_le_bytes()),
        Err(_) => Err(Error::new(ErrorCode::StatementTooComplex, "A key of ORDER BY or DISTINCT is too long")),
    }
}
