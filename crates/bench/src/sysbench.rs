//! Runs Debian's unmodified sysbench and parses its report.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::failure::Explain;
use crate::process::{Server, command};
use crate::{Failure, Outcome};

/// The scripts that use the table of `oltp_common`. Scripts that delete rows come last.
pub const TABLE_SCRIPTS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "select_random_points",
    "select_random_ranges",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "oltp_read_write",
    "oltp_insert",
    "oltp_delete",
];

/// The script that fills one table per thread.
pub const BULK_SCRIPT: &str = "bulk_insert";

/// Errors that sysbench ignores: deadlocks and lock wait timeouts.
const IGNORED_ERRORS: &str = "--mysql-ignore-errors=1213,1205";

const PREPARE_TIME_MAX: Duration = Duration::from_secs(900);
/// Time that a run may take in addition to its duration, to connect and to finish waiting statements.
const RUN_GRACE: Duration = Duration::from_secs(180);

/// How sysbench sends statements: prepared (`auto`) or as text (`disable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// `COM_STMT_EXECUTE`.
    Prepared,
    /// `COM_QUERY`.
    Text,
}

impl StatementMode {
    /// Both modes.
    pub const ALL: [StatementMode; 2] = [StatementMode::Prepared, StatementMode::Text];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            StatementMode::Prepared => "prepared",
            StatementMode::Text => "text",
        }
    }

    fn option(self) -> &'static str {
        match self {
            StatementMode::Prepared => "--db-ps-mode=auto",
            StatementMode::Text => "--db-ps-mode=disable",
        }
    }
}

/// One run of a script.
#[derive(Clone, Debug)]
pub struct SysbenchRun {
    /// Script: a name that sysbench knows, or a path.
    pub script: String,
    /// Name of the database, which must exist.
    pub database: String,
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of threads, each with a connection.
    pub threads: u32,
    /// Duration in seconds; 0 runs until `events` are done.
    pub time_s: u64,
    /// Maximum number of events; 0 for no limit.
    pub events: u64,
    /// How statements are sent.
    pub mode: StatementMode,
    /// Further options of sysbench.
    pub arguments: Vec<String>,
}

/// The figures that sysbench reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SysbenchReport {
    /// Number of events. An event is a transaction or a single statement, depending on the script.
    pub events: u64,
    /// Events per second.
    pub events_per_s: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: f64,
    /// 95th percentile of the latencies, in milliseconds.
    pub p95_ms: f64,
    /// Errors 1213 and 1205.
    pub ignored_errors: u64,
}

impl SysbenchRun {
    /// Creates the table and fills it with one thread. The rows differ from call to call, whatever seed
    /// sysbench gets.
    ///
    /// # Errors
    /// sysbench printed errors.
    pub fn prepare(&self, server: &Server) -> Outcome<()> {
        let mut command = self.command(server);
        // bulk_insert creates a table per thread.
        let threads = if self.script == BULK_SCRIPT { self.threads } else { 1 };
        command.args([&format!("--threads={threads}"), "prepare"]);
        finish(&self.script, command, PREPARE_TIME_MAX).map(drop)
    }

    /// Drops the tables of the script.
    ///
    /// # Errors
    /// sysbench printed errors.
    pub fn clean_up(&self, server: &Server) -> Outcome<()> {
        let mut command = self.command(server);
        command.args([&format!("--threads={}", self.threads), "cleanup"]);
        finish(&self.script, command, PREPARE_TIME_MAX).map(drop)
    }

    /// Runs the script for its duration or its number of events.
    ///
    /// # Errors
    /// The server reported an error other than 1213 and 1205, or the output has no figures.
    pub fn run(&self, server: &Server) -> Outcome<SysbenchReport> {
        let mut command = self.command(server);
        command.args([&format!("--threads={}", self.threads), &format!("--time={}", self.time_s)]);
        command.args([&format!("--events={}", self.events), self.mode.option(), IGNORED_ERRORS]);
        command.arg("run");
        let output = finish(&self.script, command, Duration::from_secs(self.time_s) + RUN_GRACE)?;
        parse_report(&output).ok_or("no figures in its output").explain(format!("{}\n{output}", self.script))
    }

    fn command(&self, server: &Server) -> Command {
        let mut command = Command::new("sysbench");
        command.arg(&self.script).args(["--db-driver=mysql", "--mysql-user=root", "--mysql-password="]);
        command.arg(format!("--mysql-host={}", server.address.ip()));
        command.arg(format!("--mysql-port={}", server.address.port()));
        command.arg(format!("--mysql-db={}", self.database));
        if self.script != BULK_SCRIPT {
            command.arg(format!("--table-size={}", self.rows));
        }
        command.args(&self.arguments);
        command
    }
}

/// The path of a script in this repository; `None` if the sources are not present.
pub fn own_script(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua").join(name);
    path.is_file().then_some(path)
}

fn finish(script: &str, mut command: Command, time_max: Duration) -> Outcome<String> {
    let finished = command::run(&mut command, time_max)?;
    match complaints_of(&format!("{}{}", finished.output, finished.errors), finished.status) {
        None => Ok(finished.output),
        Some(complaints) => Err(Failure::new(format!("sysbench {script}: {complaints}"))),
    }
}

/// The errors in sysbench's output; `None` if the run succeeded. The exit status is not enough, because
/// sysbench can exit with success although a thread failed.
pub fn complaints_of(printed: &str, status: ExitStatus) -> Option<String> {
    let is_complaint = |line: &&str| line.contains("FATAL") || line.contains("error:");
    let complaints: Vec<&str> = printed.lines().filter(is_complaint).take(5).collect();
    if status.success() && complaints.is_empty() {
        return None;
    }
    let last: Vec<&str> = printed.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let shown = if complaints.is_empty() { last } else { complaints };
    Some(format!("{status}: {}", shown.join(" | ")))
}

/// Parses the figures in sysbench's output.
pub fn parse_report(output: &str) -> Option<SysbenchReport> {
    let number = |label: &str| -> Option<f64> {
        let line = output.lines().find_map(|line| line.trim().strip_prefix(label))?;
        line.split_whitespace().next()?.trim_end_matches('s').parse().ok()
    };
    let events = number("total number of events:")?;
    let time_s = number("total time:")?;
    Some(SysbenchReport {
        events: events as u64,
        events_per_s: if time_s > 0.0 { events / time_s } else { 0.0 },
        mean_ms: number("avg:")?,
        p95_ms: number("95th percentile:")?,
        ignored_errors: number("ignored errors:").unwrap_or(0.0) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
SQL statistics:
    transactions:                        19236  (9617.21 per sec.)
    queries:                             19236  (9617.21 per sec.)
    ignored errors:                      3      (1.50 per sec.)
General statistics:
    total time:                          2.0005s
    total number of events:              19236

Latency (ms):
         min:                                    0.20
         avg:                                    0.83
         max:                                   11.35
         95th percentile:                        1.96
         sum:                                15985.10
";

    #[test]
    fn figures_are_read_from_the_report() {
        let report = parse_report(OUTPUT).expect("figures");
        assert_eq!((report.events, report.ignored_errors), (19236, 3));
        assert_eq!((report.mean_ms, report.p95_ms), (0.83, 1.96));
        assert!((report.events_per_s - 9615.6).abs() < 0.1, "{}", report.events_per_s);
    }

    #[test]
    fn output_without_figures_is_no_report() {
        assert_eq!(parse_report("FATAL: unable to connect"), None);
    }
}
