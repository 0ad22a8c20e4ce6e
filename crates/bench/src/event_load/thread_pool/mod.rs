//! Throughput by the number of connections, for each mode of the thread pool, beside MariaDB's
//! pool-of-threads and an echo server: updates that commit by themselves, the same updates inside
//! transactions, and transactions of oltp_read_write.
//!
//! In reading order: this file measures; [`page`] makes tables, plots and verdicts.

pub mod page;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use page::{Figures, Page};

use super::client::{EventLoad, EventReport};
use super::command::{OTHER_CONNECTIONS, wait_for_closing};
use super::connect::allowed_connections;
use super::single_connection::recorded_answer;
use super::work::Work;
use crate::compare::start_echo;
use crate::failure::Explain;
use crate::fill::fill;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::report::print_verdicts;
use crate::statistics::median;
use crate::{Failure, Outcome};

const WORKS: [Work; 3] = [Work::UpdateNonIndex, Work::UpdateTransaction, Work::ReadWrite];

/// Options of `thread-pool`.
#[derive(Clone, Debug, clap::Args)]
pub struct ThreadPoolOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    pub junctor: Option<PathBuf>,
    /// Numbers of connections to run with
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64,256,1024,4096,16384")]
    pub connections: Vec<usize>,
    /// Operations to run [default: update-non-index, update-transaction, read-write]
    #[arg(long, value_delimiter = ',')]
    pub work: Vec<String>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 200_000)]
    pub rows: u64,
    /// Measured seconds of each run
    #[arg(long, value_name = "S", default_value_t = 4)]
    pub seconds: u64,
    /// Seconds before the measurement
    #[arg(long, value_name = "S", default_value_t = 3)]
    pub warm_up: u64,
    /// Runs of each kind, alternating; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1)]
    pub repetitions: u32,
    /// Leave MariaDB out
    #[arg(long)]
    pub alone: bool,
    /// Folder for thread_pool.md and its plots
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

/// A server, or a mode of it.
struct Side<'a> {
    name: &'static str,
    server: &'a Server,
    /// Statements that select the mode.
    mode: &'static [&'static str],
}

/// Junctor's modes. The last one is that of earlier versions: no bound that the load reaches.
const MODES: [(&str, &[&str]); 4] = [
    (
        "transactions",
        &["SET GLOBAL thread_pool_transactions = 0", "SET GLOBAL thread_pool_high_prio_mode = 'transactions'"],
    ),
    (
        "statements",
        &["SET GLOBAL thread_pool_transactions = 0", "SET GLOBAL thread_pool_high_prio_mode = 'statements'"],
    ),
    ("none", &["SET GLOBAL thread_pool_transactions = 0", "SET GLOBAL thread_pool_high_prio_mode = 'none'"]),
    (
        "4096 transactions",
        &["SET GLOBAL thread_pool_transactions = 4096", "SET GLOBAL thread_pool_high_prio_mode = 'transactions'"],
    ),
];

/// Name of the side whose figures have targets: the default mode.
pub const DEFAULT_SIDE: &str = MODES[0].0;

/// Measures, and prints tables in Markdown and the verdicts.
///
/// # Errors
/// A missed target, or a server fails or refuses to start.
pub fn run(options: &ThreadPoolOptions) -> Outcome<()> {
    let works = works(options)?;
    let wanted = options.connections.iter().copied().max().unwrap_or(1);
    let allowed = allowed_connections(wanted);
    if allowed < wanted {
        println!("This user may have {allowed} connections at once (limit of descriptors); more are not measured.\n");
    }
    let counts: Vec<usize> = options.connections.iter().copied().filter(|count| *count <= allowed).collect();
    let limit = (wanted + OTHER_CONNECTIONS).to_string();
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let junctor = start_junctor(&junctor.with_arguments(&["--max-connections", &limit]))?;
    let mariadb = if options.alone { None } else { Some(start_mariadb(&[])?) };
    for server in [Some(&junctor), mariadb.as_ref()].into_iter().flatten() {
        server.execute(&["CREATE DATABASE sbtest"])?;
        fill(server, options.rows)?;
    }
    let echo = start_echo(&recorded_answer(&junctor, options.rows)?)?;
    let mut sides: Vec<Side<'_>> = MODES.iter().map(|(name, mode)| Side { name, server: &junctor, mode }).collect();
    sides.extend(mariadb.as_ref().map(|server| Side { name: "MariaDB pool-of-threads", server, mode: &[] }));
    let mut runs = Runs { options, number: 0 };
    let mut page = Page::default();
    for &connections in &counts {
        page.echo.push((connections, runs.medians(&echo, None, connections)?.per_s));
    }
    for work in works {
        for &connections in &counts {
            for side in &sides {
                side.server.execute(side.mode)?;
                let figures = runs.medians(side.server, Some(work), connections)?;
                let (per_s, p99, inside) = (figures.per_s, figures.p99_us, figures.inside_p99_us);
                eprintln!(
                    "{} {connections} {}: {per_s:.0}/s, p99 {p99:.0} us, inside {inside:.0} us",
                    work.name(),
                    side.name
                );
                page.rows.push((work, side.name, connections, figures));
            }
        }
        println!("{}", page.tables(work));
        // After each operation, so that an interrupted experiment keeps the figures of those before.
        if let Some(folder) = &options.report {
            page.write(folder)?;
        }
    }
    if let Some(mariadb) = mariadb {
        mariadb.stop()?;
    }
    junctor.stop()?;
    let verdicts = page.verdicts();
    if verdicts.is_empty() {
        return Ok(());
    }
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} targets are missed"))),
    }
}

fn works(options: &ThreadPoolOptions) -> Outcome<Vec<Work>> {
    let names = options
        .work
        .iter()
        .map(|name| Work::of_name(name).ok_or_else(|| Failure::new(format!("there is no operation {name}"))));
    let chosen: Vec<Work> = names.collect::<Outcome<_>>()?;
    Ok(if chosen.is_empty() { WORKS.to_vec() } else { chosen })
}

/// Runs one load after the other.
struct Runs<'a> {
    options: &'a ThreadPoolOptions,
    /// Number of the next run. It selects client addresses and keys.
    number: u8,
}

impl Runs<'_> {
    /// Medians over the repetitions. Without `work`, the server is an echo.
    fn medians(&mut self, server: &Server, work: Option<Work>, connections: usize) -> Outcome<Figures> {
        let mut reports = Vec::new();
        for _ in 0..self.options.repetitions {
            self.number = self.number.wrapping_add(1);
            reports.push(self.measure(server, work, connections)?);
        }
        let of = |figure: fn(&EventReport) -> f64| median(&reports.iter().map(figure).collect::<Vec<_>>());
        Ok(Figures {
            per_s: of(|report| report.per_s),
            p99_us: of(|report| report.latencies.percentile_us(990)),
            inside_p99_us: of(|report| report.inside.percentile_us(990)),
        })
    }

    fn measure(&self, server: &Server, work: Option<Work>, connections: usize) -> Outcome<EventReport> {
        let load = EventLoad {
            address: server.address,
            is_database: work.is_some(),
            connections,
            threads: 1,
            work: work.unwrap_or(Work::PointText),
            rows: self.options.rows,
            warm_up: Duration::from_secs(self.options.warm_up),
            time: Duration::from_secs(self.options.seconds),
            run: self.number,
        };
        let report = load.run(|| server.cpu_time())?;
        if report.latencies.count() == 0 {
            return Err(Failure::new(format!("{} connections to {}: nothing was answered", connections, server.name)));
        }
        if load.is_database {
            wait_for_closing(server)?;
        }
        Ok(report)
    }
}

impl Page {
    /// Writes `thread_pool.md` and its plots.
    fn write(&self, folder: &std::path::Path) -> Outcome<()> {
        fs::create_dir_all(folder).explain(folder.display())?;
        for (name, contents) in self.files()? {
            let path = folder.join(name);
            fs::write(&path, contents).explain(path.display())?;
        }
        Ok(())
    }
}
