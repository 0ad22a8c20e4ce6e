//! The syntax tree of JSON_TABLE, and a limit of JSON_VALUE.

use super::definition::ColumnDefinition;
use super::expression::Expression;

/// Characters of the text that JSON_VALUE returns with RETURNING CHAR and no length.
pub const VALUE_CHARACTERS_MAX: u32 = u32::MAX / 4;

/// `JSON_TABLE(document, path COLUMNS (...))`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    /// The document.
    pub document: Expression,
    /// The path of the rows.
    pub path: Vec<u8>,
    /// The columns.
    pub columns: Vec<JsonColumn>,
}

/// A member of COLUMNS.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonColumn {
    /// `name FOR ORDINALITY`: the number of the row.
    Ordinality(String),
    /// `name type PATH path`
    Path {
        /// Name and type.
        column: ColumnDefinition,
        /// The path of the value within the row.
        path: Vec<u8>,
        /// The value if the path finds nothing.
        on_empty: JsonAction,
        /// The value if the found one does not fit.
        on_error: JsonAction,
    },
    /// `name type EXISTS PATH path`: whether the path finds something.
    Exists {
        /// Name and type.
        column: ColumnDefinition,
        /// The path within the row.
        path: Vec<u8>,
    },
    /// `NESTED PATH path COLUMNS (...)`: further rows for each row.
    Nested {
        /// The path of the further rows.
        path: Vec<u8>,
        /// Their columns.
        columns: Vec<JsonColumn>,
    },
}

/// What ON EMPTY and ON ERROR do.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonAction {
    /// The value is NULL.
    Null,
    /// The value is this document.
    Default(Vec<u8>),
    /// The statement fails.
    Error,
}
