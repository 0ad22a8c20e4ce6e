//! The clock of a session, and its time zone.

use junctor_model::temporal::{DIGITS_MAX, Parts, Temporal, TemporalKind, add_seconds};

/// The day and time at a number of microseconds since 1970 in UTC, in a zone that is `zone_seconds` east of
/// UTC, with the seconds cut to `digits` digits. A time beyond the year 9999 is the start of 1970.
pub(super) fn moment(utc_us: u64, zone_seconds: i64, digits: u8) -> Temporal {
    let seconds = (utc_us / 1_000_000).min(i64::MAX as u64 / 2) as i64 + zone_seconds;
    let unit = 10u32.pow(u32::from(DIGITS_MAX - digits.min(DIGITS_MAX)));
    let microsecond = (utc_us % 1_000_000) as u32 / unit * unit;
    let start = Parts { year: 1970, month: 1, day: 1, microsecond, ..Parts::default() };
    let parts = add_seconds(&start, seconds).unwrap_or(start);
    Temporal::from_parts(TemporalKind::DateTime, digits, &parts)
}

/// Seconds east of UTC of a zone: `SYSTEM` (which is UTC), `UTC`, or an offset from -13:59 to +14:00, MySQL's
/// range.
pub(super) fn zone_seconds(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("SYSTEM") || zone.eq_ignore_ascii_case("UTC") {
        return Some(0);
    }
    let (sign, rest) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let is_digits =
        |text: &str, max: usize| (1..=max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(hours, 2) || !is_digits(minutes, 2) || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
    let seconds = sign * (hours * 3600 + minutes * 60);
    (minutes < 60 && (-50_340..=50_400).contains(&seconds)).then_some(seconds)
}
