//! A database whose tables are computed at each query.

use super::fact::ShowContext;
use super::layout::{Field, VirtualTable};
use junctor_model::value::Value;

/// Computes the rows of a table.
pub(super) type Rows = fn(&ShowContext<'_>) -> Vec<Vec<Value>>;

/// A table: its name, its columns and the function that computes its rows.
pub(super) type SchemaTable = (&'static str, &'static [Field], Rows);

/// A database of virtual tables.
pub(super) struct VirtualSchema {
    /// Name of the database.
    pub name: &'static str,
    /// Its tables, sorted by name.
    pub tables: &'static [SchemaTable],
}

impl VirtualSchema {
    /// The columns of a table by name, ignoring case.
    pub fn fields(&self, name: &str) -> Option<&'static [Field]> {
        self.find(name).map(|(_, fields, _)| *fields)
    }

    /// The names of all tables, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        self.tables.iter().map(|(name, _, _)| *name).collect()
    }

    /// The table with this name, ignoring case, with its rows.
    pub fn table(&self, name: &str, facts: &ShowContext<'_>) -> Option<VirtualTable> {
        let (name, fields, rows) = self.find(name)?;
        let table = VirtualTable::new(self.name, name, fields);
        Some(VirtualTable { rows: rows(facts), ..table })
    }

    fn find(&self, name: &str) -> Option<&'static SchemaTable> {
        self.tables.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name))
    }
}
