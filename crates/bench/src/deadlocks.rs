//! `deadlocks`: many clients contend for few pairs of rows. Each transaction updates both rows of a pair, in
//! random order.
//!
//! A deadlock closes when two clients hold one row each and the second client requests the other's row.
//! Clients record when they sent a request and when its reply arrived. The measured time from the closing to
//! error 1213 therefore includes the network, and never understates the server's time.

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
/// Target for the median time from the closing of a deadlock to its error, in milliseconds.
const DETECTION_MS_MAX: f64 = 5.0;

/// Options of `deadlocks`.
#[derive(Clone, Debug, clap::Args)]
pub struct DeadlocksOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Number of connections, each with a thread
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    clients: u32,
    /// Number of pairs of rows
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pairs: u32,
    /// Seconds per round
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Rounds of each server; the servers alternate
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Skip the comparison with MariaDB
    #[arg(long)]
    alone: bool,
}

/// One request for the second row of a transaction.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// The row that the transaction held.
    held: u32,
    /// The row that the transaction requested.
    wanted: u32,
    /// Time of the request.
    asked: Instant,
    /// Time of the reply.
    answered: Instant,
    /// Whether the reply was error 1213.
    is_victim: bool,
}

/// Totals of one server over all rounds.
#[derive(Default)]
struct ServerTotals {
    per_s: Vec<f64>,
    committed: u64,
    deadlocks: u64,
    /// Times from the closing of a deadlock to its error, in microseconds.
    detection_us: Vec<u32>,
}

/// Runs the clients. Fails if a target is missed.
///
/// # Errors
/// A missed target, an error other than 1213, or a server that does not start.
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
    let mut all_totals: Vec<ServerTotals> = servers.iter().map(|_| ServerTotals::default()).collect();
    for round in 0..options.rounds {
        for (server, totals) in servers.iter().zip(&mut all_totals) {
            run_round(options, server, u64::from(round), totals)?;
        }
    }
    let mut locks_left = 0;
    for (server, totals) in servers.iter().zip(&all_totals) {
        judge_rows(server, totals.committed)?;
        if server.name == "Junctor" {
            locks_left = count(&mut server.connect()?, "SELECT COUNT(*) FROM junctor_info.locks")?;
        }
    }
    print_totals(&servers, &mut all_totals);
    let is_calm = all_totals[0].detection_us.is_empty();
    let mut verdicts = vec![
        Verdict { what: "storms without a deadlock".into(), allowed_max: 0.0, measured: u8::from(is_calm).into() },
        Verdict { what: "locks left behind".into(), allowed_max: 0.0, measured: locks_left as f64 },
    ];
    // A test of the server alone judges no times, because its machine does other work.
    if !options.alone && !is_calm {
        verdicts.push(Verdict {
            what: "median ms from the closing of a deadlock to error 1213".into(),
            allowed_max: DETECTION_MS_MAX,
            measured: detection_ms(&mut all_totals[0], 50),
        });
    }
    if let [ours, theirs] = all_totals.as_slice() {
        let measured = median(&theirs.per_s) / median(&ours.per_s);
        verdicts.push(Verdict { what: "MariaDB's transactions/s divided by ours".into(), allowed_max: 1.0, measured });
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

fn run_round(options: &DeadlocksOptions, server: &Server, round: u64, totals: &mut ServerTotals) -> Outcome<()> {
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
    totals.per_s.push(committed as f64 / elapsed.as_secs_f64());
    totals.committed += committed;
    totals.deadlocks += attempts.iter().filter(|attempt| attempt.is_victim).count() as u64;
    totals.detection_us.extend(detection_times_us(&attempts));
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
    // The other clients wait at this barrier, so reach it even if this connection failed.
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
    // The ids of a pair differ only in the lowest bit.
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

/// Returns, for each deadlock, the microseconds from its closing to the error of its victim.
///
/// The victim's opponent is a client that
/// - held the row which the victim requested,
/// - requested the victim's row before the victim got its error, and
/// - got the reply to that request after the victim had sent its own.
///
/// If several clients match, the one with the earliest request counts. A wrong choice can only lengthen the
/// time.
fn detection_times_us(attempts: &[Attempt]) -> Vec<u32> {
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

/// Checks that every committed transaction was counted in both of its rows.
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

fn detection_ms(totals: &mut ServerTotals, percent: usize) -> f64 {
    f64::from(percentile(&mut totals.detection_us, percent)) / 1000.0
}

fn print_totals(servers: &[Server], all_totals: &mut [ServerTotals]) {
    let mut table =
        Table::new(&["server", "transactions/s", "committed", "deadlocks", "found ms p50", "p95", "p99", "p100"]);
    for (server, totals) in servers.iter().zip(all_totals) {
        let mut row = vec![
            server.name.to_owned(),
            format!("{:.0}", median(&totals.per_s)),
            totals.committed.to_string(),
            totals.deadlocks.to_string(),
        ];
        row.extend([50, 95, 99, 100].map(|percent| format!("{:.2}", detection_ms(totals, percent))));
        table.row(row);
    }
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_exists_from_the_second_request_on() {
        let start = Instant::now();
        let attempt = |held: u32, asked: u64, answered: u64, is_victim: bool| Attempt {
            held,
            wanted: held ^ 1,
            asked: start + Duration::from_micros(asked),
            answered: start + Duration::from_micros(answered),
            is_victim,
        };
        // The victim waited first, and the third attempt closed the deadlock. Two attempts must be ignored:
        // the second got its reply before the victim's request, and the fourth is on another pair.
        let attempts = [
            attempt(0, 100, 900, true),
            attempt(1, 20, 90, false),
            attempt(1, 700, 950, false),
            attempt(3, 150, 990, false),
        ];
        assert_eq!(detection_times_us(&attempts), [200]);
        // The victim's request closed the deadlock.
        assert_eq!(detection_times_us(&[attempt(0, 500, 900, true), attempt(1, 20, 990, false)]), [400]);
        assert!(detection_times_us(&[attempt(0, 500, 900, false), attempt(1, 20, 990, false)]).is_empty());
    }
}
