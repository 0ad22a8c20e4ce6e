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

/// Writes all rows as lines, with id, k, c and pad separated by tabs.
///
/// # Errors
/// The writer fails.
pub fn write_rows(out: &mut impl std::io::Write, rows: u64) -> Outcome<()> {
    for first in (1..=rows).step_by(ROWS_PER_STATEMENT as usize) {
        let mut lines = String::new();
        each_row(first, rows, |id, k, c, pad| {
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "{id}\t{k}\t{c}\t{pad}");
        });
        out.write_all(lines.as_bytes())?;
    }
    Ok(())
}

/// COUNT(*), SUM(id) and SUM(k) of the filled table.
pub fn sums(rows: u64) -> [u64; 3] {
    let mut sums = [0; 3];
    for first in (1..=rows).step_by(ROWS_PER_STATEMENT as usize) {
        each_row(first, rows, |id, k, _, _| sums = [sums[0] + 1, sums[1] + id, sums[2] + k]);
    }
    sums
}

/// The INSERT of the rows from `first` on.
fn insert(first: u64, rows: u64) -> String {
    let mut statement = String::from("INSERT INTO sbtest1 (id, k, c, pad) VALUES ");
    each_row(first, rows, |id, k, c, pad| {
        let separator = if id == first { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(statement, "{separator}({id},{k},'{c}','{pad}')");
    });
    statement
}

/// Calls `act` with id, k, c and pad of the rows of the statement that begins with `first`.
fn each_row(first: u64, rows: u64, mut act: impl FnMut(u64, u64, &str, &str)) {
    let mut random = Random::new(SEED + first);
    for id in first..=rows.min(first + ROWS_PER_STATEMENT - 1) {
        let k = 1 + random.below(rows);
        let [mut c, mut pad] = [String::new(), String::new()];
        push_groups(&mut c, &mut random, 10);
        push_groups(&mut pad, &mut random, 5);
        act(id, k, &c, &pad);
    }
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

    #[test]
    fn lines_and_sums_are_those_of_the_statements() {
        let (rows, mut lines) = (1200, Vec::new());
        write_rows(&mut lines, rows).expect("a Vec takes all");
        let lines = String::from_utf8(lines).expect("digits");
        let statements: String = [1, 501, 1001].map(|first| insert(first, rows)).concat();
        let mut counted = [0; 3];
        for line in lines.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let row = format!("({},{},'{}','{}')", fields[0], fields[1], fields[2], fields[3]);
            assert!(statements.contains(&row), "{row}");
            let [id, k] = [0, 1].map(|field: usize| fields[field].parse::<u64>().expect("a number"));
            counted = [counted[0] + 1, counted[1] + id, counted[2] + k];
        }
        assert_eq!((counted, counted[0]), (sums(rows), rows));
    }
}
