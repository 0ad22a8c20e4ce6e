//! The tables of `performance_schema` that clients read: system variables, status variables, sessions.

use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{Field, FieldKind, bytes, field, text};
use super::schema_layout::{NAME_AND_VALUE, PROCESSLIST};
use super::virtual_schema::{SchemaTable, VirtualSchema};
use crate::mysql_catalog::variable::{persisted_rows, variable_rows, variable_sources};

/// Every table, sorted by name, with its columns and the function that computes its rows. The session adds
/// the rows of `processlist`.
const TABLES: &[SchemaTable] = &[
    ("global_status", NAME_AND_VALUE, status),
    ("global_variables", NAME_AND_VALUE, |facts| rows(variable_rows(true, facts.session))),
    ("persisted_variables", NAME_AND_VALUE, |facts| rows(persisted_rows(facts.session.globals))),
    ("processlist", PROCESSLIST, |_| Vec::new()),
    ("session_status", NAME_AND_VALUE, status),
    ("session_variables", NAME_AND_VALUE, |facts| rows(variable_rows(false, facts.session))),
    ("variables_info", VARIABLES_INFO, variables_info),
];

const VARIABLES_INFO: &[Field] = &[
    text("VARIABLE_NAME", 64),
    text("VARIABLE_SOURCE", 12).or_null(),
    text("VARIABLE_PATH", 1024).or_null(),
    text("MIN_VALUE", 64).or_null(),
    text("MAX_VALUE", 64).or_null(),
    field("SET_TIME", FieldKind::Timestamp).or_null(),
    text("SET_USER", 32).or_null(),
    text("SET_HOST", 255).or_null(),
];

/// The database.
pub(super) const SCHEMA: VirtualSchema = VirtualSchema { name: "performance_schema", tables: TABLES };

fn rows(variables: Vec<(&'static str, String)>) -> Vec<Vec<Value>> {
    variables.into_iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}

fn status(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    facts.status.iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}

/// When and by whom a value was set is not kept.
fn variables_info(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |source: crate::mysql_catalog::variable::VariableSource| {
        let (min, max) = source.range.unwrap_or((0, 0));
        let mut row = vec![bytes(source.name), bytes(source.source), bytes("")];
        row.extend([min, max].map(|bound| bytes(bound.to_string())));
        row.extend([Value::Null, Value::Null, Value::Null]);
        row
    };
    variable_sources(facts.session.globals).into_iter().map(row).collect()
}
