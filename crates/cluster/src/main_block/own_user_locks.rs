//! The user-level locks of the sessions of one node of a cluster. Main of the node with the sequencer keeps
//! the locks of all nodes (`use_user_lock`). Main of each node passes the requests of its own sessions on,
//! and knows what they hold. When the node with the sequencer is lost, every node tells the next one which
//! locks its sessions hold, before it introduces itself. The next one answers other requests when it knows
//! all nodes, so no lock gets a second holder. Requests without an answer are sent again.

use std::collections::BTreeMap;

use junctor_kernel::{Address, Duration, NodeId, Outbox, Time};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ConnectionId, Incarnation};
use junctor_model::value::Value;
use junctor_signals::read_rows::OperationId;
use junctor_signals::use_user_lock::{CancelUserLock, ReleaseUserLocks, UseUserLock, UseUserLockReply, UserLockAction};
use junctor_signals::{MainSignal, Module, Signal, SqlSignal};

use super::block::MainBlock;
use super::state::NO_OPERATION;
use super::use_user_lock::{answer, refuse};

/// Maximum number of requests that one turn passes on. The others follow with the next tick.
const REQUESTS_PER_TURN_MAX: usize = 48;
/// Time after which a request fails that no node takes.
const UNSENT_MAX: Duration = Duration::from_millis(5000);

/// The requests of a node's sessions, and the locks that they hold.
#[derive(Debug, Default)]
pub(super) struct OwnUserLocks {
    /// Requests without an answer. A session has one at a time.
    pending: BTreeMap<ConnectionId, PendingRequest>,
    /// The session of each request that the node with the sequencer has got.
    sent: BTreeMap<u64, ConnectionId>,
    /// How often each session holds each lock.
    held: BTreeMap<(ConnectionId, Box<str>), u64>,
    /// The node with the sequencer that knows these locks.
    told: Option<(NodeId, Incarnation)>,
    requests: u64,
}

#[derive(Debug)]
struct PendingRequest {
    operation: OperationId,
    reply_to: Address,
    action: UserLockAction,
    since: Time,
    /// Its number for the node with the sequencer, which may have it.
    number: Option<u64>,
}

impl PendingRequest {
    /// When GET_LOCK is answered with 0.
    fn deadline(&self) -> Option<Time> {
        match self.action {
            UserLockAction::Get { wait_ms: Some(wait_ms), .. } => Some(self.since.plus(Duration::from_millis(wait_ms))),
            _ => None,
        }
    }

    /// The action for a request that is sent now.
    fn action_at(&self, now: Time) -> UserLockAction {
        let left = self.deadline().map(|deadline| deadline.0.saturating_sub(now.0) / 1_000_000);
        match &self.action {
            UserLockAction::Get { name, .. } => UserLockAction::Get { name: name.clone(), wait_ms: left },
            action => action.clone(),
        }
    }
}

impl OwnUserLocks {
    pub fn new(first_number: u64) -> OwnUserLocks {
        OwnUserLocks { requests: first_number, ..OwnUserLocks::default() }
    }

    /// Each lock that a session of this node holds, with its count, and each for which one waits, with 0.
    pub fn entries(&self) -> impl Iterator<Item = (&str, ConnectionId, u64)> {
        let held = self.held.iter().map(|((connection, name), count)| (&**name, *connection, *count));
        let waiting = self.pending.iter().filter_map(|(connection, pending)| match &pending.action {
            UserLockAction::Get { name, .. } => Some((&**name, *connection, 0)),
            _ => None,
        });
        held.chain(waiting)
    }

    /// Takes the request of a session that has got this answer, and notes what the session holds now.
    fn take_answered(&mut self, reply: &UseUserLockReply) -> Option<PendingRequest> {
        let connection = self.sent.remove(&reply.operation.0)?;
        let pending = self.pending.remove(&connection)?;
        let is_done = reply.error.is_none() && reply.value == Value::Int(1);
        match &pending.action {
            UserLockAction::Get { name, .. } if is_done => {
                *self.held.entry((connection, name.clone())).or_default() += 1;
            }
            UserLockAction::Release { name } if is_done => {
                let key = (connection, name.clone());
                let count = self.held.get_mut(&key).map_or(0, |count| {
                    *count -= 1;
                    *count
                });
                if count == 0 {
                    self.held.remove(&key);
                }
            }
            UserLockAction::ReleaseAll if reply.error.is_none() => self.forget_held(connection),
            _ => {}
        }
        Some(pending)
    }

    fn forget_held(&mut self, connection: ConnectionId) {
        self.held.retain(|(holder, _), _| *holder != connection);
    }

    fn take_pending(&mut self, connection: ConnectionId) -> Option<PendingRequest> {
        let pending = self.pending.remove(&connection)?;
        if let Some(number) = pending.number {
            self.sent.remove(&number);
        }
        Some(pending)
    }
}

impl MainBlock {
    /// The node that keeps the user-level locks, if it knows those of this node.
    fn lock_keeper(&self) -> Option<NodeId> {
        let told = self.own_locks.told.filter(|told| self.reachable_schema_life() == Some(*told));
        told.map(|(node, _)| node)
    }

    /// Takes a request of a session of this node.
    pub(super) fn on_own_lock_request(&mut self, request: UseUserLock, now: Time, outbox: &mut Outbox<Signal>) {
        let UseUserLock { operation, reply_to, connection, action } = request;
        let pending = PendingRequest { operation, reply_to, action, since: now, number: None };
        self.own_locks.pending.insert(connection, pending);
        if self.is_welcome_now() {
            self.pass_lock_request_on(connection, now, outbox);
        }
    }

    fn pass_lock_request_on(&mut self, connection: ConnectionId, now: Time, outbox: &mut Outbox<Signal>) {
        let (Some(keeper), own) = (self.lock_keeper(), self.own) else { return };
        let OwnUserLocks { pending, sent, requests, .. } = &mut self.own_locks;
        let Some(pending) = pending.get_mut(&connection).filter(|pending| pending.number.is_none()) else { return };
        *requests += 1;
        pending.number = Some(*requests);
        sent.insert(*requests, connection);
        let (operation, action) = (OperationId(*requests), pending.action_at(now));
        let request = UseUserLock { operation, reply_to: own, connection, action };
        outbox.send(Address::new(keeper, Module::Main, 0), Signal::Main(MainSignal::UseUserLock(request)));
    }

    /// Passes the requests on that no node has, and fails those that have waited for too long. Called with
    /// each tick.
    pub(super) fn advance_own_locks(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let unsent = self.own_locks.pending.iter().filter(|(_, pending)| pending.number.is_none());
        let unsent: Vec<ConnectionId> = unsent.map(|(connection, _)| *connection).take(REQUESTS_PER_TURN_MAX).collect();
        for connection in unsent {
            if self.is_welcome_now() {
                self.pass_lock_request_on(connection, now, outbox);
                continue;
            }
            let is_late = |pending: &PendingRequest| {
                let is_over = pending.deadline().is_some_and(|deadline| deadline <= now);
                (is_over, pending.since.plus(UNSENT_MAX) <= now)
            };
            let Some(late) = self.own_locks.pending.get(&connection).map(is_late) else { continue };
            if late == (false, false) {
                continue;
            }
            let Some(PendingRequest { operation, reply_to, .. }) = self.own_locks.take_pending(connection) else {
                continue;
            };
            match late {
                (true, _) => answer(operation, reply_to, Value::Int(0), outbox),
                _ => refuse(operation, reply_to, no_keeper(), outbox),
            }
        }
    }

    /// Tells the node with the sequencer which locks the sessions of this node hold, before this node
    /// introduces itself to it.
    pub(super) fn tell_own_locks(&mut self, life: (NodeId, Incarnation), outbox: &mut Outbox<Signal>) {
        if self.own_locks.told == Some(life) {
            return;
        }
        self.own_locks.told = Some(life);
        self.own_locks.sent.clear();
        self.own_locks.pending.values_mut().for_each(|pending| pending.number = None);
        for ((connection, name), count) in &self.own_locks.held {
            for _ in 0..*count {
                let request = UseUserLock {
                    operation: NO_OPERATION,
                    reply_to: self.own,
                    connection: *connection,
                    action: UserLockAction::Get { name: name.clone(), wait_ms: Some(0) },
                };
                outbox.send(Address::new(life.0, Module::Main, 0), Signal::Main(MainSignal::UseUserLock(request)));
            }
        }
    }

    /// The node with the sequencer has answered a request of a session of this node.
    pub(super) fn on_own_lock_reply(&mut self, reply: UseUserLockReply, outbox: &mut Outbox<Signal>) {
        let Some(PendingRequest { operation, reply_to, .. }) = self.own_locks.take_answered(&reply) else { return };
        let reply = UseUserLockReply { operation, ..reply };
        outbox.send(reply_to, Signal::Sql(SqlSignal::UseUserLockReply(reply)));
    }

    /// A session of this node no longer wants to wait. Returns whether it waits for a lock of the cluster.
    pub(super) fn cancel_own_lock(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) -> bool {
        let Some(pending) = self.own_locks.pending.get(&connection) else { return false };
        if let (Some(_), Some(keeper)) = (pending.number, self.lock_keeper()) {
            let signal = MainSignal::CancelUserLock(CancelUserLock { connection });
            outbox.send(Address::new(keeper, Module::Main, 0), Signal::Main(signal));
        } else if let Some(PendingRequest { operation, reply_to, .. }) = self.own_locks.take_pending(connection) {
            refuse(operation, reply_to, Error::query_interrupted(), outbox);
        }
        true
    }

    /// A session of this node has ended.
    pub(super) fn release_own_locks(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) {
        self.own_locks.take_pending(connection);
        self.own_locks.forget_held(connection);
        if let Some(keeper) = self.lock_keeper() {
            let signal = MainSignal::ReleaseUserLocks(ReleaseUserLocks { connection });
            outbox.send(Address::new(keeper, Module::Main, 0), Signal::Main(signal));
        }
    }
}

fn no_keeper() -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, "Got temporary error: no data node serves")
}
