//! The rows of a partition: stable row ids, and a chain of versions for each, newest first.

mod compact;
mod overflow_value;
mod map;
mod settled;
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

/// Whether a version is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// Committed with this number.
    Committed(CommitNumber),
    /// Written by this statement of a transaction that has not committed here.
    Open(TransactionId, StatementNumber),
}

impl VersionState {
    /// The number of a committed version.
    #[inline]
    pub fn commit_number(self) -> Option<CommitNumber> {
        match self {
            VersionState::Committed(number) => Some(number),
            VersionState::Open(..) => None,
        }
    }

    /// The transaction of an open version.
    #[inline]
    pub fn transaction(self) -> Option<TransactionId> {
        match self {
            VersionState::Committed(_) => None,
            VersionState::Open(transaction, _) => Some(transaction),
        }
    }

    /// The statement that wrote an open version.
    #[inline]
    pub fn statement(self) -> Option<StatementNumber> {
        match self {
            VersionState::Committed(_) => None,
            VersionState::Open(_, statement) => Some(statement),
        }
    }
}

/// The transaction and statement that write a version.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// The transaction that will commit or undo the version.
    pub transaction: TransactionId,
    /// The statement within the transaction, from 1. A rollback of the statement removes the version.
    pub statement: StatementNumber,
}
