//! The page table of a partition: for each page the frames that hold its rows.

use junctor_model::checkpoint::FrameLocation;
use junctor_model::id::{CommitNumber, PartitionId, TableId};

use super::ROWS_PER_PAGE;
use super::error::CheckpointError;
use crate::bytes::{checksum_without, set_u32, u16_at, u32_at, u64_at};
use crate::invariant::require;
use crate::row::ROWS_PER_PARTITION_MAX;

/// The format version of page tables that is written.
pub const PAGE_TABLE_VERSION: u16 = 1;

const MAGIC: u32 = u32::from_le_bytes(*b"JCPT");
const CHECKSUM_AT: usize = 4;
const HEADER_BYTES: usize = 32;
const PAGE_BYTES: usize = 16;
const FRAME_BYTES: usize = 24;
const FLAG_FIRST: u16 = 1;
/// The page of the highest row id.
const PAGE_MAX: u32 = ROWS_PER_PARTITION_MAX / ROWS_PER_PAGE;

/// The partition and the round of a page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTableHeader {
    /// The partition.
    pub partition: PartitionId,
    /// The commit number at which the round began.
    pub begin: CommitNumber,
}

/// A frame as a page table names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFrame {
    /// Where the frame is.
    pub location: FrameLocation,
    /// Its checksum. It tells the frame from one that an abandoned round wrote at the same place.
    pub checksum: u32,
    /// Number of rows that begin in it.
    pub row_count: u16,
    /// Whether this frame is the first frame of an entry.
    pub is_first: bool,
}

/// The entries of one page, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEntries {
    /// The page, from 0.
    pub page: u32,
    /// The number at which the round of the newest entry began. Every later commit in this page has a higher
    /// number, or is in an entry.
    pub written: CommitNumber,
    /// The frames of all entries.
    pub frames: Vec<StoredFrame>,
}

/// Appends a page table with the pages, in ascending order. Returns its checksum. Pages without frames are
/// left out.
pub(crate) fn encode_page_table<F: IntoIterator<Item = StoredFrame>>(
    header: &PageTableHeader,
    pages: impl Iterator<Item = (u32, CommitNumber, F)>,
    out: &mut Vec<u8>,
) -> u32 {
    let start = out.len();
    out.extend_from_slice(&MAGIC.to_le_bytes());
    // Checksum and length, which are filled in at the end.
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&PAGE_TABLE_VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&header.partition.table.0.to_le_bytes());
    out.extend_from_slice(&header.partition.index.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&header.begin.0.to_le_bytes());
    require!(out.len() - start == HEADER_BYTES, "the header of a page table has {HEADER_BYTES} bytes");
    for (page, written, frames) in pages {
        encode_page(page, written, frames.into_iter(), out);
    }
    let table = &mut out[start..];
    require!(u32::try_from(table.len()).is_ok(), "the length of a page table fits its 32 bits: {}", table.len());
    set_u32(table, 8, table.len() as u32);
    let checksum = checksum_without(table, CHECKSUM_AT);
    set_u32(table, CHECKSUM_AT, checksum);
    checksum
}

/// The bytes of a page table, and its checksum. For restores, which give frames other files.
pub fn page_table_bytes(header: &PageTableHeader, pages: Vec<PageEntries>) -> (Vec<u8>, u32) {
    let mut bytes = Vec::new();
    let pages = pages.into_iter().map(|PageEntries { page, written, frames }| (page, written, frames));
    let checksum = encode_page_table(header, pages, &mut bytes);
    (bytes, checksum)
}

fn encode_page(page: u32, written: CommitNumber, frames: impl Iterator<Item = StoredFrame>, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&page.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&written.0.to_le_bytes());
    let mut frame_count = 0;
    for frame in frames {
        let StoredFrame { location: FrameLocation { file, offset, length }, checksum, row_count, is_first } = frame;
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&file.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&row_count.to_le_bytes());
        out.extend_from_slice(&if is_first { FLAG_FIRST } else { 0 }.to_le_bytes());
        frame_count += 1;
    }
    match frame_count {
        0 => out.truncate(at),
        _ => set_u32(&mut out[at..], 4, frame_count),
    }
}

/// The checksum in a page table, which the manifest repeats; `None` if the bytes are too few.
pub fn page_table_checksum(bytes: &[u8]) -> Option<u32> {
    (bytes.len() >= HEADER_BYTES).then(|| u32_at(bytes, CHECKSUM_AT))
}

/// Decodes a page table: its header and its pages in ascending order.
///
/// # Errors
/// `Damaged` and `UnknownVersion`.
pub fn decode_page_table(bytes: &[u8]) -> Result<(PageTableHeader, Vec<PageEntries>), CheckpointError> {
    if bytes.len() < HEADER_BYTES
        || u32_at(bytes, 0) != MAGIC
        || u32_at(bytes, 8) as usize != bytes.len()
        || u32_at(bytes, CHECKSUM_AT) != checksum_without(bytes, CHECKSUM_AT)
    {
        return Err(CheckpointError::Damaged);
    }
    if u16_at(bytes, 12) != PAGE_TABLE_VERSION {
        return Err(CheckpointError::UnknownVersion(u16_at(bytes, 12)));
    }
    let partition = PartitionId { table: TableId(u32_at(bytes, 16)), index: u16_at(bytes, 20) };
    let header = PageTableHeader { partition, begin: CommitNumber(u64_at(bytes, 24)) };
    let mut rest = &bytes[HEADER_BYTES..];
    let mut pages: Vec<PageEntries> = Vec::new();
    while !rest.is_empty() {
        let page = decode_page(&mut rest).ok_or(CheckpointError::Damaged)?;
        if pages.last().is_some_and(|before| before.page >= page.page) || page.page > PAGE_MAX {
            return Err(CheckpointError::Damaged);
        }
        pages.push(page);
    }
    Ok((header, pages))
}

fn decode_page(rest: &mut &[u8]) -> Option<PageEntries> {
    let (header, after) = rest.split_at_checked(PAGE_BYTES)?;
    let frame_count = u32_at(header, 4) as usize;
    let (frames, after) = after.split_at_checked(frame_count.checked_mul(FRAME_BYTES)?)?;
    *rest = after;
    let frames: Vec<StoredFrame> = frames.chunks_exact(FRAME_BYTES).map(decode_frame_entry).collect();
    // The first frame of a page begins its whole entry.
    frames.first().filter(|frame| frame.is_first)?;
    Some(PageEntries { page: u32_at(header, 0), written: CommitNumber(u64_at(header, 8)), frames })
}

fn decode_frame_entry(bytes: &[u8]) -> StoredFrame {
    StoredFrame {
        location: FrameLocation { file: u32_at(bytes, 8), offset: u64_at(bytes, 0), length: u32_at(bytes, 12) },
        checksum: u32_at(bytes, 16),
        row_count: u16_at(bytes, 20),
        is_first: u16_at(bytes, 22) & FLAG_FIRST != 0,
    }
}
