//! Hot path, budget 150 instructions a key besides the index and the encoding: no allocation, no reference
//! counts, no locks. Reads rows of one partition, for query blocks and for the owner alike.
//!
//! [`row_reader`] finds the rows of a request in successive holds of the guard. [`emit`] encodes the output
//! of each row. [`sort_key`] makes keys that compare as bytes.

mod emit;
mod row_reader;
mod sort_key;

pub(crate) use emit::{Emitter, OutputRow};
pub(crate) use row_reader::{Hold, LONG_READ_ROWS, ReadCounts, ReadPosition, RowReader, bounds_of, direction_of};

#[cfg(test)]
mod tests;
