//! Rows that satisfy conditions, and values that are added to rows.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;

use super::{Input, Operator, Run, Step};

/// The rows for which all conditions are true.
#[derive(Debug)]
pub(super) struct Filter {
    input: Input,
    conditions: Arc<[Expression]>,
}

impl Filter {
    pub fn new(input: Input, conditions: &Arc<[Expression]>) -> Filter {
        Filter { input, conditions: Arc::clone(conditions) }
    }
}

impl Operator for Filter {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            let mut batch = match self.input.next(run)? {
                Step::Batch(batch) => batch,
                other => return Ok(other),
            };
            let mut keep = Vec::with_capacity(batch.len());
            for row in 0..batch.len() {
                keep.push(run.all_true(&self.conditions, batch.row(row))?);
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
}

impl Compute {
    pub fn new(input: Input, values: &Arc<[(Expression, u16)]>) -> Compute {
        Compute { input, values: Arc::clone(values) }
    }
}

impl Operator for Compute {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut batch = match self.input.next(run)? {
            Step::Batch(batch) => batch,
            other => return Ok(other),
        };
        for row in 0..batch.len() {
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
