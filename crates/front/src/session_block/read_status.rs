//! Status tables of this block: the activity of its sessions, and its counters.

use std::borrow::Cow;

use junctor_gateway::TurnContext;
use junctor_kernel::{Address, Time};
use junctor_model::value::Value;
use junctor_signals::counter::counter_rows;
use junctor_signals::inbox::{MainSignal, Signal, SqlSignal};
use junctor_signals::module::Module;
use junctor_signals::read_status::*;

use junctor_sql::parse::without_passwords;

use super::block::SqlBlock;
use super::state::{CommandState, NextStatement, SessionRecord, payload_of};

impl SqlBlock {
    pub(super) fn on_read_status(&mut self, request: ReadStatus, turn: &mut TurnContext<'_>) {
        let rows = match request.table {
            StatusTable::MetadataLocks => return self.on_read_metadata_locks(request, turn),
            StatusTable::StatementDigests | StatusTable::StatementHistograms | StatusTable::TakenStatementDigests => {
                return self.on_read_digests(request, turn);
            }
            StatusTable::TableStatistics => self.engine.held_number_rows(&request),
            StatusTable::Routing => self.engine.routing_rows(self.own.instance),
            StatusTable::OperationLatency | StatusTable::OperationLatencyBuckets => {
                self.engine.latency_rows(self.own.instance)
            }
            StatusTable::Counters => {
                counter_rows(&self.engine.counters, self.own, self.engine.gateway.route().thread())
            }
            StatusTable::ThreadPoolGroups => self.thread_pool_group_rows(turn.turn_start),
            StatusTable::ThreadPoolQueues => self.thread_pool_queue_rows(turn.turn_start, STATUS_ROWS_MAX),
            StatusTable::ThreadPoolStatistics => self.thread_pool_statistics_rows(),
            StatusTable::ThreadPoolWaits => self.thread_pool_wait_rows(),
            _ => return self.on_read_processes(request, turn),
        };
        send_rows(request.reply_to, ReadStatusReply { operation: request.operation, rows }, turn);
    }

    /// The row of a session in SHOW PROCESSLIST.
    pub(super) fn process_row(&self, record: &SessionRecord, now: Time) -> Vec<Value> {
        let session = &record.session;
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let (payload, state) = match &record.command {
            CommandState::Idle => (None, Cow::Borrowed("")),
            CommandState::AwaitsAdmission(command) => (Some(payload_of(command)), "waiting for admission".into()),
            CommandState::AwaitsReadmission | CommandState::BetweenStatements(NextStatement::AwaitsAdmission) => {
                (record.running.as_ref().map(payload_of), "waiting for admission".into())
            }
            CommandState::Running | CommandState::BetweenStatements(_) => {
                let state = self.engine.state_of(session);
                let state = if state.is_empty() { "sending".into() } else { state };
                (record.running.as_ref().map(payload_of), state)
            }
        };
        let (command, statement) = match &record.command {
            CommandState::Idle => ("Sleep", None),
            _ => record.protocol.describe(payload.unwrap_or(&[]), session),
        };
        let statement = statement.map(|statement| without_passwords(statement, session.dialect()));
        let statement = statement.map(|statement| String::from_utf8_lossy(&statement).into_owned().into_bytes());
        vec![
            Value::UInt(u64::from(session.connection().0)),
            text(session.user()),
            text(session.host()),
            session.database().map_or(Value::Null, text),
            text(command),
            Value::Int((now.since(record.state_since).as_millis() / 1000) as i64),
            text(&state),
            statement.map_or(Value::Null, Value::Bytes),
            // Decides who may see the row, and is no column.
            text(&session.account().to_string()),
        ]
    }
}

/// Sends the rows of a status table.
pub(super) fn send_rows(to: Address, reply: ReadStatusReply, turn: &mut TurnContext<'_>) {
    // Main asks for a session of another node.
    let signal = match to.module == Module::Main {
        true => Signal::Main(MainSignal::ReadStatusReply(reply)),
        false => Signal::Sql(SqlSignal::ReadStatusReply(reply)),
    };
    turn.outbox.send(to, signal);
}
