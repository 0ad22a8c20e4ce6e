//! Intervals that are added: DATE_ADD, DATE_SUB, ADDTIME and their kin.

use junctor_model::decimal;
use junctor_model::error::Result;
use junctor_model::temporal::{
    DateRules, Parts, Temporal, TemporalKind, YEAR_MAX, civil_of_days, days_in_month, days_of_civil, is_date_time,
    parse_date_time,
};
use junctor_model::value::ValueRef;

use super::super::{Call, Function, TypedCall, function};
use super::unit::{Interval, Unit};
use super::{DAY_MAX, DAY_US, clock_us, digits_of, temporal, time_of_us};
use crate::construct::convert_to;
use crate::evaluate::{to_decimal, to_double, to_integer};
use crate::program::Expression;
use crate::result_type::DECIMAL_PRECISION_MAX;
use crate::result_type::{Coercibility, Kind, ResultType};
use crate::scratch::to_text;

/// The arguments of the first ones are a day, the number or text of the interval, and the name of its unit.
pub(in super::super) const TABLE: &[Function] = &[
    function("DATE_ADD", 3, 3, resolve_add, |call| add(call, false)),
    function("DATE_SUB", 3, 3, resolve_add, |call| add(call, true)),
    function("ADDTIME", 2, 2, resolve_add_time, |call| add_time(call, false)),
    function("SUBTIME", 2, 2, resolve_add_time, |call| add_time(call, true)),
    function(MOMENT_NUMBER, 1, 1, super::super::resolve_double, moment_number),
    function(MOMENT_DECIMAL, 1, 1, resolve_moment_decimal, moment_number),
];

/// The function of the number that the text of such a sum is. No statement can call it by name.
pub(crate) const MOMENT_NUMBER: &str = "MOMENT NUMBER";
/// The same as an exact number, with six digits after the point.
pub(crate) const MOMENT_DECIMAL: &str = "MOMENT DECIMAL";

fn resolve_moment_decimal(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::decimal(20, 6).with_nullable(true) })
}

/// The greatest number of the form YYYYMMDD.
const DATE_NUMBER_MAX: i128 = 99_991_231;
/// Characters of a text that is a day and a time with microseconds.
const TEXT_CHARACTERS: u32 = 26;

fn unit_of(arguments: &[Expression]) -> Unit {
    let name = match arguments[2].as_constant() {
        Some(junctor_model::value::Value::Bytes(name)) => Unit::find(name),
        _ => None,
    };
    name.unwrap_or(Unit::find(b"DAY").unwrap_or_else(|| unreachable!("DAY is a unit")))
}

fn text_result(collation: junctor_model::collation::CollationId) -> ResultType {
    ResultType::string(collation, Coercibility::Coercible, TEXT_CHARACTERS).with_nullable(true)
}

fn resolve_add(_: &'static str, mut arguments: Vec<Expression>) -> Result<TypedCall> {
    let unit = unit_of(&arguments);
    let own_digits = if unit.has_microseconds() {
        6
    } else if unit.is_second() {
        digits_of(&arguments[1])
    } else {
        0
    };
    let digits = |argument: &Expression| argument.result.scale().min(6).max(own_digits);
    let result = match arguments[0].result.kind {
        Kind::Date if !unit.has_time() => temporal(Kind::Date, 0),
        Kind::Date => temporal(Kind::DateTime, own_digits),
        Kind::DateTime | Kind::Timestamp => temporal(Kind::DateTime, digits(&arguments[0])),
        Kind::Time if !unit.has_date() => temporal(Kind::Time, digits(&arguments[0])),
        Kind::Time => temporal(Kind::DateTime, digits(&arguments[0])),
        _ => text_result(arguments[2].result.collation),
    };
    if unit.is_second() && arguments[1].result.kind != Kind::Decimal && arguments[1].result.is_exact() {
        // Whole seconds stay whole.
    } else if unit.is_second() {
        let seconds = arguments[1].clone();
        arguments[1] = convert_to(seconds, ResultType::decimal(DECIMAL_PRECISION_MAX, 6).with_nullable(true));
    }
    Ok(TypedCall { arguments, result })
}

/// The number of a day or time that a function gives as a text: its digits.
fn moment_number(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let is_negative = text.starts_with(b"-");
    let digits: Vec<u8> = text.iter().copied().filter(|byte| byte.is_ascii_digit() || *byte == b'.').collect();
    if call.result.kind == Kind::Decimal {
        let number = to_decimal(ValueRef::Bytes(&digits), call.scratch())?;
        return Ok(ValueRef::Decimal(if is_negative { decimal::negate(number) } else { number }));
    }
    let number = to_double(ValueRef::Bytes(&digits), call.scratch())?;
    Ok(ValueRef::Double(if is_negative { -number } else { number }))
}

fn interval(call: Call<'_>, unit: Unit) -> Result<Option<Interval>> {
    let value = call.rounded(1)?;
    if value.is_null() {
        return Ok(None);
    }
    if unit.is_second() {
        return match value {
            ValueRef::Decimal(_) => Ok(Unit::of_seconds(value)),
            value => Ok(Unit::of_seconds(ValueRef::Decimal(to_decimal(value, call.scratch())?))),
        };
    }
    if unit.is_simple() {
        let number = to_integer(value, call.scratch())?;
        return Ok(i64::try_from(number).ok().and_then(|number| unit.of_number(number)));
    }
    Ok(unit.of_text(to_text(value, call.scratch())?))
}

fn add(call: Call<'_>, subtracts: bool) -> Result<ValueRef<'_>> {
    let unit = unit_of(call.arguments);
    let is_null = call.rounded(0)?.is_null() || call.rounded(1)?.is_null();
    if is_null {
        return Ok(ValueRef::Null);
    }
    let Some(interval) = interval(call, unit)? else { return call.field_overflow("datetime") };
    let interval = if subtracts { interval.negated() } else { interval };
    if call.result.kind == Kind::Time {
        let Some(time) = call.time(0)? else { return Ok(ValueRef::Null) };
        let parts = time.parts();
        let clock = if parts.negative { -clock_us(&parts) } else { clock_us(&parts) };
        let (sum, is_beyond) = time_of_us(clock.saturating_add(interval.microseconds()), call.result.scale());
        return if is_beyond { call.field_overflow("time") } else { Ok(ValueRef::Temporal(sum)) };
    }
    let Some(start) = call.date_time(0)? else { return Ok(ValueRef::Null) };
    let parts = start.parts();
    if parts.has_no_date() && unit.has_date() || parts.month == 0 || parts.day == 0 {
        call.warn_incorrect("datetime", 0)?;
        return Ok(ValueRef::Null);
    }
    let Some(sum) = shifted(&parts, interval) else { return call.field_overflow("datetime") };
    let kind = match call.result.kind {
        Kind::Date => TemporalKind::Date,
        _ => TemporalKind::DateTime,
    };
    if call.result.kind != Kind::String {
        return Ok(ValueRef::Temporal(Temporal::from_parts(kind, call.result.scale(), &sum)));
    }
    // A text without a time stays a day, unless the unit is a part of a day.
    let is_day = !unit.has_time() && is_date_text(call)?;
    let digits = if sum.microsecond > 0 { 6 } else { 0 };
    let kind = if is_day { TemporalKind::Date } else { TemporalKind::DateTime };
    call.build(|buffer| Temporal::from_parts(kind, digits, &sum).append_text(buffer))
}

/// Whether the first argument has no time of day.
fn is_date_text(call: Call<'_>) -> Result<bool> {
    Ok(match call.rounded(0)? {
        ValueRef::Bytes(text) => parse_date_time(text, DateRules::FUZZY).kind == TemporalKind::Date,
        number => to_integer(number, call.scratch())? <= DATE_NUMBER_MAX,
    })
}

/// The day and time after an interval; `None` outside the years 0 to 9999. Adding months keeps the day, or
/// takes the last one of a shorter month.
pub(super) fn shifted(parts: &Parts, interval: Interval) -> Option<Parts> {
    let mut parts = *parts;
    let months = interval.months()?;
    if months != 0 {
        let total = (i64::from(parts.year) * 12 + i64::from(parts.month) - 1).checked_add(months)?;
        let year = u16::try_from(total.div_euclid(12)).ok().filter(|year| *year <= YEAR_MAX)?;
        let month = total.rem_euclid(12) as u8 + 1;
        parts = Parts { year, month, day: parts.day.min(days_in_month(year, month)), ..parts };
    }
    let microseconds = interval.microseconds();
    if microseconds != 0 {
        let day = i128::from(days_of_civil(parts.year.into(), parts.month, parts.day));
        let total = day * DAY_US + clock_us(&parts) + microseconds;
        let days = i64::try_from(total.div_euclid(DAY_US)).ok().filter(|days| days.abs() <= DAY_MAX)?;
        let (year, month, day) = civil_of_days(days);
        let year = u16::try_from(year).ok().filter(|year| *year <= YEAR_MAX)?;
        let (clock, _) = time_of_us(total.rem_euclid(DAY_US), 6);
        parts = Parts { negative: false, year, month, day, ..clock.parts() };
    }
    Some(parts)
}

fn resolve_add_time(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let digits = digits_of(&arguments[0]).max(digits_of(&arguments[1]));
    let result = match arguments[0].result.kind {
        Kind::Date | Kind::DateTime | Kind::Timestamp => temporal(Kind::DateTime, digits),
        Kind::Time => temporal(Kind::Time, digits),
        _ => text_result(arguments[0].result.collation),
    };
    Ok(TypedCall { arguments, result })
}

fn add_time(call: Call<'_>, subtracts: bool) -> Result<ValueRef<'_>> {
    let (first, second) = (call.rounded(0)?, call.rounded(1)?);
    if first.is_null() || second.is_null() {
        return Ok(ValueRef::Null);
    }
    let Some(time) = call.time(1)? else { return Ok(ValueRef::Null) };
    let time = time.parts();
    let added = if time.negative != subtracts { -clock_us(&time) } else { clock_us(&time) };
    let is_day = match call.result.kind {
        Kind::DateTime => true,
        Kind::Time => false,
        _ => match first {
            ValueRef::Bytes(text) => is_date_time(text),
            number => to_integer(number, call.scratch())? >= DAY_AND_TIME_MIN,
        },
    };
    if is_day {
        let Some(start) = call.date_time(0)? else { return Ok(ValueRef::Null) };
        let mut interval = Interval::default();
        interval.parts[super::unit::MICROSECOND] = added as i64;
        return match shifted(&start.parts(), interval) {
            // MySQL numbers no day of the year 0.
            Some(sum) if sum.year == 0 => Ok(ValueRef::Null),
            Some(sum) => finished(call, TemporalKind::DateTime, &sum),
            None => call.field_overflow("datetime"),
        };
    }
    let Some(start) = call.time(0)? else { return Ok(ValueRef::Null) };
    let parts = start.parts();
    let clock = if parts.negative { -clock_us(&parts) } else { clock_us(&parts) };
    let (sum, is_beyond) = time_of_us(clock + added, 6);
    if is_beyond {
        let mut shown = Vec::new();
        sum.append_text(&mut shown);
        call.warn_time_range(&String::from_utf8_lossy(&shown))?;
    }
    finished(call, TemporalKind::Time, &sum.parts())
}

/// Numbers from here on are a day and a time where a time is expected.
const DAY_AND_TIME_MIN: i128 = 10_000_000_000;

fn finished<'r>(call: Call<'r>, kind: TemporalKind, parts: &Parts) -> Result<ValueRef<'r>> {
    if call.result.kind != Kind::String {
        return Ok(ValueRef::Temporal(Temporal::from_parts(kind, call.result.scale(), parts)));
    }
    let digits = if parts.microsecond > 0 { 6 } else { 0 };
    call.build(|buffer| Temporal::from_parts(kind, digits, parts).append_text(buffer))
}
