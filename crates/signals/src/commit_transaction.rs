//! The end of a transaction at its participants: prepare along the replica chain, commit with a number, or
//! undo. From tc to every ldm that holds writes or locks of the transaction.

use junctor_kernel::{Address, NodeId};
use junctor_model::error::Error;
use junctor_model::id::{CommitNumber, Epoch, StatementNumber, TransactionId};

use crate::{MainSignal, Module, Signal, TcSignal};

/// Stores the row images at the backups, so that the commit cannot fail afterwards.
#[derive(Debug)]
pub struct PrepareTransaction {
    /// The transaction to prepare.
    pub transaction: TransactionId,
    /// The epoch of tc. An ldm in a later epoch drops the order, because tc will undo the transaction.
    pub epoch: Epoch,
    /// The coordinating tc.
    pub reply_to: Address,
}

layout! { PrepareTransaction { transaction, epoch, reply_to } }

/// The reply to [`PrepareTransaction`]: the whole chain of every partition of this participant is prepared.
/// The last replica of the chain sends it, if the images of a short transaction in one partition went along.
#[derive(Debug)]
pub struct PrepareTransactionReply {
    /// Copied from the request.
    pub transaction: TransactionId,
    /// Copied from the request.
    pub epoch: Epoch,
    /// The ldm that got the request.
    pub from: Address,
    /// Blocks of the log that the records formed so far need at most.
    pub chunk_blocks: u64,
    /// Why the transaction cannot commit.
    pub error: Option<Box<Error>>,
}

layout! { PrepareTransactionReply { transaction, epoch, from, chunk_blocks, error } }

/// The part that an ldm has in a transaction. An ldm that is primary of one partition and backup of another
/// has two parts, which end separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionPart {
    /// Locks, and no version.
    #[default]
    Locks,
    /// Versions that the transaction has written here, and locks.
    Rows,
    /// Images of rows that it has written at their primary.
    Images,
}

choices! {
    TransactionPart {
        0 Locks;
        1 Rows;
        2 Images;
    }
}

/// Stamps the versions with the number, forms the log record and releases the locks. Replicas get the order
/// in any sequence, because nobody sees the versions before all have applied it.
#[derive(Debug)]
pub struct CommitTransaction {
    /// The transaction to commit.
    pub transaction: TransactionId,
    /// Receiver of the reply: the coordinating tc; or main of the ldm's node, which passes on the decisions
    /// of a cluster.
    pub reply_to: Address,
    /// The transaction's commit number.
    pub number: CommitNumber,
    /// Identifies the decision at that main; 0 for a tc. The reply repeats it.
    pub position: u64,
    /// Number of ldm instances that the transaction has written to, for the log records.
    pub participants: u16,
    /// What ends. An ldm with versions or images must know the transaction.
    pub part: TransactionPart,
}

layout! { CommitTransaction { transaction, reply_to, number, position, participants, part } }

/// The reply to [`CommitTransaction`]: applied at this ldm.
#[derive(Debug)]
pub struct CommitTransactionReply {
    /// Copied from the request.
    pub transaction: TransactionId,
    /// The answering ldm.
    pub from: Address,
    /// Copied from the request.
    pub part: TransactionPart,
    /// Copied from the request.
    pub position: u64,
}

layout! { CommitTransactionReply { transaction, from, part, position } }

impl CommitTransactionReply {
    /// The signal to the receiver that the request names.
    #[inline]
    pub fn to(self, receiver: Address) -> Signal {
        match receiver.module == Module::Main {
            true => Signal::Main(MainSignal::CommitTransactionReply(self)),
            false => Signal::Tc(TcSignal::CommitTransactionReply(self)),
        }
    }
}

/// Undoes the versions that statements after a given one have written, in bounded steps.
#[derive(Debug)]
pub struct UndoTransaction {
    /// The transaction to undo.
    pub transaction: TransactionId,
    /// The epoch of tc. An ldm in a later epoch obeys all the same, because nothing else frees the locks.
    pub epoch: Epoch,
    /// The coordinating tc.
    pub reply_to: Address,
    /// Versions of later statements are undone.
    pub newer_than: StatementNumber,
    /// Whether the transaction is over: its locks are released, and its record is removed.
    pub ends: bool,
    /// Whether a backup forgets its images, which only an undo of everything does.
    pub is_backup: bool,
}

layout! { UndoTransaction { transaction, epoch, reply_to, newer_than, ends, is_backup } }

/// The reply to [`UndoTransaction`].
#[derive(Debug)]
pub struct UndoTransactionReply {
    /// Copied from the request.
    pub transaction: TransactionId,
    /// Copied from the request.
    pub epoch: Epoch,
    /// The answering ldm.
    pub from: Address,
    /// Blocks of the log that the remaining records of the transaction need at most.
    pub log_blocks: u32,
}

layout! { UndoTransactionReply { transaction, epoch, from, log_blocks } }

/// Send `CommitStable` to the transaction's tc when this number is stable. From tc to tc on a node alone; in
/// a cluster from tc to main of its node.
#[derive(Debug)]
pub struct AwaitStable {
    /// A number that the receiver has taken. Main may get one whose decision it has not seen.
    pub number: CommitNumber,
    /// The transaction that waits for it.
    pub transaction: TransactionId,
}

/// The tc that coordinates a transaction.
pub fn coordinator(transaction: TransactionId) -> Address {
    Address::new(NodeId(transaction.node()), Module::Tc, transaction.tc())
}

/// The owner of the numbers that main takes. No tc has this instance.
pub const MAIN_OWNER: u16 = u16::MAX;

/// A number has become stable. Sent to the tc or main that took it, and from a tc to every tc that asked by
/// `AwaitStable`. In a cluster main sends it, and the number is confirmed: stable at every serving node.
#[derive(Debug)]
pub struct CommitStable {
    /// The stable number.
    pub number: CommitNumber,
}

/// A number that statements have seen has become stable at this node. From main to tc of its node, in a
/// cluster.
#[derive(Debug)]
pub struct SeenStable {
    /// The stable number.
    pub number: CommitNumber,
}

impl CommitStable {
    /// The block of a node that took the number as `owner`, and the signal for it.
    pub fn for_owner(number: CommitNumber, owner: u16, node: NodeId) -> (Address, Signal) {
        let signal = CommitStable { number };
        match owner {
            MAIN_OWNER => (Address::new(node, Module::Main, 0), Signal::Main(MainSignal::CommitStable(signal))),
            _ => (Address::new(node, Module::Tc, owner), Signal::Tc(TcSignal::CommitStable(signal))),
        }
    }
}
