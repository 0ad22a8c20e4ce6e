//! The replicated log of the cluster's configuration: the memberships, in the order in which a majority of
//! voters has agreed on them.
//!
//! The algorithm is Raft, by the crate `raft`. This crate adds what that one leaves to its users, without
//! doing I/O: the encoding of messages, the files of a voter, timeouts that depend on a seed only, and voters
//! that are replaced together. No commit of a transaction passes through this log.
//!
//! Its user drives a [`Replica`]: ticks and received messages go in, [`Output`] comes out. A user has three
//! duties:
//!
//! - It performs the writes of an output in order, syncs each one, and then calls [`Replica::note_written`].
//!   Messages that depend on a write are in the output of that call.
//! - It takes the state of an output, if there is one, and then applies the committed entries in order. After
//!   [`Committed::Voters`], and when the file has become long, it calls [`Replica::compact`]: the leader
//!   sends this state to voters that join.
//! - It gives a voter that has lost its files a new [`VoterId`]. A voter without the memory of its votes
//!   could vote twice.

#![forbid(unsafe_code)]

pub mod bytes;
mod disk;
mod log;
mod message;
mod replica;
mod voter;

#[cfg(test)]
mod tests;

pub use disk::{DamagedFile, Recovered, recover, voter_of};
pub use message::MESSAGE_BYTES_MAX;
pub use replica::{Appended, Committed, Output, Refusal, Replica, Role, Settings, State, Write};
pub use voter::{VOTERS_MAX, VoterId, VoterSet};
