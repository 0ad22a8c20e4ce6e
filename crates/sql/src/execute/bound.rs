//! Hot path: at most 40 instructions per integer.
//!
//! Converts a value into the key bytes of a column. If the column cannot have the value, finds its position
//! between the values that the column can have.

use junctor_model::decimal;
use junctor_model::key::{self, KeyPart, append_value};
use junctor_model::number::{self, parse_double};
use junctor_model::schema::ColumnDefinition;
use junctor_model::scratch::Scratch;
use junctor_model::temporal::{
    DIGITS_MAX, DateRules, Parts, Temporal, TemporalKind, parse_date_time, parse_number, parse_time, parse_time_number,
    year_of_digits,
};
use junctor_model::types::Packed;
use junctor_model::value::{Decimal, ValueRef};

/// The position of a value among the values that a column can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFit {
    /// NULL, which compares with nothing. Nothing was appended.
    Null,
    /// The column can have the value, whose key was appended.
    Exact,
    /// The value lies between the column value whose key was appended and the next one.
    Above,
    /// Below all values of the column. Nothing was appended.
    TooLow,
    /// Above all values of the column. Nothing was appended.
    TooHigh,
}

/// Appends the key bytes of the greatest column value that is not above `value`. The scratch memory has the
/// rules by which texts are days and times.
#[inline(always)]
pub(crate) fn append_key_floor(
    column: &ColumnDefinition,
    value: ValueRef<'_>,
    scratch: &Scratch,
    out: &mut Vec<u8>,
) -> KeyFit {
    if let (Some((bytes, false)), ValueRef::Int(number)) = (column.column_type.as_integer(), value)
        && fits(bytes, number)
    {
        if column.nullable {
            out.push(1);
        }
        key::append_integer(bytes, false, number as u64, out);
        return KeyFit::Exact;
    }
    append_other_floor(column, value, scratch, out)
}

#[inline(never)]
fn append_other_floor(column: &ColumnDefinition, value: ValueRef<'_>, scratch: &Scratch, out: &mut Vec<u8>) -> KeyFit {
    let part = column.column_type.key_part();
    match (part, value) {
        (_, ValueRef::Null) => KeyFit::Null,
        (KeyPart::Integer { bytes, unsigned }, ValueRef::Int(number)) => {
            append_integer(column, (bytes, unsigned), (i128::from(number), true), out)
        }
        (KeyPart::Integer { bytes, unsigned }, value) => {
            append_integer(column, (bytes, unsigned), floor_of(value), out)
        }
        (KeyPart::Double, value) => {
            let number = double_of(value);
            // No value of the column is between a number and the FLOAT next to it, so a range that includes
            // its bounds and is tested again loses none.
            let number = if column.column_type.is_fixed_float() { f64::from(number as f32) } else { number };
            append_value(part, column.nullable, ValueRef::Double(number), out);
            KeyFit::Exact
        }
        (KeyPart::Encoded(form), value) => append_encoded_floor(column, packed_floor(form, value, scratch), value, out),
        (KeyPart::Text(_), value) => {
            append_value(part, column.nullable, value, out);
            KeyFit::Exact
        }
    }
}

/// The floor among temporal values and decimals.
fn append_encoded_floor(
    column: &ColumnDefinition,
    floor: Option<(ValueRef<'static>, KeyFit)>,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) -> KeyFit {
    let Some((floor, fit)) = floor else {
        return if is_negative(value) { KeyFit::TooLow } else { KeyFit::TooHigh };
    };
    append_value(column.column_type.key_part(), column.nullable, floor, out);
    fit
}

fn is_negative(value: ValueRef<'_>) -> bool {
    value.as_number().to_double().is_ok_and(|number| number < 0.0)
}

/// The greatest value of a form that is not above the value; `None` for a number outside its range.
fn packed_floor(form: Packed, value: ValueRef<'_>, scratch: &Scratch) -> Option<(ValueRef<'static>, KeyFit)> {
    let cut = |kind: TemporalKind, digits: u8, exact: Temporal| {
        let mut parts = exact.parts();
        let unit = 10u32.pow(u32::from(DIGITS_MAX - digits));
        parts.microsecond = parts.microsecond / unit * unit;
        // A negative time that is cut is above the value; the value before it is a unit lower.
        if parts.negative && Temporal::from_parts(kind, DIGITS_MAX, &parts).packed != exact.packed {
            parts = rounded_away(parts, unit);
        }
        let floor = Temporal::from_parts(kind, digits, &parts);
        let fit = if floor.packed == exact.packed { KeyFit::Exact } else { KeyFit::Above };
        (ValueRef::Temporal(floor), fit)
    };
    match form {
        Packed::Date => Some(cut(TemporalKind::Date, 0, date_time_of(value, scratch))),
        Packed::DateTime(digits) => Some(cut(TemporalKind::DateTime, digits, date_time_of(value, scratch))),
        Packed::Timestamp(digits) => match value {
            ValueRef::Temporal(exact) if exact.kind == TemporalKind::Timestamp => {
                let (seconds, microsecond) = exact.instant_parts();
                let unit = 10u32.pow(u32::from(DIGITS_MAX - digits));
                let floor = Temporal::instant(seconds, microsecond / unit * unit, digits);
                let fit = if floor.packed == exact.packed { KeyFit::Exact } else { KeyFit::Above };
                Some((ValueRef::Temporal(floor), fit))
            }
            _ => None,
        },
        Packed::Time(digits) => Some(cut(TemporalKind::Time, digits, time_of(value, scratch))),
        Packed::Year => {
            let (year, is_whole) = match value {
                ValueRef::Int(year) => (year_of_digits(year).into(), true),
                ValueRef::UInt(year) => {
                    (i64::try_from(year).map_or(year.into(), |year| year_of_digits(year).into()), true)
                }
                value => floor_of(value.as_number()),
            };
            let fit = if is_whole { KeyFit::Exact } else { KeyFit::Above };
            match year {
                0 => Some((ValueRef::Temporal(Temporal::year(0)), fit)),
                1..=1900 => Some((ValueRef::Temporal(Temporal::year(0)), KeyFit::Above)),
                1901..=2155 => Some((ValueRef::Temporal(Temporal::year(year as u16)), fit)),
                _ => None,
            }
        }
        Packed::Decimal { precision, scale } | Packed::WideDecimal { precision, scale } => {
            let exact = decimal_of(value.as_number());
            let floor = decimal::floor_to(exact, scale).filter(|floor| decimal::fits_digits(*floor, precision))?;
            let fit = if floor == exact { KeyFit::Exact } else { KeyFit::Above };
            Some((ValueRef::Decimal(floor), fit))
        }
        _ => None,
    }
}

/// A negative time one unit of microseconds further from zero.
fn rounded_away(parts: Parts, unit: u32) -> Parts {
    let seconds = u32::from(parts.hour) * 3600 + u32::from(parts.minute) * 60 + u32::from(parts.second);
    let total = u64::from(seconds) * 1_000_000 + u64::from(parts.microsecond + unit);
    let (seconds, microsecond) = (total / 1_000_000, (total % 1_000_000) as u32);
    let (hour, minute, second) = ((seconds / 3600) as u16, (seconds / 60 % 60) as u8, (seconds % 60) as u8);
    Parts { hour, minute, second, microsecond, ..parts }
}

/// The value as a comparison of days takes it; a text that is none is the zero date.
fn date_time_of(value: ValueRef<'_>, scratch: &Scratch) -> Temporal {
    let parts = match value {
        ValueRef::Temporal(value) => return value.to_date_time(),
        ValueRef::Bytes(text) => parse_date_time(text, scratch.value_rules().fuzzy_dates()).parts,
        number => parse_number(floor_of(number.as_number()).0 as i64, 0, DateRules::FUZZY).parts,
    };
    Temporal::from_parts(TemporalKind::DateTime, DIGITS_MAX, &parts.unwrap_or_default())
}

fn time_of(value: ValueRef<'_>, scratch: &Scratch) -> Temporal {
    let parts = match value {
        ValueRef::Temporal(value) => return value.to_time(),
        ValueRef::Bytes(text) => parse_time(text, Some(scratch.value_rules().zone())).parts,
        number => {
            let (whole, _) = floor_of(number.as_number());
            parse_time_number(whole as i64, whole < 0, 0).parts
        }
    };
    Temporal::from_parts(TemporalKind::Time, DIGITS_MAX, &parts.unwrap_or_default())
}

fn decimal_of(value: ValueRef<'_>) -> Decimal {
    match value {
        ValueRef::Decimal(value) => value,
        ValueRef::Int(value) => decimal::from_integer(value.into()),
        ValueRef::UInt(value) => decimal::from_integer(value.into()),
        _ => decimal::from_integer(0),
    }
}

/// Whether a number fits into a signed column of `bytes` bytes.
#[inline]
fn fits(bytes: u8, number: i64) -> bool {
    let unused_bits = 64 - u32::from(bytes) * 8;
    number << unused_bits >> unused_bits == number
}

#[inline(never)]
fn append_integer(
    column: &ColumnDefinition,
    (bytes, unsigned): (u8, bool),
    (floor, is_whole): (i128, bool),
    out: &mut Vec<u8>,
) -> KeyFit {
    let bits = u32::from(bytes) * 8;
    let (low, high) = match unsigned {
        true => (0, (1i128 << bits) - 1),
        false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
    };
    if floor < low {
        return KeyFit::TooLow;
    }
    if floor > high {
        return KeyFit::TooHigh;
    }
    let value = if unsigned { ValueRef::UInt(floor as u64) } else { ValueRef::Int(floor as i64) };
    append_value(column.column_type.key_part(), column.nullable, value, out);
    if is_whole { KeyFit::Exact } else { KeyFit::Above }
}

/// The greatest integer that is not above the value, and whether it equals the value.
fn floor_of(value: ValueRef<'_>) -> (i128, bool) {
    match value {
        ValueRef::Null => (0, true),
        ValueRef::Int(value) => (value.into(), true),
        ValueRef::UInt(value) => (value.into(), true),
        ValueRef::Double(value) => (value.floor() as i128, value.fract() == 0.0),
        ValueRef::Decimal(value) => {
            let floor = decimal::floor(value);
            (decimal::to_integer(floor), floor == value)
        }
        // MySQL compares a text with numbers as the number at its start.
        ValueRef::Bytes(text) => floor_of(number::parse_number(text).value),
        other => floor_of(other.as_number()),
    }
}

fn double_of(value: ValueRef<'_>) -> f64 {
    value.to_double().unwrap_or_else(|text| parse_double(text).value)
}

#[cfg(test)]
mod tests {
    use junctor_model::types::DataType;

    use super::*;

    fn column(column_type: DataType, nullable: bool) -> ColumnDefinition {
        ColumnDefinition { nullable, ..ColumnDefinition::new("c", column_type) }
    }

    fn fit(value: ValueRef<'_>) -> (KeyFit, Vec<u8>) {
        let column = column(DataType::integer(1, false), false);
        let mut out = Vec::new();
        (append_key_floor(&column, value, &Scratch::new(), &mut out), out)
    }

    #[test]
    fn bounds_between_column_values_and_beyond_them_are_distinguished() {
        assert_eq!(fit(ValueRef::Int(5)), (KeyFit::Exact, vec![0x85]));
        assert_eq!(fit(ValueRef::Double(5.5)), (KeyFit::Above, vec![0x85]));
        assert_eq!(fit(ValueRef::Double(-5.5)), (KeyFit::Above, vec![0x7A]));
        assert_eq!(fit(ValueRef::Decimal(Decimal::Narrow { mantissa: -55, scale: 1 })), (KeyFit::Above, vec![0x7A]));
        assert_eq!(fit(ValueRef::Decimal(Decimal::Narrow { mantissa: 50, scale: 1 })), (KeyFit::Exact, vec![0x85]));
        assert_eq!(fit(ValueRef::Bytes(b" 5")), (KeyFit::Exact, vec![0x85]));
        assert_eq!(fit(ValueRef::Bytes(b"5.5x")), (KeyFit::Above, vec![0x85]));
        assert_eq!(fit(ValueRef::Bytes(b"x")), (KeyFit::Exact, vec![0x80]));
        assert_eq!(fit(ValueRef::Int(-129)), (KeyFit::TooLow, vec![]));
        assert_eq!(fit(ValueRef::Bytes(b"5e0")), (KeyFit::Exact, vec![0x85]));
        assert_eq!(fit(ValueRef::Bytes(b"1e999")), (KeyFit::TooHigh, vec![]));
        let digits = [b'9'; 60];
        assert_eq!(fit(ValueRef::Bytes(&digits)), (KeyFit::TooHigh, vec![]));
        assert_eq!(fit(ValueRef::Bytes(&[b"-".as_slice(), &digits].concat())), (KeyFit::TooLow, vec![]));
        assert_eq!(fit(ValueRef::UInt(128)), (KeyFit::TooHigh, vec![]));
        assert_eq!(fit(ValueRef::Null), (KeyFit::Null, vec![]));
    }

    #[test]
    fn one_or_two_digits_are_a_year_of_this_century_or_the_last() {
        let column = column(DataType::year(), false);
        let fit = |value| {
            let mut out = Vec::new();
            (append_key_floor(&column, value, &Scratch::new(), &mut out), out)
        };
        for (digits, year) in [(24, 2024), (1, 2001), (69, 2069), (70, 1970), (99, 1999)] {
            assert_eq!(fit(ValueRef::Int(digits)), fit(ValueRef::Temporal(Temporal::year(year))), "{digits}");
            assert_eq!(fit(ValueRef::UInt(digits as u64)), fit(ValueRef::Int(year.into())), "{digits}");
        }
        assert_eq!(fit(ValueRef::Int(0)), fit(ValueRef::Temporal(Temporal::year(0))));
        assert_eq!(fit(ValueRef::Int(100)).0, KeyFit::Above);
        assert_eq!(fit(ValueRef::Int(-1)).0, KeyFit::TooLow);
        assert_eq!(fit(ValueRef::UInt(u64::MAX)).0, KeyFit::TooHigh);
    }
}
