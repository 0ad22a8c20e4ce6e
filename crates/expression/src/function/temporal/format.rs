//! DATE_FORMAT and TIME_FORMAT.

use std::io::Write;

use junctor_model::error::Result;
use junctor_model::locale::Locale;
use junctor_model::temporal::Parts;
use junctor_model::value::ValueRef;

use super::super::{Call, Function, TypedCall, function, generated_text};
use super::fields::{day_of_year, weekday};
use super::week::{Mode, week_of};
use crate::program::Expression;

pub(in super::super) const TABLE: &[Function] =
    &[function("DATE_FORMAT", 2, 2, resolve, date_format), function("TIME_FORMAT", 2, 2, resolve, time_format)];

/// Characters that a specifier of two may become: the name of a month or day.
const LONGEST: u32 = 10;

fn resolve(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = arguments[1].result.length.saturating_mul(LONGEST);
    let mut resolved = generated_text(name, arguments, length)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn date_format(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(value), Some(format)) = (call.date_time(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    formatted(call, &value.parts(), format, false)
}

fn time_format(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(value), Some(format)) = (call.time(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    formatted(call, &value.parts(), format, true)
}

/// NULL if the format is empty or needs a part that the value does not have.
fn formatted<'r>(call: Call<'r>, parts: &Parts, format: &[u8], is_time: bool) -> Result<ValueRef<'r>> {
    if format.is_empty() {
        return Ok(ValueRef::Null);
    }
    let locale = call.scratch().value_rules().locale();
    let built =
        call.scratch().build(|buffer| Ok(append_formatted(parts, format, (is_time, locale), buffer).is_some()))?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

/// Appends the formatted value; `None` if it has no such text.
pub(super) fn append_formatted(
    parts: &Parts,
    format: &[u8],
    (is_time, locale): (bool, Locale),
    out: &mut Vec<u8>,
) -> Option<()> {
    if parts.negative && is_time {
        out.push(b'-');
    }
    let mut bytes = format.iter();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.clone().next()) {
            (b'%', Some(specifier)) => {
                bytes.next();
                append_specifier(*specifier, parts, (is_time, locale), out)?;
            }
            _ => out.push(*byte),
        }
    }
    Some(())
}

fn append_specifier(specifier: u8, parts: &Parts, (is_time, locale): (bool, Locale), out: &mut Vec<u8>) -> Option<()> {
    let mut number = |value: i64, width: usize| {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{value:0width$}");
        Some(())
    };
    let hour = i64::from(parts.hour);
    let hour_of_12 = (hour % 24 + 11) % 12 + 1;
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let (minute, second) = (i64::from(parts.minute), i64::from(parts.second));
    let has_day = !is_time && (parts.month > 0 || parts.year > 0);
    let mode = |from_monday: bool, of_year: bool| Mode { from_monday, of_year, begins_in_year: !from_monday };
    match specifier {
        b'Y' => number(parts.year.into(), 4),
        b'y' => number((parts.year % 100).into(), 2),
        b'm' => number(parts.month.into(), 2),
        b'c' => number(parts.month.into(), 1),
        b'd' => number(parts.day.into(), 2),
        b'e' => number(parts.day.into(), 1),
        b'H' => number(hour, 2),
        b'k' => number(hour, 1),
        b'h' | b'I' => number(hour_of_12, 2),
        b'l' => number(hour_of_12, 1),
        b'i' => number(minute, 2),
        b'S' | b's' => number(second, 2),
        b'f' => number(parts.microsecond.into(), 6),
        b'j' if is_time => None,
        b'j' => number(if parts.month == 0 || parts.day == 0 { 0 } else { day_of_year(parts) }, 3),
        b'w' if has_day => number(weekday(parts, true), 1),
        b'U' if has_day => number(week_of(parts, mode(false, false)).1, 2),
        b'u' if has_day => number(week_of(parts, mode(true, false)).1, 2),
        b'V' if has_day => number(week_of(parts, mode(false, true)).1, 2),
        b'v' if has_day => number(week_of(parts, mode(true, true)).1, 2),
        b'X' if has_day => number(week_of(parts, mode(false, true)).0, 4),
        b'x' if has_day => number(week_of(parts, mode(true, true)).0, 4),
        b'w' | b'U' | b'u' | b'V' | b'v' | b'X' | b'x' => None,
        b'M' | b'b' => {
            let name = if specifier == b'M' { locale.month(parts.month) } else { locale.month_short(parts.month) };
            out.extend_from_slice(name?.as_bytes());
            Some(())
        }
        b'W' | b'a' if has_day => {
            let day = weekday(parts, false) as usize;
            let name = if specifier == b'W' { locale.day(day) } else { locale.day_short(day) };
            out.extend_from_slice(name.as_bytes());
            Some(())
        }
        b'W' | b'a' => None,
        b'D' => {
            let suffix = match (parts.day / 10, parts.day % 10) {
                (1, _) => "th",
                (_, 1) => "st",
                (_, 2) => "nd",
                (_, 3) => "rd",
                _ => "th",
            };
            let _ = write!(out, "{}{suffix}", parts.day);
            Some(())
        }
        b'p' => {
            out.extend_from_slice(half.as_bytes());
            Some(())
        }
        b'r' => {
            let _ = write!(out, "{hour_of_12:02}:{minute:02}:{second:02} {half}");
            Some(())
        }
        b'T' => {
            let _ = write!(out, "{hour:02}:{minute:02}:{second:02}");
            Some(())
        }
        other => {
            out.push(other);
            Some(())
        }
    }
}
