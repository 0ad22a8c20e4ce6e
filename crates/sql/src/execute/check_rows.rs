//! The rows of a table are looked at for the parents of a new foreign key, in batches, while others write neither to the table nor
//! to the parent.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Event, PartitionScope, RowBound, TurnContext};
use junctor_model::error::{Error, Result};
use junctor_model::foreign_key::{ParentKey, ParentLookup, ParentTable, key_of_parent, no_parent};
use junctor_model::id::{ColumnIndex, TableId};
use junctor_model::key::{append_escaped, append_row_key};
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_model::value::ValueRef;
use junctor_signals::input::KeyRange;
use junctor_signals::program::{Access, Output, ReadProgram};
use junctor_signals::read_rows::OperationId;

use super::alter::{Altering, next_step, take_back};
use super::completion::interrupted;
use super::fill::for_each_image;
use super::schema::{ChangeWait, SchemaState, SchemaStep};
use super::state::Execution;
use crate::engine::Engine;
use crate::result::{Progress, ResultSink};
use crate::session::{Session, TEXT};

/// Rows of one batch of one partition.
const BATCH_ROWS: u32 = 256;

/// The state of a look at rows.
#[derive(Debug)]
pub(crate) struct RowCheck {
    altering: Altering,
    child: Arc<TableLayout>,
    key: ParentKey,
    parent: ParentTable,
    read: OperationId,
    next: Next,
    /// Replies of the read that are not worked on yet.
    batches: Vec<Vec<u8>>,
    /// The look for the parents of a batch.
    lookup: Option<OperationId>,
    /// The keys of the batch whose parents are not found yet.
    wanted: BTreeSet<Vec<u8>>,
    is_interrupted: bool,
}

impl RowCheck {
    /// The table.
    pub(super) fn table(&self) -> TableId {
        self.altering.table
    }

    /// Nobody wants the foreign key any more: the look ends with its next step.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }
}

/// Whether rows of a session's table are looked at.
pub(crate) fn is_checking(session: &Session) -> bool {
    matches!(&session.execution, Execution::Schema(state) if matches!(state.step, SchemaStep::Checking(_)))
}

/// Begins with the next foreign key of an alteration.
pub(super) fn begin_check(
    engine: &mut Engine,
    session: &mut Session,
    altering: Altering,
    child: Arc<TableLayout>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let dictionary = &engine.gateway.catalog().dictionary;
    let defined = &altering.alteration.add_foreign_keys[altering.checked];
    let key = ParentKey::of(dictionary, &child.definition, defined);
    let Some(parent) = key.parent.clone() else {
        let error = no_parent(&key.shown);
        return take_back(engine, session, altering, error, turn, sink);
    };
    let inputs = &mut engine.work.inputs;
    inputs.begin(child.definition.partition_count, turn.buffers);
    inputs.push_all(PartitionScope::All, &[], turn.buffers);
    match read(engine, session, &child, Access::AllRows, turn) {
        Ok(read) => {
            let (next, batches, wanted) = (Next::Coming, Vec::new(), BTreeSet::new());
            let (lookup, is_interrupted) = (None, false);
            wait(
                session,
                RowCheck { altering, child, key, parent, read, next, batches, lookup, wanted, is_interrupted },
            )
        }
        Err(error) => take_back(engine, session, altering, error, turn, sink),
    }
}

/// Reads the rows that the inputs name as they are committed.
fn read(
    engine: &mut Engine,
    session: &mut Session,
    table: &Arc<TableLayout>,
    access: Access,
    turn: &mut TurnContext<'_>,
) -> Result<OperationId> {
    let program = Arc::new(ReadProgram {
        table: Arc::clone(table),
        access,
        filter: None,
        output: Output::Images,
        reads_parameters: false,
        is_strict: false,
        marks_missing: false,
    });
    let transaction = &mut session.transaction;
    (transaction.explicit, transaction.isolation) = (false, Isolation::ReadCommitted);
    let inputs = &mut engine.work.inputs;
    let options = ReadOptions { protocol: TEXT, bound: RowBound::Reply(BATCH_ROWS), warnings_max: 0 };
    let sent = engine.gateway.read(session.connection, transaction, &program, options, inputs, turn);
    if sent.is_err() {
        inputs.clear(turn.buffers);
    }
    sent
}

fn wait(session: &mut Session, check: RowCheck) -> Progress {
    let operation = check.read;
    let step = SchemaStep::Checking(Box::new(check));
    session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits: ChangeWait::Over }));
    Progress::Waiting
}

/// Rows of the table or of the parent arrived, or cannot be read.
pub(crate) fn on_check_event(
    engine: &mut Engine,
    session: &mut Session,
    event: Event,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let mut check = match std::mem::take(&mut session.execution) {
        Execution::Schema(state) => match *state {
            SchemaState { step: SchemaStep::Checking(check), .. } => *check,
            other => {
                session.execution = Execution::Schema(Box::new(other));
                return Progress::Waiting;
            }
        },
        other => {
            session.execution = other;
            return Progress::Waiting;
        }
    };
    match event {
        Event::Rows { operation, output, next, .. } if operation == check.read => {
            if output.is_empty() {
                turn.buffers.give(output)
            } else {
                check.batches.push(output)
            }
            check.next = next;
            if next == Next::Coming { wait(session, check) } else { work(engine, session, check, turn, sink) }
        }
        Event::Rows { operation, output, next, .. } if check.lookup == Some(operation) => {
            let taken = check.take_parents(&output);
            turn.buffers.give(output);
            if let Err(error) = taken {
                return end(engine, session, check, Some(error), turn, sink);
            }
            match next {
                Next::Coming => wait(session, check),
                Next::Ask if !check.wanted.is_empty() && !check.is_interrupted => {
                    engine.gateway.continue_read(operation, turn);
                    wait(session, check)
                }
                Next::Ask | Next::Done => {
                    if next == Next::Ask {
                        engine.gateway.end_read(operation, turn);
                    }
                    check.lookup = None;
                    work(engine, session, check, turn, sink)
                }
            }
        }
        Event::Rows { output, .. } => {
            turn.buffers.give(output);
            wait(session, check)
        }
        Event::ReadFailed { operation, error, .. } => {
            match operation == check.read {
                true => check.next = Next::Done,
                false => check.lookup = None,
            }
            end(engine, session, check, Some(error), turn, sink)
        }
        // None of these is asked for meanwhile.
        _ => wait(session, check),
    }
}

/// Goes on with the next batch.
fn work(
    engine: &mut Engine,
    session: &mut Session,
    mut check: RowCheck,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    if check.is_interrupted {
        return end(engine, session, check, Some(interrupted()), turn, sink);
    }
    if !check.wanted.is_empty() {
        let error = no_parent(&check.key.shown);
        return end(engine, session, check, Some(error), turn, sink);
    }
    while let Some(batch) = check.batches.pop() {
        let taken = check.take_children(&batch);
        turn.buffers.give(batch);
        if let Err(error) = taken {
            return end(engine, session, check, Some(error), turn, sink);
        }
        if check.wanted.is_empty() {
            continue;
        }
        return match look_up(engine, session, &check, turn) {
            Ok(operation) => {
                check.lookup = Some(operation);
                wait(session, check)
            }
            Err(error) => end(engine, session, check, Some(error), turn, sink),
        };
    }
    if check.next == Next::Ask {
        check.next = Next::Coming;
        engine.gateway.continue_read(check.read, turn);
        return wait(session, check);
    }
    end(engine, session, check, None, turn, sink)
}

/// Reads the parents of a batch.
fn look_up(
    engine: &mut Engine,
    session: &mut Session,
    check: &RowCheck,
    turn: &mut TurnContext<'_>,
) -> Result<OperationId> {
    let ParentTable { layout, lookup, .. } = &check.parent;
    let (table, access) = match lookup {
        ParentLookup::Primary | ParentLookup::PrimaryAnywhere => (layout, Access::PrimaryKeys),
        ParentLookup::Unique(entries) => (entries, Access::PrimaryKeys),
        ParentLookup::Range(index) => (layout, Access::IndexRanges { index: *index, descending: false }),
    };
    let inputs = &mut engine.work.inputs;
    inputs.begin(table.definition.partition_count, turn.buffers);
    let mut entry_key = Vec::new();
    for key in &check.wanted {
        match lookup {
            ParentLookup::Primary => inputs.push_key(key, &[], turn.buffers),
            ParentLookup::PrimaryAnywhere => {
                for partition in 0..table.definition.partition_count {
                    inputs.push_key_at(partition, key, &[], turn.buffers);
                }
            }
            ParentLookup::Unique(_) => {
                entry_key.clear();
                append_escaped(key, &mut entry_key);
                inputs.push_key(&entry_key, &[], turn.buffers);
            }
            ParentLookup::Range(_) => {
                let range = KeyRange { lower: Some((key, true)), upper: Some((key, true)) };
                inputs.push_range(PartitionScope::All, range, &[], turn.buffers);
            }
        }
    }
    read(engine, session, table, access, turn)
}

/// All rows have their parents, or one has none.
fn end(
    engine: &mut Engine,
    session: &mut Session,
    mut check: RowCheck,
    error: Option<Box<Error>>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    if check.next != Next::Done {
        engine.gateway.end_read(check.read, turn);
    }
    if let Some(lookup) = check.lookup {
        engine.gateway.end_read(lookup, turn);
    }
    for batch in check.batches.drain(..) {
        turn.buffers.give(batch);
    }
    session.transaction_ended();
    check.altering.checked += 1;
    match error {
        None => next_step(engine, session, check.altering, turn, sink),
        Some(error) => take_back(engine, session, check.altering, error, turn, sink),
    }
}

impl RowCheck {
    /// The keys of the parents of a batch of rows.
    fn take_children(&mut self, batch: &[u8]) -> Result<()> {
        let is_first = self.altering.checked == 0;
        let parent_columns = &self.parent.layout.definition.columns;
        for_each_image(batch, &mut |image| {
            let row = RowView::new(&self.child.row_format, image);
            self.altering.rows += u64::from(is_first);
            self.wanted.extend(key_of_parent(row, &self.key.columns, parent_columns, &self.parent.columns));
        })
    }

    /// Parents were found.
    fn take_parents(&mut self, output: &[u8]) -> Result<()> {
        let ParentTable { layout, columns, lookup } = &self.parent;
        let wanted = &mut self.wanted;
        match lookup {
            ParentLookup::Unique(entries) => for_each_image(output, &mut |image| {
                if let ValueRef::Bytes(key) = RowView::new(&entries.row_format, image).column(ColumnIndex(0)) {
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
