//! TIMESTAMP columns while `explicit_defaults_for_timestamp` is off.

use junctor_model::schema::TableDefinition;

use crate::parse::Statement;
use crate::parse::definition::{ColumnDefinition, ColumnPlace, DefaultValue, TableChange, TypeKind};
use crate::parse::expression::{Expression, Literal, StringLiteral};

/// The statement with the attributes that MySQL gives its TIMESTAMP columns; `None` if it defines none. A
/// column without NULL is NOT NULL. The first one of the resulting table gets DEFAULT and ON UPDATE
/// CURRENT_TIMESTAMP, unless it has a default or ON UPDATE; others without a default get the zero date.
/// `altered` is the table of an ALTER TABLE. Its columns that the statement does not define stay as they are.
pub(crate) fn with_implicit_timestamps(statement: &Statement, altered: Option<&TableDefinition>) -> Option<Statement> {
    let mut statement = statement.clone();
    let mut is_first_free = true;
    let mut columns: Vec<(bool, &mut ColumnDefinition)> = match &mut statement {
        Statement::CreateTable(table) => {
            let mut is_first = |column: &ColumnDefinition| is_timestamp(column) && std::mem::take(&mut is_first_free);
            table.columns.iter_mut().map(|column| (is_first(column), column)).collect()
        }
        Statement::AlterTable(table) => {
            let first = first_timestamp(&table.changes, altered?);
            let changed = table.changes.iter_mut().enumerate().filter_map(|(place, change)| match change {
                TableChange::AddColumn { column, .. } | TableChange::ChangeColumn { column, .. } => {
                    Some((first == Some(Definition::Change(place)), &mut **column))
                }
                _ => None,
            });
            changed.collect()
        }
        _ => return None,
    };
    columns.retain(|(_, column)| is_timestamp(column));
    if columns.is_empty() {
        return None;
    }
    for (is_first, column) in columns {
        complete(column, is_first);
    }
    Some(statement)
}

fn is_timestamp(column: &ColumnDefinition) -> bool {
    matches!(column.column_type.kind, TypeKind::Timestamp { .. })
}

/// The definition of a column of the resulting table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Definition {
    /// The definition in the table; whether it is a TIMESTAMP.
    Old(bool),
    /// The definition in the change with this number.
    Change(usize),
}

/// The definition of the first TIMESTAMP column after these changes. Columns that do not exist are an error
/// later.
fn first_timestamp(changes: &[TableChange], table: &TableDefinition) -> Option<Definition> {
    let visible = table.columns.iter().filter(|column| !column.hidden);
    let mut columns: Vec<(&str, Definition)> =
        visible.map(|column| (&*column.name, Definition::Old(column.column_type.is_timestamp()))).collect();
    for (number, change) in changes.iter().enumerate() {
        match change {
            TableChange::AddColumn { column, place } => {
                insert(&mut columns, (&column.name, Definition::Change(number)), place.as_ref());
            }
            TableChange::ChangeColumn { from, column, place } => {
                let Some(position) = position_of(&columns, from) else { continue };
                let changed = (&*column.name, Definition::Change(number));
                match place {
                    None => columns[position] = changed,
                    Some(_) => {
                        columns.remove(position);
                        insert(&mut columns, changed, place.as_ref());
                    }
                }
            }
            TableChange::DropColumn(name) => columns.retain(|(known, _)| !known.eq_ignore_ascii_case(name)),
            TableChange::RenameColumn(from, to) => {
                if let Some(position) = position_of(&columns, from) {
                    columns[position].0 = to;
                }
            }
            _ => {}
        }
    }
    let is_found = |definition: &Definition| match definition {
        Definition::Old(is_timestamp) => *is_timestamp,
        Definition::Change(number) => match &changes[*number] {
            TableChange::AddColumn { column, .. } | TableChange::ChangeColumn { column, .. } => is_timestamp(column),
            _ => false,
        },
    };
    columns.into_iter().map(|(_, definition)| definition).find(is_found)
}

fn position_of(columns: &[(&str, Definition)], name: &str) -> Option<usize> {
    columns.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))
}

fn insert<'n>(columns: &mut Vec<(&'n str, Definition)>, column: (&'n str, Definition), place: Option<&ColumnPlace>) {
    let position = match place {
        Some(ColumnPlace::First) => Some(0),
        Some(ColumnPlace::After(name)) => position_of(columns, name).map(|position| position + 1),
        None => None,
    };
    columns.insert(position.unwrap_or(columns.len()), column);
}

fn complete(column: &mut ColumnDefinition, is_first: bool) {
    let nullable = *column.nullable.get_or_insert(false);
    if nullable || column.generated.is_some() || column.default.is_some() {
        return;
    }
    if is_first && column.on_update.is_none() {
        let TypeKind::Timestamp { fraction_digits } = column.column_type.kind else { return };
        let digits = Expression::Literal(Literal::Integer(fraction_digits.into()));
        let arguments = if fraction_digits == 0 { Vec::new() } else { vec![digits] };
        let now = Expression::call("CURRENT_TIMESTAMP", arguments);
        column.default = Some(DefaultValue::Plain(now.clone()));
        column.on_update = Some(now);
        return;
    }
    let zero = StringLiteral { bytes: b"0000-00-00 00:00:00".to_vec(), ..StringLiteral::default() };
    column.default = Some(DefaultValue::Plain(Expression::Literal(Literal::String(zero))));
}
