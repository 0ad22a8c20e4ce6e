//! Partitions: rows, versions, indexes, locks, pages, redo records.

pub mod guard;
pub mod commit_sequence;
pub mod snapshot;
