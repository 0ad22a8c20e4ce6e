//! The stored tables that a query of a virtual table is about.

use super::layout::{Field, NamedObject};

/// The columns whose values are statistics of stored tables. Without them, a query need not wait for
/// statistics.
const OF_STATISTICS: [&str; 8] = [
    "TABLE_ROWS",
    "AVG_ROW_LENGTH",
    "DATA_LENGTH",
    "INDEX_LENGTH",
    "AUTO_INCREMENT",
    "CARDINALITY",
    "N_ROWS",
    "AUTO_INCREMENT_RATIO",
];

/// The stored tables that a query of a virtual table is about, and what it asks about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedTables {
    /// Their databases, sorted; `None` for all.
    databases: Option<Vec<Box<str>>>,
    /// Their names, sorted; `None` for all.
    names: Option<Vec<Box<str>>>,
    /// Whether the query reads their statistics.
    has_statistics: bool,
    /// Whether temporary tables of the session hide other tables of their names.
    sees_own_tables: bool,
}

impl WantedTables {
    /// All tables, with their statistics.
    pub const ALL: &'static WantedTables =
        &WantedTables { databases: None, names: None, has_statistics: true, sees_own_tables: false };

    /// The tables of a query that reads these columns, in whose rows each of the columns in `equalities` has
    /// one of the values.
    pub fn of(
        fields: &[Field],
        columns: &[u16],
        equalities: impl IntoIterator<Item = (u16, Vec<Box<str>>)>,
    ) -> WantedTables {
        let field = |column: u16| fields.get(usize::from(column));
        let is_statistic = |field: &Field| OF_STATISTICS.iter().any(|name| name.eq_ignore_ascii_case(field.name));
        let has_statistics = columns.iter().filter_map(|column| field(*column)).any(is_statistic);
        let mut wanted = WantedTables { has_statistics, ..WantedTables::ALL.clone() };
        for (column, mut values) in equalities {
            let place = match field(column).and_then(|field| field.names) {
                Some(NamedObject::Database) => &mut wanted.databases,
                Some(NamedObject::Table) => &mut wanted.names,
                None => continue,
            };
            if let Some(known) = place {
                values.retain(|value| known.contains(value));
            }
            values.sort_unstable();
            values.dedup();
            *place = Some(values);
        }
        wanted
    }

    /// The same tables, or the session's temporary tables of their names.
    #[must_use]
    pub fn seeing_own_tables(self, sees: bool) -> WantedTables {
        WantedTables { sees_own_tables: sees, ..self }
    }

    /// Whether temporary tables of the session hide other tables of their names.
    pub fn sees_own_tables(&self) -> bool {
        self.sees_own_tables
    }

    /// The names of the databases, sorted; `None` for all.
    pub fn databases(&self) -> Option<&[Box<str>]> {
        self.databases.as_deref()
    }

    /// The names of the tables, sorted; `None` for all.
    pub fn names(&self) -> Option<&[Box<str>]> {
        self.names.as_deref()
    }

    /// Whether the query reads statistics of the tables.
    pub fn has_statistics(&self) -> bool {
        self.has_statistics
    }

    /// Whether rows of tables of this database are wanted.
    pub fn has_database(&self, database: &str) -> bool {
        self.databases.as_ref().is_none_or(|known| known.iter().any(|name| **name == *database))
    }

    /// Whether rows of a table are wanted.
    pub fn has_table(&self, database: &str, table: &str) -> bool {
        self.has_database(database) && self.names.as_ref().is_none_or(|known| known.iter().any(|name| **name == *table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{database_name, table_name, text, unsigned};
    use super::*;

    const FIELDS: [Field; 4] =
        [database_name("TABLE_SCHEMA"), table_name("TABLE_NAME"), text("COMMENT", 8), unsigned("TABLE_ROWS")];

    fn wanted(columns: &[u16], equalities: &[(u16, &[&str])]) -> WantedTables {
        let values = |names: &[&str]| names.iter().map(|name| Box::from(*name)).collect();
        WantedTables::of(&FIELDS, columns, equalities.iter().map(|(column, names)| (*column, values(names))))
    }

    #[test]
    fn equalities_of_the_columns_with_names_choose_the_tables() {
        let one = wanted(&[], &[(0, &["d"]), (1, &["t", "s", "t"])]);
        assert!(one.has_table("d", "t") && one.has_table("d", "s"));
        assert!(!one.has_table("e", "t") && !one.has_table("d", "u"));
        assert_eq!(one.names().map(<[_]>::len), Some(2));
        let all = wanted(&[], &[(2, &["d"]), (9, &["d"])]);
        assert!(all.has_table("e", "u"));
    }

    #[test]
    fn two_equalities_of_a_column_leave_what_both_allow() {
        assert!(wanted(&[], &[(0, &["a", "b"]), (0, &["b", "c"])]).has_table("b", "t"));
        let none = wanted(&[], &[(0, &["a"]), (0, &["b"])]);
        assert!(!none.has_database("a") && !none.has_database("b"));
    }

    #[test]
    fn statistics_are_needed_only_if_they_are_read() {
        assert!(!wanted(&[0, 1, 2], &[]).has_statistics());
        assert!(wanted(&[3], &[]).has_statistics());
    }
}
