//! DuckDB, which runs in a Python program because its package on PyPI has the whole database.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{data, texts};
use crate::process::command;
use crate::{Failure, Outcome};

const PROGRAM: &str = include_str!("../../tpch/duckdb.py");
const TIME_MAX: Duration = Duration::from_secs(1800);

/// The median times of all queries in milliseconds, on as many threads as the machine has CPUs.
///
/// # Errors
/// The Python does not exist, has no package `duckdb`, or a query fails.
pub fn measure(python: &Path, folder: &Path, scale: f64, repetitions: u32) -> Outcome<Vec<f64>> {
    data::write_files(folder, scale)?;
    let texts: Vec<String> = texts(scale).into_iter().map(|(_, text)| text).collect();
    fs::write(folder.join("queries.sql"), texts.join(";\n"))?;
    fs::write(folder.join("schema.sql"), data::SCHEMA)?;
    let program = folder.join("queries.py");
    fs::write(&program, PROGRAM)?;
    let threads = std::thread::available_parallelism()?.to_string();
    let mut run = Command::new(python);
    run.arg(&program).arg(folder).args([threads, repetitions.to_string()]);
    let finished = command::run(&mut run, TIME_MAX)?;
    if !finished.status.success() {
        return Err(Failure::new(format!("DuckDB: {}{}", finished.output, finished.errors)));
    }
    let time = |line: &str| line.split(' ').nth(1).and_then(|time| time.parse().ok());
    Ok(finished.output.lines().filter_map(time).collect())
}
