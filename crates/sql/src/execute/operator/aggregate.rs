//! Groups by hash, with ROLLUP.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};

use super::batch::{Batch, Frame};
use super::group_state::GroupState;
use super::key_table::KeyTable;
use super::{Input, Operator, Run, Step, append_group_key};
use crate::plan::tree::AggregatePlan;

/// Estimated bytes of a group without its values.
const GROUP_BYTES: usize = 96;

/// Offsets of values in a batch have 32 bits.
const BATCH_BYTES_MAX: usize = u32::MAX as usize;

/// A group: its first row, the number of keys that it has, and its aggregates.
#[derive(Debug)]
struct Group {
    batch: u32,
    row: u32,
    level: usize,
    states: Vec<GroupState>,
}

#[derive(Debug)]
pub(super) struct Aggregate {
    input: Option<Input>,
    plan: Arc<AggregatePlan>,
    frame: Arc<Frame>,
    groups: Vec<Group>,
    /// The first rows of the groups.
    rows: Vec<Batch>,
    known: KeyTable,
    returned: usize,
    /// Memory of the results in the batch that was passed on last. The next operator has taken them when it
    /// asks for another batch.
    result_bytes: usize,
}

impl Aggregate {
    pub fn new(input: Input, plan: &Arc<AggregatePlan>, frame: &Arc<Frame>) -> Aggregate {
        Aggregate {
            input: Some(input),
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            groups: Vec::new(),
            rows: Vec::new(),
            known: KeyTable::default(),
            returned: 0,
            result_bytes: 0,
        }
    }

    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let before = self.known.memory();
        let mut ends = Vec::new();
        let mut key = Vec::new();
        let mut of_level = Vec::new();
        for row in 0..batch.len() {
            run.scratch.reset();
            key.clear();
            ends.clear();
            for (value, _) in &plan.keys {
                let value_of_row: ValueRef<'_> = value.evaluate(None, batch.row(row), run.scratch)?;
                ends.push(key.len());
                append_group_key(value_of_row, value.result.collation, &mut key);
            }
            ends.push(key.len());
            let lowest = if plan.rollup { 0 } else { plan.keys.len() };
            for level in (lowest..=plan.keys.len()).rev() {
                of_level.clear();
                of_level.extend_from_slice(&(level as u32).to_le_bytes());
                of_level.extend_from_slice(&key[..ends[level]]);
                let number = self.groups.len() as u32;
                let (group, is_new) = self.known.insert(&of_level, number);
                let group = *group as usize;
                if is_new {
                    self.open_group(run, batch, row, level)?;
                }
                let states = &mut self.groups[group].states;
                if let Some(partials) = &plan.partials {
                    for (state, slot) in states.iter_mut().zip(partials) {
                        state.merge(batch.row(row).get(*slot))?;
                    }
                    continue;
                }
                for (state, function) in states.iter_mut().zip(&plan.functions) {
                    let grown = state.add(function, batch.row(row), run.scratch)?;
                    run.reserve(grown)?;
                }
            }
        }
        run.reserve(self.known.memory() - before)
    }

    fn open_group(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch, row: usize, level: usize) -> Result<()> {
        if self.rows.last().is_none_or(Batch::is_full) {
            self.rows.push(Batch::new(&self.frame));
        }
        let number = self.rows.len() - 1;
        let rows = &mut self.rows[number];
        let before = rows.memory();
        rows.push_copy(batch, row);
        run.reserve(rows.memory() - before + GROUP_BYTES * (1 + self.plan.functions.len()))?;
        let place = rows.len() - 1;
        self.push_group(number, place, level);
        Ok(())
    }

    fn push_group(&mut self, batch: usize, row: usize, level: usize) {
        let states = self.plan.functions.iter().map(GroupState::new).collect();
        self.groups.push(Group { batch: batch as u32, row: row as u32, level, states });
    }

    /// Adds the group of all rows of a block without GROUP BY, or of ROLLUP, if there are no rows.
    fn finish_input(&mut self) {
        if self.groups.is_empty() && self.plan.keys.is_empty() {
            let mut rows = Batch::new(&self.frame);
            rows.push();
            self.rows.push(rows);
            self.push_group(self.rows.len() - 1, 0, 0);
        }
    }

    fn emit(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        *run.memory = run.memory.saturating_sub(std::mem::take(&mut self.result_bytes));
        let mut out = Batch::new(&self.frame);
        while self.returned < self.groups.len() && !out.is_full() {
            let group = &mut self.groups[self.returned];
            self.returned += 1;
            out.push_copy(&self.rows[group.batch as usize], group.row as usize);
            let row = out.len() - 1;
            run.scratch.reset();
            for (place, (value, slot)) in self.plan.keys.iter().enumerate() {
                if !self.plan.rollup {
                    continue;
                }
                let shown = match place < group.level {
                    true => key_value(value, &out, row, run)?,
                    false => Value::Null,
                };
                out.set(row, *slot, shown.as_ref());
            }
            for (places, slot) in &self.plan.groupings {
                let bits = places.iter().fold(0, |bits, place| bits << 1 | i64::from(*place >= group.level));
                out.set(row, *slot, ValueRef::Int(bits));
            }
            for (state, function) in group.states.iter_mut().zip(&self.plan.functions) {
                let bytes_max = run.memory_left().min(BATCH_BYTES_MAX.saturating_sub(out.memory()));
                let value = state.finish(function, run.scratch, bytes_max)?;
                let bytes = match &value {
                    Value::Bytes(text) => text.len(),
                    Value::Json(document) => document.len(),
                    _ => 0,
                };
                self.result_bytes += bytes;
                run.reserve(bytes)?;
                if let Some(slot) = function.result.as_column() {
                    out.set(row, slot.0, value.as_ref());
                }
            }
        }
        run.is_spent(out.len());
        Ok(if out.len() > 0 { Step::Batch(out) } else { Step::Done })
    }
}

fn key_value(value: &Expression, batch: &Batch, row: usize, run: &Run<'_, '_, '_>) -> Result<Value> {
    Ok(value.evaluate(None, batch.row(row), run.scratch)?.to_value())
}

impl Operator for Aggregate {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        while let Some(input) = &mut self.input {
            match input.next(run)? {
                Step::Batch(batch) => {
                    self.add(run, &batch)?;
                    if run.is_spent(batch.len()) {
                        return Ok(Step::Wait);
                    }
                }
                Step::Wait => return Ok(Step::Wait),
                Step::Done => {
                    self.input = None;
                    self.finish_input();
                }
            }
        }
        self.emit(run)
    }
}
