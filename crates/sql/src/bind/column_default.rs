//! The default values of columns.

use junctor_expression::{Expression, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::ColumnDefinition;
use junctor_model::value::Value;

/// `DEFAULT(column)`: the default as a value of the column's type. Error 1364 if the column has none.
pub(super) fn default_of(column: &ColumnDefinition) -> Result<Expression> {
    let value = default_value(column).ok_or_else(|| no_default(&column.name))?;
    Ok(Expression::constant_of_type(value, ResultType::of_column(column)))
}

/// `DEFAULT` as a value to store. If the column has no default, error 1364 arises only when a row needs the
/// value.
pub(crate) fn default_into(column: &ColumnDefinition) -> Expression {
    match default_value(column) {
        Some(value) => Expression::constant(value, column.column_type.collation().unwrap_or(CollationId::BINARY)),
        None => Expression::missing_default(column, column.column_type.implicit_default()),
    }
}

fn default_value(column: &ColumnDefinition) -> Option<Value> {
    match &column.default {
        Some(value) => Some(value.clone()),
        None if column.auto_increment => Some(Value::Int(0)),
        None if column.nullable => Some(Value::Null),
        None if column.column_type.has_own_default() => Some(column.column_type.implicit_default()),
        None => None,
    }
}

/// Error 1364: the column needs a value.
pub(crate) fn no_default(column: &str) -> Box<Error> {
    Error::new(ErrorCode::NoDefault, format!("Field '{column}' doesn't have a default value"))
}
