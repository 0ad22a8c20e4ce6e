//! `check`: compares a sysbench table with its indexes through SQL.

use crate::mysql::{Connection, Rows};
use crate::random::Random;
use crate::{Failure, Outcome};

/// Number of index ranges that are compared row by row.
const SAMPLES: u64 = 4;
/// Number of keys in such a range. Uniformly distributed keys give it about the same number of rows.
const SAMPLE_WIDTH: u64 = 200;

/// Compares access paths: a full scan, a range of the primary key, and a range of `index`, if one is given.
/// They must agree on the row count and on sums over the whole table. In a few ranges, they must agree row by
/// row. Returns the number of rows.
///
/// # Errors
/// Names the two access paths that disagree, with their figures.
pub fn check_table(connection: &mut Connection, table: &str, index: Option<&str>, seed: u64) -> Outcome<u64> {
    let figures = "SELECT COUNT(*), SUM(id), SUM(k), MIN(id), MAX(id), MIN(k), MAX(k) FROM";
    let mut paths = vec![
        ("scan", format!("{figures} {table}")),
        ("primary key", format!("{figures} {table} FORCE INDEX (PRIMARY) WHERE id BETWEEN -2147483648 AND 2147483647")),
    ];
    if let Some(index) = index {
        let condition = "k BETWEEN -2147483648 AND 2147483647";
        paths.push(("secondary index", format!("{figures} {table} FORCE INDEX ({index}) WHERE {condition}")));
    }
    let mut first: Option<Rows> = None;
    for (path, statement) in &paths {
        let rows = connection.query(statement)?;
        match &first {
            None => first = Some(rows),
            Some(scan) if scan.rows != rows.rows => {
                let both = format!("{:?} by scan, {:?} by {path}", scan.rows, rows.rows);
                return Err(Failure::new(format!("{table}: {both}")));
            }
            Some(_) => {}
        }
    }
    let figures = first.and_then(|rows| rows.rows.into_iter().next()).unwrap_or_default();
    let number = |column: usize| figures.get(column).cloned().flatten().and_then(|text| text.parse::<i64>().ok());
    if let (Some(index), Some(least), Some(most)) = (index, number(5), number(6)) {
        check_samples(connection, table, index, least..=most, &mut Random::new(seed))?;
    }
    Ok(number(0).unwrap_or(0) as u64)
}

/// Reads ranges through the secondary index, and the same rows by primary key. The rows must be equal.
fn check_samples(
    connection: &mut Connection,
    table: &str,
    index: &str,
    keys: std::ops::RangeInclusive<i64>,
    random: &mut Random,
) -> Outcome<()> {
    let width = (keys.end() - keys.start()) as u64 + 1;
    for _ in 0..SAMPLES {
        let from = keys.start() + random.below(width) as i64;
        let to = from + SAMPLE_WIDTH.min(width) as i64;
        let by_index = format!("SELECT id, k, c FROM {table} FORCE INDEX ({index}) WHERE k BETWEEN {from} AND {to}");
        // In skewed loads a hot key can have any number of rows, so bound the sample.
        let by_index = sorted(connection.query(&format!("{by_index} LIMIT 1000"))?);
        let ids: Vec<&str> = by_index.iter().filter_map(|row| row[0].as_deref()).collect();
        if ids.is_empty() {
            continue;
        }
        let by_id = format!("SELECT id, k, c FROM {table} WHERE id IN ({})", ids.join(","));
        let by_id = sorted(connection.query(&by_id)?);
        if by_index != by_id {
            let differing = by_index.iter().zip(&by_id).find(|(one, other)| one != other);
            let counts = format!("{} rows by {index}, {} by their ids", by_index.len(), by_id.len());
            return Err(Failure::new(format!("{table}, k from {from} to {to}: {counts}, first {differing:?}")));
        }
    }
    Ok(())
}

/// Sorts the rows into an order that does not depend on the access path.
pub fn sorted(mut rows: Rows) -> Vec<Vec<Option<String>>> {
    rows.rows.sort();
    rows.rows
}

/// Options of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckOptions {
    /// Port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Database of the table
    #[arg(long, default_value = "sbtest")]
    database: String,
    /// Table with columns id and k
    #[arg(long, default_value = "sbtest1")]
    table: String,
    /// Secondary index on k
    #[arg(long)]
    index: Option<String>,
    /// Expected number of rows
    #[arg(long)]
    rows: Option<u64>,
}

/// Runs the check and prints the number of rows.
///
/// # Errors
/// Names the two access paths that disagree, with their figures.
pub fn run(options: &CheckOptions) -> Outcome<()> {
    let address = (std::net::Ipv4Addr::LOCALHOST, options.port).into();
    let mut connection = Connection::open(address, &options.database)?;
    let rows = check_table(&mut connection, &options.table, options.index.as_deref(), 1)?;
    if options.rows.is_some_and(|expected| expected != rows) {
        return Err(Failure::new(format!("{}: {rows} rows, expected {:?}", options.table, options.rows)));
    }
    println!("{}: {rows} rows agree", options.table);
    Ok(())
}
