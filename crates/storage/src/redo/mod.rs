//! Redo records: a transaction's changes in a partition, assembled at commit (`docs/format.md`, "Redo
//! record"). This module accesses no files.

mod buffer;
mod record;

pub use buffer::RedoBuffer;
pub use record::{REDO_RECORD_BYTES_MAX, REDO_VERSION, RedoError, RedoHeader, RedoOperation, RedoRecord, RedoRecords};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
