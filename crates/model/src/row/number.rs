//! Hot path: at most 12 instructions per number read.
//!
//! Columns of the fixed part whose values are ordered like 64-bit integers: integers, days, days with times
//! of day, and decimals of at most eight bytes. Filters and sums read them without making a value.

use super::{RowFormat, Slot, SlotKind, bytes_at};
use crate::decimal;
use crate::id::ColumnNumber;
use crate::temporal::TemporalKind;
use crate::types::Packed;
use crate::value::{Decimal, ValueRef};

const WORD_BYTES: usize = size_of::<u64>();

/// The meaning of the number that a column has. Numbers of the same form compare like the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    /// The value of an integer column.
    Integer,
    /// The stored bits of DATE.
    Date,
    /// The stored bits of DATETIME with this many digits after the point.
    DateTime(u8),
    /// The value of DECIMAL times 10^scale.
    Decimal {
        /// Digits before and after the point.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
}

/// Where a row image has the number of a column.
#[derive(Clone, Copy, Debug)]
pub struct NumberPlace {
    form: NumberForm,
    /// 0 for a column that is never NULL.
    null_mask: u8,
    null_byte: u16,
    /// Offset in the image of the eight bytes that contain the column.
    start: u32,
    /// The shifts that leave only the bits of the column.
    left: u8,
    right: u8,
    is_big_endian: bool,
    is_signed: bool,
    /// Subtracted from the bits.
    bias: i64,
}

impl RowFormat {
    /// Where images have the number of a column. `None` for columns of other types, and if images can be too
    /// short to be read in words.
    pub fn number_place(&self, column: ColumnNumber) -> Option<NumberPlace> {
        let slot: Slot = *self.slots.get(usize::from(column.0))?;
        let (position, bytes, form, is_signed) = match slot.kind {
            SlotKind::Packed => {
                let packed = &self.packed[slot.position as usize];
                let form = match packed.form {
                    Packed::Date => NumberForm::Date,
                    Packed::DateTime(digits) => NumberForm::DateTime(digits),
                    Packed::Decimal { precision, scale } => NumberForm::Decimal { precision, scale },
                    _ => return None,
                };
                (packed.position as usize, packed.form.bytes(), form, false)
            }
            // A number of 64 bits without sign can exceed the form.
            SlotKind::UInt64 | SlotKind::Double | SlotKind::Json | SlotKind::Variable | SlotKind::Added => return None,
            kind => {
                let is_signed = matches!(
                    kind,
                    SlotKind::Int8 | SlotKind::Int16 | SlotKind::Int24 | SlotKind::Int32 | SlotKind::Int64
                );
                (slot.position as usize, kind.fixed_bytes()?, NumberForm::Integer, is_signed)
            }
        };
        let end = position + bytes;
        let start = end.saturating_sub(WORD_BYTES);
        if bytes > WORD_BYTES || start + WORD_BYTES > self.header_bytes(false) {
            return None;
        }
        let is_big_endian = form != NumberForm::Integer;
        // The bytes of the word before and after the column.
        let (before, after) = (position - start, start + WORD_BYTES - end);
        let above = if is_big_endian { before } else { after };
        let bias = match form {
            NumberForm::Decimal { .. } => 1_u64 << (8 * bytes - 1),
            _ => 0,
        };
        Some(NumberPlace {
            form,
            null_mask: slot.null_mask,
            null_byte: slot.null_byte,
            start: start as u32,
            left: (8 * above) as u8,
            right: (8 * (WORD_BYTES - bytes)) as u8,
            is_big_endian,
            is_signed,
            bias: bias as i64,
        })
    }
}

impl NumberPlace {
    /// The form of the numbers.
    pub fn form(&self) -> NumberForm {
        self.form
    }

    /// The number of a row; `None` for NULL. The image must be one of the format.
    #[inline(always)]
    pub fn read(&self, image: &[u8]) -> Option<i64> {
        if self.null_mask != 0 && image[usize::from(self.null_byte)] & self.null_mask != 0 {
            return None;
        }
        let bytes = bytes_at(image, self.start as usize);
        let word = if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) };
        let word = word << self.left;
        let bits = if self.is_signed { word as i64 >> self.right } else { (word >> self.right) as i64 };
        Some(bits.wrapping_sub(self.bias))
    }

    /// The value that a number stands for.
    #[inline]
    pub fn decimal_of(&self, number: i64) -> Decimal {
        let scale = match self.form {
            NumberForm::Decimal { scale, .. } => scale,
            _ => 0,
        };
        Decimal::Narrow { mantissa: number.into(), scale }
    }

    /// The number that stands for a value, so that comparing numbers compares the column with this value
    /// exactly. `None` if there is none.
    pub fn number_of(&self, value: ValueRef<'_>) -> Option<i64> {
        match (self.form, value) {
            (NumberForm::Integer, ValueRef::Int(value)) => Some(value),
            (NumberForm::Integer, ValueRef::UInt(value)) => i64::try_from(value).ok(),
            (NumberForm::Integer, ValueRef::Decimal(value)) => exact_mantissa(value, 0),
            (NumberForm::Decimal { scale, .. }, ValueRef::Decimal(value)) => exact_mantissa(value, scale),
            (NumberForm::Decimal { scale, .. }, ValueRef::Int(value)) => {
                exact_mantissa(decimal::from_integer(value.into()), scale)
            }
            (NumberForm::Decimal { scale, .. }, ValueRef::UInt(value)) => {
                exact_mantissa(decimal::from_integer(value.into()), scale)
            }
            (NumberForm::Date, ValueRef::Temporal(value)) => {
                let is_day = matches!(value.kind, TemporalKind::Date | TemporalKind::DateTime);
                (is_day && value.to_date().packed == value.packed)
                    .then(|| packed_number(Packed::Date, ValueRef::Temporal(value.to_date())))?
            }
            (NumberForm::DateTime(digits), ValueRef::Temporal(value)) => {
                let is_day = matches!(value.kind, TemporalKind::Date | TemporalKind::DateTime);
                is_day.then(|| packed_number(Packed::DateTime(digits), ValueRef::Temporal(value.to_date_time())))?
            }
            _ => None,
        }
    }
}

/// The mantissa of exactly this number at a scale, if it has 64 bits.
fn exact_mantissa(value: Decimal, scale: u8) -> Option<i64> {
    let rescaled = decimal::with_scale(value, scale).filter(|rescaled| *rescaled == value)?;
    i64::try_from(rescaled.narrow_mantissa()?).ok()
}

/// The stored bits of a temporal value, if they are those of exactly this value.
fn packed_number(form: Packed, value: ValueRef<'_>) -> Option<i64> {
    let mut bytes = [0; WORD_BYTES];
    let bytes = &mut bytes[..form.bytes()];
    let is_exact = form.write(value, bytes)
        && match (form.read(bytes, None), value) {
            (ValueRef::Temporal(stored), ValueRef::Temporal(value)) => stored.packed == value.packed,
            _ => false,
        };
    let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    is_exact.then_some(number as i64)
}
