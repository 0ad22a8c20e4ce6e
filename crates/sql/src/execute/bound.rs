//! Hot path: at most 40 instructions per integer.
//!
//! Converts a value into the key bytes of a column. If the column cannot have the value, finds its position
//! between the values that the column can have.

use junctor_model::key::{self, KeyPart, append_value};
use junctor_model::number::{parse_double, parse_number};
use junctor_model::schema::ColumnDefinition;
use junctor_model::value::ValueRef;

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

/// Appends the key bytes of the greatest column value that is not above `value`.
#[inline(always)]
pub(crate) fn append_key_floor(column: &ColumnDefinition, value: ValueRef<'_>, out: &mut Vec<u8>) -> KeyFit {
    if let (KeyPart::Integer { bytes, unsigned: false }, ValueRef::Int(number)) = (column.column_type.key_part(), value)
        && fits(bytes, number)
    {
        if column.nullable {
            out.push(1);
        }
        key::append_integer(bytes, false, number as u64, out);
        return KeyFit::Exact;
    }
    append_other_floor(column, value, out)
}

#[inline(never)]
fn append_other_floor(column: &ColumnDefinition, value: ValueRef<'_>, out: &mut Vec<u8>) -> KeyFit {
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
            append_value(part, column.nullable, ValueRef::Double(double_of(value)), out);
            KeyFit::Exact
        }
        (KeyPart::Text(_), value) => {
            append_value(part, column.nullable, value, out);
            KeyFit::Exact
        }
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
            let factor = 10i128.pow(u32::from(value.scale.min(38)));
            (value.mantissa.div_euclid(factor), value.mantissa.rem_euclid(factor) == 0)
        }
        // MySQL compares a text with numbers as the number at its start.
        ValueRef::Bytes(text) => floor_of(parse_number(text).value),
    }
}

fn double_of(value: ValueRef<'_>) -> f64 {
    value.to_double().unwrap_or_else(|text| parse_double(text).value)
}

#[cfg(test)]
mod tests {
    use junctor_model::types::DataType;

    use super::*;
    use junctor_model::value::Decimal;

    fn column(column_type: DataType, nullable: bool) -> ColumnDefinition {
        ColumnDefinition { nullable, ..ColumnDefinition::new("c", column_type) }
    }

    fn fit(value: ValueRef<'_>) -> (KeyFit, Vec<u8>) {
        let column = column(DataType::integer(1, false), false);
        let mut out = Vec::new();
        (append_key_floor(&column, value, &mut out), out)
    }

    #[test]
    fn bounds_between_column_values_and_beyond_them_are_distinguished() {
        assert_eq!(fit(ValueRef::Int(5)), (KeyFit::Exact, vec![0x85]));
        assert_eq!(fit(ValueRef::Double(5.5)), (KeyFit::Above, vec![0x85]));
        assert_eq!(fit(ValueRef::Double(-5.5)), (KeyFit::Above, vec![0x7A]));
        assert_eq!(fit(ValueRef::Decimal(Decimal { mantissa: -55, scale: 1 })), (KeyFit::Above, vec![0x7A]));
        assert_eq!(fit(ValueRef::Decimal(Decimal { mantissa: 50, scale: 1 })), (KeyFit::Exact, vec![0x85]));
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
}
