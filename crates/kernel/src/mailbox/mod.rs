//! Hot path: at most 30 instructions per item at each end, not counting those that move it.
//!
//! A ring buffer of fixed capacity from one thread to another.
//!
//! The consumer sees items only after [`Producer::publish`], and the producer reuses slots only after
//! [`Consumer::release`]. The shared cache lines therefore move between CPUs once per batch instead of once
//! per item. Each side caches the other side's index. It loads the shared index only if the ring looks full
//! or empty by the cached one.
//!
//! The producer pushes each item as deferrable or as reserved. Deferrable items spend credits. A ring has
//! credits for half of its capacity, and a credit returns when the consumer finishes the item. The other half
//! thus remains for reserved items, however slowly the consumer finishes deferrable ones.
//!
//! The unsafe code relies on three invariants. (1) A ring has one [`Producer`] and one [`Consumer`]; neither
//! can be cloned, and their methods take `&mut self`. (2) The slots from the released `head` up to but not
//! including the published `tail` belong to the consumer; all others belong to the producer. (3) `tail` is
//! stored with Release after the slots were written, and loaded with Acquire before they are read. `head` is
//! stored with Release after the slots were read, and loaded with Acquire before they are written again.

use std::mem::MaybeUninit;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, CachePadded, UnsafeCell};

mod local;

pub(crate) use local::LocalQueue;

struct Ring<T> {
    /// Items published since the start. Written by the producer.
    tail: CachePadded<AtomicU64>,
    /// Written by the consumer.
    consumed: CachePadded<Consumed>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

struct Consumed {
    /// Items released since the start.
    head: AtomicU64,
    /// Deferrable items finished since the start.
    finished: AtomicU64,
}

// SAFETY: by invariants (1) to (3) of the module, one side at a time accesses a slot, and Release and Acquire
// order its accesses before those of the other side. Sharing the ring thus moves each `T` from one thread to
// the other, which `T: Send` permits.
unsafe impl<T: Send> Sync for Ring<T> {}

// SAFETY: the ring owns its items; moving it to another thread moves them, which `T: Send` permits.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (head, tail) = (self.consumed.head.load(Ordering::Acquire), self.tail.load(Ordering::Acquire));
        let mask = self.slots.len() as u64 - 1;
        for position in head..tail {
            // SAFETY: invariant (2): these slots hold published items that were not popped, because both ends
            // publish and release when they are dropped. Neither end exists any more, because the last owner
            // of the ring is being dropped.
            self.slots[(position & mask) as usize].with_mut(|slot| unsafe { (*slot).assume_init_drop() });
        }
    }
}

/// The pushing end of a ring.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    mask: u64,
    /// Index of the next item to push.
    next: u64,
    /// Last value stored to `tail`.
    published: u64,
    /// Last value loaded from `head`.
    head_seen: u64,
    spent_credits: u64,
    finished_seen: u64,
}

/// The popping end of a ring.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    mask: u64,
    /// Index of the next item to pop.
    next: u64,
    /// Last value stored to `head`.
    released: u64,
    /// Last value loaded from `tail`.
    tail_seen: u64,
    finished: u64,
    finished_released: u64,
}

/// Both ends of a new ring. The capacity is rounded up to a power of two, at least 2.
pub fn ring<T: Send>(capacity: u32) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.clamp(2, 1 << 30).next_power_of_two() as usize;
    let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let consumed = Consumed { head: AtomicU64::new(0), finished: AtomicU64::new(0) };
    let ring = Arc::new(Ring { tail: CachePadded(AtomicU64::new(0)), consumed: CachePadded(consumed), slots });
    let mask = capacity as u64 - 1;
    let producer =
        Producer { ring: ring.clone(), mask, next: 0, published: 0, head_seen: 0, spent_credits: 0, finished_seen: 0 };
    let consumer = Consumer { ring, mask, next: 0, released: 0, tail_seen: 0, finished: 0, finished_released: 0 };
    (producer, consumer)
}

impl<T> Producer<T> {
    /// Number of slots.
    pub fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Puts an item into the next slot without publishing it. Returns the item if the ring is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.slot() {
            Some(slot) => {
                slot.fill(item);
                Ok(())
            }
            None => Err(item),
        }
    }

    /// The next slot, if it is free. Loads the consumer's index only if the ring is full by the cached one.
    #[inline(always)]
    pub(crate) fn slot(&mut self) -> Option<RingSlot<'_, T>> {
        if self.next - self.head_seen > self.mask && !self.refresh_head() {
            return None;
        }
        let cell = &self.ring.slots[(self.next & self.mask) as usize];
        Some(RingSlot { cell, next: &mut self.next, spent_credits: &mut self.spent_credits, cost: 0 })
    }

    /// The next slot, if by the cached indexes it is free and `credits` (0 or 1) are left. Filling the slot
    /// spends the credits.
    #[inline(always)]
    pub(crate) fn slot_seen(&mut self, credits: u64) -> Option<RingSlot<'_, T>> {
        let outstanding = self.spent_credits - self.finished_seen + credits;
        if self.next - self.head_seen > self.mask || outstanding * credits > self.capacity() / 2 {
            return None;
        }
        let cell = &self.ring.slots[(self.next & self.mask) as usize];
        Some(RingSlot { cell, next: &mut self.next, spent_credits: &mut self.spent_credits, cost: credits })
    }

    #[inline(never)]
    fn refresh_head(&mut self) -> bool {
        self.head_seen = self.ring.consumed.head.load(Ordering::Acquire);
        self.next - self.head_seen <= self.mask
    }

    /// Makes all pushed items visible to the consumer. Returns the number of items that were not visible
    /// before.
    #[inline]
    pub fn publish(&mut self) -> u64 {
        let fresh = self.next - self.published;
        if fresh > 0 {
            self.ring.tail.store(self.next, Ordering::Release);
            self.published = self.next;
        }
        fresh
    }

    /// Number of free slots, by the consumer's current index.
    #[inline]
    pub fn free(&mut self) -> u64 {
        self.head_seen = self.ring.consumed.head.load(Ordering::Acquire);
        self.capacity() - (self.next - self.head_seen)
    }

    /// Whether the consumer has popped and released every pushed item.
    pub fn is_drained(&mut self) -> bool {
        self.free() == self.capacity()
    }

    /// Number of deferrable items that may be pushed before the consumer finishes one, by the consumer's
    /// current count.
    #[inline]
    pub fn credits(&mut self) -> u64 {
        self.finished_seen = self.ring.consumed.finished.load(Ordering::Acquire);
        self.credits_seen()
    }

    #[inline]
    fn credits_seen(&self) -> u64 {
        (self.capacity() / 2).saturating_sub(self.spent_credits - self.finished_seen)
    }

    /// The next slot for a deferrable item, if a credit and a slot are free. Filling it spends the credit.
    #[inline(always)]
    pub(crate) fn deferrable_slot(&mut self) -> Option<RingSlot<'_, T>> {
        if self.credits_seen() == 0 && self.credits() == 0 {
            return None;
        }
        self.slot().map(|slot| RingSlot { cost: 1, ..slot })
    }

    /// Puts a deferrable item into the next slot and spends a credit. Returns the item if no credit or slot
    /// is free.
    #[inline]
    pub fn push_deferrable(&mut self, item: T) -> Result<(), T> {
        match self.deferrable_slot() {
            Some(slot) => {
                slot.fill(item);
                Ok(())
            }
            None => Err(item),
        }
    }
}

/// A free slot of a ring. Reserving it before building the item saves one move of the item.
pub(crate) struct RingSlot<'a, T> {
    cell: &'a UnsafeCell<MaybeUninit<T>>,
    next: &'a mut u64,
    spent_credits: &'a mut u64,
    /// Credits that filling it spends.
    cost: u64,
}

impl<T> RingSlot<'_, T> {
    /// Puts the item into the slot without publishing it.
    #[inline(always)]
    pub(crate) fn fill(self, item: T) {
        // SAFETY: invariant (2): the method that made this value checked that `next` is at or beyond the
        // published tail and less than a capacity beyond `head`. This value borrows the producer, so the slot
        // still belongs to the producer. The slot's old content was popped, so overwriting leaks nothing.
        self.cell.with_mut(|slot| unsafe {
            (*slot).write(item);
        });
        *self.next += 1;
        *self.spent_credits += self.cost;
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl<T> Consumer<T> {
    /// Pops the oldest item that the last [`Consumer::refresh`] has seen. Once these are used up, returns
    /// `None` until the next refresh.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.tail_seen { None } else { Some(self.take()) }
    }

    /// Pops the oldest visible item; there must be one.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> T {
        crate::require!(self.next != self.tail_seen);
        let cell = &self.ring.slots[(self.next & self.mask) as usize];
        self.next += 1;
        // SAFETY: invariant (2): `next` was below the published tail and not below `head`, so the slot holds
        // an item of the consumer. `next` is advanced, so the item is read once.
        cell.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Applies a function to the item that the next pop returns, if any.
    #[inline(always)]
    pub(crate) fn inspect<R>(&self, inspect_item: impl FnOnce(&T) -> R) -> Option<R> {
        if self.next == self.tail_seen {
            return None;
        }
        let cell = &self.ring.slots[(self.next & self.mask) as usize];
        // SAFETY: invariant (2): as in `take`, the slot holds an item of the consumer, and the item stays
        // there.
        Some(cell.with(|slot| unsafe { inspect_item((*slot).assume_init_ref()) }))
    }

    /// Loads the producer's index. Returns how many items may be popped now.
    #[inline]
    pub fn refresh(&mut self) -> u64 {
        self.tail_seen = self.ring.tail.load(Ordering::Acquire);
        self.seen()
    }

    /// Number of visible items not popped yet.
    #[inline]
    pub(crate) fn seen(&self) -> u64 {
        self.tail_seen - self.next
    }

    /// Counts a deferrable item from this ring as finished. Its credit returns at the next release.
    #[inline]
    pub fn finish_deferrable(&mut self) {
        self.finished += 1;
    }

    /// Returns popped slots and the credits of finished items to the producer. Returns whether any were
    /// returned.
    #[inline]
    pub fn release(&mut self) -> bool {
        let slots = self.next != self.released;
        if slots {
            self.ring.consumed.head.store(self.next, Ordering::Release);
            self.released = self.next;
        }
        let credits = self.finished != self.finished_released;
        if credits {
            self.ring.consumed.finished.store(self.finished, Ordering::Release);
            self.finished_released = self.finished;
        }
        slots || credits
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
