//! The set of distinct values of an aggregate, as byte strings.
//!
//! Copying or freeing millions of values in one step would delay every other session of the thread. A large
//! set is therefore split by hash into shards, each with its own table and bytes.

use hashbrown::HashTable;
use junctor_model::partition::key_hash;

/// Maximum number of values in the single shard of a small set. A larger set has [`SHARDS`] shards.
const VALUES_OF_ONE_SHARD: usize = 1024;
/// Maximum bytes in the single shard of a small set. Its bound also keeps the offsets within a shard far
/// below 4 GiB.
const BYTES_OF_ONE_SHARD: usize = 1 << 20;
/// Number of shards of a large set.
const SHARDS: usize = 256;
/// Bytes of the length that precedes each value.
const LENGTH_BYTES: usize = 4;

/// A set of byte strings. It iterates shard by shard, in insertion order within a shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistinctSet {
    /// No shard for an empty set, one for a small set, [`SHARDS`] for a large one.
    shards: Vec<Shard>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Shard {
    /// The lower 32 bits of the hash of each value, and the position of the value in `bytes`.
    table: HashTable<(u32, u32)>,
    /// The values, each preceded by its length as a little-endian u32.
    bytes: Vec<u8>,
}

impl DistinctSet {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a value. Returns whether it is new.
    pub fn insert(&mut self, value: &[u8]) -> bool {
        let hash = key_hash(value);
        if self.shards.is_empty() {
            self.shards.push(Shard::default());
        }
        let is_full = self.len >= VALUES_OF_ONE_SHARD || self.shards[0].bytes.len() >= BYTES_OF_ONE_SHARD;
        if self.shards.len() == 1 && is_full {
            self.split();
        }
        let shard = match self.shards.len() {
            1 => 0,
            _ => shard_of(hash),
        };
        let is_new = self.shards[shard].insert(hash, value);
        self.len += usize::from(is_new);
        is_new
    }

    /// Iterates over the values.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.shards.iter().flat_map(Shard::iter)
    }

    fn split(&mut self) {
        let small = std::mem::take(&mut self.shards);
        self.shards.resize_with(SHARDS, Shard::default);
        for value in small.iter().flat_map(Shard::iter) {
            let hash = key_hash(value);
            self.shards[shard_of(hash)].insert(hash, value);
        }
    }
}

/// The shard of a value in a large set. It uses the upper bits of the hash, because the table uses the lower
/// ones.
fn shard_of(hash: u64) -> usize {
    (hash >> 56) as usize
}

impl Shard {
    fn insert(&mut self, hash: u64, value: &[u8]) -> bool {
        let Shard { table, bytes } = self;
        let short = hash as u32;
        let is_equal = |&(other, start): &(u32, u32)| other == short && value_at(bytes, start) == value;
        if table.find(spread(short), is_equal).is_some() {
            return false;
        }
        let start = bytes.len() as u32;
        table.insert_unique(spread(short), (short, start), |&(hash, _)| spread(hash));
        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        bytes.extend_from_slice(value);
        true
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        std::iter::from_fn(move || {
            if start >= self.bytes.len() {
                return None;
            }
            let value = value_at(&self.bytes, start as u32);
            start += LENGTH_BYTES + value.len();
            Some(value)
        })
    }
}

/// A 64-bit hash for the hash table, which derives its tag from the upper bits and its position from the
/// lower ones.
fn spread(short: u32) -> u64 {
    u64::from(short) << 32 | u64::from(short)
}

fn value_at(bytes: &[u8], start: u32) -> &[u8] {
    let rest = &bytes[start as usize..];
    let (length, rest) = rest.split_first_chunk().expect("a value begins with its length");
    &rest[..u32::from_le_bytes(*length) as usize]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_set_has_the_elements_of_an_ordered_set(values in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 0..4000)) {
            let mut set = DistinctSet::default();
            let mut model = BTreeSet::new();
            for value in &values {
                prop_assert_eq!(set.insert(value), model.insert(value.as_slice()));
            }
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.iter().count(), model.len());
            prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), model);
        }
    }

    #[test]
    fn a_large_set_is_split_and_keeps_its_values() {
        let mut set = DistinctSet::default();
        for round in 0..2 {
            for number in 0..50_000u32 {
                assert_eq!(set.insert(&number.to_be_bytes()), round == 0);
            }
        }
        assert_eq!((set.len(), set.shards.len()), (50_000, SHARDS));
        let largest = set.shards.iter().map(|shard| shard.table.len()).max();
        assert!(largest < Some(400), "{largest:?} values of one shard");
    }
}
