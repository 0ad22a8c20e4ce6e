//! INSERT IGNORE, REPLACE and INSERT ... ON DUPLICATE KEY UPDATE.
//!
//! One step inserts all rows. If this step meets an existing key, the step is rolled back and the rows are
//! inserted one by one. REPLACE and ON DUPLICATE KEY UPDATE then lock each key of the row exclusively and
//! read it, in MySQL's order: first the row's own primary key, then the entries of unique indexes. These
//! locks wait for a transaction that has written the row, and the reads return its result.
//!
//! If rows are found, ON DUPLICATE KEY UPDATE updates the first one. REPLACE deletes them all and inserts the
//! new row. If none is found, the new row is inserted. If a key appears between the read and the insert, the
//! insert fails and the keys are read again.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_gateway::gateway::{NO_OPERATION, WriteOptions};
use junctor_gateway::{invariant, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::{append_escaped, double_of_key};
use junctor_model::key_list::for_each_entry;
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_model::temporal::{DIGITS_MAX, Zone};
use junctor_model::value::ValueRef;
use junctor_signals::program::{RowProtocol, WriteProgram};
use junctor_signals::read_rows::OperationId;

use super::drive::{Next, continue_steps, is_ignorable, may_retry, open_transaction_if_none, unexpected_step};
use super::load::request_file;
use super::returned::cannot_fail;
use super::rows::RowList;
use super::source::{Source, advance, start_source};
use super::state::{CompoundState, Counts, InsertWork, Step, StepState, Work};
use crate::execute::completion::{ChangeCounts, fail, finish_ok};
use crate::execute::context::StatementContext;
use crate::execute::insert::{InsertedNumbers, level_of_mode, number_of};
use crate::execute::received::{RowTarget, process_rows};
use crate::execute::retry::RetryInput;
use crate::execute::schema::{FilledTable, finish_filled};
use crate::execute::state::{PlanInput, Workspace};
use crate::execute::write::{StatementOutcome, check_writable, forget_taken_numbers, level_of, write_options};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{Conflict, InsertPlan, InsertReturning, KeyLock, QueryPlan};
use crate::result::Progress;

/// Maximum number of times that the keys of one row are read. Beyond it the statement fails with error 1205.
/// A repetition is necessary only if another transaction has inserted the key between the read and the
/// insert, and has deleted it before the next read.
const ATTEMPTS_MAX: u32 = 100;

/// An INSERT at one of its steps.
pub(super) struct Insert<'s> {
    pub plan: &'s InsertPlan,
    pub steps: &'s mut StepState,
    pub work: &'s mut InsertWork,
}

/// The locks of a step, in addition to those of the rows that it writes.
#[derive(Clone, Copy)]
pub(super) struct Locking {
    /// Whether the key ranges that are read are locked against inserts.
    pub ranges: bool,
    /// Maximum number of rows to lock in one partition.
    pub rows_max: u32,
}

impl Locking {
    /// Locks rows but no ranges. Missing keys need no lock, because two transactions that insert the same key
    /// wait for each other anyway.
    pub(super) const ROWS: Locking = Locking { ranges: false, rows_max: u32::MAX };
}

/// Inserts encoded rows, which must also be in the workspace's inputs.
pub(in crate::execute) fn start_insert_rows(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<InsertPlan>,
    input: &PlanInput<'_>,
    (rows, numbered): (RowList, InsertedNumbers),
) -> Progress {
    require!(rows.len() as u64 == numbered.rows, "every row of an INSERT that may be needed again is kept");
    let input_rows = rows.len();
    let parameters = context.copy_parameters();
    let in_transaction = context.session.transaction.explicit;
    let is_safe = plan.returning.is_none() || rows.len() == 1 && cannot_fail(plan, rows.get(0).image.image);
    let steps = StepState {
        operation: OperationId::default(),
        protocol: input.protocol,
        step: Step::Batch,
        before: context.session.transaction.statement(),
        retry: input.input.keep(in_transaction, &parameters, context.turn),
        // If a row of RETURNING cannot be encoded, the statement is rolled back, so it must not commit before
        // its rows are encoded.
        owns_transaction: !is_safe && open_transaction_if_none(context.session),
        parameters,
        is_stopped: false,
        awaits_input: false,
        is_receiving: false,
        fills: None,
    };
    let now_us = statement_time_us(context);
    let work = InsertWork { rows, numbered, now_us, ..InsertWork::default() };
    let mut state = Box::new(CompoundState { steps, work: Work::Insert(Arc::clone(plan), work) });
    // IGNORE may have left out all rows.
    let next = match input_rows {
        0 => Ok(Next::Done),
        _ => send_step(context, &mut state.steps, &plan.program, Step::Batch, Locking::ROWS),
    };
    continue_steps(context, state, next)
}

/// Inserts the rows of a query or of a file, or those of a CREATE TABLE ... SELECT into its table. The
/// parameters are in the workspace.
pub(crate) fn start_insert_select(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<InsertPlan>,
    input: &PlanInput<'_>,
    fills: Option<FilledTable>,
) -> Progress {
    if fills.is_none()
        && let Err(error) = check_writable(context.session, &plan.table)
    {
        return fail(context, &error);
    }
    let mut server_file = None;
    if let Some(load) = &plan.load {
        server_file = match request_file(context, load) {
            Ok(file) => file,
            Err(error) => return fail(context, &error),
        };
    }
    let is_sent = plan.load.is_some() && server_file.is_none();
    context.session.enter_statement();
    // A query in the same transaction sees earlier writes but must not see those of its own statement. All
    // its rows are therefore collected before the first one is inserted.
    let queried = plan.select.as_ref().and_then(|select| select.table());
    let is_own = |table: &TableLayout| table.definition.id == plan.table.definition.id;
    let reads_own_table = queried.is_some_and(|(table, _)| is_own(table));
    // A tree may begin to read a table after the first rows are inserted.
    let of_tree = plan.select.iter().flat_map(QueryPlan::tree_tables).any(|table| is_own(&table.layout));
    let collects = of_tree || reads_own_table && context.session.transaction.has_begun();
    let parameters = context.copy_parameters();
    let in_transaction = context.session.transaction.explicit;
    let steps = StepState {
        operation: server_file.unwrap_or(NO_OPERATION),
        protocol: input.protocol,
        step: Step::Select,
        before: context.session.transaction.statement(),
        retry: match plan.load {
            // The client does not send its file again, and that of the server is read once.
            Some(_) => RetryInput::None,
            None => input.input.keep(in_transaction, &parameters, context.turn),
        },
        owns_transaction: open_transaction_if_none(context.session) || fills.is_some_and(|filled| !filled.is_temporary),
        parameters,
        is_stopped: false,
        awaits_input: is_sent,
        is_receiving: is_sent,
        fills,
    };
    let source = match &plan.load {
        Some(load) => Source::of_file(load, server_file),
        None => Source::new(collects),
    };
    let now_us = statement_time_us(context);
    let work = InsertWork { source: Some(Box::new(source)), now_us, ..InsertWork::default() };
    let mut state = Box::new(CompoundState { steps, work: Work::Insert(Arc::clone(plan), work) });
    let CompoundState { steps, work: Work::Insert(_, work) } = &mut *state else {
        invariant::fail("an INSERT has the record of an INSERT", format_args!("it was made above"));
    };
    let next = match plan.load {
        Some(_) if is_sent => Ok(Next::AwaitInput),
        Some(_) => Ok(Next::Wait),
        None => start_source(context, &mut Insert { plan, steps, work }),
    };
    continue_steps(context, state, next)
}

/// The time of the statement, in microseconds since 1970 in UTC.
fn statement_time_us(context: &StatementContext<'_, '_>) -> u64 {
    context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us)
}

/// Sends a step whose inputs are in the workspace.
pub(super) fn send_step(
    context: &mut StatementContext<'_, '_>,
    steps: &mut StepState,
    program: &Arc<WriteProgram>,
    step: Step,
    locking: Locking,
) -> Result<Next> {
    // The rows to change are returned as values, because their keys are made from them.
    let protocol = if matches!(step, Step::Lock) { RowProtocol::Values } else { steps.protocol };
    let options = write_options(context, protocol);
    // All steps are rolled back together, so only the row images from before the first step are needed.
    let savepoint = options.savepoint.max(steps.before);
    let options = WriteOptions { locks_ranges: locking.ranges, rows_max: locking.rows_max, savepoint, ..options };
    steps.operation = context.send_write(program, options)?;
    steps.step = step;
    Ok(Next::Wait)
}

/// Continues an INSERT with the outcome of one of its steps. `images` are the rows that the step returned:
/// images for a locking read, packets for an update with RETURNING.
pub(super) fn on_outcome(
    context: &mut StatementContext<'_, '_>,
    insert: &mut Insert<'_>,
    outcome: StatementOutcome,
    images: &[Vec<u8>],
) -> Result<Next> {
    let retries = outcome.error.as_ref().is_some_and(|error| insert.retries_batch(context, error));
    let plan = insert.plan;
    if let Some(diagnostics) = outcome.diagnostics {
        let level = match &plan.conflict {
            Conflict::Update { update, .. } => level_of(update),
            _ => WarningLevel::Note,
        };
        context.session.note_diagnostics(level, *diagnostics);
    }
    let work = &mut *insert.work;
    let is_duplicate = outcome.error.as_ref().is_some_and(|error| error.code == ErrorCode::DuplicateEntry);
    let ignores = matches!(plan.conflict, Conflict::Skip | Conflict::Update { ignore: true, .. });
    let is_left_out = ignores && outcome.error.as_ref().is_some_and(|error| is_ignorable(error.code));
    match (&insert.steps.step, outcome.error) {
        (Step::Batch, None) => {
            work.counts.written += work.rows.len() as u64;
            if work.first_number == 0 {
                work.first_number = work.numbered.first_number;
            }
            work.explicit_number = work.numbered.answer_number;
            insert.return_batch(context)?;
            insert.rows_done(context)
        }
        (Step::Batch, Some(_)) if retries => Ok(Next::Retry),
        // The batch is rolled back. A second pass, row by row, finds the conflicting rows.
        (Step::Batch, Some(_)) if is_left_out || is_duplicate && !plan.refuses_duplicates() => {
            insert.begin_rows(context)
        }
        (Step::Insert, None) => {
            work.counts.written += 1;
            let generated = work.rows.get(work.next).generated;
            if work.first_number == 0 && plan.auto.is_some_and(|auto| !auto.is_hidden) {
                work.first_number = generated;
            }
            work.explicit_number = auto_increment_of_row(plan, work);
            insert.return_row(context)?;
            insert.next_row(context)
        }
        // Another transaction has inserted the key since it was read.
        (Step::Insert, Some(_))
            if is_duplicate && !matches!(plan.conflict, Conflict::Skip) && !work.meets_living_row =>
        {
            insert.read_keys_again(context)
        }
        (step @ (Step::Insert | Step::Update), Some(error)) if is_left_out => {
            work.counts.touched += u64::from(matches!(step, Step::Update));
            insert.skip_row(context, &error)
        }
        (_, Some(error)) => Err(error),
        (Step::Key(position), None) => {
            let position = *position;
            insert.on_key(context, position, images)
        }
        (Step::Expired(position), None) => {
            let position = *position;
            insert.on_expired(context, position, outcome.changed > 0)
        }
        (Step::Same, None) => insert.replace_unless_same(context, images),
        (Step::Delete, None) => {
            work.counts.deleted += outcome.changed;
            work.found.clear();
            insert.insert_row(context)
        }
        // The row was deleted after its unique entry was read, so its key is now free or belongs to another
        // row.
        (Step::Update, None) if outcome.matched == 0 => insert.read_keys_again(context),
        (Step::Update, None) => {
            work.counts.touched += 1;
            work.explicit_number = auto_increment_of_found(plan, work);
            if outcome.changed > 0 {
                work.counts.written += 1;
                work.counts.updated += 1;
            }
            if plan.returning.is_some() {
                images.iter().try_for_each(|packets| work.returned.add_packets(packets))?;
            }
            insert.next_row(context)
        }
        _ => unexpected_step("the outcome of an INSERT"),
    }
}

impl Insert<'_> {
    fn send(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        program: &Arc<WriteProgram>,
        step: Step,
    ) -> Result<Next> {
        send_step(context, self.steps, program, step, Locking::ROWS)
    }

    /// Whether the insert of all rows must start again, because its plan was outdated or a generated value is
    /// taken by an explicit value of another session. The insert has written nothing.
    fn retries_batch(&self, context: &mut StatementContext<'_, '_>, error: &Error) -> bool {
        if context.session.transaction.has_begun() || !matches!(self.steps.step, Step::Batch) {
            return false;
        }
        let is_taken = matches!(self.plan.conflict, Conflict::Fail)
            && self.work.source.is_none()
            && self.work.numbered.first_number != 0
            && forget_taken_numbers(context.engine, self.plan, error);
        is_taken && !self.steps.retry.is_none() || may_retry(self.steps, error)
    }

    /// Adds all rows of the inserted batch to those of RETURNING.
    fn return_batch(&mut self, context: &mut StatementContext<'_, '_>) -> Result<()> {
        if self.plan.returning.is_none() {
            return Ok(());
        }
        (0..self.work.rows.len()).try_for_each(|row| self.add_returned(context, row))
    }

    /// Adds the current row to those of RETURNING.
    fn return_row(&mut self, context: &mut StatementContext<'_, '_>) -> Result<()> {
        match self.plan.returning {
            None => Ok(()),
            Some(_) => self.add_returned(context, self.work.next),
        }
    }

    fn add_returned(&mut self, context: &mut StatementContext<'_, '_>, row: usize) -> Result<()> {
        let InsertWork { rows, returned, .. } = &mut *self.work;
        let scratch = &mut context.engine.work.scratch;
        let parameters = Parameters::from_bytes(&self.steps.parameters);
        let added = returned.add(self.plan, rows.get(row).image.image, (self.steps.protocol, parameters), scratch);
        context.session.note_evaluated(level_of_mode(self.plan.mode), scratch);
        added
    }

    /// Inserts the rows one by one. The insert of all rows was refused and is rolled back.
    fn begin_rows(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        std::mem::take(&mut self.steps.retry).release(context.turn);
        if self.work.source.is_none() && !self.steps.owns_transaction {
            self.steps.owns_transaction = open_transaction_if_none(context.session);
            self.steps.before = context.session.transaction.statement();
        }
        self.work.attempts = 0;
        self.work.next = 0;
        self.begin_row(context)
    }

    /// Continues with the next rows of the query, or ends. The current rows are written.
    fn rows_done(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        if self.work.source.is_some() { advance(context, self) } else { Ok(Next::Done) }
    }

    fn next_row(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        self.work.next += 1;
        if self.work.next == self.work.rows.len() {
            return self.rows_done(context);
        }
        self.work.attempts = 0;
        self.begin_row(context)
    }

    fn begin_row(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        require!(self.work.next < self.work.rows.len(), "the current row of an INSERT is one of its rows");
        self.work.found.clear();
        self.work.meets_living_row = false;
        self.lock_key(context, 0)
    }

    /// Skips the current row with a warning (IGNORE).
    fn skip_row(&mut self, context: &mut StatementContext<'_, '_>, error: &Error) -> Result<Next> {
        context.session.warn(WarningLevel::Warning, error.code.errno(), error.message.clone());
        self.work.explicit_number = auto_increment_of_row(self.plan, self.work);
        self.next_row(context)
    }

    /// Reads the keys of the current row again, because they have changed since they were read.
    fn read_keys_again(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        self.work.attempts += 1;
        if self.work.attempts >= ATTEMPTS_MAX {
            return Err(Error::lock_wait_timeout());
        }
        self.begin_row(context)
    }

    /// Reads and locks the first key from position `first` on that has no NULL. After the last key the row is
    /// written.
    fn lock_key(&mut self, context: &mut StatementContext<'_, '_>, first: usize) -> Result<Next> {
        let plan = self.plan;
        let row = self.work.rows.get(self.work.next);
        let view = RowView::new(&plan.table.row_format, row.image.image);
        let columns = &plan.table.definition.columns;
        let Workspace { inputs, key, .. } = &mut context.engine.work;
        for (position, lock) in plan.keys().iter().enumerate().skip(first) {
            let KeyLock { index, columns: key_columns, lock } = lock;
            let buffers = &mut *context.turn.buffers;
            inputs.begin(lock.table.definition.partition_count, buffers);
            if index.is_none() {
                // A row with the same primary key belongs to the same partition.
                inputs.push_key_at(row.partition, row.image.key.key, &[], buffers);
                return self.send(context, lock, Step::Key(position));
            }
            let mut has_entries = false;
            for_each_entry(columns, key_columns, view, |entry, _| {
                has_entries = true;
                key.clear();
                append_escaped(&entry, key);
                inputs.push_key(key, &[], buffers);
            });
            if has_entries {
                return self.send(context, lock, Step::Key(position));
            }
        }
        self.write_row(context)
    }

    /// Continues with the image of the row or unique entry that a key's locking read returned, if any.
    fn on_key(&mut self, context: &mut StatementContext<'_, '_>, position: usize, images: &[Vec<u8>]) -> Result<Next> {
        let Insert { plan, work, .. } = &mut *self;
        let keys = plan.keys();
        require!(position < keys.len(), "a locked key is one of the plan's");
        let KeyLock { index, lock, .. } = &keys[position];
        let row = work.rows.get(work.next);
        if plan.keys()[position].has_list(&plan.table.definition) {
            return self.on_elements(context, position, images);
        }
        if let (Some(image), Some(expired)) = (images.iter().find(|images| !images.is_empty()), &plan.expired) {
            let found = match index {
                None => (row.partition, row.image.key.key.to_vec()),
                Some(_) => referenced(&lock.table, image)?,
            };
            return self.delete_if_expired(context, &expired.delete, position, &found);
        }
        if let Some(image) = images.iter().find(|images| !images.is_empty()) {
            let found = match index {
                None if row.generated != 0 && has_number(plan) => {
                    // Another session inserted the existing row with this value explicitly. The block
                    // discards its reserved values, so that the next values are above the explicit one.
                    context.engine.ranges.forget_held(plan.table.definition.id);
                    return Err(taken_number(plan, row.generated));
                }
                None => (row.partition, row.image.key.key.to_vec()),
                Some(_) => referenced(&lock.table, image)?,
            };
            let is_only = work.found.is_empty();
            if !work.found.contains(&found) {
                work.found.push(found);
            }
            match &plan.conflict {
                Conflict::Update { .. } => return self.update_found(context),
                // As in MySQL, a row that conflicts only by the last key is updated in place, or left
                // unchanged if it equals the new row.
                Conflict::Replace { row_lock: Some(row_lock), .. } if position + 1 == keys.len() && is_only => {
                    if index.is_none() {
                        return self.replace_unless_same(context, images);
                    }
                    self.push_found(context, &[]);
                    return self.send(context, row_lock, Step::Same);
                }
                _ => {}
            }
        }
        self.lock_key(context, position + 1)
    }

    /// Continues with the entries of a multi-valued index that the row's elements have. They can belong to
    /// several rows.
    fn on_elements(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        position: usize,
        images: &[Vec<u8>],
    ) -> Result<Next> {
        let Insert { plan, work, .. } = &mut *self;
        let keys = plan.keys();
        let is_first = work.found.is_empty();
        let mut met = Vec::new();
        for mut rest in images.iter().map(Vec::as_slice).filter(|images| !images.is_empty()) {
            while let Some((length, _)) = rest.split_first_chunk::<4>() {
                let end = 4 + u32::from_le_bytes(*length) as usize;
                let Some((image, after)) = rest.split_at_checked(end) else { return Err(Error::broken_reply()) };
                let found = referenced(&keys[position].lock.table, image)?;
                if !work.found.contains(&found) && !met.contains(&found) {
                    met.push(found);
                }
                rest = after;
            }
        }
        if let (Some(found), Some(expired)) = (met.first(), &plan.expired) {
            return self.delete_if_expired(context, &expired.delete, position, found);
        }
        let is_only = is_first && met.len() == 1;
        match &plan.conflict {
            Conflict::Update { .. } if !met.is_empty() => {
                work.found = met;
                work.found.truncate(1);
                return self.update_found(context);
            }
            Conflict::Replace { row_lock: Some(row_lock), .. } if position + 1 == keys.len() && is_only => {
                work.found = met;
                self.push_found(context, &[]);
                return self.send(context, row_lock, Step::Same);
            }
            _ => work.found.append(&mut met),
        }
        self.lock_key(context, position + 1)
    }

    /// Deletes an existing row with the key at `position`, if it has expired.
    fn delete_if_expired(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        delete: &Arc<WriteProgram>,
        position: usize,
        found: &(u16, Vec<u8>),
    ) -> Result<Next> {
        if self.work.found.contains(found) {
            // The row has been found by another key, and lives.
            return self.lock_key(context, position + 1);
        }
        self.work.found.push(found.clone());
        let Workspace { builder, row_parameters, inputs, .. } = &mut context.engine.work;
        builder.clear();
        builder.push(ValueRef::Temporal(Zone::UTC.date_time_at(self.work.now_us, DIGITS_MAX)));
        row_parameters.clear();
        builder.append_to(row_parameters)?;
        let buffers = &mut *context.turn.buffers;
        inputs.begin(self.plan.table.definition.partition_count, buffers);
        inputs.push_key_at(found.0, &found.1, row_parameters, buffers);
        self.send(context, delete, Step::Expired(position))
    }

    /// Continues after the row with the key at `position` was deleted, or turned out to live.
    fn on_expired(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        position: usize,
        is_deleted: bool,
    ) -> Result<Next> {
        let Insert { plan, work, .. } = &mut *self;
        // Other rows can have other elements of the row.
        let next = if plan.keys()[position].has_list(&plan.table.definition) { position } else { position + 1 };
        if is_deleted {
            work.found.pop();
            return self.lock_key(context, next);
        }
        let keys = plan.keys();
        let generated = work.rows.get(work.next).generated;
        let is_own_number = keys[position].index.is_none() && generated != 0 && has_number(plan);
        let is_only = work.found.len() == 1;
        match (&plan.conflict, &plan.expired) {
            (Conflict::Fail | Conflict::Skip, _) => {
                // The insert finds the same row, and reports the duplicate.
                work.found.clear();
                work.meets_living_row = true;
                self.insert_row(context)
            }
            _ if is_own_number => {
                // Another session inserted the existing row with this value explicitly, as in `on_key`.
                context.engine.ranges.forget_held(plan.table.definition.id);
                Err(taken_number(plan, generated))
            }
            (Conflict::Update { .. }, _) => self.update_found(context),
            (Conflict::Replace { .. }, Some(expired)) if next == keys.len() && is_only => {
                self.push_found(context, &[]);
                self.send(context, &expired.row_lock, Step::Same)
            }
            (Conflict::Replace { .. }, _) => self.lock_key(context, next),
        }
    }

    /// Compares the only conflicting row of a REPLACE, which was read by its last key, with the new row.
    /// Equal rows are left unchanged.
    fn replace_unless_same(&mut self, context: &mut StatementContext<'_, '_>, images: &[Vec<u8>]) -> Result<Next> {
        let layout = &self.plan.table;
        let new = RowView::new(&layout.row_format, self.work.rows.get(self.work.next).image.image);
        let found = images.iter().find_map(|image| image.get(4..)).map(|image| RowView::new(&layout.row_format, image));
        let is_same = found.is_some_and(|found| {
            let mut columns = layout.definition.columns.iter().zip(0..).filter(|(column, _)| !column.hidden);
            columns.all(|(_, index)| found.column(ColumnNumber(index)) == new.column(ColumnNumber(index)))
        });
        if is_same {
            self.work.counts.written += 1;
            self.return_row(context)?;
            return self.next_row(context);
        }
        self.write_row(context)
    }

    /// Deletes the conflicting rows, or inserts the current row if none conflicts. All its keys are read and
    /// locked.
    fn write_row(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        let Conflict::Replace { delete, .. } = &self.plan.conflict else { return self.insert_row(context) };
        if self.work.found.is_empty() {
            return self.insert_row(context);
        }
        self.push_found(context, &[]);
        self.send(context, delete, Step::Delete)
    }

    fn push_found(&self, context: &mut StatementContext<'_, '_>, parameters: &[u8]) {
        let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
        inputs.begin(self.plan.table.definition.partition_count, buffers);
        for (partition, key) in &self.work.found {
            inputs.push_key_at(*partition, key, parameters, buffers);
        }
    }

    fn insert_row(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        require!(self.work.found.is_empty(), "a row is inserted only when no row has its keys");
        let row = self.work.rows.get(self.work.next);
        let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
        inputs.begin(self.plan.table.definition.partition_count, buffers);
        inputs.push_image(row.partition, row.image, &[], buffers);
        self.send(context, &self.plan.program, Step::Insert)
    }

    /// Updates the conflicting row. The parameters are those of the statement, then the columns of the new
    /// row, then the columns of the query's row that the assignments use.
    fn update_found(&mut self, context: &mut StatementContext<'_, '_>) -> Result<Next> {
        let plan = self.plan;
        let Conflict::Update { update, first_parameter, selected, .. } = &plan.conflict else {
            unexpected_step("an update of an INSERT without ON DUPLICATE KEY UPDATE")
        };
        let row = self.work.rows.get(self.work.next);
        let is_own = row.parameters.is_empty() || plan.select.is_some();
        let own = Parameters::from_bytes(if is_own { &self.steps.parameters } else { row.parameters });
        let Workspace { builder, row_parameters, .. } = &mut context.engine.work;
        builder.clear();
        for ordinal in 0..*first_parameter {
            builder.push(own.get(ordinal));
        }
        let view = RowView::new(&plan.table.row_format, row.image.image);
        for position in 0..plan.table.definition.columns.len() {
            builder.push(view.column(ColumnNumber(position as u16)));
        }
        let given = Parameters::from_bytes(row.parameters);
        for ordinal in selected.clone() {
            builder.push(given.get(ordinal));
        }
        let mut parameters = std::mem::take(row_parameters);
        parameters.clear();
        let built = builder.append_to(&mut parameters);
        self.push_found(context, &parameters);
        context.engine.work.row_parameters = parameters;
        built?;
        self.send(context, update, Step::Update)
    }
}

/// The AUTO_INCREMENT value of the current row; 0 without such a column.
fn auto_increment_of_row(plan: &InsertPlan, work: &InsertWork) -> u64 {
    let Some(auto) = plan.auto.filter(|auto| !auto.is_hidden) else { return 0 };
    let view = RowView::new(&plan.table.row_format, work.rows.get(work.next).image.image);
    number_of(view.column(auto.index)).unwrap_or(0)
}

/// The AUTO_INCREMENT value of the conflicting row if that column is the primary key; 0 otherwise.
fn auto_increment_of_found(plan: &InsertPlan, work: &InsertWork) -> u64 {
    let Some(auto) = plan.auto.filter(|auto| !auto.is_hidden) else { return 0 };
    let definition = &plan.table.definition;
    let column_type = &definition.columns[usize::from(auto.index.0)].column_type;
    match (column_type.as_integer(), work.found.last()) {
        (Some((_, unsigned)), Some((_, key))) if definition.primary().columns == [auto.index] => {
            let mut bytes = [0; 8];
            let (Some(low), true) = (bytes.len().checked_sub(key.len()), !key.is_empty()) else { return 0 };
            bytes[low..].copy_from_slice(key);
            // Keys of signed integers begin with the inverted sign bit.
            match (unsigned, key[0] & 0x80) {
                (true, _) => u64::from_be_bytes(bytes),
                (false, 0) => 0,
                (false, _) => u64::from_be_bytes(bytes) & !(1 << (key.len() * 8 - 1)),
            }
        }
        (None, Some((_, key))) if definition.primary().columns == [auto.index] => {
            double_of_key(key).and_then(|number| number_of(ValueRef::Double(number))).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Whether the AUTO_INCREMENT column is part of the primary key.
fn has_number(plan: &InsertPlan) -> bool {
    plan.auto.is_some_and(|auto| plan.table.definition.primary().columns.contains(&auto.index))
}

#[cold]
fn taken_number(plan: &InsertPlan, number: u64) -> Box<Error> {
    let table = &plan.table.definition.name;
    Error::new(ErrorCode::DuplicateEntry, format!("Duplicate entry '{number}' for key '{table}.PRIMARY'"))
}

/// The partition and primary key of the row that a unique entry refers to.
fn referenced(entries: &TableLayout, image: &[u8]) -> Result<(u16, Vec<u8>)> {
    let Some((_, image)) = image.split_first_chunk::<4>() else { return Err(Error::broken_reply()) };
    match RowView::new(&entries.row_format, image).column(ColumnNumber(1)) {
        ValueRef::Bytes([high, low, key @ ..]) => Ok((u16::from_be_bytes([*high, *low]), key.to_vec())),
        _ => Err(Error::broken_reply()),
    }
}

/// Sends the answer of a complete INSERT.
pub(super) fn complete(
    context: &mut StatementContext<'_, '_>,
    plan: &InsertPlan,
    work: InsertWork,
    fills: Option<FilledTable>,
) -> Progress {
    use std::fmt::Write;
    let rows_of_query = work.source.as_ref().map(|source| source.rows_before);
    let Counts { written, deleted, updated, touched } = work.counts;
    let rows = rows_of_query.unwrap_or(work.rows.len() as u64);
    let found = if context.session.found_rows_wanted { touched } else { updated };
    let info = &mut context.engine.work.info;
    info.clear();
    if rows > 1 || rows_of_query.is_some() && !plan.is_values {
        let ignores = matches!(plan.conflict, Conflict::Skip | Conflict::Update { ignore: true, .. });
        let duplicates = if ignores { rows - written.min(rows) } else { deleted + found };
        let warnings = context.session.warning_count;
        // Writing to a String cannot fail.
        let _ = match plan.load {
            None => write!(info, "Records: {rows}  Duplicates: {duplicates}  Warnings: {warnings}"),
            Some(_) => {
                let skipped = rows - written.min(rows);
                write!(info, "Records: {rows}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}")
            }
        };
    }
    if work.first_number != 0 {
        context.session.last_insert_id = work.first_number;
    }
    context.session.insert_id.end_statement();
    if let Some(InsertReturning { header, .. }) = &plan.returning {
        context.sink.header(header, &context.session.completion());
        return process_rows(context, vec![work.returned.packets], RowTarget::Answer { rows: 0 });
    }
    let last_insert_id = match (work.first_number, context.session.insert_id_argument) {
        (0, Some(argument)) => argument,
        (0, None) if written > 0 => work.explicit_number,
        (first, _) => first,
    };
    let counts = ChangeCounts { affected_rows: written + deleted + found, last_insert_id, has_info: true };
    match fills {
        Some(filled) => finish_filled(context, filled, counts),
        None => finish_ok(context, counts),
    }
}
