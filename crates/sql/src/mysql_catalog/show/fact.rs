//! The inputs of SHOW and of virtual tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_model::access::Rights;
use junctor_model::id::{ColumnNumber, PartitionId, TableId, TableOwner};
use junctor_model::schema::{Dictionary, TableDefinition};
use junctor_signals::journal::Journal;

use super::wanted_tables::WantedTables;
use crate::mysql_catalog::variable::SessionContext;
use crate::statistics::{RequestedHistogram, TableProfile};

/// Statistics of a table, which change while its definition stays the same. An unknown figure is 0 or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStatistics {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of memory for the rows.
    pub data_bytes: u64,
    /// Bytes of memory for the indexes.
    pub index_bytes: u64,
    /// Next AUTO_INCREMENT value.
    pub auto_increment: Option<u64>,
}

/// Severity of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WarningLevel {
    Note,
    Warning,
    Error,
}

/// A note, warning or error of a statement, as SHOW WARNINGS lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Severity.
    pub level: WarningLevel,
    /// MySQL's error number.
    pub code: u16,
    /// MySQL's message text.
    pub message: Box<str>,
}

impl WarningLevel {
    /// The level as SHOW WARNINGS prints it.
    pub fn name(self) -> &'static str {
        match self {
            WarningLevel::Note => "Note",
            WarningLevel::Warning => "Warning",
            WarningLevel::Error => "Error",
        }
    }
}

/// All inputs of SHOW and of virtual tables.
#[derive(Clone, Copy)]
pub struct ShowContext<'a> {
    /// All tables and databases.
    pub dictionary: &'a Dictionary,
    /// The session, if it may have temporary tables.
    pub owner: Option<TableOwner>,
    /// The tables that a query of a virtual table is about. Providers need not return rows of others.
    pub wanted: &'a WantedTables,
    /// The rights of the session.
    pub rights: &'a Rights,
    /// `'user'@'host'` of the session, for errors.
    pub who: &'a str,
    /// The properties of the session, with its variables.
    pub session: &'a SessionContext<'a>,
    /// Returns the current statistics of a table.
    pub table_statistics: &'a dyn Fn(&TableDefinition) -> TableStatistics,
    /// Returns what is known about the values in a table.
    pub profile: &'a dyn Fn(&TableDefinition) -> Option<Arc<TableProfile>>,
    /// Returns the histograms of a table that UPDATE HISTOGRAM has made.
    pub histograms: &'a dyn Fn(&TableDefinition) -> BTreeMap<ColumnNumber, Arc<RequestedHistogram>>,
    /// Returns the current statistics of a partition, without an AUTO_INCREMENT value.
    pub partition_statistics: &'a dyn Fn(PartitionId) -> TableStatistics,
    /// Returns the next AUTO_INCREMENT value of a table, without its other statistics.
    pub next_auto_increment: &'a dyn Fn(TableId) -> Option<u64>,
    /// Keeps the entries of the log tables.
    pub journal: &'a Journal,
    /// Counters of SHOW STATUS, as (name, value).
    pub status: &'a [(&'a str, String)],
    /// Diagnostics of the last statement, in their order.
    pub warnings: &'a [Warning],
}
