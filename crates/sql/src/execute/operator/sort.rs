//! Rows in order. Each batch becomes a sorted run, and the runs are merged while rows are returned.
//!
//! If the rows exceed the memory of the query, the runs are merged into one run in the temporary file. Runs
//! there are merged in turn when there are [`MERGED_RUNS`] of a level. Runs stay in the order in which their
//! rows arrived, so rows with equal keys do, too.

use std::cmp::Ordering;
use std::sync::Arc;

use junctor_expression::{Parameters, compare_values};
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::program::SortKey;

use super::batch::{Batch, Frame};
use super::spool::{Spool, Spooled};
use super::{Input, Operator, Run, Step};
use crate::execute::memory::Account;
use crate::execute::read::window_of;
use crate::plan::LimitTemplate;

/// Maximum number of runs of the file that are merged at a time. Each needs memory for one record.
const MERGED_RUNS: usize = 16;
/// Estimated bytes of a key without its text.
const KEY_BYTES: usize = 48;

/// Rows in order with their keys: those of a batch, then those of a spool.
#[derive(Debug)]
struct SortedRun {
    batch: Batch,
    /// Keys and row.
    rows: Vec<(Vec<Value>, u32)>,
    next: usize,
    rest: Option<Spool>,
}

/// A merge of runs.
#[derive(Debug, Default)]
struct Merge {
    runs: Vec<SortedRun>,
    /// Runs whose next rows are not in memory.
    missing: Vec<u32>,
    /// A heap of the runs that have rows: the run with the first row is at the front.
    heap: Vec<u32>,
}

/// A run in the temporary file. A run of runs has the next level.
#[derive(Debug)]
struct FileRun {
    spool: Spool,
    level: u32,
}

/// The rows of a merge go to the temporary file.
#[derive(Debug)]
struct Writing {
    merge: Merge,
    to: FileRun,
    rows: u64,
}

#[derive(Debug)]
pub(super) struct Sort {
    input: Option<Input>,
    keys: Arc<[SortKey]>,
    limit: Option<LimitTemplate>,
    frame: Arc<Frame>,
    /// Runs in memory.
    runs: Vec<SortedRun>,
    /// Runs in the temporary file.
    file_runs: Vec<FileRun>,
    writing: Option<Writing>,
    /// The merge whose rows are returned; `None` before all rows have arrived.
    merge: Option<Merge>,
    returned: u64,
    /// Maximum number of rows that are returned.
    wanted: Option<u64>,
    account: Account,
}

impl Sort {
    pub fn new(input: Input, keys: &Arc<[SortKey]>, limit: Option<&LimitTemplate>, frame: &Arc<Frame>) -> Sort {
        Sort {
            input: Some(input),
            keys: Arc::clone(keys),
            limit: limit.copied(),
            frame: Arc::clone(frame),
            runs: Vec::new(),
            file_runs: Vec::new(),
            writing: None,
            merge: None,
            returned: 0,
            wanted: None,
            account: Account::default(),
        }
    }

    /// Adds a batch as a run. If it does not fit into memory, the runs go to the temporary file.
    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: Batch) -> Result<()> {
        let mut rows = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            run.scratch.reset();
            let mut keys = Vec::with_capacity(self.keys.len());
            for key in &*self.keys {
                keys.push(key.value.evaluate(None, batch.row(row), run.scratch)?.to_value());
            }
            rows.push((keys, row as u32));
        }
        let keys = &self.keys;
        rows.sort_by(|(left, _), (right, _)| compare_rows(keys, left, right));
        let bytes = 2 * batch.memory() + KEY_BYTES * self.keys.len() * rows.len();
        let fits = self.account.try_hold(run.memory, bytes);
        self.runs.push(SortedRun { batch, rows, next: 0, rest: None });
        if !fits {
            self.account.take(run.memory, bytes);
            self.spill();
        }
        Ok(())
    }

    /// Begins to write the runs in memory.
    fn spill(&mut self) {
        let merge = Merge::of(std::mem::take(&mut self.runs), &self.keys);
        let to = FileRun { spool: Spool::new(&self.frame, self.keys.len()), level: 0 };
        self.writing = Some(Writing { merge, to, rows: 0 });
    }

    /// Begins to merge the last runs of the file. They may be many rows, but only a record of each is in
    /// memory.
    fn merge_last(&mut self, count: usize) {
        let from = self.file_runs.len() - count;
        let level = self.file_runs[from].level + 1;
        let merge = merge_of(self.file_runs.drain(from..), &self.frame, &self.keys);
        let to = FileRun { spool: Spool::new(&self.frame, self.keys.len()), level };
        self.writing = Some(Writing { merge, to, rows: 0 });
    }

    /// Writes rows. Returns false if it must wait.
    fn write(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        let wanted = self.wanted(run)?;
        let Some(Writing { merge, to, rows }) = &mut self.writing else { return Ok(true) };
        loop {
            if run.spill.is_full() || !merge.fetch(run, &self.keys)? {
                return Ok(false);
            }
            // Rows beyond the LIMIT are not returned from this run, so not from any.
            let Some(sorted) = merge.first().filter(|_| *rows < wanted) else { break };
            let (keys, row) = &sorted.rows[sorted.next];
            to.spool.push(run, Some((&sorted.batch, *row as usize)), keys.iter().map(Value::as_ref))?;
            *rows += 1;
            merge.pass(&self.keys);
            if run.is_spent(1) {
                return Ok(false);
            }
        }
        to.spool.seal(run)?;
        if let Some(Writing { to, .. }) = self.writing.take() {
            self.file_runs.push(to);
        }
        self.account.clear();
        let level = self.file_runs.last().map(|last| last.level);
        let of_level = self.file_runs.iter().rev().take_while(|earlier| Some(earlier.level) == level).count();
        if of_level == MERGED_RUNS {
            self.merge_last(of_level);
        }
        Ok(true)
    }

    /// Maximum number of rows that are returned.
    fn wanted(&mut self, run: &Run<'_, '_, '_>) -> Result<u64> {
        if let Some(wanted) = self.wanted {
            return Ok(wanted);
        }
        let wanted = match &self.limit {
            Some(limit) => window_of(Some(limit), Parameters::from_bytes(run.parameters), u64::MAX)?.rows_needed(),
            None => u64::MAX,
        };
        Ok(*self.wanted.insert(wanted))
    }

    /// All rows have arrived. Begins the last merge, or one that makes it possible.
    fn finish_input(&mut self, run: &mut Run<'_, '_, '_>) {
        if self.file_runs.is_empty() {
            self.merge = Some(Merge::of(std::mem::take(&mut self.runs), &self.keys));
        } else if !self.runs.is_empty() {
            self.spill();
        } else if self.file_runs.len() > MERGED_RUNS {
            self.merge_last(MERGED_RUNS.min(self.file_runs.len() - MERGED_RUNS + 1));
        } else {
            self.account.take(run.memory, 2 * self.file_runs.len() * run.spill.record_bytes);
            self.merge = Some(merge_of(self.file_runs.drain(..), &self.frame, &self.keys));
        }
    }

    fn emit(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let wanted = self.wanted(run)?;
        let Some(merge) = &mut self.merge else { return Ok(Step::Wait) };
        let mut out = Batch::new(&self.frame);
        let mut waits = false;
        while self.returned < wanted && !out.is_full() {
            if !merge.fetch(run, &self.keys)? {
                waits = true;
                break;
            }
            let Some(sorted) = merge.first() else { break };
            out.push_copy(&sorted.batch, sorted.rows[sorted.next].1 as usize);
            merge.pass(&self.keys);
            self.returned += 1;
        }
        run.is_spent(out.len());
        if out.len() > 0 {
            return Ok(Step::Batch(out));
        }
        if waits {
            return Ok(Step::Wait);
        }
        self.merge = Some(Merge::default());
        self.account.clear();
        Ok(Step::Done)
    }
}

impl Operator for Sort {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        while self.merge.is_none() {
            if self.writing.is_some() {
                if !self.write(run)? {
                    return Ok(Step::Wait);
                }
                continue;
            }
            let Some(input) = &mut self.input else {
                self.finish_input(run);
                continue;
            };
            match input.next(run)? {
                Step::Batch(batch) => {
                    let rows = batch.len();
                    if rows > 0 {
                        self.add(run, batch)?;
                    }
                    if run.is_spent(rows) {
                        return Ok(Step::Wait);
                    }
                }
                Step::Wait => return Ok(Step::Wait),
                Step::Done => self.input = None,
            }
        }
        self.emit(run)
    }
}

/// A merge of runs of the file.
fn merge_of(runs: impl Iterator<Item = FileRun>, frame: &Arc<Frame>, keys: &[SortKey]) -> Merge {
    let of_spool =
        |run: FileRun| SortedRun { batch: Batch::new(frame), rows: Vec::new(), next: 0, rest: Some(run.spool) };
    Merge::of(runs.map(of_spool).collect(), keys)
}

impl Merge {
    fn of(runs: Vec<SortedRun>, keys: &[SortKey]) -> Merge {
        let numbers = || 0..runs.len() as u32;
        let has_rows = |number: &u32| !runs[*number as usize].rows.is_empty();
        let (heap, missing) = (numbers().filter(has_rows).collect(), numbers().filter(|it| !has_rows(it)).collect());
        let mut merge = Merge { runs, missing, heap };
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(place, keys);
        }
        merge
    }

    /// Loads the rows that the merge needs next. Returns false if they must be read.
    fn fetch(&mut self, run: &mut Run<'_, '_, '_>, keys: &[SortKey]) -> Result<bool> {
        while let Some(number) = self.missing.last().copied() {
            let sorted = &mut self.runs[number as usize];
            let spooled = sorted.rest.as_mut().map_or(Ok(Spooled::End), |rest| rest.take(run))?;
            match spooled {
                Spooled::Wait => return Ok(false),
                Spooled::End => {
                    sorted.batch.clear();
                    self.missing.pop();
                }
                Spooled::Rows([rows, key_rows]) => {
                    let slots = 0..keys.len() as u16;
                    let key = |row: usize| -> Vec<Value> {
                        slots.clone().map(|slot| key_rows.row(row).get(slot).to_value()).collect()
                    };
                    sorted.rows = (0..rows.len()).map(|row| (key(row), row as u32)).collect();
                    (sorted.batch, sorted.next) = (rows, 0);
                    self.missing.pop();
                    self.heap.push(number);
                    self.sift_up(self.heap.len() - 1, keys);
                }
            }
        }
        Ok(true)
    }

    /// The run with the next row.
    fn first(&self) -> Option<&SortedRun> {
        Some(&self.runs[*self.heap.first()? as usize])
    }

    /// Goes to the row after that.
    fn pass(&mut self, keys: &[SortKey]) {
        let Some(first) = self.heap.first().copied() else { return };
        let sorted = &mut self.runs[first as usize];
        sorted.next += 1;
        if sorted.next == sorted.rows.len() {
            sorted.rows = Vec::new();
            self.heap.swap_remove(0);
            self.missing.push(first);
        }
        self.sift_down(0, keys);
    }

    fn is_before(&self, keys: &[SortKey], left: u32, right: u32) -> bool {
        let key = |number: u32| {
            let run = &self.runs[number as usize];
            &run.rows[run.next].0
        };
        match compare_rows(keys, key(left), key(right)) {
            Ordering::Equal => left < right,
            order => order.is_lt(),
        }
    }

    fn sift_down(&mut self, mut place: usize, keys: &[SortKey]) {
        loop {
            let mut first = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_before(keys, self.heap[child], self.heap[first]) {
                    first = child;
                }
            }
            if first == place {
                return;
            }
            self.heap.swap(place, first);
            place = first;
        }
    }

    fn sift_up(&mut self, mut place: usize, keys: &[SortKey]) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !self.is_before(keys, self.heap[place], self.heap[parent]) {
                return;
            }
            self.heap.swap(place, parent);
            place = parent;
        }
    }
}

fn compare_rows(keys: &[SortKey], left: &[Value], right: &[Value]) -> Ordering {
    for (key, (left, right)) in keys.iter().zip(left.iter().zip(right)) {
        let order = compare(key, left.as_ref(), right.as_ref());
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// The order of two values of a sort key; NULL sorts before all others.
pub(super) fn compare(key: &SortKey, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    let order = match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => compare_values(key.value.result.collation, left, right),
    };
    if key.descending { order.reverse() } else { order }
}
