//! The memory and the temporary space of queries: an account for each operator that holds rows, the memory of
//! each query, and the budget of the node.
//!
//! A query takes memory up to `tmp_table_size` freely. Beyond it operators write rows to the temporary file.
//! State that cannot leave memory may use more, up to [`MemoryLimits::bytes_max`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_model::error::{Error, ErrorCode, Result};

/// Number of bytes that a query books at the node at a time, so that most rows touch no shared word.
const BOOKED_BYTES: u64 = 64 << 10;
/// Every operator may hold this part of the query's memory, whatever the others hold. An operator that could
/// hold nothing would write each row many times.
const SHARE: u64 = 16;

/// The memory and the temporary space that all queries of a node use. The sql blocks share it.
#[derive(Debug, Default)]
pub struct QueryResources {
    memory: AtomicU64,
    space: AtomicU64,
}

/// The limits of the memory of one query, in bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::execute) struct MemoryLimits {
    /// Beyond it the operators write rows to the temporary file.
    pub spill_from: u64,
    /// Maximum of what cannot leave memory.
    pub bytes_max: u64,
    /// Maximum of all queries of the node.
    pub node_max: u64,
}

/// The memory of one query. Its counters are atomic because sessions move between threads.
#[derive(Debug)]
pub(in crate::execute) struct QueryMemory {
    node: Arc<QueryResources>,
    limits: MemoryLimits,
    used: AtomicU64,
    /// Bytes booked at the node, at least those used.
    booked: AtomicU64,
}

/// The memory that one operator holds. It is given back when the operator is dropped.
#[derive(Debug, Default)]
pub(in crate::execute) struct Account {
    memory: Option<Arc<QueryMemory>>,
    held: u64,
}

impl QueryResources {
    /// Bytes of memory that queries have booked.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes of temporary files that queries have booked.
    pub fn space(&self) -> u64 {
        self.space.load(Ordering::Relaxed)
    }

    /// Books temporary space. Returns false if all queries together would have more than `most`.
    pub(in crate::execute) fn book_space(&self, bytes: u64, most: u64) -> bool {
        book(&self.space, bytes, most)
    }

    /// Gives temporary space back.
    pub(in crate::execute) fn release_space(&self, bytes: u64) {
        self.space.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn book(word: &AtomicU64, bytes: u64, most: u64) -> bool {
    let fits = |booked: u64| booked.checked_add(bytes).filter(|sum| *sum <= most);
    word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
}

impl QueryMemory {
    pub fn new(node: &Arc<QueryResources>, limits: MemoryLimits) -> Arc<QueryMemory> {
        let (used, booked) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(QueryMemory { node: Arc::clone(node), limits, used, booked })
    }

    /// Number of bytes that the query may still hold of what cannot leave memory.
    pub fn left(&self) -> usize {
        self.limits.bytes_max.saturating_sub(self.used.load(Ordering::Relaxed)) as usize
    }

    /// Books at the node what `used` bytes need. Returns false if all queries would have too much.
    fn book(&self, used: u64, most: u64) -> bool {
        let booked = self.booked.load(Ordering::Relaxed);
        let more = used.saturating_sub(booked).next_multiple_of(BOOKED_BYTES);
        if more > 0 {
            if !book(&self.node.memory, more, most) {
                return false;
            }
            self.booked.store(booked + more, Ordering::Relaxed);
        }
        self.used.store(used, Ordering::Relaxed);
        true
    }

    fn release(&self, bytes: u64) {
        let used = self.used.load(Ordering::Relaxed).saturating_sub(bytes);
        self.used.store(used, Ordering::Relaxed);
        let booked = self.booked.load(Ordering::Relaxed);
        let kept = used.next_multiple_of(BOOKED_BYTES) + BOOKED_BYTES;
        if booked > 2 * kept {
            self.booked.store(kept, Ordering::Relaxed);
            self.node.memory.fetch_sub(booked - kept, Ordering::Relaxed);
        }
    }
}

impl Drop for QueryMemory {
    fn drop(&mut self) {
        self.node.memory.fetch_sub(self.booked.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Account {
    /// Takes memory for rows that could go to the temporary file. Returns false if they should.
    #[must_use]
    pub fn try_hold(&mut self, memory: &Arc<QueryMemory>, bytes: usize) -> bool {
        let used = memory.used.load(Ordering::Relaxed) + bytes as u64;
        let limits = &memory.limits;
        let has_room = match self.is_share(memory, bytes) {
            true => memory.book(used, u64::MAX),
            false => used <= limits.spill_from && memory.book(used, limits.node_max),
        };
        if has_room {
            self.note(memory, bytes);
        }
        has_room
    }

    /// Takes memory for state that cannot leave memory. Error: 1041.
    pub fn hold(&mut self, memory: &Arc<QueryMemory>, bytes: usize) -> Result<()> {
        let used = memory.used.load(Ordering::Relaxed) + bytes as u64;
        let most = if self.is_share(memory, bytes) { u64::MAX } else { memory.limits.node_max };
        if used > memory.limits.bytes_max || !memory.book(used, most) {
            return Err(out_of_memory());
        }
        self.note(memory, bytes);
        Ok(())
    }

    /// Takes memory that an operator needs to make progress, such as that of one batch.
    pub fn take(&mut self, memory: &Arc<QueryMemory>, bytes: usize) {
        memory.book(memory.used.load(Ordering::Relaxed) + bytes as u64, u64::MAX);
        self.note(memory, bytes);
    }

    /// Whether the operator would hold no more than its share.
    fn is_share(&self, memory: &QueryMemory, bytes: usize) -> bool {
        self.held + bytes as u64 <= memory.limits.spill_from / SHARE
    }

    fn note(&mut self, memory: &Arc<QueryMemory>, bytes: usize) {
        self.held += bytes as u64;
        if self.memory.is_none() {
            self.memory = Some(Arc::clone(memory));
        }
    }

    /// The bytes that are held.
    pub fn held(&self) -> usize {
        self.held as usize
    }

    /// Gives some memory back.
    pub fn release(&mut self, bytes: usize) {
        let bytes = self.held.min(bytes as u64);
        self.held -= bytes;
        if let Some(memory) = &self.memory {
            memory.release(bytes);
        }
    }

    /// Gives all memory back.
    pub fn clear(&mut self) {
        self.release(usize::MAX);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Error 1041.
#[cold]
pub(in crate::execute) fn out_of_memory() -> Box<Error> {
    let message = "Out of memory; the joins, groups and sorts of the query exceed the memory limit";
    Error::new(ErrorCode::OutOfResources, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> MemoryLimits {
        MemoryLimits { spill_from: 160_000, bytes_max: 1_000_000, node_max: 10 * BOOKED_BYTES }
    }

    #[test]
    fn an_operator_spills_beyond_the_memory_of_the_query_but_keeps_its_share() {
        let node = Arc::new(QueryResources::default());
        let memory = QueryMemory::new(&node, limits());
        let (mut first, mut second) = (Account::default(), Account::default());
        assert!(first.try_hold(&memory, 160_000));
        assert!(!first.try_hold(&memory, 1));
        assert!(second.try_hold(&memory, 10_000));
        assert!(!second.try_hold(&memory, 1));
        second.hold(&memory, 400_000).expect("state that cannot leave memory");
        assert_eq!(second.hold(&memory, 500_000).map_err(|error| error.code.errno()), Err(1041));
        first.release(150_000);
        second.clear();
        assert!(second.try_hold(&memory, 150_000));
        drop((first, second, memory));
        assert_eq!(node.memory(), 0);
    }

    #[test]
    fn the_queries_of_a_node_share_its_budget() {
        let node = Arc::new(QueryResources::default());
        let memory: Vec<_> = (0..5).map(|_| QueryMemory::new(&node, limits())).collect();
        let mut accounts: Vec<_> = memory.iter().map(|_| Account::default()).collect();
        let held = accounts
            .iter_mut()
            .zip(&memory)
            .filter_map(|(account, memory)| account.try_hold(memory, 150_000).then_some(()));
        assert_eq!(held.count(), 3, "three times 192 KiB are at most 640 KiB");
        assert!(accounts[4].try_hold(&memory[4], 10_000), "an operator keeps its share");
        accounts[0].clear();
        assert!(accounts[4].try_hold(&memory[4], 140_000));
        accounts[3].hold(&memory[3], 10_000).expect("an operator keeps its share");
        assert_eq!(accounts[3].hold(&memory[3], 200_000).map_err(|error| error.code.errno()), Err(1041));
        drop((accounts, memory));
        assert_eq!(node.memory(), 0);
    }

    #[test]
    fn temporary_space_has_a_limit() {
        let node = QueryResources::default();
        assert!(node.book_space(700, 1000));
        assert!(!node.book_space(301, 1000));
        node.release_space(700);
        assert!(node.book_space(1000, 1000));
        assert_eq!(node.space(), 1000);
    }
}
