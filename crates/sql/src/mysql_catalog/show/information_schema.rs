//! The rows of the tables of `information_schema`.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_model::access::Privilege;
use junctor_model::collation::CollationId;
use junctor_model::foreign_key::columns_named;
use junctor_model::geometry::{ReferenceSystem, SYSTEMS};
use junctor_model::id::PartitionId;
use junctor_model::schema::{ColumnDefinition, IndexKind, TableDefinition, TableLayout, ViewCheck};
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;
use junctor_model::value::Value;

use super::column_rows;
use super::column_statistics::column_statistics;
use super::fact::ShowContext;
use super::layout::{bytes, count, yes_no};
use super::schema_layout as layout;
use super::server_rows;
use super::table_rows::{create_options, database_names, index_rows, storage_values, type_of};
use super::type_text::{column_key, column_type_text, default_value, escaped, extra, visible_columns, visible_indexes};
use super::virtual_schema::{SchemaTable, VirtualSchema, computed_fields, computed_tables, nothing};
use super::{extension_rows, innodb_layout, privilege_rows};
use crate::mysql_catalog::is_system_database;
use crate::mysql_catalog::variable::variable_rows;
use crate::parse::{Dialect, Statement, parse_in, query_text};

/// The only catalog, as in MySQL.
pub(super) const CATALOG: &str = "def";

/// Every table, sorted by name, with its columns and the function that computes its rows.
const TABLES: &[SchemaTable] = &[
    ("ADMINISTRABLE_ROLE_AUTHORIZATIONS", layout::APPLICABLE_ROLES, privilege_rows::administrable_roles),
    ("APPLICABLE_ROLES", layout::APPLICABLE_ROLES, privilege_rows::applicable_roles),
    ("CHARACTER_SETS", layout::CHARACTER_SETS, character_sets),
    ("CHECK_CONSTRAINTS", layout::CHECK_CONSTRAINTS, check_constraints),
    ("COLLATIONS", layout::COLLATIONS, |_| server_rows::collation_rows()),
    ("COLLATION_CHARACTER_SET_APPLICABILITY", layout::COLLATION_CHARACTER_SET_APPLICABILITY, applicability),
    ("COLUMNS", layout::COLUMNS, columns),
    ("COLUMNS_EXTENSIONS", layout::COLUMNS_EXTENSIONS, extension_rows::columns_extensions),
    ("COLUMN_PRIVILEGES", layout::COLUMN_PRIVILEGES, privilege_rows::column_privileges),
    ("COLUMN_STATISTICS", layout::COLUMN_STATISTICS, column_statistics),
    ("CONNECTION_CONTROL_FAILED_LOGIN_ATTEMPTS", layout::FAILED_LOGIN_ATTEMPTS, nothing),
    ("ENABLED_ROLES", layout::ENABLED_ROLES, privilege_rows::enabled_roles),
    ("ENGINES", layout::ENGINES, |_| server_rows::engine_rows()),
    ("EVENTS", layout::EVENTS, nothing),
    ("FILES", layout::FILES, nothing),
    ("GLOBAL_STATUS", layout::NAME_AND_VALUE, status),
    ("GLOBAL_VARIABLES", layout::NAME_AND_VALUE, |facts| variables(true, facts)),
    ("KEYWORDS", layout::KEYWORDS, |_| server_rows::keyword_rows()),
    ("KEY_COLUMN_USAGE", layout::KEY_COLUMN_USAGE, key_column_usage),
    ("OPTIMIZER_TRACE", layout::OPTIMIZER_TRACE, nothing),
    ("PARAMETERS", layout::PARAMETERS, nothing),
    ("PARTITIONS", layout::PARTITIONS, partitions),
    ("PLUGINS", layout::PLUGINS, plugins),
    ("PROCESSLIST", layout::PROCESSLIST, nothing),
    ("PROFILING", layout::PROFILING, nothing),
    ("REFERENTIAL_CONSTRAINTS", layout::REFERENTIAL_CONSTRAINTS, referential_constraints),
    ("ROLE_COLUMN_GRANTS", layout::ROLE_COLUMN_GRANTS, privilege_rows::role_column_grants),
    ("ROLE_ROUTINE_GRANTS", layout::ROLE_ROUTINE_GRANTS, nothing),
    ("ROLE_TABLE_GRANTS", layout::ROLE_TABLE_GRANTS, privilege_rows::role_table_grants),
    ("ROUTINES", layout::ROUTINES, nothing),
    ("SCHEMATA", layout::SCHEMATA, schemata),
    ("SCHEMATA_EXTENSIONS", layout::SCHEMATA_EXTENSIONS, extension_rows::schemata_extensions),
    ("SCHEMA_PRIVILEGES", layout::SCHEMA_PRIVILEGES, privilege_rows::schema_privileges),
    ("SESSION_STATUS", layout::NAME_AND_VALUE, status),
    ("SESSION_VARIABLES", layout::NAME_AND_VALUE, |facts| variables(false, facts)),
    ("STATISTICS", layout::STATISTICS, statistics),
    ("ST_GEOMETRY_COLUMNS", layout::ST_GEOMETRY_COLUMNS, geometry_columns),
    ("ST_SPATIAL_REFERENCE_SYSTEMS", layout::ST_SPATIAL_REFERENCE_SYSTEMS, reference_systems),
    ("SYSTEM_VARIABLES", layout::NAME_AND_VALUE, |facts| variables(true, facts)),
    ("TABLES", layout::TABLES, tables),
    ("TABLESPACES", layout::TABLESPACES, nothing),
    ("TABLESPACES_EXTENSIONS", layout::TABLESPACES_EXTENSIONS, nothing),
    ("TABLES_EXTENSIONS", layout::TABLES_EXTENSIONS, extension_rows::tables_extensions),
    ("TABLE_CONSTRAINTS", layout::TABLE_CONSTRAINTS, table_constraints),
    ("TABLE_CONSTRAINTS_EXTENSIONS", layout::TABLE_CONSTRAINTS_EXTENSIONS, extension_rows::constraints_extensions),
    ("TABLE_PRIVILEGES", layout::TABLE_PRIVILEGES, privilege_rows::table_privileges),
    ("TRIGGERS", layout::TRIGGERS, nothing),
    ("USER_ATTRIBUTES", layout::USER_ATTRIBUTES, privilege_rows::user_attributes),
    ("USER_PRIVILEGES", layout::USER_PRIVILEGES, privilege_rows::user_privileges),
    ("VIEWS", layout::VIEWS, views),
    ("VIEW_ROUTINE_USAGE", layout::VIEW_ROUTINE_USAGE, nothing),
    ("VIEW_TABLE_USAGE", layout::VIEW_TABLE_USAGE, extension_rows::view_table_usage),
];

/// The database.
pub(super) const SCHEMA: VirtualSchema =
    VirtualSchema { name: "information_schema", parts: &[TABLES, innodb_layout::TABLES] };

/// All base tables that the session may see, ordered by database and name.
pub(super) fn base_tables<'a>(facts: &ShowContext<'a>) -> impl Iterator<Item = &'a TableDefinition> + use<'a> {
    stored_tables(facts).filter(|table| table.view.is_none())
}

/// All base tables and views that the session may see and the query wants, ordered by database and name.
pub(super) fn stored_tables<'a>(facts: &ShowContext<'a>) -> impl Iterator<Item = &'a TableDefinition> + use<'a> {
    type Names<'a> = Box<dyn Iterator<Item = &'a str> + 'a>;
    type Tables<'a> = Box<dyn Iterator<Item = &'a Arc<TableLayout>> + 'a>;
    let ShowContext { dictionary, rights, wanted, owner, .. } = *facts;
    let owner = owner.filter(|_| wanted.sees_own_tables());
    let databases: Names<'a> = match wanted.databases() {
        Some(names) => Box::new(names.iter().map(|name| &**name)),
        None => Box::new(dictionary.databases().map(|database| &*database.name)),
    };
    let tables = databases.flat_map(move |database| -> Tables<'a> {
        match wanted.names() {
            Some(names) => {
                Box::new(names.iter().filter_map(move |name| dictionary.table_seen_by(owner, database, name)))
            }
            None => Box::new(dictionary.tables_of(database)),
        }
    });
    let tables = tables.map(|table| &table.definition);
    tables.filter(move |table| {
        let is_own = table.is_temporary();
        (is_own || rights.can_see_table(&table.database, &table.name)) && !is_hidden(table)
    })
}

/// Whether the server has a virtual table of the same name. Users may have created the table before.
fn is_hidden(table: &TableDefinition) -> bool {
    is_system_database(&table.database) && computed_fields(&table.database, &table.name).is_some()
}

fn schemata(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |name: String| {
        let known = facts.dictionary.database(&name);
        let collation = known.map_or(CollationId::UTF8MB4_GENERAL_CI, |database| database.collation);
        vec![
            bytes(CATALOG),
            bytes(&name),
            bytes(collation.character_set().name()),
            bytes(collation.name()),
            Value::Null,
            bytes("NO"),
        ]
    };
    let names = database_names(facts).into_iter().filter(|name| facts.wanted.has_database(name));
    names.map(row).collect()
}

fn tables(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (database, name, _) in computed_tables(facts) {
        let mut row = vec![bytes(CATALOG), bytes(database), bytes(name), bytes("SYSTEM VIEW"), Value::Null];
        // Positions are those of `layout::TABLES`: VERSION and TABLE_COMMENT.
        row.resize(layout::TABLES.len(), Value::Null);
        row[5] = Value::Int(10);
        row[20] = bytes("");
        rows.push(row);
    }
    for table in stored_tables(facts) {
        let mut row = vec![bytes(CATALOG), bytes(&table.database), bytes(&table.name), bytes(type_of(table))];
        if table.view.is_some() {
            row.resize(layout::TABLES.len(), Value::Null);
            row[20] = bytes("VIEW");
            rows.push(row);
            continue;
        }
        row.extend(storage_values(table, &(facts.table_statistics)(table)));
        row.extend([bytes(table.collation.name()), Value::Null, bytes(create_options(table)), bytes(&table.comment)]);
        rows.push(row);
    }
    rows
}

fn views(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let of_view = |table: &TableDefinition| {
        let view = table.view.as_deref()?;
        // Names are complete here, unlike in the stored text.
        let parsed = parse_in(view.query.as_bytes(), Dialect::default()).ok();
        let text = parsed.and_then(|parsed| match parsed.statement {
            Statement::Select(mut select) => {
                select.for_each_table_mut(&mut Vec::new(), &mut |name| {
                    name.database.get_or_insert_with(|| table.database.to_string());
                });
                query_text(&select, None)
            }
            _ => None,
        });
        // Its text shows what is beneath the view.
        let text = match facts.rights.on_table(&table.database, &table.name).table.has(Privilege::ShowView) {
            true => text.as_deref().unwrap_or(&view.query),
            false => "",
        };
        let check = view.check.map_or("NONE", ViewCheck::name);
        let security = if view.is_invoker { "INVOKER" } else { "DEFINER" };
        Some(vec![
            bytes(CATALOG),
            bytes(&table.database),
            bytes(&table.name),
            bytes(text),
            bytes(check),
            yes_no(view.is_updatable),
            bytes(&view.definer),
            bytes(security),
            bytes(view.collation.character_set().name()),
            bytes(view.collation.name()),
        ])
    };
    stored_tables(facts).filter_map(of_view).collect()
}

fn columns(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (database, name, fields) in computed_tables(facts) {
        for (position, field) in fields.iter().enumerate() {
            rows.push(column_row((database, name), position + 1, &field.definition(), "", "select"));
        }
    }
    for table in stored_tables(facts) {
        let rights = facts.rights.on_table(&table.database, &table.name);
        for (ordinal, (position, column)) in (1..).zip(visible_columns(table)) {
            let Some(privileges) = column_rows::privileges(table, column, &rights) else { continue };
            let key = column_key(table, position);
            rows.push(column_row((&table.database, &table.name), ordinal, column, key, &privileges));
        }
    }
    rows
}

fn column_row(
    (database, table): (&str, &str),
    position: usize,
    column: &ColumnDefinition,
    key: &str,
    privileges: &str,
) -> Vec<Value> {
    let number = |value: Option<u64>| value.map_or(Value::Null, Value::UInt);
    let generated = column.expression.as_ref().filter(|_| column.is_generated());
    let collation = column_rows::collation(column);
    let set = collation.and(column.column_type.collation()).map(|collation| collation.character_set());
    let (characters, octets) = column.column_type.text_lengths().unzip();
    let (precision, scale) = column.column_type.digits();
    vec![
        bytes(CATALOG),
        bytes(database),
        bytes(table),
        bytes(&column.name),
        count(position),
        default_value(column),
        yes_no(column.nullable),
        bytes(column.column_type.name()),
        characters.map_or(Value::Null, Value::Int),
        octets.map_or(Value::Null, Value::Int),
        number(precision),
        number(scale),
        match column.column_type.form() {
            Form::Temporal(TemporalKind::Time | TemporalKind::DateTime | TemporalKind::Timestamp) => {
                Value::UInt(column.column_type.scale().into())
            }
            _ => Value::Null,
        },
        set.map_or(Value::Null, |set| bytes(set.name())),
        collation.map_or(Value::Null, bytes),
        bytes(column_type_text(column)),
        bytes(key),
        bytes(extra(column)),
        bytes(privileges),
        bytes(&column.comment),
        bytes(generated.map_or(String::new(), |expression| escaped(&expression.text))),
        column.column_type.reference_system().map_or(Value::Null, |system| Value::UInt(system.into())),
    ]
}

/// Spatial columns. SRID 0 has no name.
fn geometry_columns(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in stored_tables(facts) {
        for (_, column) in visible_columns(table).filter(|(_, column)| column.column_type.geometry_kind().is_some()) {
            let system = column.column_type.reference_system();
            let name = system.map(|id| ReferenceSystem::find(id).map_or("", |system| system.name));
            rows.push(vec![
                bytes(CATALOG),
                bytes(&table.database),
                bytes(&table.name),
                bytes(&column.name),
                name.map_or(Value::Null, bytes),
                system.map_or(Value::Null, |system| Value::UInt(system.into())),
                bytes(column.column_type.name()),
            ]);
        }
    }
    rows
}

fn reference_systems(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let none = vec![bytes(""), Value::UInt(0), Value::Null, Value::Null, bytes(""), Value::Null];
    let row = |system: &ReferenceSystem| {
        vec![
            bytes(system.name),
            Value::UInt(system.id.into()),
            bytes(system.organization.0),
            Value::UInt(system.organization.1.into()),
            bytes(system.definition),
            Value::Null,
        ]
    };
    std::iter::once(none).chain(SYSTEMS.iter().map(row)).collect()
}

fn statistics(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    base_tables(facts).flat_map(|table| index_rows(table, facts)).collect()
}

fn key_column_usage(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in base_tables(facts) {
        for index in visible_indexes(table).into_iter().filter(|index| index.is_unique()) {
            for (position, part) in index.columns.iter().enumerate() {
                let column = &table.columns[usize::from(part.0)];
                if column.key_expression().is_some() {
                    continue;
                }
                let mut row = vec![bytes(CATALOG), bytes(&table.database), bytes(&index.name), bytes(CATALOG)];
                row.extend([
                    bytes(&table.database),
                    bytes(&table.name),
                    bytes(column.key_prefix().map_or(&*column.name, |prefix| prefix.column)),
                    count(position + 1),
                ]);
                row.resize(layout::KEY_COLUMN_USAGE.len(), Value::Null);
                rows.push(row);
            }
        }
        for key in &table.foreign_keys {
            for (position, (own, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
                let column = &table.columns[usize::from(own.0)].name;
                let names = [CATALOG, &table.database, &key.name, CATALOG, &table.database, &table.name, column];
                let mut row: Vec<Value> = names.map(bytes).to_vec();
                row.extend([count(position + 1), count(position + 1)]);
                row.extend([bytes(&key.parent.0), bytes(&key.parent.1), bytes(parent)]);
                rows.push(row);
            }
        }
    }
    rows
}

pub(super) fn table_constraints(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in base_tables(facts) {
        for index in visible_indexes(table).into_iter().filter(|index| index.is_unique()) {
            let kind = if matches!(index.kind, IndexKind::Primary { .. }) { "PRIMARY KEY" } else { "UNIQUE" };
            rows.push(vec![
                bytes(CATALOG),
                bytes(&table.database),
                bytes(&index.name),
                bytes(&table.database),
                bytes(&table.name),
                bytes(kind),
                bytes("YES"),
            ]);
        }
        for key in &table.foreign_keys {
            let names = [CATALOG, &table.database, &key.name, &table.database, &table.name, "FOREIGN KEY", "YES"];
            rows.push(names.map(bytes).to_vec());
        }
        for check in &table.checks {
            let enforced = if check.enforced { "YES" } else { "NO" };
            let names = [CATALOG, &table.database, &check.name, &table.database, &table.name, "CHECK", enforced];
            rows.push(names.map(bytes).to_vec());
        }
    }
    rows
}

fn check_constraints(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in base_tables(facts) {
        for check in &table.checks {
            let clause = escaped(&check.expression);
            rows.push([CATALOG, &table.database, &check.name, &clause].map(bytes).to_vec());
        }
    }
    rows
}

fn referential_constraints(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in base_tables(facts) {
        for key in &table.foreign_keys {
            let parent = facts.dictionary.table_named(&key.parent.0, &key.parent.1).map(|layout| &layout.definition);
            let columns = parent.and_then(|parent| columns_named(parent, &key.parent_columns));
            // MySQL names the parent's unique key. With `foreign_key_checks = OFF` the parent may be missing.
            let unique = parent.zip(columns).and_then(|(parent, columns)| {
                parent.indexes.iter().find(|index| index.is_unique() && index.columns == columns)
            });
            rows.push(vec![
                bytes(CATALOG),
                bytes(&table.database),
                bytes(&key.name),
                bytes(CATALOG),
                bytes(&key.parent.0),
                unique.map_or(Value::Null, |index| bytes(&index.name)),
                bytes("NONE"),
                bytes(key.on_update.name()),
                bytes(key.on_delete.name()),
                bytes(&table.name),
                bytes(&key.parent.1),
            ]);
        }
    }
    rows
}

fn partitions(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in base_tables(facts) {
        let expression: Vec<String> = table
            .partition_columns
            .iter()
            .map(|column| &table.columns[usize::from(column.0)])
            .filter(|column| !column.hidden)
            .map(|column| format!("`{}`", column.name))
            .collect();
        // A table without PARTITION BY has one row here, whatever the number of its partitions.
        let parts = if table.has_partition_clause { table.partition_count } else { 1 };
        for part in 0..parts {
            let statistics = match table.has_partition_clause {
                true => (facts.partition_statistics)(PartitionId { table: table.id, index: part }),
                false => (facts.table_statistics)(table),
            };
            let mut row = vec![bytes(CATALOG), bytes(&table.database), bytes(&table.name)];
            row.resize(layout::PARTITIONS.len(), Value::Null);
            if table.has_partition_clause {
                row[3] = bytes(format!("p{part}"));
                row[5] = count(usize::from(part) + 1);
                row[7] = bytes("KEY");
                row[9] = bytes(expression.join(","));
            }
            row[12] = Value::UInt(statistics.rows);
            row[13] = Value::UInt(statistics.data_bytes.checked_div(statistics.rows).unwrap_or(0));
            row[14] = Value::UInt(statistics.data_bytes);
            row[16] = Value::UInt(statistics.index_bytes);
            row[22] = bytes("");
            row[23] = node_groups(table, part).map_or(Value::Null, bytes);
            rows.push(row);
        }
    }
    rows
}

/// The node group of a partition, or those of all partitions of a table without PARTITION BY.
fn node_groups(table: &TableDefinition, part: u16) -> Option<String> {
    let placement = table.placement?;
    let parts = if table.has_partition_clause { part..part + 1 } else { 0..table.partition_count };
    let groups: BTreeSet<u8> = parts.map(|part| placement.group_of(part)).collect();
    Some(groups.into_iter().map(|group| group.to_string()).collect::<Vec<_>>().join(","))
}

fn character_sets(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |(name, collation, description, length): (&str, &str, &str, i64)| {
        vec![bytes(name), bytes(collation), bytes(description), Value::UInt(length as u64)]
    };
    server_rows::character_set_rows().into_iter().map(row).collect()
}

fn applicability(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let cut = |mut row: Vec<Value>| {
        row.truncate(2);
        row
    };
    server_rows::collation_rows().into_iter().map(cut).collect()
}

fn plugins(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |[name, status, kind, library, license]: [Value; 5]| {
        let version = bytes("1.0");
        let mut row = vec![name, version.clone(), status, kind, version, library];
        row.extend([Value::Null, Value::Null, Value::Null, license, bytes("FORCE")]);
        row
    };
    server_rows::plugin_rows().into_iter().map(row).collect()
}

fn variables(only_global: bool, facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = variable_rows(only_global, facts.session).into_iter();
    rows.map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}

fn status(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    facts.status.iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}
