//! Joins with a query that reads the left row: LATERAL and JSON_TABLE.

use std::sync::Arc;

use junctor_model::error::Result;

use super::batch::{Batch, Frame};
use super::{Input, Operator, Run, Step, open_block};
use crate::plan::tree::LateralPlan;

#[derive(Debug)]
pub(super) struct Lateral {
    left: Input,
    plan: Arc<LateralPlan>,
    frame: Arc<Frame>,
    batch: Option<Batch>,
    row: usize,
    /// The query over the current left row, and whether it has had a partner.
    right: Option<Input>,
    is_matched: bool,
}

impl Lateral {
    pub fn new(left: Input, plan: &Arc<LateralPlan>, frame: &Arc<Frame>) -> Lateral {
        let (plan, frame) = (Arc::clone(plan), Arc::clone(frame));
        Lateral { left, plan, frame, batch: None, row: 0, right: None, is_matched: false }
    }

    /// Opens the query over the current row.
    fn open(&self, run: &Run<'_, '_, '_>, batch: &Batch) -> Result<Input> {
        let mut outer = Vec::with_capacity(self.plan.block.outer.len());
        for (slot, value) in &self.plan.block.outer {
            outer.push((*slot, value.evaluate(None, batch.row(self.row), run.scratch)?.to_value()));
        }
        Ok(open_block(run, &self.plan.block, &outer))
    }

    /// Adds the pairs of the current left row with right rows that satisfy the conditions.
    fn pair(&mut self, run: &mut Run<'_, '_, '_>, left: &Batch, right: &Batch, out: &mut Batch) -> Result<()> {
        for row in 0..right.len() {
            out.push_copy(left, self.row);
            let place = out.len() - 1;
            run.scratch.reset();
            for (value, slot) in &*self.plan.slots {
                let value = self.plan.block.values[*value].evaluate(None, right.row(row), run.scratch)?;
                out.set(place, *slot, value);
            }
            match run.all_true(&self.plan.conditions, out.row(place))? {
                true => self.is_matched = true,
                false => out.pop(),
            }
        }
        Ok(())
    }
}

impl Operator for Lateral {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut out = Batch::new(&self.frame);
        loop {
            let Some(batch) = self.batch.take() else {
                if out.len() > 0 {
                    return Ok(Step::Batch(out));
                }
                match self.left.next(run)? {
                    Step::Batch(batch) => {
                        (self.row, self.batch) = (0, Some(batch));
                        continue;
                    }
                    other => return Ok(other),
                }
            };
            while self.row < batch.len() && !out.is_full() {
                let mut right = match self.right.take() {
                    Some(right) => right,
                    None => {
                        self.is_matched = false;
                        run.scratch.reset();
                        self.open(run, &batch)?
                    }
                };
                match right.next(run)? {
                    Step::Batch(rows) => {
                        self.pair(run, &batch, &rows, &mut out)?;
                        self.right = Some(right);
                        run.is_spent(rows.len());
                    }
                    Step::Wait => {
                        self.right = Some(right);
                        self.batch = Some(batch);
                        return Ok(if out.len() > 0 { Step::Batch(out) } else { Step::Wait });
                    }
                    Step::Done => {
                        if self.plan.is_outer && !self.is_matched {
                            out.push_copy(&batch, self.row);
                        }
                        self.row += 1;
                        run.is_spent(1);
                    }
                }
                if run.rows_left == 0 {
                    break;
                }
            }
            if self.row < batch.len() {
                self.batch = Some(batch);
            }
            if out.len() > 0 {
                return Ok(Step::Batch(out));
            }
            if run.rows_left == 0 {
                run.is_spent(0);
                return Ok(Step::Wait);
            }
        }
    }
}
