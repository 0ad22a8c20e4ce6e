//! Moments as text in UTC.

use crate::BackupError;

const SECONDS_PER_DAY: u64 = 86_400;

/// A moment in microseconds since 1970 as `YYYY-MM-DD hh:mm:ss`.
pub fn utc_text(moment_us: u64) -> String {
    let seconds = moment_us / 1_000_000;
    let (year, month, day) = date(seconds / SECONDS_PER_DAY);
    let second = seconds % SECONDS_PER_DAY;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Parses a time in UTC, `YYYY-MM-DD hh:mm:ss`. Without a fraction, returns the last microsecond of that
/// second. A fraction of up to six digits selects the microsecond.
///
/// # Errors
/// The text is not a moment since 1970.
pub fn utc_moment_us(text: &str) -> Result<u64, BackupError> {
    parse(text).ok_or_else(|| BackupError::refused(format!("'{text}' is not a time in the form YYYY-MM-DD hh:mm:ss")))
}

fn parse(text: &str) -> Option<u64> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let (date_text, time_text) = whole.split_once([' ', 'T'])?;
    let [year, month, day] = numbers::<3>(date_text, '-')?;
    let [hour, minute, second] = numbers::<3>(time_text, ':')?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let days = days_since_1970(year, month, day).filter(|_| is_time)?;
    let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    let fraction_us = match fraction {
        Some(digits) if (1..=6).contains(&digits.len()) => format!("{digits:0<6}").parse().ok()?,
        Some(_) => return None,
        None => 999_999,
    };
    Some(seconds * 1_000_000 + fraction_us)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u64; N]> {
    let mut parts = text.split(separator).map(|part| part.parse().ok());
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = parts.next()??;
    }
    parts.next().is_none().then_some(numbers)
}

/// Days of the proleptic Gregorian calendar. `None` if the date does not exist or lies before 1970.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 || day > days_of(year, month) {
        return None;
    }
    let of_years: u64 = (1970..year).map(days_of_year).sum();
    let of_months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    Some(of_years + of_months + day - 1)
}

fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_back() {
        for text in ["1970-01-01 00:00:00", "2024-02-29 23:59:59", "2026-11-23 04:30:09", "2100-03-01 00:00:00"] {
            assert_eq!(utc_text(utc_moment_us(text).unwrap()), text);
        }
        // As `date -u -d '2026-11-23 04:30:09' +%s` prints it.
        assert_eq!(utc_moment_us("2026-11-23T04:30:09.25").unwrap(), 1_795_408_209_250_000);
        for text in ["2026-02-29 00:00:00", "2026-01-01", "2026-01-01 24:00:00", "1969-12-31 23:59:59", "x", ""] {
            assert!(utc_moment_us(text).is_err(), "{text}");
        }
    }
}
