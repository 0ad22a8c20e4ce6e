//! Hot path, budget 200 instructions an update besides its key: UPDATE, DELETE, locking reads, and the answers of all writes.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_gateway::gateway::WriteOptions;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::append_unsigned;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::program::{LockMode, Output, Returning, RowProtocol, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;

use super::completion::{Changed, fail, finish, ok};
use super::compound::start_ordered_change;
use super::context::StatementContext;
use super::key::Values;
use super::packets::{Window, row_start};
use super::read::{all_true, merge_states, push_path, rows_of, settle, wrong_plan};
use super::savepoint::newest_savepoint;
use super::sorter::{SortRequest, Sorter};
use super::state::{Execution, GatherState, Origin, ReadState, Run, Workspace, WriteState};
use super::transaction::note_lost_transaction;
use crate::engine::Engine;
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ChangeKind, ChangePlan, Plan};
use crate::result::{Progress, ResultHeader};
use crate::session::Session;

/// What a write is asked with.
pub(super) fn write_options(context: &StatementContext<'_, '_>, protocol: RowProtocol) -> WriteOptions {
    let lock_wait_ms = context.session.variables.lock_wait_seconds.saturating_mul(1000);
    WriteOptions {
        protocol,
        lock_wait_ms,
        timeout_ends: context.engine.settings.lock_wait_timeout_ends_transaction,
        keeps_to_snapshot: context.session.variables.keeps_to_snapshot,
        rows_max: u32::MAX,
        locks_ranges: true,
        savepoint: newest_savepoint(context.session),
        warnings_max: context.session.variables.warnings_max,
    }
}

/// Refuses writes in a transaction that only reads: 1792. To be asked before the statement is entered, for what was said of
/// the next transaction alone is not used up by what is refused.
#[inline]
pub(super) fn check_writable(session: &Session) -> Result<()> {
    if session.only_reads() { Err(in_read_only_transaction()) } else { Ok(()) }
}

/// 1792.
#[cold]
pub(crate) fn in_read_only_transaction() -> Box<Error> {
    Error::new(ErrorCode::ReadOnlyTransaction, "Cannot execute statement in a READ ONLY transaction.")
}

/// Whether a locking read is FOR UPDATE, which a transaction that only reads may not say.
pub(super) fn locks_exclusively(program: &WriteProgram) -> bool {
    matches!(program.action, WriteAction::LockRead { mode: LockMode::Exclusive, .. })
}

/// Starts an UPDATE or DELETE. The parameters are in the engine's workspace.
pub(crate) fn start_change(context: &mut StatementContext<'_, '_>, plan: &Arc<Plan>, run: &Run<'_>) -> Progress {
    let found = try_change(context, plan, run);
    context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
    match found {
        Ok(Found::Sent) => Progress::Waiting,
        Ok(Found::Ordered(limit)) => match &**plan {
            Plan::Change(ChangePlan { ordered: Some(ordered), .. }) => {
                start_ordered_change(context, plan, ordered, run, limit)
            }
            _ => fail(context, &wrong_plan()),
        },
        Ok(Found::Nothing) => match &**plan {
            Plan::Change(change) => say_changed(context, change, ChangedRows::default()),
            _ => fail(context, &wrong_plan()),
        },
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            fail(context, &error)
        }
    }
}

/// What is to be written.
enum Found {
    /// The write was sent.
    Sent,
    /// The inputs are made; the rows are to be locked first, and so many of them written.
    Ordered(Option<u64>),
    /// No row can be found.
    Nothing,
}

/// Sends the write.
fn try_change(context: &mut StatementContext<'_, '_>, plan: &Arc<Plan>, run: &Run<'_>) -> Result<Found> {
    let Plan::Change(change) = &**plan else { return Err(wrong_plan()) };
    check_writable(context.session)?;
    context.session.enter_statement();
    let Workspace { inputs, parameters, scratch, keys, .. } = &mut context.engine.work;
    let first_program = match &change.ordered {
        Some(ordered) if !ordered.after_duplicate => &ordered.lock,
        _ => &change.program,
    };
    let reads_parameters = first_program.reads_parameters;
    let sent: &[u8] = if reads_parameters { parameters } else { &[] };
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch };
    let limit = change.limit.map(|limit| rows_of(limit, values.parameters)).transpose()?;
    if limit == Some(0) || !all_true(&change.guards, values.parameters, scratch)? {
        return Ok(Found::Nothing);
    }
    push_path(inputs, keys, &change.table.definition, &change.path, &values, sent, context.turn)?;
    if inputs.is_empty() {
        return Ok(Found::Nothing);
    }
    if change.ordered.is_some() {
        return Ok(Found::Ordered(limit));
    }
    let origin = run.again.keep(context.session.transaction.explicit, &context.engine.work.parameters, context.turn);
    let operation = send(context, &change.program, run.protocol)?;
    context.session.execution = Execution::Write(WriteState {
        plan: Arc::clone(plan),
        operation,
        protocol: run.protocol,
        window: Window::ALL,
        first_number: 0,
        answer_number: 0,
        rows: 0,
        parameters: Vec::new(),
        origin,
    });
    Ok(Found::Sent)
}

/// Sends a write whose inputs are in the workspace.
pub(super) fn send(
    context: &mut StatementContext<'_, '_>,
    program: &Arc<WriteProgram>,
    protocol: RowProtocol,
) -> Result<OperationId> {
    let options = write_options(context, protocol);
    let connection = context.session.connection;
    context.engine.gateway.execute(
        connection,
        &mut context.session.transaction,
        program,
        options,
        &mut context.engine.work.inputs,
        context.turn,
    )
}

/// Sends a locking read whose inputs are in the workspace.
pub(super) fn start_lock_read(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<Plan>,
    program: &Arc<WriteProgram>,
    state: ReadState,
    run: &Run<'_>,
) -> Result<()> {
    let origin = run.again.keep(context.session.transaction.explicit, &context.engine.work.parameters, context.turn);
    let options = WriteOptions { rows_max: state.rows_max, ..write_options(context, run.protocol) };
    let connection = context.session.connection;
    let inputs = &mut context.engine.work.inputs;
    let operation = context.engine.gateway.execute(
        connection,
        &mut context.session.transaction,
        program,
        options,
        inputs,
        context.turn,
    )?;
    context.session.execution = Execution::Write(WriteState {
        plan: Arc::clone(plan),
        operation,
        protocol: run.protocol,
        window: state.window,
        first_number: 0,
        answer_number: 0,
        rows: 0,
        parameters: state.parameters,
        origin,
    });
    Ok(())
}

/// What a statement came to.
#[derive(Debug)]
pub(crate) struct StatementOutcome {
    pub matched: u64,
    pub changed: u64,
    pub diagnostics: Option<Box<Diagnostics>>,
    pub outputs: Vec<Vec<u8>>,
    pub error: Option<Box<Error>>,
}

/// A write or locking read was answered.
pub(crate) fn on_statement(context: &mut StatementContext<'_, '_>, mut outcome: StatementOutcome) -> Progress {
    let mut state = match std::mem::take(&mut context.session.execution) {
        Execution::Write(state) => state,
        other => {
            context.session.execution = other;
            return super::compound::on_statement(context, outcome);
        }
    };
    let origin = std::mem::take(&mut state.origin);
    if let Some(error) = outcome.error.take() {
        note_lost_transaction(&mut context.engine.gateway, context.session);
        let is_taken = state.first_number != 0 && forget_taken_numbers(context.engine, &state.plan, &error);
        let again = (is_taken || error.code == ErrorCode::TableDefinitionChanged) && !context.session.interrupted;
        if again && !matches!(origin, Origin::None) {
            return context.execute_again(origin);
        }
        origin.release(context.turn);
        note_outcome(context.session, &state.plan, &mut outcome);
        return fail(context, &error);
    }
    origin.release(context.turn);
    let plan = Arc::clone(&state.plan);
    note_outcome(context.session, &plan, &mut outcome);
    match &*plan {
        Plan::Change(change) => {
            let StatementOutcome { matched, changed, outputs, .. } = outcome;
            let outputs = outputs.as_slice();
            say_changed(context, change, ChangedRows { matched, changed, outputs })
        }
        Plan::Insert(_) => say_inserted(context, &state),
        Plan::Select(_) => say_locked(context, state, outcome.outputs),
        Plan::Compute(_) | Plan::Control(_) => fail(context, &wrong_plan()),
    }
}

/// Notes what the rows of a statement had to say besides.
#[inline]
fn note_outcome(session: &mut Session, plan: &Plan, outcome: &mut StatementOutcome) {
    if let Some(diagnostics) = outcome.diagnostics.take() {
        let level = match plan {
            Plan::Change(change) => level_of(&change.program),
            Plan::Select(_) => WarningLevel::Warning,
            _ => WarningLevel::Note,
        };
        session.note_diagnostics(level, *diagnostics);
    }
}

/// What a statement that writes this says of values by the way.
pub(super) fn level_of(program: &WriteProgram) -> WarningLevel {
    match &program.action {
        WriteAction::Update { ignore: true, .. } | WriteAction::LockRead { .. } => WarningLevel::Warning,
        // RETURNING is not strict there.
        WriteAction::Delete if program.returning.is_some() => WarningLevel::Warning,
        // Strict rules make an error of whatever is worse.
        _ => WarningLevel::Note,
    }
}

/// Whether a number that was generated may be taken: rows that other sessions gave such a number themselves made the
/// table's counter go beyond it, but not the numbers that this block held. It asks for others then.
pub(super) fn forget_taken_numbers(engine: &mut Engine, plan: &Plan, error: &Error) -> bool {
    let Plan::Insert(insert) = plan else { return false };
    let is_taken = error.code == ErrorCode::DuplicateEntry && error.message.ends_with(".PRIMARY'");
    if is_taken {
        engine.ranges.forget_held(insert.table.definition.id);
    }
    is_taken
}

/// What became of the rows of an UPDATE or DELETE.
#[derive(Debug, Default)]
pub(super) struct ChangedRows<'o> {
    pub matched: u64,
    pub changed: u64,
    /// What RETURNING says of them, of each partition.
    pub outputs: &'o [Vec<u8>],
}

pub(super) fn say_changed(
    context: &mut StatementContext<'_, '_>,
    change: &ChangePlan,
    rows: ChangedRows<'_>,
) -> Progress {
    if let Some(header) = &change.returning {
        return say_returned(context, change, header, rows.outputs);
    }
    let ChangedRows { matched, changed, .. } = rows;
    let mut last_insert_id = 0;
    let info = &mut context.engine.work.info;
    info.clear();
    let affected_rows = match change.kind {
        ChangeKind::Delete => changed,
        ChangeKind::Update => {
            let warnings = u64::from(context.session.warning_count);
            say_numbers(info, [("Rows matched: ", matched), ("  Changed: ", changed), ("  Warnings: ", warnings)]);
            last_insert_id = context.session.insert_id_argument.unwrap_or(0);
            if context.session.found_rows_wanted { matched } else { changed }
        }
    };
    ok(context, Changed { affected_rows, last_insert_id, has_info: true })
}

/// Says the rows of RETURNING, which are all here; entries in their order.
fn say_returned(
    context: &mut StatementContext<'_, '_>,
    change: &ChangePlan,
    header: &ResultHeader,
    outputs: &[Vec<u8>],
) -> Progress {
    let is_sorted = matches!(&change.program.returning, Some(Returning { output: Output::Entries { .. }, .. }));
    let mut rows = 0;
    if !is_sorted {
        context.sink.header(header, &context.session.completion());
        for output in outputs {
            rows += count_rows(output);
            context.sink.row_packets(output);
        }
        return finish(context, rows);
    }
    // The rows are gone, so the answer may not fail for the order's sake.
    let all = SortRequest { distinct: false, wanted: u64::MAX, counts_all: false };
    let mut sorter = Sorter::begin(all, usize::MAX, &mut context.engine.work.sorters);
    if let Err(error) = outputs.iter().try_for_each(|output| sorter.take(output)) {
        return fail(context, &error);
    }
    context.sink.header(header, &context.session.completion());
    rows += sorter.len() as u64;
    sorter.give_all(Window::ALL, context.sink.output());
    sorter.retire(&mut context.engine.work.sorters);
    finish(context, rows)
}

/// Appends each text and its number, without the machinery of formatting, for every write says so.
fn say_numbers<const N: usize>(info: &mut String, parts: [(&str, u64); N]) {
    let mut bytes = std::mem::take(info).into_bytes();
    for (text, number) in parts {
        bytes.extend_from_slice(text.as_bytes());
        append_unsigned(number, &mut bytes);
    }
    // Texts and digits are well-formed.
    *info = String::from_utf8(bytes).unwrap_or_default();
}

fn say_inserted(context: &mut StatementContext<'_, '_>, state: &WriteState) -> Progress {
    use std::fmt::Write;
    let info = &mut context.engine.work.info;
    info.clear();
    if state.rows > 1 {
        // Writing to a String cannot fail.
        let _ = write!(info, "Records: {}  Duplicates: 0  Warnings: {}", state.rows, context.session.warning_count);
    }
    let mut last_insert_id = context.session.insert_id_argument.unwrap_or(state.answer_number);
    if state.first_number != 0 {
        context.session.last_insert_id = state.first_number;
        last_insert_id = state.first_number;
    }
    ok(context, Changed { affected_rows: state.rows, last_insert_id, has_info: true })
}

/// Says the rows of a locking read, which are all here.
fn say_locked(context: &mut StatementContext<'_, '_>, state: WriteState, outputs: Vec<Vec<u8>>) -> Progress {
    let plan = Arc::clone(&state.plan);
    let Plan::Select(select) = &*plan else { return fail(context, &wrong_plan()) };
    let mut read = ReadState {
        plan: Arc::clone(&state.plan),
        operation: state.operation,
        protocol: state.protocol,
        is_lookup: false,
        header_said: false,
        header_bytes: 0,
        awaits_room: false,
        rows_max: u32::MAX,
        window: state.window,
        rows: 0,
        gather: super::read::gather_state(context.engine, select, &state.window),
        parameters: state.parameters,
        references: Vec::new(),
        origin: Origin::None,
    };
    let mut failed = None;
    for output in &outputs {
        let taken = match &mut read.gather {
            GatherState::Stream => {
                if !read.header_said {
                    context.sink.header(&select.header, &context.session.completion());
                    read.header_said = true;
                }
                let rows = count_rows(output);
                let (packets, taken) = read.window.cut(output, rows);
                context.sink.row_packets(packets);
                read.rows += if select.calc_found_rows { rows } else { taken };
                Ok(())
            }
            GatherState::Sort(sorter) => sorter.take(output),
            GatherState::Aggregate(accumulators) => merge_states(accumulators, output),
        };
        if let Err(error) = taken {
            failed = Some(error);
            break;
        }
    }
    for output in outputs {
        context.turn.buffers.give(output);
    }
    match failed {
        Some(error) => fail(context, &error),
        None => settle(context, read),
    }
}

fn count_rows(mut packets: &[u8]) -> u64 {
    let mut rows = 0;
    while !packets.is_empty() {
        packets = &packets[row_start(packets, 1)..];
        rows += 1;
    }
    rows
}
