//! Default values as they lie on disk (`docs/format.md`, "Schema").

use serde::{Deserialize, Serialize};

use crate::decimal::DECIMAL_SCALE_MAX;
use crate::number::parse_decimal;
use crate::stored_schema::{StoredSchemaError, invalid, is_false};
use crate::temporal::{Parts, Temporal, TemporalKind};
use crate::value::{Bit, Choice, Decimal, Value};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum StoredValue {
    Null {},
    Int(i64),
    Uint(u64),
    /// The bits of the number, so that none is rounded.
    DoubleBits(u64),
    /// Digits with a sign, and how many of them follow the point.
    Decimal {
        digits: Box<str>,
        scale: u8,
    },
    /// Hexadecimal, two digits a byte.
    Bytes(Box<str>),
    /// The bits of a FLOAT.
    FloatBits(u32),
    /// A year, day or time as a number of the form YYYY, YYYYMMDD, hhmmss or YYYYMMDDhhmmss, and
    /// microseconds. A timestamp is in seconds since 1970.
    Temporal {
        kind: StoredTemporalKind,
        number: i64,
        #[serde(default, skip_serializing_if = "is_zero")]
        microsecond: u32,
        #[serde(default, skip_serializing_if = "is_false")]
        negative: bool,
        #[serde(default, skip_serializing_if = "is_zero")]
        digits: u32,
    },
    /// The bits of a BIT, and how many bytes its text has.
    Bit {
        number: u64,
        bytes: u8,
    },
    /// The number of an ENUM or SET, and its text in hexadecimal.
    Choice {
        number: u64,
        text: Box<str>,
    },
    /// A document in hexadecimal.
    Json(Box<str>),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredTemporalKind {
    Year,
    Date,
    Time,
    Datetime,
    Timestamp,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl From<&Value> for StoredValue {
    fn from(value: &Value) -> StoredValue {
        match value {
            Value::Null => StoredValue::Null {},
            Value::Int(number) => StoredValue::Int(*number),
            Value::UInt(number) => StoredValue::Uint(*number),
            Value::Double(number) => StoredValue::DoubleBits(number.to_bits()),
            Value::Decimal(number) => StoredValue::Decimal { digits: digits_of(*number), scale: number.scale() },
            Value::Bytes(bytes) => StoredValue::Bytes(hexadecimal(bytes)),
            Value::Float(number) => StoredValue::FloatBits(number.to_bits()),
            Value::Temporal(value) => stored_temporal(*value),
            Value::Bit(bit) => StoredValue::Bit { number: bit.number, bytes: bit.bytes },
            Value::Json(document) => StoredValue::Json(hexadecimal(document)),
            Value::Choice(choice) => StoredValue::Choice { number: choice.number, text: hexadecimal(&choice.text) },
        }
    }
}

/// All digits of a number with its sign, without the point.
fn digits_of(number: Decimal) -> Box<str> {
    let mut text = Vec::new();
    number.append_text(&mut text);
    text.retain(|byte| *byte != b'.');
    let digits = String::from_utf8_lossy(&text);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &*digits), |digits| ("-", digits));
    let digits = digits.trim_start_matches('0');
    format!("{sign}{}", if digits.is_empty() { "0" } else { digits }).into()
}

/// The number of such digits, the last `scale` of them after the point.
fn decimal_of(digits: &str, scale: u8) -> Result<Decimal, StoredSchemaError> {
    let is_number = digits.trim_start_matches('-').bytes().all(|digit| digit.is_ascii_digit()) && digits.len() > 1
        || digits.parse::<u8>().is_ok();
    let parsed = parse_decimal(format!("{digits}e-{scale}").as_bytes()).value;
    let number = parsed.filter(|number| is_number && number.scale() == scale.min(DECIMAL_SCALE_MAX));
    number.ok_or_else(|| invalid(format_args!("{digits} is no number")))
}

impl TryFrom<StoredValue> for Value {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredValue) -> Result<Value, StoredSchemaError> {
        Ok(match stored {
            StoredValue::Null {} => Value::Null,
            StoredValue::Int(number) => Value::Int(number),
            StoredValue::Uint(number) => Value::UInt(number),
            StoredValue::DoubleBits(bits) => Value::Double(f64::from_bits(bits)),
            StoredValue::Decimal { digits, scale } => Value::Decimal(decimal_of(&digits, scale)?),
            StoredValue::Bytes(digits) => Value::Bytes(bytes_of(&digits)?),
            StoredValue::FloatBits(bits) => Value::Float(f32::from_bits(bits)),
            StoredValue::Temporal { kind, number, microsecond, negative, digits } => {
                Value::Temporal(temporal_of(kind, number, negative, microsecond, digits as u8))
            }
            StoredValue::Bit { number, bytes } => Value::Bit(Bit { number, bytes: bytes.clamp(1, 8) }),
            StoredValue::Json(digits) => Value::Json(bytes_of(&digits)?.into()),
            StoredValue::Choice { number, text } => Value::Choice(Choice { number, text: bytes_of(&text)?.into() }),
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> Box<str> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn stored_temporal(value: Temporal) -> StoredValue {
    let parts = value.parts();
    let (kind, number) = match value.kind {
        TemporalKind::Year => (StoredTemporalKind::Year, parts.year.into()),
        TemporalKind::Timestamp => (StoredTemporalKind::Timestamp, value.instant_parts().0),
        TemporalKind::Date => (StoredTemporalKind::Date, value.whole_number()),
        TemporalKind::Time => (StoredTemporalKind::Time, value.whole_number().abs()),
        TemporalKind::DateTime => (StoredTemporalKind::Datetime, value.whole_number()),
    };
    let digits = value.digits.into();
    StoredValue::Temporal { kind, number, microsecond: parts.microsecond, negative: parts.negative, digits }
}

fn temporal_of(kind: StoredTemporalKind, number: i64, negative: bool, microsecond: u32, digits: u8) -> Temporal {
    let (date, time) = match kind {
        StoredTemporalKind::Year => return Temporal::year(number as u16),
        StoredTemporalKind::Timestamp => return Temporal::instant(number, microsecond, digits),
        StoredTemporalKind::Date => (number, 0),
        StoredTemporalKind::Time => (0, number),
        StoredTemporalKind::Datetime => (number / 1_000_000, number % 1_000_000),
    };
    let parts = Parts {
        negative,
        year: (date / 10_000) as u16,
        month: (date / 100 % 100) as u8,
        day: (date % 100) as u8,
        hour: (time / 10_000) as u16,
        minute: (time / 100 % 100) as u8,
        second: (time % 100) as u8,
        microsecond,
    };
    let kind = match kind {
        StoredTemporalKind::Date => TemporalKind::Date,
        StoredTemporalKind::Time => TemporalKind::Time,
        _ => TemporalKind::DateTime,
    };
    Temporal::from_parts(kind, digits, &parts)
}

fn bytes_of(digits: &str) -> Result<Vec<u8>, StoredSchemaError> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2);
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.ok_or_else(|| invalid(format_args!("{digits} is not hexadecimal")))
}
