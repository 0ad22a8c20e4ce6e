//! CAST and its warnings.

use junctor_model::collation::CharacterSet;
use junctor_model::error::{ErrorCode, Result};
use junctor_model::value::{Decimal, ValueRef};

use super::convert::{to_decimal, to_double, to_integer};
use super::document;
use crate::decimal;
use crate::number::parse_integer;
use crate::program::{CastTarget, Expression};
use crate::result_type::{Kind, ResultType};
use crate::scratch::{STRING_BYTES_MAX, Scratch, excerpt, to_text};

/// Maximum number of bytes of an invalid text that a message shows.
const WRONG_BYTES_SHOWN: usize = 6;

pub(super) fn cast<'r>(
    target: CastTarget,
    value: ValueRef<'r>,
    result_type: &ResultType,
    scratch: &'r Scratch,
) -> Result<ValueRef<'r>> {
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    match target {
        CastTarget::Signed => cast_signed(value, scratch).map(ValueRef::Int),
        CastTarget::Unsigned => cast_unsigned(value, scratch).map(ValueRef::UInt),
        CastTarget::Double => Ok(ValueRef::Double(to_double(value, scratch)?)),
        CastTarget::Decimal { precision, .. } => {
            let number = to_decimal(value, scratch)?;
            cast_decimal(number, precision, result_type.decimals, scratch).map(ValueRef::Decimal)
        }
        CastTarget::Char { .. } | CastTarget::Binary { .. } => unreachable!("these are cast by cast_text"),
    }
}

/// CAST to CHAR or BINARY. Bytes that are no text of the character set give NULL with warning 1300.
pub(super) fn cast_text<'r>(
    target: CastTarget,
    value: ValueRef<'r>,
    operand: &Expression,
    result_type: &ResultType,
    scratch: &'r Scratch,
) -> Result<ValueRef<'r>> {
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let text = to_text(value, scratch)?;
    let length = match target {
        CastTarget::Char { length, .. } => length,
        CastTarget::Binary { length } => return cast_binary(text, length, scratch),
        _ => unreachable!("other types are cast by cast"),
    };
    let characters = result_type.collation.character_set();
    let cut = match length {
        Some(length) => characters.prefix(text, length as usize),
        None => text,
    };
    let is_cut = cut.len() < text.len();
    let may_be_invalid = operand.result.is_bytes() || operand.result.kind == Kind::Bit;
    if may_be_invalid && !characters.is_valid(cut) {
        return invalid_text(characters, cut, scratch);
    }
    let cut = match operand.result.is_text() && !characters.is_valid(cut) {
        true => scratch.build_text(|buffer| {
            characters.append_representable(cut, buffer);
        })?,
        false => cut,
    };
    if let Some(length) = length
        && is_cut
    {
        let type_name = format!("CHAR({length})");
        super::convert::warn_truncated(&type_name, text, scratch)?;
    }
    Ok(ValueRef::Bytes(cut))
}

/// NULL with warning 1300.
#[cold]
fn invalid_text<'r>(characters: CharacterSet, text: &[u8], scratch: &Scratch) -> Result<ValueRef<'r>> {
    let valid = characters.valid_bytes(text);
    let shown: String = text[valid..].iter().take(WRONG_BYTES_SHOWN).map(|byte| format!("{byte:02X}")).collect();
    let message = || format!("Invalid {} character string: '{shown}'", characters.name());
    scratch.warn(ErrorCode::InvalidCharacterString, message)?;
    Ok(ValueRef::Null)
}

fn cast_signed(value: ValueRef<'_>, scratch: &Scratch) -> Result<i64> {
    match value {
        ValueRef::Json(document) => Ok(document::integer_of(document, scratch)? as i64),
        ValueRef::Int(value) => Ok(value),
        // Values above the signed range wrap to the same 64 bits, as in MySQL.
        ValueRef::UInt(value) => Ok(value as i64),
        ValueRef::Bit(bit) => Ok(bit.number as i64),
        ValueRef::Bytes(text) => {
            let number = integer_of_text(text, scratch)?;
            match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => Ok(number),
                (_, Ok(number)) => {
                    scratch.note(ErrorCode::UnknownError, || {
                        "Cast to signed converted positive out-of-range integer to its negative complement".into()
                    });
                    Ok(number as i64)
                }
                _ => {
                    super::convert::warn_truncated("INTEGER", text, scratch)?;
                    Ok(if number < 0 { i64::MIN } else { -1 })
                }
            }
        }
        _ => {
            let number = to_integer(value, scratch)?;
            let clamped = number.clamp(i64::MIN.into(), i64::MAX.into());
            if clamped != number {
                warn_range(value, scratch)?;
            }
            Ok(clamped as i64)
        }
    }
}

fn cast_unsigned(value: ValueRef<'_>, scratch: &Scratch) -> Result<u64> {
    match value {
        // A negative number has the same 64 bits.
        ValueRef::Json(document) => Ok(document::integer_of(document, scratch)? as u64),
        ValueRef::UInt(value) => Ok(value),
        ValueRef::Int(value) => Ok(value as u64),
        ValueRef::Bytes(text) => {
            let number = integer_of_text(text, scratch)?;
            if number < 0 && number >= i128::from(i64::MIN) {
                scratch.note(ErrorCode::UnknownError, || {
                    "Cast to unsigned converted negative integer to its positive complement".into()
                });
                return Ok(number as i64 as u64);
            }
            match u64::try_from(number) {
                Ok(number) => Ok(number),
                Err(_) => {
                    super::convert::warn_truncated("INTEGER", text, scratch)?;
                    Ok(if number < 0 { i64::MIN as u64 } else { u64::MAX })
                }
            }
        }
        ValueRef::Float(float) => cast_unsigned(ValueRef::Double(float.into()), scratch),
        ValueRef::Double(double) if double < 0.0 && double >= i64::MIN as f64 => {
            Ok(double.round_ties_even() as i64 as u64)
        }
        _ => {
            let number = to_integer(value, scratch)?;
            let clamped = number.clamp(0, u64::MAX.into());
            if clamped != number {
                warn_range(value, scratch)?;
            }
            Ok(clamped as u64)
        }
    }
}

fn integer_of_text(text: &[u8], scratch: &Scratch) -> Result<i128> {
    let parsed = parse_integer(text, false);
    if parsed.is_truncated {
        super::convert::warn_truncated("INTEGER", text, scratch)?;
    }
    Ok(parsed.value)
}

/// Rounds to `scale`. A number that exceeds `precision` becomes the largest one that fits, with warning 1264.
fn cast_decimal(number: Decimal, precision: u8, scale: u8, scratch: &Scratch) -> Result<Decimal> {
    let rounded = decimal::with_scale(number, scale).filter(|number| decimal::fits_digits(*number, precision));
    if let Some(rounded) = rounded {
        return Ok(rounded);
    }
    scratch.warn(ErrorCode::OutOfRange, || "Out of range value for column 'cast' at row 1".into())?;
    Ok(decimal::largest(precision, scale, number.is_negative()))
}

fn cast_binary<'r>(text: &'r [u8], length: Option<u32>, scratch: &'r Scratch) -> Result<ValueRef<'r>> {
    let Some(length) = length else { return Ok(ValueRef::Bytes(text)) };
    let length = length as usize;
    if length > STRING_BYTES_MAX {
        crate::function::warn_too_long("cast_as_binary", scratch)?;
        return Ok(ValueRef::Null);
    }
    if text.len() > length {
        super::convert::warn_truncated(&format!("BINARY({length})"), text, scratch)?;
    }
    if text.len() >= length {
        return Ok(ValueRef::Bytes(&text[..length]));
    }
    let filled = scratch.build_text(|buffer| {
        buffer.extend_from_slice(text);
        buffer.resize(length, 0);
    })?;
    Ok(ValueRef::Bytes(filled))
}

#[cold]
fn warn_range(value: ValueRef<'_>, scratch: &Scratch) -> Result<()> {
    let type_name = if matches!(value, ValueRef::Decimal(_)) { "DECIMAL" } else { "INTEGER" };
    let mut text = Vec::new();
    junctor_model::row_encoding::append_text(value, &mut text);
    scratch
        .warn(ErrorCode::TruncatedWrongValue, || format!("Truncated incorrect {type_name} value: '{}'", excerpt(&text)))
}
