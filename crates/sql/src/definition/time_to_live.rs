//! The option TTL in the comment of a table.

use junctor_model::error::Result;
use junctor_model::foreign_key::foreign_keys_of_expiring_rows;
use junctor_model::schema::TableDefinition;
use junctor_model::time_to_live::TimeToLive;

use super::structure::DefinitionContext;

/// Checks the option of a complete definition.
///
/// # Errors
/// 1478 for a wrong option, 1235 if the table has foreign keys or is a parent.
pub(super) fn check(table: &TableDefinition, context: &DefinitionContext<'_>) -> Result<()> {
    if TimeToLive::of_comment(&table.comment, &table.columns)?.is_none() {
        return Ok(());
    }
    let is_parent = context.dictionary.children_of(table).next().is_some();
    match is_parent || !table.foreign_keys.is_empty() {
        true => Err(foreign_keys_of_expiring_rows()),
        false => Ok(()),
    }
}
