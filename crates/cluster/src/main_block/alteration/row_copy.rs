//! Copies the rows of a table to a table of a new form, while sessions write to the old one.
//!
//! The copy first reads all rows at one snapshot, in batches. Each batch becomes one transaction that inserts
//! the rows into the new table and the entries of its unique indexes. The table then follows the old one in
//! rounds: a round reads what has changed between the snapshot of the round before and a newer one. It
//! deletes the old rows from the new table, all of them before it inserts any, because a row may have got the
//! unique key of another one. The new table then has exactly the rows of the newer snapshot. Rounds become
//! shorter as long as the copy is faster than the writers. When one is short, or after [`ROUNDS_MAX`] of
//! them, the alteration blocks writes and runs the last round.
//!
//! The snapshots keep the versions that rounds need from being purged. No turn of main works on more rows
//! than a batch has, because the log needs the same thread.
//!
//! A copy that generates numbers cannot find the row that it has made of an old one. Writes are then blocked
//! from the beginning.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, Gateway, PartitionScope, Transaction, TurnContext};
use junctor_kernel::{invariant, require};
use junctor_model::alteration::{Alteration, ColumnSource, Redefinition};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key::append_row_key;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, Dictionary, IndexKind, TableDefinition, TableLayout};
use junctor_model::scratch::{Scratch, WARNINGS_KEPT_DEFAULT};
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::temporal::{ValueRules, Zone};
use junctor_model::value::{Value, ValueRef};
use junctor_signals::diagnostics::{self, Diagnostics};
use junctor_signals::end_transaction::Ending;
use junctor_signals::input::{HashedKey, KeyedImage};
use junctor_signals::program::{Access, Output, ReadProgram, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::row_expressions::{RowExpressions, RowTarget};

use super::rows::for_each_image;
use super::{WorkContext, WorkResult};

/// Maximum number of rounds while others write. A table that changes faster than it is copied would otherwise
/// never be copied.
const ROUNDS_MAX: u32 = 16;
/// A round with at most this many changed rows is short: the next one takes about a millisecond.
const SHORT_ROUND_ROWS: u64 = 512;

/// Maximum number of times that a batch starts again because a change of the membership has rolled it back.
const ATTEMPTS_MAX: u32 = 16;

/// The purpose of the present read of the old table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyPhase {
    /// Inserts all rows of the first snapshot.
    AllRows,
    /// Deletes the earlier versions of the rows that have changed.
    Delete,
    /// Inserts the later versions of the rows that have changed.
    Insert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyStep {
    /// No round is under way.
    Paused,
    Reading,
    Writing,
    Committing,
    RollingBack,
}

/// The progress of copying rows.
#[derive(Debug)]
pub(super) struct RowCopy {
    old: Arc<TableLayout>,
    new: Arc<TableLayout>,
    columns: Vec<NewColumn>,
    /// The columns and conditions that are computed from the other columns of the new row.
    expressions: Arc<RowExpressions>,
    /// Memory for computed images.
    spare: Vec<u8>,
    rules: ValueRules,
    is_strict: bool,
    /// Warnings of the values that were adjusted in batches that are done.
    diagnostics: Option<Box<Diagnostics>>,
    /// The warnings of the current batch.
    batch_diagnostics: Option<Box<Diagnostics>>,
    /// Whether the numbers of the AUTO_INCREMENT column are those of the old table. A 0 among them stays 0.
    keeps_numbers: bool,
    /// The new table's AUTO_INCREMENT column, also a hidden one.
    automatic: Option<ColumnNumber>,
    insert: Arc<WriteProgram>,
    delete: Arc<WriteProgram>,
    /// The transaction of the current batch.
    transaction: Transaction,
    /// Holds the snapshot that the new table has reached, or that it reaches first.
    reached: Transaction,
    /// Holds the snapshot of the round.
    round: Transaction,
    phase: CopyPhase,
    step: CopyStep,
    /// The read of the old table.
    read: Option<OperationId>,
    next: Next,
    /// Unprocessed replies of the read. The last one is the current batch until it is committed.
    batches: Vec<Vec<u8>>,
    counts: CopyCounts,
    /// The counts before the current batch.
    before: CopyCounts,
    rounds: u32,
    /// How often the current batch has started again.
    attempts: u32,
    /// Number of rows that the last statement writes.
    written: u64,
    failure: Option<Box<Error>>,
    /// The operation of the last statement.
    statement: Option<OperationId>,
    is_interrupted: bool,
}

/// The counts of a copy while it converts rows.
#[derive(Clone, Copy, Debug)]
struct CopyCounts {
    /// Number of rows inserted from the first snapshot.
    rows: u64,
    /// Number of the row that is converted, for messages.
    row_number: u64,
    /// Number of rows that the round has found changed.
    changed: u64,
    next_number: u64,
    /// The number after the greatest hidden key. A visible AUTO_INCREMENT column and the hidden key beside it
    /// have one counter.
    after_hidden: u64,
}

/// The source of a column of the new table.
#[derive(Debug)]
struct NewColumn {
    source: ColumnSource,
    /// Whether a value of the old column is a value of the new one without a conversion.
    is_same: bool,
    /// The value before it is computed, and that of a NULL which the new column cannot have.
    before: Value,
}

/// The value of a TIMESTAMP at a number of microseconds since 1970 in UTC; `None` outside of its range.
fn instant_at(microseconds: u64, digits: u8) -> Option<Value> {
    let now = Zone::UTC.date_time_at(microseconds, digits);
    let (instant, _) = Zone::UTC.instant_of(&now.parts(), digits)?;
    Some(Value::Temporal(instant))
}

/// Whether the copy of an alteration follows the old table while others write to it.
pub(super) fn follows_writes(alteration: &Alteration) -> bool {
    let Some((redefinition, sources)) = alteration.copy() else { return false };
    // A default may be another one at each evaluation; a key with it does not find the row again.
    let is_default = |column: &ColumnNumber| {
        let position = usize::from(column.0);
        sources[position] == ColumnSource::Computed && !redefinition.new.columns[position].is_generated()
    };
    let has_fixed_key = !redefinition.new.primary().columns.iter().any(is_default);
    has_fixed_key && keeps_numbers(redefinition, sources) && !sources.contains(&ColumnSource::Numbers)
}

/// Whether the copy generates no numbers for the AUTO_INCREMENT column. A column that becomes AUTO_INCREMENT
/// gets numbers where it has 0 or NULL.
fn keeps_numbers(redefinition: &Redefinition, sources: &[ColumnSource]) -> bool {
    let numbered = redefinition.new.auto_increment_column().map(|column| &sources[usize::from(column.0)]);
    match numbered {
        None => true,
        Some(ColumnSource::Column(column)) => redefinition.old.auto_increment_column() == Some(*column),
        Some(ColumnSource::Value(_) | ColumnSource::Numbers | ColumnSource::Computed) => false,
    }
}

impl RowCopy {
    /// Prepares to copy the rows of a table to the table of the new form.
    pub fn new(
        dictionary: &Dictionary,
        (old, new): (Arc<TableLayout>, &Arc<TableLayout>),
        (redefinition, sources): (&Redefinition, &[ColumnSource]),
        expressions: &Arc<RowExpressions>,
    ) -> Result<RowCopy> {
        let columns = sources.iter().zip(&new.definition.columns).map(|(source, column)| NewColumn {
            source: source.clone(),
            is_same: match source {
                ColumnSource::Column(from) => is_same(&old.definition.columns[usize::from(from.0)], column),
                // The value of a type without a default may be a day that the rules do not allow.
                ColumnSource::Value(_) => column.default.is_some() || column.default_now || column.nullable,
                ColumnSource::Numbers | ColumnSource::Computed => true,
            },
            before: match source {
                _ if column.nullable => Value::Null,
                ColumnSource::Column(_) if column.column_type.is_timestamp() => {
                    let now = instant_at(redefinition.now_us, column.column_type.scale());
                    now.unwrap_or_else(|| column.column_type.implicit_default())
                }
                _ => column.column_type.implicit_default(),
            },
        });
        let unique_entries = entries_layouts(dictionary, new)?;
        let write = |action| {
            let unique_entries = unique_entries.clone();
            Arc::new(WriteProgram { unique_entries, ..WriteProgram::new(new, action, Access::PrimaryKeys) })
        };
        let with_isolation = |isolation, explicit| {
            let mut transaction = Transaction::default();
            (transaction.isolation, transaction.explicit) = (isolation, explicit);
            transaction
        };
        let next_number = redefinition.auto_increment.unwrap_or(1).max(1);
        let counts = CopyCounts { rows: 0, row_number: 0, changed: 0, next_number, after_hidden: 1 };
        Ok(RowCopy {
            columns: columns.collect(),
            rules: redefinition.rules,
            is_strict: redefinition.is_strict,
            diagnostics: None,
            batch_diagnostics: None,
            expressions: Arc::clone(expressions),
            spare: Vec::new(),
            keeps_numbers: keeps_numbers(redefinition, sources),
            automatic: new.definition.auto_increment_column(),
            old,
            new: Arc::clone(new),
            insert: write(WriteAction::Insert),
            delete: write(WriteAction::Delete { ignore: false }),
            // No other session writes to the new table, so no key range has to be locked.
            transaction: with_isolation(Isolation::ReadCommitted, true),
            reached: with_isolation(Isolation::RepeatableRead, true),
            round: with_isolation(Isolation::RepeatableRead, true),
            phase: CopyPhase::AllRows,
            step: CopyStep::Paused,
            read: None,
            next: Next::Done,
            batches: Vec::new(),
            counts,
            before: counts,
            rounds: 0,
            attempts: 0,
            written: 0,
            failure: None,
            statement: None,
            is_interrupted: false,
        })
    }

    /// The warnings of the values that were adjusted.
    pub fn into_diagnostics(self) -> Option<Box<Diagnostics>> {
        self.diagnostics
    }

    /// Number of rows copied from the first snapshot.
    pub fn rows(&self) -> u64 {
        self.counts.rows
    }

    /// The number after the greatest number in the AUTO_INCREMENT column.
    pub fn next_number(&self) -> u64 {
        self.counts.next_number.max(self.counts.after_hidden)
    }

    /// Whether writes are to be blocked now, so that the next round is the last one.
    pub fn is_close(&self) -> bool {
        self.rounds > 0 && (self.counts.changed <= SHORT_ROUND_ROWS || self.rounds > ROUNDS_MAX)
    }

    /// The transaction of the current batch.
    pub fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Makes the copy fail at its next step.
    pub fn interrupt(&mut self, gateway: &mut Gateway, turn: &mut TurnContext<'_>) {
        self.is_interrupted = true;
        if let Some(operation) = self.statement {
            gateway.interrupt_statement(operation, turn);
        }
    }

    /// Starts the next round; the first one copies all rows.
    pub fn start_round(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        require!(self.step == CopyStep::Paused, "rounds follow each other");
        self.counts.changed = 0;
        let taken = match self.rounds {
            0 => work.gateway.take_snapshot(&mut self.reached),
            _ => work.gateway.take_snapshot(&mut self.round),
        };
        self.phase = if self.rounds == 0 { CopyPhase::AllRows } else { CopyPhase::Delete };
        self.rounds += 1;
        match taken {
            Ok(()) => self.start_read(work),
            Err(error) => self.end(work, Err(error)),
        }
    }

    /// Starts the read of the present phase.
    fn start_read(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        let changed_since = match self.phase {
            CopyPhase::AllRows => None,
            CopyPhase::Delete | CopyPhase::Insert => self.reached.snapshot_number(),
        };
        let program = ReadProgram { changed_since, ..ReadProgram::new(&self.old, Access::AllRows, Output::Images) };
        work.inputs.begin(self.old.definition.partition_count, work.turn.buffers);
        work.inputs.push_all(PartitionScope::All, &[], work.turn.buffers);
        let at = if self.phase == CopyPhase::AllRows { &mut self.reached } else { &mut self.round };
        match work.read(&Arc::new(program), at) {
            Ok(operation) => {
                self.read = Some(operation);
                (self.next, self.step) = (Next::MoreReplies, CopyStep::Reading);
                None
            }
            Err(error) => self.end(work, Err(error)),
        }
    }

    /// Continues with a reply to one of the steps.
    pub fn resume(&mut self, work: &mut WorkContext<'_, '_>, event: Event) -> WorkResult {
        match event {
            Event::Rows { output, next, .. } => self.on_rows(work, output, next),
            Event::ReadFailed { error, .. } => {
                (self.next, self.read) = (Next::Done, None);
                self.end(work, Err(error))
            }
            Event::Statement { outputs, changed, error, .. } => {
                outputs.into_iter().for_each(|output| work.turn.buffers.give(output));
                // The new table has the rows of the snapshot that the copy has reached.
                let is_complete = error.is_some() || changed == self.written;
                self.on_statement(work, if is_complete { error } else { Some(Error::broken_reply()) })
            }
            Event::Ended { error, .. } => self.on_ended(work, error),
            other => invariant::fail("a copy gets replies to its own steps", format_args!("{other:?}")),
        }
    }

    fn on_rows(&mut self, work: &mut WorkContext<'_, '_>, output: Vec<u8>, next: Next) -> WorkResult {
        require!(self.step == CopyStep::Reading, "rows of the table arrive only while no batch is processed");
        if output.is_empty() {
            work.turn.buffers.give(output);
        } else {
            self.batches.push(output);
        }
        self.next = next;
        if next == Next::MoreReplies { None } else { self.next_batch(work) }
    }

    /// Writes the rows of the next batch, requests more rows, or ends the read.
    fn next_batch(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        if self.is_interrupted {
            return self.end(work, Err(Error::query_interrupted()));
        }
        let Some(batch) = self.batches.pop() else {
            if self.next != Next::MoreRows {
                return self.end_read(work);
            }
            (self.next, self.step) = (Next::MoreReplies, CopyStep::Reading);
            if let Some(read) = self.read {
                work.gateway.continue_read(read, &Transaction::default(), work.turn);
            }
            return None;
        };
        self.before = self.counts;
        let pushed = self.push_rows(&batch, work);
        self.batches.push(batch);
        if let Err(error) = pushed {
            work.inputs.clear(work.turn.buffers);
            return self.end(work, Err(error));
        }
        if work.inputs.is_empty() {
            return self.batch_done(work);
        }
        self.step = CopyStep::Writing;
        self.transaction.explicit = true;
        let program = if self.phase == CopyPhase::Delete { &self.delete } else { &self.insert };
        match work.execute(program, &mut self.transaction) {
            Ok(operation) => {
                self.statement = Some(operation);
                None
            }
            Err(error) => self.roll_back(work, error),
        }
    }

    /// Goes on behind the current batch.
    fn batch_done(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        if let Some(batch) = self.batches.pop() {
            work.turn.buffers.give(batch);
        }
        self.attempts = 0;
        diagnostics::join(&mut self.diagnostics, self.batch_diagnostics.take(), WARNINGS_KEPT_DEFAULT);
        self.next_batch(work)
    }

    /// All rows of a read are written: starts the next phase, or ends the round.
    fn end_read(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        self.read = None;
        match self.phase {
            CopyPhase::Delete if self.counts.changed > 0 => {
                self.phase = CopyPhase::Insert;
                return self.start_read(work);
            }
            CopyPhase::Delete | CopyPhase::Insert => {
                std::mem::swap(&mut self.reached, &mut self.round);
                forget_snapshot(&mut self.round, work.gateway);
            }
            // The length of the first round tells nothing about the changes meanwhile.
            CopyPhase::AllRows => self.counts.changed = u64::MAX,
        }
        self.step = CopyStep::Paused;
        Some(Ok(()))
    }

    /// Pushes the writes of a batch to the inputs.
    fn push_rows(&mut self, batch: &[u8], work: &mut WorkContext<'_, '_>) -> Result<()> {
        work.inputs.begin(self.new.definition.partition_count, work.turn.buffers);
        let mut scratch = Scratch::new();
        scratch.set_strict(self.is_strict);
        scratch.set_value_rules(self.rules);
        let mut image = Vec::new();
        let mut result = Ok(());
        let mut is_later = false;
        self.written = 0;
        for_each_image(batch, &mut |row| {
            let is_wanted = match self.phase {
                CopyPhase::AllRows => {
                    self.counts.rows += 1;
                    true
                }
                // Of each changed row, the batch has the earlier version and the later one.
                CopyPhase::Delete | CopyPhase::Insert => {
                    let is_earlier = !is_later;
                    is_later = is_earlier;
                    self.counts.changed += u64::from(is_earlier && self.phase == CopyPhase::Delete);
                    is_earlier == (self.phase == CopyPhase::Delete) && !row.is_empty()
                }
            };
            if !is_wanted || result.is_err() {
                return;
            }
            image.clear();
            self.counts.row_number += 1;
            result = self.encode(row, &scratch, &mut image);
            scratch.reset();
            if result.is_ok() {
                self.written += 1;
                self.push_image(&image, work);
            }
        })?;
        // The rows that a round deletes have warned when they were inserted.
        let is_warning = self.phase != CopyPhase::Delete;
        self.batch_diagnostics = diagnostics::take(&mut scratch).filter(|_| is_warning);
        result
    }

    /// Pushes the insert or the delete of a row of the new table.
    fn push_image(&self, image: &[u8], work: &mut WorkContext<'_, '_>) {
        let definition = &self.new.definition;
        let row = RowView::new(&self.new.row_format, image);
        let key = key_of(definition, &definition.primary().columns, row);
        let partition_key = key_of(definition, &definition.partition_columns, row);
        let partition = partition_of(key_hash(&partition_key), definition.partition_count);
        if self.phase == CopyPhase::Delete {
            return work.inputs.push_key_at(partition, &key, &[], work.turn.buffers);
        }
        let row = KeyedImage { key: HashedKey { hash: key_hash(&key), key: &key }, image };
        work.inputs.push_image(partition, row, &[], work.turn.buffers);
    }

    fn mode(&self) -> StoreMode {
        if self.is_strict { StoreMode::Strict } else { StoreMode::Lenient }
    }

    fn target<'c>(&self, column: &'c ColumnDefinition) -> StoreTarget<'c> {
        StoreTarget { column, row_number: self.counts.row_number, mode: self.mode() }
    }

    /// Appends the new image of a row.
    fn encode(&mut self, old_image: &[u8], scratch: &Scratch, image: &mut Vec<u8>) -> Result<()> {
        let row = RowView::new(&self.old.row_format, old_image);
        let mut values = Vec::with_capacity(self.columns.len());
        for (position, (column, definition)) in self.columns.iter().zip(&self.new.definition.columns).enumerate() {
            let is_automatic = self.automatic == Some(ColumnNumber(position as u16));
            let mut value = match &column.source {
                ColumnSource::Column(from) => row.column(*from),
                ColumnSource::Value(value) => value.as_ref(),
                // A table may have a visible AUTO_INCREMENT column beside its hidden key.
                ColumnSource::Numbers if definition.hidden => ValueRef::UInt(self.counts.row_number),
                ColumnSource::Numbers => ValueRef::Null,
                // Replaced below, when the other columns are known.
                ColumnSource::Computed => {
                    values.push(column.before.as_ref());
                    continue;
                }
            };
            let has_number = !matches!(value, ValueRef::Null | ValueRef::Int(0) | ValueRef::UInt(0));
            let is_generated = is_automatic && !has_number && !self.keeps_numbers;
            if is_generated {
                value = ValueRef::UInt(self.counts.next_number);
            } else if value.is_null() && !definition.nullable {
                let column_type = &definition.column_type;
                // As in MySQL, where such a copy sets an automatic TIMESTAMP. A strict one that keeps the
                // type is done in place there, with an error.
                let is_now = column_type.is_timestamp() && matches!(column.source, ColumnSource::Column(_));
                if is_now && !(self.is_strict && column.is_same) {
                    values.push(column.before.as_ref());
                    continue;
                }
                // A spatial type has no empty value.
                if self.is_strict || column_type.geometry_kind().is_some() {
                    return Err(Error::new(ErrorCode::InvalidUseOfNull, "Invalid use of NULL value"));
                }
                if column_type.has_own_default() {
                    // An ENUM gets no member, as for a text that is none. The warning is the same.
                    values.push(self.target(definition).convert(ValueRef::Bytes(b""), scratch)?);
                    continue;
                }
                scratch.note(ErrorCode::DataTruncated, || {
                    format!("Data truncated for column '{}' at row {}", definition.name, self.counts.row_number)
                });
                values.push(column.before.as_ref());
                continue;
            }
            if is_generated || !column.is_same {
                let target = self.target(definition);
                value = scratch.in_session_zone(value);
                if let ColumnSource::Column(from) = &column.source {
                    let from = &self.old.definition.columns[usize::from(from.0)];
                    value = from.copied_to(definition, value, scratch)?;
                }
                let stored = target.convert(value, scratch);
                value = stored.map_err(|error| target.error_in(&self.new.definition.name, error))?;
            }
            if definition.hidden && definition.auto_increment {
                self.counts.after_hidden = self.counts.after_hidden.max(value.counted_number().saturating_add(1));
            } else if is_automatic {
                self.counts.next_number = self.counts.next_number.max(value.counted_number().saturating_add(1));
            }
            values.push(value);
        }
        self.new.row_format.encode(&values, image)?;
        let is_computed = |column: ColumnNumber| {
            let source = self.columns.get(usize::from(column.0)).map(|column| &column.source);
            source == Some(&ColumnSource::Computed)
        };
        let target = RowTarget { table: &self.new, mode: self.mode(), row_number: self.counts.row_number };
        self.expressions.complete(target, &is_computed, (image, &mut self.spare), scratch)
    }

    /// Continues after the write of a batch.
    fn on_statement(&mut self, work: &mut WorkContext<'_, '_>, error: Option<Box<Error>>) -> WorkResult {
        self.statement = None;
        if let Some(error) = error {
            if work.gateway.take_ended(&mut self.transaction) {
                work.gateway.forget(&mut self.transaction);
            }
            return self.roll_back(work, error);
        }
        self.step = CopyStep::Committing;
        match work.end_transaction(&mut self.transaction, Ending::Commit) {
            Ok(true) => None,
            Ok(false) => self.batch_done(work),
            Err(error) => self.roll_back(work, error),
        }
    }

    /// Rolls back the batch. It then starts again if a change of the membership has rolled it back; otherwise
    /// the copy fails.
    fn roll_back(&mut self, work: &mut WorkContext<'_, '_>, error: Box<Error>) -> WorkResult {
        self.failure.get_or_insert(error);
        self.step = CopyStep::RollingBack;
        match work.end_transaction(&mut self.transaction, Ending::Rollback) {
            Ok(true) => None,
            Ok(false) => self.rolled_back(work),
            Err(error) => {
                // No event follows.
                work.gateway.abandon(&mut self.transaction, work.turn);
                self.end(work, Err(error))
            }
        }
    }

    fn rolled_back(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        let error = self.failure.take().unwrap_or_else(Error::query_interrupted);
        // No other session has locks of the new table.
        if error.code == ErrorCode::Deadlock && self.attempts < ATTEMPTS_MAX {
            self.attempts += 1;
            self.counts = self.before;
            return self.next_batch(work);
        }
        self.end(work, Err(error))
    }

    /// Continues after the end of a batch's transaction.
    fn on_ended(&mut self, work: &mut WorkContext<'_, '_>, error: Option<Box<Error>>) -> WorkResult {
        match (self.step, error) {
            (CopyStep::RollingBack, _) => self.rolled_back(work),
            (_, None) => self.batch_done(work),
            (_, Some(error)) => {
                self.failure = Some(error);
                self.rolled_back(work)
            }
        }
    }

    fn end(&mut self, work: &mut WorkContext<'_, '_>, result: Result<()>) -> WorkResult {
        if let Some(read) = self.read.take().filter(|_| self.next != Next::Done) {
            work.gateway.end_read(read, work.turn);
        }
        for batch in self.batches.drain(..) {
            work.turn.buffers.give(batch);
        }
        self.step = CopyStep::Paused;
        self.release(work.gateway);
        Some(result)
    }

    /// Releases the snapshots and the transaction of a copy that has ended or is given up between two rounds.
    pub fn release(&mut self, gateway: &mut Gateway) {
        require!(self.step == CopyStep::Paused, "a copy is released between its rounds");
        gateway.forget(&mut self.transaction);
        gateway.forget(&mut self.reached);
        gateway.forget(&mut self.round);
    }
}

/// Releases the snapshot of a transaction that only reads, and prepares it for another one.
fn forget_snapshot(transaction: &mut Transaction, gateway: &mut Gateway) {
    gateway.forget(transaction);
    transaction.explicit = true;
}

fn key_of(definition: &TableDefinition, columns: &[ColumnNumber], row: RowView<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    append_row_key(&definition.columns, columns, row, &mut key);
    key
}

/// Whether each value of the old column that is not NULL is a value of the new column.
fn is_same(old: &ColumnDefinition, new: &ColumnDefinition) -> bool {
    old.column_type == new.column_type
}

/// The hidden tables of the unique indexes of a table.
fn entries_layouts(dictionary: &Dictionary, table: &TableLayout) -> Result<Vec<(IndexId, Arc<TableLayout>)>> {
    let unique = table.definition.indexes.iter().filter_map(|index| match index.kind {
        IndexKind::Unique { entries, .. } => Some((index.id, entries)),
        IndexKind::Primary { .. } | IndexKind::Ordered => None,
    });
    unique
        .map(|(index, entries)| {
            let layout = dictionary.table(entries).ok_or_else(Error::table_definition_changed)?;
            Ok((index, Arc::clone(layout)))
        })
        .collect()
}
