//! A storm of deadlocks: many clients on few pairs of rows, each transaction updates both rows of a pair in either order.
//!
//! A deadlock closes when the second of two clients that hold a row each has asked for the other's. Clients note when they
//! asked and when they were answered, so the time from closing to error 1213 is known from outside, and never taken for
//! shorter than it was.

use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::mysql::{ClientError, Connection, Statement};
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::random::Random;
use crate::report::{Table, Verdict, print_verdicts};
use crate::statistics::{median, percentile};
use crate::{Failure, Outcome};

const DEADLOCK: u16 = 1213;
/// The most that the median of the times from closing to the error may be.
const FOUND_MS_MAX: f64 = 5.0;

/// Clients that lock pairs of rows in either order.
#[derive(Clone, Debug, clap::Args)]
pub struct DeadlocksOptions {
    /// The binary [default: junctor beside this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Connections, each with a thread
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    clients: u32,
    /// Pairs of rows
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    /// Seconds of one round
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Rounds of each server; they take turns
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// ThreadConfig of the node [default: by the CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Leave the comparison with MariaDB out
    #[arg(long)]
    alone: bool,
}

/// A transaction that asked for its second row.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// The row that it held.
    held: u32,
    /// The row that it asked for.
    wanted: u32,
    /// When it asked.
    asked: Instant,
    /// When it was answered.
    answered: Instant,
    /// Whether the answer was error 1213.
    is_victim: bool,
}

/// What one server did in its rounds.
#[derive(Default)]
struct Storm {
    per_s: Vec<f64>,
    committed: u64,
    deadlocks: u64,
    /// From closing to the error, in microseconds.
    found_us: Vec<u32>,
}

/// Runs the storm; fails when a target is missed.
///
/// # Errors
/// As said, an error other than 1213, or a server that does not start.
pub fn run(options: &DeadlocksOptions) -> Outcome<()> {
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let mut servers = vec![match &options.thread_config {
        Some(thread_config) => start_junctor(&junctor.with_placement(thread_config))?,
        None => start_junctor(&junctor)?,
    }];
    if !options.alone {
        servers.push(start_mariadb(&[])?);
    }
    for server in &servers {
        fill(server, options.pairs)?;
    }
    let mut storms: Vec<Storm> = servers.iter().map(|_| Storm::default()).collect();
    for round in 0..options.rounds {
        for (server, storm) in servers.iter().zip(&mut storms) {
            run_round(options, server, u64::from(round), storm)?;
        }
    }
    let mut locks_left = 0;
    for (server, storm) in servers.iter().zip(&storms) {
        judge_rows(server, storm.committed)?;
        if server.name == "Junctor" {
            locks_left = count(&mut server.connect()?, "SELECT COUNT(*) FROM junctor_info.locks")?;
        }
    }
    print_storms(&servers, &mut storms);
    let mut verdicts = vec![
        Verdict {
            what: "median ms from the closing of a deadlock to error 1213".into(),
            allowed_max: FOUND_MS_MAX,
            measured: if storms[0].found_us.is_empty() { f64::NAN } else { found_ms(&mut storms[0], 50) },
        },
        Verdict { what: "locks left behind".into(), allowed_max: 0.0, measured: locks_left as f64 },
    ];
    if let [ours, theirs] = storms.as_slice() {
        let measured = median(&theirs.per_s) / median(&ours.per_s);
        verdicts.push(Verdict { what: "MariaDB's transactions/s by ours".into(), allowed_max: 1.0, measured });
    }
    let missed = print_verdicts(&verdicts);
    for server in servers {
        server.stop()?;
    }
    if missed > 0 { Err(Failure::new(format!("{missed} targets are missed"))) } else { Ok(()) }
}

fn fill(server: &Server, pairs: u32) -> Outcome<()> {
    let create = "CREATE TABLE hot (id INT NOT NULL PRIMARY KEY, n BIGINT NOT NULL) PARTITION BY KEY (id) PARTITIONS 4";
    let rows: Vec<String> = (0..pairs * 2).map(|id| format!("({id}, 0)")).collect();
    let insert = format!("INSERT INTO hot VALUES {}", rows.join(", "));
    server.execute(&["CREATE DATABASE storm", "USE storm", create, &insert])
}

fn run_round(options: &DeadlocksOptions, server: &Server, round: u64, storm: &mut Storm) -> Outcome<()> {
    let barrier = &Barrier::new(options.clients as usize);
    let time = Duration::from_secs(options.seconds);
    let results: Vec<Outcome<Worker>> = thread::scope(|scope| {
        let client = |number: u32| {
            let random = Random::new((round << 32) | (u64::from(number) + 1));
            scope.spawn(move || run_client(server, options.pairs, time, random, barrier))
        };
        let workers: Vec<_> = (0..options.clients).map(client).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Outcome<Worker>>| worker.join();
        workers
            .into_iter()
            .map(|worker| join(worker).unwrap_or_else(|_| Err(Failure::new("a thread panicked"))))
            .collect()
    });
    let mut attempts = Vec::new();
    let mut committed = 0;
    let mut elapsed = Duration::ZERO;
    for worker in results {
        let worker = worker?;
        committed += worker.committed;
        elapsed = elapsed.max(worker.elapsed);
        attempts.extend(worker.attempts);
    }
    storm.per_s.push(committed as f64 / elapsed.as_secs_f64());
    storm.committed += committed;
    storm.deadlocks += attempts.iter().filter(|attempt| attempt.is_victim).count() as u64;
    storm.found_us.extend(found_after(&attempts));
    Ok(())
}

#[derive(Default)]
struct Worker {
    committed: u64,
    elapsed: Duration,
    attempts: Vec<Attempt>,
}

fn run_client(server: &Server, pairs: u32, time: Duration, mut random: Random, barrier: &Barrier) -> Outcome<Worker> {
    let opened = Connection::open(server.address, "storm").and_then(|mut connection| {
        let update = connection.prepare("UPDATE hot SET n = n + 1 WHERE id = ?")?;
        Ok((connection, update))
    });
    // Others wait here whether this connection came about or not.
    barrier.wait();
    let (mut connection, update) = opened?;
    let mut worker = Worker::default();
    let start = Instant::now();
    while start.elapsed() < time {
        let first = random.below(u64::from(pairs) * 2) as u32;
        match transaction(&mut connection, update, first, &mut worker) {
            Ok(()) => worker.committed += 1,
            Err(error) if error.errno() == DEADLOCK => {}
            Err(error) => return Err(error.into()),
        }
    }
    worker.elapsed = start.elapsed();
    Ok(worker)
}

fn transaction(
    connection: &mut Connection,
    update: Statement,
    held: u32,
    worker: &mut Worker,
) -> Result<(), ClientError> {
    // The rows of a pair have neighbouring numbers.
    let wanted = held ^ 1;
    connection.query("BEGIN")?;
    connection.execute(update, &[i64::from(held)])?;
    let asked = Instant::now();
    let answer = connection.execute(update, &[i64::from(wanted)]);
    let is_victim = answer.as_ref().is_err_and(|error| error.errno() == DEADLOCK);
    worker.attempts.push(Attempt { held, wanted, asked, answered: Instant::now(), is_victim });
    answer?;
    connection.query("COMMIT")?;
    Ok(())
}

/// For each victim the microseconds from the closing of its deadlock to its error.
///
/// Its opponent held what the victim wanted and had asked before the victim's error for what the victim held, and was
/// not answered before the victim asked. Of several such the first to ask is taken, which makes the time longer at most.
fn found_after(attempts: &[Attempt]) -> Vec<u32> {
    let mut by_held: Vec<&Attempt> = attempts.iter().collect();
    by_held.sort_unstable_by_key(|attempt| (attempt.held, attempt.asked));
    let found = |victim: &Attempt| {
        let start = by_held.partition_point(|attempt| attempt.held < victim.wanted);
        let of_row = by_held[start..].iter().take_while(|attempt| attempt.held == victim.wanted);
        let opponent = of_row
            .take_while(|attempt| attempt.asked <= victim.answered)
            .find(|attempt| attempt.answered >= victim.asked)?;
        let closed = victim.asked.max(opponent.asked);
        Some(u32::try_from((victim.answered - closed).as_micros()).unwrap_or(u32::MAX))
    };
    attempts.iter().filter(|attempt| attempt.is_victim).filter_map(found).collect()
}

/// Every committed transaction has counted in both rows.
fn judge_rows(server: &Server, committed: u64) -> Outcome<()> {
    let mut connection = Connection::open(server.address, "storm")?;
    let sum = count(&mut connection, "SELECT SUM(n) FROM hot")?;
    if sum == committed * 2 {
        return Ok(());
    }
    Err(Failure::new(format!("{}: {committed} transactions have counted to {sum}", server.name)))
}

fn count(connection: &mut Connection, text: &str) -> Outcome<u64> {
    let value = connection.query_value(text)?.unwrap_or_default();
    value.parse().map_err(|_| Failure::new(format!("{value} in place of a count")))
}

fn found_ms(storm: &mut Storm, percent: usize) -> f64 {
    f64::from(percentile(&mut storm.found_us, percent)) / 1000.0
}

fn print_storms(servers: &[Server], storms: &mut [Storm]) {
    let mut table =
        Table::new(&["server", "transactions/s", "committed", "deadlocks", "found ms p50", "p95", "p99", "p100"]);
    for (server, storm) in servers.iter().zip(storms) {
        let mut row = vec![
            server.name.to_owned(),
            format!("{:.0}", median(&storm.per_s)),
            storm.committed.to_string(),
            storm.deadlocks.to_string(),
        ];
        row.extend([50, 95, 99, 100].map(|percent| format!("{:.2}", found_ms(storm, percent))));
        table.row(row);
    }
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_closes_when_the_second_has_asked() {
        let start = Instant::now();
        let attempt = |held: u32, asked: u64, answered: u64, is_victim: bool| Attempt {
            held,
            wanted: held ^ 1,
            asked: start + Duration::from_micros(asked),
            answered: start + Duration::from_micros(answered),
            is_victim,
        };
        // The victim waited first; the one that had the row before it was answered before, another pair does not matter.
        let attempts = [
            attempt(0, 100, 900, true),
            attempt(1, 20, 90, false),
            attempt(1, 700, 950, false),
            attempt(3, 150, 990, false),
        ];
        assert_eq!(found_after(&attempts), [200]);
        // The victim closed it.
        assert_eq!(found_after(&[attempt(0, 500, 900, true), attempt(1, 20, 990, false)]), [400]);
        assert!(found_after(&[attempt(0, 500, 900, false), attempt(1, 20, 990, false)]).is_empty());
    }
}
