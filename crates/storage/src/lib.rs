//! Partitions: rows, versions, indexes, locks, pages, redo records.
#![deny(unsafe_code)]

pub mod commit_sequence;
#[allow(unsafe_code)]
pub mod guard;
pub mod snapshot;
pub mod index;
pub mod page;
pub mod partition_store;
pub mod row;
pub mod lock;
pub mod redo;
