//! The state of a node of a cluster, which every node reports to all voters with each tick. A report may be
//! lost: the next one has everything.

use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, Incarnation};

/// A set of nodes: bit N mod 64 of word N div 64 for node N.
pub type NodeWords = [u64; 4];

/// The disk of a data node that waits for its admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingDisk {
    /// The epoch of its last start; 0 for a new disk.
    pub started: Epoch,
    /// The stable number of the last group of its log.
    pub stable: CommitNumber,
    /// The newest commit of its checkpoint; 0 without one. A checkpoint of a disk that counts is written when
    /// every disk that counts has this commit.
    pub checkpoint: CommitNumber,
}

layout! { WaitingDisk { started, stable, checkpoint } }

/// The voter of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoterReport {
    /// The id of the voter; 0 as long as the node has none.
    pub voter: u64,
    /// Whether this process found the files of a voter at its start.
    pub had_files: bool,
    /// Whether the voter has no log, and asks the leader to count it in place of the one that lost its files.
    pub is_joining: bool,
    /// The nodes whose voters this process has heard.
    pub heard: NodeWords,
    /// The leases of nodes that the log evicts up to an entry are over: the term of the voter, and position
    /// and term of the entry. All 0 as long as there is no such entry.
    pub leases_over: [u64; 3],
}

layout! { VoterReport { voter, had_files, is_joining, heard, leases_over } }

/// A node that holds up the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowNode {
    /// The node.
    pub node: NodeId,
    /// Whether its disk stands still. Otherwise it applies no commits.
    pub is_disk: bool,
}

layout! { SlowNode { node, is_disk } }

/// Reports the state of a node. From main to the mains of all voters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportNode {
    /// The state.
    pub report: Box<NodeReport>,
}

layout! { ReportNode { report } }

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The life of the node.
    pub incarnation: Incarnation,
    /// The nodes that the node hears.
    pub hears: NodeWords,
    /// The leader that sent the installed membership; node 0 before the first.
    pub leader: NodeId,
    /// Position of the installed membership in the log of memberships; 0 before the first.
    pub index: u64,
    /// The last epoch that the node has started.
    pub started: Epoch,
    /// The last epoch for whose sequencer, on this node, the leases of evicted nodes are over.
    pub leases_over: Epoch,
    /// Set as long as a data node waits for its admission.
    pub disk: Option<WaitingDisk>,
    /// Number of its ldm and of its tc instances, which must be the same on all data nodes.
    pub instances: (u16, u16),
    /// Whether a joining node has the rows that it must have to serve.
    pub has_copies: bool,
    /// On the node with the sequencer: the nodes whose disks have everything that they need for a mark.
    pub markable: NodeWords,
    /// On the node with the sequencer: whether no schema change runs, so that a node may join.
    pub admits: bool,
    /// On the node with the sequencer: a node that stands still while others advance.
    pub slow: Option<SlowNode>,
    /// On the node with the sequencer: every disk that counts has the commits up to this number; 0 elsewhere.
    pub durable: CommitNumber,
    /// On the node with the sequencer: whether no table has partitions in the node group that leaves, by
    /// schema changes that are in `durable`.
    pub is_left_group_empty: bool,
    /// The voter of the node.
    pub voter: VoterReport,
    /// The node stops: it must not stand for its group any more.
    pub is_stopping: bool,
    /// The node waits to be removed, and then stops.
    pub is_leaving: bool,
}

layout! {
    NodeReport {
        incarnation, hears, leader, index, started, leases_over, disk, instances, has_copies, markable, admits, slow,
        durable, is_left_group_empty, voter, is_stopping, is_leaving,
    }
}
