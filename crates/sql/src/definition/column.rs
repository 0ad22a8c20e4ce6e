//! Columns: types, character sets, and unsupported attributes.

use std::sync::Arc;

use junctor_expression::result_type::DECIMAL_PRECISION_MAX;
use junctor_model::collation::CollationId;
use junctor_model::decimal::DECIMAL_SCALE_MAX;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::{GeometryKind, ReferenceSystem};
use junctor_model::schema::{ColumnDefinition, ColumnExpression, ExpressionKind};
use junctor_model::temporal::DIGITS_MAX;
use junctor_model::types::{
    BITS_MAX, DataType, ENUM_MEMBERS_MAX, Form, Members, SET_MEMBERS_MAX, TooLong, VECTOR_ENTRIES_MAX,
};

use super::expression::{self, Purpose};
use super::message;
use super::structure::check_name;
use crate::mysql_catalog::variable::{Note, collation_of};
use crate::parse::definition as ast;
use crate::parse::definition::{LongSize, TypeKind};
use crate::parse::expression::{Expression, Literal};

pub(super) const COMMENT_CHARACTERS_MAX: usize = 1024;
/// Number of entries of a VECTOR for which none is written.
const VECTOR_ENTRIES_DEFAULT: u32 = 2048;
const CONVERTED: u16 = 1246;
/// The warning about AUTO_INCREMENT of FLOAT and DOUBLE.
const DEPRECATED_FLOAT_NUMBERS: u16 = 3856;

/// Defines a column without its default, because a later primary key may make the column NOT NULL.
/// `collation` is the table's.
pub(super) fn define(
    column: &ast::ColumnDefinition,
    (collation, is_lenient): (CollationId, bool),
    notes: &mut Vec<Note>,
) -> Result<ColumnDefinition> {
    check_name(&column.name, ErrorCode::WrongColumnName, "column")?;
    refuse_attributes(column)?;
    let name = &column.name;
    // As in MySQL, a column with a default does not become TEXT or BLOB.
    let is_varying = matches!(column.column_type.kind, TypeKind::VarChar { .. } | TypeKind::VarBinary { .. });
    let is_lenient = is_lenient && !(is_varying && has_value(column.default.as_ref()));
    let mut column_type = type_of(name, &column.column_type, (collation, is_lenient), notes)?;
    if column.column_type.zerofill {
        column_type = column_type.zero_filled();
    }
    if let Some(srid) = column.srid {
        column_type = with_system(&column_type, srid)?;
    }
    let display_width = match column.column_type.kind {
        TypeKind::Integer { display_width, .. } => display_width.filter(|width| *width > 0).map(|width| width as u16),
        _ => None,
    };
    if column.auto_increment && column_type.as_integer().is_none() {
        if !matches!(column_type.form(), Form::Float | Form::Double) {
            return Err(message::wrong_specifier(name));
        }
        let text = format!(
            "AUTO_INCREMENT support for FLOAT/DOUBLE columns is deprecated and will be removed in a future release. \
             Consider removing AUTO_INCREMENT from column '{name}'."
        );
        notes.push((DEPRECATED_FLOAT_NUMBERS, text.into()));
    }
    Ok(ColumnDefinition {
        name: name.as_str().into(),
        column_type,
        nullable: column.nullable.unwrap_or(true) && !column.auto_increment,
        default: None,
        default_now: false,
        expression: generated(column)?,
        on_update_now: false,
        auto_increment: column.auto_increment,
        hidden: false,
        invisible: column.invisible,
        comment: comment_text("field", name, column.comment.as_deref(), COMMENT_CHARACTERS_MAX)?,
        display_width,
        has_collation: column.column_type.collation.is_some(),
        added: None,
    })
}

/// A column of a table function, in the collation of the connection. Errors: those of types.
pub(crate) fn column_of(column: &ast::ColumnDefinition, collation: CollationId) -> Result<ColumnDefinition> {
    define(column, (collation, false), &mut Vec::new())
}

/// GENERATED ALWAYS AS of a column.
fn generated(column: &ast::ColumnDefinition) -> Result<Option<ColumnExpression>> {
    let Some(generated) = &column.generated else { return Ok(None) };
    let excluded = [
        (column.default.is_some(), "DEFAULT"),
        (column.on_update.is_some(), "ON UPDATE"),
        (column.auto_increment, "AUTO_INCREMENT"),
    ];
    if let Some((_, what)) = excluded.iter().find(|(present, _)| *present) {
        let text = format!("Incorrect usage of {what} and generated column");
        return Err(Error::new(ErrorCode::WrongUsage, text));
    }
    if column.primary_key && !generated.stored {
        return Err(message::virtual_primary());
    }
    let text = expression::normal_form(Purpose::Generated(&column.name), &generated.expression)?;
    let kind = if generated.stored { ExpressionKind::Stored } else { ExpressionKind::Virtual };
    Ok(Some(ColumnExpression { text, kind }))
}

/// The comment as text; bytes that are not UTF-8 are replaced. Error 1406 above `max` characters.
pub(super) fn comment_text(what: &str, name: &str, comment: Option<&[u8]>, max: usize) -> Result<Box<str>> {
    let text = String::from_utf8_lossy(comment.unwrap_or_default());
    if text.chars().count() > max {
        return Err(message::comment_too_long(what, name, max));
    }
    Ok(text.into())
}

/// Whether the default is a literal other than NULL.
fn has_value(default: Option<&ast::DefaultValue>) -> bool {
    match default {
        Some(ast::DefaultValue::Plain(Expression::Literal(literal))) => *literal != Literal::Null,
        Some(ast::DefaultValue::Plain(_)) => true,
        Some(ast::DefaultValue::Computed(_)) | None => false,
    }
}

fn refuse_attributes(column: &ast::ColumnDefinition) -> Result<()> {
    match column.on_disk {
        Some(true) => Err(Error::not_supported("STORAGE DISK")),
        _ => Ok(()),
    }
}

fn type_of(
    name: &str,
    written: &ast::ColumnType,
    (table, is_lenient): (CollationId, bool),
    notes: &mut Vec<Note>,
) -> Result<DataType> {
    let text_collation = || string_collation(written, table);
    match &written.kind {
        TypeKind::Integer { size, display_width } => {
            if display_width.is_some_and(|width| width > 255) {
                return Err(message::display_width(name));
            }
            Ok(DataType::integer(integer_bytes(*size), written.unsigned))
        }
        // MySQL takes (0,0) for no digits.
        TypeKind::Double { precision: Some(precision), scale: Some(scale) } if precision.max(scale) > &0 => {
            Ok(DataType::floating(true, Some(fixed_digits(name, *precision, *scale)?), written.unsigned))
        }
        TypeKind::Float { precision: Some(precision), scale: Some(scale) } if precision.max(scale) > &0 => {
            Ok(DataType::floating(false, Some(fixed_digits(name, *precision, *scale)?), written.unsigned))
        }
        TypeKind::Double { .. } | TypeKind::Float { precision: Some(25..=53), scale: None } => {
            Ok(DataType::floating(true, None, written.unsigned))
        }
        TypeKind::Float { precision: Some(54..), scale: None } => Err(message::wrong_specifier(name)),
        TypeKind::Float { .. } => Ok(DataType::floating(false, None, written.unsigned)),
        TypeKind::Char { length } => declared(name, DataType::declared_char(length.unwrap_or(1), text_collation()?)),
        TypeKind::Binary { length } => {
            declared(name, DataType::declared_char(length.unwrap_or(1), CollationId::BINARY))
        }
        TypeKind::VarChar { length } => varying(name, (*length, text_collation()?), is_lenient, notes),
        TypeKind::VarBinary { length } => varying(name, (*length, CollationId::BINARY), is_lenient, notes),
        TypeKind::Text { size, length } => text_or_blob(name, *size, *length, text_collation()?),
        TypeKind::Blob { size, length } => text_or_blob(name, *size, *length, CollationId::BINARY),
        TypeKind::Year { digits: None | Some(4) } => Ok(DataType::year()),
        TypeKind::Year { .. } => Err(message::year_digits()),
        TypeKind::Date => Ok(DataType::date()),
        TypeKind::Time { fraction_digits } => Ok(DataType::time(second_digits(name, *fraction_digits)?)),
        TypeKind::DateTime { fraction_digits } => Ok(DataType::date_time(second_digits(name, *fraction_digits)?)),
        TypeKind::Timestamp { fraction_digits } => Ok(DataType::timestamp(second_digits(name, *fraction_digits)?)),
        TypeKind::Decimal { precision, scale } => decimal(name, *precision, *scale, written.unsigned),
        TypeKind::Json => Ok(DataType::json()),
        TypeKind::Vector { entries } => match entries.unwrap_or(VECTOR_ENTRIES_DEFAULT) {
            entries @ 1..=VECTOR_ENTRIES_MAX => Ok(DataType::vector(entries as u16)),
            _ => Err(message::vector_entries(name)),
        },
        TypeKind::Bit { length } => match length.unwrap_or(1) {
            0 => Err(message::invalid_size(name)),
            bits if bits > u32::from(BITS_MAX) => Err(message::bit_width(name)),
            bits => Ok(DataType::bit(bits as u8)),
        },
        TypeKind::Enum(names) => {
            let collation = text_collation()?;
            Ok(DataType::enumeration(choice_members(name, names, (false, collation, is_lenient), notes)?, collation))
        }
        TypeKind::Set(names) => {
            let collation = text_collation()?;
            Ok(DataType::set(choice_members(name, names, (true, collation, is_lenient), notes)?, collation))
        }
        TypeKind::Geometry(name) => {
            let name = name.to_ascii_lowercase();
            let kind = GeometryKind::of_name(&name).unwrap_or(GeometryKind::Collection);
            Ok(DataType::geometry(kind, None))
        }
    }
}

/// Digits after the point of seconds. Error 1426 above 6.
fn second_digits(name: &str, digits: u32) -> Result<u8> {
    match digits <= u32::from(DIGITS_MAX) {
        true => Ok(digits as u8),
        false => Err(message::too_precise(name, digits, DIGITS_MAX.into())),
    }
}

/// The digits of FLOAT and DOUBLE before and after the point. Errors 1425, 1427, and 1439 above 255.
fn fixed_digits(name: &str, precision: u32, scale: u32) -> Result<(u8, u8)> {
    if scale > u32::from(DECIMAL_SCALE_MAX) {
        return Err(message::too_big_scale(name, scale));
    }
    if precision > u32::from(u8::MAX) {
        return Err(message::display_width(name));
    }
    if scale > precision {
        return Err(message::scale_above_precision(name));
    }
    Ok((precision as u8, scale as u8))
}

/// DECIMAL(precision, scale). Errors: 1425, 1426 and 1427 for digits that it cannot have.
fn decimal(name: &str, precision: Option<u32>, scale: Option<u32>, unsigned: bool) -> Result<DataType> {
    let scale = scale.unwrap_or(0);
    let precision = match precision {
        // MySQL takes 0 for the default.
        None | Some(0) if scale == 0 => 10,
        precision => precision.unwrap_or(10),
    };
    if scale > u32::from(DECIMAL_SCALE_MAX) {
        return Err(message::too_big_scale(name, scale));
    }
    if precision > DECIMAL_PRECISION_MAX {
        return Err(message::too_precise(name, precision, DECIMAL_PRECISION_MAX));
    }
    if scale > precision {
        return Err(message::scale_above_precision(name));
    }
    Ok(DataType::decimal(precision as u8, scale as u8, unsigned))
}

/// The members of an ENUM or SET, without trailing spaces. Errors: 1097 for too many, 1291 for a member named
/// twice in strict mode, else a note, 1367 for a comma in a member of a SET.
fn choice_members(
    name: &str,
    written: &[Vec<u8>],
    (is_set, collation, is_lenient): (bool, CollationId, bool),
    notes: &mut Vec<Note>,
) -> Result<Arc<Members>> {
    let type_name = if is_set { "SET" } else { "ENUM" };
    if written.len() > if is_set { SET_MEMBERS_MAX } else { ENUM_MEMBERS_MAX } {
        return Err(message::too_many_members(name, type_name));
    }
    let mut names: Vec<Box<[u8]>> = Vec::with_capacity(written.len());
    for member in written {
        let spaces = member.iter().rev().take_while(|byte| **byte == b' ').count();
        let member = &member[..member.len() - spaces];
        if is_set && member.contains(&b',') {
            return Err(message::illegal_member(&String::from_utf8_lossy(member)));
        }
        if let Some(known) = names.iter().find(|known| collation.equal(known, member)) {
            let error = message::repeated_member(name, &String::from_utf8_lossy(known), type_name);
            if !is_lenient {
                return Err(error);
            }
            notes.push((error.code.errno(), error.message));
        }
        names.push(member.into());
    }
    Ok(Arc::new(Members::new(names)))
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

/// The collation of a character column: its own, that of the code points for the attribute BINARY,
/// otherwise the table's.
fn string_collation(written: &ast::ColumnType, table: CollationId) -> Result<CollationId> {
    let own = collation_of(written.character_set.as_deref(), written.collation.as_deref(), table)?;
    let wants_binary = written.binary_collation && written.collation.is_none();
    Ok(if wants_binary { own.character_set().code_point_collation() } else { own })
}

/// Error 1074 for a length that the type cannot have.
fn declared(name: &str, declared: std::result::Result<DataType, TooLong>) -> Result<DataType> {
    declared.map_err(|too_long| message::too_big(name, too_long.max as usize))
}

/// VARCHAR or VARBINARY. Outside of strict mode, one that is too long becomes TEXT or BLOB, with a note.
fn varying(
    name: &str,
    (length, collation): (u32, CollationId),
    is_lenient: bool,
    notes: &mut Vec<Note>,
) -> Result<DataType> {
    match DataType::declared_varchar(length, collation) {
        Err(_) if is_lenient => {
            let (from, to) = if collation == CollationId::BINARY { ("VARBINARY", "BLOB") } else { ("VARCHAR", "TEXT") };
            notes.push((CONVERTED, format!("Converting column '{name}' from {from} to {to}").into()));
            Ok(DataType::declared_text_or_blob(length, collation))
        }
        outcome => declared(name, outcome),
    }
}

/// TEXT or BLOB of a size or length. Error 1439 for a length beyond 32 bits.
fn text_or_blob(name: &str, size: LongSize, length: Option<u64>, collation: CollationId) -> Result<DataType> {
    let length = length.map(|length| u32::try_from(length).map_err(|_| message::blob_length(name))).transpose()?;
    Ok(match (length, size) {
        (Some(length), _) => DataType::declared_text_or_blob(length, collation),
        (None, LongSize::Tiny) => DataType::text_or_blob(1, collation),
        (None, LongSize::Normal) => DataType::text_or_blob(2, collation),
        (None, LongSize::Medium) => DataType::text_or_blob(3, collation),
        (None, LongSize::Long) => DataType::text_or_blob(4, collation),
    })
}

/// A spatial type with the attribute SRID. Errors: 1221 for another type, 3548 for an unknown system.
fn with_system(column_type: &DataType, srid: u32) -> Result<DataType> {
    let Some(kind) = column_type.geometry_kind() else {
        return Err(Error::new(ErrorCode::WrongUsage, "Incorrect usage of SRID and non-geometry column"));
    };
    match ReferenceSystem::is_known(srid) {
        true => Ok(DataType::geometry(kind, Some(srid))),
        false => {
            let text = format!("There's no spatial reference system with SRID {srid}.");
            Err(Error::new(ErrorCode::NoReferenceSystem, text))
        }
    }
}

/// Bytes of a row as MySQL counts them against its limit of 65,535: TEXT and BLOB count as their length
/// prefix and a pointer of 8 bytes.
pub(super) fn row_bytes<'c>(columns: impl Iterator<Item = &'c ColumnDefinition> + Clone) -> usize {
    let nullable = columns.clone().filter(|column| column.nullable).count();
    let data: usize = columns.map(|column| column.column_type.row_bytes()).sum();
    data + nullable.div_ceil(8)
}
