//! `instructions`: counts the server's instructions per statement with callgrind. The counts do not depend on
//! the load of the machine.
//!
//! The server runs under valgrind. Two loads with different numbers of statements are counted, each between a
//! reset and a dump of callgrind's counters. Both loads log in the same number of times, so the difference of
//! the counts belongs to the statements. It includes all user-mode code that the server executes for them,
//! such as sockets and the scheduler.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Explain;
use crate::fill::fill;
use crate::load::{self, Load, Until};
use crate::process::{JunctorOptions, Server, TemporaryFolder, callgrind, start_junctor};
use crate::report::{Table, Verdict, print_verdicts};
use crate::sysbench::StatementMode;
use crate::sysbench_matrix::thread_config;
use crate::{Failure, Outcome};

const ROWS: u64 = 2000;
const READY_TIMEOUT_S: u64 = 180;
const COUNT_TRIES_MAX: u32 = 5;
/// A server that uses less than a twentieth of a CPU for this time is idle.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// Options of `instructions`.
#[derive(Debug, clap::Args)]
pub struct InstructionsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Placements to run: a, b, c, d or automatic
    #[arg(long, value_delimiter = ',', default_value = "a,c")]
    placements: Vec<String>,
    /// Number of connections that send statements concurrently
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Folder that keeps the files of callgrind for callgrind_annotate
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

struct Kind {
    name: &'static str,
    mode: StatementMode,
    first: &'static [&'static str],
    keys: u32,
    point: &'static str,
    list: &'static str,
    /// Statements per connection in the shorter and in the longer load.
    statements: [u64; 2],
}

const LIST: Kind = Kind {
    name: "IN list of 100, text, per key",
    mode: StatementMode::Text,
    first: &[],
    keys: 100,
    point: load::POINT,
    list: load::LIST,
    statements: [20, 120],
};
const POINT: Kind = Kind { name: "point select, text", keys: 1, statements: [100, 1100], ..LIST };

const KINDS: [Kind; 12] = [
    LIST,
    Kind { name: "IN list of 100, prepared, per key", mode: StatementMode::Prepared, ..LIST },
    POINT,
    Kind { name: "point select, prepared", mode: StatementMode::Prepared, ..POINT },
    Kind { name: "point select, text, READ COMMITTED", first: &[READ_COMMITTED], ..POINT },
    Kind { name: "point select, text, REPEATABLE READ", first: &[REPEATABLE_READ], ..POINT },
    Kind { name: "point select, text, READ COMMITTED, in a transaction", first: &[READ_COMMITTED, "BEGIN"], ..POINT },
    Kind { name: "point select, text, REPEATABLE READ, in a transaction", first: &[REPEATABLE_READ, "BEGIN"], ..POINT },
    UPDATE,
    Kind { name: "update, prepared", mode: StatementMode::Prepared, ..UPDATE },
    UPDATE_INDEX,
    Kind { name: "update of an indexed column, prepared", mode: StatementMode::Prepared, ..UPDATE_INDEX },
];
/// Updates by key, autocommit, without and with an indexed column. A constant would change a row only once.
const UPDATE: Kind = Kind { name: "update, text", point: "UPDATE counters SET number=number+1 WHERE id=", ..POINT };
const UPDATE_INDEX: Kind =
    Kind { name: "update of an indexed column, text", point: "UPDATE sbtest1 SET k=k+1 WHERE id=", ..POINT };

/// A table without further indexes.
const CREATE_COUNTERS: &str = "CREATE TABLE sbtest.counters (id INT PRIMARY KEY, number INT NOT NULL)";
const FILL_COUNTERS: &str = "INSERT INTO sbtest.counters SELECT id, k FROM sbtest.sbtest1";
const READ_COMMITTED: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
const REPEATABLE_READ: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";

/// A table with columns whose cost is counted.
const CREATE_TYPED: &str = "CREATE TABLE sbtest.typed (id INT PRIMARY KEY, number INT NOT NULL, amount DECIMAL(12,2) NOT NULL, \
                            moment DATETIME NOT NULL)";
const FILL_TYPED: &str = "INSERT INTO sbtest.typed SELECT id, 1000000 + id, 10000 + id / 100, \
                          '2024-02-29 12:34:56' + INTERVAL id MINUTE FROM sbtest.sbtest1";

/// What one more column of a row costs: lists without the column, and with it.
const COLUMNS: [(&str, &str); 4] = [
    ("no further column", "SELECT id FROM typed WHERE id IN ("),
    ("INT", "SELECT id, number FROM typed WHERE id IN ("),
    ("DECIMAL(12,2)", "SELECT id, amount FROM typed WHERE id IN ("),
    ("DATETIME", "SELECT id, moment FROM typed WHERE id IN ("),
];

/// Counts and prints. Fails if the IN list exceeds its budget, or if REPEATABLE READ costs over a tenth more
/// than READ COMMITTED.
///
/// # Errors
/// A budget is exceeded, or a server does not start.
pub fn run(options: &InstructionsOptions) -> Outcome<()> {
    let folder = TemporaryFolder::new("callgrind")?;
    let folder = options.keep.as_deref().unwrap_or(folder.path());
    fs::create_dir_all(folder)?;
    let mut table = Table::new(&["instructions", "placement", "each"]);
    let mut verdicts = Vec::new();
    for placement in &options.placements {
        let mut counter = Counter::start(options, placement, folder)?;
        let mut previous = 0.0;
        for kind in &KINDS {
            let per_key = counter.count(options, kind)?;
            eprintln!("{}, placement {placement}: {per_key:.0}", kind.name);
            table.row(vec![kind.name.into(), placement.clone(), format!("{per_key:.0}")]);
            if kind.keys > 1 && kind.mode == StatementMode::Text {
                let allowed_max = if placement == "a" { 600.0 } else { 750.0 };
                let what = format!("instructions a key, IN list, placement {placement}");
                verdicts.push(Verdict { what, allowed_max, measured: per_key });
            }
            if kind.first.contains(&REPEATABLE_READ) {
                let what = format!("{} to READ COMMITTED, placement {placement}", kind.name);
                verdicts.push(Verdict { what, allowed_max: 1.1, measured: per_key / previous });
            }
            previous = per_key;
        }
        if placement == "a" {
            counter.server.execute(&[CREATE_TYPED, FILL_TYPED])?;
            wait_for_idleness(&counter.server)?;
            let columns =
                [StatementMode::Text, StatementMode::Prepared].map(|mode| counter.count_columns(options, mode));
            for (name, each) in columns.into_iter().collect::<Outcome<Vec<_>>>()?.into_iter().flatten() {
                eprintln!("{name}: {each:.0}");
                table.row(vec![name, placement.clone(), format!("{each:.0}")]);
            }
        }
        counter.server.stop()?;
    }
    println!("{table}");
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} budgets are exceeded"))),
    }
}

/// A server under callgrind.
struct Counter {
    server: Server,
    /// Output file of callgrind. Each dump appends its number to the name.
    file: PathBuf,
    dumps: u32,
}

impl Counter {
    fn start(options: &InstructionsOptions, placement: &str, folder: &Path) -> Outcome<Counter> {
        let file = folder.join(format!("callgrind.out.{placement}"));
        let file_option = format!("--callgrind-out-file={}", file.display());
        let mut junctor = JunctorOptions {
            binary: options.junctor.clone(),
            is_durable: false,
            arguments: ["--total-memory", "256M"].map(String::from).to_vec(),
            wrapper: ["valgrind", "--tool=callgrind", &file_option].map(String::from).to_vec(),
            ready_time_max_s: READY_TIMEOUT_S,
            ..JunctorOptions::default()
        };
        if let Some(thread_config) = thread_config(placement)? {
            junctor = junctor.with_placement(thread_config);
        }
        let server = start_junctor(&junctor)?;
        // Without this, the instructions of spinning threads would be counted as well.
        server.execute(&["SET GLOBAL spin_method = 'StaticSpinning'", "CREATE DATABASE sbtest"])?;
        fill(&server, ROWS)?;
        server.execute(&[CREATE_COUNTERS, FILL_COUNTERS])?;
        wait_for_idleness(&server)?;
        Ok(Counter { server, file, dumps: 0 })
    }

    /// Measures the instructions per key. A statement with one key counts as one key.
    fn count(&mut self, options: &InstructionsOptions, kind: &Kind) -> Outcome<f64> {
        let mut totals = [0.0; 2];
        let mut keys = [0.0; 2];
        for (position, statements) in kind.statements.into_iter().enumerate() {
            let load = Load {
                address: self.server.address,
                is_database: true,
                first: kind.first,
                connections: options.connections,
                mode: kind.mode,
                keys: kind.keys,
                point: kind.point,
                list: kind.list,
                rows: ROWS,
                until: Until::Statements(statements),
                seed: 1,
            };
            totals[position] = self.count_load(&load)? as f64;
            keys[position] = (statements * u64::from(kind.keys * options.connections)) as f64;
        }
        let per_key = (totals[1] - totals[0]) / (keys[1] - keys[0]);
        if per_key > 0.0 { Ok(per_key) } else { Err(Failure::new(format!("{}: counts {totals:?}", kind.name))) }
    }

    /// Measures the instructions that one more column of each type costs in a row.
    fn count_columns(&mut self, options: &InstructionsOptions, mode: StatementMode) -> Outcome<Vec<(String, f64)>> {
        let mut counts = Vec::new();
        for (name, list) in COLUMNS {
            counts.push((name, self.count(options, &Kind { mode, list, ..LIST })?));
        }
        let without = counts.remove(0).1;
        let name = |column| format!("a column {column}, {}", mode.name());
        Ok(counts.into_iter().map(|(column, each)| (name(column), each - without)).collect())
    }

    /// Counts the instructions of a load. Callgrind sometimes loses the counts of a thread; the sums in such
    /// a dump differ, and the load runs again.
    fn count_load(&mut self, load: &Load) -> Outcome<u64> {
        for _ in 0..COUNT_TRIES_MAX {
            callgrind::control(&self.server, "--zero")?;
            load.run()?;
            callgrind::control(&self.server, "--dump")?;
            self.dumps += 1;
            let dump = format!("{}.{}", self.file.display(), self.dumps);
            if let Some(total) = total(&fs::read_to_string(&dump).explain(&dump)?) {
                return Ok(total);
            }
        }
        Err(Failure::new(format!("callgrind contradicted itself {COUNT_TRIES_MAX} times")))
    }
}

/// Waits until the server uses no CPU. At its first start it makes a key for logins in the background, which
/// would be counted.
fn wait_for_idleness(server: &Server) -> Outcome<()> {
    let end = Instant::now() + Duration::from_secs(READY_TIMEOUT_S);
    loop {
        let before = server.cpu_time()?;
        thread::sleep(IDLE_INTERVAL);
        if server.cpu_time()?.saturating_sub(before) < IDLE_INTERVAL / 20 {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Failure::new("the server does not become idle"));
        }
    }
}

/// The sum over all functions; `None` if it differs from the sum over all threads.
fn total(text: &str) -> Option<u64> {
    let number = |label: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(label))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let (functions, threads) = (number("totals:")?, number("summary:")?);
    (functions > 0 && functions.abs_diff(threads) <= functions / 100).then_some(functions)
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn a_contradictory_count_is_rejected() {
        assert_eq!(total("events: Ir\nsummary: 1233\nfn=(1)\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("summary: 18446744072991538731\ntotals: 22984848\n"), None);
        assert_eq!(total("summary: 0\ntotals: 73053\n"), None);
        assert_eq!(total("nothing"), None);
    }
}
