//! Virtual columns that are added without touching the rows
//! (`docs/decisions/0076-unstored-virtual-columns.md`).

use std::sync::Arc;

use junctor_model::error::Result;
use junctor_model::schema::{ColumnDefinition, TableDefinition, TableLayout};
use junctor_model::time_to_live::TimeToLive;

use super::super::structure::DefinitionContext;
use super::is_virtual;
use crate::bind::UnstoredColumns;
use crate::parse::definition::TableChange;

/// Whether a key of the statement has an unstored column of the table. Storage makes keys of the values in
/// the rows, so a copy must store them first.
pub(in crate::definition) fn needs_stored(change: &TableChange, table: &TableDefinition) -> bool {
    let is_unstored =
        |name: &str| table.column(name).is_some_and(|column| table.columns[usize::from(column.0)].is_unstored());
    match change {
        TableChange::AddIndex(index) => index.columns.iter().any(|part| is_unstored(&part.name)),
        TableChange::AddForeignKey(key) => key.columns.iter().any(|column| is_unstored(column)),
        _ => false,
    }
}

/// Whether statements can compute the values of a new column, so that rows need none.
pub(super) fn can_be_unstored(column: &ColumnDefinition) -> bool {
    is_virtual(column) && !column.hidden && column.nullable
}

/// Whether all unstored columns of a table can stay so: their expressions are small, and the time to live
/// counts from none of them.
pub(super) fn can_leave_unstored(table: &TableDefinition, context: &DefinitionContext<'_>) -> Result<bool> {
    if !table.columns.iter().any(ColumnDefinition::is_unstored) {
        return Ok(true);
    }
    let layout = Arc::new(TableLayout::new(table.clone()));
    let is_read = |time_to_live: TimeToLive| table.columns[usize::from(time_to_live.column.0)].is_unstored();
    Ok(UnstoredColumns::of(context.environment, &layout)?.are_small() && !layout.time_to_live.is_some_and(is_read))
}
