//! The change to a new epoch: reports of all members to its sequencer, and its start at each of them.

use junctor_kernel::NodeId;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, Epoch};

use crate::report_node::NodeWords;
use crate::take_number::Decision;

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

layout! { Installed { epoch, passed, durable, decisions } }

/// From main to every sql, tc and ldm block of its node: an epoch starts, behind all orders of the epochs
/// before.
#[derive(Clone, Copy, Debug)]
pub struct BeginEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// The data nodes that do not serve.
    pub gone: NodeWords,
}

/// From main to every sql block of its node: the node that ran the schema changes of the cluster is lost, and
/// answers no request.
#[derive(Clone, Copy, Debug)]
pub struct SequencerLost {}

/// Whether the set has the node.
#[inline]
pub fn has_node(words: &NodeWords, node: NodeId) -> bool {
    words[usize::from(node.0) / 64] & 1 << (node.0 % 64) != 0
}

/// The error of a transaction whose versions or locks are lost with a node. It is rolled back.
#[cold]
pub fn lost_with_node() -> Box<Error> {
    let message = "A node of the cluster has left that the transaction had used; try restarting transaction";
    Error::new(ErrorCode::Deadlock, message)
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

layout! { StartEpoch { epoch, prefix, missing } }
