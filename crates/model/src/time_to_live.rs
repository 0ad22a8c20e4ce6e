//! The time to live of rows: a table option in the comment, `NDB_TABLE=TTL=<seconds>@<column>`.
//!
//! A row is expired when the value of its column is at least so many seconds ago. NULL never expires. A
//! DATETIME counts as UTC, so that all sessions and nodes agree. A zero date is the oldest one.

use crate::error::{Error, ErrorCode, Result};
use crate::id::ColumnNumber;
use crate::schema::ColumnDefinition;
use crate::temporal::{DIGITS_MAX, Parts, Temporal, TemporalKind, add_seconds, days_of_civil};
use crate::types::Form;
use crate::value::ValueRef;

/// Maximum number of seconds, as in RonDB.
pub const TTL_SECONDS_MAX: u32 = 4_294_967_039;

/// The mark in front of the options of a comment.
const OPTIONS_MARK: &str = "NDB_TABLE=";

/// The time to live of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeToLive {
    /// The column from which the time counts.
    pub column: ColumnNumber,
    /// The time that a row lives after the value of the column.
    pub seconds: u32,
}

impl TimeToLive {
    /// The option in a table's comment; `None` without one, and for OFF.
    ///
    /// # Errors
    /// 1478 for a wrong number, an unknown column, or one that is neither DATETIME nor TIMESTAMP.
    pub fn of_comment(comment: &str, columns: &[ColumnDefinition]) -> Result<Option<TimeToLive>> {
        let Some(value) = option_of(comment) else { return Ok(None) };
        if value.eq_ignore_ascii_case("OFF") {
            return Ok(None);
        }
        let Some((seconds, name)) = value.split_once('@') else {
            return Err(wrong(value, "expected TTL=<seconds>@<column> or TTL=OFF"));
        };
        let is_number = !seconds.is_empty() && seconds.bytes().all(|digit| digit.is_ascii_digit());
        let number = seconds.parse::<u64>().ok().filter(|number| is_number && *number <= TTL_SECONDS_MAX.into());
        let Some(seconds) = number else {
            return Err(wrong(value, &format!("the number of seconds must be from 0 to {TTL_SECONDS_MAX}")));
        };
        let name = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')).unwrap_or(name);
        let is_it = |column: &ColumnDefinition| !column.hidden && column.name.eq_ignore_ascii_case(name);
        let Some(position) = columns.iter().position(is_it) else {
            return Err(wrong(value, &format!("the table has no column '{name}'")));
        };
        match columns[position].column_type.form() {
            Form::Temporal(TemporalKind::DateTime | TemporalKind::Timestamp) => {
                Ok(Some(TimeToLive { column: ColumnNumber(position as u16), seconds: seconds as u32 }))
            }
            _ => Err(wrong(value, &format!("column '{name}' is neither DATETIME nor TIMESTAMP"))),
        }
    }

    /// Whether a row with this value in the column, as it is stored, is expired at a time in microseconds
    /// since 1970 in UTC.
    #[inline]
    pub fn is_expired(self, value: ValueRef<'_>, now_us: i64) -> bool {
        is_expired(value, i64::from(self.seconds), now_us)
    }
}

/// Whether a stored value is at least `seconds` before a time in microseconds since 1970 in UTC.
#[inline]
pub fn is_expired(value: ValueRef<'_>, seconds: i64, now_us: i64) -> bool {
    match value {
        ValueRef::Temporal(moment) => {
            utc_microseconds(moment).saturating_add(seconds.saturating_mul(1_000_000)) <= now_us
        }
        _ => false,
    }
}

/// The last value of a column whose rows have expired at a time in UTC: an instant, or a DATETIME in UTC.
pub fn last_expired(now: Temporal, seconds: i64, is_instant: bool) -> Temporal {
    let last = utc_microseconds(now).saturating_sub(seconds.saturating_mul(1_000_000));
    let (whole, microsecond) = (last.div_euclid(1_000_000), last.rem_euclid(1_000_000) as u32);
    match is_instant {
        // Before 1970 there are only zero dates.
        true => Temporal::instant(whole.max(0), if whole < 0 { 0 } else { microsecond }, DIGITS_MAX),
        false => {
            let start = Parts { year: 1970, month: 1, day: 1, microsecond, ..Parts::default() };
            let parts = add_seconds(&start, whole).unwrap_or_default();
            Temporal::from_parts(TemporalKind::DateTime, DIGITS_MAX, &parts)
        }
    }
}

/// The microseconds since 1970 of an instant, or of a DATETIME in UTC.
pub fn utc_microseconds(moment: Temporal) -> i64 {
    if moment.kind == TemporalKind::Timestamp {
        let (seconds, microsecond) = moment.instant_parts();
        return seconds * 1_000_000 + i64::from(microsecond);
    }
    let parts = moment.parts();
    // A month or day of 0 counts as the first one.
    let days = days_of_civil(parts.year.into(), parts.month.max(1), parts.day.max(1));
    let clock = i64::from(parts.hour) * 3600 + i64::from(parts.minute) * 60 + i64::from(parts.second);
    (days * 86_400 + clock) * 1_000_000 + i64::from(parts.microsecond)
}

/// The value of the option TTL among those of a comment. The last one counts.
fn option_of(comment: &str) -> Option<&str> {
    let start = find_ignoring_case(comment, OPTIONS_MARK)? + OPTIONS_MARK.len();
    let options = comment[start..].split(|end: char| end.is_whitespace() || end == ';').next().unwrap_or_default();
    let mut values = options.split(',').filter_map(|option| option.split_once('='));
    values.rfind(|(name, _)| name.eq_ignore_ascii_case("TTL")).map(|(_, value)| value)
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    let places = text.as_bytes().windows(wanted.len());
    places.into_iter().position(|place| place.eq_ignore_ascii_case(wanted.as_bytes()))
}

#[cold]
fn wrong(value: &str, reason: &str) -> Box<Error> {
    let text = format!("Table storage engine 'Junctor' does not support the create option 'TTL={value}': {reason}");
    Error::new(ErrorCode::IllegalCreateOption, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DataType;

    fn columns() -> Vec<ColumnDefinition> {
        let column = |name, column_type| ColumnDefinition::new(name, column_type);
        vec![
            column("id", DataType::integer(4, false)),
            column("Created", DataType::timestamp(3)),
            column("d", DataType::date_time(0)),
            ColumnDefinition { hidden: true, ..column("h", DataType::date_time(0)) },
        ]
    }

    fn read(comment: &str) -> Result<Option<TimeToLive>> {
        TimeToLive::of_comment(comment, &columns())
    }

    #[test]
    fn the_option_is_found_among_others() {
        let ttl = |column, seconds| Ok(Some(TimeToLive { column: ColumnNumber(column), seconds }));
        assert_eq!(read("NDB_TABLE=TTL=3600@created"), ttl(1, 3600));
        assert_eq!(read("my rows ndb_table=READ_BACKUP=1,ttl=0@`d` and more"), ttl(2, 0));
        assert_eq!(read("NDB_TABLE=TTL=4294967039@d,TTL=5@d;x"), ttl(2, 5));
        assert_eq!(read("NDB_TABLE=TTL=4294967039@d"), ttl(2, TTL_SECONDS_MAX));
        for none in ["", "TTL=1@d", "NDB_TABLE=READ_BACKUP=1", "NDB_TABLE=TTL=OFF", "NDB_TABLE=", "NDB_TABLE=X TTL=1@d"]
        {
            assert_eq!(read(none), Ok(None), "{none}");
        }
    }

    #[test]
    fn a_wrong_option_is_an_error_with_its_reason() {
        for (option, reason) in [
            ("TTL=4294967040@d", "from 0 to 4294967039"),
            ("TTL=-1@d", "from 0 to"),
            ("TTL=+1@d", "from 0 to"),
            ("TTL=@d", "from 0 to"),
            ("TTL=1h@d", "from 0 to"),
            ("TTL=60", "expected TTL=<seconds>@<column> or TTL=OFF"),
            ("TTL=60@id", "column 'id' is neither DATETIME nor TIMESTAMP"),
            ("TTL=60@x", "no column 'x'"),
            ("TTL=60@h", "no column 'h'"),
            ("TTL=60@", "no column ''"),
        ] {
            let error = read(&format!("NDB_TABLE={option}")).expect_err(option);
            assert_eq!(error.code.errno(), 1478);
            assert!(error.message.contains(reason) && error.message.contains(option), "{}", error.message);
        }
    }

    #[test]
    fn a_row_expires_the_given_time_after_its_value() {
        let ttl = TimeToLive { column: ColumnNumber(0), seconds: 10 };
        let instant = ValueRef::Temporal(Temporal::instant(1_000, 500_000, 6));
        assert!(!ttl.is_expired(instant, 1_010_499_999));
        assert!(ttl.is_expired(instant, 1_010_500_000));
        let parts = Parts { year: 1970, month: 1, day: 2, hour: 1, microsecond: 7, ..Parts::default() };
        let moment = ValueRef::Temporal(Temporal::from_parts(TemporalKind::DateTime, 6, &parts));
        let expires = (86_400 + 3_600 + 10) * 1_000_000 + 7;
        assert!(!ttl.is_expired(moment, expires - 1) && ttl.is_expired(moment, expires));
        assert!(!ttl.is_expired(ValueRef::Null, i64::MAX));
        let zero = ValueRef::Temporal(Temporal::from_parts(TemporalKind::DateTime, 0, &Parts::default()));
        assert!(ttl.is_expired(zero, 0));
    }

    #[test]
    fn the_last_expired_value_is_expired_and_the_next_one_is_not() {
        for now_us in [1_700_000_000_123_456_i64, 86_400_000_000, 5_000_000] {
            let parts =
                Parts { year: 1970, month: 1, day: 1, microsecond: (now_us % 1_000_000) as u32, ..Parts::default() };
            let parts = add_seconds(&parts, now_us / 1_000_000).expect("a day");
            let now = Temporal::from_parts(TemporalKind::DateTime, DIGITS_MAX, &parts);
            assert_eq!(utc_microseconds(now), now_us);
            for is_instant in [false, true] {
                let last = last_expired(now, 5, is_instant);
                assert!(is_expired(ValueRef::Temporal(last), 5, now_us), "{now_us} {is_instant}");
                assert!(!is_expired(ValueRef::Temporal(last), 5, now_us - 1), "{now_us} {is_instant}");
            }
        }
        let early = last_expired(Temporal::date(1970, 1, 1).to_date_time(), 100, true);
        assert!(early.is_zero());
        assert_eq!(last_expired(Temporal::date(1970, 1, 1).to_date_time(), 86_400, false).parts().year, 1969);
    }
}
