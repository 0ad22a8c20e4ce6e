//! The end of a transaction at its participants: prepare along the replica chain, commit with a number, complete; or undo.
//! From tc to every ldm that holds writes or locks of it.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, StatementNumber, TransactionId};

/// Make sure that the commit cannot fail any more: redo room taken, images at the backups.
#[derive(Debug)]
pub struct PrepareTransaction {
    /// The transaction.
    pub transaction: TransactionId,
    /// The tc.
    pub reply_to: Address,
}

/// The answer: the whole chain of every partition of this participant is prepared.
#[derive(Debug)]
pub struct PrepareTransactionReply {
    /// The transaction.
    pub transaction: TransactionId,
    /// Who answers.
    pub from: Address,
    /// Why it cannot be committed.
    pub error: Option<Box<Error>>,
}

/// Stamp the versions with the number, form the redo record, release the locks.
#[derive(Debug)]
pub struct CommitTransaction {
    /// The transaction.
    pub transaction: TransactionId,
    /// The tc.
    pub reply_to: Address,
    /// The number.
    pub number: CommitNumber,
    /// How many partitions the transaction has written, for the redo records.
    pub participants: u32,
    /// Whether this ldm holds versions of the transaction, and not only locks. It must know the transaction then.
    pub has_written: bool,
}

/// The answer: applied along the whole chain.
#[derive(Debug)]
pub struct CommitTransactionReply {
    /// The transaction.
    pub transaction: TransactionId,
    /// Who answers.
    pub from: Address,
}

/// Undo what is newer than a statement, in bounded steps.
#[derive(Debug)]
pub struct UndoTransaction {
    /// The transaction.
    pub transaction: TransactionId,
    /// The tc.
    pub reply_to: Address,
    /// Versions of later statements go.
    pub newer_than: StatementNumber,
    /// Whether the transaction is over: its locks are released and it is forgotten.
    pub ends: bool,
}

/// The answer.
#[derive(Debug)]
pub struct UndoTransactionReply {
    /// The transaction.
    pub transaction: TransactionId,
    /// Who answers.
    pub from: Address,
}

/// Tell the tc of a transaction when a number of another tc is stable, by `CommitStable`.
#[derive(Debug)]
pub struct AwaitStable {
    /// The number, which was taken.
    pub number: CommitNumber,
    /// The transaction that waits for it; its tc is told.
    pub transaction: TransactionId,
}

/// From whoever moved the stable number to the tc that took a number which became stable by it, and from there to those that
/// asked to be told.
#[derive(Debug)]
pub struct CommitStable {
    /// The number that is stable now.
    pub number: CommitNumber,
}
