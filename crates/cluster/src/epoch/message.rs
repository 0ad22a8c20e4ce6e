//! Messages of an epoch, between the sequencer and the mirrors. Each names the epoch of its sender: a
//! receiver drops what is older than its own epoch.

use std::sync::Arc;

use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId};

/// Participants that a decision holds without an allocation.
const FEW: usize = 7;

/// An ldm that takes part in a transaction: a primary or a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Participant {
    /// Its node.
    pub node: NodeId,
    /// Whether it has versions of the transaction, and not only locks.
    pub has_written: bool,
    /// Its instance.
    pub ldm: u16,
}

/// The participants of a transaction. Their copy is cheap, because every node of the transaction gets one.
#[derive(Clone, Debug)]
pub enum Participants {
    /// The first `count` of the list.
    #[allow(missing_docs)]
    Few { count: u8, list: [Participant; FEW] },
    /// More than fit above.
    Many(Arc<[Participant]>),
}

impl Participants {
    /// The participants of a transaction.
    pub fn new(participants: &[Participant]) -> Participants {
        if participants.len() > FEW {
            return Participants::Many(participants.into());
        }
        let mut list = [Participant::default(); FEW];
        list[..participants.len()].copy_from_slice(participants);
        Participants::Few { count: participants.len() as u8, list }
    }

    /// All of them.
    #[inline]
    pub fn as_slice(&self) -> &[Participant] {
        match self {
            Participants::Few { count, list } => &list[..usize::from(*count)],
            Participants::Many(list) => list,
        }
    }
}

impl PartialEq for Participants {
    fn eq(&self, other: &Participants) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Participants {}

/// A transaction that asks for a number, or has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its number; 0 in a request.
    pub number: CommitNumber,
    /// The transaction.
    pub transaction: GlobalTransactionId,
    /// Every replica of its partitions, and every ldm with locks only.
    pub participants: Participants,
    /// Whether the client waits for the disk. The nodes then begin their log's next cycle at once.
    pub awaits_disk: bool,
}

impl Decision {
    /// Whether the node has a part in the transaction, or its tc.
    #[inline]
    pub fn concerns(&self, node: NodeId) -> bool {
        self.transaction.node == node.0 || self.participants.as_slice().iter().any(|it| it.node == node)
    }
}

// One decision is one cache line. The sequencer copies it once for each node of the transaction.
const _: () = assert!(size_of::<Decision>() <= 64);

/// From a node to the sequencer: transactions that are prepared at all their participants. A node has one
/// unanswered batch; [`Decide::batch_numbered`] answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeNumber {
    /// The epoch of the sender.
    pub epoch: Epoch,
    /// Counts the batches of the node in this epoch, from 1.
    pub batch: u64,
    /// The transactions.
    pub requests: Vec<Decision>,
}

/// From the sequencer to a node. A node has at most two unanswered ones; [`Applied::received`] answers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decide {
    /// The epoch of the sequencer.
    pub epoch: Epoch,
    /// Counts the messages to this node in this epoch, from 1.
    pub batch: u64,
    /// The last batch of [`TakeNumber`] of this node that has its numbers.
    pub batch_numbered: u64,
    /// Every decision up to here that concerns the node is in this message or in an earlier one.
    pub upto: CommitNumber,
    /// The least applied number of the other serving nodes; 0 until all have started the epoch.
    pub others: CommitNumber,
    /// The least applied number of all members, joining ones too; 0 until all have started the epoch.
    pub least_applied: CommitNumber,
    /// C: every serving node has a stable number that is at least this. 0 while evicted nodes may have
    /// leases.
    pub confirmed: CommitNumber,
    /// G: synced at every durable node; 0 if a group has none.
    pub durable: CommitNumber,
    /// No snapshot of any serving node is below.
    pub horizon: CommitNumber,
    /// The decisions, ascending.
    pub decisions: Vec<Decision>,
}

/// From a node to the sequencer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The epoch that the node has started.
    pub epoch: Epoch,
    /// The last [`Decide`] that has arrived.
    pub received: u64,
    /// A: the node has applied all its decisions up to here.
    pub applied: CommitNumber,
    /// M: the node knows that all serving nodes have applied their decisions up to here.
    pub stable: CommitNumber,
    /// D: synced at this node.
    pub durable: CommitNumber,
    /// No snapshot that the node holds or will choose is below.
    pub oldest_snapshot: CommitNumber,
}

/// From a node that has installed a membership to the sequencer of that membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The installed epoch.
    pub epoch: Epoch,
    /// The last number that the mirror has passed to its blocks; 0 if the node has started no epoch.
    pub passed: CommitNumber,
    /// D: synced at this node.
    pub durable: CommitNumber,
    /// The decisions that some member may not have applied, ascending.
    pub decisions: Vec<Decision>,
}

/// From the sequencer of a new epoch to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// H: the last number of the epochs before. Numbers up to it that no member knows are void.
    pub prefix: CommitNumber,
    /// The decisions up to `prefix` that concern the node and that it lacks, ascending.
    pub missing: Vec<Decision>,
}
