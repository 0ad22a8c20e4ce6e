//! The table of user-level locks with their holders and their waiters. Waiters are served in order of
//! arrival.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use junctor_kernel::{Address, Time, require};
use junctor_model::id::ConnectionId;
use junctor_signals::read_rows::OperationId;

/// Maximum number of locks held at the same time.
pub(super) const USER_LOCKS_MAX: usize = 65_536;

/// The name of the lock that sleeping sessions wait for.
const SLEEP: &str = "";
/// The holder of that lock; no connection has this number.
const NOBODY: ConnectionId = ConnectionId(u32::MAX);

/// The user-level locks of a node.
#[derive(Debug, Default)]
pub(super) struct UserLocks {
    locks: BTreeMap<Box<str>, UserLock>,
    /// Names of the locks that each session holds.
    held: BTreeMap<ConnectionId, BTreeSet<Box<str>>>,
    /// The lock that each session waits for.
    waiting: BTreeMap<ConnectionId, Box<str>>,
}

#[derive(Debug)]
struct UserLock {
    holder: ConnectionId,
    /// Number of times that the holder has acquired the lock.
    count: u64,
    waiters: VecDeque<Waiter>,
}

/// A waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub connection: ConnectionId,
    pub operation: OperationId,
    pub reply_to: Address,
    /// When the request is answered with 0; `None` waits without limit.
    pub deadline: Option<Time>,
}

/// The outcome of a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockOutcome {
    /// The lock is granted.
    Lock,
    /// The request waits.
    Wait,
    /// The lock is held, and the request must not wait.
    Busy,
    /// The holder waits for the requesting session, directly or through others.
    Deadlock,
    /// `USER_LOCKS_MAX` is reached.
    Full,
}

/// The outcome of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReleaseOutcome {
    /// The lock was released. Contains the new holder if a session was waiting.
    Yes(Option<Waiter>),
    /// Another session holds the lock.
    NotOwn,
    /// Nobody holds the lock.
    Unknown,
}

impl UserLocks {
    /// Requests a lock. If another session holds it and `may_wait` is set, the request waits.
    pub fn get(&mut self, name: &str, waiter: Waiter, may_wait: bool) -> LockOutcome {
        let connection = waiter.connection;
        if let Some(lock) = self.locks.get_mut(name) {
            if lock.holder == connection {
                lock.count += 1;
                return LockOutcome::Lock;
            }
            if !may_wait {
                return LockOutcome::Busy;
            }
            if self.waits_for(name, connection) {
                return LockOutcome::Deadlock;
            }
            if let Some(lock) = self.locks.get_mut(name) {
                lock.waiters.push_back(waiter);
            }
            let before = self.waiting.insert(connection, name.into());
            require!(before.is_none(), "a session waits for one lock at a time: {connection:?}");
            return LockOutcome::Wait;
        }
        if self.locks.len() >= USER_LOCKS_MAX {
            return LockOutcome::Full;
        }
        self.locks.insert(name.into(), UserLock { holder: connection, count: 1, waiters: VecDeque::new() });
        self.held.entry(connection).or_default().insert(name.into());
        LockOutcome::Lock
    }

    /// Notes that a session has acquired a lock this often, as main of its node knows.
    pub fn hold(&mut self, name: &str, connection: ConnectionId, count: u64) {
        let unheld = UserLock { holder: connection, count, waiters: VecDeque::new() };
        let lock = self.locks.entry(name.into()).or_insert(unheld);
        if lock.holder == connection {
            lock.count = count;
            self.held.entry(connection).or_default().insert(name.into());
        }
    }

    /// Lets a session wait until its deadline: it waits for a lock that is never released. No statement can
    /// name this lock, and status tables do not show it.
    pub fn sleep(&mut self, waiter: Waiter) {
        let lock = UserLock { holder: NOBODY, count: 1, waiters: VecDeque::new() };
        self.locks.entry(SLEEP.into()).or_insert(lock).waiters.push_back(waiter);
        let before = self.waiting.insert(waiter.connection, SLEEP.into());
        require!(before.is_none(), "a session that sleeps waits for no lock: {:?}", waiter.connection);
    }

    /// Whether the holder of a lock waits for a session, directly or through others. Each session waits for
    /// at most one lock, so only one path must be followed, and a cycle can only close through `session`.
    fn waits_for(&self, name: &str, session: ConnectionId) -> bool {
        let mut name = name;
        while let Some(lock) = self.locks.get(name) {
            if lock.holder == session {
                return true;
            }
            match self.waiting.get(&lock.holder) {
                Some(next) => name = next,
                None => return false,
            }
        }
        false
    }

    /// Releases a lock once; a holder may have acquired it several times.
    pub fn release(&mut self, name: &str, connection: ConnectionId) -> ReleaseOutcome {
        match self.locks.get_mut(name) {
            None => ReleaseOutcome::Unknown,
            Some(lock) if lock.holder != connection => ReleaseOutcome::NotOwn,
            Some(lock) if lock.count > 1 => {
                lock.count -= 1;
                ReleaseOutcome::Yes(None)
            }
            Some(_) => ReleaseOutcome::Yes(self.pass_on(name)),
        }
    }

    /// Releases all locks of a session. Returns how many times the session had acquired them, and the new
    /// holders.
    pub fn release_all(&mut self, connection: ConnectionId) -> (u64, Vec<Waiter>) {
        let mut count = 0;
        let mut granted = Vec::new();
        while let Some(name) = self.held.get(&connection).and_then(|names| names.first().cloned()) {
            count += self.locks.get(&name).map_or(0, |lock| lock.count);
            granted.extend(self.pass_on(&name));
        }
        (count, granted)
    }

    /// Passes a lock from its holder to the first waiter.
    fn pass_on(&mut self, name: &str) -> Option<Waiter> {
        let lock = self.locks.get_mut(name)?;
        let (old, next) = (lock.holder, lock.waiters.pop_front());
        if let Some(next) = next {
            (lock.holder, lock.count) = (next.connection, 1);
        } else {
            self.locks.remove(name);
        }
        if let Some(names) = self.held.get_mut(&old) {
            names.remove(name);
            if names.is_empty() {
                self.held.remove(&old);
            }
        }
        if let Some(next) = next {
            self.waiting.remove(&next.connection);
            self.held.entry(next.connection).or_default().insert(name.into());
        }
        next
    }

    /// Removes the waiting request of a session.
    pub fn cancel(&mut self, connection: ConnectionId) -> Option<Waiter> {
        let name = self.waiting.remove(&connection)?;
        let waiters = &mut self.locks.get_mut(&name)?.waiters;
        let place = waiters.iter().position(|waiter| waiter.connection == connection)?;
        waiters.remove(place)
    }

    /// Removes the requests whose deadline has passed.
    pub fn take_overdue(&mut self, now: Time) -> Vec<Waiter> {
        let UserLocks { locks, waiting, .. } = self;
        let mut overdue = Vec::new();
        for lock in waiting.values().collect::<BTreeSet<_>>() {
            let Some(lock) = locks.get_mut(lock) else { continue };
            lock.waiters.retain(|waiter| {
                let is_over = waiter.deadline.is_some_and(|deadline| deadline <= now);
                overdue.extend(is_over.then_some(*waiter));
                !is_over
            });
        }
        overdue.iter().for_each(|waiter| _ = waiting.remove(&waiter.connection));
        overdue
    }

    /// Whether any session waits.
    pub fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The session that holds a lock.
    pub fn holder(&self, name: &str) -> Option<ConnectionId> {
        self.locks.get(name).map(|lock| lock.holder)
    }

    /// Each lock with its holder and count, followed by its waiters with count 0.
    pub fn entries(&self) -> impl Iterator<Item = (&str, ConnectionId, u64)> {
        self.locks.iter().filter(|(name, _)| &***name != SLEEP).flat_map(|(name, lock)| {
            let waiting = lock.waiters.iter().map(|waiter| (&**name, waiter.connection, 0));
            std::iter::once((&**name, lock.holder, lock.count)).chain(waiting)
        })
    }

    /// The sessions that hold locks or wait.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.held.keys().chain(self.waiting.keys()).copied()
    }

    /// Numbers of locks held and of waiting sessions.
    pub fn counts(&self) -> (usize, usize) {
        (self.locks.len() - usize::from(self.locks.contains_key(SLEEP)), self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use junctor_kernel::NodeId;
    use junctor_signals::Module;

    fn waiter(connection: u32) -> Waiter {
        Waiter {
            connection: ConnectionId(connection),
            operation: OperationId(u64::from(connection)),
            reply_to: Address::new(NodeId(1), Module::Sql, 0),
            deadline: Some(Time(u64::from(connection))),
        }
    }

    #[test]
    fn the_oldest_waiter_is_next_and_a_holder_may_acquire_again() {
        let mut locks = UserLocks::default();
        assert_eq!(locks.get("a", waiter(1), true), LockOutcome::Lock);
        assert_eq!(locks.get("a", waiter(1), true), LockOutcome::Lock);
        assert_eq!(locks.get("a", waiter(2), false), LockOutcome::Busy);
        assert_eq!(locks.get("a", waiter(2), true), LockOutcome::Wait);
        assert_eq!(locks.get("a", waiter(3), true), LockOutcome::Wait);
        let (first, second, third) = (ConnectionId(1), ConnectionId(2), ConnectionId(3));
        assert_eq!(locks.entries().collect::<Vec<_>>(), [("a", first, 2), ("a", second, 0), ("a", third, 0)]);
        assert_eq!(locks.release("a", ConnectionId(2)), ReleaseOutcome::NotOwn);
        assert_eq!(locks.release("b", ConnectionId(1)), ReleaseOutcome::Unknown);
        assert_eq!(locks.release("a", ConnectionId(1)), ReleaseOutcome::Yes(None));
        assert_eq!(locks.release("a", ConnectionId(1)), ReleaseOutcome::Yes(Some(waiter(2))));
        assert_eq!(locks.holder("a"), Some(ConnectionId(2)));
        assert_eq!(locks.release_all(ConnectionId(2)), (1, vec![waiter(3)]));
        assert_eq!(locks.release_all(ConnectionId(3)), (1, Vec::new()));
        assert_eq!(locks.counts(), (0, 0));
    }

    #[test]
    fn a_lock_that_is_held_already_is_released_as_often_as_it_was_acquired() {
        let mut locks = UserLocks::default();
        locks.hold("a", ConnectionId(1), 2);
        locks.hold("a", ConnectionId(2), 1);
        assert_eq!(locks.entries().collect::<Vec<_>>(), [("a", ConnectionId(1), 2)]);
        assert_eq!(locks.get("a", waiter(1), true), LockOutcome::Lock);
        assert_eq!(locks.get("a", waiter(3), true), LockOutcome::Wait);
        assert_eq!(locks.release_all(ConnectionId(2)), (0, Vec::new()));
        assert_eq!(locks.release_all(ConnectionId(1)), (3, vec![waiter(3)]));
    }

    #[test]
    fn the_request_that_closes_a_cycle_is_refused() {
        let mut locks = UserLocks::default();
        for (name, connection) in [("a", 1), ("b", 2), ("c", 3)] {
            assert_eq!(locks.get(name, waiter(connection), true), LockOutcome::Lock);
        }
        assert_eq!(locks.get("b", waiter(1), true), LockOutcome::Wait);
        assert_eq!(locks.get("c", waiter(2), true), LockOutcome::Wait);
        assert_eq!(locks.get("a", waiter(3), true), LockOutcome::Deadlock);
        // The refused session may continue, and so may the others once it releases its locks.
        assert_eq!(locks.release_all(ConnectionId(3)), (1, vec![waiter(2)]));
        assert_eq!(locks.release_all(ConnectionId(2)), (2, vec![waiter(1)]));
        assert_eq!(locks.release_all(ConnectionId(1)), (2, Vec::new()));
    }

    #[test]
    fn a_session_sleeps_until_its_deadline_or_until_it_is_cancelled() {
        let mut locks = UserLocks::default();
        locks.sleep(waiter(5));
        locks.sleep(waiter(9));
        assert_eq!((locks.counts(), locks.entries().count()), ((0, 2), 0));
        assert_eq!(locks.take_overdue(Time(5)), [waiter(5)]);
        assert_eq!(locks.cancel(ConnectionId(9)), Some(waiter(9)));
        assert!(!locks.has_waiters());
        locks.sleep(waiter(5));
        assert_eq!(locks.take_overdue(Time(6)), [waiter(5)]);
    }

    #[test]
    fn waits_end_in_time_or_when_they_are_cancelled() {
        let mut locks = UserLocks::default();
        assert_eq!(locks.get("a", waiter(1), true), LockOutcome::Lock);
        for connection in [5, 6, 7] {
            assert_eq!(locks.get("a", waiter(connection), true), LockOutcome::Wait);
        }
        assert_eq!(locks.take_overdue(Time(4)), []);
        assert_eq!(locks.take_overdue(Time(6)), [waiter(5), waiter(6)]);
        assert_eq!(locks.cancel(ConnectionId(6)), None);
        assert_eq!(locks.cancel(ConnectionId(7)), Some(waiter(7)));
        assert!(!locks.has_waiters());
        assert_eq!(locks.release("a", ConnectionId(1)), ReleaseOutcome::Yes(None));
        assert_eq!(locks.counts(), (0, 0));
    }
}
