//! Fills a new unique index while other sessions write to its table.
//!
//! As soon as the index exists in state Building, every write maintains its entries, so only the entries of
//! older rows are missing. The table is read in batches in primary key order. For each batch, a transaction
//! takes a shared lock on the range of keys up to the batch's last key. This lock waits for uncommitted rows
//! of earlier transactions, and the read returns the current rows. The transaction then locks the rows'
//! entries, inserts the missing ones and commits.
//!
//! If an entry already exists and refers to the same row, a concurrent write has made it. If it refers to
//! another row, the key is a duplicate and the index is dropped. At the end, the range after the last batch
//! is processed in the same way. If the primary key has no order, the whole table is locked instead.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, PartitionScope, ReadRequest, RowBound, invariant, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
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

use super::alter::{AlterationState, continue_alteration, undo_alteration};
use super::completion::interrupted;
use super::context::StatementContext;
use super::read::broken_reply;
use super::resume::unexpected;
use super::schema::{ChangeWait, SchemaState, SchemaStep};
use super::session::{Session, TEXT};
use super::state::Execution;
use super::transaction::note_lost_transaction;
use super::write::{StatementOutcome, write_options};
use crate::result::Progress;

/// Maximum number of rows in a batch, all of one partition.
pub(super) const BATCH_ROWS: u32 = 256;
/// Maximum number of times that a batch starts again after a deadlock, a lock wait timeout or a race for an
/// entry. Then the backfill fails.
const ATTEMPTS_MAX: u32 = 16;

/// The result of the backfill.
#[derive(Debug)]
enum BackfillEnd {
    Complete,
    Failed(Box<Error>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackfillStep {
    Reading,
    LockingRows,
    LockingEntries,
    Inserting,
    Committing,
    RollingBack,
}

/// The progress of filling a unique index.
#[derive(Debug)]
pub(crate) struct IndexBackfill {
    altering: AlterationState,
    layout: Arc<TableLayout>,
    entries_layout: Arc<TableLayout>,
    key_columns: Vec<ColumnNumber>,
    index_name: Box<str>,
    lock_rows: Arc<WriteProgram>,
    lock_entries: Arc<WriteProgram>,
    insert: Arc<WriteProgram>,
    read_program: Arc<ReadProgram>,
    read: OperationId,
    next: Next,
    step: BackfillStep,
    /// Unprocessed replies of the read. The last one is the current batch.
    batches: Vec<Vec<u8>>,
    /// For each partition, the last key up to which all rows have entries; `None` before the first batch.
    covered: Vec<Option<Vec<u8>>>,
    /// Whether the backfill has reached the rows after the last batch of every partition.
    at_end: bool,
    entries: Vec<NewEntry>,
    attempts: u32,
    failure: Option<Box<Error>>,
    /// The operation of the last COMMIT or ROLLBACK.
    ending: OperationId,
    /// The operation of the last statement.
    statement: OperationId,
    /// Whether the alteration has been stopped.
    is_interrupted: bool,
}

#[derive(Debug)]
struct NewEntry {
    key: Vec<u8>,
    reference: Vec<u8>,
    shown: String,
    exists: bool,
}

/// Starts to fill an index by reading all rows.
pub(super) fn start_backfill(
    context: &mut StatementContext<'_, '_>,
    altering: AlterationState,
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
        return undo_alteration(context, altering, Error::table_definition_changed());
    };
    let in_order = layout.definition.primary().is_ordered();
    let base_access = match in_order {
        true => Access::IndexRanges { index: layout.definition.primary().id, descending: false },
        false => Access::AllRows,
    };
    let write = |table: &Arc<TableLayout>, action, access| Arc::new(WriteProgram::new(table, action, access));
    let lock =
        |mode| WriteAction::LockRead { mode, when_locked: WhenLocked::Wait, output: Output::Images, is_strict: false };
    let read = Arc::new(ReadProgram::new(&layout, base_access, Output::Images));
    let backfill = IndexBackfill {
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
        next: Next::MoreReplies,
        step: BackfillStep::Reading,
        batches: Vec::new(),
        entries: Vec::new(),
        attempts: 0,
        failure: None,
        ending: OperationId::default(),
        statement: OperationId::default(),
        is_interrupted: false,
    };
    start_read(context, backfill)
}

/// Reads the whole table.
fn start_read(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill) -> Progress {
    let layout = Arc::clone(&backfill.layout);
    let read = Arc::clone(&backfill.read_program);
    let in_order = layout.definition.primary().is_ordered();
    if !in_order {
        backfill.next = Next::Done;
        return next_batch(context, backfill);
    }
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(layout.definition.partition_count, context.turn.buffers);
    inputs.push_range(PartitionScope::All, KeyRange { lower: None, upper: None }, &[], context.turn.buffers);
    let transaction = &mut context.session.transaction;
    transaction.explicit = false;
    // Concurrent inserts make their entries themselves, so no key range has to be locked.
    transaction.isolation = Isolation::ReadCommitted;
    let options = ReadOptions { protocol: TEXT, bound: RowBound::Reply(BATCH_ROWS), warnings_max: 0 };
    let request = ReadRequest { program: &read, options, inputs };
    match context.engine.gateway.read(context.session.connection, transaction, request, context.turn) {
        Ok(operation) => {
            backfill.read = operation;
            backfill.step = BackfillStep::Reading;
            wait(context.session, backfill)
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            end(context, backfill, BackfillEnd::Failed(error))
        }
    }
}

/// Suspends the session until the current step is complete.
fn wait(session: &mut Session, backfill: IndexBackfill) -> Progress {
    let operation = backfill.read;
    let step = SchemaStep::Filling(Box::new(backfill));
    session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits: ChangeWait::Over }));
    Progress::Waiting
}

/// Continues a backfill with a reply to one of its steps.
pub(super) fn resume_backfill(
    context: &mut StatementContext<'_, '_>,
    backfill: IndexBackfill,
    event: Event,
) -> Progress {
    match event {
        Event::Rows { output, next, .. } => on_rows(context, backfill, output, next),
        Event::ReadFailed { error, .. } => end(context, backfill, BackfillEnd::Failed(error)),
        Event::Statement { matched, changed, diagnostics, outputs, error, .. } => {
            let outcome = StatementOutcome { matched, changed, diagnostics, outputs, error };
            on_statement(context, backfill, outcome)
        }
        Event::Ended { error, .. } => on_ended(context, backfill, error),
        other => unexpected("the backfill of an index", &other),
    }
}

/// Receives rows of the table.
fn on_rows(
    context: &mut StatementContext<'_, '_>,
    mut backfill: IndexBackfill,
    output: Vec<u8>,
    next: Next,
) -> Progress {
    require!(backfill.step == BackfillStep::Reading, "rows of the table arrive only while no batch is processed");
    if output.is_empty() {
        context.turn.buffers.give(output);
    } else {
        backfill.batches.push(output);
    }
    backfill.next = next;
    if next == Next::MoreReplies { wait(context.session, backfill) } else { next_batch(context, backfill) }
}

/// Locks the rows of the next batch, requests more rows, or ends the backfill.
fn next_batch(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill) -> Progress {
    if backfill.is_interrupted {
        return end(context, backfill, BackfillEnd::Failed(interrupted()));
    }
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(backfill.layout.definition.partition_count, context.turn.buffers);
    if let Some(batch) = backfill.batches.last() {
        let (partition, last) = match backfill.last_key(batch) {
            Ok(last) => last,
            Err(error) => return end(context, backfill, BackfillEnd::Failed(error)),
        };
        let range = KeyRange { lower: backfill.covered_key(partition), upper: Some((&last, true)) };
        inputs.push_range(PartitionScope::One(partition), range, &[], context.turn.buffers);
    } else if backfill.next == Next::MoreRows {
        backfill.step = BackfillStep::Reading;
        context.engine.gateway.continue_read(backfill.read, context.turn);
        return wait(context.session, backfill);
    } else if backfill.at_end && backfill.attempts == 0 {
        return end(context, backfill, BackfillEnd::Complete);
    } else {
        backfill.at_end = true;
        for partition in 0..backfill.layout.definition.partition_count {
            if backfill.layout.definition.primary().is_ordered() {
                let range = KeyRange { lower: backfill.covered_key(partition), upper: None };
                inputs.push_range(PartitionScope::One(partition), range, &[], context.turn.buffers);
            } else {
                inputs.push_all(PartitionScope::One(partition), &[], context.turn.buffers);
            }
        }
    }
    backfill.step = BackfillStep::LockingRows;
    context.session.transaction.explicit = true;
    let sent = send(context, &backfill.lock_rows).map(|operation| backfill.statement = operation);
    continue_batch(context, backfill, sent)
}

/// Waits for a step that was sent, or rolls back if it could not be sent.
fn continue_batch(context: &mut StatementContext<'_, '_>, backfill: IndexBackfill, sent: Result<()>) -> Progress {
    match sent {
        Ok(()) => wait(context.session, backfill),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            roll_back(context, backfill, Some(error))
        }
    }
}

/// Continues after a locking read or an insert of entries.
fn on_statement(
    context: &mut StatementContext<'_, '_>,
    mut backfill: IndexBackfill,
    outcome: StatementOutcome,
) -> Progress {
    if let Some(error) = outcome.error {
        note_lost_transaction(&mut context.engine.gateway, context.session);
        return after_error(context, backfill, error);
    }
    let images = outcome.outputs;
    let sent = match backfill.step {
        BackfillStep::LockingRows => backfill.take_rows(&images).and_then(|()| lock_entries(context, &mut backfill)),
        BackfillStep::LockingEntries => backfill.take_existing(&images).and_then(|()| insert(context, &mut backfill)),
        BackfillStep::Inserting => Ok(false),
        step => invariant::fail("a statement of a backfill belongs to a step", format_args!("it is {step:?}")),
    };
    for image in images {
        context.turn.buffers.give(image);
    }
    match sent {
        Ok(true) => wait(context.session, backfill),
        Ok(false) => commit(context, backfill),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            roll_back(context, backfill, Some(error))
        }
    }
}

/// Starts the batch again after a deadlock or a lock wait timeout, reads the entries again after a duplicate,
/// and fails after any other error.
fn after_error(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill, error: Box<Error>) -> Progress {
    backfill.attempts += 1;
    let may_repeat = matches!(error.code, ErrorCode::Deadlock | ErrorCode::LockWaitTimeout | ErrorCode::DuplicateEntry);
    if backfill.attempts > ATTEMPTS_MAX || !may_repeat {
        return roll_back(context, backfill, Some(error));
    }
    if error.code == ErrorCode::DuplicateEntry {
        return match lock_entries(context, &mut backfill) {
            Ok(_) => wait(context.session, backfill),
            Err(error) => roll_back(context, backfill, Some(error)),
        };
    }
    roll_back(context, backfill, None)
}

/// Locks the existing entries of the batch. Returns false if the batch needs no entries.
fn lock_entries(context: &mut StatementContext<'_, '_>, backfill: &mut IndexBackfill) -> Result<bool> {
    if backfill.entries.is_empty() {
        return Ok(false);
    }
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(backfill.entries_layout.definition.partition_count, context.turn.buffers);
    let mut key = Vec::new();
    for entry in &backfill.entries {
        key.clear();
        append_escaped(&entry.key, &mut key);
        inputs.push_key(&key, &[], context.turn.buffers);
    }
    backfill.step = BackfillStep::LockingEntries;
    backfill.statement = send(context, &backfill.lock_entries)?;
    Ok(true)
}

/// Inserts the missing entries of the batch. Returns false if none is missing.
fn insert(context: &mut StatementContext<'_, '_>, backfill: &mut IndexBackfill) -> Result<bool> {
    let layout = &backfill.entries_layout;
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(layout.definition.partition_count, context.turn.buffers);
    let (mut key, mut image) = (Vec::new(), Vec::new());
    for entry in backfill.entries.iter().filter(|entry| !entry.exists) {
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
    backfill.step = BackfillStep::Inserting;
    backfill.statement = send(context, &backfill.insert)?;
    Ok(true)
}

/// Sends a statement whose inputs are in the workspace.
fn send(context: &mut StatementContext<'_, '_>, program: &Arc<WriteProgram>) -> Result<OperationId> {
    let options = write_options(context, TEXT);
    context.send_write(program, options)
}

fn commit(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill) -> Progress {
    backfill.step = BackfillStep::Committing;
    match context.end_transaction(Ending::Commit) {
        Ok(Some(operation)) => {
            backfill.ending = operation;
            wait(context.session, backfill)
        }
        Ok(None) => batch_done(context, backfill),
        Err(error) => roll_back(context, backfill, Some(error)),
    }
}

/// Rolls back the batch. With an error the backfill then fails, otherwise the batch starts again.
fn roll_back(
    context: &mut StatementContext<'_, '_>,
    mut backfill: IndexBackfill,
    error: Option<Box<Error>>,
) -> Progress {
    backfill.failure = error;
    backfill.step = BackfillStep::RollingBack;
    match context.end_transaction(Ending::Rollback) {
        Ok(Some(operation)) => {
            backfill.ending = operation;
            wait(context.session, backfill)
        }
        Ok(None) => rolled_back(context, backfill),
        Err(error) => end(context, backfill, BackfillEnd::Failed(error)),
    }
}

fn rolled_back(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill) -> Progress {
    match backfill.failure.take() {
        Some(error) => end(context, backfill, BackfillEnd::Failed(error)),
        None => next_batch(context, backfill),
    }
}

fn batch_done(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill) -> Progress {
    if let Some(batch) = backfill.batches.pop() {
        if let Ok((partition, last)) = backfill.last_key(&batch) {
            backfill.covered[usize::from(partition)] = Some(last);
        }
        context.turn.buffers.give(batch);
    }
    backfill.entries.clear();
    backfill.attempts = 0;
    next_batch(context, backfill)
}

/// Continues after the end of a batch's transaction.
fn on_ended(
    context: &mut StatementContext<'_, '_>,
    mut backfill: IndexBackfill,
    error: Option<Box<Error>>,
) -> Progress {
    context.session.transaction_ended();
    match (backfill.step, error) {
        (BackfillStep::RollingBack, _) => rolled_back(context, backfill),
        (_, None) => batch_done(context, backfill),
        (_, Some(error)) => {
            backfill.failure = Some(error);
            rolled_back(context, backfill)
        }
    }
}

fn end(context: &mut StatementContext<'_, '_>, mut backfill: IndexBackfill, end: BackfillEnd) -> Progress {
    if backfill.next != Next::Done && backfill.read != OperationId::default() {
        context.engine.gateway.end_read(backfill.read, context.turn);
    }
    for batch in backfill.batches.drain(..) {
        context.turn.buffers.give(batch);
    }
    context.session.transaction_ended();
    match end {
        BackfillEnd::Complete => continue_alteration(context, backfill.altering),
        BackfillEnd::Failed(error) => undo_alteration(context, backfill.altering, error),
    }
}

impl IndexBackfill {
    /// Whether the current step waits for a reply of this operation.
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        [self.read, self.statement, self.ending].contains(&operation)
    }

    /// Makes the backfill fail at its next step. Returns the operation that may be waiting for a lock.
    pub(super) fn interrupt(&mut self) -> OperationId {
        self.is_interrupted = true;
        self.statement
    }

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

    /// The exclusive lower bound of a partition's remaining rows.
    fn covered_key(&self, partition: u16) -> Option<(&[u8], bool)> {
        self.covered[usize::from(partition)].as_deref().map(|key| (key, false))
    }

    /// Prepares the entries of the locked rows. Error: 1062 if two rows have the same key.
    fn take_rows(&mut self, images: &[Vec<u8>]) -> Result<()> {
        self.entries.clear();
        let definition = &self.layout.definition;
        for output in images {
            for_each_image(output, &mut |image| {
                let row = RowView::new(&self.layout.row_format, image);
                let mut key = Vec::new();
                if append_row_key(&definition.columns, &self.key_columns, row, &mut key) {
                    // NULL equals nothing, so a key with NULL has no entry.
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

    /// Marks the entries that exist. Error: 1062 if one belongs to another row.
    fn take_existing(&mut self, images: &[Vec<u8>]) -> Result<()> {
        let mut taken = None;
        for output in images {
            for_each_image(output, &mut |image| {
                let row = RowView::new(&self.entries_layout.row_format, image);
                let (ValueRef::Bytes(key), ValueRef::Bytes(reference)) =
                    (row.column(ColumnNumber(0)), row.column(ColumnNumber(1)))
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

/// The key as shown in the text of error 1062.
fn shown_key(columns: &[ColumnNumber], row: RowView<'_>) -> String {
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
