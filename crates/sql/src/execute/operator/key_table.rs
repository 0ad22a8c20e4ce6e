//! A hash table of byte strings. A large one has 64 parts, each of which grows alone, so that no step is
//! long. A small one has one part, and an empty one allocates nothing: DISTINCT has a table for each group.

use junctor_signals::key_filter::hash_of;

const PARTS: usize = 64;
/// Number of keys of one part from which the table is divided into [`PARTS`].
const UNDIVIDED_MAX: usize = 64;
const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Part {
    /// The first entry of each bucket.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    keys: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    start: usize,
    bytes: usize,
    next: u32,
    value: u32,
}

/// Numbers by key.
#[derive(Debug, Default)]
pub(in crate::execute) struct KeyTable {
    /// No part, one, or [`PARTS`].
    parts: Vec<Part>,
    memory: usize,
}

impl KeyTable {
    /// The memory of the table in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The memory of a key in the table.
    pub fn entry_memory(key: &[u8]) -> usize {
        key.len() + size_of::<Entry>() + 8
    }

    /// The key and the number at a place, or at the next place that has one; the place moves there. `None`
    /// after the last one. The second number of a place counts the entries of its part.
    pub fn entry(&self, (part, place): &mut (usize, usize)) -> Option<(&[u8], u32)> {
        loop {
            let found = self.parts.get(*part)?;
            match found.entries.get(*place) {
                Some(entry) => return Some((&found.keys[entry.start..entry.start + entry.bytes], entry.value)),
                None => (*part, *place) = (*part + 1, 0),
            }
        }
    }

    /// The number of a key.
    pub fn get(&self, key: &[u8]) -> Option<u32> {
        let hash = hash_of(key);
        let part = self.parts.get(self.part_of(hash)?)?;
        let mut at = *part.heads.get(part.bucket(hash)?)?;
        while at != NONE {
            let entry = &part.entries[at as usize];
            if entry.hash == hash && &part.keys[entry.start..entry.start + entry.bytes] == key {
                return Some(entry.value);
            }
            at = entry.next;
        }
        None
    }

    /// The number of a key, which may be changed. A new key gets `value`. Returns whether the key is new.
    pub fn insert(&mut self, key: &[u8], value: u32) -> (&mut u32, bool) {
        let hash = hash_of(key);
        if self.parts.is_empty() {
            self.add_parts(1);
        }
        if self.parts.len() == 1 && self.parts[0].entries.len() >= UNDIVIDED_MAX {
            self.divide();
        }
        let place = self.part_of(hash).unwrap_or(0);
        let part = &mut self.parts[place];
        if part.entries.len() >= part.heads.len() {
            part.grow();
        }
        let bucket = part.bucket(hash).unwrap_or(0);
        let mut at = part.heads[bucket];
        while at != NONE {
            let entry = &part.entries[at as usize];
            if entry.hash == hash && &part.keys[entry.start..entry.start + entry.bytes] == key {
                break;
            }
            at = entry.next;
        }
        let is_new = at == NONE;
        if is_new {
            self.memory += KeyTable::entry_memory(key);
            at = part.entries.len() as u32;
            let start = part.keys.len();
            part.keys.extend_from_slice(key);
            part.entries.push(Entry { hash, start, bytes: key.len(), next: part.heads[bucket], value });
            part.heads[bucket] = at;
        }
        (&mut part.entries[at as usize].value, is_new)
    }
}

impl KeyTable {
    fn part_of(&self, hash: u64) -> Option<usize> {
        (hash as usize).checked_rem(self.parts.len())
    }

    fn add_parts(&mut self, count: usize) {
        self.parts.resize_with(count, Part::default);
        self.memory += count * size_of::<Part>();
    }

    /// Divides the keys of the only part.
    fn divide(&mut self) {
        let undivided = std::mem::take(&mut self.parts);
        self.memory = 0;
        self.add_parts(PARTS);
        for part in &undivided {
            for entry in &part.entries {
                self.insert(&part.keys[entry.start..entry.start + entry.bytes], entry.value);
            }
        }
    }
}

impl Part {
    fn bucket(&self, hash: u64) -> Option<usize> {
        let count = self.heads.len();
        (count > 0).then(|| (hash >> 32) as usize & (count - 1))
    }

    fn grow(&mut self) {
        let count = (2 * self.heads.len()).max(16);
        self.heads.clear();
        self.heads.resize(count, NONE);
        for at in 0..self.entries.len() {
            let bucket = (self.entries[at].hash >> 32) as usize & (count - 1);
            self.entries[at].next = std::mem::replace(&mut self.heads[bucket], at as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_tables_find_their_keys() {
        let mut table = KeyTable::default();
        assert_eq!((table.memory(), table.parts.capacity(), table.get(b"key")), (0, 0, None));
        for number in 0..1000_u32 {
            let key = number.to_le_bytes();
            assert_eq!(table.get(&key), None);
            assert!(table.insert(&key, number).1);
            assert!(!table.insert(&key, 7).1);
            // The insert after the last that fits divides the table.
            let parts = if (number as usize) + 1 < UNDIVIDED_MAX { 1 } else { PARTS };
            let entries = (number as usize + 1) * KeyTable::entry_memory(&key);
            assert_eq!((table.parts.len(), table.memory()), (parts, parts * size_of::<Part>() + entries));
        }
        assert!((0..1000_u32).all(|number| table.get(&number.to_le_bytes()) == Some(number)));
        let (mut place, mut found) = ((0, 0), 0);
        while table.entry(&mut place).is_some() {
            (place.1, found) = (place.1 + 1, found + 1);
        }
        assert_eq!(found, 1000);
    }
}
