//! Time limits of sessions: `wait_timeout`, `interactive_timeout`, `net_read_timeout`, `net_write_timeout`,
//! and `transaction_timeout_s`. A single timer visits all sessions in turn, so sessions need no timers of
//! their own.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_kernel::{Duration, Time, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;
use junctor_signals::journal::{LogEvent, Severity};
use junctor_sql::Engine;

use super::block::SqlBlock;
use super::state::{AwaitedClient, CommandState, SessionRecord};

/// Maximum number of sessions that one expiry of the timer checks.
const SESSIONS_PER_SWEEP: usize = 1024;
/// Interval at which each session is checked, in milliseconds. With many sessions the timer expires more
/// often and checks a part of them.
const SWEEP_MS: u64 = 1000;

/// The order in which sessions are checked. Sessions that have already ended are skipped.
#[derive(Debug, Default)]
pub(super) struct TimeoutSweep {
    order: VecDeque<ConnectionId>,
    is_timer_running: bool,
}

impl TimeoutSweep {
    /// Adds a new session.
    pub fn add(&mut self, connection: ConnectionId, turn: &mut TurnContext<'_>) {
        self.order.push_back(connection);
        self.start_timer(turn);
    }

    /// Removes a session that leaves the block.
    pub fn remove(&mut self, connection: ConnectionId) {
        self.order.retain(|other| *other != connection);
    }

    /// Number of sessions in the order.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Takes the next session out of the order.
    pub fn next_session(&mut self) -> Option<ConnectionId> {
        self.order.pop_front()
    }

    /// Returns a session to the end of the order.
    pub fn visit_again(&mut self, connection: ConnectionId) {
        self.order.push_back(connection);
    }

    fn start_timer(&mut self, turn: &mut TurnContext<'_>) {
        if !self.is_timer_running && !self.order.is_empty() {
            self.is_timer_running = true;
            let sweeps = self.order.len().div_ceil(SESSIONS_PER_SWEEP) as u64;
            turn.start_timer(Duration::from_millis(SWEEP_MS / sweeps.min(SWEEP_MS)), 0);
        }
    }
}

impl SqlBlock {
    /// Ends sessions that have waited for a command, or have kept a transaction open, longer than their
    /// limit. Looks whether the node still has a lease.
    pub(super) fn on_timeout_sweep(&mut self, turn: &mut TurnContext<'_>) {
        self.timeout_sweep.is_timer_running = false;
        self.watch_lease(turn);
        self.watch_statistics(turn);
        for _ in 0..self.timeout_sweep.order.len().min(SESSIONS_PER_SWEEP) {
            let Some(connection) = self.timeout_sweep.order.pop_front() else { break };
            let Some(record) = self.sessions.get_mut(&connection) else {
                if self.lending.lent.contains_key(&connection) {
                    self.timeout_sweep.order.push_back(connection);
                }
                continue;
            };
            self.timeout_sweep.order.push_back(connection);
            self.engine.forget_by_statistics_of(&mut record.session);
            if let Some(error) = record.exceeded_limit(turn.turn_start) {
                self.log_aborted(connection, &error, turn);
                self.end_session(connection, &error, turn);
            }
        }
        self.timeout_sweep.start_timer(turn);
    }
}

impl SqlBlock {
    /// Stops queries that have reached their limits.
    pub(super) fn on_query_limit_timer(&mut self, turn: &mut TurnContext<'_>) {
        let now = turn.turn_start;
        if !self.engine.limit_timer_expires(now) {
            return;
        }
        for _ in 0..SESSIONS_PER_SWEEP {
            let Some(connection) = self.engine.next_limited(now) else { break };
            let record = self.sessions.get_mut(&connection);
            require!(record.is_some(), "a session that ends has no limit");
            let Some(record) = record else { break };
            let can_stop = match record.command {
                CommandState::Idle => None,
                CommandState::Running | CommandState::AwaitsReadmission => Some(true),
                _ => Some(false),
            };
            if self.engine.look_at_limit(&mut record.session, can_stop, now) {
                if matches!(record.command, CommandState::AwaitsReadmission) {
                    self.group.cancel_wait(connection);
                    record.command = CommandState::Running;
                }
                self.run_step(connection, turn, Engine::stop_limited);
            }
        }
        self.engine.restart_limit_timer(turn);
        self.admit_waiting(turn);
    }

    /// Records in the error log that the server ends a session, and why.
    #[cold]
    fn log_aborted(&self, connection: ConnectionId, error: &Error, turn: &TurnContext<'_>) {
        let Some(record) = self.sessions.get(&connection) else { return };
        let session = &record.session;
        let (user, host) = (session.user(), session.host());
        let database = session.database().unwrap_or("unconnected");
        let line = format!(
            "Aborted connection {} to db: '{database}' user: '{user}' host: '{host}' ({})",
            connection.0, error.message
        );
        self.engine.count_aborted_client();
        self.engine.journal().write(turn.wall_clock_us, LogEvent::Line(Severity::Note, line.into_boxed_str()));
    }
}

impl SessionRecord {
    /// The error that ends the session, if it has exceeded a time limit.
    fn exceeded_limit(&mut self, now: Time) -> Option<Box<Error>> {
        if self.is_disconnected || self.is_ending {
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
        let is_idle = matches!(self.command, CommandState::Idle);
        if let Some((awaited, since)) = self.awaited
            && is_idle == (awaited == AwaitedClient::Command)
            && since >= self.statement_start
            && is_over(since, self.session.net_timeout_s(awaited != AwaitedClient::Room))
        {
            return Some(client_stalled(awaited));
        }
        (is_idle && is_over(self.state_since, self.session.wait_timeout_s())).then(inactive)
    }
}

fn inactive() -> Box<Error> {
    let message = "The client was disconnected by the server because of inactivity. See wait_timeout and \
                   interactive_timeout for configuring this behavior.";
    Error::new(ErrorCode::ClientInteractionTimeout, message)
}

fn client_stalled(awaited: AwaitedClient) -> Box<Error> {
    match awaited {
        AwaitedClient::Room => Error::new(ErrorCode::NetWriteInterrupted, "Got timeout writing communication packets"),
        AwaitedClient::File | AwaitedClient::Command => {
            Error::new(ErrorCode::NetReadInterrupted, "Got timeout reading communication packets")
        }
    }
}

fn transaction_too_long(limit: u32) -> Box<Error> {
    let message = format!("The transaction was open for longer than transaction_timeout_s ({limit}) allows");
    Error::new(ErrorCode::QueryInterrupted, message)
}
