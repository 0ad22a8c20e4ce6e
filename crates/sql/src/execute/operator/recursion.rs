//! Recursive queries. Each round runs the recursive queries over the rows of the round before.

use std::sync::Arc;

use junctor_expression::{Expression, Kind};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::{Value, ValueRef};

use super::batch::{Batch, Frame};
use super::key_table::KeyTable;
use super::spool::{Spool, Spooled};
use super::{Input, Operator, Run, Step, key_of, open_round};
use crate::execute::memory::Account;
use crate::plan::tree::RecursionPlan;

#[derive(Debug)]
pub(super) struct Recursion {
    plan: Arc<RecursionPlan>,
    frame: Arc<Frame>,
    /// The query that runs: the seed, or the recursive query before `member`.
    input: Option<Input>,
    is_seed: bool,
    member: usize,
    round: u64,
    /// The rows of the last round, and those that this round has made.
    work: Arc<WorkRows>,
    made: WorkRows,
    /// All rows, for UNION DISTINCT. They stay in memory, because each new row is compared with them.
    known: KeyTable,
    account: Account,
    /// The rows of the last batch for messages.
    rows: u64,
}

impl Recursion {
    pub fn new(seed: Input, plan: &Arc<RecursionPlan>, frame: &Arc<Frame>) -> Recursion {
        Recursion {
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            input: Some(seed),
            is_seed: true,
            member: 0,
            round: 0,
            work: Arc::new(WorkRows::new(frame)),
            made: WorkRows::new(frame),
            known: KeyTable::default(),
            account: Account::default(),
            rows: 0,
        }
    }

    /// Opens the next query. Returns false if the last round has made no rows. Error: 3636.
    fn open_next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        if self.is_seed || self.member == self.plan.members.len() {
            self.made.spool.seal(run)?;
            let made = std::mem::replace(&mut self.made, WorkRows::new(&self.frame));
            let is_over = made.is_empty();
            self.work = Arc::new(made);
            if is_over {
                return Ok(false);
            }
            (self.is_seed, self.member) = (false, 0);
            self.round += 1;
            let depth = self.plan.depth.evaluate(None, self.frame.row(), run.scratch)?;
            let most = match depth {
                ValueRef::Int(most) => most.max(0) as u64,
                ValueRef::UInt(most) => most,
                _ => u64::MAX,
            };
            if self.round > most {
                let text = format!(
                    "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger \
                     value.",
                    self.round
                );
                return Err(Error::new(ErrorCode::RecursionTooDeep, text));
            }
        }
        let block = &self.plan.members[self.member];
        self.input = Some(open_round(run, block, self.frame.row(), &self.work)?);
        self.member += 1;
        Ok(true)
    }

    /// The rows of a recursive query as rows of the table.
    fn typed(&mut self, run: &mut Run<'_, '_, '_>, from: &Batch) -> Result<Batch> {
        let plan = Arc::clone(&self.plan);
        let block = &plan.members[self.member - 1];
        let mut batch = Batch::new(&self.frame);
        for row in 0..from.len() {
            run.scratch.reset();
            batch.push();
            self.rows += 1;
            for ((value, target), name) in block.values.iter().zip(&plan.values).zip(&plan.names) {
                let found = value.evaluate(None, from.row(row), run.scratch)?;
                let Some(slot) = target.as_column() else { continue };
                match too_long(target, found) {
                    None => batch.set(row, slot.0, found),
                    Some(_) if plan.is_strict => {
                        let text = format!("Data too long for column '{name}' at row {}", self.rows);
                        return Err(Error::new(ErrorCode::DataTooLong, text));
                    }
                    Some(bytes) => {
                        let at = self.rows;
                        let text = || format!("Data truncated for column '{name}' at row {at}");
                        run.scratch.warn(ErrorCode::DataTruncated, text)?;
                        let cut = match found.to_value() {
                            Value::Bytes(mut text) => {
                                text.truncate(bytes);
                                Value::Bytes(text)
                            }
                            other => other,
                        };
                        batch.set(row, slot.0, cut.as_ref());
                    }
                }
            }
        }
        Ok(batch)
    }
}

impl Operator for Recursion {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            if run.spill.is_full() {
                return Ok(Step::Wait);
            }
            let Some(input) = &mut self.input else {
                if !self.open_next(run)? {
                    return Ok(Step::Done);
                }
                // A round without rows of tables spends steps too.
                if run.is_spent(1) {
                    return Ok(Step::Wait);
                }
                continue;
            };
            let mut batch = match input.next(run)? {
                Step::Batch(batch) => batch,
                Step::Wait => return Ok(Step::Wait),
                Step::Done => {
                    self.input = None;
                    continue;
                }
            };
            if !self.is_seed {
                batch = self.typed(run, &batch)?;
            }
            if self.plan.distinct {
                let before = self.known.memory();
                let mut key = Vec::new();
                let mut keep = Vec::with_capacity(batch.len());
                for row in 0..batch.len() {
                    key_of(&self.plan.values, batch.row(row), run.scratch, &mut key)?;
                    keep.push(self.known.insert(&key, 0).1);
                }
                self.account.hold(run.memory, self.known.memory() - before)?;
                batch.retain(&keep);
            }
            run.is_spent(batch.len());
            if batch.len() > 0 {
                self.made.push(run, &batch)?;
                return Ok(Step::Batch(batch));
            }
        }
    }
}

/// The bytes of the characters of a text that its column has room for; `None` if all have.
fn too_long(column: &Expression, value: ValueRef<'_>) -> Option<usize> {
    let ValueRef::Bytes(text) = value else { return None };
    let result = &column.result;
    let most = result.length as usize;
    if result.kind != Kind::String || text.len() <= most {
        return None;
    }
    if result.is_bytes() {
        return Some(most);
    }
    let text = std::str::from_utf8(text).ok()?;
    text.char_indices().nth(most).map(|(bytes, _)| bytes)
}

/// The rows of a round. Rows that do not fit into the memory of the query are in the temporary file.
#[derive(Debug)]
pub(in crate::execute) struct WorkRows {
    batches: Vec<Batch>,
    spool: Spool,
    account: Account,
}

impl WorkRows {
    fn new(frame: &Arc<Frame>) -> WorkRows {
        WorkRows { batches: Vec::new(), spool: Spool::new(frame, 0), account: Account::default() }
    }

    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.spool.is_empty()
    }

    fn push(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<()> {
        if self.spool.is_empty() && self.account.try_hold(run.memory, batch.memory()) {
            self.batches.push(batch.clone());
            return Ok(());
        }
        for row in 0..batch.len() {
            self.spool.push(run, Some((batch, row)), std::iter::empty())?;
        }
        Ok(())
    }
}

/// The rows of the last round.
#[derive(Debug)]
pub(super) struct WorkTable {
    slots: Arc<[(u16, u16)]>,
    frame: Arc<Frame>,
    next: usize,
}

impl WorkTable {
    pub fn new(slots: &Arc<[(u16, u16)]>, frame: &Arc<Frame>) -> WorkTable {
        WorkTable { slots: Arc::clone(slots), frame: Arc::clone(frame), next: 0 }
    }
}

impl Operator for WorkTable {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let Some(work) = &self.frame.work else { return Ok(Step::Done) };
        let loaded;
        let from = match work.batches.get(self.next) {
            Some(batch) => batch,
            None => match work.spool.load(run, self.next - work.batches.len())? {
                Spooled::Rows([rows, _]) => {
                    loaded = rows;
                    &loaded
                }
                Spooled::Wait => return Ok(Step::Wait),
                Spooled::End => return Ok(Step::Done),
            },
        };
        self.next += 1;
        let mut batch = Batch::new(&self.frame);
        for row in 0..from.len() {
            batch.push();
            for (source, slot) in &*self.slots {
                batch.set(row, *slot, from.row(row).get(*source));
            }
        }
        run.is_spent(from.len());
        Ok(Step::Batch(batch))
    }
}
