//! `demo`: starts a node, runs sysbench against it and shows how each thread spent its time. Then kills a
//! durable node in the middle of bank transfers, and shows that nothing is lost.

mod crash;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::process::{JunctorOptions, Server, command, start_junctor};
use crate::report::Table;
use crate::sysbench::{StatementMode, SysbenchRun};
use crate::{Failure, Outcome};

/// Maximum width of a printed table, in characters. The rows of a wider one are printed with one column per
/// line.
const TABLE_WIDTH_MAX: usize = 100;

/// Statements run after the load. They name columns, because `SELECT *` on `threadstat` gives 26 columns, too
/// wide for a terminal.
const THREAD_STATEMENTS: [&str; 2] = [
    "SELECT thread_id, name, cpu, modules FROM junctor_info.threads",
    "SELECT name, executing_us, sending_us, spinning_us, sleeping_us, signals, hand_overs FROM junctor_info.threadstat",
];

/// Options of `demo`.
#[derive(Debug, clap::Args)]
pub struct DemoOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Seconds that each sysbench script runs
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Rows of the sysbench table
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
}

/// Runs the demonstration.
///
/// # Errors
/// The node does not start, or a script or the `mysql` client fails.
pub fn run(options: &DemoOptions) -> Outcome<()> {
    let mut junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    if let Some(thread_config) = &options.thread_config {
        junctor = junctor.with_placement(thread_config);
    }
    let server = start_junctor(&junctor)?;
    println!("Junctor listens at {}, process {}.", server.address, server.process_id());
    server.execute(&["CREATE DATABASE sbtest"])?;
    let describe = |script: &str| SysbenchRun {
        script: script.into(),
        database: "sbtest".into(),
        rows: options.rows,
        threads: 8,
        time_s: options.seconds,
        events: 0,
        mode: StatementMode::Prepared,
        arguments: Vec::new(),
    };
    println!("sysbench fills a table with {} rows ...", options.rows);
    describe("oltp_read_write").prepare(&server)?;
    let mut table = Table::new(&["script, 8 threads", "events/s", "mean ms", "p95 ms", "server CPU us/event"]);
    for script in ["oltp_point_select", "oltp_read_write"] {
        println!("{script} runs for {} s ...", options.seconds);
        let before = server.cpu_time()?;
        let report = describe(script).run(&server)?;
        let cpu = (server.cpu_time()? - before).as_secs_f64() * 1e6 / report.events.max(1) as f64;
        table.row(vec![
            script.into(),
            format!("{:.0}", report.events_per_s),
            format!("{:.2}", report.mean_ms),
            format!("{:.2}", report.p95_ms),
            format!("{cpu:.1}"),
        ]);
    }
    println!("\n{table}\nThe threads of the node, through the mysql client:\n");
    for statement in THREAD_STATEMENTS {
        let table = ask_mysql(&server, "--table", statement)?;
        let shown = if fits(&table) { table } else { ask_mysql(&server, "--vertical", statement)? };
        println!("{};\n{shown}", statement.replace(" FROM", "\nFROM"));
    }
    server.stop()?;
    println!("That node kept its data in memory (--in-memory). The next one is durable.\n");
    crash::run(options)?;
    println!("\nStopped. `make run` starts a node to play with.");
    Ok(())
}

fn fits(table: &str) -> bool {
    table.lines().all(|line| line.chars().count() <= TABLE_WIDTH_MAX)
}

/// Runs a statement with the `mysql` client, which prints the rows in `format` (an option such as `--table`).
fn ask_mysql(server: &Server, format: &str, statement: &str) -> Outcome<String> {
    let mut client = Command::new("mysql");
    client.args(["--no-defaults", format, "-uroot", "-e", statement]);
    client.arg(format!("-h{}", server.address.ip())).arg(format!("-P{}", server.address.port()));
    let finished = command::run(&mut client, Duration::from_secs(30))?;
    if finished.status.success() { Ok(finished.output) } else { Err(Failure::new(finished.errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_up_to_a_hundred_columns_fits() {
        assert!(fits(&format!("{}\n{}\n", "-".repeat(100), "é".repeat(100))));
        assert!(!fits(&format!("short\n{}\n", "-".repeat(101))));
    }
}
