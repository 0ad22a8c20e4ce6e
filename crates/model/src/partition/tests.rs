use super::*;

/// Whether the counts are spread like random ones: chi-square within a bound that random counts exceed only
/// once in about 100,000 times, for any number of degrees of freedom.
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
    let hashes = ["", "\u{1}\0\0\u{2}", "12345678", "a longer key of many bytes"].map(|key| key_hash(key.as_bytes()));
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
