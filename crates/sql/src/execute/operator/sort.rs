//! Rows in order. Each batch becomes a sorted run, and the runs are merged while rows are returned.

use std::cmp::Ordering;
use std::sync::Arc;

use junctor_expression::{Parameters, compare_values};
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::program::SortKey;

use super::batch::{Batch, Frame};
use super::{Input, Operator, Run, Step};
use crate::execute::read::window_of;
use crate::plan::LimitTemplate;

/// The rows of a batch with their keys, in order.
#[derive(Debug)]
struct SortedRun {
    batch: Batch,
    /// Keys and row. The keys are taken when the row is returned.
    rows: Vec<(Vec<Value>, u32)>,
    next: usize,
}

#[derive(Debug)]
pub(super) struct Sort {
    input: Option<Input>,
    keys: Arc<[SortKey]>,
    limit: Option<LimitTemplate>,
    frame: Arc<Frame>,
    runs: Vec<SortedRun>,
    /// A heap of the runs that have rows: the run with the first row is at the front.
    heap: Vec<u32>,
    returned: u64,
    wanted: Option<u64>,
}

impl Sort {
    pub fn new(input: Input, keys: &Arc<[SortKey]>, limit: Option<&LimitTemplate>, frame: &Arc<Frame>) -> Sort {
        Sort {
            input: Some(input),
            keys: Arc::clone(keys),
            limit: limit.copied(),
            frame: Arc::clone(frame),
            runs: Vec::new(),
            heap: Vec::new(),
            returned: 0,
            wanted: None,
        }
    }

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
        // A key takes about 48 bytes and its text.
        run.reserve(2 * batch.memory() + 48 * self.keys.len() * rows.len())?;
        self.runs.push(SortedRun { batch, rows, next: 0 });
        Ok(())
    }

    fn is_before(&self, left: u32, right: u32) -> bool {
        let key = |number: u32| {
            let run = &self.runs[number as usize];
            &run.rows[run.next].0
        };
        match compare_rows(&self.keys, key(left), key(right)) {
            Ordering::Equal => left < right,
            order => order.is_lt(),
        }
    }

    fn sift(&mut self, mut place: usize) {
        loop {
            let mut first = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[first]) {
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

    fn emit(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let wanted = self.wanted.unwrap_or(u64::MAX);
        let mut out = Batch::new(&self.frame);
        while let Some(first) = self.heap.first().copied()
            && self.returned < wanted
            && !out.is_full()
        {
            let sorted = &mut self.runs[first as usize];
            out.push_copy(&sorted.batch, sorted.rows[sorted.next].1 as usize);
            sorted.next += 1;
            self.returned += 1;
            if sorted.next == sorted.rows.len() {
                self.heap.swap_remove(0);
            }
            self.sift(0);
        }
        run.is_spent(out.len());
        Ok(if out.len() > 0 { Step::Batch(out) } else { Step::Done })
    }
}

impl Operator for Sort {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        while let Some(input) = &mut self.input {
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
                Step::Done => {
                    self.input = None;
                    if let Some(limit) = &self.limit {
                        let window = window_of(Some(limit), Parameters::from_bytes(run.parameters), u64::MAX)?;
                        self.wanted = Some(window.rows_needed());
                    }
                    self.heap = (0..self.runs.len() as u32).collect();
                    for place in (0..self.heap.len() / 2).rev() {
                        self.sift(place);
                    }
                }
            }
        }
        self.emit(run)
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
