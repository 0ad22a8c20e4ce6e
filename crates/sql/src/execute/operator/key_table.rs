//! A hash table of byte strings. It has 64 parts, each of which grows alone, so that no step is long.

const PARTS: usize = 64;
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
#[derive(Debug)]
pub(in crate::execute) struct KeyTable {
    parts: Vec<Part>,
    memory: usize,
}

impl Default for KeyTable {
    fn default() -> KeyTable {
        KeyTable { parts: (0..PARTS).map(|_| Part::default()).collect(), memory: 0 }
    }
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
        let part = &self.parts[hash as usize % PARTS];
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
        let part = &mut self.parts[hash as usize % PARTS];
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

/// The hash of a key, all of whose bits depend on all bytes.
pub(super) fn hash_of(key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = key.len() as u64 ^ 0x51_7C_C1_B7_27_22_0A_95;
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(hash ^ u64::from_le_bytes(word)).wrapping_mul(u128::from(FACTOR));
        hash = (product as u64) ^ (product >> 64) as u64 ^ hash.rotate_left(23);
    }
    hash ^ hash >> 29
}
