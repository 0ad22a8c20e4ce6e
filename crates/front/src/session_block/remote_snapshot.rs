//! Statements on a node without data. Before each statement, the block asks its host, a data node, for a
//! snapshot, so that the statement sees every commit that was acknowledged anywhere before it arrived.
//! Statements that arrive while a request is under way share the next one.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_kernel::{Address, Duration, NodeId};
use junctor_signals::ask_snapshot::{AskSnapshot, AskSnapshotReply, UseHost};
use junctor_signals::client_command::ExecuteCommand;
use junctor_signals::inbox::ContinueWork;
use junctor_signals::{MainSignal, Module, Signal, SqlSignal};

use super::block::SqlBlock;

/// The number of the deferred work that starts what has waited for a snapshot.
pub(super) const HELD_WORK: u32 = 0x736e_6170;
/// The token of the timer that tells the host which versions are still needed.
pub(super) const SNAPSHOT_TIMER: u64 = 0x736e_6170_7368;
/// Interval of the timer.
const SNAPSHOT_TIMER_MS: u64 = 100;

/// What waits for a snapshot.
pub(super) enum Held {
    Command(ExecuteCommand),
    /// The next statement of a text of several.
    NextStatement,
}

/// The snapshots of a block without data.
#[derive(Default)]
pub(super) struct RemoteSnapshots {
    host: Option<NodeId>,
    held: VecDeque<Held>,
    request: u64,
    /// Whether the request is under way, and how many of those that wait it is for.
    is_asking: bool,
    asked_for: usize,
    /// Number of those that may start.
    ready: usize,
    is_timer_running: bool,
}

impl SqlBlock {
    /// Holds a statement back until its snapshot has come. Returns it if it needs none.
    #[inline]
    pub(super) fn hold(&mut self, held: Held, turn: &mut TurnContext<'_>) -> Option<Held> {
        if self.remote.host.is_none() && self.remote.held.is_empty() {
            return Some(held);
        }
        self.remote.held.push_back(held);
        self.ask_snapshot(turn);
        None
    }

    fn ask_snapshot(&mut self, turn: &mut TurnContext<'_>) {
        if self.remote.host.is_none() || self.remote.is_asking {
            return;
        }
        self.remote.is_asking = true;
        self.remote.request += 1;
        self.remote.asked_for = self.remote.held.len() - self.remote.ready;
        self.send_request(turn);
    }

    fn send_request(&mut self, turn: &mut TurnContext<'_>) {
        let Some(host) = self.remote.host else { return };
        let oldest = self.engine.gateway.oldest_snapshot();
        let ask = AskSnapshot { reply_to: self.own, request: self.remote.request, oldest };
        turn.outbox.send(Address::new(host, Module::Main, 0), Signal::Main(MainSignal::AskSnapshot(ask)));
    }

    pub(super) fn on_ask_snapshot_reply(&mut self, reply: AskSnapshotReply, turn: &mut TurnContext<'_>) {
        if !self.remote.is_asking || reply.request != self.remote.request {
            return;
        }
        self.engine.gateway.raise_stable(reply.number);
        self.remote.is_asking = false;
        self.remote.ready += self.remote.asked_for;
        if self.remote.held.len() > self.remote.ready {
            self.ask_snapshot(turn);
        }
        self.start_held(turn);
    }

    /// Starts the first statement that has its snapshot. The others follow in turns of their own.
    pub(super) fn start_held(&mut self, turn: &mut TurnContext<'_>) {
        if self.remote.ready == 0 {
            return;
        }
        self.remote.ready -= 1;
        let held = self.remote.held.pop_front();
        if self.remote.ready > 0 {
            let signal = ContinueWork { work: HELD_WORK };
            turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(signal)));
        }
        match held {
            Some(Held::Command(command)) => self.on_execute_command(command, turn),
            Some(Held::NextStatement) => self.start_next_statement(turn),
            None => {}
        }
    }

    /// Uses another data node, or none: then statements start at once, and those about tables fail.
    pub(super) fn on_use_host(&mut self, signal: UseHost, turn: &mut TurnContext<'_>) {
        let host = Some(signal.node).filter(|node| node.0 > 0);
        self.engine.gateway.use_host(host.map(|node| (node, signal.tc)));
        self.remote.host = host;
        self.remote.is_asking = false;
        match host {
            Some(_) => {
                self.ask_snapshot(turn);
                self.start_snapshot_timer(turn);
            }
            None => {
                let idle = self.remote.ready == 0;
                self.remote.ready = self.remote.held.len();
                if idle {
                    self.start_held(turn);
                }
            }
        }
    }

    pub(super) fn on_snapshot_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.remote.is_timer_running = false;
        // A host that does not serve yet gives no answer.
        match self.remote.is_asking {
            true => self.send_request(turn),
            false => self.ask_snapshot(turn),
        }
        self.start_snapshot_timer(turn);
    }

    fn start_snapshot_timer(&mut self, turn: &mut TurnContext<'_>) {
        if self.remote.host.is_some() && !self.is_stopping && !self.remote.is_timer_running {
            self.remote.is_timer_running = true;
            turn.start_timer(Duration::from_millis(SNAPSHOT_TIMER_MS), SNAPSHOT_TIMER);
        }
    }
}
