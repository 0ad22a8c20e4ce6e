//! Converts microseconds since 1970-01-01 UTC to dates and times as text, and back.

const DAY_SECONDS: i64 = 86_400;

/// A point in time in some zone, of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1970-01-01 00:00:00 in the zone; negative before.
    pub seconds: i64,
    /// Microseconds within the second, from 0 to 999,999.
    pub microseconds: u32,
}

impl Moment {
    /// The time `utc_us` in a zone that is `zone_seconds` east of UTC.
    pub fn new(utc_us: u64, zone_seconds: i64) -> Moment {
        let seconds = (utc_us / 1_000_000).min(i64::MAX as u64 / 2) as i64 + zone_seconds;
        Moment { seconds, microseconds: (utc_us % 1_000_000) as u32 }
    }

    /// `2026-11-20`
    pub fn date(self) -> String {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(DAY_SECONDS));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// `07:39:33.123`, with this number of fractional digits. More than 6 count as 6. Further digits are
    /// truncated, not rounded.
    pub fn time(self, digits: u32) -> String {
        let seconds = self.seconds.rem_euclid(DAY_SECONDS);
        let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if digits > 0 {
            let digits = digits.min(6);
            let fraction = self.microseconds / 10u32.pow(6 - digits);
            text.push_str(&format!(".{fraction:0width$}", width = digits as usize));
        }
        text
    }

    /// Date and time, separated by a space, with this number of fractional digits.
    pub fn date_time(self, digits: u32) -> String {
        format!("{} {}", self.date(), self.time(digits))
    }

    /// Parses `2001-01-01[ 01:00:00[.ffffff]]`; also returns the number of fractional digits.
    pub fn parse(text: &str) -> Option<(Moment, u32)> {
        let (date, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), "00:00:00"));
        let mut parts = date.split('-').map(|part| part.parse::<u32>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut clock = clock.split(':').map(|part| part.parse::<u32>().ok());
        let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
        let is_date =
            (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        let is_digits = fraction.len() <= 6 && fraction.bytes().all(|byte| byte.is_ascii_digit());
        if !is_date || !is_digits || hour > 23 || minute > 59 || second > 59 || parts.next().is_some() {
            return None;
        }
        let seconds = days_from_civil(i64::from(year), month, day) * DAY_SECONDS;
        let seconds = seconds + i64::from(hour * 3600 + minute * 60 + second);
        let microseconds = format!("{fraction:0<6}").parse().unwrap_or(0);
        Some((Moment { seconds, microseconds }, fraction.len() as u32))
    }
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

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a Gregorian date. Years begin in March in this calculation, which makes the leap
/// day the last day of the year. Algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"
/// (`days_from_civil`).
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let century_cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    century_cycle * 146_097 + day_of_cycle - 719_468
}

/// Year, month and day of the date that is `days` after 1970-01-01; the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let day_of_cycle = days.rem_euclid(146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_cycle + cycle * 400 + i64::from(month <= 2), month, day)
}
