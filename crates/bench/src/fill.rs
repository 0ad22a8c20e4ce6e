//! Fills the sysbench table with rows that depend only on a seed, so that two databases get the same rows.

use std::fmt::Write;
use std::thread;

use crate::mysql::Connection;
use crate::process::Server;
use crate::random::Random;
use crate::{Failure, Outcome};

const ROWS_PER_STATEMENT: u64 = 500;
const SEED: u64 = 7;

/// The table of `oltp_common`.
const CREATE: &str = "CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
                      c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) \
                      /*! ENGINE = innodb */";

/// Creates table sbtest1 in the existing database sbtest and fills it as sysbench does: `k` is uniformly
/// distributed, and the texts consist of groups of digits.
///
/// # Errors
/// The server refuses a statement.
pub fn fill(server: &Server, rows: u64) -> Outcome<()> {
    fill_over(server, rows, 1)
}

/// As [`fill`], over several connections at the same time. The rows are the same for every number of
/// connections.
///
/// # Errors
/// As [`fill`].
pub fn fill_over(server: &Server, rows: u64, connections: usize) -> Outcome<()> {
    let mut connection = Connection::open(server.address, "sbtest")?;
    connection.query(CREATE)?;
    thread::scope(|scope| {
        let part = |number: usize| {
            move || -> Outcome<()> {
                let mut connection = Connection::open(server.address, "sbtest")?;
                let firsts = (1..=rows).step_by(ROWS_PER_STATEMENT as usize).skip(number);
                for first in firsts.step_by(connections) {
                    connection.query(&insert(first, rows))?;
                }
                Ok(())
            }
        };
        let parts: Vec<_> = (0..connections).map(|number| scope.spawn(part(number))).collect();
        for part in parts {
            part.join().unwrap_or_else(|_| Err(Failure::new("a thread panicked")))?;
        }
        Outcome::Ok(())
    })?;
    connection.query("CREATE INDEX k_1 ON sbtest1(k)")?;
    Ok(())
}

/// The INSERT of the rows from `first` on.
fn insert(first: u64, rows: u64) -> String {
    let mut random = Random::new(SEED + first);
    let mut statement = String::from("INSERT INTO sbtest1 (id, k, c, pad) VALUES ");
    for id in first..=rows.min(first + ROWS_PER_STATEMENT - 1) {
        let k = 1 + random.below(rows);
        let separator = if id == first { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(statement, "{separator}({id},{k},'");
        push_groups(&mut statement, &mut random, 10);
        statement.push_str("','");
        push_groups(&mut statement, &mut random, 5);
        statement.push_str("')");
    }
    statement
}

/// Appends groups of eleven random digits, separated by dashes.
pub fn push_groups(text: &mut String, random: &mut Random, count: usize) {
    for group in 0..count {
        let separator = if group == 0 { "" } else { "-" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{:011}", random.below(100_000_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_long_as_those_of_sysbench() {
        for (count, length) in [(10, 119), (5, 59)] {
            let mut text = String::new();
            push_groups(&mut text, &mut Random::new(1), count);
            assert_eq!(text.len(), length);
        }
    }
}
