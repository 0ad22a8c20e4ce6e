//! Hot path, budget 10 instructions besides the hash table's.
//! A hash table in pieces, each of which grows by itself: so no insert has to move more than a small part of it, however large
//! the table has become.

use hashbrown::HashTable;
use hashbrown::hash_table::{AbsentEntry, OccupiedEntry};

const SHARDS: usize = 64;
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
    pub fn find(&self, hash: u64, is_it: impl FnMut(&u32) -> bool) -> Option<&u32> {
        self.shards[shard_of(hash)].find(hash, is_it)
    }

    #[inline]
    pub fn find_entry(
        &mut self,
        hash: u64,
        is_it: impl FnMut(&u32) -> bool,
    ) -> Result<OccupiedEntry<'_, u32>, AbsentEntry<'_, u32>> {
        self.shards[shard_of(hash)].find_entry(hash, is_it)
    }

    /// Adds a number that is not there.
    #[inline]
    pub fn insert_unique(&mut self, hash: u64, number: u32, hash_of: impl Fn(&u32) -> u64) {
        self.shards[shard_of(hash)].insert_unique(hash, number, hash_of);
    }

    pub fn iter(&self) -> impl Iterator<Item = &u32> {
        self.shards.iter().flat_map(HashTable::iter)
    }
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> SHARD_SHIFT) as usize % SHARDS
}
