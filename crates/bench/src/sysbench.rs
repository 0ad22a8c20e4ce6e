//! Runs Debian's unmodified sysbench and reads what it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::failure::Explain;
use crate::process::{Server, command};
use crate::{Failure, Outcome};

/// The scripts that use the table of `oltp_common`, in an order that destroys rows last.
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

/// The script that fills one table for each thread.
pub const BULK_SCRIPT: &str = "bulk_insert";

/// What a run may meet: deadlocks and lock waits.
const IGNORED_ERRORS: &str = "--mysql-ignore-errors=1213,1205";

const PREPARE_TIME_MAX: Duration = Duration::from_secs(900);
/// How long a run may take beyond its time, for connecting and for waits to end.
const RUN_EXTRA_TIME_MAX: Duration = Duration::from_secs(180);

/// Whether statements are prepared (`auto`) or sent as text (`disable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// `COM_STMT_EXECUTE`.
    Prepared,
    /// `COM_QUERY`.
    Text,
}

impl StatementMode {
    /// Both.
    pub const ALL: [StatementMode; 2] = [StatementMode::Prepared, StatementMode::Text];

    /// The word in reports.
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
    /// The script: a name that sysbench knows, or a path.
    pub script: String,
    /// The database, which exists.
    pub database: String,
    /// Rows of the table.
    pub rows: u64,
    /// Threads, each with a connection.
    pub threads: u32,
    /// Seconds; 0 runs until `events` are done.
    pub time_s: u64,
    /// Most events; 0 is no bound.
    pub events: u64,
    /// Prepared or text.
    pub mode: StatementMode,
    /// More options.
    pub arguments: Vec<String>,
}

/// What sysbench reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SysbenchReport {
    /// Transactions, or whatever the script does at a time.
    pub events: u64,
    /// Events in a second.
    pub events_per_s: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: f64,
    /// Latency in milliseconds that 95 per cent of the events do not exceed.
    pub p95_ms: f64,
    /// Errors of the numbers 1213 and 1205.
    pub ignored_errors: u64,
}

impl SysbenchRun {
    /// Makes the table and fills it, by one thread. Its rows differ from time to time, whatever seed sysbench is given.
    ///
    /// # Errors
    /// What sysbench complains of.
    pub fn prepare(&self, server: &Server) -> Outcome<()> {
        let mut command = self.command(server);
        // bulk_insert makes a table for each thread.
        let threads = if self.script == BULK_SCRIPT { self.threads } else { 1 };
        command.args([&format!("--threads={threads}"), "prepare"]);
        finish(&self.script, command, PREPARE_TIME_MAX).map(drop)
    }

    /// Drops the tables.
    ///
    /// # Errors
    /// What sysbench complains of.
    pub fn clean_up(&self, server: &Server) -> Outcome<()> {
        let mut command = self.command(server);
        command.args([&format!("--threads={}", self.threads), "cleanup"]);
        finish(&self.script, command, PREPARE_TIME_MAX).map(drop)
    }

    /// Runs the script.
    ///
    /// # Errors
    /// An error of the server that is not ignored, or output that has no figures.
    pub fn run(&self, server: &Server) -> Outcome<SysbenchReport> {
        let mut command = self.command(server);
        command.args([&format!("--threads={}", self.threads), &format!("--time={}", self.time_s)]);
        command.args([&format!("--events={}", self.events), self.mode.option(), IGNORED_ERRORS]);
        command.arg("run");
        let output = finish(&self.script, command, Duration::from_secs(self.time_s) + RUN_EXTRA_TIME_MAX)?;
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

/// A script of this repository, by its name; `None` when the sources are not there.
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

/// What sysbench complained of in what it printed; `None` when it ended well and complained of nothing. It may end well and
/// have lost a thread.
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

/// The figures in what sysbench printed.
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
