//! Ordered indexes: B+trees over `key bytes ++ row id` (big-endian), unique by construction.
//!
//! One entry exists per distinct key over all versions of a row. Cursors are (last key, row id), never positions.

mod check;
mod node;
mod scan;
mod tree;

pub use scan::{Direction, RangeBounds};
pub use tree::OrderedIndex;
