//! Sorts the rows of all partitions. An entry is a row with its sort key; LIMIT bounds the result, and
//! DISTINCT removes duplicates.
//!
//! Each step of a sort is short, because all other sessions of the thread wait for it. Entries are sorted in
//! runs of at most [`RUN_ENTRIES`]. Rows are returned while the runs are merged, [`STEP_ENTRIES`] a step.
//! With LIMIT or DISTINCT, the runs are compacted to the entries that can still be in the result while more
//! arrive.

use std::cmp::Ordering;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::program::ENTRY_HEADER_BYTES;

use super::packets::Window;
use super::retry::RetryInput;

/// Maximum number of entries in a run. Sorting a run takes tens of microseconds.
const RUN_ENTRIES: usize = 512;
/// Maximum number of entries that one step merges, which takes tens of microseconds.
const STEP_ENTRIES: usize = 256;
/// The runs are compacted when the number of entries exceeds twice the LIMIT by more than this.
const SLACK_ENTRIES: usize = 4096;
/// A distinct result is compacted when its bytes exceed twice those after the last compaction by more than
/// this.
const SLACK_BYTES: usize = 1 << 20;
/// Number of old entries that a compaction merges for each new entry that arrives during it. With two, a
/// compaction ends before the next one is due.
const COMPACTED_PER_TAKEN: usize = 2;
/// Bytes of a chunk. Memory is allocated and freed by chunks, because copying or freeing all of it would be
/// one long step.
const CHUNK_BYTES: usize = 1 << 20;
/// Entries of a chunk.
const CHUNK_ENTRIES: usize = 16 * 1024;
/// Chunks that one step frees.
const STEP_CHUNKS: usize = 4;

/// Maximum number of idle sorters kept for later statements, and maximum bytes of each of them.
const IDLE_COUNT_MAX: usize = 8;
const IDLE_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first eight bytes of the sort key, or of the distinct key if the rows are not sorted; big-endian
    /// and padded with zeros. Most comparisons need only this.
    head: u64,
    /// The chunk of bytes that contains the sort key, and its offset there. The distinct key and the row
    /// packets follow the sort key.
    chunk: u32,
    start: u32,
    packet_bytes: u32,
    sort_bytes: u16,
    distinct_bytes: u16,
}

/// A run: consecutive entries of one chunk, in sorted order.
#[derive(Clone, Copy, Debug)]
struct Run {
    chunk: u32,
    next: u32,
    end: u32,
}

/// Sorters that no statement uses at present.
pub(crate) type IdleSorters = Vec<Box<Sorter>>;

/// The result that a sorter must produce.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortRequest {
    /// Whether equal rows are returned once.
    pub distinct: bool,
    /// Maximum number of rows that the result needs, including skipped ones; `u64::MAX` for all.
    pub wanted: u64,
    /// Whether rows beyond the window are counted too, as SQL_CALC_FOUND_ROWS requires.
    pub counts_all: bool,
}

/// The outcome of a step that returns rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortStep {
    /// Another step must follow.
    More,
    /// The output has reached its maximum length.
    Full,
    /// All rows have been returned.
    Done,
}

/// Sorts the result of one statement.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    request: SortRequest,
    bytes_max: usize,
    arena: Arena,
    compaction: Option<Compaction>,
    /// Bytes in use when the last compaction ended.
    compact_bytes: usize,
    /// The merge of all runs; `None` until the first row is requested.
    merge: Option<Merge>,
    /// Number of rows merged so far.
    found: u64,
    /// Chunks that nothing refers to, to be freed.
    garbage: Garbage,
    /// Whether the query starts again if its rows take too much memory, and with which input. `None` if it
    /// has a copy for other reasons.
    pub(super) restart: Option<RetryInput>,
}

/// Entries, their bytes, and the sorted runs that they form.
#[derive(Debug, Default)]
struct Arena {
    bytes: Vec<Vec<u8>>,
    entries: Vec<Vec<Entry>>,
    runs: Vec<Run>,
    /// Index of the first entry of the last chunk that is in no run yet.
    unsorted: usize,
    /// Bytes of those entries.
    unsorted_bytes: usize,
    /// Bytes of entries and keys and packets.
    used: usize,
    count: usize,
}

/// A merge of the entries of one arena into a new arena that keeps only the entries the result needs.
#[derive(Debug)]
struct Compaction {
    from: Arena,
    merge: Merge,
    kept: u64,
}

/// The runs of an arena as a heap, ordered by their next entries; the least is on top.
#[derive(Debug, Default)]
struct Merge {
    heap: Vec<Run>,
    last: Option<Entry>,
}

/// The next entry of a merge.
#[derive(Clone, Copy, Debug)]
enum MergeStep {
    Entry(Entry),
    /// An entry equal to the one before it. It counts towards the entries of a step, so that a step with many
    /// duplicates ends too.
    Equal,
    End,
}

/// Chunks that nothing refers to. Each step frees a few.
#[derive(Debug, Default)]
struct Garbage {
    bytes: Vec<Vec<u8>>,
    entries: Vec<Vec<Entry>>,
    /// Bytes of entries, keys and packets.
    used: usize,
}

/// The lengths in front of an entry of a reply.
#[derive(Clone, Copy)]
struct EntryLengths {
    packet_bytes: u32,
    sort_bytes: u16,
    distinct_bytes: u16,
}

impl EntryLengths {
    fn of(header: &[u8; ENTRY_HEADER_BYTES]) -> EntryLengths {
        EntryLengths {
            packet_bytes: u32::from_le_bytes([header[0], header[1], header[2], header[3]]),
            sort_bytes: u16::from_le_bytes([header[4], header[5]]),
            distinct_bytes: u16::from_le_bytes([header[6], header[7]]),
        }
    }

    fn total(&self) -> usize {
        usize::from(self.sort_bytes) + usize::from(self.distinct_bytes) + self.packet_bytes as usize
    }
}

impl Sorter {
    /// Reuses an idle sorter or creates one. The sorter uses at most `bytes_max` bytes, and twice that during
    /// a compaction.
    pub(crate) fn begin(request: SortRequest, bytes_max: usize, idle: &mut IdleSorters) -> Box<Sorter> {
        let mut sorter = idle.pop().unwrap_or_default();
        let Sorter { mut arena, .. } = std::mem::take(&mut *sorter);
        arena.clear();
        *sorter = Sorter { request, bytes_max, arena, ..Sorter::default() };
        sorter
    }

    /// Changes the maximum number of bytes of a query that can start again.
    pub(super) fn restart_beyond(&mut self, bytes_max: usize, input: RetryInput) {
        (self.bytes_max, self.restart) = (bytes_max, Some(input));
    }

    /// Keeps the sorter for later statements, unless enough sorters are kept or this one has too much memory.
    pub(crate) fn retire(self: Box<Sorter>, idle: &mut IdleSorters) {
        let is_small = self.arena.capacity() <= IDLE_BYTES_MAX && self.compaction.is_none() && self.garbage.is_empty();
        if idle.len() < IDLE_COUNT_MAX && is_small {
            idle.push(self);
        }
    }

    /// Adds the entries of one reply.
    ///
    /// # Errors
    /// `OutOfResources`, with MySQL's text of error 1038, when the entries take too much memory.
    pub(crate) fn add_rows(&mut self, mut reply: &[u8]) -> Result<()> {
        while let Some((header, rest)) = reply.split_first_chunk() {
            let lengths = EntryLengths::of(header);
            let EntryLengths { packet_bytes, sort_bytes, distinct_bytes } = lengths;
            let Some((bytes, rest)) = rest.split_at_checked(lengths.total()) else { break };
            let keys = match sort_bytes {
                0 => &bytes[..usize::from(distinct_bytes)],
                sort_bytes => &bytes[..usize::from(sort_bytes)],
            };
            let entry = Entry { head: head_of(keys), chunk: 0, start: 0, packet_bytes, sort_bytes, distinct_bytes };
            if self.arena.unsorted_entries() == RUN_ENTRIES || self.arena.unsorted_bytes >= self.run_bytes_max() {
                self.arena.seal();
                self.compact(COMPACTED_PER_TAKEN * RUN_ENTRIES)?;
            }
            self.arena.push(entry, bytes);
            reply = rest;
        }
        self.check_memory()
    }

    /// Number of entries held. It includes duplicates and entries beyond the LIMIT that no compaction has
    /// dropped yet.
    pub(crate) fn len(&self) -> usize {
        self.arena.count
    }

    /// Bytes of all entries held.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.used
    }

    /// Number of rows merged so far. Once a sorter with `counts_all` is done, this is the number of all rows
    /// of the result.
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    /// Appends packets of the window to `out` until `out` has `bytes_max` bytes or the step is over. The
    /// caller repeats the call until it returns [`SortStep::Done`].
    pub(crate) fn emit_rows(&mut self, window: &mut Window, bytes_max: usize, out: &mut Vec<u8>) -> SortStep {
        if self.merge.is_none() {
            if self.compaction.is_some() {
                self.compact_step(STEP_ENTRIES);
                return SortStep::More;
            }
            self.arena.seal();
            self.merge = Some(Merge::of(&mut self.arena));
        }
        let Sorter { request, arena, merge: Some(merge), .. } = self else { return SortStep::Done };
        for _ in 0..STEP_ENTRIES {
            if window.remaining == 0 && !request.counts_all {
                return self.free();
            }
            if out.len() >= bytes_max {
                return SortStep::Full;
            }
            let entry = match merge.next(arena, request.distinct) {
                MergeStep::Entry(entry) => entry,
                MergeStep::Equal => continue,
                MergeStep::End => return self.free(),
            };
            self.found += 1;
            if window.take(1).1 == 1 {
                out.extend_from_slice(arena.packets(&entry));
            }
        }
        SortStep::More
    }

    /// Frees some of the memory of a sorter that has returned all its rows.
    fn free(&mut self) -> SortStep {
        // A small arena is kept for the next statement; a large one is freed over several steps.
        if self.arena.bytes.len() + self.arena.entries.len() > STEP_CHUNKS {
            self.discard_arena();
        }
        match self.garbage.free_step() {
            true => SortStep::Done,
            false => SortStep::More,
        }
    }

    fn discard_arena(&mut self) {
        self.garbage.discard(std::mem::take(&mut self.arena));
    }

    /// Whether the result may need fewer entries than arrive.
    fn drops_entries(&self) -> bool {
        self.request.distinct || self.has_limit()
    }

    fn has_limit(&self) -> bool {
        self.request.wanted < u64::from(u32::MAX)
    }

    /// Begins a compaction if one is due, and merges at most `entries` entries of the current one.
    fn compact(&mut self, entries: usize) -> Result<()> {
        if self.compaction.is_none() {
            let has_too_many = self.has_limit() && self.arena.count > 2 * self.request.wanted as usize + SLACK_ENTRIES;
            let may_have_equal = self.request.distinct && self.arena.used > 2 * self.compact_bytes + SLACK_BYTES;
            let is_due = has_too_many || may_have_equal;
            let is_full = self.drops_entries()
                && self.arena.used > self.bytes_max
                && self.arena.used > self.compact_bytes * 5 / 4;
            if is_due || is_full {
                self.begin_compaction();
            }
        }
        self.compact_step(entries);
        // One call adds at most about one chunk of memory and frees several, so the garbage shrinks.
        self.garbage.free_step();
        self.check_memory()
    }

    fn compact_step(&mut self, entries: usize) {
        let Some(Compaction { from, merge, kept }) = &mut self.compaction else { return };
        // The entries that this step keeps form their own run, separate from the entries that have arrived in
        // the meantime.
        self.arena.seal();
        let mut is_done = false;
        for _ in 0..entries {
            let next = match *kept < self.request.wanted {
                true => merge.next(from, self.request.distinct),
                false => MergeStep::End,
            };
            let entry = match next {
                MergeStep::Entry(entry) => entry,
                MergeStep::Equal => continue,
                MergeStep::End => {
                    is_done = true;
                    break;
                }
            };
            if self.arena.is_chunk_full() {
                self.arena.end_run();
            }
            self.arena.push(entry, from.bytes_of(&entry));
            *kept += 1;
        }
        self.arena.end_run();
        if is_done && let Some(done) = self.compaction.take() {
            self.garbage.discard(done.from);
            self.compact_bytes = self.arena.used;
        }
    }

    /// Maximum bytes of a run, so that a few wide rows make a run too.
    fn run_bytes_max(&self) -> usize {
        CHUNK_BYTES.min(self.bytes_max / 8)
    }

    /// Fails if the sorter uses too much memory. If the result does not need all entries, the others are
    /// dropped first, in one long step, because an error over unneeded rows would be worse.
    fn check_memory(&mut self) -> Result<()> {
        let from = self.compaction.as_ref().map_or(0, |compaction| compaction.from.used);
        let total_max = if self.drops_entries() { self.bytes_max.saturating_mul(2) } else { self.bytes_max };
        if self.arena.used + from + self.garbage.used <= total_max {
            return Ok(());
        }
        if self.drops_entries() {
            self.finish_compaction();
            if self.arena.used > self.bytes_max {
                self.begin_compaction();
                self.finish_compaction();
            }
        }
        if self.arena.used > self.bytes_max { Err(out_of_sort_memory()) } else { Ok(()) }
    }

    fn begin_compaction(&mut self) {
        self.arena.seal();
        let mut from = std::mem::take(&mut self.arena);
        let merge = Merge::of(&mut from);
        self.compaction = Some(Compaction { from, merge, kept: 0 });
    }

    fn finish_compaction(&mut self) {
        while self.compaction.is_some() {
            self.compact_step(STEP_ENTRIES);
        }
        self.garbage = Garbage::default();
    }
}

impl Arena {
    /// Removes all entries and keeps the memory of the first chunks.
    fn clear(&mut self) {
        self.bytes.truncate(1);
        self.entries.truncate(1);
        self.bytes.iter_mut().for_each(Vec::clear);
        self.entries.iter_mut().for_each(Vec::clear);
        self.runs.clear();
        (self.unsorted, self.unsorted_bytes, self.used, self.count) = (0, 0, 0, 0);
    }

    fn capacity(&self) -> usize {
        let bytes: usize = self.bytes.iter().map(Vec::capacity).sum();
        let entries: usize = self.entries.iter().map(Vec::capacity).sum();
        bytes + entries * size_of::<Entry>() + self.runs.capacity() * size_of::<Run>()
    }

    /// Adds an entry whose keys and packets are `bytes`.
    fn push(&mut self, mut entry: Entry, bytes: &[u8]) {
        let fits = |chunk: &Vec<u8>| chunk.is_empty() || chunk.len() + bytes.len() <= CHUNK_BYTES;
        if !self.bytes.last().is_some_and(fits) {
            self.bytes.push(Vec::new());
        }
        if self.is_chunk_full() || self.entries.is_empty() {
            self.seal();
            self.entries.push(Vec::new());
            self.unsorted = 0;
        }
        let chunk = self.bytes.len() - 1;
        entry.chunk = chunk as u32;
        entry.start = self.bytes[chunk].len() as u32;
        self.bytes[chunk].extend_from_slice(bytes);
        let last = self.entries.len() - 1;
        self.entries[last].push(entry);
        self.used += bytes.len() + size_of::<Entry>();
        self.unsorted_bytes += bytes.len() + size_of::<Entry>();
        self.count += 1;
    }

    fn is_chunk_full(&self) -> bool {
        self.entries.last().is_some_and(|chunk| chunk.len() == CHUNK_ENTRIES)
    }

    /// Number of entries of the last chunk that are in no run.
    fn unsorted_entries(&self) -> usize {
        self.entries.last().map_or(0, |chunk| chunk.len() - self.unsorted)
    }

    /// Sorts the entries that are in no run and turns them into one.
    fn seal(&mut self) {
        let Arena { bytes, entries, unsorted, .. } = self;
        if let Some(chunk) = entries.last_mut() {
            // A stable sort keeps equal entries in the order of their arrival.
            chunk[*unsorted..].sort_by(|left, right| compare(bytes, left, right));
        }
        self.end_run();
    }

    /// Turns the entries that are in no run into a run. They must be in order.
    fn end_run(&mut self) {
        let Some(chunk) = self.entries.last() else { return };
        if chunk.len() > self.unsorted {
            let chunk_number = (self.entries.len() - 1) as u32;
            self.runs.push(Run { chunk: chunk_number, next: self.unsorted as u32, end: chunk.len() as u32 });
            self.unsorted = chunk.len();
        }
        self.unsorted_bytes = 0;
    }

    fn bytes_of(&self, entry: &Entry) -> &[u8] {
        let length = usize::from(entry.sort_bytes) + usize::from(entry.distinct_bytes) + entry.packet_bytes as usize;
        &self.bytes[entry.chunk as usize][entry.start as usize..][..length]
    }

    fn packets(&self, entry: &Entry) -> &[u8] {
        &self.bytes_of(entry)[usize::from(entry.sort_bytes) + usize::from(entry.distinct_bytes)..]
    }
}

impl Garbage {
    /// Adds the chunks of an arena.
    fn discard(&mut self, arena: Arena) {
        self.used += arena.used;
        self.bytes.extend(arena.bytes);
        self.entries.extend(arena.entries);
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.entries.is_empty()
    }

    /// Frees some chunks. Returns whether none is left.
    fn free_step(&mut self) -> bool {
        for _ in 0..STEP_CHUNKS {
            let bytes = self.bytes.pop().map_or(0, |chunk| chunk.len());
            let entries = self.entries.pop().map_or(0, |chunk| chunk.len() * size_of::<Entry>());
            self.used = self.used.saturating_sub(bytes + entries);
        }
        if self.is_empty() {
            self.used = 0;
        }
        self.is_empty()
    }
}

/// Orders by sort key, then by distinct key.
#[inline]
fn compare(bytes: &[Vec<u8>], left: &Entry, right: &Entry) -> Ordering {
    left.head.cmp(&right.head).then_with(|| keys(bytes, left).cmp(&keys(bytes, right)))
}

fn keys<'a>(bytes: &'a [Vec<u8>], entry: &Entry) -> (&'a [u8], &'a [u8]) {
    let start = &bytes[entry.chunk as usize][entry.start as usize..];
    let (sort, rest) = start.split_at(usize::from(entry.sort_bytes));
    (sort, &rest[..usize::from(entry.distinct_bytes)])
}

impl Merge {
    /// A merge of all runs of an arena.
    fn of(arena: &mut Arena) -> Merge {
        let mut merge = Merge { heap: std::mem::take(&mut arena.runs), last: None };
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(arena, place);
        }
        merge
    }

    /// Takes the next entry in order. If `distinct`, an entry equal to the last one is reported as such.
    fn next(&mut self, arena: &Arena, distinct: bool) -> MergeStep {
        let Some(top) = self.heap.first_mut() else { return MergeStep::End };
        let entry = arena.entries[top.chunk as usize][top.next as usize];
        top.next += 1;
        if top.next == top.end {
            self.heap.swap_remove(0);
        }
        self.sift_down(arena, 0);
        if !distinct {
            return MergeStep::Entry(entry);
        }
        let is_equal = |last: &Entry| compare(&arena.bytes, last, &entry).is_eq();
        if self.last.as_ref().is_some_and(is_equal) {
            return MergeStep::Equal;
        }
        self.last = Some(entry);
        MergeStep::Entry(entry)
    }

    fn sift_down(&mut self, arena: &Arena, mut place: usize) {
        let next = |run: &Run| &arena.entries[run.chunk as usize][run.next as usize];
        // Among equal entries, the one of the earlier run comes first, so that the merge is stable too.
        let is_before = |left: &Run, right: &Run| {
            let order = compare(&arena.bytes, next(left), next(right));
            order.then((left.chunk, left.next).cmp(&(right.chunk, right.next))).is_lt()
        };
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && is_before(&self.heap[child], &self.heap[least]) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }
}

/// The first eight bytes as a big-endian number, padded with zeros.
#[inline]
fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - at * 8)),
    }
}

/// Length of the first entry of a reply, with its header.
pub(crate) fn entry_bytes(reply: &[u8]) -> usize {
    match reply.first_chunk() {
        Some(header) => reply.len().min(ENTRY_HEADER_BYTES + EntryLengths::of(header).total()),
        None => reply.len(),
    }
}

fn out_of_sort_memory() -> Box<Error> {
    let message = "Out of sort memory, consider increasing server sort buffer size";
    Error::new(ErrorCode::OutOfResources, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn entry(sort: &[u8], distinct: &[u8], packet: &[u8]) -> Vec<u8> {
        let mut out = (packet.len() as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&(sort.len() as u16).to_le_bytes());
        out.extend_from_slice(&(distinct.len() as u16).to_le_bytes());
        out.extend_from_slice(&[sort, distinct, packet].concat());
        out
    }

    fn begin(request: SortRequest, bytes_max: usize) -> Box<Sorter> {
        Sorter::begin(request, bytes_max, &mut Vec::new())
    }

    const ALL: SortRequest = SortRequest { distinct: false, wanted: u64::MAX, counts_all: false };
    const DISTINCT: SortRequest = SortRequest { distinct: true, ..ALL };

    fn emitted(sorter: &mut Sorter, mut window: Window) -> Vec<u8> {
        let mut out = Vec::new();
        while sorter.emit_rows(&mut window, usize::MAX, &mut out) != SortStep::Done {}
        out
    }

    #[test]
    fn entries_of_several_replies_come_out_in_order() {
        let mut sorter = begin(ALL, 1 << 20);
        sorter.add_rows(&[entry(b"b", b"", b"2"), entry(b"d", b"", b"4")].concat()).expect("it is little");
        sorter.add_rows(&[entry(b"a", b"", b"1"), entry(b"c", b"", b"3")].concat()).expect("it is little");
        assert_eq!(emitted(&mut sorter, Window { offset: 1, remaining: 2 }), b"23");
    }

    #[test]
    fn equal_rows_are_given_once() {
        let mut sorter = begin(DISTINCT, 1 << 20);
        for _ in 0..3 {
            sorter.add_rows(&[entry(b"", b"y", b"Y"), entry(b"", b"x", b"X")].concat()).expect("it is little");
        }
        assert_eq!(emitted(&mut sorter, Window::ALL), b"XY");
    }

    #[test]
    fn many_rows_with_a_small_limit_take_little_memory() {
        let mut sorter = begin(SortRequest { wanted: 3, ..ALL }, 500_000);
        for number in (0..60_000u32).rev() {
            sorter
                .add_rows(&entry(&number.to_be_bytes(), b"", &[number as u8; 20]))
                .expect("superfluous rows are dropped");
        }
        assert_eq!(emitted(&mut sorter, Window { offset: 0, remaining: 3 }), [[0; 20], [1; 20], [2; 20]].concat());
    }

    #[test]
    fn many_equal_rows_take_little_memory() {
        let mut sorter = begin(DISTINCT, 2_500_000);
        for number in 0..200_000u32 {
            let key = (number % 10).to_be_bytes();
            sorter.add_rows(&entry(b"", &key, &[b'0' + (number % 10) as u8])).expect("equal rows are dropped");
        }
        assert_eq!(emitted(&mut sorter, Window::ALL), b"0123456789");
    }

    #[test]
    fn few_wanted_of_many_wide_rows_take_little_memory() {
        let mut sorter = begin(SortRequest { wanted: 2, ..ALL }, 16 << 20);
        let wide = vec![b'w'; 300_000];
        let mut most = 0;
        for number in (0..2_000u32).rev() {
            sorter.add_rows(&entry(&number.to_be_bytes(), b"", &wide)).expect("rows that are not wanted are dropped");
            let from = sorter.compaction.as_ref().map_or(0, |compaction| compaction.from.used);
            let garbage: usize = sorter.garbage.bytes.iter().map(Vec::capacity).sum();
            most = most.max(sorter.arena.used + from + garbage);
        }
        assert!(most <= 34 << 20, "{most} bytes of 600 MB were held at once");
        assert_eq!(emitted(&mut sorter, Window { offset: 0, remaining: 2 }).len(), 2 * wide.len());
    }

    #[test]
    fn a_step_that_skips_equal_rows_ends() {
        let mut sorter = begin(DISTINCT, 1 << 30);
        let reply: Vec<u8> = (0..500).flat_map(|_| entry(b"", b"same", b"S")).collect();
        sorter.add_rows(&reply).expect("it is little");
        let (mut out, mut window) = (Vec::new(), Window::ALL);
        assert_eq!(sorter.emit_rows(&mut window, usize::MAX, &mut out), SortStep::More);
        assert_eq!((out.as_slice(), sorter.found()), (&b"S"[..], 1));
    }

    #[test]
    fn keys_that_agree_in_their_first_bytes_are_told_apart_by_the_rest() {
        let mut sorter = begin(DISTINCT, 1 << 20);
        let keys: [&[u8]; 5] = [b"12345678b", b"1234", b"12345678a", b"1234\0", b"12345678"];
        for (number, key) in keys.iter().chain(&keys).enumerate() {
            sorter.add_rows(&entry(key, b"", &[b'0' + number as u8])).expect("it is little");
        }
        assert_eq!(emitted(&mut sorter, Window::ALL), b"13420");
    }

    #[test]
    fn a_sorter_that_served_before_is_empty() {
        let mut idle = Vec::new();
        let mut sorter = Sorter::begin(ALL, 1 << 20, &mut idle);
        sorter.add_rows(&entry(b"a", b"", b"1")).expect("it is little");
        assert_eq!(emitted(&mut sorter, Window::ALL), b"1");
        sorter.retire(&mut idle);
        let mut sorter = Sorter::begin(ALL, 1 << 20, &mut idle);
        assert!(idle.is_empty());
        sorter.add_rows(&entry(b"b", b"", b"2")).expect("it is little");
        assert_eq!(emitted(&mut sorter, Window::ALL), b"2");
    }

    #[test]
    fn too_many_wanted_rows_are_an_error() {
        let mut sorter = begin(ALL, 1000);
        let outcome = (0..100u8).try_for_each(|number| sorter.add_rows(&entry(&[number], b"", &[0; 20])));
        assert_eq!(outcome.expect_err("2,000 bytes do not fit").code, ErrorCode::OutOfResources);
    }

    #[test]
    fn no_step_gives_more_rows_than_it_may_and_a_full_output_ends_one() {
        let mut sorter = begin(ALL, 1 << 30);
        for number in 0..5_000u32 {
            sorter.add_rows(&entry(&number.to_be_bytes(), b"", b"row.")).expect("it is little");
        }
        let (mut out, mut window, mut steps) = (Vec::new(), Window { offset: 1_000, remaining: u64::MAX }, 0);
        loop {
            let before = (out.len(), sorter.found());
            match sorter.emit_rows(&mut window, out.len() + 100, &mut out) {
                SortStep::Done => break,
                SortStep::Full => assert_eq!(out.len() - before.0, 100),
                SortStep::More => assert!(sorter.found() - before.1 <= STEP_ENTRIES as u64),
            }
            steps += 1;
        }
        assert_eq!((out.len(), sorter.found()), (4_000 * 4, 5_000));
        assert!(steps > 100, "{steps} steps");
    }

    #[test]
    fn rows_behind_the_window_are_counted_where_that_is_asked() {
        let mut sorter = begin(SortRequest { counts_all: true, ..DISTINCT }, 1 << 20);
        for number in 0..3_000u32 {
            sorter.add_rows(&entry(b"", &(number % 700).to_be_bytes(), b"r")).expect("it is little");
        }
        assert_eq!(emitted(&mut sorter, Window { offset: 5, remaining: 2 }), b"rr");
        assert_eq!(sorter.found(), 700);
    }

    proptest! {
        #[test]
        fn rows_come_out_as_a_sorted_list_has_them(
            keys in prop::collection::vec(0u32..3_000, 0..20_000),
            distinct in any::<bool>(),
            limit in prop_oneof![Just(u64::MAX), 0u64..100, 0u64..6_000],
            offset in 0u64..50,
        ) {
            let wanted = limit.saturating_add(offset);
            let mut sorter = begin(SortRequest { distinct, wanted, counts_all: false }, 64 << 20);
            for reply in keys.chunks(700) {
                let reply: Vec<u8> = reply.iter().flat_map(|key| entry(&key.to_be_bytes(), b"", &key.to_be_bytes())).collect();
                sorter.add_rows(&reply).expect("it is little");
            }
            let mut expected: Vec<u32> = match distinct {
                true => keys.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
                false => keys,
            };
            expected.sort_unstable();
            let rows = expected.iter().skip(offset as usize).take(usize::try_from(limit).unwrap_or(usize::MAX));
            let rows: Vec<u8> = rows.flat_map(|key| key.to_be_bytes()).collect();
            prop_assert_eq!(emitted(&mut sorter, Window { offset, remaining: limit }), rows);
        }
    }
}
