//! A database whose tables are computed at each query.

use junctor_model::schema::is_open_table;
use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{Field, VirtualTable};
use super::{information_schema, junctor_info, mysql_schema, performance_schema, sys_schema};

/// Computes the rows of a table.
pub(super) type Rows = fn(&ShowContext<'_>) -> Vec<Vec<Value>>;

/// A table: its name, its columns and the function that computes its rows.
pub(super) type SchemaTable = (&'static str, &'static [Field], Rows);

/// A database of virtual tables.
pub(super) struct VirtualSchema {
    /// Name of the database.
    pub name: &'static str,
    /// Its tables, in parts that are sorted by name.
    pub parts: &'static [&'static [SchemaTable]],
}

/// The databases of virtual tables, sorted by name.
pub(super) const SCHEMAS: [&VirtualSchema; 5] = [
    &information_schema::SCHEMA,
    &junctor_info::SCHEMA,
    &mysql_schema::SCHEMA,
    &performance_schema::SCHEMA,
    &sys_schema::SCHEMA,
];

/// The database of virtual tables with this name, ignoring case.
pub(super) fn schema_named(database: &str) -> Option<&'static VirtualSchema> {
    SCHEMAS.into_iter().find(|schema| schema.name.eq_ignore_ascii_case(database))
}

/// The columns of a virtual table, ignoring case; `None` for other tables.
pub(super) fn computed_fields(database: &str, table: &str) -> Option<&'static [Field]> {
    schema_named(database)?.fields(table)
}

/// The virtual tables that the session may see and the query wants, as (database, name, columns).
pub(super) fn computed_tables<'a>(
    facts: &ShowContext<'a>,
) -> impl Iterator<Item = (&'static str, &'static str, &'static [Field])> + use<'a> {
    let (wanted, rights) = (facts.wanted, facts.rights);
    let schemas = SCHEMAS.into_iter().filter(move |schema| wanted.has_database(schema.name));
    let tables = schemas.flat_map(|schema| schema.tables().map(|(name, fields, _)| (schema.name, *name, *fields)));
    tables.filter(move |(database, name, _)| {
        wanted.has_table(database, name) && (is_open_table(database, name) || rights.can_see_table(database, name))
    })
}

/// The rows of a table without any.
pub(super) fn nothing(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    Vec::new()
}

impl VirtualSchema {
    /// The columns of a table by name, ignoring case.
    pub fn fields(&self, name: &str) -> Option<&'static [Field]> {
        self.find(name).map(|(_, fields, _)| *fields)
    }

    /// The name of a table as the server writes it, by name, ignoring case.
    pub fn name_of(&self, name: &str) -> Option<&'static str> {
        self.find(name).map(|(name, _, _)| *name)
    }

    /// The names of all tables, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.tables().map(|(name, _, _)| *name).collect();
        names.sort_unstable();
        names
    }

    /// The table with this name, ignoring case, with its rows.
    pub fn table(&self, name: &str, facts: &ShowContext<'_>) -> Option<VirtualTable> {
        let (name, fields, rows) = self.find(name)?;
        let table = VirtualTable::new(self.name, name, fields);
        Some(VirtualTable { rows: rows(facts), ..table })
    }

    fn find(&self, name: &str) -> Option<&'static SchemaTable> {
        self.tables().find(|(known, _, _)| known.eq_ignore_ascii_case(name))
    }

    fn tables(&self) -> impl Iterator<Item = &'static SchemaTable> + use<> {
        self.parts.iter().copied().flatten()
    }
}
