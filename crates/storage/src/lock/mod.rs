//! Row locks of one ldm: who holds which row in which mode, and who waits.
//!
//! The table is apart from the rows. It belongs to the ldm alone; it never waits itself: a request that cannot be
//! granted stays in a queue, and releasing tells whose turn it is. Deadlocks are found elsewhere, by asking who blocks
//! whom.

mod pool;
mod table;

pub use table::{LOCKS_MAX, LockEntry, LockKey, LockMode, LockReply, LockTable, LockTableFull, WaiterId, WaiterToken};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
