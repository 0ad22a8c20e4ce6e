//! Rounds seconds, and adds them.

use super::{DIGITS_MAX, Parts, TIME_HOURS_MAX, TemporalKind, ValueRules, YEAR_MAX, civil_of_days, days_of_civil};

const DAY_SECONDS: i64 = 86_400;

/// The parts with the nanoseconds rounded half up to `digits` digits of the seconds; `None` beyond the year
/// 9999. A TIME beyond its range gets the nearest value, and the second result is true.
pub fn rounded(kind: TemporalKind, parts: Parts, nanoseconds: u32, digits: u8) -> (Option<Parts>, bool) {
    let unit = 10u32.pow(u32::from(9 - digits.min(DIGITS_MAX)));
    let total = parts.microsecond * 1000 + nanoseconds + unit / 2;
    let fraction = total / unit * unit;
    let carries = fraction >= 1_000_000_000;
    let microsecond = fraction % 1_000_000_000 / 1000;
    let kept = Parts { microsecond, ..parts };
    match (carries, kind) {
        (false, _) => (Some(kept), false),
        (true, TemporalKind::Time) => {
            let seconds = i64::from(kept.hour) * 3600 + i64::from(kept.minute) * 60 + i64::from(kept.second) + 1;
            let hour = (seconds / 3600) as u16;
            if hour > TIME_HOURS_MAX {
                let most = Parts { hour: TIME_HOURS_MAX, minute: 59, second: 59, microsecond: 0, ..kept };
                return (Some(most), true);
            }
            let (minute, second) = ((seconds / 60 % 60) as u8, (seconds % 60) as u8);
            (Some(Parts { hour, minute, second, ..kept }), false)
        }
        // A day with a month or day of 0 has no successor.
        (true, _) if kept.month == 0 || kept.day == 0 => match seconds_of_day(&kept) + 1 {
            DAY_SECONDS => (None, true),
            seconds => (Some(with_seconds_of_day(kept, seconds)), false),
        },
        (true, _) => match add_seconds(&kept, 1) {
            Some(parts) => (Some(parts), false),
            None => (None, true),
        },
    }
}

/// The parts of a DATETIME that many seconds later; `None` outside the years 0 to 9999.
pub fn add_seconds(parts: &Parts, seconds: i64) -> Option<Parts> {
    let days = days_of_civil(parts.year.into(), parts.month, parts.day);
    let total = days.checked_mul(DAY_SECONDS)?.checked_add(seconds_of_day(parts))?.checked_add(seconds)?;
    let (year, month, day) = civil_of_days(total.div_euclid(DAY_SECONDS));
    let year = u16::try_from(year).ok().filter(|year| *year <= YEAR_MAX)?;
    Some(with_seconds_of_day(Parts { year, month, day, ..*parts }, total.rem_euclid(DAY_SECONDS)))
}

/// [`rounded`] by the rules of a session, which may have digits cut instead.
pub fn fitted(
    rules: ValueRules,
    kind: TemporalKind,
    parts: Parts,
    nanoseconds: u32,
    digits: u8,
) -> (Option<Parts>, bool) {
    if !rules.truncates() {
        return rounded(kind, parts, nanoseconds, digits);
    }
    let unit = 10u32.pow(u32::from(DIGITS_MAX - digits.min(DIGITS_MAX)));
    (Some(Parts { microsecond: parts.microsecond / unit * unit, ..parts }), false)
}

/// The fields in UTC of an instant.
pub(super) fn parts_of_seconds(seconds: i64, microsecond: u32) -> Parts {
    let (year, month, day) = civil_of_days(seconds.div_euclid(DAY_SECONDS));
    let parts = Parts { year: year.clamp(0, YEAR_MAX.into()) as u16, month, day, microsecond, ..Parts::default() };
    with_seconds_of_day(parts, seconds.rem_euclid(DAY_SECONDS))
}

fn seconds_of_day(parts: &Parts) -> i64 {
    i64::from(parts.hour) * 3600 + i64::from(parts.minute) * 60 + i64::from(parts.second)
}

fn with_seconds_of_day(parts: Parts, seconds: i64) -> Parts {
    let (hour, minute, second) = ((seconds / 3600) as u16, (seconds / 60 % 60) as u8, (seconds % 60) as u8);
    Parts { hour, minute, second, ..parts }
}
