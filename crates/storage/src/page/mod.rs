//! Row memory: one page pool for the whole node, blocks of fixed sizes inside pages, and chains of blocks for
//! long values.

mod block_store;
mod overflow;
#[allow(unsafe_code)]
mod pool;

pub use block_store::{BLOCK_BYTES_MAX, BlockStore, Location};
pub use overflow::OverflowStore;
pub use pool::{MemoryNeed, OutOfMemory, PAGE_BYTES, PAGE_KINDS, Page, PageKind, PagePool};

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
