//! `compare`: measures Junctor, MariaDB and an echo server that sends the same bytes, in one run with the
//! same clients.
//!
//! - `answers`: checks that both databases give the same answers before anything is measured;
//! - `scripts`: sysbench, alternating between the two databases;
//! - `reads`: our own load client, which drives the echo server too;
//! - `targets`: the targets of the figures.

mod answers;
mod reads;
mod scripts;
mod targets;

pub use reads::{start_echo, start_echo_with_sync};

use std::path::PathBuf;

use crate::fill::fill;
use crate::process::{JunctorOptions, Server, start_junctor, start_mariadb};
use crate::report::print_verdicts;
use crate::sysbench::{StatementMode, SysbenchRun};
use crate::{Failure, Outcome};

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
pub struct CompareOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Seconds per run
    #[arg(long, value_name = "S", default_value_t = 4)]
    seconds: u64,
    /// Runs of each kind on each server; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3)]
    repetitions: u32,
    /// Number of threads, each with a connection
    #[arg(long, default_value_t = 8)]
    threads: u32,
    /// Scripts to run [default: sysbench's OLTP scripts and in_list.lua]
    #[arg(long, value_delimiter = ',')]
    scripts: Vec<String>,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Short form: 20,000 rows, runs of 1 second, one repetition
    #[arg(long)]
    quick: bool,
    /// Measure a second MariaDB instead of Junctor, to check the comparison itself
    #[arg(long)]
    self_test: bool,
}

/// The two databases, Junctor first.
struct Pair {
    junctor: Server,
    mariadb: Server,
}

impl Pair {
    fn both(&self) -> [&Server; 2] {
        [&self.junctor, &self.mariadb]
    }
}

/// Compares and prints tables in Markdown.
///
/// # Errors
/// A missed target, answers that differ, or a server that does not start.
pub fn run(options: &CompareOptions) -> Outcome<()> {
    let mut options = options.clone();
    if options.quick {
        (options.rows, options.seconds, options.repetitions) = (20_000, 1, 1);
    }
    let pair = Pair { junctor: start_measured(&options)?, mariadb: start_mariadb(&[])? };
    let mut row_bytes = [0.0; 2];
    for (server, row_bytes) in pair.both().into_iter().zip(&mut row_bytes) {
        server.execute(&["CREATE DATABASE sbtest CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"])?;
        let before = server.resident_bytes()?;
        fill(server, options.rows)?;
        *row_bytes = server.resident_bytes()?.saturating_sub(before) as f64 / options.rows as f64;
    }
    if options.self_test {
        println!("This is a self-test: the side called Junctor is a second MariaDB.\n");
    }
    let compared = answers::compare(&pair, options.rows)?;
    println!("{} rows, {} threads; {compared} answers are equal.\n", options.rows, options.threads);
    let reads = reads::measure(&pair, &options)?;
    println!("{}", reads::table(&reads));
    let scripts = scripts::measure(&pair, &options)?;
    println!("{}", scripts::table(&scripts));
    let [junctor_row, mariadb_row] = row_bytes;
    println!("Growth of resident memory by the table: {junctor_row:.0} bytes a row, MariaDB {mariadb_row:.0}.\n");
    let missed = print_verdicts(&targets::verdicts(&reads, &scripts, junctor_row));
    pair.junctor.stop()?;
    pair.mariadb.stop()?;
    if missed == 0 { Ok(()) } else { Err(Failure::new(format!("{missed} targets are missed"))) }
}

fn start_measured(options: &CompareOptions) -> Outcome<Server> {
    if options.self_test {
        return start_mariadb(&[]);
    }
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    match &options.thread_config {
        Some(thread_config) => start_junctor(&junctor.with_placement(thread_config)),
        None => start_junctor(&junctor),
    }
}

/// The sysbench run of a script on the common table, with uniformly distributed keys.
fn sysbench_run(options: &CompareOptions, script: &str, mode: StatementMode) -> SysbenchRun {
    SysbenchRun {
        script: script.into(),
        database: "sbtest".into(),
        rows: options.rows,
        threads: options.threads,
        time_s: options.seconds,
        events: 0,
        mode,
        arguments: vec!["--rand-type=uniform".into()],
    }
}
