//! A first look: a node, sysbench against it, and what each thread did.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::process::{JunctorOptions, Server, command, start_junctor};
use crate::report::Table;
use crate::sysbench::{StatementMode, SysbenchRun};
use crate::{Failure, Outcome};

/// Shows sysbench on a fresh node.
#[derive(Debug, clap::Args)]
pub struct DemoOptions {
    /// The binary [default: junctor beside this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Seconds of each script
    #[arg(long, value_name = "S", default_value_t = 10)]
    seconds: u64,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000)]
    rows: u64,
    /// ThreadConfig of the node [default: by the CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
}

/// Runs the demonstration.
///
/// # Errors
/// A server that does not start, or a script that fails.
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
    println!("\n{table}\nWhat the threads did, as the mysql client sees it:\n");
    for statement in ["SELECT * FROM junctor_info.threads", "SELECT * FROM junctor_info.threadstat"] {
        println!("{statement}\n{}", ask_mysql(&server, statement)?);
    }
    server.stop()?;
    println!("Stopped. `make run` starts a node to play with.");
    Ok(())
}

/// Runs a statement with the command-line client.
fn ask_mysql(server: &Server, statement: &str) -> Outcome<String> {
    let mut client = Command::new("mysql");
    client.args(["--no-defaults", "--table", "-uroot", "-e", statement]);
    client.arg(format!("-h{}", server.address.ip())).arg(format!("-P{}", server.address.port()));
    let finished = command::run(&mut client, Duration::from_secs(30))?;
    if finished.status.success() { Ok(finished.output) } else { Err(Failure::new(finished.errors)) }
}
