//! INSERT IGNORE, REPLACE and INSERT ... ON DUPLICATE KEY UPDATE.
//!
//! All rows are inserted at once. When that meets a key that exists, it is undone and the rows are taken one by one. For REPLACE and ON
//! DUPLICATE KEY UPDATE each key of the row, in MySQL's order of keys, is looked for and locked exclusively, the row's own primary key
//! first and then the entries of unique indexes; so a row of another transaction that has not ended is waited for, and then seen as it
//! has become. The row found is updated, or the rows found are deleted; without any, the row is inserted. A key that appears between
//! the look and the insert makes the insert fail, and the keys are looked for again.

use std::sync::Arc;

use junctor_gateway::gateway::WriteOptions;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnIndex;
use junctor_model::key::{append_escaped, append_row_key};
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnType, TableLayout};
use junctor_model::value::ValueRef;
use junctor_signals::program::{RowProtocol, WriteProgram};

use super::drive::{Next, may_leave_out, may_repeat, settle, take_transaction};
use super::returned::{Returned, cannot_fail};
use super::rows::RowList;
use super::source::{Source, advance, start_source};
use super::state::{ChangeWork, CompoundState, Counts, InsertWork, NO_OPERATION, Step, Work};
use crate::execute::completion::{Changed, finish, ok};
use crate::execute::context::StatementContext;
use crate::execute::insert::{Numbered, level_of_mode, number_of};
use crate::execute::read::{broken_reply, wrong_plan};
use crate::execute::state::{Origin, Run};
use crate::execute::write::{StatementOutcome, check_writable, forget_taken_numbers, write_options};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{Conflict, InsertPlan, InsertReturning, KeyLock, Plan};
use crate::result::Progress;

/// How often the keys of one row are looked at before the statement gives up with error 1205: each time another transaction has
/// put the key there between the look and the insert, and taken it away again before the next look.
const ATTEMPTS_MAX: u32 = 100;

/// Inserts rows that were made. They are in the engine's inputs too.
pub(in crate::execute) fn start_insert_rows(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<Plan>,
    run: &Run<'_>,
    rows: RowList,
    numbered: Numbered,
) -> Progress {
    let Plan::Insert(insert) = &**plan else {
        return crate::execute::completion::fail(context, &wrong_plan());
    };
    let mut parameters = context.turn.buffers.take(context.engine.work.parameters.len());
    parameters.extend_from_slice(&context.engine.work.parameters);
    let mut state = Box::new(CompoundState {
        plan: Arc::clone(plan),
        operation: Default::default(),
        protocol: run.protocol,
        step: Step::Batch,
        owns_transaction: false,
        before: context.session.transaction.statement(),
        parameters,
        origin: run.again.keep(context.session.transaction.explicit, &context.engine.work.parameters, context.turn),
        work: Work::Insert(InsertWork {
            rows,
            next: 0,
            found: Vec::new(),
            attempts: 0,
            first_number: 0,
            explicit_number: 0,
            numbered,
            counts: Counts::default(),
            returned: Returned::default(),
        }),
        source: None,
        is_stopped: false,
    });
    if let Work::Insert(work) = &state.work {
        let rows = &work.rows;
        let is_safe = insert.returning.is_none() || rows.len() == 1 && cannot_fail(insert, rows.get(0).image.image);
        // What RETURNING cannot say undoes the statement.
        state.owns_transaction = !is_safe && take_transaction(context.session);
    }
    let next = send_step(context, &mut state, &insert.program, Step::Batch);
    settle(context, state, next)
}

/// Inserts the rows of a query. The parameters are in the engine's workspace.
pub(in crate::execute) fn start_insert_select(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<Plan>,
    run: &Run<'_>,
) -> Progress {
    let Plan::Insert(insert) = &**plan else {
        return crate::execute::completion::fail(context, &wrong_plan());
    };
    if let Err(error) = check_writable(context.session) {
        return crate::execute::completion::fail(context, &error);
    }
    context.session.enter_statement();
    // A query in the same transaction sees what was written before it; what this statement writes is not for its own query.
    let reads_own_table = insert
        .select
        .as_ref()
        .and_then(|select| select.table())
        .is_some_and(|table| table.definition.id == insert.table.definition.id);
    let collects = reads_own_table && context.session.transaction.has_begun();
    let mut parameters = context.turn.buffers.take(context.engine.work.parameters.len());
    parameters.extend_from_slice(&context.engine.work.parameters);
    let origin = run.again.keep(context.session.transaction.explicit, &context.engine.work.parameters, context.turn);
    let before = context.session.transaction.statement();
    let mut state = Box::new(CompoundState {
        plan: Arc::clone(plan),
        operation: NO_OPERATION,
        protocol: run.protocol,
        step: Step::Select,
        owns_transaction: take_transaction(context.session),
        before,
        parameters,
        origin,
        work: Work::Insert(InsertWork {
            rows: RowList::default(),
            next: 0,
            found: Vec::new(),
            attempts: 0,
            first_number: 0,
            explicit_number: 0,
            numbered: Numbered::default(),
            counts: Counts::default(),
            returned: Returned::default(),
        }),
        source: Some(Box::new(Source::new(collects))),
        is_stopped: false,
    });
    let next = start_source(context, &mut state, insert);
    settle(context, state, next)
}

/// Sends what is in the inputs.
pub(super) fn send_step(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    program: &Arc<WriteProgram>,
    step: Step,
) -> Result<Next> {
    // Keys of rows that are not there stay free: those who insert them wait for each other as it is.
    let (locks_ranges, rows_max) = match (&step, &state.work) {
        (Step::Lock, Work::Change(work)) => (true, work.locked_max),
        // All rows of a change at once, before they are locked.
        (Step::WriteAll, Work::Change(ChangeWork { rows, .. })) => (rows.is_empty(), u32::MAX),
        _ => (false, u32::MAX),
    };
    // The rows to change are told as values.
    let protocol = if matches!(step, Step::Lock) { RowProtocol::Values } else { state.protocol };
    let options = write_options(context, protocol);
    // All steps are undone together.
    let savepoint = options.savepoint.max(state.before);
    let options = WriteOptions { locks_ranges, rows_max, savepoint, ..options };
    let inputs = &mut context.engine.work.inputs;
    let connection = context.session.connection;
    state.operation = context.engine.gateway.execute(
        connection,
        &mut context.session.transaction,
        program,
        options,
        inputs,
        context.turn,
    )?;
    state.step = step;
    Ok(Next::Wait)
}

/// A step was answered.
pub(super) fn on_answer(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
    outcome: StatementOutcome,
    images: &[Vec<u8>],
) -> Result<Next> {
    let repeats = outcome.error.as_ref().is_some_and(|error| repeats_batch(context, state, plan, error));
    if let Some(diagnostics) = outcome.diagnostics {
        let level = match &plan.conflict {
            Conflict::Update { update, .. } => crate::execute::write::level_of(update),
            _ => WarningLevel::Note,
        };
        context.session.note_diagnostics(level, *diagnostics);
    }
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let is_duplicate = outcome.error.as_ref().is_some_and(|error| error.code == ErrorCode::DuplicateEntry);
    let ignores = matches!(plan.conflict, Conflict::Skip | Conflict::Update { ignore: true, .. });
    let is_left_out = ignores && outcome.error.as_ref().is_some_and(|error| may_leave_out(error.code));
    match (&state.step, outcome.error) {
        (Step::Batch, None) => {
            work.counts.written += work.rows.len() as u64;
            if work.first_number == 0 {
                work.first_number = work.numbered.first_number;
            }
            work.explicit_number = work.numbered.answer_number;
            return_batch(context, state, plan)?;
            rows_done(context, state, plan)
        }
        (Step::Batch, Some(_)) if is_left_out || is_duplicate && !matches!(plan.conflict, Conflict::Fail) => {
            begin_rows(context, state, plan)
        }
        (Step::Batch, Some(_)) if repeats => Ok(Next::Again),
        (Step::Insert, None) => {
            work.counts.written += 1;
            let generated = work.rows.get(work.next).generated;
            if work.first_number == 0 && plan.auto.is_some_and(|auto| !auto.is_hidden) {
                work.first_number = generated;
            }
            work.explicit_number = number_of_row(plan, work);
            return_row(context, state, plan)?;
            next_row(context, state, plan)
        }
        (Step::Insert, Some(_)) if is_duplicate && !matches!(plan.conflict, Conflict::Skip) => {
            look_again(context, state, plan)
        }
        (step @ (Step::Insert | Step::Update), Some(error)) if is_left_out => {
            work.counts.touched += u64::from(matches!(step, Step::Update));
            skip_row(context, state, plan, &error)
        }
        (_, Some(error)) => Err(error),
        (Step::Key(place), None) => {
            let place = *place;
            on_key(context, state, plan, place, images)
        }
        (Step::Same, None) => replace_unless_same(context, state, plan, images),
        (Step::Delete, None) => {
            work.counts.deleted += outcome.changed;
            work.found.clear();
            insert_row(context, state, plan)
        }
        // The row went between its entry and itself; its key is free, or another row's.
        (Step::Update, None) if outcome.matched == 0 => look_again(context, state, plan),
        (Step::Update, None) => {
            work.counts.touched += 1;
            work.explicit_number = number_of_found(plan, work);
            if outcome.changed > 0 {
                work.counts.written += 1;
                work.counts.updated += 1;
            }
            if plan.returning.is_some() {
                images.iter().try_for_each(|packets| work.returned.add_packets(packets, 1))?;
            }
            next_row(context, state, plan)
        }
        _ => Err(wrong_plan()),
    }
}

/// Whether the insert of all rows is done again: its plan was old, or a number that was generated is taken because other
/// sessions gave rows such numbers. Nothing of it has been done.
fn repeats_batch(
    context: &mut StatementContext<'_, '_>,
    state: &CompoundState,
    plan: &InsertPlan,
    error: &Error,
) -> bool {
    let Work::Insert(work) = &state.work else { return false };
    if context.session.transaction.has_begun() || !matches!(state.step, Step::Batch) {
        return false;
    }
    let is_taken = matches!(plan.conflict, Conflict::Fail)
        && state.source.is_none()
        && work.numbered.first_number != 0
        && forget_taken_numbers(context.engine, &state.plan, error);
    is_taken && !matches!(state.origin, Origin::None) || may_repeat(state, error)
}

/// What RETURNING says of all rows, which have been inserted.
fn return_batch(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<()> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    if plan.returning.is_none() {
        return Ok(());
    }
    (0..work.rows.len()).try_for_each(|row| add_returned(context, &state.parameters, state.protocol, plan, work, row))
}

/// What RETURNING says of the row at hand.
fn return_row(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<()> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let row = work.next;
    match plan.returning {
        None => Ok(()),
        Some(_) => add_returned(context, &state.parameters, state.protocol, plan, work, row),
    }
}

fn add_returned(
    context: &mut StatementContext<'_, '_>,
    parameters: &[u8],
    protocol: RowProtocol,
    plan: &InsertPlan,
    work: &mut InsertWork,
    row: usize,
) -> Result<()> {
    let InsertWork { rows, returned, .. } = work;
    let scratch = &mut context.engine.work.scratch;
    let parameters = junctor_expression::Parameters::from_bytes(parameters);
    let added = returned.add(plan, rows.get(row).image.image, protocol, parameters, scratch);
    context.session.note_evaluated(level_of_mode(plan.mode), scratch);
    added
}

/// The insert of all rows was refused and is undone: they are taken one by one.
fn begin_rows(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    std::mem::take(&mut state.origin).release(context.turn);
    if state.source.is_none() && !state.owns_transaction {
        state.owns_transaction = take_transaction(context.session);
        state.before = context.session.transaction.statement();
    }
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    work.attempts = 0;
    work.next = 0;
    begin_row(context, state, plan)
}

/// The rows at hand are written: those that the query gives next follow.
fn rows_done(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    if state.source.is_some() { advance(context, state, plan) } else { Ok(Next::Done) }
}

fn next_row(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    work.next += 1;
    if work.next == work.rows.len() {
        return rows_done(context, state, plan);
    }
    work.attempts = 0;
    begin_row(context, state, plan)
}

fn begin_row(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    work.found.clear();
    ask_key(context, state, plan, 0)
}

/// Leaves the row out, which the user is told.
fn skip_row(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
    error: &Error,
) -> Result<Next> {
    context.session.warn(WarningLevel::Warning, error.code.errno(), error.message.clone());
    if let Work::Insert(work) = &mut state.work {
        work.explicit_number = number_of_row(plan, work);
    }
    next_row(context, state, plan)
}

/// The AUTO_INCREMENT value of the row at hand; 0 without such a column.
fn number_of_row(plan: &InsertPlan, work: &InsertWork) -> u64 {
    let Some(auto) = plan.auto.filter(|auto| !auto.is_hidden) else { return 0 };
    let view = RowView::new(&plan.table.row_format, work.rows.get(work.next).image.image);
    number_of(view.column(auto.index)).unwrap_or(0)
}

/// The AUTO_INCREMENT value of the row that was found, where it is the primary key.
fn number_of_found(plan: &InsertPlan, work: &InsertWork) -> u64 {
    let Some(auto) = plan.auto.filter(|auto| !auto.is_hidden) else { return 0 };
    let definition = &plan.table.definition;
    let column_type = definition.columns[usize::from(auto.index.0)].column_type;
    match (column_type, work.found.last()) {
        (ColumnType::Integer { unsigned, .. }, Some((_, key))) if definition.primary().columns == [auto.index] => {
            let mut bytes = [0; 8];
            let (Some(low), true) = (bytes.len().checked_sub(key.len()), !key.is_empty()) else { return 0 };
            bytes[low..].copy_from_slice(key);
            // Keys of signed integers begin with the sign bit turned over.
            match (unsigned, key[0] & 0x80) {
                (true, _) => u64::from_be_bytes(bytes),
                (false, 0) => 0,
                (false, _) => u64::from_be_bytes(bytes) & !(1 << (key.len() * 8 - 1)),
            }
        }
        _ => 0,
    }
}

/// The keys of the row have changed since they were looked at.
fn look_again(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    work.attempts += 1;
    if work.attempts >= ATTEMPTS_MAX {
        return Err(Error::lock_wait_timeout());
    }
    begin_row(context, state, plan)
}

/// Looks for the key at a place, or the next one that the row has; after the last one the row is written.
fn ask_key(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
    first: usize,
) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let row = work.rows.get(work.next);
    let view = RowView::new(&plan.table.row_format, row.image.image);
    let columns = &plan.table.definition.columns;
    let crate::execute::state::Workspace { inputs, key, partition_key, .. } = &mut context.engine.work;
    for (place, KeyLock { index, columns: key_columns, lock }) in plan.conflict.keys().iter().enumerate().skip(first) {
        let buffers = &mut *context.turn.buffers;
        inputs.begin(lock.table.definition.partition_count, buffers);
        if index.is_none() {
            // A row with the same primary key is in the same partition.
            inputs.push_key_at(row.partition, row.image.key.key, &[], buffers);
            return send_step(context, state, lock, Step::Key(place));
        }
        partition_key.clear();
        let has_null = append_row_key(columns, key_columns, view, partition_key);
        if has_null {
            continue;
        }
        key.clear();
        append_escaped(partition_key, key);
        inputs.push_key(key, &[], buffers);
        return send_step(context, state, lock, Step::Key(place));
    }
    write_row(context, state, plan)
}

/// The locking read of a key was answered with the image of a row or of a unique entry, or without.
fn on_key(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
    place: usize,
    images: &[Vec<u8>],
) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let Some(KeyLock { index, lock, .. }) = plan.conflict.keys().get(place) else { return Err(wrong_plan()) };
    let row = work.rows.get(work.next);
    if let Some(image) = images.iter().find(|images| !images.is_empty()) {
        let found = match index {
            None if row.generated != 0 && has_number(plan) => {
                // The row that has the number gave it to itself. The numbers held are given up, so the next ones are new.
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
            Conflict::Update { .. } => return update_found(context, state, plan),
            // MySQL changes a row that has the last key alone in its place, and one that is the same is not changed.
            Conflict::Replace { row_lock: Some(row_lock), keys, .. } if place + 1 == keys.len() && is_only => {
                if index.is_none() {
                    return replace_unless_same(context, state, plan, images);
                }
                push_found(context, work, plan, &[]);
                return send_step(context, state, row_lock, Step::Same);
            }
            _ => {}
        }
    }
    ask_key(context, state, plan, place + 1)
}

/// The only row in the way of REPLACE is here, by the last key: if it is the very row that is made, nothing is replaced.
fn replace_unless_same(
    context: &mut StatementContext<'_, '_>,
    state: &mut CompoundState,
    plan: &InsertPlan,
    images: &[Vec<u8>],
) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let layout = &plan.table;
    let new = RowView::new(&layout.row_format, work.rows.get(work.next).image.image);
    let found = images.iter().find_map(|image| image.get(4..)).map(|image| RowView::new(&layout.row_format, image));
    let is_same = found.is_some_and(|found| {
        let mut columns = layout.definition.columns.iter().zip(0..).filter(|(column, _)| !column.hidden);
        columns.all(|(_, index)| found.column(ColumnIndex(index)) == new.column(ColumnIndex(index)))
    });
    if is_same {
        work.counts.written += 1;
        return_row(context, state, plan)?;
        return next_row(context, state, plan);
    }
    write_row(context, state, plan)
}

/// Whether a generated number is among the columns of the primary key.
fn has_number(plan: &InsertPlan) -> bool {
    plan.auto.is_some_and(|auto| plan.table.definition.primary().columns.contains(&auto.index))
}

#[cold]
fn taken_number(plan: &InsertPlan, number: u64) -> Box<Error> {
    let table = &plan.table.definition.name;
    Error::new(ErrorCode::DuplicateEntry, format!("Duplicate entry '{number}' for key '{table}.PRIMARY'"))
}

/// The row that a unique entry names: its partition and primary key.
fn referenced(entries: &TableLayout, image: &[u8]) -> Result<(u16, Vec<u8>)> {
    let Some((_, image)) = image.split_first_chunk::<4>() else { return Err(broken_reply()) };
    match RowView::new(&entries.row_format, image).column(ColumnIndex(1)) {
        ValueRef::Bytes([high, low, key @ ..]) => Ok((u16::from_be_bytes([*high, *low]), key.to_vec())),
        _ => Err(broken_reply()),
    }
}

/// The keys of the row are known and locked: what stands in its way is deleted, or it is inserted.
fn write_row(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let Conflict::Replace { delete, .. } = &plan.conflict else { return insert_row(context, state, plan) };
    if work.found.is_empty() {
        return insert_row(context, state, plan);
    }
    push_found(context, work, plan, &[]);
    send_step(context, state, delete, Step::Delete)
}

fn push_found(context: &mut StatementContext<'_, '_>, work: &InsertWork, plan: &InsertPlan, parameters: &[u8]) {
    let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
    inputs.begin(plan.table.definition.partition_count, buffers);
    for (partition, key) in &work.found {
        inputs.push_key_at(*partition, key, parameters, buffers);
    }
}

fn insert_row(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let row = work.rows.get(work.next);
    let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
    inputs.begin(plan.table.definition.partition_count, buffers);
    inputs.push_image(row.partition, row.image, &[], buffers);
    send_step(context, state, &plan.program, Step::Insert)
}

/// Updates the row that has the key. Its parameters are those of the statement, the columns of the new row, and the columns of the
/// query's row that are named.
fn update_found(context: &mut StatementContext<'_, '_>, state: &mut CompoundState, plan: &InsertPlan) -> Result<Next> {
    let Conflict::Update { update, first_parameter, selected, .. } = &plan.conflict else { return Err(wrong_plan()) };
    let Work::Insert(work) = &mut state.work else { return Err(wrong_plan()) };
    let row = work.rows.get(work.next);
    let is_own = row.parameters.is_empty() || plan.select.is_some();
    let own = if is_own { &state.parameters } else { row.parameters };
    let own = junctor_expression::Parameters::from_bytes(own);
    let crate::execute::state::Workspace { builder, row_parameters, .. } = &mut context.engine.work;
    builder.clear();
    for ordinal in 0..*first_parameter {
        builder.push(own.get(ordinal));
    }
    let view = RowView::new(&plan.table.row_format, row.image.image);
    for position in 0..plan.table.definition.columns.len() {
        builder.push(view.column(ColumnIndex(position as u16)));
    }
    let given = junctor_expression::Parameters::from_bytes(row.parameters);
    for ordinal in selected.clone() {
        builder.push(given.get(ordinal));
    }
    let mut parameters = std::mem::take(row_parameters);
    parameters.clear();
    let built = builder.append_to(&mut parameters);
    push_found(context, work, plan, &parameters);
    context.engine.work.row_parameters = parameters;
    built?;
    send_step(context, state, update, Step::Update)
}

/// Says what became of the rows; `rows_before` is the number of those that a query gave.
pub(super) fn say(
    context: &mut StatementContext<'_, '_>,
    plan: &InsertPlan,
    (work, rows_before): (&mut InsertWork, Option<u64>),
) -> Progress {
    use std::fmt::Write;
    let Counts { written, deleted, updated, touched } = work.counts;
    let rows = rows_before.unwrap_or(work.rows.len() as u64);
    let found = if context.session.found_rows_wanted { touched } else { updated };
    let info = &mut context.engine.work.info;
    info.clear();
    if rows > 1 || rows_before.is_some() {
        let duplicates = match plan.mode {
            junctor_expression::StoreMode::Lenient => rows - written.min(rows),
            junctor_expression::StoreMode::Strict => deleted + found,
        };
        // Writing to a String cannot fail.
        let _ = write!(info, "Records: {rows}  Duplicates: {duplicates}  Warnings: {}", context.session.warning_count);
    }
    if work.first_number != 0 {
        context.session.last_insert_id = work.first_number;
    }
    if let Some(InsertReturning { header, .. }) = &plan.returning {
        context.sink.header(header, &context.session.completion());
        context.sink.row_packets(&work.returned.packets);
        return finish(context, work.returned.rows);
    }
    let last_insert_id = match (work.first_number, context.session.insert_id_argument) {
        (0, Some(argument)) => argument,
        (0, None) if written > 0 => work.explicit_number,
        (first, _) => first,
    };
    ok(context, Changed { affected_rows: written + deleted + found, last_insert_id, has_info: true })
}
