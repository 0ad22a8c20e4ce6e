//! The locks of one ldm, on rows and on key ranges: holders, modes and waiting requests.
//!
//! The lock table is separate from the rows and belongs to its ldm alone. No function of it blocks: a request
//! that cannot be granted stays in a queue, and a release returns the requests that it grants. Deadlocks are
//! detected elsewhere, by following `blockers_of`.

mod pool;
mod queues;
mod range;
mod table;

pub use range::{IndexPartition, NewKey, RANGE_BYTES_MAX, RANGES_MAX, RangeEntry, WIDE_RANGES_MAX};
pub use table::{
    Followers, LOCKS_MAX, LockEntry, LockKey, LockMode, LockReply, LockTable, LockTableFull, WaiterId, WaiterToken,
};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
