//! From step to step: what follows an answer, and how the statement ends.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::end_transaction::Ending;

use super::state::{ChangeWork, CompoundState, Step, Work};
use super::{change, insert};
use crate::execute::completion::{fail, interrupted};
use crate::execute::context::StatementContext;
use crate::execute::state::{Execution, Origin};
use crate::execute::transaction::note_lost_transaction;
use crate::execute::write::{ChangedRows, StatementOutcome, say_changed};
use crate::plan::Plan;
use crate::result::Progress;
use crate::session::Session;

/// What follows an answer.
pub(super) enum Next {
    /// Another step was sent.
    Wait,
    /// Everything is written.
    Done,
    /// The statement is executed anew, with another plan or other numbers; nothing of it has been done.
    Again,
}

/// Makes the transaction that the statement needs: its own, unless one is open. True when it is the statement's own.
pub(super) fn take_transaction(session: &mut Session) -> bool {
    let owns = !session.transaction.explicit;
    session.transaction.explicit = true;
    owns
}

/// A step was sent, or could not be, or there was none to send.
pub(super) fn settle(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    next: Result<Next>,
) -> Progress {
    match next {
        Ok(Next::Wait) => {
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(Next::Done) => finish(context, state),
        Ok(Next::Again) => {
            let origin = std::mem::take(&mut state.origin);
            context.turn.buffers.give(std::mem::take(&mut state.parameters));
            if state.owns_transaction {
                // It holds a snapshot at most.
                context.engine.gateway.forget(&mut context.session.transaction);
                context.session.transaction_ended();
            }
            context.execute_again(origin)
        }
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            if let Some(source) = state.source.take() {
                source.stop(context);
            }
            undo(context, state, error)
        }
    }
}

/// A statement of the transaction was answered.
pub(crate) fn on_statement(context: &mut StatementContext<'_, '_>, mut outcome: StatementOutcome) -> Progress {
    let Execution::Compound(mut state) = std::mem::take(&mut context.session.execution) else {
        return Progress::Waiting;
    };
    let plan = std::sync::Arc::clone(&state.plan);
    if outcome.error.is_some() {
        note_lost_transaction(&mut context.engine.gateway, context.session);
    }
    let mut outputs = std::mem::take(&mut outcome.outputs);
    // What has committed by itself cannot be stopped any more.
    let is_committed = outcome.error.is_none() && !context.session.transaction.explicit;
    let next = match (&*plan, state.is_stopped && !is_committed) {
        (_, true) => Err(error_of_stopped(outcome.error.take())),
        (Plan::Insert(plan), _) => insert::on_answer(context, &mut state, plan, outcome, &outputs),
        (Plan::Change(plan), _) => change::on_answer(context, &mut state, plan, outcome, &mut outputs),
        _ => Err(crate::execute::read::wrong_plan()),
    };
    for output in outputs {
        context.turn.buffers.give(output);
    }
    settle(context, state, next)
}

/// What a stopped statement fails with: the error that its step came to, unless the statement would have gone on after that.
fn error_of_stopped(error: Option<Box<Error>>) -> Box<Error> {
    let goes_on = |error: &Error| may_leave_out(error.code) || error.code == ErrorCode::TableDefinitionChanged;
    error.filter(|error| !goes_on(error)).unwrap_or_else(interrupted)
}

/// Everything is written: commits if the transaction is the statement's own.
fn finish(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>) -> Progress {
    if !state.owns_transaction {
        return say(context, state);
    }
    match context.engine.gateway.end(
        context.session.connection,
        &mut context.session.transaction,
        Ending::Commit,
        context.turn,
    ) {
        Ok(Some(operation)) => {
            state.operation = operation;
            state.step = Step::Commit;
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(None) => {
            context.session.transaction_ended();
            say(context, state)
        }
        Err(error) => undo(context, state, error),
    }
}

/// The statement failed: what it has done is undone before the error is said.
fn undo(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>, error: Box<Error>) -> Progress {
    let asked = match state.owns_transaction {
        true => context.engine.gateway.end(
            context.session.connection,
            &mut context.session.transaction,
            Ending::Rollback,
            context.turn,
        ),
        false => context.engine.gateway.undo_statements(
            context.session.connection,
            &context.session.transaction,
            state.before,
            context.turn,
        ),
    };
    match asked {
        Ok(Some(operation)) => {
            state.operation = operation;
            state.step = Step::Undo(error);
            context.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(None) => {
            if state.owns_transaction {
                context.session.transaction_ended();
            }
            release(state, context.turn);
            fail(context, &error)
        }
        Err(refused) => {
            // What was done can only go with its session.
            release(state, context.turn);
            fail(context, &refused);
            Progress::Close
        }
    }
}

/// The own transaction has ended.
pub(crate) fn on_ended(context: &mut StatementContext<'_, '_>, error: Option<Box<Error>>) -> Progress {
    let Execution::Compound(state) = std::mem::take(&mut context.session.execution) else { return Progress::Waiting };
    context.session.transaction_ended();
    match (&state.step, error) {
        (Step::Undo(_), _) => say_undone(context, state),
        (_, Some(error)) => {
            release(state, context.turn);
            fail(context, &error)
        }
        (_, None) => say(context, state),
    }
}

/// What the statement had done in an open transaction is undone.
pub(crate) fn on_undone(context: &mut StatementContext<'_, '_>) -> Progress {
    let Execution::Compound(state) = std::mem::take(&mut context.session.execution) else { return Progress::Waiting };
    say_undone(context, state)
}

fn say_undone(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>) -> Progress {
    let step = std::mem::replace(&mut state.step, Step::Commit);
    release(state, context.turn);
    match step {
        Step::Undo(error) => fail(context, &error),
        _ => Progress::Waiting,
    }
}

fn say(context: &mut StatementContext<'_, '_>, mut state: Box<CompoundState>) -> Progress {
    let plan = std::sync::Arc::clone(&state.plan);
    std::mem::take(&mut state.origin).release(context.turn);
    context.turn.buffers.give(std::mem::take(&mut state.parameters));
    match (&*plan, &mut state.work) {
        (Plan::Insert(plan), Work::Insert(work)) => {
            let rows_before = state.source.as_ref().map(|source| source.rows_before);
            insert::say(context, plan, (work, rows_before))
        }
        (Plan::Change(plan), Work::Change(work)) => {
            let ChangeWork { matched, changed, .. } = *work;
            let outputs = std::mem::take(&mut work.outputs);
            let rows = ChangedRows { matched, changed, outputs: &outputs };
            let progress = say_changed(context, plan, rows);
            outputs.into_iter().for_each(|output| context.turn.buffers.give(output));
            progress
        }
        _ => fail(context, &crate::execute::read::wrong_plan()),
    }
}

fn release(state: Box<CompoundState>, turn: &mut TurnContext<'_>) {
    let CompoundState { origin, parameters, .. } = *state;
    origin.release(turn);
    turn.buffers.give(parameters);
}

/// Whether an error that came before anything was written is that of an old plan, and the statement can be done again.
pub(super) fn may_repeat(state: &CompoundState, error: &Error) -> bool {
    error.code == ErrorCode::TableDefinitionChanged && !matches!(state.origin, Origin::None)
}

/// Whether IGNORE leaves a row out for this.
pub(super) fn may_leave_out(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::DuplicateEntry | ErrorCode::NoReferencedRow | ErrorCode::RowIsReferenced)
}
