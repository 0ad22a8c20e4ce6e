//! Hot path: at most 30 instructions an item at each end, besides those that move it.
//!
//! A ring of fixed capacity from one thread to another.
//!
//! One side pushes, the other pops; nothing is seen by the consumer before [`Producer::publish`], and no slot is used
//! again before [`Consumer::release`], so that the shared lines move between CPUs once per batch and not once per
//! item. Both sides keep a copy of the other's index and look at the shared one only when the copy says full or empty.
//!
//! Requests spend credits: a producer may have at most half the capacity in requests that the consumer has not
//! finished. The other half is thereby always left for replies, however slow the consumer's requests are.
//!
//! The unsafe code rests on three facts. (1) There is one [`Producer`] and one [`Consumer`] per ring, neither can be
//! cloned, and their methods take `&mut self`. (2) A slot from `head` up to but not including `tail`, as published,
//! belongs to the consumer; all others belong to the producer. (3) `tail` is stored with Release after the slots were
//! written and loaded with Acquire before they are read; `head` is stored with Release after the slots were read and
//! loaded with Acquire before they are written again.

use std::mem::MaybeUninit;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, CachePadded, UnsafeCell};

mod local;

pub(crate) use local::LocalQueue;

struct Ring<T> {
    /// Items published, ever. Written by the producer.
    tail: CachePadded<AtomicU64>,
    /// Written by the consumer.
    consumed: CachePadded<Consumed>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

struct Consumed {
    /// Items released, ever.
    head: AtomicU64,
    /// Requests finished, ever.
    finished: AtomicU64,
}

// SAFETY: invariants (1) to (3) of the module: a slot is touched by one side at a time and handed over by Release and
// Acquire, so sharing the ring moves each `T` from one thread to the other, which `T: Send` permits.
unsafe impl<T: Send> Sync for Ring<T> {}

// SAFETY: the ring owns its items; moving it to another thread moves them, which `T: Send` permits.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (head, tail) = (self.consumed.head.load(Ordering::Acquire), self.tail.load(Ordering::Acquire));
        let mask = self.slots.len() as u64 - 1;
        for position in head..tail {
            // SAFETY: invariant (2): these slots hold published items that nobody popped, since both ends publish
            // and release when they are dropped; and nobody else is left, since the last owner is being dropped.
            self.slots[(position & mask) as usize].with_mut(|slot| unsafe { (*slot).assume_init_drop() });
        }
    }
}

/// The pushing end.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    mask: u64,
    /// Where the next item goes.
    next: u64,
    /// What `tail` says.
    published: u64,
    /// What `head` said last.
    head_seen: u64,
    requests: u64,
    finished_seen: u64,
}

/// The popping end.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    mask: u64,
    /// Where the next item comes from.
    next: u64,
    /// What `head` says.
    released: u64,
    /// What `tail` said last.
    tail_seen: u64,
    finished: u64,
    finished_released: u64,
}

/// The two ends of a new ring with `capacity` slots, rounded up to a power of two, at least 2.
pub fn ring<T: Send>(capacity: u32) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.clamp(2, 1 << 30).next_power_of_two() as usize;
    let slots = (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let consumed = Consumed { head: AtomicU64::new(0), finished: AtomicU64::new(0) };
    let ring = Arc::new(Ring { tail: CachePadded(AtomicU64::new(0)), consumed: CachePadded(consumed), slots });
    let mask = capacity as u64 - 1;
    let producer =
        Producer { ring: ring.clone(), mask, next: 0, published: 0, head_seen: 0, requests: 0, finished_seen: 0 };
    let consumer = Consumer { ring, mask, next: 0, released: 0, tail_seen: 0, finished: 0, finished_released: 0 };
    (producer, consumer)
}

impl<T> Producer<T> {
    /// Slots of the ring.
    pub fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// Puts an item into the next slot, unpublished; gives it back if the ring is full.
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

    /// The next slot, if it is free; looks at the consumer's index only if there seems to be none.
    #[inline(always)]
    pub(crate) fn slot(&mut self) -> Option<RingSlot<'_, T>> {
        if self.next - self.head_seen > self.mask && !self.refresh_head() {
            return None;
        }
        let place = &self.ring.slots[(self.next & self.mask) as usize];
        Some(RingSlot { place, next: &mut self.next, requests: &mut self.requests, cost: 0 })
    }

    /// The next slot, if what was last seen of the consumer says that it is free and that there are so many credits,
    /// 0 or 1, which filling it spends.
    #[inline(always)]
    pub(crate) fn slot_seen(&mut self, credits: u64) -> Option<RingSlot<'_, T>> {
        let spent = self.requests - self.finished_seen + credits;
        if self.next - self.head_seen > self.mask || spent * credits > self.capacity() / 2 {
            return None;
        }
        let place = &self.ring.slots[(self.next & self.mask) as usize];
        Some(RingSlot { place, next: &mut self.next, requests: &mut self.requests, cost: credits })
    }

    #[inline(never)]
    fn refresh_head(&mut self) -> bool {
        self.head_seen = self.ring.consumed.head.load(Ordering::Acquire);
        self.next - self.head_seen <= self.mask
    }

    /// Lets the consumer see everything pushed. Returns how many items are seen by that.
    #[inline]
    pub fn publish(&mut self) -> u64 {
        let news = self.next - self.published;
        if news > 0 {
            self.ring.tail.store(self.next, Ordering::Release);
            self.published = self.next;
        }
        news
    }

    /// Slots that are free for sure; looks at the consumer's index.
    #[inline]
    pub fn free(&mut self) -> u64 {
        self.head_seen = self.ring.consumed.head.load(Ordering::Acquire);
        self.capacity() - (self.next - self.head_seen)
    }

    /// Whether everything pushed was popped and released.
    pub fn is_drained(&mut self) -> bool {
        self.free() == self.capacity()
    }

    /// Requests that may still be sent before the consumer finishes one; looks at the consumer's count.
    #[inline]
    pub fn credits(&mut self) -> u64 {
        self.finished_seen = self.ring.consumed.finished.load(Ordering::Acquire);
        self.credits_seen()
    }

    #[inline]
    fn credits_seen(&self) -> u64 {
        (self.capacity() / 2).saturating_sub(self.requests - self.finished_seen)
    }

    /// The next slot for a request, if there is a credit and a free slot; filling it spends the credit.
    #[inline(always)]
    pub(crate) fn request_slot(&mut self) -> Option<RingSlot<'_, T>> {
        if self.credits_seen() == 0 && self.credits() == 0 {
            return None;
        }
        self.slot().map(|slot| RingSlot { cost: 1, ..slot })
    }

    /// Puts a request into the next slot and spends a credit; gives it back if there is no credit or no slot.
    #[inline]
    pub fn push_request(&mut self, item: T) -> Result<(), T> {
        match self.request_slot() {
            Some(slot) => {
                slot.fill(item);
                Ok(())
            }
            None => Err(item),
        }
    }
}

/// A free slot of a ring. To look for it first and to make the item then saves moving the item twice.
pub(crate) struct RingSlot<'a, T> {
    place: &'a UnsafeCell<MaybeUninit<T>>,
    next: &'a mut u64,
    requests: &'a mut u64,
    /// Credits spent by filling it.
    cost: u64,
}

impl<T> RingSlot<'_, T> {
    /// Puts an item into the slot, unpublished.
    #[inline(always)]
    pub(crate) fn fill(self, item: T) {
        // SAFETY: invariant (2): the one maker of this value saw that `next` is at or beyond the published tail and
        // less than a capacity beyond `head`, and it borrows the producer, so the slot is the producer's; what it held
        // was popped, so nothing is leaked by overwriting.
        self.place.with_mut(|slot| unsafe {
            (*slot).write(item);
        });
        *self.next += 1;
        *self.requests += self.cost;
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest item of those seen; none when they are used up, until the next [`Consumer::refresh`].
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.tail_seen { None } else { Some(self.take()) }
    }

    /// Takes the oldest item of those seen, of which there must be one.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> T {
        crate::require!(self.next != self.tail_seen);
        let place = &self.ring.slots[(self.next & self.mask) as usize];
        self.next += 1;
        // SAFETY: invariant (2): `next` was below the published tail and not below `head`, so the slot holds an item
        // that is the consumer's; `next` has moved on, so it is read once.
        place.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Asks something of the item that the next pop gives; none when there is none.
    #[inline(always)]
    pub(crate) fn inspect<R>(&self, question: impl FnOnce(&T) -> R) -> Option<R> {
        if self.next == self.tail_seen {
            return None;
        }
        let place = &self.ring.slots[(self.next & self.mask) as usize];
        // SAFETY: invariant (2): as in `take`, the slot holds an item that is the consumer's, and it stays there.
        Some(place.with(|slot| unsafe { question((*slot).assume_init_ref()) }))
    }

    /// Looks at what the producer published; returns how many items may be popped now.
    #[inline]
    pub fn refresh(&mut self) -> u64 {
        self.tail_seen = self.ring.tail.load(Ordering::Acquire);
        self.seen()
    }

    /// The items seen that wait.
    #[inline]
    pub(crate) fn seen(&self) -> u64 {
        self.tail_seen - self.next
    }

    /// Notes that a request from this ring was handled to its end; its credit returns at the next release.
    #[inline]
    pub fn finish_request(&mut self) {
        self.finished += 1;
    }

    /// Gives the popped slots, and the credits of finished requests, back to the producer. Returns whether there was
    /// anything to give.
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
