//! Joins by hash, and by the keys of the left rows while they are few.

use std::sync::Arc;

use junctor_model::error::Result;
use junctor_model::value::Value;

use super::batch::{Batch, Frame};
use super::key_table::KeyTable;
use super::scan::Scan;
use super::{Input, Operator, Run, Step, append_key};
use crate::plan::tree::{JoinForm, JoinKey, JoinPlan, NullMatch};

const NONE: u32 = u32::MAX;
/// The byte of a key that is left out. Other keys begin with 0 or 1.
const LEFT_OUT: u8 = 2;

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
///
/// If NULL equals anything in a key (NOT IN), a row with NULL there is listed by its other keys. It is listed
/// again without each set of keys that may be NULL in a left row.
#[derive(Debug, Default)]
struct RightRows {
    batches: Vec<Batch>,
    /// Batch, row, and the next row with the same key.
    rows: Vec<(u32, u32, u32)>,
    heads: KeyTable,
    /// The sets of keys that are NULL in a row, as bits.
    null_sets: u32,
}

/// A set of the keys in which NULL equals anything, as bits.
type KeySet = u8;

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
    /// The sets of keys without which the row's candidates are still to be looked up, as bits.
    lists: u32,
    /// The keys in which a left row may have NULL that equals anything.
    left_nullable: KeySet,
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
            lists: 0,
            left_nullable: left_nullable(&plan.keys),
        }
    }

    /// Adds right rows to the table.
    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: Batch) -> Result<()> {
        let mut key = Vec::new();
        let (before, rows_before) = (self.table.heads.memory(), self.table.rows.len());
        let number = self.table.batches.len() as u32;
        for row in 0..batch.len() {
            let Some(nulls) = key_of_side(&self.plan.keys, (&batch, row), (false, 0), run, &mut key)? else {
                continue;
            };
            self.table.null_sets |= 1 << nulls;
            self.table.list((number, row as u32), &key);
            let more = self.left_nullable & !nulls;
            let mut left_out = more;
            while left_out != 0 {
                key_of_side(&self.plan.keys, (&batch, row), (false, left_out), run, &mut key)?;
                self.table.list((number, row as u32), &key);
                left_out = (left_out - 1) & more;
            }
        }
        let listed = self.table.rows.len() - rows_before;
        run.reserve(batch.memory() + 12 * listed + self.table.heads.memory() - before)?;
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

    /// The first right row that may be a partner of the left row.
    fn first_candidate(&mut self, run: &mut Run<'_, '_, '_>, left: &Batch, key: &mut Vec<u8>) -> Result<u32> {
        self.lists = 0;
        let Some(nulls) = key_of_side(&self.plan.keys, (left, self.row), (true, 0), run, key)? else {
            return Ok(NONE);
        };
        for of_right in (0..KeySet::BITS).filter(|of_right| self.table.null_sets & 1 << of_right != 0) {
            self.lists |= 1 << (u32::from(nulls) | of_right);
        }
        if self.lists == 1 << nulls {
            self.lists = 0;
            return Ok(self.table.heads.get(key).unwrap_or(NONE));
        }
        self.next_list(run, left, key)
    }

    /// The first candidate of the next list that has one.
    fn next_list(&mut self, run: &mut Run<'_, '_, '_>, left: &Batch, key: &mut Vec<u8>) -> Result<u32> {
        while self.lists != 0 {
            let left_out = self.lists.trailing_zeros() as KeySet;
            self.lists &= self.lists - 1;
            key_of_side(&self.plan.keys, (left, self.row), (true, left_out), run, key)?;
            if let Some(head) = self.table.heads.get(key) {
                return Ok(head);
            }
        }
        Ok(NONE)
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
                    self.first_candidate(run, left, &mut key)?
                }
            };
            run.is_spent(1);
            if candidate == NONE && self.lists != 0 {
                self.candidate = Some(self.next_list(run, left, &mut key)?);
                continue;
            }
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

impl RightRows {
    /// Adds a row, by batch and number, to the list of a key.
    fn list(&mut self, (batch, row): (u32, u32), key: &[u8]) {
        let place = self.rows.len() as u32;
        let (head, _) = self.heads.insert(key, NONE);
        let next = std::mem::replace(head, place);
        self.rows.push((batch, row, next));
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

/// The key of a row of one side, without the keys of `left_out` and those in which it has NULL that equals
/// anything. Returns the set of the latter; `None` if another value is NULL and equals nothing.
fn key_of_side(
    keys: &[JoinKey],
    (batch, row): (&Batch, usize),
    (is_left, left_out): (bool, KeySet),
    run: &mut Run<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Option<KeySet>> {
    out.clear();
    run.scratch.reset();
    let mut nulls = 0;
    // The position among the keys in which NULL equals anything, as a bit.
    let mut bit: KeySet = 1;
    for key in keys {
        let side = if is_left { &key.left } else { &key.right };
        let value = side.evaluate(None, batch.row(row), run.scratch)?;
        match key.nulls {
            NullMatch::Nothing if value.is_null() => return Ok(None),
            NullMatch::Nothing | NullMatch::Null => append_key(value, key.collation, out),
            NullMatch::Anything => {
                if value.is_null() {
                    nulls |= bit;
                }
                match value.is_null() || left_out & bit != 0 {
                    true => out.push(LEFT_OUT),
                    false => append_key(value, key.collation, out),
                }
                bit <<= 1;
            }
        }
    }
    Ok(Some(nulls))
}

/// The keys in which a left row may have NULL that equals anything.
fn left_nullable(keys: &[JoinKey]) -> KeySet {
    let null_aware = keys.iter().filter(|key| key.nulls == NullMatch::Anything).enumerate();
    null_aware.filter(|(_, key)| key.left.result.nullable).fold(0, |set, (place, _)| set | 1 << place)
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
