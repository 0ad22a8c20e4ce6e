//! The copy of the rows of a partition to a node that returns. The ldm of that node asks the primary for the
//! next rows when it has put the ones before, so that the copy takes no more room or time than it can use.

use junctor_kernel::{Address, Buffer};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, Epoch, PartitionId, RowId};

/// Asks for the next rows of a partition. To the primary.
#[derive(Clone, Copy, Debug)]
pub struct CopyRows {
    /// The ldm that copies.
    pub reply_to: Address,
    /// Its epoch. A primary in a later epoch drops the request.
    pub epoch: Epoch,
    /// The partition.
    pub partition: PartitionId,
    /// The first row.
    pub from: RowId,
    /// The snapshot.
    pub at: CommitNumber,
}

layout! { CopyRows { reply_to, epoch, partition, from, at } }

/// The reply to [`CopyRows`].
#[derive(Debug)]
pub struct CopyRowsReply {
    /// Copied from the request.
    pub epoch: Epoch,
    /// Copied from the request.
    pub partition: PartitionId,
    /// Copied from the request.
    pub from: RowId,
    /// The first row of the next request; `None` at the end. Equal to `from` if the primary has not applied
    /// all commits up to the snapshot yet.
    pub next: Option<RowId>,
    /// The rows that the snapshot sees, in the form of `ReplicateRows`.
    pub rows: Buffer,
    /// Number of rows of the partition at the primary, for those who watch the copy.
    pub partition_rows: u64,
    /// Why the rows cannot be copied.
    pub error: Option<Box<Error>>,
}

layout! { CopyRowsReply { epoch, partition, from, next, rows [buffer], partition_rows, error } }

/// From main to every ldm of a node that returns: copy the rows of all partitions, which exist.
#[derive(Clone, Copy, Debug)]
pub struct CopyPartitions {
    /// Main.
    pub reply_to: Address,
}

/// The ldm has all rows of its partitions.
#[derive(Debug)]
pub struct CopyPartitionsReply {
    /// Why it has not.
    pub error: Option<Box<Error>>,
}
