//! Hot path: at most 10 instructions, not counting those of the hash table.
//!
//! A hash table in shards that grow separately, so that no insert rehashes more than a small part of a large
//! table.

use std::mem::take;

use hashbrown::HashTable;
use hashbrown::hash_table::{AbsentEntry, OccupiedEntry};

const SHARDS: usize = 64;
/// Capacity up to which an empty shard keeps its memory.
const SHARD_KEPT: usize = 1024;
/// Lowest bit of the hash that selects the shard. The hash table itself uses the lowest and the highest bits.
const SHARD_SHIFT: u32 = 40;

/// Values, found by their hashes.
#[derive(Debug)]
pub struct ShardedTable<T> {
    shards: Box<[HashTable<T>; SHARDS]>,
}

impl<T> Default for ShardedTable<T> {
    fn default() -> ShardedTable<T> {
        ShardedTable { shards: Box::new(std::array::from_fn(|_| HashTable::new())) }
    }
}

impl<T> ShardedTable<T> {
    /// The value with this hash for which `is_match` holds.
    #[inline]
    pub fn find(&self, hash: u64, is_match: impl FnMut(&T) -> bool) -> Option<&T> {
        self.shards[shard_of(hash)].find(hash, is_match)
    }

    /// Like `find`, for changes that leave the hash as it is.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, is_match: impl FnMut(&T) -> bool) -> Option<&mut T> {
        self.shards[shard_of(hash)].find_mut(hash, is_match)
    }

    /// Like `find`, for removal.
    #[inline]
    pub fn find_entry(
        &mut self,
        hash: u64,
        is_match: impl FnMut(&T) -> bool,
    ) -> Result<OccupiedEntry<'_, T>, AbsentEntry<'_, T>> {
        self.shards[shard_of(hash)].find_entry(hash, is_match)
    }

    /// Adds a value that is not in the table.
    #[inline]
    pub fn insert_unique(&mut self, hash: u64, value: T, hash_of: impl Fn(&T) -> u64) {
        self.shards[shard_of(hash)].insert_unique(hash, value, hash_of);
    }

    /// Frees the memory of one large shard. The table must be empty.
    pub fn trim(&mut self) {
        if let Some(large) = self.shards.iter_mut().find(|shard| shard.capacity() > SHARD_KEPT && shard.is_empty()) {
            *large = HashTable::new();
        }
    }

    /// Removes the values of some shards and frees their memory. Returns whether the table is empty.
    pub fn clear_some(&mut self, shards: usize) -> bool {
        self.shards.iter_mut().filter(|shard| !shard.is_empty()).take(shards).map(take).for_each(drop);
        self.shards.iter().all(HashTable::is_empty)
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.shards.iter().flat_map(HashTable::iter)
    }
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> SHARD_SHIFT) as usize % SHARDS
}
