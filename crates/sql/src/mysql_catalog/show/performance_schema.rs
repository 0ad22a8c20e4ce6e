//! The tables of `performance_schema` that clients read: system variables.

use junctor_model::value::Value;

use super::layout::bytes;
use super::schema_layout::NAME_AND_VALUE;
use super::virtual_schema::{SchemaTable, VirtualSchema};
use crate::mysql_catalog::variable::{persisted_rows, variable_rows};

/// Every table, sorted by name, with its columns and the function that computes its rows.
const TABLES: &[SchemaTable] = &[
    ("global_variables", NAME_AND_VALUE, |facts| rows(variable_rows(true, facts.session))),
    ("persisted_variables", NAME_AND_VALUE, |facts| rows(persisted_rows(facts.session.globals))),
    ("session_variables", NAME_AND_VALUE, |facts| rows(variable_rows(false, facts.session))),
];

/// The database.
pub(super) const SCHEMA: VirtualSchema = VirtualSchema { name: "performance_schema", tables: TABLES };

fn rows(variables: Vec<(&'static str, String)>) -> Vec<Vec<Value>> {
    variables.into_iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}
