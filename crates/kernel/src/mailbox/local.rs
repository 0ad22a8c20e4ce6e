//! Hot path: at most 25 instructions per item at each end, not counting those that move it.
//!
//! The queue of signals that a thread sends to itself. An item is built in its slot and moved once.
//!
//! The unsafe code relies on one invariant: the `len` slots from `head` on, wrapping, hold an item, and no
//! other slot does. `&mut self` ensures that one thread at a time uses the queue.

use std::mem::MaybeUninit;

use crate::require;

/// A queue that grows when it is full and never shrinks.
pub(crate) struct LocalQueue<T> {
    slots: Box<[MaybeUninit<T>]>,
    head: usize,
    len: usize,
}

impl<T> LocalQueue<T> {
    /// An empty queue with space for `capacity` items, rounded up to a power of two, before it grows.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { slots: uninit_slots(capacity.max(2).next_power_of_two()), head: 0, len: 0 }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A free slot at the end; filling it appends the item. `None` if the queue must grow first.
    #[inline(always)]
    pub(crate) fn slot(&mut self) -> Option<Slot<'_, T>> {
        if self.len == self.slots.len() {
            return None;
        }
        // The number of slots is a power of two, so the mask keeps the position within them.
        let position = (self.head + self.len) & (self.slots.len() - 1);
        Some(Slot { cell: &mut self.slots[position], len: &mut self.len })
    }

    /// Appends an item, growing the queue if it is full.
    pub(crate) fn push(&mut self, item: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        if let Some(slot) = self.slot() {
            slot.fill(item);
        }
    }

    /// The oldest item.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: the slot at `head` of a queue that is not empty holds an item.
        Some(unsafe { self.slots[self.head & (self.slots.len() - 1)].assume_init_ref() })
    }

    /// Removes the oldest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.len == 0 { None } else { Some(self.take()) }
    }

    /// Removes the oldest item of a queue that must not be empty.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> T {
        require!(self.len > 0);
        let position = self.head & (self.slots.len() - 1);
        self.head = position + 1;
        self.len -= 1;
        // SAFETY: the slot at `head` of a queue that was not empty holds an item; `head` and `len` now
        // exclude it.
        unsafe { self.slots[position].assume_init_read() }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = uninit_slots(self.slots.len() * 2);
        let len = self.len;
        for slot in &mut slots[..len] {
            if let Some(item) = self.pop() {
                slot.write(item);
            }
        }
        *self = Self { slots, head: 0, len };
    }
}

/// A free slot at the end of a queue. Reserving it before building the item saves one move of the item.
pub(crate) struct Slot<'a, T> {
    cell: &'a mut MaybeUninit<T>,
    len: &'a mut usize,
}

impl<T> Slot<'_, T> {
    /// Appends the item.
    #[inline(always)]
    pub(crate) fn fill(self, item: T) {
        self.cell.write(item);
        *self.len += 1;
    }
}

impl<T> Drop for LocalQueue<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

fn uninit_slots<T>(count: usize) -> Box<[MaybeUninit<T>]> {
    (0..count).map(|_| MaybeUninit::uninit()).collect()
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn items_stay_in_order_when_the_queue_grows() {
        let mut queue = LocalQueue::new(4);
        let mut wanted = 0;
        for item in 0..1_000 {
            queue.push(item);
            if item % 3 == 0 {
                assert_eq!(queue.pop(), Some(wanted));
                wanted += 1;
            }
        }
        while let Some(item) = queue.pop() {
            assert_eq!(item, wanted);
            wanted += 1;
        }
        assert_eq!((wanted, queue.len()), (1_000, 0));
    }

    #[test]
    fn items_left_in_the_queue_are_dropped_once() {
        let witness = Rc::new(());
        let mut queue = LocalQueue::new(2);
        for _ in 0..9 {
            queue.push(witness.clone());
        }
        queue.pop();
        assert_eq!(Rc::strong_count(&witness), 9);
        drop(queue);
        assert_eq!(Rc::strong_count(&witness), 1);
    }
}
