//! The row counts of tables from which the order of joins is planned.
//!
//! The ldm blocks report them when a query of several tables starts and the last report is older than
//! [`REPORT_AGE_MAX_NS`]. A plan is made again when the rows of one of its tables have become four times as
//! many, or a quarter, and when ANALYZE TABLE has sampled one of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use junctor_gateway::threads::Time;
use junctor_model::schema::TableDefinition;

use crate::mysql_catalog::show::StatisticsSnapshot;
use crate::plan::TreePlan;
use crate::plan::tree::TreeTable;
use crate::statistics::StatisticsBook;

/// Age in nanoseconds from which on a report is renewed before it is used.
const REPORT_AGE_MAX_NS: u64 = 1_000_000_000;
/// Factor by which the rows of a table may change before a plan is made again.
const CHANGE_MAX: u64 = 4;
/// Number of rows below which all numbers are the same for a plan.
const ROWS_MIN: u64 = 64;

/// The last report.
#[derive(Debug, Default)]
pub(crate) struct TableEstimates {
    known: Option<Arc<StatisticsSnapshot>>,
    reported: Time,
}

impl TableEstimates {
    /// The rows of a table; `None` before the first report.
    pub fn rows(&self, table: &TableDefinition) -> Option<u64> {
        self.known.as_ref().map(|known| known.of_table(table).rows)
    }

    /// Takes a report.
    pub fn set(&mut self, report: &Arc<StatisticsSnapshot>, now: Time) {
        self.known = Some(Arc::clone(report));
        self.reported = now;
    }

    /// Whether a report is due.
    pub fn is_old(&self, now: Time) -> bool {
        self.known.is_none() || now.since(self.reported).0 > REPORT_AGE_MAX_NS
    }

    /// Whether a plan was made for other numbers of rows, or with other statistics.
    pub fn has_outgrown(&self, plan: &TreePlan, statistics: &StatisticsBook) -> bool {
        let is_same = |table: &TreeTable| match (&table.profile, statistics.profile(&table.layout.definition)) {
            (Some(then), Some(now)) => Arc::ptr_eq(then, &now),
            (then, now) => then.is_none() && now.is_none(),
        };
        let version = statistics.version();
        if plan.statistics_version.load(Ordering::Relaxed) != version {
            if !plan.tables.iter().all(is_same) {
                return true;
            }
            plan.statistics_version.store(version, Ordering::Relaxed);
        }
        plan.tables.iter().any(|table| {
            let now = self.rows(&table.layout.definition).unwrap_or(0).max(ROWS_MIN);
            match table.rows {
                Some(rows) => {
                    let then = rows.max(ROWS_MIN);
                    now / then >= CHANGE_MAX || then / now >= CHANGE_MAX
                }
                None => true,
            }
        })
    }
}
