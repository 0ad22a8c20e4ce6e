//! Stops statements by KILL or because their client has disconnected. A query ends immediately. A write is
//! rolled back and then fails. A commit that has begun continues to its end. So does a schema change, except
//! an alteration that fills indexes or checks rows, which is undone.

use junctor_gateway::TurnContext;
use junctor_model::access::Privilege;
use junctor_model::id::ConnectionId;
use junctor_signals::ask_node::NodeQuestion;
use junctor_signals::interrupt_session::{KillOutcome, KillReach};
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok, interrupted};
use super::context::StatementContext;
use super::engine::Engine;
use super::into::IntoState;
use super::key_read::abandon_key_read;
use super::read::abandon_read;
use super::session::Session;
use super::state::Execution;
use super::tree::TreeState;
use crate::result::Progress;

/// A KILL of another session that has been sent to all sql blocks.
#[derive(Debug)]
pub(crate) struct KillState {
    pub operation: OperationId,
    pub connection: ConnectionId,
}

impl Engine {
    /// Whether a session is among those that KILL of another one may stop.
    pub fn is_within_reach(&self, session: &Session, reach: &KillReach) -> bool {
        let account = &session.identity.account;
        match reach {
            KillReach::All => true,
            KillReach::AllButSystemUsers(own) => {
                **own == *account || !self.rights_for(session).has(Privilege::SystemUser)
            }
            KillReach::Own(own) => **own == *account,
        }
    }

    /// Stops the statement of a session whose client has disconnected. (KILL uses `interrupt_statement`.) A
    /// statement that cannot stop immediately continues without an answer.
    pub fn interrupt(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        session.interrupted = true;
        session.next_statement_at = 0;
        self.stop(session, turn);
    }

    /// Stops the running statement. Returns true if it has ended, and false if none runs, if its write must
    /// be rolled back first, or if it can no longer be stopped.
    fn stop(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) -> bool {
        match std::mem::take(&mut session.execution) {
            Execution::Idle => return false,
            Execution::Read(mut state) => {
                self.gateway.end_read(state.operation, turn);
                abandon_read(self, session, &mut state, turn);
                if !session.transaction.explicit {
                    self.gateway.forget(&mut session.transaction);
                }
            }
            Execution::Keys(state) => {
                self.gateway.end_read(state.operation, turn);
                abandon_key_read(self, state, turn);
                if !session.transaction.explicit {
                    self.gateway.forget(&mut session.transaction);
                }
            }
            Execution::Received(state) if state.has_written() && !session.interrupted => {
                session.execution = Execution::Received(state);
                return false;
            }
            Execution::Sorted(state) if state.has_written && !session.interrupted => {
                session.execution = Execution::Sorted(state);
                return false;
            }
            Execution::Received(state) => state.abandon(self, session, turn),
            Execution::Sorted(state) => state.sorter.retire(&mut self.work.sorters),
            // The replies for these states are dropped as stale. AUTO_INCREMENT values in such a reply remain
            // unused.
            Execution::Numbers(state) => turn.buffers.give(state.parameters),
            Execution::Status(state) => turn.buffers.give(state.parameters),
            Execution::Computing(state) => turn.buffers.give(state.into_parameters()),
            Execution::TableStatistics(state) => state.input.release(turn),
            Execution::Benchmark(state) => state.calls.input.release(turn),
            Execution::LoadFile(state) => state.abandon(self, turn),
            Execution::Lent(query) => query.input.release(turn),
            Execution::Tables(wait) => {
                session.execution = Execution::Tables(wait);
                self.forget_table_wait(session, turn);
            }
            Execution::UniqueKey(mut state) => {
                let is_reading = state.stop(&mut self.gateway, turn);
                if !is_reading {
                    session.execution = Execution::UniqueKey(state);
                    return false;
                }
                state.release(turn);
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
            Execution::Schema(state) => {
                self.gateway.cancel_schema_change(state.operation, turn);
                session.execution = Execution::Schema(state);
                return false;
            }
            Execution::Compound(mut state) => {
                if let Some(operation) = state.stop() {
                    self.gateway.interrupt_statement(operation, turn);
                }
                if state.awaits_call() {
                    self.gateway.cancel_user_lock(session.connection, turn);
                }
                if state.ends_in_step() {
                    session.steps_requested += 1;
                    self.gateway.continue_later(session.connection, session.steps_requested, turn);
                }
                session.execution = Execution::Compound(state);
                return false;
            }
            Execution::Into(state) => return self.stop_into(session, state, turn),
            Execution::Tree(state) => return self.stop_tree(session, state, turn),
            Execution::Discarding(_) if session.interrupted || session.is_closing => {}
            other => {
                session.execution = other;
                return false;
            }
        }
        true
    }
}

impl Engine {
    /// Stops a tree of operators. Returns whether it has ended.
    fn stop_tree(&mut self, session: &mut Session, mut state: Box<TreeState>, turn: &mut TurnContext<'_>) -> bool {
        let mut all_ended = true;
        for inner in state.inner() {
            session.execution = std::mem::take(inner);
            if !matches!(session.execution, Execution::Idle) && !self.stop(session, turn) {
                *inner = std::mem::take(&mut session.execution);
                all_ended = false;
            }
        }
        if state.awaits_call() {
            self.gateway.cancel_user_lock(session.connection, turn);
            all_ended = false;
        }
        match all_ended {
            true => state.release(self, session, turn),
            false => {
                state.stop();
                session.execution = Execution::Tree(state);
            }
        }
        all_ended
    }

    /// Stops a SELECT ... INTO. Returns whether it has ended.
    fn stop_into(&mut self, session: &mut Session, mut state: Box<IntoState>, turn: &mut TurnContext<'_>) -> bool {
        session.execution = std::mem::take(state.query());
        if !state.awaits_file_only() && !self.stop(session, turn) {
            *state.query() = std::mem::take(&mut session.execution);
            session.execution = Execution::Into(state);
            return false;
        }
        if state.stop_file(self, turn) {
            session.execution = Execution::Into(state);
            return false;
        }
        true
    }
}

impl StatementContext<'_, '_> {
    /// Stops the statement, because another session has executed KILL QUERY. The statement fails with error
    /// 1317, immediately or after its rollback. Does nothing if the session is idle or already commits.
    pub(crate) fn interrupt_statement(&mut self) -> Progress {
        match self.engine.stop(self.session, self.turn) {
            true => fail(self, &interrupted()),
            false => {
                self.session.next_statements_stopped = self.session.has_more_statements();
                Progress::Waiting
            }
        }
    }

    /// Stops the query, because it has reached its time limit.
    pub(crate) fn stop_query(&mut self) -> Progress {
        match self.engine.stop(self.session, self.turn) {
            true => fail(self, &interrupted()),
            false => Progress::Waiting,
        }
    }

    /// Fails a command, or the rest of a text, with error 1317 before it begins.
    pub(crate) fn refuse_command(&mut self) -> Progress {
        self.session.clear_diagnostics();
        fail(self, &interrupted())
    }

    /// Starts KILL of a connection or of its statement, in any sql block of the node. Errors: 1094, 1095.
    pub(crate) fn start_kill(&mut self, connection: ConnectionId, query_only: bool) -> Progress {
        if connection == self.session.connection {
            fail(self, &interrupted());
            return if query_only { Progress::Done } else { Progress::Close };
        }
        let rights = self.engine.rights_of(self.session);
        let account = &self.session.identity.account;
        let reach = || match () {
            () if !rights.has_dynamic(Privilege::ConnectionAdmin) => KillReach::Own(account.clone().into()),
            () if !rights.has(Privilege::SystemUser) => KillReach::AllButSystemUsers(account.clone().into()),
            () => KillReach::All,
        };
        let (own, killed) = (self.session.connection, (connection, !query_only));
        // A connection id begins with the number of its node.
        let node = (connection.0 >> 24) as u8;
        if node != self.engine.gateway.node().0 && node != 0 {
            let question = NodeQuestion::Kill { connection, closes_connection: !query_only, reach: reach() };
            return self.control_node(Some(node), question);
        }
        match self.engine.gateway.interrupt_session(own, killed, reach, self.turn) {
            Ok(operation) => {
                self.session.execution = Execution::Killing(KillState { operation, connection });
                Progress::Waiting
            }
            Err(error) => fail(self, &error),
        }
    }
}

/// Continues KILL after every sql block has replied.
pub(super) fn resume_kill(context: &mut StatementContext<'_, '_>, state: KillState, outcome: KillOutcome) -> Progress {
    match outcome.error(state.connection) {
        None => finish_ok(context, ChangeCounts::default()),
        Some(error) => fail(context, &error),
    }
}
