//! Rows that satisfy conditions, and values that are added to rows.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;

use super::batch::Batch;
use super::{Input, Operator, Run, Step, all_true};

/// The rows for which all conditions are true.
#[derive(Debug)]
pub(super) struct Filter {
    input: Input,
    conditions: Arc<[Expression]>,
    /// Whether a condition changes or reads the state of the session. Batches then have one row.
    is_stateful: bool,
    /// The row whose conditions wait for a call.
    waiting: Option<Batch>,
}

impl Filter {
    pub fn new(input: Input, conditions: &Arc<[Expression]>) -> Filter {
        let is_stateful = conditions.iter().any(Expression::is_stateful);
        Filter { input, conditions: Arc::clone(conditions), is_stateful, waiting: None }
    }
}

impl Operator for Filter {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            let mut batch = match next_or_waiting(&mut self.input, &mut self.waiting, run)? {
                Step::Batch(batch) => batch,
                other => return Ok(other),
            };
            let mut keep = Vec::with_capacity(batch.len());
            for row in 0..batch.len() {
                if !self.is_stateful {
                    keep.push(run.all_true(&self.conditions, batch.row(row))?);
                    continue;
                }
                let kept = run.with_calls(|scratch| all_true(&self.conditions, batch.row(row), scratch))?;
                let Some(kept) = kept else {
                    self.waiting = Some(batch);
                    return Ok(Step::Wait);
                };
                keep.push(kept);
            }
            batch.retain(&keep);
            let is_spent = run.is_spent(keep.len());
            if batch.len() > 0 {
                return Ok(Step::Batch(batch));
            }
            if is_spent {
                return Ok(Step::Wait);
            }
        }
    }
}

/// Rows with additional values.
#[derive(Debug)]
pub(super) struct Compute {
    input: Input,
    values: Arc<[(Expression, u16)]>,
    /// Whether a value changes or reads the state of the session. Batches then have one row.
    is_stateful: bool,
    /// The row whose values wait for a call.
    waiting: Option<Batch>,
}

impl Compute {
    pub fn new(input: Input, values: &Arc<[(Expression, u16)]>) -> Compute {
        let is_stateful = values.iter().any(|(value, _)| value.is_stateful());
        Compute { input, values: Arc::clone(values), is_stateful, waiting: None }
    }

    /// Adds the values of a row. Returns false if they wait for a call.
    fn compute(&self, run: &mut Run<'_, '_, '_>, batch: &mut Batch, row: usize) -> Result<bool> {
        let values = run.with_calls(|scratch| {
            let values = self.values.iter().map(|(value, _)| value.evaluate(None, batch.row(row), scratch));
            values.map(|value| Ok(value?.to_value())).collect::<Result<Vec<_>>>()
        })?;
        let Some(values) = values else { return Ok(false) };
        for (value, (_, slot)) in values.iter().zip(&*self.values) {
            batch.set(row, *slot, value.as_ref());
        }
        Ok(true)
    }
}

impl Operator for Compute {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut batch = match next_or_waiting(&mut self.input, &mut self.waiting, run)? {
            Step::Batch(batch) => batch,
            other => return Ok(other),
        };
        for row in 0..batch.len() {
            if self.is_stateful {
                if !self.compute(run, &mut batch, row)? {
                    self.waiting = Some(batch);
                    return Ok(Step::Wait);
                }
                continue;
            }
            run.scratch.reset();
            for (value, slot) in &*self.values {
                let value = value.evaluate(None, batch.row(row), run.scratch)?.to_value();
                batch.set(row, *slot, value.as_ref());
            }
        }
        run.is_spent(batch.len());
        Ok(Step::Batch(batch))
    }
}

/// The batch of the row that waits for a call, or else the next of the input.
fn next_or_waiting(input: &mut Input, waiting: &mut Option<Batch>, run: &mut Run<'_, '_, '_>) -> Result<Step> {
    match waiting.take() {
        Some(batch) => Ok(Step::Batch(batch)),
        None => input.next(run),
    }
}
