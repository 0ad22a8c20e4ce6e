//! Point selects of one client, alone and beside clients that write durably.

use std::thread;

use super::{DurableWritesOptions, load};
use crate::event_load::client::EventReport;
use crate::event_load::work::Work;
use crate::process::Server;
use crate::report::{Table, Verdict};
use crate::statistics::median;
use crate::{Failure, Outcome};

/// Number of clients that write.
const WRITERS: usize = 8;
/// Maximum latency of the reads beside writers, in those of MariaDB's.
const RATIO_MAX: f64 = 1.0;

/// Median of the percentiles of several runs, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Latency {
    p50_us: f64,
    p99_us: f64,
}

impl Latency {
    fn of_runs(runs: &[EventReport]) -> Latency {
        let of = |per_mille| median(&runs.iter().map(|run| run.latencies.percentile_us(per_mille)).collect::<Vec<_>>());
        Latency { p50_us: of(500), p99_us: of(990) }
    }
}

/// The latencies of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    alone: Latency,
    beside: Latency,
}

/// Measures the servers in turn.
///
/// # Errors
/// A server fails.
pub fn measure(options: &DurableWritesOptions, servers: [&Server; 2], run: &mut u8) -> Outcome<[Reads; 2]> {
    let mut runs = [(); 2].map(|()| [Vec::new(), Vec::new()]);
    for round in 0..options.rounds as usize {
        for turn in 0..servers.len() {
            let side = (turn + round) % servers.len();
            for (writers, runs) in [0, WRITERS].into_iter().zip(&mut runs[side]) {
                *run = run.wrapping_add(2);
                runs.push(measure_once(options, servers[side], writers, *run)?);
            }
        }
    }
    Ok(runs.map(|[alone, beside]| Reads { alone: Latency::of_runs(&alone), beside: Latency::of_runs(&beside) }))
}

/// One client reads while `writers` others update.
fn measure_once(options: &DurableWritesOptions, server: &Server, writers: usize, run: u8) -> Outcome<EventReport> {
    let reads = load(options, (server, true), Work::PointText, 1, run);
    let writes = load(options, (server, true), Work::Update, writers, run.wrapping_add(1));
    thread::scope(|scope| {
        // Both have the same warm-up and the same time.
        let writing = (writers > 0).then(|| scope.spawn(|| writes.run(|| server.cpu_time())));
        let report = reads.run(|| server.cpu_time())?;
        match writing.map(thread::ScopedJoinHandle::join) {
            Some(Err(_)) => Err(Failure::new("the writers of the load panicked")),
            Some(Ok(Err(failure))) => Err(failure),
            Some(Ok(Ok(_))) | None => Ok(report),
        }
    })
}

/// The latencies of both servers.
pub fn table([ours, mariadb]: &[Reads; 2]) -> Table {
    let mut table = Table::new(&["point selects", "p50 us", "MariaDB", "ratio", "p99 us", "MariaDB", "ratio"]);
    let sides = [("alone", ours.alone, mariadb.alone), ("beside 8 writers", ours.beside, mariadb.beside)];
    for (name, ours, mariadb) in sides {
        let mut cells = vec![name.to_owned()];
        for (ours, mariadb) in [(ours.p50_us, mariadb.p50_us), (ours.p99_us, mariadb.p99_us)] {
            cells.extend([format!("{ours:.1}"), format!("{mariadb:.1}"), format!("{:.2}", ours / mariadb)]);
        }
        table.row(cells);
    }
    table
}

/// Writers delay reads no more than they delay MariaDB's.
pub fn verdicts([ours, mariadb]: &[Reads; 2]) -> Vec<Verdict> {
    let pairs =
        [("p50", ours.beside.p50_us, mariadb.beside.p50_us), ("p99", ours.beside.p99_us, mariadb.beside.p99_us)];
    let verdict = |(name, ours, mariadb): (&str, f64, f64)| Verdict {
        what: format!("point selects beside {WRITERS} writers: {name} to MariaDB's"),
        allowed_max: RATIO_MAX,
        measured: ours / mariadb,
    };
    pairs.into_iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_beside_writers_are_judged_by_mariadb() {
        let reads = |p50_us, p99_us| Reads { beside: Latency { p50_us, p99_us }, ..Reads::default() };
        let met: Vec<bool> = verdicts(&[reads(50.0, 900.0), reads(100.0, 800.0)]).iter().map(Verdict::is_met).collect();
        assert_eq!(met, [true, false]);
    }

    #[test]
    fn the_table_has_at_most_100_columns() {
        let latency = Latency { p50_us: 1_234_567.8, p99_us: 1_234_567.8 };
        let reads = Reads { alone: latency, beside: latency };
        let table = table(&[reads, reads]).to_string();
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }
}
