//! Hot path, budget 150 instructions a key besides the index and the encoding: no allocation, no reference counts, no
//! locks. Reading rows of one partition, for query blocks and for the owner alike.
//!
//! [`row_reader`] finds the rows of a request, one hold of the guard after the other; [`emit`] says what leaves the
//! partition for each; [`sort_key`] makes keys that compare as bytes.

mod emit;
mod row_reader;
mod sort_key;

pub(crate) use emit::Emitter;
pub(crate) use row_reader::{Hold, LONG_READ_ROWS, ReadCounts, ReadPosition, RowReader, bounds_of, direction_of};

#[cfg(test)]
mod tests;
