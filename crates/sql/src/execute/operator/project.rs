//! The result rows of a block as rows of another block, and the rows of VALUES.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;
use junctor_model::value::Value;

use super::batch::{BATCH_ROWS, Batch, Frame};
use super::{Input, Operator, Run, Step, open_block};
use crate::plan::tree::BlockPlan;

/// The result rows of a block.
#[derive(Debug)]
pub(super) struct Project {
    block: Arc<BlockPlan>,
    slots: Arc<[(usize, u16)]>,
    frame: Arc<Frame>,
    input: Option<Input>,
    /// The rows of a block that changes or reads the state of the session, from the given one on: they are
    /// returned one by one.
    rest: Option<(Batch, usize)>,
}

impl Project {
    pub fn new(block: &Arc<BlockPlan>, slots: &Arc<[(usize, u16)]>, frame: &Arc<Frame>) -> Project {
        let (block, slots, frame) = (Arc::clone(block), Arc::clone(slots), Arc::clone(frame));
        Project { block, slots, frame, input: None, rest: None }
    }

    /// Returns the next of the rows that are returned one by one.
    fn next_row(&mut self, run: &mut Run<'_, '_, '_>, from: Batch, row: usize) -> Result<Step> {
        let values = run.with_calls(|scratch| {
            let values =
                self.slots.iter().map(|(place, _)| self.block.values[*place].evaluate(None, from.row(row), scratch));
            values.map(|value| Ok(value?.to_value())).collect::<Result<Vec<_>>>()
        })?;
        let Some(values) = values else {
            self.rest = Some((from, row));
            return Ok(Step::Wait);
        };
        let mut batch = Batch::new(&self.frame);
        batch.push();
        for (value, (_, slot)) in values.iter().zip(&*self.slots) {
            batch.set(0, *slot, value.as_ref());
        }
        if row + 1 < from.len() {
            self.rest = Some((from, row + 1));
        }
        run.is_spent(1);
        Ok(Step::Batch(batch))
    }
}

impl Operator for Project {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if self.input.is_none() {
            let mut values: Vec<(u16, Value)> = Vec::new();
            run.scratch.reset();
            for (slot, value) in &self.block.outer {
                values.push((*slot, value.evaluate(None, self.frame.row(), run.scratch)?.to_value()));
            }
            self.input = Some(open_block(run, &self.block, &values));
        }
        if let Some((from, row)) = self.rest.take() {
            return self.next_row(run, from, row);
        }
        let Some(input) = &mut self.input else { return Ok(Step::Done) };
        let from = match input.next(run)? {
            Step::Batch(batch) => batch,
            other => return Ok(other),
        };
        if self.block.is_stateful && from.len() > 0 {
            return self.next_row(run, from, 0);
        }
        let mut batch = Batch::new(&self.frame);
        for row in 0..from.len() {
            run.scratch.reset();
            batch.push();
            for (place, slot) in &*self.slots {
                let value = self.block.values[*place].evaluate(None, from.row(row), run.scratch)?;
                batch.set(row, *slot, value);
            }
        }
        run.is_spent(from.len());
        Ok(Step::Batch(batch))
    }
}

/// The rows of VALUES.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Arc<[Vec<Expression>]>,
    slots: Arc<[u16]>,
    frame: Arc<Frame>,
    next: usize,
    /// Whether a value changes or reads the state of the session.
    is_stateful: bool,
}

impl Rows {
    pub fn new(rows: &Arc<[Vec<Expression>]>, slots: &Arc<[u16]>, frame: &Arc<Frame>) -> Rows {
        let is_stateful = rows.iter().flatten().any(Expression::is_stateful);
        Rows { rows: Arc::clone(rows), slots: Arc::clone(slots), frame: Arc::clone(frame), next: 0, is_stateful }
    }

    /// Returns the next row alone.
    fn next_row(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let Some(row) = self.rows.get(self.next) else { return Ok(Step::Done) };
        let values = run.with_calls(|scratch| {
            let values = row.iter().map(|value| value.evaluate(None, self.frame.row(), scratch));
            values.map(|value| Ok(value?.to_value())).collect::<Result<Vec<_>>>()
        })?;
        let Some(values) = values else { return Ok(Step::Wait) };
        let mut batch = Batch::new(&self.frame);
        batch.push();
        for (value, slot) in values.iter().zip(&*self.slots) {
            batch.set(0, *slot, value.as_ref());
        }
        self.next += 1;
        run.is_spent(1);
        Ok(Step::Batch(batch))
    }
}

impl Operator for Rows {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if self.is_stateful {
            return self.next_row(run);
        }
        let mut batch = Batch::new(&self.frame);
        for values in self.rows.iter().skip(self.next).take(BATCH_ROWS) {
            run.scratch.reset();
            batch.push();
            for (value, slot) in values.iter().zip(&*self.slots) {
                let value = value.evaluate(None, self.frame.row(), run.scratch)?;
                let row = batch.len() - 1;
                batch.set(row, *slot, value);
            }
        }
        self.next += batch.len();
        run.is_spent(batch.len());
        Ok(if batch.len() > 0 { Step::Batch(batch) } else { Step::Done })
    }
}
