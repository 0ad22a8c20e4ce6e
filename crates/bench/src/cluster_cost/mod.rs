//! `cluster-cost`: the costs of a cluster of real processes on one machine. It counts for each commit the
//! messages, bytes, syncs and CPU time, and the messages that wait for one another until the answer. It
//! compares the CPU time with that of a node alone.
//!
//! In reading order: [`options`], [`side`] (the nodes), [`load`] (the clients), [`counters`], [`hops`],
//! [`peers`].

mod counters;
mod hops;
mod load;
mod options;
mod peers;
mod side;

use counters::Counters;
use load::Operation;
pub use options::ClusterCostOptions;
use options::{Part, Shape};
use side::Side;

use crate::process::ClusterOptions;
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::median;
use crate::{Failure, Outcome};

/// Most messages that wait for one another until a commit is acknowledged.
const HOPS_MAX: f64 = 6.0;
/// An SQL node adds a request and its answer.
const HOPS_MAX_OF_SQL_NODES: f64 = 8.0;
/// Greatest 99th percentile of commits at half load, in microseconds.
const LATENCY_MAX_US: f64 = 1000.0;
/// Greatest CPU time with two replicas, in that of a node alone: of `oltp_read_write` and of a read.
const READ_WRITE_RATIO_MAX: f64 = 2.2;
const READ_RATIO_MAX: f64 = 1.1;
/// Numbers of connections between two replicas.
const SOCKETS: [u8; 3] = [1, 2, 4];

/// Measures the wanted parts, and prints tables in Markdown.
///
/// # Errors
/// A missed target, or a node fails.
pub fn run(options: &ClusterCostOptions) -> Outcome<()> {
    let mut verdicts = Vec::new();
    if options.wants(Part::Hops) {
        println!("Messages that wait for one another until the answer; each delayed by {} ms\n", options.delay_ms);
        let most = hops::run(options)?;
        let names = ["hops to the answer of COMMIT at a data node", "hops to the answer of COMMIT at an SQL node"];
        for ((what, hops), allowed_max) in names.into_iter().zip(most).zip([HOPS_MAX, HOPS_MAX_OF_SQL_NODES]) {
            verdicts.push(Verdict { what: what.into(), allowed_max, measured: hops as f64 });
        }
    }
    if options.wants(Part::Commits) || options.wants(Part::Latency) || options.wants(Part::Sysbench) {
        let shapes = [Shape::Alone, Shape::TwoTier, Shape::ThreeTier];
        let sides = shapes.map(|shape| Side::start(options, shape)).into_iter().collect::<Outcome<Vec<_>>>()?;
        if options.wants(Part::Commits) {
            commits(options, &sides)?;
        }
        if options.wants(Part::Latency) {
            verdicts.extend(latency(options, &sides)?);
        }
        if options.wants(Part::Sysbench) {
            verdicts.extend(sysbench(options, &sides)?);
        }
    }
    if options.wants(Part::Sockets) {
        sockets(options)?;
    }
    if options.wants(Part::Peers) {
        peers::run(options)?;
    }
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} targets are missed"))),
    }
}

/// The counts of each commit.
fn commits(options: &ClusterCostOptions, sides: &[Side]) -> Outcome<()> {
    let columns = [
        "",
        "operation",
        "clients",
        "per s",
        "p50 us",
        "p99 us",
        "signals",
        "frames",
        "bytes",
        "records",
        "syncs",
        "sleeps",
        "CPU us",
        "user",
        "kernel",
    ];
    let mut table = Table::new(&columns);
    for side in sides {
        let idle = side.idle()?;
        for operation in [Operation::Select, Operation::Update, Operation::Transfer] {
            for clients in [1, options.clients] {
                let cost = side.cost(operation, clients, options.time(), &idle)?;
                let Counters { signals, frames, bytes, records, syncs, sleeps, user_us, system_us, .. } = cost.each;
                let latency = |per_mille| cost.report.latencies.percentile_us(per_mille);
                let mut cells = vec![side.shape.name().to_owned(), operation.name().into(), clients.to_string()];
                cells.extend([cost.report.per_s, latency(500), latency(990)].map(|number| format!("{number:.0}")));
                cells.extend([signals, frames].map(|number| format!("{number:.1}")));
                cells.push(format!("{bytes:.0}"));
                cells.extend([records, syncs, sleeps].map(|number| format!("{number:.2}")));
                cells.extend([cost.each.cpu_us(), user_us, system_us].map(|number| format!("{number:.1}")));
                table.row(cells);
            }
        }
        let Counters { signals, frames, bytes, user_us, system_us, .. } = idle;
        println!(
            "{}, idle: {signals:.0} signals, {frames:.0} frames and {bytes:.0} bytes a second, {:.2} % of a CPU",
            side.shape.name(),
            (user_us + system_us) / 1e4
        );
    }
    println!("\n{table}");
    Ok(())
}

/// Latencies of commits at half of the greatest throughput of the same clients.
fn latency(options: &ClusterCostOptions, sides: &[Side]) -> Outcome<Vec<Verdict>> {
    let mut table = Table::new(&["", "operation", "most per s", "per s", "p50 us", "p95 us", "p99 us"]);
    let mut verdicts = Vec::new();
    for side in sides {
        for operation in [Operation::Update, Operation::Transfer] {
            let most = side.run(operation, options.clients, options.time(), None)?.per_s;
            let mut runs = Vec::new();
            for _ in 0..options.rounds {
                runs.push(side.run(operation, options.clients, options.time(), Some(most / 2.0))?);
            }
            let of =
                |per_mille| median(&runs.iter().map(|run| run.latencies.percentile_us(per_mille)).collect::<Vec<_>>());
            let per_s = median(&runs.iter().map(|run| run.per_s).collect::<Vec<_>>());
            let mut cells = vec![side.shape.name().to_owned(), operation.name().into()];
            cells.extend([most, per_s, of(500), of(950), of(990)].map(|number| format!("{number:.0}")));
            table.row(cells);
            if side.shape == Shape::TwoTier && operation == Operation::Update {
                let what = "us of a commit at p99, half load, 2 replicas".to_owned();
                verdicts.push(Verdict { what, allowed_max: LATENCY_MAX_US, measured: of(990) });
            }
        }
    }
    println!("{table}");
    Ok(verdicts)
}

/// CPU time of scripts of sysbench.
fn sysbench(options: &ClusterCostOptions, sides: &[Side]) -> Outcome<Vec<Verdict>> {
    let mut table = Table::new(&["script", "threads", "", "per s", "p95 ms", "CPU us", "ratio"]);
    let mut verdicts = Vec::new();
    // All reads go to one node: its CPU time for a read must not depend on the replicas elsewhere.
    let scripts = [
        ("oltp_point_select", READ_RATIO_MAX, 1),
        ("oltp_point_select", f64::INFINITY, usize::MAX),
        ("oltp_read_write", READ_WRITE_RATIO_MAX, usize::MAX),
    ];
    for (script, allowed_max, nodes_max) in scripts {
        let name = if nodes_max == 1 { format!("{script}, one node") } else { script.to_owned() };
        for threads in [1, options.clients] {
            let mut runs = vec![Vec::new(); sides.len()];
            for _ in 0..options.rounds {
                for (side, runs) in sides.iter().zip(&mut runs) {
                    runs.push(side.sysbench(script, threads, (options.seconds, nodes_max))?);
                }
            }
            let alone: Vec<f64> = runs[0].iter().map(|(_, cpu_us)| *cpu_us).collect();
            for (side, runs) in sides.iter().zip(&runs) {
                let of = |figure: &dyn Fn(usize) -> f64| median(&(0..runs.len()).map(figure).collect::<Vec<_>>());
                let ratio = of(&|run| runs[run].1 / alone[run]);
                let mut cells = vec![name.clone(), threads.to_string(), side.shape.name().into()];
                cells.push(format!("{:.0}", of(&|run| runs[run].0.events_per_s)));
                cells.push(format!("{:.2}", of(&|run| runs[run].0.p95_ms)));
                cells.push(format!("{:.1}", of(&|run| runs[run].1)));
                cells.push(format!("{ratio:.2}"));
                table.row(cells);
                if side.shape == Shape::TwoTier && threads > 1 && allowed_max.is_finite() {
                    let what = format!("CPU time of {name}, 2 replicas by a node alone");
                    verdicts.push(Verdict { what, allowed_max, measured: ratio });
                }
            }
        }
    }
    println!("{table}");
    Ok(verdicts)
}

/// Throughput of updates over several connections between two replicas.
fn sockets(options: &ClusterCostOptions) -> Outcome<()> {
    let mut table =
        Table::new(&["connections", "updates per s", "p99 us", "CPU us", "two updates per s", "p99 us", "CPU us"]);
    let mut sides = Vec::new();
    for sockets in SOCKETS {
        let cluster = ClusterOptions { sockets, ..options.cluster(Shape::TwoTier) };
        sides.push((sockets, Side::of_cluster(options, Shape::TwoTier, &cluster)?));
    }
    let idle = Counters::default();
    let mut rows = vec![Vec::new(); sides.len()];
    for operation in [Operation::Update, Operation::Transfer] {
        let mut runs = vec![Vec::new(); sides.len()];
        for _ in 0..options.rounds {
            for ((_, side), runs) in sides.iter().zip(&mut runs) {
                runs.push(side.cost(operation, options.clients, options.time(), &idle)?);
            }
        }
        for (runs, row) in runs.iter().zip(&mut rows) {
            let of = |figure: &dyn Fn(&side::Cost) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
            row.push(format!("{:.0}", of(&|cost| cost.report.per_s)));
            row.push(format!("{:.0}", of(&|cost| cost.report.latencies.percentile_us(990))));
            row.push(format!("{:.1}", of(&|cost| cost.each.cpu_us())));
        }
    }
    for ((sockets, _), row) in sides.iter().zip(rows) {
        table.row([sockets.to_string()].into_iter().chain(row).collect());
    }
    println!("{table}");
    Ok(())
}
