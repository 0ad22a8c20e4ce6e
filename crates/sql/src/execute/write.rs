//! Hot path: at most 200 instructions per update, not counting its key.
//!
//! UPDATE, DELETE and locking reads, and the outcome of every write that needs only one request to the data
//! plane.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_gateway::gateway::{AutoIncrementReservation, WriteOptions, WriteRequest};
use junctor_gateway::invariant;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;
use junctor_model::row_encoding::append_unsigned;
use junctor_model::schema::TableLayout;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::program::{LockMode, Output, Returning, RowProtocol, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::compound::start_ordered_change;
use super::context::StatementContext;
use super::engine::Engine;
use super::insert::InsertedNumbers;
use super::key::{InputWriter, Values};
use super::numbers::AutoIncrementRequest;
use super::read::{all_true, final_step_state, push_path, rows_of};
use super::received::{RowTarget, process_rows};
use super::retry::{RetryInput, RetryState};
use super::savepoint::newest_savepoint;
use super::session::Session;
use super::sorter::{SortRequest, Sorter};
use super::state::{Execution, LockReadState, PlanInput, ReadState, Workspace, WriteForm, WriteState};
use super::transaction::note_lost_transaction;
use super::unique_key::start_unique_key;
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{ChangeKind, ChangePlan, InsertPlan};
use crate::result::{Progress, ResultHeader};

/// The options of a write, as given by the session's variables.
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
        durability: context.session.variables.commit_durability,
    }
}

/// Refuses writes in a READ ONLY transaction with error 1792. Runs before the statement enters its
/// transaction, because a refused statement must not consume the characteristics that SET TRANSACTION has set
/// for the next transaction.
#[inline]
pub(super) fn check_writable(session: &Session, table: &TableLayout) -> Result<()> {
    if session.only_reads() && !table.definition.is_temporary() { Err(in_read_only_transaction()) } else { Ok(()) }
}

/// Error 1792 of a write in a READ ONLY transaction.
#[cold]
pub(crate) fn in_read_only_transaction() -> Box<Error> {
    Error::new(ErrorCode::ReadOnlyTransaction, "Cannot execute statement in a READ ONLY transaction.")
}

/// Whether a locking read is FOR UPDATE, which a READ ONLY transaction refuses.
pub(super) fn locks_exclusively(program: &WriteProgram) -> bool {
    matches!(program.action, WriteAction::LockRead { mode: LockMode::Exclusive, .. })
}

impl StatementContext<'_, '_> {
    /// Sends a write or locking read whose inputs are in the workspace.
    pub(super) fn send_write(&mut self, program: &Arc<WriteProgram>, options: WriteOptions) -> Result<OperationId> {
        let connection = self.session.connection;
        let (transaction, inputs) = (&mut self.session.transaction, &mut self.engine.work.inputs);
        self.engine.gateway.execute(connection, transaction, WriteRequest { program, options, inputs }, self.turn)
    }

    /// Requests AUTO_INCREMENT values from the main block.
    pub(super) fn reserve_numbers(&mut self, table: TableId, request: AutoIncrementRequest) -> Result<OperationId> {
        let AutoIncrementRequest { count, beyond, .. } = request;
        let wanted = AutoIncrementReservation { table, count, beyond };
        self.engine.gateway.reserve_auto_increment(self.session.connection, wanted, self.turn)
    }
}

/// Starts an UPDATE or DELETE. The parameters are in the workspace.
pub(crate) fn start_change(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ChangePlan>,
    input: &PlanInput<'_>,
) -> Progress {
    let started = send_change(context, plan, input);
    context.session.note_evaluated(WarningLevel::Warning, &mut context.engine.work.scratch);
    match started {
        Ok(Started::Sent) => Progress::Waiting,
        Ok(Started::Ordered(limit)) => start_ordered_change(context, plan, input, limit),
        Ok(Started::Nothing) => finish_change(context, plan, ChangedRows::default()),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            fail(context, &error)
        }
    }
}

/// The result of starting an UPDATE or DELETE.
enum Started {
    /// The write was sent.
    Sent,
    /// The inputs are complete, and the plan has several steps (see [`start_ordered_change`]). At most this
    /// number of rows is written.
    Ordered(Option<u64>),
    /// No row can match; nothing was sent.
    Nothing,
}

fn send_change(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<ChangePlan>,
    input: &PlanInput<'_>,
) -> Result<Started> {
    check_writable(context.session, &plan.table)?;
    context.session.enter_statement();
    let Workspace { inputs, parameters, scratch, key_builder, .. } = &mut context.engine.work;
    let first_program = match &plan.ordered {
        Some(ordered) if !ordered.after_duplicate => &ordered.locking_program,
        _ => &plan.program,
    };
    let sent: &[u8] = if first_program.reads_parameters { parameters } else { &[] };
    scratch.set_value_rules(context.session.variables.value_rules());
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch };
    let limit = plan.limit.map(|limit| rows_of(limit, values.parameters)).transpose()?;
    if limit == Some(0) || !all_true(&plan.one_time_filter, values.parameters, scratch)? {
        return Ok(Started::Nothing);
    }
    if let Some(unique_key) = &plan.unique_key {
        let is_sent = start_unique_key(context, (plan, unique_key), input)?;
        return Ok(if is_sent { Started::Sent } else { Started::Nothing });
    }
    let mut writer = InputWriter { inputs, turn: context.turn, parameters: sent };
    push_path(&mut writer, key_builder, &plan.table.definition, &plan.path, &values)?;
    if inputs.is_empty() {
        return Ok(Started::Nothing);
    }
    if plan.ordered.is_some() {
        return Ok(Started::Ordered(limit));
    }
    let in_transaction = context.session.transaction.explicit;
    let retry = input.input.keep(in_transaction, &context.engine.work.parameters, context.turn);
    let options = write_options(context, input.protocol);
    let operation = context.send_write(&plan.program, options)?;
    let form = WriteForm::Change(Arc::clone(plan));
    context.session.execution = Execution::Write(WriteState { operation, form, retry });
    Ok(Started::Sent)
}

/// Sends a locking query whose inputs are in the workspace. Each partition locks and returns at most
/// `rows_max` rows.
pub(super) fn send_lock_read(
    context: &mut StatementContext<'_, '_>,
    program: &Arc<WriteProgram>,
    state: LockReadState,
    rows_max: u32,
    input: &PlanInput<'_>,
) -> Result<()> {
    let in_transaction = context.session.transaction.explicit;
    let retry = input.input.keep(in_transaction, &context.engine.work.parameters, context.turn);
    let options = WriteOptions { rows_max, ..write_options(context, input.protocol) };
    let operation = context.send_write(program, options)?;
    let form = WriteForm::LockRead(state);
    context.session.execution = Execution::Write(WriteState { operation, form, retry });
    Ok(())
}

/// The outcome of a write or locking read.
#[derive(Debug)]
pub(crate) struct StatementOutcome {
    pub matched: u64,
    pub changed: u64,
    pub diagnostics: Option<Box<Diagnostics>>,
    pub outputs: Vec<Vec<u8>>,
    pub error: Option<Box<Error>>,
}

/// Continues a write or locking read with its outcome.
pub(crate) fn resume_write(
    context: &mut StatementContext<'_, '_>,
    state: WriteState,
    mut outcome: StatementOutcome,
) -> Progress {
    let WriteState { form, retry, .. } = state;
    if let Some(error) = outcome.error.take() {
        return fail_write(context, (&form, retry), &error, outcome.diagnostics);
    }
    retry.release(context.turn);
    note_diagnostics(context.session, &form, outcome.diagnostics);
    match form {
        WriteForm::Change(plan) => {
            let StatementOutcome { matched, changed, outputs, .. } = outcome;
            finish_change(context, &plan, ChangedRows { matched, changed, outputs })
        }
        WriteForm::Insert(_, numbered) => finish_insert(context, numbered),
        WriteForm::LockRead(state) => finish_lock_read(context, state, outcome.outputs),
    }
}

/// Fails the write, or starts the statement again if its plan or its AUTO_INCREMENT values were outdated.
fn fail_write(
    context: &mut StatementContext<'_, '_>,
    (form, retry): (&WriteForm, RetryInput),
    error: &Error,
    diagnostics: Option<Box<Diagnostics>>,
) -> Progress {
    note_lost_transaction(&mut context.engine.gateway, context.session);
    let is_taken = match form {
        WriteForm::Insert(plan, numbered) if numbered.first_number != 0 => {
            forget_taken_numbers(context.engine, plan, error)
        }
        _ => false,
    };
    let may_start_again = !context.session.interrupted && !retry.is_none();
    if may_start_again && (is_taken || context.may_succeed_after(error)) {
        context.session.execution = Execution::Retry(Box::new(RetryState::after(error, retry)));
        return Progress::Waiting;
    }
    retry.release(context.turn);
    note_diagnostics(context.session, form, diagnostics);
    fail(context, error)
}

/// Adds the warnings of a statement's rows to the diagnostics.
#[inline]
fn note_diagnostics(session: &mut Session, form: &WriteForm, diagnostics: Option<Box<Diagnostics>>) {
    if let Some(diagnostics) = diagnostics {
        let level = match form {
            WriteForm::Change(plan) => level_of(&plan.program),
            WriteForm::LockRead(_) => WarningLevel::Warning,
            WriteForm::Insert(..) => WarningLevel::Note,
        };
        session.note_diagnostics(level, *diagnostics);
    }
}

/// The level of the warnings that a program's rows cause.
pub(super) fn level_of(program: &WriteProgram) -> WarningLevel {
    match &program.action {
        WriteAction::Update { ignore: true, .. }
        | WriteAction::Delete { ignore: true }
        | WriteAction::LockRead { .. } => WarningLevel::Warning,
        // RETURNING of a DELETE is not evaluated strictly.
        WriteAction::Delete { .. } if program.returning.is_some() => WarningLevel::Warning,
        // In strict mode, every condition that is worse than a note is an error.
        _ => WarningLevel::Note,
    }
}

/// If the error is a duplicate of the primary key that a generated value may have caused, discards the range
/// of values that this block holds, and returns true. An explicit value of another session raises the table's
/// counter, but not the range of this block.
pub(super) fn forget_taken_numbers(engine: &mut Engine, plan: &InsertPlan, error: &Error) -> bool {
    let is_taken = error.code == ErrorCode::DuplicateEntry && error.message.ends_with(".PRIMARY'");
    if is_taken {
        engine.ranges.forget_held(plan.table.definition.id);
    }
    is_taken
}

/// The outcome of an UPDATE or DELETE.
#[derive(Debug, Default)]
pub(super) struct ChangedRows {
    pub matched: u64,
    pub changed: u64,
    /// The rows of RETURNING, one buffer for each partition.
    pub outputs: Vec<Vec<u8>>,
}

/// Sends the answer of an UPDATE or DELETE.
pub(super) fn finish_change(context: &mut StatementContext<'_, '_>, plan: &ChangePlan, rows: ChangedRows) -> Progress {
    if let Some(header) = &plan.returning {
        return answer_returned(context, plan, header, rows.outputs);
    }
    let ChangedRows { matched, changed, .. } = rows;
    finish_changed(context, plan.kind, (matched, changed))
}

/// Sends the counts of an UPDATE or DELETE: the rows that it found, and those that it changed.
#[inline]
pub(super) fn finish_changed(
    context: &mut StatementContext<'_, '_>,
    kind: ChangeKind,
    (matched, changed): (u64, u64),
) -> Progress {
    let mut last_insert_id = 0;
    let info = &mut context.engine.work.info;
    info.clear();
    let affected_rows = match kind {
        ChangeKind::Delete => changed,
        ChangeKind::Update => {
            let warnings = u64::from(context.session.warning_count);
            match (matched, changed, warnings) {
                // Most updates change one row.
                (1, 1, 0) => info.push_str("Rows matched: 1  Changed: 1  Warnings: 0"),
                _ => append_numbers(
                    info,
                    [("Rows matched: ", matched), ("  Changed: ", changed), ("  Warnings: ", warnings)],
                ),
            }
            last_insert_id = context.session.insert_id_argument.unwrap_or(0);
            if context.session.found_rows_wanted { matched } else { changed }
        }
    };
    finish_ok(context, ChangeCounts { affected_rows, last_insert_id, has_info: true })
}

/// Sends the rows of RETURNING, sorted if they are sort entries.
fn answer_returned(
    context: &mut StatementContext<'_, '_>,
    plan: &ChangePlan,
    header: &ResultHeader,
    outputs: Vec<Vec<u8>>,
) -> Progress {
    context.sink.header(header, &context.session.completion());
    let is_sorted = matches!(&plan.program.returning, Some(Returning { output: Output::Entries { .. }, .. }));
    let target = match is_sorted {
        false => RowTarget::Answer { rows: 0 },
        true => {
            // The rows are already written, so the answer must not fail while they are sorted. The sorter
            // therefore has no memory limit.
            let all = SortRequest { distinct: false, wanted: u64::MAX, counts_all: false };
            RowTarget::SortedAnswer(Sorter::begin(all, usize::MAX, &mut context.engine.work.sorters))
        }
    };
    process_rows(context, outputs, target)
}

/// Appends each text and its number. Every UPDATE needs this, and `write!` would be slower.
fn append_numbers<const N: usize>(info: &mut String, parts: [(&str, u64); N]) {
    let mut bytes = std::mem::take(info).into_bytes();
    for (text, number) in parts {
        bytes.extend_from_slice(text.as_bytes());
        append_unsigned(number, &mut bytes);
    }
    let Ok(text) = String::from_utf8(bytes) else {
        invariant::fail("texts and digits are UTF-8", format_args!("{parts:?}"));
    };
    *info = text;
}

/// Sends the answer of an INSERT.
fn finish_insert(context: &mut StatementContext<'_, '_>, numbered: InsertedNumbers) -> Progress {
    use std::fmt::Write;
    let InsertedNumbers { rows, first_number, answer_number } = numbered;
    let info = &mut context.engine.work.info;
    info.clear();
    if rows > 1 {
        // Writing to a String cannot fail.
        let _ = write!(info, "Records: {rows}  Duplicates: 0  Warnings: {}", context.session.warning_count);
    }
    let mut last_insert_id = context.session.insert_id_argument.unwrap_or(answer_number);
    if first_number != 0 {
        context.session.last_insert_id = first_number;
        last_insert_id = first_number;
    }
    context.session.insert_id.end_statement();
    finish_ok(context, ChangeCounts { affected_rows: rows, last_insert_id, has_info: true })
}

/// Combines and sends the rows of a locking query.
fn finish_lock_read(context: &mut StatementContext<'_, '_>, state: LockReadState, outputs: Vec<Vec<u8>>) -> Progress {
    let LockReadState { plan, protocol, window, parameters } = state;
    let final_step = final_step_state(context.engine, &plan, &window);
    let read = ReadState { parameters, ..ReadState::new(plan, protocol, (window, u32::MAX), final_step) };
    process_rows(context, outputs, RowTarget::LockRead(read))
}
