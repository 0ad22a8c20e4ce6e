//! The log block: writes the records of all commits of the node to one file after the other, and tells which
//! commits are durable.
//!
//! - Owns: the files of the log, the *durable* number, the groups that are being written, the account of the
//!   log's space.
//! - Signals in: `RecoverLog`, `ReplayLog`, `ReplayRowsReply` and `StartLog` once at the start; then
//!   `ReserveLogSpace`, `AppendRecords` and `AwaitDurable`; `BeginCheckpoint`, `TrimLog` and `ReadLogUsage`
//!   for checkpoints.
//! - Signals out: the replies to these, and `ReplayRows` to ldm.
//! - Never: reads what it wrote in this life; changes a row.
//!
//! The block works in cycles, one at a time. A cycle reads the stable number, collects the records of every
//! commit up to it, writes them in groups, syncs once, and makes the number durable. Commits that arrive
//! meanwhile share the next cycle. The more clients commit, the more commits a sync serves. A cycle waits for
//! clients that usually commit again soon after their answer ([`gathering`]).
//!
//! *Proof.* A commit N becomes stable after every participant has applied it. A participant counts N's record
//! as formed before it applies N (`FormedRecords`). The cycle reads the stable number first and the counts
//! second, and waits until every stream has delivered what it has counted. So the record of every commit up
//! to the stable number is in this cycle's groups or in earlier ones.

mod append_records;
mod block;
mod checkpoint;
mod cycle;
mod gathering;
mod group_index;
mod recover_log;
mod reserve_log_space;
mod segment;
mod space;

#[cfg(test)]
pub(crate) use space::SpaceAccount;

pub use block::{LogBlock, LogConfiguration, LogShared, SEGMENTS_MAX_DEFAULT};

#[cfg(test)]
mod tests;
