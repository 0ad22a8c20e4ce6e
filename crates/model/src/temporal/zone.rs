//! Time zones.

use super::{Parts, Temporal, TemporalKind, add_seconds, days_of_civil, round};

/// The least instant of a TIMESTAMP that is not the zero date.
const FIRST_SECOND: i64 = 1;
/// The greatest instant of a TIMESTAMP: 2038-01-19 03:14:07 in UTC.
const LAST_SECOND: i64 = i32::MAX as i64;

/// The time zone of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Minutes east of UTC.
    pub minutes: i16,
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone { minutes: 0 };

    fn seconds(self) -> i64 {
        i64::from(self.minutes) * 60
    }

    /// The instant of a DATETIME in this zone with digits after the point; `None` outside the range of
    /// TIMESTAMP, and for a day with a month or day of 0.
    pub fn instant_of(self, parts: &Parts, digits: u8) -> Option<Temporal> {
        if parts.month == 0 || parts.day == 0 {
            return None;
        }
        let day = days_of_civil(parts.year.into(), parts.month, parts.day);
        let clock = i64::from(parts.hour) * 3600 + i64::from(parts.minute) * 60 + i64::from(parts.second);
        let seconds = day * 86_400 + clock - self.seconds();
        (FIRST_SECOND..=LAST_SECOND).contains(&seconds).then(|| Temporal::instant(seconds, parts.microsecond, digits))
    }

    /// The DATETIME of an instant in this zone.
    pub fn date_time_of(self, instant: Temporal) -> Temporal {
        let utc = instant.parts();
        let parts = if instant.is_zero() { Some(utc) } else { add_seconds(&utc, self.seconds()) };
        Temporal::from_parts(TemporalKind::DateTime, instant.digits, &parts.unwrap_or(utc))
    }

    /// The DATETIME in this zone at a number of microseconds since 1970 in UTC, cut to `digits` digits.
    pub fn date_time_at(self, microseconds: u64, digits: u8) -> Temporal {
        let seconds = (microseconds / 1_000_000) as i64 + self.seconds();
        let unit = 10u32.pow(u32::from(super::DIGITS_MAX - digits.min(super::DIGITS_MAX)));
        let microsecond = (microseconds % 1_000_000) as u32 / unit * unit;
        Temporal::from_parts(TemporalKind::DateTime, digits, &round::parts_of_seconds(seconds, microsecond))
    }
}
