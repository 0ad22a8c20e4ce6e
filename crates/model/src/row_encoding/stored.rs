//! Hot path: at most 100 instructions per value.
//!
//! DECIMAL of up to 18 digits, DATE and DATETIME, from their bytes in rows. Other types and expressions make
//! values first.

use super::number::{SCALED_DIGITS_MAX, append_scaled_prefixed, pairs};
use super::result_column::wire_type;
use crate::types::Packed;

/// A column's type, as far as it has a way of its own from the row to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredForm {
    /// DECIMAL with this number of digits after the point.
    Decimal { scale: u8 },
    /// DATE.
    Date,
    /// DATETIME without digits after the point of the seconds.
    DateTime,
}

/// The fields of a DATE or DATETIME.
#[derive(Clone, Copy)]
struct Moment {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl StoredForm {
    /// The form of a column of this type and wire type; `None` if it has no such way.
    pub(super) fn of(packed: Packed, wire_type: u8) -> Option<StoredForm> {
        match packed {
            Packed::Decimal { precision, scale }
                if precision <= SCALED_DIGITS_MAX && wire_type == wire_type::NEWDECIMAL =>
            {
                Some(StoredForm::Decimal { scale })
            }
            Packed::Date if wire_type == wire_type::DATE => Some(StoredForm::Date),
            Packed::DateTime(0) if wire_type == wire_type::DATETIME => Some(StoredForm::DateTime),
            _ => None,
        }
    }

    /// Appends the text of a value, preceded by its length. `bits` has its bytes from the highest bit on, and
    /// `unused` is the number of bits behind them.
    #[inline(always)]
    pub(super) fn append_text(self, bits: u64, unused: u32, out: &mut Vec<u8>) {
        match self {
            StoredForm::Decimal { scale } => append_scaled_prefixed(signed(bits, unused), scale, out),
            StoredForm::Date => append_date(date(bits >> unused), out),
            StoredForm::DateTime => append_date_time(date_time(bits >> unused), out),
        }
    }

    /// Like [`Self::append_text`], as the value has it in a binary row.
    #[inline(always)]
    pub(super) fn append_binary(self, bits: u64, unused: u32, out: &mut Vec<u8>) {
        match self {
            StoredForm::Decimal { scale } => append_scaled_prefixed(signed(bits, unused), scale, out),
            StoredForm::Date => append_binary_moment(date(bits >> unused), out),
            StoredForm::DateTime => append_binary_moment(date_time(bits >> unused), out),
        }
    }
}

/// A number whose sign bit is flipped in rows.
#[inline(always)]
fn signed(bits: u64, unused: u32) -> i64 {
    (bits ^ 1 << 63) as i64 >> unused
}

#[inline(always)]
fn date(bits: u64) -> Moment {
    let field = |shift: u32, width: u32| (bits >> shift) as u32 & ((1 << width) - 1);
    Moment { year: field(9, 15), month: field(5, 4), day: field(0, 5), hour: 0, minute: 0, second: 0 }
}

#[inline(always)]
fn date_time(bits: u64) -> Moment {
    let bits = bits.saturating_sub(1 << 39);
    let field = |shift: u32, width: u32| (bits >> shift) as u32 & ((1 << width) - 1);
    let months = field(22, 17);
    Moment {
        year: months / 13,
        month: months % 13,
        day: field(17, 5),
        hour: field(12, 5),
        minute: field(6, 6),
        second: field(0, 6),
    }
}

#[inline(never)]
fn append_date(Moment { year, month, day, .. }: Moment, out: &mut Vec<u8>) {
    let [[a, b], [c, d], [e, f], [g, h]] = pairs([year / 100, year % 100, month, day]);
    out.extend_from_slice(&[10, a, b, c, d, b'-', e, f, b'-', g, h]);
}

#[inline(never)]
fn append_date_time(Moment { year, month, day, hour, minute, second }: Moment, out: &mut Vec<u8>) {
    let [[a, b], [c, d], [e, f], [g, h], [i, j], [k, l], [m, n]] =
        pairs([year / 100, year % 100, month, day, hour, minute, second]);
    let text = [19, a, b, c, d, b'-', e, f, b'-', g, h, b' ', i, j, b':', k, l, b':', m, n];
    out.extend_from_slice(&text);
}

/// Appends the length and the fields up to the last one that is not 0: the day, or day and time.
#[inline(never)]
fn append_binary_moment(moment: Moment, out: &mut Vec<u8>) {
    let Moment { year, month, day, hour, minute, second } = moment;
    let days = u64::from(year) | u64::from(month) << 16 | u64::from(day) << 24;
    let time = u64::from(hour) | u64::from(minute) << 8 | u64::from(second) << 16;
    let length = match (days, time) {
        (0, 0) => 0,
        (_, 0) => 4,
        _ => 7,
    };
    let start = out.len();
    out.extend_from_slice(&(length | days << 8 | time << 40).to_le_bytes());
    out.truncate(start + 1 + length as usize);
}
