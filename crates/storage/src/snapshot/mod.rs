//! Hot path: at most 25 instructions per snapshot.
//!
//! The registry of snapshots in use, which prevents purge from freeing versions that one of them can reach.
//! Beginning and ending a snapshot each cost a list operation, plus a fence if the thread had no snapshot.
//! There is no allocation, lock or wait.
//!
//! # The protocol, and why it is correct
//!
//! A thread that begins a snapshot while it has none
//! 1. loads the stable number and stores it in its word, as a lower bound;
//! 2. executes a sequentially consistent fence;
//! 3. loads the stable number again: this is the snapshot.
//!
//! A thread that purges
//! 1. loads the stable number;
//! 2. executes a sequentially consistent fence;
//! 3. loads the words of all threads. The horizon is the minimum of these words and of the stable number from
//!    step 1.
//!
//! The two fences are totally ordered. If the reader's fence comes first, the purger sees the lower bound in
//! the word, or a value that the reader stored later. While the snapshot is in use, no such value is above
//! the snapshot. If the purger's fence comes first, the reader's second load of the stable number returns the
//! value that the purger loaded, or a later one, and the stable number never decreases. In both cases the
//! snapshot is at or above the horizon.
//!
//! A thread that already has a snapshot takes the next one with a plain load of the stable number. Its word
//! is at or below all its snapshots, and these are at or below every later one. When its oldest snapshot
//! ends, the thread raises its word with a release store. A purger that sees the raised word therefore sees
//! the reads of the ended snapshot as finished.

#[cfg(loom)]
use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(shuttle)]
use shuttle::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(not(any(loom, shuttle)))]
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

use crate::commit_sequence::CommitSequence;
use crate::invariant::require;
use junctor_model::id::CommitNumber;

/// The word of a thread without a snapshot. It is above every commit number.
const NO_SNAPSHOT: u64 = u64::MAX;
/// The end of a list in [`ActiveSnapshots`].
const NO_ENTRY: u32 = u32::MAX;

/// One published word per thread: a number at or below every snapshot that the thread uses.
#[derive(Debug)]
pub struct SnapshotRegistry {
    sequence: Arc<CommitSequence>,
    lines: Box<[Line]>,
    /// At or below every snapshot of the other nodes; the largest number on a node alone.
    others: AtomicU64,
    /// Until when this node may choose snapshots, in nanoseconds since its start; the largest number on a
    /// node that needs no lease.
    lease_until: AtomicU64,
}

/// The word of one thread, which has a cache line for itself.
#[derive(Debug)]
#[repr(align(64))]
struct Line {
    oldest: AtomicU64,
    claimed: AtomicBool,
}

/// The right to write the word of one thread. Each word has at most one holder.
#[derive(Debug)]
pub struct SnapshotWord {
    registry: Arc<SnapshotRegistry>,
    thread: usize,
}

/// The snapshots of one thread, oldest first. They begin in non-decreasing order and end in any order. The
/// oldest one is published. All memory is allocated at the start.
#[derive(Debug)]
pub struct ActiveSnapshots {
    word: SnapshotWord,
    entries: Box<[Entry]>,
    oldest: u32,
    newest: u32,
    /// First of the unused entries, linked by `next`.
    free: u32,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    snapshot: CommitNumber,
    previous: u32,
    next: u32,
    /// Incremented when the entry is taken and when it is freed: odd while it is in use.
    generation: u32,
}

/// A snapshot in use. The versions that it can reach stay until it is passed to [`ActiveSnapshots::end`] of
/// the same thread.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct SnapshotHandle {
    snapshot: CommitNumber,
    entry: u32,
    generation: u32,
}

/// Why a snapshot or a word could not be claimed or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// The thread index is not below the registry's number of threads.
    NoSuchThread,
    /// The word of this thread has another holder.
    ThreadClaimed,
    /// The thread has as many snapshots as it has room for.
    TooManySnapshots,
    /// The handle does not name a snapshot of this thread.
    NotActive,
}

impl std::fmt::Display for SnapshotError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::NoSuchThread => "no such thread in the snapshot registry",
            Self::ThreadClaimed => "the snapshot word of the thread is claimed",
            Self::TooManySnapshots => "the thread has too many snapshots",
            Self::NotActive => "the snapshot is not in use",
        })
    }
}

impl std::error::Error for SnapshotError {}

impl SnapshotRegistry {
    /// A registry of `threads` words, none of which holds a snapshot.
    pub fn new(sequence: Arc<CommitSequence>, threads: usize) -> Self {
        let line = |_| Line { oldest: AtomicU64::new(NO_SNAPSHOT), claimed: AtomicBool::new(false) };
        let (others, lease_until) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        Self { sequence, lines: (0..threads).map(line).collect(), others, lease_until }
    }

    /// From now on the node needs a lease to choose snapshots. It has none yet.
    pub fn require_lease(&self) {
        self.lease_until.store(0, Ordering::Relaxed);
    }

    /// Whether the node needs a lease. Constant once its blocks run.
    pub fn requires_lease(&self) -> bool {
        self.lease_until.load(Ordering::Relaxed) != u64::MAX
    }

    /// The lease lasts until this time, in nanoseconds since the start of the node.
    pub fn set_lease(&self, until: u64) {
        self.lease_until.store(until.min(u64::MAX - 1), Ordering::Relaxed);
    }

    /// Whether a snapshot may be chosen. The caller reads the clock after it has taken the request: a node
    /// that was paused in between may have been evicted.
    #[inline]
    pub fn has_lease(&self, now: u64) -> bool {
        // Relaxed: an older value is an earlier end.
        now < self.lease_until.load(Ordering::Relaxed)
    }

    /// A number at or below every snapshot that is in use now and every later one. For each row, purge keeps
    /// the newest version at or below this number and all versions above it. Costs one fence and a load per
    /// thread, so it is called once per purge rather than once per row.
    pub fn horizon(&self) -> CommitNumber {
        self.oldest().min(CommitNumber(self.others.load(Ordering::Acquire)))
    }

    /// A number at or below every snapshot of this node that is in use now and every later one.
    pub fn oldest(&self) -> CommitNumber {
        let stable = self.sequence.stable();
        // Without the fence a word could be loaded before stable; the horizon could then pass a new snapshot.
        fence(Ordering::SeqCst);
        let oldest = self.lines.iter().map(|line| CommitNumber(line.oldest.load(Ordering::Acquire)));
        oldest.fold(stable, CommitNumber::min)
    }

    /// Keeps the versions that snapshots of other nodes can reach. None of them is below `horizon`, now or
    /// later.
    pub fn limit_horizon(&self, horizon: CommitNumber) {
        self.others.store(horizon.0, Ordering::Release);
    }

    /// The sequence whose stable numbers are the snapshots.
    pub fn sequence(&self) -> &CommitSequence {
        &self.sequence
    }
}

impl SnapshotWord {
    /// Claims the word of a thread until the result is dropped. `thread` counts from 0.
    ///
    /// # Errors
    /// `NoSuchThread` and `ThreadClaimed`.
    pub fn claim(registry: Arc<SnapshotRegistry>, thread: usize) -> Result<Self, SnapshotError> {
        let line = registry.lines.get(thread).ok_or(SnapshotError::NoSuchThread)?;
        if line.claimed.swap(true, Ordering::AcqRel) {
            return Err(SnapshotError::ThreadClaimed);
        }
        Ok(Self { registry, thread })
    }

    /// Publishes and returns the thread's first snapshot. The thread must have no other snapshot under this
    /// word.
    pub fn publish_first(&mut self) -> CommitNumber {
        require!(self.published() == NO_SNAPSHOT, "a thread that takes a first snapshot reads no other");
        let lower_bound = self.registry.sequence.stable();
        self.line().oldest.store(lower_bound.0, Ordering::Release);
        // Without the fence the second load could precede the store, and a purger could miss this snapshot.
        fence(Ordering::SeqCst);
        let snapshot = self.registry.sequence.stable();
        require!(snapshot >= lower_bound, "the stable number never decreases");
        if snapshot != lower_bound {
            self.publish(snapshot);
        }
        snapshot
    }

    /// Raises the word to the oldest snapshot that is still in use.
    pub fn publish(&mut self, oldest: CommitNumber) {
        require!(
            oldest.0 >= self.published() && oldest.0 != NO_SNAPSHOT,
            "a published snapshot only rises, or a purge has freed versions that it reads"
        );
        self.line().oldest.store(oldest.0, Ordering::Release);
    }

    /// Marks the thread as having no snapshot.
    pub fn clear(&mut self) {
        self.line().oldest.store(NO_SNAPSHOT, Ordering::Release);
    }

    /// The word as this thread last stored it. No other thread stores to it.
    fn published(&self) -> u64 {
        self.line().oldest.load(Ordering::Relaxed)
    }

    fn line(&self) -> &Line {
        &self.registry.lines[self.thread]
    }
}

impl Drop for SnapshotWord {
    fn drop(&mut self) {
        self.clear();
        // Released last, because the next holder must find the word cleared.
        self.line().claimed.store(false, Ordering::Release);
    }
}

impl ActiveSnapshots {
    /// No snapshots yet, and room for `snapshots_max` (below 2^32 - 1) of them. `word` must be new or
    /// cleared.
    pub fn new(word: SnapshotWord, snapshots_max: u32) -> Self {
        require!(word.published() == NO_SNAPSHOT, "a word that is taken over has no snapshot");
        let snapshots_max = snapshots_max.min(NO_ENTRY - 1);
        let link = |entry: u32| if entry < snapshots_max { entry } else { NO_ENTRY };
        let entry =
            |index: u32| Entry { snapshot: CommitNumber(0), previous: NO_ENTRY, next: link(index + 1), generation: 0 };
        let entries = (0..snapshots_max).map(entry).collect();
        Self { word, entries, oldest: NO_ENTRY, newest: NO_ENTRY, free: link(0), count: 0 }
    }

    /// The registry of the thread.
    pub fn registry(&self) -> &Arc<SnapshotRegistry> {
        &self.word.registry
    }

    /// Begins a snapshot at the current stable number.
    ///
    /// # Errors
    /// `TooManySnapshots`; nothing has changed then.
    pub fn begin(&mut self) -> Result<SnapshotHandle, SnapshotError> {
        let entry = self.free;
        let Some(&Entry { next, generation, .. }) = self.entries.get(entry as usize) else {
            return Err(SnapshotError::TooManySnapshots);
        };
        require!(generation % 2 == 0, "a snapshot entry is unused when a snapshot takes it");
        let snapshot =
            if self.oldest == NO_ENTRY { self.word.publish_first() } else { self.word.registry.sequence.stable() };
        require!(
            self.entries.get(self.newest as usize).is_none_or(|newest| newest.snapshot <= snapshot),
            "the snapshots of a thread begin in non-decreasing order"
        );
        // Odd means in use. A stale handle of an earlier use has a different generation.
        let generation = generation.wrapping_add(1);
        self.free = next;
        self.entries[entry as usize] = Entry { snapshot, previous: self.newest, next: NO_ENTRY, generation };
        match self.newest {
            NO_ENTRY => self.oldest = entry,
            newest => self.entries[newest as usize].next = entry,
        }
        self.newest = entry;
        self.count += 1;
        Ok(SnapshotHandle { snapshot, entry, generation })
    }

    /// Ends a snapshot. Versions that only it could reach may be freed from now on.
    ///
    /// # Errors
    /// `NotActive` for a handle of another thread; nothing has changed then.
    pub fn end(&mut self, handle: SnapshotHandle) -> Result<(), SnapshotError> {
        let SnapshotHandle { snapshot, entry, generation } = handle;
        // Compare the number too, because a handle of another thread may have the same entry and generation.
        let found = self.entries.get(entry as usize).copied();
        let Some(ended) = found.filter(|found| found.generation == generation && found.snapshot == snapshot) else {
            return Err(SnapshotError::NotActive);
        };
        match ended.next {
            NO_ENTRY => self.newest = ended.previous,
            next => self.entries[next as usize].previous = ended.previous,
        }
        match ended.previous {
            NO_ENTRY => self.oldest = ended.next,
            previous => self.entries[previous as usize].next = ended.next,
        }
        let generation = generation.wrapping_add(1);
        self.entries[entry as usize] = Entry { next: self.free, generation, ..ended };
        self.free = entry;
        require!(self.count > 0, "a snapshot that ends was counted when it began");
        self.count -= 1;
        if ended.previous == NO_ENTRY {
            self.publish_oldest(ended.snapshot);
        }
        Ok(())
    }

    /// The oldest snapshot in use.
    pub fn oldest(&self) -> Option<CommitNumber> {
        self.entries.get(self.oldest as usize).map(|entry| entry.snapshot)
    }

    /// Number of snapshots in use.
    pub fn count(&self) -> usize {
        self.count
    }

    fn publish_oldest(&mut self, published: CommitNumber) {
        match self.oldest() {
            None => self.word.clear(),
            Some(oldest) if oldest == published => {}
            Some(oldest) => self.word.publish(oldest),
        }
    }
}

impl SnapshotHandle {
    /// The commit number up to which this snapshot sees.
    #[inline]
    pub fn number(&self) -> CommitNumber {
        self.snapshot
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
