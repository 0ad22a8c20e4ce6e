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
    /// The order of the others in chains, and which of them chains do not name.
    pub late: LateNodes,
    /// Set while this node copies rows: all numbers above reach it as images.
    pub copies_at: Option<CommitNumber>,
    /// The epoch in which a cluster with voters admitted this life of the node; 0 in other clusters.
    pub admitted: Epoch,
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
///
/// It also has the nodes that were added to a group as further replicas, members or not. The chains of
/// catalogs do not name them; they belong to each chain that names the node beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateNodes(Option<Arc<Exceptions>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Exceptions {
    late: Box<[NodeId]>,
    added: Box<[(NodeId, NodeId)]>,
}

impl LateNodes {
    /// The late nodes, in this order, and the added ones, each with a node that has the same partitions.
    pub fn new(late: &[NodeId], added: &[(NodeId, NodeId)]) -> LateNodes {
        let has_some = !late.is_empty() || !added.is_empty();
        LateNodes(has_some.then(|| Arc::new(Exceptions { late: late.into(), added: added.into() })))
    }

    /// The primary of a chain without the nodes that are gone.
    #[inline]
    pub fn primary(&self, chain: &[Address], gone: &NodeWords) -> Option<Address> {
        let is_left = |at: &Address| !has_node(gone, at.node);
        match &self.0 {
            None => chain.iter().copied().find(is_left),
            Some(it) => self.whole(chain).filter(is_left).min_by_key(|at| it.place(at.node)),
        }
    }

    /// The replicas of a chain without those on nodes that are gone, the primary first.
    pub fn order(&self, chain: &[Address], gone: &NodeWords) -> Vec<Address> {
        let is_left = |at: &Address| !has_node(gone, at.node);
        match &self.0 {
            None => chain.iter().copied().filter(is_left).collect(),
            Some(it) => {
                let mut left: Vec<Address> = self.whole(chain).filter(is_left).collect();
                left.sort_by_key(|at| it.place(at.node));
                left
            }
        }
    }

    /// All replicas of a chain, also those on nodes that are gone: those with which the group began, then the
    /// added ones by their numbers.
    pub fn whole<'a>(&'a self, chain: &'a [Address]) -> impl Iterator<Item = Address> + 'a {
        let is_first = |at: &Address| self.0.as_ref().is_none_or(|it| !it.is_added(at.node));
        let added = self.0.iter().flat_map(|it| it.added_to(chain));
        chain.iter().copied().filter(is_first).chain(added)
    }

    /// The replica of a chain on a node.
    #[inline]
    pub fn replica_on(&self, chain: &[Address], node: NodeId) -> Option<Address> {
        match chain.iter().copied().find(|at| at.node == node) {
            None if self.0.is_some() => self.whole(chain).find(|at| at.node == node),
            found => found,
        }
    }

    /// Whether a node was added as a replica that `before` does not know.
    pub fn adds_to(&self, before: &LateNodes) -> bool {
        let added = |it: &LateNodes| it.0.as_ref().map_or(Vec::new(), |it| it.added.to_vec());
        let known = added(before);
        added(self).iter().any(|it| !known.contains(it))
    }
}

impl Exceptions {
    fn is_added(&self, node: NodeId) -> bool {
        self.added.iter().any(|(added, _)| *added == node)
    }

    /// The added replicas of a chain. An ldm names itself in the chains of its partitions, and has the same
    /// order as the others nevertheless.
    fn added_to<'a>(&'a self, chain: &'a [Address]) -> impl Iterator<Item = Address> + 'a {
        let added = self.added.iter().filter(move |(_, beside)| chain.iter().any(|at| at.node == *beside));
        // All replicas of a partition are at the same instance of their nodes.
        added.filter_map(|(node, _)| Some(Address { node: *node, ..*chain.first()? }))
    }

    /// The place of a node behind those that are not late, which have place 0.
    fn place(&self, node: NodeId) -> usize {
        self.late.iter().position(|it| *it == node).map_or(0, |place| place + 1)
    }
}

/// From main to every sql block of its node: the node that ran the schema changes of the cluster is lost, and
/// answers no request.
#[derive(Clone, Copy, Debug)]
pub struct SequencerLost {
    /// The lost node.
    pub node: NodeId,
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn added_replicas_belong_to_the_chains_of_their_group() {
        let at = |node: u8| Address::new(NodeId(node), Module::Ldm, 1);
        let chain = |nodes: &[u8]| nodes.iter().map(|node| at(*node)).collect::<Vec<_>>();
        let gone = |nodes: &[u8]| {
            nodes.iter().fold([0; 4], |mut words: NodeWords, node| {
                words[0] |= 1 << node;
                words
            })
        };
        // Node 5 was added beside node 1, and node 6 beside node 3.
        let added = [(NodeId(5), NodeId(1)), (NodeId(6), NodeId(3))];
        let late = LateNodes::new(&[NodeId(5)], &added);
        assert_eq!(late.order(&chain(&[2, 1]), &gone(&[])), chain(&[2, 1, 5]));
        assert_eq!(late.order(&chain(&[2, 1]), &gone(&[1])), chain(&[2, 5]), "node 1 is gone, and its group is not");
        assert_eq!(late.order(&chain(&[1]), &gone(&[5, 6])), chain(&[1]));
        assert_eq!(late.primary(&chain(&[1]), &gone(&[1])), Some(at(5)));
        assert_eq!(late.primary(&chain(&[1]), &gone(&[])), Some(at(1)));
        // An ldm names itself in the chains of its partitions, and has the order of the others.
        assert_eq!(late.order(&chain(&[1, 5]), &gone(&[])), chain(&[1, 5]));
        let three = LateNodes::new(&[], &[(NodeId(5), NodeId(1)), (NodeId(6), NodeId(1))]);
        for own in [&[1][..], &[1, 5], &[1, 6]] {
            assert_eq!(three.order(&chain(own), &gone(&[])), chain(&[1, 5, 6]));
        }
        assert_eq!(
            (late.replica_on(&chain(&[1]), NodeId(5)), late.replica_on(&chain(&[1]), NodeId(6))),
            (Some(at(5)), None)
        );
        assert_eq!(late.replica_on(&chain(&[3, 4]), NodeId(6)), Some(at(6)));
        // Without exceptions, and when a node that was late has come first.
        assert_eq!(LateNodes::new(&[], &[]), LateNodes::default());
        let reversed = LateNodes::new(&[NodeId(1)], &added);
        assert_eq!(reversed.order(&chain(&[1]), &gone(&[])), chain(&[5, 1]));
        assert!(
            late.adds_to(&LateNodes::default()) && !late.adds_to(&reversed) && !LateNodes::default().adds_to(&late)
        );
    }
}
