//! CREATE TEMPORARY TABLE and CREATE TABLE ... SELECT: tables that only their session finds, at least until
//! they are filled.

use junctor_model::collation::CollationId;
use junctor_model::decimal::DECIMAL_PRECISION_MAX;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::{DECIMALS_NOT_FIXED, ResultColumn, column_flag, wire_type};
use junctor_model::schema::{ColumnDefinition, Sharing, TableDefinition};
use junctor_model::types::DataType;
use junctor_model::value::Value;
use junctor_signals::change_schema::SchemaChange;

use super::message;
use super::structure::{CheckedDefinition, DefinitionContext};
use crate::mysql_catalog::show::column_text;
use crate::mysql_catalog::variable::Note;
use crate::parse::definition as ast;
use crate::parse::{Dialect, Statement, parse_in};

/// Maximum number of temporary tables of a session.
const TEMPORARY_TABLES_MAX: usize = 256;
/// Strings of more characters get a TEXT or BLOB column, as in MySQL.
const VARCHAR_CHARACTERS_MAX: u32 = 512;
/// Integers with fewer digits get an INT column, as in MySQL.
const BIGINT_DIGITS: u32 = 10;

/// The change that creates a table with this definition.
///
/// # Errors
/// 1050 for a table that exists, 3978 for CREATE TABLE ... SELECT with a foreign key, and those of
/// [`temporary`].
pub(super) fn checked(
    definition: TableDefinition,
    table: &ast::CreateTable,
    (auto_increment, notes): (u64, Vec<Note>),
    context: &DefinitionContext<'_>,
) -> Result<CheckedDefinition> {
    let if_not_exists = table.if_not_exists;
    if table.temporary {
        if table.partitioning.is_some() {
            return Err(partitions());
        }
        return temporary(definition, if_not_exists, (auto_increment, notes), context);
    }
    if table.select.is_none() {
        let definition = Box::new(definition);
        let change = SchemaChange::CreateTable { definition, if_not_exists, auto_increment };
        return Ok(CheckedDefinition { notes, ..CheckedDefinition::plain(change) });
    }
    if !definition.foreign_keys.is_empty() {
        let text = "Foreign key creation is not allowed with CREATE TABLE as SELECT and CREATE TABLE with START \
                    TRANSACTION statement.";
        return Err(Error::new(ErrorCode::ForeignKeyWithSelect, text));
    }
    if context.dictionary.table_named(&definition.database, &definition.name).is_some() {
        return existing(&definition.name, if_not_exists);
    }
    let sharing = Sharing::Unfinished(context.owner);
    let change = SchemaChange::CreateOwnTable { definition: Box::new(definition), sharing, auto_increment };
    Ok(CheckedDefinition { notes, ..CheckedDefinition::plain(change) })
}

/// The change that creates a temporary table. The transaction stays open.
///
/// # Errors
/// 1050 for a temporary table that exists, 1041 for too many, 1215 for foreign keys.
pub(super) fn temporary(
    definition: TableDefinition,
    if_not_exists: bool,
    (auto_increment, notes): (u64, Vec<Note>),
    context: &DefinitionContext<'_>,
) -> Result<CheckedDefinition> {
    if !definition.foreign_keys.is_empty() {
        return Err(foreign_key());
    }
    let (dictionary, owner) = (context.dictionary, context.owner);
    if dictionary.owned_table(owner, &definition.database, &definition.name).is_some() {
        return Ok(CheckedDefinition { commits: false, ..existing(&definition.name, if_not_exists)? });
    }
    if dictionary.tables_owned_by(owner).count() >= TEMPORARY_TABLES_MAX {
        let message = "Out of memory; the session has too many temporary tables";
        return Err(Error::new(ErrorCode::OutOfResources, message));
    }
    let definition = TableDefinition { partition_count: 1, has_partition_clause: false, ..definition };
    let sharing = Sharing::Temporary(owner);
    let change = SchemaChange::CreateOwnTable { definition: Box::new(definition), sharing, auto_increment };
    Ok(CheckedDefinition { notes, commits: false, ..CheckedDefinition::plain(change) })
}

/// Error 1562.
#[cold]
pub(super) fn partitions() -> Box<Error> {
    Error::new(ErrorCode::PartitionedTemporaryTable, "Cannot create temporary table with partitions")
}

/// Error 1215.
#[cold]
pub(super) fn foreign_key() -> Box<Error> {
    Error::new(ErrorCode::CannotAddForeignKey, "Cannot add foreign key constraint")
}

/// Error 1050, or a note with IF NOT EXISTS.
fn existing(name: &str, if_not_exists: bool) -> Result<CheckedDefinition> {
    let message = format!("Table '{name}' already exists");
    if !if_not_exists {
        return Err(Error::new(ErrorCode::TableExists, message));
    }
    Ok(CheckedDefinition {
        existence_notes: vec![(ErrorCode::TableExists.errno(), message.into())],
        creates: false,
        ..CheckedDefinition::plain(SchemaChange::DropOwnTables { tables: Vec::new() })
    })
}

/// Adds the columns of the query to the statement. Columns of the statement that the query does not fill come
/// first; a column that both have keeps its definition in the statement.
///
/// # Errors
/// 1060 for two columns of the query with the same name, 1067 and others for a column that cannot be defined.
pub(super) fn with_query_columns(
    table: &ast::CreateTable,
    columns: &[ResultColumn],
    context: &DefinitionContext<'_>,
) -> Result<ast::CreateTable> {
    let is_selected = |name: &str| columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let mut merged: Vec<_> = table.columns.iter().filter(|column| !is_selected(&column.name)).cloned().collect();
    for (position, column) in columns.iter().enumerate() {
        if columns[..position].iter().any(|other| other.name.eq_ignore_ascii_case(&column.name)) {
            return Err(message::duplicate_column(&column.name));
        }
        match table.columns.iter().find(|written| written.name.eq_ignore_ascii_case(&column.name)) {
            Some(written) => merged.push(written.clone()),
            None => merged.push(parsed(&column_of(column, context)?)?),
        }
    }
    Ok(ast::CreateTable { columns: merged, ..table.clone() })
}

/// The column for a column of the query. One of a table keeps its type, default and comment.
pub(super) fn column_of(column: &ResultColumn, context: &DefinitionContext<'_>) -> Result<ColumnDefinition> {
    let owner = context.environment.owner;
    let source = context.dictionary.table_seen_by(owner, &column.database, &column.org_table);
    let found = source.and_then(|layout| {
        let number = layout.definition.column(&column.org_name)?;
        Some(layout.definition.columns[usize::from(number.0)].clone())
    });
    let nullable = column.flags & column_flag::NOT_NULL == 0;
    let mut definition = match found {
        Some(found) => {
            let is_computed = found.expression.is_some();
            let mut kept = ColumnDefinition { expression: None, invisible: false, added: None, ..found };
            if std::mem::take(&mut kept.auto_increment) {
                kept.default = Some(Value::Int(0));
            }
            if is_computed {
                kept.default = None;
            }
            kept
        }
        None => {
            let mut made = ColumnDefinition::new(&column.name, type_of(column)?);
            made.default = (!nullable).then(|| made.column_type.implicit_default()).filter(|_| has_default(column));
            made
        }
    };
    definition.name = column.name.clone();
    definition.nullable = nullable;
    if nullable && !definition.default_now && definition.default.is_none() && !definition.column_type.is_text_or_blob()
    {
        definition.default = Some(Value::Null);
    }
    Ok(definition)
}

/// Whether a column that cannot be NULL gets the empty value of its type as its default.
fn has_default(column: &ResultColumn) -> bool {
    let is_day = matches!(column.wire_type, wire_type::DATE | wire_type::DATETIME | wire_type::TIMESTAMP);
    let is_long =
        matches!(column.wire_type, wire_type::JSON | wire_type::BLOB | wire_type::GEOMETRY) || is_text(column);
    !is_day && !is_long
}

fn is_text(column: &ResultColumn) -> bool {
    matches!(column.wire_type, wire_type::VAR_STRING | wire_type::STRING) && characters(column) > VARCHAR_CHARACTERS_MAX
}

fn collation(column: &ResultColumn) -> CollationId {
    CollationId::from_number(column.charset).unwrap_or(CollationId::DEFAULT)
}

fn characters(column: &ResultColumn) -> u32 {
    column.length / collation(column).max_bytes_per_character() as u32
}

/// The type for the values of an expression. Error: 1235 for a type without columns.
pub(super) fn type_of(column: &ResultColumn) -> Result<DataType> {
    let unsigned = column.flags & column_flag::UNSIGNED != 0;
    let digits = column.length;
    let fraction = if column.decimals == DECIMALS_NOT_FIXED { 0 } else { column.decimals.min(6) };
    let text = match column.wire_type {
        wire_type::TINY | wire_type::SHORT | wire_type::INT24 | wire_type::LONG | wire_type::LONGLONG => {
            return Ok(DataType::integer(if digits < BIGINT_DIGITS { 4 } else { 8 }, unsigned));
        }
        wire_type::DOUBLE => "DOUBLE".to_owned(),
        wire_type::FLOAT => "FLOAT".to_owned(),
        wire_type::NEWDECIMAL => {
            let signs = u32::from(!unsigned) + u32::from(column.decimals > 0);
            let precision =
                digits.saturating_sub(signs).clamp(u32::from(column.decimals).max(1), u32::from(DECIMAL_PRECISION_MAX));
            format!("DECIMAL({precision},{})", column.decimals)
        }
        wire_type::NULL => "BINARY(0)".to_owned(),
        wire_type::YEAR => "YEAR".to_owned(),
        wire_type::DATE => "DATE".to_owned(),
        wire_type::TIME => format!("TIME({fraction})"),
        wire_type::DATETIME => format!("DATETIME({fraction})"),
        wire_type::TIMESTAMP => format!("TIMESTAMP({fraction})"),
        wire_type::BIT => format!("BIT({})", digits.clamp(1, 64)),
        wire_type::JSON => "JSON".to_owned(),
        wire_type::GEOMETRY => "GEOMETRY".to_owned(),
        wire_type::BLOB | wire_type::VAR_STRING | wire_type::STRING => return Ok(string_type(column)),
        _ => return Err(Error::not_supported("CREATE TABLE ... SELECT of this type")),
    };
    column_type(&text)
}

fn string_type(column: &ResultColumn) -> DataType {
    let (collation, characters) = (collation(column), characters(column));
    if column.wire_type != wire_type::BLOB && characters <= VARCHAR_CHARACTERS_MAX {
        return match characters {
            0 => DataType::char(0, collation),
            _ => DataType::varchar(characters as u16, collation),
        };
    }
    let width = match column.length {
        0..=0xFF if column.wire_type == wire_type::BLOB => 1,
        0..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    };
    DataType::text_or_blob(width, collation)
}

/// The type with this text.
fn column_type(text: &str) -> Result<DataType> {
    let written = parse_column(format!("CREATE TABLE t (c {text})").as_bytes())?;
    Ok(super::column::define(&written, (CollationId::DEFAULT, false), &mut Vec::new())?.column_type)
}

/// The column as a statement writes it.
fn parsed(column: &ColumnDefinition) -> Result<ast::ColumnDefinition> {
    let mut text = b"CREATE TABLE t (".to_vec();
    column_text(column, &mut text);
    text.push(b')');
    parse_column(&text)
}

fn parse_column(text: &[u8]) -> Result<ast::ColumnDefinition> {
    let parsed = parse_in(text, Dialect::default()).map_err(|error| crate::bind::message::of_parse_error(&error))?;
    match parsed.statement {
        Statement::CreateTable(table) if table.columns.len() == 1 => Ok(table.columns[0].clone()),
        _ => Err(Error::not_supported("CREATE TABLE ... SELECT of this column")),
    }
}
