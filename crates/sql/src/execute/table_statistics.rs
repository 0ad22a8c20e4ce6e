//! Row counts, sizes and AUTO_INCREMENT numbers of tables for SHOW and `information_schema`. The ldm blocks,
//! main and the sql blocks report them.
//!
//! The session computes the rows of these statements while it plans them. If planning needs statistics that
//! are missing, the statement requests them from these blocks, and then starts again.

use std::cell::RefCell;
use std::sync::Arc;

use junctor_model::id::{PartitionId, TableId};
use junctor_model::schema::{IndexKind, TableDefinition};
use junctor_model::value::Value;
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;

use super::completion::fail;
use super::context::StatementContext;
use super::retry::{RetryInput, RetryState};
use super::state::Execution;
use crate::mysql_catalog::show::{StatisticsSnapshot, TableStatistics};
use crate::result::Progress;

/// The statistics available to the statement that is being planned.
#[derive(Debug, Default)]
pub(crate) struct StatementStatistics {
    /// The reported statistics; `None` before the blocks have reported.
    pub known: Option<Arc<StatisticsSnapshot>>,
    /// The statistics that the statement has used and that are not known.
    missing: RefCell<Missing>,
}

/// Statistics that a statement needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Missing {
    #[default]
    Nothing,
    /// The numbers of the first table, and perhaps of the entries of its unique indexes.
    Of(Box<[TableId]>),
    All,
}

/// A statement that waits for the statistics.
#[derive(Debug)]
pub(crate) struct TableStatisticsState {
    pub operation: OperationId,
    pub input: RetryInput,
    /// The tables that the report is about; empty for all.
    only: Box<[TableId]>,
}

impl StatementStatistics {
    /// Forgets what the previous planning has used.
    pub(crate) fn restart(&self) {
        self.missing.replace(Missing::Nothing);
    }

    /// Whether the statement must wait for statistics before it can be executed.
    pub(crate) fn are_missing(&self) -> bool {
        *self.missing.borrow() != Missing::Nothing
    }

    /// The tables whose statistics the statement needs; empty for all.
    fn needed(&self) -> Box<[TableId]> {
        match &*self.missing.borrow() {
            Missing::Of(tables) => tables.clone(),
            Missing::Nothing | Missing::All => Box::default(),
        }
    }

    /// The statistics of a table, 0 if they are missing.
    pub(crate) fn of_table(&self, table: &TableDefinition) -> TableStatistics {
        let entries = table.indexes.iter().filter_map(|index| match index.kind {
            IndexKind::Unique { entries, .. } => Some(entries),
            _ => None,
        });
        let tables: Vec<TableId> = std::iter::once(table.id).chain(entries).collect();
        self.find(&tables, |statistics| statistics.of_table(table))
    }

    /// The statistics of a partition, 0 if they are missing.
    pub(crate) fn of_partition(&self, partition: PartitionId) -> TableStatistics {
        self.find(&[partition.table], |statistics| statistics.of_partition(partition))
    }

    /// The next number of an AUTO_INCREMENT column, if it is known and above 1.
    pub(crate) fn next_number_of(&self, table: TableId) -> Option<u64> {
        self.find(&[table], |statistics| statistics.next_number_of(table))
    }

    fn find<T: Default>(&self, tables: &[TableId], numbers: impl FnOnce(&StatisticsSnapshot) -> T) -> T {
        match &self.known {
            Some(statistics) if statistics.covers(tables) => numbers(statistics),
            // The second report is about all tables, so that a third one is not needed.
            Some(_) => self.miss(Missing::All),
            None => self.miss(Missing::Of(tables.into())),
        }
    }

    fn miss<T: Default>(&self, missing: Missing) -> T {
        let mut known = self.missing.borrow_mut();
        let before = std::mem::take(&mut *known);
        *known = match (before, missing) {
            (Missing::Nothing, missing) => missing,
            // The numbers of a table, and then also its sizes, with those of its entries.
            (Missing::Of(some), Missing::Of(more)) if some.first() == more.first() => {
                Missing::Of(if more.len() > some.len() { more } else { some })
            }
            _ => Missing::All,
        };
        T::default()
    }
}

/// Requests the statistics for a statement that has not begun, and then starts the statement again.
pub(crate) fn start_table_statistics(context: &mut StatementContext<'_, '_>, input: RetryInput) -> Progress {
    let only = context.engine.table_statistics.needed();
    start_statistics(context, (StatusTable::TableStatistics, only), input)
}

/// Requests the row counts alone, and then starts the statement again. A plan needs no AUTO_INCREMENT
/// numbers.
pub(crate) fn start_row_counts(context: &mut StatementContext<'_, '_>, input: RetryInput) -> Progress {
    start_statistics(context, (StatusTable::MemoryUsage, Box::default()), input)
}

fn start_statistics(
    context: &mut StatementContext<'_, '_>,
    (table, only): (StatusTable, Box<[TableId]>),
    input: RetryInput,
) -> Progress {
    let connection = context.session.connection;
    match context.engine.gateway.read_status(connection, (table, &only), context.turn) {
        Ok(operation) => {
            let state = TableStatisticsState { operation, input, only };
            context.session.execution = Execution::TableStatistics(Box::new(state));
            Progress::Waiting
        }
        Err(error) => {
            input.release(context.turn);
            fail(context, &error)
        }
    }
}

/// Starts the statement again with the reported statistics.
pub(super) fn resume_table_statistics(
    context: &mut StatementContext<'_, '_>,
    state: TableStatisticsState,
    rows: &[Vec<Value>],
) -> Progress {
    let statistics = Arc::new(StatisticsSnapshot::of_rows(rows, &state.only));
    // Plans need the row counts of all tables.
    if state.only.is_empty() {
        context.engine.estimates.set(&statistics, context.turn.turn_start);
    }
    let statistics = Some(statistics);
    let state = RetryState { statistics, ..RetryState::of_input(state.input) };
    context.session.execution = Execution::Retry(Box::new(state));
    Progress::Waiting
}

#[cfg(test)]
mod tests {
    use junctor_model::id::{ColumnNumber, IndexId};
    use junctor_model::schema::IndexDefinition;

    use super::*;

    #[test]
    fn a_statement_about_one_table_asks_for_that_table_alone() {
        let mut statistics = StatementStatistics::default();
        assert!(!statistics.are_missing());
        assert_eq!(statistics.next_number_of(TableId(7)), None);
        assert_eq!(statistics.next_number_of(TableId(7)), None);
        assert!(statistics.are_missing());
        assert_eq!(*statistics.needed(), [TableId(7)]);
        let counter = vec![Value::Null, Value::UInt(7), Value::Null, Value::UInt(78)];
        statistics.known = Some(Arc::new(StatisticsSnapshot::of_rows(&[counter], &[TableId(7)])));
        statistics.restart();
        assert_eq!(statistics.next_number_of(TableId(7)), Some(78));
        assert!(!statistics.are_missing());
        // The table was created again in the meantime. The next report is about all tables.
        assert_eq!(statistics.next_number_of(TableId(8)), None);
        assert!(statistics.are_missing() && statistics.needed().is_empty());
    }

    #[test]
    fn the_sizes_of_a_table_are_those_of_its_entries_too() {
        let unique = IndexKind::Unique { ordered: true, entries: TableId(9) };
        let index = IndexDefinition::new(IndexId(1), "u", unique, vec![ColumnNumber(0)]);
        let table = TableDefinition::new(TableId(7), ("d", "t"), Vec::new(), vec![index]);
        let statistics = StatementStatistics::default();
        statistics.next_number_of(TableId(7));
        statistics.of_table(&table);
        statistics.next_number_of(TableId(7));
        assert_eq!(*statistics.needed(), [TableId(7), TableId(9)]);
    }

    #[test]
    fn a_statement_about_two_tables_asks_for_all() {
        let statistics = StatementStatistics::default();
        statistics.next_number_of(TableId(7));
        statistics.of_partition(PartitionId { table: TableId(8), index: 0 });
        statistics.next_number_of(TableId(7));
        assert!(statistics.are_missing() && statistics.needed().is_empty());
        statistics.restart();
        assert!(!statistics.are_missing());
    }
}
