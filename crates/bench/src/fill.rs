//! Fills the sysbench table with rows that depend only on a seed, so that two databases get the same rows.

use std::fmt::Write;

use crate::Outcome;
use crate::process::Server;
use crate::random::Random;

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
    let mut connection = server.connect()?;
    connection.query("USE sbtest")?;
    connection.query(CREATE)?;
    let mut random = Random::new(SEED);
    let mut statement = String::new();
    for first in (1..=rows).step_by(ROWS_PER_STATEMENT as usize) {
        statement.clear();
        statement.push_str("INSERT INTO sbtest1 (id, k, c, pad) VALUES ");
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
        connection.query(&statement)?;
    }
    connection.query("CREATE INDEX k_1 ON sbtest1(k)")?;
    Ok(())
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
