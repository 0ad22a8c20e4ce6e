//! Decisions of the sequencer, and reports of the nodes. Each message names the epoch of its sender: a
//! receiver drops what is older than its own epoch.

use junctor_model::id::{CommitNumber, Epoch};

use crate::take_number::Decision;

/// From the sequencer to a node. A node has at most three unanswered ones; [`Applied::received`] answers
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decide {
    /// The epoch of the sequencer.
    pub epoch: Epoch,
    /// Counts the messages to this node in this epoch, from 1.
    pub batch: u64,
    /// The last batch of [`TakeNumber`](crate::take_number::TakeNumber) of this node that has its numbers.
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
    /// A client or a node waits until these numbers are on every disk. Every log begins its next cycle at
    /// once, also that of a node without a part in them.
    pub wanted_on_disk: CommitNumber,
    /// The decisions, ascending.
    pub decisions: Vec<Decision>,
}

layout! {
    Decide {
        epoch, batch, batch_numbered, upto, others, least_applied, confirmed, durable, horizon,
        wanted_on_disk, decisions,
    }
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
    /// The node waits until this number is on every disk.
    pub wanted_on_disk: CommitNumber,
}

layout! { Applied { epoch, received, applied, stable, durable, oldest_snapshot, wanted_on_disk } }
