//! Hot path: at most 10 instructions, not counting those of the hash table.
//!
//! A hash table in shards that grow separately, so that no insert rehashes more than a small part of a large
//! table.

use hashbrown::HashTable;
use hashbrown::hash_table::{AbsentEntry, OccupiedEntry};

const SHARDS: usize = 64;
/// Capacity up to which an empty shard keeps its memory.
const SHARD_KEPT: usize = 1024;
/// Lowest bit of the hash that selects the shard. The hash table itself uses the lowest and the highest bits.
const SHARD_SHIFT: u32 = 40;

/// Record numbers, found by the hash of the record's contents.
#[derive(Debug)]
pub(super) struct ShardedTable {
    shards: Box<[HashTable<u32>; SHARDS]>,
}

impl ShardedTable {
    pub fn new() -> ShardedTable {
        ShardedTable { shards: Box::new(std::array::from_fn(|_| HashTable::new())) }
    }

    #[inline]
    pub fn find(&self, hash: u64, is_match: impl FnMut(&u32) -> bool) -> Option<&u32> {
        self.shards[shard_of(hash)].find(hash, is_match)
    }

    #[inline]
    pub fn find_entry(
        &mut self,
        hash: u64,
        is_match: impl FnMut(&u32) -> bool,
    ) -> Result<OccupiedEntry<'_, u32>, AbsentEntry<'_, u32>> {
        self.shards[shard_of(hash)].find_entry(hash, is_match)
    }

    /// Adds a number that is not in the table.
    #[inline]
    pub fn insert_unique(&mut self, hash: u64, number: u32, hash_of: impl Fn(&u32) -> u64) {
        self.shards[shard_of(hash)].insert_unique(hash, number, hash_of);
    }

    /// Frees the memory of one large shard. The table must be empty.
    pub fn trim(&mut self) {
        if let Some(large) = self.shards.iter_mut().find(|shard| shard.capacity() > SHARD_KEPT && shard.is_empty()) {
            *large = HashTable::new();
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &u32> {
        self.shards.iter().flat_map(HashTable::iter)
    }
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> SHARD_SHIFT) as usize % SHARDS
}
