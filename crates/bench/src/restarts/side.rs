//! A server with a data folder that outlives it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::phases::{self, CpuRecorder, Phase};
use super::{DROP_CACHES, End, Kind, RestartsOptions, junctor_options};
use crate::event_load::client::{EventLoad, EventReport};
use crate::event_load::work::Work;
use crate::failure::Explain;
use crate::fill::fill_over;
use crate::mysql::Connection;
use crate::process::{JunctorOptions, Server, start_junctor_observed, start_mariadb_on};
use crate::{Failure, Outcome};

/// Connections that fill the table.
const FILL_CONNECTIONS: usize = 4;
/// Threads of the clients.
const CLIENT_THREADS: usize = 2;
/// Time from the last measurement of updates to the kill; the clients go on updating.
const KILL_DELAY: Duration = Duration::from_secs(2);

/// A start, and what came before it.
#[derive(Clone, Debug, Default)]
pub struct Restart {
    /// Updates per second before the end of the server.
    pub updates_per_s: f64,
    /// Seconds that the stop took.
    pub end_s: f64,
    /// Seconds from the start of the process to the first answer.
    pub answer_s: f64,
    /// Processor time until then, in seconds.
    pub cpu_s: f64,
    /// The phases of the start, for Junctor.
    pub phases: Vec<Phase>,
}

impl Restart {
    /// The phase with this name.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Rows that were loaded from the checkpoint. A row that several rounds wrote counts each time.
    pub fn loaded_rows(&self) -> f64 {
        self.phase("load checkpoint").map_or(0.0, |phase| phase.rows)
    }

    /// Processor time in which rows were loaded and indexed, in microseconds.
    pub fn load_cpu_us(&self) -> f64 {
        self.load_user_us() + self.load_ms(|phase| phase.kernel_ms) * 1000.0
    }

    /// The part of [`Self::load_cpu_us`] in user mode.
    pub fn load_user_us(&self) -> f64 {
        self.load_ms(|phase| phase.user_ms) * 1000.0
    }

    fn load_ms(&self, figure: fn(&Phase) -> f64) -> f64 {
        ["load checkpoint", "build indexes"].iter().filter_map(|name| self.phase(name)).map(figure).sum()
    }

    /// Seconds in which the log was read and replayed.
    pub fn replay_s(&self) -> f64 {
        let ms = |name| self.phase(name).map_or(0.0, |phase| phase.ms);
        (ms("read log") + ms("replay log")) / 1000.0
    }

    /// Seconds in which the replayed part of the log was written, by the rate of the updates.
    pub fn write_s(&self) -> f64 {
        self.phase("replay log").map_or(0.0, |phase| phase.rows) / self.updates_per_s
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Restart { updates_per_s, end_s, answer_s, cpu_s, phases } = self;
        write!(
            out,
            "{updates_per_s:.0} updates/s, ended in {end_s:.2} s, answer after {answer_s:.2} s, CPU {cpu_s:.2} s"
        )?;
        for Phase { name, ms, user_ms, kernel_ms, rows, bytes } in phases {
            write!(out, "\n  {name}: {ms} ms, CPU {user_ms:.0} and {kernel_ms:.0} ms, {rows} rows, {bytes} bytes")?;
        }
        Ok(())
    }
}

enum Kept {
    Junctor(Box<JunctorOptions>),
    MariaDb { folder: PathBuf, buffer_pool: String },
}

/// A server with its data folder.
pub struct Side {
    kept: Kept,
    server: Option<Server>,
    /// Number of loads so far.
    loads: u8,
}

impl Side {
    /// Starts Junctor on its folder within `folder`.
    ///
    /// # Errors
    /// Junctor does not start.
    pub fn junctor(options: &RestartsOptions, folder: &Path) -> Outcome<Side> {
        let junctor = JunctorOptions { data_folder: Some(folder.join("junctor")), ..junctor_options(options) };
        Side::start(Kept::Junctor(Box::new(junctor)))
    }

    /// Starts MariaDB on its folder within `folder`.
    ///
    /// # Errors
    /// MariaDB does not start.
    pub fn mariadb(options: &RestartsOptions, folder: &Path) -> Outcome<Side> {
        let buffer_pool = format!("--innodb-buffer-pool-size={}", options.total_memory);
        Side::start(Kept::MariaDb { folder: folder.join("mariadb"), buffer_pool })
    }

    fn start(kept: Kept) -> Outcome<Side> {
        let server = kept.start(|_| {})?;
        Ok(Side { kept, server: Some(server), loads: 0 })
    }

    /// Name in reports.
    pub fn name(&self) -> &'static str {
        self.server.as_ref().map_or("-", |server| server.name)
    }

    /// Fills the table, unless the folder has one with this number of rows.
    ///
    /// # Errors
    /// The server refuses a statement.
    pub fn fill(&mut self, rows: u64) -> Outcome<()> {
        let server = self.server()?;
        let mut connection = server.connect()?;
        if let Ok(found) = connection.query_value("SELECT COUNT(*) FROM sbtest.sbtest1") {
            return match found.as_deref() {
                Some(found) if found == rows.to_string() => Ok(()),
                _ => Err(Failure::new(format!("the table of {} has {found:?} rows", server.name))),
            };
        }
        if matches!(self.kept, Kept::MariaDb { .. }) {
            // The clients of the load have addresses of their own.
            server.execute(&["CREATE USER root@'127.%'", "GRANT ALL ON *.* TO root@'127.%'"])?;
        }
        server.execute(&["CREATE DATABASE sbtest"])?;
        let start = Instant::now();
        fill_over(server, rows, FILL_CONNECTIONS)?;
        eprintln!("{}: filled in {:.1} s", server.name, start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Updates rows, ends the server, and starts it again.
    ///
    /// # Errors
    /// The server fails, or the row of the first answer is missing.
    pub fn restart(&mut self, options: &RestartsOptions, kind: Kind) -> Outcome<Restart> {
        let report = self.update(options)?;
        let server = self.server.take().ok_or_else(|| Failure::new("no server"))?;
        let end = Instant::now();
        match kind.end {
            End::Stop => server.stop()?,
            End::Kill => self.kill_amid_updates(server, options)?,
        }
        let end_s = end.elapsed().as_secs_f64();
        if kind.is_cold {
            let (path, word) = DROP_CACHES;
            rustix::fs::sync();
            fs::write(path, word).explain(path)?;
        }
        let start = Instant::now();
        let mut recorder = None;
        let server = self.kept.start(|process_id| recorder = Some(CpuRecorder::start(process_id)))?;
        let ready = Instant::now();
        let mut connection = Connection::open(server.address, "sbtest")?;
        let row = connection.query_value(&format!("SELECT k FROM sbtest1 WHERE id = {}", options.rows / 2 + 1))?;
        let answer_s = start.elapsed().as_secs_f64();
        let curve = recorder.map(CpuRecorder::end).transpose()?.unwrap_or_default();
        let cpu_s = server.cpu_time()?.as_secs_f64();
        if row.is_none() {
            return Err(Failure::new("the row of the first answer is missing"));
        }
        let phases = match self.kept {
            Kept::Junctor(_) => phases::read(&mut connection, ready, &curve)?,
            Kept::MariaDb { .. } => Vec::new(),
        };
        self.server = Some(server);
        Ok(Restart { updates_per_s: report.per_s, end_s, answer_s, cpu_s, phases })
    }

    /// Stops the server.
    ///
    /// # Errors
    /// The server does not stop.
    pub fn stop(self) -> Outcome<()> {
        self.server.map_or(Ok(()), Server::stop)
    }

    fn server(&self) -> Outcome<&Server> {
        self.server.as_ref().ok_or_else(|| Failure::new("no server"))
    }

    fn update(&mut self, options: &RestartsOptions) -> Outcome<EventReport> {
        let load = self.load(options, Duration::from_secs(options.seconds))?;
        let server = self.server()?;
        load.run(|| server.cpu_time())
    }

    fn kill_amid_updates(&mut self, server: Server, options: &RestartsOptions) -> Outcome<()> {
        self.server = Some(server);
        let load = self.load(options, KILL_DELAY * 2)?;
        let server = self.server.take().ok_or_else(|| Failure::new("no server"))?;
        thread::scope(|scope| {
            // The load fails when the server is killed.
            scope.spawn(|| load.run(|| Ok(Duration::ZERO)).map(drop));
            thread::sleep(load.warm_up + KILL_DELAY);
            server.kill()
        })
    }

    fn load(&mut self, options: &RestartsOptions, time: Duration) -> Outcome<EventLoad> {
        self.loads = self.loads.wrapping_add(1);
        Ok(EventLoad {
            address: self.server()?.address,
            is_database: true,
            connections: options.clients,
            threads: CLIENT_THREADS,
            work: Work::Update,
            rows: options.rows,
            warm_up: Duration::from_secs(1),
            time,
            run: self.loads,
        })
    }
}

impl Kept {
    fn start(&self, observe: impl FnOnce(u32)) -> Outcome<Server> {
        match self {
            Kept::Junctor(options) => start_junctor_observed(options, observe),
            Kept::MariaDb { folder, buffer_pool } => {
                start_mariadb_on(folder, &["--innodb-flush-log-at-trx-commit=1", buffer_pool])
            }
        }
    }
}
