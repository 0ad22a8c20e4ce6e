//! Numbers as days and times: 20241231, 20241231235959, 235959.

use crate::decimal;
use crate::value::ValueRef;

use super::{DateRules, Defects, Parts, Read, TIME_HOURS_MAX, TemporalKind, check_date};

/// Years of two digits below this one are of this century.
pub(super) const CENTURY_YEAR: u16 = 70;
/// Greater numbers are not of the form hhmmss, but may be a DATETIME.
const TIME_NUMBER_MAX: i64 = 8_385_959;
const DATE_TIME_NUMBER_MIN: i64 = 10_000_000_000;

/// A number of the form YYMMDD, YYYYMMDD, YYMMDDhhmmss or YYYYMMDDhhmmss as a day, with the time if it has
/// one. `nanoseconds` are the digits after the point, which a day without a time loses.
pub fn parse_number(number: i64, nanoseconds: u32, rules: DateRules) -> Read {
    let truncated = Read::failed(Defects { truncated: true, ..Defects::default() });
    let (full, kind) = match number {
        0 => (0, TemporalKind::DateTime),
        10_000_101_000_000..=99_991_231_235_959 => (number, TemporalKind::DateTime),
        101..=691_231 => ((number + 20_000_000) * 1_000_000, TemporalKind::Date),
        700_101..=991_231 => ((number + 19_000_000) * 1_000_000, TemporalKind::Date),
        10_000_101..=99_991_231 => (number * 1_000_000, TemporalKind::Date),
        101_000_000..=691_231_235_959 => (number + 20_000_000_000_000, TemporalKind::DateTime),
        700_101_000_000..=991_231_235_959 => (number + 19_000_000_000_000, TemporalKind::DateTime),
        _ => return truncated,
    };
    let nanoseconds = if kind == TemporalKind::Date { 0 } else { nanoseconds };
    let (date, time) = (full / 1_000_000, full % 1_000_000);
    let parts = Parts {
        negative: false,
        year: (date / 10_000) as u16,
        month: (date / 100 % 100) as u8,
        day: (date % 100) as u8,
        hour: (time / 10_000) as u16,
        minute: (time / 100 % 100) as u8,
        second: (time % 100) as u8,
        microsecond: nanoseconds / 1000,
    };
    let fits = parts.month <= 12 && parts.day <= 31 && parts.hour <= 23 && parts.minute <= 59 && parts.second <= 59;
    if !fits {
        return truncated;
    }
    let mut defects = Defects::default();
    if !check_date(&parts, rules, &mut defects) {
        return Read::failed(defects);
    }
    Read { parts: Some(parts), nanoseconds: nanoseconds % 1000, digits: 0, kind, defects, has_offset: false }
}

/// The year that a number means: 1 to 69 are of this century and 70 to 99 of the last one; others stay.
pub fn year_of_digits(number: i64) -> i64 {
    match number {
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        _ => number,
    }
}

/// A number of the form hhmmss as a time. `nanoseconds` are the digits after the point.
pub fn parse_time_number(number: i64, negative: bool, nanoseconds: u32) -> Read {
    let magnitude = number.saturating_abs();
    let beyond = Defects { out_of_range: true, ..Defects::default() };
    if magnitude > TIME_NUMBER_MAX {
        if number >= DATE_TIME_NUMBER_MIN {
            let read = parse_number(number, nanoseconds, DateRules::FUZZY);
            if let Some(parts) = read.parts {
                let time = Parts { year: 0, month: 0, day: 0, ..parts };
                return Read { parts: Some(time), kind: TemporalKind::Time, ..read };
            }
        }
        return greatest(negative, beyond);
    }
    let (minute, second) = ((magnitude / 100 % 100) as u8, (magnitude % 100) as u8);
    if minute > 59 || second > 59 {
        return Read::failed(beyond);
    }
    let (hour, microsecond) = ((magnitude / 10_000) as u16, nanoseconds / 1000);
    let parts = Parts { negative, hour, minute, second, microsecond, ..Parts::default() };
    let nanoseconds = nanoseconds % 1000;
    let (kind, defects) = (TemporalKind::Time, Defects::default());
    Read { parts: Some(parts), nanoseconds, digits: 0, kind, defects, has_offset: false }
}

/// The time at the end of the range.
pub(super) fn greatest(negative: bool, defects: Defects) -> Read {
    let parts = Parts { negative, hour: TIME_HOURS_MAX, minute: 59, second: 59, ..Parts::default() };
    Read { parts: Some(parts), nanoseconds: 0, digits: 0, kind: TemporalKind::Time, defects, has_offset: false }
}

/// The whole number, the nanoseconds that the digits after the point are, and whether it is negative.
pub fn number_parts(value: ValueRef<'_>) -> (i64, u32, bool) {
    match value.as_number() {
        ValueRef::Int(value) => (value, 0, value < 0),
        ValueRef::UInt(value) => (i64::try_from(value).unwrap_or(i64::MAX), 0, false),
        ValueRef::Decimal(value) => {
            let whole = decimal::truncate(value, 0);
            let fraction = decimal::subtract(value, whole).and_then(|rest| decimal::with_scale(rest, 9));
            let nanoseconds = fraction.map_or(0, |fraction| fraction.clamped_mantissa().unsigned_abs() as u32);
            let limit = i128::from(i64::MAX);
            (whole.clamped_mantissa().clamp(-limit, limit) as i64, nanoseconds.min(999_999_999), value.is_negative())
        }
        ValueRef::Double(value) => {
            let nanoseconds = (value.fract().abs() * 1e9).round() as u32;
            (value.trunc() as i64, nanoseconds.min(999_999_999), value < 0.0)
        }
        _ => (0, 0, false),
    }
}
