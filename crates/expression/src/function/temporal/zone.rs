//! Time zones: CONVERT_TZ, FROM_UNIXTIME and UNIX_TIMESTAMP.

use junctor_model::error::Result;
use junctor_model::temporal::{Parts, Temporal, TemporalKind, Zone, add_seconds};
use junctor_model::value::{Decimal, ValueRef};

use super::super::{Call, Function, Setting, TypedCall, function, generated_text};
use super::format::append_formatted;
use super::{SECOND_US, digits_of, temporal};
use crate::decimal;
use crate::evaluate::to_decimal;
use crate::program::{Expression, Node};
use crate::result_type::{Kind, ResultType};

/// The zone of the session follows the written arguments.
pub(in super::super) const TABLE: &[Function] = &[
    function("CONVERT_TZ", 3, 3, resolve_convert, convert),
    function("FROM_UNIXTIME", 1, 2, resolve_from_unix, from_unix).with(ZONE).of_numbers(),
    function("UNIX_TIMESTAMP", 0, 1, resolve_to_unix, to_unix).with(ZONE),
    function("AT TIME ZONE", 1, 1, resolve_in_utc, in_utc),
];

const ZONE: &[Setting] = &[Setting::Variable("time_zone")];
/// The greatest argument of FROM_UNIXTIME: 3001-01-18 23:59:59 in UTC, as in MySQL 8.0.28.
const UNIX_MAX: i128 = 32_536_771_199;

/// The zone that an argument names; `None` for NULL and unknown names.
fn zone(call: Call<'_>, position: usize) -> Result<Option<Zone>> {
    let name = call.text(position)?.and_then(|name| std::str::from_utf8(name).ok());
    Ok(name.and_then(Zone::find))
}

fn resolve_convert(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = temporal(Kind::DateTime, digits_of(&arguments[0]));
    Ok(TypedCall { arguments, result })
}

/// NULL for an unknown zone. A time that TIMESTAMP cannot have in UTC is not converted.
fn convert(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (from, to) = (zone(call, 1)?, zone(call, 2)?);
    let value = call.rounded(0)?;
    let read = crate::evaluate::to_temporal(value, Kind::DateTime, call.result.scale(), call.scratch())?;
    let Some(value) = read else { return Ok(ValueRef::Null) };
    let (Some(from), Some(to)) = (from, to) else { return Ok(ValueRef::Null) };
    let parts = value.parts();
    if parts.month == 0 || parts.day == 0 {
        call.warn_incorrect("datetime", 0)?;
        return Ok(ValueRef::Null);
    }
    let utc = from.to_utc(&parts).seconds;
    if !(0..=UNIX_MAX as i64).contains(&utc) {
        return Ok(ValueRef::Temporal(value));
    }
    let Some(moved) = parts_at(utc, to, parts.microsecond) else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Temporal(Temporal::from_parts(TemporalKind::DateTime, call.result.scale(), &moved)))
}

fn resolve_in_utc(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = temporal(Kind::DateTime, digits_of(&arguments[0]));
    Ok(TypedCall { arguments, result })
}

/// A TIMESTAMP as DATETIME in UTC. A stored column is exact; other values come back from the zone of the
/// session, where a time that the clocks show twice is the first.
fn in_utc(call: Call<'_>) -> Result<ValueRef<'_>> {
    if let Some(instant) = stored_instant(call) {
        return Ok(ValueRef::Temporal(Zone::UTC.date_time_of(instant)));
    }
    let ValueRef::Temporal(value) = call.value(0)? else { return Ok(ValueRef::Null) };
    let zone = call.scratch().value_rules().zone();
    Ok(match zone.instant_of(&value.parts(), value.digits) {
        Some((instant, _)) => ValueRef::Temporal(Zone::UTC.date_time_of(instant)),
        None if value.is_zero() => ValueRef::Temporal(value),
        None => ValueRef::Null,
    })
}

/// The instant in a TIMESTAMP column that is the first argument. The zone of the session may show two
/// instants alike.
fn stored_instant(call: Call<'_>) -> Option<Temporal> {
    match (&call.arguments[0].node, call.context.row?) {
        (Node::Column { index, .. }, row) => match row.column(*index) {
            ValueRef::Temporal(instant) if instant.kind == TemporalKind::Timestamp => Some(instant),
            _ => None,
        },
        _ => None,
    }
}

fn parts_at(utc: i64, zone: Zone, microsecond: u32) -> Option<Parts> {
    let start = Parts { year: 1970, month: 1, day: 1, ..Parts::default() };
    let parts = add_seconds(&start, utc + zone.offset_at(utc))?;
    Some(Parts { microsecond, ..parts })
}

fn resolve_from_unix(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    // The value, perhaps a format, and the zone.
    if arguments.len() == 3 {
        let length = arguments[1].result.length.saturating_mul(10);
        let mut resolved = generated_text(name, arguments, length)?;
        resolved.result.nullable = true;
        return Ok(resolved);
    }
    let digits = match arguments[0].result.kind {
        Kind::String => 6,
        _ => digits_of(&arguments[0]),
    };
    Ok(TypedCall { arguments, result: temporal(Kind::DateTime, digits) })
}

/// NULL for a negative number, and beyond the year 3000.
fn from_unix(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.rounded(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let number = to_decimal(value, call.scratch())?;
    let digits = if call.result.kind == Kind::DateTime { call.result.scale() } else { 6 };
    let rounded = decimal::with_scale(number, digits).and_then(|number| decimal::with_scale(number, 6));
    let Some(microseconds) = rounded.map(Decimal::clamped_mantissa) else { return Ok(ValueRef::Null) };
    if !(0..(UNIX_MAX + 1) * SECOND_US).contains(&microseconds) {
        return Ok(ValueRef::Null);
    }
    let zone = zone(call, call.count() - 1)?.unwrap_or(Zone::UTC);
    let (seconds, rest) = ((microseconds / SECOND_US) as i64, (microseconds % SECOND_US) as u32);
    let Some(parts) = parts_at(seconds, zone, rest) else { return Ok(ValueRef::Null) };
    if call.result.kind == Kind::DateTime {
        return Ok(ValueRef::Temporal(Temporal::from_parts(TemporalKind::DateTime, digits, &parts)));
    }
    let Some(format) = call.text(1)?.filter(|format| !format.is_empty()) else { return Ok(ValueRef::Null) };
    let locale = call.scratch().value_rules().locale();
    let built =
        call.scratch().build(|buffer| Ok(append_formatted(&parts, format, (false, locale), buffer).is_some()))?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

fn resolve_to_unix(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let digits = digits_of(&arguments[0]);
    let result = match digits {
        0 => ResultType::integer(false, 11),
        digits => ResultType::decimal(11 + u32::from(digits), digits),
    };
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

/// 0 for a day that is none, and outside 1970 to 3000.
fn to_unix(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.count() < 2 {
        // Without an argument, the session computes the value.
        return Ok(ValueRef::Null);
    }
    let instant = stored_instant(call).map(|instant| ValueRef::Temporal(Zone::UTC.date_time_of(instant)));
    let zone = if instant.is_some() { Zone::UTC } else { zone(call, 1)?.unwrap_or(Zone::UTC) };
    let value = instant.map_or_else(|| call.rounded(0), Ok)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let scale = call.result.scale();
    let number = |microseconds: i128| match scale {
        0 => ValueRef::Int((microseconds / SECOND_US) as i64),
        scale => {
            let unit = 10i128.pow(u32::from(6 - scale));
            ValueRef::Decimal(Decimal::Narrow { mantissa: microseconds / unit, scale })
        }
    };
    let read = crate::evaluate::to_temporal(value, Kind::DateTime, 6, call.scratch())?;
    let Some(parts) = read.map(Temporal::parts) else { return Ok(number(0)) };
    let is_day = parts.month > 0 && parts.day > 0;
    let seconds = if is_day { zone.to_utc(&parts).seconds } else { 0 };
    if !(0..=UNIX_MAX as i64).contains(&seconds) || !is_day {
        return Ok(number(0));
    }
    Ok(number(i128::from(seconds) * SECOND_US + i128::from(parts.microsecond)))
}
