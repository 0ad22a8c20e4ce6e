//! Membership of the cluster: which nodes belong to it and in which state, how a node proves that it still
//! belongs, and how the others notice that it does not.
//!
//! - [`node_set`]: a set of node ids.
//! - [`membership`]: the value that raft replicates, and its transitions.
//! - [`group`]: the groups that are added to it, and removed.
//! - [`replica`]: the replicas that are added to groups, and removed.
//! - [`codec`]: its bytes.
//! - [`replication`]: a voter, which replicates it.
//! - [`lease`]: leases of data nodes, and the end of the leases of evicted ones.
//! - [`detector`]: which nodes to evict.
//!
//! All of it is pure: times and messages come in, decisions and messages go out.

pub mod codec;
pub mod detector;
pub mod group;
pub mod lease;
#[allow(clippy::module_inception)]
pub mod membership;
pub mod node_set;
pub mod replica;
pub mod replication;

pub use group::{RemovedNode, rotations};
pub use membership::{ChangeRefused, MEMBERS_MAX, Membership, MembershipChange, NodeRecord, NodeState, REPLICAS_MAX};
pub use node_set::NodeSet;
pub use replication::Replication;
