//! A closed loop of statements by key: each connection sends a statement, waits for the whole answer, and
//! sends the next, as in sysbench. The same program drives databases and the echo server, so that their
//! figures can be compared.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Explain;
use crate::latency::Latencies;
use crate::mysql::request::{push_execute, push_query};
use crate::mysql::{Connection, ReplyScanner};
use crate::random::Random;
use crate::sysbench::StatementMode;
use crate::{Failure, Outcome};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// An IN list over the table of sysbench.
pub const LIST: &str = "SELECT id, k, c, pad FROM sbtest1 WHERE id IN (";
/// A point select over the table of sysbench.
pub const POINT: &str = "SELECT c FROM sbtest1 WHERE id=";

/// A load of reads or updates.
#[derive(Clone, Debug)]
pub struct Load {
    /// Address of the server.
    pub address: SocketAddr,
    /// Whether the server is a database. An echo server gets statements without a login.
    pub is_database: bool,
    /// Statements that each connection executes first, such as `BEGIN`.
    pub first: &'static [&'static str],
    /// Number of connections, each with a thread of its own as in sysbench.
    pub connections: u32,
    /// How statements are sent.
    pub mode: StatementMode,
    /// Keys per statement: 1 for a statement that ends with one key, more for an IN list.
    pub keys: u32,
    /// The text of a statement up to its single key.
    pub point: &'static str,
    /// The text of an IN list up to its keys.
    pub list: &'static str,
    /// Rows of the table, with ids from 1.
    pub rows: u64,
    /// End of the load.
    pub until: Until,
    /// Seed of the keys.
    pub seed: u64,
}

/// End of a load.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After this many statements on each connection.
    Statements(u64),
}

/// Figures of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Answered statements.
    pub statements: u64,
    /// Rows in the answers.
    pub rows: u64,
    /// Statements per second.
    pub per_s: f64,
    /// 95th percentile of the latencies, in microseconds.
    pub p95_us: f64,
}

impl Load {
    /// The statement with parameter markers instead of keys.
    pub fn prepared_text(&self) -> String {
        match self.keys {
            1 => format!("{}?", self.point),
            count => {
                let marks = vec!["?"; count as usize].join(",");
                format!("{}{marks})", self.list)
            }
        }
    }

    /// Runs the load.
    ///
    /// # Errors
    /// A connection fails, or the server refuses a statement.
    pub fn run(&self) -> Outcome<LoadReport> {
        let barrier = &Barrier::new(self.connections as usize + 1);
        let (results, elapsed) = thread::scope(|scope| {
            let workers: Vec<_> =
                (0..self.connections).map(|number| scope.spawn(move || self.worker(number, barrier))).collect();
            barrier.wait();
            let start = Instant::now();
            let results: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            (results, start.elapsed())
        });
        let mut report = LoadReport::default();
        let mut latencies = Latencies::default();
        for result in results {
            let worker = result.map_err(|_| Failure::new("a thread of the load panicked"))??;
            report.rows += worker.rows;
            latencies.merge(&worker.latencies);
        }
        report.statements = latencies.count();
        report.per_s = report.statements as f64 / elapsed.as_secs_f64();
        report.p95_us = latencies.percentile_us(950);
        Ok(report)
    }

    fn worker(&self, number: u32, barrier: &Barrier) -> Outcome<WorkerReport> {
        let opened = self.open();
        // The other connections wait at this barrier, so reach it even if this connection failed.
        barrier.wait();
        let mut channel = opened?;
        let mut random = Random::new(self.seed ^ u64::from(number) << 32);
        let mut report = WorkerReport::default();
        let start = Instant::now();
        let mut sent = start;
        loop {
            let done = match self.until {
                Until::Elapsed(time) => sent - start >= time,
                Until::Statements(count) => report.latencies.count() >= count,
            };
            if done {
                return Ok(report);
            }
            channel.push_statement(self, &mut random);
            report.rows += channel.exchange().explain(format!("connection {number}"))?;
            let now = Instant::now();
            report.latencies.add((now - sent).as_nanos() as u64);
            sent = now;
        }
    }

    /// Records the bytes of one answer for an echo server.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn record(&self) -> Outcome<Vec<u8>> {
        let mut channel = self.open()?;
        channel.recording = Some(Vec::new());
        channel.push_statement(self, &mut Random::new(self.seed));
        channel.exchange()?;
        Ok(channel.recording.unwrap_or_default())
    }

    fn open(&self) -> Outcome<Channel> {
        let (mut statement, mut session) = (1, None);
        let stream = if self.is_database {
            let mut connection = Connection::open(self.address, "sbtest")?;
            for text in self.first {
                connection.query(text)?;
            }
            if self.mode == StatementMode::Prepared {
                statement = connection.prepare(&self.prepared_text())?.id;
            }
            let stream = connection.stream()?;
            session = Some(connection);
            stream
        } else {
            TcpStream::connect(self.address)?
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        Ok(Channel {
            stream,
            _session: session,
            statement,
            request: Vec::new(),
            text: String::new(),
            keys: Vec::new(),
            buffer: vec![0; 64 << 10],
            recording: None,
        })
    }
}

#[derive(Default)]
struct WorkerReport {
    latencies: Latencies,
    rows: u64,
}

struct Channel {
    stream: TcpStream,
    /// Sends COM_QUIT on drop.
    _session: Option<Connection>,
    statement: u32,
    request: Vec<u8>,
    text: String,
    keys: Vec<i64>,
    buffer: Vec<u8>,
    /// Received bytes, if they are recorded.
    recording: Option<Vec<u8>>,
}

impl Channel {
    fn push_statement(&mut self, load: &Load, random: &mut Random) {
        self.request.clear();
        self.keys.clear();
        self.keys.extend((0..load.keys).map(|_| 1 + random.below(load.rows) as i64));
        if load.mode == StatementMode::Prepared {
            push_execute(&mut self.request, self.statement, &self.keys);
            return;
        }
        self.text.clear();
        // Writing to a String cannot fail.
        let _ = match self.keys.as_slice() {
            [key] => write!(self.text, "{}{key}", load.point),
            keys => {
                self.text.push_str(load.list);
                for key in keys {
                    let _ = write!(self.text, "{key},");
                }
                self.text.pop();
                self.text.push(')');
                Ok(())
            }
        };
        push_query(&mut self.request, &self.text);
    }

    /// Sends the request, reads its answer, and returns the number of rows.
    fn exchange(&mut self) -> Outcome<u64> {
        self.stream.write_all(&self.request)?;
        let mut scanner = ReplyScanner::default();
        loop {
            let count = self.stream.read(&mut self.buffer)?;
            if count == 0 {
                return Err(Failure::new("the server closed the connection"));
            }
            if let Some(recording) = &mut self.recording {
                recording.extend_from_slice(&self.buffer[..count]);
            }
            if scanner.feed(&self.buffer[..count])? {
                break;
            }
        }
        match scanner.errno {
            0 => Ok(scanner.rows),
            errno => Err(Failure::new(format!("the server refused a statement with error {errno}"))),
        }
    }
}
