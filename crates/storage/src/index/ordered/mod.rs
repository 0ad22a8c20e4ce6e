//! Ordered indexes: B+trees over `key bytes ++ row id` (big-endian), which makes every entry unique.
//!
//! A row has one entry for each distinct key among its versions. A cursor is (last key, row id), never a
//! position.

mod check;
mod node;
mod scan;
mod tree;

pub use scan::{Direction, RangeBounds};
pub use tree::OrderedIndex;
