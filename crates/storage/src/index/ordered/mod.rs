//! Ordered indexes: B+trees over `key bytes ++ row id` (big-endian), which makes every entry unique.
//!
//! A row has one entry for each distinct key among its versions. A cursor is (last key, row id), never a
//! position.

mod append;
mod check;
mod node;
mod scan;
mod sorted_run;
mod tree;

pub use scan::{Direction, RangeBounds};
pub(crate) use sorted_run::SortedRun;
pub use tree::OrderedIndex;
