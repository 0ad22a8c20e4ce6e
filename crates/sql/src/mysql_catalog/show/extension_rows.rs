//! The rows of the tables of `information_schema` that MySQL 8.0 has added beside older ones, and of the
//! tables that views read.

use junctor_model::value::Value;

use super::column_rows;
use super::fact::ShowContext;
use super::information_schema::{CATALOG, stored_tables, table_constraints};
use super::layout::bytes;
use super::table_rows::database_names;
use super::type_text::visible_columns;
use super::virtual_schema::computed_tables;
use crate::parse::{Dialect, Statement, parse_in};

/// Attributes of engines are not kept.
pub(super) fn columns_extensions(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |[database, table, column]: [&str; 3]| {
        let mut row = [CATALOG, database, table, column].map(bytes).to_vec();
        row.extend([Value::Null, Value::Null]);
        row
    };
    let mut rows = Vec::new();
    for (database, table, fields) in computed_tables(facts) {
        rows.extend(fields.iter().map(|field| row([database, table, field.name])));
    }
    for table in stored_tables(facts) {
        let rights = facts.rights.on_table(&table.database, &table.name);
        let seen = visible_columns(table).map(|(_, column)| column);
        let seen = seen.filter(|column| column_rows::privileges(table, column, &rights).is_some());
        rows.extend(seen.map(|column| row([&table.database, &table.name, &column.name])));
    }
    rows
}

pub(super) fn tables_extensions(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |[database, table]: [&str; 2]| {
        let mut row = [CATALOG, database, table].map(bytes).to_vec();
        row.extend([Value::Null, Value::Null]);
        row
    };
    let computed = computed_tables(facts).map(|(database, name, _)| row([database, name]));
    computed.chain(stored_tables(facts).map(|table| row([&table.database, &table.name]))).collect()
}

/// The constraints of keys, as in MySQL: those of CHECK and FOREIGN KEY have no row.
pub(super) fn constraints_extensions(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let is_key = |row: &Vec<Value>| matches!(row.get(5), Some(Value::Bytes(kind)) if matches!(&kind[..], b"PRIMARY KEY" | b"UNIQUE"));
    let row = |mut row: Vec<Value>| {
        // The columns before TABLE_SCHEMA, then TABLE_NAME.
        row.truncate(5);
        row.remove(3);
        row.extend([Value::Null, Value::Null]);
        row
    };
    table_constraints(facts).into_iter().filter(is_key).map(row).collect()
}

pub(super) fn schemata_extensions(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let names = database_names(facts).into_iter().filter(|name| facts.wanted.has_database(name));
    names.map(|name| vec![bytes(CATALOG), bytes(name), bytes("")]).collect()
}

/// The tables and views that the queries of views read, if the session may see them.
pub(super) fn view_table_usage(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for view in stored_tables(facts) {
        let Some(query) = &view.view else { continue };
        let parsed = parse_in(query.query.as_bytes(), Dialect::default()).map(|parsed| parsed.statement);
        let Ok(Statement::Select(mut select)) = parsed else { continue };
        let mut used: Vec<[String; 2]> = Vec::new();
        select.for_each_table_mut(&mut Vec::new(), &mut |name| {
            let database = name.database.as_deref().unwrap_or(&view.database);
            used.push([database.to_owned(), name.name.to_string()]);
        });
        used.sort_unstable();
        used.dedup();
        used.retain(|[database, name]| facts.rights.can_see_table(database, name));
        let row = |[database, name]: [String; 2]| {
            [CATALOG, &view.database, &view.name, CATALOG, &database, &name].map(bytes).to_vec()
        };
        rows.extend(used.into_iter().map(row));
    }
    rows
}
