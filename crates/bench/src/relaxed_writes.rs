//! `relaxed-writes`: writes of a durable node with `commit_durability = memory`, which acknowledges a commit
//! before it is on disk, compared with those of a node that keeps its data in memory only.

use std::path::PathBuf;
use std::time::Duration;

use crate::event_load::client::{EventLoad, EventReport};
use crate::event_load::work::Work;
use crate::fill::fill;
use crate::process::{JunctorOptions, Server, start_junctor};
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::{median, ratio_interval};
use crate::{Failure, Outcome};

/// Maximum throughput of the node in memory, in that of the durable one. The reciprocal of 0.9.
const RATIO_MAX: f64 = 1.0 / 0.9;
const WORKS: [Work; 2] = [Work::Update, Work::ReadWrite];

/// Options of `relaxed-writes`. The data directory is in the folder for temporary files, TMPDIR.
#[derive(Clone, Debug, clap::Args)]
pub struct RelaxedWritesOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_values_t = [8, 64])]
    clients: Vec<usize>,
    /// Number of rows of the table at the start
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Measured seconds of a run
    #[arg(long, value_name = "S", default_value_t = 1)]
    seconds: u64,
    /// Runs of each node; the nodes alternate
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// Measures all combinations, and prints tables in Markdown.
///
/// # Errors
/// A missed target, or a node fails.
pub fn run(options: &RelaxedWritesOptions) -> Outcome<()> {
    let in_memory = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let relaxed = JunctorOptions { is_durable: true, ..in_memory.with_settings(&["commit_durability = 'memory'"]) };
    let servers = [start_junctor(&relaxed)?, start_junctor(&in_memory)?];
    for server in &servers {
        server.execute(&["CREATE DATABASE sbtest"])?;
        fill(server, options.rows)?;
    }
    let mut table = Table::new(&["operation", "clients", "per s", "in memory", "ratio", "CPU us", "in memory"]);
    let (mut verdicts, mut run) = (Vec::new(), 0);
    for work in WORKS {
        for &clients in &options.clients {
            let mut runs = [const { Vec::new() }; 2];
            for round in 0..options.rounds as usize {
                for turn in 0..servers.len() {
                    let side = (turn + round) % servers.len();
                    run = u8::wrapping_add(run, 1);
                    runs[side].push(measure(options, &servers[side], work, clients, run)?);
                }
            }
            let of = |side: usize, figure: fn(&EventReport) -> f64| -> f64 {
                median(&runs[side].iter().map(figure).collect::<Vec<_>>())
            };
            let ratios: Vec<f64> =
                runs[1].iter().zip(&runs[0]).map(|(memory, disk)| memory.per_s / disk.per_s).collect();
            let ratio = ratio_interval(&ratios).map_or(f64::NAN, |interval| interval.mean);
            let mut cells = vec![work.name().to_owned(), clients.to_string()];
            cells.extend([0, 1].map(|side| format!("{:.0}", of(side, |run| run.per_s))));
            cells.push(format!("{:.2}", 1.0 / ratio));
            cells.extend([0, 1].map(|side| format!("{:.1}", of(side, |run| run.server_cpu_us))));
            table.row(cells);
            let what = format!("{}, {clients} clients: throughput in memory by that of the relaxed node", work.name());
            verdicts.push(Verdict { what, allowed_max: RATIO_MAX, measured: ratio });
        }
    }
    println!("{table}");
    let missed = print_verdicts(&verdicts);
    for server in servers {
        server.stop()?;
    }
    if missed > 0 { Err(Failure::new(format!("{missed} targets are missed"))) } else { Ok(()) }
}

fn measure(
    options: &RelaxedWritesOptions,
    server: &Server,
    work: Work,
    clients: usize,
    run: u8,
) -> Outcome<EventReport> {
    let load = EventLoad::of_clients(server.address, work, clients, options.rows);
    let load = EventLoad { time: Duration::from_secs(options.seconds), run, ..load };
    load.run(|| server.cpu_time())
}
