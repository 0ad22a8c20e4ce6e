//! Joins by hash, and by the keys of the left rows while they are few.

use std::sync::Arc;

use junctor_model::error::Result;
use junctor_model::value::Value;

use super::batch::{Batch, Frame};
use super::key_table::KeyTable;
use super::scan::Scan;
use super::{Input, Operator, Run, Step, append_key};
use crate::plan::tree::{JoinForm, JoinKey, JoinPlan};

const NONE: u32 = u32::MAX;

/// What the join does next.
#[derive(Debug)]
enum Phase {
    /// Takes left rows.
    Left,
    /// Reads the right rows with the keys of the left batch.
    Lookup(Scan),
    /// Reads all right rows.
    Build,
    /// Pairs the left batch with the right rows.
    Probe,
}

/// Right rows by their keys. Rows with equal keys are a list.
#[derive(Debug, Default)]
struct RightRows {
    batches: Vec<Batch>,
    /// Batch, row, and the next row with the same key.
    rows: Vec<(u32, u32, u32)>,
    heads: KeyTable,
}

#[derive(Debug)]
pub(super) struct Join {
    left: Input,
    right: Input,
    plan: Arc<JoinPlan>,
    frame: Arc<Frame>,
    phase: Phase,
    table: RightRows,
    is_built: bool,
    looked_up: usize,
    batch: Option<Batch>,
    /// The row of the batch, its next candidate, and whether it has a partner. `None` before its first
    /// candidate is known.
    row: usize,
    candidate: Option<u32>,
    is_matched: bool,
}

impl Join {
    pub fn new((left, right): (Input, Input), plan: &Arc<JoinPlan>, frame: &Arc<Frame>) -> Join {
        Join {
            left,
            right,
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            phase: Phase::Left,
            table: RightRows::default(),
            is_built: false,
            looked_up: 0,
            batch: None,
            row: 0,
            candidate: None,
            is_matched: false,
        }
    }

    /// Adds right rows to the table.
    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: Batch) -> Result<()> {
        let mut key = Vec::new();
        let before = self.table.heads.memory();
        let number = self.table.batches.len() as u32;
        for row in 0..batch.len() {
            if key_of_side(&self.plan.keys, (&batch, row), false, run, &mut key)? {
                let place = self.table.rows.len() as u32;
                let (head, _) = self.table.heads.insert(&key, NONE);
                let next = std::mem::replace(head, place);
                self.table.rows.push((number, row as u32, next));
            }
        }
        run.reserve(batch.memory() + 12 * batch.len() + self.table.heads.memory() - before)?;
        self.table.batches.push(batch);
        Ok(())
    }

    /// Starts the read of the right rows for a left batch.
    fn prepare(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<Phase> {
        if self.is_built {
            return Ok(Phase::Probe);
        }
        let Some(lookup) = self.plan.lookup.filter(|lookup| self.looked_up < lookup.rows_max) else {
            self.clear(run);
            return Ok(Phase::Build);
        };
        self.looked_up += batch.len();
        self.clear(run);
        let key = &self.plan.keys[lookup.key];
        let mut keys: Vec<Value> = Vec::with_capacity(batch.len());
        let mut known = KeyTable::default();
        let mut bytes = Vec::new();
        for row in 0..batch.len() {
            run.scratch.reset();
            let value = key.left.evaluate(None, batch.row(row), run.scratch)?;
            if value.is_null() {
                continue;
            }
            bytes.clear();
            append_key(value, key.collation, &mut bytes);
            if known.insert(&bytes, 0).1 {
                keys.push(value.to_value());
            }
        }
        Ok(match keys.is_empty() {
            true => Phase::Probe,
            false => Phase::Lookup(Scan::of_keys(lookup.leaf, &self.frame, keys)),
        })
    }

    fn clear(&mut self, run: &mut Run<'_, '_, '_>) {
        let table = std::mem::take(&mut self.table);
        let batches: usize = table.batches.iter().map(Batch::memory).sum();
        let bytes = batches + 12 * table.rows.len() + table.heads.memory();
        *run.memory = run.memory.saturating_sub(bytes);
    }

    /// Pairs rows of the left batch. Returns the rows of the result.
    fn probe(&mut self, run: &mut Run<'_, '_, '_>, left: &Batch) -> Result<Batch> {
        let mut out = Batch::new(&self.frame);
        let mut key = Vec::new();
        while self.row < left.len() && !out.is_full() && run.rows_left > 0 {
            let candidate = match self.candidate {
                Some(candidate) => candidate,
                None => {
                    self.is_matched = false;
                    match key_of_side(&self.plan.keys, (left, self.row), true, run, &mut key)? {
                        true => self.table.heads.get(&key).unwrap_or(NONE),
                        false => NONE,
                    }
                }
            };
            run.is_spent(1);
            if candidate == NONE {
                let keeps = match self.plan.form {
                    JoinForm::Left | JoinForm::Anti | JoinForm::NullAwareAnti => !self.is_matched,
                    JoinForm::Inner | JoinForm::Semi => false,
                };
                if keeps {
                    out.push_copy(left, self.row);
                }
                self.row += 1;
                self.candidate = None;
                continue;
            }
            let (batch, row, next) = self.table.rows[candidate as usize];
            self.candidate = Some(next);
            out.push_copy(left, self.row);
            out.join(&self.table.batches[batch as usize], row as usize, &self.plan.right_slots);
            let last = out.row(out.len() - 1);
            let fits = match self.plan.form {
                JoinForm::NullAwareAnti => is_not_false(&self.plan, last, run)?,
                _ => run.all_true(&self.plan.conditions, last)?,
            };
            let keeps_pair = fits && matches!(self.plan.form, JoinForm::Inner | JoinForm::Left);
            if !keeps_pair {
                out.pop();
            }
            if fits {
                self.is_matched = true;
                match self.plan.form {
                    JoinForm::Inner | JoinForm::Left => {}
                    JoinForm::Semi => {
                        out.push_copy(left, self.row);
                        self.row += 1;
                        self.candidate = None;
                    }
                    JoinForm::Anti | JoinForm::NullAwareAnti => {
                        self.row += 1;
                        self.candidate = None;
                    }
                }
            }
        }
        Ok(out)
    }
}

impl Operator for Join {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            match &mut self.phase {
                Phase::Left if self.plan.reads_right_first && !self.is_built => self.phase = Phase::Build,
                Phase::Left => match self.left.next(run)? {
                    Step::Batch(batch) => {
                        self.phase = self.prepare(run, &batch)?;
                        (self.row, self.candidate) = (0, None);
                        self.batch = Some(batch);
                    }
                    other => return Ok(other),
                },
                Phase::Lookup(scan) => match scan.next(run)? {
                    Step::Batch(batch) => self.add(run, batch)?,
                    Step::Wait => return Ok(Step::Wait),
                    Step::Done => self.phase = Phase::Probe,
                },
                Phase::Build => match self.right.next(run)? {
                    Step::Batch(batch) => {
                        let rows = batch.len();
                        self.add(run, batch)?;
                        if run.is_spent(rows) {
                            return Ok(Step::Wait);
                        }
                    }
                    Step::Wait => return Ok(Step::Wait),
                    Step::Done => {
                        self.is_built = true;
                        self.phase = Phase::Probe;
                    }
                },
                Phase::Probe => {
                    let Some(left) = self.batch.take() else {
                        self.phase = Phase::Left;
                        continue;
                    };
                    let out = self.probe(run, &left)?;
                    match self.row < left.len() {
                        true => self.batch = Some(left),
                        false => self.phase = Phase::Left,
                    }
                    if out.len() > 0 {
                        return Ok(Step::Batch(out));
                    }
                    if run.rows_left == 0 {
                        return Ok(Step::Wait);
                    }
                }
            }
        }
    }
}

/// The key of a row of one side. Returns false if a value is NULL and cannot equal another.
fn key_of_side(
    keys: &[JoinKey],
    (batch, row): (&Batch, usize),
    is_left: bool,
    run: &mut Run<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    out.clear();
    run.scratch.reset();
    for key in keys {
        let side = if is_left { &key.left } else { &key.right };
        let value = side.evaluate(None, batch.row(row), run.scratch)?;
        if value.is_null() && !key.null_safe {
            return Ok(false);
        }
        append_key(value, key.collation, out);
    }
    Ok(true)
}

/// Whether the conditions are true or unknown.
fn is_not_false(plan: &JoinPlan, row: junctor_expression::Parameters<'_>, run: &mut Run<'_, '_, '_>) -> Result<bool> {
    run.scratch.reset();
    let Some((equality, others)) = plan.conditions.split_last() else { return Ok(true) };
    for condition in others {
        if !condition.is_true(None, row, run.scratch)? {
            return Ok(false);
        }
    }
    let value = equality.evaluate(None, row, run.scratch)?;
    Ok(!matches!(value, junctor_model::value::ValueRef::Int(0)))
}
