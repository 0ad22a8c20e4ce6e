//! Reads system variables, for expressions and for SHOW VARIABLES.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;

use super::assign::unknown;
use super::check::{default_value, text_of};
use super::declare::{Kind, Scope, Slot, Variable, VariableId, find};
use super::global::GlobalVariables;
use super::session_expression::SessionContext;
use super::table::{ALIASES, TABLE};
use crate::parse::Expression;
use crate::parse::expression::{SystemVariable, VariableScope};

/// The value of `@@name`. If the statement gives no scope, this is the session's value if sessions have one,
/// otherwise the server's.
///
/// # Errors
/// 1193 for an unknown variable, 1238 for a scope that the variable does not have.
pub fn read_variable(variable: &SystemVariable, facts: &SessionContext<'_>) -> Result<Value> {
    let name = &variable.name;
    let id = find(name).ok_or_else(|| unknown(name))?;
    let declared = id.variable();
    let wrong =
        |scope: &str| Err(Error::new(ErrorCode::ReadOnlyVariable, format!("Variable '{name}' is a {scope} variable")));
    match variable.scope {
        Some(VariableScope::Session) if !declared.has_session_value() => wrong("GLOBAL"),
        Some(VariableScope::Session) => Ok(session_value(id, facts)),
        Some(_) if !declared.has_global_value() => wrong("SESSION"),
        Some(_) => Ok(facts.globals.value(id)),
        None if declared.has_session_value() => Ok(session_value(id, facts)),
        None => Ok(facts.globals.value(id)),
    }
}

/// Whether an expression is the number of warnings or of errors of the statement before.
pub fn counts_diagnostics(expression: &Expression) -> bool {
    let Expression::SystemVariable(variable) = expression else { return false };
    find(&variable.name).is_some_and(|id| matches!(id.variable().slot, Slot::WarningCount | Slot::ErrorCount))
}

/// The rows of SHOW VARIABLES as (name, value), sorted by name. With `only_global`, they have the server's
/// values.
pub fn variable_rows(only_global: bool, facts: &SessionContext<'_>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::with_capacity(TABLE.len() + ALIASES.len());
    let aliases = ALIASES.iter().filter_map(|(alias, name)| find(name).map(|id| (*alias, id)));
    let own = TABLE.iter().enumerate().map(|(position, variable)| (variable.name, VariableId(position as u16)));
    for (name, id) in own.chain(aliases) {
        let variable = id.variable();
        if only_global && !variable.has_global_value() {
            continue;
        }
        let of_session = !only_global && variable.has_session_value();
        let value = if of_session { session_value(id, facts) } else { facts.globals.value(id) };
        rows.push((name, shown(&variable.kind, &value)));
    }
    rows.sort_unstable();
    rows
}

/// The values of SET PERSIST as (name, value), sorted by name. Variables that this release does not know are
/// missing.
pub fn persisted_rows(globals: &GlobalVariables) -> Vec<(&'static str, String)> {
    let values = globals.persisted().values.iter();
    let rows = values.filter_map(|(name, value)| {
        let variable = find(name)?.variable();
        Some((variable.name, shown(&variable.kind, value)))
    });
    rows.collect()
}

/// Where the global value of a variable comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableSource {
    /// The variable.
    pub name: &'static str,
    /// MySQL's word: COMPILED for the default, EXPLICIT for a value of the configuration or of the start,
    /// PERSISTED, or DYNAMIC for one that SET has changed.
    pub source: &'static str,
    /// The smallest and the largest value of a number.
    pub range: Option<(u64, u64)>,
}

/// Where the global values of all variables come from, sorted by name.
pub fn variable_sources(globals: &GlobalVariables) -> Vec<VariableSource> {
    let source = |(position, variable): (usize, &'static Variable)| {
        let id = VariableId(position as u16);
        let value = globals.value(id);
        let source = match () {
            () if globals.persisted().values.get(variable.name) == Some(&value) => "PERSISTED",
            () if value == default_value(variable) => "COMPILED",
            () if value == globals.start_value(id) => "EXPLICIT",
            () => "DYNAMIC",
        };
        let range = match variable.kind {
            Kind::Number { min, max, .. } => Some((min, max)),
            _ => None,
        };
        VariableSource { name: variable.name, source, range }
    };
    TABLE.iter().enumerate().map(source).collect()
}

/// The value of a variable in the session, and the text that SHOW VARIABLES shows for it.
pub(crate) fn shown_value(id: VariableId, facts: &SessionContext<'_>) -> (Value, String) {
    let value = session_value(id, facts);
    let text = shown(&id.variable().kind, &value);
    (value, text)
}

fn session_value(id: VariableId, facts: &SessionContext<'_>) -> Value {
    let variable = id.variable();
    match variable.slot {
        Slot::InsertId => Value::UInt(facts.insert_id),
        Slot::LastInsertId => Value::UInt(facts.last_insert_id),
        Slot::WarningCount => Value::UInt(u64::from(facts.warning_count)),
        Slot::ErrorCount => Value::UInt(u64::from(facts.error_count)),
        Slot::Timestamp => Value::Double(facts.now_us() as f64 / 1e6),
        Slot::CollationDatabase => Value::Bytes(facts.database_collation.name().into()),
        Slot::CharacterSetDatabase => Value::Bytes(facts.database_collation.character_set().name().into()),
        // Sessions cannot change the variable, so they have no copy of the value.
        _ if variable.scope == Scope::SessionFixed => facts.globals.value(id),
        _ => facts.variables.value(id),
    }
}

fn shown(kind: &Kind, value: &Value) -> String {
    match (kind, value) {
        (Kind::Flag(_), Value::Int(0)) => "OFF".to_owned(),
        (Kind::Flag(_), _) => "ON".to_owned(),
        (Kind::Real(_), Value::Double(value)) => format!("{value:.6}"),
        (_, Value::Null) => String::new(),
        (_, value) => text_of(value),
    }
}
