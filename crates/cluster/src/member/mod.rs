//! A node of a cluster as the others know it: its reports, its voter, and what raft's leader does about the
//! reports of all nodes.
//!
//! - [`settings`]: the nodes of the cluster, as each of them is configured.
//! - [`machine`]: one node: messages, times and news of links in, messages and effects out.
//! - `lead`: the duties of the leader: who is evicted, admitted and told; `remove`: who is removed.
//! - `found`: how the first voters of a cluster begin, and how a voter that lost its files comes back.
//! - `rows`: the rows of `junctor_info.nodes` and its kin; [`events`]: those of `junctor_info.events`.
//! - [`node_file`]: the file by which a data directory belongs to a node.
//! - [`log_lines`]: where lines for the log go.
//!
//! All of it is pure; main performs the effects.

pub mod settings;
pub mod machine;
mod lead;
mod remove;
mod found;
mod rows;
pub mod events;
pub mod node_file;
pub mod log_lines;

pub use events::EventKind;
pub use log_lines::LogLines;
pub use machine::{EpochProgress, Member, MemberMessage, MemberOutput, TICK};
pub use remove::RemovalRefusal;
pub use settings::{MemberNode, MemberSettings, Roles, VoterStart};

#[cfg(test)]
mod tests;
