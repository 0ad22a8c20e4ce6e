//! Opens connections and runs a closed loop: each connection sends a statement, waits for the whole reply,
//! and sends the next. One or two threads serve all connections, so the client's cost per operation hardly
//! depends on the number of connections.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

use super::connect::connect_from;
use super::connection::{Ended, LoadConnection, SharedBuffers};
use super::work::{Keys, PREPARED, Work};
use crate::failure::Explain;
use crate::latency::Latencies;
use crate::mysql::Connection;
use crate::random::Random;
use crate::{Failure, Outcome};

const EVENTS_MAX: usize = 512;
/// Maximum wait of a thread before it checks whether the phase has changed.
const CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The warm-up and the measurement are extended until as many operations have ended as there are connections,
/// but neither lasts longer than this.
const ROUND_TIME_MAX: Duration = Duration::from_secs(60);
/// The last replies must arrive within this time after the end; otherwise the server has failed.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(120);
const DATABASE: &str = "sbtest";

/// A load.
#[derive(Clone, Debug)]
pub struct EventLoad {
    /// Address of the server.
    pub address: SocketAddr,
    /// Whether the server is a database. An echo server gets statements without a login.
    pub is_database: bool,
    /// Number of connections.
    pub connections: usize,
    /// Number of client threads.
    pub threads: usize,
    /// The kind of operation.
    pub work: Work,
    /// Rows of the table sbtest1, with ids from 1.
    pub rows: u64,
    /// Minimum duration of the warm-up. It is extended until at least one operation per connection has ended.
    pub warm_up: Duration,
    /// Minimum duration of the measurement, extended like the warm-up.
    pub time: Duration,
    /// Number of the run. It selects the client addresses and the keys.
    pub run: u8,
}

/// Figures of a run.
#[derive(Clone, Default)]
pub struct EventReport {
    /// Latencies of the operations.
    pub latencies: Latencies,
    /// Latencies of the statements after the first one of an operation: those inside an open transaction.
    pub inside: Latencies,
    /// Operations that the server refused because of a conflict.
    pub refusals: u64,
    /// Statements that were answered, except those of refused operations and their rollbacks.
    pub statements: u64,
    /// Operations per second: statements per second divided by the statements of an operation.
    pub per_s: f64,
    /// CPU time of the server per operation, in microseconds.
    pub server_cpu_us: f64,
    /// CPU time of the client per operation, in microseconds.
    pub client_cpu_us: f64,
    /// Seconds until all connections had logged in.
    pub connect_s: f64,
}

/// The phases after the warm-up, which is phase 0.
const MEASURE: u8 = 1;
const DRAIN: u8 = 2;

/// State that the threads of a run share.
struct Progress<'a> {
    phase: AtomicU8,
    /// Number of ended operations, including refused ones.
    ended: &'a AtomicU64,
}

/// Maximum number of client threads of a load of few clients.
const FEW_THREADS_MAX: usize = 2;

impl EventLoad {
    /// A load of a database by few clients: a second after a warm-up of a second.
    pub fn of_clients(address: SocketAddr, work: Work, clients: usize, rows: u64) -> EventLoad {
        EventLoad {
            address,
            is_database: true,
            connections: clients,
            threads: clients.min(FEW_THREADS_MAX),
            work,
            rows,
            warm_up: Duration::from_secs(1),
            time: Duration::from_secs(1),
            run: 0,
        }
    }

    /// Runs the load. `server_cpu` returns the CPU time that the server has used so far.
    ///
    /// # Errors
    /// A connection fails, or the server refuses a statement for another reason than a conflict.
    pub fn run(&self, server_cpu: impl Fn() -> Outcome<Duration>) -> Outcome<EventReport> {
        self.run_counted(server_cpu, &AtomicU64::new(0))
    }

    /// As [`Self::run`]. `ended` counts ended operations while the load runs, including refused ones.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_counted(&self, server_cpu: impl Fn() -> Outcome<Duration>, ended: &AtomicU64) -> Outcome<EventReport> {
        let progress = Progress { phase: AtomicU8::new(0), ended };
        let opened = Barrier::new(self.threads + 1);
        let connecting = Instant::now();
        thread::scope(|scope| {
            let (progress, opened) = (&progress, &opened);
            let workers: Vec<_> =
                (0..self.threads).map(|number| scope.spawn(move || self.worker(number, progress, opened))).collect();
            opened.wait();
            let connect_s = connecting.elapsed().as_secs_f64();
            let counted = self.run_phases(progress, server_cpu);
            progress.phase.store(DRAIN, Ordering::Relaxed);
            let mut report = EventReport { connect_s, ..EventReport::default() };
            let mut client_cpu = Duration::ZERO;
            for worker in workers {
                let part = worker.join().map_err(|_| Failure::new("a thread of the load panicked"))??;
                report.latencies.merge(&part.latencies);
                report.inside.merge(&part.inside);
                report.refusals += part.refusals;
                report.statements += part.statements;
                client_cpu += part.cpu;
            }
            let (elapsed, cpu) = counted?;
            // The connections may run in lockstep, and all their operations may then end just outside the
            // measured time. Count statements instead.
            let operations = report.statements.max(1) as f64 / f64::from(self.work.statements());
            report.per_s = operations / elapsed.as_secs_f64();
            report.server_cpu_us = cpu.as_secs_f64() * 1e6 / operations;
            report.client_cpu_us = client_cpu.as_secs_f64() * 1e6 / operations;
            Ok(report)
        })
    }

    /// Runs the phases one after the other. Returns the measured time and the CPU time that the server used
    /// in it.
    fn run_phases(
        &self,
        progress: &Progress<'_>,
        server_cpu: impl Fn() -> Outcome<Duration>,
    ) -> Outcome<(Duration, Duration)> {
        self.wait_for_operations(self.warm_up, progress);
        let before = server_cpu()?;
        let start = Instant::now();
        progress.phase.store(MEASURE, Ordering::Relaxed);
        self.wait_for_operations(self.time, progress);
        progress.phase.store(DRAIN, Ordering::Relaxed);
        let elapsed = start.elapsed();
        Ok((elapsed, server_cpu()?.saturating_sub(before)))
    }

    /// Waits for `time`, and then until at least one operation per connection has ended. Without the second
    /// condition, an operation longer than `time` would count only by chance.
    fn wait_for_operations(&self, time: Duration, progress: &Progress<'_>) {
        let (start, before) = (Instant::now(), progress.ended.load(Ordering::Relaxed));
        thread::sleep(time);
        while progress.ended.load(Ordering::Relaxed) < before + self.connections as u64
            && start.elapsed() < ROUND_TIME_MAX
        {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn worker(&self, number: usize, progress: &Progress<'_>, opened: &Barrier) -> Outcome<Part> {
        let connections: Outcome<Vec<LoadConnection>> =
            (number..self.connections).step_by(self.threads).map(|connection| self.open(connection)).collect();
        // The other threads wait at this barrier, so reach it even if these connections failed.
        opened.wait();
        let seed = u64::from(self.run) << 8 | number as u64;
        let shared = SharedBuffers::new(self.work, Keys::new(self.rows, Random::new(seed)));
        Loop { connections: connections?, shared, part: Part::default(), under_way: 0, ended: 0, cpu_start: None }
            .run(progress)
    }

    fn open(&self, number: usize) -> Outcome<LoadConnection> {
        let stream = connect_from(self.run, number, self.address).explain(format!("connection {number}"))?;
        stream.set_nodelay(true)?;
        let (stream, statement) = if self.is_database {
            let mut connection = Connection::log_in(stream, DATABASE).explain(format!("connection {number}"))?;
            let statement = match self.work {
                Work::PointPrepared => connection.prepare(PREPARED)?.id,
                _ => 0,
            };
            (connection.into_stream()?, statement)
        } else {
            (stream, 0)
        };
        stream.set_nonblocking(true)?;
        Ok(LoadConnection::new(stream, statement))
    }
}

/// Figures of one thread.
#[derive(Default)]
struct Part {
    latencies: Latencies,
    inside: Latencies,
    refusals: u64,
    statements: u64,
    cpu: Duration,
}

struct Loop {
    connections: Vec<LoadConnection>,
    shared: SharedBuffers,
    part: Part,
    /// Number of connections that wait for a reply.
    under_way: usize,
    /// Number of ended operations.
    ended: u64,
    /// CPU time of this thread at the start of the measurement.
    cpu_start: Option<Duration>,
}

impl Loop {
    fn run(mut self, progress: &Progress<'_>) -> Outcome<Part> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, connection) in self.connections.iter_mut().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&poll, connection.descriptor(), data, epoll::EventFlags::IN)?;
            connection.began = Instant::now();
            connection.send(&mut self.shared)?;
            self.under_way += 1;
        }
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut drain_end = None;
        while self.under_way > 0 {
            match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&CHECK_INTERVAL)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let phase = progress.phase.load(Ordering::Relaxed);
            self.record_cpu_time(phase);
            let ended_before = self.ended;
            for event in events.drain(..) {
                self.on_readable(event.data.u64() as usize, phase)?;
            }
            progress.ended.fetch_add(self.ended - ended_before, Ordering::Relaxed);
            if phase == DRAIN {
                let end = *drain_end.get_or_insert_with(|| Instant::now() + DRAIN_TIME_MAX);
                if Instant::now() > end {
                    return Err(Failure::new(format!("{} connections got no answer", self.under_way)));
                }
            }
        }
        self.connections.iter_mut().for_each(LoadConnection::quit);
        Ok(self.part)
    }

    /// Records the CPU time of this thread at the start and at the end of the measurement.
    fn record_cpu_time(&mut self, phase: u8) {
        match (phase, self.cpu_start) {
            (MEASURE, None) => self.cpu_start = Some(thread_cpu()),
            (DRAIN, Some(start)) if self.part.cpu.is_zero() => self.part.cpu = thread_cpu().saturating_sub(start),
            _ => {}
        }
    }

    fn on_readable(&mut self, number: usize, phase: u8) -> Outcome<()> {
        let connection = &mut self.connections[number];
        let ended = connection.receive(&mut self.shared).explain(format_args!("connection {number}"))?;
        self.part.statements += connection.tally.count(ended, phase == MEASURE);
        if phase == MEASURE
            && matches!(ended, Ended::Statement | Ended::Operation)
            && let Some(sent) = connection.sent_inside
        {
            self.part.inside.add(sent.elapsed().as_nanos() as u64);
        }
        match ended {
            Ended::Nothing => return Ok(()),
            Ended::Statement => return connection.send(&mut self.shared),
            Ended::Refusal => return connection.send_rollback(&mut self.shared),
            Ended::Operation | Ended::Rollback => {}
        }
        let now = Instant::now();
        self.ended += 1;
        if phase == MEASURE {
            match ended {
                Ended::Operation => self.part.latencies.add((now - connection.began).as_nanos() as u64),
                _ => self.part.refusals += 1,
            }
        }
        if phase == DRAIN {
            self.under_way -= 1;
            return Ok(());
        }
        connection.began = now;
        connection.send(&mut self.shared)
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
