//! How many records each stream has formed: shared memory between the blocks that form records and the block
//! that writes them.
//!
//! A block counts a record before anybody can learn that the commit is applied. The log block reads the
//! stable number first and these counts second. A record of a stable commit is therefore counted, although
//! the signal that carries it may still be on its way.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(not(any(loom, shuttle)))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::invariant::require;

/// A word on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Line(AtomicU64);

/// The number of records that each stream has formed since the node started. Only the block that forms the
/// stream writes its count.
#[derive(Debug)]
pub struct FormedRecords {
    counts: Box<[Line]>,
    /// Whether commits wait for the log. Written by the log.
    is_awaited: AtomicBool,
}

impl FormedRecords {
    /// Counts of 0 for this many streams.
    pub fn new(streams: usize) -> FormedRecords {
        FormedRecords {
            counts: (0..streams).map(|_| Line(AtomicU64::new(0))).collect(),
            is_awaited: AtomicBool::new(true),
        }
    }

    /// Number of streams.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether commits wait for the log. A hint: a block may otherwise collect its records, and deliver many
    /// at once.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    /// Sets the hint.
    pub fn set_awaited(&self, is_awaited: bool) {
        if self.is_awaited() != is_awaited {
            self.is_awaited.store(is_awaited, Ordering::Relaxed);
        }
    }

    /// Sets the count of a stream, after the record is formed and before its commit is marked as applied.
    pub fn publish(&self, stream: usize, count: u64) {
        let word = &self.counts[stream].0;
        require!(word.load(Ordering::Relaxed) <= count, "a stream forms more and more records: {count}");
        // Release: whoever sees the count, or learns through it that the commit is applied, may rely on the
        // record.
        word.store(count, Ordering::Release);
    }

    /// The count of a stream. Read the stable number first.
    pub fn count(&self, stream: usize) -> u64 {
        self.counts[stream].0.load(Ordering::Acquire)
    }
}
