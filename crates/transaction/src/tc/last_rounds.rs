//! Hot path: at most 40 instructions per key of a unique index.
//!
//! The rounds in which a statement has already changed keys of unique indexes.

use hashbrown::HashTable;
use junctor_storage::sharded_table::ShardedTable;

/// Number of keys up to which they lie in one small table. Most statements have a single key.
const FEW_KEYS_MAX: usize = 1024;
/// Shards that are freed in one step.
const SHARDS_FREED_MAX: usize = 4;

/// For each index and hash of a key, the last round of the key's entries. Keys with equal hashes take one
/// round more than necessary.
#[derive(Debug, Default)]
pub(super) struct LastRounds {
    few: HashTable<LastRound>,
    many: Option<ShardedTable<LastRound>>,
}

#[derive(Clone, Copy, Debug)]
struct LastRound {
    hash: u64,
    /// The index, by its position in the program.
    index: u32,
    round: u32,
}

impl LastRounds {
    /// The round of the key's next entry, which is now the key's last one.
    pub fn next(&mut self, index: usize, hash: u64, is_insert: bool) -> u32 {
        let is_match = |last: &LastRound| last.hash == hash && last.index == index as u32;
        let last = match &mut self.many {
            None => self.few.find_mut(hash, is_match),
            Some(many) => many.find_mut(hash, is_match),
        };
        let round = round_after(last.as_ref().map(|last| last.round), is_insert);
        match last {
            Some(last) => last.round = round,
            None => self.add(LastRound { hash, index: index as u32, round }),
        }
        round
    }

    fn add(&mut self, last: LastRound) {
        let hash_of = |last: &LastRound| last.hash;
        match &mut self.many {
            Some(many) => many.insert_unique(last.hash, last, hash_of),
            None if self.few.len() < FEW_KEYS_MAX => _ = self.few.insert_unique(last.hash, last, hash_of),
            None => {
                let mut many = ShardedTable::default();
                for last in self.few.drain().chain([last]) {
                    many.insert_unique(last.hash, last, hash_of);
                }
                self.many = Some(many);
            }
        }
    }

    /// Frees some of the memory, because freeing all of it in one step would take too long.
    #[inline]
    pub fn free_some(&mut self) {
        if self.many.as_mut().is_some_and(|many| many.clear_some(SHARDS_FREED_MAX)) {
            self.many = None;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_none()
    }
}

/// The first round after `last` for this kind of entry.
fn round_after(last: Option<u32>, is_insert: bool) -> u32 {
    let first = last.map_or(0, |last| last + 1);
    if (first % 2 == 1) == is_insert { first } else { first + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletes_take_even_rounds_and_inserts_odd_ones_however_many_keys_there_are() {
        let mut rounds = LastRounds::default();
        for key in 0..FEW_KEYS_MAX as u64 * 4 {
            let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert_eq!(rounds.next(0, hash, false), 0);
            assert_eq!(rounds.next(0, hash, true), 1);
            assert_eq!(rounds.next(1, hash, true), 1);
        }
        for key in 0..FEW_KEYS_MAX as u64 * 4 {
            let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            assert_eq!(rounds.next(0, hash, true), 3);
            assert_eq!(rounds.next(1, hash, false), 2);
            assert_eq!(rounds.next(1, hash, false), 4);
        }
        let mut steps = 0;
        while !rounds.is_empty() {
            rounds.free_some();
            steps += 1;
        }
        assert_eq!(steps, 64 / SHARDS_FREED_MAX);
    }
}
