//! Entries of an index, collected in any order and sorted, to build the index from.

use std::ops::Range;

use junctor_model::id::RowId;

/// Maximum length of an entry that lies in its item.
const SHORT_BYTES_MAX: usize = ITEM_BYTES - 1;
const ITEM_BYTES: usize = size_of::<u128>();
/// The last byte of the item of an entry that is not short.
const LONG: u8 = u8::MAX;

/// Entries and their order. Sorting and reading short entries, such as those of numbers, accesses nothing but
/// the items.
///
/// The item of a short entry has its bytes from the highest on, zeros, and its length in the last byte. The
/// item of a long entry has its first eight bytes, which decide most comparisons, then the position of all
/// its bytes (4), its length (2) and `LONG`.
#[derive(Debug, Default)]
pub(crate) struct SortedRun {
    items: Vec<u128>,
    /// Long entries, one after another.
    long: Vec<u8>,
}

impl SortedRun {
    /// Adds the entry of a row under a key that the index does not truncate.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], row: RowId) {
        let length = key.len() + size_of::<RowId>();
        let mut item = [0; ITEM_BYTES];
        if length > SHORT_BYTES_MAX {
            let start = self.long.len() as u32;
            self.long.extend_from_slice(key);
            self.long.extend_from_slice(&row.0.to_be_bytes());
            item[..8].copy_from_slice(&self.long[start as usize..][..8]);
            item[8..12].copy_from_slice(&start.to_be_bytes());
            item[12..14].copy_from_slice(&(length as u16).to_be_bytes());
            item[SHORT_BYTES_MAX] = LONG;
        } else {
            item[..key.len()].copy_from_slice(key);
            item[key.len()..length].copy_from_slice(&row.0.to_be_bytes());
            item[SHORT_BYTES_MAX] = length as u8;
        }
        self.items.push(u128::from_be_bytes(item));
    }

    /// Sorts the entries by their bytes.
    pub(crate) fn sort(&mut self) {
        // No entry of an index is a prefix of another, so the zeros and the length of a short entry decide
        // nothing.
        if self.long.is_empty() {
            return self.items.sort_unstable();
        }
        let SortedRun { items, long } = self;
        items.sort_unstable_by(|left, right| {
            let (left_head, right_head) = ((left >> 64) as u64, (right >> 64) as u64);
            left_head.cmp(&right_head).then_with(|| {
                let (mut left_bytes, mut right_bytes) = ([0; ITEM_BYTES], [0; ITEM_BYTES]);
                bytes_of(*left, long, &mut left_bytes).cmp(bytes_of(*right, long, &mut right_bytes))
            })
        });
    }

    /// Entry number `index`: a key and a row id. `short` receives the bytes of a short entry.
    #[inline]
    pub(crate) fn entry<'a>(&'a self, index: usize, short: &'a mut [u8; ITEM_BYTES]) -> &'a [u8] {
        bytes_of(self.items[index], &self.long, short)
    }

    /// Calls `take` for entries in order until it returns false. Returns the number of entries taken.
    #[inline]
    pub(crate) fn take_while(&self, entries: Range<usize>, mut take: impl FnMut(&[u8]) -> bool) -> usize {
        let mut short = [0; ITEM_BYTES];
        let items = &self.items[entries];
        let refused = items.iter().position(|item| !take(bytes_of(*item, &self.long, &mut short)));
        refused.unwrap_or(items.len())
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes of the entries and their positions.
    pub(crate) fn bytes(&self) -> usize {
        self.long.len() + self.items.len() * ITEM_BYTES
    }

    /// Removes the entries and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.long.clear();
    }
}

#[inline]
fn bytes_of<'a>(item: u128, long: &'a [u8], short: &'a mut [u8; ITEM_BYTES]) -> &'a [u8] {
    *short = item.to_be_bytes();
    match short[SHORT_BYTES_MAX] {
        LONG => {
            let start = (item >> 32) as u32 as usize;
            &long[start..start + usize::from((item >> 16) as u16)]
        }
        length => &short[..usize::from(length)],
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        // Keys end with two zeros, which occur nowhere else in them, so that none is a prefix of another.
        proptest::collection::vec(1u8..3, 0..20).prop_map(|mut key| {
            key.extend_from_slice(&[0, 0]);
            key
        })
    }

    proptest! {
        #[test]
        fn short_and_long_entries_are_sorted_by_their_bytes(
            keys in proptest::collection::vec((any_key(), any::<u32>()), 0..100),
            is_short in any::<bool>(),
        ) {
            let mut run = SortedRun::default();
            let mut expected = Vec::new();
            for _ in 0..2 {
                run.clear();
                expected.clear();
                for (key, row) in keys.iter().filter(|(key, _)| !is_short || key.len() + 4 <= SHORT_BYTES_MAX) {
                    run.push(key, RowId(*row));
                    expected.push([&key[..], &row.to_be_bytes()].concat());
                }
                run.sort();
                expected.sort();
            }
            let mut taken = Vec::new();
            prop_assert_eq!(run.len(), expected.len());
            let first = expected.len() / 3;
            let count = run.take_while(first..run.len(), |entry| {
                taken.push(entry.to_vec());
                taken.len() < 20
            });
            prop_assert_eq!(&taken[..], &expected[first..first + taken.len()]);
            prop_assert_eq!(count, if taken.len() == 20 { 19 } else { taken.len() });
            let mut short = Default::default();
            for (index, entry) in expected.iter().enumerate() {
                prop_assert_eq!(run.entry(index, &mut short), &entry[..]);
            }
        }
    }
}
