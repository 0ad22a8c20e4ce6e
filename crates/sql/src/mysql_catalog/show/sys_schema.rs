//! The tables of the database `sys` that clients read and that can be filled truthfully. In MySQL they are
//! views.

use std::collections::BTreeMap;

use junctor_model::schema::{ColumnDefinition, IndexDefinition, TableDefinition};
use junctor_model::types::Form;
use junctor_model::value::Value;

use super::fact::ShowContext;
use super::information_schema::{base_tables, stored_tables};
use super::layout::{Field, bytes, database_name, double, int, long, number, table_name, text, unsigned};
use super::table_rows::type_of;
use super::type_text::{column_type_text, visible_indexes};
use super::virtual_schema::{SchemaTable, VirtualSchema, nothing};
use crate::mysql_catalog::variable::variable_rows;

/// The version of MySQL's `sys` whose columns the tables have.
const SYS_VERSION: &str = "2.1.2";

/// Every table, sorted by name, with its columns and the function that computes its rows. The session adds
/// the rows of sessions.
const TABLES: &[SchemaTable] = &[
    ("metrics", METRICS, metrics),
    ("processlist", PROCESSES, nothing),
    ("schema_auto_increment_columns", AUTO_INCREMENT_COLUMNS, auto_increment_columns),
    ("schema_object_overview", OBJECT_OVERVIEW, object_overview),
    ("schema_redundant_indexes", REDUNDANT_INDEXES, redundant_indexes),
    ("session", PROCESSES, nothing),
    ("version", VERSION, version),
    ("x$processlist", PROCESSES, nothing),
    ("x$schema_flattened_keys", FLATTENED_KEYS, flattened_keys),
    ("x$session", PROCESSES, nothing),
];

/// The database.
pub(super) const SCHEMA: VirtualSchema = VirtualSchema { name: "sys", parts: &[TABLES] };

const VERSION: &[Field] = &[text("sys_version", 5), text("mysql_version", 64)];

const METRICS: &[Field] = &[
    text("Variable_name", 193).or_null(),
    long("Variable_value").or_null(),
    text("Type", 210).or_null(),
    text("Enabled", 7),
];

const AUTO_INCREMENT_COLUMNS: &[Field] = &[
    database_name("table_schema"),
    table_name("table_name"),
    text("column_name", 64).or_null(),
    long("data_type").or_null(),
    long("column_type"),
    int("is_signed"),
    int("is_unsigned"),
    unsigned("max_value").or_null(),
    unsigned("auto_increment").or_null(),
    double("auto_increment_ratio").or_null(),
];

const OBJECT_OVERVIEW: &[Field] = &[text("db", 64), text("object_type", 19).or_null(), number("count")];

const REDUNDANT_INDEXES: &[Field] = &[
    database_name("table_schema"),
    table_name("table_name"),
    text("redundant_index_name", 64).or_null(),
    long("redundant_index_columns").or_null(),
    number("redundant_index_non_unique").or_null(),
    text("dominant_index_name", 64).or_null(),
    long("dominant_index_columns").or_null(),
    number("dominant_index_non_unique").or_null(),
    int("subpart_exists"),
    text("sql_drop_index", 223).or_null(),
];

const FLATTENED_KEYS: &[Field] = &[
    database_name("table_schema"),
    table_name("table_name"),
    text("index_name", 64).or_null(),
    number("non_unique").or_null(),
    number("subpart_exists").or_null(),
    long("index_columns").or_null(),
];

/// Times and sizes are texts, as in MySQL. A figure that is not kept is NULL.
pub(super) const PROCESSES: &[Field] = &[
    unsigned("thd_id").or_null(),
    unsigned("conn_id").or_null(),
    text("user", 288).or_null(),
    text("db", 64).or_null(),
    text("command", 16).or_null(),
    text("state", 64).or_null(),
    number("time").or_null(),
    long("current_statement").or_null(),
    text("execution_engine", 9).or_null(),
    text("statement_latency", 11).or_null(),
    double("progress").or_null(),
    text("lock_latency", 11).or_null(),
    text("cpu_latency", 11).or_null(),
    unsigned("rows_examined").or_null(),
    unsigned("rows_sent").or_null(),
    unsigned("rows_affected").or_null(),
    unsigned("tmp_tables").or_null(),
    unsigned("tmp_disk_tables").or_null(),
    text("full_scan", 3).or_null(),
    long("last_statement").or_null(),
    text("last_statement_latency", 11).or_null(),
    text("current_memory", 11).or_null(),
    text("last_wait", 128).or_null(),
    text("last_wait_latency", 11).or_null(),
    text("source", 64).or_null(),
    text("trx_latency", 11).or_null(),
    text("trx_state", 11).or_null(),
    text("trx_autocommit", 3).or_null(),
    text("pid", 1024).or_null(),
    text("program_name", 1024).or_null(),
];

fn version(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let variables = variable_rows(true, facts.session);
    let version = variables.iter().find(|(name, _)| *name == "version").map_or("", |(_, value)| value);
    vec![[SYS_VERSION, version].map(bytes).to_vec()]
}

/// The counters of SHOW GLOBAL STATUS.
fn metrics(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |(name, value): &(&str, String)| {
        [name.to_ascii_lowercase().as_str(), value, "Global Status", "YES"].map(bytes).to_vec()
    };
    facts.status.iter().map(row).collect()
}

/// The largest value of an integer column.
fn largest_value(column: &ColumnDefinition) -> Option<(bool, u64)> {
    let is_signed = match column.column_type.form() {
        Form::Int => true,
        Form::UInt => false,
        _ => return None,
    };
    let bits = match column.column_type.name() {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => 64,
        _ => return None,
    };
    Some((is_signed, u64::MAX >> (64 - bits) >> u32::from(is_signed)))
}

fn auto_increment_columns(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |table: &TableDefinition| {
        let column = table.columns.iter().find(|column| column.auto_increment && !column.hidden)?;
        let (is_signed, max) = largest_value(column)?;
        let next = (facts.table_statistics)(table).auto_increment;
        Some(vec![
            bytes(&table.database),
            bytes(&table.name),
            bytes(&column.name),
            bytes(column.column_type.name()),
            bytes(column_type_text(column)),
            Value::Int(is_signed.into()),
            Value::Int((!is_signed).into()),
            Value::UInt(max),
            next.map_or(Value::Null, Value::UInt),
            next.map_or(Value::Null, |next| Value::Double(next as f64 / max as f64)),
        ])
    };
    base_tables(facts).filter_map(row).collect()
}

fn object_overview(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut counts: BTreeMap<(&str, String), i64> = BTreeMap::new();
    for table in stored_tables(facts) {
        *counts.entry((&table.database, type_of(table).to_owned())).or_default() += 1;
        let indexes = if table.view.is_none() { visible_indexes(table) } else { Vec::new() };
        for index in indexes {
            let kind = if index.is_ordered() { "INDEX (BTREE)" } else { "INDEX (HASH)" };
            // As in MySQL, an index counts once for each of its columns.
            *counts.entry((&table.database, kind.to_owned())).or_default() += index.columns.len() as i64;
        }
    }
    let row = |((database, kind), number)| vec![bytes(database), bytes(kind), Value::Int(number)];
    counts.into_iter().map(row).collect()
}

/// An ordered index of columns.
struct FlatKey<'t> {
    table: &'t TableDefinition,
    name: &'t str,
    is_unique: bool,
    has_prefix: bool,
    /// The names with commas between them.
    columns: String,
}

/// The ordered indexes of a table whose parts are columns.
fn keys_of(table: &TableDefinition) -> Vec<FlatKey<'_>> {
    let key = |index: &'_ IndexDefinition| {
        let parts = index.columns.iter().map(|part| &table.columns[usize::from(part.0)]);
        let is_of_columns = parts.clone().all(|column| column.key_expression().is_none());
        let names = parts.clone().map(|column| column.key_prefix().map_or(&*column.name, |prefix| prefix.column));
        let columns = names.collect::<Vec<_>>().join(",");
        let has_prefix = parts.clone().any(|column| column.key_prefix().is_some());
        (index.is_ordered() && is_of_columns).then_some((has_prefix, columns))
    };
    let indexes = visible_indexes(table).into_iter();
    let keys = indexes.filter_map(|index| {
        let (has_prefix, columns) = key(index)?;
        Some(FlatKey { table, name: &index.name, is_unique: index.is_unique(), has_prefix, columns })
    });
    keys.collect()
}

fn flattened_keys(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |key: FlatKey<'_>| {
        vec![
            bytes(&key.table.database),
            bytes(&key.table.name),
            bytes(key.name),
            Value::Int((!key.is_unique).into()),
            Value::Int(key.has_prefix.into()),
            bytes(key.columns),
        ]
    };
    base_tables(facts).flat_map(keys_of).map(row).collect()
}

impl FlatKey<'_> {
    /// Whether the other index serves every purpose of this one, by the rules of MySQL's `sys`.
    fn is_made_redundant_by(&self, other: &FlatKey<'_>) -> bool {
        let is_prefix = |short: &FlatKey<'_>, long: &FlatKey<'_>| {
            long.columns.strip_prefix(short.columns.as_str()).is_some_and(|rest| rest.starts_with(','))
        };
        let rank = |key: &FlatKey<'_>| if key.name == "PRIMARY" { String::new() } else { key.name.to_owned() };
        let is_same = self.columns == other.columns;
        let is_weaker = self.is_unique == other.is_unique && rank(self) > rank(other);
        self.name != other.name
            && (is_same && (!self.is_unique && other.is_unique || is_weaker)
                || !self.is_unique && is_prefix(self, other)
                || other.is_unique && is_prefix(other, self))
    }
}

fn redundant_indexes(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in base_tables(facts) {
        let keys = keys_of(table);
        for key in &keys {
            for other in keys.iter().filter(|other| key.is_made_redundant_by(other)) {
                let drop = format!("ALTER TABLE `{}`.`{}` DROP INDEX `{}`", table.database, table.name, key.name);
                rows.push(vec![
                    bytes(&table.database),
                    bytes(&table.name),
                    bytes(key.name),
                    bytes(&key.columns),
                    Value::Int((!key.is_unique).into()),
                    bytes(other.name),
                    bytes(&other.columns),
                    Value::Int((!other.is_unique).into()),
                    Value::Int((key.has_prefix || other.has_prefix).into()),
                    bytes(drop),
                ]);
            }
        }
    }
    rows
}
