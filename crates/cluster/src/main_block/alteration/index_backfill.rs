//! Fills a new unique index while other sessions write to its table.
//!
//! As soon as the index exists in state Building, every write maintains its entries, so only the entries of
//! older rows are missing. The backfill first waits for the transactions whose uncommitted rows are older.
//! Then it reads the committed rows in batches. For each batch, a transaction locks the rows by primary key
//! and gets their current versions. It locks the rows' entries, inserts the missing ones and commits. A row
//! that is gone or has another key meanwhile needs nothing, because its writer has maintained the entries. No
//! turn of main works on more rows than a batch has, because the log needs the same thread.
//!
//! If an entry already exists and refers to the same row, a concurrent write has made it. If it refers to
//! another row, the key is a duplicate and the index is dropped.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, Gateway, PartitionScope, Transaction, TurnContext};
use junctor_kernel::{invariant, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key::{append_escaped, append_row_key};
use junctor_model::key_list::for_each_entry;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::schema::{Dictionary, IndexKind, TableDefinition, TableLayout};
use junctor_model::value::ValueRef;
use junctor_signals::crash_point;
use junctor_signals::end_transaction::Ending;
use junctor_signals::input::{HashedKey, KeyedImage};
use junctor_signals::program::{Access, LockMode, Output, ReadProgram, WhenLocked, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;

use super::rows::{for_each_image, shown_key};
use super::{WorkContext, WorkResult};

/// Maximum number of times that a batch starts again after a deadlock, a lock wait timeout or a race for an
/// entry. Then the backfill fails.
const ATTEMPTS_MAX: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackfillStep {
    AwaitingWriters,
    Reading,
    LockingRows,
    LockingEntries,
    Inserting,
    Committing,
    RollingBack,
}

/// The progress of filling a unique index.
#[derive(Debug)]
pub(super) struct IndexBackfill {
    transaction: Transaction,
    index: IndexId,
    layout: Arc<TableLayout>,
    entries_layout: Arc<TableLayout>,
    key_columns: Vec<ColumnNumber>,
    index_name: Box<str>,
    await_writers: Arc<WriteProgram>,
    lock_rows: Arc<WriteProgram>,
    lock_entries: Arc<WriteProgram>,
    insert: Arc<WriteProgram>,
    /// The read of the table; `None` before the earlier writers have ended.
    read: Option<OperationId>,
    next: Next,
    step: BackfillStep,
    /// Unprocessed replies of the read. The last one is the current batch.
    batches: Vec<Vec<u8>>,
    entries: Vec<NewEntry>,
    attempts: u32,
    failure: Option<Box<Error>>,
    /// The operation of the last statement.
    statement: Option<OperationId>,
    is_interrupted: bool,
}

#[derive(Debug)]
struct NewEntry {
    key: Vec<u8>,
    reference: Vec<u8>,
    shown: String,
    exists: bool,
}

impl IndexBackfill {
    /// Prepares to fill an index of the table. Error: 1412 if the table has no such unique index.
    pub fn new(dictionary: &Dictionary, layout: Arc<TableLayout>, index: IndexId) -> Result<IndexBackfill> {
        let definition = layout.definition.index(index);
        let entries = definition.and_then(|definition| match definition.kind {
            IndexKind::Unique { entries, .. } => dictionary.table(entries).cloned(),
            _ => None,
        });
        let (Some(definition), Some(entries_layout)) = (definition, entries) else {
            return Err(Error::table_definition_changed());
        };
        let write = |table: &Arc<TableLayout>, action, access| Arc::new(WriteProgram::new(table, action, access));
        let lock =
            |mode, when_locked| WriteAction::LockRead { mode, when_locked, output: Output::Images, is_strict: false };
        let await_writers = lock(LockMode::Shared, WhenLocked::AwaitWriter);
        let lock_rows = lock(LockMode::Shared, WhenLocked::Wait);
        let lock_entries = lock(LockMode::Exclusive, WhenLocked::Wait);
        // Concurrent inserts make their entries themselves, so no key range has to be locked.
        let mut transaction = Transaction::default();
        transaction.isolation = Isolation::ReadCommitted;
        Ok(IndexBackfill {
            transaction,
            index,
            key_columns: definition.columns.clone(),
            index_name: definition.name.clone(),
            await_writers: write(&layout, await_writers, Access::AllRows),
            lock_rows: write(&layout, lock_rows, Access::PrimaryKeys),
            lock_entries: write(&entries_layout, lock_entries, Access::PrimaryKeys),
            insert: write(&entries_layout, WriteAction::Insert, Access::PrimaryKeys),
            layout,
            entries_layout,
            read: None,
            next: Next::Done,
            step: BackfillStep::AwaitingWriters,
            batches: Vec::new(),
            entries: Vec::new(),
            attempts: 0,
            failure: None,
            statement: None,
            is_interrupted: false,
        })
    }

    /// The index that is filled.
    pub fn index(&self) -> IndexId {
        self.index
    }

    /// The transaction of the current batch.
    pub fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Makes the backfill fail at its next step.
    pub fn interrupt(&mut self, gateway: &mut Gateway, turn: &mut TurnContext<'_>) {
        self.is_interrupted = true;
        if let Some(operation) = self.statement {
            // It may be waiting for a lock.
            gateway.interrupt_statement(operation, turn);
        }
    }

    /// Waits for the transactions that have written rows without entries.
    pub fn start(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        self.step = BackfillStep::AwaitingWriters;
        self.begin_all_partitions(work);
        let program = Arc::clone(&self.await_writers);
        match self.send(work, &program) {
            Ok(()) => None,
            Err(error) => self.end(work, Err(error)),
        }
    }

    /// Reads the whole table.
    fn read(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        self.step = BackfillStep::Reading;
        self.attempts = 0;
        self.begin_all_partitions(work);
        let program = Arc::new(ReadProgram::new(&self.layout, Access::AllRows, Output::Images));
        match work.read(&program, &mut self.transaction) {
            Ok(operation) => {
                self.read = Some(operation);
                self.next = Next::MoreReplies;
                None
            }
            Err(error) => self.end(work, Err(error)),
        }
    }

    fn begin_all_partitions(&self, work: &mut WorkContext<'_, '_>) {
        work.inputs.begin(self.layout.definition.partition_count, work.turn.buffers);
        work.inputs.push_all(PartitionScope::All, &[], work.turn.buffers);
    }

    /// Continues with a reply to one of the steps.
    pub fn resume(&mut self, work: &mut WorkContext<'_, '_>, event: Event) -> WorkResult {
        match event {
            Event::Rows { output, next, .. } => self.on_rows(work, output, next),
            Event::ReadFailed { error, .. } => {
                self.next = Next::Done;
                self.end(work, Err(error))
            }
            Event::Statement { outputs, error, .. } => self.on_statement(work, outputs, error),
            Event::Ended { error, .. } => self.on_ended(work, error),
            other => invariant::fail("a backfill gets replies to its own steps", format_args!("{other:?}")),
        }
    }

    /// Receives rows of the table.
    fn on_rows(&mut self, work: &mut WorkContext<'_, '_>, output: Vec<u8>, next: Next) -> WorkResult {
        require!(self.step == BackfillStep::Reading, "rows of the table arrive only while no batch is processed");
        if output.is_empty() {
            work.turn.buffers.give(output);
        } else {
            self.batches.push(output);
        }
        self.next = next;
        if next == Next::MoreReplies { None } else { self.next_batch(work) }
    }

    /// Starts the read, locks the rows of the next batch, requests more rows, or ends the backfill.
    fn next_batch(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        if self.is_interrupted {
            return self.end(work, Err(Error::query_interrupted()));
        }
        let Some(read) = self.read else { return self.start(work) };
        let Some(batch) = self.batches.last() else {
            if self.next != Next::MoreRows {
                return self.end(work, Ok(()));
            }
            self.step = BackfillStep::Reading;
            work.gateway.continue_read(read, &Transaction::default(), work.turn);
            return None;
        };
        if let Err(error) = self.push_keys(batch, work) {
            return self.end(work, Err(error));
        }
        self.step = BackfillStep::LockingRows;
        self.transaction.explicit = true;
        let program = Arc::clone(&self.lock_rows);
        match self.send(work, &program) {
            Ok(()) => None,
            Err(error) => self.roll_back(work, Some(error)),
        }
    }

    /// Pushes the primary keys of a batch to the inputs.
    fn push_keys(&self, batch: &[u8], work: &mut WorkContext<'_, '_>) -> Result<()> {
        let definition = &self.layout.definition;
        work.inputs.begin(definition.partition_count, work.turn.buffers);
        for_each_image(batch, &mut |image| {
            let row = RowView::new(&self.layout.row_format, image);
            let mut key = Vec::new();
            append_row_key(&definition.columns, &definition.primary().columns, row, &mut key);
            work.inputs.push_key_at(partition_of_row(definition, row), &key, &[], work.turn.buffers);
        })
    }

    /// Continues after a locking read or an insert of entries.
    fn on_statement(
        &mut self,
        work: &mut WorkContext<'_, '_>,
        images: Vec<Vec<u8>>,
        error: Option<Box<Error>>,
    ) -> WorkResult {
        self.statement = None;
        if let Some(error) = error {
            if work.gateway.take_ended(&mut self.transaction) {
                work.gateway.forget(&mut self.transaction);
            }
            return self.after_error(work, error);
        }
        let sent = match self.step {
            BackfillStep::AwaitingWriters if self.is_interrupted => return self.next_batch(work),
            BackfillStep::AwaitingWriters => return self.read(work),
            BackfillStep::LockingRows => self.take_rows(&images).and_then(|()| self.lock_entries(work)),
            BackfillStep::LockingEntries => self.take_existing(&images).and_then(|()| self.insert(work)),
            BackfillStep::Inserting => Ok(false),
            step => invariant::fail("a statement of a backfill belongs to a step", format_args!("it is {step:?}")),
        };
        for image in images {
            work.turn.buffers.give(image);
        }
        match sent {
            Ok(true) => None,
            Ok(false) => self.commit(work),
            Err(error) => self.roll_back(work, Some(error)),
        }
    }

    /// Starts the batch again after a deadlock or a lock wait timeout, reads the entries again after a
    /// duplicate, and fails after any other error.
    fn after_error(&mut self, work: &mut WorkContext<'_, '_>, error: Box<Error>) -> WorkResult {
        self.attempts += 1;
        let may_repeat =
            matches!(error.code, ErrorCode::Deadlock | ErrorCode::LockWaitTimeout | ErrorCode::DuplicateEntry);
        if self.attempts > ATTEMPTS_MAX || !may_repeat {
            return self.roll_back(work, Some(error));
        }
        if error.code == ErrorCode::DuplicateEntry {
            return match self.lock_entries(work) {
                Ok(_) => None,
                Err(error) => self.roll_back(work, Some(error)),
            };
        }
        self.roll_back(work, None)
    }

    /// Locks the existing entries of the batch. Returns false if the batch needs no entries.
    fn lock_entries(&mut self, work: &mut WorkContext<'_, '_>) -> Result<bool> {
        if self.entries.is_empty() {
            return Ok(false);
        }
        work.inputs.begin(self.entries_layout.definition.partition_count, work.turn.buffers);
        let mut key = Vec::new();
        for entry in &self.entries {
            key.clear();
            append_escaped(&entry.key, &mut key);
            work.inputs.push_key(&key, &[], work.turn.buffers);
        }
        self.step = BackfillStep::LockingEntries;
        let program = Arc::clone(&self.lock_entries);
        self.send(work, &program)?;
        Ok(true)
    }

    /// Inserts the missing entries of the batch. Returns false if none is missing.
    fn insert(&mut self, work: &mut WorkContext<'_, '_>) -> Result<bool> {
        let layout = &self.entries_layout;
        work.inputs.begin(layout.definition.partition_count, work.turn.buffers);
        let (mut key, mut image) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().filter(|entry| !entry.exists) {
            key.clear();
            append_escaped(&entry.key, &mut key);
            image.clear();
            layout.row_format.encode(&[ValueRef::Bytes(&entry.key), ValueRef::Bytes(&entry.reference)], &mut image)?;
            let hash = key_hash(&key);
            let partition = partition_of(hash, layout.definition.partition_count);
            let row = KeyedImage { key: HashedKey { hash, key: &key }, image: &image };
            work.inputs.push_image(partition, row, &[], work.turn.buffers);
        }
        if work.inputs.is_empty() {
            return Ok(false);
        }
        self.step = BackfillStep::Inserting;
        let program = Arc::clone(&self.insert);
        self.send(work, &program)?;
        Ok(true)
    }

    /// Sends a statement whose inputs are in the work context.
    fn send(&mut self, work: &mut WorkContext<'_, '_>, program: &Arc<WriteProgram>) -> Result<()> {
        self.statement = Some(work.execute(program, &mut self.transaction)?);
        Ok(())
    }

    fn commit(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        self.step = BackfillStep::Committing;
        work.turn.outbox.crash_point(crash_point::JOB_BATCH.before());
        match self.end_transaction(work, Ending::Commit) {
            Ok(true) => None,
            Ok(false) => self.batch_done(work),
            Err(error) => self.roll_back(work, Some(error)),
        }
    }

    /// Rolls back the batch. With an error the backfill then fails, otherwise the batch starts again.
    fn roll_back(&mut self, work: &mut WorkContext<'_, '_>, error: Option<Box<Error>>) -> WorkResult {
        self.failure = error;
        self.step = BackfillStep::RollingBack;
        match self.end_transaction(work, Ending::Rollback) {
            Ok(true) => None,
            Ok(false) => self.rolled_back(work),
            Err(error) => {
                // No event follows.
                work.gateway.abandon(&mut self.transaction, work.turn);
                self.end(work, Err(error))
            }
        }
    }

    /// Requests the end of the batch's transaction. Returns false if the transaction has not begun.
    fn end_transaction(&mut self, work: &mut WorkContext<'_, '_>, ending: Ending) -> Result<bool> {
        work.end_transaction(&mut self.transaction, ending)
    }

    fn rolled_back(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        match self.failure.take() {
            Some(error) => self.end(work, Err(error)),
            None => self.next_batch(work),
        }
    }

    fn batch_done(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        work.turn.outbox.crash_point(crash_point::JOB_BATCH.after());
        if let Some(batch) = self.batches.pop() {
            work.turn.buffers.give(batch);
        }
        self.entries.clear();
        self.attempts = 0;
        self.next_batch(work)
    }

    /// Continues after the end of a batch's transaction.
    fn on_ended(&mut self, work: &mut WorkContext<'_, '_>, error: Option<Box<Error>>) -> WorkResult {
        match (self.step, error) {
            (BackfillStep::RollingBack, _) => self.rolled_back(work),
            (_, None) => self.batch_done(work),
            // A change of the membership has rolled the batch back.
            (_, Some(error)) if error.code == ErrorCode::Deadlock && self.attempts < ATTEMPTS_MAX => {
                self.attempts += 1;
                self.next_batch(work)
            }
            (_, Some(error)) => self.end(work, Err(error)),
        }
    }

    fn end(&mut self, work: &mut WorkContext<'_, '_>, result: Result<()>) -> WorkResult {
        if let Some(read) = self.read.filter(|_| self.next != Next::Done) {
            work.gateway.end_read(read, work.turn);
        }
        for batch in self.batches.drain(..) {
            work.turn.buffers.give(batch);
        }
        work.gateway.forget(&mut self.transaction);
        Some(result)
    }

    /// Prepares the entries of the locked rows. Error: 1062 if two rows have the same key.
    fn take_rows(&mut self, images: &[Vec<u8>]) -> Result<()> {
        self.entries.clear();
        let definition = &self.layout.definition;
        for output in images {
            for_each_image(output, &mut |image| {
                let row = RowView::new(&self.layout.row_format, image);
                let mut reference = partition_of_row(definition, row).to_be_bytes().to_vec();
                append_row_key(&definition.columns, &definition.primary().columns, row, &mut reference);
                // NULL equals nothing, so a key with NULL has no entry.
                for_each_entry(&definition.columns, &self.key_columns, row, |key, element| {
                    let shown = match element {
                        Some(element) => String::from_utf8_lossy(element).into_owned(),
                        None => shown_key(&self.key_columns, row),
                    };
                    let reference = reference.clone();
                    self.entries.push(NewEntry { key, reference, shown, exists: false });
                });
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

fn partition_of_row(definition: &TableDefinition, row: RowView<'_>) -> u16 {
    let mut key = Vec::new();
    append_row_key(&definition.columns, &definition.partition_columns, row, &mut key);
    partition_of(key_hash(&key), definition.partition_count)
}
