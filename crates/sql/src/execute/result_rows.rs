//! The result rows of a query over rows of the session: one of equal rows, in the order of sort keys.
//!
//! Rows arrive in runs. A run is sorted when it ends, and the runs are merged while rows are taken. No step
//! sorts all rows.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use junctor_expression::aggregate::append_distinct_key;
use junctor_expression::{Expression, compare_values};
use junctor_model::collation::CollationId;
use junctor_model::value::Value;
use junctor_signals::program::SortKey;

/// A result row.
#[derive(Debug)]
pub(super) struct ResultRow {
    pub values: Vec<Value>,
    pub keys: Vec<Value>,
}

/// The result rows of a query.
#[derive(Debug, Default)]
pub(super) struct ResultRows {
    /// The run that has not ended.
    run: Vec<ResultRow>,
    runs: Vec<std::vec::IntoIter<ResultRow>>,
    /// The runs that have rows, as a heap: the run of the first row comes first.
    heap: Vec<usize>,
    /// The keys of the rows of DISTINCT.
    known: BTreeSet<Vec<u8>>,
}

impl ResultRows {
    /// Whether no equal row has been asked about before. `values` computes the row's values.
    pub fn is_new(&mut self, row: &ResultRow, values: &[Expression]) -> bool {
        let mut key = Vec::new();
        for (value, expression) in row.values.iter().zip(values) {
            key.push(u8::from(!value.is_null()));
            let at = key.len();
            key.extend_from_slice(&[0; 4]);
            if !value.is_null() {
                append_distinct_key(value.as_ref(), expression.result.collation, &mut key);
            }
            // No key is the beginning of another one.
            let length = (key.len() - at - 4) as u32;
            key[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        self.known.insert(key)
    }

    /// Adds a row to the current run.
    pub fn push(&mut self, row: ResultRow) {
        self.run.push(row);
    }

    /// Ends the current run, which gets sorted.
    pub fn end_run(&mut self, sort: &[SortKey]) {
        if self.run.is_empty() {
            return;
        }
        let mut run = std::mem::take(&mut self.run);
        if !sort.is_empty() {
            run.sort_by(|left, right| compare_keys(sort, left, right));
        }
        self.runs.push(run.into_iter());
        let mut at = self.heap.len();
        self.heap.push(self.runs.len() - 1);
        while at > 0 && self.order(sort, at, (at - 1) / 2).is_lt() {
            self.heap.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    /// Takes the next row of the runs that have ended. Rows with equal keys keep their order.
    pub fn take(&mut self, sort: &[SortKey]) -> Option<ResultRow> {
        let run = &mut self.runs[*self.heap.first()?];
        let row = run.next();
        if run.as_slice().is_empty() {
            self.heap.swap_remove(0);
        }
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.order(sort, child, least).is_lt() {
                    least = child;
                }
            }
            if least == at {
                return row;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// The order of the first rows of the runs at two places of the heap.
    fn order(&self, sort: &[SortKey], left: usize, right: usize) -> Ordering {
        let (left, right) = (self.heap[left], self.heap[right]);
        let first = |run: usize| self.runs[run].as_slice().first();
        let by_keys = first(left).zip(first(right)).map(|(left, right)| compare_keys(sort, left, right));
        by_keys.unwrap_or(Ordering::Equal).then(left.cmp(&right))
    }
}

fn compare_keys(sort: &[SortKey], left: &ResultRow, right: &ResultRow) -> Ordering {
    for (key, (left, right)) in sort.iter().zip(left.keys.iter().zip(&right.keys)) {
        let order = compare_nullable(key.value.result.collation, left, right);
        let order = if key.descending { order.reverse() } else { order };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Compares two values; NULL sorts before all others.
fn compare_nullable(collation: CollationId, left: &Value, right: &Value) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => compare_values(collation, left.as_ref(), right.as_ref()),
    }
}
