//! The indexes of one partition: the hash index of the primary key, and the ordered indexes.

mod hash;
mod key_shape;
mod row_keys;
pub mod ordered;
#[allow(unsafe_code)]
mod words;

pub use hash::HashIndex;
pub(crate) use key_shape::KeyShape;
pub(crate) use ordered::SortedRun;
pub use ordered::{Direction, OrderedIndex, RangeBounds};
pub(crate) use row_keys::RowKeys;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
