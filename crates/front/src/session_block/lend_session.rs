//! Sessions that are lent to the sql block of a `work` thread for one long query
//! (`docs/decisions/0096-long-queries-on-threads-of-their-own.md`).
//!
//! The block of a session lends the whole record, with a query that has not begun, and keeps an entry.
//! Signals of recv keep coming to it. It passes on what concerns the query, and keeps the next command until
//! the session is back. The other block treats the session as one of its own, answers the client, and
//! returns it.

use hashbrown::HashMap;
use junctor_gateway::TurnContext;
use junctor_kernel::{Address, Time, require};
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;
use junctor_signals::client_command::*;
use junctor_signals::inbox::{Signal, SqlSignal};
use junctor_signals::lend_session::*;
use junctor_signals::module::Module;
use junctor_sql::Engine;

use super::block::SqlBlock;
use super::state::{CommandState, SessionRecord};
use super::thread_group::group_settings;

/// Which blocks take sessions, and which sessions are lent.
pub(super) struct Lending {
    /// The sql instances of `work` threads: the first one, and their number.
    first: u16,
    pub count: u16,
    /// Counts the sessions lent, so that each of these instances gets its share.
    turns: u16,
    /// Whether this block is one of them.
    pub is_borrower: bool,
    pub lent: HashMap<ConnectionId, LentSession, super::block::SeededState>,
}

/// A session that is lent.
pub(super) struct LentSession {
    borrower: Address,
    /// What recv sent after the answer: a command, or a new login. A connection has at most one under way.
    next: Option<SqlSignal>,
    has_half_command: bool,
    is_closed: bool,
    /// Its row in SHOW PROCESSLIST as it left.
    row: Vec<Value>,
    state_since: Time,
}

impl Lending {
    pub fn none(lent: HashMap<ConnectionId, LentSession, super::block::SeededState>) -> Lending {
        Lending { first: 0, count: 0, turns: 0, is_borrower: false, lent }
    }

    /// The next instance to which a session is lent.
    fn next_borrower(&mut self) -> u16 {
        self.turns = self.turns.wrapping_add(1);
        self.first + self.turns % self.count.max(1)
    }
}

impl SqlBlock {
    /// The same block of a node with this number of `work` threads, whose sql blocks have the last numbers.
    /// Without `lends` all queries stay.
    #[must_use]
    pub fn with_work_threads(mut self, count: u16, lends: bool) -> SqlBlock {
        let first = u16::try_from(self.groups).unwrap_or(u16::MAX).saturating_sub(count);
        let is_borrower = self.own.instance >= first && count > 0;
        if lends && count > 0 && !is_borrower {
            self.engine.lend_sessions();
        }
        self.lending = Lending { first, count, turns: self.own.instance, is_borrower, ..self.lending };
        self.group.configure(group_settings(&self.engine, self.sharing_groups()));
        self
    }

    /// Sends a session with a query that has not begun to another block.
    pub(super) fn lend_session(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(mut record) = self.sessions.remove(&connection) else { return };
        let borrower = Address::new(self.own.node, Module::Sql, self.lending.next_borrower());
        // The timer of the other block knows nothing of results that are held back here.
        record.send_finished_results(turn);
        record.unsent.is_queued = false;
        self.return_slot(&mut record, turn);
        self.engine.release_session(&mut record.session, turn);
        let row = self.process_row(&record, turn.turn_start);
        let state_since = record.state_since;
        record.lender = Some(self.own);
        let (next, has_half_command, is_closed) = (None, false, false);
        let lent = LentSession { borrower, next, has_half_command, is_closed, row, state_since };
        require!(self.lending.lent.insert(connection, lent).is_none(), "a session is lent once");
        self.engine.counters.sessions_lent += 1;
        let signal = TakeSession { connection, session: SessionBox(record) };
        turn.outbox.send(borrower, Signal::Sql(SqlSignal::TakeSession(signal)));
    }

    /// Starts the query of a session that another block lends.
    pub(super) fn on_take_session(&mut self, signal: TakeSession, turn: &mut TurnContext<'_>) {
        let connection = signal.connection;
        let mut record = record_in(signal.session);
        self.engine.adopt_session(&mut record.session, turn);
        let priority = record.priority();
        if !record.is_admitted {
            record.is_admitted = self.group.try_enter(priority);
        }
        record.admitted_at = turn.turn_start;
        let is_admitted = record.is_admitted;
        if !is_admitted {
            record.command = CommandState::AwaitsReadmission;
        }
        let replaced = self.sessions.insert(connection, record);
        require!(replaced.is_none(), "a session is lent to one block");
        self.timeout_sweep.add(connection, turn);
        if is_admitted {
            self.run_step(connection, turn, Engine::retry_tables);
        } else {
            self.group.wait(connection, priority, turn.turn_start);
            self.engine.counters.admission_waits += 1;
            self.start_group_timer(turn);
        }
        self.admit_waiting(turn);
    }

    /// Returns a session whose query has ended to its block.
    pub(super) fn return_session(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        let Some(mut record) = self.sessions.remove(&connection) else { return };
        let Some(lender) = record.lender.take() else { return };
        self.return_slot(&mut record, turn);
        self.engine.release_session(&mut record.session, turn);
        self.timeout_sweep.remove(connection);
        let signal = ReturnSession { connection, session: SessionBox(record) };
        turn.outbox.send(lender, Signal::Sql(SqlSignal::ReturnSession(signal)));
    }

    pub(super) fn on_return_session(&mut self, signal: ReturnSession, turn: &mut TurnContext<'_>) {
        let connection = signal.connection;
        let mut record = record_in(signal.session);
        let lent = self.lending.lent.remove(&connection);
        require!(lent.is_some(), "a session that comes back was lent");
        let Some(lent) = lent else { return };
        self.engine.adopt_session(&mut record.session, turn);
        let has_ended = record.is_disconnected || record.is_ending;
        require!(self.sessions.insert(connection, record).is_none(), "a lent session is in one block");
        if has_ended || lent.is_closed {
            self.on_close_session(connection, turn);
        } else if lent.has_half_command {
            self.on_note_half_command(&NoteHalfCommand { connection }, turn);
        }
        match lent.next {
            Some(SqlSignal::ExecuteCommand(command)) if has_ended => turn.buffers.give(command.bytes),
            // In a turn of its own, because it may send as much as any command.
            Some(next) => turn.outbox.send(self.own, Signal::Sql(next)),
            None => {}
        }
    }

    /// Whether a signal is for a session that is lent.
    pub(super) fn concerns_lent(&self, signal: &SqlSignal) -> bool {
        connection_of(signal).is_some_and(|connection| self.lending.lent.contains_key(&connection))
    }

    /// Passes a signal for a lent session on, or keeps it until the session is back.
    #[cold]
    pub(super) fn on_signal_for_lent(&mut self, signal: SqlSignal, turn: &mut TurnContext<'_>) {
        let lent = connection_of(&signal).and_then(|connection| self.lending.lent.get_mut(&connection));
        let Some(lent) = lent else { return };
        let passed = match signal {
            // The client has its answer already.
            SqlSignal::ExecuteCommand(_) | SqlSignal::OpenSession(_) => {
                lent.next = Some(signal);
                return;
            }
            SqlSignal::NoteHalfCommand(_) => {
                lent.has_half_command = true;
                return;
            }
            SqlSignal::InterruptSession(interrupt) => {
                SqlSignal::InterruptLentSession(InterruptLentSession { interrupt })
            }
            SqlSignal::CloseSession(_) => {
                lent.is_closed = true;
                if let Some(SqlSignal::ExecuteCommand(command)) = lent.next.take() {
                    turn.buffers.give(command.bytes);
                }
                signal
            }
            other => other,
        };
        turn.outbox.send(lent.borrower, Signal::Sql(passed));
    }

    /// Handles KILL that another sql block has passed on.
    pub(super) fn on_interrupt_lent_session(
        &mut self,
        signal: InterruptLentSession,
        from: Address,
        turn: &mut TurnContext<'_>,
    ) {
        let connection = signal.interrupt.connection;
        if self.lending.is_borrower && !self.sessions.contains_key(&connection) {
            // The session is on its way back, before this signal.
            return turn.outbox.send(from, Signal::Sql(SqlSignal::InterruptLentSession(signal)));
        }
        match self.lending.lent.get(&connection) {
            // Another block has it again.
            Some(lent) => turn.outbox.send(lent.borrower, Signal::Sql(SqlSignal::InterruptLentSession(signal))),
            None => self.interrupt(signal.interrupt, turn),
        }
    }

    /// The rows of lent sessions in SHOW PROCESSLIST. They are longer than the others by one value, because
    /// the row of the block that has the session takes precedence.
    pub(super) fn rows_of_lent_sessions(&self, now: Time) -> Vec<Vec<Value>> {
        let row = |lent: &LentSession| {
            let mut row = lent.row.clone();
            row[SECONDS] = Value::Int((now.since(lent.state_since).as_millis() / 1000) as i64);
            row.push(Value::Null);
            row
        };
        let mut rows: Vec<(ConnectionId, Vec<Value>)> =
            self.lending.lent.iter().map(|(connection, lent)| (*connection, row(lent))).collect();
        rows.sort_unstable_by_key(|(connection, _)| *connection);
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// The position of the seconds in a row of SHOW PROCESSLIST.
const SECONDS: usize = 5;

/// The connection of a signal of recv, or of KILL.
fn connection_of(signal: &SqlSignal) -> Option<ConnectionId> {
    match signal {
        SqlSignal::ExecuteCommand(command) => Some(command.connection),
        SqlSignal::OpenSession(opening) => Some(opening.connection),
        SqlSignal::ContinueCommand(signal) => Some(signal.connection),
        SqlSignal::ReceiveFile(signal) => Some(signal.connection),
        SqlSignal::NoteHalfCommand(signal) => Some(signal.connection),
        SqlSignal::CloseSession(signal) => Some(signal.connection),
        SqlSignal::InterruptSession(signal) => Some(signal.connection),
        _ => None,
    }
}

fn record_in(session: SessionBox) -> Box<SessionRecord> {
    match session.0.downcast::<SessionRecord>() {
        Ok(record) => record,
        Err(_) => junctor_kernel::invariant::fail("a lent session has a record", format_args!("it is something else")),
    }
}
