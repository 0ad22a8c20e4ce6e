//! Instructions of the server for each statement, counted by callgrind: they do not depend on what else the machine does.
//!
//! The server runs twice under valgrind with different numbers of statements; the difference of the two counts belongs to
//! the statements alone. It holds everything that the server executes in user mode for them, sockets and turns included.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fill::fill;
use crate::load::{Load, Until};
use crate::process::{JunctorOptions, TemporaryFolder, start_junctor};
use crate::report::{Table, Verdict, print_verdicts};
use crate::sysbench::StatementMode;
use crate::sysbench_matrix::thread_config;
use crate::{Failure, Outcome};

const ROWS: u64 = 2000;
const READY_TIME_MAX_S: u64 = 180;

/// Counts instructions.
#[derive(Debug, clap::Args)]
pub struct InstructionsOptions {
    /// The binary [default: junctor beside this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Placements, of a, b, c, d and automatic
    #[arg(long, value_delimiter = ',', default_value = "a,c")]
    placements: Vec<String>,
    /// Connections that send statements at once
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Folder to keep the files of callgrind in, for callgrind_annotate
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

struct Kind {
    name: &'static str,
    mode: StatementMode,
    keys: u32,
    /// Statements of each connection in the shorter and in the longer run.
    statements: [u64; 2],
}

const KINDS: [Kind; 4] = [
    Kind { name: "IN list of 100, text, per key", mode: StatementMode::Text, keys: 100, statements: [20, 120] },
    Kind { name: "IN list of 100, prepared, per key", mode: StatementMode::Prepared, keys: 100, statements: [20, 120] },
    Kind { name: "point select, text", mode: StatementMode::Text, keys: 1, statements: [100, 1100] },
    Kind { name: "point select, prepared", mode: StatementMode::Prepared, keys: 1, statements: [100, 1100] },
];

/// Counts, prints, and fails when the IN list is over its budget.
///
/// # Errors
/// As said, or a server that does not start.
pub fn run(options: &InstructionsOptions) -> Outcome<()> {
    let folder = TemporaryFolder::new("callgrind")?;
    let folder = options.keep.clone().unwrap_or_else(|| folder.path().to_path_buf());
    fs::create_dir_all(&folder)?;
    let mut table = Table::new(&["instructions", "placement", "each"]);
    let mut verdicts = Vec::new();
    for placement in &options.placements {
        let thread_config = thread_config(placement)?;
        for (number, kind) in KINDS.iter().enumerate() {
            let mut totals = [0; 2];
            for (total, statements) in totals.iter_mut().zip(kind.statements) {
                let file = folder.join(format!("callgrind.out.{placement}.{number}.{statements}"));
                *total = count_run(options, thread_config, kind, statements, &file)?;
            }
            let operations = (kind.statements[1] - kind.statements[0]) * u64::from(kind.keys * options.connections);
            let each = (totals[1] as f64 - totals[0] as f64) / operations as f64;
            eprintln!("{}, placement {placement}: {each:.0}", kind.name);
            table.row(vec![kind.name.into(), placement.clone(), format!("{each:.0}")]);
            if kind.keys > 1 && kind.mode == StatementMode::Text {
                let allowed_max = if placement == "a" { 600.0 } else { 750.0 };
                let what = format!("instructions a key, IN list, placement {placement}");
                verdicts.push(Verdict { what, allowed_max, measured: each });
            }
        }
    }
    println!("{table}");
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} budgets are exceeded"))),
    }
}

/// Instructions of a whole run of the server.
fn count_run(
    options: &InstructionsOptions,
    thread_config: Option<&str>,
    kind: &Kind,
    statements: u64,
    file: &Path,
) -> Outcome<u64> {
    let file_option = format!("--callgrind-out-file={}", file.display());
    let junctor = JunctorOptions {
        binary: options.junctor.clone(),
        wrapper: ["valgrind", "--tool=callgrind", &file_option].map(String::from).to_vec(),
        ready_time_max_s: READY_TIME_MAX_S,
        ..JunctorOptions::default()
    };
    let mut junctor = junctor.with_arguments(&["--total-memory", "256M"]);
    if let Some(thread_config) = thread_config {
        junctor = junctor.with_placement(thread_config);
    }
    let server = start_junctor(&junctor)?;
    server.execute(&["CREATE DATABASE sbtest"])?;
    fill(&server, ROWS)?;
    let load = Load {
        address: server.address,
        is_database: true,
        connections: options.connections,
        mode: kind.mode,
        keys: kind.keys,
        rows: ROWS,
        until: Until::Statements(statements),
        seed: 1,
    };
    load.run()?;
    server.stop()?;
    total(&fs::read_to_string(file)?).ok_or_else(|| Failure::new(format!("{} has no total", file.display())))
}

/// The number behind `totals:` or `summary:`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_read_from_the_end_of_the_file() {
        assert_eq!(total("events: Ir\nsummary: 7\nfn=(1)\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("events: Ir\nsummary: 99 3\n1 2\n"), Some(99));
        assert_eq!(total("nothing"), None);
    }
}
