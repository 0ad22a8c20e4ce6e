//! Results computed from the dictionary, the session and the server: SHOW, DESCRIBE, and the tables of
//! `information_schema`, `performance_schema`, `mysql`, `sys` and `junctor_info`.
//!
//! Every result is a [`VirtualTable`]: columns with MySQL 8's names and types, and rows of values. The rows
//! of some `junctor_info` tables are known only to blocks of the data plane. For these tables, this folder
//! declares the columns, and the session collects the rows from the blocks.

mod answer;
mod column_rows;
mod column_statistics;
mod create_text;
mod extension_rows;
mod fact;
mod grant_rows;
mod information_schema;
mod innodb_layout;
mod junctor_info;
mod layout;
mod log_rows;
mod mysql_schema;
mod mysql_tables;
mod performance_layout;
mod performance_schema;
mod privilege_rows;
mod replication_layout;
mod reported_rows;
mod schema_layout;
mod sending_rows;
mod server_rows;
mod shown_layout;
mod shown_query;
mod statistics_snapshot;
mod sys_schema;
mod table_rows;
mod thread_rows;
mod type_text;
mod virtual_schema;
mod wanted_tables;

#[cfg(test)]
mod tests;

pub use answer::{show, virtual_column_names, virtual_columns, virtual_fields, virtual_table, virtual_table_names};
pub use create_text::{column_text, create_database_text, create_table_text};
pub use fact::{ShowContext, TableStatistics, Warning, WarningLevel};
pub use grant_rows::generated_passwords;
pub use junctor_info::{ThreadFacts, ThreadStatus, status_columns, status_table, thread_rows, thread_status_rows};
pub use layout::{Field, FieldKind, VirtualTable};
pub use performance_schema::{SUMMARY_BY_DIGEST, digest_table};
pub use reported_rows::reported_rows;
pub use sending_rows::sending_row;
pub use shown_query::{CatalogQuery, catalog_query, has_query};
pub use statistics_snapshot::StatisticsSnapshot;
pub use thread_rows::{cpustat_rows, cpustat_window, thread_block_rows};
pub use type_text::column_type_text;
pub use wanted_tables::WantedTables;
