//! Entries of an index, collected in any order and sorted, to build the index from.

use junctor_model::id::RowId;

/// Entries and their order. The entries lie one after another; sorting moves only their positions.
#[derive(Debug, Default)]
pub(crate) struct SortedRun {
    bytes: Vec<u8>,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    /// The first eight bytes of the entry as a number, padded with zeros, which decide most comparisons.
    head: u64,
    start: u32,
    length: u16,
}

impl SortedRun {
    /// Adds the entry of a row under a key that the index does not truncate.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], row: RowId) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(&row.0.to_be_bytes());
        let entry = &self.bytes[start..];
        let head = match entry.first_chunk() {
            Some(chunk) => u64::from_be_bytes(*chunk),
            None => entry.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - at * 8)),
        };
        self.items.push(Item { head, start: start as u32, length: entry.len() as u16 });
    }

    /// Sorts the entries by their bytes.
    pub(crate) fn sort(&mut self) {
        let SortedRun { bytes, items } = self;
        let entry = |item: &Item| &bytes[item.start as usize..item.start as usize + usize::from(item.length)];
        items.sort_unstable_by(|left, right| left.head.cmp(&right.head).then_with(|| entry(left).cmp(entry(right))));
    }

    /// Entry number `index`: a key and a row id.
    #[inline]
    pub(crate) fn entry(&self, index: usize) -> &[u8] {
        let item = self.items[index];
        &self.bytes[item.start as usize..item.start as usize + usize::from(item.length)]
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes of the entries and their positions.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.items.len() * size_of::<Item>()
    }

    /// Removes the entries and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }
}
