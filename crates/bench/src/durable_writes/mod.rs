//! `durable-writes`: writes that are on disk before they are acknowledged, compared with MariaDB on the same
//! disk. One client is also compared with an echo server that writes a block and syncs it before each reply.
//! Point selects are measured alone and beside durable writes.

use std::path::PathBuf;
use std::time::Duration;

use crate::compare::start_echo_with_sync;
use crate::event_load::client::{EventLoad, EventReport};
use crate::event_load::work::Work;
use crate::fill::fill;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::median;
use crate::{Failure, Outcome};

mod reads_beside;

/// Maximum median latency of one client, in those of the echo that syncs.
const ECHO_RATIO_MAX: f64 = 1.25;
/// Maximum throughput of MariaDB, in those of Junctor, with several clients.
const THROUGHPUT_RATIO_MAX: f64 = 1.0 / 1.5;
/// Maximum server CPU of an operation, in those of MariaDB.
const CPU_RATIO_MAX: f64 = 1.0 / 3.0;
/// An OK packet for one changed row: what the echo answers.
const OK_PACKET: [u8; 11] = [7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0];
/// The operations. A transaction of `ReadWrite` has 20 statements, the others are single statements.
const WORKS: [Work; 3] = [Work::Update, Work::Insert, Work::ReadWrite];

/// Options of `durable-writes`. The data directories are in the folder for temporary files, TMPDIR.
#[derive(Clone, Debug, clap::Args)]
pub struct DurableWritesOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_values_t = [1, 8, 64, 256])]
    clients: Vec<usize>,
    /// Number of rows of the table at the start
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Measured seconds of a run
    #[arg(long, value_name = "S", default_value_t = 3)]
    seconds: u64,
    /// Runs of each server; the servers alternate
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// Medians of the runs of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    per_s: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// One row of the table.
struct Line {
    work: Work,
    clients: usize,
    ours: Figures,
    mariadb: Figures,
    /// The echo that syncs; only for one client and single statements.
    echo: Option<Figures>,
}

impl Figures {
    fn of_runs(runs: &[EventReport]) -> Figures {
        let of = |figure: fn(&EventReport) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
        Figures {
            per_s: of(|run| run.per_s),
            p50_us: of(|run| run.latencies.percentile_us(500)),
            p99_us: of(|run| run.latencies.percentile_us(990)),
            cpu_us: of(|run| run.server_cpu_us),
        }
    }
}

/// Measures all combinations, and prints tables in Markdown.
///
/// # Errors
/// A missed target, or a server fails.
pub fn run(options: &DurableWritesOptions) -> Outcome<()> {
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let junctor = start_junctor(&JunctorOptions { is_durable: true, ..junctor })?;
    let mariadb = start_mariadb(&["--innodb-flush-log-at-trx-commit=1"])?;
    // The clients of the load have addresses of their own.
    mariadb.execute(&["CREATE USER root@'127.%'", "GRANT ALL ON *.* TO root@'127.%'"])?;
    for server in [&junctor, &mariadb] {
        server.execute(&["CREATE DATABASE sbtest"])?;
        fill(server, options.rows)?;
    }
    let echo = start_echo_with_sync(&OK_PACKET)?;
    let mut lines = Vec::new();
    let mut run = 0;
    for work in WORKS {
        for &clients in &options.clients {
            let with_echo = clients == 1 && work.statements() == 1;
            let sides: Vec<(&Server, bool)> = [(&junctor, true), (&mariadb, true), (&echo, false)]
                .into_iter()
                .take(2 + usize::from(with_echo))
                .collect();
            let mut runs = vec![Vec::new(); sides.len()];
            for round in 0..options.rounds as usize {
                for turn in 0..sides.len() {
                    let side = (turn + round) % sides.len();
                    run = u8::wrapping_add(run, 1);
                    runs[side].push(measure(options, sides[side], work, clients, run)?);
                }
            }
            let mut figures = runs.iter().map(|runs| Figures::of_runs(runs));
            let (ours, mariadb) = (figures.next().unwrap_or_default(), figures.next().unwrap_or_default());
            lines.push(Line { work, clients, ours, mariadb, echo: figures.next() });
        }
    }
    let reads = reads_beside::measure(options, [&junctor, &mariadb], &mut run)?;
    println!("{}", table(&lines));
    println!("{}", echo_table(&lines));
    println!("{}", reads_beside::table(&reads));
    let mut verdicts = verdicts(&lines);
    verdicts.extend(reads_beside::verdicts(&reads));
    let missed = print_verdicts(&verdicts);
    junctor.stop()?;
    mariadb.stop()?;
    if missed > 0 { Err(Failure::new(format!("{missed} targets are missed"))) } else { Ok(()) }
}

fn measure(
    options: &DurableWritesOptions,
    (server, is_database): (&Server, bool),
    work: Work,
    clients: usize,
    run: u8,
) -> Outcome<EventReport> {
    let load = load(options, (server, is_database), work, clients, run);
    let report = load.run(|| server.cpu_time())?;
    match report.latencies.count() {
        0 => Err(Failure::new(format!("{} answered nothing: {} by {clients} clients", server.name, work.name()))),
        _ => Ok(report),
    }
}

fn load(
    options: &DurableWritesOptions,
    (server, is_database): (&Server, bool),
    work: Work,
    clients: usize,
    run: u8,
) -> EventLoad {
    let load = EventLoad::of_clients(server.address, work, clients, options.rows);
    EventLoad { is_database, time: Duration::from_secs(options.seconds), run, ..load }
}

fn table(lines: &[Line]) -> Table {
    let columns = ["operation", "clients", "per s", "MariaDB", "ratio", "p99 us", "MariaDB p99", "CPU us", "ratio"];
    let mut table = Table::new(&columns);
    for Line { work, clients, ours, mariadb, .. } in lines {
        let mut cells = vec![work.name().to_owned(), clients.to_string()];
        cells.extend([ours.per_s, mariadb.per_s].map(|figure| format!("{figure:.0}")));
        cells.push(format!("{:.2}", ours.per_s / mariadb.per_s));
        cells.extend([ours.p99_us, mariadb.p99_us].map(|figure| format!("{figure:.0}")));
        cells.push(format!("{:.1}", ours.cpu_us));
        cells.push(format!("{:.2}", ours.cpu_us / mariadb.cpu_us));
        table.row(cells);
    }
    table
}

/// The figures of one client beside the echo that syncs.
fn echo_table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["one client", "us/operation", "echo and sync", "p50 us", "echo and sync", "ratio"]);
    for Line { work, ours, echo, .. } in lines {
        let Some(echo) = echo else { continue };
        let mut cells = vec![work.name().to_owned()];
        cells.extend([ours.per_s, echo.per_s].map(|per_s| format!("{:.1}", 1e6 / per_s)));
        cells.extend([ours.p50_us, echo.p50_us].map(|figure| format!("{figure:.1}")));
        cells.push(format!("{:.2}", ours.p50_us / echo.p50_us));
        table.row(cells);
    }
    table
}

fn verdicts(lines: &[Line]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for Line { work, clients, ours, mariadb, echo } in lines {
        let unit = if *clients == 1 { "client" } else { "clients" };
        let what = format!("{}, {clients} {unit}", work.name());
        if let Some(echo) = echo {
            let measured = ours.p50_us / echo.p50_us;
            verdicts.push(Verdict {
                what: format!("{what}: median to echo and sync"),
                allowed_max: ECHO_RATIO_MAX,
                measured,
            });
        }
        if *clients > 1 {
            let measured = mariadb.per_s / ours.per_s;
            let throughput = format!("{what}: MariaDB's throughput by ours");
            verdicts.push(Verdict { what: throughput, allowed_max: THROUGHPUT_RATIO_MAX, measured });
            let measured = ours.cpu_us / mariadb.cpu_us;
            verdicts.push(Verdict { what: format!("{what}: CPU to MariaDB"), allowed_max: CPU_RATIO_MAX, measured });
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(work: Work, clients: usize, echo: Option<f64>) -> Line {
        let figures = |per_s, cpu_us| Figures { per_s, p50_us: 1e10 / per_s, p99_us: 1_234_567.0, cpu_us };
        let (ours, mariadb) = (figures(160_000.0, 10.0), figures(100_000.0, 40.0));
        Line { work, clients, ours, mariadb, echo: echo.map(|per_s| figures(per_s, 1.0)) }
    }

    #[test]
    fn one_client_is_judged_by_the_echo_and_several_by_mariadb() {
        let lines = [line(Work::Update, 1, Some(240_000.0)), line(Work::Update, 8, None)];
        let verdicts = verdicts(&lines);
        let met: Vec<(bool, &str)> = verdicts.iter().map(|verdict| (verdict.is_met(), verdict.what.as_str())).collect();
        let expected = [
            (false, "update, 1 client: median to echo and sync"),
            (true, "update, 8 clients: MariaDB's throughput by ours"),
            (true, "update, 8 clients: CPU to MariaDB"),
        ];
        assert_eq!(met, expected);
    }

    #[test]
    fn a_table_has_at_most_100_columns() {
        let lines = [line(Work::ReadWrite, 256, None), line(Work::Update, 1, Some(1.0))];
        for table in [table(&lines), echo_table(&lines)] {
            assert!(table.to_string().lines().all(|line| line.chars().count() <= 100), "{table}");
        }
    }
}
