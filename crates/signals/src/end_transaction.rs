//! COMMIT and ROLLBACK: from the gateway of a sql block to the transaction's tc.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::TransactionId;

use crate::read_rows::OperationId;

/// The requested end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// COMMIT: answered when the commit number is stable, and durable if that is requested.
    Commit,
    /// ROLLBACK.
    Rollback,
}

choices! { Ending { 0 Commit; 1 Rollback; } }

/// When a commit is acknowledged on a node with a log (`commit_durability`). A node in memory ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitDurability {
    /// Once the log has it on disk.
    #[default]
    Disk,
    /// Once it is stable in memory. A crash can lose the commits since the last sync of the log, which runs
    /// at least every `TimeBetweenGlobalCheckpoints`. It never loses a part of a transaction, and never a
    /// transaction on which a surviving one depends.
    Memory,
}

choices! { CommitDurability { 0 Disk; 1 Memory; } }

impl CommitDurability {
    /// The value of `commit_durability`.
    pub fn name(self) -> &'static str {
        match self {
            CommitDurability::Disk => "disk",
            CommitDurability::Memory => "memory",
        }
    }

    /// The choice with this name, ignoring case; `None` if unknown.
    pub fn named(name: &str) -> Option<CommitDurability> {
        let all = [CommitDurability::Disk, CommitDurability::Memory];
        all.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }
}

/// Ends a transaction.
#[derive(Debug)]
pub struct EndTransaction {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The transaction to end.
    pub transaction: TransactionId,
    /// COMMIT or ROLLBACK.
    pub ending: Ending,
    /// When COMMIT is answered.
    pub durability: CommitDurability,
}

layout! { EndTransaction { operation, reply_to, transaction, ending, durability } }

/// The reply to [`EndTransaction`].
#[derive(Debug)]
pub struct EndTransactionReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Why a commit failed; the transaction is rolled back then.
    pub error: Option<Box<Error>>,
}

layout! { EndTransactionReply { operation, error } }
