//! Statements that are stopped: because their client is gone, or by KILL. What only makes output ends at once; a write is undone
//! first, and its answer is the error; a commit or a change of the schema goes on to its end.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;
use junctor_signals::read_rows::OperationId;

use super::completion::{Changed, fail, interrupted, ok};
use super::context::StatementContext;
use super::keys::abandon_key_read;
use super::schema::SchemaStep;
use super::state::Execution;
use crate::engine::Engine;
use crate::result::Progress;
use crate::session::Session;

/// KILL that was sent.
#[derive(Debug)]
pub(crate) struct KillState {
    pub operation: OperationId,
    pub connection: ConnectionId,
}

impl StatementContext<'_, '_> {
    /// KILL: the statement under way fails with error 1317, now or as soon as it is undone. Nothing happens when the session is
    /// idle, or commits already.
    pub fn interrupt_statement(&mut self) -> Progress {
        match self.engine.stop(self.session, self.turn) {
            true => fail(self, &interrupted()),
            false => {
                self.session.rest_is_stopped = self.session.has_more_statements();
                Progress::Waiting
            }
        }
    }

    /// A command that has not begun, or the statements of a text that have not, fail with error 1317.
    pub fn refuse_command(&mut self) -> Progress {
        self.session.clear_diagnostics();
        fail(self, &interrupted())
    }

    /// KILL of a connection or its query, wherever on the node. Error: 1094.
    pub(crate) fn kill(&mut self, connection: ConnectionId, query_only: bool) -> Progress {
        if connection == self.session.connection {
            fail(self, &interrupted());
            return if query_only { Progress::Done } else { Progress::Close };
        }
        match self.engine.gateway.interrupt_session(self.session.connection, connection, !query_only, self.turn) {
            Ok(operation) => {
                self.session.execution = Execution::Killing(KillState { operation, connection });
                Progress::Waiting
            }
            Err(error) => fail(self, &error),
        }
    }
}

impl Engine {
    /// The client is gone: what is under way and cannot be stopped at once is waited for, and nothing is said.
    pub fn interrupt(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        session.interrupted = true;
        session.rest_at = 0;
        self.stop(session, turn);
    }

    /// True when nothing is under way any more that was before.
    fn stop(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) -> bool {
        match std::mem::take(&mut session.execution) {
            Execution::Idle => return false,
            Execution::Read(state) => {
                self.gateway.end_read(state.operation, turn);
                state.origin.release(turn);
                if !session.transaction.explicit {
                    self.gateway.forget(&mut session.transaction);
                }
            }
            Execution::Keys(state) => {
                self.gateway.end_read(state.operation, turn);
                session.execution = Execution::Keys(state);
                abandon_key_read(self, session, turn);
                if !session.transaction.explicit {
                    self.gateway.forget(&mut session.transaction);
                }
            }
            Execution::Sorted(state) => state.sorter.retire(&mut self.work.sorters),
            // Whoever answers them is not waited for: numbers that come too late are not used.
            Execution::Numbers(state) => turn.buffers.give(state.parameters),
            Execution::Status(state) => turn.buffers.give(state.parameters),
            Execution::Tables(wait) => {
                session.execution = Execution::Tables(wait);
                self.forget_table_wait(session, turn);
            }
            Execution::Write(state) => {
                self.gateway.interrupt_statement(state.operation, turn);
                session.execution = Execution::Write(state);
                return false;
            }
            Execution::UserLock(state) => {
                self.gateway.cancel_user_lock(session.connection, turn);
                session.execution = Execution::UserLock(state);
                return false;
            }
            Execution::Schema(mut state) => {
                match &mut state.step {
                    SchemaStep::Filling(fill) if !session.interrupted => {
                        self.gateway.interrupt_statement(fill.interrupt(), turn);
                    }
                    SchemaStep::Checking(check) if !session.interrupted => check.interrupt(),
                    _ => {}
                }
                if let Some(operation) = state.may_be_cancelled() {
                    self.gateway.cancel_schema_change(operation, turn);
                }
                session.execution = Execution::Schema(state);
                return false;
            }
            Execution::Compound(mut state) => {
                if let Some(operation) = state.stop() {
                    self.gateway.interrupt_statement(operation, turn);
                }
                session.execution = Execution::Compound(state);
                return false;
            }
            other => {
                session.execution = other;
                return false;
            }
        }
        true
    }
}

/// Every sql block has said whether it has the session.
pub(crate) fn on_interrupted(context: &mut StatementContext<'_, '_>, is_known: bool) -> Progress {
    let Execution::Killing(KillState { connection, .. }) = std::mem::take(&mut context.session.execution) else {
        return Progress::Waiting;
    };
    match is_known {
        true => ok(context, Changed::default()),
        false => fail(context, &no_such_thread(&connection)),
    }
}

/// Error 1094.
pub(crate) fn no_such_thread(connection: &dyn std::fmt::Display) -> Box<Error> {
    Error::new(ErrorCode::NoSuchThread, format!("Unknown thread id: {connection}"))
}
