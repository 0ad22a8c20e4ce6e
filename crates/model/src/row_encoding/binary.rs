//! Hot path: at most 20 instructions per number.
//!
//! Rows of the binary protocol.

use super::number::{append_double, append_signed_prefixed, append_unsigned_prefixed};
use super::packet::{append_length_prefixed, end_packet};
use super::result_column::{ResultColumn, wire_type};
use super::text::{append_decimal, append_other_prefixed, append_result_text, append_short};
use crate::row::Field;
use crate::temporal::Parts;
use crate::value::ValueRef;

/// Bytes before the null bits: the packet header and the leading zero byte.
const HEAD_BYTES: usize = 5;
/// The position of the first column's null bit.
const NULL_BITS_OFFSET: usize = 2;

/// A binary row under construction.
#[derive(Clone, Copy, Debug)]
pub struct BinaryRow {
    packet_start: usize,
}

/// Reserves the packet header, the leading zero byte and the null bits of a row with this many columns.
#[inline]
pub fn begin_binary_row(column_count: usize, out: &mut Vec<u8>) -> BinaryRow {
    let packet_start = out.len();
    if column_count + NULL_BITS_OFFSET <= 8 {
        // Most rows have few columns, and a constant length needs no loop.
        out.extend_from_slice(&[0; HEAD_BYTES + 1]);
    } else {
        let null_bytes = (column_count + NULL_BITS_OFFSET).div_ceil(8);
        out.resize(packet_start + HEAD_BYTES + null_bytes, 0);
    }
    BinaryRow { packet_start }
}

impl BinaryRow {
    /// Appends the value of column `ordinal` in the given wire type.
    #[inline]
    pub fn append(self, ordinal: usize, value: ValueRef<'_>, wire_type: u8, out: &mut Vec<u8>) {
        if value.is_null() {
            let bit = ordinal + NULL_BITS_OFFSET;
            out[self.packet_start + HEAD_BYTES + bit / 8] |= 1 << (bit % 8);
        } else {
            append_binary_value(value, wire_type, out);
        }
    }

    /// Appends the value of column `ordinal` as the column's type prints it. A DECIMAL is text, so it has the
    /// zeros of ZEROFILL in binary rows, too.
    #[inline]
    pub fn append_result(self, ordinal: usize, value: ValueRef<'_>, column: &ResultColumn, out: &mut Vec<u8>) {
        match value {
            ValueRef::Decimal(_) if column.wire_type == wire_type::NEWDECIMAL => append_result_text(value, column, out),
            value => self.append(ordinal, value, column.wire_type, out),
        }
    }

    /// Completes the packet.
    #[inline]
    pub fn end(self, out: &mut Vec<u8>) {
        end_packet(out, self.packet_start);
    }
}

/// Appends a column's number in `wire_bytes` bytes: 1, 2, 4 or 8.
#[inline(always)]
pub(super) fn append_binary_number(field: Field<'_>, wire_bytes: u8, out: &mut Vec<u8>) {
    let bits = match field {
        Field::Int(value) => value as u64,
        Field::UInt(value) => value,
        Field::Double(value) => value.to_bits(),
        Field::Null | Field::Bytes(_) | Field::Packed(_) | Field::Json(_) | Field::Added(_) => return,
    };
    match wire_bytes {
        4 => out.extend_from_slice(&(bits as u32).to_le_bytes()),
        8 => out.extend_from_slice(&bits.to_le_bytes()),
        2 => out.extend_from_slice(&(bits as u16).to_le_bytes()),
        _ => out.push(bits as u8),
    }
}

/// Appends one value; NULL appends nothing. A number is converted to a numeric wire type of another width or
/// kind, an integer by taking its low bytes. Every other wire type is a length-encoded string, for numbers
/// their text.
#[inline]
pub fn append_binary_value(value: ValueRef<'_>, wire_type: u8, out: &mut Vec<u8>) {
    match wire_type {
        wire_type::LONG | wire_type::INT24 => out.extend_from_slice(&(integer_bits(value) as u32).to_le_bytes()),
        wire_type::LONGLONG => out.extend_from_slice(&integer_bits(value).to_le_bytes()),
        wire_type::SHORT | wire_type::YEAR => out.extend_from_slice(&(integer_bits(value) as u16).to_le_bytes()),
        wire_type::TINY => out.push(integer_bits(value) as u8),
        wire_type::DOUBLE => out.extend_from_slice(&double_of(value).to_le_bytes()),
        wire_type::FLOAT => out.extend_from_slice(&float_of(value).to_le_bytes()),
        wire_type::DATE | wire_type::DATETIME | wire_type::TIMESTAMP | wire_type::TIME => {
            append_temporal(value, wire_type, out);
        }
        wire_type::NULL => {}
        _ => match value {
            ValueRef::Null => {}
            ValueRef::Bytes(bytes) => append_length_prefixed(bytes, out),
            ValueRef::Decimal(value) => append_decimal(value, out),
            ValueRef::Int(value) => append_signed_prefixed(value, out),
            ValueRef::UInt(value) => append_unsigned_prefixed(value, out),
            ValueRef::Double(value) => append_short(out, |out| append_double(value, out)),
            value => append_other_prefixed(value, out),
        },
    }
}

/// A day, time or both: the length, and the fields up to the last one that is not 0.
#[inline(never)]
fn append_temporal(value: ValueRef<'_>, wire_type: u8, out: &mut Vec<u8>) {
    let parts = match value {
        ValueRef::Temporal(value) => value.parts(),
        _ => Parts::default(),
    };
    let clock = [parts.minute, parts.second];
    if wire_type == wire_type::TIME {
        if parts.has_no_time() {
            return out.push(0);
        }
        out.push(if parts.microsecond == 0 { 8 } else { 12 });
        out.push(u8::from(parts.negative));
        out.extend_from_slice(&u32::from(parts.hour / 24).to_le_bytes());
        out.push((parts.hour % 24) as u8);
        out.extend_from_slice(&clock);
    } else {
        let length = match parts.microsecond {
            0 if parts.has_no_date() && parts.has_no_time() => 0,
            0 if parts.has_no_time() => 4,
            0 => 7,
            _ => 11,
        };
        out.push(length);
        if length == 0 {
            return;
        }
        out.extend_from_slice(&parts.year.to_le_bytes());
        out.extend_from_slice(&[parts.month, parts.day]);
        if length == 4 {
            return;
        }
        out.push(parts.hour as u8);
        out.extend_from_slice(&clock);
    }
    if parts.microsecond != 0 {
        out.extend_from_slice(&parts.microsecond.to_le_bytes());
    }
}

#[inline]
fn integer_bits(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Int(value) => value as u64,
        ValueRef::UInt(value) => value,
        ValueRef::Double(value) => value as i64 as u64,
        ValueRef::Decimal(value) => crate::decimal::to_integer(value) as u64,
        ValueRef::Null | ValueRef::Bytes(_) => 0,
        other => match other.as_number() {
            ValueRef::Int(value) => value as u64,
            ValueRef::UInt(value) => value,
            other => other.to_double().unwrap_or(0.0) as i64 as u64,
        },
    }
}

#[inline]
fn float_of(value: ValueRef<'_>) -> f32 {
    match value {
        ValueRef::Float(value) => value,
        value => double_of(value) as f32,
    }
}

#[inline]
fn double_of(value: ValueRef<'_>) -> f64 {
    value.to_double().unwrap_or(0.0)
}
