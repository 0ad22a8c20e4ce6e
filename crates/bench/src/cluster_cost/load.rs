//! Clients that send operations to the nodes of a cluster in a closed loop, or at a given rate.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::latency::Latencies;
use crate::mysql::{ClientError, Connection};
use crate::random::Random;
use crate::{Failure, Outcome};

/// Errors after which an operation is sent again: a deadlock, which Galera reports for other conflicts of its
/// nodes, too, and the end of a wait for a lock.
const CONFLICTS: [u16; 2] = [1213, 1205];
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
                        move || self.client(client, opened)
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

    fn client(&self, client: u32, opened: &Barrier) -> Outcome<LoadReport> {
        let at = self.at[client as usize % self.at.len()];
        let session = Connection::open(at, "sbtest");
        // The others wait here, also if this client cannot connect.
        opened.wait();
        let mut session = session?;
        let mut random = Random::new(u64::from(client) << 32 | u64::from(at.port()));
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
                Ok(()) if sent >= measured_from && answered <= end => {
                    report.latencies.add((answered - sent).as_nanos() as u64);
                }
                Ok(()) => {}
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
    /// Runs the operation on a random row.
    ///
    /// # Errors
    /// The server refuses a statement.
    pub fn run(self, session: &mut Connection, rows: u64, random: &mut Random) -> Result<(), ClientError> {
        let key = 1 + random.below(rows);
        match self {
            Operation::Select => session.query(&format!("SELECT c FROM sbtest1 WHERE id = {key}")).map(drop),
            Operation::Update => session.query(&update(key, random)).map(drop),
            Operation::Transfer => {
                session.query("BEGIN")?;
                for _ in 0..2 {
                    let key = 1 + random.below(rows);
                    session.query(&update(key, random))?;
                }
                session.query("COMMIT").map(drop)
            }
        }
    }
}

/// The statement of sysbench's `oltp_update_non_index`.
pub fn update(key: u64, random: &mut Random) -> String {
    let digits = random.below(100_000_000_000);
    format!("UPDATE sbtest1 SET c = '{digits:011}-{digits:011}' WHERE id = {key}")
}
