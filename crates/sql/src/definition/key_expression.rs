//! Functional parts of indexes: the values of an expression are in a hidden generated column.

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::decimal::DECIMAL_PRECISION_MAX;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::limit::INDEX_KEY_BYTES_MAX;
use junctor_model::row_encoding::wire_type;
use junctor_model::schema::{
    ColumnDefinition, ColumnExpression, EXPRESSION_NAME, ExpressionKind, IndexDefinition, IndexKind, KeyList,
    TableDefinition, TableLayout,
};
use junctor_model::types::DataType;

use super::expression::{Purpose, columns_of_text, normal_form};
use super::structure::DefinitionContext;
use super::{message, own_table};
use crate::bind::StoredExpressions;
use crate::bind::message::array_outside_index;
use crate::parse::definition as ast;
use crate::parse::expression::{CastTarget, Expression};
use crate::parse::expression_text;

/// The name of the hidden column of an expression.
///
/// # Errors
/// 3756 for the primary key, 3758 for a function that is not allowed, 3762 for a column.
pub(super) fn column_name(index: &ast::IndexDefinition, expression: &Expression) -> Result<String> {
    if index.kind == ast::IndexKind::Primary {
        let message = "The primary key cannot be a functional index";
        return Err(Error::new(ErrorCode::FunctionalPrimaryKey, message));
    }
    if let Expression::Column(_) = expression {
        let message = "Functional index on a column is not supported. Consider using a regular index instead.";
        return Err(Error::new(ErrorCode::FunctionalIndexOnColumn, message));
    }
    if let Expression::Cast { operand, target: CastTarget::Array(element) } = expression {
        let element_bytes = element_bytes(element)?;
        // The parts of the document obey the rules of other expressions.
        normal(index, operand)?;
        let Some(text) = expression_text(expression) else {
            return Err(Error::not_supported("this expression in a table definition"));
        };
        return Ok(KeyList { text: &text, element_bytes }.column_name());
    }
    Ok(format!("{EXPRESSION_NAME}{}", normal(index, expression)?))
}

/// The normal form of an expression. Error: 3758 for a function that is not allowed.
fn normal(index: &ast::IndexDefinition, expression: &Expression) -> Result<Box<str>> {
    normal_form(Purpose::Generated(index_name(index)), expression).map_err(|error| match error.code {
        ErrorCode::GeneratedColumnFunction
        | ErrorCode::GeneratedColumnSubquery
        | ErrorCode::GeneratedColumnVariables => {
            let message =
                format!("Expression of functional index '{}' contains a disallowed function.", index_name(index));
            Error::new(ErrorCode::FunctionalIndexFunction, message)
        }
        _ => error,
    })
}

/// Maximum number of bytes of an element of this type, as text.
///
/// # Errors
/// 1235 for a type of which MySQL has no multi-valued indexes, 1071 for elements that are too long, and those
/// of CAST.
fn element_bytes(element: &CastTarget) -> Result<u16> {
    let refused = |what: &str| Err(Error::not_supported(&format!("CAST-ing data to array of {what}")));
    let length = match element {
        CastTarget::Signed | CastTarget::Unsigned => 20,
        CastTarget::Decimal { precision, .. } => precision.unwrap_or(10).min(DECIMAL_PRECISION_MAX.into()) + 2,
        CastTarget::Date => 10,
        CastTarget::Time(_) => 17,
        CastTarget::DateTime(_) => 26,
        CastTarget::Char { character_set: Some(_), .. } => {
            return Err(Error::not_supported("specifying charset for multi-valued index"));
        }
        CastTarget::Char { length: Some(length @ 0..=ELEMENT_CHARACTERS_MAX), .. } => length * CHARACTER_BYTES_MAX,
        CastTarget::Binary(Some(length @ 0..=ELEMENT_CHARACTERS_MAX)) => *length,
        CastTarget::Char { .. } | CastTarget::Binary(_) => return refused("char/binary BLOBs"),
        CastTarget::Double => return refused("DOUBLE"),
        CastTarget::Float(_) => return refused("FLOAT"),
        CastTarget::Year => return refused("YEAR"),
        CastTarget::Json => return refused("JSON"),
        CastTarget::Array(_) => return Err(array_outside_index()),
    };
    u16::try_from(length)
        .ok()
        .filter(|bytes| usize::from(*bytes) <= INDEX_KEY_BYTES_MAX)
        .ok_or_else(message::key_too_long)
}

/// Longer texts are those of BLOBs in MySQL.
const ELEMENT_CHARACTERS_MAX: u32 = 16_383;
/// Bytes of a character of UTF-8.
const CHARACTER_BYTES_MAX: u32 = 4;

fn index_name(index: &ast::IndexDefinition) -> &str {
    index.name.as_deref().unwrap_or("functional_index")
}

/// The hidden column of an expression.
///
/// # Errors
/// 3753 and 3757 for types that cannot be in an index, 3754 for an AUTO_INCREMENT column, and those of
/// [`column_name`] and of binding.
pub(super) fn hidden_column(
    index: &ast::IndexDefinition,
    expression: &Expression,
    columns: &[ColumnDefinition],
    context: &DefinitionContext<'_>,
) -> Result<ColumnDefinition> {
    let name = column_name(index, expression)?;
    let named = ColumnDefinition { hidden: true, ..ColumnDefinition::new(&name, DataType::integer(4, false)) };
    let Some(text) = named.key_expression() else { return Err(Error::not_supported("this functional index")) };
    let used = columns_of_text(text)?;
    let is_used = |column: &&ColumnDefinition| used.iter().any(|name| column.name.eq_ignore_ascii_case(name));
    if columns.iter().filter(is_used).any(|column| column.auto_increment) {
        let message = format!("Functional index '{}' cannot refer to an auto-increment column.", index_name(index));
        return Err(Error::new(ErrorCode::FunctionalIndexOfAutoIncrement, message));
    }
    let is_known =
        |name: &&String| columns.iter().any(|column| !column.hidden && column.name.eq_ignore_ascii_case(name));
    if let Some(missing) = used.iter().find(|name| !is_known(name)) {
        let message = format!("Unknown column '{missing}' in 'functional index'");
        return Err(Error::new(ErrorCode::UnknownColumn, message));
    }
    column_of(&named, columns, context)
}

/// The hidden column with the values of the expression that its name has. Its type follows from the
/// expression.
pub(super) fn column_of(
    named: &ColumnDefinition,
    columns: &[ColumnDefinition],
    context: &DefinitionContext<'_>,
) -> Result<ColumnDefinition> {
    let text = named.key_expression().unwrap_or_default();
    let kind = IndexKind::Primary { ordered: false };
    let nothing = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0)]);
    let table = TableDefinition::new(TableId(0), ("", ""), columns.to_vec(), vec![nothing]);
    let layout = Arc::new(TableLayout::new(table));
    let bound = StoredExpressions::new(context.environment, &layout).bind(text)?;
    if named.key_list().is_some() {
        return Ok(hidden_with(named, DataType::text_or_blob(2, CollationId::BINARY)));
    }
    let result = bound.result.result_column("");
    let column_type = match result.wire_type {
        wire_type::JSON | wire_type::GEOMETRY => {
            let message = "Cannot create a functional index on an expression that returns a JSON or GEOMETRY value.";
            return Err(Error::new(ErrorCode::FunctionalIndexOnJson, message));
        }
        wire_type::BLOB | wire_type::VAR_STRING | wire_type::STRING => {
            let collation = CollationId::from_number(result.charset).unwrap_or(CollationId::DEFAULT);
            let characters = result.length / collation.max_bytes_per_character() as u32;
            match u16::try_from(characters) {
                Ok(characters) if result.wire_type != wire_type::BLOB => DataType::varchar(characters, collation),
                _ => {
                    let message = "Cannot create a functional index on an expression that returns a BLOB or TEXT. \
                                   Please consider using CAST.";
                    return Err(Error::new(ErrorCode::FunctionalIndexOnLob, message));
                }
            }
        }
        _ => own_table::type_of(&result)?,
    };
    Ok(hidden_with(named, column_type))
}

fn hidden_with(named: &ColumnDefinition, column_type: DataType) -> ColumnDefinition {
    let text = named.key_expression().unwrap_or_default().into();
    ColumnDefinition {
        nullable: true,
        hidden: true,
        expression: Some(ColumnExpression { text, kind: ExpressionKind::Virtual }),
        ..ColumnDefinition::new(&named.name, column_type)
    }
}
