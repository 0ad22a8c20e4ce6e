//! Functional parts of indexes: the values of an expression are in a hidden generated column.

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::row_encoding::wire_type;
use junctor_model::schema::{
    ColumnDefinition, ColumnExpression, EXPRESSION_NAME, ExpressionKind, IndexDefinition, IndexKind, TableDefinition,
    TableLayout,
};
use junctor_model::types::DataType;

use super::expression::{Purpose, columns_of_text, normal_form};
use super::own_table;
use super::structure::DefinitionContext;
use crate::bind::StoredExpressions;
use crate::parse::definition as ast;
use crate::parse::expression::Expression;

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
    let text = normal_form(Purpose::Generated(index_name(index)), expression).map_err(|error| match error.code {
        ErrorCode::GeneratedColumnFunction
        | ErrorCode::GeneratedColumnSubquery
        | ErrorCode::GeneratedColumnVariables => {
            let message =
                format!("Expression of functional index '{}' contains a disallowed function.", index_name(index));
            Error::new(ErrorCode::FunctionalIndexFunction, message)
        }
        _ => error,
    })?;
    Ok(format!("{EXPRESSION_NAME}{text}"))
}

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
    let text = &name[EXPRESSION_NAME.len()..];
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
    column_of(text, columns, context)
}

/// The hidden column with the values of the expression of this text. Its type follows from the expression.
pub(super) fn column_of(
    text: &str,
    columns: &[ColumnDefinition],
    context: &DefinitionContext<'_>,
) -> Result<ColumnDefinition> {
    let kind = IndexKind::Primary { ordered: false };
    let nothing = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0)]);
    let table = TableDefinition::new(TableId(0), ("", ""), columns.to_vec(), vec![nothing]);
    let layout = Arc::new(TableLayout::new(table));
    let bound = StoredExpressions::new(context.environment, &layout).bind(text)?;
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
    Ok(ColumnDefinition {
        nullable: true,
        hidden: true,
        expression: Some(ColumnExpression { text: text.into(), kind: ExpressionKind::Virtual }),
        ..ColumnDefinition::new(&format!("{EXPRESSION_NAME}{text}"), column_type)
    })
}
