//! Events: the answers of the data plane to a session.

use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::value::Value;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::interrupt_session::KillOutcome;
use junctor_signals::read_rows::OperationId;

use crate::file::{FileAnswer, FileBuffer};

/// An answer to one operation of a session.
#[derive(Debug)]
pub enum Event {
    /// Rows of a read.
    Rows {
        /// The operation.
        operation: OperationId,
        /// The rows, in the form that the program's output defines. The session returns the buffer to the
        /// pool.
        output: Buffer,
        /// Whether `output` begins with the bytes that the session put into the reply buffer.
        is_prefixed: bool,
        /// Number of rows.
        rows: u32,
        /// Index of the partition.
        partition: u16,
        /// Warnings, if any.
        diagnostics: Option<Box<Diagnostics>>,
        /// What follows this reply.
        next: Next,
    },
    /// A read failed. The operation has ended.
    ReadFailed {
        /// The operation.
        operation: OperationId,
        /// Warnings, if any.
        diagnostics: Option<Box<Diagnostics>>,
        /// The error.
        error: Box<Error>,
    },
    /// A writing or locking statement and its operation have ended. The session's view of its transaction is
    /// updated.
    Statement {
        /// The operation.
        operation: OperationId,
        /// Number of rows that the condition accepted.
        matched: u64,
        /// Number of rows changed.
        changed: u64,
        /// Warnings; also present after a failed statement.
        diagnostics: Option<Box<Diagnostics>>,
        /// Rows of a locking read.
        outputs: Vec<Buffer>,
        /// The error, if it failed.
        error: Option<Box<Error>>,
    },
    /// COMMIT or ROLLBACK ended.
    Ended {
        /// The operation.
        operation: OperationId,
        /// The error, if the commit failed.
        error: Option<Box<Error>>,
    },
    /// The statements after a savepoint are undone.
    Undone {
        /// The operation.
        operation: OperationId,
    },
    /// A schema change ended.
    SchemaChanged {
        /// The operation.
        operation: OperationId,
        /// Notes, as (errno, message).
        notes: Vec<(u16, Box<str>)>,
        /// Number of rows that an alteration has checked.
        rows: u64,
        /// Warnings of the values that an alteration has adjusted.
        diagnostics: Option<Box<Diagnostics>>,
        /// The error, if it failed.
        error: Option<Box<Error>>,
    },
    /// AUTO_INCREMENT numbers were reserved.
    AutoIncrement {
        /// The operation.
        operation: OperationId,
        /// The first number.
        first: u64,
        /// Number of consecutive numbers.
        count: u64,
        /// The error, if no numbers were reserved.
        error: Option<Box<Error>>,
    },
    /// Every sql block has handled an interrupt of a session.
    Interrupted {
        /// The operation.
        operation: OperationId,
        /// What became of the session.
        outcome: KillOutcome,
    },
    /// Every sql block has the new values of global variables.
    GlobalsSet {
        /// The operation.
        operation: OperationId,
        /// The error, if no value was set or persisted.
        error: Option<Box<Error>>,
    },
    /// A user-level lock function ended.
    UserLock {
        /// The operation.
        operation: OperationId,
        /// The result of the function.
        value: Value,
        /// The error, if it failed.
        error: Option<Box<Error>>,
    },
    /// A node has done what it was asked to do, or has begun to stop.
    NodeControlled {
        /// The operation.
        operation: OperationId,
        /// Why it has not.
        error: Option<Box<Error>>,
    },
    /// A request about a file of the statement ended.
    File {
        /// The operation.
        operation: OperationId,
        /// The effect, or why there is none.
        step: FileAnswer,
        /// The bytes read, or the buffer of the request; otherwise empty.
        bytes: FileBuffer,
    },
    /// All rows of a status table.
    Status {
        /// The operation.
        operation: OperationId,
        /// The rows.
        rows: Vec<Vec<Value>>,
    },
}

/// What follows one reply of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More replies are outstanding. `Gateway::may_continue` tells whether partitions that have answered have
    /// more rows.
    MoreReplies,
    /// Every partition has answered, and some have more rows: call `Gateway::continue_read` or
    /// `Gateway::end_read`.
    MoreRows,
    /// Nothing. The operation has ended.
    Done,
}
