//! Row counts and sizes of tables, as the ldm blocks that own the partitions report them, and the next
//! numbers of AUTO_INCREMENT counters, as main and the sql blocks report them.

use std::collections::BTreeMap;

use junctor_model::id::{PartitionId, TableId};
use junctor_model::schema::{IndexKind, TableDefinition};
use junctor_model::value::Value;

use super::fact::TableStatistics;

/// Statistics of every partition of the node, and its AUTO_INCREMENT counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticsSnapshot {
    /// The tables that the report is about; empty for all.
    only: Box<[TableId]>,
    partitions: BTreeMap<PartitionId, TableStatistics>,
    /// The next numbers above 1.
    counters: BTreeMap<TableId, u64>,
    /// The ranges of numbers that sql blocks hold: the first number by the table and the end.
    held: BTreeMap<(TableId, u64), u64>,
}

impl StatisticsSnapshot {
    /// The statistics in the rows of `StatusTable::TableStatistics`, or of `MemoryUsage`, which has no
    /// counters. `only` has the tables that the report is about; it is empty for all.
    pub fn of_rows(rows: &[Vec<Value>], only: &[TableId]) -> StatisticsSnapshot {
        let mut snapshot = StatisticsSnapshot { only: only.into(), ..StatisticsSnapshot::default() };
        for row in rows {
            let number = |at: usize| match row.get(at) {
                Some(Value::UInt(number)) => *number,
                _ => 0,
            };
            // Counters and ranges have no partition, and counters no end.
            if matches!(row.get(2), Some(Value::Null)) {
                let table = TableId(number(1) as u32);
                match row.len() {
                    0..=4 => snapshot.counters.insert(table, number(3)),
                    _ => snapshot.held.insert((table, number(4)), number(3)),
                };
                continue;
            }
            let id = PartitionId { table: TableId(number(1) as u32), index: number(2) as u16 };
            let numbers = TableStatistics {
                rows: number(3),
                data_bytes: number(6) + number(7) + number(8),
                index_bytes: number(9) + number(10),
                auto_increment: None,
            };
            snapshot.partitions.insert(id, numbers);
        }
        snapshot
    }

    /// Whether the report is about all of these tables.
    pub fn covers(&self, tables: &[TableId]) -> bool {
        self.only.is_empty() || tables.iter().all(|table| self.only.contains(table))
    }

    /// The next number of an AUTO_INCREMENT column, if it is above 1: from it on, no number is in use.
    pub fn next_number_of(&self, table: TableId) -> Option<u64> {
        let mut next = self.counters.get(&table).copied()?;
        // Main has handed out the ranges in order, so the newest one ends at the counter.
        while let Some(first) = self.held.get(&(table, next)).filter(|first| **first < next) {
            next = *first;
        }
        Some(next).filter(|next| *next > 1)
    }

    /// The statistics of one partition; 0 if it is unknown.
    pub fn of_partition(&self, partition: PartitionId) -> TableStatistics {
        self.partitions.get(&partition).copied().unwrap_or_default()
    }

    /// The sums over the partitions of a table. The hidden tables of its unique keys count as indexes.
    pub fn of_table(&self, table: &TableDefinition) -> TableStatistics {
        let mut numbers = TableStatistics { auto_increment: self.next_number_of(table.id), ..self.sum(table.id) };
        for index in &table.indexes {
            if let IndexKind::Unique { entries, .. } = index.kind {
                let hidden = self.sum(entries);
                numbers.index_bytes += hidden.data_bytes + hidden.index_bytes;
            }
        }
        numbers
    }

    fn sum(&self, table: TableId) -> TableStatistics {
        let first = PartitionId { table, index: 0 };
        let last = PartitionId { table, index: u16::MAX };
        let mut sum = TableStatistics::default();
        for numbers in self.partitions.range(first..=last).map(|(_, numbers)| numbers) {
            sum.rows += numbers.rows;
            sum.data_bytes += numbers.data_bytes;
            sum.index_bytes += numbers.index_bytes;
        }
        sum
    }
}
