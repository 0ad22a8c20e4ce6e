//! The record of one operation that is under way.

use std::sync::Arc;

use junctor_kernel::{Address, Buffer};
use junctor_model::id::{CommitNumber, ConnectionId, PartitionId, TransactionId};
use junctor_signals::program::{ReadProgram, RowProtocol};
use junctor_signals::read_rows::Resume;
use junctor_storage::snapshot::SnapshotHandle;

/// One operation of a session.
#[derive(Debug)]
pub(crate) struct Operation {
    pub session: ConnectionId,
    pub work: Work,
}

/// What is under way.
#[derive(Debug)]
pub(crate) enum Work {
    Read(ReadWork),
    /// At this tc.
    Statement(Address),
    End,
    Undo,
    /// Whether the operation stays for the next change that belongs to the same statement.
    Schema {
        stays: bool,
    },
    AutoIncrement,
    /// Answers of sql blocks that are still to come, and whether one of them has the session.
    Interrupt {
        outstanding: u32,
        is_known: bool,
    },
    /// Answers of sql blocks that are still to come.
    Globals {
        outstanding: u32,
    },
    UserLock,
    Status {
        outstanding: u32,
        rows: Vec<Vec<junctor_model::value::Value>>,
    },
}

/// A read: parts are asked all at once; a part that was cut at its batch limit waits until the session wants more.
#[derive(Debug)]
pub(crate) struct ReadWork {
    pub program: Arc<ReadProgram>,
    pub protocol: RowProtocol,
    pub rows_max: u32,
    pub snapshot: CommitNumber,
    /// The statement's own snapshot, ended with it; `None` when the transaction has one.
    pub own_snapshot: Option<SnapshotHandle>,
    pub transaction: TransactionId,
    pub outstanding: u32,
    /// How many replies will still begin with what the session had put into the buffer: the first of each partition, or none.
    pub prefixed: u32,
    pub cut: Vec<CutPart>,
    /// The session wants no more; what still comes is dropped.
    pub abandoned: bool,
}

/// A part that has more.
#[derive(Debug)]
pub(crate) struct CutPart {
    pub partition: PartitionId,
    pub to: Address,
    pub input: Buffer,
    pub resume: Box<Resume>,
}
