//! Texts as days and times, with MySQL's tolerance: any punctuation between the parts, parts without leading
//! zeros, digits without delimiters, years of two digits.

use super::number::{CENTURY_YEAR, greatest};
use super::{
    DIGITS_MAX, DateRules, Defects, Parts, Read, TIME_HOURS_MAX, TemporalKind, Zone, add_seconds, check_date,
    days_of_civil,
};

/// Year, month, day, hour, minute, second, fraction.
const PARTS: usize = 7;
const DAY: usize = 2;
const SECOND: usize = 5;
const FRACTION: usize = 6;
/// No part is greater.
const PART_MAX: u64 = 999_999;
/// Minutes of the offset from UTC that is furthest in the west, -13:59.
const OFFSET_MINUTES_LEAST: i64 = 839;
/// Minutes of the offset from UTC that is furthest in the east, +14:00.
const OFFSET_MINUTES_MOST: i64 = 840;
/// A shorter text is never tried as a DATETIME where a TIME is wanted.
const DATE_TIME_BYTES_MIN: usize = 12;

const TRUNCATED: Defects =
    Defects { truncated: true, out_of_range: false, zero_date: false, zero_in_date: false, skipped: false };

/// The parts of a text before their ranges are tested.
struct Scan {
    values: [u32; PARTS],
    lengths: [usize; PARTS],
    count: usize,
    /// Bytes read.
    end: usize,
    year_digits: usize,
    has_delimiter: bool,
    has_space: bool,
}

/// A day with or without a time of day.
pub fn parse_date_time(text: &[u8], rules: DateRules) -> Read {
    let text = text.trim_ascii_start();
    let Some(scan) = scan(text) else { return Read::failed(TRUNCATED) };
    read_scan(text, &scan, rules)
}

fn read_scan(text: &[u8], scan: &Scan, rules: DateRules) -> Read {
    let [mut year, month, day, hour, minute, second, fraction] = scan.values;
    let fraction_digits = scan.lengths[FRACTION].min(usize::from(DIGITS_MAX));
    let not_zero = scan.values.iter().any(|value| *value != 0);
    if scan.year_digits == 2 && not_zero {
        year += if year < CENTURY_YEAR.into() { 2000 } else { 1900 };
    }
    let in_range =
        year <= super::YEAR_MAX.into() && month <= 12 && day <= 31 && hour <= 23 && minute <= 59 && second <= 59;
    if scan.count < 3 || !in_range {
        let garbage = !text[scan.end..].trim_ascii().is_empty();
        return Read::failed(match not_zero || garbage || !in_range {
            true => TRUNCATED,
            false => Defects { zero_date: true, ..Defects::default() },
        });
    }
    let parts = Parts {
        negative: false,
        year: year as u16,
        month: month as u8,
        day: day as u8,
        hour: hour as u16,
        minute: minute as u8,
        second: second as u8,
        microsecond: fraction * 10u32.pow((usize::from(DIGITS_MAX) - fraction_digits) as u32),
    };
    let mut defects = Defects::default();
    if !check_date(&parts, rules, &mut defects) {
        return Read::failed(defects);
    }
    let mut end = scan.end;
    let mut nanoseconds = 0;
    if fraction_digits == usize::from(DIGITS_MAX) {
        let rest = digits(&text[end..]);
        nanoseconds = rest.first().map_or(0, |digit| u32::from(digit - b'0') * 100);
        end += rest.len();
    }
    let kind = if scan.count <= 3 { TemporalKind::Date } else { TemporalKind::DateTime };
    let rest = text[end..].trim_ascii_end();
    let digits = fraction_digits as u8;
    if let (Some(zone), true) = (rules.zone, scan.count > SECOND)
        && let Some(offset) = offset_of(rest)
    {
        return match offset.and_then(|offset| in_zone(&parts, offset, zone)) {
            Some(parts) => Read { parts: Some(parts), nanoseconds, digits, kind, defects, has_offset: true },
            None => Read::failed(TRUNCATED),
        };
    }
    defects.truncated = !rest.trim_ascii_start().is_empty();
    Read { parts: Some(parts), nanoseconds, digits, kind, defects, has_offset: false }
}

/// The seconds east of UTC of an offset `+hh:mm` or `-hh:mm`; `Some(None)` for one beyond -13:59 to +14:00
/// and for -00:00, `None` for another text.
fn offset_of(text: &[u8]) -> Option<Option<i64>> {
    let [sign @ (b'+' | b'-'), hours @ .., b':', _, _] = text else { return None };
    let minutes = &text[text.len() - 2..];
    if hours.len() != 2 || !hours.iter().chain(minutes).all(u8::is_ascii_digit) {
        return None;
    }
    let number = |digits: &[u8]| digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    let (hours, minutes) = (number(hours), number(minutes));
    let total = hours * 60 + minutes;
    let (is_negative, is_zero) = (*sign == b'-', total == 0);
    let most = if is_negative { OFFSET_MINUTES_LEAST } else { OFFSET_MINUTES_MOST };
    let is_valid = minutes < 60 && total <= most && !(is_negative && is_zero);
    Some(is_valid.then_some(if is_negative { -total * 60 } else { total * 60 }))
}

/// The time in a zone that clocks with this offset from UTC, in seconds, show as `parts`. `None` for a day
/// with a month or day of 0, and outside the years 0 to 9999.
fn in_zone(parts: &Parts, offset: i64, zone: Zone) -> Option<Parts> {
    if parts.month == 0 || parts.day == 0 {
        return None;
    }
    let local = days_of_civil(parts.year.into(), parts.month, parts.day) * 86_400
        + i64::from(parts.hour) * 3600
        + i64::from(parts.minute) * 60
        + i64::from(parts.second);
    add_seconds(parts, zone.offset_at(local - offset) - offset)
}

/// Splits a text that begins with a digit; `None` for other texts and for impossible numbers.
fn scan(text: &[u8]) -> Option<Scan> {
    let first = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'T').count();
    if !text.first()?.is_ascii_digit() {
        return None;
    }
    // Digits alone have parts of fixed width: YYMMDD, YYYYMMDDhhmmss.
    let is_packed = first == text.len() || text[first] == b'.';
    let year_width = if matches!(first, 4 | 8) || first >= 14 { 4 } else { 2 };
    let mut scan = Scan {
        values: [0; PARTS],
        lengths: [0; PARTS],
        count: 0,
        end: 0,
        year_digits: year_width,
        has_delimiter: false,
        has_space: false,
    };
    let mut at = 0;
    let mut width = if is_packed { year_width } else { 4 };
    for part in 0..PARTS {
        if !text.get(at).is_some_and(u8::is_ascii_digit) {
            break;
        }
        let limit = if is_packed || part == FRACTION { width } else { usize::MAX };
        let length = digits(&text[at..]).len().min(limit);
        let value = text[at..at + length].iter().try_fold(0u64, |value, digit| {
            let value = value * 10 + u64::from(digit - b'0');
            (value <= PART_MAX).then_some(value)
        })?;
        scan.values[part] = value as u32;
        scan.lengths[part] = length;
        scan.count = part + 1;
        at += length;
        scan.end = at;
        width = if part == SECOND { usize::from(DIGITS_MAX) } else { 2 };
        match text.get(at) {
            None => break,
            Some(b'T') if part == DAY => at += 1,
            Some(b'.') if part == SECOND => at += 1,
            Some(_) if part >= SECOND => break,
            Some(_) => {
                while let Some(byte) = text.get(at).filter(|byte| byte.is_ascii_punctuation() || is_space(**byte)) {
                    if is_space(*byte) {
                        // Space is allowed only between day and time.
                        if part != DAY && text[at..].iter().any(|byte| !is_space(*byte)) {
                            return None;
                        }
                        scan.has_space = true;
                    }
                    scan.has_delimiter = true;
                    at += 1;
                }
            }
        }
        scan.end = at;
    }
    if !is_packed {
        scan.year_digits = scan.lengths[0];
    }
    Some(scan)
}

/// A time: `hh:mm:ss`, `d hh:mm:ss`, `hhmmss`, or the time of a DATETIME, which may have an offset from UTC
/// if a zone is given.
pub fn parse_time(text: &[u8], zone: Option<Zone>) -> Read {
    let mut text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    if negative {
        text = &text[1..];
    }
    if text.is_empty() {
        return Read::failed(TRUNCATED);
    }
    if text.len() >= DATE_TIME_BYTES_MIN
        && let Some(read) = time_of_date_time(text, zone)
    {
        return read;
    }
    let (first, mut at) = number(text, 0);
    let Some(first) = first else { return Read::failed(TRUNCATED) };
    let after_space = at + text[at..].iter().take_while(|byte| is_space(**byte)).count();
    // Days, hours, minutes, seconds.
    let mut fields = [0u64; 4];
    let mut next = match () {
        () if after_space > at && text.get(after_space).is_some_and(u8::is_ascii_digit) => {
            fields[0] = first;
            at = after_space;
            1
        }
        () if is_colon_and_digit(&text[at..]) => {
            fields[1] = first;
            at += 1;
            2
        }
        () => {
            fields = [0, first / 10_000, first / 100 % 100, first % 100];
            4
        }
    };
    while next < 4 {
        let (value, end) = number(text, at);
        let Some(value) = value else { return Read::failed(TRUNCATED) };
        fields[next] = value;
        next += 1;
        at = end;
        if next == 4 || !is_colon_and_digit(&text[at..]) {
            break;
        }
        at += 1;
    }
    let mut microsecond = 0;
    let (mut nanoseconds, mut fraction_digits) = (0, 0);
    if text.get(at) == Some(&b'.') {
        let fraction = digits(&text[at + 1..]);
        let kept = &fraction[..fraction.len().min(usize::from(DIGITS_MAX))];
        let value = kept.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
        microsecond = value * 10u32.pow((usize::from(DIGITS_MAX) - kept.len()) as u32);
        nanoseconds = fraction.get(kept.len()).map_or(0, |digit| u32::from(digit - b'0') * 100);
        fraction_digits = kept.len() as u8;
        at += 1 + fraction.len();
    }
    if is_exponent(&text[at..]) {
        return Read::failed(TRUNCATED);
    }
    let garbage = !text[at..].trim_ascii().is_empty();
    let [days, hours, minute, second] = fields;
    if minute > 59 || second > 59 {
        return Read::failed(Defects { out_of_range: true, truncated: garbage, ..Defects::default() });
    }
    let hour = days.saturating_mul(24).saturating_add(hours);
    let is_last = hour == u64::from(TIME_HOURS_MAX) && minute == 59 && second == 59;
    if hour > TIME_HOURS_MAX.into() || (is_last && microsecond > 0) {
        return greatest(negative, Defects { out_of_range: true, truncated: garbage, ..Defects::default() });
    }
    let (minute, second) = (minute as u8, second as u8);
    let parts = Parts { negative, hour: hour as u16, minute, second, microsecond, ..Parts::default() };
    let defects = Defects { truncated: garbage, ..Defects::default() };
    Read {
        parts: Some(parts),
        nanoseconds,
        digits: fraction_digits,
        kind: TemporalKind::Time,
        defects,
        has_offset: false,
    }
}

/// Whether a text is read as a day with a time where a time is wanted. A shorter text is a time.
pub fn is_date_time(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.len() >= DATE_TIME_BYTES_MIN && scan_date_time(text).is_some()
}

/// The parts of a text that has a day and a time; `None` for other texts.
fn scan_date_time(text: &[u8]) -> Option<Scan> {
    let scan = scan(text)?;
    let has_time = scan.count > 3 && (!scan.has_delimiter || scan.has_space || text.contains(&b'T'));
    has_time.then_some(scan)
}

/// The time of a text that has a day and a time, which must be valid; `None` for other texts.
fn time_of_date_time(text: &[u8], zone: Option<Zone>) -> Option<Read> {
    let scan = scan_date_time(text)?;
    let read = read_scan(text, &scan, DateRules { zone, ..DateRules::FUZZY });
    let Some(parts) = read.parts else { return Some(Read::failed(read.defects)) };
    let time = Parts { year: 0, month: 0, day: 0, ..parts };
    Some(Read { parts: Some(time), kind: TemporalKind::Time, ..read })
}

/// The number at a position, and where it ends. `None` without a digit, and for more than 9 digits.
fn number(text: &[u8], at: usize) -> (Option<u64>, usize) {
    let found = digits(&text[at..]);
    let end = at + found.len();
    let significant = found.iter().skip_while(|digit| **digit == b'0').count();
    if found.is_empty() || significant > 18 {
        return (None, end);
    }
    (Some(found.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))), end)
}

/// Whether the text begins with the exponent of a number, such as `e2`.
fn is_exponent(text: &[u8]) -> bool {
    let [b'e' | b'E', rest @ ..] = text else { return false };
    let digits = rest.strip_prefix(b"-").or_else(|| rest.strip_prefix(b"+")).unwrap_or(rest);
    digits.first().is_some_and(u8::is_ascii_digit)
}

fn is_colon_and_digit(text: &[u8]) -> bool {
    matches!(text, [b':', digit, ..] if digit.is_ascii_digit())
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

fn digits(text: &[u8]) -> &[u8] {
    &text[..text.iter().take_while(|byte| byte.is_ascii_digit()).count()]
}
