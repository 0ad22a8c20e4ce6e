//! The frame of the current row.

use std::cmp::Ordering;

use junctor_expression::{Expression, Parameters};
use junctor_model::error::Result;
use junctor_model::value::Value;
use junctor_signals::program::SortKey;

use super::super::Run;
use super::super::sort::compare;
use super::partition::Partition;
use crate::bind::window::{check_distance, illegal_bound_value};
use crate::plan::tree::StepBound;

/// A bound of a frame in one execution.
#[derive(Debug)]
pub(super) struct FrameEdge {
    /// The number of rows of ROWS.
    distance: u64,
    /// The position that the search for a limit of RANGE has reached.
    reached: u64,
}

impl FrameEdge {
    /// Evaluates the distance. Error: 3586.
    pub fn new(bound: &StepBound, row: Parameters<'_>, run: &Run<'_, '_, '_>) -> Result<FrameEdge> {
        let illegal = || illegal_bound_value();
        let value =
            |distance: &Expression| -> Result<Value> { Ok(distance.evaluate(None, row, run.scratch)?.to_value()) };
        let distance = match bound {
            StepBound::Rows { distance, .. } => check_distance(&value(distance)?, false).ok_or_else(illegal)?,
            StepBound::Range { distance, .. } => check_distance(&value(distance)?, true).ok_or_else(illegal)?,
            _ => 0,
        };
        Ok(FrameEdge { distance, reached: 0 })
    }

    /// Begins another partition.
    pub fn reset(&mut self) {
        self.reached = 0;
    }

    /// The first row of the frame; `None` if it depends on rows that are not known.
    pub fn start(&mut self, bound: &StepBound, order: &[SortKey], partition: &Partition) -> Option<u64> {
        let current = partition.current;
        match bound {
            StepBound::Unbounded => Some(0),
            StepBound::Current => Some(current),
            StepBound::Peers => Some(partition.peers_start()),
            StepBound::Rows { is_preceding: true, .. } => Some(current.saturating_sub(self.distance)),
            StepBound::Rows { is_preceding: false, .. } => {
                self.position(current.saturating_add(self.distance), partition)
            }
            StepBound::Range { .. } => self.search(bound, order, partition, |order| order.is_lt()),
        }
    }

    /// The row after the frame; `None` if it depends on rows that are not known.
    pub fn end(&mut self, bound: &StepBound, order: &[SortKey], partition: &Partition) -> Option<u64> {
        let next = partition.current + 1;
        match bound {
            StepBound::Unbounded => partition.end(),
            StepBound::Current => Some(next),
            StepBound::Peers => partition.peers_end(),
            StepBound::Rows { is_preceding: true, .. } => Some(next.saturating_sub(self.distance)),
            StepBound::Rows { is_preceding: false, .. } => self.position(next.saturating_add(self.distance), partition),
            StepBound::Range { .. } => self.search(bound, order, partition, |order| order.is_le()),
        }
    }

    /// The first row that the function needs to find the bound of the current row.
    pub fn needed(&self, bound: &StepBound) -> u64 {
        match bound {
            StepBound::Range { .. } => self.reached,
            _ => u64::MAX,
        }
    }

    fn position(&self, wanted: u64, partition: &Partition) -> Option<u64> {
        if wanted <= partition.rows {
            return Some(wanted);
        }
        partition.end()
    }

    /// The first row whose key is not before the limit of the current row, as `is_before` decides. Limits are
    /// in the order of the rows, so the search goes on where it stopped.
    fn search(
        &mut self,
        bound: &StepBound,
        order: &[SortKey],
        partition: &Partition,
        is_before: fn(Ordering) -> bool,
    ) -> Option<u64> {
        let (StepBound::Range { is_preceding, limit, key, .. }, [sort]) = (bound, order) else { return Some(0) };
        let row = partition.row(partition.current);
        let (own, limit) = (row.get(*key), row.get(*limit));
        // A limit beyond the range of its type is NULL.
        let is_beyond = limit.is_null() && !own.is_null();
        while self.reached < partition.rows {
            let value = partition.row(self.reached).get(*key);
            let order = match (is_beyond, value.is_null()) {
                (true, true) => compare(sort, value, own),
                (true, false) if *is_preceding => Ordering::Greater,
                (true, false) => Ordering::Less,
                (false, _) => compare(sort, value, limit),
            };
            if !is_before(order) {
                return Some(self.reached);
            }
            self.reached += 1;
        }
        partition.end()
    }
}

/// The value of a constant argument. Error: 1210.
pub(super) fn number_of(
    number: &Expression,
    (least, name): (u64, &str),
    row: Parameters<'_>,
    run: &Run<'_, '_, '_>,
) -> Result<u64> {
    let value = number.evaluate(None, row, run.scratch)?.to_value();
    crate::bind::window::whole_number(&value, least).ok_or_else(|| crate::bind::message::wrong_arguments(name))
}
