//! Hot path, budget 45 instructions an integer and 20 plus the copy a string: rows of the text protocol.

use super::number::{append_double, append_double_fixed, append_integer_prefixed};
use super::packet::{append_length_prefixed, begin_packet, end_packet};
use super::result_column::DECIMALS_NOT_FIXED;
use crate::id::ColumnIndex;
use crate::row::{Field, RowView};
use crate::value::{Decimal, ValueRef};

/// First byte of a NULL in place of a length.
const NULL_MARK: u8 = 0xFB;

/// Appends one value as a length-encoded string, or the mark of NULL. How a number prints follows from the value alone.
#[inline]
pub fn append_text_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Int(value) => append_integer_prefixed(value < 0, value.unsigned_abs(), out),
        ValueRef::Bytes(bytes) => append_length_prefixed(bytes, out),
        ValueRef::UInt(value) => append_integer_prefixed(false, value, out),
        ValueRef::Null => out.push(NULL_MARK),
        ValueRef::Double(value) => append_short(out, |out| append_double(value, out)),
        ValueRef::Decimal(value) => append_decimal(value, out),
    }
}

/// Appends the value of a column of a row as [`append_text_value`] does.
#[inline]
pub fn append_text_field(row: RowView<'_>, column: ColumnIndex, out: &mut Vec<u8>) {
    match row.field(column) {
        Field::Int(value) => append_integer_prefixed(value < 0, value.unsigned_abs(), out),
        Field::Bytes(bytes) => append_length_prefixed(bytes, out),
        Field::UInt(value) => append_integer_prefixed(false, value, out),
        Field::Null => out.push(NULL_MARK),
        Field::Double(value) => append_short(out, |out| append_double(value, out)),
    }
}

/// Like [`append_text_value`] for a result column with that count of decimals: a double prints with exactly so many
/// digits after the point, unless the count is not fixed (31).
#[inline]
pub fn append_text_column(value: ValueRef<'_>, decimals: u8, out: &mut Vec<u8>) {
    match value {
        ValueRef::Double(value) if decimals < DECIMALS_NOT_FIXED => {
            // The largest double has 309 digits, which is more than a length byte tells.
            let mut text = Vec::new();
            append_double_fixed(value, decimals, &mut text);
            append_length_prefixed(&text, out);
        }
        value => append_text_value(value, out),
    }
}

/// Appends these columns of a row as one whole packet.
#[inline]
pub fn append_text_row(row: RowView<'_>, columns: &[ColumnIndex], out: &mut Vec<u8>) {
    let start = begin_packet(out);
    for column in columns {
        append_text_field(row, *column, out);
    }
    end_packet(out, start);
}

pub(super) fn append_decimal(value: Decimal, out: &mut Vec<u8>) {
    append_short(out, |out| value.append_text(out));
}

/// Appends text of at most 250 bytes with its length before it; no number is longer.
pub(super) fn append_short(out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    append(out);
    out[start] = (out.len() - start - 1) as u8;
}
