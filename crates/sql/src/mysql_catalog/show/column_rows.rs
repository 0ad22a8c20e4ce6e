//! SHOW COLUMNS and DESCRIBE.

use junctor_model::access::rights::TableRights;
use junctor_model::access::{Privilege, Privileges, Rights};
use junctor_model::collation::CollationId;
use junctor_model::schema::{ColumnDefinition, TableDefinition};
use junctor_model::value::Value;

use super::layout::{Field, VirtualTable, bytes, long, text, yes_no};
use super::type_text::{column_key, column_type_text, default_value, extra, visible_columns};

/// The privileges of the session on a column, as a list; `None` if it has none, so that the column is hidden.
/// A temporary table is the session's own.
pub(super) fn privileges(table: &TableDefinition, column: &ColumnDefinition, rights: &TableRights) -> Option<String> {
    let all = Privileges::of(&[Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::References]);
    let own = if table.is_temporary() { all } else { rights.on_column(&column.name) };
    if own.is_empty() {
        return None;
    }
    let names: Vec<String> =
        own.iter().filter(|privilege| all.has(*privilege)).map(|privilege| privilege.name().to_lowercase()).collect();
    Some(names.join(","))
}

const FIELDS: &[Field] =
    &[text("Field", 64), long("Type"), text("Null", 3), text("Key", 3), long("Default").or_null(), text("Extra", 256)];

const FULL_FIELDS: &[Field] = &[
    text("Field", 64),
    long("Type"),
    text("Collation", 64).or_null(),
    text("Null", 3),
    text("Key", 3),
    long("Default").or_null(),
    text("Extra", 256),
    text("Privileges", 154),
    text("Comment", 1024),
];

/// The columns of a base table; `full` is SHOW FULL COLUMNS.
pub(super) fn of_table(table: &TableDefinition, full: bool, rights: &Rights) -> VirtualTable {
    let rights = rights.on_table(&table.database, &table.name);
    let row = |(position, column): (usize, &ColumnDefinition)| {
        let privileges = privileges(table, column, &rights)?;
        Some(row(column, (column_key(table, position), &privileges), full))
    };
    finish(visible_columns(table).filter_map(row).collect(), full)
}

/// The columns of a virtual table, which has no keys.
pub(super) fn of_fields(fields: &[Field], full: bool) -> VirtualTable {
    finish(fields.iter().map(|field| row(&field.definition(), ("", "select"), full)).collect(), full)
}

fn finish(rows: Vec<Vec<Value>>, full: bool) -> VirtualTable {
    VirtualTable::of_show(if full { FULL_FIELDS } else { FIELDS }, rows)
}

fn row(column: &ColumnDefinition, (key, privileges): (&str, &str), full: bool) -> Vec<Value> {
    let mut row = vec![bytes(&column.name), bytes(column_type_text(column))];
    if full {
        row.push(collation(column).map_or(Value::Null, bytes));
    }
    row.push(yes_no(column.nullable));
    row.push(bytes(key));
    row.push(default_value(column));
    row.push(bytes(extra(column)));
    if full {
        row.push(bytes(privileges));
        row.push(bytes(&column.comment));
    }
    row
}

/// The collation of a character column; binary strings and numbers have none.
pub(super) fn collation(column: &ColumnDefinition) -> Option<&'static str> {
    column.column_type.collation().filter(|collation| *collation != CollationId::BINARY).map(CollationId::name)
}
