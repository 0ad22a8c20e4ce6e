//! Values as days and times. A text or number that is none causes warning 1292.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::number::parse_integer;
use junctor_model::row_encoding::append_text;
use junctor_model::scratch::excerpt;
use junctor_model::temporal::{
    DateRules, Parts, Read, Temporal, TemporalKind, fitted, number_parts, parse_date_time, parse_number, parse_time,
    parse_time_number, rounded,
};
use junctor_model::value::ValueRef;

use super::document;
use crate::result_type::Kind;
use crate::scratch::Scratch;

/// The value as a DATETIME with microseconds; the zero date if it is none.
pub(crate) fn to_date_time(value: ValueRef<'_>, scratch: &Scratch) -> Result<Temporal> {
    let read = match value {
        ValueRef::Temporal(value) if value.kind != TemporalKind::Year => return Ok(moment_of(value, scratch)),
        ValueRef::Temporal(value) => return Ok(moment_of_year(value)),
        ValueRef::Null => Read::from_parts(TemporalKind::DateTime, Parts::default()),
        ValueRef::Bytes(text) => parse_date_time(text, scratch.value_rules().fuzzy_dates()),
        ValueRef::Choice(choice) => parse_date_time(&choice.to_choice().text, scratch.value_rules().fuzzy_dates()),
        number => {
            let (whole, nanoseconds, negative) = number_parts(number);
            parse_number(if negative { whole.min(-1) } else { whole }, nanoseconds, DateRules::FUZZY)
        }
    };
    warn_unless_read(&read, "datetime", value, scratch)?;
    let parts = read.parts.unwrap_or_default();
    Ok(Temporal::from_parts(TemporalKind::DateTime, 6, &parts))
}

/// A value other than YEAR as DATETIME. A TIME is on the day of the statement.
fn moment_of(value: Temporal, scratch: &Scratch) -> Temporal {
    match value.kind {
        TemporalKind::Time => scratch.on_this_day(value).unwrap_or(value.to_date_time()),
        _ => value.to_date_time(),
    }
}

/// A YEAR before its first month, as MySQL compares it with days. The year 0000 is 2000 there.
fn moment_of_year(value: Temporal) -> Temporal {
    let year = if value.is_zero() { 2000 } else { value.parts().year };
    Temporal::from_parts(TemporalKind::DateTime, 0, &Parts { year, ..Parts::default() })
}

/// The value as a TIME with microseconds; zero if it is none.
pub(crate) fn to_time(value: ValueRef<'_>, scratch: &Scratch) -> Result<Temporal> {
    let read = match value {
        ValueRef::Temporal(value) if value.kind != TemporalKind::Year => return Ok(value.to_time()),
        ValueRef::Null => Read::from_parts(TemporalKind::Time, Parts::default()),
        ValueRef::Bytes(text) => parse_time(text, Some(scratch.value_rules().zone())),
        ValueRef::Choice(choice) => parse_time(&choice.to_choice().text, Some(scratch.value_rules().zone())),
        number => {
            let (whole, nanoseconds, negative) = number_parts(number);
            parse_time_number(whole, negative, nanoseconds)
        }
    };
    warn_unless_read(&read, "time", value, scratch)?;
    Ok(Temporal::from_parts(TemporalKind::Time, 6, &read.parts.unwrap_or_default()))
}

/// The value as one of a temporal kind with this many digits, rounded; `None` with a warning if it is none.
/// NULL stays.
pub(crate) fn to_temporal(value: ValueRef<'_>, kind: Kind, digits: u8, scratch: &Scratch) -> Result<Option<Temporal>> {
    let Some(temporal_kind) = kind.temporal() else { return Ok(None) };
    if value.is_null() {
        return Ok(None);
    }
    let name = match temporal_kind {
        TemporalKind::Year => return to_year(value, scratch),
        TemporalKind::Date => "date",
        TemporalKind::Time => "time",
        TemporalKind::DateTime | TemporalKind::Timestamp => "datetime",
    };
    let read = match (value, temporal_kind) {
        (ValueRef::Temporal(value), _) if value.kind != TemporalKind::Year => {
            let parts = if temporal_kind == TemporalKind::Time { value.to_time() } else { moment_of(value, scratch) };
            Read::from_parts(temporal_kind, parts.parts())
        }
        (ValueRef::Json(document), _) => match document::temporal_of(document, temporal_kind, scratch)? {
            Some(read) => read,
            None => return Ok(None),
        },
        (ValueRef::Bytes(text), TemporalKind::Time) => parse_time(text, Some(scratch.value_rules().zone())),
        (ValueRef::Bytes(text), _) => parse_date_time(text, scratch.value_rules().fuzzy_dates()),
        (ValueRef::Choice(choice), TemporalKind::Time) => {
            parse_time(&choice.to_choice().text, Some(scratch.value_rules().zone()))
        }
        (ValueRef::Choice(choice), _) => parse_date_time(&choice.to_choice().text, scratch.value_rules().fuzzy_dates()),
        (number, TemporalKind::Time) => {
            let (whole, nanoseconds, negative) = number_parts(number);
            parse_time_number(whole, negative, nanoseconds)
        }
        (number, _) => {
            let (whole, nanoseconds, negative) = number_parts(number);
            parse_number(if negative { whole.min(-1) } else { whole }, nanoseconds, DateRules::FUZZY)
        }
    };
    warn_unless_read(&read, name, value, scratch)?;
    let Some(parts) = read.parts else { return Ok(None) };
    let rounded = match temporal_kind {
        TemporalKind::Date => Some(parts),
        _ => fitted(scratch.value_rules(), temporal_kind, parts, read.nanoseconds, digits).0,
    };
    Ok(rounded.map(|parts| Temporal::from_parts(temporal_kind, digits, &parts)))
}

/// The value as a YEAR; `None` with a warning if it is none. The number 0 is the year 0000, the text '0' the
/// year 2000. A day or time has its own year.
fn to_year(value: ValueRef<'_>, scratch: &Scratch) -> Result<Option<Temporal>> {
    let choice = if let ValueRef::Choice(choice) = value { Some(choice.to_choice()) } else { None };
    let text = match (value, &choice) {
        (ValueRef::Bytes(text), _) => Some(text),
        (_, Some(choice)) => Some(&*choice.text),
        _ => None,
    };
    let (number, is_text) = match (text, value) {
        (Some(text), _) => {
            let parsed = parse_integer(text, true);
            if parsed.is_missing || parsed.is_truncated {
                super::convert::warn_truncated("YEAR", text, scratch)?;
            }
            (if parsed.is_missing { -1 } else { parsed.value }, true)
        }
        (None, ValueRef::Temporal(year)) if year.kind == TemporalKind::Year => return Ok(Some(year)),
        (None, ValueRef::Temporal(value)) => (moment_of(value, scratch).parts().year.into(), false),
        (None, number) => (super::to_integer(number, scratch)?, false),
    };
    let year = match number {
        0 if is_text => 2000,
        1..=69 => 2000 + number as u16,
        70..=99 => 1900 + number as u16,
        0 | 1901..=2155 => number as u16,
        // A text without a number has its warning already.
        -1 if is_text => return Ok(None),
        number => {
            super::convert::warn_truncated("YEAR", number.to_string().as_bytes(), scratch)?;
            return Ok(None);
        }
    };
    Ok(Some(Temporal::year(year)))
}

/// The value with its seconds rounded to whole ones.
pub(super) fn rounded_to_seconds(value: Temporal) -> Temporal {
    let parts = rounded(value.kind, value.parts(), 0, 0).0.unwrap_or(value.parts());
    Temporal::from_parts(value.kind, 0, &parts)
}

fn warn_unless_read(read: &Read, type_name: &str, value: ValueRef<'_>, scratch: &Scratch) -> Result<()> {
    if read.defects.is_none() {
        return Ok(());
    }
    warn_incorrect(read, type_name, value, scratch)
}

#[cold]
fn warn_incorrect(read: &Read, type_name: &str, value: ValueRef<'_>, scratch: &Scratch) -> Result<()> {
    let mut text = Vec::new();
    append_text(value, &mut text);
    let what = match read.parts {
        None if type_name != "time" => "Incorrect",
        _ => "Truncated incorrect",
    };
    scratch.warn(ErrorCode::TruncatedWrongValue, || format!("{what} {type_name} value: '{}'", excerpt(&text)))
}
