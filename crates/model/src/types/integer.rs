//! TINYINT, SMALLINT, MEDIUMINT, INT and BIGINT.

use super::{DataType, Family, Form, TypeDescriptor, WireType};
use crate::decimal;
use crate::error::Result;
use crate::number::parse_integer;
use crate::row::SlotKind;
use crate::row_encoding::wire_type;
use crate::scratch::{Scratch, excerpt, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Value, ValueRef};

pub(super) struct Integer;

impl DataType {
    /// An integer of 1, 2, 3, 4 or 8 bytes: TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT.
    pub const fn integer(bytes: u8, unsigned: bool) -> DataType {
        let mut data_type = DataType::plain(Family::Integer);
        data_type.bytes = bytes;
        data_type.unsigned = unsigned;
        data_type
    }
}

/// The display width of an unsigned integer for which none is written.
pub(super) fn default_width(data_type: &DataType) -> u32 {
    match data_type.bytes {
        1 => 3,
        2 => 5,
        3 => 8,
        4 => 10,
        _ => 20,
    }
}

impl TypeDescriptor for Integer {
    fn name(&self, data_type: &DataType) -> &'static str {
        match data_type.bytes {
            1 => "tinyint",
            2 => "smallint",
            3 => "mediumint",
            4 => "int",
            _ => "bigint",
        }
    }

    fn append_attributes(&self, data_type: &DataType, display_width: Option<u16>, out: &mut String) {
        // Drivers map `tinyint(1)` to a boolean. MySQL 8 prints no other display width.
        if data_type.bytes == 1 && !data_type.unsigned && display_width == Some(1) {
            out.push_str("(1)");
        }
        // The width matters where zeros fill it.
        if data_type.zerofill {
            out.push_str(&format!("({})", display_width.map_or(default_width(data_type), u32::from)));
        }
        data_type.append_number_attributes(out);
    }

    fn form(&self, data_type: &DataType) -> Form {
        if data_type.unsigned { Form::UInt } else { Form::Int }
    }

    fn slot(&self, data_type: &DataType) -> SlotKind {
        match (data_type.bytes, data_type.unsigned) {
            (1, false) => SlotKind::Int8,
            (1, true) => SlotKind::UInt8,
            (2, false) => SlotKind::Int16,
            (2, true) => SlotKind::UInt16,
            (3, false) => SlotKind::Int24,
            (3, true) => SlotKind::UInt24,
            (4, false) => SlotKind::Int32,
            (4, true) => SlotKind::UInt32,
            (_, false) => SlotKind::Int64,
            (_, true) => SlotKind::UInt64,
        }
    }

    fn key_bytes(&self, data_type: &DataType) -> Option<usize> {
        Some(usize::from(data_type.bytes))
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let sign = u32::from(!data_type.unsigned);
        let (code, length) = match data_type.bytes {
            1 => (wire_type::TINY, 3 + sign),
            2 => (wire_type::SHORT, 5 + sign),
            3 => (wire_type::INT24, 8 + sign),
            4 => (wire_type::LONG, 10 + sign),
            // MySQL has 20 for both: 19 digits and a sign, or 20 digits.
            _ => (wire_type::LONGLONG, 20),
        };
        WireType { code, length, decimals: 0, flags: data_type.number_flags() }
    }

    fn digits(&self, data_type: &DataType) -> (Option<u64>, Option<u64>) {
        let digits = match data_type.bytes {
            1 => 3,
            2 => 5,
            3 => 7,
            4 => 10,
            _ => 19 + u64::from(data_type.unsigned),
        };
        (Some(digits), Some(0))
    }

    fn implicit_default(&self, data_type: &DataType) -> Value {
        if data_type.unsigned { Value::UInt(0) } else { Value::Int(0) }
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let number = match value {
            ValueRef::Int(value) => value.into(),
            ValueRef::UInt(value) => value.into(),
            ValueRef::Double(value) => value.round_ties_even() as i128,
            // A negative number is out of range even if it rounds to 0.
            ValueRef::Decimal(value) if data_type.unsigned && value.is_negative() => -1,
            ValueRef::Decimal(value) => decimal::to_integer(value),
            ValueRef::Bytes(text) => parsed(text, target, scratch)?,
            ValueRef::Null => 0,
            // MySQL stores the text of a document.
            ValueRef::Json(_) => {
                return self.store(data_type, ValueRef::Bytes(to_text(value, scratch)?), target, scratch);
            }
            ValueRef::Temporal(moment) => {
                return self.store(data_type, moment.as_rounded_number(), target, scratch);
            }
            other => return self.store(data_type, other.as_number(), target, scratch),
        };
        store(data_type, number, target, scratch)
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        StoredType::Integer { bytes: data_type.bytes, unsigned: data_type.unsigned, zerofill: data_type.zerofill }
    }
}

/// The number as a column of this type stores it. Error or warning 1264 if it is out of range.
#[inline]
pub(super) fn store<'r>(
    data_type: &DataType,
    number: i128,
    target: &StoreTarget<'_>,
    scratch: &Scratch,
) -> Result<ValueRef<'r>> {
    let bits = u32::from(data_type.bytes) * 8;
    let (low, high) = match data_type.unsigned {
        true => (0, (1i128 << bits) - 1),
        false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
    };
    let stored = number.clamp(low, high);
    if stored != number {
        target.out_of_range(scratch)?;
    }
    Ok(if data_type.unsigned { ValueRef::UInt(stored as u64) } else { ValueRef::Int(stored as i64) })
}

fn parsed(text: &[u8], target: &StoreTarget<'_>, scratch: &Scratch) -> Result<i128> {
    let parsed = parse_integer(text, true);
    if parsed.is_missing {
        target.wrong_value("integer", &excerpt(text), scratch)?;
    } else if parsed.is_truncated {
        target.truncated(scratch)?;
        return Ok(digits_before_second_point(text).unwrap_or(parsed.value));
    }
    Ok(parsed.value)
}

/// The number of the digits before a second point: MySQL forgets the first point then, so `26.03.23` is 2603.
fn digits_before_second_point(text: &[u8]) -> Option<i128> {
    let text = text.trim_ascii_start();
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let mut parts = unsigned.splitn(3, |byte| *byte == b'.');
    let (Some(integer), Some(fraction), Some(_)) = (parts.next(), parts.next(), parts.next()) else { return None };
    let mut digits = integer.strip_prefix(b"+").unwrap_or(integer).to_vec();
    digits.extend_from_slice(fraction);
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = parse_integer(&digits, false).value;
    Some(if unsigned.len() < text.len() { -value } else { value })
}
