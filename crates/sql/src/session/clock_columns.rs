//! Columns that get the time of a statement: DEFAULT and ON UPDATE CURRENT_TIMESTAMP.
//!
//! A statement gets the assignments that MySQL makes for such columns before its calls of `NOW()` become
//! parameters. The partitions then need to know nothing of the clock.

use junctor_model::id::TableOwner;
use junctor_model::schema::{ColumnDefinition, Dictionary, TableDefinition};
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;

use crate::parse::Statement;
use crate::parse::expression::{ColumnReference, Expression, Literal};
use crate::parse::statement::{Assignment, InsertSource, ObjectName, SelectItem};

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

/// Replaces NULL for columns of TIMESTAMP that are NOT NULL by the present time, as MySQL does while
/// `explicit_defaults_for_timestamp` is off. Values that `*` of a query stands for, and those of LOAD DATA,
/// stay.
pub(super) fn replace_nulls(
    statement: &mut Statement,
    (dictionary, owner): (&Dictionary, Option<TableOwner>),
    database: Option<&str>,
) {
    let table = match statement {
        Statement::Update(update) => &update.table.name,
        Statement::Insert(insert) => &insert.table,
        _ => return,
    };
    let Some(database) = table.database.as_deref().or(database) else { return };
    let Some(layout) = dictionary.table_seen_by(owner, database, &table.name) else { return };
    let columns = &layout.definition.columns;
    let is_replaced = |column: &&ColumnDefinition| {
        column.column_type.form() == Form::Temporal(TemporalKind::Timestamp) && !column.nullable
    };
    let named = |name: &str| {
        let found = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        found.filter(is_replaced)
    };
    let replace_assigned = |assignments: &mut Vec<Assignment>| {
        for assignment in assignments {
            if let Some(column) = named(&assignment.column.name) {
                replace_null(&mut assignment.value, column);
            }
        }
    };
    match statement {
        Statement::Update(update) => replace_assigned(&mut update.assignments),
        Statement::Insert(insert) => {
            replace_assigned(&mut insert.on_duplicate);
            let visible = || columns.iter().filter(|column| !column.hidden && !column.invisible);
            let targets: Vec<Option<&ColumnDefinition>> = match &insert.columns {
                Some(names) => names.iter().map(|name| named(name)).collect(),
                None => visible().map(|column| Some(column).filter(is_replaced)).collect(),
            };
            match &mut insert.source {
                InsertSource::Rows(rows) => {
                    for (value, column) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(&targets)) {
                        if let Some(column) = column {
                            replace_null(value, column);
                        }
                    }
                }
                InsertSource::Select(select) => {
                    // How many columns `*` stands for is not known here, so values behind one count from the
                    // end.
                    let is_list = |item: &SelectItem| !matches!(item, SelectItem::Expression { .. });
                    let items = &mut select.projection;
                    let first = items.iter().position(is_list).unwrap_or(items.len());
                    let behind = items.iter().rposition(is_list).map_or(0, |last| items.len() - last - 1);
                    let length = items.len();
                    let front = items[..first].iter_mut().zip(&targets).map(|(item, column)| (item, *column));
                    front.for_each(replace_item);
                    let back = items[length - behind..].iter_mut().rev().zip(targets.iter().rev());
                    back.map(|(item, column)| (item, *column)).for_each(replace_item);
                }
                InsertSource::UniformRows { .. } | InsertSource::Load(_) => {}
            }
        }
        _ => {}
    }
}

fn replace_item((item, column): (&mut SelectItem, Option<&ColumnDefinition>)) {
    if let (SelectItem::Expression { expression, .. }, Some(column)) = (item, column) {
        replace_null(expression, column);
    }
}

fn replace_null(value: &mut Expression, column: &ColumnDefinition) {
    if *value != Expression::Default(None) {
        let given = std::mem::replace(value, Expression::Literal(Literal::Null));
        *value = Expression::call("COALESCE", vec![given, now(column)]);
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
