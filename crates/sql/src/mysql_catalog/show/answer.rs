//! Dispatches SHOW, DESCRIBE and reads of virtual tables to the functions that compute their rows.

use junctor_model::error::{Error, ErrorCode, Result};

use super::fact::ShowContext;
use super::filter::{Condition, apply_filter, is_like, keep_where};
use super::layout::{Field, VirtualTable, bytes, long, number, text, unsigned};
use super::virtual_schema::{computed_fields, schema_named};
use super::{column_rows, create_text, grant_rows, server_rows, table_rows};
use crate::parse::expression::VariableScope;
use crate::parse::statement::{Describe, ObjectName, Show, ShowFilter};

/// The result of SHOW.
///
/// # Errors
/// 1046, 1049 and 1146 for a missing database or table, the errors of `condition` for WHERE, 1235 for an
/// unsupported form.
pub fn show(show: &Show, facts: &ShowContext<'_>, condition: &mut Condition<'_>) -> Result<VirtualTable> {
    let (mut table, filter) = unfiltered(show, facts)?;
    apply_filter(&mut table, filter, condition)?;
    if let Show::Index { filter: Some(expression), .. } = show {
        keep_where(&mut table, expression, condition)?;
    }
    Ok(table)
}

fn unfiltered<'s>(show: &'s Show, facts: &ShowContext<'_>) -> Result<(VirtualTable, Option<&'s ShowFilter>)> {
    let table = match show {
        Show::Databases { filter } => return Ok((table_rows::show_databases(facts, filter.as_ref()), filter.as_ref())),
        Show::Tables { full, database, filter } => {
            let table = table_rows::show_tables(facts, *full, database.as_deref(), filter.as_ref())?;
            return Ok((table, filter.as_ref()));
        }
        Show::TableStatus { database, filter } => {
            return Ok((table_rows::show_table_status(facts, database.as_deref())?, filter.as_ref()));
        }
        Show::Columns { full, table, filter } => return Ok((columns_of(table, *full, facts)?, filter.as_ref())),
        Show::Variables { scope, filter } => {
            let only_global = *scope != VariableScope::Session;
            return Ok((server_rows::show_variables(only_global, facts), filter.as_ref()));
        }
        Show::Status { filter, .. } => return Ok((server_rows::show_status(facts), filter.as_ref())),
        Show::CharacterSet { filter } => return Ok((server_rows::show_character_set(), filter.as_ref())),
        Show::Collation { filter } => return Ok((server_rows::show_collation(), filter.as_ref())),
        Show::OpenTables { filter, .. } => return Ok((empty(OPEN_TABLES), filter.as_ref())),
        Show::Triggers { filter, .. } => return Ok((empty(TRIGGERS), filter.as_ref())),
        Show::Events { filter, .. } => return Ok((empty(EVENTS), filter.as_ref())),
        Show::ProcedureStatus { filter } | Show::FunctionStatus { filter } => {
            return Ok((empty(ROUTINES), filter.as_ref()));
        }
        Show::Histogram(..) => return Err(Error::not_supported("ANALYZE TABLE here")),
        Show::Maintenance { kind, tables } => table_rows::maintain(*kind, tables, facts)?,
        Show::Index { table, .. } => table_rows::show_index_of(table, facts)?,
        Show::CreateTable(name) => table_rows::show_create_table(name, facts)?,
        Show::CreateView(name) => table_rows::show_create_view(name, facts)?,
        Show::CreateDatabase { if_not_exists, name } => table_rows::show_create_database(name, *if_not_exists, facts)?,
        Show::Warnings { limit } => server_rows::show_warnings(false, *limit, facts)?,
        Show::Errors { limit } => server_rows::show_warnings(true, *limit, facts)?,
        Show::WarningCount => server_rows::show_warning_count(false, facts),
        Show::ErrorCount => server_rows::show_warning_count(true, facts),
        Show::Engines => server_rows::show_engines(),
        Show::EngineStatus { engine }
            if engine.as_deref().is_none_or(|engine| engine.eq_ignore_ascii_case(create_text::ENGINE)) =>
        {
            VirtualTable::of_show(ENGINE_STATUS, vec![[create_text::ENGINE, "", ENGINE_STATUS_TEXT].map(bytes).into()])
        }
        // For features that Junctor lacks, the result has MySQL's columns and no rows, because monitoring
        // tools query them.
        Show::EngineStatus { .. } | Show::EngineMutex => empty(ENGINE_STATUS),
        Show::Checksum { .. } => return Err(Error::not_supported("CHECKSUM TABLE here")),
        Show::ProcessList { .. } => return Err(Error::not_supported("SHOW PROCESSLIST here")),
        Show::Plugins => server_rows::show_plugins(),
        Show::Privileges => grant_rows::show_privileges(),
        Show::Grants { account, using } => grant_rows::show_grants(account, using, facts)?,
        Show::CreateUser(account) => grant_rows::show_create_user(account, facts)?,
        Show::MasterStatus => empty(MASTER_STATUS),
        Show::ReplicaStatus => empty(REPLICA_STATUS),
        Show::BinaryLogs => empty(BINARY_LOGS),
    };
    Ok((table, None))
}

/// The result of DESCRIBE.
///
/// # Errors
/// 1046, 1049 and 1146 for a missing database or table, 1109 for a missing virtual table.
pub fn describe(describe: &Describe, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let mut table = columns_of(&describe.table, false, facts)?;
    if let Some(pattern) = &describe.column {
        table.rows.retain(|row| {
            matches!(row.first(), Some(junctor_model::value::Value::Bytes(name)) if is_like(name, pattern.as_bytes()))
        });
    }
    Ok(table)
}

fn columns_of(name: &ObjectName, full: bool, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let database = table_rows::database_or_current(name.database.as_deref(), facts)?;
    if let Some(fields) = computed_fields(database, &name.name) {
        return Ok(column_rows::of_fields(fields, full));
    }
    if crate::mysql_catalog::is_system_database(database) {
        return Err(unknown_table(&name.name, database));
    }
    Ok(column_rows::of_table(&table_rows::table_of(name, facts)?.definition, full, facts.rights))
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

fn unknown_table(name: &str, database: &str) -> Box<Error> {
    let text = format!("Unknown table '{}' in {}", name.to_ascii_uppercase(), database.to_ascii_lowercase());
    Error::new(ErrorCode::UnknownTableInStatement, text)
}

fn empty(fields: &[Field]) -> VirtualTable {
    VirtualTable::of_show(fields, Vec::new())
}

const OPEN_TABLES: &[Field] = &[text("Database", 64), text("Table", 64), number("In_use"), number("Name_locked")];
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
const TRIGGERS: &[Field] = &[
    text("Trigger", 64),
    text("Event", 6),
    text("Table", 64),
    long("Statement"),
    text("Timing", 6),
    text("Created", 22),
    text("sql_mode", 512),
    text("Definer", 288),
    text("character_set_client", 64),
    text("collation_connection", 64),
    text("Database Collation", 64),
];
const EVENTS: &[Field] = &[
    text("Db", 64),
    text("Name", 64),
    text("Definer", 288),
    text("Time zone", 64),
    text("Type", 9),
    text("Execute at", 19).or_null(),
    text("Interval value", 256).or_null(),
    text("Interval field", 18).or_null(),
    text("Starts", 19).or_null(),
    text("Ends", 19).or_null(),
    text("Status", 21),
    unsigned("Originator"),
    text("character_set_client", 64),
    text("collation_connection", 64),
    text("Database Collation", 64),
];
const ROUTINES: &[Field] = &[
    text("Db", 64),
    text("Name", 64),
    text("Type", 9),
    text("Definer", 288),
    text("Modified", 19),
    text("Created", 19),
    text("Security_type", 7),
    text("Comment", 1024),
    text("character_set_client", 64),
    text("collation_connection", 64),
    text("Database Collation", 64),
];
