//! CHECK constraints: names and conditions.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::limit::IDENTIFIER_CHARACTERS_MAX;
use junctor_model::schema::{CheckConstraint, TableDefinition};

use super::expression::{self, Purpose};
use super::message;
use super::structure::DefinitionContext;
use crate::parse::definition::Check;

/// Adds a written constraint to those of a table. Without a name it gets one that derives from the table's.
///
/// # Errors
/// 1059 and 3822 for the name, 3813 for a column's constraint that refers to another column, and the errors
/// of [`expression::normal_form`].
pub(super) fn add(
    written: &Check,
    table: &TableDefinition,
    checks: &mut Vec<CheckConstraint>,
    context: &DefinitionContext<'_>,
) -> Result<()> {
    let name = match &written.name {
        Some(name) => name.clone(),
        None => generated_name(&table.name, checks),
    };
    if name.chars().count() > IDENTIFIER_CHARACTERS_MAX {
        return Err(message::identifier_too_long(&name));
    }
    let is_same = |check: &CheckConstraint| check.name.eq_ignore_ascii_case(&name);
    let others = context.dictionary.tables_of(&table.database).filter(|other| other.definition.name != table.name);
    let mut others = others.flat_map(|other| &other.definition.checks);
    if checks.iter().any(is_same) || others.any(is_same) {
        return Err(Error::new(ErrorCode::DuplicateCheckName, format!("Duplicate check constraint name '{name}'.")));
    }
    let text = expression::normal_form(Purpose::Check(&name), &written.expression)?;
    if let Some(column) = &written.column {
        expression::check_own_column(&name, column, &written.expression)?;
    }
    checks.push(CheckConstraint { name: name.into(), expression: text, enforced: written.enforced });
    Ok(())
}

/// The table's name, `_chk_`, and the number after the greatest one.
fn generated_name(table: &str, checks: &[CheckConstraint]) -> String {
    let prefix = format!("{table}_chk_");
    let numbers = checks.iter().filter_map(|check| check.name.strip_prefix(&prefix)?.parse::<u32>().ok());
    format!("{prefix}{}", numbers.max().unwrap_or(0).saturating_add(1))
}

/// The constraints of a copy of their table, with names that derive from the name of the copy.
pub(super) fn copied(checks: &[CheckConstraint], table: &str) -> Vec<CheckConstraint> {
    let copied = checks.iter().zip(1u32..);
    copied
        .map(|(check, number)| CheckConstraint { name: format!("{table}_chk_{number}").into(), ..check.clone() })
        .collect()
}

/// The position of the constraint with this name, case-insensitive.
pub(super) fn position(checks: &[CheckConstraint], name: &str) -> Option<usize> {
    checks.iter().position(|check| check.name.eq_ignore_ascii_case(name))
}

/// Error 3821.
#[cold]
pub(super) fn not_found(name: &str) -> Box<Error> {
    Error::new(ErrorCode::CheckNotFound, format!("Check constraint '{name}' is not found in the table."))
}
