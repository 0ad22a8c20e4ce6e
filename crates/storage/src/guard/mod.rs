//! Hot path, budget 15 instructions a read.
//! The partition guard: one owner writes a partition, threads of its read group read it, and nobody waits.
//! A read costs one fence and two stores to a cache line of the reader's own, whatever it reads under them.
//!
//! # The rule, and why it holds
//!
//! A reader
//! 1. stores true in the flag of its slot;
//! 2. fences (sequentially consistent);
//! 3. loads `writer_pending`; if it is true, it clears its flag and is busy, else it reads and then clears its flag.
//!
//! The owner
//! 1. stores true in `writer_pending`;
//! 2. fences (sequentially consistent);
//! 3. loads all flags, now or at any later time; if all are false, it writes and then clears `writer_pending`.
//!
//! This is Dekker's exclusion. The two fences have an order. If the reader's comes first, the owner finds the reader's
//! flag, or what the reader stored later, which is the end of its read. If the owner's comes first, the reader finds
//! `writer_pending`, or what the owner stored later, which is the end of its write. So one of the two gives way.
//!
//! Clearing either is a release store and finding it clear is an acquire load, so that a write happens after the reads
//! before it and a read after the writes before it.
//!
//! # Progress
//!
//! A reader that looks before it stores its flag does not disturb an owner that is pending, so the owner enters when
//! the reads that it found have ended. It clears `writer_pending` when its batch is done. A reader that is busy sends
//! its request to the owner, so no read depends on finding the guard free.
//!
//! # Who may call
//!
//! An [`OwnerToken`] and a [`ReaderSlot`] can be neither copied nor shared, and the guard knows which it belongs to: at
//! any time there is one thread that can act as owner, and one for each slot. A thread may be both.

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

/// The guard refused a reader because the owner writes or waits to write. The request goes to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the owner of the partition writes or waits to write")
    }
}

impl std::error::Error for Busy {}

/// The right to write the partitions that were made with this token. It can move to another thread, but be neither
/// copied nor shared:
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
    /// A token unlike any other.
    pub fn new() -> Self {
        Self { identity: Arc::new(Identity), not_sync: PhantomData }
    }
}

impl Default for OwnerToken {
    fn default() -> Self {
        Self::new()
    }
}

/// The threads that may read the same partitions: a number of reader slots.
#[derive(Clone, Debug)]
pub struct ReadGroup {
    identity: Arc<Identity>,
    slot_count: u8,
}

impl ReadGroup {
    /// A group and its slots, numbered from 0, at most [`READER_SLOTS_MAX`]. Every slot exists once.
    ///
    /// # Panics
    /// When `slot_count` is above the maximum.
    pub fn new(slot_count: u8) -> (Self, Vec<ReaderSlot>) {
        require!(usize::from(slot_count) <= READER_SLOTS_MAX, "a read group has at most {READER_SLOTS_MAX} slots");
        let identity = Arc::new(Identity);
        let slots =
            (0..slot_count).map(|slot| ReaderSlot { group: Arc::clone(&identity), slot, not_sync: PhantomData });
        let slots = slots.collect();
        (Self { identity, slot_count }, slots)
    }
}

/// The right of one thread to read the partitions of a group. It can move to another thread, but be neither copied nor
/// shared:
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
    /// The number of the slot in its group.
    pub fn number(&self) -> u8 {
        self.slot
    }
}

/// A partition, or whatever else one thread writes and a group of threads reads.
///
/// What is read cannot leave the read:
///
/// ```compile_fail
/// use junctor_storage::guard::{OwnerToken, PartitionGuard, ReadGroup};
/// let (group, slots) = ReadGroup::new(1);
/// let guard = PartitionGuard::new(&OwnerToken::new(), &group, vec![1]);
/// let escaped: &Vec<i32> = guard.read(&slots[0], |value| value).unwrap();
/// ```
///
/// and the owner cannot read while it writes, nor write twice at once:
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

// SAFETY: `value` is reached from several threads only through `read`, `owner_read` and a `WriteGuard`. The rule at the
// top of this file lets a `WriteGuard` exist only while no slot is taken, and no slot be taken while one exists; the
// `&mut OwnerToken` inside it excludes a second one and `owner_read`. So a `&mut T` never coexists with another
// reference. References go to the threads of readers (`T: Sync`), and the owner's token may move (`T: Send`).
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

    /// Calls `reader` with the value, unless the owner writes or waits to write. Reading the same guard again inside
    /// `reader` is allowed. The guard is held until `reader` returns, so that must be soon: at most 64 rows.
    ///
    /// # Panics
    /// When the slot is of another group.
    #[inline]
    pub fn read<R>(&self, slot: &ReaderSlot, reader: impl FnOnce(&T) -> R) -> Result<R, Busy> {
        let _taken = self.state.take_slot(slot)?;
        let pointer = self.value.get();
        // SAFETY: the slot is taken until `_taken` is dropped, after `pointer` and even when `reader` panics, so by the
        // rule at the top of this file there is no `WriteGuard`, the only source of `&mut T`.
        Ok(reader(unsafe { pointer.deref() }))
    }

    /// Calls `reader` with the value, on the owner's thread. It needs no slot, because nobody else writes.
    ///
    /// # Panics
    /// When the token is of another guard.
    #[inline]
    pub fn owner_read<R>(&self, token: &OwnerToken, reader: impl FnOnce(&T) -> R) -> R {
        self.state.check_owner(token);
        let pointer = self.value.get();
        // SAFETY: only a `WriteGuard` gives `&mut T`. It borrows the one token of this guard mutably, so there is none
        // while `token` is borrowed.
        reader(unsafe { pointer.deref() })
    }

    /// Enters to write, if no slot is taken now. If one is, nothing stays behind: readers are not kept out, unless a write was
    /// begun before, which still waits.
    ///
    /// # Panics
    /// When the token is of another guard.
    #[inline]
    pub fn try_write<'a>(&'a self, token: &'a mut OwnerToken) -> Option<WriteGuard<'a, T>> {
        let is_awaited = self.begin(token);
        if self.state.all_slots_free() {
            return Some(self.enter());
        }
        if !is_awaited {
            self.cancel_write(token);
        }
        None
    }

    /// Keeps new readers out from now on, until a write has ended or is cancelled. Beginning twice is beginning once.
    ///
    /// # Panics
    /// When the token is of another guard.
    #[inline]
    pub fn begin_write(&self, token: &mut OwnerToken) {
        self.begin(token);
    }

    /// Enters to write, if the readers that were inside have left; to be asked again until it is granted. Begins the
    /// write if that was not done.
    ///
    /// # Panics
    /// When the token is of another guard.
    #[inline]
    pub fn try_enter<'a>(&'a self, token: &'a mut OwnerToken) -> Option<WriteGuard<'a, T>> {
        self.begin_write(token);
        self.state.all_slots_free().then(|| self.enter())
    }

    /// Lets readers in again without having written.
    ///
    /// # Panics
    /// When the token is of another guard.
    #[inline]
    pub fn cancel_write(&self, token: &mut OwnerToken) {
        self.state.check_owner(token);
        self.state.writer_pending.store(false, Ordering::Release);
    }

    /// Whether the owner writes or waits to write, as far as this thread can see: a hint for choosing where to read.
    #[inline]
    pub fn is_write_pending(&self) -> bool {
        self.state.writer_pending.load(Ordering::Relaxed)
    }

    /// Says whether a write was begun before.
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

    /// The caller holds the owner's token mutably for as long as the guard lives, has begun the write and then found
    /// all slots free.
    fn enter(&self) -> WriteGuard<'_, T> {
        WriteGuard { value: self.value.get_mut(), _pending: PendingWrite(&self.state), token: PhantomData }
    }
}

impl<T> fmt::Debug for PartitionGuard<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PartitionGuard").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The owner inside its partition, alone. Dropping it lets readers in.
pub struct WriteGuard<'a, T> {
    // Dropped before `_pending`, so that the access has ended when readers are let in.
    value: MutPointer<T>,
    _pending: PendingWrite<'a>,
    token: PhantomData<&'a mut OwnerToken>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: by the rule at the top of this file no reader is inside while this guard lives, and the mutably
        // borrowed token excludes the owner's other ways in.
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

/// What makes tokens and guards belong together. Its address, which no other has while a token or a guard holds it, is
/// all that counts.
#[derive(Debug)]
struct Identity;

/// All of a guard but the value. On a line of its own, which readers only read.
#[derive(Debug)]
#[repr(align(64))]
struct GuardState {
    /// True from the beginning of a write to its end. Only the owner stores here.
    writer_pending: AtomicBool,
    slots: Box<[SlotFlag]>,
    group: Arc<Identity>,
    owner: Arc<Identity>,
}

/// True while the thread of the slot reads. Only that thread stores here. On a line pair of its own, because a CPU that
/// prefetches lines in pairs would otherwise take it from the neighbour.
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
        // Only this thread stores in the flag. If it is set, this is a read within a read, which holds the guard already
        // and will clear the flag.
        if flag.load(Ordering::Relaxed) {
            return Ok(TakenSlot(None));
        }
        // Looking first keeps busy readers from raising flags that would hold up the owner.
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

/// Clears the flag when dropped, also when a reader panics.
struct TakenSlot<'a>(Option<&'a AtomicBool>);

impl Drop for TakenSlot<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(flag) = self.0 {
            flag.store(false, Ordering::Release);
        }
    }
}

/// Lets readers in when dropped.
struct PendingWrite<'a>(&'a GuardState);

impl Drop for PendingWrite<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.writer_pending.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
