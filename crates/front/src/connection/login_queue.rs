//! Connections that have not logged in: their deadlines, and their maximum number.

use std::collections::{BTreeSet, VecDeque};

use junctor_kernel::{Context, Duration, Outbox, SocketId, Time, WorldRequest};
use junctor_signals::connection_limits::LoginEnd;
use junctor_signals::inbox::Signal;

use super::block::{CHECK_TIMER, DELAY_TIMER, LOGIN_TIMER, RecvBlock, find};
use super::client_connection::{Connection, RecvTurn};

/// Started logins.
#[derive(Debug, Default)]
pub(super) struct LoginQueue {
    /// Number of connections that have not logged in.
    pub pending: usize,
    /// Connections with the deadlines of their logins, in order of the deadlines. Some may have ended
    /// already, or have a later deadline now. A connection has one entry, or another one if `connect_timeout`
    /// has become shorter.
    waiting: VecDeque<(Time, SocketId)>,
    /// The deadline for which the timer runs.
    timer: Option<Time>,
    /// Connections whose passwords are being checked, in the order of their turns. A connection has at most
    /// one check.
    pub checks: VecDeque<SocketId>,
    is_check_timer_running: bool,
    /// Connections whose answers to logins are delayed until these times. A connection has at most one delay.
    pub delays: BTreeSet<(Time, SocketId)>,
    /// The end of the delay for which the timer runs.
    delay_timer: Option<Time>,
}

impl LoginQueue {
    pub fn push(&mut self, deadline: Time, socket: SocketId) {
        // After `connect_timeout` has become shorter, earlier connections may have later deadlines.
        let place = self.waiting.partition_point(|(other, _)| *other <= deadline);
        self.waiting.insert(place, (deadline, socket));
    }

    pub fn start_timer(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if let Some((deadline, _)) = self.waiting.front()
            && self.timer.is_none_or(|running| *deadline < running)
        {
            self.timer = Some(*deadline);
            outbox.request(WorldRequest::StartTimer { after: deadline.since(now), token: LOGIN_TIMER });
        }
    }

    #[cfg(test)]
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Forgets the delay of a connection. Returns whether it had one.
    pub fn end_delay(&mut self, socket: SocketId) -> bool {
        let before = self.delays.len();
        self.delays.retain(|(_, delayed)| *delayed != socket);
        self.delays.len() < before
    }
}

/// Whether the connection is in its first login, or in that of COM_CHANGE_USER.
fn awaits_login(connection: &Connection) -> bool {
    connection.link.awaits_login() && !connection.flow.is_closing
}

impl RecvBlock {
    /// Closes connections whose login has exceeded the timeout. A login whose answer is delayed gets it now.
    pub(super) fn on_login_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.logins.timer = None;
        let now = context.turn_start;
        while let Some((queued, socket)) = self.logins.waiting.pop_front_if(|(deadline, _)| *deadline <= now) {
            let Some(connection) = find(&mut self.connections, socket) else { continue };
            connection.queued_deadline = connection.queued_deadline.filter(|deadline| *deadline != queued);
            let deadline = connection.login_deadline;
            if awaits_login(connection) && deadline > now {
                if connection.queued_deadline.is_none() {
                    connection.queued_deadline = Some(deadline);
                    self.logins.push(deadline, socket);
                }
            } else if awaits_login(connection) {
                let is_delayed = self.logins.end_delay(socket);
                let mut turn = RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox };
                match is_delayed {
                    true => _ = connection.continue_check(&mut turn),
                    false => connection.close(&mut turn),
                }
            }
        }
        self.logins.start_timer(now, outbox);
    }

    #[inline]
    pub(super) fn start_check_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.logins.checks.is_empty() && !self.logins.is_check_timer_running {
            self.logins.is_check_timer_running = true;
            outbox.request(WorldRequest::StartTimer { after: Duration::ZERO, token: CHECK_TIMER });
        }
    }

    /// Takes one step of the check whose turn it is. The commands of other connections run between two steps.
    pub(super) fn on_check_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.logins.is_check_timer_running = false;
        let Some(socket) = self.logins.checks.pop_front() else { return };
        let Some(connection) = find(&mut self.connections, socket) else { return };
        let mut turn = RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox };
        if connection.continue_check(&mut turn) {
            self.logins.checks.push_back(socket);
        }
    }

    #[inline]
    pub(super) fn start_delay_timer(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if let Some((first, _)) = self.logins.delays.first()
            && self.logins.delay_timer.is_none_or(|running| *first < running)
        {
            self.logins.delay_timer = Some(*first);
            outbox.request(WorldRequest::StartTimer { after: first.since(now), token: DELAY_TIMER });
        }
    }

    /// Continues the logins whose delay has ended.
    pub(super) fn on_delay_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.logins.delay_timer = None;
        while let Some((at, socket)) = self.logins.delays.first().copied()
            && at <= context.turn_start
        {
            self.logins.delays.pop_first();
            let Some(connection) = find(&mut self.connections, socket) else { continue };
            let mut turn = RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox };
            if connection.continue_check(&mut turn) {
                self.logins.checks.push_back(socket);
            }
        }
    }

    /// Makes room for one more connection: if as many as allowed have not logged in, closes the oldest of
    /// them. A flood of them thus displaces itself, and an honest login, which takes milliseconds, passes.
    /// Connections of the extra port stay.
    pub(super) fn displace_login(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let mut kept = Vec::new();
        let is_full = self.logins.pending >= self.settings.logins_max;
        // Entries whose connections have ended or logged in are removed, so that the queue is no longer than
        // the connections that it is about.
        let is_long = self.logins.waiting.len() > 2 * self.settings.logins_max;
        while (is_full || is_long)
            && let Some((deadline, socket)) = self.logins.waiting.pop_front()
        {
            let Some(connection) = find(&mut self.connections, socket) else { continue };
            if !awaits_login(connection) {
                connection.queued_deadline = connection.queued_deadline.filter(|queued| *queued != deadline);
                continue;
            }
            if connection.flow.is_extra || connection.flow.has_session || !is_full {
                kept.push((deadline, socket));
                continue;
            }
            connection.login_end = LoginEnd::Displaced;
            connection.close(&mut RecvTurn { settings: &self.settings, logins: &mut self.logins, context, outbox });
            break;
        }
        for entry in kept.into_iter().rev() {
            self.logins.waiting.push_front(entry);
        }
    }
}
