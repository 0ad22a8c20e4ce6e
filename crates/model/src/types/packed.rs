//! Values of a fixed number of bytes that are neither plain integers nor doubles. The bytes of temporal
//! values and decimals have the order of the values, so they are the key too.

use super::Members;
use crate::decimal;
use crate::temporal::{Parts, Temporal, TemporalKind};
use crate::value::{Bit, ChoiceRef, ChoiceText, Decimal, ValueRef};

/// The form of such a value in rows, and of some in keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// FLOAT: the bits, little-endian.
    Float,
    /// YEAR: 0, or the years since 1900.
    Year,
    /// DATE: 15 bits of the year, 4 of the month and 5 of the day, big-endian.
    Date,
    /// TIME with digits after the point: as MySQL, 24 bits with an offset of 2^23, then the fraction.
    Time(u8),
    /// DATETIME with digits after the point: as MySQL, 40 bits with an offset of 2^39, then the fraction.
    DateTime(u8),
    /// TIMESTAMP with digits after the point: seconds since 1970 big-endian, then the fraction.
    Timestamp(u8),
    /// DECIMAL: the number times 10^scale, big-endian with the sign flipped.
    Decimal {
        /// Digits before and after the point.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// DECIMAL of more than 38 digits, in the same form as shorter ones.
    WideDecimal {
        /// Digits before and after the point.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// BIT of this many bits, little-endian in 1, 2, 3, 4 or 8 bytes.
    Bit(u8),
    /// ENUM in this many bytes, little-endian.
    Enum(u8),
    /// SET in this many bytes, little-endian.
    Set(u8),
}

/// Bytes of the digits after the point of seconds.
fn fraction_bytes(digits: u8) -> usize {
    usize::from(digits).div_ceil(2)
}

/// Microseconds of one unit of the stored fraction.
fn fraction_unit(digits: u8) -> i64 {
    [1_000_000, 10_000, 100, 1][fraction_bytes(digits).min(3)]
}

/// The least of the widths 1, 2, 3, 4 and 8 with that many bits.
pub(super) fn width_of_bits(bits: u32) -> u8 {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=24 => 3,
        25..=32 => 4,
        _ => 8,
    }
}

/// Bytes of a decimal with its sign bit.
fn decimal_bytes(precision: u8) -> usize {
    // 10^precision < 2^(8 n - 1): log2(10) is less than 3322 / 1000.
    (usize::from(precision) * 3322 / 1000 + 2).div_ceil(8)
}

impl Packed {
    /// The number of bytes.
    pub fn bytes(self) -> usize {
        match self {
            Packed::Float => 4,
            Packed::Year => 1,
            Packed::Date => 3,
            Packed::Time(digits) => 3 + fraction_bytes(digits),
            Packed::DateTime(digits) => 5 + fraction_bytes(digits),
            Packed::Timestamp(digits) => 4 + fraction_bytes(digits),
            Packed::Decimal { precision, .. } | Packed::WideDecimal { precision, .. } => decimal_bytes(precision),
            Packed::Bit(bits) => width_of_bits(bits.into()).into(),
            Packed::Enum(bytes) | Packed::Set(bytes) => bytes.into(),
        }
    }

    /// The value of such bytes. `members` are those of an ENUM or SET.
    pub(crate) fn read<'a>(self, bytes: &'a [u8], members: Option<&'a Members>) -> ValueRef<'a> {
        match self {
            Packed::Float => ValueRef::Float(f32::from_bits(little_endian(bytes) as u32)),
            Packed::Year => {
                let since = u16::from(bytes[0]);
                ValueRef::Temporal(Temporal::year(if since == 0 { 0 } else { 1900 + since }))
            }
            Packed::Date => {
                let bits = big_endian(bytes);
                ValueRef::Temporal(Temporal::date((bits >> 9) as u16, (bits >> 5 & 15) as u8, (bits & 31) as u8))
            }
            Packed::Time(digits) => {
                let shift = 8 * fraction_bytes(digits) as u32;
                let signed = (big_endian(bytes) as i64).wrapping_sub(1 << (23 + shift));
                ValueRef::Temporal(time_of(signed, shift, digits))
            }
            Packed::DateTime(digits) => {
                let shift = 8 * fraction_bytes(digits) as u32;
                let bits = (big_endian(bytes) as i64).wrapping_sub(1 << (39 + shift)).max(0);
                let microsecond = (bits & ((1 << shift) - 1)) * fraction_unit(digits);
                let months = bits >> (22 + shift);
                let parts = Parts {
                    negative: false,
                    year: (months / 13) as u16,
                    month: (months % 13) as u8,
                    day: (bits >> (17 + shift) & 31) as u8,
                    hour: (bits >> (12 + shift) & 31) as u16,
                    minute: (bits >> (6 + shift) & 63) as u8,
                    second: (bits >> shift & 63) as u8,
                    microsecond: microsecond as u32,
                };
                ValueRef::Temporal(Temporal::from_parts(TemporalKind::DateTime, digits, &parts))
            }
            Packed::Timestamp(digits) => {
                let (seconds, fraction) = bytes.split_at(4);
                let microsecond = big_endian(fraction) as i64 * fraction_unit(digits);
                ValueRef::Temporal(Temporal::instant(big_endian(seconds) as i64, microsecond as u32, digits))
            }
            Packed::Decimal { scale, .. } => ValueRef::Decimal(Decimal::Narrow { mantissa: read_biased(bytes), scale }),
            Packed::WideDecimal { scale, .. } => ValueRef::Decimal(decimal::read_wide(bytes, scale)),
            Packed::Bit(bits) => ValueRef::Bit(Bit { number: little_endian(bytes), bytes: bits.div_ceil(8) }),
            Packed::Enum(_) => {
                let number = little_endian(bytes);
                let text = members.map_or(&b""[..], |members| members.name(number));
                ValueRef::Choice(ChoiceRef { number, text: ChoiceText::Text(text) })
            }
            Packed::Set(_) => {
                let text = members.map_or(ChoiceText::Text(b""), ChoiceText::Members);
                ValueRef::Choice(ChoiceRef { number: little_endian(bytes), text })
            }
        }
    }

    /// Writes a value into as many bytes as the form has; false if it is not one of the form.
    pub(crate) fn write(self, value: ValueRef<'_>, out: &mut [u8]) -> bool {
        match (self, value) {
            (Packed::Float, ValueRef::Float(value)) => out.copy_from_slice(&value.to_le_bytes()),
            (Packed::Bit(bits), ValueRef::Bit(Bit { number, .. })) => {
                let fits = bits >= 64 || number >> bits == 0;
                write_little_endian(number, out);
                return fits;
            }
            (Packed::Enum(_) | Packed::Set(_), ValueRef::Choice(choice)) => {
                let fits = out.len() == 8 || choice.number >> (8 * out.len()) == 0;
                write_little_endian(choice.number, out);
                return fits;
            }
            (Packed::Decimal { precision, scale }, ValueRef::Decimal(value)) => {
                let Some(value) = decimal::with_scale(value, scale) else { return false };
                let fits = decimal::fits_digits(value, precision);
                if let Some(mantissa) = value.narrow_mantissa().filter(|_| fits) {
                    write_biased(mantissa, out);
                }
                return fits;
            }
            (Packed::WideDecimal { precision, scale }, ValueRef::Decimal(value)) => {
                let Some(value) = decimal::with_scale(value, scale) else { return false };
                let fits = decimal::fits_digits(value, precision);
                match value {
                    Decimal::Narrow { mantissa, .. } => write_extended(mantissa, out),
                    Decimal::Wide(wide) if fits => wide.write_biased(out),
                    Decimal::Wide(_) => {}
                }
                return fits;
            }
            (form, ValueRef::Temporal(value)) => return form.write_temporal(value, out),
            _ => return false,
        }
        true
    }

    fn write_temporal(self, value: Temporal, out: &mut [u8]) -> bool {
        let parts = value.parts();
        let fraction = |digits: u8| i64::from(parts.microsecond) / fraction_unit(digits);
        let clock = i64::from(parts.hour) << 12 | i64::from(parts.minute) << 6 | i64::from(parts.second);
        match (self, value.kind) {
            (Packed::Year, TemporalKind::Year) => out[0] = parts.year.saturating_sub(1900).min(255) as u8,
            (Packed::Date, TemporalKind::Date) => {
                let bits = u64::from(parts.year) << 9 | u64::from(parts.month) << 5 | u64::from(parts.day);
                write_big_endian(bits, out);
            }
            (Packed::Time(digits), TemporalKind::Time) => {
                let shift = 8 * fraction_bytes(digits) as u32;
                let magnitude = clock << shift | fraction(digits);
                let signed = if parts.negative { -magnitude } else { magnitude };
                write_big_endian((signed + (1 << (23 + shift))) as u64, out);
            }
            (Packed::DateTime(digits), TemporalKind::DateTime) => {
                let shift = 8 * fraction_bytes(digits) as u32;
                let date = (i64::from(parts.year) * 13 + i64::from(parts.month)) << 5 | i64::from(parts.day);
                let bits = (date << 17 | clock) << shift | fraction(digits);
                write_big_endian((bits + (1 << (39 + shift))) as u64, out);
            }
            (Packed::Timestamp(digits), TemporalKind::Timestamp) => {
                let (seconds, microsecond) = value.instant_parts();
                let Ok(seconds) = u32::try_from(seconds) else { return false };
                let (head, tail) = out.split_at_mut(4);
                head.copy_from_slice(&seconds.to_be_bytes());
                write_big_endian((i64::from(microsecond) / fraction_unit(digits)) as u64, tail);
            }
            _ => return false,
        }
        true
    }

    /// Whether bytes are those of a value, so that equal values have equal bytes.
    pub(crate) fn is_valid(self, bytes: &[u8], members: Option<&Members>) -> bool {
        let mut again = [0; 40];
        let again = &mut again[..self.bytes()];
        match self.read(bytes, members) {
            ValueRef::Float(value) if !value.is_finite() => false,
            ValueRef::Temporal(value) if !value.is_valid() => false,
            ValueRef::Choice(choice) if !is_member(self, choice.number, members) => false,
            value => self.write(value, again) && *again == *bytes,
        }
    }
}

/// Whether an ENUM or SET has the value.
fn is_member(form: Packed, number: u64, members: Option<&Members>) -> bool {
    let count = members.map_or(0, |members| members.names().len());
    match form {
        Packed::Set(_) => count >= 64 || number >> count == 0,
        _ => number <= count as u64,
    }
}

/// A time from its stored number, of which the lowest `shift` bits are the fraction.
fn time_of(signed: i64, shift: u32, digits: u8) -> Temporal {
    let magnitude = signed.unsigned_abs();
    let parts = Parts {
        negative: signed < 0,
        hour: (magnitude >> (12 + shift) & 1023) as u16,
        minute: (magnitude >> (6 + shift) & 63) as u8,
        second: (magnitude >> shift & 63) as u8,
        microsecond: ((magnitude & ((1 << shift) - 1)) as i64 * fraction_unit(digits)) as u32,
        ..Parts::default()
    };
    Temporal::from_parts(TemporalKind::Time, digits, &parts)
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn write_big_endian(value: u64, out: &mut [u8]) {
    let bytes = value.to_be_bytes();
    let start = bytes.len() - out.len();
    out.copy_from_slice(&bytes[start..]);
}

fn write_little_endian(value: u64, out: &mut [u8]) {
    out.copy_from_slice(&value.to_le_bytes()[..out.len()]);
}

/// A big-endian integer of up to 16 bytes with the sign flipped.
fn read_biased(bytes: &[u8]) -> i128 {
    if bytes.len() <= size_of::<u64>() {
        let bias = 1_i128 << (8 * bytes.len() - 1);
        return i128::from(big_endian(bytes)) - bias;
    }
    let start = if bytes[0] & 0x80 == 0 { -1i128 } else { 0 };
    let first = start << 8 | i128::from(bytes[0] ^ 0x80);
    bytes[1..].iter().fold(first, |value, byte| value << 8 | i128::from(*byte))
}

/// As [`write_biased`], into more than 16 bytes.
fn write_extended(value: i128, out: &mut [u8]) {
    let (high, low) = out.split_at_mut(out.len() - 16);
    high.fill(if value < 0 { 0xFF } else { 0 });
    low.copy_from_slice(&value.to_be_bytes());
    out[0] ^= 0x80;
}

fn write_biased(value: i128, out: &mut [u8]) {
    let bytes = value.to_be_bytes();
    let start = bytes.len() - out.len();
    out.copy_from_slice(&bytes[start..]);
    out[0] ^= 0x80;
}
