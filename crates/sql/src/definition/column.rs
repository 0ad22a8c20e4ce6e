//! Columns: types, character sets, and unsupported attributes.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::{ColumnDefinition, ColumnType};

use super::message;
use super::structure::check_name;
use crate::mysql_catalog::variable::{Note, collation_of};
use crate::parse::definition as ast;
use crate::parse::definition::{LongSize, TypeKind};

/// Maximum bytes of VARBINARY, and of VARCHAR at the character set's maximum bytes per character.
const VARIABLE_BYTES_MAX: usize = 65_535;
const CHAR_LENGTH_MAX: u32 = 255;
const COMMENT_CHARACTERS_MAX: usize = 1024;
/// MySQL's number for "is deprecated and will be removed in a future release".
const DEPRECATED: u16 = 1681;

/// Defines a column without its default, because a later primary key may make the column NOT NULL.
/// `collation` is the table's.
pub(super) fn define(
    column: &ast::ColumnDefinition,
    collation: CollationId,
    notes: &mut Vec<Note>,
) -> Result<ColumnDefinition> {
    check_name(&column.name, ErrorCode::WrongFieldSpecification, "column")?;
    refuse_attributes(column)?;
    let name = &column.name;
    let column_type = type_of(name, &column.column_type, collation, notes)?;
    let display_width = match column.column_type.kind {
        TypeKind::Integer { display_width, .. } => display_width.map(|width| width as u16),
        _ => None,
    };
    if column.auto_increment && !matches!(column_type, ColumnType::Integer { .. }) {
        return Err(message::wrong_specifier(name));
    }
    Ok(ColumnDefinition {
        name: name.as_str().into(),
        column_type,
        nullable: column.nullable.unwrap_or(true) && !column.auto_increment,
        default: None,
        auto_increment: column.auto_increment,
        hidden: false,
        comment: comment_text("field", name, column.comment.as_deref(), COMMENT_CHARACTERS_MAX)?,
        display_width,
    })
}

/// The comment as text; bytes that are not UTF-8 are replaced. Error 1406 above `max` characters.
pub(super) fn comment_text(what: &str, name: &str, comment: Option<&[u8]>, max: usize) -> Result<Box<str>> {
    let text = String::from_utf8_lossy(comment.unwrap_or_default());
    if text.chars().count() > max {
        return Err(message::comment_too_long(what, name, max));
    }
    Ok(text.into())
}

fn refuse_attributes(column: &ast::ColumnDefinition) -> Result<()> {
    let refused = [
        (column.invisible, "invisible column"),
        (column.on_disk == Some(true), "STORAGE DISK"),
        (column.on_update.is_some(), "ON UPDATE"),
        (column.column_type.zerofill, "ZEROFILL"),
    ];
    match refused.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::not_supported(what)),
        None => Ok(()),
    }
}

fn type_of(name: &str, written: &ast::ColumnType, table: CollationId, notes: &mut Vec<Note>) -> Result<ColumnType> {
    match &written.kind {
        TypeKind::Integer { size, display_width } => {
            check_display_width(name, *size, *display_width, written.unsigned, notes)?;
            Ok(ColumnType::Integer { bytes: integer_bytes(*size), unsigned: written.unsigned })
        }
        TypeKind::Double { .. } | TypeKind::Float { precision: Some(25..=53), scale: None } if written.unsigned => {
            Err(Error::not_supported("DOUBLE UNSIGNED"))
        }
        TypeKind::Double { .. } | TypeKind::Float { precision: Some(25..=53), scale: None } => Ok(ColumnType::Double),
        TypeKind::Char { length } => char_type(name, length.unwrap_or(1), string_collation(written, table)?),
        TypeKind::Binary { length } => char_type(name, length.unwrap_or(1), CollationId::BINARY),
        TypeKind::VarChar { length } => varchar_type(name, *length, string_collation(written, table)?),
        TypeKind::VarBinary { length } => varchar_type(name, *length, CollationId::BINARY),
        TypeKind::Text { size, length } => {
            let collation = string_collation(written, table)?;
            Ok(ColumnType::Text { length_bytes: length_bytes(*size, *length, collation), collation })
        }
        TypeKind::Blob { size, length } => {
            let collation = CollationId::BINARY;
            Ok(ColumnType::Text { length_bytes: length_bytes(*size, *length, collation), collation })
        }
        other => Err(Error::not_supported(unsupported_name(other))),
    }
}

fn check_display_width(
    name: &str,
    size: ast::IntegerSize,
    width: Option<u32>,
    unsigned: bool,
    notes: &mut Vec<Note>,
) -> Result<()> {
    let Some(width) = width else { return Ok(()) };
    if width > 255 {
        return Err(message::display_width(name));
    }
    if size != ast::IntegerSize::Tiny || width != 1 || unsigned {
        notes.push((DEPRECATED, "Integer display width is deprecated and will be removed in a future release.".into()));
    }
    Ok(())
}

fn integer_bytes(size: ast::IntegerSize) -> u8 {
    match size {
        ast::IntegerSize::Tiny => 1,
        ast::IntegerSize::Small => 2,
        ast::IntegerSize::Medium => 3,
        ast::IntegerSize::Int => 4,
        ast::IntegerSize::Big => 8,
    }
}

/// The collation of a character column: its own, `utf8mb4_bin` for the attribute BINARY, otherwise the
/// table's.
fn string_collation(written: &ast::ColumnType, table: CollationId) -> Result<CollationId> {
    let own = collation_of(written.character_set.as_deref(), written.collation.as_deref(), table)?;
    let wants_binary = written.binary_collation && written.collation.is_none();
    let is_text = own.character_set() == CharacterSet::Utf8mb4;
    Ok(if wants_binary && is_text { CollationId::UTF8MB4_BIN } else { own })
}

fn char_type(name: &str, length: u32, collation: CollationId) -> Result<ColumnType> {
    if length > CHAR_LENGTH_MAX {
        return Err(message::too_big(name, CHAR_LENGTH_MAX as usize));
    }
    Ok(ColumnType::Char { length: length as u16, collation })
}

fn varchar_type(name: &str, length: u32, collation: CollationId) -> Result<ColumnType> {
    let max = VARIABLE_BYTES_MAX / collation.max_bytes_per_character();
    if length as usize > max {
        return Err(message::too_big(name, max));
    }
    Ok(ColumnType::VarChar { length: length as u16, collation })
}

/// Bytes of the length prefix of a TEXT or BLOB. A declared length in characters selects the smallest type
/// that holds it.
fn length_bytes(size: LongSize, length: Option<u32>, collation: CollationId) -> u8 {
    let Some(length) = length else {
        return match size {
            LongSize::Tiny => 1,
            LongSize::Normal => 2,
            LongSize::Medium => 3,
            LongSize::Long => 4,
        };
    };
    match u64::from(length) * collation.max_bytes_per_character() as u64 {
        // MySQL ignores a length of 0: TEXT(0) is TEXT.
        0 => 2,
        1..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    }
}

fn unsupported_name(kind: &TypeKind) -> &'static str {
    match kind {
        TypeKind::Bit { .. } => "BIT",
        TypeKind::Decimal { .. } => "DECIMAL",
        TypeKind::Float { .. } => "FLOAT",
        TypeKind::Date => "DATE",
        TypeKind::Time { .. } => "TIME",
        TypeKind::DateTime { .. } => "DATETIME",
        TypeKind::Timestamp { .. } => "TIMESTAMP",
        TypeKind::Year => "YEAR",
        TypeKind::Enum(_) => "ENUM",
        TypeKind::Set(_) => "SET",
        TypeKind::Json => "JSON",
        TypeKind::Geometry(name) => name,
        _ => "this column type",
    }
}

/// Maximum bytes of a column's declared type in an index key; `None` for TEXT and BLOB.
pub(super) fn key_bytes(column_type: ColumnType) -> Option<usize> {
    match column_type {
        ColumnType::Integer { bytes, .. } => Some(usize::from(bytes)),
        ColumnType::Double => Some(8),
        ColumnType::Char { length, collation } | ColumnType::VarChar { length, collation } => {
            Some(usize::from(length) * collation.max_bytes_per_character())
        }
        ColumnType::Text { .. } => None,
    }
}

/// Bytes of a row as MySQL counts them against its limit of 65,535: TEXT and BLOB count as their length
/// prefix and a pointer of 8 bytes.
pub(super) fn row_bytes(columns: &[ColumnDefinition]) -> usize {
    let nullable = columns.iter().filter(|column| column.nullable).count();
    let data: usize = columns
        .iter()
        .map(|column| match column.column_type {
            ColumnType::Text { length_bytes, .. } => 8 + usize::from(length_bytes),
            ColumnType::VarChar { .. } => {
                let bytes = key_bytes(column.column_type).unwrap_or(0);
                bytes + if bytes > 255 { 2 } else { 1 }
            }
            other => key_bytes(other).unwrap_or(0),
        })
        .sum();
    data + nullable.div_ceil(8)
}
