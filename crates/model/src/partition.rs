//! Hot path: at most 15 instructions for a key of 4 to 8 bytes.
//!
//! The hash of a key, and the partition that it chooses.
//!
//! The hash is part of a table's format and never changes, because it determines where rows are stored.

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const FIRST: u64 = 0xA076_1D64_78BD_642F;
const SECOND: u64 = 0xE703_7ED1_A0B4_28DB;

/// A primary key with its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedKey<'a> {
    /// [`key_hash`] of the key bytes.
    pub hash: u64,
    /// Bytes that compare in key order.
    pub key: &'a [u8],
}

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
mod tests {
    use super::*;

    /// Whether the counts are spread like random ones: chi-square within a bound that random counts exceed
    /// only once in about 100,000 times, for any number of degrees of freedom.
    fn is_even(counts: &[u32]) -> bool {
        let total: u32 = counts.iter().sum();
        let expected = f64::from(total) / counts.len() as f64;
        let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        let freedom = (counts.len() - 1) as f64;
        chi_square < freedom + 5.0 * (2.0 * freedom).sqrt() + 12.0
    }

    fn check_spread(name: &str, keys: impl Iterator<Item = Vec<u8>> + Clone) {
        for partition_count in [2u16, 3, 8, 12, 256] {
            let mut counts = vec![0; usize::from(partition_count)];
            keys.clone().for_each(|key| counts[usize::from(partition_of(key_hash(&key), partition_count))] += 1);
            assert!(is_even(&counts), "{name} over {partition_count} partitions");
        }
        // Hash indexes see the keys of one partition only, and use the lower bits.
        let mut buckets = vec![0; 1024];
        let of_partition = keys.map(|key| key_hash(&key)).filter(|hash| partition_of(*hash, 2) == 0);
        of_partition.for_each(|hash| buckets[(hash & 1023) as usize] += 1);
        assert!(is_even(&buckets), "{name} over the buckets of an index");
    }

    #[test]
    fn consecutive_and_strided_integer_keys_spread_evenly() {
        for stride in [1u32, 2, 10, 256, 4096, 65_536] {
            check_spread(
                "INT",
                (0..60_000u32).map(move |row| (row.wrapping_mul(stride) ^ (1 << 31)).to_be_bytes().to_vec()),
            );
            check_spread(
                "BIGINT",
                (0..60_000u64).map(move |row| ((row * u64::from(stride)) ^ (1 << 63)).to_be_bytes().to_vec()),
            );
            check_spread(
                "BIGINT from far",
                (0..60_000u64).map(move |row| (((row * u64::from(stride)) << 24) ^ (1 << 63)).to_be_bytes().to_vec()),
            );
        }
    }

    #[test]
    fn short_and_long_string_keys_spread_evenly() {
        check_spread("MEDIUMINT", (0..60_000u32).map(|row| row.to_be_bytes()[1..].to_vec()));
        check_spread("names", (0..60_000).map(|row| format!("user-{row}\0\0").into_bytes()));
        check_spread(
            "long",
            (0..60_000).map(|row| format!("a prefix that all of them have {row:09} and a tail").into_bytes()),
        );
    }

    #[test]
    fn keys_that_differ_in_zero_bytes_or_length_have_different_hashes() {
        let mut hashes: Vec<u64> = (0..40).map(|length| key_hash(&vec![0; length])).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 40);
    }

    #[test]
    fn the_hash_never_changes() {
        let hashes =
            ["", "\u{1}\0\0\u{2}", "12345678", "a longer key of many bytes"].map(|key| key_hash(key.as_bytes()));
        assert_eq!(hashes, [4859183752220492581, 2813947460832218589, 7262748915178914669, 3222464295761406811]);
    }

    #[test]
    fn a_partition_is_below_the_count() {
        for hash in [0, 1, u64::MAX, u64::MAX << 32, 0x8000_0000_0000_0000] {
            for count in 1..=256 {
                assert!(partition_of(hash, count) < count);
            }
        }
        assert_eq!(partition_of(u64::MAX, 0), 0);
    }
}
