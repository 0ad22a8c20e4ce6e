//! Hot path, budget 15 instructions for a key of 4 to 8 bytes: the hash of a key and the partition that it chooses.
//!
//! The hash is part of a table's format and never changes, because it determines where rows are stored.

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const FIRST: u64 = 0xA076_1D64_78BD_642F;
const SECOND: u64 = 0xE703_7ED1_A0B4_28DB;

/// The hash of key bytes: 64 bits of equal quality. Partitions use the upper half, hash indexes the lower
/// bits.
#[inline]
pub fn key_hash(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    if let Some(word) = short_word(bytes) {
        return fold(fold(word ^ FIRST, SEED ^ length as u64), SECOND);
    }
    long_hash(bytes)
}

/// The partition of a row whose partition columns have this hash: below `partition_count`, where 0 counts as
/// 1.
#[inline]
pub fn partition_of(hash: u64, partition_count: u16) -> u16 {
    (((hash >> 32) * u64::from(partition_count)) >> 32) as u16
}

/// The bytes of a key of 4 to 8 bytes in one word, by two loads that may overlap.
#[inline]
fn short_word(bytes: &[u8]) -> Option<u64> {
    if bytes.len() > 8 {
        return None;
    }
    let first = u32::from_le_bytes(*bytes.first_chunk::<4>()?);
    let last = u32::from_le_bytes(*bytes.last_chunk::<4>()?);
    Some(u64::from(last) << 32 | u64::from(first))
}

fn long_hash(bytes: &[u8]) -> u64 {
    let mut state = SEED ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), FIRST);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(fold(state ^ u64::from_le_bytes(last), FIRST) ^ FIRST, SECOND)
}

/// The exclusive or of both halves of the 128-bit product.
#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests;
