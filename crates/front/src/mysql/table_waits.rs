//! Sessions that wait for tables which a schema change keeps from them.

use junctor_gateway::TurnContext;
use junctor_kernel::Duration;
use junctor_model::id::ConnectionId;
use junctor_signals::block_tables::*;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_signals::read_status::*;
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{Engine, Session};

use super::sql_block::{CommandState, SessionRecord, SqlBlock, after};
use crate::answer_sink::AnswerSink;

/// Rows of one answer about status.
const STATUS_ROWS_MAX: usize = 4096;
/// How often sessions that wait for tables are looked at for their deadlines, in milliseconds.
const TABLE_TIMER_MS: u64 = 100;
/// The token of that timer.
pub(super) const TABLE_TIMER: u64 = 0x7461_626c_6573;
/// Sessions that one look ends.
const LATE_PER_LOOK: usize = 32;
/// The number of the work that begins statements which waited for tables.
pub(super) const TABLE_WORK: u32 = 0x7461_626c;

impl SqlBlock {
    pub(super) fn on_block_tables(&mut self, signal: BlockTables, turn: &mut TurnContext<'_>) {
        let sessions = self.sessions.values().map(|record| &record.session);
        self.engine.on_block_tables(signal, sessions, turn);
        self.begin_waiting_later(turn);
    }

    pub(super) fn on_unblock_tables(&mut self, signal: UnblockTables, turn: &mut TurnContext<'_>) {
        self.engine.on_unblock_tables(signal);
        self.begin_waiting_later(turn);
    }

    pub(super) fn on_change_schema_started(&mut self, signal: ChangeSchemaStarted) {
        let connection = self.engine.gateway.session_of(signal.operation);
        if let Some(record) = connection.and_then(|connection| self.sessions.get_mut(&connection)) {
            self.engine.on_change_schema_started(&mut record.session);
        }
    }

    /// Somebody waits for a row of a transaction that waits for tables.
    pub(super) fn on_hasten_transaction(&mut self, signal: HastenTransaction, turn: &mut TurnContext<'_>) {
        if let Some(record) = self.sessions.get_mut(&signal.connection) {
            self.engine.hasten(&mut record.session, signal.transaction, turn);
        }
        self.begin_waiting_later(turn);
    }

    /// Begins statements that waited for tables in turns of their own, for each may send as much as any command.
    fn begin_waiting_later(&mut self, turn: &mut TurnContext<'_>) {
        if self.engine.has_table_waiters() {
            let signal = ContinueWork { work: TABLE_WORK };
            turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
        }
    }

    pub(super) fn begin_waiting(&mut self, turn: &mut TurnContext<'_>) {
        let Some(connection) = self.engine.next_table_waiter(turn) else { return };
        self.begin_waiting_later(turn);
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        if !record.admitted && !self.admission.try_enter() {
            self.admission.wait(connection);
            record.command = CommandState::WaitingAgain;
            return;
        }
        record.admitted = true;
        self.go_on(connection, turn, Engine::retry_tables);
        self.admit_waiting(turn);
    }

    pub(super) fn on_table_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.table_timer_runs = false;
        for _ in 0..LATE_PER_LOOK {
            let Some(connection) = self.engine.next_late_table_waiter(turn) else { break };
            self.go_on(connection, turn, Engine::fail_table_wait);
        }
        self.start_table_timer(turn);
        self.admit_waiting(turn);
    }

    pub(super) fn start_table_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.table_timer_runs && self.engine.has_table_waiters() {
            self.table_timer_runs = true;
            turn.start_timer(Duration::from_millis(TABLE_TIMER_MS), TABLE_TIMER);
        }
    }

    /// A step of a session that waited for tables.
    pub(super) fn go_on(
        &mut self,
        connection: ConnectionId,
        turn: &mut TurnContext<'_>,
        step: fn(&mut Engine, &mut Session, &mut TurnContext<'_>, &mut dyn ResultSink) -> Progress,
    ) {
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        let SessionRecord { session, dialect, answer, result_start, .. } = &mut **record;
        let mut sink = AnswerSink::new(*dialect, answer, *result_start);
        let progress = step(&mut self.engine, session, turn, &mut sink);
        after(&mut self.engine, record, progress, turn);
        self.settle(connection, turn);
    }

    /// The rows of `junctor_info.metadata_locks` of this block, by connection.
    pub(super) fn on_read_metadata_locks(&self, request: ReadStatus, turn: &mut TurnContext<'_>) {
        let mut sessions: Vec<&Session> = self.sessions.values().map(|record| &record.session).collect();
        sessions.sort_unstable_by_key(|session| session.connection());
        let mut rows = Vec::new();
        for session in sessions {
            let instance = self.own.instance;
            self.engine.append_table_locks(instance, session, turn.now, STATUS_ROWS_MAX, &mut rows);
        }
        let reply = ReadStatusReply { operation: request.operation, rows };
        turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }
}
