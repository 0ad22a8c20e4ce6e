//! Loads a checkpoint into an empty partition. Replay and the index build follow.

use junctor_model::id::{CommitNumber, PartitionId, RowId};
use junctor_model::limit::ROW_BYTES_MAX;
use junctor_model::row::check_image;

use super::{PageRecord, PlacedTable};
use crate::checkpoint::{
    CheckpointError, Frame, FrameLocation, FrameRow, PageEntries, PageTableLocation, ROWS_PER_CELL, ROWS_PER_PAGE,
    decode_frame, decode_page_table, page_table_checksum,
};
use crate::invariant::require;
use crate::partition_store::PartitionStore;
use crate::row::ROWS_PER_PARTITION_MAX;

/// Progress of loading a checkpoint.
#[derive(Debug)]
pub(super) struct LoadProgress {
    partition: PartitionId,
    frames_left: usize,
    /// The page and position of the next frame, within an entry.
    next: Option<(u32, u32)>,
    /// The row that continues in the next frame.
    long_row: Option<PartialRow>,
}

#[derive(Debug)]
struct PartialRow {
    row: RowId,
    number: CommitNumber,
    image_bytes: usize,
    image: Vec<u8>,
}

impl PartitionStore {
    /// Begins to load a checkpoint into an empty partition. Returns the frames to load, in the order in which
    /// `load_frame` takes them: ascending by file and offset.
    ///
    /// # Errors
    /// The table is damaged, unknown, of another partition, or not the one that the manifest names.
    pub fn load_page_table(
        &mut self,
        partition: PartitionId,
        location: PageTableLocation,
        bytes: &[u8],
    ) -> Result<Vec<FrameLocation>, CheckpointError> {
        require!(
            self.rows.map().used() == 0 && self.checkpointed.pages.is_empty(),
            "a checkpoint is loaded into an empty partition: {partition:?}"
        );
        let (header, pages) = decode_page_table(bytes)?;
        if header.partition != partition || page_table_checksum(bytes) != Some(location.checksum) {
            return Err(CheckpointError::Misplaced);
        }
        let frames = pages.iter().flat_map(|page| &page.frames);
        self.checkpointed.table = Some(PlacedTable::new(location, frames));
        let mut locations: Vec<FrameLocation> =
            pages.iter().flat_map(|page| &page.frames).map(|frame| frame.location).collect();
        // Later rounds write files with higher numbers, so this is also the order of the entries of a page.
        locations.sort_unstable();
        let records = &mut self.checkpointed.pages;
        for PageEntries { page, written, frames } in pages {
            records.resize_with(page as usize + 1, PageRecord::default);
            records[page as usize] = PageRecord { written, frames, ..PageRecord::default() };
        }
        let frames_left = locations.len();
        self.checkpointed.load = Some(LoadProgress { partition, frames_left, next: None, long_row: None });
        self.begin_replay();
        Ok(locations)
    }

    /// Loads the next frame. Returns the number of rows that were put.
    ///
    /// # Errors
    /// The frame is damaged or not the next one, or memory is exhausted. The partition cannot be used then.
    pub fn load_frame(&mut self, location: FrameLocation, bytes: &[u8]) -> Result<u64, CheckpointError> {
        let frame = decode_frame(bytes)?;
        let Some(mut progress) = self.checkpointed.load.take() else { return Err(CheckpointError::Misplaced) };
        self.check_place(&progress, location, &frame)?;
        let rows = self.load_rows(&mut progress, &frame)?;
        let header = &frame.header;
        progress.next = if header.is_last { None } else { Some((header.page, header.part + 1)) };
        progress.frames_left -= 1;
        if header.is_last && progress.long_row.is_some() {
            return Err(CheckpointError::OutOfOrder);
        }
        self.checkpointed.load = Some(progress);
        Ok(rows)
    }

    /// Called before the indexes are built.
    pub(in crate::partition_store) fn require_loaded(&mut self) {
        let left = self.checkpointed.load.take().map_or(0, |load| load.frames_left);
        require!(left == 0, "every frame of a checkpoint is loaded before its indexes are built: {left} are left");
    }

    /// Verifies that a frame is the one that the page table names, and the next one of its entry.
    fn check_place(
        &self,
        progress: &LoadProgress,
        location: FrameLocation,
        frame: &Frame<'_>,
    ) -> Result<(), CheckpointError> {
        let header = &frame.header;
        let record = self.checkpointed.pages.get(header.page as usize);
        let named = record.and_then(|record| record.frames.iter().find(|named| named.location == location));
        let is_named = named.is_some_and(|named| {
            named.checksum == frame.checksum
                && named.is_first == (header.part == 0)
                && named.row_count == frame.row_count
        });
        if frame.location != location || header.partition != progress.partition || !is_named {
            return Err(CheckpointError::Misplaced);
        }
        let is_next = match progress.next {
            Some(next) => next == (header.page, header.part),
            None => header.part == 0,
        };
        if !is_next || progress.frames_left == 0 {
            return Err(CheckpointError::OutOfOrder);
        }
        Ok(())
    }

    fn load_rows(&mut self, progress: &mut LoadProgress, frame: &Frame<'_>) -> Result<u64, CheckpointError> {
        let mut count = 0;
        match progress.long_row.take() {
            Some(mut row) => {
                row.image.extend_from_slice(frame.continued);
                if row.image.len() > row.image_bytes || frame.continued.is_empty() {
                    return Err(CheckpointError::OutOfOrder);
                }
                match row.image.len() == row.image_bytes {
                    true => {
                        self.load_row(row.row, row.number, &row.image)?;
                        count += 1;
                    }
                    false => progress.long_row = Some(row),
                }
            }
            None if frame.continued.is_empty() => {}
            None => return Err(CheckpointError::OutOfOrder),
        }
        let first = frame.header.page * ROWS_PER_PAGE;
        for cell in frame.cells() {
            if let Some(live) = cell.live.filter(|_| !frame.header.is_whole) {
                self.remove_absent(RowId(first + cell.cell * ROWS_PER_CELL), live);
            }
            for FrameRow { row, number, image_bytes, image } in cell.rows() {
                let row = RowId(first + u32::from(row));
                let image_bytes = image_bytes as usize;
                if row.0 >= ROWS_PER_PARTITION_MAX || image_bytes > ROW_BYTES_MAX || progress.long_row.is_some() {
                    return Err(CheckpointError::InvalidImage(row));
                }
                if image.len() < image_bytes {
                    progress.long_row = Some(PartialRow { row, number, image_bytes, image: image.to_vec() });
                    continue;
                }
                self.load_row(row, number, image)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn load_row(&mut self, row: RowId, number: CommitNumber, image: &[u8]) -> Result<(), CheckpointError> {
        if !check_image(&self.layout.row_format, image) {
            return Err(CheckpointError::InvalidImage(row));
        }
        let existed = self.rows.replay_put(&self.layout.row_format, row, image, number)?;
        self.live_rows += u64::from(!existed);
        Ok(())
    }

    /// Deletes the rows of a cell that an earlier frame loaded and whose bits in `live` are not set.
    fn remove_absent(&mut self, first: RowId, live: u64) {
        for row in 0..ROWS_PER_CELL {
            if live & 1 << row == 0 {
                self.live_rows -= u64::from(self.rows.replay_delete(RowId(first.0 + row)));
            }
        }
    }
}
