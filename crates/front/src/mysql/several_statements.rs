//! From one statement of a text to the next. Results of statements that follow each other at once leave together.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_kernel::{Buffer, Duration};
use junctor_model::id::ConnectionId;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{ContinueWork, RecvSignal, Signal, SqlSignal};
use junctor_sql::Engine;
use junctor_sql::result::{OUTPUT_PART_BYTES, Progress};

use super::session_control::payload_of;
use super::sql_block::{CommandState, SessionRecord, SqlBlock, Turn, after, mark_part};
use super::wire::command::Command;
use crate::answer_sink::{AnswerSink, Dialect};

/// The number of the work that begins the next statements of texts.
pub(super) const STATEMENT_WORK: u32 = 0x7374_6174;

/// The token of the timer that sends results which have waited.
pub(super) const STATEMENT_TIMER: u64 = 0x7374_6174_656d;
/// How long a result waits at most for the one after it, in milliseconds.
const RESULT_WAIT_MS: u64 = 10;
/// Sessions whose results one turn of the timer sends.
const UNSENT_PER_TURN: usize = 32;

/// The sessions that are within a text of several statements.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Those whose next statement begins in a turn of its own; some have been stopped meanwhile.
    between: VecDeque<ConnectionId>,
    /// Those that had results to send when a statement had to wait.
    unsent: VecDeque<ConnectionId>,
    timer_runs: bool,
}

/// A statement is done and another one follows: what it said is sent if it is much, else it leaves with what comes next.
#[cold]
pub(super) fn after_statement(engine: &mut Engine, record: &mut SessionRecord, turn: &mut TurnContext<'_>) {
    engine.note_done(&mut record.session, record.begun, turn.now);
    if record.answer.len() < OUTPUT_PART_BYTES {
        record.command = CommandState::Between(Turn::Due);
        return;
    }
    record.command = CommandState::Between(Turn::NeedsRoom);
    let packets = std::mem::take(&mut record.answer);
    record.send_part(packets, turn);
}

impl SqlBlock {
    pub(super) fn next_statement_later(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        self.texts.between.push_back(connection);
        let signal = ContinueWork { work: STATEMENT_WORK };
        turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
    }

    pub(super) fn begin_next_statement(&mut self, turn: &mut TurnContext<'_>) {
        let Some(connection) = self.texts.between.pop_front() else { return };
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        if !matches!(record.command, CommandState::Between(Turn::Queued)) {
            return;
        }
        // KILL needs no ticket, and a change of the schema gives its own back.
        if !record.admitted && !self.admission.try_enter() {
            self.admission.wait(connection);
            record.command = CommandState::Between(Turn::Admission);
            record.result_start = Some(record.answer.len());
            return self.texts.note_unsent(record, turn);
        }
        record.admitted = true;
        record.command = CommandState::Running;
        record.begun = turn.now;
        record.take_answer(turn);
        record.result_start = Some(record.answer.len());
        let SessionRecord { session, dialect, answer, result_start, running, .. } = &mut **record;
        let payload = running.as_ref().map_or(&[][..], payload_of);
        let text = match dialect {
            Dialect::MySql(capabilities) => match Command::parse(payload, *capabilities) {
                Ok(Command::Query { statement }) => statement,
                _ => &[],
            },
            // Its requests are of one statement each.
            Dialect::Native { .. } => &[],
        };
        let mut sink = AnswerSink::new(*dialect, answer, *result_start);
        let progress = self.engine.next_statement(session, text, turn, &mut sink);
        if progress == Progress::Waiting {
            self.texts.note_unsent(record, turn);
        }
        after(&mut self.engine, record, progress, turn);
        self.settle(connection, turn);
        self.admit_waiting(turn);
    }

    /// Sends results that have waited for a statement that takes its time, each client's as far as it has room.
    pub(super) fn on_statement_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.texts.timer_runs = false;
        for _ in 0..self.texts.unsent.len().min(UNSENT_PER_TURN) {
            let Some(connection) = self.texts.unsent.pop_front() else { break };
            let Some(record) = self.sessions.get_mut(&connection) else { continue };
            record.unsent.is_noted = false;
            record.send_results(turn);
        }
        self.texts.start_timer(turn);
    }
}

impl Texts {
    /// The session has to wait: the timer will send the results before.
    fn note_unsent(&mut self, record: &mut SessionRecord, turn: &mut TurnContext<'_>) {
        if !std::mem::replace(&mut record.unsent.is_noted, true) {
            self.unsent.push_back(record.session.connection());
            self.start_timer(turn);
        }
    }

    fn start_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.timer_runs && !self.unsent.is_empty() {
            self.timer_runs = true;
            turn.start_timer(Duration::from_millis(RESULT_WAIT_MS), STATEMENT_TIMER);
        }
    }
}

impl SessionRecord {
    /// Makes room for an answer, or the next part of it, unless there is some of it already.
    pub(super) fn take_answer(&mut self, turn: &mut TurnContext<'_>) {
        if self.answer.is_empty() {
            let empty = std::mem::replace(&mut self.answer, turn.buffers.take(4096));
            turn.buffers.give(empty);
        }
    }

    /// Sends the results before the one under way, or before the statement that waits for admission.
    pub(super) fn send_results(&mut self, turn: &mut TurnContext<'_>) {
        let is_waiting = matches!(self.command, CommandState::Running | CommandState::Between(Turn::Admission));
        let may_send = is_waiting && !self.closing;
        let has_room = self.unsent.sent.is_none_or(|sent| sent < self.since);
        let Some(start) = self.result_start.filter(|start| *start > 0 && may_send && has_room) else { return };
        let mut rest = turn.buffers.take(4096);
        rest.extend_from_slice(&self.answer[start..]);
        let mut packets = std::mem::replace(&mut self.answer, rest);
        packets.truncate(start);
        self.result_start = Some(0);
        self.unsent.sent = Some(turn.now);
        self.send_part(packets, turn);
    }

    fn send_part(&mut self, packets: Buffer, turn: &mut TurnContext<'_>) {
        let (connection, socket) = (self.session.connection(), self.socket);
        let reply = CommandReply { connection, socket, packets, after: AfterReply::MoreParts };
        turn.outbox.send(self.reply_to, Signal::Recv(RecvSignal::CommandReply(reply)));
        mark_part(self.reply_to, turn);
    }
}
