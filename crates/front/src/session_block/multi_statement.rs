//! Command texts with several statements: starts each statement after the previous one. Results that are
//! complete within a short time of each other are sent together.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_kernel::{Buffer, Duration, require};
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{ContinueWork, RecvSignal, Signal, SqlSignal};
use junctor_sql::Engine;
use junctor_sql::result::{OUTPUT_PART_BYTES, Progress};

use super::block::SqlBlock;
use super::client_command::{mark_part, send_progress};
use super::state::{AwaitedClient, CommandState, NextStatement, SessionRecord, payload_of};

/// The number of the deferred work that starts the next statement of a text.
pub(super) const STATEMENT_WORK: u32 = 0x7374_6174;
/// The token of the timer that sends results which were held back.
pub(super) const STATEMENT_TIMER: u64 = 0x7374_6174_656d;
/// Maximum time that a result is held back for the next one, in milliseconds.
const RESULT_WAIT_MS: u64 = 10;
/// Maximum number of sessions whose results one expiry of the timer sends.
const UNSENT_PER_TIMER: usize = 32;

/// The sessions that are executing a text with several statements.
#[derive(Debug, Default)]
pub(super) struct MultiStatementQueues {
    /// Sessions whose next statement starts in a separate turn. Some of them may have been stopped already.
    next_statements: VecDeque<ConnectionId>,
    /// Sessions that had results held back when a statement had to wait.
    unsent: VecDeque<ConnectionId>,
    is_timer_running: bool,
}

/// Called when a statement is done and another one follows. Sends a large result now; a small one is sent
/// together with later results.
#[cold]
pub(super) fn after_statement(engine: &mut Engine, record: &mut SessionRecord, turn: &mut TurnContext<'_>) {
    engine.note_done(&mut record.session, record.statement_start, turn.turn_start);
    if record.answer.len() < OUTPUT_PART_BYTES {
        record.command = CommandState::BetweenStatements(NextStatement::Due);
        return;
    }
    record.command = CommandState::BetweenStatements(NextStatement::AwaitsRoom);
    record.awaited = Some((AwaitedClient::Room, turn.turn_start));
    let packets = std::mem::take(&mut record.answer);
    record.send_part(packets, turn);
}

impl SqlBlock {
    pub(super) fn queue_next_statement(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        self.multi_statement.next_statements.push_back(connection);
        let signal = ContinueWork { work: STATEMENT_WORK };
        turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
    }

    pub(super) fn start_next_statement(&mut self, turn: &mut TurnContext<'_>) {
        let Some(connection) = self.multi_statement.next_statements.pop_front() else { return };
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        if !matches!(record.command, CommandState::BetweenStatements(NextStatement::Queued)) {
            return;
        }
        // The previous statement may have been KILL, which needs no slot, or a schema change, which returns
        // its slot.
        if !record.is_admitted {
            let priority = record.priority();
            if !self.group.try_enter(priority) {
                self.group.wait(connection, priority, turn.turn_start);
                record.command = CommandState::BetweenStatements(NextStatement::AwaitsAdmission);
                record.result_start = Some(record.answer.len());
                self.multi_statement.queue_unsent(record, turn);
                return self.start_group_timer(turn);
            }
            record.admitted_at = turn.turn_start;
        }
        record.is_admitted = true;
        record.command = CommandState::Running;
        record.statement_start = turn.turn_start;
        record.take_answer_buffer(turn);
        record.result_start = Some(record.answer.len());
        let SessionRecord { session, protocol, answer, result_start, running, .. } = &mut **record;
        let text = running.as_ref().and_then(|command| protocol.query_text(payload_of(command)));
        require!(text.is_some(), "a text with another statement is kept until that statement starts");
        let mut sink = protocol.sink(answer, *result_start);
        let progress = self.engine.next_statement(session, text.unwrap_or(&[]), turn, sink.as_result_sink());
        drop(sink);
        if progress == Progress::Waiting {
            self.multi_statement.queue_unsent(record, turn);
        }
        send_progress(&mut self.engine, record, progress, turn);
        self.end_step(connection, turn);
        self.admit_waiting(turn);
    }

    /// Sends results that are held back while a long statement runs, to each client that has space.
    pub(super) fn on_statement_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.multi_statement.is_timer_running = false;
        for _ in 0..self.multi_statement.unsent.len().min(UNSENT_PER_TIMER) {
            let Some(connection) = self.multi_statement.unsent.pop_front() else { break };
            let Some(record) = self.sessions.get_mut(&connection) else { continue };
            record.unsent.is_queued = false;
            record.send_finished_results(turn);
        }
        self.multi_statement.start_timer(turn);
    }
}

impl MultiStatementQueues {
    /// Called when the session has to wait: the timer will send its finished results.
    fn queue_unsent(&mut self, record: &mut SessionRecord, turn: &mut TurnContext<'_>) {
        if !std::mem::replace(&mut record.unsent.is_queued, true) {
            self.unsent.push_back(record.session.connection());
            self.start_timer(turn);
        }
    }

    fn start_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.is_timer_running && !self.unsent.is_empty() {
            self.is_timer_running = true;
            turn.start_timer(Duration::from_millis(RESULT_WAIT_MS), STATEMENT_TIMER);
        }
    }
}

impl SessionRecord {
    /// Allocates a buffer for an answer or its next part, unless the record has one.
    pub(super) fn take_answer_buffer(&mut self, turn: &mut TurnContext<'_>) {
        if self.answer.is_empty() {
            let empty = std::mem::replace(&mut self.answer, turn.buffers.take(4096));
            turn.buffers.give(empty);
        }
    }

    /// Sends the results that precede the current one, or that precede a statement waiting for admission.
    pub(super) fn send_finished_results(&mut self, turn: &mut TurnContext<'_>) {
        let is_waiting = matches!(
            self.command,
            CommandState::Running | CommandState::BetweenStatements(NextStatement::AwaitsAdmission)
        );
        let can_send = is_waiting && !self.is_disconnected;
        // At most one part is in flight: if a client does not read, nothing more is sent.
        let has_room = self.unsent.sent.is_none_or(|sent| sent < self.state_since);
        let Some(start) = self.result_start.filter(|start| *start > 0 && can_send && has_room) else { return };
        let mut rest = turn.buffers.take(4096);
        rest.extend_from_slice(&self.answer[start..]);
        let mut packets = std::mem::replace(&mut self.answer, rest);
        packets.truncate(start);
        self.result_start = Some(0);
        self.unsent.sent = Some(turn.turn_start);
        self.send_part(packets, turn);
    }

    fn send_part(&mut self, packets: Buffer, turn: &mut TurnContext<'_>) {
        let (connection, socket) = (self.session.connection(), self.socket);
        let reply = CommandReply { connection, socket, packets, after: AfterReply::MoreParts };
        turn.outbox.send(self.reply_to, Signal::Recv(RecvSignal::CommandReply(reply)));
        mark_part(self.reply_to, turn);
    }
}
