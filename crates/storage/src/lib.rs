//! Partitions: rows, versions, indexes, locks, pages, redo records.

pub mod guard;
