//! Columns, constants, parameters.

use junctor_model::collation::CollationId;
use junctor_model::id::ColumnIndex;
use junctor_model::schema::ColumnDefinition;
use junctor_model::value::Value;

use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};

impl Expression {
    /// A column of the row; `name` is how messages name it, such as `` `database`.`table`.`column` ``.
    pub fn column(index: ColumnIndex, definition: &ColumnDefinition, name: &str) -> Expression {
        Expression { node: Node::Column { index, name: name.into() }, result: ResultType::of_column(definition) }
    }

    /// A column of a row that is no table's, such as a row of partial results.
    pub fn column_of_type(index: ColumnIndex, result: ResultType, name: &str) -> Expression {
        Expression { node: Node::Column { index, name: name.into() }, result }
    }

    /// A literal; a string has the connection's collation.
    pub fn constant(value: Value, collation: CollationId) -> Expression {
        let result = ResultType::of_value(value.as_ref(), collation);
        Expression { node: Node::Constant(value), result }
    }

    /// A value of a type fixed elsewhere, such as a column's default: NULL, or of the kind of the type.
    pub fn constant_of_type(value: Value, result: ResultType) -> Expression {
        Expression { node: Node::Constant(value), result }
    }

    /// DEFAULT of a column that has none; `value` is what the column gets where that is no error.
    pub fn missing_default(definition: &ColumnDefinition, value: Value) -> Expression {
        let node = Node::MissingDefault { column: definition.name.clone(), value };
        Expression { node, result: ResultType::of_column(definition) }
    }

    /// A value given with each execution, of a kind fixed now; a value of another kind is converted when it is read.
    /// `scale` is that of a decimal and means nothing for other kinds.
    pub fn parameter(ordinal: u16, kind: Kind, scale: u8, collation: CollationId) -> Expression {
        let result = match kind {
            Kind::Null => ResultType::null(),
            Kind::Int | Kind::UInt => ResultType::integer(kind == Kind::UInt, 20),
            Kind::Decimal => ResultType::decimal(65, scale),
            Kind::Double => ResultType::double(),
            Kind::String => ResultType::string(collation, Coercibility::Coercible, 65_535),
        };
        Expression::parameter_of_type(ordinal, result.with_nullable(true))
    }

    /// A value given with each execution, of a type fixed now, such as that of the literal it stands for.
    pub fn parameter_of_type(ordinal: u16, result: ResultType) -> Expression {
        Expression { node: Node::Parameter(ordinal), result }
    }

    /// NULL.
    pub fn null() -> Expression {
        Expression { node: Node::Constant(Value::Null), result: ResultType::null() }
    }

    /// The value when this is a constant.
    pub fn as_constant(&self) -> Option<&Value> {
        match &self.node {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }
}
