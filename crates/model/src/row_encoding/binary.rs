//! Hot path: at most 20 instructions per number.
//!
//! Rows of the binary protocol.

use super::number::{append_double, append_signed_prefixed, append_unsigned_prefixed};
use super::packet::{append_length_prefixed, end_packet};
use super::result_column::wire_type;
use super::text::{append_decimal, append_short};
use crate::row::Field;
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
        Field::Null | Field::Bytes(_) => return,
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
        wire_type::SHORT => out.extend_from_slice(&(integer_bits(value) as u16).to_le_bytes()),
        wire_type::TINY => out.push(integer_bits(value) as u8),
        wire_type::DOUBLE => out.extend_from_slice(&double_of(value).to_le_bytes()),
        wire_type::NULL => {}
        _ => match value {
            ValueRef::Null => {}
            ValueRef::Bytes(bytes) => append_length_prefixed(bytes, out),
            ValueRef::Decimal(value) => append_decimal(value, out),
            ValueRef::Int(value) => append_signed_prefixed(value, out),
            ValueRef::UInt(value) => append_unsigned_prefixed(value, out),
            ValueRef::Double(value) => append_short(out, |out| append_double(value, out)),
        },
    }
}

#[inline]
fn integer_bits(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Int(value) => value as u64,
        ValueRef::UInt(value) => value,
        ValueRef::Double(value) => value as i64 as u64,
        ValueRef::Decimal(value) => value.rescale(0).map_or(0, |value| value.mantissa as u64),
        ValueRef::Null | ValueRef::Bytes(_) => 0,
    }
}

#[inline]
fn double_of(value: ValueRef<'_>) -> f64 {
    value.to_double().unwrap_or(0.0)
}
