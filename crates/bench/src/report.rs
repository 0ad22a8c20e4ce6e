//! Markdown tables, and comparisons of measured figures with targets.

use std::fmt;

/// A table. The first column is left-aligned, the others are right-aligned.
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these columns.
    pub fn new(columns: &[&str]) -> Table {
        Table { columns: columns.iter().map(|name| (*name).to_string()).collect(), rows: Vec::new() }
    }

    /// Appends a row. Missing cells stay empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = || std::iter::once(&self.columns).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3))
            .collect();
        for (number, row) in all().enumerate() {
            write!(out, "|")?;
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    write!(out, " {cell:<width$} |")?;
                } else {
                    write!(out, " {cell:>width$} |")?;
                }
            }
            writeln!(out)?;
            if number == 0 {
                write!(out, "|")?;
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + 1);
                    write!(out, "{}", if column == 0 { format!("{dashes}-|") } else { format!("{dashes}:|") })?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

/// A target, with the figure that was measured for it.
pub struct Verdict {
    /// The measured quantity, with its unit.
    pub what: String,
    /// Maximum figure that meets the target.
    pub allowed_max: f64,
    /// The measured figure; NaN if it could not be measured.
    pub measured: f64,
}

impl Verdict {
    /// Whether the target is met. A figure that could not be measured misses it.
    pub fn is_met(&self) -> bool {
        self.measured.is_finite() && self.measured <= self.allowed_max
    }
}

/// Prints the verdicts as a table and returns the number of missed targets.
pub fn print_verdicts(verdicts: &[Verdict]) -> usize {
    let mut table = Table::new(&["target", "at most", "measured", "met"]);
    for verdict in verdicts {
        let met = if verdict.is_met() { "yes" } else { "NO" };
        let numbers = [verdict.allowed_max, verdict.measured].map(|number| format!("{number:.2}"));
        let [allowed, measured] = numbers;
        table.row(vec![verdict.what.clone(), allowed, measured, met.into()]);
    }
    println!("{table}");
    verdicts.iter().filter(|verdict| !verdict.is_met()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_with_even_columns() {
        let mut table = Table::new(&["script", "tps"]);
        table.row(vec!["oltp_insert".into(), "12".into()]);
        table.row(vec!["x".into()]);
        let lines =
            ["| script      | tps |", "|-------------|----:|", "| oltp_insert |  12 |", "| x           |     |"];
        assert_eq!(table.to_string(), lines.join("\n") + "\n");
    }

    #[test]
    fn a_target_without_a_measurement_is_not_met() {
        let verdict = |measured| Verdict { what: String::new(), allowed_max: 1.0, measured };
        assert!(verdict(1.0).is_met());
        assert!(!verdict(1.1).is_met());
        assert!(!verdict(f64::NAN).is_met());
    }
}
