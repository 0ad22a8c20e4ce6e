//! The tables: the sysbench table with an additional column for filters, and a smaller table with one
//! partition.

use std::fmt::Write;

use super::operation::RANGE_ROWS;
use crate::Outcome;
use crate::consistency::check_table;
pub use crate::fill::push_groups;
use crate::mysql::Connection;
use crate::random::Random;
use crate::{Failure, failure::Explain};

/// Name of the database.
pub const DATABASE: &str = "lab";
/// Table with partitions on all ldm instances.
pub const TABLE: &str = "sbtest1";
/// Table with one partition.
pub const SINGLE_PARTITION_TABLE: &str = "hot1";
/// Column list of the INSERT statements.
pub const COLUMNS: &str = "(id, k, c, pad, filter_col)";

const ROWS_PER_STATEMENT: u64 = 500;
const SEED: u64 = 7;

/// Number of rows of the table with one partition if the other table has `rows`.
pub fn single_partition_rows(rows: u64) -> u64 {
    (rows / 10).max(RANGE_ROWS)
}

/// Creates and fills both tables. Equal numbers of rows give equal tables on every node.
///
/// # Errors
/// The node refuses a statement.
pub fn fill(connection: &mut Connection, rows: u64) -> Outcome<()> {
    connection.query(&format!("CREATE DATABASE {DATABASE}"))?;
    connection.query(&format!("USE {DATABASE}"))?;
    let mut random = Random::new(SEED);
    for (table, rows, partitions) in [
        (TABLE, rows, ""),
        (SINGLE_PARTITION_TABLE, single_partition_rows(rows), " PARTITION BY KEY (id) PARTITIONS 1"),
    ] {
        connection.query(&format!(
            "CREATE TABLE {table} (id INT NOT NULL, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
             pad CHAR(60) NOT NULL DEFAULT '', filter_col INT NOT NULL DEFAULT 0, PRIMARY KEY (id)){partitions}"
        ))?;
        let mut statement = String::new();
        for first in (1..=rows).step_by(ROWS_PER_STATEMENT as usize) {
            statement.clear();
            statement.push_str(&format!("INSERT INTO {table} {COLUMNS} VALUES "));
            for id in first..=rows.min(first + ROWS_PER_STATEMENT - 1) {
                if id > first {
                    statement.push(',');
                }
                push_row(&mut statement, id, rows, &mut random);
            }
            connection.query(&statement)?;
        }
        connection.query(&format!("CREATE INDEX k_1 ON {table}(k)"))?;
    }
    Ok(())
}

/// Appends a row as a parenthesised list for VALUES.
pub fn push_row(text: &mut String, id: u64, rows: u64, random: &mut Random) {
    // Writing to a String cannot fail.
    let _ = write!(text, "({id},{},'", 1 + random.below(rows));
    push_groups(text, random, 10);
    text.push_str("','");
    push_groups(text, random, 5);
    let _ = write!(text, "',{})", id % RANGE_ROWS);
}

/// Checks that both tables have all their rows and agree with their indexes.
///
/// # Errors
/// Names the first difference.
pub fn check(connection: &mut Connection, rows: u64, seed: u64) -> Outcome<()> {
    connection.query(&format!("USE {DATABASE}"))?;
    for (table, rows) in [(TABLE, rows), (SINGLE_PARTITION_TABLE, single_partition_rows(rows))] {
        let found = check_table(connection, table, Some("k_1"), seed).explain(format!("after all runs, {table}"))?;
        if found != rows {
            return Err(Failure::new(format!("{table} has {found} rows after all runs instead of {rows}")));
        }
    }
    Ok(())
}
