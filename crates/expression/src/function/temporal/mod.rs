//! Functions of days and times.

mod arithmetic;
mod build;
mod difference;
mod fields;
mod format;
mod read_format;
mod unit;
mod week;
mod zone;

use junctor_model::error::{ErrorCode, Result};
use junctor_model::row_encoding::append_text;
use junctor_model::scratch::excerpt;
use junctor_model::temporal::{Parts, Temporal, TemporalKind, days_of_civil};
use junctor_model::value::{Value, ValueRef};

use super::{Call, Function};
use crate::evaluate::to_temporal;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(super) const FIELDS: &[Function] = fields::TABLE;
pub(super) const ARITHMETIC: &[Function] = arithmetic::TABLE;
pub(super) const DIFFERENCE: &[Function] = difference::TABLE;
pub(super) const BUILD: &[Function] = build::TABLE;
pub(super) const FORMAT: &[Function] = format::TABLE;
pub(super) const READ_FORMAT: &[Function] = read_format::TABLE;
pub(super) const WEEK: &[Function] = week::TABLE;
pub(super) const ZONE: &[Function] = zone::TABLE;

pub(crate) use arithmetic::{MOMENT_DECIMAL, MOMENT_NUMBER};
pub use unit::is_unit;

/// The number of 1970-01-01 in MySQL's numbering of days.
const DAYS_TO_1970: i64 = 719_528;
/// Number of the last day, 9999-12-31.
const DAY_MAX: i64 = 3_652_424;
/// Microseconds of a second.
const SECOND_US: i128 = 1_000_000;
/// Microseconds of a day.
const DAY_US: i128 = 86_400 * SECOND_US;
/// Microseconds of the greatest TIME, 838:59:59.
const TIME_US_MAX: i128 = (838 * 3600 + 59 * 60 + 59) * SECOND_US;

/// The day's number, from year 0 on, as TO_DAYS gives it. Year 0 has no leap day.
fn day_number(year: u16, month: u8, day: u8) -> i64 {
    let number = days_of_civil(year.into(), month, day) + DAYS_TO_1970;
    number + i64::from(year == 0 && month <= 2)
}

/// The microseconds of the time of day, or of a TIME without its sign.
fn clock_us(parts: &Parts) -> i128 {
    let seconds = i128::from(parts.hour) * 3600 + i128::from(parts.minute) * 60 + i128::from(parts.second);
    seconds * SECOND_US + i128::from(parts.microsecond)
}

/// The TIME of this many microseconds, and whether it was beyond the range and is therefore the greatest.
fn time_of_us(microseconds: i128, digits: u8) -> (Temporal, bool) {
    let magnitude = microseconds.abs().min(TIME_US_MAX);
    let seconds = magnitude / SECOND_US;
    let parts = Parts {
        negative: microseconds < 0,
        hour: (seconds / 3600) as u16,
        minute: (seconds / 60 % 60) as u8,
        second: (seconds % 60) as u8,
        microsecond: (magnitude % SECOND_US) as u32,
        ..Parts::default()
    };
    (Temporal::from_parts(TemporalKind::Time, digits, &parts), microseconds.abs() > TIME_US_MAX)
}

/// Digits after the point of the seconds in a value of this type, where it serves as a time.
fn digits_of(argument: &Expression) -> u8 {
    match argument.result.kind {
        Kind::Date | Kind::Year | Kind::Int | Kind::UInt | Kind::Null | Kind::Bit | Kind::Json => 0,
        Kind::Time | Kind::DateTime | Kind::Timestamp | Kind::Decimal => argument.result.scale().min(6),
        Kind::String | Kind::Enum | Kind::Set | Kind::Geometry => match argument.as_constant() {
            // A literal has as many digits as it shows.
            Some(Value::Bytes(text)) => {
                let point = text.iter().rposition(|byte| *byte == b'.');
                point.map_or(0, |point| {
                    text[point + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count().min(6) as u8
                })
            }
            _ => 6,
        },
        Kind::Float | Kind::Double => 6,
    }
}

impl<'r> Call<'r> {
    /// The argument as a day with a time of day; `None` for NULL and, with a warning, for what is none. A
    /// month or day of 0 is allowed.
    fn date_time(&self, position: usize) -> Result<Option<Temporal>> {
        to_temporal(self.rounded(position)?, Kind::DateTime, 6, self.scratch())
    }

    /// Like `date_time`, but a month or day of 0 is wrong, too.
    fn whole_date_time(&self, position: usize) -> Result<Option<Temporal>> {
        let Some(value) = self.date_time(position)? else { return Ok(None) };
        let parts = value.parts();
        if parts.month == 0 || parts.day == 0 {
            self.warn_incorrect("datetime", position)?;
            return Ok(None);
        }
        Ok(Some(value))
    }

    /// The argument as a time.
    fn time(&self, position: usize) -> Result<Option<Temporal>> {
        to_temporal(self.rounded(position)?, Kind::Time, 6, self.scratch())
    }

    #[cold]
    fn warn_incorrect(&self, type_name: &str, position: usize) -> Result<()> {
        let value = self.rounded(position)?;
        let mut text = Vec::new();
        append_text(value, &mut text);
        let message = || format!("Incorrect {type_name} value: '{}'", excerpt(&text));
        self.scratch().warn(ErrorCode::TruncatedWrongValue, message)
    }

    /// NULL with warning 1441: the result is beyond the range.
    #[cold]
    fn field_overflow(&self, type_name: &str) -> Result<ValueRef<'r>> {
        let message = || format!("Datetime function: {type_name} field overflow");
        self.scratch().warn(ErrorCode::DateTimeOverflow, message)?;
        Ok(ValueRef::Null)
    }

    /// Warning 1292: a time beyond the range was replaced by the greatest.
    #[cold]
    fn warn_time_range(&self, shown: &str) -> Result<()> {
        let message = || format!("Truncated incorrect time value: '{shown}'");
        self.scratch().warn(ErrorCode::TruncatedWrongValue, message)
    }
}

/// The type of a temporal result that may be NULL.
fn temporal(kind: Kind, digits: u8) -> ResultType {
    ResultType::temporal(kind, digits).with_nullable(true)
}

#[cfg(test)]
mod tests;
