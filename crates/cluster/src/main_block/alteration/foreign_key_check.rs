//! Checks in batches that the rows of a table have parents for a new foreign key. During the check, writes to
//! the table and to the parent are blocked.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, PartitionScope, Transaction};
use junctor_kernel::invariant;
use junctor_model::error::{Error, Result};
use junctor_model::foreign_key::{ForeignKey, ParentKey, ParentLookup, ParentTable, key_of_parent, no_parent};
use junctor_model::id::ColumnNumber;
use junctor_model::key::{append_escaped, append_row_key, complement_descending};
use junctor_model::row::RowView;
use junctor_model::schema::{Dictionary, TableLayout};
use junctor_model::value::ValueRef;
use junctor_signals::input::KeyRange;
use junctor_signals::program::{Access, Output, ReadProgram};
use junctor_signals::read_rows::OperationId;

use super::rows::for_each_image;
use super::{WorkContext, WorkResult};

/// The progress of checking one foreign key.
#[derive(Debug)]
pub(super) struct ForeignKeyCheck {
    child: Arc<TableLayout>,
    key: ParentKey,
    parent: ParentTable,
    rows: u64,
    read: OperationId,
    next: Next,
    /// Unprocessed replies of the read.
    batches: Vec<Vec<u8>>,
    /// The pending read of a batch's parents.
    lookup: Option<OperationId>,
    /// The keys of the batch whose parents have not been found yet. Keys that remain after the read have no
    /// parent.
    wanted: BTreeSet<Vec<u8>>,
    is_interrupted: bool,
}

impl ForeignKeyCheck {
    /// Starts to check a new foreign key of a table. Error: 1452 if it has no parent table.
    pub fn start(
        dictionary: &Dictionary,
        child: Arc<TableLayout>,
        defined: &ForeignKey,
        work: &mut WorkContext<'_, '_>,
    ) -> Result<ForeignKeyCheck> {
        let key = ParentKey::of(dictionary, &child.definition, defined);
        let Some(parent) = key.parent.clone() else { return Err(no_parent(&key.shown)) };
        work.inputs.begin(child.definition.partition_count, work.turn.buffers);
        work.inputs.push_all(PartitionScope::All, &[], work.turn.buffers);
        let read = read(work, &child, Access::AllRows)?;
        Ok(ForeignKeyCheck {
            child,
            key,
            parent,
            rows: 0,
            read,
            next: Next::MoreReplies,
            batches: Vec::new(),
            lookup: None,
            wanted: BTreeSet::new(),
            is_interrupted: false,
        })
    }

    /// Number of rows checked.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Makes the check fail at its next step.
    pub fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Continues with rows of the table or of the parent.
    pub fn resume(&mut self, work: &mut WorkContext<'_, '_>, event: Event) -> WorkResult {
        match event {
            Event::Rows { operation, output, next, .. } if operation == self.read => {
                if output.is_empty() {
                    work.turn.buffers.give(output)
                } else {
                    self.batches.push(output)
                }
                self.next = next;
                if next == Next::MoreReplies { None } else { self.continue_check(work) }
            }
            Event::Rows { operation, output, next, .. } if self.lookup == Some(operation) => {
                let taken = self.take_parents(&output);
                work.turn.buffers.give(output);
                if let Err(error) = taken {
                    return self.end(work, Err(error));
                }
                match next {
                    Next::MoreReplies => None,
                    Next::MoreRows if !self.wanted.is_empty() && !self.is_interrupted => {
                        work.gateway.continue_read(operation, &Transaction::default(), work.turn);
                        None
                    }
                    Next::MoreRows | Next::Done => {
                        if next == Next::MoreRows {
                            work.gateway.end_read(operation, work.turn);
                        }
                        self.lookup = None;
                        self.continue_check(work)
                    }
                }
            }
            Event::ReadFailed { operation, error, .. } => {
                match operation == self.read {
                    true => self.next = Next::Done,
                    false => self.lookup = None,
                }
                self.end(work, Err(error))
            }
            other => invariant::fail("a check gets rows that it reads", format_args!("{other:?}")),
        }
    }

    /// Continues with the next batch, requests more rows, or ends the check.
    fn continue_check(&mut self, work: &mut WorkContext<'_, '_>) -> WorkResult {
        if self.is_interrupted {
            return self.end(work, Err(Error::query_interrupted()));
        }
        if !self.wanted.is_empty() {
            // The read of the parents is complete, so the remaining keys have none.
            let error = no_parent(&self.key.shown);
            return self.end(work, Err(error));
        }
        while let Some(batch) = self.batches.pop() {
            let taken = self.take_children(&batch);
            work.turn.buffers.give(batch);
            if let Err(error) = taken {
                return self.end(work, Err(error));
            }
            if self.wanted.is_empty() {
                continue;
            }
            return match self.look_up(work) {
                Ok(operation) => {
                    self.lookup = Some(operation);
                    None
                }
                Err(error) => self.end(work, Err(error)),
            };
        }
        if self.next == Next::MoreRows {
            self.next = Next::MoreReplies;
            work.gateway.continue_read(self.read, &Transaction::default(), work.turn);
            return None;
        }
        self.end(work, Ok(()))
    }

    /// Sends the read of a batch's parents.
    fn look_up(&self, work: &mut WorkContext<'_, '_>) -> Result<OperationId> {
        let ParentTable { layout, lookup, .. } = &self.parent;
        let (table, access) = match lookup {
            ParentLookup::Primary | ParentLookup::PrimaryAnywhere => (layout, Access::PrimaryKeys),
            ParentLookup::Unique(entries) => (entries, Access::PrimaryKeys),
            ParentLookup::Range(index) => (layout, Access::IndexRanges { index: *index, descending: false }),
        };
        let (inputs, buffers) = (&mut *work.inputs, &mut *work.turn.buffers);
        inputs.begin(table.definition.partition_count, buffers);
        let mut entry_key = Vec::new();
        for key in &self.wanted {
            match lookup {
                ParentLookup::Primary => inputs.push_key(key, &[], buffers),
                ParentLookup::PrimaryAnywhere => {
                    for partition in 0..table.definition.partition_count {
                        inputs.push_key_at(partition, key, &[], buffers);
                    }
                }
                ParentLookup::Unique(_) => {
                    entry_key.clear();
                    append_escaped(key, &mut entry_key);
                    inputs.push_key(&entry_key, &[], buffers);
                }
                ParentLookup::Range(index) => {
                    let mut key = key.clone();
                    if let Some(index) = table.definition.index(*index) {
                        complement_descending(&table.definition.columns, index, &mut key);
                    }
                    let range = KeyRange { lower: Some((&key, true)), upper: Some((&key, true)) };
                    inputs.push_range(PartitionScope::All, range, &[], buffers);
                }
            }
        }
        read(work, table, access)
    }

    /// Ends the check, either with an error or because all rows have parents.
    fn end(&mut self, work: &mut WorkContext<'_, '_>, result: Result<()>) -> WorkResult {
        if self.next != Next::Done {
            work.gateway.end_read(self.read, work.turn);
        }
        if let Some(lookup) = self.lookup {
            work.gateway.end_read(lookup, work.turn);
        }
        for batch in self.batches.drain(..) {
            work.turn.buffers.give(batch);
        }
        Some(result)
    }

    /// Collects the parent keys of a batch of rows.
    fn take_children(&mut self, batch: &[u8]) -> Result<()> {
        let parent_columns = &self.parent.layout.definition.columns;
        for_each_image(batch, &mut |image| {
            let row = RowView::new(&self.child.row_format, image);
            self.rows += 1;
            self.wanted.extend(key_of_parent(row, &self.key.columns, parent_columns, &self.parent.columns));
        })
    }

    /// Removes the keys whose parents were found.
    fn take_parents(&mut self, output: &[u8]) -> Result<()> {
        let ParentTable { layout, columns, lookup } = &self.parent;
        let wanted = &mut self.wanted;
        match lookup {
            ParentLookup::Unique(entries) => for_each_image(output, &mut |image| {
                if let ValueRef::Bytes(key) = RowView::new(&entries.row_format, image).column(ColumnNumber(0)) {
                    wanted.remove(key);
                }
            }),
            _ => for_each_image(output, &mut |image| {
                let mut key = Vec::new();
                append_row_key(&layout.definition.columns, columns, RowView::new(&layout.row_format, image), &mut key);
                wanted.remove(&key);
            }),
        }
    }
}

/// Sends a read of committed rows of a table.
fn read(work: &mut WorkContext<'_, '_>, table: &Arc<TableLayout>, access: Access) -> Result<OperationId> {
    let program = Arc::new(ReadProgram::new(table, access, Output::Images));
    let mut transaction = Transaction::default();
    transaction.isolation = Isolation::ReadCommitted;
    work.read(&program, &mut transaction)
}
