//! Copies the rows of a table to a table of a new form, while writes to the old table are blocked.
//!
//! The copy reads the committed rows in batches. Each batch becomes one transaction that inserts the rows
//! into the new table and the entries of its unique indexes. No turn of main works on more rows than a batch
//! has, because the log needs the same thread.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, Gateway, PartitionScope, Transaction, TurnContext};
use junctor_kernel::{invariant, require};
use junctor_model::alteration::ColumnSource;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key::append_row_key;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, Dictionary, IndexKind, TableLayout};
use junctor_model::scratch::Scratch;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::ValueRef;
use junctor_signals::end_transaction::Ending;
use junctor_signals::input::{HashedKey, KeyedImage};
use junctor_signals::program::{Access, Output, ReadProgram, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;

use super::rows::for_each_image;
use super::{WorkContext, WorkResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyStep {
    Reading,
    Inserting,
    Committing,
    RollingBack,
}

/// The progress of copying rows.
#[derive(Debug)]
pub(super) struct RowCopy {
    transaction: Transaction,
    old: Arc<TableLayout>,
    new: Arc<TableLayout>,
    columns: Vec<NewColumn>,
    /// The new table's AUTO_INCREMENT column, also a hidden one.
    automatic: Option<ColumnNumber>,
    insert: Arc<WriteProgram>,
    read: OperationId,
    next: Next,
    step: CopyStep,
    /// Unprocessed replies of the read. The last one is the current batch.
    batches: Vec<Vec<u8>>,
    rows: u64,
    next_number: u64,
    failure: Option<Box<Error>>,
    /// The operation of the last statement.
    statement: Option<OperationId>,
    is_interrupted: bool,
}

/// The source of a column of the new table.
#[derive(Debug)]
struct NewColumn {
    source: ColumnSource,
    /// Whether a value of the old column is a value of the new one without a conversion.
    is_same: bool,
}

impl RowCopy {
    /// Starts to copy the rows of a table to the table of the new form.
    pub fn start(
        dictionary: &Dictionary,
        (old, new): (Arc<TableLayout>, &Arc<TableLayout>),
        sources: &[ColumnSource],
        work: &mut WorkContext<'_, '_>,
    ) -> Result<RowCopy> {
        let columns = sources.iter().zip(&new.definition.columns).map(|(source, column)| NewColumn {
            source: source.clone(),
            is_same: match source {
                ColumnSource::Column(from) => is_same(&old.definition.columns[usize::from(from.0)], column),
                ColumnSource::Value(_) | ColumnSource::Numbers => true,
            },
        });
        let insert = WriteProgram {
            unique_entries: entries_layouts(dictionary, new)?,
            ..WriteProgram::new(new, WriteAction::Insert, Access::PrimaryKeys)
        };
        // No other session writes to the new table, so no key range has to be locked.
        let mut transaction = Transaction::default();
        transaction.isolation = Isolation::ReadCommitted;
        work.inputs.begin(old.definition.partition_count, work.turn.buffers);
        work.inputs.push_all(PartitionScope::All, &[], work.turn.buffers);
        let program = Arc::new(ReadProgram::new(&old, Access::AllRows, Output::Images));
        let read = work.read(&program, &mut transaction)?;
        Ok(RowCopy {
            transaction,
            columns: columns.collect(),
            automatic: new.definition.auto_increment_column(),
            old,
            new: Arc::clone(new),
            insert: Arc::new(insert),
            read,
            next: Next::MoreReplies,
            step: CopyStep::Reading,
            batches: Vec::new(),
            rows: 0,
            next_number: 1,
            failure: None,
            statement: None,
            is_interrupted: false,
        })
    }

    /// Number of rows copied.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number after the greatest number in the AUTO_INCREMENT column.
    pub fn next_number(&self) -> u64 {
        self.next_number
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

    /// Continues with a reply to one of the steps.
    pub fn resume(&mut self, work: &mut WorkContext<'_, '_>, event: Event) -> WorkResult {
        match event {
            Event::Rows { output, next, .. } => self.on_rows(work, output, next),
            Event::ReadFailed { error, .. } => {
                self.next = Next::Done;
                self.end(work, Err(error))
            }
            Event::Statement { outputs, error, .. } => {
                outputs.into_iter().for_each(|output| work.turn.buffers.give(output));
                self.on_statement(work, error)
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

    /// Inserts the rows of the next batch, requests more rows, or ends the copy.
    fn next_batch(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        if self.is_interrupted {
            return self.end(work, Err(Error::query_interrupted()));
        }
        let Some(batch) = self.batches.pop() else {
            if self.next != Next::MoreRows {
                return self.end(work, Ok(()));
            }
            self.step = CopyStep::Reading;
            self.next = Next::MoreReplies;
            work.gateway.continue_read(self.read, work.turn);
            return None;
        };
        let pushed = self.push_rows(&batch, work);
        work.turn.buffers.give(batch);
        if let Err(error) = pushed {
            work.inputs.clear(work.turn.buffers);
            return self.end(work, Err(error));
        }
        self.step = CopyStep::Inserting;
        self.transaction.explicit = true;
        match work.execute(&self.insert, &mut self.transaction) {
            Ok(operation) => {
                self.statement = Some(operation);
                None
            }
            Err(error) => self.roll_back(work, error),
        }
    }

    /// Pushes the new images of a batch to the inputs.
    fn push_rows(&mut self, batch: &[u8], work: &mut WorkContext<'_, '_>) -> Result<()> {
        let new = Arc::clone(&self.new);
        let definition = &new.definition;
        work.inputs.begin(definition.partition_count, work.turn.buffers);
        let mut scratch = Scratch::new();
        scratch.set_strict(true);
        let (mut key, mut partition_key, mut image) = (Vec::new(), Vec::new(), Vec::new());
        let mut failure = None;
        for_each_image(batch, &mut |old_image| {
            if failure.is_some() {
                return;
            }
            self.rows += 1;
            image.clear();
            if let Err(error) = self.encode(old_image, &scratch, &mut image) {
                failure = Some(error);
                return;
            }
            scratch.reset();
            let row = RowView::new(&new.row_format, &image);
            key.clear();
            partition_key.clear();
            append_row_key(&definition.columns, &definition.primary().columns, row, &mut key);
            append_row_key(&definition.columns, &definition.partition_columns, row, &mut partition_key);
            let partition = partition_of(key_hash(&partition_key), definition.partition_count);
            let row = KeyedImage { key: HashedKey { hash: key_hash(&key), key: &key }, image: &image };
            work.inputs.push_image(partition, row, &[], work.turn.buffers);
        })?;
        failure.map_or(Ok(()), Err)
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
                ColumnSource::Numbers => ValueRef::Null,
            };
            if is_automatic && matches!(value, ValueRef::Null | ValueRef::Int(0) | ValueRef::UInt(0)) {
                value = ValueRef::UInt(self.next_number);
            } else if column.is_same {
                if value.is_null() && !definition.nullable {
                    return Err(Error::new(ErrorCode::InvalidUseOfNull, "Invalid use of NULL value"));
                }
                values.push(value);
                if is_automatic {
                    self.next_number = self.next_number.max(number_after(value));
                }
                continue;
            }
            if value.is_null() && !definition.nullable {
                return Err(Error::new(ErrorCode::InvalidUseOfNull, "Invalid use of NULL value"));
            }
            let target = StoreTarget { column: definition, row_number: self.rows, mode: StoreMode::Strict };
            let stored = target.convert(value, scratch)?;
            if is_automatic {
                self.next_number = self.next_number.max(number_after(stored));
            }
            values.push(stored);
        }
        self.new.row_format.encode(&values, image)
    }

    /// Continues after an insert.
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
            Ok(false) => self.next_batch(work),
            Err(error) => self.roll_back(work, error),
        }
    }

    /// Rolls back the batch; the copy then fails.
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
        self.end(work, Err(error))
    }

    /// Continues after the end of a batch's transaction.
    fn on_ended(&mut self, work: &mut WorkContext<'_, '_>, error: Option<Box<Error>>) -> WorkResult {
        match (self.step, error) {
            (CopyStep::RollingBack, _) => self.rolled_back(work),
            (_, None) => self.next_batch(work),
            (_, Some(error)) => self.end(work, Err(error)),
        }
    }

    fn end(&mut self, work: &mut WorkContext<'_, '_>, result: Result<()>) -> WorkResult {
        if self.next != Next::Done {
            work.gateway.end_read(self.read, work.turn);
        }
        for batch in self.batches.drain(..) {
            work.turn.buffers.give(batch);
        }
        work.gateway.forget(&mut self.transaction);
        Some(result)
    }
}

/// Whether each value of the old column that is not NULL is a value of the new column.
fn is_same(old: &ColumnDefinition, new: &ColumnDefinition) -> bool {
    old.column_type == new.column_type
}

/// The number after an AUTO_INCREMENT number; 1 for a negative one.
fn number_after(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Int(value) => u64::try_from(value).map_or(1, |value| value + 1),
        ValueRef::UInt(value) => value.saturating_add(1),
        _ => 1,
    }
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
