//! The tables of `performance_schema` that clients read: system variables.

use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{Field, VirtualTable, bytes};
use super::schema_layout::NAME_AND_VALUE;
use crate::mysql_catalog::variable::{persisted_rows, variable_rows};

type Rows = fn(&ShowContext<'_>) -> Vec<Vec<Value>>;

/// Every table, sorted by name, with its columns and the function that computes its rows.
const TABLES: &[(&str, &[Field], Rows)] = &[
    ("global_variables", NAME_AND_VALUE, |facts| rows(variable_rows(true, facts.session))),
    ("persisted_variables", NAME_AND_VALUE, |facts| rows(persisted_rows(facts.session.globals))),
    ("session_variables", NAME_AND_VALUE, |facts| rows(variable_rows(false, facts.session))),
];

/// The columns of a table by name, ignoring case.
pub(super) fn fields(name: &str) -> Option<&'static [Field]> {
    find(name).map(|(_, fields, _)| *fields)
}

/// The names of all tables, sorted.
pub(super) fn names() -> Vec<&'static str> {
    TABLES.iter().map(|(name, _, _)| *name).collect()
}

/// The table with this name, ignoring case, with its rows.
pub(super) fn table(name: &str, facts: &ShowContext<'_>) -> Option<VirtualTable> {
    let (name, fields, rows) = find(name)?;
    let table = VirtualTable::new("performance_schema", name, fields);
    Some(VirtualTable { rows: rows(facts), ..table })
}

fn find(name: &str) -> Option<&'static (&'static str, &'static [Field], Rows)> {
    TABLES.iter().find(|(known, _, _)| known.eq_ignore_ascii_case(name))
}

fn rows(variables: Vec<(&'static str, String)>) -> Vec<Vec<Value>> {
    variables.into_iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}
