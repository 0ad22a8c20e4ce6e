//! Snapshots of nodes that serve clients without data. A sql block of such a node asks main of a data node,
//! its *host*, for a snapshot before each statement.

use junctor_kernel::{Address, NodeId};
use junctor_model::id::{CommitNumber, Incarnation};

/// Asks for a snapshot. From a sql block to main of its host, which keeps the versions that the block may
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskSnapshot {
    /// The sql block.
    pub reply_to: Address,
    /// Counts the requests of the block. One is under way at a time.
    pub request: u64,
    /// No snapshot of the block is older, until the reply. The largest number before the first one.
    pub oldest: CommitNumber,
}

layout! { AskSnapshot { reply_to, request, oldest } }

/// The reply to [`AskSnapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskSnapshotReply {
    /// Copied from the request.
    pub request: u64,
    /// Every commit that was acknowledged before the request is at or below this number, and applied at all
    /// replicas.
    pub number: CommitNumber,
}

layout! { AskSnapshotReply { request, number } }

/// From main of a node without data to its sql blocks: statements run at this data node from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseHost {
    /// The data node.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
    /// Number of its tc blocks.
    pub tc: u16,
}

/// From main to every tc: the sessions of this node are gone, and their transactions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaveSessions {
    /// The node.
    pub node: NodeId,
}
