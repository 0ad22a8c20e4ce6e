//! Sessions that exclude each other with user-level locks, several at a time and in any order. No lock has
//! two holders, and a request that would complete a cycle of waits fails. Sessions end only by their own
//! client, so a session that received a lock and did not release it holds it.

use junctor_kernel::Random;

use super::{Step, Workload};
use crate::statement::{Reply, Statement};

/// MySQL's error for a cycle of waits for user-level locks.
const CIRCLE: u16 = 3058;

/// The workload `user_lock`.
#[derive(Debug)]
pub struct UserLock {
    /// The session that holds each lock. It is cleared when a release is sent, because the server frees the
    /// lock before the client sees the answer.
    holders: Vec<Option<usize>>,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// The locks still to get, the next one last.
    wanted: Vec<usize>,
    sent: Sent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Nothing,
    Get(usize),
    Release(usize),
    ReleaseAll,
}

impl UserLock {
    /// Creates the workload with this number of sessions, rounds of each session, and locks.
    pub fn new(sessions: usize, rounds: u32, locks: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, wanted: Vec::new(), sent: Sent::Nothing };
        Self { holders: vec![None; locks.max(2) as usize], sessions: (0..sessions).map(session).collect() }
    }

    fn held(&self, session: usize) -> impl Iterator<Item = usize> {
        self.holders.iter().enumerate().filter(move |(_, holder)| **holder == Some(session)).map(|(lock, _)| lock)
    }

    fn release_all(&mut self, session: usize) {
        self.holders.iter_mut().filter(|holder| **holder == Some(session)).for_each(|holder| *holder = None);
    }
}

impl Workload for UserLock {
    fn name(&self) -> &'static str {
        "user_lock"
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let held: Vec<usize> = self.held(session).collect();
        let count = self.holders.len() as u64;
        let state = &mut self.sessions[session];
        if let Some(lock) = state.wanted.pop() {
            state.sent = Sent::Get(lock);
            return Step::Run(Statement::with("SELECT GET_LOCK(?, 20)", [format!("lock {lock}").into()]));
        }
        match held.first() {
            Some(lock) if random.one_in(2) => {
                state.sent = Sent::Release(*lock);
                self.holders[*lock] = None;
                // Names of user-level locks are case-insensitive.
                Step::Run(Statement::with("SELECT RELEASE_LOCK(?)", [format!("LOCK {lock}").into()]))
            }
            Some(_) => {
                state.sent = Sent::ReleaseAll;
                self.release_all(session);
                Step::Run(Statement::plain("SELECT RELEASE_ALL_LOCKS()"))
            }
            None if state.rounds_left == 0 => Step::Done,
            None => {
                state.rounds_left -= 1;
                state.wanted = (0..1 + random.below(3)).map(|_| random.below(count) as usize).collect();
                state.wanted.sort_unstable();
                state.wanted.dedup();
                if random.one_in(2) {
                    state.wanted.reverse();
                }
                self.next(session, random)
            }
        }
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[session];
        let sent = std::mem::replace(&mut state.sent, Sent::Nothing);
        if let (Sent::Get(_), CIRCLE) = (sent, reply.errno()) {
            state.wanted.clear();
            return Ok(());
        }
        let value = reply.integers()?.first().and_then(|row| row.first().copied()).ok_or("no row")?;
        match (sent, value) {
            (Sent::Get(lock), 1) => match self.holders[lock].replace(session) {
                Some(other) if other != session => Err(format!("lock {lock} is also held by session {other}")),
                _ => Ok(()),
            },
            (Sent::Get(_), 0) => {
                state.wanted.clear();
                Ok(())
            }
            (Sent::Release(_), 1) | (Sent::ReleaseAll, 1..) => Ok(()),
            (sent, value) => Err(format!("{sent:?} returned {value}")),
        }
    }

    fn on_closed(&mut self, session: usize) {
        self.release_all(session);
        let state = &mut self.sessions[session];
        state.wanted.clear();
        state.sent = Sent::Nothing;
    }

    fn audit(&self) -> Vec<Statement> {
        (0..self.holders.len()).map(|lock| Statement::plain(format!("SELECT GET_LOCK('lock {lock}', 1)"))).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        match reply.integers()? {
            rows if rows == [[1]] => Ok(()),
            rows => Err(format!("lock {position} is not free: {rows:?}")),
        }
    }
}
