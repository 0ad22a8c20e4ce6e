//! Filling a new unique index while others write to its table.
//!
//! From the moment that the index exists in state Building, every statement keeps its entries. What is left are the rows from
//! before. The table is read in batches in the order of its primary key; for each batch the whole range of keys up to its last
//! one is locked (shared), which waits for rows that transactions from before have not committed, and gives the rows as they are
//! now. Their entries are locked, the missing ones are inserted, and that is committed. An entry that is
//! there already and names the same row was made by a writer; one that names another row is a duplicate, and the index is
//! dropped. At the end the range after the last batch is worked on likewise. A table whose primary key has no order is locked
//! as a whole instead.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{PartitionScope, RowBound};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnIndex, IndexId, TableId};
use junctor_model::key::{append_escaped, append_row_key};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::row_encoding::{append_double, append_signed, append_unsigned};
use junctor_model::schema::{IndexKind, TableLayout};
use junctor_model::value::ValueRef;
use junctor_signals::end_transaction::Ending;
use junctor_signals::input::{HashedKey, KeyRange, KeyedImage};
use junctor_signals::program::{Access, LockMode, Output, ReadProgram, WhenLocked, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;

use super::alter::{Altering, next_step, take_back};
use super::completion::interrupted;
use super::context::StatementContext;
use super::read::broken_reply;
use super::schema::{ChangeWait, SchemaState, SchemaStep, index_is_gone};
use super::state::Execution;
use super::transaction::note_lost_transaction;
use super::write::{StatementOutcome, send};
use crate::result::Progress;
use crate::session::{Session, TEXT};

/// Rows of one batch of one partition.
const BATCH_ROWS: u32 = 256;
/// How often a batch is begun anew after a deadlock or a race for an entry.
const ATTEMPTS_MAX: u32 = 16;

/// How filling ended.
#[derive(Debug)]
enum FillEnd {
    Complete,
    Failed(Box<Error>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FillStep {
    Reading,
    LockingRows,
    LockingEntries,
    Inserting,
    Committing,
    RollingBack,
}

/// The state of filling an index.
#[derive(Debug)]
pub(crate) struct Fill {
    altering: Altering,
    layout: Arc<TableLayout>,
    entries_layout: Arc<TableLayout>,
    key_columns: Vec<ColumnIndex>,
    index_name: Box<str>,
    lock_rows: Arc<WriteProgram>,
    lock_entries: Arc<WriteProgram>,
    insert: Arc<WriteProgram>,
    read_program: Arc<ReadProgram>,
    read: OperationId,
    next: Next,
    step: FillStep,
    /// Replies of the read that are not worked on yet; the last one is the batch at hand.
    batches: Vec<Vec<u8>>,
    /// How far each partition is done: the last key.
    covered: Vec<Option<Vec<u8>>>,
    /// The rows after the last batch of every partition are at hand, or done.
    at_end: bool,
    entries: Vec<NewEntry>,
    attempts: u32,
    failure: Option<Box<Error>>,
    /// The statement sent last.
    statement: OperationId,
    /// Nobody wants the index any more.
    is_interrupted: bool,
}

#[derive(Debug)]
struct NewEntry {
    key: Vec<u8>,
    reference: Vec<u8>,
    shown: String,
    exists: bool,
}

/// Begins to fill an index: reads every row.
pub(super) fn begin_fill(
    context: &mut StatementContext<'_, '_>,
    altering: Altering,
    layout: Arc<TableLayout>,
    index: IndexId,
) -> Progress {
    let dictionary = &context.engine.gateway.catalog().dictionary;
    let definition = layout.definition.index(index);
    let entries = definition.and_then(|definition| match definition.kind {
        IndexKind::Unique { entries, .. } => dictionary.table(entries).cloned(),
        _ => None,
    });
    let (Some(definition), Some(entries_layout)) = (definition, entries) else {
        return take_back(context, altering, index_is_gone());
    };
    let in_order = layout.definition.primary().is_ordered();
    let base_access = match in_order {
        true => Access::IndexRanges { index: layout.definition.primary().id, descending: false },
        false => Access::AllRows,
    };
    let write = |table: &Arc<TableLayout>, action, access| {
        Arc::new(WriteProgram {
            table: Arc::clone(table),
            action,
            access,
            filter: None,
            reads_parameters: false,
            unique_entries: Vec::new(),
            foreign_keys: None,
            returning: None,
        })
    };
    let lock =
        |mode| WriteAction::LockRead { mode, when_locked: WhenLocked::Wait, output: Output::Images, is_strict: false };
    let read = Arc::new(ReadProgram {
        table: Arc::clone(&layout),
        access: base_access,
        filter: None,
        output: Output::Images,
        reads_parameters: false,
        is_strict: false,
        marks_missing: false,
    });
    let fill = Fill {
        altering,
        key_columns: definition.columns.clone(),
        index_name: definition.name.clone(),
        lock_rows: write(&layout, lock(LockMode::Shared), base_access),
        lock_entries: write(&entries_layout, lock(LockMode::Exclusive), Access::PrimaryKeys),
        insert: write(&entries_layout, WriteAction::Insert, Access::PrimaryKeys),
        covered: vec![None; usize::from(layout.definition.partition_count)],
        at_end: false,
        layout: Arc::clone(&layout),
        entries_layout,
        read_program: read,
        read: OperationId::default(),
        next: Next::Coming,
        step: FillStep::Reading,
        batches: Vec::new(),
        entries: Vec::new(),
        attempts: 0,
        failure: None,
        statement: OperationId::default(),
        is_interrupted: false,
    };
    start_read(context, fill)
}

/// Reads the whole table.
fn start_read(context: &mut StatementContext<'_, '_>, mut fill: Fill) -> Progress {
    let layout = Arc::clone(&fill.layout);
    let read = Arc::clone(&fill.read_program);
    let in_order = layout.definition.primary().is_ordered();
    if !in_order {
        fill.next = Next::Done;
        return next_batch(context, fill);
    }
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(layout.definition.partition_count, context.turn.buffers);
    inputs.push_range(PartitionScope::All, KeyRange { lower: None, upper: None }, &[], context.turn.buffers);
    let transaction = &mut context.session.transaction;
    transaction.explicit = false;
    // Rows that come while it works make their entries themselves, so no range has to be kept free.
    transaction.isolation = Isolation::ReadCommitted;
    let options = ReadOptions { protocol: TEXT, bound: RowBound::Reply(BATCH_ROWS), warnings_max: 0 };
    match context.engine.gateway.read(context.session.connection, transaction, &read, options, inputs, context.turn) {
        Ok(operation) => {
            fill.read = operation;
            fill.step = FillStep::Reading;
            wait(context.session, fill)
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            end(context, fill, FillEnd::Failed(error))
        }
    }
}

fn wait(session: &mut Session, fill: Fill) -> Progress {
    let operation = fill.read;
    let step = SchemaStep::Filling(Box::new(fill));
    session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits: ChangeWait::Over }));
    Progress::Waiting
}

/// The fill under way; `None` leaves the session as it is.
fn take_fill(session: &mut Session) -> Option<Fill> {
    match std::mem::take(&mut session.execution) {
        Execution::Schema(state) => match *state {
            SchemaState { step: SchemaStep::Filling(fill), .. } => Some(*fill),
            other => {
                session.execution = Execution::Schema(Box::new(other));
                None
            }
        },
        other => {
            session.execution = other;
            None
        }
    }
}

/// Rows of the table arrived.
pub(crate) fn on_fill_rows(context: &mut StatementContext<'_, '_>, output: Vec<u8>, next: Next) -> Progress {
    let Some(mut fill) = take_fill(context.session) else { return Progress::Waiting };
    if output.is_empty() {
        context.turn.buffers.give(output);
    } else {
        fill.batches.push(output);
    }
    fill.next = next;
    if next == Next::Coming { wait(context.session, fill) } else { next_batch(context, fill) }
}

/// The read of the table failed.
pub(crate) fn on_fill_read_failed(context: &mut StatementContext<'_, '_>, error: Box<Error>) -> Progress {
    let Some(fill) = take_fill(context.session) else { return Progress::Waiting };
    end(context, fill, FillEnd::Failed(error))
}

/// Locks the rows of the next batch, asks for more rows, or is done.
fn next_batch(context: &mut StatementContext<'_, '_>, mut fill: Fill) -> Progress {
    if fill.is_interrupted {
        return end(context, fill, FillEnd::Failed(interrupted()));
    }
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(fill.layout.definition.partition_count, context.turn.buffers);
    if let Some(batch) = fill.batches.last() {
        let (partition, last) = match fill.last_key(batch) {
            Ok(last) => last,
            Err(error) => return end(context, fill, FillEnd::Failed(error)),
        };
        let range = KeyRange { lower: fill.covered_key(partition), upper: Some((&last, true)) };
        inputs.push_range(PartitionScope::One(partition), range, &[], context.turn.buffers);
    } else if fill.next == Next::Ask {
        fill.step = FillStep::Reading;
        context.engine.gateway.continue_read(fill.read, context.turn);
        return wait(context.session, fill);
    } else if fill.at_end && fill.attempts == 0 {
        return end(context, fill, FillEnd::Complete);
    } else {
        fill.at_end = true;
        for partition in 0..fill.layout.definition.partition_count {
            if fill.layout.definition.primary().is_ordered() {
                let range = KeyRange { lower: fill.covered_key(partition), upper: None };
                inputs.push_range(PartitionScope::One(partition), range, &[], context.turn.buffers);
            } else {
                inputs.push_all(PartitionScope::One(partition), &[], context.turn.buffers);
            }
        }
    }
    fill.step = FillStep::LockingRows;
    context.session.transaction.explicit = true;
    let sent = send(context, &fill.lock_rows, TEXT).map(|operation| fill.statement = operation);
    go_on(context, fill, sent)
}

/// A step was sent, or could not be.
fn go_on(context: &mut StatementContext<'_, '_>, fill: Fill, sent: Result<()>) -> Progress {
    match sent {
        Ok(()) => wait(context.session, fill),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            roll_back(context, fill, Some(error))
        }
    }
}

/// A locking read or the insert of entries was answered.
pub(crate) fn on_fill_statement(context: &mut StatementContext<'_, '_>, outcome: StatementOutcome) -> Progress {
    let Some(mut fill) = take_fill(context.session) else { return Progress::Waiting };
    if let Some(error) = outcome.error {
        note_lost_transaction(&mut context.engine.gateway, context.session);
        return after_error(context, fill, error);
    }
    let images = outcome.outputs;
    let sent = match fill.step {
        FillStep::LockingRows => fill.take_rows(&images).and_then(|()| lock_entries(context, &mut fill)),
        FillStep::LockingEntries => fill.take_existing(&images).and_then(|()| insert(context, &mut fill)),
        _ => Ok(false),
    };
    for image in images {
        context.turn.buffers.give(image);
    }
    match sent {
        Ok(true) => wait(context.session, fill),
        Ok(false) => commit(context, fill),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            roll_back(context, fill, Some(error))
        }
    }
}

/// Deadlocks begin the batch anew; an entry that came meanwhile is looked at; all else is the end.
fn after_error(context: &mut StatementContext<'_, '_>, mut fill: Fill, error: Box<Error>) -> Progress {
    fill.attempts += 1;
    let may_repeat = matches!(error.code, ErrorCode::Deadlock | ErrorCode::LockWaitTimeout | ErrorCode::DuplicateEntry);
    if fill.attempts > ATTEMPTS_MAX || !may_repeat {
        return roll_back(context, fill, Some(error));
    }
    if error.code == ErrorCode::DuplicateEntry {
        return match lock_entries(context, &mut fill) {
            Ok(_) => wait(context.session, fill),
            Err(error) => roll_back(context, fill, Some(error)),
        };
    }
    roll_back(context, fill, None)
}

/// Locks the entries of the batch that exist; false when the batch needs none.
fn lock_entries(context: &mut StatementContext<'_, '_>, fill: &mut Fill) -> Result<bool> {
    if fill.entries.is_empty() {
        return Ok(false);
    }
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(fill.entries_layout.definition.partition_count, context.turn.buffers);
    let mut key = Vec::new();
    for entry in &fill.entries {
        key.clear();
        append_escaped(&entry.key, &mut key);
        inputs.push_key(&key, &[], context.turn.buffers);
    }
    fill.step = FillStep::LockingEntries;
    fill.statement = send(context, &fill.lock_entries, TEXT)?;
    Ok(true)
}

/// Inserts the entries that are missing; false when none is.
fn insert(context: &mut StatementContext<'_, '_>, fill: &mut Fill) -> Result<bool> {
    let layout = &fill.entries_layout;
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(layout.definition.partition_count, context.turn.buffers);
    let (mut key, mut image) = (Vec::new(), Vec::new());
    for entry in fill.entries.iter().filter(|entry| !entry.exists) {
        key.clear();
        append_escaped(&entry.key, &mut key);
        image.clear();
        layout.row_format.encode(&[ValueRef::Bytes(&entry.key), ValueRef::Bytes(&entry.reference)], &mut image)?;
        let hash = key_hash(&key);
        let partition = partition_of(hash, layout.definition.partition_count);
        let row = KeyedImage { key: HashedKey { hash, key: &key }, image: &image };
        inputs.push_image(partition, row, &[], context.turn.buffers);
    }
    if inputs.is_empty() {
        return Ok(false);
    }
    fill.step = FillStep::Inserting;
    fill.statement = send(context, &fill.insert, TEXT)?;
    Ok(true)
}

fn commit(context: &mut StatementContext<'_, '_>, mut fill: Fill) -> Progress {
    fill.step = FillStep::Committing;
    match context.engine.gateway.end(
        context.session.connection,
        &mut context.session.transaction,
        Ending::Commit,
        context.turn,
    ) {
        Ok(Some(_)) => wait(context.session, fill),
        Ok(None) => batch_done(context, fill),
        Err(error) => roll_back(context, fill, Some(error)),
    }
}

/// Rolls the batch back: to fail with the error, or without one to try again.
fn roll_back(context: &mut StatementContext<'_, '_>, mut fill: Fill, error: Option<Box<Error>>) -> Progress {
    fill.failure = error;
    fill.step = FillStep::RollingBack;
    match context.engine.gateway.end(
        context.session.connection,
        &mut context.session.transaction,
        Ending::Rollback,
        context.turn,
    ) {
        Ok(Some(_)) => wait(context.session, fill),
        Ok(None) => rolled_back(context, fill),
        Err(error) => end(context, fill, FillEnd::Failed(error)),
    }
}

fn rolled_back(context: &mut StatementContext<'_, '_>, mut fill: Fill) -> Progress {
    match fill.failure.take() {
        Some(error) => end(context, fill, FillEnd::Failed(error)),
        None => next_batch(context, fill),
    }
}

fn batch_done(context: &mut StatementContext<'_, '_>, mut fill: Fill) -> Progress {
    if let Some(batch) = fill.batches.pop() {
        if let Ok((partition, last)) = fill.last_key(&batch) {
            fill.covered[usize::from(partition)] = Some(last);
        }
        context.turn.buffers.give(batch);
    }
    fill.entries.clear();
    fill.attempts = 0;
    next_batch(context, fill)
}

/// COMMIT or ROLLBACK of a batch was answered.
pub(crate) fn on_fill_ended(context: &mut StatementContext<'_, '_>, error: Option<Box<Error>>) -> Progress {
    let Some(mut fill) = take_fill(context.session) else { return Progress::Waiting };
    context.session.transaction_ended();
    match (fill.step, error) {
        (FillStep::RollingBack, _) => rolled_back(context, fill),
        (_, None) => batch_done(context, fill),
        (_, Some(error)) => {
            fill.failure = Some(error);
            rolled_back(context, fill)
        }
    }
}

fn end(context: &mut StatementContext<'_, '_>, mut fill: Fill, end: FillEnd) -> Progress {
    if fill.next != Next::Done && fill.read != OperationId::default() {
        context.engine.gateway.end_read(fill.read, context.turn);
    }
    for batch in fill.batches.drain(..) {
        context.turn.buffers.give(batch);
    }
    context.session.transaction_ended();
    match end {
        FillEnd::Complete => next_step(context, fill.altering),
        FillEnd::Failed(error) => take_back(context, fill.altering, error),
    }
}

impl Fill {
    /// The index is not to be made any more: it ends at its next step. Gives the statement that may be under way.
    pub(super) fn interrupt(&mut self) -> OperationId {
        self.is_interrupted = true;
        self.statement
    }

    /// The table.
    pub(super) fn table(&self) -> TableId {
        self.layout.definition.id
    }

    /// The partition of a batch and the key of its last row.
    fn last_key(&self, batch: &[u8]) -> Result<(u16, Vec<u8>)> {
        let definition = &self.layout.definition;
        let mut found = None;
        for_each_image(batch, &mut |image| {
            let row = RowView::new(&self.layout.row_format, image);
            let mut key = Vec::new();
            append_row_key(&definition.columns, &definition.primary().columns, row, &mut key);
            let mut partition_key = Vec::new();
            append_row_key(&definition.columns, &definition.partition_columns, row, &mut partition_key);
            found = Some((partition_of(key_hash(&partition_key), definition.partition_count), key));
        })?;
        found.ok_or_else(broken_reply)
    }

    /// Where what is left of a partition begins.
    fn covered_key(&self, partition: u16) -> Option<(&[u8], bool)> {
        self.covered[usize::from(partition)].as_deref().map(|key| (key, false))
    }

    /// The entries of the rows as they are now, locked. Error: 1062 when two of them have one key.
    fn take_rows(&mut self, images: &[Vec<u8>]) -> Result<()> {
        self.entries.clear();
        let definition = &self.layout.definition;
        for output in images {
            for_each_image(output, &mut |image| {
                let row = RowView::new(&self.layout.row_format, image);
                let mut key = Vec::new();
                if append_row_key(&definition.columns, &self.key_columns, row, &mut key) {
                    // NULL equals nothing, so it has no entry.
                    return;
                }
                let mut partition_key = Vec::new();
                append_row_key(&definition.columns, &definition.partition_columns, row, &mut partition_key);
                let partition = partition_of(key_hash(&partition_key), definition.partition_count);
                let mut reference = partition.to_be_bytes().to_vec();
                append_row_key(&definition.columns, &definition.primary().columns, row, &mut reference);
                let shown = shown_key(&self.key_columns, row);
                self.entries.push(NewEntry { key, reference, shown, exists: false });
            })?;
        }
        self.entries.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        match self.entries.windows(2).find(|pair| pair[0].key == pair[1].key) {
            Some(pair) => Err(self.duplicate(&pair[0].shown)),
            None => Ok(()),
        }
    }

    /// Notes which entries exist. Error: 1062 when one belongs to another row.
    fn take_existing(&mut self, images: &[Vec<u8>]) -> Result<()> {
        let mut taken = None;
        for output in images {
            for_each_image(output, &mut |image| {
                let row = RowView::new(&self.entries_layout.row_format, image);
                let (ValueRef::Bytes(key), ValueRef::Bytes(reference)) =
                    (row.column(ColumnIndex(0)), row.column(ColumnIndex(1)))
                else {
                    return;
                };
                if let Ok(position) = self.entries.binary_search_by(|entry| entry.key.as_slice().cmp(key)) {
                    self.entries[position].exists = true;
                    if self.entries[position].reference != reference {
                        taken = Some(position);
                    }
                }
            })?;
        }
        match taken {
            Some(position) => Err(self.duplicate(&self.entries[position].shown)),
            None => Ok(()),
        }
    }

    fn duplicate(&self, shown: &str) -> Box<Error> {
        let message =
            format!("Duplicate entry '{shown}' for key '{}.{}'", self.layout.definition.name, self.index_name);
        Error::new(ErrorCode::DuplicateEntry, message)
    }
}

/// Calls `visit` with each row image of a reply.
pub(super) fn for_each_image(mut output: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    while let Some((length, rest)) = output.split_first_chunk() {
        let (image, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(broken_reply)?;
        visit(image);
        output = rest;
    }
    Ok(())
}

/// The key as error 1062 shows it.
fn shown_key(columns: &[ColumnIndex], row: RowView<'_>) -> String {
    let mut text = Vec::new();
    for (position, column) in columns.iter().enumerate() {
        if position > 0 {
            text.push(b'-');
        }
        match row.column(*column) {
            ValueRef::Null => text.extend_from_slice(b"NULL"),
            ValueRef::Int(value) => append_signed(value, &mut text),
            ValueRef::UInt(value) => append_unsigned(value, &mut text),
            ValueRef::Double(value) => append_double(value, &mut text),
            ValueRef::Decimal(value) => value.append_text(&mut text),
            ValueRef::Bytes(bytes) => text.extend_from_slice(bytes),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether an index of a session is being filled.
pub(crate) fn is_filling(session: &Session) -> bool {
    matches!(&session.execution, Execution::Schema(state) if matches!(state.step, SchemaStep::Filling(_)))
}
