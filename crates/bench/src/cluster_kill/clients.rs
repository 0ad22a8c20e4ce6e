//! Clients that transfer money at every node, and go to another one when theirs fails.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::nodes::connect;
use crate::mysql::{ClientError, Connection};
use crate::random::Random;

pub const ACCOUNTS: u64 = 60;
pub const BALANCE: u64 = 1000;
/// A client goes to another node after this time without an answer.
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// Pause of a client whose statement failed.
const RETRY_PAUSE: Duration = Duration::from_millis(2);
/// The transaction was rolled back as a whole, and may run again.
const ROLLED_BACK: [u16; 2] = [1213, 1205];
/// The node cannot serve now: it starts, stops, or has lost the others.
const UNAVAILABLE: [u16; 4] = [1296, 3168, 1053, 1158];
/// Whether the transaction was committed is unknown.
const UNKNOWN: u16 = 1180;
const COMPLAINTS_MAX: usize = 10;

/// What clients know of their transfers.
#[derive(Default)]
pub struct Outcomes {
    /// Transfers that must be there.
    pub acknowledged: BTreeSet<u64>,
    /// Transfers that must not be there.
    pub refused: BTreeSet<u64>,
    /// How often a client does not know it.
    pub unknown: u64,
    /// When each acknowledgement came, and to which client.
    pub times: Vec<(Instant, u32)>,
    /// Broken promises, as sentences.
    pub complaints: Vec<String>,
}

/// What all clients share.
pub struct Load {
    nodes: Vec<u8>,
    clients: u32,
    is_over: AtomicBool,
    is_paused: AtomicBool,
    paused: AtomicU32,
    next: AtomicU64,
    /// A number that was acknowledged lately; 0 for none.
    recent: AtomicU64,
    pub outcomes: Mutex<Outcomes>,
}

/// How a transfer ended.
enum End {
    Acknowledged,
    Refused,
    Unknown,
}

impl Load {
    pub fn new(nodes: Vec<u8>, clients: u32) -> Load {
        Load {
            nodes,
            clients,
            is_over: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
            paused: AtomicU32::new(0),
            next: AtomicU64::new(1),
            recent: AtomicU64::new(0),
            outcomes: Mutex::default(),
        }
    }

    /// Ends all clients.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Waits until no client has a transaction. False if that takes too long.
    pub fn pause(&self, time_max: Duration) -> bool {
        let end = Instant::now() + time_max;
        self.is_paused.store(true, Ordering::SeqCst);
        while self.paused.load(Ordering::SeqCst) < self.clients {
            if Instant::now() > end {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.recent.store(0, Ordering::SeqCst);
        true
    }

    pub fn resume(&self) {
        self.is_paused.store(false, Ordering::SeqCst);
    }

    /// Notes a broken promise.
    fn complain(&self, text: String) {
        let mut outcomes = self.outcomes.lock().expect("no client has panicked");
        if outcomes.complaints.len() < COMPLAINTS_MAX {
            outcomes.complaints.push(text);
        }
    }

    /// One client, until the end.
    pub fn run(&self, client: u32, seed: u64) {
        let mut random = Random::new(seed << 16 | u64::from(client));
        let mut place = client as usize;
        let mut session: Option<Connection> = None;
        while !self.is_over.load(Ordering::SeqCst) {
            if self.is_paused.load(Ordering::SeqCst) {
                self.paused.fetch_add(1, Ordering::SeqCst);
                while self.is_paused.load(Ordering::SeqCst) && !self.is_over.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
                self.paused.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let node = self.nodes[place % self.nodes.len()];
            let Some(open) = &mut session else {
                session = connect(node, ANSWER_MAX).ok();
                if session.as_mut().is_none_or(|open| open.query("USE bank").is_err()) {
                    session = None;
                    place += 1;
                    thread::sleep(RETRY_PAUSE);
                }
                continue;
            };
            if self.step(open, (client, node), &mut random).is_err() {
                session = None;
                place += 1;
                thread::sleep(RETRY_PAUSE);
            }
        }
    }

    /// Some reads and one transfer. Fails if the client has to go to another node.
    fn step(&self, session: &mut Connection, at: (u32, u8), random: &mut Random) -> Result<(), ClientError> {
        if random.below(4) == 0 {
            self.read(session, at.1, random)?;
        }
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let (end, error) = transfer(session, number, random);
        let is_clean = error.as_ref().is_none_or(|error| ROLLED_BACK.contains(&error.errno()));
        {
            let mut outcomes = self.outcomes.lock().expect("no client has panicked");
            match end {
                End::Acknowledged => {
                    outcomes.acknowledged.insert(number);
                    outcomes.times.push((Instant::now(), at.0));
                }
                End::Refused => drop(outcomes.refused.insert(number)),
                End::Unknown => outcomes.unknown += 1,
            }
        }
        match error {
            None => self.recent.store(number, Ordering::SeqCst),
            Some(error) => {
                self.judge(&error, at.1);
                if !is_clean {
                    return Err(error);
                }
                session.query("ROLLBACK")?;
            }
        }
        Ok(())
    }

    /// Complains of errors that no fault explains.
    fn judge(&self, error: &ClientError, node: u8) {
        let errno = error.errno();
        let is_explained = ROLLED_BACK.contains(&errno) || UNAVAILABLE.contains(&errno) || errno == UNKNOWN;
        if !is_explained && !matches!(error, ClientError::Io(_)) {
            self.complain(format!("node {node}: {error}"));
        }
    }

    /// Reads what was acknowledged before at any node.
    fn read(&self, session: &mut Connection, node: u8, random: &mut Random) -> Result<(), ClientError> {
        let recent = self.recent.load(Ordering::SeqCst);
        let (query, expected) = match random.below(4) {
            0 => ("SELECT SUM(balance) FROM account".to_owned(), ACCOUNTS * BALANCE),
            _ if recent == 0 => return Ok(()),
            _ => (format!("SELECT COUNT(*) FROM transfer WHERE id = {recent}"), 1),
        };
        match session.query_value(&query) {
            Ok(found) if found == Some(expected.to_string()) => Ok(()),
            Ok(found) => {
                self.complain(format!("node {node}: {query}: {found:?} instead of {expected}"));
                Ok(())
            }
            Err(error) => {
                self.judge(&error, node);
                if ROLLED_BACK.contains(&error.errno()) { Ok(()) } else { Err(error) }
            }
        }
    }
}

/// Transfers money in one transaction.
fn transfer(session: &mut Connection, number: u64, random: &mut Random) -> (End, Option<ClientError>) {
    let (source, amount) = (random.below(ACCOUNTS), random.below(20));
    let target = (source + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    let statements = [
        "BEGIN".to_owned(),
        format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
        format!("UPDATE account SET balance = balance + {amount} WHERE id = {target}"),
        format!("INSERT INTO transfer VALUES ({number}, {source}, {target}, {amount}, {number})"),
    ];
    for statement in &statements {
        if let Err(error) = session.query(statement) {
            return (End::Refused, Some(error));
        }
    }
    match session.query("COMMIT") {
        Ok(_) => (End::Acknowledged, None),
        Err(error) if ROLLED_BACK.contains(&error.errno()) => (End::Refused, Some(error)),
        Err(error) => (End::Unknown, Some(error)),
    }
}
