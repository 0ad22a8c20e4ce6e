//! Statements that wait until they may choose a snapshot.
//!
//! On a node without data, the block asks its host, a data node, for a snapshot before each statement, so
//! that the statement sees every commit that was acknowledged anywhere before it arrived. Statements that
//! arrive while a request is under way share the next one.
//!
//! On a data node of a cluster, statements start at once as long as the node has a lease: it is a member for
//! certain, and has every acknowledged commit. Otherwise the block asks main of its own node, which answers
//! once there is a lease. A node that was stopped and has been evicted gets none.
//!
//! Without an answer for long, statements about tables fail, and so do commits that wait.

use std::collections::VecDeque;

use junctor_gateway::TurnContext;
use junctor_kernel::{Address, Duration, NodeId, Time};
use junctor_model::id::Incarnation;
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

/// Time without an answer after which statements about tables fail.
const ANSWER_WAIT_MAX: Duration = Duration::from_seconds(5);

/// Where the snapshots of a block come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Source {
    /// The own node, always.
    #[default]
    Own,
    /// The own node, while it has a lease.
    Leased,
    /// This data node.
    Host(NodeId),
}

/// The snapshots that a block asks for.
#[derive(Default)]
pub(super) struct RemoteSnapshots {
    source: Source,
    held: VecDeque<Held>,
    request: u64,
    /// Whether the request is under way, and how many of those that wait it is for.
    is_asking: bool,
    asking_since: Time,
    asked_for: usize,
    /// An answer of an epoch that this node does not know yet.
    early: Option<AskSnapshotReply>,
    /// Whether no answer has come for long. Statements start at once, and those about tables fail.
    is_cut_off: bool,
    /// Number of those that may start.
    ready: usize,
    is_timer_running: bool,
}

impl RemoteSnapshots {
    /// The snapshots of a block that chooses them itself, while its node has a lease if it needs one.
    /// Requests have higher numbers than those of earlier lives of the node: a late answer to one of these
    /// would be a snapshot that is too old.
    pub(super) fn new(requires_lease: bool, life: Incarnation) -> RemoteSnapshots {
        let source = if requires_lease { Source::Leased } else { Source::Own };
        RemoteSnapshots { source, request: life.first_number(), ..RemoteSnapshots::default() }
    }
}

impl SqlBlock {
    /// Whether statements run at another node, because this one has no data.
    pub(super) fn has_host(&self) -> bool {
        matches!(self.remote.source, Source::Host(_))
    }

    /// Whether a statement may choose a snapshot now. If not, it must be held back.
    #[inline]
    pub(super) fn may_start(&mut self, turn: &mut TurnContext<'_>) -> bool {
        if !self.remote.held.is_empty() {
            return false;
        }
        match self.remote.source {
            Source::Own => true,
            // The clock is read after the statement was taken from its socket.
            Source::Leased => self.engine.gateway.has_lease(turn) || self.remote.is_cut_off,
            Source::Host(_) => self.remote.is_cut_off,
        }
    }

    /// Holds a statement back until it may choose a snapshot.
    #[cold]
    pub(super) fn hold_back(&mut self, held: Held, turn: &mut TurnContext<'_>) {
        self.remote.held.push_back(held);
        self.ask_snapshot(turn);
        self.start_snapshot_timer(turn);
    }

    fn ask_snapshot(&mut self, turn: &mut TurnContext<'_>) {
        if self.remote.source == Source::Own || self.remote.is_asking {
            return;
        }
        (self.remote.is_asking, self.remote.asking_since) = (true, turn.turn_start);
        self.remote.request += 1;
        self.remote.asked_for = self.remote.held.len() - self.remote.ready;
        self.send_request(turn);
    }

    fn send_request(&mut self, turn: &mut TurnContext<'_>) {
        let host = match self.remote.source {
            Source::Own => return,
            Source::Leased => self.own.node,
            Source::Host(host) => host,
        };
        let oldest = self.engine.gateway.oldest_snapshot();
        let ask = AskSnapshot { reply_to: self.own, request: self.remote.request, oldest };
        turn.outbox.send(Address::new(host, Module::Main, 0), Signal::Main(MainSignal::AskSnapshot(ask)));
    }

    pub(super) fn on_ask_snapshot_reply(&mut self, reply: AskSnapshotReply, turn: &mut TurnContext<'_>) {
        if !self.remote.is_asking || reply.request != self.remote.request {
            return;
        }
        if let Source::Host(_) = self.remote.source {
            // A node that this epoch has evicted would answer a read, and lacks what the snapshot sees.
            if reply.number.epoch() > self.engine.gateway.epoch() {
                self.remote.early = Some(reply);
                return;
            }
            self.engine.gateway.raise_stable(reply.number);
        }
        self.set_cut_off(false);
        self.remote.is_asking = false;
        self.remote.ready += self.remote.asked_for;
        if self.remote.held.len() > self.remote.ready {
            self.ask_snapshot(turn);
        }
        self.start_held(turn);
    }

    /// An epoch has begun. An answer may have waited for it.
    pub(super) fn on_epoch(&mut self, turn: &mut TurnContext<'_>) {
        if let Some(reply) = self.remote.early.take() {
            self.on_ask_snapshot_reply(reply, turn);
        }
    }

    fn set_cut_off(&mut self, is_cut_off: bool) {
        if self.remote.is_cut_off != is_cut_off {
            self.remote.is_cut_off = is_cut_off;
            self.engine.gateway.set_cut_off(is_cut_off);
        }
    }

    /// Lets everything start that waits.
    fn release_held(&mut self, turn: &mut TurnContext<'_>) {
        let idle = self.remote.ready == 0;
        self.remote.ready = self.remote.held.len();
        if idle {
            self.start_held(turn);
        }
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
        self.engine.gateway.use_host(host.map(|node| (node, signal.tc)), signal.incarnation);
        self.remote.source = host.map_or(Source::Own, Source::Host);
        self.remote.is_asking = false;
        self.set_cut_off(false);
        match host {
            Some(_) => {
                self.ask_snapshot(turn);
                self.start_snapshot_timer(turn);
            }
            None => self.release_held(turn),
        }
    }

    pub(super) fn on_snapshot_timer(&mut self, turn: &mut TurnContext<'_>) {
        self.remote.is_timer_running = false;
        // A host that does not serve yet gives no answer.
        match self.remote.is_asking {
            true => {
                self.send_request(turn);
                if turn.turn_start.since(self.remote.asking_since) >= ANSWER_WAIT_MAX {
                    self.set_cut_off(true);
                    self.release_held(turn);
                    self.engine.gateway.fail_commits(turn);
                }
            }
            // A node with a lease asks only when it has none.
            false if self.remote.source == Source::Leased => return,
            false => self.ask_snapshot(turn),
        }
        self.start_snapshot_timer(turn);
    }

    /// Asks for a lease that is missing although no statement waits for it: a commit may.
    pub(super) fn watch_lease(&mut self, turn: &mut TurnContext<'_>) {
        if self.remote.source == Source::Leased && !self.remote.is_asking && !self.engine.gateway.has_lease(turn) {
            self.ask_snapshot(turn);
            self.start_snapshot_timer(turn);
        }
    }

    fn start_snapshot_timer(&mut self, turn: &mut TurnContext<'_>) {
        if self.remote.source != Source::Own && !self.engine.is_stopping && !self.remote.is_timer_running {
            self.remote.is_timer_running = true;
            turn.start_timer(Duration::from_millis(SNAPSHOT_TIMER_MS), SNAPSHOT_TIMER);
        }
    }
}
