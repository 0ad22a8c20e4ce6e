//! Groups by hash, with ROLLUP.
//!
//! If the groups, or their states, exceed the memory of the query, those in memory are completed, and the
//! rows of all others go to the temporary file, divided by their keys. Each part is then grouped in the same
//! way. So no state of an aggregate leaves memory.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};

use super::batch::{Batch, Frame};
use super::group_state::GroupState;
use super::key_table::KeyTable;
use super::spool::{Parts, Rows, Spool, Spooled, key_at};
use super::{Input, Operator, Run, Step, append_group_key};
use crate::execute::memory::Account;
use crate::plan::tree::AggregatePlan;

/// Estimated bytes of a group without its values.
const GROUP_BYTES: usize = 96;
/// Bytes of the level before the keys of a group.
const LEVEL_BYTES: usize = 4;

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
    from: Rows,
    /// How often the rows were divided.
    division: u32,
    plan: Arc<AggregatePlan>,
    frame: Arc<Frame>,
    groups: Vec<Group>,
    /// The first rows of the groups.
    rows: Vec<Batch>,
    known: KeyTable,
    returned: usize,
    /// The rows of groups that do not fit into memory; `None` as long as all fit.
    others: Option<Parts>,
    /// The parts that are grouped later, with how often they were divided.
    parts: Vec<(Spool, u32)>,
    account: Account,
    /// Memory of the results in the batch that was passed on last. The next operator has taken them when it
    /// asks for another batch.
    results: Account,
}

impl Aggregate {
    pub fn new(input: Input, plan: &Arc<AggregatePlan>, frame: &Arc<Frame>) -> Aggregate {
        Aggregate {
            from: Rows::Input(input),
            division: 0,
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            groups: Vec::new(),
            rows: Vec::new(),
            known: KeyTable::default(),
            returned: 0,
            others: None,
            parts: Vec::new(),
            account: Account::default(),
            results: Account::default(),
        }
    }

    /// Adds rows of the input to the groups of all levels.
    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<()> {
        let plan = Arc::clone(&self.plan);
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
                self.add_to_group(run, (batch, row), &of_level)?;
            }
        }
        Ok(())
    }

    /// Adds a row to the group with a key, which begins with the level.
    fn add_to_group(&mut self, run: &mut Run<'_, '_, '_>, (batch, row): (&Batch, usize), key: &[u8]) -> Result<()> {
        let group = match (self.known.get(key), &mut self.others) {
            (Some(group), _) => group as usize,
            (None, Some(others)) => return others.push(run, Some((batch, row)), key),
            (None, None) => {
                self.open_group(run, (batch, row), key);
                self.groups.len() - 1
            }
        };
        let states = &mut self.groups[group].states;
        if let Some(partials) = &self.plan.partials {
            for (state, slot) in states.iter_mut().zip(partials) {
                state.merge(batch.row(row).get(*slot))?;
            }
            return Ok(());
        }
        for (state, function) in states.iter_mut().zip(&self.plan.functions) {
            let grown = state.add(function, batch.row(row), run.scratch)?;
            if grown > 0 && !self.account.try_hold(run.memory, grown) {
                // The groups in memory stay, but take no others with them.
                self.account.hold(run.memory, grown)?;
                if run.spill.is_allowed() {
                    self.others.get_or_insert_with(|| Parts::new(&self.frame, self.division));
                }
            }
        }
        Ok(())
    }

    /// Adds a group. If it does not fit, it is the last one.
    fn open_group(&mut self, run: &mut Run<'_, '_, '_>, (batch, row): (&Batch, usize), key: &[u8]) {
        if self.rows.last().is_none_or(Batch::is_full) {
            self.rows.push(Batch::new(&self.frame));
        }
        let number = self.rows.len() - 1;
        let rows = &mut self.rows[number];
        let before = rows.memory() + self.known.memory();
        rows.push_copy(batch, row);
        self.known.insert(key, self.groups.len() as u32);
        let (place, after) = (rows.len() - 1, rows.memory() + self.known.memory());
        let level = key.first_chunk::<LEVEL_BYTES>().map_or(0, |level| u32::from_le_bytes(*level));
        self.push_group(number, place, level as usize);
        let bytes = after - before + GROUP_BYTES * (1 + self.plan.functions.len());
        if !self.account.try_hold(run.memory, bytes) {
            self.account.take(run.memory, bytes);
            self.others = Some(Parts::new(&self.frame, self.division));
        }
    }

    fn push_group(&mut self, batch: usize, row: usize, level: usize) {
        let states = self.plan.functions.iter().map(GroupState::new).collect();
        self.groups.push(Group { batch: batch as u32, row: row as u32, level, states });
    }

    /// Adds rows. Returns whether all rows have arrived, and `None` if they must be waited for.
    fn take_rows(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Option<bool>> {
        if run.spill.is_full() {
            return Ok(None);
        }
        let rows = match &mut self.from {
            Rows::Input(input) => match input.next(run)? {
                Step::Batch(batch) => {
                    self.add(run, &batch)?;
                    batch.len()
                }
                Step::Wait => return Ok(None),
                Step::Done => return Ok(Some(true)),
            },
            Rows::Part(spool) => match spool.take(run)? {
                Spooled::Rows([rows, keys]) => {
                    for row in 0..rows.len() {
                        self.add_to_group(run, (&rows, row), key_at(&keys, row))?;
                    }
                    rows.len()
                }
                Spooled::Wait => return Ok(None),
                Spooled::End => return Ok(Some(true)),
            },
            Rows::End => return Ok(Some(true)),
        };
        Ok(if run.is_spent(rows) { None } else { Some(false) })
    }

    /// Ends the input. Adds the group of all rows of a block without GROUP BY, or of ROLLUP, if there are no
    /// rows.
    fn finish_input(&mut self, run: &mut Run<'_, '_, '_>) -> Result<()> {
        let from = std::mem::replace(&mut self.from, Rows::End);
        if matches!(from, Rows::Input(_)) && self.groups.is_empty() && self.plan.keys.is_empty() {
            let mut rows = Batch::new(&self.frame);
            rows.push();
            self.rows.push(rows);
            self.push_group(self.rows.len() - 1, 0, 0);
        }
        if let Some(others) = self.others.take() {
            let (spools, division) = others.seal(run)?;
            self.parts.extend(spools.into_iter().filter(|spool| !spool.is_empty()).map(|spool| (spool, division)));
        }
        Ok(())
    }

    fn emit(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Option<Batch>> {
        self.results.clear();
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
                if bytes > 0 {
                    self.results.hold(run.memory, bytes)?;
                }
                if let Some(slot) = function.result.as_column() {
                    out.set(row, slot.0, value.as_ref());
                }
            }
        }
        run.is_spent(out.len());
        Ok((out.len() > 0).then_some(out))
    }
}

fn key_value(value: &Expression, batch: &Batch, row: usize, run: &Run<'_, '_, '_>) -> Result<Value> {
    Ok(value.evaluate(None, batch.row(row), run.scratch)?.to_value())
}

impl Operator for Aggregate {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            while !matches!(self.from, Rows::End) {
                match self.take_rows(run)? {
                    Some(true) => self.finish_input(run)?,
                    Some(false) => {}
                    None => return Ok(Step::Wait),
                }
            }
            if let Some(batch) = self.emit(run)? {
                return Ok(Step::Batch(batch));
            }
            (self.groups, self.rows, self.returned) = (Vec::new(), Vec::new(), 0);
            self.known = KeyTable::default();
            self.account.clear();
            match self.parts.pop() {
                Some((spool, division)) => (self.from, self.division) = (Rows::Part(spool), division),
                None => return Ok(Step::Done),
            }
        }
    }
}
