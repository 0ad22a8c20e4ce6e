//! From step to step: what follows an answer, and how the statement ends.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::end_transaction::Ending;

use super::state::{ChangeWork, CompoundState, Step, Work};
use super::{change, insert};
use crate::engine::Engine;
use crate::execute::completion::{fail, interrupted};
use crate::execute::state::{Execution, Origin};
use crate::execute::transaction::note_lost_transaction;
use crate::execute::write::{ChangedRows, StatementOutcome, say_changed};
use crate::plan::Plan;
use crate::result::{Progress, ResultSink};
use crate::session::Session;

/// What a step works with.
pub(super) struct Parties<'p, 'd> {
    pub engine: &'p mut Engine,
    pub session: &'p mut Session,
    pub turn: &'p mut TurnContext<'d>,
}

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
    mut parties: Parties<'_, '_>,
    mut state: Box<CompoundState>,
    next: Result<Next>,
    sink: &mut dyn ResultSink,
) -> Progress {
    match next {
        Ok(Next::Wait) => {
            parties.session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(Next::Done) => finish(parties, state, sink),
        Ok(Next::Again) => {
            let origin = std::mem::take(&mut state.origin);
            parties.turn.buffers.give(std::mem::take(&mut state.parameters));
            if state.owns_transaction {
                // It holds a snapshot at most.
                parties.engine.gateway.forget(&mut parties.session.transaction);
                parties.session.transaction_ended();
            }
            parties.engine.execute_again(parties.session, origin, parties.turn, sink)
        }
        Err(error) => {
            parties.engine.work.inputs.clear(parties.turn.buffers);
            if let Some(source) = state.source.take() {
                source.stop(&mut parties);
            }
            undo(parties, state, error, sink)
        }
    }
}

/// A statement of the transaction was answered.
pub(crate) fn on_statement(
    engine: &mut Engine,
    session: &mut Session,
    mut outcome: StatementOutcome,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Execution::Compound(mut state) = std::mem::take(&mut session.execution) else { return Progress::Waiting };
    let plan = std::sync::Arc::clone(&state.plan);
    let mut parties = Parties { engine, session, turn };
    if outcome.error.is_some() {
        note_lost_transaction(&mut parties.engine.gateway, parties.session);
    }
    let mut outputs = std::mem::take(&mut outcome.outputs);
    // What has committed by itself cannot be stopped any more.
    let is_committed = outcome.error.is_none() && !parties.session.transaction.explicit;
    let next = match (&*plan, state.is_stopped && !is_committed) {
        (_, true) => Err(error_of_stopped(outcome.error.take())),
        (Plan::Insert(plan), _) => insert::on_answer(&mut parties, &mut state, plan, outcome, &outputs),
        (Plan::Change(plan), _) => change::on_answer(&mut parties, &mut state, plan, outcome, &mut outputs),
        _ => Err(crate::execute::read::wrong_plan()),
    };
    for output in outputs {
        parties.turn.buffers.give(output);
    }
    settle(parties, state, next, sink)
}

/// What a stopped statement fails with: the error that its step came to, unless the statement would have gone on after that.
fn error_of_stopped(error: Option<Box<Error>>) -> Box<Error> {
    let goes_on = |error: &Error| may_leave_out(error.code) || error.code == ErrorCode::TableDefinitionChanged;
    error.filter(|error| !goes_on(error)).unwrap_or_else(interrupted)
}

/// Everything is written: commits if the transaction is the statement's own.
fn finish(parties: Parties<'_, '_>, mut state: Box<CompoundState>, sink: &mut dyn ResultSink) -> Progress {
    let Parties { engine, session, turn } = parties;
    if !state.owns_transaction {
        return say(Parties { engine, session, turn }, state, sink);
    }
    match engine.gateway.end(session.connection, &mut session.transaction, Ending::Commit, turn) {
        Ok(Some(operation)) => {
            state.operation = operation;
            state.step = Step::Commit;
            session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(None) => {
            session.transaction_ended();
            say(Parties { engine, session, turn }, state, sink)
        }
        Err(error) => undo(Parties { engine, session, turn }, state, error, sink),
    }
}

/// The statement failed: what it has done is undone before the error is said.
fn undo(
    parties: Parties<'_, '_>,
    mut state: Box<CompoundState>,
    error: Box<Error>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Parties { engine, session, turn } = parties;
    let asked = match state.owns_transaction {
        true => engine.gateway.end(session.connection, &mut session.transaction, Ending::Rollback, turn),
        false => engine.gateway.undo_statements(session.connection, &session.transaction, state.before, turn),
    };
    match asked {
        Ok(Some(operation)) => {
            state.operation = operation;
            state.step = Step::Undo(error);
            session.execution = Execution::Compound(state);
            Progress::Waiting
        }
        Ok(None) => {
            if state.owns_transaction {
                session.transaction_ended();
            }
            release(state, turn);
            fail(session, &error, sink)
        }
        Err(refused) => {
            // What was done can only go with its session.
            release(state, turn);
            fail(session, &refused, sink);
            Progress::Close
        }
    }
}

/// The own transaction has ended.
pub(crate) fn on_ended(
    engine: &mut Engine,
    session: &mut Session,
    error: Option<Box<Error>>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Execution::Compound(state) = std::mem::take(&mut session.execution) else { return Progress::Waiting };
    session.transaction_ended();
    match (&state.step, error) {
        (Step::Undo(_), _) => say_undone(session, state, turn, sink),
        (_, Some(error)) => {
            release(state, turn);
            fail(session, &error, sink)
        }
        (_, None) => say(Parties { engine, session, turn }, state, sink),
    }
}

/// What the statement had done in an open transaction is undone.
pub(crate) fn on_undone(session: &mut Session, turn: &mut TurnContext<'_>, sink: &mut dyn ResultSink) -> Progress {
    let Execution::Compound(state) = std::mem::take(&mut session.execution) else { return Progress::Waiting };
    say_undone(session, state, turn, sink)
}

fn say_undone(
    session: &mut Session,
    mut state: Box<CompoundState>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let step = std::mem::replace(&mut state.step, Step::Commit);
    release(state, turn);
    match step {
        Step::Undo(error) => fail(session, &error, sink),
        _ => Progress::Waiting,
    }
}

fn say(parties: Parties<'_, '_>, mut state: Box<CompoundState>, sink: &mut dyn ResultSink) -> Progress {
    let Parties { engine, session, turn } = parties;
    let plan = std::sync::Arc::clone(&state.plan);
    std::mem::take(&mut state.origin).release(turn);
    turn.buffers.give(std::mem::take(&mut state.parameters));
    match (&*plan, &mut state.work) {
        (Plan::Insert(plan), Work::Insert(work)) => {
            let rows_before = state.source.as_ref().map(|source| source.rows_before);
            insert::say(engine, session, plan, (work, rows_before), sink)
        }
        (Plan::Change(plan), Work::Change(work)) => {
            let ChangeWork { matched, changed, .. } = *work;
            let outputs = std::mem::take(&mut work.outputs);
            let rows = ChangedRows { matched, changed, outputs: &outputs };
            let progress = say_changed(engine, session, plan, rows, sink);
            outputs.into_iter().for_each(|output| turn.buffers.give(output));
            progress
        }
        _ => fail(session, &crate::execute::read::wrong_plan(), sink),
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
