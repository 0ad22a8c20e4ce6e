//! Window functions. The rows come in the order of the partitions and of their window.
//!
//! The operator keeps the input columns of a partition only from the first row that a function still needs.
//! Exact sums and counts take back the rows that leave a frame, MIN and MAX keep the rows that can still win,
//! and other aggregates begin again when the first row of their frame moves.

mod frame;
mod function;
mod partition;

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_model::error::Result;
use junctor_model::value::Value;
use junctor_signals::program::SortKey;

use super::batch::{Batch, Frame};
use super::{Input, Operator, Run, Step};
use crate::execute::memory::Account;
use crate::plan::tree::WindowPlan;

use function::{FunctionState, Outcome};
use partition::Partition;

/// Rows of the input.
#[derive(Debug)]
struct Pending {
    batch: Batch,
    /// Number of rows that have entered the partition, and of those with all values.
    entered: usize,
    computed: usize,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Window {
    input: Option<Input>,
    plan: Arc<WindowPlan>,
    frame: Arc<Frame>,
    pending: VecDeque<Pending>,
    partition: Partition,
    /// The functions; empty before the first row.
    functions: Vec<FunctionState>,
    /// The function that is computed next for the current row.
    function: usize,
    /// The keys of the last row: of the partition and of the order.
    keys: Option<(Vec<Value>, Vec<Value>)>,
    /// The memory of the pending rows and of the partition.
    account: Account,
}

/// What became of a row.
enum Computed {
    Row,
    NeedsRows,
    Spent,
}

impl Window {
    pub fn new(input: Input, plan: &Arc<WindowPlan>, frame: &Arc<Frame>) -> Window {
        let columns = Arc::new(Frame::new(Parameters::default(), plan.inputs.len()));
        Window {
            input: Some(input),
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            pending: VecDeque::new(),
            partition: Partition::new(columns),
            functions: Vec::new(),
            function: 0,
            keys: None,
            account: Account::default(),
        }
    }

    /// Computes the values of the current row.
    fn compute(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Computed> {
        if self.partition.current >= self.partition.rows {
            return Ok(Computed::NeedsRows);
        }
        let Some(front) = self.pending.front_mut() else { return Ok(Computed::NeedsRows) };
        let plan = Arc::clone(&self.plan);
        while let (Some(step), Some(state)) = (plan.functions.get(self.function), self.functions.get_mut(self.function))
        {
            run.scratch.reset();
            match state.value((step, &plan.order), &self.partition, run)? {
                Outcome::Value(value) => front.batch.set(front.computed, step.slot, value.as_ref()),
                Outcome::NeedsRows => return Ok(Computed::NeedsRows),
                Outcome::Spent => return Ok(Computed::Spent),
            }
            self.function += 1;
        }
        self.function = 0;
        front.computed += 1;
        self.partition.advance();
        let steps = plan.functions.iter().zip(&self.functions);
        let needed = steps.map(|(step, state)| state.needed(step, &self.partition)).min();
        let dropped = self.partition.drop_before(needed.unwrap_or(0));
        self.account.release(dropped);
        Ok(if run.is_spent(1) { Computed::Spent } else { Computed::Row })
    }

    /// Adds the next row of the last batch to the partition. Returns false if it begins another partition and
    /// the rows of this one have no values yet.
    fn enter(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        let Some(Pending { batch, entered, .. }) = self.pending.back_mut() else { return Ok(true) };
        let row = batch.row(*entered);
        let plan = Arc::clone(&self.plan);
        run.scratch.reset();
        let partition = values_of(&plan.partition, row, run)?;
        let order = values_of(&plan.order, row, run)?;
        let mut is_peer = false;
        if let Some((last_partition, last_order)) = &self.keys {
            match are_equal(&plan.partition, last_partition, &partition) {
                true => is_peer = are_equal(&plan.order, last_order, &order),
                false if self.partition.current < self.partition.rows => {
                    self.partition.is_complete = true;
                    return Ok(false);
                }
                false => {
                    self.account.release(self.partition.memory());
                    self.partition = self.partition.next();
                    for (step, state) in plan.functions.iter().zip(&mut self.functions) {
                        state.reset(step);
                    }
                }
            }
        }
        if self.functions.is_empty() {
            let constants = self.frame.row();
            for step in &plan.functions {
                self.functions.push(FunctionState::new(step, constants, run)?);
            }
        }
        let mut grown = self.partition.push(is_peer && self.partition.rows > 0);
        for (column, input) in plan.inputs.iter().enumerate() {
            run.scratch.reset();
            let value = match input.is_unrounded {
                true => input.value.evaluate_unrounded(None, row, run.scratch)?,
                false => input.value.evaluate(None, row, run.scratch)?,
            };
            grown += self.partition.set(column as u16, value);
        }
        *entered += 1;
        self.keys = Some((partition, order));
        self.account.hold(run.memory, grown)?;
        Ok(true)
    }
}

impl Operator for Window {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            if let Some(front) = self.pending.front()
                && front.computed == front.batch.len()
                && let Some(Pending { batch, bytes, .. }) = self.pending.pop_front()
            {
                self.account.release(bytes);
                return Ok(Step::Batch(batch));
            }
            match self.compute(run)? {
                Computed::Row => continue,
                Computed::Spent => return Ok(Step::Wait),
                Computed::NeedsRows => {}
            }
            if self.pending.back().is_some_and(|last| last.entered < last.batch.len()) {
                if self.enter(run)? && run.is_spent(1) {
                    return Ok(Step::Wait);
                }
                continue;
            }
            let Some(input) = &mut self.input else {
                if self.pending.is_empty() {
                    return Ok(Step::Done);
                }
                self.partition.is_complete = true;
                continue;
            };
            match input.next(run)? {
                Step::Batch(batch) if batch.len() == 0 => {}
                Step::Batch(batch) => {
                    // The results add about 16 bytes each.
                    let bytes = batch.memory() + 16 * self.plan.functions.len() * batch.len();
                    self.account.hold(run.memory, bytes)?;
                    self.pending.push_back(Pending { batch, entered: 0, computed: 0, bytes });
                }
                Step::Wait => return Ok(Step::Wait),
                Step::Done => self.input = None,
            }
        }
    }
}

fn values_of(keys: &[SortKey], row: Parameters<'_>, run: &Run<'_, '_, '_>) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        values.push(key.value.evaluate(None, row, run.scratch)?.to_value());
    }
    Ok(values)
}

fn are_equal(keys: &[SortKey], left: &[Value], right: &[Value]) -> bool {
    let mut pairs = keys.iter().zip(left.iter().zip(right));
    pairs.all(|(key, (left, right))| super::sort::compare(key, left.as_ref(), right.as_ref()).is_eq())
}
