//! Documents where a number, a day or a time is wanted. A scalar of a fitting type is one, and so is a string
//! that is one entirely. Anything else counts as 0 or NULL, with warning 3156. A number beyond the range of
//! its type is the nearest limit, with warning 3155.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::json::Json;
use junctor_model::temporal::{DateRules, Read, TemporalKind, parse_date_time, parse_time};
use junctor_model::value::Decimal;

use crate::decimal;
use crate::number::{Parsed, parse_decimal, parse_double, parse_integer};
use crate::scratch::Scratch;

/// The document as a double.
#[cold]
pub(super) fn double_of(document: &[u8], scratch: &Scratch) -> Result<f64> {
    Ok(match Json::of(document) {
        Json::Boolean(value) => f64::from(value),
        Json::Int(value) => value as f64,
        Json::UInt(value) => value as f64,
        Json::Double(value) => value,
        Json::Decimal(value) => value.to_double(),
        Json::String(text) => {
            let parsed = parse_double(text);
            warn_of_text(&parsed, text, "DOUBLE", scratch)?;
            parsed.value
        }
        _ => {
            warn_wrong("DOUBLE", scratch)?;
            0.0
        }
    })
}

/// The document as an integer of 64 bits, signed or not. Decimals round half away from zero, doubles half to
/// even and to a signed integer; a string counts up to its first character that is not a digit.
#[cold]
pub(super) fn integer_of(document: &[u8], scratch: &Scratch) -> Result<i128> {
    let (least, most) = (i128::from(i64::MIN), i128::from(u64::MAX));
    Ok(match Json::of(document) {
        Json::Boolean(value) => value.into(),
        Json::Int(value) => value.into(),
        Json::UInt(value) => value.into(),
        Json::Decimal(value) => decimal::to_integer(value).clamp(least, most),
        Json::Double(value) if value <= i64::MIN as f64 || value >= i64::MAX as f64 => {
            warn_range("INTEGER", scratch)?;
            if value < 0.0 { least } else { i64::MAX.into() }
        }
        Json::Double(value) => value.round_ties_even() as i128,
        Json::String(text) => {
            let parsed = parse_integer(text, false);
            let clamped = parsed.value.clamp(least, most);
            let parsed = Parsed { is_out_of_range: clamped != parsed.value, ..parsed };
            warn_of_text(&parsed, text, "INTEGER", scratch)?;
            clamped
        }
        _ => {
            warn_wrong("INTEGER", scratch)?;
            0
        }
    })
}

/// The document as an exact number.
#[cold]
pub(super) fn decimal_of(document: &[u8], scratch: &Scratch) -> Result<Decimal> {
    Ok(match Json::of(document) {
        Json::Boolean(value) => decimal::from_integer(value.into()),
        Json::Int(value) => decimal::from_integer(value.into()),
        Json::UInt(value) => decimal::from_integer(value.into()),
        Json::Decimal(value) => value,
        Json::Double(value) => match decimal::from_double(value, None) {
            Some(number) => number,
            None => {
                warn_range("DECIMAL", scratch)?;
                super::convert::largest(value < 0.0)
            }
        },
        Json::String(text) => {
            let parsed = parse_decimal(text);
            warn_of_text(&parsed, text, "DECIMAL", scratch)?;
            parsed.value.unwrap_or(super::convert::largest(text.trim_ascii_start().starts_with(b"-")))
        }
        _ => {
            warn_wrong("DECIMAL", scratch)?;
            decimal::from_integer(0)
        }
    })
}

/// The day or time that the document is; `None` for another value. A TIME is no day, and a day is no TIME.
#[cold]
pub(super) fn temporal_of(document: &[u8], kind: TemporalKind, scratch: &Scratch) -> Result<Option<Read>> {
    let wants_time = kind == TemporalKind::Time;
    let read = match Json::of(document) {
        Json::Temporal(value) if (value.kind == TemporalKind::Time) == wants_time => {
            Some(Read::from_parts(kind, value.parts()))
        }
        // Digits alone are no TIME.
        Json::String(text) if wants_time => text.contains(&b':').then(|| parse_time(text, None)),
        Json::String(text) => Some(parse_date_time(text, DateRules::FUZZY)),
        _ => None,
    };
    let read = read.filter(|read| read.parts.is_some() && read.defects.is_none());
    if read.is_none() {
        warn_wrong("DATE/TIME/DATETIME/TIMESTAMP", scratch)?;
    }
    Ok(read)
}

/// Unlike in a text, white space after the number is wrong.
fn warn_of_text<T>(parsed: &Parsed<T>, text: &[u8], type_name: &str, scratch: &Scratch) -> Result<()> {
    if parsed.is_out_of_range {
        warn_range(type_name, scratch)
    } else if parsed.is_truncated || text.last().is_some_and(u8::is_ascii_whitespace) {
        warn_wrong(type_name, scratch)
    } else {
        Ok(())
    }
}

fn warn_wrong(type_name: &str, scratch: &Scratch) -> Result<()> {
    scratch.warn(ErrorCode::WrongJsonCast, || {
        format!("Invalid JSON value for CAST to {type_name} from column json at row 1")
    })
}

fn warn_range(type_name: &str, scratch: &Scratch) -> Result<()> {
    let message = || format!("Out of range JSON value for CAST to {type_name} from column json at row 1");
    scratch.warn(ErrorCode::JsonNumberOutOfRange, message)
}
