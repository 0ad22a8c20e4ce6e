//! Differences of days and times.

use junctor_model::error::Result;
use junctor_model::temporal::{Parts, is_date_time, number_parts};
use junctor_model::value::ValueRef;

use super::super::{Call, Function, TypedCall, function};
use super::fields::number_of;
use super::unit::{DAY, HOUR, MICROSECOND, MINUTE, MONTH, SECOND, Unit, YEAR};
use super::{DAY_US, SECOND_US, clock_us, digits_of, temporal, time_of_us};
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

/// Smaller numbers are no day with a time.
const DATE_TIME_NUMBER_MIN: i64 = 10_000_000_000;

pub(in super::super) const TABLE: &[Function] = &[
    function("DATEDIFF", 2, 2, resolve_days, date_difference),
    function("TIMEDIFF", 2, 2, resolve_time, time_difference),
    function("TIMESTAMPDIFF", 3, 3, resolve_timestamps, timestamp_difference),
];

fn resolve_days(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 7).with_nullable(true) })
}

fn resolve_timestamps(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 21).with_nullable(true) })
}

fn resolve_time(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = temporal(Kind::Time, digits_of(&arguments[0]).max(digits_of(&arguments[1])));
    Ok(TypedCall { arguments, result })
}

fn date_difference(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(left), Some(right)) = (call.whole_date_time(0)?, call.whole_date_time(1)?) else {
        return Ok(ValueRef::Null);
    };
    Ok(ValueRef::Int(number_of(&left.parts()) - number_of(&right.parts())))
}

/// NULL for a time and a day together. A day of one side makes a day of text or a number on the other.
fn time_difference(call: Call<'_>) -> Result<ValueRef<'_>> {
    let types = [0, 1].map(|position| call.arguments[position].result.kind);
    let has_day = types.iter().any(|kind| kind.has_day());
    if has_day && types.contains(&Kind::Time) {
        return Ok(ValueRef::Null);
    }
    let mut values = [0; 2];
    let mut kinds = [false; 2];
    for position in 0..2 {
        let value = call.rounded(position)?;
        if value.is_null() {
            return Ok(ValueRef::Null);
        }
        let is_day = has_day
            || match value {
                ValueRef::Temporal(_) => false,
                ValueRef::Bytes(text) => is_date_time(text),
                number => number_parts(number).0 >= DATE_TIME_NUMBER_MIN,
            };
        let read = if is_day { call.date_time(position)? } else { call.time(position)? };
        let Some(read) = read else { return Ok(ValueRef::Null) };
        let parts = read.parts();
        let clock = clock_us(&parts);
        values[position] = match (is_day, parts.negative) {
            (true, _) if parts.month == 0 => clock,
            (true, _) => i128::from(number_of(&parts)) * DAY_US + clock,
            (false, true) => -clock,
            (false, false) => clock,
        };
        kinds[position] = is_day;
    }
    if kinds[0] != kinds[1] {
        return Ok(ValueRef::Null);
    }
    let (time, is_beyond) = time_of_us(values[0] - values[1], call.result.scale());
    if is_beyond {
        let seconds = (values[0] - values[1]).abs() / SECOND_US;
        let sign = if values[0] < values[1] { "-" } else { "" };
        let shown = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        call.warn_time_range(&shown)?;
    }
    Ok(ValueRef::Temporal(time))
}

/// The whole units from the second argument to the third; the first names the unit.
fn timestamp_difference(call: Call<'_>) -> Result<ValueRef<'_>> {
    let unit = call.text(0)?.and_then(Unit::find);
    let (Some(unit), Some(from), Some(to)) = (unit, call.whole_date_time(1)?, call.whole_date_time(2)?) else {
        return Ok(ValueRef::Null);
    };
    let (from, to) = (from.parts(), to.parts());
    let total = |parts: &Parts| i128::from(number_of(parts)) * DAY_US + clock_us(parts);
    let microseconds = total(&to) - total(&from);
    let whole = |size: i128| (microseconds / size) as i64;
    let number = match unit.range().0 {
        YEAR => whole_months(&from, &to) / 12,
        MONTH => whole_months(&from, &to) / unit.factor(),
        DAY => whole(DAY_US * i128::from(unit.factor())),
        HOUR => whole(3600 * SECOND_US),
        MINUTE => whole(60 * SECOND_US),
        SECOND => whole(SECOND_US),
        MICROSECOND => whole(1),
        _ => 0,
    };
    Ok(ValueRef::Int(number))
}

fn whole_months(from: &Parts, to: &Parts) -> i64 {
    let key = |parts: &Parts| (parts.day, clock_us(parts));
    let months = |parts: &Parts| i64::from(parts.year) * 12 + i64::from(parts.month);
    let difference = months(to) - months(from);
    match difference {
        1.. if key(to) < key(from) => difference - 1,
        ..=-1 if key(to) > key(from) => difference + 1,
        _ => difference,
    }
}
