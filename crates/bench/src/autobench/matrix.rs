//! `dbt2_run_1.conf` lists the runs of DBT2, one per line, in three columns: servers, warehouses, and
//! terminals per warehouse.

use crate::failure::Explain;
use crate::{Failure, Outcome};

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixRow {
    /// Number of sysbench programs. Each gets its share of the warehouses.
    pub servers: u32,
    /// Number of warehouses.
    pub warehouses: u32,
    /// Threads per warehouse.
    pub terminals: u32,
}

impl MatrixRow {
    /// Name in results.
    pub fn label(&self) -> String {
        format!("Servers: {} Warehouses: {} Terminals: {}", self.servers, self.warehouses, self.terminals)
    }
}

/// Reads the runs of a file.
///
/// # Errors
/// A line does not hold three numbers from 1 to 10,000, or the file lists no run.
pub fn read_matrix(text: &str) -> Outcome<Vec<MatrixRow>> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        let numbers: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [servers, warehouses, terminals]
                if line.split_whitespace().count() == 3
                    && numbers.iter().all(|number| (1..=10_000).contains(number)) =>
            {
                rows.push(MatrixRow { servers, warehouses, terminals });
            }
            _ => {
                let allowed = "allowed are three numbers from 1: servers, warehouses, terminals of each warehouse";
                return Err(allowed).explain(format!("line {}: {}", number + 1, line.trim()));
            }
        }
    }
    if rows.is_empty() { Err(Failure::new("it has no run")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_describes_one_run() {
        let text =
            "#NUM_MYSQL_SERVERS NUM_WAREHOUSES NUM_TERMINALS\n 1                 4              2\n\n2 4 1 # two\n";
        let rows = read_matrix(text).expect("two runs");
        assert_eq!(rows[0], MatrixRow { servers: 1, warehouses: 4, terminals: 2 });
        assert_eq!(rows[1].label(), "Servers: 2 Warehouses: 4 Terminals: 1");
    }

    #[test]
    fn a_line_without_three_numbers_is_refused() {
        for text in ["1 2", "1 2 3 4", "1 2 x", "0 1 1", "# nothing\n", "1 2 3 x"] {
            assert!(read_matrix(text).is_err(), "{text}");
        }
    }
}
