//! Row counts and sizes of tables, as the ldm blocks that own the partitions report them.

use std::collections::BTreeMap;

use junctor_model::id::{PartitionId, TableId};
use junctor_model::schema::{IndexKind, TableDefinition};
use junctor_model::value::Value;

use super::fact::TableStatistics;

/// Statistics of every partition of the node at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatisticsSnapshot {
    partitions: BTreeMap<PartitionId, TableStatistics>,
}

impl StatisticsSnapshot {
    /// The statistics in the rows of `StatusTable::MemoryUsage`.
    pub fn of_rows(rows: &[Vec<Value>]) -> StatisticsSnapshot {
        let partitions = rows.iter().map(|row| {
            let number = |at: usize| match row.get(at) {
                Some(Value::UInt(number)) => *number,
                _ => 0,
            };
            let id = PartitionId { table: TableId(number(1) as u32), index: number(2) as u16 };
            let numbers = TableStatistics {
                rows: number(3),
                data_bytes: number(6) + number(7) + number(8),
                index_bytes: number(9) + number(10),
                auto_increment: None,
            };
            (id, numbers)
        });
        StatisticsSnapshot { partitions: partitions.collect() }
    }

    /// The statistics of one partition; 0 if it is unknown.
    pub fn of_partition(&self, partition: PartitionId) -> TableStatistics {
        self.partitions.get(&partition).copied().unwrap_or_default()
    }

    /// The sums over the partitions of a table. The hidden tables of its unique keys count as indexes.
    pub fn of_table(&self, table: &TableDefinition) -> TableStatistics {
        let mut numbers = self.sum(table.id);
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
