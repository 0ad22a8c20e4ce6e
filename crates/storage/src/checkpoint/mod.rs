//! Checkpoint files: frames with rows, and page tables that say which frames count (`docs/format.md`,
//! "Checkpoint files"). This module accesses no files.
//!
//! A checkpoint is written a *page* at a time: the 4,096 row ids of one page of the row map. A page has 64
//! *cells* of 64 row ids. The rows that one round writes for a page are an *entry* of the page. An entry
//! consists of one or more *frames* in one file. A whole entry has all rows of the page. A delta has rows of
//! the cells that changed since the entry before.

mod error;
mod frame;
mod live_bytes;
mod page_table;

pub use error::CheckpointError;
pub use frame::{
    Cell, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_VERSION, Frame, FrameBuilder, FrameHeader, FrameRow, decode_frame,
    move_frame,
};
pub use junctor_model::checkpoint::{FrameLocation, PageTableLocation};
pub use live_bytes::LiveBytes;
pub(crate) use page_table::encode_page_table;
pub use page_table::{
    PAGE_TABLE_VERSION, PageEntries, PageTableHeader, StoredFrame, decode_page_table, page_table_bytes,
    page_table_checksum,
};

/// Row ids in a cell: the unit in which changes are remembered, and which a round reads in one turn.
pub const ROWS_PER_CELL: u32 = 64;
/// Row ids in a page.
pub const ROWS_PER_PAGE: u32 = 4096;

/// The checksum of a file after these bytes, which follow bytes with the checksum `before`. The checksum of
/// no bytes is 0.
pub fn append_file_checksum(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
