//! One writing or locking statement of a transaction: from a client of the data plane to its tc, which begins the transaction
//! when it has none, sends every part to the owner ldm at once, keeps unique entries, and undoes the statement when it fails.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, PartitionId, StatementNumber, TransactionId};

use crate::diagnostics::Diagnostics;
use crate::program::{RowProtocol, WriteProgram};
use crate::read_rows::OperationId;

/// What a statement asks of each partition.
#[derive(Debug)]
pub enum Parts {
    /// One partition.
    One(u16, Buffer),
    /// Several partitions, each at most once.
    Many(Box<[(u16, Buffer)]>),
}

/// What a transaction asks of rows that it reads in order to lock or change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether the ranges and absent keys that were looked at are locked too, so that no row comes into them.
    pub locks_ranges: bool,
    /// A row changed by a later commit is error 1020; 0 takes the newest version of every row.
    pub changed_after: CommitNumber,
    /// A locking read ends in each partition when it has accepted so many rows, and locks nothing beyond; 0 has no limit.
    pub rows_max: u32,
    /// Of so many warnings the text is answered.
    pub warnings_max: u16,
}

/// Execute one statement.
#[derive(Debug)]
pub struct ExecuteStatement {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The transaction; none begins one.
    pub transaction: TransactionId,
    /// Whether the transaction is committed with this statement.
    pub autocommit: bool,
    /// The wire form of the rows of a locking read.
    pub protocol: RowProtocol,
    /// How long one lock is waited for, in milliseconds, until error 1205.
    pub lock_wait_ms: u32,
    /// Whether error 1205 undoes the whole transaction and not the statement alone.
    pub timeout_ends: bool,
    /// What its reads are to stay true of.
    pub reading: Reading,
    /// The last statement that the newest savepoint keeps: nothing between that one and this statement is gone back to.
    pub savepoint: StatementNumber,
    /// What to do.
    pub program: Arc<WriteProgram>,
    /// Input of each partition, in the form of `input.rs`.
    pub parts: Parts,
}

/// Stop a statement: it is undone and answers with error 1317, unless it is done or commits already. Has no answer of its own.
/// It is a request as the statement is, so that it does not come before it.
#[derive(Debug)]
pub struct InterruptStatement {
    /// The operation of the statement.
    pub operation: OperationId,
    /// Who gets the statement's reply.
    pub reply_to: Address,
}

/// The answer. A failed statement has been undone; a deadlock's victim has been rolled back whole, and with
/// `timeout_ends` one that waited too long.
#[derive(Debug)]
pub struct ExecuteStatementReply {
    /// From the request.
    pub operation: OperationId,
    /// The transaction, for the next statement; none when it has ended.
    pub transaction: TransactionId,
    /// The number of the statement in its transaction; 0 when it was refused.
    pub statement: StatementNumber,
    /// Rows that were found and accepted.
    pub matched: u64,
    /// Rows that were changed, inserted or deleted.
    pub changed: u64,
    /// What there is to say besides, also of a statement that failed.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// Rows of a locking read, one buffer for each partition that had some.
    pub outputs: Vec<Buffer>,
    /// The partitions that hold uncommitted writes of the transaction because of this statement.
    pub written: Vec<PartitionId>,
    /// Why it failed.
    pub error: Option<Box<Error>>,
}
