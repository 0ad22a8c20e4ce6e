//! Row counts, sizes and AUTO_INCREMENT numbers of tables for SHOW and `information_schema`. The ldm blocks,
//! main and the sql blocks report them.
//!
//! The session computes the rows of these statements while it plans them. If planning needs statistics that
//! are missing, the statement requests them from these blocks, and then starts again.

use std::cell::Cell;
use std::sync::Arc;

use junctor_model::id::{PartitionId, TableId};
use junctor_model::schema::TableDefinition;
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
    /// Whether the statement has used a statistic that is not known.
    is_missing: Cell<bool>,
}

/// A statement that waits for the statistics.
#[derive(Debug)]
pub(crate) struct TableStatisticsState {
    pub operation: OperationId,
    pub input: RetryInput,
}

impl StatementStatistics {
    /// Forgets what the previous planning has used.
    pub(crate) fn restart(&self) {
        self.is_missing.set(false);
    }

    /// Whether the statement must wait for statistics before it can be executed.
    pub(crate) fn are_missing(&self) -> bool {
        self.is_missing.get()
    }

    /// The statistics of a table, 0 if they are missing.
    pub(crate) fn of_table(&self, table: &TableDefinition) -> TableStatistics {
        self.find(|statistics| statistics.of_table(table))
    }

    /// The statistics of a partition, 0 if they are missing.
    pub(crate) fn of_partition(&self, partition: PartitionId) -> TableStatistics {
        self.find(|statistics| statistics.of_partition(partition))
    }

    /// The next number of an AUTO_INCREMENT column, if it is known and above 1.
    pub(crate) fn next_number_of(&self, table: TableId) -> Option<u64> {
        self.find(|statistics| statistics.next_number_of(table))
    }

    fn find<T: Default>(&self, numbers: impl FnOnce(&StatisticsSnapshot) -> T) -> T {
        match &self.known {
            Some(statistics) => numbers(statistics),
            None => {
                self.is_missing.set(true);
                T::default()
            }
        }
    }
}

/// Requests the statistics for a statement that has not begun, and then starts the statement again.
pub(crate) fn start_table_statistics(context: &mut StatementContext<'_, '_>, input: RetryInput) -> Progress {
    start_statistics(context, StatusTable::TableStatistics, input)
}

/// Requests the row counts alone, and then starts the statement again. A plan needs no AUTO_INCREMENT
/// numbers.
pub(crate) fn start_row_counts(context: &mut StatementContext<'_, '_>, input: RetryInput) -> Progress {
    start_statistics(context, StatusTable::MemoryUsage, input)
}

fn start_statistics(context: &mut StatementContext<'_, '_>, table: StatusTable, input: RetryInput) -> Progress {
    let connection = context.session.connection;
    match context.engine.gateway.read_status(connection, table, context.turn) {
        Ok(operation) => {
            context.session.execution = Execution::TableStatistics(Box::new(TableStatisticsState { operation, input }));
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
    let statistics = Arc::new(StatisticsSnapshot::of_rows(rows));
    context.engine.estimates.set(&statistics, context.turn.turn_start);
    let statistics = Some(statistics);
    let state = RetryState { input: state.input, lock_results: None, statistics };
    context.session.execution = Execution::Retry(Box::new(state));
    Progress::Waiting
}
