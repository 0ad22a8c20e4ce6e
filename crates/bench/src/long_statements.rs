//! Point selects that run concurrently with statements that read a whole table. Measures the latency of one
//! session while another scans, counts or sorts all rows, in a node whose only recv thread runs both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::latency::Latencies;
use crate::mysql::Connection;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::random::Random;
use crate::report::{Table, Verdict, print_verdicts};
use crate::{Failure, Outcome};

/// Rows of one INSERT that fills the table.
const FILL_ROWS: u64 = 1000;
/// Runs everything in one thread, so one session delays the other unless its statements run in short steps.
const ONE_THREAD: &str = "recv={count=1},ldm={count=0},main={count=0},io={count=0}";

/// The statements, by name. Each reads or locks every row. The speed of those that return many rows also
/// depends on the client.
const STATEMENTS: [(&str, &str); 12] = [
    ("LIKE", "SELECT COUNT(*) FROM t WHERE c LIKE '%abc%def%'"),
    ("COUNT(DISTINCT)", "SELECT COUNT(DISTINCT c) FROM t"),
    ("ORDER BY, last rows", "SELECT id FROM t ORDER BY c LIMIT 10 OFFSET {last}"),
    ("ORDER BY, all rows", "SELECT id, c FROM t ORDER BY c"),
    ("ORDER BY, a third of the rows", "SELECT id FROM t ORDER BY c LIMIT {third}"),
    ("DISTINCT, last rows", "SELECT DISTINCT c FROM t LIMIT 10 OFFSET {last}"),
    ("range of most keys", "SELECT SUM(id) FROM t WHERE k BETWEEN 10 AND 1000000000"),
    ("all rows", "SELECT id, k, c FROM t"),
    ("FOR UPDATE, ORDER BY", "SELECT id, c FROM t ORDER BY c FOR UPDATE"),
    ("FOR SHARE, all rows", "SELECT id, k, c FROM t FOR SHARE"),
    ("UPDATE, ORDER BY, 1,000 rows", "UPDATE t SET c = REVERSE(c) ORDER BY c LIMIT 1000"),
    ("UPDATE, ORDER BY, half of the rows", "UPDATE t SET c = REVERSE(c) ORDER BY c LIMIT {half}"),
];

/// Options of `long-statements`.
#[derive(Clone, Debug, clap::Args)]
pub struct LongStatementsOptions {
    /// The binary [default: junctor beside this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Rows of the table
    #[arg(long, default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(10_000..=10_000_000))]
    rows: u64,
    /// Seconds to keep repeating each statement
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// ThreadConfig of the node
    #[arg(long, value_name = "STR", default_value = ONE_THREAD)]
    thread_config: String,
    /// Maximum p99 of the point selects, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2.0)]
    p99_ms_max: f64,
    /// Measure MariaDB instead
    #[arg(long)]
    mariadb: bool,
}

/// Measures point selects during each statement.
///
/// # Errors
/// A p99 exceeds the maximum, or a server does not start.
pub fn run(options: &LongStatementsOptions) -> Outcome<()> {
    let server = match options.mariadb {
        true => start_mariadb(&["--innodb-buffer-pool-size=2G"])?,
        false => {
            let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
            start_junctor(&junctor.with_placement(&options.thread_config))?
        }
    };
    fill(&server, options.rows)?;
    let mut table = Table::new(&["beside", "statements", "each ms", "selects", "p50 ms", "p99 ms", "longest ms"]);
    let mut verdicts = Vec::new();
    for (name, statement) in std::iter::once(("nothing", "")).chain(STATEMENTS) {
        let statement = statement
            .replace("{last}", &(options.rows - 10).to_string())
            .replace("{third}", &(options.rows / 3).to_string())
            .replace("{half}", &(options.rows / 2).to_string());
        let (statements, elapsed, selects) = measure(options, &server, &statement)?;
        let ms = |per_mille| selects.percentile_us(per_mille) / 1000.0;
        let p99_ms = ms(990);
        table.row(vec![
            name.to_owned(),
            statements.to_string(),
            if statements == 0 {
                "-".into()
            } else {
                format!("{:.0}", elapsed.as_secs_f64() * 1000.0 / statements as f64)
            },
            selects.count().to_string(),
            format!("{:.2}", ms(500)),
            format!("{p99_ms:.2}"),
            format!("{:.2}", ms(1000)),
        ]);
        let what = format!("p99 of point selects beside {name}, ms");
        verdicts.push(Verdict { what, allowed_max: options.p99_ms_max, measured: p99_ms });
    }
    println!("{table}");
    let missed = print_verdicts(&verdicts);
    server.stop()?;
    if missed > 0 { Err(Failure::new("a statement delayed others for too long")) } else { Ok(()) }
}

fn fill(server: &Server, rows: u64) -> Outcome<()> {
    let mut connection = server.connect()?;
    connection.query("CREATE DATABASE long_statements")?;
    connection.query("USE long_statements")?;
    connection
        .query("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c VARCHAR(60) NOT NULL, KEY (k))")?;
    let mut random = Random::new(1);
    for first in (0..rows).step_by(FILL_ROWS as usize) {
        let mut row =
            |id| format!("({id},{},'{:016x}-{:016x}')", random.below(rows), random.next_u64(), random.next_u64());
        let values: Vec<String> = (first..rows.min(first + FILL_ROWS)).map(&mut row).collect();
        connection.query(&format!("INSERT INTO t VALUES {}", values.join(",")))?;
    }
    Ok(())
}

/// Repeats a statement while another session selects by key. Returns the number of executions, their time,
/// and the latencies of the selects.
fn measure(options: &LongStatementsOptions, server: &Server, statement: &str) -> Outcome<(u64, Duration, Latencies)> {
    let time = Duration::from_secs_f64(options.seconds);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let selects = scope.spawn(|| select(server, options.rows, &stop));
        let done = repeat(server, statement, time);
        stop.store(true, Ordering::Relaxed);
        let selects = selects.join().unwrap_or_else(|_| Err(Failure::new("a thread panicked")))?;
        let (statements, elapsed) = done?;
        Ok((statements, elapsed, selects))
    })
}

fn repeat(server: &Server, statement: &str, time: Duration) -> Outcome<(u64, Duration)> {
    let start = Instant::now();
    if statement.is_empty() {
        thread::sleep(time);
        return Ok((0, start.elapsed()));
    }
    let mut connection = Connection::open(server.address, "long_statements")?;
    let mut statements = 0;
    while start.elapsed() < time {
        connection.query(statement)?;
        statements += 1;
    }
    Ok((statements, start.elapsed()))
}

fn select(server: &Server, rows: u64, stop: &AtomicBool) -> Outcome<Latencies> {
    let mut random = Random::new(2);
    let mut connection = Connection::open(server.address, "long_statements")?;
    let mut latencies = Latencies::default();
    while !stop.load(Ordering::Relaxed) {
        let statement = format!("SELECT c FROM t WHERE id = {}", random.below(rows));
        let start = Instant::now();
        connection.query(&statement)?;
        latencies.add(start.elapsed().as_nanos() as u64);
    }
    Ok(latencies)
}
