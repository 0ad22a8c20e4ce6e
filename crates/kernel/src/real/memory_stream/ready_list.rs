//! Hot path: at most 40 instructions for each connection with news, at each end.
//!
//! Which connections of a recv thread have something for it: a list that many threads put into and one takes whole.
//!
//! A place is in the list at most once. Whoever tells publishes first; whoever takes marks a place as taken before it
//! looks at the connection. Both marks are read-modify-write operations on one word, so the later one sees what was
//! published before the earlier: news told while the place was still in the list are found when it is taken.

use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The end of the list.
const NONE: u32 = u32::MAX;

pub(super) struct ReadyList {
    /// The place that told last.
    head: CachePadded<AtomicU32>,
    slots: Box<[Slot]>,
}

struct Slot {
    is_listed: AtomicBool,
    /// The place that told before this one.
    next: AtomicU32,
}

impl ReadyList {
    /// A list for so many places.
    pub(super) fn new(slots: u32) -> Self {
        let slot = |_| Slot { is_listed: AtomicBool::new(false), next: AtomicU32::new(NONE) };
        Self { head: CachePadded(AtomicU32::new(NONE)), slots: (0..slots).map(slot).collect() }
    }

    /// How many places there may be.
    pub(super) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Puts a place into the list. Returns whether it was not there; then the taker is to be woken.
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

    /// Whether any place is in the list.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.head.load(Ordering::Relaxed) != NONE
    }

    /// Takes all places out, those that told first in front. For the one taker.
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
