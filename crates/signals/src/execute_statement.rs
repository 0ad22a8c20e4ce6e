//! One writing or locking statement of a transaction, from the gateway of a sql block to the transaction's
//! tc. The tc begins the transaction if necessary, sends every part to its owner ldm, maintains unique
//! entries, and undoes the statement if it fails.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, Epoch, PartitionId, StatementNumber, TransactionId};

use crate::diagnostics::Diagnostics;
use crate::end_transaction::CommitDurability;
use crate::program::{RowProtocol, WriteProgram};
use crate::read_rows::OperationId;

/// The statement's input for each partition.
#[derive(Debug)]
pub enum Parts {
    /// Input of one partition.
    One(u16, Buffer),
    /// Inputs of several partitions, each at most once.
    Many(Box<[(u16, Buffer)]>),
}

/// Locking and staleness rules for the rows that a statement reads in order to lock or change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether scanned ranges and absent keys are locked too, so that no row enters them.
    pub locks_ranges: bool,
    /// A row with a later commit fails with error 1020. 0 accepts the newest version of every row.
    pub changed_after: CommitNumber,
    /// Maximum number of rows that a locking read accepts in each partition; it locks nothing beyond. 0 means
    /// no limit.
    pub rows_max: u32,
    /// Maximum number of warnings returned with text.
    pub warnings_max: u16,
}

layout! { Reading { locks_ranges, changed_after, rows_max, warnings_max } }

/// Executes one statement.
#[derive(Debug)]
pub struct ExecuteStatement {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The last epoch that the sql block knows. A life of the tc's node that was admitted later is not meant.
    pub epoch: Epoch,
    /// The transaction; none begins a new one.
    pub transaction: TransactionId,
    /// Whether the transaction commits with this statement.
    pub autocommit: bool,
    /// When an autocommit statement is answered.
    pub durability: CommitDurability,
    /// Wire form of the rows of a locking read.
    pub protocol: RowProtocol,
    /// Maximum wait for one lock, in milliseconds, before error 1205.
    pub lock_wait_ms: u32,
    /// Whether a lock wait timeout (error 1205) rolls back the whole transaction instead of only the
    /// statement (`innodb_rollback_on_timeout`).
    pub timeout_ends: bool,
    /// How rows are read.
    pub reading: Reading,
    /// Number of the last statement before the newest savepoint; 0 without a savepoint. No rollback can
    /// return to a point between that statement and this one, so versions that only such a point could need
    /// are removed early.
    pub savepoint: StatementNumber,
    /// The planned work.
    pub program: Arc<WriteProgram>,
    /// Input of each partition, in the form of `input.rs`.
    pub parts: Parts,
}

layout! {
    ExecuteStatement {
        operation, reply_to, epoch, transaction, autocommit, durability, protocol, lock_wait_ms, timeout_ends,
        reading, savepoint, program, parts,
    }
}

/// Interrupts a statement, unless that is complete or committing. The statement is undone and answers with
/// error 1317; this signal has no reply. Like [`ExecuteStatement`], it is deferrable (it may wait for space
/// in the receiver's mailbox), so that it cannot overtake the statement.
#[derive(Debug)]
pub struct InterruptStatement {
    /// The operation of the statement.
    pub operation: OperationId,
    /// Receiver of the statement's reply.
    pub reply_to: Address,
}

layout! { InterruptStatement { operation, reply_to } }

/// The reply to [`ExecuteStatement`]. A failed statement has been undone. The victim of a deadlock has been
/// rolled back completely, and so has, with `timeout_ends`, a transaction that waited too long.
#[derive(Debug)]
pub struct ExecuteStatementReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// The transaction, for the next statement; none when it has ended.
    pub transaction: TransactionId,
    /// Number of the statement in its transaction; 0 when it was refused.
    pub statement: StatementNumber,
    /// Rows found and accepted.
    pub matched: u64,
    /// Rows inserted, updated or deleted.
    pub changed: u64,
    /// Present after failures too.
    pub diagnostics: Option<Box<Diagnostics>>,
    /// Rows of a locking read, one buffer for each partition with rows.
    pub outputs: Vec<Buffer>,
    /// Partitions with uncommitted writes of this statement.
    pub written: Vec<PartitionId>,
    /// Why it failed.
    pub error: Option<Box<Error>>,
}

layout! {
    ExecuteStatementReply {
        operation, transaction, statement, matched, changed, diagnostics, outputs, written, error,
    }
}
