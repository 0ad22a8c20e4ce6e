//! `torn-reads`: checks that no statement sees a partly written row or a part of a committed transaction.
//!
//! Rows come in pairs. A writer's transaction gives both rows of a pair the same new stamp and moves an
//! amount from one row to the other. Within a row, the columns `a`, `b` and `c` are equal and the text
//! repeats one letter. Each statement can therefore be checked by itself: unequal columns show a torn row;
//! unequal stamps of a pair, or a wrong sum, show a torn transaction. Every write changes the indexed column
//! `m`, so that index entries move while they are read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::mysql::value::Value;
use crate::mysql::{ClientError, Connection, Statement};
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::random::Random;
use crate::{Failure, Outcome};

/// Sum of `a` over the two rows of a pair.
const PAIR_SUM: i64 = 2000;
const INDEXED_VALUES: u64 = 5000;
/// Maximum number of violations that are printed. Further ones are only counted.
const EXAMPLES_MAX: u64 = 10;
/// Errors after which a writer repeats its transaction: deadlock and lock wait timeout.
const RETRIED: [u16; 2] = [1213, 1205];

const CREATE: &str = "CREATE TABLE torn (id INT NOT NULL PRIMARY KEY, pair INT NOT NULL, a BIGINT NOT NULL, \
                      b BIGINT NOT NULL, c BIGINT NOT NULL, stamp BIGINT NOT NULL, m INT NOT NULL, \
                      letters VARCHAR(400) NOT NULL, KEY m_1 (m)) PARTITION BY KEY (id) PARTITIONS 2";
const COLUMNS: &str = "SELECT id, pair, a, b, c, stamp, m, letters FROM torn";

/// Options of `torn-reads`.
#[derive(Clone, Debug, clap::Args)]
pub struct TornReadsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Seconds that the load runs
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Number of writing connections
    #[arg(long, default_value_t = 4)]
    writers: u32,
    /// Number of reading connections
    #[arg(long, default_value_t = 12)]
    readers: u32,
    /// Pairs of rows; a small number makes conflicts frequent
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pairs: u32,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Run against MariaDB instead
    #[arg(long)]
    mariadb: bool,
    /// Isolation level of the readers. With MariaDB and READ UNCOMMITTED the run must find violations
    #[arg(long, default_value = "REPEATABLE READ")]
    isolation: String,
}

struct Scene<'a> {
    options: &'a TornReadsOptions,
    server: &'a Server,
    stop: AtomicBool,
    next_stamp: AtomicU64,
    writes: AtomicU64,
    retries: AtomicU64,
    reads: AtomicU64,
    violations: AtomicU64,
}

/// Runs the load. Fails on any violation, and also if nothing was read or written.
///
/// # Errors
/// A violation is found, nothing was read or written, or a server does not start.
pub fn run(options: &TornReadsOptions) -> Outcome<()> {
    let server = if options.mariadb { start_mariadb(&[])? } else { start_node(options)? };
    fill(&server, options.pairs)?;
    let scene = Scene {
        options,
        server: &server,
        stop: AtomicBool::new(false),
        next_stamp: AtomicU64::new(1),
        writes: AtomicU64::new(0),
        retries: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        violations: AtomicU64::new(0),
    };
    let failures = scene.run();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (writes, reads, violations) = (count(&scene.writes), count(&scene.reads), count(&scene.violations));
    println!("{writes} transactions ({} begun again), {reads} reads, {violations} violations", count(&scene.retries));
    if let Some(failure) = failures.into_iter().next() {
        return Err(failure);
    }
    if violations > 0 || writes == 0 || reads == 0 {
        return Err(Failure::new("reads were torn, or nothing was read or written"));
    }
    server.stop()
}

fn start_node(options: &TornReadsOptions) -> Outcome<Server> {
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    match &options.thread_config {
        Some(thread_config) => start_junctor(&junctor.with_placement(thread_config)),
        None => start_junctor(&junctor),
    }
}

fn fill(server: &Server, pairs: u32) -> Outcome<()> {
    server.execute(&["CREATE DATABASE torn", "USE torn", CREATE])?;
    let rows: Vec<String> = (0..pairs * 2)
        .map(|id| format!("({id}, {}, {half}, {half}, {half}, 0, {id}, 'a')", id / 2, half = PAIR_SUM / 2))
        .collect();
    server.execute(&["USE torn", &format!("INSERT INTO torn VALUES {}", rows.join(", "))])
}

impl Scene<'_> {
    fn run(&self) -> Vec<Failure> {
        thread::scope(|scope| {
            let writers = (0..self.options.writers).map(|number| scope.spawn(move || self.write_on(number)));
            let readers = (0..self.options.readers).map(|number| scope.spawn(move || self.read_on(number)));
            let workers: Vec<_> = writers.chain(readers).collect();
            let end = Instant::now() + Duration::from_secs(self.options.seconds);
            while Instant::now() < end && !self.stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(50));
            }
            self.stop.store(true, Ordering::Relaxed);
            let results = workers.into_iter().map(|worker| worker.join());
            results
                .filter_map(|result| result.unwrap_or_else(|_| Err(Failure::new("a thread panicked"))).err())
                .collect()
        })
    }

    /// Repeats `step` until the time is over or a thread fails. The first failure stops all threads.
    fn repeat(&self, mut step: impl FnMut() -> Outcome<()>) -> Outcome<()> {
        while !self.stop.load(Ordering::Relaxed) {
            if let Err(failure) = step() {
                self.stop.store(true, Ordering::Relaxed);
                return Err(failure);
            }
        }
        Ok(())
    }

    fn write_on(&self, number: u32) -> Outcome<()> {
        let mut random = Random::new(1000 + u64::from(number));
        let mut connection = Connection::open(self.server.address, "torn")?;
        self.repeat(|| match self.transfer(&mut connection, &mut random) {
            Ok(()) => {
                self.writes.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if RETRIED.contains(&error.errno()) => {
                self.retries.fetch_add(1, Ordering::Relaxed);
                connection.query("ROLLBACK")?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        })
    }

    fn transfer(&self, connection: &mut Connection, random: &mut Random) -> Result<(), ClientError> {
        let pair = random.below(u64::from(self.options.pairs)) as i64;
        let amount = random.below(50) as i64;
        let stamp = self.next_stamp.fetch_add(1, Ordering::Relaxed);
        let letter = char::from(b'a' + (stamp % 26) as u8);
        let letters = letter.to_string().repeat(1 + random.below(400) as usize);
        connection.query("BEGIN")?;
        for (row, change) in [(pair * 2, -amount), (pair * 2 + 1, amount)] {
            let m = random.below(INDEXED_VALUES);
            connection.query(&format!(
                "UPDATE torn SET a = a + ({change}), b = b + ({change}), c = c + ({change}), stamp = {stamp}, m = {m}, \
                 letters = '{letters}' WHERE id = {row}"
            ))?;
        }
        // Some transactions are rolled back. Their changes must never be visible.
        if random.below(10) == 0 {
            connection.query(&format!("UPDATE torn SET a = -1, letters = 'undone' WHERE id = {}", pair * 2))?;
            connection.query("ROLLBACK")?;
        } else {
            connection.query("COMMIT")?;
        }
        Ok(())
    }

    fn read_on(&self, number: u32) -> Outcome<()> {
        let mut random = Random::new(2000 + u64::from(number));
        let mut connection = Connection::open(self.server.address, "torn")?;
        connection.query(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.options.isolation))?;
        let prepared = connection.prepare(&format!("{COLUMNS} WHERE id IN (?, ?)"))?;
        self.repeat(|| {
            let kind = random.below(8);
            let read = self.read_once(&mut connection, prepared, kind, &mut random);
            let complaint = match read {
                Ok(complaint) => complaint,
                // Outside a transaction a reader can simply repeat its statement.
                Err(error) if RETRIED.contains(&error.errno()) => None,
                Err(error) => return Err(error.into()),
            };
            self.reads.fetch_add(1, Ordering::Relaxed);
            if let Some(complaint) = complaint
                && self.violations.fetch_add(1, Ordering::Relaxed) < EXAMPLES_MAX
            {
                eprintln!("VIOLATION reader {number}, kind {kind}: {complaint}");
            }
            Ok(())
        })
    }

    /// Runs one statement or, for the last kind, one transaction. Returns the violation found in the reply.
    fn read_once(
        &self,
        connection: &mut Connection,
        prepared: Statement,
        kind: u64,
        random: &mut Random,
    ) -> Result<Option<String>, ClientError> {
        let pairs = i64::from(self.options.pairs);
        let first = random.below(pairs as u64) as i64 * 2;
        let by_keys = format!("{COLUMNS} WHERE id IN ({}, {first})", first + 1);
        let complaint = match kind {
            0 | 1 => check_rows(&connection.query(&by_keys)?.rows, 1),
            2 | 3 => check_rows(&connection.execute(prepared, &[first, first + 1])?.rows, 1),
            4 => check_rows(&connection.query(COLUMNS)?.rows, pairs),
            5 => {
                let by_index = format!("{COLUMNS} FORCE INDEX (m_1) WHERE m BETWEEN 0 AND {INDEXED_VALUES}");
                check_rows(&connection.query(&by_index)?.rows, pairs)
            }
            6 => {
                let sums = "SELECT COUNT(*), SUM(a), SUM(b), SUM(c) FROM torn";
                check_sums(&connection.query(sums)?.rows, pairs)
            }
            _ => {
                connection.query("BEGIN")?;
                let before = sorted(connection.query(&by_keys)?.rows);
                let all = connection.query(COLUMNS)?.rows;
                let after = sorted(connection.query(&by_keys)?.rows);
                connection.query("COMMIT")?;
                let moved = (before != after).then(|| format!("not repeatable: {before:?}, then {after:?}"));
                moved.or_else(|| check_rows(&after, 1)).or_else(|| check_rows(&all, pairs))
            }
        };
        Ok(complaint)
    }
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort();
    rows
}

/// Checks rows that must be exactly the rows of `pairs` pairs. Returns the violation.
fn check_rows(rows: &[Vec<Value>], pairs: i64) -> Option<String> {
    let mut by_pair = BTreeMap::new();
    for row in rows {
        let text: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
        let [_, pair, a, b, c, stamp, _, letters] = text[..] else {
            return Some(format!("a row of {} values", row.len()));
        };
        let first = letters.chars().next();
        if a != b || b != c || !letters.chars().all(|letter| Some(letter) == first) {
            return Some(format!("a torn row: {text:?}"));
        }
        let amount: i64 = a.parse().unwrap_or(i64::MIN / 4);
        by_pair.entry(pair).or_insert_with(Vec::new).push((stamp, letters, amount));
    }
    if by_pair.len() as i64 != pairs {
        return Some(format!("{} pairs instead of {pairs}", by_pair.len()));
    }
    by_pair.into_iter().find_map(|(pair, rows)| match rows[..] {
        [one, other] if one.0 == other.0 && one.1 == other.1 && one.2 + other.2 == PAIR_SUM => None,
        _ => Some(format!("a torn transaction: pair {pair} is {rows:?}")),
    })
}

/// Checks the number of rows and the three sums over all rows. Returns the violation.
fn check_sums(rows: &[Vec<Value>], pairs: i64) -> Option<String> {
    let sum = Some((pairs * PAIR_SUM).to_string());
    let expected = [Some((pairs * 2).to_string()), sum.clone(), sum.clone(), sum];
    (rows != [expected.to_vec()]).then(|| format!("sums are {rows:?}, expected {expected:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: [&str; 8]) -> Vec<Value> {
        values.iter().map(|value| Some((*value).to_string())).collect()
    }

    #[test]
    fn consistent_pairs_are_accepted() {
        let rows = [
            row(["0", "0", "900", "900", "900", "7", "3", "aa"]),
            row(["1", "0", "1100", "1100", "1100", "7", "9", "aa"]),
        ];
        assert_eq!(check_rows(&rows, 1), None);
        assert!(check_rows(&rows, 2).is_some());
        assert!(check_rows(&rows[..1], 1).is_some());
    }

    #[test]
    fn torn_rows_and_torn_transactions_are_found() {
        let good = row(["0", "0", "900", "900", "900", "7", "3", "aa"]);
        for bad in [
            ["1", "0", "1100", "1100", "1099", "7", "9", "aa"],
            ["1", "0", "1100", "1100", "1100", "7", "9", "ab"],
            ["1", "0", "1100", "1100", "1100", "6", "9", "aa"],
            ["1", "0", "1101", "1101", "1101", "7", "9", "aa"],
        ] {
            assert!(check_rows(&[good.clone(), row(bad)], 1).is_some(), "{bad:?}");
        }
        assert!(check_rows(&[good.clone(), good.clone(), good], 1).is_some());
    }

    #[test]
    fn sums_are_compared_with_the_initial_balances() {
        let sums = |sum: &str| vec![vec![Some("4".into()), Some("4000".into()), Some("4000".into()), Some(sum.into())]];
        assert_eq!(check_sums(&sums("4000"), 2), None);
        assert!(check_sums(&sums("3999"), 2).is_some());
        assert!(check_sums(&[], 2).is_some());
    }
}
