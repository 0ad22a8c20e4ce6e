//! `tpch`: the 22 queries of TPC-H on Junctor and on MariaDB in one run, and optionally in DuckDB.
//!
//! - [`data`]: the tables, filled by the crate `tpchgen`;
//! - [`duckdb`]: the same tables and queries in DuckDB, from its Python package.
//!
//! Both databases have the same tables, primary keys and indexes of foreign keys. MariaDB has current
//! statistics of tables. Each query runs once before it is measured. The texts are those of the specification
//! with its validation parameters, in MySQL's dialect.

mod data;
mod duckdb;

use std::path::PathBuf;
use std::time::Instant;

use crate::mysql::{ClientError, Connection, Rows};
use crate::process::{JunctorOptions, Server, TemporaryFolder, start_junctor, start_mariadb};
use crate::report::Table;
use crate::{Failure, Outcome};

const QUERIES: &str = include_str!("../../tpch/queries.sql");
const DATABASE: &str = "tpch";

/// Options of `tpch`.
#[derive(Clone, Debug, clap::Args)]
pub struct TpchOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Scale factor: 1 has 6,000,000 rows in lineitem
    #[arg(long, default_value_t = 0.1)]
    scale: f64,
    /// Measured runs of each query; medians are reported
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), default_value_t = 3)]
    repetitions: u32,
    /// Numbers of the queries [default: all]
    #[arg(long, value_delimiter = ',')]
    queries: Vec<usize>,
    /// ThreadConfig of the node [default: chosen from the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Further options of `junctor serve`, such as --total-memory 8G
    #[arg(long, value_delimiter = ' ', allow_hyphen_values = true)]
    serve: Vec<String>,
    /// Measure Junctor only, without comparing answers
    #[arg(long)]
    alone: bool,
    /// A Python that has the package duckdb, to measure DuckDB too
    #[arg(long, value_name = "FILE")]
    duckdb: Option<PathBuf>,
    /// Statements for each measured session of Junctor, such as "SET SESSION join_buffer_size = 65536"
    #[arg(long, value_name = "SQL")]
    set: Vec<String>,
}

/// A query's median time in milliseconds, or why there is none.
type Time = Result<f64, String>;

/// A query on the databases that took part.
struct Line {
    number: usize,
    junctor: Time,
    mariadb: Option<Time>,
    duckdb: Option<f64>,
    rows: usize,
    /// The first difference between the answers.
    difference: Option<String>,
}

/// Measures the queries and prints a table in Markdown.
///
/// # Errors
/// A server that does not start, a query that fails, or answers that differ.
pub fn run(options: &TpchOptions) -> Outcome<()> {
    let files = TemporaryFolder::new("tpch")?;
    let junctor = start_junctor(&junctor_options(options))?;
    let mariadb = if options.alone { None } else { Some(start_mariadb(&[])?) };
    for server in [Some(&junctor), mariadb.as_ref()].into_iter().flatten() {
        let start = Instant::now();
        let rows = data::load(server, DATABASE, options.scale)?;
        eprintln!("{}: {rows} rows in {:.1} s", server.name, start.elapsed().as_secs_f64());
    }
    let mut lines = Vec::new();
    for (number, text) in texts(options.scale) {
        if !options.queries.is_empty() && !options.queries.contains(&number) {
            continue;
        }
        lines.push(measure(options, (&junctor, mariadb.as_ref()), number, &text)?);
    }
    junctor.stop()?;
    if let Some(mariadb) = mariadb {
        mariadb.stop()?;
    }
    if let Some(python) = &options.duckdb {
        let times = duckdb::measure(python, files.path(), options.scale, options.repetitions)?;
        for line in &mut lines {
            line.duckdb = times.get(line.number - 1).copied();
        }
    }
    println!("{}", table(&lines));
    let failed: Vec<String> = lines.iter().filter_map(failure).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("\n"))) }
}

fn junctor_options(options: &TpchOptions) -> JunctorOptions {
    let mut junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    junctor.arguments.extend(options.serve.iter().filter(|word| !word.is_empty()).cloned());
    match &options.thread_config {
        Some(thread_config) => junctor.with_placement(thread_config),
        None => junctor,
    }
}

/// The queries with their numbers. The fraction of query 11 depends on the scale.
fn texts(scale: f64) -> Vec<(usize, String)> {
    let fraction = format!("{:.10}", 0.0001 / scale);
    let texts = QUERIES.split(";\n").map(str::trim).filter(|text| !text.is_empty());
    texts.enumerate().map(|(place, text)| (place + 1, text.replace("{fraction}", &fraction))).collect()
}

fn measure(
    options: &TpchOptions,
    (junctor, mariadb): (&Server, Option<&Server>),
    number: usize,
    text: &str,
) -> Outcome<Line> {
    let (junctor, ours) = time(junctor, &options.set, text, options.repetitions)?;
    let (mariadb, theirs) = match mariadb {
        Some(server) => {
            let (time, rows) = time(server, &[], text, options.repetitions)?;
            (Some(time), Some(rows))
        }
        None => (None, None),
    };
    let difference = match (&junctor, &mariadb, &theirs) {
        (Ok(_), Some(Ok(_)), Some(theirs)) => difference(&ours, theirs),
        _ => None,
    };
    let shown = |time: &Time| time.as_ref().map_or_else(Clone::clone, |time| format!("{time:.1} ms"));
    let other = mariadb.as_ref().map_or_else(String::new, |time| format!(", MariaDB {}", shown(time)));
    eprintln!("Q{number}: {}{other}{}", shown(&junctor), difference.as_ref().map_or("", |_| ", DIFFERENT"));
    Ok(Line { number, junctor, mariadb, duckdb: None, rows: ours.rows.len(), difference })
}

/// The median time of a query and its answer.
fn time(server: &Server, settings: &[String], text: &str, repetitions: u32) -> Outcome<(Time, Rows)> {
    let mut connection = Connection::open(server.address, DATABASE)?;
    for setting in settings {
        connection.query(setting)?;
    }
    let mut answer = match connection.query(text) {
        Ok(rows) => rows,
        Err(error @ ClientError::Server { .. }) => return Ok((Err(error.to_string()), Rows::default())),
        Err(error) => return Err(error.into()),
    };
    let mut times = Vec::new();
    for _ in 0..repetitions {
        let start = Instant::now();
        answer = connection.query(text)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok((Ok(times[times.len() / 2]), answer))
}

/// The first difference between two answers; rows may be in any order.
fn difference(ours: &Rows, theirs: &Rows) -> Option<String> {
    let sorted = |rows: &Rows| {
        let mut rows: Vec<_> = rows.rows.clone();
        rows.sort();
        rows
    };
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    if ours == theirs {
        return None;
    }
    let place = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    Some(match place {
        Some(place) => format!("{:?} is {:?} in MariaDB", ours[place], theirs[place]),
        None => format!("{} rows, {} in MariaDB", ours.len(), theirs.len()),
    })
}

fn failure(line: &Line) -> Option<String> {
    let number = line.number;
    match (&line.junctor, &line.difference) {
        (Err(error), _) => Some(format!("query {number}: {error}")),
        (_, Some(difference)) => Some(format!("query {number}: {difference}")),
        _ => None,
    }
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new(&["Query", "Rows", "Junctor ms", "MariaDB ms", "Ratio", "DuckDB ms"]);
    let shown = |time: Option<f64>| time.map_or_else(String::new, |time| format!("{time:.1}"));
    let ratio = |pair: (Option<f64>, Option<f64>)| match pair {
        (Some(ours), Some(theirs)) => format!("{:.3}", ours / theirs),
        _ => String::new(),
    };
    let of = |line: &Line| {
        let theirs = line.mariadb.as_ref().and_then(|time| time.as_ref().ok().copied());
        [line.junctor.as_ref().ok().copied(), theirs, line.duckdb]
    };
    for line in lines {
        let [ours, theirs, duckdb] = of(line);
        let cells = [shown(ours), shown(theirs), ratio((ours, theirs)), shown(duckdb)];
        let first = [line.number.to_string(), line.rows.to_string()];
        table.row(first.into_iter().chain(cells).collect());
    }
    let sides = [0, 1, 2].map(|side| {
        let times: Option<Vec<f64>> = lines.iter().map(|line| of(line)[side]).collect();
        times.filter(|times| !times.is_empty())
    });
    let total = |times: &Option<Vec<f64>>| times.as_ref().map(|times| times.iter().sum::<f64>());
    let mean = |times: &Option<Vec<f64>>| {
        let logarithms = |times: &Vec<f64>| times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64;
        times.as_ref().map(|times| logarithms(times).exp())
    };
    for (name, figures) in [("total", sides.each_ref().map(total)), ("geometric mean", sides.each_ref().map(mean))] {
        let [ours, theirs, duckdb] = figures;
        let cells = [shown(ours), shown(theirs), ratio((ours, theirs)), shown(duckdb)];
        table.row([name.to_string(), String::new()].into_iter().chain(cells).collect());
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_22_queries_and_query_11_has_its_fraction() {
        let texts = texts(0.1);
        assert_eq!(texts.len(), 22);
        assert!(texts[10].1.contains("* 0.0010000000\n"), "{}", texts[10].1);
        assert!(texts.iter().all(|(_, text)| !text.contains('{')));
    }

    #[test]
    fn answers_in_another_order_are_equal() {
        let answer = |numbers: &[&str]| Rows {
            rows: numbers.iter().map(|number| vec![Some((*number).to_string())]).collect(),
            ..Rows::default()
        };
        assert_eq!(difference(&answer(&["1", "2"]), &answer(&["2", "1"])), None);
        assert!(difference(&answer(&["1", "2"]), &answer(&["1", "3"])).is_some());
        assert!(difference(&answer(&["1"]), &answer(&["1", "3"])).is_some());
    }
}
