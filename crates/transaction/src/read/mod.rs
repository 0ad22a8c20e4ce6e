//! Hot path: at most 150 instructions per key, not counting index and encoding; no allocation, no reference
//! counts, no locks.
//!
//! Reads the rows of one partition, on behalf of query blocks and of the owner.
//!
//! [`row_reader`] finds the rows of a request, a bounded number in each acquisition of the guard. [`emit`]
//! encodes the output of each row. [`sort_key`] makes keys that compare as bytes. [`kernel`] has filters and
//! sums compiled for scans.

mod emit;
mod group_table;
mod kernel;
mod row_reader;
mod sort_key;

pub(crate) use emit::{Emitter, OutputRow};
pub(crate) use row_reader::{
    GuardedReadOutcome, LONG_READ_ROWS, ReadCounts, ReadPosition, RowReader, bounds_of, direction_of,
};

#[cfg(test)]
mod tests;
