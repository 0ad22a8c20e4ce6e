//! Hot path: at most 40 instructions for each ready connection, at each end.
//!
//! The connections that have input for a thread. Many threads add to the list, and one thread takes the whole
//! list.
//!
//! A slot is in the list at most once. A notifier publishes input before it marks the slot as listed. The
//! taker unmarks the slot before it examines the connection. Marking and unmarking are read-modify-write
//! operations on one word. If the slot is already marked, the taker's unmarking comes later, so the taker
//! sees the input that was published before.

use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Marks the end of the list.
const NONE: u32 = u32::MAX;

pub(super) struct ReadyList {
    /// The slot added last.
    head: CachePadded<AtomicU32>,
    slots: Box<[Slot]>,
}

struct Slot {
    is_listed: AtomicBool,
    /// The slot added before this one.
    next: AtomicU32,
}

impl ReadyList {
    /// A list for at most `slots` slots.
    pub(super) fn new(slots: u32) -> Self {
        let slot = |_| Slot { is_listed: AtomicBool::new(false), next: AtomicU32::new(NONE) };
        Self { head: CachePadded(AtomicU32::new(NONE)), slots: (0..slots).map(slot).collect() }
    }

    /// Maximum number of slots.
    pub(super) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Adds a slot. Returns false if the slot was listed already. Otherwise the caller must wake the taker.
    #[inline]
    pub(super) fn notify(&self, slot: u32) -> bool {
        let Some(entry) = self.slots.get(slot as usize) else { return false };
        if entry.is_listed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            entry.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange_weak(head, slot, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => head = other,
            }
        }
    }

    /// Whether the list is not empty.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.head.load(Ordering::Relaxed) != NONE
    }

    /// Takes all slots, in the order in which they were added. Only the owning thread may call this.
    pub(super) fn take(&self, taken: &mut Vec<u32>) {
        let first = taken.len();
        let mut slot = self.head.swap(NONE, Ordering::Acquire);
        while let Some(entry) = self.slots.get(slot as usize) {
            taken.push(slot);
            slot = entry.next.load(Ordering::Relaxed);
            entry.is_listed.swap(false, Ordering::AcqRel);
        }
        taken[first..].reverse();
    }
}
