//! The keys of one row in a multi-valued index.

use std::ops::Range;

/// Keys one after the other, sorted and distinct. The memory is kept between uses.
#[derive(Debug, Default)]
pub(crate) struct RowKeys {
    bytes: Vec<u8>,
    keys: Vec<Range<usize>>,
}

impl RowKeys {
    /// Removes all keys.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
    }

    /// Adds a key. `sort` must follow the last one.
    pub(crate) fn push(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.keys.push(start..self.bytes.len());
    }

    /// Sorts the keys and removes duplicates, which keys have that the index truncates.
    pub(crate) fn sort(&mut self) {
        let RowKeys { bytes, keys } = self;
        if !keys.is_sorted_by(|left, right| bytes[left.clone()] < bytes[right.clone()]) {
            keys.sort_unstable_by(|left, right| bytes[left.clone()].cmp(&bytes[right.clone()]));
            keys.dedup_by(|next, first| bytes[next.clone()] == bytes[first.clone()]);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &self.bytes[key.clone()])
    }

    /// Removes the keys that another row has too. Both are sorted.
    pub(crate) fn remove_all_of(&mut self, others: &RowKeys) {
        let RowKeys { bytes, keys } = self;
        let mut others = others.iter().peekable();
        keys.retain(|key| {
            let key = &bytes[key.clone()];
            while others.next_if(|other| *other < key).is_some() {}
            others.peek().is_none_or(|other| *other != key)
        });
    }

    /// Frees memory above a limit that a long row has left behind.
    pub(crate) fn trim(&mut self, bytes_kept: usize) {
        if self.bytes.capacity() > bytes_kept {
            *self = RowKeys::default();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(keys: &[Vec<u8>]) -> RowKeys {
        let mut row = RowKeys::default();
        keys.iter().for_each(|key| row.push(key));
        row.sort();
        row
    }

    fn any_keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(0u8..3, 0..4), 0..12)
    }

    proptest! {
        #[test]
        fn keys_are_sorted_sets(keys in any_keys(), others in any_keys()) {
            let mut row = of(&keys);
            let expected: BTreeSet<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            prop_assert!(row.iter().eq(expected.iter().copied()));
            row.remove_all_of(&of(&others));
            let left = expected.into_iter().filter(|key| !others.iter().any(|other| other == key));
            prop_assert!(row.iter().eq(left));
        }
    }
}
