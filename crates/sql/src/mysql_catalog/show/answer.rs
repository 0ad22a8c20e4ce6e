//! Dispatches SHOW and reads of virtual tables to the functions that compute their rows.

use junctor_model::error::{Error, ErrorCode, Result};

use super::fact::ShowContext;
use super::layout::{Field, VirtualTable, bytes, long, text, unsigned};
use super::virtual_schema::{computed_fields, schema_named};
use super::{create_text, grant_rows, server_rows, table_rows};
use crate::parse::statement::Show;

/// The result of a SHOW statement that no query of a virtual table answers.
///
/// # Errors
/// 1046, 1049 and 1146 for a missing database or table, 1235 for an unsupported form.
pub fn show(show: &Show, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    Ok(match show {
        Show::Maintenance { kind, tables } => table_rows::maintain(*kind, tables, facts)?,
        Show::CreateTable(name) => table_rows::show_create_table(name, facts)?,
        Show::CreateView(name) => table_rows::show_create_view(name, facts)?,
        Show::CreateDatabase { if_not_exists, name } => table_rows::show_create_database(name, *if_not_exists, facts)?,
        Show::Warnings { limit } => server_rows::show_warnings(false, *limit, facts)?,
        Show::Errors { limit } => server_rows::show_warnings(true, *limit, facts)?,
        Show::WarningCount => server_rows::show_warning_count(false, facts),
        Show::ErrorCount => server_rows::show_warning_count(true, facts),
        Show::EngineStatus { engine }
            if engine.as_deref().is_none_or(|engine| engine.eq_ignore_ascii_case(create_text::ENGINE)) =>
        {
            VirtualTable::of_show(ENGINE_STATUS, vec![[create_text::ENGINE, "", ENGINE_STATUS_TEXT].map(bytes).into()])
        }
        // For features that Junctor lacks, the result has MySQL's columns and no rows, because monitoring
        // tools query them.
        Show::EngineStatus { .. } | Show::EngineMutex => empty(ENGINE_STATUS),
        Show::Privileges => grant_rows::show_privileges(),
        Show::Grants { account, using } => grant_rows::show_grants(account, using, facts)?,
        Show::CreateUser(account) => grant_rows::show_create_user(account, facts)?,
        Show::MasterStatus => empty(MASTER_STATUS),
        Show::ReplicaStatus => empty(REPLICA_STATUS),
        Show::BinaryLogs => empty(BINARY_LOGS),
        _ => return Err(Error::not_supported("this SHOW here")),
    })
}

/// The table `name` of a system database with its rows, ignoring case; `None` for other databases and unknown
/// names. The session adds the rows that it alone knows, or that blocks report.
pub fn virtual_table(database: &str, name: &str, facts: &ShowContext<'_>) -> Option<VirtualTable> {
    schema_named(database)?.table(name, facts)
}

/// A virtual table without rows, ignoring case; `None` for other tables.
pub fn virtual_columns(database: &str, name: &str) -> Option<VirtualTable> {
    let schema = schema_named(database)?;
    Some(VirtualTable::new(schema.name, schema.name_of(name)?, schema.fields(name)?))
}

/// The fields of a virtual table, ignoring case; `None` for other tables.
pub fn virtual_fields(database: &str, name: &str) -> Option<&'static [Field]> {
    computed_fields(database, name)
}

/// The names of the columns of a virtual table; `None` for others.
pub fn virtual_column_names(database: &str, table: &str) -> Option<Vec<Box<str>>> {
    Some(computed_fields(database, table)?.iter().map(|field| field.name.into()).collect())
}

/// The names of a system database's virtual tables, sorted; `None` for other databases.
pub fn virtual_table_names(database: &str) -> Option<Vec<&'static str>> {
    Some(schema_named(database)?.names())
}

pub(super) fn unknown_table(name: &str, database: &str) -> Box<Error> {
    let text = format!("Unknown table '{}' in {}", name.to_ascii_uppercase(), database.to_ascii_lowercase());
    Error::new(ErrorCode::UnknownTableInStatement, text)
}

fn empty(fields: &[Field]) -> VirtualTable {
    VirtualTable::of_show(fields, Vec::new())
}

const ENGINE_STATUS: &[Field] = &[text("Type", 10), text("Name", 512), text("Status", 10)];
const ENGINE_STATUS_TEXT: &str = "The database junctor_info has the status of Junctor as tables";
const MASTER_STATUS: &[Field] = &[
    text("File", 255),
    unsigned("Position"),
    text("Binlog_Do_DB", 255),
    text("Binlog_Ignore_DB", 255),
    long("Executed_Gtid_Set"),
];
const BINARY_LOGS: &[Field] = &[text("Log_name", 255), unsigned("File_size"), text("Encrypted", 3)];
const REPLICA_STATUS: &[Field] = &[
    text("Replica_IO_State", 14),
    text("Source_Host", 60),
    text("Source_User", 32),
    unsigned("Source_Port"),
    unsigned("Connect_Retry"),
    text("Source_Log_File", 512),
    unsigned("Read_Source_Log_Pos"),
    text("Replica_IO_Running", 3),
    text("Replica_SQL_Running", 3),
    unsigned("Last_Errno"),
    text("Last_Error", 20),
    unsigned("Seconds_Behind_Source").or_null(),
];
