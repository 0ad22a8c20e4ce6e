//! Recovery: rows are put and deleted by row id without their indexes, and the indexes are built afterwards.
//!
//! Replay needs no uniqueness checks, locks or old versions. The operations of a row come in the order of
//! their commits, and nobody reads the partition meanwhile. Applying a log again gives the same rows: the
//! last whole image or deletion of each row decides, and the edits after it.
//!
//! A checkpoint may have a later version of a row than the log has at that point. Edits then have nothing to
//! do. If it has no row, the row was deleted later, and the deletion follows in the log.

use std::fmt;

use junctor_model::id::{CommitNumber, RowId};
use junctor_model::partition::key_hash;
use junctor_model::planted_bug::PlantedBug;
use junctor_model::row::{RowView, check_image};

use super::{LocalIndex, PartitionStore, key_view};
use crate::index::{HashIndex, OrderedIndex, SortedRun};
use crate::invariant::require;
use crate::log::ImageEdit;
use crate::page::{Location, MemoryNeed, OutOfMemory};
use crate::row::ROWS_PER_PARTITION_MAX;

/// Number of rows whose cache misses overlap while indexes are built.
const BATCH_ROWS: usize = 32;
/// Bytes of entries of one ordered index that are sorted at a time.
const RUN_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes of entries of all ordered indexes of a partition that are collected at a time.
const RUNS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Number of rows in the budget of a step that pay for one new page of the hash index.
const ROWS_PER_HASH_PAGE: usize = 64;

/// Why an operation of the log cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The data memory is exhausted.
    OutOfMemory,
    /// The image does not have the format of the table's rows.
    InvalidImage(RowId),
    /// The row id is too large.
    InvalidRow(RowId),
    /// The row that edits change is another version than they name, or gives another image.
    WrongBase(RowId),
    /// The row that edits change is in neither the checkpoint nor the log.
    MissingBase(RowId),
}

impl From<OutOfMemory> for ReplayError {
    fn from(_: OutOfMemory) -> ReplayError {
        ReplayError::OutOfMemory
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::OutOfMemory => OutOfMemory.fmt(formatter),
            ReplayError::InvalidImage(row) => write!(formatter, "the image of row {row} is damaged"),
            ReplayError::InvalidRow(row) => write!(formatter, "row id {row} is too large"),
            ReplayError::WrongBase(row) => write!(formatter, "the change of row {row} is not one of the row found"),
            ReplayError::MissingBase(row) => write!(formatter, "row {row}, which was changed, is missing"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Progress of building the indexes of one partition after the other.
#[derive(Debug)]
pub struct IndexRebuild {
    phase: Phase,
    /// The collected entries of each ordered index.
    runs: Vec<SortedRun>,
    /// The limit of the bytes of one run.
    run_bytes_max: usize,
    batch: Vec<BatchRow>,
    /// The greatest AUTO_INCREMENT value so far.
    greatest: u64,
    /// Rows that were added to the hash index since `take_rows`.
    rows: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Links the free row ids below a limit.
    FreeIds(Option<RowId>),
    /// Takes the pages of the hash index.
    HashPages,
    /// Adds rows to the hash index, and collects their entries in ordered indexes.
    Rows { next: RowId },
    /// Sorts the run of an ordered index.
    Sort { index: usize, next: RowId },
    /// Adds the entries of a run from a position on to its index.
    Load { index: usize, position: usize, next: RowId },
    /// Everything is built.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct BatchRow {
    row: RowId,
    location: Location,
    hash: u64,
}

impl IndexRebuild {
    /// A build that has not begun.
    pub fn new() -> IndexRebuild {
        IndexRebuild::with_run_bytes_max(RUN_BYTES_MAX)
    }

    /// Like `new`, with another limit of the bytes of an index that are sorted at a time.
    pub(crate) fn with_run_bytes_max(run_bytes_max: usize) -> IndexRebuild {
        IndexRebuild {
            phase: Phase::FreeIds(None),
            runs: Vec::new(),
            run_bytes_max,
            batch: Vec::new(),
            greatest: 0,
            rows: 0,
        }
    }

    /// Ends the build of a partition, and begins that of another one with the same memory. Returns the
    /// greatest value of the AUTO_INCREMENT column; 0 without such a column, or if no value is above 0.
    pub fn end_partition(&mut self) -> u64 {
        self.phase = Phase::FreeIds(None);
        std::mem::take(&mut self.greatest)
    }

    /// Number of rows whose entries were collected since the last call.
    pub fn take_rows(&mut self) -> u64 {
        std::mem::take(&mut self.rows)
    }
}

impl Default for IndexRebuild {
    fn default() -> IndexRebuild {
        IndexRebuild::new()
    }
}

impl PartitionStore {
    /// Makes `image` the row's only version, committed as `commit_number`. The row need not exist. From the
    /// first replayed operation on, the partition has no indexes until `build_indexes_step` returns true.
    ///
    /// # Errors
    /// An image or row id that the partition cannot have, and a lack of memory. The row is then unchanged.
    pub fn replay_put(&mut self, row: RowId, image: &[u8], commit_number: CommitNumber) -> Result<(), ReplayError> {
        if row.0 >= ROWS_PER_PARTITION_MAX {
            return Err(ReplayError::InvalidRow(row));
        }
        // Later versions of a table's definition only add columns that old rows do without, so images of
        // older versions have the present format too.
        if !check_image(&self.layout.row_format, image) {
            return Err(ReplayError::InvalidImage(row));
        }
        self.begin_replay();
        self.without_base.remove(&row);
        let existed = self.rows.replay_put(&self.layout.row_format, row, image, commit_number)?;
        self.rows.map_mut().touch(row);
        self.live_rows += u64::from(!existed);
        Ok(())
    }

    /// Changes the image of a row, whose version is then committed as `commit_number`. Does nothing if the
    /// row has this version or a later one, because a checkpoint may be newer than the operation.
    ///
    /// # Errors
    /// The row is another version than the base, or the edits do not give the image that they promise; and
    /// those of [`PartitionStore::replay_put`]. The row is then unchanged.
    pub fn replay_edit(
        &mut self,
        row: RowId,
        edit: &ImageEdit<'_>,
        commit_number: CommitNumber,
    ) -> Result<(), ReplayError> {
        if row.0 >= ROWS_PER_PARTITION_MAX {
            return Err(ReplayError::InvalidRow(row));
        }
        self.begin_replay();
        let Some(version) = self.rows.newest(row) else {
            self.without_base.insert(row);
            return Ok(());
        };
        let number = self.rows.state(&version).commit_number();
        if number >= Some(commit_number) && !PlantedBug::EditNewerRow.is_planted() {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let base = self.rows.image(&version, &mut scratch.other_image);
        let replayed = match edit.apply(base, &mut scratch.image).filter(|_| number == Some(edit.base)) {
            Some(image) => self.replay_put(row, image, commit_number),
            None => Err(ReplayError::WrongBase(row)),
        };
        scratch.trim();
        self.scratch = scratch;
        replayed
    }

    /// Called when the whole log is replayed.
    ///
    /// # Errors
    /// The base of edits was missing, and no later operation of the log has replaced or deleted the row.
    pub fn check_replayed(&self) -> Result<(), ReplayError> {
        match self.without_base.first() {
            Some(row) => Err(ReplayError::MissingBase(*row)),
            None => Ok(()),
        }
    }

    /// Deletes a row and frees its id. Does nothing if the row does not exist, because a checkpoint may be
    /// newer than the operation.
    pub fn replay_delete(&mut self, row: RowId) {
        self.begin_replay();
        self.without_base.remove(&row);
        if self.rows.replay_delete(row) {
            self.live_rows -= 1;
            self.rows.map_mut().touch(row);
        }
    }

    /// Frees the indexes: replay does not maintain them.
    pub(super) fn begin_replay(&mut self) {
        if self.is_replaying {
            return;
        }
        require!(self.purge_queue.is_empty(), "replay precedes every write, so each row has one version");
        self.is_replaying = true;
        self.hash = HashIndex::new(self.pool.clone());
        for LocalIndex { tree, is_complete, .. } in &mut self.ordered {
            *is_complete = false;
            *tree = tree.empty_copy(self.pool.clone());
        }
    }

    /// Builds all indexes from the rows after replay, in steps of about `budget_rows` rows. Sorting is a step
    /// of its own and takes longer, at most for 128 MiB of entries. Returns true once everything is built.
    ///
    /// # Errors
    /// A lack of memory, after which the partition cannot be used.
    pub fn build_indexes_step(&mut self, build: &mut IndexRebuild, budget_rows: usize) -> Result<bool, OutOfMemory> {
        match build.phase {
            Phase::FreeIds(limit) => {
                self.require_loaded();
                self.begin_replay();
                build.phase = match self.rows.map_mut().relink_step(limit, budget_rows) {
                    None => Phase::HashPages,
                    limit => Phase::FreeIds(limit),
                };
            }
            Phase::HashPages => {
                let rows = self.rows.map().used() as usize;
                if rows == 0 {
                    self.end_replay();
                    build.phase = Phase::Done;
                } else if self.hash.grow_step(rows, budget_rows.div_ceil(ROWS_PER_HASH_PAGE))? {
                    build.runs.resize_with(self.ordered.len(), SortedRun::default);
                    build.phase = Phase::Rows { next: RowId(0) };
                }
            }
            Phase::Rows { next } => build.phase = self.collect_rows(build, next, budget_rows)?,
            Phase::Sort { index, next } => {
                build.runs[index].sort();
                build.phase = Phase::Load { index, position: 0, next };
            }
            Phase::Load { index, position, next } => {
                let run = &mut build.runs[index];
                let position = self.ordered[index].load(run, position, budget_rows)?;
                build.phase = Phase::Load { index, position, next };
                if position == run.len() {
                    run.clear();
                    build.phase = Phase::Rows { next };
                }
            }
            Phase::Done => {}
        }
        Ok(matches!(build.phase, Phase::Done))
    }

    /// Adds up to `budget_rows` rows to the hash index and to the runs. Returns the next phase.
    fn collect_rows(
        &mut self,
        build: &mut IndexRebuild,
        mut next: RowId,
        budget_rows: usize,
    ) -> Result<Phase, OutOfMemory> {
        let end = self.rows.map().end();
        let stop = RowId(u64::from(next.0).saturating_add(budget_rows as u64).min(u64::from(end.0)) as u32);
        while next < stop {
            let batch_stop = RowId(stop.0.min(next.0 + BATCH_ROWS as u32));
            self.collect_batch(build, next..batch_stop)?;
            next = batch_stop;
            let bytes_max = build.run_bytes_max.min(RUNS_BYTES_MAX / build.runs.len().max(1));
            let is_full = |run: &SortedRun| run.bytes() >= bytes_max;
            if let Some(index) = build.runs.iter().position(is_full) {
                return Ok(Phase::Sort { index, next });
            }
        }
        if next < end {
            return Ok(Phase::Rows { next });
        }
        match build.runs.iter().position(|run| run.len() > 0) {
            Some(index) => Ok(Phase::Sort { index, next }),
            None => {
                self.end_replay();
                Ok(Phase::Done)
            }
        }
    }

    fn collect_batch(&mut self, build: &mut IndexRebuild, rows: std::ops::Range<RowId>) -> Result<(), OutOfMemory> {
        let PartitionStore { rows: store, hash, primary, ordered, layout, scratch, .. } = self;
        let (format, columns) = (&layout.row_format, &layout.definition.columns[..]);
        let mut counted = [None; 2];
        for (counted, column) in counted.iter_mut().zip(layout.definition.counted_columns()) {
            *counted = Some(column);
        }
        build.batch.clear();
        for row in (rows.start.0..rows.end.0).map(RowId) {
            let location = store.map().get(row);
            if !location.is_none() {
                store.prefetch_at(location);
                build.batch.push(BatchRow { row, location, hash: 0 });
            }
        }
        build.rows += build.batch.len() as u64;
        for entry in &mut build.batch {
            let Some(version) = store.at(entry.location) else { continue };
            scratch.key.clear();
            let view = key_view(store, format, primary, &version, &mut scratch.image);
            primary.append(columns, view, &mut scratch.key);
            entry.hash = key_hash(&scratch.key);
            hash.prefetch(hash.home_of(entry.hash));
            for column in counted.into_iter().flatten() {
                // The column is a number, so it lies in the fixed part of the stored image.
                let value = RowView::new(format, version.stored()).column(column);
                build.greatest = build.greatest.max(value.counted_number());
            }
            for (index, run) in ordered.iter().zip(&mut build.runs) {
                let view = key_view(store, format, &index.shape, &version, &mut scratch.image);
                if index.shape.is_multi_valued() {
                    index.keys_of(columns, view, &mut scratch.key, &mut scratch.row_keys);
                    scratch.row_keys.iter().for_each(|key| run.push(key, entry.row));
                    continue;
                }
                scratch.key.clear();
                index.shape.append(columns, view, &mut scratch.key);
                run.push(index.tree.truncated(&scratch.key), entry.row);
            }
        }
        for entry in &build.batch {
            hash.reserve(entry.hash, MemoryNeed::Growth)?;
            hash.insert(entry.hash, entry.row);
        }
        scratch.trim();
        Ok(())
    }

    fn end_replay(&mut self) {
        require!(
            self.hash.len() == self.rows.map().used() as usize && self.live_rows == self.hash.len() as u64,
            "every replayed row is in the hash index: {} of {}",
            self.hash.len(),
            self.live_rows
        );
        for entry in &mut self.ordered {
            require!(
                entry.shape.is_multi_valued() || entry.tree.len() == self.live_rows,
                "every replayed row has an entry in index {}",
                entry.id
            );
            entry.tree.trim();
            entry.is_complete = true;
        }
        self.is_replaying = false;
    }
}

impl LocalIndex {
    /// Adds up to `budget` entries of a sorted run. Returns the position of the first that is left.
    fn load(&mut self, run: &SortedRun, position: usize, budget: usize) -> Result<usize, OutOfMemory> {
        let stop = run.len().min(position.saturating_add(budget));
        let (mut edge, mut short) = (self.tree.right_edge(), Default::default());
        if position == run.len() {
            return Ok(position);
        }
        // A run is above all earlier ones if rows were inserted in key order, and always if it is the first.
        // Entries of other runs belong between those of earlier runs.
        if self.tree.is_above_all(&edge, run.entry(position, &mut short)) {
            self.tree.append_run(&mut edge, run, position..stop)?;
            return Ok(stop);
        }
        for index in position..stop {
            let (key, row) = OrderedIndex::split_entry(run.entry(index, &mut short));
            self.tree.reserve(key, row, MemoryNeed::Growth)?;
            self.tree.insert(key, row);
        }
        Ok(stop)
    }
}
