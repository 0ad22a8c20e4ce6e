//! Weeks of years.

use junctor_model::error::Result;
use junctor_model::temporal::{Parts, is_leap_year};
use junctor_model::value::ValueRef;

use super::super::{Call, Function, Setting, TypedCall, function};
use super::day_number;
use super::fields::number_of;
use crate::program::Expression;
use crate::result_type::ResultType;

pub(in super::super) const TABLE: &[Function] = &[
    function("WEEK", 1, 2, resolve, week).with(&[Setting::Variable("default_week_format")]).numbers_at(0b10),
    function("WEEKOFYEAR", 1, 1, resolve, |call| of_day(call, Mode::of_number(3), |(_, week)| week)),
    function("YEARWEEK", 1, 2, resolve, year_week).numbers_at(0b10),
];

/// How weeks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    /// Weeks begin on Monday, otherwise on Sunday.
    pub from_monday: bool,
    /// Days before the first week belong to the last week of the year before, otherwise to week 0.
    pub of_year: bool,
    /// The first week is the first that begins in the year, otherwise the first with four days in it.
    pub begins_in_year: bool,
}

impl Mode {
    /// The modes 0 to 7 of WEEK.
    pub fn of_number(number: i64) -> Mode {
        let from_monday = number & 1 != 0;
        Mode { from_monday, of_year: number & 2 != 0, begins_in_year: (number & 4 != 0) == from_monday }
    }
}

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 6).with_nullable(true) })
}

fn week(call: Call<'_>) -> Result<ValueRef<'_>> {
    // The setting follows the written arguments.
    // NULL is the mode 0.
    let mode = call.integer(1)?.unwrap_or(0);
    of_day(call, Mode::of_number(mode), |(_, week)| week)
}

fn year_week(call: Call<'_>) -> Result<ValueRef<'_>> {
    let mode = if call.count() > 1 { call.integer(1)?.unwrap_or(0) } else { 0 };
    let mode = Mode { of_year: true, ..Mode::of_number(mode) };
    of_day(call, mode, |(year, week)| year * 100 + week)
}

fn of_day(call: Call<'_>, mode: Mode, of: fn((i64, i64)) -> i64) -> Result<ValueRef<'_>> {
    Ok(call.whole_date_time(0)?.map_or(ValueRef::Null, |value| ValueRef::Int(of(week_of(&value.parts(), mode)))))
}

/// The year and the week of a day.
pub(super) fn week_of(parts: &Parts, mode: Mode) -> (i64, i64) {
    let weekday_of = |number: i64| (number + 5 + i64::from(!mode.from_monday)) % 7;
    let days_of_year = |year: i64| if is_leap_year(year as u16) { 366 } else { 365 };
    // The number of the day on which week 1 of a year begins.
    let first_week = |first: i64| {
        let weekday = weekday_of(first);
        let is_before = if mode.begins_in_year { weekday != 0 } else { weekday >= 4 };
        if is_before { first + 7 - weekday } else { first - weekday }
    };
    let year = i64::from(parts.year);
    let day = number_of(parts);
    let first = day_number(parts.year, 1, 1);
    let start = first_week(first);
    if day < start {
        if !mode.of_year {
            return (year, 0);
        }
        let before = first_week(first - days_of_year((year - 1).max(0)));
        return (year - 1, (day - before) / 7 + 1);
    }
    let week = (day - start) / 7 + 1;
    if mode.of_year && week >= 53 && day >= first_week(first + days_of_year(year)) {
        return (year + 1, 1);
    }
    (year, week)
}
