//! Hot path: at most 15 instructions per read.
//!
//! The partition guard: one owner writes a partition, and the threads of its read group read it. Neither side
//! blocks. A read costs one fence and two stores to a cache line that only this reader writes, however much
//! is read.
//!
//! # The protocol, and why it is correct
//!
//! A reader
//! 1. stores true in the flag of its slot;
//! 2. executes a sequentially consistent fence;
//! 3. loads `writer_pending`. If it is true, the reader clears its flag and gets [`Busy`]. Otherwise it
//!    reads, and then clears its flag.
//!
//! The owner
//! 1. stores true in `writer_pending`;
//! 2. executes a sequentially consistent fence;
//! 3. loads all flags, immediately or at any later time. If all are false, it writes, and then clears
//!    `writer_pending`.
//!
//! This is Dekker's mutual exclusion. The two fences are totally ordered. If the reader's fence comes first,
//! the owner sees the reader's flag, or a value that the reader stored later, which means that the read has
//! ended. If the owner's fence comes first, the reader sees `writer_pending`, or a value that the owner
//! stored later, which means that the write has ended. In both cases, at least one of the two withdraws.
//!
//! Flags and `writer_pending` are cleared by release stores and found clear by acquire loads. Therefore a
//! write happens after all earlier reads, and a read after all earlier writes.
//!
//! # Progress
//!
//! A reader checks `writer_pending` before it sets its flag, so readers can delay a pending owner only by the
//! reads that are already running. The owner clears `writer_pending` after its batch. A reader that gets
//! `Busy` sends its request to the owner, so no read depends on the guard being free.
//!
//! # Callers
//!
//! An [`OwnerToken`] and a [`ReaderSlot`] can be neither copied nor shared, and the guard accepts only its
//! own tokens and slots. Therefore at any time only one thread can act as owner, and only one as the reader
//! of a slot. A thread may be both.

mod cell;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(any(loom, shuttle)))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use junctor_model::limit::READER_SLOTS_MAX;

use crate::invariant::require;
use cell::{MutPointer, ValueCell};

/// The guard refused a reader because the owner is writing or waits to write. The reader sends its request to
/// the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the owner of the partition is writing or waits to write")
    }
}

impl std::error::Error for Busy {}

/// The right to write the partitions that were created with this token. It can move to another thread but
/// cannot be copied or shared:
///
/// ```compile_fail,E0599
/// let token = junctor_storage::guard::OwnerToken::new();
/// token.clone();
/// ```
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<junctor_storage::guard::OwnerToken>();
/// ```
#[derive(Debug)]
pub struct OwnerToken {
    identity: Arc<Identity>,
    not_sync: PhantomData<Cell<()>>,
}

impl OwnerToken {
    /// A token that differs from every other one.
    pub fn new() -> Self {
        Self { identity: Arc::new(Identity), not_sync: PhantomData }
    }
}

impl Default for OwnerToken {
    fn default() -> Self {
        Self::new()
    }
}

/// The threads that may read the same partitions, represented by reader slots.
#[derive(Clone, Debug)]
pub struct ReadGroup {
    identity: Arc<Identity>,
    slot_count: u8,
}

impl ReadGroup {
    /// Creates a group and its slots, numbered from 0 to `slot_count - 1`, at most [`READER_SLOTS_MAX`]. The
    /// owner checks every slot before it writes, which is why there is a maximum.
    ///
    /// # Panics
    /// If `slot_count` exceeds the maximum.
    pub fn new(slot_count: u8) -> (Self, Vec<ReaderSlot>) {
        require!(usize::from(slot_count) <= READER_SLOTS_MAX, "a read group has at most {READER_SLOTS_MAX} slots");
        let identity = Arc::new(Identity);
        let slots =
            (0..slot_count).map(|slot| ReaderSlot { group: Arc::clone(&identity), slot, not_sync: PhantomData });
        let slots = slots.collect();
        (Self { identity, slot_count }, slots)
    }
}

/// The right of one thread to read the partitions of a group. It can move to another thread but cannot be
/// copied or shared:
///
/// ```compile_fail,E0599
/// let (_, slots) = junctor_storage::guard::ReadGroup::new(1);
/// slots[0].clone();
/// ```
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<junctor_storage::guard::ReaderSlot>();
/// ```
#[derive(Debug)]
pub struct ReaderSlot {
    group: Arc<Identity>,
    slot: u8,
    not_sync: PhantomData<Cell<()>>,
}

impl ReaderSlot {
    /// The number of the slot in its group, from 0.
    pub fn number(&self) -> u8 {
        self.slot
    }
}

/// A partition, or any other value that one thread writes and a group of threads reads.
///
/// A reader cannot keep a reference to the value:
///
/// ```compile_fail
/// use junctor_storage::guard::{OwnerToken, PartitionGuard, ReadGroup};
/// let (group, slots) = ReadGroup::new(1);
/// let guard = PartitionGuard::new(&OwnerToken::new(), &group, vec![1]);
/// let escaped: &Vec<i32> = guard.read(&slots[0], |value| value).unwrap();
/// ```
///
/// The owner cannot read while it writes, nor open two write guards:
///
/// ```compile_fail,E0502
/// use junctor_storage::guard::{OwnerToken, PartitionGuard, ReadGroup};
/// let (group, _) = ReadGroup::new(0);
/// let mut token = OwnerToken::new();
/// let guard = PartitionGuard::new(&token, &group, vec![1]);
/// let mut write = guard.try_write(&mut token).unwrap();
/// guard.owner_read(&token, |value| value.len());
/// write.push(2);
/// ```
pub struct PartitionGuard<T> {
    state: GuardState,
    value: ValueCell<T>,
}

// SAFETY: several threads reach `value` only through `read`, `owner_read` and a `WriteGuard`. By the protocol
// at the top of this file a `WriteGuard` exists only while no slot is taken, and no slot is taken while one
// exists. A `WriteGuard` borrows the owner's token mutably, which excludes a second `WriteGuard` and
// `owner_read`. So a `&mut T` never coexists with another reference. Readers on several threads get
// references (`T: Sync`), and the owner may move to another thread with its token (`T: Send`).
unsafe impl<T: Send + Sync> Sync for PartitionGuard<T> {}

impl<T> PartitionGuard<T> {
    /// Guards `value`: the holder of `owner` writes it, and the slots of `group` read it.
    pub fn new(owner: &OwnerToken, group: &ReadGroup, value: T) -> Self {
        let state = GuardState {
            writer_pending: AtomicBool::new(false),
            slots: (0..group.slot_count).map(|_| SlotFlag(AtomicBool::new(false))).collect(),
            group: Arc::clone(&group.identity),
            owner: Arc::clone(&owner.identity),
        };
        Self { state, value: ValueCell::new(value) }
    }

    /// Calls `reader` with the value, unless the owner is writing or waits to write. `reader` may read the
    /// same guard again. The slot stays taken until `reader` returns, so `reader` must be short: at most 64
    /// rows.
    ///
    /// # Panics
    /// If the slot belongs to another group.
    #[inline]
    pub fn read<R>(&self, slot: &ReaderSlot, reader: impl FnOnce(&T) -> R) -> Result<R, Busy> {
        let _taken = self.state.take_slot(slot)?;
        let pointer = self.value.get();
        // SAFETY: the slot stays taken until `_taken` is dropped, which is after the last use of `pointer`,
        // even when `reader` panics. By the protocol at the top of this file no `WriteGuard`, the only source
        // of `&mut T`, exists meanwhile.
        Ok(reader(unsafe { pointer.deref() }))
    }

    /// Calls `reader` with the value, on the owner's thread. It takes no slot, because no other thread
    /// writes.
    ///
    /// # Panics
    /// If the token belongs to another guard.
    #[inline]
    pub fn owner_read<R>(&self, token: &OwnerToken, reader: impl FnOnce(&T) -> R) -> R {
        self.state.check_owner(token);
        let pointer = self.value.get();
        // SAFETY: only a `WriteGuard` gives `&mut T`. It borrows the only token of this guard mutably, so
        // none exists while `token` is borrowed.
        reader(unsafe { pointer.deref() })
    }

    /// Starts a write if no slot is taken at this moment. Otherwise the guard stays unchanged: new readers
    /// are refused only if an earlier [`Self::begin_write`] is still pending.
    ///
    /// # Panics
    /// If the token belongs to another guard.
    #[inline]
    pub fn try_write<'a>(&'a self, token: &'a mut OwnerToken) -> Option<WriteGuard<'a, T>> {
        let was_pending = self.begin(token);
        if self.state.all_slots_free() {
            return Some(self.enter());
        }
        if !was_pending {
            self.cancel_write(token);
        }
        None
    }

    /// Keeps new readers out until a write ends or is cancelled. A second call has no further effect.
    ///
    /// # Panics
    /// If the token belongs to another guard.
    #[inline]
    pub fn begin_write(&self, token: &mut OwnerToken) {
        self.begin(token);
    }

    /// Starts the write if all readers have left; the caller repeats the call until it succeeds. Calls
    /// `begin_write` first if the caller has not.
    ///
    /// # Panics
    /// If the token belongs to another guard.
    #[inline]
    pub fn try_enter<'a>(&'a self, token: &'a mut OwnerToken) -> Option<WriteGuard<'a, T>> {
        self.begin_write(token);
        self.state.all_slots_free().then(|| self.enter())
    }

    /// Gives up a pending write and admits readers again.
    ///
    /// # Panics
    /// If the token belongs to another guard.
    #[inline]
    pub fn cancel_write(&self, token: &mut OwnerToken) {
        self.state.check_owner(token);
        self.state.writer_pending.store(false, Ordering::Release);
    }

    /// Whether the owner is writing or waits to write, as far as this thread can see. Use it only as a hint
    /// for choosing where to read.
    #[inline]
    pub fn is_write_pending(&self) -> bool {
        self.state.writer_pending.load(Ordering::Relaxed)
    }

    /// Returns whether a write was pending already.
    #[inline]
    fn begin(&self, token: &mut OwnerToken) -> bool {
        self.state.check_owner(token);
        // Only the owner stores here, so it sees its own last store.
        let was_begun = self.state.writer_pending.load(Ordering::Relaxed);
        if !was_begun {
            self.state.writer_pending.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
        was_begun
    }

    /// The caller must hold the owner's token mutably for the guard's life, must have begun the write, and
    /// must then have found all slots free.
    fn enter(&self) -> WriteGuard<'_, T> {
        require!(
            self.state.writer_pending.load(Ordering::Relaxed),
            "an owner that enters has announced its write, so readers stay out"
        );
        WriteGuard { value: self.value.get_mut(), _pending: PendingWrite(&self.state), token: PhantomData }
    }
}

impl<T> fmt::Debug for PartitionGuard<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PartitionGuard").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Exclusive access of the owner to its partition. Dropping it admits readers.
pub struct WriteGuard<'a, T> {
    // Declared before `_pending`, so it is dropped first: the access ends before readers are admitted.
    value: MutPointer<T>,
    _pending: PendingWrite<'a>,
    token: PhantomData<&'a mut OwnerToken>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: by the protocol at the top of this file no reader is inside while this guard lives. The
        // mutably borrowed token excludes the owner's other accesses.
        unsafe { self.value.deref() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` excludes a second reference through this guard.
        unsafe { self.value.deref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("WriteGuard").field(&**self).finish()
    }
}

/// Ties tokens and slots to guards. Only its address matters, which stays unique while a token or a guard
/// refers to it.
#[derive(Debug)]
struct Identity;

/// Everything in a guard except the value. It has a separate cache line, which readers only load.
#[derive(Debug)]
#[repr(align(64))]
struct GuardState {
    /// True from the beginning of a write to its end. Only the owner stores here.
    writer_pending: AtomicBool,
    slots: Box<[SlotFlag]>,
    group: Arc<Identity>,
    owner: Arc<Identity>,
}

/// True while the slot's thread reads. Only that thread stores here. The flag has a pair of cache lines for
/// itself, because a CPU that prefetches lines in pairs would otherwise also fetch the neighbour's line.
#[derive(Debug)]
#[repr(align(128))]
struct SlotFlag(AtomicBool);

impl GuardState {
    #[inline]
    fn check_owner(&self, token: &OwnerToken) {
        require!(Arc::ptr_eq(&self.owner, &token.identity), "the token is that of the partition's owner");
    }

    #[inline]
    fn take_slot(&self, slot: &ReaderSlot) -> Result<TakenSlot<'_>, Busy> {
        require!(Arc::ptr_eq(&self.group, &slot.group), "the slot is of the partition's read group");
        let flag = &self.slots[usize::from(slot.slot)].0;
        // Only this thread stores to the flag. If it is set, this read is nested: the outer read holds the
        // slot and clears the flag.
        if flag.load(Ordering::Relaxed) {
            return Ok(TakenSlot(None));
        }
        // A check before the store keeps busy readers from raising flags that would delay the owner.
        if self.writer_pending.load(Ordering::Relaxed) {
            return Err(Busy);
        }
        flag.store(true, Ordering::Relaxed);
        let taken = TakenSlot(Some(flag));
        fence(Ordering::SeqCst);
        if self.writer_pending.load(Ordering::Acquire) { Err(Busy) } else { Ok(taken) }
    }

    #[inline]
    fn all_slots_free(&self) -> bool {
        self.slots.iter().all(|slot| !slot.0.load(Ordering::Acquire))
    }
}

/// Clears the flag when dropped, even if a reader panics.
struct TakenSlot<'a>(Option<&'a AtomicBool>);

impl Drop for TakenSlot<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(flag) = self.0 {
            flag.store(false, Ordering::Release);
        }
    }
}

/// Admits readers when dropped.
struct PendingWrite<'a>(&'a GuardState);

impl Drop for PendingWrite<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.writer_pending.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
