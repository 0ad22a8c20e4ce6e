//! A partition's part of a checkpoint round: which pages and cells to write, and which frames hold them.
//!
//! Pages, cells, entries and frames are those of `crate::checkpoint`: a page is 4,096 row ids, a cell is 64.
//! Making a version *touches* its cell. A round begins by moving the touched marks to `visited`, the set of
//! cells that it must read. A step reads a cell at the commit number that is stable in the step's turn. If a
//! version in the cell is not visible at that number, the cell counts as touched again. Nothing changes in
//! the store until the end of the round: the cursor holds the round's results, so an abandoned round only
//! returns its marks.

mod load;
mod step;

pub use step::{CheckpointCursor, CheckpointStep};

use junctor_model::id::{CommitNumber, PartitionId};

use self::load::LoadProgress;
use super::PartitionStore;
use crate::checkpoint::{
    FrameLocation, LiveBytes, PageTableHeader, PageTableLocation, ROWS_PER_CELL, StoredFrame, encode_page_table,
};
use crate::invariant::require;

/// Once a page has this many entries (one for each round that wrote rows of the page), its next entry is
/// whole: it has all rows of the page and replaces the others. More entries would slow down loading.
const ENTRIES_PER_PAGE_MAX: usize = 8;

/// The pages of a partition, and the frames in checkpoint files that hold them.
#[derive(Debug, Default)]
pub(super) struct CheckpointedPages {
    pages: Vec<PageRecord>,
    /// The page table that the newest manifest names; `None` if it names none.
    table: Option<PlacedTable>,
    /// Progress of loading a checkpoint.
    load: Option<LoadProgress>,
}

/// A page table in a checkpoint file.
#[derive(Clone, Debug)]
struct PlacedTable {
    location: PageTableLocation,
    /// The bytes of each file that the table needs.
    live_bytes: LiveBytes,
}

/// A page: 4,096 row ids. Its frames in checkpoint files, and its part in the present round.
#[derive(Clone, Debug, Default)]
struct PageRecord {
    /// The cells that the present round must read, including those that it has read already.
    visited: u64,
    /// The commit number at which the round of the newest entry began, or one below the number of the rows
    /// that were still being copied then. Every commit that is in no entry has a higher number.
    written: CommitNumber,
    /// The frames of all entries, the oldest first.
    frames: Vec<StoredFrame>,
    /// Whether the next entry must be whole, so that the files of the present entries can be deleted.
    is_rewrite_due: bool,
}

/// The new entry of a page at the end of a round.
#[derive(Debug)]
struct PageResult {
    page: u32,
    /// Whether the entry is whole: it has all rows of the page and replaces all earlier entries.
    is_whole: bool,
    /// Cells with versions that were not visible when the round read them.
    retouched: u64,
    frames: Vec<StoredFrame>,
}

impl PartitionStore {
    /// Begins a round at `begin`, a number that is stable and up to which all commits are applied here. Moves
    /// the touched marks to the cells that the round visits. Only one round runs at a time.
    ///
    /// `rewritten_files`, in ascending order, are to become free. The round writes pages whole that have
    /// frames in them, but not more than half of the partition's live bytes; later rounds go on. Returns
    /// `None` if nothing has to be written: the page table of the round before stays valid.
    pub fn begin_checkpoint(
        &mut self,
        partition: PartitionId,
        begin: CommitNumber,
        rewritten_files: &[u32],
    ) -> Option<CheckpointCursor> {
        require!(
            self.checkpointed.load.is_none() && !self.is_replaying,
            "a checkpoint round begins after recovery: {partition:?}"
        );
        require!(
            partition.table == self.layout.definition.id,
            "a checkpoint round of a partition has the table's id: {partition:?}"
        );
        let CheckpointedPages { pages, table, .. } = &mut self.checkpointed;
        let touched = self.rows.map_mut().touched_mut();
        pages.resize_with(pages.len().max(touched.len()), PageRecord::default);
        let mut cells = 0;
        for (record, touched) in pages.iter_mut().zip(touched) {
            // A round that was given up without an end leaves visited cells behind.
            record.visited |= std::mem::take(touched);
            cells += u64::from(record.visited.count_ones());
        }
        let is_rewritten = |file: u32| rewritten_files.binary_search(&file).is_ok();
        let mut rewrite_bytes_left = table.as_ref().map_or(0, |table| table.live_bytes.sum() / 2) as i64;
        let mut is_unchanged = cells == 0 && !table.as_ref().is_some_and(|it| is_rewritten(it.location.location.file));
        for record in pages.iter_mut() {
            record.is_rewrite_due = rewrite_bytes_left > 0 && record.files().any(is_rewritten);
            if record.is_rewrite_due {
                rewrite_bytes_left -= record.bytes() as i64;
                is_unchanged = false;
            }
        }
        // Rows that are copied during the round or after it get the number of the copy.
        let written = self.copied_at.map_or(begin, |copied| begin.min(CommitNumber(copied.0.saturating_sub(1))));
        (!is_unchanged).then(|| CheckpointCursor::new(partition, (begin, written), cells))
    }

    /// The page table that the newest manifest names. Calls `add(file, bytes)` for the bytes of each file
    /// that it needs, its own included.
    pub fn checkpointed_table(&self, add: impl FnMut(u32, u64)) -> Option<PageTableLocation> {
        self.checkpointed.table.as_ref().map(|table| table.report(add))
    }

    /// Appends the page table as it is after a round that is done, and returns its checksum.
    pub fn encode_page_table(&self, cursor: &CheckpointCursor, out: &mut Vec<u8>) -> u32 {
        let header = PageTableHeader { partition: cursor.partition(), begin: cursor.begin() };
        let pages = self.pages_after(cursor).map(|page| {
            let frames = page.kept.iter().chain(page.added).copied();
            (page.page, page.written, frames)
        });
        encode_page_table(&header, pages, out)
    }

    /// Tells a finished round the place of its page table.
    pub fn place_page_table(&self, cursor: &mut CheckpointCursor, location: PageTableLocation) {
        let pages = self.pages_after(cursor);
        let frames = pages.flat_map(|page| page.kept.iter().chain(page.added));
        let table = PlacedTable::new(location, frames);
        cursor.set_table(table);
    }

    /// Ends a round. If it is kept, the manifest that names its page table is durable. If not, the next round
    /// visits its cells again.
    pub fn end_checkpoint(&mut self, cursor: CheckpointCursor, is_kept: bool) {
        let touched = self.rows.map_mut().touched_mut();
        let pages = &mut self.checkpointed.pages;
        if !is_kept {
            for (record, touched) in pages.iter_mut().zip(touched) {
                *touched |= std::mem::take(&mut record.visited);
            }
            return;
        }
        let written = cursor.written();
        let (results, table) = cursor.into_results();
        self.checkpointed.table = Some(table);
        for PageResult { page, is_whole, retouched, frames } in results {
            let record = &mut pages[page as usize];
            if retouched != 0 {
                touched[page as usize] |= retouched;
            }
            record.written = written;
            match is_whole {
                true => record.frames = frames,
                false => record.frames.extend(frames),
            }
        }
        pages.iter_mut().for_each(|record| record.visited = 0);
    }

    /// An estimate of the bytes that the round has still to write here. Without a cursor, the round has not
    /// begun here.
    pub fn checkpoint_bytes_left(&self, cursor: Option<&CheckpointCursor>) -> u64 {
        let cells_left = match cursor {
            Some(cursor) => cursor.cells_left(),
            None => self.rows.map().touched_cells(),
        };
        let (row_bytes, _, overflow_bytes) = self.rows.bytes();
        let cells = self.row_id_limit().0.div_ceil(ROWS_PER_CELL).max(1);
        cells_left * (row_bytes + overflow_bytes) / u64::from(cells)
    }

    /// The results of a round, for tests that corrupt them.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(in crate::partition_store) fn spoil_round(cursor: &mut CheckpointCursor, spoil: impl Fn(&mut u64, &mut bool)) {
        for result in cursor.results_mut() {
            spoil(&mut result.retouched, &mut result.is_whole);
        }
    }

    /// Lets a test corrupt `written` and `visited` of each page.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(in crate::partition_store) fn spoil_pages(&mut self, spoil: impl Fn(&mut CommitNumber, &mut u64)) {
        self.checkpointed.pages.iter_mut().for_each(|record| spoil(&mut record.written, &mut record.visited));
    }

    /// Every page with the frames that count after the round.
    fn pages_after<'a>(&'a self, cursor: &'a CheckpointCursor) -> impl Iterator<Item = PageAfter<'a>> {
        let mut results = cursor.results().iter().peekable();
        (0u32..).zip(&self.checkpointed.pages).map(move |(page, record)| {
            let result = results.next_if(|result| result.page == page);
            match result {
                Some(PageResult { is_whole, frames, .. }) => {
                    let kept = if *is_whole { &[][..] } else { &record.frames[..] };
                    PageAfter { page, written: cursor.written(), kept, added: frames }
                }
                None => PageAfter { page, written: record.written, kept: &record.frames, added: &[] },
            }
        })
    }
}

/// A page as it is after a round.
struct PageAfter<'a> {
    page: u32,
    written: CommitNumber,
    kept: &'a [StoredFrame],
    added: &'a [StoredFrame],
}

impl PlacedTable {
    fn new<'a>(location: PageTableLocation, frames: impl Iterator<Item = &'a StoredFrame>) -> PlacedTable {
        let mut live_bytes = LiveBytes::default();
        let mut add = |FrameLocation { file, length, .. }| live_bytes.add(file, u64::from(length));
        frames.for_each(|frame| add(frame.location));
        add(location.location);
        PlacedTable { location, live_bytes }
    }

    fn report(&self, mut add: impl FnMut(u32, u64)) -> PageTableLocation {
        self.live_bytes.iter().for_each(|(file, bytes)| add(file, bytes));
        self.location
    }
}

impl PageRecord {
    /// The files with frames of the page.
    fn files(&self) -> impl Iterator<Item = u32> {
        self.frames.iter().map(|frame| frame.location.file)
    }

    /// Bytes of the page's frames.
    fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.location.length)).sum()
    }

    /// Whether the page's next entry must be whole instead of a delta. `used` is the number of the page's row
    /// ids in use.
    fn is_whole_due(&self, used: u32) -> bool {
        let entries = self.frames.iter().filter(|frame| frame.is_first).count();
        if self.is_rewrite_due || entries == 0 || entries >= ENTRIES_PER_PAGE_MAX {
            return true;
        }
        let rows: u64 = self.frames.iter().map(|frame| u64::from(frame.row_count)).sum();
        // The first entry is whole; the others are deltas.
        let deltas = self.frames.iter().skip(1).position(|frame| frame.is_first).map_or(self.frames.len(), |at| at + 1);
        let whole_bytes: u64 = self.frames[..deltas].iter().map(|frame| u64::from(frame.location.length)).sum();
        let delta_bytes = self.bytes() - whole_bytes;
        // Loading reads rows that are gone or replaced, so they must not outnumber the others.
        delta_bytes > whole_bytes / 2 || rows > 2 * u64::from(used)
    }
}
