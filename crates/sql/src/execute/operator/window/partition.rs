//! The rows of the current partition, as far as a function still needs them, and the groups of peers.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_model::value::ValueRef;

use super::super::batch::{BATCH_ROWS, Batch, Frame};

/// The input columns of a partition's rows. Rows have positions from 0.
#[derive(Debug)]
pub(super) struct Partition {
    columns: Arc<Frame>,
    batches: VecDeque<Batch>,
    /// Position of the first row that is kept. All batches before the last have [`BATCH_ROWS`] rows.
    first: u64,
    /// Number of rows so far.
    pub rows: u64,
    /// Whether no row follows.
    pub is_complete: bool,
    /// The row whose values are computed next.
    pub current: u64,
    /// The first rows of the groups of peers, from that of the current row on.
    groups: VecDeque<u64>,
    /// The number of the current row's group, from 1.
    pub group_number: u64,
}

impl Partition {
    pub fn new(columns: Arc<Frame>) -> Partition {
        Partition {
            columns,
            batches: VecDeque::new(),
            first: 0,
            rows: 0,
            is_complete: false,
            current: 0,
            groups: VecDeque::new(),
            group_number: 1,
        }
    }

    /// A partition without rows that has the same columns.
    pub fn next(&self) -> Partition {
        Partition::new(Arc::clone(&self.columns))
    }

    /// Adds a row, whose values [`Self::set`] gives. Returns by how many bytes the partition has grown.
    pub fn push(&mut self, is_peer: bool) -> usize {
        let mut grown = 0;
        if self.batches.back().is_none_or(|batch| batch.len() == BATCH_ROWS) {
            let batch = Batch::new(&self.columns);
            grown += batch.memory();
            self.batches.push_back(batch);
        }
        if let Some(batch) = self.batches.back_mut() {
            let before = batch.memory();
            batch.push();
            grown += batch.memory() - before;
        }
        if !is_peer {
            self.groups.push_back(self.rows);
            self.pass_group();
        }
        self.rows += 1;
        grown
    }

    /// Sets a value of the last row. Returns by how many bytes the partition has grown.
    pub fn set(&mut self, column: u16, value: ValueRef<'_>) -> usize {
        let Some(batch) = self.batches.back_mut() else { return 0 };
        let before = batch.memory();
        batch.set(batch.len() - 1, column, value);
        batch.memory() - before
    }

    /// The input columns of a row that is kept.
    pub fn row(&self, position: u64) -> Parameters<'_> {
        let place = (position - self.first) as usize;
        match self.batches.get(place / BATCH_ROWS) {
            Some(batch) => batch.row(place % BATCH_ROWS),
            None => Parameters::default(),
        }
    }

    /// The first row of the current row's peers.
    pub fn peers_start(&self) -> u64 {
        self.groups.front().copied().unwrap_or(0)
    }

    /// The row after the current row's peers, if it is known.
    pub fn peers_end(&self) -> Option<u64> {
        self.groups.get(1).copied().or_else(|| self.end())
    }

    /// The number of rows, if it is known.
    pub fn end(&self) -> Option<u64> {
        self.is_complete.then_some(self.rows)
    }

    /// Makes the next row the current one.
    pub fn advance(&mut self) {
        self.current += 1;
        self.pass_group();
    }

    /// Forgets the group of peers before that of the current row, whose first row may not be known yet.
    fn pass_group(&mut self) {
        if self.groups.get(1) == Some(&self.current) {
            self.groups.pop_front();
            self.group_number += 1;
        }
    }

    /// Drops whole batches before a position. Returns the bytes of the values that were dropped.
    pub fn drop_before(&mut self, position: u64) -> usize {
        let mut bytes = 0;
        while self.first + BATCH_ROWS as u64 <= position
            && let Some(batch) = self.batches.front()
            && batch.len() == BATCH_ROWS
        {
            bytes += batch.memory();
            self.first += BATCH_ROWS as u64;
            self.batches.pop_front();
        }
        bytes
    }

    /// The bytes of the rows that are kept.
    pub fn memory(&self) -> usize {
        self.batches.iter().map(Batch::memory).sum()
    }
}
