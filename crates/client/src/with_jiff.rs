//! Feature `jiff`: days and times as types of that crate.
//!
//! A TIMESTAMP is read as the `civil::DateTime` of the session's `time_zone`, which the driver does not know.
//! It is therefore no `jiff::Timestamp`.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use junctor_model::temporal::{Parts, Temporal, TemporalKind};
use junctor_model::value::{Value, ValueRef};

use super::error::Result;
use super::value::{FromValue, Parameter, ToValue, mismatch, out_of_range};

/// A value beyond the range of its kind. It is refused before it is sent.
fn beyond(kind: TemporalKind) -> Parameter<'static> {
    Parameter::Borrowed(ValueRef::Temporal(Temporal { kind, digits: 0, packed: i64::MAX }))
}

/// The parameter of the parts and of nanoseconds: with digits beyond the microseconds it is a text, which the
/// node rounds to the column's digits.
fn parameter(kind: TemporalKind, parts: &Parts, nanoseconds: u32) -> Parameter<'static> {
    let digits = if nanoseconds == 0 { 0 } else { 6 };
    let value = Temporal::from_parts(kind, digits, &Parts { microsecond: nanoseconds / 1_000, ..*parts });
    if nanoseconds.is_multiple_of(1_000) {
        return Parameter::Borrowed(ValueRef::Temporal(value));
    }
    let mut text = Vec::new();
    value.append_text(&mut text);
    text.extend_from_slice(format!("{:03}", nanoseconds % 1_000).as_bytes());
    Parameter::Owned(Value::Bytes(text))
}

fn date_parts(date: Date) -> Option<Parts> {
    let year = u16::try_from(date.year()).ok()?;
    Some(Parts { year, month: date.month() as u8, day: date.day() as u8, ..Parts::default() })
}

fn clock_parts(time: Time) -> Parts {
    let (hour, minute, second) = (time.hour() as u16, time.minute() as u8, time.second() as u8);
    Parts { hour, minute, second, ..Parts::default() }
}

impl ToValue for Date {
    /// A day before year 0 is refused.
    fn to_value(&self) -> Parameter<'_> {
        let kind = TemporalKind::Date;
        date_parts(*self).map_or(beyond(kind), |parts| parameter(kind, &parts, 0))
    }
}

impl ToValue for DateTime {
    /// A day before year 0 is refused.
    fn to_value(&self) -> Parameter<'_> {
        let kind = TemporalKind::DateTime;
        let Some(date) = date_parts(self.date()) else { return beyond(kind) };
        let Parts { year, month, day, .. } = date;
        let parts = Parts { year, month, day, ..clock_parts(self.time()) };
        parameter(kind, &parts, self.subsec_nanosecond().unsigned_abs())
    }
}

impl ToValue for Time {
    fn to_value(&self) -> Parameter<'_> {
        parameter(TemporalKind::Time, &clock_parts(*self), self.subsec_nanosecond().unsigned_abs())
    }
}

impl ToValue for SignedDuration {
    /// More than 838:59:59 is refused.
    fn to_value(&self) -> Parameter<'_> {
        let (seconds, nanoseconds) = (self.as_secs().unsigned_abs(), self.subsec_nanos().unsigned_abs());
        if (seconds, nanoseconds) > (SECONDS_MAX, 0) {
            return beyond(TemporalKind::Time);
        }
        let (hour, minute, second) = ((seconds / 3600) as u16, (seconds / 60 % 60) as u8, (seconds % 60) as u8);
        let parts = Parts { negative: self.is_negative(), hour, minute, second, ..Parts::default() };
        parameter(TemporalKind::Time, &parts, nanoseconds)
    }
}

/// Seconds of the greatest TIME, 838:59:59.
const SECONDS_MAX: u64 = 838 * 3600 + 59 * 60 + 59;

fn date(parts: &Parts) -> Option<Date> {
    Date::new(parts.year as i16, parts.month as i8, parts.day as i8).ok()
}

fn time(parts: &Parts) -> Option<Time> {
    let nanosecond = (parts.microsecond * 1_000) as i32;
    Time::new(i8::try_from(parts.hour).ok()?, parts.minute as i8, parts.second as i8, nanosecond).ok()
}

/// The parts of a value of one of the kinds.
fn parts_of(value: ValueRef<'_>, kinds: &[TemporalKind], wanted: &str) -> Result<Parts> {
    match value {
        ValueRef::Temporal(temporal) if kinds.contains(&temporal.kind) => Ok(temporal.parts()),
        _ => Err(mismatch(value, wanted)),
    }
}

impl<'a> FromValue<'a> for Date {
    /// A DATE. The zero date and days of month or day 0 are out of range.
    fn from_value(value: ValueRef<'a>) -> Result<Date> {
        let parts = parts_of(value, &[TemporalKind::Date], "a DATE")?;
        date(&parts).ok_or_else(|| out_of_range(value, "jiff::civil::Date"))
    }
}

impl<'a> FromValue<'a> for DateTime {
    /// A DATETIME or TIMESTAMP, or a DATE at midnight. The zero date and days of month or day 0 are out of
    /// range.
    fn from_value(value: ValueRef<'a>) -> Result<DateTime> {
        const KINDS: [TemporalKind; 3] = [TemporalKind::DateTime, TemporalKind::Timestamp, TemporalKind::Date];
        let parts = parts_of(value, &KINDS, "a DATETIME")?;
        let made = date(&parts).zip(time(&parts)).map(|(date, time)| DateTime::from_parts(date, time));
        made.ok_or_else(|| out_of_range(value, "jiff::civil::DateTime"))
    }
}

impl<'a> FromValue<'a> for Time {
    /// A TIME from 00:00:00 to 23:59:59.999999. Others are out of range.
    fn from_value(value: ValueRef<'a>) -> Result<Time> {
        let parts = parts_of(value, &[TemporalKind::Time], "a TIME")?;
        let made = if parts.negative { None } else { time(&parts) };
        made.ok_or_else(|| out_of_range(value, "jiff::civil::Time"))
    }
}

impl<'a> FromValue<'a> for SignedDuration {
    /// A TIME.
    fn from_value(value: ValueRef<'a>) -> Result<SignedDuration> {
        let parts = parts_of(value, &[TemporalKind::Time], "a TIME")?;
        let seconds = i64::from(parts.hour) * 3600 + i64::from(parts.minute) * 60 + i64::from(parts.second);
        let length = SignedDuration::new(seconds, (parts.microsecond * 1_000) as i32);
        Ok(if parts.negative { -length } else { length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::check;

    fn text(value: &dyn ToValue) -> String {
        let value = value.to_value();
        check(value.as_ref()).map_or_else(
            |error| error.message().to_owned(),
            |()| {
                let mut text = Vec::new();
                junctor_model::row_encoding::append_text(value.as_ref(), &mut text);
                String::from_utf8(text).expect("it is ASCII")
            },
        )
    }

    #[test]
    fn values_are_sent_with_every_digit_or_refused() {
        const RANGE: &str = "A day or time is out of the range of its type";
        assert_eq!(text(&Date::constant(2024, 2, 29)), "2024-02-29");
        assert_eq!(text(&Date::constant(0, 1, 1)), "0000-01-01");
        assert_eq!(text(&Date::constant(-1, 1, 1)), RANGE);
        assert_eq!(text(&DateTime::constant(-9999, 1, 1, 0, 0, 0, 0)), RANGE);
        assert_eq!(text(&DateTime::constant(9999, 12, 31, 23, 59, 59, 999_999_999)), "9999-12-31 23:59:59.999999999");
        assert_eq!(text(&DateTime::constant(1, 2, 3, 4, 5, 6, 7_000)), "0001-02-03 04:05:06.000007");
        assert_eq!(text(&Time::constant(4, 5, 6, 0)), "04:05:06");
        assert_eq!(text(&-SignedDuration::new(838 * 3600 + 59 * 60 + 58, 999_999_000)), "-838:59:58.999999");
        assert_eq!(text(&SignedDuration::new(838 * 3600 + 59 * 60 + 59, 0)), "838:59:59");
        assert_eq!(text(&SignedDuration::new(838 * 3600 + 59 * 60 + 59, 1)), RANGE);
        assert_eq!(text(&-SignedDuration::from_hours(839)), RANGE);
    }

    #[test]
    fn values_that_jiff_has_not_are_out_of_range() {
        let date = |year, month, day| ValueRef::Temporal(Temporal::date(year, month, day));
        let hours = |hour| {
            let parts = Parts { hour, ..Parts::default() };
            ValueRef::Temporal(Temporal::from_parts(TemporalKind::Time, 0, &parts))
        };
        let message = |error: crate::Error| error.message().to_owned();
        let zero = Date::from_value(date(0, 0, 0)).map_err(message);
        assert_eq!(zero, Err("The value 0000-00-00 is out of the range of jiff::civil::Date".to_owned()));
        assert!(DateTime::from_value(date(2024, 0, 1)).is_err());
        assert!(DateTime::from_value(date(2023, 2, 31)).is_err());
        assert_eq!(Time::from_value(hours(23)).ok(), Some(Time::constant(23, 0, 0, 0)));
        assert!(Time::from_value(hours(24)).is_err());
        assert_eq!(SignedDuration::from_value(hours(838)).ok(), Some(SignedDuration::from_hours(838)));
        let wrong = SignedDuration::from_value(date(2024, 1, 1)).map_err(message);
        assert_eq!(wrong, Err("The value is a day or time, not a TIME".to_owned()));
        assert!(Date::from_value(ValueRef::Bytes(b"2024-01-01")).is_err());
    }
}
