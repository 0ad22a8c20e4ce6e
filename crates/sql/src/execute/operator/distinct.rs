//! One of several rows with equal values.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;

use super::key_table::KeyTable;
use super::{Input, Operator, Run, Step, key_of};

#[derive(Debug)]
pub(super) struct Distinct {
    input: Input,
    values: Arc<[Expression]>,
    known: KeyTable,
}

impl Distinct {
    pub fn new(input: Input, values: &Arc<[Expression]>) -> Distinct {
        Distinct { input, values: Arc::clone(values), known: KeyTable::default() }
    }
}

impl Operator for Distinct {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut batch = match self.input.next(run)? {
            Step::Batch(batch) => batch,
            other => return Ok(other),
        };
        let before = self.known.memory();
        let mut key = Vec::new();
        let mut keep = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            key_of(&self.values, batch.row(row), run.scratch, &mut key)?;
            keep.push(self.known.insert(&key, 0).1);
        }
        run.reserve(self.known.memory() - before)?;
        run.is_spent(keep.len());
        batch.retain(&keep);
        Ok(Step::Batch(batch))
    }
}
