//! The default values of columns.

use junctor_expression::{Expression, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::ColumnDefinition;
use junctor_model::temporal::{TemporalKind, Zone};
use junctor_model::value::Value;

/// `DEFAULT(column)`: the default as a value of the column's type, in this zone if it is an instant. Error
/// 1364 if the column has none, 3773 if it is an expression.
pub(super) fn default_of(column: &ColumnDefinition, zone: Zone) -> Result<Expression> {
    if column.default_expression().is_some() {
        let text = "DEFAULT function cannot be used with default value expressions";
        return Err(Error::new(ErrorCode::DefaultOfExpression, text));
    }
    let value = match default_value(column).ok_or_else(|| no_default(&column.name))? {
        Value::Temporal(value) if value.kind == TemporalKind::Timestamp => Value::Temporal(zone.date_time_of(value)),
        value => value,
    };
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
        None if column.is_generated() => None,
        None if column.nullable => Some(Value::Null),
        None if column.column_type.has_own_default() => Some(column.column_type.implicit_default()),
        None => None,
    }
}

/// Error 1364: the column needs a value.
pub(crate) fn no_default(column: &str) -> Box<Error> {
    Error::new(ErrorCode::NoDefault, format!("Field '{column}' doesn't have a default value"))
}

#[cfg(test)]
mod tests {
    use junctor_model::temporal::Temporal;
    use junctor_model::types::DataType;

    use super::*;

    #[test]
    fn the_default_of_a_timestamp_is_in_the_zone_of_the_session() {
        let default = Some(Value::Temporal(Temporal::instant(86_400, 0, 0)));
        let column = ColumnDefinition { default, ..ColumnDefinition::new("ts", DataType::timestamp(0)) };
        let text = |zone: &str| {
            let expression = default_of(&column, Zone::find(zone).expect("a zone")).expect("it has a default");
            let Some(Value::Temporal(value)) = expression.as_constant() else { panic!("{expression:?} is no time") };
            let mut text = Vec::new();
            value.append_text(&mut text);
            String::from_utf8(text).expect("digits")
        };
        assert_eq!(text("UTC"), "1970-01-02 00:00:00");
        assert_eq!(text("+2:30"), "1970-01-02 02:30:00");
        assert_eq!(text("-01:00"), "1970-01-01 23:00:00");
        assert_eq!(text("Europe/Berlin"), "1970-01-02 01:00:00");
    }
}
