//! The change to a new epoch: reports of all members to its sequencer, and its start at each of them.

use junctor_kernel::NodeId;
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

/// From main to every tc and ldm of its node: an epoch starts, behind all orders of the epochs before.
#[derive(Clone, Copy, Debug)]
pub struct BeginEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// The nodes whose lives have ended with the epochs before.
    pub gone: NodeWords,
}

/// Whether the set has the node.
#[inline]
pub fn has_node(words: &NodeWords, node: NodeId) -> bool {
    words[usize::from(node.0) / 64] & 1 << (node.0 % 64) != 0
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
