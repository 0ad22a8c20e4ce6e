//! Columns, constants and parameters.

use junctor_model::collation::CollationId;
use junctor_model::id::ColumnNumber;
use junctor_model::schema::ColumnDefinition;
use junctor_model::value::Value;

use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};

impl Expression {
    /// A column of the row. `name` is its name in messages, such as `` `database`.`table`.`column` ``.
    pub fn column(index: ColumnNumber, definition: &ColumnDefinition, name: &str) -> Expression {
        Expression { node: Node::Column { index, name: name.into() }, result: ResultType::of_column(definition) }
    }

    /// A column of a row that belongs to no table, such as a row of partial aggregates.
    pub fn column_of_type(index: ColumnNumber, result: ResultType, name: &str) -> Expression {
        Expression { node: Node::Column { index, name: name.into() }, result }
    }

    /// A literal. `collation` applies to strings.
    pub fn constant(value: Value, collation: CollationId) -> Expression {
        let result = ResultType::of_value(value.as_ref(), collation);
        Expression { node: Node::Constant(value), result }
    }

    /// A constant of a given type, such as a column's default. The value is NULL or of the type's kind.
    pub fn constant_of_type(value: Value, result: ResultType) -> Expression {
        Expression { node: Node::Constant(value), result }
    }

    /// DEFAULT of a column without a default. `value` is the implicit default, which is stored where the
    /// omission is only a warning.
    pub fn missing_default(definition: &ColumnDefinition, value: Value) -> Expression {
        let node = Node::MissingDefault { column: definition.name.clone(), value };
        Expression { node, result: ResultType::of_column(definition) }
    }

    /// A value that each execution supplies. Its kind is fixed now; values of other kinds are converted at
    /// execution. `scale` applies only to decimals.
    pub fn parameter(ordinal: u16, kind: Kind, scale: u8, collation: CollationId) -> Expression {
        let result = match kind {
            Kind::Null => ResultType::null(),
            Kind::Int | Kind::UInt => ResultType::integer(kind == Kind::UInt, 20),
            Kind::Decimal => ResultType::decimal(65, scale),
            Kind::Double => ResultType::double(),
            Kind::String | Kind::Enum | Kind::Set | Kind::Bit => {
                ResultType::string(collation, Coercibility::Coercible, 65_535)
            }
            Kind::Float => ResultType::double(),
            Kind::Json => ResultType::json(),
            Kind::Geometry => ResultType::geometry(),
            Kind::Year | Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => {
                ResultType::temporal(kind, scale)
            }
        };
        Expression::parameter_of_type(ordinal, result.with_nullable(true))
    }

    /// A value that each execution supplies. Its type is fixed now, for example as that of the literal that
    /// it replaces.
    pub fn parameter_of_type(ordinal: u16, result: ResultType) -> Expression {
        Expression { node: Node::Parameter(ordinal), result }
    }

    /// The literal NULL.
    pub fn null() -> Expression {
        Expression { node: Node::Constant(Value::Null), result: ResultType::null() }
    }

    /// The value, if this is a constant.
    pub fn as_constant(&self) -> Option<&Value> {
        match &self.node {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }
}
