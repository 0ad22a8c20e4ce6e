//! Hot path: at most 60 instructions per row, not counting the copy.
//!
//! Reads the rows of a round and puts them into frames.

use arrayvec::ArrayVec;
use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion};
use junctor_model::planted_bug::PlantedBug;

use super::{PageResult, PlacedTable};
use crate::checkpoint::{FrameBuilder, FrameHeader, PageTableLocation, ROWS_PER_CELL, ROWS_PER_PAGE, StoredFrame};
use crate::invariant::require;
use crate::page::Location;
use crate::partition_store::PartitionStore;
use crate::row::RowVersion;

const ROWS: usize = ROWS_PER_CELL as usize;

/// Progress of a round in one partition, and its results. The end of the round takes it, so that no result
/// is lost.
#[derive(Debug)]
pub struct CheckpointCursor {
    partition: PartitionId,
    begin: CommitNumber,
    /// The frames have every commit that is visible at `begin` and has at most this number.
    written: CommitNumber,
    newest: CommitNumber,
    cells_left: u64,
    /// The next page to examine.
    page: u32,
    open: Option<OpenPage>,
    images: Images,
    results: Vec<PageResult>,
    /// The page table of the finished round, once it has its place.
    table: Option<PlacedTable>,
    /// Whether the frame must be placed before the next step.
    is_frame_full: bool,
    is_done: bool,
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointStep {
    /// The next step can follow, now or in a later turn.
    MoreRows,
    /// The caller places the frame with `CheckpointCursor::place_frame` before the next step.
    FrameFull,
    /// Everything is in frames that have been placed.
    Done,
}

/// The page that is being written.
#[derive(Debug)]
struct OpenPage {
    /// Cells that are not read yet.
    cells: u64,
    /// The first unread row of the next cell, if earlier rows of the cell are already in a frame.
    resume: Option<u32>,
    /// Rows committed up to this number are in earlier entries.
    written: CommitNumber,
    result: PageResult,
}

/// Images outside their pages.
#[derive(Debug, Default)]
struct Images {
    /// The row that continues in the next frame.
    long_row: Option<LongRow>,
    /// Receives images whose long values are in overflow pages.
    scratch: Vec<u8>,
}

/// An image that is longer than a frame. It is copied as a whole, because its version may go before the next
/// frame.
#[derive(Debug)]
struct LongRow {
    image: Vec<u8>,
    placed: usize,
}

impl CheckpointCursor {
    pub(super) fn new(
        partition: PartitionId,
        (begin, written): (CommitNumber, CommitNumber),
        cells_left: u64,
    ) -> CheckpointCursor {
        CheckpointCursor {
            partition,
            begin,
            written,
            newest: begin,
            cells_left,
            page: 0,
            open: None,
            images: Images::default(),
            results: Vec::new(),
            table: None,
            is_frame_full: false,
            is_done: false,
        }
    }

    /// The partition.
    pub fn partition(&self) -> PartitionId {
        self.partition
    }

    /// The number at which the round began.
    pub fn begin(&self) -> CommitNumber {
        self.begin
    }

    /// Commits that the round may lack have higher numbers.
    pub(super) fn written(&self) -> CommitNumber {
        self.written
    }

    /// The highest number whose commit may be in the frames. The manifest is written once it is durable.
    pub fn newest(&self) -> CommitNumber {
        self.newest
    }

    /// Number of cells that are not read yet. Grows by up to 63 when a page turns out to be written whole.
    pub fn cells_left(&self) -> u64 {
        self.cells_left
    }

    /// Whether no page is under way. The frames of an entry lie in one file, so the next file begins between
    /// pages.
    pub fn is_between_pages(&self) -> bool {
        self.open.is_none()
    }

    /// The page table of the round, which a manifest may name. Calls `add(file, bytes)` for the bytes of each
    /// file that it needs, its own included.
    pub fn table(&self, add: impl FnMut(u32, u64)) -> PageTableLocation {
        match &self.table {
            Some(table) => table.report(add),
            None => no_table(self.partition),
        }
    }

    pub(super) fn set_table(&mut self, table: PlacedTable) {
        self.table = Some(table);
    }

    /// Seals a full frame for this place in a file. Returns the bytes to write there.
    pub fn place_frame<'a>(&mut self, frame: &'a mut FrameBuilder, file: u32, offset: u64) -> &'a [u8] {
        let Some(open) = self.open.as_mut().filter(|_| self.is_frame_full) else {
            crate::invariant::fail("a frame is placed once, when it is full", format_args!("file {file}, at {offset}"))
        };
        self.is_frame_full = false;
        let (location, checksum, row_count) = frame.seal(file, offset);
        let is_first = open.result.frames.is_empty();
        open.result.frames.push(StoredFrame { location, checksum, row_count, is_first });
        if open.cells == 0 && self.images.long_row.is_none() {
            self.results.extend(self.open.take().map(|open| open.result));
        }
        frame.sealed()
    }

    pub(super) fn results(&self) -> &[PageResult] {
        require!(self.is_done, "the results of a round are complete once it is done");
        &self.results
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn results_mut(&mut self) -> &mut [PageResult] {
        &mut self.results
    }

    pub(super) fn into_results(self) -> (Vec<PageResult>, PlacedTable) {
        require!(self.is_done, "a round that is kept is done");
        match self.table {
            Some(table) => (self.results, table),
            None => no_table(self.partition),
        }
    }
}

fn no_table(partition: PartitionId) -> ! {
    crate::invariant::fail("a finished round has placed its page table", format_args!("{partition:?}"))
}

/// A row to write: its position in the page, its commit number and its version.
type FoundRow<'a> = (u16, CommitNumber, RowVersion<'a>);

impl PartitionStore {
    /// Puts the rows of the next cell into the frame, as they are at `stable`, the number that is stable in
    /// this turn. One call reads at most 64 rows.
    pub fn checkpoint_step(
        &self,
        cursor: &mut CheckpointCursor,
        stable: CommitNumber,
        frame: &mut FrameBuilder,
    ) -> CheckpointStep {
        require!(stable >= cursor.begin, "the number {stable} is stable after the round began at {}", cursor.begin);
        require!(!cursor.is_frame_full, "a full frame is placed before the next step");
        let step = self.next_step(cursor, stable, frame);
        cursor.is_frame_full = step == CheckpointStep::FrameFull;
        step
    }

    fn next_step(
        &self,
        cursor: &mut CheckpointCursor,
        stable: CommitNumber,
        frame: &mut FrameBuilder,
    ) -> CheckpointStep {
        if cursor.open.is_none() && !self.open_next_page(cursor) {
            cursor.is_done = true;
            return CheckpointStep::Done;
        }
        let snapshot = self.checkpoint_snapshot(cursor, stable);
        let (partition, begin, row_format) = (cursor.partition, cursor.begin, self.layout.definition.version);
        let Some(open) = &mut cursor.open else { return CheckpointStep::MoreRows };
        if frame.is_empty() {
            frame.begin(open.header(partition, begin, row_format));
        }
        if let Some(row) = &mut cursor.images.long_row {
            row.placed += frame.continue_row(&row.image[row.placed..]);
            if row.placed < row.image.len() {
                return CheckpointStep::FrameFull;
            }
            cursor.images.long_row = None;
        }
        if open.cells != 0 {
            let cell = open.cells.trailing_zeros();
            let is_full = self.read_cell(open, snapshot, frame, &mut cursor.images);
            let is_read = open.cells & 1 << cell == 0;
            cursor.cells_left -= u64::from(is_read);
            if is_full {
                return CheckpointStep::FrameFull;
            }
            if open.cells != 0 {
                return CheckpointStep::MoreRows;
            }
        }
        // Some frame must be the last one, even if nothing was left to put into it.
        if !frame.is_empty() || !open.result.frames.is_empty() {
            frame.set_last();
            return CheckpointStep::FrameFull;
        }
        cursor.results.extend(cursor.open.take().map(|open| open.result));
        CheckpointStep::MoreRows
    }

    /// The number at which the rows are read. It is above the stable one in a backup, which keeps only the
    /// newest versions.
    fn checkpoint_snapshot(&self, cursor: &mut CheckpointCursor, stable: CommitNumber) -> CommitNumber {
        let snapshot = stable.max(self.purge_horizon);
        let newest = if snapshot > stable { snapshot.min(self.newest_commit).max(stable) } else { stable };
        cursor.newest = cursor.newest.max(newest);
        snapshot
    }

    fn open_next_page(&self, cursor: &mut CheckpointCursor) -> bool {
        let pages = &self.checkpointed.pages;
        while let Some(record) = pages.get(cursor.page as usize) {
            let page = cursor.page;
            cursor.page += 1;
            if record.visited == 0 && !record.is_rewrite_due {
                continue;
            }
            let used = self.rows.map().used_in_page(page as usize);
            let is_whole = used == 0 || record.is_whole_due(used);
            let cells = match is_whole {
                // A page without rows needs no frame: an entry without frames replaces all others.
                true if used == 0 => 0,
                true => u64::MAX,
                false => record.visited,
            };
            cursor.cells_left += u64::from(cells.count_ones());
            cursor.cells_left -= u64::from(record.visited.count_ones());
            let written = if is_whole { CommitNumber(0) } else { record.written };
            let result = PageResult { page, is_whole, retouched: 0, frames: Vec::new() };
            cursor.open = Some(OpenPage { cells, resume: None, written, result });
            return true;
        }
        false
    }

    /// Reads the next cell of the page. Returns whether the frame is full; the rest of the cell follows then.
    fn read_cell(
        &self,
        open: &mut OpenPage,
        snapshot: CommitNumber,
        frame: &mut FrameBuilder,
        images: &mut Images,
    ) -> bool {
        let cell = open.cells.trailing_zeros();
        let first = cell * ROWS_PER_CELL;
        let mut rows = ArrayVec::<FoundRow<'_>, ROWS>::new();
        let (live, is_open) = self.find_rows(open, cell, snapshot, &mut rows);
        let is_open = is_open && !PlantedBug::ForgetOpenVersions.is_planted();
        open.result.retouched |= u64::from(is_open) << cell;
        if open.resume.is_none() && open.result.is_whole && live == 0 {
            open.cells &= open.cells - 1;
            return false;
        }
        if !frame.fits_cell() {
            return true;
        }
        frame.begin_cell(cell, open.resume.is_none().then_some(live));
        for (row, number, version) in &rows {
            let image = self.rows.image(version, &mut images.scratch);
            if !frame.fits_row(image.len()) {
                open.resume = Some(u32::from(*row) - first);
                return true;
            }
            let placed = frame.put(*row, *number, image);
            if placed < image.len() {
                images.long_row = Some(LongRow { image: image.to_vec(), placed });
                open.resume = Some(u32::from(*row) - first + 1);
                return true;
            }
        }
        open.cells &= open.cells - 1;
        open.resume = None;
        false
    }

    /// Finds the rows of a cell that the entry needs, from `open.resume` on. Returns a bit for each row that
    /// exists, and whether any row has a version that is not visible.
    fn find_rows<'a>(
        &'a self,
        open: &OpenPage,
        cell: u32,
        snapshot: CommitNumber,
        found: &mut ArrayVec<FoundRow<'a>, ROWS>,
    ) -> (u64, bool) {
        let first = cell * ROWS_PER_CELL;
        let base = open.result.page * ROWS_PER_PAGE + first;
        let mut newest = ArrayVec::<(u32, Location), ROWS>::new();
        for row in open.resume.unwrap_or(0)..ROWS_PER_CELL {
            let location = self.rows.map().get(RowId(base + row));
            if !location.is_none() {
                self.rows.prefetch_at(location);
                newest.push((row, location));
            }
        }
        let (mut live, mut is_open) = (0, false);
        for (row, location) in newest {
            let Some(version) = self.rows.at(location) else { continue };
            let (version, has_newer) = self.rows.committed_within(version, snapshot);
            is_open |= has_newer;
            let Some(version) = version.filter(|version| !version.is_deleted()) else { continue };
            live |= 1 << row;
            let number = self.rows.state(&version).commit_number().unwrap_or_default();
            if number > open.written {
                found.push(((first + row) as u16, number, version));
            }
        }
        (live, is_open)
    }
}

impl OpenPage {
    fn header(&self, partition: PartitionId, begin: CommitNumber, row_format: SchemaVersion) -> FrameHeader {
        let PageResult { page, is_whole, frames, .. } = &self.result;
        let part = frames.len() as u32;
        FrameHeader { partition, row_format, page: *page, begin, part, is_whole: *is_whole, is_last: false }
    }
}
