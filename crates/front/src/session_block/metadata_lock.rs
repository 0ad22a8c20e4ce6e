//! Sessions that wait for the metadata lock of a table while a schema change holds it. The main block takes
//! the lock with *BlockTables* and releases it with *UnblockTables*. The SQL engine knows which session waits
//! for which table.

use junctor_gateway::TurnContext;
use junctor_kernel::{Duration, NodeId};
use junctor_signals::block_tables::*;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_signals::read_status::*;
use junctor_sql::{Engine, LockReport, Session};

use super::block::SqlBlock;
use super::state::CommandState;
use crate::admission::Priority;

/// Interval at which the deadlines of waiting sessions are checked, in milliseconds.
const METADATA_LOCK_TIMER_MS: u64 = 100;
/// The token of the timer that checks these deadlines.
pub(super) const METADATA_LOCK_TIMER: u64 = 0x7461_626c_6573;
/// Maximum number of sessions that time out in one expiry of the timer.
const TIMED_OUT_PER_TIMER: usize = 32;
/// The number of the deferred work that starts statements after their wait.
pub(super) const METADATA_LOCK_WORK: u32 = 0x7461_626c;

impl SqlBlock {
    pub(super) fn on_block_tables(&mut self, signal: BlockTables, turn: &mut TurnContext<'_>) {
        let sessions = self.sessions.values().map(|record| &record.session);
        self.engine.on_block_tables(signal, sessions, turn);
        self.queue_retry(turn);
    }

    pub(super) fn on_unblock_tables(&mut self, signal: UnblockTables, main: NodeId, turn: &mut TurnContext<'_>) {
        self.engine.on_unblock_tables(signal, main);
        self.queue_retry(turn);
    }

    /// The node that ran the schema changes is lost.
    pub(super) fn leave_main(&mut self, lost: NodeId, turn: &mut TurnContext<'_>) {
        self.engine.leave_main(lost);
        self.sessions.values_mut().for_each(|record| self.engine.lose_table_locks(&mut record.session));
        self.queue_retry(turn);
    }

    /// A main block has published its catalog.
    pub(super) fn end_orphaned_changes(&mut self, turn: &mut TurnContext<'_>) {
        if self.engine.end_orphaned_changes() {
            self.queue_retry(turn);
        }
    }

    pub(super) fn on_note_change_wait(&mut self, signal: &NoteChangeWait, turn: &TurnContext<'_>) {
        let connection = self.engine.gateway.session_of(signal.operation);
        if let Some(record) = connection.and_then(|connection| self.sessions.get_mut(&connection)) {
            self.engine.on_note_change_wait(&mut record.session, signal.waits, turn);
        }
    }

    /// Called when another transaction waits for a row lock of this session's transaction, while this session
    /// waits for a metadata lock.
    pub(super) fn on_hasten_transaction(&mut self, signal: HastenTransaction, turn: &mut TurnContext<'_>) {
        if let Some(record) = self.sessions.get_mut(&signal.connection) {
            self.engine.hasten(&mut record.session, signal.transaction, turn);
        }
        self.queue_retry(turn);
    }

    /// Schedules the statements that can start now. Each starts in a separate turn, because it may send as
    /// much as any command.
    fn queue_retry(&mut self, turn: &mut TurnContext<'_>) {
        if self.engine.has_table_waiters() {
            let signal = ContinueWork { work: METADATA_LOCK_WORK };
            turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
        }
    }

    pub(super) fn retry_next_waiter(&mut self, turn: &mut TurnContext<'_>) {
        let Some(connection) = self.engine.next_table_waiter(turn) else { return };
        // The next waiter starts in another turn.
        self.queue_retry(turn);
        let Some(record) = self.sessions.get_mut(&connection) else { return };
        if !record.is_admitted {
            // The statement has metadata locks, for which others may wait.
            if !self.group.try_enter(Priority::High) {
                self.group.wait(connection, Priority::High, turn.turn_start);
                record.command = CommandState::AwaitsReadmission;
                return self.start_group_timer(turn);
            }
            record.admitted_at = turn.turn_start;
        }
        record.is_admitted = true;
        self.run_step(connection, turn, Engine::retry_tables);
        self.admit_waiting(turn);
    }

    pub(super) fn on_metadata_lock_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.is_metadata_lock_timer_running = false;
        for _ in 0..TIMED_OUT_PER_TIMER {
            let Some(connection) = self.engine.next_late_table_waiter(turn) else { break };
            self.run_step(connection, turn, Engine::fail_table_wait);
        }
        self.start_metadata_lock_timer(turn);
        self.admit_waiting(turn);
    }

    pub(super) fn start_metadata_lock_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.is_metadata_lock_timer_running && self.engine.has_table_waiters() {
            self.is_metadata_lock_timer_running = true;
            turn.start_timer(Duration::from_millis(METADATA_LOCK_TIMER_MS), METADATA_LOCK_TIMER);
        }
    }

    /// Replies with this block's rows of `junctor_info.metadata_locks`, ordered by connection.
    pub(super) fn on_read_metadata_locks(&self, request: ReadStatus, turn: &mut TurnContext<'_>) {
        let mut sessions: Vec<&Session> = self.sessions.values().map(|record| &record.session).collect();
        sessions.sort_unstable_by_key(|session| session.connection());
        let mut rows = Vec::new();
        for session in sessions {
            let instance = self.own.instance;
            let report = LockReport { instance, now: turn.turn_start, rows_max: STATUS_ROWS_MAX };
            self.engine.append_table_locks(session, report, &mut rows);
        }
        let reply = ReadStatusReply { operation: request.operation, rows };
        turn.outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }
}
