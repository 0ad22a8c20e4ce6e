//! Hot path: at most 1 load for `stable`, 40 instructions per number.
//!
//! Commit numbers and the stable number of one node. `stable` is one load. `take` and `mark_applied` are two
//! to three uncontended atomic operations each, without a lock, an allocation or a wait.
//!
//! `docs/decisions/0001-commit-numbers.md` describes the protocol and the results of its model.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(any(loom, shuttle)))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

use junctor_model::id::CommitNumber;
use junctor_model::limit::TRANSACTIONS_MAX;

use crate::invariant::require;

pub mod numbering;

pub use numbering::Numbering;

/// Maximum distance from the stable number to the last number taken.
pub const COMMIT_SEQUENCE_SLOTS: usize = 65_536;

// A transaction has at most one number, and the tc blocks of a node have room for TRANSACTIONS_MAX
// transactions. Main has one number under way at a time. So the ring is never full.
const _: () = assert!(COMMIT_SEQUENCE_SLOTS > TRANSACTIONS_MAX);
const _: () = assert!(COMMIT_SEQUENCE_SLOTS.is_power_of_two());

/// The source of commit numbers, which are dense, and of the stable number: the largest N such that every
/// number up to N is applied at all its participants. All threads of a node share it.
///
/// Each number has a slot in a ring. `take` stores the number's owner in the slot, and `mark_applied` sets a
/// bit there. A thread that finds this bit set for the number after the stable one moves the stable number by
/// one, with a compare-and-exchange. Therefore exactly one thread moves the stable number past a given
/// number, and that thread reports the number.
#[derive(Debug)]
pub struct CommitSequence {
    taken: Line,
    stable: Line,
    slots: Box<[AtomicU64]>,
}

/// A word that has a cache line for itself.
#[derive(Debug)]
#[repr(align(64))]
struct Line(AtomicU64);

/// Why a number was refused. Each reason means that the caller broke its contract; none is a user's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitSequenceError {
    /// More numbers are in flight than slots exist: more transactions were admitted than allowed.
    Full,
    /// All 64-bit numbers are used up.
    Exhausted,
    /// The number was never taken.
    NotTaken,
    /// The number was marked before.
    AlreadyApplied,
}

impl std::fmt::Display for CommitSequenceError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Full => "more commit numbers are in flight than transactions may be admitted",
            Self::Exhausted => "commit numbers are used up",
            Self::NotTaken => "the commit number was not taken",
            Self::AlreadyApplied => "the commit number was applied before",
        })
    }
}

impl std::error::Error for CommitSequenceError {}

/// Set in a slot when its number is applied at all participants.
const APPLIED: u64 = 1;
const OWNER_SHIFT: u32 = 1;
const OWNER_MASK: u64 = (u16::MAX as u64) << OWNER_SHIFT;
/// The remaining bits of a slot hold the low bits of its number. Two numbers that can meet in one slot are at
/// most a few ring lengths apart, so the missing high bits never matter.
const NUMBER_SHIFT: u32 = 17;

impl CommitSequence {
    /// A sequence in which `last` and all smaller numbers are stable. The first number taken is `last + 1`.
    pub fn starting_after(last: CommitNumber) -> Self {
        Self::with_slots(last, COMMIT_SEQUENCE_SLOTS)
    }

    /// Goes on above `last`, as [`CommitSequence::starting_after`] would begin. For a recovery, before any
    /// transaction: no number may be in flight, and no snapshot in use.
    pub fn restart_after(&self, last: CommitNumber) {
        let taken = self.taken.0.load(Ordering::Acquire);
        require!(
            taken == self.stable.0.load(Ordering::Acquire) && taken <= last.0,
            "recovery ends before any commit: {taken} of {last}"
        );
        let length = self.slots.len() as u64;
        for number in (0..length).map(|back| last.0.wrapping_sub(back)) {
            self.slot(number).store(slot_word(number, 0) | APPLIED, Ordering::Relaxed);
        }
        self.taken.0.store(last.0, Ordering::Release);
        // Release: whoever sees the new stable number sees the slots too.
        self.stable.0.store(last.0, Ordering::Release);
    }

    /// Stores the last number decided and the stable number of the cluster, where another node takes the
    /// numbers. Both only rise.
    pub fn publish(&self, taken: CommitNumber, stable: CommitNumber) {
        require!(
            stable <= taken && stable >= self.stable() && taken >= self.taken(),
            "published numbers rise: {taken}, {stable} after {}, {}",
            self.taken(),
            self.stable()
        );
        // In this order, so that nobody sees a stable number above the last one taken.
        self.taken.0.store(taken.0, Ordering::Release);
        self.stable.0.store(stable.0, Ordering::Release);
    }

    /// Raises the stable number, and the last one taken, on a node that only reads. Any thread may.
    pub fn raise(&self, stable: CommitNumber) {
        self.taken.0.fetch_max(stable.0, Ordering::AcqRel);
        self.stable.0.fetch_max(stable.0, Ordering::AcqRel);
    }

    /// Takes the next number for a transaction whose prepares have all succeeded. `owner` is the index of the
    /// tc thread to notify when the number is stable, or a value by which the caller knows main.
    ///
    /// `Full` and `Exhausted`; no number is used up then. `Full` cannot happen if all tc threads together
    /// admit fewer than [`COMMIT_SEQUENCE_SLOTS`] transactions and main has one number under way. A
    /// transaction counts until its thread knows that its number is stable.
    pub fn take(&self, owner: u16) -> Result<CommitNumber, CommitSequenceError> {
        // Acquire: the thread that took the previous number knew a certain stable number. The load of
        // `stable` below must not return an older one, or a ring with a free slot could seem full.
        let mut taken = self.taken.0.load(Ordering::Acquire);
        let number = loop {
            let stable = self.stable.0.load(Ordering::Acquire);
            // A stale `taken` can be below the stable number. The exchange below then fails.
            if taken.saturating_sub(stable) >= self.slots.len() as u64 {
                return Err(CommitSequenceError::Full);
            }
            let next = taken.checked_add(1).ok_or(CommitSequenceError::Exhausted)?;
            match self.taken.0.compare_exchange_weak(taken, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break next,
                Err(current) => taken = current,
            }
        };
        // The previous number of this slot is stable, so no thread needs the slot's contents any more.
        let slot = self.slot(number);
        require!(
            slot.load(Ordering::Relaxed) & !OWNER_MASK
                == slot_word(number.wrapping_sub(self.slots.len() as u64), 0) | APPLIED,
            "the number that had the slot of {number} before is applied"
        );
        slot.store(slot_word(number, owner), Ordering::Release);
        Ok(CommitNumber(number))
    }

    /// Marks a number as applied at all its participants, and moves the stable number as far as possible.
    /// Calls `on_stable` with each number that this call made stable, in ascending order, and with its owner.
    /// Over all calls of all threads, each number is reported once, and it is stable by then.
    ///
    /// # Errors
    /// `NotTaken` and `AlreadyApplied`; nothing has changed then.
    pub fn mark_applied(
        &self,
        number: CommitNumber,
        on_stable: &mut impl FnMut(CommitNumber, u16),
    ) -> Result<(), CommitSequenceError> {
        // Between take and mark, a number is above the stable number by at most the length of the ring.
        let is_under_way = number.0.wrapping_sub(self.stable().0).wrapping_sub(1) < self.slots.len() as u64;
        let slot = self.slot(number.0);
        let word = slot.load(Ordering::Acquire);
        if !is_under_way || number_bits(word) != number_bits(slot_word(number.0, 0)) {
            let is_stable = number <= self.stable();
            return Err(if is_stable { CommitSequenceError::AlreadyApplied } else { CommitSequenceError::NotTaken });
        }
        if word & APPLIED != 0 {
            return Err(CommitSequenceError::AlreadyApplied);
        }
        slot.compare_exchange(word, word | APPLIED, Ordering::AcqRel, Ordering::Acquire)
            .map_err(|_| CommitSequenceError::AlreadyApplied)?;
        // When two threads mark neighbouring numbers concurrently, at least one must see the other's mark.
        // Otherwise neither would move stable over the later number. So both mark first, then fence, and only
        // then load.
        fence(Ordering::SeqCst);
        self.advance(on_stable);
        Ok(())
    }

    /// The stable number: the snapshot of a reader that starts now. Every commit up to it is applied in all
    /// partitions and visible to the calling thread.
    #[inline]
    pub fn stable(&self) -> CommitNumber {
        CommitNumber(self.stable.0.load(Ordering::Acquire))
    }

    /// The tc to notify when this number becomes stable, or `None` if it is stable already. The caller must
    /// have observed an effect that the taker of the number produced after the take, such as a row with that
    /// number.
    pub fn owner_unless_stable(&self, number: CommitNumber) -> Option<u16> {
        if self.stable() >= number {
            return None;
        }
        // A slot is reused only after its number is stable. A thread that reads the later owner also sees the
        // later stable number, so the second comparison below rejects the owner.
        let owner = slot_owner(self.slot(number.0).load(Ordering::Acquire));
        (self.stable() < number).then_some(owner)
    }

    /// The last number taken; at least the stable number.
    pub fn taken(&self) -> CommitNumber {
        CommitNumber(self.taken.0.load(Ordering::Acquire))
    }

    /// `slots` is a power of two.
    pub(crate) fn with_slots(last: CommitNumber, slots: usize) -> Self {
        require!(slots.is_power_of_two(), "the low bits of a commit number choose its slot");
        // The slots start as the numbers up to `last` would have left them, so that none looks like the slot
        // of a future number.
        let mut words = vec![0; slots];
        for distance in 0..slots as u64 {
            let number = last.0.wrapping_sub(distance);
            words[slot_index(number, slots)] = slot_word(number, 0) | APPLIED;
        }
        let slots = words.into_iter().map(AtomicU64::new).collect();
        Self { taken: Line(AtomicU64::new(last.0)), stable: Line(AtomicU64::new(last.0)), slots }
    }

    fn advance(&self, on_stable: &mut impl FnMut(CommitNumber, u16)) {
        let mut stable = self.stable.0.load(Ordering::Acquire);
        loop {
            let next = stable.wrapping_add(1);
            let word = self.slot(next).load(Ordering::Acquire);
            if word & !OWNER_MASK != slot_word(next, 0) | APPLIED {
                // Either the number is not applied, or the slot is already used for a later number, which
                // means that `stable` is out of date.
                let current = self.stable.0.load(Ordering::Acquire);
                if current == stable {
                    return;
                }
                stable = current;
                continue;
            }
            match self.stable.0.compare_exchange(stable, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    on_stable(CommitNumber(next), slot_owner(word));
                    stable = next;
                }
                Err(current) => stable = current,
            }
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> &AtomicU64 {
        &self.slots[slot_index(number, self.slots.len())]
    }
}

#[inline]
fn slot_index(number: u64, slots: usize) -> usize {
    (number & (slots as u64 - 1)) as usize
}

#[inline]
fn slot_word(number: u64, owner: u16) -> u64 {
    number << NUMBER_SHIFT | u64::from(owner) << OWNER_SHIFT
}

#[inline]
fn number_bits(word: u64) -> u64 {
    word >> NUMBER_SHIFT
}

#[inline]
fn slot_owner(word: u64) -> u16 {
    ((word & OWNER_MASK) >> OWNER_SHIFT) as u16
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
