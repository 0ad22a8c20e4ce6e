//! The measurements, their order, and the targets.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::client::{EventLoad, EventReport};
use super::connect::allowed_connections;
use super::record::{Record, json};
use super::single_connection::{self, NO_SPINNING, SingleConnectionOptions, SpinSetup};
use super::work::Work;
use crate::compare::start_echo;
use crate::failure::Explain;
use crate::fill::fill;
use crate::process::{JunctorOptions, Server, start_junctor};
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::median;
use crate::{Failure, Outcome};

/// Maximum ratio of the CPU time per operation with many connections to that with few.
const CPU_RATIO_MAX: f64 = 1.2;
const CPU_CONNECTIONS: [usize; 2] = [64, 4096];
/// Minimum ratio of the throughput with the most connections to the highest throughput.
const THROUGHPUT_RATIO_MIN: f64 = 0.85;
const MOST_CONNECTIONS: usize = 16_384;
/// Connections that the server must allow in addition to those of the load.
pub(super) const OTHER_CONNECTIONS: usize = 16;
const CLOSE_TIME_MAX: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Options of `load`.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Numbers of connections to run with
    #[arg(long, value_delimiter = ',', default_value = "1,64,1024,4096,16384")]
    connections: Vec<usize>,
    /// Operations to run, such as point-text, point-prepared or read-write
    #[arg(long, value_delimiter = ',', default_value = "point-text,point-prepared,read-write")]
    work: Vec<String>,
    /// Spin methods, by name [default: all for one connection, the first two for many]
    #[arg(long, value_delimiter = ',')]
    spinning: Vec<String>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Measured seconds of each run
    #[arg(long, value_name = "S", default_value_t = 4)]
    seconds: u64,
    /// Seconds before the measurement
    #[arg(long, value_name = "S", default_value_t = 2)]
    warm_up: u64,
    /// Seconds over which the idle server is measured
    #[arg(long, value_name = "S", default_value_t = 30)]
    idle_seconds: u64,
    /// Runs of each kind, alternating; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3)]
    repetitions: u32,
    /// Number of client threads
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2), default_value_t = 1)]
    client_threads: u8,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Values of system variables, as NAME=VALUE, such as thread_pool_high_prio_mode=none
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Skip the single connection and the idle server
    #[arg(long)]
    only_many: bool,
    /// Skip the runs with many connections
    #[arg(long, conflicts_with = "only_many")]
    only_alone: bool,
    /// File for the figures of every run, as a JSON array
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The spin methods that can be measured.
const SPINNING: [SpinSetup; 4] = [
    (NO_SPINNING, &["SET GLOBAL spin_method = StaticSpinning", "SET GLOBAL scheduler_spin_timer_us = 0"]),
    ("CostBasedSpinning", &["SET GLOBAL spin_method = CostBasedSpinning"]),
    ("LatencyOptimisedSpinning", &["SET GLOBAL spin_method = LatencyOptimisedSpinning"]),
    ("DatabaseMachineSpinning", &["SET GLOBAL spin_method = DatabaseMachineSpinning"]),
];
/// Number of entries of [`SPINNING`] that also run with many connections: no spinning, and a node's default.
const SPINNING_OF_MANY: usize = 2;

/// Text for the echo server in the column of spin methods.
const ECHO: &str = "echo";

/// A server under load, with the spin method to select.
#[derive(Clone, Copy)]
struct Side<'a> {
    server: &'a Server,
    is_database: bool,
    spinning: SpinSetup,
}

/// The report of one run. The other fields identify the row of the table to which the run belongs.
struct Sample {
    work: Work,
    spinning: &'static str,
    connections: usize,
    report: EventReport,
}

/// Measures and prints tables in Markdown.
///
/// # Errors
/// A missed target, or a server fails.
pub fn run(options: &LoadOptions) -> Outcome<()> {
    let works: Vec<Work> = options
        .work
        .iter()
        .map(|name| Work::of_name(name).ok_or("unknown operation").explain(name))
        .collect::<Outcome<_>>()?;
    let wanted = options.connections.iter().copied().max().unwrap_or(1);
    let allowed = allowed_connections(wanted);
    if allowed < wanted {
        println!("This user may have {allowed} connections at once (limit of descriptors); more are not measured.\n");
    }
    let server = start(options, wanted)?;
    server.execute(&["CREATE DATABASE sbtest"])?;
    fill(&server, options.rows)?;
    for assignment in &options.set {
        server.execute(&[&format!("SET GLOBAL {assignment}")])?;
    }
    let spinning: Vec<SpinSetup> = SPINNING
        .into_iter()
        .filter(|(name, _)| options.spinning.is_empty() || options.spinning.iter().any(|wanted| wanted == name))
        .collect();
    let of_many = if options.spinning.is_empty() { &spinning[..SPINNING_OF_MANY] } else { &spinning[..] };
    let (mut verdicts, mut records, mut run) = (Vec::new(), Vec::new(), 0);
    if !options.only_alone {
        let echo = start_echo(&single_connection::recorded_answer(&server, options.rows)?)?;
        let mut samples = Vec::new();
        let mut counts: Vec<usize> = options.connections.clone();
        counts.retain(|count| *count <= allowed);
        for _ in 0..options.repetitions {
            for work in &works {
                let of_server = |spinning: &SpinSetup| Side { server: &server, is_database: true, spinning: *spinning };
                let mut sides: Vec<Side<'_>> = of_many.iter().map(of_server).collect();
                // The echo server sends its one recorded reply to every request. Its figures show what the
                // client and the operating system cost.
                if *work == Work::PointText {
                    sides.push(Side { server: &echo, is_database: false, spinning: (ECHO, &[]) });
                }
                for side in &sides {
                    samples.extend(measure_counts(options, side, *work, &counts, &mut run)?);
                }
            }
            // Vary the order of the connection counts with the repetition.
            if !counts.is_empty() {
                counts.rotate_left(1);
            }
        }
        records.extend(samples.iter().map(record));
        let mut table = Table::new(&COLUMNS);
        for work in &works {
            for (spinning, _) in of_many.iter().chain([&(ECHO, &[][..])]) {
                let rows = medians(&samples, *work, spinning, &options.connections);
                rows.iter().for_each(|figures| table.row(figures.cells(*work, spinning)));
                verdicts.extend(targets(&rows, *work, spinning));
            }
        }
        println!("{table}");
    }
    if !options.only_many {
        let single = single_connection::measure(&server, &spinning, &single_connection_options(options), &mut run)?;
        println!("{}", single.table);
        verdicts.extend(single.verdicts);
        records.extend(single.records);
    }
    server.stop()?;
    if let Some(file) = &options.json {
        fs::write(file, json(&records)).explain(file.display())?;
    }
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} targets are missed"))),
    }
}

fn start(options: &LoadOptions, connections: usize) -> Outcome<Server> {
    let limit = (connections + OTHER_CONNECTIONS).to_string();
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let junctor = junctor.with_arguments(&["--max-connections", &limit]);
    match &options.thread_config {
        Some(thread_config) => start_junctor(&junctor.with_placement(thread_config)),
        None => start_junctor(&junctor),
    }
}

fn single_connection_options(options: &LoadOptions) -> SingleConnectionOptions {
    SingleConnectionOptions {
        time: Duration::from_secs(options.seconds),
        warm_up: Duration::from_secs(options.warm_up.min(1)),
        idle_time: Duration::from_secs(options.idle_seconds),
        repetitions: options.repetitions,
        rows: options.rows,
    }
}

/// Runs each number of connections once.
fn measure_counts(
    options: &LoadOptions,
    side: &Side<'_>,
    work: Work,
    counts: &[usize],
    run: &mut u8,
) -> Outcome<Vec<Sample>> {
    let Side { server, is_database, spinning } = *side;
    let mut samples = Vec::new();
    for &connections in counts {
        if is_database {
            server.execute(spinning.1)?;
        }
        *run = run.wrapping_add(1);
        let load = EventLoad {
            address: server.address,
            is_database,
            connections,
            threads: usize::from(options.client_threads).min(connections),
            work,
            rows: options.rows,
            warm_up: Duration::from_secs(options.warm_up),
            time: Duration::from_secs(options.seconds),
            run: *run,
        };
        let report = load.run(|| server.cpu_time())?;
        if report.latencies.count() == 0 {
            return Err(Failure::new(format!("{} by {connections} connections: nothing was answered", work.name())));
        }
        eprintln!(
            "{}, {}, {connections} connections: {:.0}/s, CPU us {:.2}, client {:.2}, opened in {:.2} s",
            work.name(),
            spinning.0,
            report.per_s,
            report.server_cpu_us,
            report.client_cpu_us,
            report.connect_s
        );
        samples.push(Sample { work, spinning: spinning.0, connections, report });
        if is_database {
            wait_for_closing(server)?;
        }
    }
    Ok(samples)
}

/// Waits until the server has closed the connections of the last run. Otherwise the next run would pay for
/// closing them.
pub(super) fn wait_for_closing(server: &Server) -> Outcome<()> {
    let end = Instant::now() + CLOSE_TIME_MAX;
    let mut connection = server.connect()?;
    loop {
        let answer = connection.query("SHOW STATUS LIKE 'Threads_connected'")?;
        let count = answer.rows.first().and_then(|row| row.get(1)?.as_ref()?.parse::<usize>().ok());
        match count {
            Some(count) if count <= OTHER_CONNECTIONS => return Ok(()),
            None => return Err(Failure::new("the server does not report its number of connections")),
            Some(count) if Instant::now() > end => {
                return Err(Failure::new(format!("{count} connections are still open")));
            }
            Some(_) => thread::sleep(CHECK_INTERVAL),
        }
    }
}

const COLUMNS: [&str; 12] = [
    "work",
    "spinning",
    "connections",
    "operations/s",
    "p50 us",
    "p95 us",
    "p99 us",
    "p99.9 us",
    "server CPU us/operation",
    "client CPU us/operation",
    "refused per thousand",
    "connect s",
];

/// Medians over the repetitions, in the order of the columns from "operations/s" on.
struct Figures {
    connections: usize,
    medians: [f64; 9],
}

const PER_S: usize = 0;
const SERVER_CPU: usize = 5;

fn figures_of(report: &EventReport) -> [f64; 9] {
    let [p50, p95, p99, p999] = [500, 950, 990, 999].map(|per_mille| report.latencies.percentile_us(per_mille));
    let refused = report.refusals as f64 * 1000.0 / (report.refusals + report.latencies.count()).max(1) as f64;
    let (server, client) = (report.server_cpu_us, report.client_cpu_us);
    [report.per_s, p50, p95, p99, p999, server, client, refused, report.connect_s]
}

fn record(sample: &Sample) -> Record {
    let names = [
        "operations_per_second",
        "p50_us",
        "p95_us",
        "p99_us",
        "p999_us",
        "server_cpu_us",
        "client_cpu_us",
        "refused_per_thousand",
        "connect_s",
    ];
    let mut record = vec![
        ("work", sample.work.name().into()),
        ("spinning", sample.spinning.into()),
        ("connections", sample.connections.into()),
    ];
    record.extend(names.into_iter().zip(figures_of(&sample.report).map(serde_json::Value::from)));
    record
}

fn medians(samples: &[Sample], work: Work, spinning: &str, counts: &[usize]) -> Vec<Figures> {
    let mut rows = Vec::new();
    for connections in counts {
        let runs: Vec<[f64; 9]> = samples
            .iter()
            .filter(|sample| (sample.work, sample.spinning, sample.connections) == (work, spinning, *connections))
            .map(|sample| figures_of(&sample.report))
            .collect();
        if !runs.is_empty() {
            let medians = std::array::from_fn(|figure| median(&runs.iter().map(|run| run[figure]).collect::<Vec<_>>()));
            rows.push(Figures { connections: *connections, medians });
        }
    }
    rows
}

impl Figures {
    fn cells(&self, work: Work, spinning: &str) -> Vec<String> {
        let mut cells = vec![work.name().into(), spinning.into(), self.connections.to_string()];
        let decimals = [0, 0, 0, 0, 0, 2, 2, 2, 2];
        cells.extend(self.medians.iter().zip(decimals).map(|(figure, decimals)| format!("{figure:.decimals$}")));
        cells
    }
}

/// Compares the figures with the two targets. A target is omitted if one of its numbers of connections was
/// not measured. The echo server has no targets.
fn targets(rows: &[Figures], work: Work, spinning: &str) -> Vec<Verdict> {
    if spinning == ECHO {
        return Vec::new();
    }
    let of = |connections: usize| rows.iter().find(|row| row.connections == connections);
    let what = |sentence: String| format!("{}, {spinning}: {sentence}", work.name());
    let mut verdicts = Vec::new();
    if let [Some(few), Some(many)] = CPU_CONNECTIONS.map(of) {
        let sentence = format!("CPU for an operation, {} connections to {}", many.connections, few.connections);
        let measured = many.medians[SERVER_CPU] / few.medians[SERVER_CPU];
        verdicts.push(Verdict { what: what(sentence), allowed_max: CPU_RATIO_MAX, measured });
    }
    if let Some(most) = of(MOST_CONNECTIONS) {
        let peak = rows.iter().map(|row| row.medians[PER_S]).fold(0.0, f64::max);
        let sentence = format!("highest throughput by that of {MOST_CONNECTIONS} connections");
        let measured = peak / most.medians[PER_S];
        verdicts.push(Verdict { what: what(sentence), allowed_max: 1.0 / THROUGHPUT_RATIO_MIN, measured });
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(connections: usize, per_s: f64, cpu_us: f64) -> Figures {
        let mut medians = [0.0; 9];
        (medians[PER_S], medians[SERVER_CPU]) = (per_s, cpu_us);
        Figures { connections, medians }
    }

    #[test]
    fn a_server_whose_throughput_falls_misses_both_targets() {
        let rows = [row(64, 100.0, 10.0), row(4096, 90.0, 12.1), row(16_384, 84.0, 15.0)];
        let verdicts = targets(&rows, Work::PointText, NO_SPINNING);
        assert_eq!(verdicts.iter().map(Verdict::is_met).collect::<Vec<_>>(), [false, false]);
        let rows = [row(64, 100.0, 10.0), row(4096, 90.0, 11.9), row(16_384, 86.0, 15.0)];
        assert!(targets(&rows, Work::PointText, NO_SPINNING).iter().all(Verdict::is_met));
    }

    #[test]
    fn targets_need_measurements_with_their_numbers_of_connections() {
        assert!(targets(&[row(64, 1.0, 1.0), row(1024, 1.0, 9.0)], Work::ReadWrite, NO_SPINNING).is_empty());
    }
}
