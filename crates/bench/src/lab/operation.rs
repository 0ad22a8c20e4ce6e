//! Operations of clients: statement texts, and the number of rows that each must return or change.

use std::fmt::Write;

use super::data::{self, SINGLE_PARTITION_TABLE, TABLE};
use crate::random::Random;

/// Rows per range.
pub const RANGE_ROWS: u64 = 100;

const TRANSACTION_POINTS: u32 = 10;

/// One operation of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// One row by its key.
    Point,
    /// This many rows by distinct keys.
    Keys(u32),
    /// A range of [`RANGE_ROWS`] rows.
    Range,
    /// A range of [`RANGE_ROWS`] rows with a filter that leaves one row.
    FilteredRange,
    /// A sum over a range of this many rows.
    Sum(u64),
    /// Updates an indexed column of one row.
    UpdateIndexed,
    /// Updates an unindexed column of one row.
    UpdateOther,
    /// [`Operation::Keys`] in the table with one partition.
    SinglePartitionKeys(u32),
    /// [`Operation::UpdateOther`] in the table with one partition.
    SinglePartitionUpdate,
    /// The transaction of sysbench: ten lookups, four ranges, two updates, a DELETE and an INSERT of the same
    /// row.
    Transaction,
}

/// The reply that a statement must get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This many rows.
    Rows(u64),
    /// At least one row, at most this many.
    RowsUpTo(u64),
    /// This many changed rows.
    Changed(u64),
    /// Neither rows nor changed rows.
    Nothing,
}

impl Expected {
    /// Whether an answer with these numbers of rows is correct.
    pub fn fits(self, rows: u64, changed: u64) -> bool {
        match self {
            Expected::Rows(count) => rows == count,
            Expected::RowsUpTo(most) => (1..=most).contains(&rows),
            Expected::Changed(count) => rows == 0 && changed == count,
            Expected::Nothing => rows == 0 && changed == 0,
        }
    }
}

/// The statement texts of one operation, with the expected replies.
#[derive(Default)]
pub struct Script {
    text: String,
    /// End of each statement in `text`, and its expected answer.
    statements: Vec<(usize, Expected)>,
}

impl Script {
    /// The statements with their expected answers, in order.
    pub fn statements(&self) -> impl Iterator<Item = (&str, Expected)> {
        let starts = std::iter::once(0).chain(self.statements.iter().map(|(end, _)| *end));
        starts.zip(&self.statements).map(|(start, (end, expected))| (&self.text[start..*end], *expected))
    }

    /// Replaces the script by that of an operation on tables of `rows` rows.
    pub fn write(&mut self, operation: Operation, rows: u64, random: &mut Random) {
        self.text.clear();
        self.statements.clear();
        match operation {
            Operation::Point => self.push_point(rows, random),
            Operation::Keys(count) => self.push_keys(TABLE, count, rows, random),
            Operation::SinglePartitionKeys(count) => {
                self.push_keys(SINGLE_PARTITION_TABLE, count, data::single_partition_rows(rows), random)
            }
            Operation::Range => self.push_range(["SELECT c", ""], Expected::Rows(RANGE_ROWS), rows, random),
            Operation::Sum(count) => self.push_sum(count, rows, random),
            Operation::FilteredRange => self.push_filtered_range(rows, random),
            Operation::UpdateIndexed => self.push_update_indexed(TABLE, rows, random),
            Operation::UpdateOther => self.push_update_other(TABLE, rows, random),
            Operation::SinglePartitionUpdate => {
                self.push_update_other(SINGLE_PARTITION_TABLE, data::single_partition_rows(rows), random)
            }
            Operation::Transaction => self.push_transaction(rows, random),
        }
    }

    fn end_statement(&mut self, expected: Expected) {
        self.statements.push((self.text.len(), expected));
    }

    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(arguments);
    }

    fn push_point(&mut self, rows: u64, random: &mut Random) {
        self.push(format_args!("SELECT c FROM {TABLE} WHERE id={}", key(rows, random)));
        self.end_statement(Expected::Rows(1));
    }

    /// Distinct keys in scattered order: one from each of `count` equal slices of the table, visited with a
    /// stride.
    fn push_keys(&mut self, table: &str, count: u32, rows: u64, random: &mut Random) {
        let count = u64::from(count).min(rows);
        let slice_rows = rows / count;
        // A stride that is coprime to the number of slices visits every slice.
        let step = (count * 5 / 8..).find(|step| *step > 0 && greatest_common_divisor(*step, count) == 1).unwrap_or(1);
        self.push(format_args!("SELECT id, k, c, pad FROM {table} WHERE id IN ("));
        let mut slice = random.below(count);
        for number in 0..count {
            slice = (slice + step) % count;
            let separator = if number == 0 { "" } else { "," };
            self.push(format_args!("{separator}{}", 1 + slice * slice_rows + random.below(slice_rows)));
        }
        self.text.push(')');
        self.end_statement(Expected::Rows(count));
    }

    fn push_range(&mut self, [columns, tail]: [&str; 2], expected: Expected, rows: u64, random: &mut Random) {
        let first = 1 + random.below(rows - RANGE_ROWS + 1);
        let last = first + RANGE_ROWS - 1;
        self.push(format_args!("{columns} FROM {TABLE} WHERE id BETWEEN {first} AND {last}{tail}"));
        self.end_statement(expected);
    }

    fn push_sum(&mut self, count: u64, rows: u64, random: &mut Random) {
        let count = count.min(rows);
        let first = 1 + random.below(rows - count + 1);
        let last = first + count - 1;
        self.push(format_args!("SELECT SUM(k) FROM {TABLE} WHERE id BETWEEN {first} AND {last}"));
        self.end_statement(Expected::Rows(1));
    }

    /// The filter column holds the row's offset within its range of ids, so each range holds each value once.
    fn push_filtered_range(&mut self, rows: u64, random: &mut Random) {
        let first = 1 + random.below(rows - RANGE_ROWS + 1);
        let (last, value) = (first + RANGE_ROWS - 1, random.below(RANGE_ROWS));
        self.push(format_args!("SELECT c FROM {TABLE} WHERE id BETWEEN {first} AND {last} AND filter_col = {value}"));
        self.end_statement(Expected::Rows(1));
    }

    fn push_update_indexed(&mut self, table: &str, rows: u64, random: &mut Random) {
        self.push(format_args!("UPDATE {table} SET k=k+1 WHERE id={}", key(rows, random)));
        self.end_statement(Expected::Changed(1));
    }

    fn push_update_other(&mut self, table: &str, rows: u64, random: &mut Random) {
        self.push(format_args!("UPDATE {table} SET c='"));
        data::push_groups(&mut self.text, random, 10);
        self.push(format_args!("' WHERE id={}", key(rows, random)));
        self.end_statement(Expected::Changed(1));
    }

    fn push_transaction(&mut self, rows: u64, random: &mut Random) {
        self.text.push_str("BEGIN");
        self.end_statement(Expected::Nothing);
        for _ in 0..TRANSACTION_POINTS {
            self.push_point(rows, random);
        }
        self.push_range(["SELECT c", ""], Expected::Rows(RANGE_ROWS), rows, random);
        self.push_range(["SELECT SUM(k)", ""], Expected::Rows(1), rows, random);
        self.push_range(["SELECT c", " ORDER BY c"], Expected::Rows(RANGE_ROWS), rows, random);
        self.push_range(["SELECT DISTINCT c", " ORDER BY c"], Expected::RowsUpTo(RANGE_ROWS), rows, random);
        self.push_update_indexed(TABLE, rows, random);
        self.push_update_other(TABLE, rows, random);
        let id = key(rows, random);
        self.push(format_args!("DELETE FROM {TABLE} WHERE id={id}"));
        self.end_statement(Expected::Changed(1));
        self.push(format_args!("INSERT INTO {TABLE} {} VALUES ", data::COLUMNS));
        data::push_row(&mut self.text, id, rows, random);
        self.end_statement(Expected::Changed(1));
        self.text.push_str("COMMIT");
        self.end_statement(Expected::Nothing);
    }
}

fn key(rows: u64, random: &mut Random) -> u64 {
    1 + random.below(rows)
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn script(operation: Operation, rows: u64) -> Script {
        let mut script = Script::default();
        script.write(operation, rows, &mut Random::new(3));
        script
    }

    #[test]
    fn the_keys_of_a_list_are_distinct_and_exist_in_the_table() {
        for (count, rows) in [(100, 1000), (100, 100), (10, 12_345), (1, 5), (100, 7)] {
            let script = script(Operation::Keys(count), rows);
            let (text, expected) = script.statements().next().expect("one statement");
            let list = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).expect("a list");
            let keys: BTreeSet<u64> = list.split(',').map(|key| key.parse().expect("a number")).collect();
            assert_eq!(expected, Expected::Rows(keys.len() as u64));
            assert_eq!(keys.len() as u64, u64::from(count).min(rows));
            assert!(keys.iter().all(|key| (1..=rows).contains(key)), "{keys:?}");
        }
    }

    #[test]
    fn a_transaction_has_the_statements_of_sysbench() {
        let script = script(Operation::Transaction, 1000);
        let firsts: Vec<&str> = script.statements().filter_map(|(text, _)| text.split(' ').next()).collect();
        let mut expected = vec!["BEGIN"];
        expected.extend(["SELECT"; 14]);
        expected.extend(["UPDATE", "UPDATE", "DELETE", "INSERT", "COMMIT"]);
        assert_eq!(firsts, expected);
        assert_eq!(script.statements().filter(|(_, expected)| *expected == Expected::Changed(1)).count(), 4);
    }

    #[test]
    fn a_wrong_number_of_rows_does_not_fit() {
        assert!(Expected::Rows(100).fits(100, 0));
        assert!(!Expected::Rows(100).fits(99, 0));
        assert!(Expected::RowsUpTo(100).fits(1, 0));
        assert!(!Expected::RowsUpTo(100).fits(0, 0));
        assert!(!Expected::Changed(1).fits(0, 0));
        assert!(!Expected::Changed(1).fits(1, 1));
        assert!(!Expected::Nothing.fits(0, 1));
    }
}
