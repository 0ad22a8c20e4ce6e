//! The record of one operation that is under way.

use std::sync::Arc;

use junctor_kernel::{Address, Buffer};
use junctor_model::id::{CommitNumber, ConnectionId, PartitionId, TransactionId};
use junctor_signals::program::ReadProgram;
use junctor_signals::read_rows::{Charge, Resume};
use junctor_storage::snapshot::SnapshotHandle;

use crate::gateway::ReadOptions;
use crate::route::Sample;

/// How many rows a read asks a partition for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowBound {
    /// At most so many in one reply; the session asks for more while it wants more.
    Reply(u32),
    /// At most so many in all, in however many replies they come; `u32::MAX` is no bound. Enough for a LIMIT: whichever
    /// rows of a partition are wanted are among its first.
    Partition(u32),
}

impl RowBound {
    /// What the next reply of a partition may have that has given so many; 0 when no more is wanted of it.
    pub(crate) fn left(self, rows: u32) -> u32 {
        match self {
            RowBound::Reply(most) | RowBound::Partition(most @ u32::MAX) => most,
            RowBound::Partition(most) => most.saturating_sub(rows),
        }
    }
}

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
    pub options: ReadOptions,
    pub snapshot: CommitNumber,
    /// The statement's own snapshot, ended with it; `None` when the transaction has one.
    pub own_snapshot: Option<SnapshotHandle>,
    pub transaction: TransactionId,
    pub outstanding: u32,
    /// How many replies will still begin with what the session had put into the buffer: the first of each partition, or none.
    pub prefixed: u32,
    pub cut: Vec<CutPart>,
    /// The part that is measured, by its partition.
    pub sample: Option<Box<(u16, Sample)>>,
    /// The session wants no more; what still comes is dropped.
    pub abandoned: bool,
}

/// A part that has more.
#[derive(Debug)]
pub(crate) struct CutPart {
    pub partition: PartitionId,
    pub to: Address,
    pub charge: Charge,
    pub input: Buffer,
    pub resume: Box<Resume>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_replies_is_never_used_up() {
        assert_eq!([0, 7, u32::MAX].map(|rows| RowBound::Reply(100).left(rows)), [100; 3]);
    }

    #[test]
    fn a_partition_gives_no_more_than_its_bound_in_all() {
        assert_eq!([0, 60, 100, 101].map(|rows| RowBound::Partition(100).left(rows)), [100, 40, 0, 0]);
    }

    #[test]
    fn all_rows_stay_all_rows() {
        assert_eq!([0, 60, u32::MAX].map(|rows| RowBound::Partition(u32::MAX).left(rows)), [u32::MAX; 3]);
    }
}
