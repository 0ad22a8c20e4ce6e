//! Columns that get the time of a statement: DEFAULT and ON UPDATE CURRENT_TIMESTAMP.
//!
//! A statement gets the assignments that MySQL makes for such columns before its calls of `NOW()` become
//! parameters. The partitions then need to know nothing of the clock.

use junctor_model::id::TableOwner;
use junctor_model::schema::{ColumnDefinition, Dictionary, TableDefinition};

use crate::parse::Statement;
use crate::parse::expression::{ColumnReference, Expression, Literal};
use crate::parse::statement::{Assignment, ObjectName};

/// Adds the assignments for the columns with ON UPDATE that a statement does not set, and replaces DEFAULT of
/// columns with a default of CURRENT_TIMESTAMP.
pub(super) fn add_clock_assignments(
    statement: &mut Statement,
    (dictionary, owner): (&Dictionary, Option<TableOwner>),
    database: Option<&str>,
) {
    let (table, assignments) = match statement {
        Statement::Update(update) => (&update.table.name, &mut update.assignments),
        Statement::Insert(insert) if !insert.on_duplicate.is_empty() => (&insert.table, &mut insert.on_duplicate),
        _ => return,
    };
    let ObjectName { database: named, name, .. } = table;
    let Some(database) = named.as_deref().or(database) else { return };
    let Some(layout) = dictionary.table_seen_by(owner, database, name) else { return };
    let definition = &layout.definition;
    if definition.columns.iter().any(|column| column.default_now || column.on_update_now) {
        complete(definition, assignments);
    }
}

fn complete(definition: &TableDefinition, assignments: &mut Vec<Assignment>) {
    let is_of =
        |assignment: &Assignment, column: &ColumnDefinition| assignment.column.name.eq_ignore_ascii_case(&column.name);
    for column in definition.columns.iter().filter(|column| column.default_now) {
        for assignment in assignments.iter_mut().filter(|assignment| is_of(assignment, column)) {
            if assignment.value == Expression::Default(None) {
                assignment.value = now(column);
            }
        }
    }
    for column in definition.columns.iter().filter(|column| column.on_update_now) {
        if !assignments.iter().any(|assignment| is_of(assignment, column)) {
            let name = column.name.to_string();
            let reference = ColumnReference { database: None, table: None, name };
            assignments.push(Assignment { column: reference, value: now(column), if_changed: true });
        }
    }
}

fn now(column: &ColumnDefinition) -> Expression {
    let digits = Expression::Literal(Literal::Integer(column.column_type.scale().into()));
    Expression::call("NOW", vec![digits])
}
