//! What the data plane answered, for the session that asked.

use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::value::Value;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::read_rows::OperationId;

/// One answer.
#[derive(Debug)]
pub enum Event {
    /// Rows of a read.
    Rows {
        /// The operation.
        operation: OperationId,
        /// What the program's output says; the session gives the buffer back to the pool.
        output: Buffer,
        /// Whether that begins with what the session had put into the buffer.
        is_prefixed: bool,
        /// How many rows.
        rows: u32,
        /// Of which partition.
        partition: u16,
        /// What there is to say besides.
        diagnostics: Option<Box<Diagnostics>>,
        /// What comes next.
        next: Next,
    },
    /// A read failed; the operation is over.
    ReadFailed {
        /// The operation.
        operation: OperationId,
        /// What there is to say besides.
        diagnostics: Option<Box<Diagnostics>>,
        /// Why.
        error: Box<Error>,
    },
    /// A writing or locking statement is done; the operation is over. The transaction has taken note already.
    Statement {
        /// The operation.
        operation: OperationId,
        /// Rows found and accepted.
        matched: u64,
        /// Rows changed.
        changed: u64,
        /// What there is to say besides, also of a statement that failed.
        diagnostics: Option<Box<Diagnostics>>,
        /// Rows of a locking read.
        outputs: Vec<Buffer>,
        /// Why it failed.
        error: Option<Box<Error>>,
    },
    /// COMMIT or ROLLBACK is done.
    Ended {
        /// The operation.
        operation: OperationId,
        /// Why a commit failed.
        error: Option<Box<Error>>,
    },
    /// The statements after a savepoint are undone.
    Undone {
        /// The operation.
        operation: OperationId,
    },
    /// A schema change is done.
    SchemaChanged {
        /// The operation.
        operation: OperationId,
        /// Notes, as (errno, message).
        notes: Vec<(u16, Box<str>)>,
        /// Why it was refused.
        error: Option<Box<Error>>,
    },
    /// AUTO_INCREMENT numbers.
    AutoIncrement {
        /// The operation.
        operation: OperationId,
        /// The first.
        first: u64,
        /// How many.
        count: u64,
        /// Why there are none.
        error: Option<Box<Error>>,
    },
    /// A session was told to stop, or does not exist.
    Interrupted {
        /// The operation.
        operation: OperationId,
        /// Whether the session exists.
        is_known: bool,
    },
    /// Every sql block has the new values of the server's variables.
    GlobalsSet {
        /// The operation.
        operation: OperationId,
    },
    /// What a function of user-level locks gives.
    UserLock {
        /// The operation.
        operation: OperationId,
        /// Its value.
        value: Value,
        /// Why it has none.
        error: Option<Box<Error>>,
    },
    /// All rows of a status table.
    Status {
        /// The operation.
        operation: OperationId,
        /// The rows.
        rows: Vec<Vec<Value>>,
    },
}

/// What follows the rows of one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More replies are on their way.
    Coming,
    /// Every partition asked has answered, and some have more: `Gateway::continue_read` or `Gateway::end_read`.
    Ask,
    /// Nothing; the operation is over.
    Done,
}
