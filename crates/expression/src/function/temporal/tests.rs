//! Days, weeks and intervals against `jiff`, over the years 1 to 9999.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Span};
use junctor_model::temporal::Parts;
use proptest::prelude::*;

use super::arithmetic::shifted;
use super::fields::{date_of_number, day_of_year, number_of, weekday};
use super::unit::{Interval, MONTH, Unit, YEAR};
use super::week::{Mode, week_of};
use super::{DAY_MAX, day_number};

fn parts_of(day: Date) -> Parts {
    Parts { year: day.year() as u16, month: day.month() as u8, day: day.day() as u8, ..Parts::default() }
}

/// All days of the years 1 to 9999: the year, the day of the year from 1, and the parts.
fn days() -> Vec<(i64, i64, Parts)> {
    let first = Date::constant(1, 1, 1);
    let days = first.series(Span::new().days(1));
    days.map(|day| (day.year().into(), day.day_of_year().into(), parts_of(day))).collect()
}

/// The year and week of a day by the meaning of a mode: one day of the week decides on the year. `monday` is
/// the weekday from Monday on.
fn expected(days: &[(i64, i64, Parts)], position: usize, monday: usize, mode: Mode) -> Option<(i64, i64)> {
    let from_start = if mode.from_monday { monday } else { (monday + 1) % 7 };
    let deciding = if mode.begins_in_year { 0 } else { 3 };
    let week_at = |position: usize| {
        let (year, of_year, _) = *days.get((position + deciding).checked_sub(from_start)?)?;
        Some((year, (of_year - 1) / 7 + 1))
    };
    let year = days[position].0;
    let found = week_at(position)?;
    match (mode.of_year, found.0 - year) {
        (true, _) | (false, 0) => Some(found),
        (false, 1) => week_at(position - 7).map(|(year, week)| (year, week + 1)),
        (false, _) => Some((year, 0)),
    }
}

#[test]
fn every_day_has_the_numbers_and_weeks_that_jiff_gives_it() {
    let days = days();
    assert_eq!(days.len() as i64, DAY_MAX - day_number(1, 1, 1) + 1);
    // 0001-01-01 is a Monday.
    assert_eq!(Date::constant(1, 1, 1).weekday().to_monday_zero_offset(), 0);
    for (position, (_, of_year, parts)) in days.iter().enumerate() {
        let number = number_of(parts);
        let monday = position % 7;
        assert_eq!(number, day_number(1, 1, 1) + position as i64, "{parts:?}");
        assert_eq!(day_of_year(parts), *of_year, "{parts:?}");
        assert_eq!(weekday(parts, false), monday as i64, "{parts:?}");
        assert_eq!(weekday(parts, true), (monday as i64 + 1) % 7, "{parts:?}");
        // Weeks are special at the ends of years only.
        if (8..358).contains(of_year) && of_year % 128 != 0 {
            continue;
        }
        assert_eq!(date_of_number(number).parts(), *parts);
        for mode in 0..8 {
            let mode = Mode::of_number(mode);
            if let Some(expected) = expected(&days, position, monday, mode) {
                assert_eq!(week_of(parts, mode), expected, "{parts:?} {mode:?}");
            }
        }
    }
}

#[test]
fn the_weeks_of_mode_3_are_those_of_iso_8601() {
    for year in (1..=9999).step_by(7) {
        for day in [1, 2, 3, 4, 5, 6, 7, 180, 359, 360, 361, 362, 363, 364, 365] {
            let day = Date::constant(year, 1, 1).with().day_of_year(day).build().expect("a day of the year");
            let iso = day.iso_week_date();
            let expected = (i64::from(iso.year()), i64::from(iso.week()));
            if iso.year() >= 1 {
                assert_eq!(week_of(&parts_of(day), Mode::of_number(3)), expected, "{day}");
            }
        }
    }
}

fn moment() -> impl Strategy<Value = DateTime> {
    (-62_135_596_800i64..=253_402_300_799, 0..1_000_000i32).prop_map(|(seconds, microseconds)| {
        DateTime::constant(1970, 1, 1, 0, 0, 0, 0) + SignedDuration::new(seconds, microseconds * 1_000)
    })
}

fn all_parts(moment: DateTime) -> Parts {
    Parts {
        hour: moment.hour() as u16,
        minute: moment.minute() as u8,
        second: moment.second() as u8,
        microsecond: moment.subsec_nanosecond() as u32 / 1_000,
        ..parts_of(moment.date())
    }
}

proptest! {
    #[test]
    fn intervals_are_added_as_jiff_adds_them(
        start in moment(),
        amount in prop_oneof![-20i64..20, -5_000i64..5_000, -4_000_000i64..4_000_000],
        unit in prop::sample::select(vec![
            "MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR",
        ]),
    ) {
        let interval = Unit::find(unit.as_bytes()).unwrap().of_number(amount).unwrap();
        let span = Span::new();
        let span = match unit {
            "MICROSECOND" => span.try_microseconds(amount),
            "SECOND" => span.try_seconds(amount),
            "MINUTE" => span.try_minutes(amount),
            "HOUR" => span.try_hours(amount),
            "DAY" => span.try_days(amount),
            "WEEK" => span.try_weeks(amount),
            "MONTH" => span.try_months(amount),
            "QUARTER" => span.try_months(amount * 3),
            _ => span.try_years(amount),
        };
        // Year 0 has a leap day in `jiff` and none in MySQL.
        let expected = span.and_then(|span| start.checked_add(span)).ok().filter(|sum| sum.year() >= 1);
        let sum = shifted(&all_parts(start), interval).filter(|parts| parts.year >= 1);
        prop_assert_eq!(sum, expected.map(all_parts), "{} + {} {}", start, amount, unit);
    }

    #[test]
    fn years_and_months_together_are_added_as_jiff_adds_them(
        start in moment(),
        years in 0i64..9_999,
        months in 0i64..30,
        is_negative: bool,
    ) {
        let mut interval = Interval::default();
        (interval.parts[YEAR], interval.parts[MONTH]) = (years, months);
        let span = Span::new().years(years).months(months);
        let (interval, span) = if is_negative { (interval.negated(), -span) } else { (interval, span) };
        let expected = start.checked_add(span).ok().filter(|sum| sum.year() >= 1);
        let sum = shifted(&all_parts(start), interval).filter(|parts| parts.year >= 1);
        prop_assert_eq!(sum, expected.map(all_parts));
    }
}
