//! The LIKE and WHERE clauses of SHOW.

use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::value::Value;

use super::layout::VirtualTable;
use crate::parse::Expression;
use crate::parse::statement::ShowFilter;

/// Returns those of the rows for which a condition is true. The table is only for the names of its columns:
/// it has no rows while a filter runs.
pub type Condition<'a> = dyn FnMut(&Expression, &VirtualTable, Rows) -> Result<Rows> + 'a;

/// Rows of a result.
type Rows = Vec<Vec<Value>>;

/// Keeps the rows that the filter accepts. LIKE compares the first column and ignores case.
///
/// # Errors
/// The errors of `condition`.
pub fn apply_filter(
    table: &mut VirtualTable,
    filter: Option<&ShowFilter>,
    condition: &mut Condition<'_>,
) -> Result<()> {
    match filter {
        None => Ok(()),
        Some(ShowFilter::Like(pattern)) => {
            table.rows.retain(|row| matches!(row.first(), Some(Value::Bytes(text)) if is_like(text, &pattern.bytes)));
            Ok(())
        }
        Some(ShowFilter::Where(expression)) => keep_where(table, expression, condition),
    }
}

/// Keeps the rows that satisfy the condition. Errors: the errors of `condition`.
pub(super) fn keep_where(
    table: &mut VirtualTable,
    expression: &Expression,
    condition: &mut Condition<'_>,
) -> Result<()> {
    // The rows move out of the table because the condition borrows it.
    let rows = std::mem::take(&mut table.rows);
    table.rows = condition(expression, table, rows)?;
    Ok(())
}

pub(super) fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    CollationId::UTF8MB4_GENERAL_CI.like(text, pattern, Some('\\'))
}
