//! Hot path, budget 10 instructions besides the hash table's.
//! A hash table in pieces, each of which grows by itself: so no insert has to move more than a small part of it, however large
//! the table has become.

use hashbrown::HashTable;
use hashbrown::hash_table::{AbsentEntry, OccupiedEntry};

const SHARDS: usize = 64;
/// Numbers for which a piece keeps its memory.
const SHARD_KEPT: usize = 1024;
/// Bits of the hash from here on choose the piece: the table itself uses the lowest and the highest ones.
const SHARD_SHIFT: u32 = 40;

/// Numbers of records, found by the hash of what is in the record.
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

    /// Adds a number that is not there.
    #[inline]
    pub fn insert_unique(&mut self, hash: u64, number: u32, hash_of: impl Fn(&u32) -> u64) {
        self.shards[shard_of(hash)].insert_unique(hash, number, hash_of);
    }

    /// Gives back the memory of one piece that has much; nothing may be in it.
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
