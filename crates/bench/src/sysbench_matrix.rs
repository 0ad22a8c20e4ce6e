//! `sysbench-matrix`: runs every sysbench script with every number of threads, in every placement, prepared
//! and as text. After each run the table must agree with its indexes.

use std::path::PathBuf;
use std::time::Instant;

use crate::consistency::check_table;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::report::Table;
use crate::sysbench::{BULK_SCRIPT, StatementMode, SysbenchReport, SysbenchRun, TABLE_SCRIPTS};
use crate::{Failure, Outcome};

/// The name of the placement that the node chooses itself. It has no `ThreadConfig`.
const AUTOMATIC: &str = "automatic";

/// Placements: name and `ThreadConfig`.
pub const PLACEMENTS: [(&str, &str); 4] = [
    ("a", "recv={count=1},ldm={count=0},main={count=0},io={count=0}"),
    ("b", "recv={count=2},ldm={count=0},main={count=0}"),
    ("c", "recv={count=2},ldm={count=1},query={count=1},tc={count=0},main={count=0}"),
    (
        "d",
        "main={count=1},rep={count=1},recv={count=1},sql={count=1},tc={count=1},ldm={count=1},query={count=1},\
         send={count=1},io={count=1}",
    ),
];

const DATABASE: &str = "sbtest";
const BULK_DATABASE: &str = "sbbulk";

/// Options of `sysbench-matrix`.
#[derive(Debug, clap::Args)]
pub struct MatrixOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Seconds per run
    #[arg(long, value_name = "S", default_value_t = 3)]
    seconds: u64,
    /// Numbers of threads to run with
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,256")]
    threads: Vec<u32>,
    /// Placements to run: a, b, c, d or automatic
    #[arg(long, value_delimiter = ',', default_value = "a,b,c,d")]
    placements: Vec<String>,
    /// Scripts to run [default: all]
    #[arg(long, value_delimiter = ',')]
    scripts: Vec<String>,
    /// Short form: 10,000 rows, 1 second, 1 and 64 threads
    #[arg(long)]
    quick: bool,
    /// Run against MariaDB instead, once per placement, to verify this program
    #[arg(long)]
    mariadb: bool,
    /// Seconds after which no further run begins and the matrix has failed
    #[arg(long, value_name = "S", default_value_t = 2640)]
    seconds_max: u64,
}

/// Progress of the matrix.
struct Matrix<'a> {
    options: &'a MatrixOptions,
    start: Instant,
    table: Table,
    violations: Vec<String>,
    ignored_errors: u64,
    runs: u64,
}

/// Runs the matrix and prints a table.
///
/// # Errors
/// A violation, or a server that does not start.
pub fn run(mut options: MatrixOptions) -> Outcome<()> {
    if options.quick {
        (options.rows, options.seconds, options.threads) = (10_000, 1, vec![1, 64]);
    }
    let columns = ["script", "placement", "statements", "threads", "events/s", "mean ms", "p95 ms", "1213+1205"];
    let table = Table::new(&columns);
    let mut matrix =
        Matrix { options: &options, start: Instant::now(), table, violations: Vec::new(), ignored_errors: 0, runs: 0 };
    for placement in &options.placements {
        let thread_config = thread_config(placement)?;
        if let Err(failure) = matrix.placement(placement, thread_config) {
            matrix.violation(format!("placement {placement}: {failure}"));
        }
    }
    println!("{}", matrix.table);
    let minutes = matrix.start.elapsed().as_secs_f64() / 60.0;
    println!("{} runs in {minutes:.1} minutes, {} errors 1213 and 1205", matrix.runs, matrix.ignored_errors);
    if matrix.violations.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{} violations:\n{}", matrix.violations.len(), matrix.violations.join("\n"))))
}

/// The `ThreadConfig` of a placement; `None` for the automatic one.
///
/// # Errors
/// No placement has this name.
pub fn thread_config(placement: &str) -> Outcome<Option<&'static str>> {
    if placement == AUTOMATIC {
        return Ok(None);
    }
    match PLACEMENTS.iter().find(|(name, _)| *name == placement) {
        Some((_, thread_config)) => Ok(Some(thread_config)),
        None => Err(Failure::new(format!("unknown placement {placement}; known are a, b, c, d and {AUTOMATIC}"))),
    }
}

impl Matrix<'_> {
    fn placement(&mut self, name: &str, thread_config: Option<&str>) -> Outcome<()> {
        let mut options = JunctorOptions { binary: self.options.junctor.clone(), ..JunctorOptions::default() };
        if let Some(thread_config) = thread_config {
            options = options.with_placement(thread_config);
        }
        let mut server = if self.options.mariadb { start_mariadb(&[])? } else { start_junctor(&options)? };
        server.execute(&["CREATE DATABASE sbtest", "CREATE DATABASE sbbulk"])?;
        let start = Instant::now();
        self.sysbench_run("oltp_read_write", 1, StatementMode::Text).prepare(&server)?;
        eprintln!("placement {name}: {} rows in {:.1} s", self.options.rows, start.elapsed().as_secs_f64());
        for script in TABLE_SCRIPTS.into_iter().chain([BULK_SCRIPT]) {
            if !self.wants(script) {
                continue;
            }
            for threads in self.options.threads.clone() {
                for mode in StatementMode::ALL {
                    self.require_time()?;
                    let what = format!("{script}, placement {name}, {}, {threads} threads", mode.name());
                    if let Err(failure) = self.one_run(&server, name, &self.sysbench_run(script, threads, mode)) {
                        server.require_alive()?;
                        self.violation(format!("{what}: {failure}"));
                    }
                }
            }
        }
        server.stop()
    }

    fn wants(&self, script: &str) -> bool {
        self.options.scripts.is_empty() || self.options.scripts.iter().any(|wanted| wanted == script)
    }

    fn require_time(&self) -> Outcome<()> {
        if self.start.elapsed().as_secs() < self.options.seconds_max {
            return Ok(());
        }
        Err(Failure::new(format!("more than {} s; the rest was not run", self.options.seconds_max)))
    }

    fn sysbench_run(&self, script: &str, threads: u32, mode: StatementMode) -> SysbenchRun {
        SysbenchRun {
            script: script.into(),
            database: if script == BULK_SCRIPT { BULK_DATABASE } else { DATABASE }.into(),
            rows: self.options.rows,
            threads,
            time_s: self.options.seconds,
            events: 0,
            mode,
            arguments: Vec::new(),
        }
    }

    fn one_run(&mut self, server: &Server, placement: &str, run: &SysbenchRun) -> Outcome<()> {
        let mut connection = server.connect()?;
        if run.script == BULK_SCRIPT {
            // A failed run leaves its tables behind.
            connection.query("DROP DATABASE sbbulk")?;
            connection.query("CREATE DATABASE sbbulk")?;
        }
        connection.query(&format!("USE {}", run.database))?;
        let report = if run.script == BULK_SCRIPT {
            run.prepare(server)?;
            let report = run.run(server)?;
            let mut rows = 0;
            for number in 1..=run.threads {
                rows += check_table(&mut connection, &format!("sbtest{number}"), None, self.runs)?;
            }
            run.clean_up(server)?;
            // Each event is a row. A thread sends its last batch after its time is over.
            require(rows == report.events, || format!("{rows} rows after {} events", report.events))?;
            report
        } else {
            let count = "SELECT COUNT(*) FROM sbtest1";
            let before = connection.query_value(count)?;
            let report = run.run(server)?;
            let rows = check_table(&mut connection, "sbtest1", Some("k_1"), self.runs)?;
            let before: u64 = before.and_then(|text| text.parse().ok()).unwrap_or(0);
            check_row_count(&run.script, before, rows, &report)?;
            report
        };
        self.runs += 1;
        self.ignored_errors += report.ignored_errors;
        eprintln!("{placement} {} {} {}: {:.0}/s", run.script, run.mode.name(), run.threads, report.events_per_s);
        self.table.row(vec![
            run.script.clone(),
            placement.into(),
            run.mode.name().into(),
            run.threads.to_string(),
            format!("{:.0}", report.events_per_s),
            format!("{:.2}", report.mean_ms),
            format!("{:.2}", report.p95_ms),
            report.ignored_errors.to_string(),
        ]);
        Ok(())
    }

    fn violation(&mut self, what: String) {
        eprintln!("VIOLATION {what}");
        self.violations.push(what);
    }
}

/// Each insert adds a row, each delete removes at most one, and the other scripts keep the number of rows.
fn check_row_count(script: &str, before: u64, after: u64, report: &SysbenchReport) -> Outcome<()> {
    let good = match script {
        "oltp_insert" => after == before + report.events,
        "oltp_delete" => after <= before && after + report.events >= before,
        _ => after == before,
    };
    require(good, || format!("{before} rows before, {after} after {} events", report.events))
}

fn require(good: bool, what: impl Fn() -> String) -> Outcome<()> {
    if good { Ok(()) } else { Err(Failure::new(what())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_change_the_number_of_rows_as_they_should() {
        let report = SysbenchReport { events: 10, ..SysbenchReport::default() };
        let good = |script, after| check_row_count(script, 100, after, &report).is_ok();
        assert!(good("oltp_insert", 110) && !good("oltp_insert", 109));
        assert!(good("oltp_delete", 95) && !good("oltp_delete", 89) && !good("oltp_delete", 101));
        assert!(good("oltp_read_write", 100) && !good("oltp_read_write", 99));
    }
}
