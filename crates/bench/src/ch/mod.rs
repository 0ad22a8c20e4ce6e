//! `ch`: CH-benCHmark (Cole et al., DBTest 2011): the transactions of TPC-C, alone and with a stream of
//! analytical queries on the same tables, on Junctor and on MariaDB in one run.
//!
//! - [`data`]: loads the tables, and copies them from one server to the other;
//! - [`queries`]: the 22 queries, and the comparison of their answers;
//! - [`driver`]: the transactions;
//! - [`stream`]: the queries and the point selects beside them.
//!
//! The tables are those of `dbt2.lua`, with whole cents and seconds since 1970, and the queries convert them.
//! The upper bounds of dates are later than those of the specification, because the rows are of today.

mod data;
mod driver;
mod queries;
mod stream;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::autobench::script::write_scripts;
use crate::latency::Latencies;
use crate::process::{JunctorOptions, Server, TemporaryFolder, start_junctor, start_mariadb};
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::median;
use crate::{Failure, Outcome};
use driver::{Driver, NewOrders};
use queries::Query;
use stream::Finished;

const DATABASE: &str = "ch";
/// Maximum ratio of a p99 with the stream to the one without it.
const P99_RATIO_MAX: f64 = 3.0;
/// Minimum ratio of the throughput with the stream to the one without it.
const THROUGHPUT_RATIO_MIN: f64 = 0.7;

/// Options of `ch`.
#[derive(Clone, Debug, clap::Args)]
pub struct ChOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Warehouses
    #[arg(long, default_value_t = 2)]
    warehouses: u32,
    /// Items; the specification says 100000
    #[arg(long, default_value_t = 100_000)]
    items: u32,
    /// Customers of a district; the specification says 3000
    #[arg(long, default_value_t = 3000)]
    customers: u32,
    /// Connections that execute transactions; a multiple of the warehouses
    #[arg(long, default_value_t = 4)]
    threads: u32,
    /// Connections that execute queries
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// Seconds of each run
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Seconds of transactions between loading and the comparison of answers
    #[arg(long, value_name = "S", default_value_t = 5)]
    warm_up: u64,
    /// Runs alone and with the stream on each server; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3)]
    repetitions: u32,
    /// Numbers of the queries [default: all]
    #[arg(long, value_delimiter = ',')]
    queries: Vec<usize>,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Further options of `junctor serve`, such as --total-memory 8G
    #[arg(long, value_delimiter = ' ', allow_hyphen_values = true)]
    serve: Vec<String>,
    /// Measure Junctor only, without comparing answers
    #[arg(long)]
    alone: bool,
}

/// The figures of one run.
#[derive(Clone, Debug, Default)]
struct Run {
    new_orders: NewOrders,
    select_p50_ms: f64,
    select_p99_ms: f64,
    queries: f64,
    query_ms: f64,
    /// CPUs that the server used on average.
    cpus: f64,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// A server that does not start, answers that differ, a query that fails, tables that violate the conditions
/// of TPC-C, or a missed target.
pub fn run(options: &ChOptions) -> Outcome<()> {
    let folder = TemporaryFolder::new("ch")?;
    write_scripts(folder.path())?;
    let driver = Driver {
        folder: folder.path(),
        database: DATABASE,
        warehouses: options.warehouses,
        items: options.items,
        customers: options.customers,
        threads: options.threads,
    };
    let servers = start(options)?;
    load(options, &driver, &servers)?;
    let queries = queries::queries(&options.queries);
    queries::compare(&servers, DATABASE, &queries)?;
    let mut runs: Vec<[Vec<Run>; 2]> = servers.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for _ in 0..options.repetitions {
        for (server, of_server) in servers.iter().zip(&mut runs) {
            for (with_stream, of_kind) in of_server.iter_mut().enumerate() {
                let queries = if with_stream == 1 { queries.as_slice() } else { &[] };
                let run = measure(options, &driver, server, queries)?;
                eprintln!("{}, {} queries: {run:?}", server.name, queries.len());
                of_kind.push(run);
            }
        }
    }
    for server in &servers {
        driver.check(server)?;
    }
    let medians: Vec<[Run; 2]> =
        runs.iter().map(|of_server| of_server.each_ref().map(|runs| median_run(runs))).collect();
    println!("{}", table(&servers, &medians));
    let missed = print_verdicts(&verdicts(&medians[0]));
    for server in servers {
        server.stop()?;
    }
    if missed > 0 { Err(Failure::new("the queries delayed the transactions for too long")) } else { Ok(()) }
}

fn start(options: &ChOptions) -> Outcome<Vec<Server>> {
    let mut junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    junctor.arguments.extend(options.serve.iter().filter(|word| !word.is_empty()).cloned());
    if let Some(thread_config) = &options.thread_config {
        junctor = junctor.with_placement(thread_config);
    }
    let mut servers = vec![start_junctor(&junctor)?];
    if !options.alone {
        servers.push(start_mariadb(&[])?);
    }
    Ok(servers)
}

/// Loads the first server, changes its rows by some transactions, and copies them to the other one.
fn load(options: &ChOptions, driver: &Driver<'_>, servers: &[Server]) -> Outcome<()> {
    let start = Instant::now();
    for server in servers {
        server.execute(&[&format!("CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")])?;
        data::load_more(server, DATABASE)?;
    }
    let [first, others @ ..] = servers else { return Ok(()) };
    driver.load(first)?;
    if options.warm_up > 0 {
        driver.run(first, options.warm_up)?;
    }
    for other in others {
        driver.create_tables(other)?;
        let size = data::Size { warehouses: options.warehouses, items: options.items };
        let rows = data::copy(first, other, DATABASE, size)?;
        eprintln!("{rows} rows copied to {}", other.name);
    }
    for server in servers {
        data::analyze(server, DATABASE)?;
    }
    eprintln!("loaded in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs transactions and point selects, together with the queries if there are any.
fn measure(options: &ChOptions, driver: &Driver<'_>, server: &Server, queries: &[Query]) -> Outcome<Run> {
    let stop = AtomicBool::new(false);
    let size = (options.warehouses, options.customers);
    thread::scope(|scope| {
        let selects = scope.spawn(|| stream::run_selects(server, DATABASE, size, &stop));
        let streams = if queries.is_empty() { 0 } else { options.streams };
        let streams: Vec<_> = (0..streams)
            .map(|number| {
                let (stop, first) = (&stop, number * queries.len() / options.streams);
                scope.spawn(move || stream::run_queries(server, DATABASE, queries, first, stop))
            })
            .collect();
        let (start, cpu_before) = (Instant::now(), server.cpu_time());
        let new_orders = driver.run(server, options.seconds);
        let (elapsed, cpu_after) = (start.elapsed(), server.cpu_time());
        stop.store(true, Ordering::Relaxed);
        let selects = join(selects)?;
        let finished = streams.into_iter().map(join).collect::<Outcome<Vec<Finished>>>()?;
        let cpu = cpu_after? - cpu_before?;
        run_of(new_orders?, &selects, &finished, cpu.as_secs_f64() / elapsed.as_secs_f64())
    })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Outcome<T>>) -> Outcome<T> {
    thread.join().unwrap_or_else(|_| Err(Failure::new("a thread panicked")))
}

fn run_of(new_orders: NewOrders, selects: &Latencies, finished: &[Finished], cpus: f64) -> Outcome<Run> {
    if let Some(failure) = finished.iter().flat_map(|stream| &stream.failures).next() {
        return Err(Failure::new(failure.clone()));
    }
    let queries: u32 = finished.iter().map(|stream| stream.queries).sum();
    let elapsed: Duration = finished.iter().map(|stream| stream.elapsed).sum();
    Ok(Run {
        new_orders,
        select_p50_ms: selects.percentile_us(500) / 1000.0,
        select_p99_ms: selects.percentile_us(990) / 1000.0,
        queries: f64::from(queries),
        query_ms: elapsed.as_secs_f64() * 1000.0 / f64::from(queries.max(1)),
        cpus,
    })
}

/// The median of each figure.
fn median_run(runs: &[Run]) -> Run {
    let of = |figure: fn(&Run) -> f64| median(&runs.iter().map(figure).collect::<Vec<f64>>());
    Run {
        new_orders: NewOrders {
            per_minute: of(|run| run.new_orders.per_minute),
            p50_ms: of(|run| run.new_orders.p50_ms),
            p99_ms: of(|run| run.new_orders.p99_ms),
        },
        select_p50_ms: of(|run| run.select_p50_ms),
        select_p99_ms: of(|run| run.select_p99_ms),
        queries: of(|run| run.queries),
        query_ms: of(|run| run.query_ms),
        cpus: of(|run| run.cpus),
    }
}

fn table(servers: &[Server], runs: &[[Run; 2]]) -> Table {
    let mut table = Table::new(&[
        "server",
        "new orders/min",
        "New-Order p50 ms",
        "p99 ms",
        "select p50 ms",
        "p99 ms",
        "queries",
        "ms a query",
        "CPUs",
    ]);
    for (server, [alone, beside]) in servers.iter().zip(runs) {
        for (what, run) in [("alone", alone), ("with queries", beside)] {
            table.row(vec![
                format!("{}, {what}", server.name),
                format!("{:.0}", run.new_orders.per_minute),
                format!("{:.2}", run.new_orders.p50_ms),
                format!("{:.2}", run.new_orders.p99_ms),
                format!("{:.3}", run.select_p50_ms),
                format!("{:.3}", run.select_p99_ms),
                format!("{:.0}", run.queries),
                format!("{:.0}", run.query_ms),
                format!("{:.2}", run.cpus),
            ]);
        }
        let ratio = |figure: fn(&Run) -> f64| format!("{:.2}", figure(beside) / figure(alone));
        table.row(vec![
            format!("{}, ratio", server.name),
            ratio(|run| run.new_orders.per_minute),
            ratio(|run| run.new_orders.p50_ms),
            ratio(|run| run.new_orders.p99_ms),
            ratio(|run| run.select_p50_ms),
            ratio(|run| run.select_p99_ms),
            String::new(),
            String::new(),
            ratio(|run| run.cpus),
        ]);
    }
    table
}

/// The targets, and what was measured.
fn verdicts([alone, beside]: &[Run; 2]) -> [Verdict; 3] {
    let verdict = |what: &str, allowed_max, measured| Verdict { what: what.to_string(), allowed_max, measured };
    [
        verdict("p99 of point selects to that alone", P99_RATIO_MAX, beside.select_p99_ms / alone.select_p99_ms),
        verdict("p99 of New-Orders to that alone", P99_RATIO_MAX, beside.new_orders.p99_ms / alone.new_orders.p99_ms),
        verdict(
            "New-Orders alone to those with queries",
            1.0 / THROUGHPUT_RATIO_MIN,
            alone.new_orders.per_minute / beside.new_orders.per_minute,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(per_minute: f64, p99_ms: f64) -> Run {
        let new_orders = NewOrders { per_minute, p50_ms: 1.0, p99_ms };
        Run { new_orders, select_p99_ms: 1.0, ..Run::default() }
    }

    #[test]
    fn a_stream_that_costs_more_than_the_targets_allow_misses_them() {
        let missed = |beside: Run| -> Vec<bool> {
            verdicts(&[run(100.0, 10.0), beside]).iter().map(|verdict| !verdict.is_met()).collect()
        };
        assert_eq!(missed(run(71.0, 30.0)), [false, false, false]);
        assert_eq!(missed(run(69.0, 31.0)), [false, true, true]);
        assert_eq!(missed(run(0.0, 10.0)), [false, false, true], "no transaction at all");
    }

    #[test]
    fn each_figure_has_its_own_median() {
        let median = median_run(&[run(1.0, 9.0), run(2.0, 8.0), run(9.0, 1.0)]);
        assert_eq!((median.new_orders.per_minute, median.new_orders.p99_ms), (2.0, 8.0));
    }
}
