//! Row images along the replica chain: from the primary ldm to the first backup, and on to the next. Backups obey: they keep
//! the images as prepared until the commit passes, and never evaluate.

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, PartitionId, TransactionId};

/// Keep these images as prepared, and pass them on; the last of the chain answers the primary.
#[derive(Debug)]
pub struct ReplicateRows {
    /// The transaction.
    pub transaction: TransactionId,
    /// The partition.
    pub partition: PartitionId,
    /// The primary.
    pub primary: Address,
    /// This backup's place in the chain, from 1.
    pub place: u8,
    /// `[row id u32][kind u8: 0 put, 1 delete][key length u16][image length u32] key image`, repeated.
    pub images: Buffer,
}

/// The answer of the last backup, or of the first one that could not keep the images.
#[derive(Debug)]
pub struct ReplicateRowsReply {
    /// The transaction.
    pub transaction: TransactionId,
    /// The partition.
    pub partition: PartitionId,
    /// The buffer given back.
    pub images: Buffer,
    /// Why a backup could not keep the images (memory).
    pub error: Option<Box<Error>>,
}

/// Apply (or, with number 0, forget) what is prepared; travels from the last backup towards the primary.
#[derive(Debug)]
pub struct ApplyReplica {
    /// The transaction.
    pub transaction: TransactionId,
    /// The partition.
    pub partition: PartitionId,
    /// The primary, where the signal ends.
    pub primary: Address,
    /// This backup's place in the chain; 0 is the primary.
    pub place: u8,
    /// The commit number; 0 forgets.
    pub number: CommitNumber,
    /// How many partitions the transaction has written, for the backup's redo records.
    pub participants: u32,
}
