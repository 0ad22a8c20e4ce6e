//! The units of intervals.

use junctor_model::value::ValueRef;

use crate::decimal;

/// A unit: its name, and the places of its parts among year, month, day, hour, minute, second and
/// microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub name: &'static str,
    /// The first and last part.
    parts: (usize, usize),
    /// How many of its part make it: a week is 7 days.
    factor: i64,
}

pub(super) const YEAR: usize = 0;
pub(super) const MONTH: usize = 1;
pub(super) const DAY: usize = 2;
pub(super) const HOUR: usize = 3;
pub(super) const MINUTE: usize = 4;
pub(super) const SECOND: usize = 5;
pub(super) const MICROSECOND: usize = 6;

const fn unit(name: &'static str, first: usize, last: usize, factor: i64) -> Unit {
    Unit { name, parts: (first, last), factor }
}

const UNITS: [Unit; 20] = [
    unit("MICROSECOND", MICROSECOND, MICROSECOND, 1),
    unit("SECOND", SECOND, SECOND, 1),
    unit("MINUTE", MINUTE, MINUTE, 1),
    unit("HOUR", HOUR, HOUR, 1),
    unit("DAY", DAY, DAY, 1),
    unit("WEEK", DAY, DAY, 7),
    unit("MONTH", MONTH, MONTH, 1),
    unit("QUARTER", MONTH, MONTH, 3),
    unit("YEAR", YEAR, YEAR, 1),
    unit("SECOND_MICROSECOND", SECOND, MICROSECOND, 1),
    unit("MINUTE_MICROSECOND", MINUTE, MICROSECOND, 1),
    unit("MINUTE_SECOND", MINUTE, SECOND, 1),
    unit("HOUR_MICROSECOND", HOUR, MICROSECOND, 1),
    unit("HOUR_SECOND", HOUR, SECOND, 1),
    unit("HOUR_MINUTE", HOUR, MINUTE, 1),
    unit("DAY_MICROSECOND", DAY, MICROSECOND, 1),
    unit("DAY_SECOND", DAY, SECOND, 1),
    unit("DAY_MINUTE", DAY, MINUTE, 1),
    unit("DAY_HOUR", DAY, HOUR, 1),
    unit("YEAR_MONTH", YEAR, MONTH, 1),
];

/// Whether an interval can have this unit, in any letter case.
pub fn is_unit(name: &str) -> bool {
    Unit::find(name.as_bytes()).is_some()
}

/// An interval: its parts, all of one sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub parts: [i64; 7],
}

impl Unit {
    pub fn find(name: &[u8]) -> Option<Unit> {
        let upper = name.to_ascii_uppercase();
        let name = upper.strip_prefix(b"SQL_TSI_").unwrap_or(&upper);
        UNITS.into_iter().find(|unit| unit.name.as_bytes() == name)
    }

    /// Whether the unit is a part of a day.
    pub fn has_time(self) -> bool {
        self.parts.1 >= HOUR
    }

    /// Whether the unit is a day or longer, or contains one.
    pub fn has_date(self) -> bool {
        self.parts.0 <= DAY
    }

    pub fn has_microseconds(self) -> bool {
        self.parts.1 == MICROSECOND
    }

    pub fn is_simple(self) -> bool {
        self.parts.0 == self.parts.1
    }

    pub fn is_second(self) -> bool {
        self.parts == (SECOND, SECOND)
    }

    /// The first part and the last one.
    pub fn range(self) -> (usize, usize) {
        self.parts
    }

    pub fn factor(self) -> i64 {
        self.factor
    }

    /// The interval of a number of a simple unit.
    pub fn of_number(self, number: i64) -> Option<Interval> {
        let mut interval = Interval::default();
        interval.parts[self.parts.0] = number.checked_mul(self.factor)?;
        Some(interval)
    }

    /// The interval of seconds with digits after the point.
    pub fn of_seconds(value: ValueRef<'_>) -> Option<Interval> {
        let ValueRef::Decimal(value) = value else { return None };
        let microseconds = decimal::with_scale(value, 6)?.narrow_mantissa()?;
        let mut interval = Interval::default();
        interval.parts[SECOND] = i64::try_from(microseconds / 1_000_000).ok()?;
        interval.parts[MICROSECOND] = (microseconds % 1_000_000) as i64;
        Some(interval)
    }

    /// The interval of a text with several numbers, such as `1 12:30`. Missing numbers are those of the
    /// longest parts. The digits of microseconds are digits after a point.
    pub fn of_text(self, text: &[u8]) -> Option<Interval> {
        let text = text.trim_ascii();
        let (is_negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (first, last) = self.parts;
        let wanted = last - first + 1;
        let mut numbers = Vec::with_capacity(wanted);
        let groups = text.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
        for digits in groups.take(wanted) {
            let number = digits
                .iter()
                .try_fold(0i64, |number, digit| number.checked_mul(10)?.checked_add(i64::from(digit - b'0')))?;
            numbers.push((number, digits.len()));
        }
        let mut interval = Interval::default();
        let start = last + 1 - numbers.len();
        for (at, (number, length)) in numbers.into_iter().enumerate() {
            let part = start + at;
            interval.parts[part] = match part == MICROSECOND && length < 6 {
                true => number * 10i64.pow(6 - length as u32),
                false => number,
            };
        }
        Some(if is_negative { interval.negated() } else { interval })
    }
}

impl Interval {
    pub fn negated(self) -> Interval {
        Interval { parts: self.parts.map(i64::wrapping_neg) }
    }

    /// The months of years and months.
    pub fn months(self) -> Option<i64> {
        self.parts[YEAR].checked_mul(12)?.checked_add(self.parts[MONTH])
    }

    /// The microseconds of the other parts.
    pub fn microseconds(self) -> i128 {
        let part = |part: usize, seconds: i128| i128::from(self.parts[part]) * seconds * super::SECOND_US;
        part(DAY, 86_400) + part(HOUR, 3_600) + part(MINUTE, 60) + part(SECOND, 1) + i128::from(self.parts[MICROSECOND])
    }
}
