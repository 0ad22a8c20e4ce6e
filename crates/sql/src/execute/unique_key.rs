//! UPDATE and DELETE of the one row that has a unique key.
//!
//! The entry of the key is read without a lock and names the row. The row is then changed by primary key in
//! its one partition, if it still satisfies the whole condition under its lock. A writer that changes the key
//! locks the row before the entry, as this statement does, so the two cannot deadlock.
//!
//! If the row does not satisfy the condition, it has lost the key, or it fails another part of the condition.
//! A read of the row decides: with the key and without the condition, it is the result that no row changes.
//! Otherwise the entry is read again. (An entry that names the same row proves nothing, because the key may
//! have left the row and come back.)
//!
//! The number of attempts has no bound: each one that fails means that another transaction has committed a
//! move of the key.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_gateway::event::Next;
use junctor_gateway::gateway::{Gateway, ReadOptions};
use junctor_gateway::{Event, ReadRequest, RowBound, TurnContext, require};
use junctor_model::error::{Error, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::{append_escaped, append_row_key};
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_model::value::ValueRef;
use junctor_signals::diagnostics::Diagnostics;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::completion::{fail, interrupted};
use super::context::StatementContext;
use super::key::Values;
use super::resume::unexpected;
use super::retry::{RetryInput, RetryState};
use super::state::{Execution, PlanInput, Workspace};
use super::transaction::note_lost_transaction;
use super::write::{ChangedRows, StatementOutcome, finish_change, level_of, write_options};
use crate::plan::{ChangePlan, UniqueKeyChange};
use crate::result::Progress;

/// A change by a unique key at one of its steps.
#[derive(Debug)]
pub(crate) struct UniqueKeyState {
    pub operation: OperationId,
    pub plan: Arc<ChangePlan>,
    protocol: RowProtocol,
    step: Step,
    /// Whether the statement must fail with error 1317 before its next step.
    is_stopped: bool,
    parameters: Vec<u8>,
    /// The key of the entry.
    key: Vec<u8>,
    /// Partition and primary key of the row tried last, as the entry contains them; empty before.
    reference: Vec<u8>,
    /// The diagnostics of the row tried last.
    diagnostics: Option<Box<Diagnostics>>,
    retry: RetryInput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The read of the entry without a lock.
    Read,
    /// The locking read of an entry that the other read did not find.
    LockEntry,
    /// The change of the row.
    Change,
    /// The read without a lock of a row that the change did not accept.
    ReadRefused,
}

impl UniqueKeyState {
    /// Stops the statement. Returns true if it was reading, so that nothing must be rolled back.
    pub(super) fn stop(&mut self, gateway: &mut Gateway, turn: &mut TurnContext<'_>) -> bool {
        if matches!(self.step, Step::Read | Step::ReadRefused) {
            gateway.end_read(self.operation, turn);
            return true;
        }
        self.is_stopped = true;
        gateway.interrupt_statement(self.operation, turn);
        false
    }

    /// Returns the memory to the thread's buffers.
    pub(super) fn release(self, turn: &mut TurnContext<'_>) {
        self.retry.release(turn);
        for buffer in [self.parameters, self.key, self.reference] {
            turn.buffers.give(buffer);
        }
    }

    /// Whether the images of a read contain a row with the key.
    fn has_key(&self, images: &[u8]) -> bool {
        let Some((_, image)) = images.split_first_chunk::<4>() else { return false };
        let table = &self.plan.table;
        let row = RowView::new(&table.row_format, image);
        let (mut entry, mut key) = (Vec::new(), Vec::new());
        append_row_key(&table.definition.columns, &self.unique_key().keys.columns, row, &mut entry);
        append_escaped(&entry, &mut key);
        key == self.key
    }

    fn unique_key(&self) -> &UniqueKeyChange {
        let Some(unique_key) = &self.plan.unique_key else {
            junctor_gateway::invariant::fail("a change by a unique key has one", format_args!("its plan has none"))
        };
        unique_key
    }
}

/// Sends the read of the entry. Returns false if no row can have the key. The parameters are in the
/// workspace.
pub(super) fn start_unique_key(
    context: &mut StatementContext<'_, '_>,
    (plan, unique_key): (&Arc<ChangePlan>, &UniqueKeyChange),
    input: &PlanInput<'_>,
) -> Result<bool> {
    let Workspace { parameters, scratch, key_builder, .. } = &mut context.engine.work;
    scratch.set_value_rules(context.session.variables.value_rules());
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch };
    let mut key = context.turn.buffers.take(0);
    // The key column of an entry is a binary string that contains the key bytes.
    let mut push = |_, _, entry: &[u8]| append_escaped(entry, &mut key);
    key_builder.build_keys(&plan.table.definition, &unique_key.keys, &values, &mut push)?;
    if key.is_empty() {
        context.turn.buffers.give(key);
        return Ok(false);
    }
    let in_transaction = context.session.transaction.explicit;
    let retry = input.input.keep(in_transaction, &context.engine.work.parameters, context.turn);
    let state = UniqueKeyState {
        operation: OperationId::default(),
        plan: Arc::clone(plan),
        protocol: input.protocol,
        step: Step::Read,
        is_stopped: false,
        parameters: context.copy_parameters(),
        key,
        reference: Vec::new(),
        diagnostics: None,
        retry,
    };
    send(context, state, Step::Read)?;
    Ok(true)
}

/// Sends a step.
fn send(context: &mut StatementContext<'_, '_>, mut state: UniqueKeyState, step: Step) -> Result<()> {
    let plan = Arc::clone(&state.plan);
    let unique_key = state.unique_key();
    let (inputs, buffers) = (&mut context.engine.work.inputs, &mut *context.turn.buffers);
    match step {
        Step::Read | Step::LockEntry => {
            inputs.begin(unique_key.lookup.table.definition.partition_count, buffers);
            inputs.push_key(&state.key, &[], buffers);
        }
        Step::Change | Step::ReadRefused => {
            let partition_count = plan.table.definition.partition_count;
            let [high, low, key @ ..] = state.reference.as_slice() else { return Err(Error::broken_reply()) };
            let partition = u16::from_be_bytes([*high, *low]);
            require!(partition < partition_count, "a unique entry names a partition of its table");
            let sent: &[u8] = if unique_key.program.reads_parameters { &state.parameters } else { &[] };
            inputs.begin(partition_count, buffers);
            inputs.push_key_at(partition, key, sent, buffers);
        }
    }
    let sent = match step {
        Step::Read | Step::ReadRefused => {
            let program = if step == Step::Read { &unique_key.lookup } else { &unique_key.refused };
            let warnings_max = context.session.variables.warnings_max;
            let options = ReadOptions { protocol: state.protocol, bound: RowBound::Partition(u32::MAX), warnings_max };
            let (transaction, inputs) = (&mut context.session.transaction, &mut context.engine.work.inputs);
            let request = ReadRequest { program, options, inputs };
            // The read returns what is committed last even in REPEATABLE READ, because a change does not
            // use the transaction's snapshot to find its rows.
            let connection = context.session.connection;
            context.engine.gateway.read_latest(connection, transaction, request, context.turn)
        }
        Step::LockEntry => context.send_write(&unique_key.entry_lock, write_options(context, state.protocol)),
        Step::Change => context.send_write(&unique_key.program, write_options(context, state.protocol)),
    };
    match sent {
        Ok(operation) => {
            state.operation = operation;
            state.step = step;
            context.session.execution = Execution::UniqueKey(state);
            Ok(())
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            state.release(context.turn);
            Err(error)
        }
    }
}

/// Continues the change with the reply to its step.
pub(super) fn resume_unique_key(
    context: &mut StatementContext<'_, '_>,
    state: UniqueKeyState,
    event: Event,
) -> Progress {
    match (state.step, event) {
        (Step::Read, Event::Rows { output, next, .. }) => {
            require!(next == Next::Done, "the read of one unique entry has one reply");
            let entries = Arc::clone(&state.unique_key().lookup.table);
            let reference = reference_in(&entries, &output);
            let progress = match reference {
                Ok(None) => send_or_fail(context, state, Step::LockEntry),
                Ok(Some(reference)) => try_row(context, state, reference),
                Err(error) => fail_with(context, state, &error),
            };
            context.turn.buffers.give(output);
            progress
        }
        (Step::ReadRefused, Event::Rows { output, next, .. }) => {
            require!(next == Next::Done, "the read of one row has one reply");
            let has_key = state.has_key(&output);
            context.turn.buffers.give(output);
            match has_key {
                true => finish(context, state, ChangedRows::default()),
                false => send_or_fail(context, state, Step::Read),
            }
        }
        (Step::Read | Step::ReadRefused, Event::ReadFailed { error, .. }) => fail_or_retry(context, state, &error),
        (Step::LockEntry | Step::Change, Event::Statement { matched, changed, diagnostics, outputs, error, .. }) => {
            let outcome = StatementOutcome { matched, changed, diagnostics, outputs, error };
            on_outcome(context, state, outcome)
        }
        (_, other) => unexpected("a change by a unique key", &other),
    }
}

/// Sends the change of the row that an entry names.
fn try_row(context: &mut StatementContext<'_, '_>, mut state: UniqueKeyState, reference: &[u8]) -> Progress {
    let mut copy = context.turn.buffers.take(reference.len());
    copy.extend_from_slice(reference);
    context.turn.buffers.give(std::mem::replace(&mut state.reference, copy));
    send_or_fail(context, state, Step::Change)
}

/// Continues with the outcome of a locking read of the entry, or of the change.
fn on_outcome(
    context: &mut StatementContext<'_, '_>,
    mut state: UniqueKeyState,
    mut outcome: StatementOutcome,
) -> Progress {
    if let Some(error) = outcome.error.take() {
        note_lost_transaction(&mut context.engine.gateway, context.session);
        state.diagnostics = outcome.diagnostics;
        return fail_or_retry(context, state, &error);
    }
    let outputs = outcome.outputs;
    match state.step {
        Step::LockEntry => {
            let entries = Arc::clone(&state.unique_key().lookup.table);
            let found = outputs.iter().find(|images| !images.is_empty());
            let progress = match found.map(|images| reference_in(&entries, images)).transpose() {
                Err(error) => fail_with(context, state, &error),
                Ok(Some(Some(reference))) => try_row(context, state, reference),
                // No row has the key, and from REPEATABLE READ on none can get it while the lock is held.
                Ok(_) => finish(context, state, ChangedRows::default()),
            };
            outputs.into_iter().for_each(|output| context.turn.buffers.give(output));
            progress
        }
        _ => {
            state.diagnostics = outcome.diagnostics;
            match outcome.matched {
                0 => send_or_fail(context, state, Step::ReadRefused),
                matched => finish(context, state, ChangedRows { matched, changed: outcome.changed, outputs }),
            }
        }
    }
}

fn send_or_fail(context: &mut StatementContext<'_, '_>, state: UniqueKeyState, step: Step) -> Progress {
    if state.is_stopped || context.session.interrupted {
        return fail_with(context, state, &interrupted());
    }
    match send(context, state, step) {
        Ok(()) => Progress::Waiting,
        Err(error) => fail(context, &error),
    }
}

fn finish(context: &mut StatementContext<'_, '_>, mut state: UniqueKeyState, rows: ChangedRows) -> Progress {
    note_diagnostics(context, &mut state);
    let plan = Arc::clone(&state.plan);
    state.release(context.turn);
    finish_change(context, &plan, rows)
}

/// Fails the statement, or starts it again if the table was changed meanwhile.
fn fail_or_retry(context: &mut StatementContext<'_, '_>, mut state: UniqueKeyState, error: &Error) -> Progress {
    let may_start_again = !state.is_stopped && !context.session.interrupted && !state.retry.is_none();
    if may_start_again && context.may_succeed_after(error) {
        let input = std::mem::take(&mut state.retry);
        state.release(context.turn);
        context.session.execution = Execution::Retry(Box::new(RetryState::after(error, input)));
        return Progress::Waiting;
    }
    fail_with(context, state, error)
}

fn fail_with(context: &mut StatementContext<'_, '_>, mut state: UniqueKeyState, error: &Error) -> Progress {
    note_diagnostics(context, &mut state);
    state.release(context.turn);
    fail(context, error)
}

fn note_diagnostics(context: &mut StatementContext<'_, '_>, state: &mut UniqueKeyState) {
    if let Some(diagnostics) = state.diagnostics.take() {
        context.session.note_diagnostics(level_of(&state.plan.program), *diagnostics);
    }
}

/// The reference in the image of an entry: partition and primary key of its row. `None` without an image.
fn reference_in<'i>(entries: &'i TableLayout, images: &'i [u8]) -> Result<Option<&'i [u8]>> {
    let Some((_, image)) = images.split_first_chunk::<4>() else { return Ok(None) };
    match RowView::new(&entries.row_format, image).column(ColumnNumber(1)) {
        ValueRef::Bytes(reference) => Ok(Some(reference)),
        _ => Err(Error::broken_reply()),
    }
}
