//! Hot path: at most 40 instructions per key.
//!
//! Removes equal keys of one statement.

use super::{KeyBuilder, PROBES_MAX};

impl KeyBuilder {
    /// Removes all but the first of equal keys. Uses a hash table with open addressing, and sorting if too
    /// many hashes collide.
    pub(super) fn remove_duplicates(&mut self) {
        if self.keys.len() < 2 {
            return;
        }
        let size = (self.keys.len() * 2).next_power_of_two();
        self.seen.clear();
        self.seen.resize(size, 0);
        let KeyBuilder { bytes, seen, keys, .. } = self;
        let mut kept = 0;
        for position in 0..keys.len() {
            let (hash, range) = keys[position].clone();
            let key = &bytes[range.start as usize..range.end as usize];
            let mut slot = hash as usize & (size - 1);
            let is_new = loop {
                let Some(other) = seen[slot].checked_sub(1) else { break true };
                let (other_hash, other) = &keys[other as usize];
                if *other_hash == hash && bytes[other.start as usize..other.end as usize] == *key {
                    break false;
                }
                slot = (slot + 1) & (size - 1);
                if slot.wrapping_sub(hash as usize) & (size - 1) >= PROBES_MAX {
                    keys.drain(kept..position);
                    return self.remove_duplicates_by_sorting();
                }
            };
            if is_new {
                keys[kept] = (hash, range);
                kept += 1;
                seen[slot] = kept as u32;
            }
        }
        keys.truncate(kept);
    }

    /// Does the work of [`KeyBuilder::remove_duplicates`] in a time that does not depend on the hashes.
    #[cold]
    fn remove_duplicates_by_sorting(&mut self) {
        let KeyBuilder { bytes, seen: positions, keys, .. } = self;
        let key = |position: u32| {
            let range = &keys[position as usize].1;
            &bytes[range.start as usize..range.end as usize]
        };
        positions.clear();
        positions.extend(0..keys.len() as u32);
        positions.sort_unstable_by(|left, right| (key(*left), left).cmp(&(key(*right), right)));
        positions.dedup_by(|next, first| key(*next) == key(*first));
        positions.sort_unstable();
        for (kept, position) in positions.iter().enumerate() {
            keys[kept] = keys[*position as usize].clone();
        }
        keys.truncate(positions.len());
    }
}
