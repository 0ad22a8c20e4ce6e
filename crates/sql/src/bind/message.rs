//! MySQL's errors for statements that cannot be bound, with its texts.

use junctor_model::error::{Error, ErrorCode};

use crate::parse::error::ParseError;

/// Error 1054: no column of this name is visible in the clause.
pub fn unknown_column(shown: &str, clause: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownColumn, format!("Unknown column '{shown}' in '{clause}'"))
}

/// Error 1052: the name fits more than one column.
pub fn ambiguous_column(shown: &str, clause: &str) -> Box<Error> {
    Error::new(ErrorCode::AmbiguousColumn, format!("Column '{shown}' in {clause} is ambiguous"))
}

/// Error 1235: `CAST(... AS ... ARRAY)` that is no part of an index.
pub fn array_outside_index() -> Box<Error> {
    Error::not_supported(
        "Use of CAST( .. AS .. ARRAY) outside of functional index in CREATE(non-SELECT)/ALTER TABLE or in general \
         expressions",
    )
}

/// Error 1353: a row alias has another number of columns than the row.
pub fn alias_column_count() -> Box<Error> {
    let message = "In definition of view, derived table or common table expression, SELECT list and column names list have \
                   different column counts";
    Error::new(ErrorCode::ColumnListMismatch, message)
}

/// Error 1146: the database has no such table.
pub fn no_such_table(database: &str, table: &str) -> Box<Error> {
    Error::new(ErrorCode::NoSuchTable, format!("Table '{database}.{table}' doesn't exist"))
}

/// Error 3568: a locking clause names a table that the query does not read.
pub fn unresolved_table_lock(table: &str) -> Box<Error> {
    Error::new(ErrorCode::UnresolvedTableLock, format!("Unresolved table name `{table}` in locking clause."))
}

/// Error 3569: two locking clauses name the same table.
pub fn table_locked_twice(table: &str) -> Box<Error> {
    Error::new(ErrorCode::DuplicateTableLock, format!("Table {table} appears in multiple locking clauses."))
}

/// Error 1049: no database has this name.
pub fn unknown_database(database: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{database}'"))
}

/// Error 1111: an aggregate is not allowed here.
pub fn invalid_use_of_group() -> Box<Error> {
    Error::new(ErrorCode::InvalidUseOfGroup, "Invalid use of group function")
}

/// Error 1051, for a qualified `*` whose table the query does not read.
pub fn unknown_table(shown: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownTable, format!("Unknown table '{shown}'"))
}

/// Error 1093: a subquery reads the table that the statement changes.
#[cold]
pub fn target_in_subquery(table: &str) -> Box<Error> {
    let text = format!("You can't specify target table '{table}' for update in FROM clause");
    Error::new(ErrorCode::TargetInSubquery, text)
}

/// Error 1110: a column list or SET names the column twice.
pub fn column_twice(column: &str) -> Box<Error> {
    Error::new(ErrorCode::ColumnSpecifiedTwice, format!("Column '{column}' specified twice"))
}

/// Error 1136: row `row`, counted from 1, has another number of values than the column list.
pub fn column_count(row: usize) -> Box<Error> {
    Error::new(ErrorCode::ColumnCountMismatch, format!("Column count doesn't match value count at row {row}"))
}

/// Error 1241: the operand must have `count` columns.
pub fn operand_columns(count: usize) -> Box<Error> {
    Error::new(ErrorCode::OperandColumns, format!("Operand should contain {count} column(s)"))
}

/// Error 1210: wrong arguments to `statement`, which may be a clause such as LIMIT.
pub fn wrong_arguments(statement: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {statement}"))
}

/// Error 1298: no time zone has this name.
pub fn unknown_time_zone(name: &str) -> Box<Error> {
    Error::new(ErrorCode::UnknownTimeZone, format!("Unknown or incorrect time zone: '{name}'"))
}

/// Error 1140: item `position` of the select list, counted from 1, contains a column outside an aggregate.
pub fn mix_of_group_functions(position: usize, column: &str) -> Box<Error> {
    let message = format!(
        "In aggregated query without GROUP BY, expression #{position} of SELECT list contains nonaggregated column \
         '{column}'; this is incompatible with sql_mode=only_full_group_by"
    );
    Error::new(ErrorCode::MixOfGroupFunctions, message)
}

/// Error 3065: item `position` of ORDER BY, counted from 1, is not in the select list of SELECT DISTINCT.
pub fn not_in_distinct_list(position: usize, column: &str) -> Box<Error> {
    let message = format!(
        "Expression #{position} of ORDER BY clause is not in SELECT list, references column '{column}' which is not in \
         SELECT list; this is incompatible with DISTINCT"
    );
    Error::new(ErrorCode::NotInDistinctList, message)
}

/// Error 1176: an index hint names an index that the table does not have.
pub fn key_does_not_exist(key: &str, table: &str) -> Box<Error> {
    Error::new(ErrorCode::KeyDoesNotExist, format!("Key '{key}' doesn't exist in table '{table}'"))
}

/// The error of a text that does not parse.
pub fn of_parse_error(error: &ParseError) -> Box<Error> {
    Error::new(error.kind.code(), error.to_string())
}

/// Error 1109.
pub fn unknown_information_table(table: &str) -> Box<Error> {
    let table = table.to_ascii_uppercase();
    Error::new(ErrorCode::UnknownTableInStatement, format!("Unknown table '{table}' in information_schema"))
}

/// Error 1461: the server has `most` prepared statements, which is the limit.
pub fn too_many_prepared(most: usize) -> Box<Error> {
    let message = format!("Can't create more than max_prepared_stmt_count statements (current value: {most})");
    Error::new(ErrorCode::TooManyPreparedStatements, message)
}

/// Error 1347: `wanted` is VIEW or BASE TABLE.
#[cold]
pub fn wrong_object(database: &str, name: &str, wanted: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongObject, format!("'{database}.{name}' is not {wanted}"))
}

/// Error 1348.
#[cold]
pub fn column_not_updatable(column: &str) -> Box<Error> {
    Error::new(ErrorCode::NonUpdatableColumn, format!("Column '{column}' is not updatable"))
}

/// Error 1288: `statement` is UPDATE, DELETE or INSERT.
#[cold]
pub fn not_updatable(table: &str, statement: &str) -> Box<Error> {
    let text = format!("The target table {table} of the {statement} is not updatable");
    Error::new(ErrorCode::NonUpdatableTable, text)
}

/// Error 3105.
#[cold]
pub fn value_for_generated(column: &str, table: &str) -> Box<Error> {
    let text = format!("The value specified for generated column '{column}' in table '{table}' is not allowed.");
    Error::new(ErrorCode::ValueForGeneratedColumn, text)
}
