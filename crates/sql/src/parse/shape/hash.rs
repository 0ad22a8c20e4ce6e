//! Hot path: about one instruction per byte.
//!
//! The hash of a normalised statement.

/// The first digits of pi in hexadecimal, made odd. Their bits are spread evenly.
const FIRST: u64 = 0x243f_6a88_85a3_08d3;
const SECOND: u64 = 0x1319_8a2e_0370_7345;
const THIRD: u64 = 0xa409_3822_299f_31d1;

/// Two 64-bit hashes of `text`, 16 bytes at a time. Each step multiplies to 128 bits and folds the two halves
/// together.
#[inline]
pub(super) fn of(text: &[u8], seed: u64) -> [u64; 2] {
    let mut first = seed ^ FIRST;
    let mut second = seed.rotate_left(32) ^ SECOND;
    let (chunks, rest) = text.as_chunks::<16>();
    for chunk in chunks {
        let (low, high) = halves(chunk);
        first = fold(first ^ low, high ^ THIRD);
        second = fold(second ^ high, low ^ FIRST);
    }
    let mut last = [0u8; 16];
    last[..rest.len()].copy_from_slice(rest);
    let (low, high) = halves(&last);
    let length = text.len() as u64;
    first = fold(first ^ low, high ^ SECOND ^ length);
    second = fold(second ^ high, low ^ THIRD ^ length.rotate_left(32));
    [fold(first, THIRD ^ length), fold(second, FIRST ^ length)]
}

#[inline]
fn halves(chunk: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*chunk);
    (both as u64, (both >> 64) as u64)
}

#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    // If `right` is zero, the product is zero; the rotation keeps the bits of `left`.
    (product as u64) ^ ((product >> 64) as u64) ^ left.rotate_left(23)
}
