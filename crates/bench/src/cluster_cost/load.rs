//! Clients that send operations to the nodes of a cluster in a closed loop, or at a given rate.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::latency::Latencies;
use crate::mysql::{ClientError, Connection};
use crate::random::Random;
use crate::{Failure, Outcome};

/// Errors after which an operation is sent again: a deadlock, which Galera reports for other conflicts of its
/// nodes, too, and the end of a wait for a lock.
pub const CONFLICTS: [u16; 2] = [1213, 1205];
/// Part of the time of a run that is not measured, at its start.
const WARM_UP_PARTS: u32 = 4;

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A select of one row by its key.
    Select,
    /// An update of one row by its key, which commits by itself.
    Update,
    /// A transaction that updates two rows.
    Transfer,
}

impl Operation {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Select => "select",
            Operation::Update => "update",
            Operation::Transfer => "two updates",
        }
    }
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The servers; clients are spread over them.
    pub at: Vec<SocketAddr>,
    pub operation: Operation,
    pub clients: u32,
    /// Rows of the table, with ids from 1.
    pub rows: u64,
    pub time: Duration,
    /// Operations a second of all clients; `None` for as many as possible.
    pub per_s: Option<f64>,
}

/// Figures of a load.
#[derive(Clone, Default)]
pub struct LoadReport {
    /// From the moment at which an operation was sent to its answer.
    pub latencies: Latencies,
    /// All operations, those of the warm-up included.
    pub operations: u64,
    pub conflicts: u64,
    pub per_s: f64,
}

impl Load {
    /// Runs the load.
    ///
    /// # Errors
    /// A client fails.
    pub fn run(&self) -> Outcome<LoadReport> {
        let opened = Barrier::new(self.clients as usize);
        let parts: Vec<Outcome<LoadReport>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|client| {
                    scope.spawn({
                        let opened = &opened;
                        move || self.client(client, new_seed(), opened)
                    })
                })
                .collect();
            let failed = |_| Err(Failure::new("a client panicked"));
            clients.into_iter().map(|client| client.join().unwrap_or_else(failed)).collect()
        });
        let mut all = LoadReport::default();
        for part in parts {
            let part = part?;
            all.latencies.merge(&part.latencies);
            all.operations += part.operations;
            all.conflicts += part.conflicts;
        }
        all.per_s = all.latencies.count() as f64 / self.time.as_secs_f64();
        Ok(all)
    }

    fn client(&self, client: u32, seed: u64, opened: &Barrier) -> Outcome<LoadReport> {
        let at = self.at[client as usize % self.at.len()];
        let session = Connection::open(at, "sbtest");
        // The others wait here, also if this client cannot connect.
        opened.wait();
        let mut session = session?;
        let mut random = Random::new(seed);
        let mut report = LoadReport::default();
        let begin = Instant::now();
        let measured_from = begin + self.time / WARM_UP_PARTS;
        let end = measured_from + self.time;
        let interval = self.per_s.map(|per_s| Duration::from_secs_f64(f64::from(self.clients) / per_s));
        let mut due = begin + interval.unwrap_or_default().mul_f64(f64::from(client) / f64::from(self.clients));
        loop {
            if let Some(interval) = interval {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                due += interval;
            }
            let sent = Instant::now();
            if sent >= end {
                return Ok(report);
            }
            let outcome = self.operation.run(&mut session, self.rows, &mut random);
            let answered = Instant::now();
            match outcome {
                Ok(false) => return Err(Failure::new("a row is missing")),
                Ok(true) if sent >= measured_from && answered <= end => {
                    report.latencies.add((answered - sent).as_nanos() as u64);
                }
                Ok(true) => {}
                Err(error) if CONFLICTS.contains(&error.errno()) => {
                    report.conflicts += 1;
                    session.query("ROLLBACK")?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            report.operations += 1;
        }
    }
}

impl Operation {
    /// Runs the operation on random rows. Returns whether there are such rows.
    ///
    /// # Errors
    /// The server refuses a statement.
    pub fn run(self, session: &mut Connection, rows: u64, random: &mut Random) -> Result<bool, ClientError> {
        let key = 1 + random.below(rows);
        match self {
            Operation::Select => Ok(session.query(&format!("SELECT c FROM sbtest1 WHERE id = {key}"))?.rows.len() == 1),
            Operation::Update => update(session, key, &text(random)),
            Operation::Transfer => {
                session.query("BEGIN")?;
                let mut are_there = true;
                for _ in 0..2 {
                    let key = 1 + random.below(rows);
                    are_there &= update(session, key, &text(random))?;
                }
                session.query("COMMIT")?;
                Ok(are_there)
            }
        }
    }
}

/// A seed that no other client of this program has. With the same one, a later run would set the texts that
/// are there already, and such an update writes nothing.
pub fn new_seed() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A new text of column c.
pub fn text(random: &mut Random) -> String {
    let digits = random.below(100_000_000_000);
    format!("{digits:011}-{digits:011}")
}

/// The statement of sysbench's `oltp_update_non_index`.
pub fn statement(key: u64, text: &str) -> String {
    format!("UPDATE sbtest1 SET c = '{text}' WHERE id = {key}")
}

/// Runs the statement. Returns whether it changed its row.
///
/// # Errors
/// The server refuses it.
pub fn update(session: &mut Connection, key: u64, text: &str) -> Result<bool, ClientError> {
    Ok(session.query(&statement(key, text))?.affected_rows == 1)
}
