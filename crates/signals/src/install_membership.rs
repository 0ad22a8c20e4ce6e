//! The membership, from raft's leader to every node, and the messages by which voters agree on it. Both are
//! bytes that `junctor_cluster::membership` encodes.

use std::sync::Arc;

use junctor_kernel::NodeId;
use junctor_model::id::{Epoch, Incarnation};

/// Installs a committed membership. From main of the leader to main of a node whose reports name an older one
/// or another leader.
#[derive(Clone, Debug)]
pub struct InstallMembership {
    /// The leader.
    pub leader: NodeId,
    /// Position of the membership in the log. A later one replaces an earlier one.
    pub index: u64,
    /// The encoded membership.
    pub membership: Arc<[u8]>,
    /// Whether all data nodes must start again, because all nodes of a group are gone.
    pub must_restart: bool,
    /// A life of the node that waits, and why it is not admitted: it must end.
    pub refusal: Option<(Incarnation, Box<str>)>,
}

layout! { InstallMembership { leader, index, membership, must_restart, refusal } }

/// A message between the voters of two nodes. It may be lost.
#[derive(Clone, Debug)]
pub struct ReplicateMembership {
    /// The voter that sends it.
    pub from: u64,
    /// The encoded message.
    pub message: Box<[u8]>,
}

layout! { ReplicateMembership { from, message } }

/// The leases of all nodes that memberships up to this epoch have evicted are over. From main of the leader
/// to main of the node with the sequencer, until its reports say that it knows.
#[derive(Clone, Copy, Debug)]
pub struct LeasesOver {
    /// The epoch.
    pub epoch: Epoch,
}

layout! { LeasesOver { epoch } }
