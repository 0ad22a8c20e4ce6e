//! The value of a subquery for each row. Values are kept by the values of the outer row, so that a subquery
//! runs once for each of them, unless it changes or reads the state of the session. If a query exists that
//! computes the values for all outer rows, it runs as soon as the subquery has run for so many values that
//! all groups cost less. If the kept values exceed the memory of the query, all are forgotten. If the groups
//! do, or a sum of them its type, the subquery goes on for single values: no outer row may need that group.
//!
//! If a query exists that computes the values for a list of outer values, it runs for as many outer rows as
//! the subquery has run for before, as far as the batch has them. So the first rows are not late, and later
//! ones need few messages.

use std::sync::Arc;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::{Value, ValueRef};

use super::batch::Batch;
use super::key_table::KeyTable;
use super::lookup_keys::LookupKeys;
use super::{Input, Operator, Run, Step, append_key, open_block, open_lookup};
use crate::execute::memory::Account;
use crate::plan::tree::{ApplyForm, ApplyPlan, BlockPlan, GroupLookup, GroupedSubquery, JoinKey, NullMatch};

/// The result of the subquery for some outer values.
#[derive(Debug, Default)]
struct Answer {
    rows: Vec<Vec<Value>>,
    /// IN and NOT IN: the keys of the rows without NULL.
    keys: Option<KeyTable>,
    /// Whether a row has NULL.
    has_null: bool,
}

/// The rows of the query for all or for some outer rows, by their keys.
#[derive(Debug)]
struct Groups {
    plan: Arc<ApplyPlan>,
    block: Arc<BlockPlan>,
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

/// The key of outer values, and the slot of each value.
type OuterValues = (Vec<u8>, Vec<(u16, Value)>);

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
    ahead: Option<Ahead>,
    /// Whether the groups of some outer rows could not be computed.
    never_looks_ahead: bool,
    /// The answer for outer values without a group.
    missing: Option<u32>,
    /// The outer values without a group for which the subquery runs.
    awaits_missing: Option<Vec<u8>>,
}

/// The groups of some rows of the batch, each row with its outer values.
#[derive(Debug)]
struct Ahead {
    groups: Groups,
    rows: Vec<(usize, Vec<u8>)>,
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
    fn new(plan: &Arc<ApplyPlan>, block: &Arc<BlockPlan>, input: Option<Input>) -> Groups {
        Groups {
            plan: Arc::clone(plan),
            block: Arc::clone(block),
            input,
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
                for (join_key, value) in grouped.keys.iter().zip(&self.block.values) {
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
        Ok(match self.block.values.last() {
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
            ahead: None,
            never_looks_ahead: false,
            missing: None,
            awaits_missing: None,
        }
    }

    /// The value for the current row. `None` if the operator waits.
    fn value_of_row(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<Option<Value>> {
        if let Some(grouped) = &self.plan.grouped
            && self.groups.is_none()
            && !self.has_no_groups
            && self.running.is_none()
            && self.ahead.is_none()
            && self.runs >= grouped.runs_max
        {
            let input = open_block(run, &grouped.block, &[]);
            self.groups = Some(Groups::new(&self.plan, &grouped.block, Some(input)));
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
        let (key, outer) = self.outer_values(run, batch, self.row)?;
        if self.known.get(&key).is_none() && self.running.is_none() && !self.look_ahead(run, batch)? {
            return Ok(None);
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
                    false => _ = self.remember(run, &key),
                }
                if self.awaits_missing.take_if(|awaited| *awaited == key).is_some() {
                    self.missing = Some(self.answers.len() as u32);
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

    /// The values of the outer row that the subquery reads, and their key.
    fn outer_values(&self, run: &mut Run<'_, '_, '_>, batch: &Batch, row: usize) -> Result<OuterValues> {
        let (mut key, mut outer) = (Vec::new(), Vec::new());
        run.scratch.reset();
        for (slot, value) in &self.plan.block.outer {
            let bound = value.evaluate(None, batch.row(row), run.scratch)?;
            // Values that are equal in a collation may still differ for the subquery.
            append_key(bound, junctor_model::collation::CollationId::BINARY, &mut key);
            outer.push((*slot, bound.to_value()));
        }
        Ok((key, outer))
    }

    /// Computes the answers for the current row and for rows after it at once, if there is a query for them.
    /// The answer for the current row may be missing afterwards. Returns false if it waits.
    fn look_ahead(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<bool> {
        let plan = Arc::clone(&self.plan);
        let Some((grouped, lookup)) =
            plan.grouped.as_ref().and_then(|grouped| Some((grouped, grouped.lookup.as_ref()?)))
        else {
            return Ok(true);
        };
        let is_over = self.groups.is_some() || self.never_looks_ahead || self.runs == 0;
        if self.ahead.is_none() && (is_over || self.awaits_missing.is_some()) {
            return Ok(true);
        }
        if self.ahead.is_none() {
            self.ahead = Some(self.open_ahead(run, batch, (grouped, lookup))?);
        }
        let Some(ahead) = &mut self.ahead else { return Ok(true) };
        match ahead.groups.advance(run)? {
            Collected::Waits => return Ok(false),
            Collected::Failed => {
                self.ahead = None;
                self.never_looks_ahead = true;
            }
            Collected::All => self.take_answers(run, batch)?,
        }
        Ok(true)
    }

    /// Starts the query for the current row and for rows after it.
    fn open_ahead(
        &self,
        run: &mut Run<'_, '_, '_>,
        batch: &Batch,
        (grouped, lookup): (&GroupedSubquery, &GroupLookup),
    ) -> Result<Ahead> {
        let most = self.runs.min(grouped.runs_max.saturating_sub(self.runs)).max(1);
        let mut rows: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut keys = LookupKeys::new(lookup.keys.len(), 0);
        let mut outer_keys = KeyTable::default();
        let mut visited = 0;
        for row in self.row..batch.len() {
            if rows.len() == most {
                break;
            }
            visited += 1;
            let (outer, _) = self.outer_values(run, batch, row)?;
            if self.known.get(&outer).is_some() || !outer_keys.insert(&outer, 0).1 {
                continue;
            }
            rows.push((row, outer));
            let parts = lookup.keys.iter().map(|place| &grouped.keys[*place]);
            keys.add(parts, batch.row(row), run.scratch)?;
        }
        run.is_spent(visited);
        let lists = keys.into_lists();
        let input = lists.map(|lists| open_lookup(run, &lookup.block, &[], Some((lookup.leaf, lists))));
        Ok(Ahead { groups: Groups::new(&self.plan, &lookup.block, input), rows })
    }

    /// Keeps the answers of the query for some rows. The first of them is the current row, whose answer is
    /// kept last: what is kept before may be forgotten.
    ///
    /// Outer rows are looked up together no longer if their answers do not fit into memory together.
    fn take_answers(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<()> {
        let Some(Ahead { groups, mut rows }) = self.ahead.take() else { return Ok(()) };
        self.runs += rows.len();
        rows.rotate_left(1);
        let mut forgot = 0;
        for (row, key) in rows {
            let rows = match groups.find(run, batch, row)? {
                Found::Value(_) if matches!(self.plan.form, ApplyForm::Exists) => vec![Vec::new()],
                Found::Value(value) => vec![vec![value]],
                Found::Answer(_) | Found::Nothing => {
                    match self.missing {
                        Some(missing) if self.account.try_hold(run.memory, KeyTable::entry_memory(&key)) => {
                            self.known.insert(&key, missing);
                        }
                        None if row == self.row => self.awaits_missing = Some(key),
                        _ => {}
                    }
                    continue;
                }
            };
            self.running_account.take(run.memory, rows.iter().flatten().map(bytes_of).sum());
            forgot += usize::from(self.remember(run, &key));
            self.answers.push(Answer { rows, ..Answer::default() });
        }
        self.never_looks_ahead |= forgot > 1;
        Ok(())
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
    /// earlier ones are forgotten. Returns whether they are.
    fn remember(&mut self, run: &Run<'_, '_, '_>, key: &[u8]) -> bool {
        let bytes = KeyTable::entry_memory(key) + size_of::<Answer>() + self.running_account.held();
        self.running_account.clear();
        let has_room = self.account.try_hold(run.memory, bytes);
        if !has_room {
            self.account.clear();
            self.known = KeyTable::default();
            self.answers.clear();
            self.missing = None;
            self.account.take(run.memory, bytes);
        }
        self.known.insert(key, self.answers.len() as u32);
        !has_room
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

/// The memory of a kept value in bytes.
fn bytes_of(value: &Value) -> usize {
    let own = match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Json(document) => document.len(),
        _ => 0,
    };
    size_of::<Value>() + own
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
