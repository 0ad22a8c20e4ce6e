//! TIMESTAMP columns while `explicit_defaults_for_timestamp` is off.

use crate::parse::Statement;
use crate::parse::definition::{ColumnDefinition, DefaultValue, TableChange, TypeKind};
use crate::parse::expression::{Expression, Literal, StringLiteral};

/// The statement with the attributes that MySQL gives its TIMESTAMP columns; `None` if it defines none. A
/// column without NULL is NOT NULL. The first one gets DEFAULT and ON UPDATE CURRENT_TIMESTAMP, unless it has
/// a default or ON UPDATE; others without a default get the zero date.
pub(crate) fn with_implicit_timestamps(statement: &Statement) -> Option<Statement> {
    let mut statement = statement.clone();
    let mut columns: Vec<&mut ColumnDefinition> = match &mut statement {
        Statement::CreateTable(table) => table.columns.iter_mut().collect(),
        Statement::AlterTable(table) => {
            let changed = table.changes.iter_mut().filter_map(|change| match change {
                TableChange::AddColumn { column, .. } | TableChange::ChangeColumn { column, .. } => Some(&mut **column),
                _ => None,
            });
            changed.collect()
        }
        _ => return None,
    };
    columns.retain(|column| matches!(column.column_type.kind, TypeKind::Timestamp { .. }));
    if columns.is_empty() {
        return None;
    }
    for (place, column) in columns.into_iter().enumerate() {
        complete(column, place == 0);
    }
    Some(statement)
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
