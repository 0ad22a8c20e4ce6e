//! A deterministic simulation of a whole cluster in one process. MySQL clients drive it, and checkers verify
//! the results.
//!
//! Modules in reading order:
//! - [`plan`]: the plan file of a run; [`draw`]: the parameters that the seed chooses;
//! - [`run`]: one run from its seed to its outcome; [`ci`]: many seeds, each in two processes; [`coverage`]:
//!   crashes at each crash point; [`shrink`]: reduces a failing plan; [`planted`]: bugs that the plans must
//!   find;
//! - [`cluster`]: nodes assembled from production's roles; [`fleet`]: the clients; [`lives`]: when and how
//!   nodes end; [`evictions`]: nodes that are lost while others go on; [`members`] and [`member_faults`]:
//!   clusters whose nodes vote who is a member, and their faults; [`crashes`]: how often nodes crashed at
//!   each crash point; [`trouble`]: failing, full and rotten disks; [`backup_program`]: backups and
//!   restores;
//! - [`statement`], [`client`]: statements and replies, and the MySQL protocol that carries them;
//! - [`workload`]: what sessions do, and the checks of their answers; [`check`]: the checks of the nodes at
//!   the end.
#![forbid(unsafe_code)]

pub mod draw;
pub mod plan;

pub mod ci;
pub mod coverage;
pub mod planted;
pub mod run;
pub mod shrink;

pub mod backup_program;
pub mod cluster;
pub mod crashes;
pub mod evictions;
pub mod members;
pub mod member_faults;
pub mod fleet;
pub mod lives;
pub mod trouble;

pub mod client;
pub mod statement;

pub mod check;
pub mod ledger;
pub mod workload;

#[cfg(test)]
mod fake_server;
#[cfg(test)]
mod toy_store;
