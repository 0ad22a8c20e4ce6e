//! Decimals of more than 38 digits, which an `i128` does not hold. As in MySQL, the digits before the point
//! and those after it are counted in groups of nine. A number has at most nine groups: up to 81 digits.

use std::cmp::Ordering;

use super::magnitude::Magnitude;
use super::{DECIMAL_SCALE_MAX, MANTISSA_LIMIT};
use crate::value::Decimal;

/// Limbs of 32 bits. 81 digits have 270 bits.
const LIMBS: usize = 9;
/// Bytes of a number between nodes, in documents and in partial aggregates.
pub const WIDE_BYTES: usize = 1 + LIMBS * 4;
/// Digits of a group.
const GROUP: u32 = 9;
/// Maximum number of groups.
const GROUPS_MAX: u32 = 9;

/// A decimal with more than 38 digits.
#[derive(Clone, Copy, Debug)]
pub struct Wide {
    /// The mantissa without its sign; the least limb is first.
    limbs: [u32; LIMBS],
    scale: u8,
    negative: bool,
}

/// A number that is computed: it may have more digits than a decimal.
#[derive(Clone, Copy)]
struct Number {
    magnitude: Magnitude,
    negative: bool,
    scale: u8,
}

impl Wide {
    /// Number of digits after the point.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Whether the number is less than 0.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The number with the opposite sign.
    pub fn negated(self) -> Wide {
        Wide { negative: !self.negative, ..self }
    }

    /// The mantissa as bytes: 1 for a negative one, otherwise 0, then the magnitude, the least byte first.
    pub fn to_bytes(&self) -> [u8; WIDE_BYTES] {
        let mut bytes = [self.negative.into(); WIDE_BYTES];
        for (out, limb) in bytes[1..].chunks_exact_mut(4).zip(self.limbs) {
            out.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    /// The number of such bytes; `None` if they are not those of a wide number of this scale.
    pub fn from_bytes(bytes: &[u8; WIDE_BYTES], scale: u8) -> Option<Decimal> {
        let mut limbs = [0; LIMBS];
        for (limb, bytes) in limbs.iter_mut().zip(bytes[1..].chunks_exact(4)) {
            *limb = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        }
        let number = Number { magnitude: Magnitude::of_limbs(&limbs), negative: bytes[0] == 1, scale };
        let is_valid = bytes[0] <= 1 && scale <= DECIMAL_SCALE_MAX && number.fits_groups();
        number.to_decimal().filter(|value| is_valid && matches!(value, Decimal::Wide(_)))
    }

    /// Appends the number as MySQL prints it.
    pub fn append_text(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let scale = usize::from(self.scale);
        Magnitude::of_limbs(&self.limbs).append_digits(scale + 1, out);
        if scale > 0 {
            out.insert(out.len() - scale, b'.');
        }
    }

    /// The number times 10^scale, big-endian in as many bytes as `out` has, with the sign flipped.
    pub(crate) fn write_biased(&self, out: &mut [u8]) {
        let mut limbs = self.limbs.iter().flat_map(|limb| limb.to_le_bytes());
        let mut carries = self.negative;
        for byte in out.iter_mut().rev() {
            let digit = limbs.next().unwrap_or(0);
            *byte = if self.negative { !digit } else { digit };
            if carries {
                (*byte, carries) = byte.overflowing_add(1);
            }
        }
        out[0] ^= 0x80;
    }
}

/// The number whose bytes [`Wide::write_biased`] has written: at most 32 bytes.
pub(crate) fn read_biased(bytes: &[u8], scale: u8) -> Decimal {
    let negative = bytes[0] & 0x80 == 0;
    let mut limbs = [0u32; LIMBS];
    for (at, byte) in bytes.iter().rev().enumerate() {
        let byte = if at + 1 == bytes.len() { *byte ^ 0x80 } else { *byte };
        limbs[at / 4] |= u32::from(if negative { !byte } else { byte }) << (at % 4 * 8);
    }
    let mut magnitude = Magnitude::of_limbs(&limbs);
    if negative {
        magnitude.add_small(1);
    }
    let number = Number { magnitude, negative, scale };
    number.to_decimal().unwrap_or(Decimal::Narrow { mantissa: 0, scale })
}

impl Number {
    fn of(value: Decimal) -> Number {
        match value {
            Decimal::Narrow { mantissa, scale } => {
                Number { magnitude: Magnitude::of_u128(mantissa.unsigned_abs()), negative: mantissa < 0, scale }
            }
            Decimal::Wide(wide) => {
                Number { magnitude: Magnitude::of_limbs(&wide.limbs), negative: wide.negative, scale: wide.scale }
            }
        }
    }

    /// The decimal, in the narrow form if it has at most 38 digits. `None` beyond the limbs.
    fn to_decimal(self) -> Option<Decimal> {
        if let Some(magnitude) = self.magnitude.to_u128()
            && magnitude < MANTISSA_LIMIT
        {
            let mantissa = magnitude as i128;
            return Some(Decimal::Narrow {
                mantissa: if self.negative { -mantissa } else { mantissa },
                scale: self.scale,
            });
        }
        let limbs = self.magnitude.limbs()?;
        Some(Decimal::Wide(Wide { limbs, scale: self.scale, negative: self.negative }))
    }

    /// Digits before the point.
    fn integer_digits(&self) -> u32 {
        self.magnitude.digits().saturating_sub(self.scale.into())
    }

    /// Groups of digits before the point.
    fn integer_groups(&self) -> u32 {
        self.integer_digits().div_ceil(GROUP)
    }

    fn fits_groups(&self) -> bool {
        self.integer_groups() + u32::from(self.scale).div_ceil(GROUP) <= GROUPS_MAX
    }

    /// The decimal with as many digits after the point as the groups allow; the others are cut off. `None` if
    /// there are too many digits before the point.
    fn clipped(self) -> Option<Decimal> {
        let places = GROUPS_MAX.checked_sub(self.integer_groups())? * GROUP;
        let mut number = self;
        if u32::from(self.scale).div_ceil(GROUP) * GROUP > places {
            number.cut(places.min(self.scale.into()) as u8);
        }
        number.to_decimal()
    }

    /// Drops the digits after the first `scale` ones after the point.
    fn cut(&mut self, scale: u8) {
        self.magnitude.drop_digits(self.scale.saturating_sub(scale).into());
        self.scale = self.scale.min(scale);
    }

    /// Has `scale` digits after the point, rounded half away from zero.
    fn round(&mut self, scale: u8) {
        if scale >= self.scale {
            self.magnitude.append_zeros((scale - self.scale).into());
        } else if self.magnitude.drop_digits((self.scale - scale).into()).0 != Ordering::Less {
            self.magnitude.add_small(1);
        }
        self.scale = scale;
    }
}

/// The order of two numbers.
#[cold]
pub(crate) fn compare(left: Decimal, right: Decimal) -> Ordering {
    let (mut left, mut right) = (Number::of(left), Number::of(right));
    let scale = left.scale.max(right.scale);
    left.round(scale);
    right.round(scale);
    match (left.negative, right.negative) {
        (true, true) => right.magnitude.cmp(&left.magnitude),
        (false, false) => left.magnitude.cmp(&right.magnitude),
        // The narrow form has no negative zero, and zero is narrow.
        (negative, _) => {
            if negative {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    }
}

/// The number of this mantissa, in the form that it needs.
#[cold]
pub(super) fn of_mantissa(mantissa: i128, scale: u8) -> Decimal {
    Number::of(Decimal::Narrow { mantissa, scale }).to_decimal().unwrap_or(Decimal::Narrow { mantissa, scale })
}

/// The largest number of this many digits, or its negation.
#[cold]
pub(super) fn largest(precision: u8, scale: u8, negative: bool) -> Option<Decimal> {
    let mut magnitude = Magnitude::of_u128(1);
    magnitude.append_zeros(precision.into());
    magnitude.subtract(&Magnitude::of_u128(1));
    Number { magnitude, negative, scale }.to_decimal()
}

/// Whether the mantissa has at most `precision` digits.
#[cold]
pub(super) fn fits_digits(value: Wide, precision: u8) -> bool {
    digits(value) <= precision.into()
}

/// Number of digits of the mantissa.
pub(super) fn digits(value: Wide) -> u32 {
    Magnitude::of_limbs(&value.limbs).digits()
}

#[cold]
pub(super) fn with_scale(value: Decimal, scale: u8) -> Option<Decimal> {
    let mut number = Number::of(value);
    number.round(scale);
    number.to_decimal().filter(|_| number.fits_groups())
}

/// The value with as many zeros behind its digits as there is room for, at most `scale` digits after the
/// point.
#[cold]
pub(super) fn padded(value: Decimal, scale: u8) -> Decimal {
    let mut number = Number::of(value);
    let places = GROUPS_MAX.saturating_sub(number.integer_groups()) * GROUP;
    let places = places.min(scale.into()) as u8;
    if places > number.scale {
        number.round(places);
    }
    number.to_decimal().unwrap_or(value)
}

/// The sum. As in MySQL, groups of digits after the point for which there is no room are cut off the
/// operands.
#[cold]
pub(super) fn add(left: Decimal, right: Decimal) -> Option<Decimal> {
    let (mut left, mut right) = (Number::of(left), Number::of(right));
    let places = GROUPS_MAX.checked_sub(groups_of_sum(&left, &right))? * GROUP;
    let scale = left.scale.max(right.scale);
    if u32::from(scale).div_ceil(GROUP) * GROUP > places {
        left.cut(places as u8);
        right.cut(places as u8);
    }
    let scale = left.scale.max(right.scale);
    left.round(scale);
    right.round(scale);
    if left.negative == right.negative {
        left.magnitude.add(&right.magnitude);
        return left.clipped();
    }
    if left.magnitude < right.magnitude {
        (left, right) = (right, left);
    }
    left.magnitude.subtract(&right.magnitude);
    left.clipped()
}

/// Groups before the point for which a sum has room: one more than the operands have if a carry into it is
/// possible, as their first groups show.
fn groups_of_sum(left: &Number, right: &Number) -> u32 {
    let groups = left.integer_groups().max(right.integer_groups());
    if left.negative != right.negative || groups == 0 {
        return groups;
    }
    let first_group = |number: &Number| {
        let mut magnitude = number.magnitude;
        magnitude.drop_digits(u32::from(number.scale) + (groups - 1) * GROUP);
        magnitude.to_u128().unwrap_or(0)
    };
    let may_carry = first_group(left) + first_group(right) >= 10u128.pow(GROUP) - 1;
    groups + u32::from(may_carry)
}

/// The product rounded to `scale` digits after the point. As in MySQL, groups of digits after the point that
/// do not fit beside the others are cut off before.
#[cold]
pub(super) fn multiply(left: Decimal, right: Decimal, scale: u8) -> Option<Decimal> {
    let (mut left, mut right) = (Number::of(left), Number::of(right));
    let groups = |number: &Number| u32::from(number.scale).div_ceil(GROUP);
    let places = GROUPS_MAX.checked_sub((left.integer_digits() + right.integer_digits()).div_ceil(GROUP))?;
    let excess = (groups(&left) + groups(&right)).saturating_sub(places);
    if excess > 0 {
        let (shorter, longer) =
            if groups(&left) <= groups(&right) { (&mut left, &mut right) } else { (&mut right, &mut left) };
        let of_shorter = (excess / 2).min(groups(shorter));
        let kept = (groups(shorter) - of_shorter, groups(longer).saturating_sub(excess - of_shorter));
        shorter.cut((kept.0 * GROUP).min(shorter.scale.into()) as u8);
        longer.cut((kept.1 * GROUP).min(longer.scale.into()) as u8);
    }
    let magnitude = left.magnitude.multiply(&right.magnitude);
    let mut product = Number { magnitude, negative: left.negative != right.negative, scale: left.scale + right.scale };
    product.round(scale);
    product.clipped()
}

/// The quotient with `scale` digits after the point, rounded or cut off. The divisor must not be 0.
#[cold]
pub(super) fn divide(left: Decimal, right: Decimal, scale: u8, rounds: bool) -> Option<Decimal> {
    let (mut left, mut right) = (Number::of(left), Number::of(right));
    let places = i32::from(scale) + i32::from(right.scale) - i32::from(left.scale);
    let negative = left.negative != right.negative;
    left.magnitude.append_zeros(places.max(0) as u32);
    right.magnitude.append_zeros((-places).max(0) as u32);
    let (mut magnitude, mut rest) = left.magnitude.divide(&right.magnitude);
    rest.add(&rest.clone());
    if rounds && rest >= right.magnitude {
        magnitude.add_small(1);
    }
    Number { magnitude, negative, scale }.clipped()
}

/// The remainder with the larger scale and the sign of `left`. The divisor must not be 0.
#[cold]
pub(super) fn remainder(left: Decimal, right: Decimal) -> Option<Decimal> {
    let (mut left, mut right) = (Number::of(left), Number::of(right));
    let scale = left.scale.max(right.scale);
    left.round(scale);
    right.round(scale);
    left.magnitude = left.magnitude.divide(&right.magnitude).1;
    left.clipped()
}

/// The same number without trailing zeros after the point.
#[cold]
pub(super) fn without_trailing_zeros(value: Decimal) -> Decimal {
    let mut number = Number::of(value);
    while number.scale > 0 {
        let mut shorter = number.magnitude;
        if shorter.divide_small(10) != 0 {
            break;
        }
        number = Number { magnitude: shorter, scale: number.scale - 1, ..number };
    }
    number.to_decimal().unwrap_or(value)
}

/// The treatment of dropped digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// They are cut off.
    Cut,
    /// Half a unit and more is rounded away from zero.
    Rounded,
    /// The result is not above the number.
    Floored,
}

/// The number with at most `places` digits after the point; negative places are zeros before it.
#[cold]
pub(super) fn drop_places(value: Decimal, places: i32, dropped: Dropped) -> Option<Decimal> {
    let mut number = Number::of(value);
    let count = i32::from(number.scale) - places;
    if count <= 0 {
        return Some(value);
    }
    let (order, is_inexact) = number.magnitude.drop_digits(count.min(200) as u32);
    let rounds_away = match dropped {
        Dropped::Cut => false,
        Dropped::Rounded => order != Ordering::Less,
        Dropped::Floored => number.negative && is_inexact,
    };
    if rounds_away {
        number.magnitude.add_small(1);
    }
    if !number.magnitude.is_zero() {
        number.magnitude.append_zeros((-places).max(0) as u32);
    }
    number.scale = places.max(0) as u8;
    number.clipped()
}

/// The integer of these digits followed by `zeros` zeros, with its last `scale` digits after the point. If
/// `rounds_up`, the last digit is one more. `None` beyond 81 digits.
#[cold]
pub(crate) fn of_digits(
    digits: impl Iterator<Item = u8>,
    (zeros, scale): (i64, u8),
    (negative, rounds_up): (bool, bool),
) -> Option<Decimal> {
    let mut magnitude = Magnitude::of_u128(0);
    let mut count = 0;
    for digit in digits {
        magnitude.multiply_small(10);
        magnitude.add_small((digit - b'0').into());
        count += u32::from(count > 0 || digit != b'0');
        // More digits than these have too many before the point, whatever the scale.
        if count > GROUP * GROUPS_MAX + u32::from(DECIMAL_SCALE_MAX) {
            return None;
        }
    }
    magnitude.add_small(rounds_up.into());
    if !magnitude.is_zero() {
        magnitude.append_zeros(u32::try_from(zeros).ok().filter(|zeros| *zeros <= GROUP * GROUPS_MAX)?);
    }
    Number { magnitude, negative, scale }.clipped()
}
