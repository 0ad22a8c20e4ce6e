//! Backups of a data directory, and data directories made from backups.
//!
//! A backup copies the newest checkpoint of a running server, and the log from the position where recovery of
//! that checkpoint begins. The server keeps both until the copy is complete. Its blocks do no other work for
//! a backup. A restored directory recovers like one whose server was killed at the end of the copied log.
//!
//! The nodes of a cluster each copy their part in this way, and the parts together are a backup with all
//! commits up to one number. A restore makes one directory of them.
//!
//! A stopped directory can be checked for damage.
//!
//! Backups lie in a *store*: a folder, or a bucket of an S3-compatible service.
#![forbid(unsafe_code)]

mod check;
mod clock;
mod cluster;
mod contents;
mod crash;
mod data_directory;
mod error;
mod merge;
mod object;
mod part;
mod progress;
mod restore;
mod server;
mod store;
mod take;

pub use check::{CheckOptions, CheckReport, check};
pub use cluster::{CopiedPart, complete_cluster, new_name};
pub use data_directory::Files;
pub use error::BackupError;
pub use part::{NodePart, copy_part};
pub use restore::{RestoreOptions, RestoreSummary, restore, restore_newest};
pub use server::ServerOptions;
pub use store::BackupStore;
pub use take::{BackupOptions, BackupSummary, CopiedBackup, Copier, CopyKind, CopyWatch, backup, list};
