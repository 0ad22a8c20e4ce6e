//! Entries of all partitions, sorted, equal ones said once, the first so many kept.

use junctor_model::error::{Error, ErrorCode, Result};

use super::packets::Window;

/// Rows beyond the wanted ones that are kept before the superfluous ones are dropped.
const SLACK_ROWS: usize = 4096;

/// Sorters that are kept for the next statements, and the bytes that one of them may hold.
const IDLE_COUNT_MAX: usize = 8;
const IDLE_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first bytes of the keys as a number, as if zeros followed: most comparisons need no more.
    head: u64,
    /// Where the sort key begins; the distinct key and the packets follow it.
    start: u32,
    sort_bytes: u16,
    distinct_bytes: u16,
    packet_bytes: u32,
}

/// Sorters that no execution uses.
pub(crate) type IdleSorters = Vec<Box<Sorter>>;

/// The sorter of one execution.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    distinct: bool,
    /// Rows that are wanted at most.
    wanted: usize,
    bytes_max: usize,
    /// The next entry to say, once sorted.
    next: usize,
}

impl Sorter {
    /// An empty sorter, of the idle ones if there is any, that gives at most `wanted` rows and uses at most `bytes_max`
    /// bytes.
    pub(crate) fn begin(distinct: bool, wanted: u64, bytes_max: usize, idle: &mut IdleSorters) -> Box<Sorter> {
        let mut sorter = idle.pop().unwrap_or_default();
        sorter.bytes.clear();
        sorter.entries.clear();
        sorter.distinct = distinct;
        sorter.wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        sorter.bytes_max = bytes_max.min(u32::MAX as usize);
        sorter.next = 0;
        sorter
    }

    /// Keeps the memory of a sorter for later, unless there is enough.
    pub(crate) fn retire(self: Box<Sorter>, idle: &mut IdleSorters) {
        let bytes = self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>();
        if idle.len() < IDLE_COUNT_MAX && bytes <= IDLE_BYTES_MAX {
            idle.push(self);
        }
    }

    /// Takes the entries of one reply. Error: 1038's words when they take too much memory.
    pub(crate) fn take(&mut self, mut reply: &[u8]) -> Result<()> {
        while let Some((header, rest)) = reply.split_first_chunk::<8>() {
            let packet_bytes = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            let sort_bytes = u16::from_le_bytes([header[4], header[5]]);
            let distinct_bytes = u16::from_le_bytes([header[6], header[7]]);
            let length = usize::from(sort_bytes) + usize::from(distinct_bytes) + packet_bytes as usize;
            let Some((entry, rest)) = rest.split_at_checked(length) else { break };
            if self.bytes.len() + length + (self.entries.len() + 1) * size_of::<Entry>() > self.bytes_max {
                self.drop_superfluous();
                if self.bytes.len() + length + (self.entries.len() + 1) * size_of::<Entry>() > self.bytes_max {
                    return Err(out_of_sort_memory());
                }
            }
            let keys = match sort_bytes {
                0 => &entry[..usize::from(distinct_bytes)],
                bytes => &entry[..usize::from(bytes)],
            };
            let start = self.bytes.len() as u32;
            self.entries.push(Entry { head: head_of(keys), start, sort_bytes, distinct_bytes, packet_bytes });
            self.bytes.extend_from_slice(entry);
            reply = rest;
        }
        if self.wanted < usize::MAX / 4 && self.entries.len() > 2 * self.wanted + SLACK_ROWS {
            self.drop_superfluous();
        }
        Ok(())
    }

    /// Puts the entries in order; after this they are given by [`Sorter::give`].
    pub(crate) fn sort(&mut self) {
        let Sorter { bytes, entries, distinct, .. } = self;
        let keys = |entry: &Entry| {
            let start = entry.start as usize;
            let sort_end = start + usize::from(entry.sort_bytes);
            (&bytes[start..sort_end], &bytes[sort_end..sort_end + usize::from(entry.distinct_bytes)])
        };
        // Entries are in the order of their arrival before, and equal ones stay so.
        entries.sort_by(|left, right| left.head.cmp(&right.head).then_with(|| keys(left).cmp(&keys(right))));
        if *distinct {
            entries.dedup_by(|next, kept| next.head == kept.head && keys(next) == keys(kept));
        }
        self.next = 0;
    }

    /// Bytes of all entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Appends packets of the window until `out` has this many bytes; false when there are no more.
    pub(crate) fn give(&mut self, window: &mut Window, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        if window.offset > 0 {
            let skipped = (window.offset).min((self.entries.len() - self.next) as u64);
            window.offset -= skipped;
            self.next += skipped as usize;
        }
        while window.remaining > 0 {
            let Some(entry) = self.entries.get(self.next) else { return false };
            if out.len() >= bytes_max {
                return true;
            }
            let start = entry.start as usize + usize::from(entry.sort_bytes) + usize::from(entry.distinct_bytes);
            out.extend_from_slice(&self.bytes[start..start + entry.packet_bytes as usize]);
            self.next += 1;
            if window.remaining != u64::MAX {
                window.remaining -= 1;
            }
        }
        false
    }

    /// Keeps only what can still be among the wanted rows.
    fn drop_superfluous(&mut self) {
        self.sort();
        self.entries.truncate(self.wanted);
        let mut bytes = Vec::with_capacity(self.bytes.len() / 2);
        for entry in &mut self.entries {
            let start = entry.start as usize;
            let length =
                usize::from(entry.sort_bytes) + usize::from(entry.distinct_bytes) + entry.packet_bytes as usize;
            entry.start = bytes.len() as u32;
            bytes.extend_from_slice(&self.bytes[start..start + length]);
        }
        self.bytes = bytes;
    }
}

/// The first eight bytes as a number, as if zeros followed.
#[inline]
fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - at * 8)),
    }
}

/// 1038 has no code of its own here; MySQL's words do.
fn out_of_sort_memory() -> Box<Error> {
    let message = "Out of sort memory, consider increasing server sort buffer size";
    Error::new(ErrorCode::OutOfResources, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sort: &[u8], distinct: &[u8], packet: &[u8]) -> Vec<u8> {
        let mut out = (packet.len() as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&(sort.len() as u16).to_le_bytes());
        out.extend_from_slice(&(distinct.len() as u16).to_le_bytes());
        out.extend_from_slice(&[sort, distinct, packet].concat());
        out
    }

    fn given(sorter: &mut Sorter, mut window: Window) -> Vec<u8> {
        sorter.sort();
        let mut out = Vec::new();
        assert!(!sorter.give(&mut window, usize::MAX, &mut out));
        out
    }

    #[test]
    fn entries_of_several_replies_come_out_in_order() {
        let mut sorter = Sorter::begin(false, u64::MAX, 1 << 20, &mut Vec::new());
        sorter.take(&[entry(b"b", b"", b"2"), entry(b"d", b"", b"4")].concat()).expect("it is little");
        sorter.take(&[entry(b"a", b"", b"1"), entry(b"c", b"", b"3")].concat()).expect("it is little");
        assert_eq!(given(&mut sorter, Window { offset: 1, remaining: 2 }), b"23");
    }

    #[test]
    fn equal_rows_are_given_once() {
        let mut sorter = Sorter::begin(true, u64::MAX, 1 << 20, &mut Vec::new());
        for _ in 0..3 {
            sorter.take(&[entry(b"", b"y", b"Y"), entry(b"", b"x", b"X")].concat()).expect("it is little");
        }
        assert_eq!(given(&mut sorter, Window::ALL), b"XY");
    }

    #[test]
    fn many_rows_with_a_small_limit_take_little_memory() {
        let mut sorter = Sorter::begin(false, 3, 400_000, &mut Vec::new());
        for number in (0..60_000u32).rev() {
            sorter.take(&entry(&number.to_be_bytes(), b"", &[number as u8; 20])).expect("superfluous rows are dropped");
        }
        assert_eq!(given(&mut sorter, Window { offset: 0, remaining: 3 }), [[0; 20], [1; 20], [2; 20]].concat());
    }

    #[test]
    fn keys_that_agree_in_their_first_bytes_are_told_apart_by_the_rest() {
        let mut sorter = Sorter::begin(true, u64::MAX, 1 << 20, &mut Vec::new());
        let keys: [&[u8]; 5] = [b"12345678b", b"1234", b"12345678a", b"1234\0", b"12345678"];
        for (number, key) in keys.iter().chain(&keys).enumerate() {
            sorter.take(&entry(key, b"", &[b'0' + number as u8])).expect("it is little");
        }
        assert_eq!(given(&mut sorter, Window::ALL), b"13420");
    }

    #[test]
    fn a_sorter_that_served_before_is_empty() {
        let mut idle = Vec::new();
        let mut sorter = Sorter::begin(false, u64::MAX, 1 << 20, &mut idle);
        sorter.take(&entry(b"a", b"", b"1")).expect("it is little");
        assert_eq!(given(&mut sorter, Window::ALL), b"1");
        sorter.retire(&mut idle);
        let mut sorter = Sorter::begin(false, u64::MAX, 1 << 20, &mut idle);
        assert!(idle.is_empty());
        sorter.take(&entry(b"b", b"", b"2")).expect("it is little");
        assert_eq!(given(&mut sorter, Window::ALL), b"2");
    }

    #[test]
    fn too_many_wanted_rows_are_an_error() {
        let mut sorter = Sorter::begin(false, u64::MAX, 1000, &mut Vec::new());
        let outcome = (0..100u8).try_for_each(|number| sorter.take(&entry(&[number], b"", &[0; 20])));
        assert_eq!(outcome.expect_err("2,000 bytes do not fit").code, ErrorCode::OutOfResources);
    }
}
