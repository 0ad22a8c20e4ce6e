//! The record of one operation in progress.

use std::sync::Arc;

use junctor_kernel::{Address, Buffer, NodeId};
use junctor_model::id::{CommitNumber, ConnectionId, PartitionId, TransactionId};
use junctor_signals::interrupt_session::KillOutcome;
use junctor_signals::program::ReadProgram;
use junctor_signals::read_rows::{BookedCost, Resume};
use junctor_storage::snapshot::SnapshotHandle;

use crate::file::FileWork;
use crate::gateway::ReadOptions;
use crate::route::Sample;

/// Limit on the rows that a read requests from a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowBound {
    /// Maximum in one reply. The session requests more rows as long as it wants them.
    Reply(u32),
    /// Maximum over all replies; `u32::MAX` for no limit. It implements LIMIT, because the wanted rows of a
    /// partition are among its first ones.
    Partition(u32),
    /// A sample of all rows: maximum in one reply, and how many row ids are left out after each reply.
    Sample {
        /// Rows of a reply.
        rows: u32,
        /// Row ids that are left out.
        skip: u32,
    },
}

impl RowBound {
    /// Maximum number of rows in the next reply of a partition that has returned `rows`; 0 if no more rows
    /// are wanted.
    pub(crate) fn rows_left(self, rows: u32) -> u32 {
        match self {
            RowBound::Reply(most) | RowBound::Partition(most @ u32::MAX) => most,
            RowBound::Partition(most) => most.saturating_sub(rows),
            RowBound::Sample { rows: most, .. } => most,
        }
    }
}

/// An operation of a session.
#[derive(Debug)]
pub(crate) struct Operation {
    pub session: ConnectionId,
    pub work: Work,
}

/// The kind of an operation, with its state.
#[derive(Debug)]
pub(crate) enum Work {
    Read(ReadWork),
    /// A statement at a tc. `may_commit` tells whether it commits without a further request.
    Statement {
        tc: Address,
        may_commit: bool,
    },
    /// The end of a transaction at a tc.
    End {
        tc: Address,
        commits: bool,
        transaction: TransactionId,
        /// A number that was stable before.
        after: CommitNumber,
    },
    /// Statements of a transaction at this tc that are undone.
    Undo(Address),
    Schema,
    AutoIncrement,
    /// KILL. `outstanding` is the number of sql blocks that have not replied yet.
    Interrupt {
        outstanding: u32,
        outcome: KillOutcome,
    },
    /// SET GLOBAL. `outstanding` is the number of sql blocks that have not replied yet.
    Globals {
        outstanding: u32,
    },
    UserLock,
    ControlNode,
    File(Box<FileWork>),
    Status {
        outstanding: u32,
        rows: Vec<Vec<junctor_model::value::Value>>,
    },
}

/// A read. All parts are sent together. A part that stopped at a limit waits until the session wants more.
#[derive(Debug)]
pub(crate) struct ReadWork {
    pub program: Arc<ReadProgram>,
    pub options: ReadOptions,
    pub snapshot: CommitNumber,
    /// The statement's own snapshot, which ends with it; `None` if the transaction has one.
    pub own_snapshot: Option<SnapshotHandle>,
    pub transaction: TransactionId,
    pub outstanding: u32,
    /// Number of outstanding replies that begin with the session's bytes: the first of each partition, or
    /// none.
    pub prefixed: u32,
    pub stopped: Vec<StoppedPart>,
    /// The parts under way at other nodes: the partition of each, and the node.
    pub remote: Vec<(u16, NodeId)>,
    /// The partition of the measured part, and its sample.
    pub sample: Option<Box<(u16, Sample)>>,
    /// The session has ended the read; outstanding replies are dropped.
    pub abandoned: bool,
}

/// A part that stopped at a limit and has more rows.
#[derive(Debug)]
pub(crate) struct StoppedPart {
    pub partition: PartitionId,
    pub to: Address,
    pub booked_cost: BookedCost,
    pub input: Buffer,
    pub resume: Box<Resume>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_per_reply_is_never_used_up() {
        assert_eq!([0, 7, u32::MAX].map(|rows| RowBound::Reply(100).rows_left(rows)), [100; 3]);
    }

    #[test]
    fn a_maximum_per_partition_counts_all_its_replies() {
        assert_eq!([0, 60, 100, 101].map(|rows| RowBound::Partition(100).rows_left(rows)), [100, 40, 0, 0]);
    }

    #[test]
    fn an_unlimited_number_of_rows_stays_unlimited() {
        assert_eq!([0, 60, u32::MAX].map(|rows| RowBound::Partition(u32::MAX).rows_left(rows)), [u32::MAX; 3]);
    }
}
