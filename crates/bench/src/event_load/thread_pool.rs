//! Throughput by the number of connections, for each mode of the thread pool, beside MariaDB's
//! pool-of-threads: updates that commit by themselves, the same updates inside transactions, and transactions
//! of oltp_read_write.

use std::path::PathBuf;
use std::time::Duration;

use super::client::{EventLoad, EventReport};
use super::command::{OTHER_CONNECTIONS, wait_for_closing};
use super::connect::allowed_connections;
use super::work::Work;
use crate::fill::fill;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::report::Table;
use crate::statistics::median;
use crate::{Failure, Outcome};

const WORKS: [Work; 3] = [Work::UpdateNonIndex, Work::UpdateTransaction, Work::ReadWrite];

/// Options of `thread-pool`.
#[derive(Clone, Debug, clap::Args)]
pub struct ThreadPoolOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Numbers of connections to run with
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64,256,1024,4096,16384")]
    connections: Vec<usize>,
    /// Operations to run [default: update-non-index, update-transaction, read-write]
    #[arg(long, value_delimiter = ',')]
    work: Vec<String>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Measured seconds of each run
    #[arg(long, value_name = "S", default_value_t = 4)]
    seconds: u64,
    /// Seconds before the measurement
    #[arg(long, value_name = "S", default_value_t = 3)]
    warm_up: u64,
    /// Runs of each kind, alternating; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1)]
    repetitions: u32,
    /// Leave MariaDB out
    #[arg(long)]
    alone: bool,
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

/// Measures and prints a table in Markdown for each kind of operation.
///
/// # Errors
/// A server fails, or refuses to start.
pub fn run(options: &ThreadPoolOptions) -> Outcome<()> {
    let names = options
        .work
        .iter()
        .map(|name| Work::of_name(name).ok_or_else(|| Failure::new(format!("there is no operation {name}"))));
    let chosen: Vec<Work> = names.collect::<Outcome<_>>()?;
    let works = if chosen.is_empty() { WORKS.to_vec() } else { chosen };
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
    let mut sides: Vec<Side<'_>> = MODES.iter().map(|(name, mode)| Side { name, server: &junctor, mode }).collect();
    sides.extend(mariadb.as_ref().map(|server| Side { name: "MariaDB pool-of-threads", server, mode: &[] }));
    let mut run = 0;
    for work in works {
        let mut heads = vec!["connections"];
        heads.extend(sides.iter().map(|side| side.name));
        let mut throughput = Table::new(&heads);
        let mut latency = Table::new(&heads);
        let mut peaks = vec![(0.0, 0.0); sides.len()];
        for &connections in &counts {
            let mut reports = vec![Vec::new(); sides.len()];
            for _ in 0..options.repetitions {
                for (side, reports) in sides.iter().zip(&mut reports) {
                    side.server.execute(side.mode)?;
                    run += 1;
                    reports.push(measure(options, side.server, work, connections, run)?);
                }
            }
            let (mut rates, mut slowest) = (vec![connections.to_string()], vec![connections.to_string()]);
            for (reports, (peak, last)) in reports.iter().zip(&mut peaks) {
                let of = |figure: fn(&EventReport) -> f64| median(&reports.iter().map(figure).collect::<Vec<_>>());
                let per_s = of(|report| report.per_s);
                *peak = per_s.max(*peak);
                *last = per_s;
                rates.push(format!("{per_s:.0}"));
                slowest.push(format!("{:.1}", of(|report| report.latencies.percentile_us(990)) / 1000.0));
            }
            throughput.row(rates);
            latency.row(slowest);
        }
        let mut ratios = vec!["last to highest".to_owned()];
        ratios.extend(peaks.iter().map(|(peak, last)| format!("{:.2}", last / peak)));
        throughput.row(ratios);
        println!("{}: operations per second\n\n{throughput}", work.name());
        println!("{}: 99th percentile of an operation, milliseconds\n\n{latency}", work.name());
    }
    if let Some(mariadb) = mariadb {
        mariadb.stop()?;
    }
    junctor.stop()
}

fn measure(
    options: &ThreadPoolOptions,
    server: &Server,
    work: Work,
    connections: usize,
    run: u8,
) -> Outcome<EventReport> {
    let load = EventLoad {
        address: server.address,
        is_database: true,
        connections,
        threads: 1,
        work,
        rows: options.rows,
        warm_up: Duration::from_secs(options.warm_up),
        time: Duration::from_secs(options.seconds),
        run,
    };
    let report = load.run(|| server.cpu_time())?;
    if report.latencies.count() == 0 {
        return Err(Failure::new(format!("{} by {connections} connections: nothing was answered", work.name())));
    }
    wait_for_closing(server)?;
    Ok(report)
}
