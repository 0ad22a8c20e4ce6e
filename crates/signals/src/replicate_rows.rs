//! Row images along the replica chain, from the primary ldm to the first backup and on to the next. Backups
//! keep the images as prepared until tc commits or undoes the transaction. They evaluate no expressions.

use junctor_kernel::Address;
use junctor_kernel::Buffer;
use junctor_model::error::Error;
use junctor_model::id::{Epoch, PartitionId, TransactionId};

/// Keeps these images as prepared and passes them on. The last backup answers.
#[derive(Debug)]
pub struct ReplicateRows {
    /// The transaction that prepares.
    pub transaction: TransactionId,
    /// The epoch of the primary. A backup in a later epoch drops the images.
    pub epoch: Epoch,
    /// Partition of the rows.
    pub partition: PartitionId,
    /// The ldm that has written the rows.
    pub primary: Address,
    /// Receiver of the answer: the primary, which gets [`ReplicateRowsReply`]; or tc, which gets the answer
    /// to its prepare, because these are all images of the participant.
    pub reply_to: Address,
    /// Position of the receiving backup in the chain, from 1.
    pub chain_position: u8,
    /// `[row id u32][kind u8: 0 put, 1 delete][key length u16][image length u32] key image`, repeated.
    pub images: Buffer,
}

layout! { ReplicateRows { transaction, epoch, partition, primary, reply_to, chain_position, images [buffer] } }

/// The answer of the last backup, or of the first one that could not keep the images.
#[derive(Debug)]
pub struct ReplicateRowsReply {
    /// Copied from the request.
    pub transaction: TransactionId,
    /// Copied from the request.
    pub epoch: Epoch,
    /// Copied from the request.
    pub partition: PartitionId,
    /// The buffer, returned for reuse.
    pub images: Buffer,
    /// Why a backup could not keep the images (memory).
    pub error: Option<Box<Error>>,
}

layout! { ReplicateRowsReply { transaction, epoch, partition, images [returned], error } }
