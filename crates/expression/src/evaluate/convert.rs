//! Implicit conversions of operands. A string that is not entirely a number causes warning 1292.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::scratch::{excerpt, to_text};
use junctor_model::value::{Bit, Decimal, ValueRef};

use super::document;
use super::temporal::{rounded_to_seconds, to_temporal};

use crate::decimal;
use crate::number::{parse_decimal, parse_double, parse_integer, parse_number};
use crate::result_type::{Kind, ResultType};
use crate::scratch::Scratch;

/// The value as a double; NULL counts as 0.
#[inline]
pub(crate) fn to_double(value: ValueRef<'_>, scratch: &Scratch) -> Result<f64> {
    if let ValueRef::Json(document) = value {
        return document::double_of(document, scratch);
    }
    Ok(match value.to_double() {
        Ok(number) => number,
        Err(text) => {
            let parsed = parse_double(text);
            if parsed.is_truncated || parsed.is_out_of_range {
                warn_truncated("DOUBLE", text, scratch)?;
            }
            parsed.value
        }
    })
}

/// The value as an exact number; NULL counts as 0. One of more than 81 digits becomes the largest of 65, as
/// in MySQL.
pub(crate) fn to_decimal(value: ValueRef<'_>, scratch: &Scratch) -> Result<Decimal> {
    Ok(match value {
        ValueRef::Decimal(value) => value,
        ValueRef::Int(value) => decimal::from_integer(value.into()),
        ValueRef::UInt(value) => decimal::from_integer(value.into()),
        ValueRef::Null => decimal::from_integer(0),
        ValueRef::Double(value) => decimal::from_double(value, None).unwrap_or(largest(value < 0.0)),
        ValueRef::Bytes(text) => {
            let parsed = parse_decimal(text);
            if parsed.is_truncated || parsed.is_out_of_range {
                warn_truncated("DECIMAL", text, scratch)?;
            }
            parsed.value.unwrap_or(largest(text.trim_ascii_start().starts_with(b"-")))
        }
        ValueRef::Json(document) => return document::decimal_of(document, scratch),
        other => return to_decimal(other.as_number(), scratch),
    })
}

/// The value as an integer, not yet clamped to 64 bits; NULL counts as 0. Decimals round half away from zero,
/// doubles half to even. A string counts only up to its first character that is not a digit.
pub(crate) fn to_integer(value: ValueRef<'_>, scratch: &Scratch) -> Result<i128> {
    Ok(match value {
        ValueRef::Int(value) => value.into(),
        ValueRef::UInt(value) => value.into(),
        ValueRef::Null => 0,
        ValueRef::Double(value) => value.round_ties_even() as i128,
        ValueRef::Decimal(value) => decimal::to_integer(value),
        ValueRef::Temporal(value) => rounded_to_seconds(value).whole_number().into(),
        ValueRef::Float(_) | ValueRef::Bit(_) | ValueRef::Choice(_) => {
            return to_integer(value.as_number(), scratch);
        }
        ValueRef::Json(document) => return document::integer_of(document, scratch),
        ValueRef::Bytes(text) => {
            let parsed = parse_integer(text, false);
            if parsed.is_truncated {
                warn_truncated("INTEGER", text, scratch)?;
            }
            parsed.value
        }
    })
}

/// A text as a signed integer, with a warning for one beyond the range. In a column it is clamped. Elsewhere
/// it is read without a sign first, so that one above the largest signed integer becomes negative.
pub(crate) fn text_to_signed(text: &[u8], is_column: bool, scratch: &Scratch) -> Result<i64> {
    let parsed = parse_integer(text, false);
    let most = if is_column { i128::from(i64::MAX) } else { u64::MAX.into() };
    let clamped = parsed.value.clamp(i64::MIN.into(), most);
    if parsed.is_truncated || clamped != parsed.value {
        warn_truncated("INTEGER", text, scratch)?;
    }
    Ok(clamped as i64)
}

/// The value as a number of its own kind. A string becomes an exact integer if possible, otherwise a double.
pub(crate) fn to_number<'r>(value: ValueRef<'r>, scratch: &Scratch) -> Result<ValueRef<'r>> {
    if let ValueRef::Json(document) = value {
        return document::double_of(document, scratch).map(ValueRef::Double);
    }
    let ValueRef::Bytes(text) = value.as_number() else { return Ok(value.as_number()) };
    let parsed = parse_number(text);
    if parsed.is_truncated {
        warn_truncated("DOUBLE", text, scratch)?;
    }
    Ok(parsed.value)
}

/// The value converted to the kind of `result`; NULL stays NULL. Integers are clamped to the range of the
/// kind.
pub(crate) fn to_kind<'r>(value: ValueRef<'r>, result: &ResultType, scratch: &'r Scratch) -> Result<ValueRef<'r>> {
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    Ok(match result.kind {
        Kind::Null => ValueRef::Null,
        Kind::Int => ValueRef::Int(to_integer(value, scratch)?.clamp(i64::MIN.into(), i64::MAX.into()) as i64),
        Kind::UInt => ValueRef::UInt(to_integer(value, scratch)?.clamp(0, u64::MAX.into()) as u64),
        Kind::Double => ValueRef::Double(to_double(value, scratch)?),
        Kind::Enum | Kind::Set if matches!(value, ValueRef::Choice(_)) => value,
        // The members of an ENUM or SET are known to its column only.
        Kind::String | Kind::Enum | Kind::Set | Kind::Geometry => ValueRef::Bytes(to_text(value, scratch)?),
        Kind::Json => ValueRef::Json(super::compare::to_document(value, scratch)?),
        Kind::Float => ValueRef::Float(to_double(value, scratch)? as f32),
        Kind::Bit => {
            let number = to_integer(value, scratch)?.clamp(0, u64::MAX.into()) as u64;
            ValueRef::Bit(Bit { number, bytes: result.length.div_ceil(8).clamp(1, 8) as u8 })
        }
        Kind::Year | Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => {
            to_temporal(value, result.kind, result.scale(), scratch)?.map_or(ValueRef::Null, ValueRef::Temporal)
        }
        Kind::Decimal => {
            let number = to_decimal(value, scratch)?;
            // Padding with zeros to the scale can exceed 81 digits; the number then has fewer.
            ValueRef::Decimal(decimal::with_scale_at_most(number, result.decimals))
        }
    })
}

/// Warning 1292: only the front of the text was used as a number.
#[cold]
pub(crate) fn warn_truncated(type_name: &str, text: &[u8], scratch: &Scratch) -> Result<()> {
    scratch
        .warn(ErrorCode::TruncatedWrongValue, || format!("Truncated incorrect {type_name} value: '{}'", excerpt(text)))
}

/// The largest decimal of 65 digits, or the smallest.
pub(super) fn largest(negative: bool) -> Decimal {
    decimal::largest(decimal::DECIMAL_PRECISION_MAX, 0, negative)
}
