//! Hot path: at most 30 instructions per row, not counting the copy and the checksum.
//!
//! Frames: the rows of some cells of one page.

use junctor_model::checkpoint::FrameLocation;
use junctor_model::id::{CommitNumber, PartitionId, SchemaVersion, TableId};

use super::error::CheckpointError;
use super::{ROWS_PER_CELL, ROWS_PER_PAGE};
use crate::bytes::{checksum_without, set_u16, set_u32, set_u64, u16_at, u32_at, u64_at};
use crate::invariant::require;

/// The format version of frames that is written.
pub const FRAME_VERSION: u16 = 1;
/// Maximum size of a frame in bytes. Longer rows continue in the next frame.
pub const FRAME_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a frame before its contents.
pub const FRAME_HEADER_BYTES: usize = 80;

const MAGIC: u32 = u32::from_le_bytes(*b"JCKF");
const CHECKSUM_AT: usize = 4;
const FLAG_WHOLE: u16 = 1;
const FLAG_LAST: u16 = 2;
const CELL_HEADER_BYTES: usize = 16;
const ROW_HEADER_BYTES: usize = 14;
/// The cell began in the frame before, which has its live rows.
const CELL_CONTINUED: u8 = 1;

/// The contents of a frame and its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHeader {
    /// The partition of the page.
    pub partition: PartitionId,
    /// The version of the table's definition that the images follow.
    pub row_format: SchemaVersion,
    /// The page, from 0.
    pub page: u32,
    /// The commit number at which the round began. The page's entry is current at it.
    pub begin: CommitNumber,
    /// Position of the frame among those of its entry, from 0.
    pub part: u32,
    /// Whether the entry has all rows of the page.
    pub is_whole: bool,
    /// Whether this is the last frame of its entry.
    pub is_last: bool,
}

/// A frame that is being built.
#[derive(Debug, Default)]
pub struct FrameBuilder {
    bytes: Vec<u8>,
    header: FrameHeader,
    /// Where the header of the open cell begins, and the number of its rows in this frame.
    cell: Option<(usize, u16)>,
    /// Bytes at the start of the contents that continue the row of the frame before.
    continued_bytes: u32,
    row_count: u16,
    is_sealed: bool,
}

impl FrameBuilder {
    /// A builder without a frame.
    pub fn new() -> FrameBuilder {
        FrameBuilder::default()
    }

    /// Whether nothing has to be written: the frame has no contents, and does not end an entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_sealed || self.bytes.len() <= FRAME_HEADER_BYTES && !self.header.is_last
    }

    /// Begins a frame. The one before was sealed, or has no contents.
    pub(crate) fn begin(&mut self, header: FrameHeader) {
        require!(self.is_empty(), "a frame is sealed before the next one begins");
        self.bytes.clear();
        self.bytes.resize(FRAME_HEADER_BYTES, 0);
        (self.header, self.cell, self.continued_bytes, self.row_count) = (header, None, 0, 0);
        self.is_sealed = false;
    }

    /// Continues the row that the frame before begins. Returns the number of bytes for which this frame has
    /// space.
    pub(crate) fn continue_row(&mut self, rest: &[u8]) -> usize {
        require!(self.is_empty(), "a continued row is at the start of a frame");
        let taken = rest.len().min(self.space());
        self.bytes.extend_from_slice(&rest[..taken]);
        self.continued_bytes = taken as u32;
        taken
    }

    /// Whether the header of another cell fits.
    #[inline]
    pub(crate) fn fits_cell(&self) -> bool {
        CELL_HEADER_BYTES <= self.space()
    }

    /// Whether another row of the open cell fits. True for a row that is longer than a frame if it is the
    /// first one in the frame.
    #[inline]
    pub(crate) fn fits_row(&self, image_bytes: usize) -> bool {
        let is_first = self.bytes.len() == FRAME_HEADER_BYTES + CELL_HEADER_BYTES;
        ROW_HEADER_BYTES + image_bytes <= self.space() || is_first
    }

    /// Begins a cell. `live` has a bit for each row that exists; `None` if the cell began in the frame
    /// before.
    #[inline]
    pub(crate) fn begin_cell(&mut self, cell: u32, live: Option<u64>) {
        require!(self.fits_cell(), "the frame has space for the header of a cell");
        self.cell = Some((self.bytes.len(), 0));
        let flags = if live.is_none() { CELL_CONTINUED } else { 0 };
        self.bytes.extend_from_slice(&[cell as u8, flags, 0, 0, 0, 0, 0, 0]);
        self.bytes.extend_from_slice(&live.unwrap_or(0).to_le_bytes());
    }

    /// Adds a row to the open cell. `row` is its position in the page. Returns how many bytes of the image
    /// are in this frame: all, unless the image is longer than a frame.
    #[inline]
    pub(crate) fn put(&mut self, row: u16, number: CommitNumber, image: &[u8]) -> usize {
        let Some((cell, count)) = &mut self.cell else {
            crate::invariant::fail("a row is part of a cell", format_args!("row {row} of a page"))
        };
        *count += 1;
        let (cell, count) = (*cell, *count);
        self.row_count += 1;
        self.bytes.extend_from_slice(&row.to_le_bytes());
        self.bytes.extend_from_slice(&(image.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&number.0.to_le_bytes());
        let taken = image.len().min(self.space());
        self.bytes.extend_from_slice(&image[..taken]);
        set_u16(&mut self.bytes, cell + 2, count);
        let row_bytes = self.bytes.len() - cell - CELL_HEADER_BYTES;
        set_u32(&mut self.bytes, cell + 4, row_bytes as u32);
        taken
    }

    /// Marks the frame as the last one of its entry.
    pub(crate) fn set_last(&mut self) {
        self.header.is_last = true;
    }

    /// Fills in the header. Returns the frame's location and checksum, and the number of rows that begin in
    /// it.
    pub(crate) fn seal(&mut self, file: u32, offset: u64) -> (FrameLocation, u32, u16) {
        require!(!self.is_empty(), "a frame that is sealed has contents");
        let FrameHeader { partition, row_format, page, begin, part, is_whole, is_last } = self.header;
        let flags = if is_whole { FLAG_WHOLE } else { 0 } | if is_last { FLAG_LAST } else { 0 };
        let length = self.bytes.len() as u32;
        let bytes = &mut self.bytes[..];
        set_u32(bytes, 0, MAGIC);
        set_u32(bytes, 8, length);
        set_u16(bytes, 12, FRAME_VERSION);
        set_u16(bytes, 14, flags);
        set_u32(bytes, 16, file);
        set_u32(bytes, 20, part);
        set_u64(bytes, 24, offset);
        set_u32(bytes, 32, partition.table.0);
        set_u16(bytes, 36, partition.index);
        set_u16(bytes, 38, self.row_count);
        set_u32(bytes, 40, page);
        set_u32(bytes, 44, row_format.0);
        set_u64(bytes, 48, begin.0);
        set_u32(bytes, 56, self.continued_bytes);
        let checksum = checksum_without(bytes, CHECKSUM_AT);
        set_u32(bytes, CHECKSUM_AT, checksum);
        self.is_sealed = true;
        (FrameLocation { file, offset, length }, checksum, self.row_count)
    }

    /// The bytes of the sealed frame.
    pub(crate) fn sealed(&self) -> &[u8] {
        require!(self.is_sealed, "only a sealed frame is written");
        &self.bytes
    }

    #[inline]
    fn space(&self) -> usize {
        FRAME_BYTES_MAX - self.bytes.len()
    }
}

/// Moves a whole frame to another file, at the same place. Returns its new checksum. For restores.
pub fn move_frame(frame: &mut [u8], file: u32) -> u32 {
    require!(frame.len() >= FRAME_HEADER_BYTES, "a frame has its header: {} bytes", frame.len());
    set_u32(frame, 16, file);
    let checksum = checksum_without(frame, CHECKSUM_AT);
    set_u32(frame, CHECKSUM_AT, checksum);
    checksum
}

/// A decoded frame whose checksum and structure are correct.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The page and the round.
    pub header: FrameHeader,
    /// Where it was written.
    pub location: FrameLocation,
    /// Its checksum.
    pub checksum: u32,
    /// Number of rows that begin in it.
    pub row_count: u16,
    /// The continuation of the last row of the frame before.
    pub continued: &'a [u8],
    cells: &'a [u8],
}

/// Rows of one cell in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// The cell's position in the page, from 0.
    pub cell: u32,
    /// A bit for each row of the cell that exists; `None` if the frame before has them.
    pub live: Option<u64>,
    row_count: u16,
    rows: &'a [u8],
}

/// A row in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRow<'a> {
    /// The row's position in the page.
    pub row: u16,
    /// The commit that wrote the row.
    pub number: CommitNumber,
    /// Length of the whole image in bytes.
    pub image_bytes: u32,
    /// The image, or its beginning if it continues in the next frame.
    pub image: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The cells in ascending order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'a>> + use<'a> {
        let mut rest = self.cells;
        std::iter::from_fn(move || read_cell(&mut rest))
    }
}

impl<'a> Cell<'a> {
    /// The rows in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = FrameRow<'a>> + use<'a> {
        let mut rest = self.rows;
        (0..self.row_count).map_while(move |_| read_row(&mut rest))
    }
}

/// Decodes the bytes of a frame.
///
/// # Errors
/// `Damaged` and `UnknownVersion`.
pub fn decode_frame(bytes: &[u8]) -> Result<Frame<'_>, CheckpointError> {
    if bytes.len() < FRAME_HEADER_BYTES || u32_at(bytes, 0) != MAGIC || u32_at(bytes, 8) as usize != bytes.len() {
        return Err(CheckpointError::Damaged);
    }
    let checksum = u32_at(bytes, CHECKSUM_AT);
    if checksum != checksum_without(bytes, CHECKSUM_AT) {
        return Err(CheckpointError::Damaged);
    }
    if u16_at(bytes, 12) != FRAME_VERSION {
        return Err(CheckpointError::UnknownVersion(u16_at(bytes, 12)));
    }
    let flags = u16_at(bytes, 14);
    let header = FrameHeader {
        partition: PartitionId { table: TableId(u32_at(bytes, 32)), index: u16_at(bytes, 36) },
        row_format: SchemaVersion(u32_at(bytes, 44)),
        page: u32_at(bytes, 40),
        begin: CommitNumber(u64_at(bytes, 48)),
        part: u32_at(bytes, 20),
        is_whole: flags & FLAG_WHOLE != 0,
        is_last: flags & FLAG_LAST != 0,
    };
    let location = FrameLocation { file: u32_at(bytes, 16), offset: u64_at(bytes, 24), length: bytes.len() as u32 };
    let contents = &bytes[FRAME_HEADER_BYTES..];
    let Some((continued, cells)) = contents.split_at_checked(u32_at(bytes, 56) as usize) else {
        return Err(CheckpointError::Damaged);
    };
    let row_count = u16_at(bytes, 38);
    // Checked completely here, so that `cells` and `rows` cannot meet a damaged one.
    if flags & !(FLAG_WHOLE | FLAG_LAST) != 0 || rows_in(cells, header.is_last) != Some(u64::from(row_count)) {
        return Err(CheckpointError::Damaged);
    }
    Ok(Frame { header, location, checksum, row_count, continued, cells })
}

/// The number of rows in the cells; `None` if they are damaged.
fn rows_in(mut cells: &[u8], is_last: bool) -> Option<u64> {
    let (mut count, mut row_limit) = (0u64, 0u32);
    while !cells.is_empty() {
        let cell = read_cell(&mut cells)?;
        let mut rest = cell.rows;
        for _ in 0..cell.row_count {
            let row = read_row(&mut rest)?;
            let is_cut = (row.image_bytes as usize) > row.image.len();
            // Only the last row of a frame can continue, and not beyond the last frame.
            if is_cut && (is_last || !rest.is_empty() || !cells.is_empty()) {
                return None;
            }
            if u32::from(row.row) < row_limit || u32::from(row.row) / ROWS_PER_CELL != cell.cell {
                return None;
            }
            row_limit = u32::from(row.row) + 1;
            count += 1;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(count)
}

fn read_cell<'a>(rest: &mut &'a [u8]) -> Option<Cell<'a>> {
    let (header, after) = rest.split_at_checked(CELL_HEADER_BYTES)?;
    let (rows, after) = after.split_at_checked(u32_at(header, 4) as usize)?;
    let cell = u32::from(header[0]);
    if cell >= ROWS_PER_PAGE / ROWS_PER_CELL || header[1] & !CELL_CONTINUED != 0 {
        return None;
    }
    let live = (header[1] & CELL_CONTINUED == 0).then(|| u64_at(header, 8));
    *rest = after;
    Some(Cell { cell, live, row_count: u16_at(header, 2), rows })
}

#[inline]
fn read_row<'a>(rest: &mut &'a [u8]) -> Option<FrameRow<'a>> {
    let (header, after) = rest.split_at_checked(ROW_HEADER_BYTES)?;
    let image_bytes = u32_at(header, 2);
    // An image that is longer than the rest of the frame continues in the next one.
    let (image, after) = after.split_at(after.len().min(image_bytes as usize));
    *rest = after;
    Some(FrameRow { row: u16_at(header, 0), number: CommitNumber(u64_at(header, 6)), image_bytes, image })
}
