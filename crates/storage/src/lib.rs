//! The storage of partitions: rows and their versions, indexes, locks, pages, log records, checkpoint frames,
//! commit numbers, snapshots.
#![deny(unsafe_code)]

mod bytes;
pub mod checkpoint;
pub mod commit_sequence;
#[allow(unsafe_code)]
pub mod guard;
pub mod index;
mod invariant;
pub mod lock;
pub mod log;
pub mod page;
pub mod partition_store;
pub mod row;
pub mod sharded_table;
pub mod snapshot;
