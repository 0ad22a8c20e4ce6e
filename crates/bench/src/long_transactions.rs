//! `long-transactions`: runs transactions of very many rows, and measures the pauses that they cause in other
//! sessions. In each transaction, one statement writes every row of a table, and COMMIT or ROLLBACK follows.
//! A pause is the longest time that a point select or point update of another table takes meanwhile. Pauses
//! beside the statement and beside its COMMIT or ROLLBACK are measured separately. Finally, one session holds
//! a snapshot while a table is updated, until the node drops the snapshot.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::mysql::{ClientError, Connection, Statement};
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::random::Random;
use crate::report::{Table, Verdict, print_verdicts};
use crate::{Failure, Outcome};

/// Maximum pause of an update beside COMMIT, in milliseconds.
const COMMIT_PAUSE_MS_MAX: f64 = 10.0;
/// Rows per INSERT that fills the source table.
const FILL_ROWS: u64 = 1000;
/// Rows of the table that the other sessions update.
const OTHER_TABLE_ROWS: u64 = 1000;
/// Time during which only the other sessions run, to measure the noise of the machine.
const QUIET_TIME: Duration = Duration::from_secs(3);
/// Interval between reads of the session that holds an old snapshot. It reads until it gets an error, for at
/// most `HELD_TIME_MAX`.
const HOLDER_READ_INTERVAL: Duration = Duration::from_millis(200);
const HELD_TIME_MAX: Duration = Duration::from_secs(300);
/// ER_TABLE_DEF_CHANGED, the error of a session whose snapshot was dropped.
const SNAPSHOT_TOO_OLD: u16 = 1412;
/// Number of old versions that a partition keeps in addition to one per row.
const OLD_VERSIONS_KEPT: u64 = 65_536;
/// Errors with which a server may refuse a whole statement: full lock table, full memory, too many unique
/// keys.
const REFUSED: [u16; 3] = [1206, 1114, 1041];

const COMMIT: &str = "COMMIT";

/// Options of `long-transactions`.
#[derive(Clone, Debug, clap::Args)]
pub struct LongTransactionsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Rows per transaction
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    rows: u64,
    /// Number of connections that select by key, and the same number that update by key
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    sessions: u32,
    /// Memory of the node, such as 4G
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    total_memory: String,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Maximum pause of a session, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000.0)]
    pause_ms_max: f64,
    /// Measure a durable node; otherwise a node in memory
    #[arg(long)]
    durable: bool,
    /// Run against MariaDB instead
    #[arg(long)]
    mariadb: bool,
}

/// One transaction: a statement that writes all rows, then COMMIT or ROLLBACK.
struct BulkTransaction {
    name: &'static str,
    statement: String,
    end: &'static str,
}

/// Longest times of statements of the other sessions, in microseconds: of those that ended while the long
/// statement ran, then of those that ended beside its COMMIT or ROLLBACK.
type LongestUs = [u64; 2];

/// What the other sessions did.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    selects: u64,
    updates: u64,
    select_us: LongestUs,
    update_us: LongestUs,
}

struct OtherSessions<'a> {
    server: &'a Server,
    rows: u64,
    /// Whether COMMIT or ROLLBACK was sent.
    ends: AtomicBool,
    stop: AtomicBool,
    seen: Mutex<Pauses>,
}

/// Runs all transactions. Fails if a pause is too long, or if a transaction is not atomic.
///
/// # Errors
/// A pause is too long, a transaction is applied in part, or a server does not start.
pub fn run(options: &LongTransactionsOptions) -> Outcome<()> {
    let junctor =
        JunctorOptions { binary: options.junctor.clone(), is_durable: options.durable, ..JunctorOptions::default() };
    let junctor = junctor.with_arguments(&["--total-memory", &options.total_memory]);
    let server = match (&options.thread_config, options.mariadb) {
        (_, true) => start_mariadb(&["--innodb-buffer-pool-size=2G"])?,
        (Some(thread_config), _) => start_junctor(&junctor.with_placement(thread_config))?,
        (None, _) => start_junctor(&junctor)?,
    };
    fill(&server, options.rows)?;
    let mut table = Table::new(&[
        "transaction",
        "statement s",
        "end s",
        "answer",
        "selects",
        "longest ms",
        "updates",
        "longest ms",
        "beside the end",
    ]);
    let (mut longest_us, mut commit_us) = (0, 0);
    let mut sum = None;
    let (_, quiet) = with_other_sessions(options, &server, |_| {
        thread::sleep(QUIET_TIME);
        Ok(())
    })?;
    add_row(&mut table, "nothing", (QUIET_TIME, Duration::ZERO), 0, quiet);
    for bulk in bulk_transactions(options.rows) {
        let (done, seen) = with_other_sessions(options, &server, |ends| run_transaction(&server, &bulk, ends))?;
        let (statement, end, errno) = done;
        let name = format!("{}, {}", bulk.name, bulk.end);
        add_row(&mut table, &name, (statement, end), errno, seen);
        longest_us = seen.select_us.into_iter().chain(seen.update_us).fold(longest_us, u64::max);
        if bulk.end == COMMIT {
            commit_us = commit_us.max(seen.update_us[1]);
        }
        sum = judge(&server, options.rows, &bulk, errno, sum)?;
    }
    println!("{table}");
    if !options.mariadb {
        hold_snapshot(options, &server)?;
    }
    println!("memory of the server: {} MiB", server.resident_bytes()? >> 20);
    let verdict =
        |what: &str, allowed_max, us| Verdict { what: what.into(), allowed_max, measured: us as f64 / 1000.0 };
    let missed = print_verdicts(&[
        verdict("longest pause of an update beside COMMIT, ms", COMMIT_PAUSE_MS_MAX, commit_us),
        verdict("longest pause of another session, ms", options.pause_ms_max, longest_us),
    ]);
    server.stop()?;
    if missed > 0 { Err(Failure::new("a pause was too long")) } else { Ok(()) }
}

fn bulk_transactions(rows: u64) -> Vec<BulkTransaction> {
    let mut acts = Vec::new();
    let mut add_both_ends = |name, statement: &str, ends: [&'static str; 2]| {
        acts.extend(ends.map(|end| BulkTransaction { name, statement: statement.to_owned(), end }));
    };
    let ends = ["ROLLBACK", COMMIT];
    add_both_ends("INSERT ... SELECT", "INSERT INTO big SELECT * FROM source", ends);
    add_both_ends("UPDATE of an indexed column", "UPDATE big SET k = k + 1", ends);
    add_both_ends("UPDATE of a unique column", &format!("UPDATE big SET u = u + {rows}"), ends);
    add_both_ends("DELETE", "DELETE FROM big", ends);
    acts
}

fn add_row(table: &mut Table, name: &str, (statement, end): (Duration, Duration), errno: u16, seen: Pauses) {
    let ms = |us: u64| format!("{:.1}", us as f64 / 1000.0);
    table.row(vec![
        name.to_owned(),
        format!("{:.2}", statement.as_secs_f64()),
        format!("{:.2}", end.as_secs_f64()),
        if errno == 0 { "done".to_owned() } else { format!("error {errno}") },
        seen.selects.to_string(),
        ms(seen.select_us.into_iter().max().unwrap_or(0)),
        seen.updates.to_string(),
        ms(seen.update_us.into_iter().max().unwrap_or(0)),
        ms(seen.update_us[1]),
    ]);
}

fn fill(server: &Server, rows: u64) -> Outcome<()> {
    let columns = "(id BIGINT NOT NULL PRIMARY KEY, k INT NOT NULL, u BIGINT NOT NULL, c CHAR(60) NOT NULL";
    let create = |name: &str| format!("CREATE TABLE {name} {columns}, KEY k_1 (k), UNIQUE KEY u_1 (u))");
    let mut connection = server.connect()?;
    connection.query("CREATE DATABASE long_transactions")?;
    connection.query("USE long_transactions")?;
    connection.query(&format!("CREATE TABLE source {columns})"))?;
    connection.query(&create("big"))?;
    connection.query("CREATE TABLE beside (id BIGINT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)")?;
    let text = "text of a row ".repeat(4);
    for first in (0..rows).step_by(FILL_ROWS as usize) {
        let ids = first..rows.min(first + FILL_ROWS);
        let values: Vec<String> = ids.map(|id| format!("({id}, {}, {id}, '{text}')", id % 1000)).collect();
        connection.query(&format!("INSERT INTO source VALUES {}", values.join(",")))?;
    }
    let values: Vec<String> = (0..OTHER_TABLE_ROWS).map(|id| format!("({id}, 0)")).collect();
    connection.query(&format!("INSERT INTO beside VALUES {}", values.join(",")))?;
    Ok(())
}

/// Calls `run` while the other sessions run concurrently. `run` sets its argument when it sends COMMIT or
/// ROLLBACK.
fn with_other_sessions<T>(
    options: &LongTransactionsOptions,
    server: &Server,
    run: impl FnOnce(&AtomicBool) -> Outcome<T>,
) -> Outcome<(T, Pauses)> {
    let others = OtherSessions {
        server,
        rows: options.rows,
        ends: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        seen: Mutex::new(Pauses::default()),
    };
    let done = thread::scope(|scope| {
        let others = &others;
        let sessions = (0..options.sessions * 2).map(|number| scope.spawn(move || others.session(number)));
        let sessions: Vec<_> = sessions.collect();
        let done = run(&others.ends);
        others.stop.store(true, Ordering::Relaxed);
        for session in sessions {
            session.join().unwrap_or_else(|_| Err(Failure::new("a thread panicked")))?;
        }
        done
    })?;
    let seen = *others.seen.lock().map_err(|_| Failure::new("a thread panicked"))?;
    Ok((done, seen))
}

impl OtherSessions<'_> {
    /// One of the other sessions. Those with an even number select, the others update.
    fn session(&self, number: u32) -> Outcome<()> {
        let mut random = Random::new(u64::from(number) + 1);
        let mut connection = Connection::open(self.server.address, "long_transactions")?;
        let select = connection.prepare("SELECT c FROM source WHERE id = ?")?;
        let update = connection.prepare("UPDATE beside SET n = n + 1 WHERE id = ?")?;
        let mut seen = Pauses::default();
        while !self.stop.load(Ordering::Relaxed) {
            let selects = number.is_multiple_of(2);
            let (statement, below) = if selects { (select, self.rows) } else { (update, OTHER_TABLE_ROWS) };
            let us = timed(&mut connection, statement, random.below(below))?;
            let part = usize::from(self.ends.load(Ordering::Relaxed));
            let (count, longest) = match selects {
                true => (&mut seen.selects, &mut seen.select_us[part]),
                false => (&mut seen.updates, &mut seen.update_us[part]),
            };
            *count += 1;
            *longest = us.max(*longest);
        }
        if let Ok(mut all) = self.seen.lock() {
            all.selects += seen.selects;
            all.updates += seen.updates;
            for part in 0..2 {
                all.select_us[part] = all.select_us[part].max(seen.select_us[part]);
                all.update_us[part] = all.update_us[part].max(seen.update_us[part]);
            }
        }
        Ok(())
    }
}

/// Holds a snapshot while rows are updated. The node keeps a bounded number of old versions and then drops
/// the snapshot. Checks that the session that holds the snapshot gets error 1412 and can continue its
/// transaction, and that no other session is affected.
fn hold_snapshot(options: &LongTransactionsOptions, server: &Server) -> Outcome<()> {
    let mut holder = Connection::open(server.address, "long_transactions")?;
    let mut watcher = Connection::open(server.address, "long_transactions")?;
    let mut kept_now = || -> Outcome<u64> {
        let kept = watcher.query_value("SELECT SUM(purge_queue_length) FROM junctor_info.memoryusage")?;
        Ok(kept.and_then(|kept| kept.parse().ok()).unwrap_or(0))
    };
    // The old versions of earlier transactions must be purged first.
    let start = Instant::now();
    while kept_now()? > 0 && start.elapsed() < HELD_TIME_MAX {
        thread::sleep(HOLDER_READ_INTERVAL);
    }
    holder.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let sum = "SELECT SUM(n) FROM beside";
    let before = holder.query_value(sum)?;
    let start = Instant::now();
    let ((errno, kept_max), seen) = with_other_sessions(options, server, |_| {
        let mut kept_max = 0;
        loop {
            thread::sleep(HOLDER_READ_INTERVAL);
            kept_max = kept_max.max(kept_now()?);
            match holder.query_value(sum) {
                Ok(now) if now == before && start.elapsed() < HELD_TIME_MAX => {}
                Ok(now) if now == before => return Ok((0, kept_max)),
                Ok(now) => return Err(Failure::new(format!("a snapshot changed from {before:?} to {now:?}"))),
                Err(error) => return Ok((error.errno(), kept_max)),
            }
        }
    })?;
    println!(
        "a snapshot held for {:.1} s beside {} updates: error {errno}, {kept_max} old versions kept at most",
        start.elapsed().as_secs_f64(),
        seen.updates
    );
    if errno != SNAPSHOT_TOO_OLD {
        return Err(Failure::new(format!("error {errno} in place of {SNAPSHOT_TOO_OLD}")));
    }
    let partitions = "SELECT COUNT(*) FROM junctor_info.memoryusage WHERE live_rows > 0";
    let partitions: u64 = watcher.query_value(partitions)?.and_then(|count| count.parse().ok()).unwrap_or(0);
    // The node checks the limit only at intervals, so allow twice the limit, and one more version for each
    // updated row.
    let allowed = partitions * OLD_VERSIONS_KEPT * 2 + OTHER_TABLE_ROWS;
    if kept_max > allowed {
        return Err(Failure::new(format!("{kept_max} old versions are more than {allowed}")));
    }
    holder.query("INSERT INTO beside VALUES (-1, 0)")?;
    holder.query("COMMIT")?;
    let now: u64 = holder.query_value(sum)?.and_then(|sum| sum.parse().ok()).unwrap_or(0);
    let before: u64 = before.and_then(|sum| sum.parse().ok()).unwrap_or(0);
    if now == before + seen.updates {
        return Ok(());
    }
    Err(Failure::new(format!("{} updates have counted from {before} to {now}", seen.updates)))
}

fn timed(connection: &mut Connection, statement: Statement, id: u64) -> Result<u64, ClientError> {
    let start = Instant::now();
    connection.execute(statement, &[id as i64])?;
    Ok(start.elapsed().as_micros() as u64)
}

/// Runs one transaction. Returns the durations of the statement and of its commit or rollback, and the
/// statement's error number or 0.
fn run_transaction(server: &Server, bulk: &BulkTransaction, ends: &AtomicBool) -> Outcome<(Duration, Duration, u16)> {
    let mut connection = Connection::open(server.address, "long_transactions")?;
    connection.query("BEGIN")?;
    let start = Instant::now();
    let errno = match connection.query(&bulk.statement) {
        Ok(_) => 0,
        Err(error) if REFUSED.contains(&error.errno()) => error.errno(),
        Err(error) => return Err(error.into()),
    };
    let statement = start.elapsed();
    let start = Instant::now();
    ends.store(true, Ordering::Relaxed);
    connection.query(bulk.end)?;
    Ok((statement, start.elapsed(), errno))
}

/// Number of rows, and the sums of two columns.
type Sums = (u64, u64, u64);

/// Checks that a committed transaction is complete and that any other has changed nothing. Returns the new
/// sums of the table.
fn judge(
    server: &Server,
    rows: u64,
    bulk: &BulkTransaction,
    errno: u16,
    before: Option<Sums>,
) -> Outcome<Option<Sums>> {
    let mut connection = Connection::open(server.address, "long_transactions")?;
    let mut ask = |text: &str| -> Outcome<u64> {
        let value = connection.query_value(text)?.unwrap_or_default();
        value.parse().map_err(|_| Failure::new(format!("{value} in place of a sum")))
    };
    let now = (
        ask("SELECT COUNT(*) FROM big")?,
        ask("SELECT COALESCE(SUM(k), 0) FROM big")?,
        ask("SELECT COALESCE(SUM(u), 0) FROM big")?,
    );
    let before = before.unwrap_or_default();
    let expected = match (bulk.name, bulk.end) {
        (_, "ROLLBACK") => before,
        _ if errno != 0 => before,
        ("INSERT ... SELECT", _) => (rows, ask("SELECT SUM(k) FROM source")?, ask("SELECT SUM(u) FROM source")?),
        ("UPDATE of an indexed column", _) => (before.0, before.1 + before.0, before.2),
        ("UPDATE of a unique column", _) => (before.0, before.1, before.2 + before.0 * rows),
        _ => (0, 0, 0),
    };
    if now == expected {
        return Ok(Some(now));
    }
    Err(Failure::new(format!("{}, {}: the table has {now:?} in place of {expected:?}", bulk.name, bulk.end)))
}
