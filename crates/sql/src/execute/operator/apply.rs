//! The value of a subquery for each row. Values are kept by the values of the outer row, so that a subquery
//! runs once for each of them, unless it changes or reads the state of the session. If a query exists that
//! computes the values for all outer rows, it runs as soon as the subquery has run for so many values that
//! all groups cost less. If the kept values exceed the memory of the query, all are forgotten. If the groups
//! do, or a sum of them its type, the subquery goes on for single values: no outer row may need that group.

use std::sync::Arc;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::{Value, ValueRef};

use super::batch::Batch;
use super::key_table::KeyTable;
use super::{Input, Operator, Run, Step, append_key, open_block};
use crate::execute::memory::Account;
use crate::plan::tree::{ApplyForm, ApplyPlan, GroupedSubquery, JoinKey, NullMatch};

/// The result of the subquery for some outer values.
#[derive(Debug, Default)]
struct Answer {
    rows: Vec<Vec<Value>>,
    /// IN and NOT IN: the keys of the rows without NULL.
    keys: Option<KeyTable>,
    /// Whether a row has NULL.
    has_null: bool,
}

/// The rows of the query for all outer rows, by their keys.
#[derive(Debug)]
struct Groups {
    plan: Arc<ApplyPlan>,
    /// The query, until it has ended.
    input: Option<Input>,
    batches: Vec<Batch>,
    /// Batch and row of each group.
    rows: Vec<(u32, u32)>,
    known: KeyTable,
    /// The answer for outer values without a group.
    missing: Option<usize>,
    account: Account,
}

/// How far the groups are.
enum Collected {
    All,
    Waits,
    /// They exceed the memory of the query, or one of them the range of its type.
    Failed,
}

/// The value for a row, as far as groups tell it.
enum Found {
    Value(Value),
    /// The answer with this number.
    Answer(usize),
    /// The subquery must run.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Apply {
    input: Input,
    plan: Arc<ApplyPlan>,
    batch: Option<Batch>,
    row: usize,
    /// The subquery that runs, with the rows so far.
    running: Option<(Input, Answer)>,
    answers: Vec<Answer>,
    known: KeyTable,
    /// How many times the subquery has run.
    runs: usize,
    /// The memory of the answers and their keys.
    account: Account,
    /// The memory of the rows of the subquery that runs.
    running_account: Account,
    groups: Option<Groups>,
    /// Whether the groups could not be computed.
    has_no_groups: bool,
}

impl Answer {
    /// Adds the key of a row. Returns the memory that it takes in bytes.
    fn add_key(&mut self, keys: &[JoinKey], values: &[Value]) -> usize {
        if values.iter().any(|value| value.as_ref().is_null()) {
            self.has_null = true;
            return 0;
        }
        let mut bytes = Vec::new();
        for (key, value) in keys.iter().zip(values) {
            append_key(value.as_ref(), key.collation, &mut bytes);
        }
        let known = self.keys.get_or_insert_default();
        let before = known.memory();
        known.insert(&bytes, 0);
        known.memory() - before
    }
}

impl Groups {
    fn open(run: &Run<'_, '_, '_>, plan: &Arc<ApplyPlan>, grouped: &GroupedSubquery) -> Groups {
        Groups {
            plan: Arc::clone(plan),
            input: Some(open_block(run, &grouped.block, &[])),
            batches: Vec::new(),
            rows: Vec::new(),
            known: KeyTable::default(),
            missing: None,
            account: Account::default(),
        }
    }

    /// Runs the query to its end. Errors: those that do not depend on the groups.
    fn advance(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Collected> {
        match self.collect(run) {
            Err(error) if matches!(error.code, ErrorCode::NumericOutOfRange | ErrorCode::OutOfResources) => {
                Ok(Collected::Failed)
            }
            collected => collected,
        }
    }

    fn collect(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Collected> {
        let Some(grouped) = &self.plan.grouped else { return Ok(Collected::All) };
        let mut key = Vec::new();
        while let Some(input) = &mut self.input {
            let batch = match input.next(run)? {
                Step::Batch(batch) => batch,
                Step::Wait => return Ok(Collected::Waits),
                Step::Done => {
                    self.input = None;
                    return Ok(Collected::All);
                }
            };
            let before = self.known.memory();
            for row in 0..batch.len() {
                key.clear();
                run.scratch.reset();
                for (join_key, value) in grouped.keys.iter().zip(&grouped.block.values) {
                    append_key(value.evaluate(None, batch.row(row), run.scratch)?, join_key.collation, &mut key);
                }
                self.known.insert(&key, self.rows.len() as u32);
                self.rows.push((self.batches.len() as u32, row as u32));
            }
            let bytes = batch.memory() + 8 * batch.len() + self.known.memory() - before;
            if self.account.hold(run.memory, bytes).is_err() {
                return Ok(Collected::Failed);
            }
            let rows = batch.len();
            self.batches.push(batch);
            if run.is_spent(rows) {
                return Ok(Collected::Waits);
            }
        }
        Ok(Collected::All)
    }

    /// The value for an outer row.
    fn find(&self, run: &mut Run<'_, '_, '_>, batch: &Batch, row: usize) -> Result<Found> {
        let missing = || self.missing.map_or(Found::Nothing, Found::Answer);
        let Some(grouped) = &self.plan.grouped else { return Ok(missing()) };
        let mut key = Vec::new();
        run.scratch.reset();
        for join_key in &grouped.keys {
            let value = join_key.left.evaluate(None, batch.row(row), run.scratch)?;
            if value.is_null() && join_key.nulls == NullMatch::Nothing {
                return Ok(missing());
            }
            append_key(value, join_key.collation, &mut key);
        }
        let Some(group) = self.known.get(&key) else { return Ok(missing()) };
        if matches!(self.plan.form, ApplyForm::Exists) {
            return Ok(Found::Value(Value::Int(1)));
        }
        let (of_batch, of_row) = self.rows[group as usize];
        let values = self.batches[of_batch as usize].row(of_row as usize);
        run.scratch.reset();
        Ok(match grouped.block.values.last() {
            Some(value) => Found::Value(value.evaluate(None, values, run.scratch)?.to_value()),
            None => missing(),
        })
    }
}

impl Apply {
    pub fn new(input: Input, plan: &Arc<ApplyPlan>) -> Apply {
        Apply {
            input,
            plan: Arc::clone(plan),
            batch: None,
            row: 0,
            running: None,
            answers: Vec::new(),
            known: KeyTable::default(),
            runs: 0,
            account: Account::default(),
            running_account: Account::default(),
            groups: None,
            has_no_groups: false,
        }
    }

    /// The value for the current row. `None` if the operator waits.
    fn value_of_row(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<Option<Value>> {
        if let Some(grouped) = &self.plan.grouped
            && self.groups.is_none()
            && !self.has_no_groups
            && self.running.is_none()
            && self.runs >= grouped.runs_max
        {
            self.groups = Some(Groups::open(run, &self.plan, grouped));
        }
        if let Some(groups) = &mut self.groups {
            match groups.advance(run)? {
                Collected::Waits => return Ok(None),
                Collected::Failed => {
                    self.groups = None;
                    self.has_no_groups = true;
                }
                Collected::All => match groups.find(run, batch, self.row)? {
                    Found::Value(value) => return Ok(Some(value)),
                    Found::Answer(answer) => return self.value(run, batch, answer).map(Some),
                    Found::Nothing => {}
                },
            }
        }
        let mut key = Vec::new();
        run.scratch.reset();
        let mut outer = Vec::new();
        for (slot, value) in &self.plan.block.outer {
            let bound = value.evaluate(None, batch.row(self.row), run.scratch)?;
            // Values that are equal in a collation may still differ for the subquery.
            append_key(bound, junctor_model::collation::CollationId::BINARY, &mut key);
            outer.push((*slot, bound.to_value()));
        }
        let answer = match self.known.get(&key) {
            Some(answer) => answer as usize,
            None => {
                if self.running.is_none() {
                    let input = open_block(run, &self.plan.block, &outer);
                    self.running = Some((input, Answer::default()));
                }
                if !self.advance(run)? {
                    return Ok(None);
                }
                let answer = self.running.take().map_or_else(Answer::default, |(_, answer)| answer);
                self.runs += 1;
                match self.plan.block.is_stateful {
                    true => self.answers.clear(),
                    false => self.remember(run, &key),
                }
                self.answers.push(answer);
                self.answers.len() - 1
            }
        };
        if let Some(groups) = &mut self.groups {
            groups.missing = Some(answer);
        }
        self.value(run, batch, answer).map(Some)
    }

    /// Runs the subquery to its end. Returns false if it waits.
    fn advance(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        let Some((input, answer)) = &mut self.running else { return Ok(true) };
        loop {
            let batch = match input.next(run)? {
                Step::Batch(batch) => batch,
                Step::Wait => return Ok(false),
                Step::Done => return Ok(true),
            };
            for row in 0..batch.len() {
                if matches!(self.plan.form, ApplyForm::Exists) {
                    answer.rows.push(Vec::new());
                    return Ok(true);
                }
                run.scratch.reset();
                let mut values = Vec::with_capacity(self.plan.block.values.len());
                for value in &self.plan.block.values {
                    values.push(value.evaluate(None, batch.row(row), run.scratch)?.to_value());
                }
                if let ApplyForm::Quantified { keys, .. } = &self.plan.form
                    && !keys.is_empty()
                {
                    let bytes = answer.add_key(keys, &values);
                    self.running_account.hold(run.memory, bytes)?;
                }
                answer.rows.push(values);
            }
            let is_single = matches!(self.plan.form, ApplyForm::Value | ApplyForm::Row { .. });
            if is_single && answer.rows.len() > 1 {
                let text = "Subquery returns more than 1 row";
                if !self.plan.ignores {
                    return Err(Error::new(ErrorCode::SubqueryRows, text));
                }
                // Without a row, the value is NULL.
                answer.rows.clear();
                run.scratch.note(ErrorCode::SubqueryRows, || text.to_owned());
                return Ok(true);
            }
            self.running_account.hold(run.memory, batch.memory())?;
            if run.is_spent(batch.len()) {
                return Ok(false);
            }
        }
    }

    /// Whether the operands of IN are among the rows of an answer, by their keys. `None` if each row must be
    /// compared.
    fn is_among(
        &self,
        run: &mut Run<'_, '_, '_>,
        batch: &Batch,
        (answer, keys): (&Answer, &[JoinKey]),
    ) -> Result<Option<Value>> {
        if keys.is_empty() || answer.rows.is_empty() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let mut is_null = false;
        run.scratch.reset();
        for key in keys {
            let value = key.left.evaluate(None, batch.row(self.row), run.scratch)?;
            is_null |= value.is_null();
            append_key(value, key.collation, &mut bytes);
        }
        if !is_null && answer.keys.as_ref().is_some_and(|known| known.get(&bytes).is_some()) {
            return Ok(Some(Value::Int(1)));
        }
        Ok(match is_null || answer.has_null {
            false => Some(Value::Int(0)),
            true if keys.len() == 1 => Some(Value::Null),
            // Other values of the row may differ.
            true => None,
        })
    }

    /// Keeps the next answer for rows with the same outer values. If all answers do not fit into memory, the
    /// earlier ones are forgotten.
    fn remember(&mut self, run: &Run<'_, '_, '_>, key: &[u8]) {
        let bytes = KeyTable::entry_memory(key) + self.running_account.held();
        self.running_account.clear();
        if !self.account.try_hold(run.memory, bytes) {
            self.account.clear();
            self.known = KeyTable::default();
            self.answers.clear();
            self.account.take(run.memory, bytes);
        }
        self.known.insert(key, self.answers.len() as u32);
    }

    /// The value for a row, given the answer of the subquery.
    fn value(&self, run: &mut Run<'_, '_, '_>, batch: &Batch, answer: usize) -> Result<Value> {
        let rows = &self.answers[answer].rows;
        let (condition, slots, all) = match &self.plan.form {
            ApplyForm::Value => return Ok(rows.first().and_then(|row| row.first()).cloned().unwrap_or(Value::Null)),
            ApplyForm::Exists => return Ok(Value::Int(i64::from(!rows.is_empty()))),
            ApplyForm::Quantified { all, condition, slots, keys } => {
                match self.is_among(run, batch, (&self.answers[answer], keys))? {
                    Some(Value::Int(found)) => return Ok(Value::Int(found ^ i64::from(*all))),
                    Some(unknown) => return Ok(unknown),
                    None => (condition, slots, *all),
                }
            }
            ApplyForm::Row { condition, slots } => {
                if rows.is_empty() {
                    return Ok(Value::Null);
                }
                (condition, slots, true)
            }
        };
        let mut is_unknown = false;
        for values in rows {
            let mut pair = Batch::of_row(batch, self.row);
            for (slot, value) in slots.iter().zip(values) {
                pair.set(0, *slot, value.as_ref());
            }
            run.scratch.reset();
            run.is_spent(1);
            match condition.evaluate(None, pair.row(0), run.scratch)? {
                ValueRef::Null => is_unknown = true,
                ValueRef::Int(0) if all => return Ok(Value::Int(0)),
                ValueRef::Int(0) => {}
                _ if !all => return Ok(Value::Int(1)),
                _ => {}
            }
        }
        Ok(if is_unknown { Value::Null } else { Value::Int(i64::from(all)) })
    }
}

impl Operator for Apply {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut batch = match self.batch.take() {
            Some(batch) => batch,
            None => match self.input.next(run)? {
                Step::Batch(batch) => {
                    self.row = 0;
                    batch
                }
                other => return Ok(other),
            },
        };
        while self.row < batch.len() {
            let Some(value) = self.value_of_row(run, &batch)? else {
                self.batch = Some(batch);
                return Ok(Step::Wait);
            };
            batch.set(self.row, self.plan.slot, value.as_ref());
            self.row += 1;
            if self.plan.block.is_stateful {
                self.running_account.clear();
            }
            if run.is_spent(1) && self.row < batch.len() {
                self.batch = Some(batch);
                return Ok(Step::Wait);
            }
        }
        Ok(Step::Batch(batch))
    }
}
