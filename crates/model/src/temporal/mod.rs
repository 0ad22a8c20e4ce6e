//! Years, days, times of day and instants as one number each, in MySQL's meaning: zero dates, days with a
//! month or day of 0, and times from -838:59:59 to 838:59:59.

mod calendar;
mod number;
mod parse;
mod round;
mod zone;

use crate::locale::Locale;
use crate::value::ValueRef;

pub use calendar::{civil_of_days, days_in_month, days_of_civil, is_leap_year};
pub use number::{number_parts, parse_number, parse_time_number, year_of_digits};
pub use parse::{is_date_time, parse_date_time, parse_time};
pub use round::{add_seconds, fitted, rounded};
pub use zone::{LocalTime, Zone, zone_names};

/// Hours of the greatest TIME, 838:59:59.
pub const TIME_HOURS_MAX: u16 = 838;
/// Maximum number of digits after the point of the seconds.
pub const DIGITS_MAX: u8 = 6;
/// The greatest year.
pub const YEAR_MAX: u16 = 9999;
/// Bits of the microseconds in a packed value.
const MICROSECOND_BITS: u32 = 24;
/// Bits of the time of day in a packed value, microseconds included.
const TIME_BITS: u32 = 17 + MICROSECOND_BITS;

/// The type of a temporal value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    /// A year.
    Year,
    /// A day.
    Date,
    /// A duration, or a time of day.
    Time,
    /// A day and a time of day.
    DateTime,
    /// An instant in UTC. Only rows and keys have it; expressions see the DATETIME of the session's zone.
    Timestamp,
}

/// A temporal value. Values of one kind have the order of `packed`, and so have DATE and DATETIME together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temporal {
    /// The type.
    pub kind: TemporalKind,
    /// Digits after the point of the seconds, 0 to 6.
    pub digits: u8,
    /// The year as it is. DATE and DATETIME: `(year * 13 + month) << 5 | day`, then 5 bits of the hour, 6 of
    /// the minute, 6 of the second and 24 of the microseconds. TIME: the same without a day and with 10 bits
    /// of the hour, negated if it is negative. An instant: seconds since 1970 and 24 bits of microseconds.
    pub packed: i64,
}

/// The fields of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Parts {
    pub negative: bool,
    pub year: u16,
    pub month: u8,
    pub day: u8,
    pub hour: u16,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

impl Parts {
    /// Whether year, month and day are 0.
    pub fn has_no_date(&self) -> bool {
        self.year == 0 && self.month == 0 && self.day == 0
    }

    /// Whether hour, minute, second and microseconds are 0.
    pub fn has_no_time(&self) -> bool {
        self.hour == 0 && self.minute == 0 && self.second == 0 && self.microsecond == 0
    }

    fn packed_time(&self) -> i64 {
        let clock = i64::from(self.hour) << 12 | i64::from(self.minute) << 6 | i64::from(self.second);
        clock << MICROSECOND_BITS | i64::from(self.microsecond)
    }

    fn packed_date(&self) -> i64 {
        ((i64::from(self.year) * 13 + i64::from(self.month)) << 5 | i64::from(self.day)) << TIME_BITS
    }
}

impl Temporal {
    /// A year.
    pub fn year(year: u16) -> Temporal {
        Temporal { kind: TemporalKind::Year, digits: 0, packed: year.into() }
    }

    /// A day.
    pub fn date(year: u16, month: u8, day: u8) -> Temporal {
        Temporal::from_parts(TemporalKind::Date, 0, &Parts { year, month, day, ..Parts::default() })
    }

    /// A value of a kind other than an instant. Parts that the kind does not have are ignored; hours of a
    /// TIME include those of days.
    pub fn from_parts(kind: TemporalKind, digits: u8, parts: &Parts) -> Temporal {
        let packed = match kind {
            TemporalKind::Year => parts.year.into(),
            TemporalKind::Date => parts.packed_date(),
            TemporalKind::DateTime | TemporalKind::Timestamp => parts.packed_date() | parts.packed_time(),
            TemporalKind::Time if parts.negative => -parts.packed_time(),
            TemporalKind::Time => parts.packed_time(),
        };
        Temporal { kind, digits, packed }
    }

    /// The seconds of an instant since the start of 1970 in UTC.
    pub fn instant_seconds(self) -> i64 {
        self.packed >> MICROSECOND_BITS
    }

    /// An instant: seconds since the start of 1970 in UTC, and microseconds. 0 and 0 are the zero date.
    pub fn instant(seconds: i64, microsecond: u32, digits: u8) -> Temporal {
        let packed = seconds << MICROSECOND_BITS | i64::from(microsecond);
        Temporal { kind: TemporalKind::Timestamp, digits, packed }
    }

    /// The seconds and microseconds of an instant.
    pub fn instant_parts(self) -> (i64, u32) {
        (self.packed >> MICROSECOND_BITS, (self.packed & ((1 << MICROSECOND_BITS) - 1)) as u32)
    }

    /// The fields. An instant has the fields in UTC.
    pub fn parts(self) -> Parts {
        let magnitude = self.packed.unsigned_abs();
        let field = |shift: u32, bits: u32| magnitude >> shift & ((1 << bits) - 1);
        let time = |hour_bits: u32| Parts {
            hour: field(MICROSECOND_BITS + 12, hour_bits) as u16,
            minute: field(MICROSECOND_BITS + 6, 6) as u8,
            second: field(MICROSECOND_BITS, 6) as u8,
            microsecond: field(0, MICROSECOND_BITS) as u32,
            ..Parts::default()
        };
        match self.kind {
            TemporalKind::Year => Parts { year: self.packed as u16, ..Parts::default() },
            TemporalKind::Time => Parts { negative: self.packed < 0, ..time(10) },
            TemporalKind::Timestamp => {
                let (seconds, microsecond) = self.instant_parts();
                match self.packed {
                    0 => Parts::default(),
                    _ => round::parts_of_seconds(seconds, microsecond),
                }
            }
            TemporalKind::Date | TemporalKind::DateTime => {
                let months = magnitude >> (TIME_BITS + 5);
                let (year, month) = ((months / 13) as u16, (months % 13) as u8);
                Parts { year, month, day: field(TIME_BITS, 5) as u8, ..time(5) }
            }
        }
    }

    /// Whether the fields are in their ranges, as those of bytes from outside must be.
    pub fn is_valid(self) -> bool {
        let parts = self.parts();
        let again = match self.kind {
            TemporalKind::Timestamp => return (0..1 << 56).contains(&self.packed) && parts.microsecond < 1_000_000,
            kind => Temporal::from_parts(kind, self.digits, &parts),
        };
        let is_time = self.kind == TemporalKind::Time;
        let hours = if is_time { TIME_HOURS_MAX } else { 23 };
        let has_range = parts.hour <= hours && parts.minute <= 59 && parts.second <= 59 && parts.year <= YEAR_MAX;
        again.packed == self.packed && has_range && parts.microsecond < 1_000_000
    }

    /// The zero of its kind.
    pub fn is_zero(self) -> bool {
        self.packed == 0
    }

    /// As DATETIME: the fields of a date at midnight. A TIME counts from the zero date;
    /// [`Scratch::on_this_day`] has its day.
    ///
    /// [`Scratch::on_this_day`]: crate::scratch::Scratch::on_this_day
    pub fn to_date_time(self) -> Temporal {
        match self.kind {
            TemporalKind::DateTime => self,
            TemporalKind::Date => Temporal { kind: TemporalKind::DateTime, ..self },
            _ => Temporal::from_parts(TemporalKind::DateTime, self.digits, &self.parts()),
        }
    }

    /// The day of a DATE or DATETIME.
    pub fn to_date(self) -> Temporal {
        let date_time = self.to_date_time();
        Temporal { kind: TemporalKind::Date, digits: 0, packed: date_time.packed >> TIME_BITS << TIME_BITS }
    }

    /// The time of day of a DATETIME; a TIME unchanged.
    pub fn to_time(self) -> Temporal {
        match self.kind {
            TemporalKind::Time => self,
            _ => Temporal::from_parts(TemporalKind::Time, self.digits, &self.parts()),
        }
    }

    /// Appends the value as MySQL prints it.
    pub fn append_text(self, out: &mut Vec<u8>) {
        let parts = self.parts();
        match self.kind {
            TemporalKind::Year => return push_digits(parts.year.into(), 4, out),
            TemporalKind::Time => {
                if parts.negative {
                    out.push(b'-');
                }
                push_digits(parts.hour.into(), if parts.hour > 99 { 3 } else { 2 }, out);
            }
            TemporalKind::Date | TemporalKind::DateTime | TemporalKind::Timestamp => {
                push_digits(parts.year.into(), 4, out);
                out.push(b'-');
                push_digits(parts.month.into(), 2, out);
                out.push(b'-');
                push_digits(parts.day.into(), 2, out);
                if self.kind == TemporalKind::Date {
                    return;
                }
                out.push(b' ');
                push_digits(parts.hour.into(), 2, out);
            }
        }
        out.push(b':');
        push_digits(parts.minute.into(), 2, out);
        out.push(b':');
        push_digits(parts.second.into(), 2, out);
        if self.digits > 0 {
            out.push(b'.');
            let unit = 10u32.pow(u32::from(DIGITS_MAX - self.digits.min(DIGITS_MAX)));
            push_digits(parts.microsecond / unit, usize::from(self.digits.min(DIGITS_MAX)), out);
        }
    }

    /// The number that the digits of the text make: an integer, or a decimal if the seconds have digits after
    /// the point.
    pub fn as_number(self) -> ValueRef<'static> {
        let parts = self.parts();
        let whole = self.whole_number();
        match self.digits.min(DIGITS_MAX) {
            0 => ValueRef::Int(whole),
            digits => {
                let unit = i64::from(10u32.pow(u32::from(DIGITS_MAX - digits)));
                let fraction = i64::from(parts.microsecond) / unit;
                let scaled = i128::from(whole.abs()) * 10i128.pow(digits.into()) + i128::from(fraction);
                let mantissa = if parts.negative { -scaled } else { scaled };
                ValueRef::Decimal(crate::value::Decimal::Narrow { mantissa, scale: digits })
            }
        }
    }

    /// [`Self::as_number`] of the value with its seconds rounded to whole ones, half up, with their carry. A
    /// value that has no successor keeps its seconds.
    pub fn as_rounded_number(self) -> ValueRef<'static> {
        let parts = rounded(self.kind, self.parts(), 0, 0).0.unwrap_or(self.parts());
        Temporal::from_parts(self.kind, 0, &parts).as_number()
    }

    /// [`Self::as_number`] as a double.
    pub fn to_double(self) -> f64 {
        let parts = self.parts();
        let whole = self.whole_number() as f64;
        let fraction = f64::from(parts.microsecond) / 1e6;
        if parts.negative { whole - fraction } else { whole + fraction }
    }

    /// [`Self::as_number`] without the digits after the point.
    pub fn whole_number(self) -> i64 {
        let parts = self.parts();
        let date = i64::from(parts.year) * 10_000 + i64::from(parts.month) * 100 + i64::from(parts.day);
        let time = i64::from(parts.hour) * 10_000 + i64::from(parts.minute) * 100 + i64::from(parts.second);
        match self.kind {
            TemporalKind::Year => parts.year.into(),
            TemporalKind::Date => date,
            TemporalKind::Time if parts.negative => -time,
            TemporalKind::Time => time,
            TemporalKind::DateTime | TemporalKind::Timestamp => date * 1_000_000 + time,
        }
    }
}

fn push_digits(value: u32, count: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + count, b'0');
    let mut rest = value;
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// The rules of `sql_mode` for days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateRules {
    /// NO_ZERO_DATE: 0000-00-00 is wrong.
    pub no_zero_date: bool,
    /// NO_ZERO_IN_DATE: a month or day of 0 is wrong.
    pub no_zero_in_date: bool,
    /// ALLOW_INVALID_DATES: every month has 31 days.
    pub allows_invalid: bool,
    /// The zone to which a text with an offset from UTC is converted. `None`: such a text is wrong.
    pub zone: Option<Zone>,
}

impl DateRules {
    /// The rules of MySQL's default `sql_mode`.
    pub const DEFAULT: DateRules = DateRules { no_zero_date: true, no_zero_in_date: true, ..DateRules::FUZZY };
    /// Zero dates and zeros in dates are values as others, as in comparisons.
    pub const FUZZY: DateRules =
        DateRules { no_zero_date: false, no_zero_in_date: false, allows_invalid: false, zone: None };
}

/// The rules of a session for days and times, which travel with its requests: the rules for days in bits 0
/// to 2, the code of the time zone in bits 3 to 15, in bits 16 to 47 the day of the statement in that
/// zone, counted from 1970 on, in bits 48 to 55 the number of the locale, and in bit 56
/// TIME_TRUNCATE_FRACTIONAL. Plans that need no day have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRules(pub u64);

impl ValueRules {
    const NO_ZERO_DATE: u64 = 1;
    const NO_ZERO_IN_DATE: u64 = 2;
    const ALLOWS_INVALID: u64 = 4;
    const ZONE_SHIFT: u32 = 3;
    const DAY_SHIFT: u32 = 16;
    const DAY_MASK: u64 = 0xffff_ffff << ValueRules::DAY_SHIFT;
    const LOCALE_SHIFT: u32 = 48;
    const TRUNCATES: u64 = 1 << 56;

    /// The rules of MySQL's default `sql_mode`, and UTC.
    pub const DEFAULT: ValueRules = ValueRules::new(DateRules::DEFAULT, Zone::UTC);

    /// These rules for days, and this zone.
    pub const fn new(dates: DateRules, zone: Zone) -> ValueRules {
        let mut bits = ((zone.code() as u16) << ValueRules::ZONE_SHIFT) as u64;
        if dates.no_zero_date {
            bits |= ValueRules::NO_ZERO_DATE;
        }
        if dates.no_zero_in_date {
            bits |= ValueRules::NO_ZERO_IN_DATE;
        }
        if dates.allows_invalid {
            bits |= ValueRules::ALLOWS_INVALID;
        }
        ValueRules(bits)
    }

    /// The days that are wrong.
    pub fn dates(self) -> DateRules {
        DateRules {
            no_zero_date: self.0 & ValueRules::NO_ZERO_DATE != 0,
            no_zero_in_date: self.0 & ValueRules::NO_ZERO_IN_DATE != 0,
            allows_invalid: self.0 & ValueRules::ALLOWS_INVALID != 0,
            zone: Some(self.zone()),
        }
    }

    /// The days of expressions: [`DateRules::FUZZY`] in the zone of the session.
    pub fn fuzzy_dates(self) -> DateRules {
        DateRules { zone: Some(self.zone()), ..DateRules::FUZZY }
    }

    /// The zone of TIMESTAMP.
    pub fn zone(self) -> Zone {
        Zone::of_code(self.0 as i16 >> ValueRules::ZONE_SHIFT)
    }

    /// The same rules on the day of a time in microseconds since 1970 in UTC.
    pub fn at(self, microseconds: u64) -> ValueRules {
        let seconds = (microseconds / 1_000_000) as i64;
        let days = (seconds + self.zone().offset_at(seconds)).div_euclid(86_400).max(0) as u64;
        ValueRules(self.0 & !ValueRules::DAY_MASK | days << ValueRules::DAY_SHIFT & ValueRules::DAY_MASK)
    }

    /// The same rules with TIME_TRUNCATE_FRACTIONAL set or not.
    pub fn truncating(self, truncates: bool) -> ValueRules {
        ValueRules(if truncates { self.0 | ValueRules::TRUNCATES } else { self.0 & !ValueRules::TRUNCATES })
    }

    /// TIME_TRUNCATE_FRACTIONAL: digits of the seconds that a type lacks are cut, not rounded.
    pub fn truncates(self) -> bool {
        self.0 & ValueRules::TRUNCATES != 0
    }

    /// The same rules with the names of months and days in a locale.
    pub fn in_locale(self, locale: Locale) -> ValueRules {
        let others = self.0 & ((1 << ValueRules::LOCALE_SHIFT) - 1);
        ValueRules(others | u64::from(locale.number()) << ValueRules::LOCALE_SHIFT)
    }

    /// The locale of the names of months and days.
    pub fn locale(self) -> Locale {
        Locale::of_number((self.0 >> ValueRules::LOCALE_SHIFT) as u8)
    }

    /// The day of the statement at midnight.
    pub fn today(self) -> Temporal {
        let (year, month, day) = civil_of_days(((self.0 & ValueRules::DAY_MASK) >> ValueRules::DAY_SHIFT) as i64);
        Temporal::date(year.clamp(0, YEAR_MAX.into()) as u16, month, day)
    }
}

impl Default for ValueRules {
    fn default() -> ValueRules {
        ValueRules::DEFAULT
    }
}

/// The defects of a value that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// It is no date or time, or other characters follow.
    pub truncated: bool,
    /// It is beyond the range.
    pub out_of_range: bool,
    /// It is the zero date, which NO_ZERO_DATE excludes.
    pub zero_date: bool,
    /// It has a month or day of 0, which NO_ZERO_IN_DATE excludes.
    pub zero_in_date: bool,
    /// The clocks of the time zone skip it.
    pub skipped: bool,
}

impl Defects {
    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self == Defects::default()
    }
}

/// A value that was read from a text or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The value; `None` if there is none.
    pub parts: Option<Parts>,
    /// Nanoseconds beyond the microseconds.
    pub nanoseconds: u32,
    /// Digits after the point, as written, at most 6.
    pub digits: u8,
    /// DATE if no time was written.
    pub kind: TemporalKind,
    /// The defects of the input.
    pub defects: Defects,
    /// Whether the text had an offset from UTC, so that the value is in the zone of the rules.
    pub has_offset: bool,
}

impl Read {
    /// A value that needs no reading.
    pub fn from_parts(kind: TemporalKind, parts: Parts) -> Read {
        let defects = Defects::default();
        Read { parts: Some(parts), nanoseconds: 0, digits: DIGITS_MAX, kind, defects, has_offset: false }
    }

    /// The same, tested by the rules for days.
    pub(crate) fn checked(self, rules: DateRules) -> Read {
        let mut defects = self.defects;
        match self.parts {
            Some(parts) if !check_date(&parts, rules, &mut defects) => Read { parts: None, defects, ..self },
            _ => self,
        }
    }

    fn failed(defects: Defects) -> Read {
        Read { parts: None, nanoseconds: 0, digits: 0, kind: TemporalKind::DateTime, defects, has_offset: false }
    }
}

/// Tests the day by the rules.
fn check_date(parts: &Parts, rules: DateRules, defects: &mut Defects) -> bool {
    let before = *defects;
    if parts.has_no_date() && parts.has_no_time() {
        defects.zero_date |= rules.no_zero_date;
    } else if rules.no_zero_in_date && (parts.month == 0 || parts.day == 0) {
        defects.zero_in_date = true;
    } else if !rules.allows_invalid && parts.month > 0 && parts.day > days_in_month(parts.year, parts.month) {
        defects.out_of_range = true;
    }
    *defects == before
}

#[cfg(test)]
mod tests;
