//! Stops sessions: KILL from another session, or an exceeded time limit.

use junctor_gateway::TurnContext;
use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::ConnectionId;
use junctor_signals::inbox::{MainSignal, Signal, SqlSignal};
use junctor_signals::interrupt_session::*;
use junctor_signals::module::Module;
use junctor_sql::result::Progress;

use super::block::SqlBlock;
use super::client_command::send_progress;
use super::state::{CommandState, NextStatement, SessionRecord};

impl SqlBlock {
    /// Handles KILL if the session belongs to this block. For a lent session, KILL comes from the lender
    /// alone, so that one KILL does not stop two statements.
    pub(super) fn on_interrupt_session(&mut self, signal: InterruptSession, turn: &mut TurnContext<'_>) {
        let InterruptSession { operation, reply_to, .. } = signal;
        match self.lending.is_borrower {
            true => {
                reply_to_interrupt(reply_to, InterruptSessionReply { operation, outcome: KillOutcome::Unknown }, turn)
            }
            false => self.interrupt(signal, turn),
        }
    }

    /// Stops a session, if it is here, and replies.
    pub(super) fn interrupt(&mut self, signal: InterruptSession, turn: &mut TurnContext<'_>) {
        let InterruptSession { operation, reply_to, connection, closes_connection, reach } = signal;
        let record = self.sessions.get(&connection).filter(|record| !record.is_disconnected && !record.is_ending);
        let outcome = match record {
            None => KillOutcome::Unknown,
            Some(record) if !self.engine.is_within_reach(&record.session, &reach) => KillOutcome::Denied,
            Some(_) => {
                self.stop(connection, closes_connection, None, turn);
                KillOutcome::Stopped
            }
        };
        reply_to_interrupt(reply_to, InterruptSessionReply { operation, outcome }, turn);
    }

    /// Ends a session that has exceeded a time limit. If no command is in progress, the client gets `error`.
    pub(super) fn end_session(&mut self, connection: ConnectionId, error: &Error, turn: &mut TurnContext<'_>) {
        self.stop(connection, true, Some(error), turn);
    }

    /// Stops the command of a session and, if `closes_session`, the session. The client gets the command's
    /// reply or, between two commands, the `farewell`.
    pub(super) fn stop(
        &mut self,
        connection: ConnectionId,
        closes_session: bool,
        farewell: Option<&Error>,
        turn: &mut TurnContext<'_>,
    ) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        record.is_ending |= closes_session;
        if closes_session {
            record.session.note_closing(farewell.cloned());
        }
        let SessionRecord { session, protocol, answer, result_start, command, .. } = &mut **record;
        let progress = match std::mem::replace(command, CommandState::Running) {
            CommandState::Idle if !closes_session => {
                *command = CommandState::Idle;
                return;
            }
            CommandState::Idle => {
                if let Some(error) = farewell {
                    protocol.begin_unsolicited();
                    protocol.sink(answer, *result_start).as_result_sink().error(error);
                }
                Progress::Done
            }
            CommandState::Running => {
                let mut sink = protocol.sink(answer, *result_start);
                self.engine.interrupt_statement(session, turn, sink.as_result_sink())
            }
            CommandState::AwaitsReadmission => {
                self.group.cancel_wait(connection);
                let mut sink = protocol.sink(answer, *result_start);
                self.engine.interrupt_statement(session, turn, sink.as_result_sink())
            }
            CommandState::BetweenStatements(next) => {
                if next == NextStatement::AwaitsAdmission {
                    self.group.cancel_wait(connection);
                }
                // The error follows the results of the earlier statements.
                *result_start = Some(answer.len());
                let mut sink = protocol.sink(answer, *result_start);
                self.engine.refuse_command(session, turn, sink.as_result_sink())
            }
            CommandState::AwaitsAdmission(command) => {
                self.group.cancel_wait(connection);
                turn.buffers.give(command.bytes);
                let mut sink = protocol.sink(answer, *result_start);
                self.engine.refuse_command(session, turn, sink.as_result_sink())
            }
        };
        send_progress(&mut self.engine, record, progress, turn);
        self.end_step(connection, turn);
        self.admit_waiting(turn);
    }
}

fn reply_to_interrupt(to: Address, reply: InterruptSessionReply, turn: &mut TurnContext<'_>) {
    // Main asks for a session of another node.
    let signal = match to.module == Module::Main {
        true => Signal::Main(MainSignal::InterruptSessionReply(reply)),
        false => Signal::Sql(SqlSignal::InterruptSessionReply(reply)),
    };
    turn.outbox.send(to, signal);
}
