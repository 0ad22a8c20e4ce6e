//! The outcome of a COMMIT whose tc is lost. Main of the node without data asks the data nodes, which know
//! their last decisions.

use junctor_kernel::Address;
use junctor_model::id::{CommitNumber, GlobalTransactionId, Incarnation, TransactionId};

use crate::read_rows::OperationId;

/// The knowledge about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has a number, and every later snapshot of any node sees it.
    Committed,
    /// It has none and will get none.
    RolledBack,
    /// One or the other.
    Unknown,
}

choices! { Outcome { 0 Committed; 1 RolledBack; 2 Unknown; } }

/// From a sql block to main of its node: a COMMIT was sent to a tc that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolveCommit {
    /// Returned in the reply.
    pub operation: OperationId,
    /// The sql block.
    pub reply_to: Address,
    /// The transaction.
    pub transaction: TransactionId,
    /// The life of the node with the tc.
    pub incarnation: Incarnation,
    /// A number that was stable before the COMMIT was sent. The number of the commit is above.
    pub after: CommitNumber,
}

/// The reply to [`ResolveCommit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolveCommitReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// The outcome.
    pub outcome: Outcome,
}

/// Asks a data node what it knows about a transaction. From main to main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskOutcome {
    /// Returned in the reply.
    pub id: u64,
    /// The transaction.
    pub transaction: GlobalTransactionId,
    /// Its number is above this one, if it has one.
    pub after: CommitNumber,
}

layout! { AskOutcome { id, transaction, after } }

/// The reply to [`AskOutcome`], once the node can say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskOutcomeReply {
    /// Copied from the request.
    pub id: u64,
    /// Rolled back, as far as the group of the node has a part in the transaction.
    pub outcome: Outcome,
}

layout! { AskOutcomeReply { id, outcome } }
