//! Runs a compound statement: sends the next step after each reply, and ends the statement.

use junctor_gateway::epoch::has_lost_node;
use junctor_gateway::{Event, TurnContext};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::end_transaction::Ending;

use super::change::{self, Change};
use super::insert::{self, Insert};
use super::load::{self, DiscardState};
use super::modify::{self, Modification};
use super::source::{continue_source, resume_source};
use super::state::{ChangeWork, CompoundState, Step, StepState, Work};
use crate::execute::completion::{fail, interrupted};
use crate::execute::context::StatementContext;
use crate::execute::resume::{operation_of, unexpected};
use crate::execute::retry::RetryState;
use crate::execute::schema::undo_creation;
use crate::execute::session::Session;
use crate::execute::state::Execution;
use crate::execute::transaction::note_lost_transaction;
use crate::execute::write::{ChangedRows, StatementOutcome, finish_change, finish_changed};
use crate::result::Progress;

/// The action that follows a step.
pub(super) enum Next {
    /// Another step has been sent.
    Wait,
    /// The client has been asked for the next part of its file.
    AwaitInput,
    /// All rows are written.
    Done,
    /// The statement must start again, with another plan or other AUTO_INCREMENT values. It has written
    /// nothing.
    Retry,
}

/// Opens the transaction that the statement needs, unless one is open. Returns true if the statement opened
/// it and must end it.
pub(super) fn open_transaction_if_none(session: &mut Session) -> bool {
    let owns = !session.transaction.explicit;
    session.transaction.explicit = true;
    owns
}

/// Continues after a step was sent, could not be sent, or was the last one.
pub(super) fn continue_steps(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    next: Result<Next>,
) -> Progress {
    match next {
        Ok(Next::Wait) => {
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(Next::AwaitInput) => {
            context.session.execution = Execution::Compound(state);
            Progress::AwaitsInput
        }
        Ok(Next::Done) => commit(context, state),
        Ok(Next::Retry) => {
            let StepState { retry, parameters, owns_transaction, .. } = state.steps;
            context.turn.buffers.give(parameters);
            if owns_transaction {
                // The transaction has at most a snapshot, so nothing needs to be rolled back.
                context.engine.gateway.forget(&mut context.session.transaction);
                context.session.transaction_ended();
            }
            context.session.execution = Execution::Retry(Box::new(RetryState::of_input(retry)));
            Progress::Waiting
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            if let Some(source) = state.work.take_source() {
                source.stop(context);
            }
            undo(context, state, error)
        }
    }
}

/// Continues a compound statement with the reply to one of its steps.
pub(in crate::execute) fn resume_compound(
    context: &mut StatementContext<'_, '_>,
    state: Box<CompoundState>,
    event: Event,
) -> Progress {
    if state.work.awaits(operation_of(&event)) {
        return match &state.work {
            Work::Modify(..) => modify::resume_query(context, state, event),
            _ => resume_source(context, state, event),
        };
    }
    match event {
        Event::Statement { matched, changed, diagnostics, outputs, error, .. } => {
            let outcome = StatementOutcome { matched, changed, diagnostics, outputs, error };
            resume_step(context, state, outcome)
        }
        Event::AutoIncrement { first, count, error, .. } => {
            super::source::resume_numbers(context, state, (first, count), error)
        }
        Event::Ended { error, .. } => resume_ended(context, state, error),
        Event::File { step, bytes, .. } => load::resume_file(context, state, step, bytes),
        Event::Undone { .. } => fail_undone(context, state),
        other => unexpected("a write of several steps", &other),
    }
}

fn resume_step(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    mut outcome: StatementOutcome,
) -> Progress {
    if outcome.error.is_some() {
        note_lost_transaction(&mut context.engine.gateway, context.session);
    }
    let mut outputs = std::mem::take(&mut outcome.outputs);
    // An autocommit statement that succeeded has committed, so it is too late to stop it.
    let is_committed = outcome.error.is_none() && !context.session.transaction.explicit;
    let CompoundState { steps, work } = &mut *state;
    let next = match work {
        _ if steps.is_stopped && !is_committed => Err(error_of_stopped(outcome.error.take())),
        Work::Insert(plan, work) => insert::on_outcome(context, &mut Insert { plan, steps, work }, outcome, &outputs),
        Work::Change(plan, work) => {
            change::on_outcome(context, &mut Change::new(plan, steps, work), outcome, &mut outputs)
        }
        Work::Modify(plan, work) => modify::on_outcome(context, &mut Modification { plan, steps, work }, outcome),
    };
    for output in outputs {
        context.turn.buffers.give(output);
    }
    continue_steps(context, state, next)
}

/// Runs the step that the statement has requested instead of a request to the data plane. Does nothing if
/// another step is pending.
pub(in crate::execute) fn continue_compound(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Compound(mut state) = std::mem::take(&mut context.session.execution) else {
        unexpected_step("a step of a compound statement for a statement that is none")
    };
    let CompoundState { steps, work } = &mut *state;
    let next = match work {
        Work::Insert(plan, work) => continue_source(context, &mut Insert { plan, steps, work }),
        Work::Change(plan, work) if matches!(steps.step, Step::ContinueRows) => Some(match steps.is_stopped {
            true => Err(interrupted()),
            false => Change::new(plan, steps, work).write_next(context),
        }),
        Work::Change(..) => None,
        Work::Modify(plan, work) => Modification { plan, steps, work }.continue_step(context),
    };
    match next {
        Some(next) => continue_steps(context, state, next),
        None => {
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
    }
}

/// The error of a stopped statement: that of its last step. If that step succeeded, or the statement would
/// have continued after the error, the result is error 1317.
fn error_of_stopped(error: Option<Box<Error>>) -> Box<Error> {
    let continues = |error: &Error| is_ignorable(error.code) || error.code == ErrorCode::TableDefinitionChanged;
    error.filter(|error| !continues(error)).unwrap_or_else(interrupted)
}

/// All rows are written: commits the transaction if it is the statement's own.
fn commit(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>) -> Progress {
    if !state.steps.owns_transaction {
        return complete(context, state);
    }
    match context.end_transaction(Ending::Commit) {
        Ok(Some(operation)) => {
            state.steps.operation = operation;
            state.steps.step = Step::Commit;
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(None) => {
            context.session.transaction_ended();
            complete(context, state)
        }
        Err(error) => undo(context, state, error),
    }
}

/// Rolls back the statement's writes before its error is sent.
fn undo(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>, error: Box<Error>) -> Progress {
    let requested = match state.steps.owns_transaction {
        true => context.end_transaction(Ending::Rollback),
        false => context.undo_statements(state.steps.before),
    };
    match requested {
        Ok(Some(operation)) => {
            state.steps.operation = operation;
            state.steps.step = Step::Undo(error);
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(None) => {
            if state.steps.owns_transaction {
                context.session.transaction_ended();
            }
            fail_released(context, *state, error)
        }
        Err(refused) => {
            // The rollback cannot be requested. Closing the connection rolls the transaction back, including
            // these writes.
            release(*state, context.turn);
            fail(context, &refused);
            Progress::Close
        }
    }
}

/// Continues after the end of the statement's own transaction.
fn resume_ended(
    context: &mut StatementContext<'_, '_>,
    state: Box<CompoundState>,
    error: Option<Box<Error>>,
) -> Progress {
    context.session.transaction_ended();
    match (&state.steps.step, error) {
        (Step::Undo(_), _) => fail_undone(context, state),
        (_, Some(error)) => fail_released(context, *state, error),
        (_, None) => complete(context, state),
    }
}

/// Sends the error of a statement whose writes have been rolled back.
fn fail_undone(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>) -> Progress {
    let step = std::mem::replace(&mut state.steps.step, Step::Commit);
    let Step::Undo(error) = step else { unexpected_step("an undo that nobody requested") };
    fail_released(context, *state, error)
}

/// Sends the error, after the rest of the file if the client is sending one.
fn fail_released(context: &mut StatementContext<'_, '_>, state: CompoundState, error: Box<Error>) -> Progress {
    let StepState { is_receiving, awaits_input, fills, owns_transaction, .. } = state.steps;
    let is_stopped = state.steps.is_stopped || context.session.interrupted;
    let may_start_again = owns_transaction && !is_stopped && !state.steps.retry.is_none();
    if may_start_again && has_lost_node(&error) && context.may_succeed_after(&error) {
        let StepState { retry, parameters, .. } = state.steps;
        context.turn.buffers.give(parameters);
        context.session.execution = Execution::Retry(Box::new(RetryState::after(&error, retry)));
        return Progress::Waiting;
    }
    release(state, context.turn);
    if let Some(filled) = fills {
        return undo_creation(context, filled, error);
    }
    if !is_receiving || context.session.interrupted || context.session.is_closing {
        return fail(context, &error);
    }
    context.session.execution = Execution::Discarding(DiscardState { error });
    // The client has not answered the last request yet, or needs another one.
    if awaits_input { Progress::Waiting } else { Progress::AwaitsInput }
}

/// Sends the answer of a statement whose writes are complete and committed.
fn complete(context: &mut StatementContext<'_, '_>, state: Box<CompoundState>) -> Progress {
    let CompoundState { steps, work } = *state;
    steps.retry.release(context.turn);
    context.turn.buffers.give(steps.parameters);
    match work {
        Work::Insert(plan, work) => insert::complete(context, &plan, work, steps.fills),
        Work::Change(plan, work) => {
            let ChangeWork { matched, changed, outputs, .. } = work;
            finish_change(context, &plan, ChangedRows { matched, changed, outputs })
        }
        Work::Modify(plan, work) => finish_changed(context, plan.kind, (work.matched, work.changed)),
    }
}

fn release(state: CompoundState, turn: &mut TurnContext<'_>) {
    let StepState { retry, parameters, .. } = state.steps;
    retry.release(turn);
    turn.buffers.give(parameters);
}

/// Whether the error is due to an outdated plan and the statement may start again. Valid only before anything
/// is written.
pub(super) fn may_retry(steps: &StepState, error: &Error) -> bool {
    error.code == ErrorCode::TableDefinitionChanged && !steps.retry.is_none()
}

/// Whether IGNORE skips a row because of this error.
pub(super) fn is_ignorable(code: ErrorCode) -> bool {
    let of_keys = matches!(code, ErrorCode::DuplicateEntry | ErrorCode::NoReferencedRow | ErrorCode::RowIsReferenced);
    of_keys || matches!(code, ErrorCode::CheckViolated | ErrorCode::ViewCheckFailed)
}

/// Stops the node, because a compound statement received the reply to a step that it has not sent.
#[cold]
pub(super) fn unexpected_step(step: &str) -> ! {
    junctor_gateway::invariant::fail("a reply belongs to the step that awaits it", format_args!("{step}"))
}
