//! The rows of two inputs: UNION ALL, INTERSECT and EXCEPT.

use std::sync::Arc;

use junctor_model::error::Result;

use super::key_table::KeyTable;
use super::{Input, Operator, Run, Step, key_of};
use crate::parse::query::SetOperator;
use crate::plan::tree::SetPlan;

/// The rows of both inputs, one after the other.
#[derive(Debug)]
pub(super) struct Concat {
    left: Option<Input>,
    right: Input,
}

impl Concat {
    pub fn new(left: Input, right: Input) -> Concat {
        Concat { left: Some(left), right }
    }
}

impl Operator for Concat {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if let Some(left) = &mut self.left {
            match left.next(run)? {
                Step::Done => self.left = None,
                other => return Ok(other),
            }
        }
        self.right.next(run)
    }
}

/// INTERSECT and EXCEPT. The right rows are counted by their values first.
#[derive(Debug)]
pub(super) struct Set {
    left: Input,
    right: Option<Input>,
    plan: Arc<SetPlan>,
    /// The right rows by their values: how many are left. Without ALL, also the left rows that were returned.
    counts: KeyTable,
    returned: KeyTable,
}

impl Set {
    pub fn new((left, right): (Input, Input), plan: &Arc<SetPlan>) -> Set {
        Set {
            left,
            right: Some(right),
            plan: Arc::clone(plan),
            counts: KeyTable::default(),
            returned: KeyTable::default(),
        }
    }
}

impl Operator for Set {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut key = Vec::new();
        while let Some(right) = &mut self.right {
            match right.next(run)? {
                Step::Done => self.right = None,
                Step::Wait => return Ok(Step::Wait),
                Step::Batch(batch) => {
                    let before = self.counts.memory();
                    for row in 0..batch.len() {
                        key_of(&self.plan.values, batch.row(row), run.scratch, &mut key)?;
                        let (count, _) = self.counts.insert(&key, 0);
                        *count = count.saturating_add(1);
                    }
                    run.reserve(self.counts.memory() - before)?;
                    if run.is_spent(batch.len()) {
                        return Ok(Step::Wait);
                    }
                }
            }
        }
        let mut batch = match self.left.next(run)? {
            Step::Batch(batch) => batch,
            other => return Ok(other),
        };
        let before = self.returned.memory();
        let mut keep = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            key_of(&self.plan.values, batch.row(row), run.scratch, &mut key)?;
            let is_right = self.counts.get(&key).is_some_and(|count| count > 0);
            let wants_right = self.plan.operator == SetOperator::Intersect;
            keep.push(match self.plan.all {
                true => {
                    if is_right {
                        *self.counts.insert(&key, 0).0 -= 1;
                    }
                    is_right == wants_right
                }
                false => is_right == wants_right && self.returned.insert(&key, 0).1,
            });
        }
        run.reserve(self.returned.memory() - before)?;
        run.is_spent(keep.len());
        batch.retain(&keep);
        Ok(Step::Batch(batch))
    }
}
