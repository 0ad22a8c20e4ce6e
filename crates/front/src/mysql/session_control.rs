//! Sessions that are looked at and ended from outside: KILL, SHOW PROCESSLIST, and time limits.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_kernel::{Duration, Time};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;
use junctor_signals::client_command::*;
use junctor_signals::counter::counter_rows;
use junctor_signals::inbox::{Signal, SqlSignal};
use junctor_signals::interrupt_session::*;
use junctor_signals::read_status::*;
use junctor_sql::result::{Progress, ResultSink};

use super::sql_block::{CommandState, SessionRecord, SqlBlock, Turn, after};
use super::wire::command::Command;
use crate::answer_sink::{AnswerSink, Dialect};
use crate::native;

/// Sessions that are compared with their time limits at once.
const LOOKS_MAX: usize = 1024;
/// How often each session is compared with its time limits, in milliseconds.
const LOOK_MS: u64 = 1000;

/// Who is compared with its time limits next. Sessions that have ended meanwhile are passed over.
#[derive(Debug, Default)]
pub(super) struct Looks {
    order: VecDeque<ConnectionId>,
    timer_runs: bool,
}

impl Looks {
    /// A session has begun.
    pub fn add(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        self.order.push_back(connection);
        self.start_timer(turn);
    }

    fn start_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.timer_runs && !self.order.is_empty() {
            self.timer_runs = true;
            let turns = self.order.len().div_ceil(LOOKS_MAX) as u64;
            turn.start_timer(Duration::from_millis(LOOK_MS / turns.min(LOOK_MS)), 0);
        }
    }
}

impl SqlBlock {
    /// Stops what a session does, if it is one of this block.
    pub(super) fn on_interrupt_session(&mut self, signal: InterruptSession, turn: &mut TurnContext<'_>) {
        let InterruptSession { operation, reply_to, connection, ends } = signal;
        let is_known = self.sessions.get(&connection).is_some_and(|record| !record.closing && !record.is_ending);
        if is_known {
            self.stop(connection, ends, None, turn);
        }
        let reply = InterruptSessionReply { operation, is_known };
        turn.outbox.send(reply_to, Signal::Sql(SqlSignal::InterruptSessionReply(reply)));
    }

    /// Stops the command of a session, and with `ends` the session. Its client gets the answer of the command, or between
    /// commands the `farewell`.
    fn stop(&mut self, connection: ConnectionId, ends: bool, farewell: Option<Box<Error>>, turn: &mut TurnContext<'_>) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        record.is_ending |= ends;
        let SessionRecord { session, dialect, answer, result_start, command, .. } = &mut **record;
        let mut sink = AnswerSink::new(*dialect, answer, *result_start);
        let progress = match std::mem::replace(command, CommandState::None) {
            CommandState::None if !ends => return,
            CommandState::None => {
                if let Some(error) = farewell {
                    // Nobody has asked.
                    sink.set_number(0);
                    sink.error(&error);
                }
                Progress::Done
            }
            CommandState::Running => {
                *command = CommandState::Running;
                self.engine.interrupt_statement(session, turn, &mut sink)
            }
            CommandState::WaitingAgain => {
                self.admission.forget(connection);
                *command = CommandState::Running;
                self.engine.interrupt_statement(session, turn, &mut sink)
            }
            CommandState::Between(begins) => {
                if begins == Turn::Admission {
                    self.admission.forget(connection);
                }
                sink.begin_result();
                self.engine.refuse_command(session, turn, &mut sink)
            }
            CommandState::Waiting(command) => {
                self.admission.forget(connection);
                turn.buffers.give(command.bytes);
                self.engine.refuse_command(session, turn, &mut sink)
            }
        };
        after(&mut self.engine, record, progress, turn);
        self.settle(connection, turn);
        self.admit_waiting(turn);
    }

    /// Ends sessions that have waited for a command, or kept a transaction open, for longer than they may.
    pub(super) fn on_look(&mut self, turn: &mut TurnContext<'_>) {
        self.looks.timer_runs = false;
        for _ in 0..self.looks.order.len().min(LOOKS_MAX) {
            let Some(connection) = self.looks.order.pop_front() else { break };
            let Some(record) = self.sessions.get_mut(&connection) else { continue };
            self.looks.order.push_back(connection);
            if let Some(error) = record.overdue(turn.now) {
                self.stop(connection, true, Some(error), turn);
            }
        }
        self.looks.start_timer(turn);
    }

    /// The sessions of this block: what they do, or which tables they use.
    pub(super) fn on_read_status(&mut self, request: ReadStatus, turn: &mut TurnContext<'_>) {
        match request.table {
            StatusTable::MetadataLocks => return self.on_read_metadata_locks(request, turn),
            StatusTable::Routing => {
                let rows = self.engine.routing_rows(self.own.instance);
                let reply = ReadStatusReply { operation: request.operation, rows };
                return turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
            }
            StatusTable::OperationLatency | StatusTable::OperationLatencyBuckets => {
                let rows = self.engine.latency_rows(self.own.instance);
                let reply = ReadStatusReply { operation: request.operation, rows };
                return turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
            }
            StatusTable::Counters => {
                let rows = counter_rows(&self.engine.counters, self.own, self.engine.gateway.route().thread());
                let reply = ReadStatusReply { operation: request.operation, rows };
                return turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
            }
            _ => {}
        }
        let mut records: Vec<_> = self.sessions.values().filter(|record| !record.closing).collect();
        records.sort_unstable_by_key(|record| record.session.connection());
        let rows = records.into_iter().map(|record| self.process_row(record, turn.now)).collect();
        let reply = ReadStatusReply { operation: request.operation, rows };
        turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    fn process_row(&self, record: &SessionRecord, now: Time) -> Vec<Value> {
        let session = &record.session;
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let (payload, state) = match &record.command {
            CommandState::None => (&[][..], ""),
            CommandState::Waiting(command) => (payload_of(command), "waiting for admission"),
            CommandState::WaitingAgain | CommandState::Between(Turn::Admission) => {
                (record.running.as_ref().map_or(&[][..], payload_of), "waiting for admission")
            }
            CommandState::Running | CommandState::Between(_) => {
                match (&record.running, self.engine.state_of(session)) {
                    (running, "") => (running.as_ref().map_or(&[][..], payload_of), "sending"),
                    (running, state) => (running.as_ref().map_or(&[][..], payload_of), state),
                }
            }
        };
        let (command, statement) = match &record.command {
            CommandState::None => ("Sleep", None),
            _ => record.describe(payload),
        };
        let statement = statement.map(|statement| String::from_utf8_lossy(statement).into_owned().into_bytes());
        vec![
            Value::UInt(u64::from(session.connection().0)),
            text(session.user()),
            text(session.host()),
            session.database().map_or(Value::Null, text),
            text(command),
            Value::Int((now.since(record.since).as_millis() / 1000) as i64),
            text(state),
            statement.map_or(Value::Null, Value::Bytes),
        ]
    }
}

pub(super) fn payload_of(command: &ExecuteCommand) -> &[u8] {
    command.bytes.get(command.start as usize..command.end as usize).unwrap_or(&[])
}

impl SessionRecord {
    /// What SHOW PROCESSLIST calls a command, and its statement.
    fn describe<'a>(&'a self, payload: &'a [u8]) -> (&'static str, Option<&'a [u8]>) {
        let Dialect::MySql(capabilities) = self.dialect else {
            return native::command::describe(payload, &self.session, &self.native);
        };
        match Command::parse(payload, capabilities) {
            Ok(Command::Query { statement }) => ("Query", Some(statement)),
            Ok(Command::StmtExecute(execution)) => ("Execute", self.session.statement_text(execution.statement_id)),
            Ok(Command::StmtPrepare { statement }) => ("Prepare", Some(statement)),
            _ => ("Query", None),
        }
    }

    /// Why the session may not go on, if a time limit is over.
    fn overdue(&mut self, now: Time) -> Option<Box<Error>> {
        if self.closing || self.is_ending {
            return None;
        }
        let is_over = |since: Time, seconds: u32| now.since(since) >= Duration::from_seconds(u64::from(seconds));
        match (self.session.open_transaction(), self.open_transaction) {
            (None, _) => self.open_transaction = None,
            (Some(number), Some((seen, since))) if number == seen => {
                let limit = self.session.transaction_timeout_s();
                if limit > 0 && is_over(since, limit) {
                    return Some(transaction_too_long(limit));
                }
            }
            (Some(number), _) => self.open_transaction = Some((number, now)),
        }
        let is_idle = matches!(self.command, CommandState::None);
        (is_idle && is_over(self.since, self.session.wait_timeout_s())).then(inactive)
    }
}

fn inactive() -> Box<Error> {
    let message = "The client was disconnected by the server because of inactivity. See wait_timeout and \
                   interactive_timeout for configuring this behavior.";
    Error::new(ErrorCode::ClientInteractionTimeout, message)
}

fn transaction_too_long(limit: u32) -> Box<Error> {
    let message = format!("The transaction was open for longer than transaction_timeout_s ({limit}) allows");
    Error::new(ErrorCode::QueryInterrupted, message)
}

/// Whether a command is KILL, which goes ahead of those that wait for admission: it may be what makes room for them.
pub(super) fn is_kill(command: &ExecuteCommand) -> bool {
    const QUERY: u8 = 0x03;
    let text = match payload_of(command) {
        [QUERY, text @ ..] => text,
        // No command of the MySQL protocol that comes here begins as these requests do.
        payload => native::command::text_of(payload).unwrap_or(&[]),
    };
    text.trim_ascii_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"KILL"))
}
