//! Clients, each with its own connection and thread. A client sends an operation, checks the whole reply, and
//! sends the next.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use super::operation::{Expected, Operation, Script};
use super::workload::{Workload, total_share};
use crate::failure::Explain;
use crate::latency::Latencies;
use crate::mysql::Connection;
use crate::mysql::request::push_query;
use crate::random::Random;
use crate::{Failure, Outcome};

const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DEADLOCK: u16 = 1213;

/// Start and end of a run, shared by all clients, and whether the run must stop early.
pub struct Schedule {
    /// Barrier for the clients and for the thread that sets the start with [`Schedule::begin_at`].
    pub ready: Barrier,
    start: Mutex<Option<Instant>>,
    stopped: AtomicBool,
    /// Measured time in seconds.
    pub seconds: f64,
}

impl Schedule {
    /// Creates the schedule of a run with `clients` clients.
    pub fn new(clients: u32, seconds: f64) -> Schedule {
        let ready = Barrier::new(clients as usize + 1);
        Schedule { ready, start: Mutex::new(None), stopped: AtomicBool::new(false), seconds }
    }

    /// Sets the start of the measurement. Call it before passing [`Schedule::ready`].
    pub fn begin_at(&self, start: Instant) {
        *self.start.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(start);
    }

    /// Ends all clients after their current operations.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn window(&self) -> (Instant, Instant) {
        let start = self.start.lock().unwrap_or_else(|poison| poison.into_inner()).unwrap_or_else(Instant::now);
        (start, start + Duration::from_secs_f64(self.seconds))
    }
}

/// The figures of a client.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Latencies of the operations that ended during the measurement.
    pub latencies: Latencies,
    /// Operations of each phase.
    pub phase_operations: Vec<u64>,
    /// Transactions that a deadlock or a timeout rolled back. They do not count as operations.
    pub undone: u64,
}

impl Tally {
    /// Adds the figures of another client.
    pub fn add(&mut self, other: &Tally) {
        self.latencies.merge(&other.latencies);
        self.phase_operations.resize(self.phase_operations.len().max(other.phase_operations.len()), 0);
        for (sum, count) in self.phase_operations.iter_mut().zip(&other.phase_operations) {
            *sum += count;
        }
        self.undone += other.undone;
    }
}

/// A client with its random generator and buffers.
pub struct Client<'a> {
    workload: &'a Workload,
    rows: u64,
    random: Random,
    script: Script,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All replies were correct.
    Done,
    /// A deadlock or a timeout rolled the operation back.
    Undone,
}

impl<'a> Client<'a> {
    /// Creates a client of tables with `rows` rows. Its operations depend only on `seed`.
    pub fn new(workload: &'a Workload, rows: u64, seed: u64) -> Client<'a> {
        let (random, script) = (Random::new(seed), Script::default());
        Client { workload, rows, random, script, request: Vec::new(), buffer: vec![0; 64 << 10] }
    }

    /// Runs until the end of the schedule.
    ///
    /// # Errors
    /// The connection failed, a reply was wrong, or an unexpected error occurred.
    pub fn run(&mut self, connection: Outcome<Connection>, schedule: &Schedule) -> Outcome<Tally> {
        // The other clients wait at this barrier, so reach it even if this connection failed.
        schedule.ready.wait();
        let mut connection = connection?;
        let (start, end) = schedule.window();
        let mut tally = Tally { phase_operations: vec![0; self.workload.phases.len()], ..Tally::default() };
        let mut begun = Instant::now();
        while begun < end && !schedule.stopped.load(Ordering::Relaxed) {
            let since_start = begun.checked_duration_since(start).map(|time| time.as_nanos() as u64);
            let phase = self.workload.phase_at(since_start);
            let number = self.random.below(u64::from(total_share(self.workload.phases[phase]))) as u32;
            let ended = self.operate(self.workload.operation(phase, number), &mut connection)?;
            let now = Instant::now();
            match ended {
                Ended::Done if now >= start && now < end => {
                    tally.latencies.add((now - begun).as_nanos() as u64);
                    tally.phase_operations[phase] += 1;
                }
                Ended::Undone if now >= start && now < end => tally.undone += 1,
                _ => {}
            }
            begun = now;
        }
        Ok(tally)
    }

    /// Sends the statements of an operation and checks their replies.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn operate(&mut self, operation: Operation, connection: &mut Connection) -> Outcome<Ended> {
        self.script.write(operation, self.rows, &mut self.random);
        for (text, expected) in self.script.statements() {
            self.request.clear();
            push_query(&mut self.request, text);
            let answer = connection.exchange(&self.request, &mut self.buffer)?;
            match answer.errno {
                0 => require(text, expected, answer.rows, answer.affected_rows)?,
                DEADLOCK => return Ok(Ended::Undone),
                LOCK_WAIT_TIMEOUT => {
                    connection.query("ROLLBACK").explain("ROLLBACK")?;
                    return Ok(Ended::Undone);
                }
                errno => return Err(Failure::new(format!("error {errno} for {text}"))),
            }
        }
        Ok(Ended::Done)
    }
}

fn require(text: &str, expected: Expected, rows: u64, changed: u64) -> Outcome<()> {
    if expected.fits(rows, changed) {
        return Ok(());
    }
    Err(Failure::new(format!("{rows} rows and {changed} changed instead of {expected:?} for {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_reported_with_its_statement() {
        assert!(require("SELECT 1", Expected::Rows(1), 1, 0).is_ok());
        let failure = require("SELECT 1", Expected::Rows(1), 2, 0).expect_err("two rows").to_string();
        assert_eq!(failure, "2 rows and 0 changed instead of Rows(1) for SELECT 1");
    }

    #[test]
    fn tallies_add_up_by_phase() {
        let mut sum = Tally::default();
        let mut first = Tally { phase_operations: vec![1, 0], undone: 1, ..Tally::default() };
        first.latencies.add(1);
        sum.add(&first);
        sum.add(&Tally { phase_operations: vec![0, 2], ..first });
        assert_eq!((sum.latencies.count(), sum.phase_operations, sum.undone), (2, vec![1, 2], 2));
    }
}
