//! The end of sessions when the node stops. On a node with data, statements end with its work. A node without
//! data waits for them before its links end: other nodes execute them, while this one is idle.

use junctor_gateway::TurnContext;
use junctor_kernel::{Address, Duration};
use junctor_model::id::ConnectionId;
use junctor_signals::statements_ended::StatementsEnded;
use junctor_signals::{MainSignal, Module, Signal};

use super::block::SqlBlock;
use super::state::{CommandState, SessionRecord};

/// The token of the timer that stops statements.
pub(super) const STOP_TIMER: u64 = 0x7374_6f70;
/// The token of the timer that looks for statements on a node without data.
pub(super) const STATEMENTS_TIMER: u64 = 0x7374_6d74;
/// How long statements may continue when the node stops, in milliseconds.
const STOP_WAIT_MS: u64 = 1000;
/// The interval at which the statements of a node that stops are stopped again, in milliseconds.
const STOP_AGAIN_MS: u64 = 100;
/// The interval at which a node without data looks whether statements are under way, in milliseconds.
const STATEMENTS_LOOK_MS: u64 = 10;

impl SessionRecord {
    fn is_busy(&self) -> bool {
        !matches!(self.command, CommandState::Idle)
    }
}

impl SqlBlock {
    /// The node stops.
    pub(super) fn begin_stop(&mut self, turn: &mut TurnContext<'_>) {
        self.engine.is_stopping = true;
        self.engine.return_numbers(turn);
        turn.start_timer(Duration::from_millis(STOP_WAIT_MS), STOP_TIMER);
        match self.has_host() {
            true => self.end_transactions(turn),
            false => self.tell_statements_ended(turn),
        }
    }

    fn tell_statements_ended(&self, turn: &mut TurnContext<'_>) {
        let main = Address::new(self.own.node, Module::Main, 0);
        turn.outbox.send(main, Signal::Main(MainSignal::StatementsEnded(StatementsEnded)));
    }

    /// Rolls back the open transactions of sessions that have no statement under way, because none will come.
    /// Tells main once no session has one.
    pub(super) fn end_transactions(&mut self, turn: &mut TurnContext<'_>) {
        let is_open = |record: &SessionRecord| !record.is_ending && record.session.open_transaction().is_some();
        let open = self.sessions.iter().filter(|(_, record)| !record.is_busy() && is_open(record));
        let mut open: Vec<ConnectionId> = open.map(|(connection, _)| *connection).collect();
        open.sort_unstable();
        for connection in &open {
            // Without a farewell, which would look like the answer to a statement that has just been sent.
            self.stop(*connection, true, None, turn);
        }
        let is_idle = self.lending.lent.is_empty() && !self.sessions.values().any(|record| record.is_busy());
        if open.is_empty() && is_idle {
            self.tell_statements_ended(turn);
        } else {
            turn.start_timer(Duration::from_millis(STATEMENTS_LOOK_MS), STATEMENTS_TIMER);
        }
    }

    /// Stops the statements that still run: they fail with error 1053. A commit that has begun continues.
    pub(super) fn on_stop_timer(&mut self, turn: &mut TurnContext<'_>) {
        let busy = self.sessions.iter().filter(|(_, record)| record.is_busy());
        let mut busy: Vec<ConnectionId> = busy.map(|(connection, _)| *connection).collect();
        busy.sort_unstable();
        for connection in &busy {
            self.stop(*connection, true, None, turn);
        }
        if !busy.is_empty() {
            // A slot that becomes free may have started the next command.
            turn.start_timer(Duration::from_millis(STOP_AGAIN_MS), STOP_TIMER);
        }
    }
}
