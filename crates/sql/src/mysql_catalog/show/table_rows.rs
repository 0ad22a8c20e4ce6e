//! Rows of databases, tables and indexes, and SHOW CREATE of them.

use junctor_model::access::Privilege;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::{ColumnDefinition, IndexState, TableDefinition, TableLayout, ViewDefinition};
use junctor_model::table_options::KeptOption;
use junctor_model::temporal::{TemporalKind, Zone};
use junctor_model::value::Value;
use std::sync::Arc;

use super::create_text::{ENGINE, create_database_text, create_table_text, create_view_text};
use super::fact::{ShowContext, TableStatistics};
use super::information_schema::CATALOG;
use super::layout::{Field, VirtualTable, bytes, count, long, text, yes_no};
use super::type_text::{escaped, visible_indexes};
use super::virtual_schema::computed_fields;
use crate::mysql_catalog::is_open_database;
use crate::parse::statement::{ObjectName, TableMaintenance};

/// The names of the system databases and of the dictionary's databases that the session may see, sorted.
pub(super) fn database_names(facts: &ShowContext<'_>) -> Vec<String> {
    let own = facts.dictionary.databases().map(|database| database.name.to_string());
    let mut names: Vec<String> =
        crate::mysql_catalog::SYSTEM_DATABASES.map(str::to_owned).into_iter().chain(own).collect();
    if !facts.rights.has(Privilege::ShowDatabases) {
        names.retain(|name| is_open_database(name) || facts.rights.can_see_database(name));
    }
    names.sort();
    // Users may have created a database before the system had one of the same name.
    names.dedup();
    names
}

/// The rows of a table in `information_schema.STATISTICS`.
pub(super) fn index_rows(table: &TableDefinition, facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows_of_table = (facts.table_statistics)(table).rows.min(i64::MAX as u64) as i64;
    let profile = (facts.profile)(table);
    let sampled = |columns: &[ColumnNumber]| {
        let distinct = profile.as_ref()?.distinct(columns, rows_of_table as f64)?;
        Some(Value::Int(distinct.round() as i64))
    };
    let mut rows = Vec::new();
    for index in visible_indexes(table) {
        for (position, part) in index.columns.iter().enumerate() {
            let column = &table.columns[usize::from(part.0)];
            let prefix = column.key_prefix();
            // The cardinality of a complete unique key is known without a sample: one value for each row.
            let is_whole_key = index.is_unique() && position + 1 == index.columns.len();
            rows.push(vec![
                bytes(CATALOG),
                bytes(&table.database),
                bytes(&table.name),
                Value::Int(i64::from(!index.is_unique())),
                bytes(&table.database),
                bytes(&index.name),
                count(position + 1),
                match column.key_expression() {
                    Some(_) => Value::Null,
                    None => bytes(prefix.map_or(&*column.name, |prefix| prefix.column)),
                },
                match index.attributes.descending.contains(part) {
                    _ if !index.is_ordered() => Value::Null,
                    true => bytes("D"),
                    false => bytes("A"),
                },
                match is_whole_key {
                    true => Value::Int(rows_of_table),
                    false => sampled(&index.columns[..=position]).unwrap_or(Value::Null),
                },
                prefix.map_or(Value::Null, |prefix| Value::Int(prefix.length.into())),
                Value::Null,
                bytes(if column.nullable { "YES" } else { "" }),
                bytes(if index.is_ordered() { "BTREE" } else { "HASH" }),
                bytes(if index.state == IndexState::Building { "disabled" } else { "" }),
                bytes(&index.attributes.comment),
                yes_no(!index.attributes.invisible),
                column.key_expression().map_or(Value::Null, |text| bytes(escaped(text))),
            ]);
        }
    }
    rows
}

/// TABLE_TYPE of a stored table or view.
pub(super) fn type_of(table: &TableDefinition) -> &'static str {
    if table.view.is_some() { "VIEW" } else { "BASE TABLE" }
}

/// The values from ENGINE to CHECK_TIME of `information_schema.TABLES`. A figure that Junctor does not
/// keep is 0 or NULL.
pub(super) fn storage_values(table: &TableDefinition, statistics: &TableStatistics) -> Vec<Value> {
    let has_counter = table.columns.iter().any(|column| column.auto_increment && !column.hidden);
    let next = if has_counter { statistics.auto_increment } else { None };
    vec![
        bytes(ENGINE),
        Value::Int(10),
        bytes("Dynamic"),
        Value::UInt(statistics.rows),
        Value::UInt(statistics.data_bytes.checked_div(statistics.rows).unwrap_or(0)),
        Value::UInt(statistics.data_bytes),
        Value::UInt(0),
        Value::UInt(statistics.index_bytes),
        Value::UInt(0),
        next.map_or(Value::Null, Value::UInt),
        Value::Null,
        Value::Null,
        Value::Null,
    ]
}

/// The options in MySQL's mixture of cases.
pub(super) fn create_options(table: &TableDefinition) -> String {
    let text = |(option, value): (KeptOption, String)| match option {
        KeptOption::KeyBlockSize => format!("{}={value}", option.name()),
        KeptOption::Compression => format!("{}={}", option.name(), value.replace('\'', "\"")),
        _ => format!("{}={value}", option.name().to_ascii_lowercase()),
    };
    let partitioned = table.has_partition_clause.then(|| "partitioned".to_owned());
    table.options.texts().map(text).chain(partitioned).collect::<Vec<_>>().join(" ")
}

pub(super) fn show_create_table(name: &ObjectName, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let table = &table_of(name, facts)?.definition;
    if let Some(view) = &table.view {
        let needed = [Privilege::Select, Privilege::ShowView];
        if let Some(lacking) = needed.into_iter().find(|it| !sees_definition(table, *it, facts)) {
            let name = lacking.name();
            let text = format!("{name} command denied to user {} for table '{}'", facts.who, table.name);
            return Err(Error::new(ErrorCode::TableAccessDenied, text));
        }
        return Ok(create_view_rows(table, view));
    }
    // Other tables need no statistics, for which the statement would wait.
    let counted = table.auto_increment_column().filter(|column| !table.columns[usize::from(column.0)].hidden);
    let next = counted.and_then(|_| (facts.next_auto_increment)(table.id));
    let shown = with_local_defaults(table, facts.session.variables.value_rules().zone());
    let statement = create_table_text(shown.as_ref().unwrap_or(table), next);
    let row = vec![bytes(&table.name), Value::Bytes(statement)];
    Ok(VirtualTable::of_show(&[text("Table", 64), long("Create Table")], vec![row]))
}

/// The table with the defaults of TIMESTAMP columns in a time zone; `None` if it has none.
fn with_local_defaults(table: &TableDefinition, zone: Zone) -> Option<TableDefinition> {
    let local = |column: &ColumnDefinition| match column.default {
        Some(Value::Temporal(instant)) if instant.kind == TemporalKind::Timestamp => {
            Some(Value::Temporal(zone.date_time_of(instant)))
        }
        _ => None,
    };
    table.columns.iter().any(|column| local(column).is_some()).then(|| {
        let mut shown = table.clone();
        for column in &mut shown.columns {
            if let Some(default) = local(column) {
                column.default = Some(default);
            }
        }
        shown
    })
}

/// SHOW CREATE VIEW. Errors: those of [`table_of`], 1347 for a table.
pub(super) fn show_create_view(name: &ObjectName, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let table = &table_of(name, facts)?.definition;
    match &table.view {
        Some(view) => Ok(create_view_rows(table, view)),
        None => {
            let text = format!("'{}.{}' is not VIEW", table.database, table.name);
            Err(Error::new(ErrorCode::WrongObject, text))
        }
    }
}

fn sees_definition(table: &TableDefinition, privilege: Privilege, facts: &ShowContext<'_>) -> bool {
    facts.rights.on_table(&table.database, &table.name).table.has(privilege)
}

fn create_view_rows(table: &TableDefinition, view: &ViewDefinition) -> VirtualTable {
    let row = vec![
        bytes(&table.name),
        Value::Bytes(create_view_text(table, view).into_bytes()),
        bytes(view.collation.character_set().name()),
        bytes(view.collation.name()),
    ];
    let fields =
        [text("View", 64), long("Create View"), text("character_set_client", 64), text("collation_connection", 64)];
    VirtualTable::of_show(&fields, vec![row])
}

pub(super) fn show_create_database(name: &str, if_not_exists: bool, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let computed = crate::mysql_catalog::is_system_database(name).then(|| junctor_model::schema::DatabaseDefinition {
        name: name.to_ascii_lowercase().into(),
        collation: junctor_model::collation::CollationId::UTF8MB4_GENERAL_CI,
    });
    let known = computed.as_ref().or_else(|| facts.dictionary.database(name));
    let Some(database) = known else { return Err(unknown_database(name)) };
    let row = vec![bytes(&database.name), Value::Bytes(create_database_text(database, if_not_exists))];
    Ok(VirtualTable::of_show(&[text("Database", 64), text("Create Database", 1024)], vec![row]))
}

/// The base table with this name. Errors: 1046, 1049, 1146, and 1235 for a virtual table.
pub(super) fn table_of<'a>(name: &ObjectName, facts: &ShowContext<'a>) -> Result<&'a Arc<TableLayout>> {
    let database = database_or_current(name.database.as_deref(), facts)?;
    if let Some(table) = facts.dictionary.table_seen_by(facts.owner, database, &name.name) {
        return Ok(table);
    }
    if !crate::mysql_catalog::is_system_database(database) {
        check_database(database, facts)?;
    } else if computed_fields(database, &name.name).is_some() {
        return Err(Error::not_supported("SHOW of a computed table"));
    }
    let text = format!("Table '{database}.{}' doesn't exist", name.name);
    Err(Error::new(ErrorCode::NoSuchTable, text))
}

const MAINTENANCE: &[Field] = &[text("Table", 128), text("Op", 10), text("Msg_type", 10), long("Msg_text")];

/// The answer to ANALYZE, CHECK, OPTIMIZE or REPAIR TABLE. Statistics are always those of the moment, so
/// ANALYZE has nothing to do. The others are answered as by a MySQL engine without the operation.
pub(super) fn maintain(kind: TableMaintenance, tables: &[ObjectName], facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let operation = match kind {
        TableMaintenance::Analyze => "analyze",
        TableMaintenance::Check => "check",
        TableMaintenance::Optimize => "optimize",
        TableMaintenance::Repair => "repair",
    };
    let mut rows = Vec::new();
    for name in tables {
        let database = database_or_current(name.database.as_deref(), facts)?;
        let shown = format!("{database}.{}", name.name);
        let mut add = |kind: &str, message: &str| {
            rows.push(vec![bytes(&shown), bytes(operation), bytes(kind), bytes(message)]);
        };
        match (table_of(name, facts), kind) {
            (Err(error), _) => {
                add("Error", &error.message);
                add("status", "Operation failed");
            }
            (Ok(_), TableMaintenance::Analyze) => add("status", "OK"),
            (Ok(_), _) => add("note", &format!("The storage engine for the table doesn't support {operation}")),
        }
    }
    Ok(VirtualTable::of_show(MAINTENANCE, rows))
}

/// The database in the statement, otherwise the session's. Error: 1046 if there is neither.
pub(super) fn database_or_current<'n>(written: Option<&'n str>, facts: &ShowContext<'n>) -> Result<&'n str> {
    written.or(facts.session.database).ok_or_else(|| Error::new(ErrorCode::NoDatabaseSelected, "No database selected"))
}

pub(super) fn check_database(database: &str, facts: &ShowContext<'_>) -> Result<()> {
    match facts.dictionary.database(database) {
        Some(_) => Ok(()),
        None => Err(unknown_database(database)),
    }
}

fn unknown_database(name: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{name}'"))
}
