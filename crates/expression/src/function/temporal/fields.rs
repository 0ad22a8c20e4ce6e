//! The fields of days and times, and days counted from a start.

use junctor_model::error::Result;
use junctor_model::temporal::{Parts, Temporal, TemporalKind, civil_of_days, days_in_month, is_date_time};
use junctor_model::value::ValueRef;

use super::super::{Call, Function, TypedCall, function, generated_text};
use super::unit::{DAY, HOUR, MICROSECOND, MINUTE, MONTH, SECOND, Unit, YEAR};
use super::{DAY_MAX, DAYS_TO_1970, clock_us, day_number, digits_of, temporal};
use crate::decimal;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(in super::super) const TABLE: &[Function] = &[
    function("YEAR", 1, 1, resolve_integer, |call| field(call, |parts| parts.year.into())),
    function("QUARTER", 1, 1, resolve_integer, |call| field(call, |parts| (i64::from(parts.month) + 2) / 3)),
    function("MONTH", 1, 1, resolve_integer, |call| field(call, |parts| parts.month.into())),
    function("DAY", 1, 1, resolve_integer, |call| field(call, |parts| parts.day.into())),
    function("DAYOFMONTH", 1, 1, resolve_integer, |call| field(call, |parts| parts.day.into())),
    function("HOUR", 1, 1, resolve_integer, |call| time_field(call, |parts| parts.hour.into())),
    function("MINUTE", 1, 1, resolve_integer, |call| time_field(call, |parts| parts.minute.into())),
    function("SECOND", 1, 1, resolve_integer, |call| time_field(call, |parts| parts.second.into())),
    function("MICROSECOND", 1, 1, resolve_integer, |call| time_field(call, |parts| parts.microsecond.into())),
    function("DAYOFWEEK", 1, 1, resolve_integer, |call| day(call, |parts| weekday(parts, true) + 1)),
    function("WEEKDAY", 1, 1, resolve_integer, |call| day(call, |parts| weekday(parts, false))),
    function("DAYOFYEAR", 1, 1, resolve_integer, |call| day(call, day_of_year)),
    function("TO_DAYS", 1, 1, resolve_integer, |call| day(call, number_of)),
    function("TO_SECONDS", 1, 1, resolve_integer, |call| day(call, seconds_of)),
    function("EXTRACT", 2, 2, resolve_integer, extract),
    function("DAYNAME", 1, 1, resolve_name, day_name),
    function("MONTHNAME", 1, 1, resolve_name, month_name),
    function("LAST_DAY", 1, 1, resolve_date, last_day),
    function("FROM_DAYS", 1, 1, resolve_date, from_days).of_numbers(),
    function("DATE", 1, 1, resolve_date, date),
    function("TIME", 1, 1, resolve_time, time),
    function("TIME_TO_SEC", 1, 1, resolve_integer, time_to_seconds),
    function("SEC_TO_TIME", 1, 1, resolve_time, seconds_to_time).of_numbers(),
    // CAST to a temporal type. The second argument of the others is the number of digits.
    function("CAST DATE", 1, 1, resolve_date, date),
    function("CAST TIME", 2, 2, |_, arguments| resolve_cast(Kind::Time, arguments), cast),
    function("CAST DATETIME", 2, 2, |_, arguments| resolve_cast(Kind::DateTime, arguments), cast),
    function("CAST YEAR", 2, 2, |_, arguments| resolve_cast(Kind::Year, arguments), cast),
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn resolve_integer(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 21).with_nullable(true) })
}

fn resolve_name(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 9)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn resolve_date(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: temporal(Kind::Date, 0) })
}

fn resolve_time(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = temporal(Kind::Time, digits_of(&arguments[0]));
    Ok(TypedCall { arguments, result })
}

fn resolve_cast(kind: Kind, arguments: Vec<Expression>) -> Result<TypedCall> {
    let digits = match arguments[1].as_constant() {
        Some(junctor_model::value::Value::Int(digits @ 0..=6)) => *digits as u8,
        _ => 0,
    };
    Ok(TypedCall { arguments, result: temporal(kind, digits) })
}

fn cast(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.rounded(0)?;
    let converted = crate::evaluate::to_temporal(value, call.result.kind, call.result.scale(), call.scratch())?;
    Ok(converted.map_or(ValueRef::Null, ValueRef::Temporal))
}

fn field(call: Call<'_>, of: fn(&Parts) -> i64) -> Result<ValueRef<'_>> {
    Ok(call.date_time(0)?.map_or(ValueRef::Null, |value| ValueRef::Int(of(&value.parts()))))
}

fn time_field(call: Call<'_>, of: fn(&Parts) -> i64) -> Result<ValueRef<'_>> {
    Ok(call.time(0)?.map_or(ValueRef::Null, |value| ValueRef::Int(of(&value.parts()))))
}

/// A field of a whole day; NULL if its month or day is 0.
fn day(call: Call<'_>, of: fn(&Parts) -> i64) -> Result<ValueRef<'_>> {
    Ok(call.whole_date_time(0)?.map_or(ValueRef::Null, |value| ValueRef::Int(of(&value.parts()))))
}

pub(super) fn number_of(parts: &Parts) -> i64 {
    day_number(parts.year, parts.month, parts.day)
}

fn seconds_of(parts: &Parts) -> i64 {
    number_of(parts) * 86_400 + (clock_us(parts) / super::SECOND_US) as i64
}

pub(super) fn day_of_year(parts: &Parts) -> i64 {
    number_of(parts) - day_number(parts.year, 1, 1) + 1
}

/// 0 for Monday, or for Sunday if that is the first day.
pub(super) fn weekday(parts: &Parts, from_sunday: bool) -> i64 {
    (number_of(parts) + 5 + i64::from(from_sunday)) % 7
}

fn extract(call: Call<'_>) -> Result<ValueRef<'_>> {
    let unit = call.text(1)?.and_then(Unit::find);
    let Some(unit) = unit else { return Ok(ValueRef::Null) };
    let is_of_time = !unit.has_date();
    let value = if is_of_time { call.time(0)? } else { extracted(call, unit)? };
    let Some(value) = value else { return Ok(ValueRef::Null) };
    let parts = value.parts();
    let number = match unit.name {
        "WEEK" => {
            let mode = super::week::Mode::of_number(0);
            if parts.month == 0 || parts.day == 0 {
                return Ok(ValueRef::Null);
            }
            super::week::week_of(&parts, mode).1
        }
        "QUARTER" => (i64::from(parts.month) + 2) / 3,
        _ => {
            let (first, last) = unit.range();
            // The hours of a TIME go on beyond a day.
            let is_time = value.kind == TemporalKind::Time;
            let (days, hours) = match is_time {
                true => (i64::from(parts.hour / 24), i64::from(parts.hour % 24)),
                false => (i64::from(parts.day), i64::from(parts.hour)),
            };
            let hours = if is_time && first >= HOUR { i64::from(parts.hour) } else { hours };
            let of = |part: usize| match part {
                YEAR => (i64::from(parts.year), 1),
                MONTH => (i64::from(parts.month), 100),
                DAY => (days, 100),
                HOUR => (hours, 100),
                MINUTE => (i64::from(parts.minute), 100),
                SECOND => (i64::from(parts.second), 100),
                MICROSECOND => (i64::from(parts.microsecond), 1_000_000),
                _ => (0, 1),
            };
            (first..=last).fold(0, |number, part| number * of(part).1 + of(part).0)
        }
    };
    Ok(ValueRef::Int(if parts.negative { -number } else { number }))
}

/// The value for a unit that begins with days or longer parts. DAY_HOUR and the like also accept times.
fn extracted(call: Call<'_>, unit: Unit) -> Result<Option<Temporal>> {
    let is_time = unit.has_time()
        && match call.rounded(0)? {
            ValueRef::Temporal(value) => value.kind == TemporalKind::Time,
            ValueRef::Bytes(text) => !is_date_time(text),
            _ => false,
        };
    if is_time { call.time(0) } else { call.date_time(0) }
}

fn day_name(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.whole_date_time(0)?;
    let locale = call.scratch().value_rules().locale();
    let name = |value: Temporal| locale.day(weekday(&value.parts(), false) as usize);
    Ok(value.map_or(ValueRef::Null, |value| ValueRef::Bytes(name(value).as_bytes())))
}

fn month_name(call: Call<'_>) -> Result<ValueRef<'_>> {
    let month = call.date_time(0)?.map_or(0, |value| value.parts().month);
    let name = call.scratch().value_rules().locale().month(month);
    Ok(name.map_or(ValueRef::Null, |name| ValueRef::Bytes(name.as_bytes())))
}

fn last_day(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(value) = call.date_time(0)? else { return Ok(ValueRef::Null) };
    let parts = value.parts();
    if parts.month == 0 {
        return Ok(ValueRef::Null);
    }
    let day = days_in_month(parts.year, parts.month);
    Ok(ValueRef::Temporal(Temporal::date(parts.year, parts.month, day)))
}

/// Days before year 1 are the zero date.
fn from_days(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(number) = call.integer(0)? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Temporal(date_of_number(number)))
}

/// The day of a number as TO_DAYS gives it; the zero date outside the years 1 to 9999.
pub(super) fn date_of_number(number: i64) -> Temporal {
    if !(366..=DAY_MAX).contains(&number) {
        return Temporal::date(0, 0, 0);
    }
    let (year, month, day) = civil_of_days(number - DAYS_TO_1970);
    Temporal::date(year as u16, month, day)
}

fn date(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.date_time(0)?.map_or(ValueRef::Null, |value| ValueRef::Temporal(value.to_date())))
}

fn time(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.rounded(0)?;
    let converted = crate::evaluate::to_temporal(value, Kind::Time, call.result.scale(), call.scratch())?;
    Ok(converted.map_or(ValueRef::Null, ValueRef::Temporal))
}

fn time_to_seconds(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(value) = call.time(0)? else { return Ok(ValueRef::Null) };
    let parts = value.parts();
    let seconds = (clock_us(&parts) / super::SECOND_US) as i64;
    Ok(ValueRef::Int(if parts.negative { -seconds } else { seconds }))
}

fn seconds_to_time(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.rounded(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let number = crate::evaluate::to_decimal(value, call.scratch())?;
    let scaled = decimal::with_scale(number, call.result.scale()).and_then(|number| decimal::with_scale(number, 6));
    let microseconds = scaled.map_or(i128::MAX / 2, |number| number.clamped_mantissa().clamp(-(1 << 100), 1 << 100));
    let (time, is_beyond) = super::time_of_us(microseconds, call.result.scale());
    if is_beyond {
        let mut shown = Vec::new();
        junctor_model::row_encoding::append_text(value, &mut shown);
        call.warn_time_range(&String::from_utf8_lossy(&shown))?;
    }
    Ok(ValueRef::Temporal(time))
}
