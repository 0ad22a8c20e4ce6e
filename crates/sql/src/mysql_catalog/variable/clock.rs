//! The clock of a session.

use junctor_model::temporal::{DIGITS_MAX, Parts, Temporal, TemporalKind, Zone, add_seconds};

/// The day and time at a number of microseconds since 1970 in UTC, in a zone, with the seconds cut to
/// `digits` digits. A time beyond the year 9999 is the start of 1970.
pub(super) fn moment(utc_us: u64, zone: Zone, digits: u8) -> Temporal {
    let seconds = (utc_us / 1_000_000) as i64;
    let seconds = seconds + zone.offset_at(seconds);
    let unit = 10u32.pow(u32::from(DIGITS_MAX - digits.min(DIGITS_MAX)));
    let microsecond = (utc_us % 1_000_000) as u32 / unit * unit;
    let start = Parts { year: 1970, month: 1, day: 1, microsecond, ..Parts::default() };
    let parts = add_seconds(&start, seconds).unwrap_or(start);
    Temporal::from_parts(TemporalKind::DateTime, digits, &parts)
}
