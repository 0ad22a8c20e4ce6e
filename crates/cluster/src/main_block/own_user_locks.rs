//! The user-level locks of the sessions of one node of a cluster. Main of the node with the sequencer keeps
//! the locks of all nodes (`use_user_lock`). Main of each node passes the requests of its own sessions on,
//! and knows what they hold. When the node with the sequencer is lost, every node tells the next one which
//! locks its sessions hold, before it introduces itself. The next one answers other requests when it knows
//! all nodes, so no lock gets a second holder. Requests without an answer are sent again, except releases:
//! they count as done, because the lost node may have given the lock to another session.

use std::collections::BTreeMap;
use std::ops::Bound;

use junctor_kernel::{Address, Duration, NodeId, Outbox, Time};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ConnectionId, Incarnation};
use junctor_model::value::Value;
use junctor_signals::inbox::ContinueWork;
use junctor_signals::read_rows::OperationId;
use junctor_signals::use_user_lock::{CancelUserLock, ReleaseUserLocks, UseUserLock, UseUserLockReply, UserLockAction};
use junctor_signals::{MainSignal, Module, Signal, SqlSignal};

use super::block::MainBlock;
use super::state::NO_OPERATION;
use super::use_user_lock::{answer, refuse};

/// Identifies the work in [`ContinueWork`].
pub(super) const TELL_WORK: u32 = 8;
/// Maximum number of locks that one turn tells the next keeper.
const TOLD_PER_TURN_MAX: usize = 48;

/// Maximum number of requests that one turn passes on. The others follow with the next tick.
const REQUESTS_PER_TURN_MAX: usize = 48;
/// Time after which a request fails that no node takes.
pub(super) const UNSENT_MAX: Duration = Duration::from_millis(5000);

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
    /// The next one while it is told.
    telling: Option<Telling>,
    requests: u64,
}

#[derive(Debug)]
struct Telling {
    life: (NodeId, Incarnation),
    /// The last lock that it was told. No lock is acquired meanwhile.
    last: Option<(ConnectionId, Box<str>)>,
}

#[derive(Debug)]
struct PendingRequest {
    operation: OperationId,
    reply_to: Address,
    action: UserLockAction,
    since: Time,
    /// Its number for the node with the sequencer, which may have it.
    number: Option<u64>,
    /// Whether that node has been asked to end its wait.
    is_cancelled: bool,
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
            UserLockAction::Release { name } if is_done => self.lower_held(connection, name),
            UserLockAction::ReleaseAll if reply.error.is_none() => self.forget_held(connection),
            _ => {}
        }
        Some(pending)
    }

    fn lower_held(&mut self, connection: ConnectionId, name: &str) {
        let key = (connection, name.into());
        let Some(count) = self.held.get_mut(&key) else { return };
        *count -= 1;
        if *count == 0 {
            self.held.remove(&key);
        }
    }

    fn forget_held(&mut self, connection: ConnectionId) {
        self.held.retain(|(holder, _), _| *holder != connection);
    }

    /// Takes the release of a session that a lost node has got, and counts it as done. Returns it with its
    /// answer.
    fn take_lost_release(&mut self, connection: ConnectionId) -> Option<(PendingRequest, Value)> {
        let pending = self.pending.get(&connection).filter(|pending| pending.number.is_some())?;
        let value = match &pending.action {
            UserLockAction::Release { name } => {
                let name = name.clone();
                self.held.get(&(connection, name.clone()))?;
                self.lower_held(connection, &name);
                Value::Int(1)
            }
            UserLockAction::ReleaseAll => {
                let of_session = self.held.iter().filter(|((holder, _), _)| *holder == connection);
                let count = of_session.map(|(_, count)| *count).sum();
                self.forget_held(connection);
                Value::UInt(count)
            }
            _ => return None,
        };
        Some((self.take_pending(connection)?, value))
    }

    /// Whether the keeper of this life knows which locks the sessions of this node hold.
    pub fn has_told(&self, life: Option<(NodeId, Incarnation)>) -> bool {
        self.told.is_some() && self.told == life
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
        let pending = PendingRequest { operation, reply_to, action, since: now, number: None, is_cancelled: false };
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
    /// introduces itself to it. Returns whether it has told all.
    pub(super) fn tell_own_locks(&mut self, life: (NodeId, Incarnation), outbox: &mut Outbox<Signal>) -> bool {
        if self.own_locks.told == Some(life) {
            return true;
        }
        if self.own_locks.telling.as_ref().is_none_or(|telling| telling.life != life) {
            self.leave_keeper(outbox);
            self.own_locks.telling = Some(Telling { life, last: None });
        }
        let MainBlock { own_locks: OwnUserLocks { telling, held, told, .. }, user_locks, own, .. } = self;
        let last = telling.take().and_then(|telling| telling.last);
        let rest = (last.as_ref().map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let next = held.range::<(ConnectionId, Box<str>), _>(rest).take(TOLD_PER_TURN_MAX);
        let (mut last, mut count_told) = (None, 0);
        for (lock, count) in next {
            let ((connection, name), count) = (lock.clone(), *count);
            if life.0 == own.node {
                // Before any request that this node answers in the same turn.
                user_locks.hold(&name, connection, count);
            } else {
                let action = UserLockAction::Hold { name, count };
                let request = UseUserLock { operation: NO_OPERATION, reply_to: *own, connection, action };
                outbox.send(Address::new(life.0, Module::Main, 0), Signal::Main(MainSignal::UseUserLock(request)));
            }
            (last, count_told) = (Some(lock.clone()), count_told + 1);
        }
        let has_told = count_told < TOLD_PER_TURN_MAX;
        if has_told {
            *told = Some(life);
        } else {
            *telling = Some(Telling { life, last });
            outbox.send(*own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: TELL_WORK })));
        }
        has_told
    }

    /// The keeper is lost, perhaps with answers. A release counts as done, a wait that was to end ends, and
    /// the other requests go to the next keeper.
    fn leave_keeper(&mut self, outbox: &mut Outbox<Signal>) {
        for connection in self.own_locks.pending.keys().copied().collect::<Vec<_>>() {
            if let Some((PendingRequest { operation, reply_to, .. }, value)) =
                self.own_locks.take_lost_release(connection)
            {
                answer(operation, reply_to, value, outbox);
            } else if self.own_locks.pending.get(&connection).is_some_and(|pending| pending.is_cancelled)
                && let Some(PendingRequest { operation, reply_to, .. }) = self.own_locks.take_pending(connection)
            {
                refuse(operation, reply_to, Error::query_interrupted(), outbox);
            }
        }
        self.own_locks.sent.clear();
        self.own_locks.pending.values_mut().for_each(|pending| pending.number = None);
    }

    /// The node with the sequencer has answered a request of a session of this node.
    pub(super) fn on_own_lock_reply(&mut self, reply: UseUserLockReply, outbox: &mut Outbox<Signal>) {
        let Some(PendingRequest { operation, reply_to, .. }) = self.own_locks.take_answered(&reply) else { return };
        let reply = UseUserLockReply { operation, ..reply };
        outbox.send(reply_to, Signal::Sql(SqlSignal::UseUserLockReply(reply)));
    }

    /// A session of this node no longer wants to wait. Returns whether it waits for a lock of the cluster.
    pub(super) fn cancel_own_lock(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) -> bool {
        let keeper = self.lock_keeper();
        let Some(pending) = self.own_locks.pending.get_mut(&connection) else { return false };
        if let (Some(_), Some(keeper)) = (pending.number, keeper) {
            pending.is_cancelled = true;
            let signal = MainSignal::CancelUserLock(CancelUserLock { connection });
            outbox.send(Address::new(keeper, Module::Main, 0), Signal::Main(signal));
        } else if let Some((PendingRequest { operation, reply_to, .. }, value)) =
            self.own_locks.take_lost_release(connection)
        {
            answer(operation, reply_to, value, outbox);
        } else if let Some(PendingRequest { operation, reply_to, .. }) = self.own_locks.take_pending(connection) {
            refuse(operation, reply_to, Error::query_interrupted(), outbox);
        }
        true
    }

    /// A session of this node has ended.
    pub(super) fn release_own_locks(&mut self, connection: ConnectionId, outbox: &mut Outbox<Signal>) {
        self.own_locks.take_pending(connection);
        self.own_locks.forget_held(connection);
        // The next keeper may have been told some of the locks.
        let next = self.own_locks.telling.as_ref().map(|telling| telling.life.0);
        if let Some(keeper) = self.lock_keeper().or(next) {
            let signal = MainSignal::ReleaseUserLocks(ReleaseUserLocks { connection });
            outbox.send(Address::new(keeper, Module::Main, 0), Signal::Main(signal));
        }
    }
}

pub(super) fn no_keeper() -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, "Got temporary error: no data node serves")
}

#[cfg(test)]
mod tests {
    use super::super::tests::Stage;
    use super::*;

    fn pending(action: UserLockAction, number: u64, is_cancelled: bool) -> PendingRequest {
        let reply_to = Address::new(NodeId(1), Module::Sql, 0);
        let (operation, number) = (OperationId(number), Some(number));
        PendingRequest { operation, reply_to, action, since: Time(0), number, is_cancelled }
    }

    fn get(name: &str) -> UserLockAction {
        UserLockAction::Get { name: name.into(), wait_ms: None }
    }

    #[test]
    fn the_next_keeper_is_told_no_lock_whose_release_the_lost_one_may_have_done() {
        let mut main = Stage::new(&[]).main;
        let connection = ConnectionId;
        let locks = &mut main.own_locks;
        let held = [(1, "a", 1), (2, "b", 3), (2, "c", 1), (4, "d", 60_000)];
        locks.held.extend(held.map(|(holder, name, count)| ((connection(holder), name.into()), count)));
        let many = (0..TOLD_PER_TURN_MAX).map(|number| ((connection(5), number.to_string().into()), 1));
        locks.held.extend(many);
        let requests = [
            (1, pending(UserLockAction::Release { name: "a".into() }, 11, false)),
            (2, pending(UserLockAction::ReleaseAll, 12, false)),
            (3, pending(get("e"), 13, true)),
            (4, pending(get("e"), 14, false)),
        ];
        locks.pending.extend(requests.map(|(holder, request)| (connection(holder), request)));
        let life = (NodeId(1), Incarnation(1));
        let mut outbox = Outbox::for_test(main.own);
        assert!(!main.tell_own_locks(life, &mut outbox) && !main.own_locks.has_told(Some(life)));
        let replies = outbox.take_sent().into_iter().filter_map(|(_, signal)| match signal {
            Signal::Sql(SqlSignal::UseUserLockReply(reply)) => {
                Some((reply.operation.0, reply.value, reply.error.is_some()))
            }
            _ => None,
        });
        let expected = [(11, Value::Int(1), false), (12, Value::UInt(4), false), (13, Value::Null, true)];
        assert_eq!(replies.collect::<Vec<_>>(), expected);
        assert!(main.tell_own_locks(life, &mut outbox) && main.own_locks.has_told(Some(life)));
        assert_eq!(main.user_locks.counts(), (1 + TOLD_PER_TURN_MAX, 0));
        assert_eq!(main.user_locks.entries().last(), Some(("d", connection(4), 60_000)));
        let left: Vec<_> = main.own_locks.pending.iter().map(|(holder, it)| (holder.0, it.number)).collect();
        assert_eq!(left, [(4, None)]);
    }

    #[test]
    fn the_next_keeper_on_another_node_gets_one_signal_for_each_lock() {
        let mut main = Stage::new(&[]).main;
        main.own_locks
            .held
            .extend([("a", 2), ("b", 60_000)].map(|(name, count)| ((ConnectionId(1), name.into()), count)));
        let mut outbox = Outbox::for_test(main.own);
        assert!(main.tell_own_locks((NodeId(2), Incarnation(1)), &mut outbox));
        let told = outbox.take_sent().into_iter().map(|(to, signal)| match signal {
            Signal::Main(MainSignal::UseUserLock(request)) => (to.node.0, request.action),
            other => panic!("{other:?}"),
        });
        let hold = |name: &str, count| (2, UserLockAction::Hold { name: name.into(), count });
        assert_eq!(told.collect::<Vec<_>>(), [hold("a", 2), hold("b", 60_000)]);
    }

    #[test]
    fn a_lock_that_is_told_has_no_answer_and_waits_for_no_node() {
        let mut main = Stage::new(&[]).main;
        let reply_to = Address::new(NodeId(2), Module::Main, 0);
        let (operation, connection) = (NO_OPERATION, ConnectionId(2 << 24 | 1));
        let action = UserLockAction::Hold { name: "a".into(), count: 3 };
        let mut outbox = Outbox::for_test(main.own);
        main.answer_user_lock(UseUserLock { operation, reply_to, connection, action }, Time(0), &mut outbox);
        assert!(outbox.take_sent().is_empty());
        assert_eq!(main.user_locks.entries().collect::<Vec<_>>(), [("a", connection, 3)]);
    }
}
