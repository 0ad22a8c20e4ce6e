//! The rows of a partition: stable row ids, and a chain of versions for each, newest first.

mod compact;
mod overflow_value;
mod map;
mod store;
mod version;

pub use map::{ROWS_PER_PARTITION_MAX, RowMap};
pub use store::RowStore;
pub use version::{RowVersion, VERSION_HEADER_BYTES};

use junctor_model::id::{CommitNumber, StatementNumber, TransactionId};

/// Which versions a read sees.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Versions committed up to this number are visible.
    pub snapshot: CommitNumber,
    /// The transaction whose uncommitted versions are visible too.
    pub own: Option<TransactionId>,
}

/// The transaction and statement that write a version.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// The transaction that will commit or undo the version.
    pub transaction: TransactionId,
    /// The statement within the transaction, from 1. A rollback of the statement removes the version.
    pub statement: StatementNumber,
}
