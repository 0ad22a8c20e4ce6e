//! Unsigned integers of a fixed size, with room for the product of two decimals of 81 digits.

use std::cmp::Ordering;

/// Limbs of 32 bits: 192 decimal digits.
const LIMBS: usize = 20;
/// The greatest power of ten that fits a limb, and its exponent.
const CHUNK: u32 = 1_000_000_000;
const CHUNK_DIGITS: u32 = 9;

/// An unsigned integer; the least limb is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Magnitude([u32; LIMBS]);

impl Magnitude {
    /// The number of limbs from the least one on, which must be at most [`LIMBS`].
    pub(super) fn of_limbs(limbs: &[u32]) -> Magnitude {
        let mut own = [0; LIMBS];
        own[..limbs.len()].copy_from_slice(limbs);
        Magnitude(own)
    }

    pub(super) fn of_u128(value: u128) -> Magnitude {
        Magnitude::of_limbs(&[value as u32, (value >> 32) as u32, (value >> 64) as u32, (value >> 96) as u32])
    }

    /// The number, if it fits.
    pub(super) fn to_u128(self) -> Option<u128> {
        let low = self.0[..4].iter().rev().fold(0, |value, limb| value << 32 | u128::from(*limb));
        (self.length() <= 4).then_some(low)
    }

    /// The least limbs, if the others are 0.
    pub(super) fn limbs<const COUNT: usize>(&self) -> Option<[u32; COUNT]> {
        let mut limbs = [0; COUNT];
        limbs.copy_from_slice(&self.0[..COUNT]);
        (self.length() <= COUNT).then_some(limbs)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.length() == 0
    }

    /// Limbs up to the greatest one that is not 0.
    fn length(&self) -> usize {
        self.0.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1)
    }

    /// Decimal digits; 0 for 0.
    pub(super) fn digits(mut self) -> u32 {
        let mut digits = 0;
        while self.length() > 1 {
            self.divide_small(CHUNK);
            digits += CHUNK_DIGITS;
        }
        digits + self.0[0].checked_ilog10().map_or(0, |log| log + 1)
    }

    /// Adds a number; the sum must fit.
    pub(super) fn add(&mut self, other: &Magnitude) {
        let mut carry = 0;
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            let sum = u64::from(*limb) + u64::from(other) + carry;
            *limb = sum as u32;
            carry = sum >> 32;
        }
    }

    pub(super) fn add_small(&mut self, value: u32) {
        self.add(&Magnitude::of_limbs(&[value]));
    }

    /// Takes away a number that is not greater.
    pub(super) fn subtract(&mut self, other: &Magnitude) {
        let mut borrows = false;
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            let (difference, first) = limb.overflowing_sub(other);
            let (difference, second) = difference.overflowing_sub(borrows.into());
            *limb = difference;
            borrows = first || second;
        }
    }

    pub(super) fn multiply_small(&mut self, factor: u32) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
    }

    /// Divides by a number other than 0 and returns the rest.
    pub(super) fn divide_small(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for limb in self.0.iter_mut().rev() {
            let dividend = rest << 32 | u64::from(*limb);
            *limb = (dividend / u64::from(divisor)) as u32;
            rest = dividend % u64::from(divisor);
        }
        rest as u32
    }

    /// Multiplies by 10^`digits`; the product must fit.
    pub(super) fn append_zeros(&mut self, mut digits: u32) {
        while digits > 0 {
            let count = digits.min(CHUNK_DIGITS);
            self.multiply_small(10u32.pow(count));
            digits -= count;
        }
    }

    /// Divides by 10^`digits`. Returns the order of the digits that are dropped and half a unit, and whether
    /// one of them is not 0.
    pub(super) fn drop_digits(&mut self, mut digits: u32) -> (Ordering, bool) {
        let (mut order, mut is_inexact) = (Ordering::Less, false);
        while digits > 0 {
            let count = digits.min(CHUNK_DIGITS);
            let rest = self.divide_small(10u32.pow(count));
            // Digits dropped before only matter where these are exactly half a unit.
            order =
                rest.cmp(&(10u32.pow(count) / 2)).then(if is_inexact { Ordering::Greater } else { Ordering::Equal });
            is_inexact |= rest != 0;
            digits -= count;
        }
        (order, is_inexact)
    }

    /// The product, which must fit.
    pub(super) fn multiply(&self, other: &Magnitude) -> Magnitude {
        let mut product = [0u32; LIMBS];
        for (at, limb) in self.0[..self.length()].iter().enumerate() {
            let mut carry = 0;
            for (out, other) in product[at..].iter_mut().zip(other.0) {
                let sum = u64::from(*limb) * u64::from(other) + u64::from(*out) + carry;
                *out = sum as u32;
                carry = sum >> 32;
            }
        }
        Magnitude(product)
    }

    /// The quotient and the rest. The divisor must not be 0 and be less than 2^608.
    pub(super) fn divide(&self, divisor: &Magnitude) -> (Magnitude, Magnitude) {
        if divisor.length() <= 1 {
            let mut quotient = *self;
            let rest = quotient.divide_small(divisor.0[0]);
            return (quotient, Magnitude::of_limbs(&[rest]));
        }
        if self < divisor {
            return (Magnitude([0; LIMBS]), *self);
        }
        self.divide_long(divisor)
    }

    /// Long division with limbs as digits (Knuth's algorithm D).
    fn divide_long(&self, divisor: &Magnitude) -> (Magnitude, Magnitude) {
        let count = divisor.length();
        let shift = divisor.0[count - 1].leading_zeros();
        let divisor = divisor.shifted_left(shift);
        let (first, second) = (u64::from(divisor.0[count - 1]), u64::from(divisor.0[count - 2]));
        let mut rest = [0u32; LIMBS + 1];
        rest[..LIMBS].copy_from_slice(&self.shifted_left(shift).0);
        if shift > 0 {
            rest[LIMBS] = self.0[LIMBS - 1] >> (32 - shift);
        }
        let mut quotient = [0u32; LIMBS];
        for at in (0..=LIMBS - count).rev() {
            let leading = u64::from(rest[at + count]) << 32 | u64::from(rest[at + count - 1]);
            let (mut digit, mut over) = (leading / first, leading % first);
            while digit >> 32 != 0 || digit * second > over << 32 | u64::from(rest[at + count - 2]) {
                digit -= 1;
                over += first;
                if over >> 32 != 0 {
                    break;
                }
            }
            if subtract_product(&mut rest[at..=at + count], &divisor.0[..count], digit) {
                digit -= 1;
                add_back(&mut rest[at..=at + count], &divisor.0[..count]);
            }
            quotient[at] = digit as u32;
        }
        let rest = Magnitude::of_limbs(&rest[..LIMBS]).shifted_right(shift);
        (Magnitude(quotient), rest)
    }

    /// Shifted by fewer than 32 bits; the bits beyond the greatest limb are lost.
    fn shifted_left(&self, bits: u32) -> Magnitude {
        let mut shifted = self.0;
        for at in (0..LIMBS).rev() {
            let below = if at == 0 { 0 } else { self.0[at - 1] };
            shifted[at] = ((u64::from(self.0[at]) << 32 | u64::from(below)) << bits >> 32) as u32;
        }
        Magnitude(shifted)
    }

    fn shifted_right(&self, bits: u32) -> Magnitude {
        let mut shifted = self.0;
        for (at, limb) in shifted.iter_mut().enumerate() {
            let above = self.0.get(at + 1).copied().unwrap_or(0);
            *limb = ((u64::from(above) << 32 | u64::from(*limb)) >> bits) as u32;
        }
        Magnitude(shifted)
    }

    /// Appends the decimal digits, with leading zeros up to `width`.
    pub(super) fn append_digits(mut self, width: usize, out: &mut Vec<u8>) {
        let start = out.len();
        while !self.is_zero() {
            let mut chunk = self.divide_small(CHUNK);
            for _ in 0..CHUNK_DIGITS {
                out.push(b'0' + (chunk % 10) as u8);
                chunk /= 10;
            }
        }
        while out.len() > start && out.last() == Some(&b'0') {
            out.pop();
        }
        out.resize(out.len().max(start + width), b'0');
        out[start..].reverse();
    }
}

/// Takes `digit` times the divisor away from the limbs; true if the result is negative and wrapped.
fn subtract_product(rest: &mut [u32], divisor: &[u32], digit: u64) -> bool {
    let (mut carry, mut borrows) = (0, false);
    for (at, limb) in rest.iter_mut().enumerate() {
        let product = digit * u64::from(divisor.get(at).copied().unwrap_or(0)) + carry;
        carry = product >> 32;
        let (difference, first) = limb.overflowing_sub(product as u32);
        let (difference, second) = difference.overflowing_sub(borrows.into());
        *limb = difference;
        borrows = first || second;
    }
    borrows
}

fn add_back(rest: &mut [u32], divisor: &[u32]) {
    let mut carry = 0;
    for (at, limb) in rest.iter_mut().enumerate() {
        let sum = u64::from(*limb) + u64::from(divisor.get(at).copied().unwrap_or(0)) + carry;
        *limb = sum as u32;
        carry = sum >> 32;
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Magnitude) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Magnitude) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}
