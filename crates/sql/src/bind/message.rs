//! MySQL's words for what can be wrong with a statement.

use junctor_model::error::{Error, ErrorCode};

use crate::parse::error::{ParseError, ParseErrorKind};

/// 1054.
pub fn unknown_column(shown: &str, clause: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownColumn, format!("Unknown column '{shown}' in '{clause}'"))
}

/// 1052.
pub fn ambiguous_column(shown: &str, clause: &str) -> Box<Error> {
    Error::new(ErrorCode::AmbiguousColumn, format!("Column '{shown}' in {clause} is ambiguous"))
}

/// 1353, of the names of a row's columns.
pub fn alias_column_count() -> Box<Error> {
    let message = "In definition of view, derived table or common table expression, SELECT list and column names list have \
                   different column counts";
    Error::new(ErrorCode::ColumnListMismatch, message)
}

/// 1146.
pub fn no_such_table(database: &str, table: &str) -> Box<Error> {
    Error::new(ErrorCode::NoSuchTable, format!("Table '{database}.{table}' doesn't exist"))
}

/// 3568.
pub fn unresolved_table_lock(table: &str) -> Box<Error> {
    Error::new(ErrorCode::UnresolvedTableLock, format!("Unresolved table name `{table}` in locking clause."))
}

/// 3569.
pub fn table_locked_twice(table: &str) -> Box<Error> {
    Error::new(ErrorCode::DuplicateTableLock, format!("Table {table} appears in multiple locking clauses."))
}

/// 1049.
pub fn unknown_database(database: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{database}'"))
}

/// 1111.
pub fn invalid_use_of_group() -> Box<Error> {
    Error::new(ErrorCode::InvalidUseOfGroup, "Invalid use of group function")
}

/// 1051, as a qualified `*` gives it.
pub fn unknown_table(shown: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownTable, format!("Unknown table '{shown}'"))
}

/// 1110.
pub fn column_twice(column: &str) -> Box<Error> {
    Error::new(ErrorCode::ColumnSpecifiedTwice, format!("Column '{column}' specified twice"))
}

/// 1136.
pub fn column_count(row: usize) -> Box<Error> {
    Error::new(ErrorCode::ColumnCountMismatch, format!("Column count doesn't match value count at row {row}"))
}

/// 1241.
pub fn operand_columns(count: usize) -> Box<Error> {
    Error::new(ErrorCode::OperandColumns, format!("Operand should contain {count} column(s)"))
}

/// 1210, as a statement with bad LIMIT parameters gives it.
pub fn wrong_arguments(statement: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {statement}"))
}

/// 1140.
pub fn mix_of_group_functions(position: usize, column: &str) -> Box<Error> {
    let message = format!(
        "In aggregated query without GROUP BY, expression #{position} of SELECT list contains nonaggregated column \
         '{column}'; this is incompatible with sql_mode=only_full_group_by"
    );
    Error::new(ErrorCode::MixOfGroupFunctions, message)
}

/// 3065.
pub fn not_in_distinct_list(position: usize, column: &str) -> Box<Error> {
    let message = format!(
        "Expression #{position} of ORDER BY clause is not in SELECT list, references column '{column}' which is not in \
         SELECT list; this is incompatible with DISTINCT"
    );
    Error::new(ErrorCode::NotInDistinctList, message)
}

/// 1176.
pub fn key_does_not_exist(key: &str, table: &str) -> Box<Error> {
    Error::new(ErrorCode::KeyDoesNotExist, format!("Key '{key}' doesn't exist in table '{table}'"))
}

/// The error of a text that is no statement.
pub fn of_parse_error(error: &ParseError) -> Box<Error> {
    let code = match error.kind {
        ParseErrorKind::Syntax => ErrorCode::SyntaxError,
        ParseErrorKind::EmptyQuery => ErrorCode::EmptyQuery,
        ParseErrorKind::NestingTooDeep => ErrorCode::StatementTooComplex,
        ParseErrorKind::TooManyParameters => ErrorCode::TooManyParameters,
        ParseErrorKind::InvalidCharacter => ErrorCode::InvalidCharacterString,
        ParseErrorKind::NameTooLong => ErrorCode::IdentifierTooLong,
        ParseErrorKind::StatementTooLong => ErrorCode::PacketTooLarge,
    };
    Error::new(code, error.to_string())
}

/// 1109's words, as an unknown table of the information schema gives them.
pub fn unknown_information_table(table: &str) -> Box<Error> {
    let table = table.to_ascii_uppercase();
    Error::new(ErrorCode::UnknownTable, format!("Unknown table '{table}' in information_schema"))
}

/// Error 1461.
pub fn too_many_prepared(most: usize) -> Box<Error> {
    let message = format!("Can't create more than max_prepared_stmt_count statements (current value: {most})");
    Error::new(ErrorCode::TooManyPreparedStatements, message)
}
