//! Locks of one ldm, of rows and of ranges of keys: who holds what in which mode, and who waits.
//!
//! The table is apart from the rows. It belongs to the ldm alone; it never waits itself: a request that cannot be
//! granted stays in a queue, and releasing tells whose turn it is. Deadlocks are found elsewhere, by asking who blocks
//! whom.

mod pool;
mod range;
mod shards;
mod table;

pub use range::{IndexPlace, NewKey, RANGE_BYTES_MAX, RANGES_MAX, RangeEntry, WIDE_RANGES_MAX};
pub use table::{LOCKS_MAX, LockEntry, LockKey, LockMode, LockReply, LockTable, LockTableFull, WaiterId, WaiterToken};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
