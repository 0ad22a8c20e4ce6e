//! Redo records: what a transaction changed in a partition, formed at commit (`docs/format.md`, "Redo record"). No
//! files here.

mod buffer;
mod record;

pub use buffer::RedoBuffer;
pub use record::{REDO_RECORD_BYTES_MAX, REDO_VERSION, RedoError, RedoHeader, RedoOperation, RedoRecord, RedoRecords};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
