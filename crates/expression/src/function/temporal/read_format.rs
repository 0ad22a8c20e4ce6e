//! STR_TO_DATE.

use junctor_model::error::{ErrorCode, Result};
use junctor_model::scratch::excerpt;
use junctor_model::temporal::{Parts, Temporal, TemporalKind, civil_of_days};
use junctor_model::value::{Value, ValueRef};

use super::super::{Call, Function, TypedCall, function};
use super::fields::{DAYS, MONTHS};
use super::{DAYS_TO_1970, day_number, temporal};
use crate::program::Expression;
use crate::result_type::Kind;

pub(in super::super) const TABLE: &[Function] = &[function("STR_TO_DATE", 2, 2, resolve, str_to_date)];

/// Numbers of days up to this one give the zero date, as in MySQL.
const DAYS_WITHOUT_DATE: i64 = 365;
const DATE_SPECIFIERS: &[u8] = b"aWbMcmdDejUuVvwXxYy";
const TIME_SPECIFIERS: &[u8] = b"HIhkliprSsTf";

/// A format that is constant determines whether the result is a day, a time or both.
fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = match arguments[1].as_constant() {
        Some(Value::Bytes(format)) => {
            let has = |among: &[u8]| format.windows(2).any(|pair| pair[0] == b'%' && among.contains(&pair[1]));
            let digits = if has(b"f") { 6 } else { 0 };
            match (has(DATE_SPECIFIERS), has(TIME_SPECIFIERS)) {
                (true, true) | (false, false) => temporal(Kind::DateTime, digits),
                (true, false) => temporal(Kind::Date, 0),
                (false, true) => temporal(Kind::Time, digits),
            }
        }
        _ => temporal(Kind::DateTime, 6),
    };
    Ok(TypedCall { arguments, result })
}

fn str_to_date(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(format)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    let kind = match call.result.kind {
        Kind::Date => TemporalKind::Date,
        Kind::Time => TemporalKind::Time,
        _ => TemporalKind::DateTime,
    };
    // As in MySQL, every month has 31 days here.
    let rules = call.scratch().value_rules().dates();
    let read = read(text, format).filter(|(parts, _)| {
        let has_zero = parts.month == 0 || parts.day == 0;
        let is_refused = if parts.has_no_date() { rules.no_zero_date } else { rules.no_zero_in_date };
        kind == TemporalKind::Time || !has_zero || !is_refused
    });
    let Some((parts, has_rest)) = read else {
        let type_name = match kind {
            TemporalKind::Time => "time",
            _ => "datetime",
        };
        let message = || format!("Incorrect {type_name} value: '{}' for function str_to_date", excerpt(text));
        call.scratch().warn(ErrorCode::WrongValueForFunction, message)?;
        return Ok(ValueRef::Null);
    };
    if has_rest {
        let message = || format!("Truncated incorrect datetime value: '{}'", excerpt(text));
        call.scratch().warn(ErrorCode::TruncatedWrongValue, message)?;
    }
    let parts = match kind {
        TemporalKind::Time => Parts { hour: parts.hour + 24 * u16::from(parts.day), ..parts },
        _ => parts,
    };
    Ok(ValueRef::Temporal(Temporal::from_parts(kind, call.result.scale(), &parts)))
}

/// The fields that the specifiers have read so far.
#[derive(Default)]
struct Found {
    parts: Parts,
    is_of_12_hours: bool,
    is_afternoon: bool,
    day_of_year: i64,
    /// 0 to 6 from Sunday on.
    weekday: Option<i64>,
    week: Option<(i64, bool)>,
    week_year: Option<i64>,
}

/// The parts, and whether text is left; `None` if the text does not have the format.
fn read(text: &[u8], format: &[u8]) -> Option<(Parts, bool)> {
    let mut rest = text.trim_ascii_start();
    let mut found = Found::default();
    let mut bytes = format.iter();
    while let Some(byte) = bytes.next() {
        if rest.is_empty() {
            break;
        }
        rest = rest.trim_ascii_start();
        match byte {
            b'%' => rest = found.specifier(*bytes.next()?, rest)?,
            blank if blank.is_ascii_whitespace() => {}
            literal => rest = rest.strip_prefix(&[*literal])?,
        }
    }
    let parts = found.finished()?;
    Some((parts, !rest.trim_ascii().is_empty()))
}

impl Found {
    fn specifier<'t>(&mut self, specifier: u8, rest: &'t [u8]) -> Option<&'t [u8]> {
        let digits = |most: usize| {
            let length = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
            let number = rest[..length].iter().fold(0i64, |number, digit| number * 10 + i64::from(digit - b'0'));
            (length > 0).then_some((number, length))
        };
        let named = |names: &[&str], length: Option<usize>| {
            names.iter().enumerate().find_map(|(at, name)| {
                let name = &name.as_bytes()[..length.unwrap_or(name.len())];
                rest.get(..name.len()).filter(|front| front.eq_ignore_ascii_case(name)).map(|_| (at, name.len()))
            })
        };
        let (number, length) = match specifier {
            b'Y' | b'X' | b'x' => digits(4)?,
            b'f' => digits(6)?,
            b'j' => digits(3)?,
            b'w' => digits(1)?,
            b'y' | b'm' | b'c' | b'd' | b'e' | b'D' | b'H' | b'k' | b'h' | b'I' | b'l' | b'i' | b'S' | b's' | b'U'
            | b'u' | b'V' | b'v' => digits(2)?,
            b'M' | b'b' => {
                let (at, length) = named(&MONTHS, None).or_else(|| named(&MONTHS, Some(3)))?;
                (at as i64 + 1, length)
            }
            b'W' | b'a' => {
                let (at, length) = named(&DAYS, None).or_else(|| named(&DAYS, Some(3)))?;
                ((at as i64 + 1) % 7, length)
            }
            b'p' => match rest.get(..2)?.to_ascii_uppercase().as_slice() {
                b"AM" => (0, 2),
                b"PM" => (1, 2),
                _ => return None,
            },
            b'r' | b'T' => return self.time_of_format(specifier, rest),
            b'%' => (0, rest.strip_prefix(b"%").map(|_| 1)?),
            b'.' => (0, rest.iter().take_while(|byte| byte.is_ascii_punctuation()).count()),
            b'@' => (0, rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()),
            b'#' => (0, rest.iter().take_while(|byte| byte.is_ascii_digit()).count()),
            _ => return None,
        };
        let parts = &mut self.parts;
        let mut consumed = length;
        match specifier {
            b'Y' if length == 2 => parts.year = (if number < 70 { number + 2000 } else { number + 1900 }) as u16,
            b'Y' => parts.year = number as u16,
            b'y' => parts.year = (if number < 70 { number + 2000 } else { number + 1900 }) as u16,
            b'm' | b'c' | b'M' | b'b' => parts.month = within(number, 12)? as u8,
            b'd' | b'e' => parts.day = within(number, 31)? as u8,
            b'D' => {
                parts.day = within(number, 31)? as u8;
                // The letters of an ordinal number.
                consumed += rest[length..].len().min(2);
            }
            b'H' | b'k' => parts.hour = within(number, 23)? as u16,
            b'h' | b'I' | b'l' => {
                parts.hour = within(number, 12).filter(|hour| *hour > 0)? as u16;
                self.is_of_12_hours = true;
            }
            b'i' => parts.minute = within(number, 59)? as u8,
            b'S' | b's' => parts.second = within(number, 59)? as u8,
            b'f' => parts.microsecond = (number * 10i64.pow(6 - length as u32)) as u32,
            b'p' => {
                self.is_afternoon = number == 1;
                self.is_of_12_hours = true;
            }
            b'j' => self.day_of_year = within(number, 366).filter(|day| *day > 0)?,
            b'w' => self.weekday = Some(within(number, 6)?),
            b'W' | b'a' => self.weekday = Some(number),
            b'U' | b'u' | b'V' | b'v' => {
                let from_monday = matches!(specifier, b'u' | b'v');
                self.week = Some((within(number, 53)?, from_monday));
            }
            b'X' | b'x' => self.week_year = Some(number),
            _ => {}
        }
        rest.get(consumed..)
    }

    fn time_of_format<'t>(&mut self, specifier: u8, rest: &'t [u8]) -> Option<&'t [u8]> {
        let format: &[u8] = if specifier == b'r' { b"%I:%i:%S %p" } else { b"%H:%i:%S" };
        let mut rest = rest;
        let mut bytes = format.iter();
        while let Some(byte) = bytes.next() {
            if rest.is_empty() {
                break;
            }
            rest = rest.trim_ascii_start();
            match byte {
                b'%' => rest = self.specifier(*bytes.next()?, rest)?,
                b' ' => {}
                literal => rest = rest.strip_prefix(&[*literal])?,
            }
        }
        Some(rest)
    }

    fn finished(mut self) -> Option<Parts> {
        if self.is_of_12_hours {
            self.parts.hour = self.parts.hour % 12 + if self.is_afternoon { 12 } else { 0 };
        }
        if self.day_of_year > 0 {
            let number = day_number(self.parts.year, 1, 1) + self.day_of_year - 1;
            self.set_day(number)?;
        }
        if let (Some((week, from_monday)), Some(weekday)) = (self.week, self.weekday) {
            let year = self.week_year.unwrap_or(self.parts.year.into());
            let first = day_number(u16::try_from(year).ok()?, 1, 1);
            let of_first = (first + 5 + i64::from(!from_monday)) % 7;
            let number = match from_monday {
                false => {
                    let to_sunday = if of_first == 0 { 0 } else { 7 } - of_first;
                    first + to_sunday + (week - 1) * 7 + weekday % 7
                }
                true => {
                    let to_monday = if of_first <= 3 { 0 } else { 7 } - of_first;
                    first + to_monday + (week - 1) * 7 + (weekday + 6) % 7
                }
            };
            self.set_day(number)?;
        }
        Some(self.parts)
    }

    fn set_day(&mut self, number: i64) -> Option<()> {
        if (1..=DAYS_WITHOUT_DATE).contains(&number) {
            (self.parts.year, self.parts.month, self.parts.day) = (0, 0, 0);
            return Some(());
        }
        let (year, month, day) = civil_of_days(number - DAYS_TO_1970);
        self.parts.year = u16::try_from(year).ok().filter(|year| *year <= 9999)?;
        (self.parts.month, self.parts.day) = (month, day);
        Some(())
    }
}

fn within(number: i64, most: i64) -> Option<i64> {
    (number <= most).then_some(number)
}
