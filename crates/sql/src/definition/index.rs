//! Keys: names, columns and length limits.

use junctor_model::error::{Error, Result};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::limit::{IDENTIFIER_CHARACTERS_MAX, INDEX_COLUMNS_MAX, INDEX_KEY_BYTES_MAX};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, IndexState};
use junctor_model::types::DataType;

use super::message;
use crate::mysql_catalog::variable::Note;
use crate::parse::definition as ast;

/// MySQL's reserved name of the primary key.
pub(super) const PRIMARY: &str = "PRIMARY";
const HASH_NOT_SUPPORTED: u16 = 3502;

/// Defines one key over `columns`. `taken` has the keys defined before, whose names cannot be used again. The
/// id is 0 until the caller assigns it.
pub(super) fn define(
    index: &ast::IndexDefinition,
    columns: &[ColumnDefinition],
    taken: &[IndexDefinition],
    notes: &mut Vec<Note>,
) -> Result<IndexDefinition> {
    if index.invisible {
        return Err(Error::not_supported("invisible index"));
    }
    let key = key_columns(index, columns)?;
    let name = match (index.kind, &index.name) {
        (ast::IndexKind::Primary, _) => PRIMARY.to_owned(),
        (_, Some(name)) => explicit_name(name, taken)?,
        (_, None) => generated_name(&columns[usize::from(key[0].0)].name, taken),
    };
    let by_hash = index.algorithm == Some(ast::IndexAlgorithm::Hash);
    let kind = match index.kind {
        ast::IndexKind::Primary => IndexKind::Primary { ordered: !by_hash },
        ast::IndexKind::Unique => IndexKind::Unique { ordered: !by_hash, entries: TableId(0) },
        ast::IndexKind::Plain => {
            if by_hash {
                let text = "This storage engine does not support the HASH index algorithm, storage engine default was \
                            used instead.";
                notes.push((HASH_NOT_SUPPORTED, text.into()));
            }
            IndexKind::Ordered
        }
    };
    Ok(IndexDefinition { id: IndexId(0), name: name.into(), kind, columns: key, state: IndexState::Online })
}

fn key_columns(index: &ast::IndexDefinition, columns: &[ColumnDefinition]) -> Result<Vec<ColumnNumber>> {
    if index.columns.len() > INDEX_COLUMNS_MAX {
        return Err(message::too_many_parts());
    }
    let mut key = Vec::with_capacity(index.columns.len());
    let mut bytes = 0;
    for part in &index.columns {
        let found = columns.iter().position(|column| !column.hidden && column.name.eq_ignore_ascii_case(&part.name));
        let position = found.ok_or_else(|| message::key_column_missing(&part.name))?;
        let column = &columns[position];
        let position = ColumnNumber(position as u16);
        if key.contains(&position) {
            return Err(message::duplicate_column(&part.name));
        }
        if part.descending {
            return Err(Error::not_supported("DESC index"));
        }
        check_prefix(column, part.prefix_length)?;
        bytes +=
            column.column_type.key_bytes().ok_or_else(|| message::no_whole_key(&column.column_type, &column.name))?;
        key.push(position);
    }
    if bytes > INDEX_KEY_BYTES_MAX {
        return Err(message::key_too_long());
    }
    Ok(key)
}

/// Accepts a prefix length only if it equals the column's full length. A shorter prefix is not supported
/// (1235), a longer one is wrong (1089).
fn check_prefix(column: &ColumnDefinition, prefix: Option<u32>) -> Result<()> {
    let Some(prefix) = prefix else { return Ok(()) };
    if column.column_type.collation().is_none() {
        return Err(message::wrong_prefix());
    }
    match prefix.cmp(&column.column_type.length()) {
        std::cmp::Ordering::Equal if !column.column_type.is_text_or_blob() => Ok(()),
        std::cmp::Ordering::Greater if !column.column_type.is_text_or_blob() => Err(message::wrong_prefix()),
        _ => Err(Error::not_supported("prefix index")),
    }
}

/// Errors: 1059 for a name above 64 characters; 1280 for an empty name, a trailing space, or `PRIMARY`.
pub(super) fn check_explicit_name(name: &str) -> Result<()> {
    if name.chars().count() > IDENTIFIER_CHARACTERS_MAX {
        return Err(message::identifier_too_long(name));
    }
    if name.is_empty() || name.ends_with(' ') || name.eq_ignore_ascii_case(PRIMARY) {
        return Err(message::wrong_key_name(name));
    }
    Ok(())
}

fn explicit_name(name: &str, taken: &[IndexDefinition]) -> Result<String> {
    check_explicit_name(name)?;
    if is_taken(name, taken) {
        return Err(message::duplicate_key(name));
    }
    Ok(name.to_owned())
}

/// Errors: 1170 for a TEXT or BLOB column, 1071 for a key above [`INDEX_KEY_BYTES_MAX`].
pub(super) fn check_key_bytes<'a>(columns: impl Iterator<Item = (&'a str, &'a DataType)>) -> Result<()> {
    let mut bytes = 0;
    for (name, column_type) in columns {
        bytes += column_type.key_bytes().ok_or_else(|| message::no_whole_key(column_type, name))?;
    }
    if bytes > INDEX_KEY_BYTES_MAX { Err(message::key_too_long()) } else { Ok(()) }
}

/// The generated name of a key that the statement does not name: the name of its first column, with `_2`,
/// `_3` and so on if that name is taken.
pub(super) fn generated_name(column: &str, taken: &[IndexDefinition]) -> String {
    if !is_taken(column, taken) && !column.eq_ignore_ascii_case(PRIMARY) {
        return column.to_owned();
    }
    let mut number = 2u32;
    // The loop ends after at most one step for each existing key, because each step tries another name.
    loop {
        let ending = format!("_{number}");
        let room = IDENTIFIER_CHARACTERS_MAX - ending.len();
        let name: String = column.chars().take(room).chain(ending.chars()).collect();
        if !is_taken(&name, taken) {
            return name;
        }
        number += 1;
    }
}

fn is_taken(name: &str, taken: &[IndexDefinition]) -> bool {
    taken.iter().any(|index| index.name.eq_ignore_ascii_case(name))
}
