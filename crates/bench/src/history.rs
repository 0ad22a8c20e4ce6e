//! `history`: runs random transactions against the real binary and checks their results against the isolation
//! level.
//!
//! Transactions run in batches, and each batch uses new objects. A history therefore fits into memory, and it
//! is checked while its server still runs. Half of the sessions send prepared statements.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use junctor_history::check::{Report, check};
use junctor_history::draw::Options;
use junctor_history::history::{History, Transaction};
use junctor_history::level::{Anomaly, Level};
use junctor_history::session::{
    Answer, Request, Session, create_tables, final_reads, populate_tables, record_final_read,
};

use crate::mysql::{ClientError, Connection, Rows, Statement};
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::random::Random;
use crate::report::Table;
use crate::{Failure, Outcome};

/// A run with at least this many transactions must show an anomaly that its level allows. If it shows none,
/// it had too few conflicts to prove anything.
const TELLING_TRANSACTIONS: u32 = 20_000;

/// Approximate number of transactions on each object of a batch. Lists grow to half that number of elements.
const TRANSACTIONS_PER_OBJECT: u32 = 100;

/// Options of `history`.
#[derive(Clone, Debug, clap::Args)]
pub struct HistoryOptions {
    /// Isolation levels, run one after the other
    #[arg(long, value_name = "L", value_delimiter = ',', value_parser = parse_level,
        default_value = "read_committed,repeatable_read,snapshot,serializable")]
    level: Vec<Level>,
    /// Number of concurrent sessions
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    sessions: u32,
    /// Transactions per level
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    transactions: u32,
    /// Transactions per batch; each batch is checked as a whole
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    batch: u32,
    /// Objects of each kind in use at any time; a small number makes conflicts frequent
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    window: u32,
    /// Seed of the random transactions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Run against MariaDB instead
    #[arg(long)]
    mariadb: bool,
}

fn parse_level(name: &str) -> Result<Level, String> {
    let names = || Level::ALL.map(Level::name).join(", ");
    Level::from_name(name).ok_or_else(|| format!("levels are {}", names()))
}

/// Runs the transactions of every level. Fails on any anomaly that a level forbids.
///
/// # Errors
/// A forbidden anomaly, an error that no level allows, or a server that does not start.
pub fn run(options: &HistoryOptions) -> Outcome<()> {
    let server = if options.mariadb { start_mariadb(&[])? } else { start_node(options)? };
    server.execute(&["CREATE DATABASE history"])?;
    let mut table = Table::new(&["level", "committed", "undone", "transactions/s", "forbidden", "allowed and seen"]);
    let (mut forbidden, mut tame) = (0, false);
    for &level in &options.level {
        let start = Instant::now();
        let report = run_level(options, level, &server)?;
        let per_s = f64::from(options.transactions) / start.elapsed().as_secs_f64();
        let allowed = report.anomalies.iter().filter(|(anomaly, _)| !level.forbids(**anomaly));
        let allowed: Vec<String> = allowed.map(|(anomaly, count)| format!("{anomaly} {count}")).collect();
        tame |= options.transactions >= TELLING_TRANSACTIONS
            && allowed.is_empty()
            && Anomaly::ALL.into_iter().any(|anomaly| !level.forbids(anomaly));
        forbidden += report.forbidden;
        for violation in &report.violations {
            println!("{}: {}: {}\n", level.name(), violation.anomaly, violation.explanation);
        }
        let counts = [report.committed, report.aborted].map(|count| count.to_string());
        let [committed, undone] = counts;
        let allowed = allowed.join(", ");
        table.row(vec![
            level.name().into(),
            committed,
            undone,
            format!("{per_s:.0}"),
            report.forbidden.to_string(),
            allowed,
        ]);
    }
    println!("{table}");
    if forbidden > 0 {
        return Err(Failure::new(format!("{forbidden} anomalies that their level forbids")));
    }
    if tame {
        return Err(Failure::new("a level showed no anomaly that it allows, so the run proves nothing"));
    }
    server.stop()
}

fn start_node(options: &HistoryOptions) -> Outcome<Server> {
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    match &options.thread_config {
        Some(thread_config) => start_junctor(&junctor.with_placement(thread_config)),
        None => start_junctor(&junctor),
    }
}

fn run_level(options: &HistoryOptions, level: Level, server: &Server) -> Outcome<Report> {
    let mut clients = Vec::new();
    for number in 0..options.sessions {
        clients.push(Client::open(server, number % 2 == 1)?);
    }
    let mut report = Report::default();
    let (mut left, mut first_id) = (options.transactions, 1);
    while left > 0 {
        let batch = left.min(options.batch);
        left -= batch;
        let run = Options {
            level,
            first_id,
            objects: (batch / TRANSACTIONS_PER_OBJECT).max(options.window),
            window: options.window,
            sessions: options.sessions,
            transactions: batch.div_ceil(options.sessions),
        };
        if first_id == 1 {
            clients[0].run_all(&create_tables(&run))?;
        }
        clients[0].run_all(&populate_tables(&run))?;
        let history = run_batch(options.seed ^ u64::from(first_id), &run, &mut clients)?;
        report.add(check(&history, level));
        first_id += run.objects;
    }
    Ok(report)
}

fn run_batch(seed: u64, run: &Options, clients: &mut [Client]) -> Outcome<History> {
    let stamp = &AtomicU64::new(1);
    let results: Vec<Outcome<Vec<Transaction>>> = thread::scope(|scope| {
        let workers = clients.iter_mut().enumerate().map(|(number, client)| {
            scope.spawn(move || {
                client.run_session(Session::new(*run, number as u32), seed + number as u64 * 7919, stamp)
            })
        });
        let workers: Vec<_> = workers.collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join();
        workers
            .into_iter()
            .map(|worker| join(worker).unwrap_or_else(|_| Err(Failure::new("a thread panicked"))))
            .collect()
    });
    let mut history = History::default();
    for transactions in results {
        history.transactions.extend(transactions?);
    }
    for (position, request) in final_reads(run).iter().enumerate() {
        let rows = clients[0].ask(request)?.rows;
        record_final_read(run, position, &rows, &mut history.finals).map_err(Failure::new)?;
    }
    Ok(history)
}

struct Client {
    connection: Connection,
    prepares: bool,
    prepared: BTreeMap<String, Statement>,
}

impl Client {
    fn open(server: &Server, prepares: bool) -> Outcome<Client> {
        let connection = Connection::open(server.address, "history")?;
        Ok(Client { connection, prepares, prepared: BTreeMap::new() })
    }

    fn run_all(&mut self, statements: &[String]) -> Outcome<()> {
        for statement in statements {
            self.connection.query(statement)?;
        }
        Ok(())
    }

    fn run_session(&mut self, mut session: Session, seed: u64, stamp: &AtomicU64) -> Outcome<Vec<Transaction>> {
        let mut random = Random::new(seed);
        let now = || stamp.fetch_add(1, Ordering::SeqCst);
        loop {
            let Some(request) = session.next(now(), &mut |count| random.below(count)) else {
                return Ok(session.into_transactions());
            };
            let answer = self.ask(&request);
            let taken = match &answer {
                Ok(rows) if rows.columns.is_empty() => {
                    session.on_answer(Answer::Done { affected_rows: rows.affected_rows }, now())
                }
                Ok(rows) => session.on_answer(Answer::Rows(&rows.rows), now()),
                Err(ClientError::Server { errno, .. }) => session.on_answer(Answer::Failed { errno: *errno }, now()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(fault) = taken {
                // The other sessions run to their end and must not wait for this session's locks.
                let _ = self.connection.query("ROLLBACK");
                return Err(Failure::new(format!("{fault}; after: {}", as_text(&request))));
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Rows, ClientError> {
        if !self.prepares || request.parameters.is_empty() {
            return self.connection.query(&as_text(request));
        }
        let statement = match self.prepared.get(&request.text) {
            Some(statement) => *statement,
            None => {
                let statement = self.connection.prepare(&request.text)?;
                self.prepared.insert(request.text.clone(), statement);
                statement
            }
        };
        self.connection.execute(statement, &request.parameters)
    }
}

/// The request as a statement text with its values inserted.
fn as_text(request: &Request) -> String {
    let mut parts = request.text.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (parameter, part) in request.parameters.iter().zip(parts) {
        text.push_str(&parameter.to_string());
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_marks_are_replaced_by_values() {
        let request = Request { text: "SELECT ? WHERE id = ?".into(), parameters: vec![1, -2] };
        assert_eq!(as_text(&request), "SELECT 1 WHERE id = -2");
    }

    #[test]
    fn every_level_is_named() {
        for level in Level::ALL {
            assert_eq!(parse_level(level.name()), Ok(level));
        }
        assert!(parse_level("chaos").is_err_and(|error| error.contains("serializable")));
    }
}
