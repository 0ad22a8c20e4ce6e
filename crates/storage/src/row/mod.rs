//! The rows of a partition: stable row ids, and a chain of versions for each, newest first.

mod compact;
mod cut;
mod map;
mod store;
mod version;

pub use map::{ROWS_PER_PARTITION_MAX, RowMap};
pub use store::RowStore;
pub use version::{RowVersion, VERSION_HEADER_BYTES};
