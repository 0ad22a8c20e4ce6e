//! Checks in batches that the rows of a table have parents for a new foreign key. During the check, the main
//! block blocks writes to the table and to the parent.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, PartitionScope, ReadRequest, RowBound};
use junctor_model::error::{Error, Result};
use junctor_model::foreign_key::{ParentKey, ParentLookup, ParentTable, key_of_parent, no_parent};
use junctor_model::id::{ColumnNumber, TableId};
use junctor_model::key::{append_escaped, append_row_key};
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_model::value::ValueRef;
use junctor_signals::input::KeyRange;
use junctor_signals::program::{Access, Output, ReadProgram};
use junctor_signals::read_rows::OperationId;

use super::alter::{AlterationState, continue_alteration, undo_alteration};
use super::completion::interrupted;
use super::context::StatementContext;
use super::index_backfill::BATCH_ROWS;
use super::index_backfill::for_each_image;
use super::resume::unexpected;
use super::schema::{ChangeWait, SchemaState, SchemaStep};
use super::session::{Session, TEXT};
use super::state::Execution;
use crate::result::Progress;

/// The progress of checking one foreign key.
#[derive(Debug)]
pub(crate) struct ForeignKeyCheck {
    altering: AlterationState,
    child: Arc<TableLayout>,
    key: ParentKey,
    parent: ParentTable,
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
    /// Whether the current step waits for a reply of this operation.
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        self.read == operation || self.lookup == Some(operation)
    }

    pub(super) fn table(&self) -> TableId {
        self.altering.table
    }

    /// Makes the check fail at its next step.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }
}

/// Starts to check the next foreign key of an alteration.
pub(super) fn start_check(
    context: &mut StatementContext<'_, '_>,
    altering: AlterationState,
    child: Arc<TableLayout>,
) -> Progress {
    let dictionary = &context.engine.gateway.catalog().dictionary;
    let defined = &altering.alteration.add_foreign_keys[altering.checked];
    let key = ParentKey::of(dictionary, &child.definition, defined);
    let Some(parent) = key.parent.clone() else {
        let error = no_parent(&key.shown);
        return undo_alteration(context, altering, error);
    };
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(child.definition.partition_count, context.turn.buffers);
    inputs.push_all(PartitionScope::All, &[], context.turn.buffers);
    match read(context, &child, Access::AllRows) {
        Ok(read) => {
            let (next, batches, wanted) = (Next::MoreReplies, Vec::new(), BTreeSet::new());
            let (lookup, is_interrupted) = (None, false);
            wait(
                context.session,
                ForeignKeyCheck { altering, child, key, parent, read, next, batches, lookup, wanted, is_interrupted },
            )
        }
        Err(error) => undo_alteration(context, altering, error),
    }
}

/// Sends a read of committed rows. The inputs are in the workspace.
fn read(context: &mut StatementContext<'_, '_>, table: &Arc<TableLayout>, access: Access) -> Result<OperationId> {
    let program = Arc::new(ReadProgram::new(table, access, Output::Images));
    let transaction = &mut context.session.transaction;
    (transaction.explicit, transaction.isolation) = (false, Isolation::ReadCommitted);
    let inputs = &mut context.engine.work.inputs;
    let options = ReadOptions { protocol: TEXT, bound: RowBound::Reply(BATCH_ROWS), warnings_max: 0 };
    let request = ReadRequest { program: &program, options, inputs };
    let sent = context.engine.gateway.read(context.session.connection, transaction, request, context.turn);
    if sent.is_err() {
        inputs.clear(context.turn.buffers);
    }
    sent
}

fn wait(session: &mut Session, check: ForeignKeyCheck) -> Progress {
    let operation = check.read;
    let step = SchemaStep::Checking(Box::new(check));
    session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits: ChangeWait::Over }));
    Progress::Waiting
}

/// Continues a check with rows of the table or of the parent.
pub(super) fn resume_check(
    context: &mut StatementContext<'_, '_>,
    mut check: ForeignKeyCheck,
    event: Event,
) -> Progress {
    match event {
        Event::Rows { operation, output, next, .. } if operation == check.read => {
            if output.is_empty() {
                context.turn.buffers.give(output)
            } else {
                check.batches.push(output)
            }
            check.next = next;
            if next == Next::MoreReplies { wait(context.session, check) } else { continue_check(context, check) }
        }
        Event::Rows { operation, output, next, .. } if check.lookup == Some(operation) => {
            let taken = check.take_parents(&output);
            context.turn.buffers.give(output);
            if let Err(error) = taken {
                return end(context, check, Some(error));
            }
            match next {
                Next::MoreReplies => wait(context.session, check),
                Next::MoreRows if !check.wanted.is_empty() && !check.is_interrupted => {
                    context.engine.gateway.continue_read(operation, context.turn);
                    wait(context.session, check)
                }
                Next::MoreRows | Next::Done => {
                    if next == Next::MoreRows {
                        context.engine.gateway.end_read(operation, context.turn);
                    }
                    check.lookup = None;
                    continue_check(context, check)
                }
            }
        }
        Event::Rows { output, .. } => {
            context.turn.buffers.give(output);
            wait(context.session, check)
        }
        Event::ReadFailed { operation, error, .. } => {
            match operation == check.read {
                true => check.next = Next::Done,
                false => check.lookup = None,
            }
            end(context, check, Some(error))
        }
        other => unexpected("the check of a foreign key", &other),
    }
}

/// Continues with the next batch, requests more rows, or ends the check.
fn continue_check(context: &mut StatementContext<'_, '_>, mut check: ForeignKeyCheck) -> Progress {
    if check.is_interrupted {
        return end(context, check, Some(interrupted()));
    }
    if !check.wanted.is_empty() {
        // The read of the parents is complete, so the remaining keys have none.
        let error = no_parent(&check.key.shown);
        return end(context, check, Some(error));
    }
    while let Some(batch) = check.batches.pop() {
        let taken = check.take_children(&batch);
        context.turn.buffers.give(batch);
        if let Err(error) = taken {
            return end(context, check, Some(error));
        }
        if check.wanted.is_empty() {
            continue;
        }
        return match look_up(context, &check) {
            Ok(operation) => {
                check.lookup = Some(operation);
                wait(context.session, check)
            }
            Err(error) => end(context, check, Some(error)),
        };
    }
    if check.next == Next::MoreRows {
        check.next = Next::MoreReplies;
        context.engine.gateway.continue_read(check.read, context.turn);
        return wait(context.session, check);
    }
    end(context, check, None)
}

/// Sends the read of a batch's parents.
fn look_up(context: &mut StatementContext<'_, '_>, check: &ForeignKeyCheck) -> Result<OperationId> {
    let ParentTable { layout, lookup, .. } = &check.parent;
    let (table, access) = match lookup {
        ParentLookup::Primary | ParentLookup::PrimaryAnywhere => (layout, Access::PrimaryKeys),
        ParentLookup::Unique(entries) => (entries, Access::PrimaryKeys),
        ParentLookup::Range(index) => (layout, Access::IndexRanges { index: *index, descending: false }),
    };
    let inputs = &mut context.engine.work.inputs;
    inputs.begin(table.definition.partition_count, context.turn.buffers);
    let mut entry_key = Vec::new();
    for key in &check.wanted {
        match lookup {
            ParentLookup::Primary => inputs.push_key(key, &[], context.turn.buffers),
            ParentLookup::PrimaryAnywhere => {
                for partition in 0..table.definition.partition_count {
                    inputs.push_key_at(partition, key, &[], context.turn.buffers);
                }
            }
            ParentLookup::Unique(_) => {
                entry_key.clear();
                append_escaped(key, &mut entry_key);
                inputs.push_key(&entry_key, &[], context.turn.buffers);
            }
            ParentLookup::Range(_) => {
                let range = KeyRange { lower: Some((key, true)), upper: Some((key, true)) };
                inputs.push_range(PartitionScope::All, range, &[], context.turn.buffers);
            }
        }
    }
    read(context, table, access)
}

/// Ends the check, either with an error or because all rows have parents.
fn end(context: &mut StatementContext<'_, '_>, mut check: ForeignKeyCheck, error: Option<Box<Error>>) -> Progress {
    if check.next != Next::Done {
        context.engine.gateway.end_read(check.read, context.turn);
    }
    if let Some(lookup) = check.lookup {
        context.engine.gateway.end_read(lookup, context.turn);
    }
    for batch in check.batches.drain(..) {
        context.turn.buffers.give(batch);
    }
    context.session.transaction_ended();
    check.altering.checked += 1;
    match error {
        None => continue_alteration(context, check.altering),
        Some(error) => undo_alteration(context, check.altering, error),
    }
}

impl ForeignKeyCheck {
    /// Collects the parent keys of a batch of rows.
    fn take_children(&mut self, batch: &[u8]) -> Result<()> {
        let is_first = self.altering.checked == 0;
        let parent_columns = &self.parent.layout.definition.columns;
        for_each_image(batch, &mut |image| {
            let row = RowView::new(&self.child.row_format, image);
            self.altering.rows += u64::from(is_first);
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
