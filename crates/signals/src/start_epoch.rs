//! The change to a new epoch: reports of all members to its sequencer, and its start at each of them.

use std::sync::Arc;

use junctor_kernel::{Address, NodeId, Outbox};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, Epoch};

use crate::report_node::NodeWords;
use crate::take_number::Decision;
use crate::{MainSignal, Signal};

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
#[derive(Clone, Debug)]
pub struct BeginEpoch {
    /// The epoch.
    pub epoch: Epoch,
    /// The data nodes that are no members.
    pub gone: NodeWords,
    /// The order of the others in chains.
    pub late: LateNodes,
    /// Set while this node copies rows: all numbers above reach it as images.
    pub copies_at: Option<CommitNumber>,
    /// The block that waits until this one has started the epoch.
    pub reply_to: Option<Address>,
}

impl BeginEpoch {
    /// Tells that the block has started the epoch, if somebody waits for it.
    pub fn answer(&self, outbox: &mut Outbox<Signal>) {
        if let Some(to) = self.reply_to {
            let reply = BeginEpochReply { epoch: self.epoch };
            outbox.send(to, Signal::Main(MainSignal::BeginEpochReply(reply)));
        }
    }
}

/// The block has started the epoch: what comes from nodes that are gone is dropped from now on, and nothing
/// of them is left that it would still answer.
#[derive(Clone, Copy, Debug)]
pub struct BeginEpochReply {
    /// The epoch.
    pub epoch: Epoch,
}

/// The nodes that serve since a later epoch than others, and those that do not serve yet. They are the last
/// ones in each chain, in this order, so that a node that returns takes no partition from its primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateNodes(Option<Arc<[NodeId]>>);

impl LateNodes {
    /// These nodes, in this order.
    pub fn new(nodes: &[NodeId]) -> LateNodes {
        LateNodes((!nodes.is_empty()).then(|| nodes.into()))
    }

    /// The primary of a chain without the nodes that are gone.
    #[inline]
    pub fn primary(&self, chain: &[Address], gone: &NodeWords) -> Option<Address> {
        let left = || chain.iter().copied().filter(|at| !has_node(gone, at.node));
        match &self.0 {
            None => left().next(),
            Some(late) => left().min_by_key(|at| place(late, at.node)),
        }
    }

    /// The replicas of a chain without those on nodes that are gone, the primary first.
    pub fn order(&self, chain: &[Address], gone: &NodeWords) -> Vec<Address> {
        let mut left: Vec<Address> = chain.iter().copied().filter(|at| !has_node(gone, at.node)).collect();
        if let Some(late) = &self.0 {
            left.sort_by_key(|at| place(late, at.node));
        }
        left
    }
}

/// The place of a node behind those that are not late, which have place 0.
fn place(late: &[NodeId], node: NodeId) -> usize {
    late.iter().position(|it| *it == node).map_or(0, |place| place + 1)
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
    Error::new(ErrorCode::Deadlock, LOST_WITH_NODE)
}

const LOST_WITH_NODE: &str = "A node of the cluster has left that the transaction had used; try restarting transaction";

/// The error of a transaction that was in prepare when an epoch started. It is rolled back.
#[cold]
pub fn lost_with_epoch() -> Box<Error> {
    Error::new(ErrorCode::Deadlock, LOST_WITH_EPOCH)
}

const LOST_WITH_EPOCH: &str =
    "A node of the cluster has left while the transaction committed; try restarting transaction";

/// Whether this is the error of [`lost_with_node`] or of [`lost_with_epoch`].
pub fn is_of_membership(error: &Error) -> bool {
    error.code == ErrorCode::Deadlock && [LOST_WITH_NODE, LOST_WITH_EPOCH].contains(&&*error.message)
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
