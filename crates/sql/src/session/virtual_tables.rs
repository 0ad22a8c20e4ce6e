//! The rows of virtual tables for the statements of a session: from the dictionary, from the engine, and from
//! blocks that report them at execution.

use junctor_expression::Parameters;
use junctor_gateway::threads::Window;
use junctor_model::access::{AccountName, Privilege};
use junctor_model::error::Result;
use junctor_model::id::PartitionId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableDefinition;
use junctor_model::value::{Value, ValueRef};

use super::facts::StatementFacts;
use crate::mysql_catalog::show::{
    CatalogQuery, ShowContext, TableStatistics, ThreadStatus, WantedTables, catalog_query, cpustat_rows,
    cpustat_window, digest_table, has_query, reported_rows, sending_row, status_table, thread_block_rows, thread_rows,
    thread_status_rows, virtual_columns, virtual_fields, virtual_table,
};
use crate::parse::Statement;
use crate::plan::{ComputeSource, NameValue, ShownQuery, VirtualRead, VirtualTables};

impl VirtualTables for StatementFacts<'_, '_> {
    fn columns(&self, database: &str, name: &str) -> Option<Vec<ResultColumn>> {
        Some(virtual_columns(database, name)?.columns)
    }

    fn rows(&self, read: &VirtualRead) -> ComputeSource {
        let (database, name) = (read.source.database, &*read.source.name);
        match (database, name) {
            ("junctor_info", name) => self.rows_of_node(name),
            ("performance_schema", name) if let Some(status) = digest_table(name) => {
                ComputeSource::Status(status, None)
            }
            ("information_schema", name) if name.eq_ignore_ascii_case("CONNECTION_CONTROL_FAILED_LOGIN_ATTEMPTS") => {
                ComputeSource::Rows(self.failed_logins())
            }
            _ => match reported_rows(database, name) {
                Some((status, make)) => ComputeSource::Status(status, make),
                None => ComputeSource::Rows(self.computed_rows(read)),
            },
        }
    }

    fn shown_query(&self, statement: &Statement) -> Result<Option<ShownQuery>> {
        if !has_query(statement) {
            return Ok(None);
        }
        let rights = self.engine.rights_for(self.session);
        self.engine.checker(self.session, &rights, |checker| checker.check(statement))?;
        let query = self.with_show_context(|facts| catalog_query(statement, facts))?;
        Ok(query.map(|CatalogQuery { select, columns, is_of_table }| ShownQuery {
            select,
            columns,
            sees_own_tables: is_of_table,
        }))
    }
}

/// The virtual tables of a definition, which is planned and not executed. It must not wait for statistics
/// that rows would need: the statement would start again when they arrive.
pub(super) struct ColumnsOnly<'f, 'd>(pub &'f StatementFacts<'f, 'd>);

impl VirtualTables for ColumnsOnly<'_, '_> {
    fn columns(&self, database: &str, name: &str) -> Option<Vec<ResultColumn>> {
        self.0.columns(database, name)
    }

    fn rows(&self, _: &VirtualRead) -> ComputeSource {
        ComputeSource::Rows(Vec::new())
    }
}

impl StatementFacts<'_, '_> {
    /// The rows that are computed from the dictionary and the session.
    fn computed_rows(&self, read: &VirtualRead) -> Vec<Vec<Value>> {
        let (database, name) = (read.source.database, &*read.source.name);
        let fields = virtual_fields(database, name).unwrap_or_default();
        let equalities = read.equalities.iter();
        let equalities = equalities.filter_map(|equality| Some((equality.column, self.names_of(&equality.values)?)));
        let wanted = WantedTables::of(fields, &read.columns, equalities).seeing_own_tables(read.sees_own_tables);
        let table = self.with_show_context(|facts| {
            let of_table = |table: &TableDefinition| match wanted.has_statistics() {
                true => (facts.table_statistics)(table),
                false => TableStatistics::default(),
            };
            let of_partition = |partition: PartitionId| match wanted.has_statistics() {
                true => (facts.partition_statistics)(partition),
                false => TableStatistics::default(),
            };
            let facts = ShowContext {
                wanted: &wanted,
                table_statistics: &of_table,
                partition_statistics: &of_partition,
                ..*facts
            };
            virtual_table(database, name, &facts)
        });
        table.map(|table| table.rows).unwrap_or_default()
    }

    /// The names that a column must have; `None` if they are not known.
    fn names_of(&self, values: &[NameValue]) -> Option<Vec<Box<str>>> {
        let parameters = Parameters::from_bytes(&self.engine.work.parameters);
        let mut names = Vec::with_capacity(values.len());
        for value in values {
            let text = match value {
                NameValue::Text(text) => text,
                NameValue::Parameter(number) if usize::from(*number) < parameters.count() => {
                    match parameters.get(*number) {
                        ValueRef::Bytes(text) => text,
                        ValueRef::Null => continue,
                        _ => return None,
                    }
                }
                NameValue::Parameter(_) => return None,
            };
            // Spaces at the end do not count in comparisons, and names have none.
            names.push(std::str::from_utf8(text).ok()?.trim_end_matches(' ').into());
        }
        Some(names)
    }

    /// The rows of a table of `junctor_info`.
    fn rows_of_node(&self, name: &str) -> ComputeSource {
        if let Some(status) = status_table(name) {
            return ComputeSource::Status(status, None);
        }
        if let Some(window) = cpustat_window(name) {
            return ComputeSource::Rows(self.cpustat(window));
        }
        let threads = &self.engine.settings.threads;
        ComputeSource::Rows(match name.to_ascii_lowercase().as_str() {
            "threads" => thread_rows(threads),
            "threadstat" => thread_status_rows(&self.thread_status()),
            "threadblocks" => thread_block_rows(threads),
            "sending" => self.sending(),
            _ => Vec::new(),
        })
    }

    /// The rows of CONNECTION_CONTROL_FAILED_LOGIN_ATTEMPTS, for sessions with PROCESS.
    fn failed_logins(&self) -> Vec<Vec<Value>> {
        let counts = match self.engine.rights_for(self.session).has(Privilege::Process) {
            true => self.engine.settings.usage.failed_logins().counts(),
            false => Vec::new(),
        };
        let row =
            |(name, count): (AccountName, u64)| vec![Value::Bytes(name.to_string().into_bytes()), Value::UInt(count)];
        counts.into_iter().map(row).collect()
    }

    fn cpustat(&self, window: Window) -> Vec<Vec<Value>> {
        let loads = self.turn.loads;
        let rows = |number: usize| {
            let slots = loads.history(number as u16, window).unwrap_or_default();
            cpustat_rows(number as u32, &self.thread_name(number), &slots)
        };
        (0..loads.len()).flat_map(rows).collect()
    }

    fn sending(&self) -> Vec<Vec<Value>> {
        let loads = self.turn.loads;
        let row = |number: usize| {
            let status = loads.sending().thread(number as u16)?;
            Some(sending_row(number as u32, &self.thread_name(number), &status))
        };
        (0..loads.len()).filter_map(row).collect()
    }

    fn thread_name(&self, number: usize) -> Box<str> {
        let known = self.engine.settings.threads.iter().find(|thread| thread.thread as usize == number);
        known.map_or_else(|| format!("thread{number}").into(), |thread| thread.name.clone())
    }

    fn thread_status(&self) -> Vec<ThreadStatus> {
        let loads = self.turn.loads;
        let status = |number: usize| {
            let load = loads.thread(number as u16)?;
            Some(ThreadStatus {
                thread: number as u32,
                name: self.thread_name(number),
                queue_length: load.queue_length,
                spin_ns: load.spin_ns,
                total: load.total,
                windows: [load.moment, load.second, load.twenty_seconds],
            })
        };
        (0..loads.len()).filter_map(status).collect()
    }
}
