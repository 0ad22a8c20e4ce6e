//! Days and times made of numbers, and periods.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::temporal::{Parts, Temporal, TemporalKind, YEAR_MAX};
use junctor_model::value::ValueRef;

use super::super::{Call, Function, TypedCall, any_nullable, function, generated_text};
use super::arithmetic::shifted;
use super::fields::date_of_number;
use super::unit::{Interval, MICROSECOND};
use super::{DAY_MAX, SECOND_US, clock_us, day_number, digits_of, temporal, time_of_us};
use crate::decimal;
use crate::evaluate::to_decimal;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(in super::super) const TABLE: &[Function] = &[
    function("MAKEDATE", 2, 2, resolve_date, make_date).of_numbers(),
    function("MAKETIME", 3, 3, resolve_time, make_time).of_numbers(),
    function("TIMESTAMP", 1, 2, resolve_timestamp, timestamp),
    function("PERIOD_ADD", 2, 2, resolve_period, period_add).of_numbers(),
    function("PERIOD_DIFF", 2, 2, resolve_period, period_difference).of_numbers(),
    function("GET_FORMAT", 2, 2, resolve_format, get_format),
];

fn resolve_date(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: temporal(Kind::Date, 0) })
}

fn resolve_time(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = temporal(Kind::Time, digits_of(&arguments[2]));
    Ok(TypedCall { arguments, result })
}

fn resolve_timestamp(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let digits = arguments.iter().map(digits_of).max().unwrap_or(0);
    Ok(TypedCall { arguments, result: temporal(Kind::DateTime, digits) })
}

fn resolve_period(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::integer(false, 6).with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

fn resolve_format(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 17)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn with_century(year: i64) -> i64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// NULL for a day below 1 or beyond the year 9999.
fn make_date(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(year), Some(day)) = (call.integer(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    let year = with_century(year);
    if !(0..=i64::from(YEAR_MAX)).contains(&year) || day <= 0 {
        return Ok(ValueRef::Null);
    }
    let number = day_number(year as u16, 1, 1).saturating_add(day - 1);
    Ok(if (1..=DAY_MAX).contains(&number) { ValueRef::Temporal(date_of_number(number)) } else { ValueRef::Null })
}

fn make_time(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (hour, minute, second) = (call.integer(0)?, call.integer(1)?, call.rounded(2)?);
    let (Some(hour), Some(minute), false) = (hour, minute, second.is_null()) else { return Ok(ValueRef::Null) };
    let second = to_decimal(second, call.scratch())?;
    let scaled = decimal::with_scale(second, call.result.scale()).and_then(|second| decimal::with_scale(second, 6));
    let Some(microseconds) = scaled.map(|second| second.clamped_mantissa()) else { return Ok(ValueRef::Null) };
    if !(0..60).contains(&minute) || !(0..60 * SECOND_US).contains(&microseconds) {
        return Ok(ValueRef::Null);
    }
    let magnitude =
        i128::from(hour.unsigned_abs()) * 3600 * SECOND_US + i128::from(minute) * 60 * SECOND_US + microseconds;
    let (time, is_beyond) = time_of_us(if hour < 0 { -magnitude } else { magnitude }, call.result.scale());
    if is_beyond {
        call.warn_time_range(&format!("{hour:02}:{minute:02}:{:02}", microseconds / SECOND_US))?;
    }
    Ok(ValueRef::Temporal(time))
}

/// The day and time, with a time added.
fn timestamp(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.rounded(0)?;
    let converted = crate::evaluate::to_temporal(value, Kind::DateTime, call.result.scale(), call.scratch())?;
    let Some(start) = converted else { return Ok(ValueRef::Null) };
    if call.count() == 1 {
        return Ok(ValueRef::Temporal(start));
    }
    let Some(time) = call.time(1)? else { return Ok(ValueRef::Null) };
    let time = time.parts();
    let mut interval = Interval::default();
    let added = clock_us(&time) as i64;
    interval.parts[MICROSECOND] = if time.negative { -added } else { added };
    let parts = start.parts();
    if parts.month == 0 || parts.day == 0 {
        call.warn_incorrect("datetime", 0)?;
        return Ok(ValueRef::Null);
    }
    match shifted(&parts, interval) {
        Some(sum) => Ok(ValueRef::Temporal(from_parts(&sum, call.result.scale()))),
        None => call.field_overflow("datetime"),
    }
}

fn from_parts(parts: &Parts, digits: u8) -> Temporal {
    Temporal::from_parts(TemporalKind::DateTime, digits, parts)
}

/// The months of a period YYMM or YYYYMM. Error 1210 for a month that is none.
fn months_of(name: &str, period: i64) -> Result<i64> {
    if !(1..=12).contains(&(period % 100)) || period <= 0 {
        return Err(Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {name}")));
    }
    Ok(with_century(period / 100) * 12 + period % 100 - 1)
}

fn period_add(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(period) = call.integer(0)? else { return Ok(ValueRef::Null) };
    let Some(months) = call.integer(1)? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(period_of(months_of("period_add", period)?.wrapping_add(months) as u64)))
}

/// The period of a number of months. As in MySQL, the arithmetic is modulo 2 to the 64th.
fn period_of(months: u64) -> i64 {
    if months == 0 {
        return 0;
    }
    let year = match months / 12 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    year.wrapping_mul(100).wrapping_add(months % 12 + 1) as i64
}

fn period_difference(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(left) = call.integer(0)? else { return Ok(ValueRef::Null) };
    let Some(right) = call.integer(1)? else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(months_of("period_diff", left)? - months_of("period_diff", right)?))
}

/// The format of a region for DATE_FORMAT.
fn get_format(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(kind), Some(region)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    let formats: [(&str, [&str; 3]); 5] = [
        ("USA", ["%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"]),
        ("JIS", ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"]),
        ("ISO", ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"]),
        ("EUR", ["%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"]),
        ("INTERNAL", ["%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"]),
    ];
    let place = match kind.to_ascii_uppercase().as_slice() {
        b"DATE" => 0,
        b"TIME" => 1,
        _ => 2,
    };
    let found = formats.into_iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(region));
    Ok(found.map_or(ValueRef::Null, |(_, formats)| ValueRef::Bytes(formats[place].as_bytes())))
}
