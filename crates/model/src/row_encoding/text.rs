//! Hot path: at most 45 instructions per integer and 20 plus the copy per string.
//!
//! Rows of the text protocol.

use super::number::{
    append_double, append_double_fixed, append_float, append_signed, append_signed_prefixed, append_unsigned,
    append_unsigned_prefixed,
};
use super::packet::{NULL_MARK, append_length_prefixed};
use super::result_column::{DECIMALS_NOT_FIXED, ResultColumn, column_flag, wire_type};
use crate::json;
use crate::row::Field;
use crate::value::{Decimal, ValueRef};

/// Appends the value as text without a length; NULL appends nothing.
pub fn append_text(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Bytes(text) => out.extend_from_slice(text),
        ValueRef::Null => {}
        ValueRef::Int(value) => append_signed(value, out),
        ValueRef::UInt(value) => append_unsigned(value, out),
        ValueRef::Double(value) => append_double(value, out),
        ValueRef::Decimal(value) => value.append_text(out),
        ValueRef::Float(value) => append_float(value, out),
        ValueRef::Temporal(value) => value.append_text(out),
        ValueRef::Bit(value) => value.append_text(out),
        ValueRef::Choice(value) => value.append_text(out),
        ValueRef::Json(document) => json::append_text(document, out),
    }
}

/// Appends one value as a length-encoded string, or the mark of NULL. The format of a number depends on its
/// value only.
#[inline]
pub fn append_text_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Int(value) => append_signed_prefixed(value, out),
        ValueRef::Bytes(bytes) => append_length_prefixed(bytes, out),
        ValueRef::UInt(value) => append_unsigned_prefixed(value, out),
        ValueRef::Null => out.push(NULL_MARK),
        ValueRef::Double(value) => append_short(out, |out| append_double(value, out)),
        ValueRef::Decimal(value) => append_decimal(value, out),
        value => append_other_prefixed(value, out),
    }
}

/// Appends a value of a type without a form of its own on the wire.
#[inline(never)]
pub(super) fn append_other_prefixed(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        // These can be longer than a one-byte length says.
        ValueRef::Choice(_) | ValueRef::Json(_) => {
            let mut text = Vec::new();
            append_text(value, &mut text);
            append_length_prefixed(&text, out);
        }
        value => append_short(out, |out| append_text(value, out)),
    }
}

/// Appends a row's column like [`append_text_value`].
#[inline(always)]
pub(super) fn append_text_field(field: Field<'_>, out: &mut Vec<u8>) {
    match field {
        Field::Int(value) => append_signed_prefixed(value, out),
        Field::Bytes(bytes) => append_length_prefixed(bytes, out),
        Field::UInt(value) => append_unsigned_prefixed(value, out),
        Field::Null => out.push(NULL_MARK),
        Field::Double(value) => append_short(out, |out| append_double(value, out)),
        Field::Packed(_) | Field::Json(_) | Field::Added(_) => {
            unreachable!("columns without a wire form have steps of their own")
        }
    }
}

/// Like [`append_text_value`], for a result column with this number of decimals. A double prints with exactly
/// that many digits after the point, unless the number is not fixed (31).
#[inline]
pub fn append_text_column(value: ValueRef<'_>, decimals: u8, out: &mut Vec<u8>) {
    match value {
        ValueRef::Double(value) if decimals < DECIMALS_NOT_FIXED => {
            // The largest double has 309 digits, too many for a one-byte length.
            let mut text = Vec::new();
            append_double_in(value, decimals, &mut text);
            append_length_prefixed(&text, out);
        }
        value => append_text_value(value, out),
    }
}

/// Appends a double with this number of digits after the point, unless the number is not fixed (31).
pub fn append_double_in(value: f64, decimals: u8, out: &mut Vec<u8>) {
    match decimals < DECIMALS_NOT_FIXED {
        true => append_double_fixed(value, decimals, out),
        false => append_double(value, out),
    }
}

/// Whether the text of a result column depends on the column and not only on the value: ZEROFILL of a table's
/// column, and a fixed number of digits after the point.
pub(super) fn is_formatted(column: &ResultColumn) -> bool {
    let is_floating = matches!(column.wire_type, wire_type::DOUBLE | wire_type::FLOAT);
    filled_width(column) > 0 || (is_floating && column.decimals < DECIMALS_NOT_FIXED)
}

/// The width up to which zeros precede the numbers of a result column; 0 if it is not a table's column with
/// ZEROFILL.
pub(super) fn filled_width(column: &ResultColumn) -> u8 {
    let is_filled = column.flags & column_flag::ZEROFILL != 0 && column.wire_type != wire_type::YEAR;
    match is_filled && !column.org_name.is_empty() {
        true => column.length.min(u8::MAX.into()) as u8,
        false => 0,
    }
}

/// Appends the value of a result column like [`append_text_value`], as the column's type prints it.
#[inline]
pub fn append_result_text(value: ValueRef<'_>, column: &ResultColumn, out: &mut Vec<u8>) {
    match is_formatted(column) {
        true => append_formatted(value, column.decimals, filled_width(column), out),
        false => append_text_value(value, out),
    }
}

/// Appends a number with exactly `decimals` digits after the point (31: not fixed), and with zeros to `width`
/// (0: none).
#[inline(never)]
pub(super) fn append_formatted(value: ValueRef<'_>, decimals: u8, width: u8, out: &mut Vec<u8>) {
    let is_number =
        matches!(value, ValueRef::UInt(_) | ValueRef::Decimal(_) | ValueRef::Double(_) | ValueRef::Float(_));
    if !is_number {
        return append_text_value(value, out);
    }
    let mut text = Vec::new();
    append_text_in(value, decimals, width, &mut text);
    append_length_prefixed(&text, out);
}

/// Like [`append_text`], for a type with a fixed number of digits after the point (31: not fixed), or with
/// leading zeros up to a width (0: none).
pub fn append_text_in(value: ValueRef<'_>, decimals: u8, zero_fill: u8, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        ValueRef::Double(number) => append_double_in(number, decimals, out),
        ValueRef::Float(number) if decimals < DECIMALS_NOT_FIXED => append_double_fixed(number.into(), decimals, out),
        value => append_text(value, out),
    }
    if zero_fill > 0 && !value.is_null() {
        let zeros = usize::from(zero_fill).saturating_sub(out.len() - start);
        out.splice(start..start, std::iter::repeat_n(b'0', zeros));
    }
}

pub(super) fn append_decimal(value: Decimal, out: &mut Vec<u8>) {
    append_short(out, |out| value.append_text(out));
}

/// Appends text of at most 250 bytes, preceded by its length. No number is longer.
pub(super) fn append_short(out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    append(out);
    out[start] = (out.len() - start - 1) as u8;
}
