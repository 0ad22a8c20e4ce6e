//! Backups of a data directory, and data directories made from backups.
//!
//! A backup copies the newest checkpoint of a running server, and the log from the position where recovery of
//! that checkpoint begins. The server keeps both until the copy is complete. Its blocks do no other work for
//! a backup. A restored directory recovers like one whose server was killed at the end of the copied log.
//!
//! A stopped directory can be checked for damage.
//!
//! Backups lie in a *store*: a folder, or a bucket of an S3-compatible service.
#![forbid(unsafe_code)]

mod check;
mod clock;
mod contents;
mod crash;
mod data_directory;
mod error;
mod object;
mod progress;
mod restore;
mod server;
mod store;
mod take;

pub use check::{CheckOptions, CheckReport, check};
pub use data_directory::Files;
pub use error::BackupError;
pub use restore::{RestoreOptions, RestoreSummary, restore, restore_newest};
pub use server::ServerOptions;
pub use store::BackupStore;
pub use take::{BackupOptions, BackupSummary, CopiedBackup, Copier, CopyKind, backup, list};
