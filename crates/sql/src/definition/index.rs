//! Keys: names, columns and length limits.

use junctor_model::alteration::invisible_primary;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, Result};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::key::KeyPart;
use junctor_model::limit::{IDENTIFIER_CHARACTERS_MAX, INDEX_COLUMNS_MAX, INDEX_KEY_BYTES_MAX};
use junctor_model::quoted_name::quoted_name;
use junctor_model::schema::{
    ColumnDefinition, ColumnExpression, ExpressionKind, IndexAttributes, IndexDefinition, IndexKind, IndexState,
    KeyPrefix,
};
use junctor_model::types::DataType;

use super::column::{COMMENT_CHARACTERS_MAX, comment_text};
use super::structure::DefinitionContext;
use super::{key_expression, message};
use crate::mysql_catalog::variable::Note;
use crate::parse::definition as ast;

/// MySQL's reserved name of the primary key.
pub(super) const PRIMARY: &str = "PRIMARY";
const HASH_NOT_SUPPORTED: u16 = 3502;
const DUPLICATE_INDEX: u16 = 1831;
const NAME_IGNORED: u16 = 1280;
/// Bytes of collation weights that an index keeps for each character of a prefix.
const WEIGHT_BYTES: u32 = 4;

/// Defines one key over `columns`. `taken` has the keys defined before, whose names cannot be used again. The
/// id is 0 until the caller assigns it.
pub(super) fn define(
    index: &ast::IndexDefinition,
    columns: &[ColumnDefinition],
    taken: &[IndexDefinition],
    notes: &mut Vec<Note>,
) -> Result<IndexDefinition> {
    if index.invisible && index.kind == ast::IndexKind::Primary {
        return Err(invisible_primary());
    }
    let key = key_columns(index, columns)?;
    let name = match (index.kind, &index.name) {
        (ast::IndexKind::Primary, written) => {
            let other = written.as_deref().filter(|name| !name.eq_ignore_ascii_case(PRIMARY));
            notes.extend(other.map(|name| (NAME_IGNORED, format!("Name '{name}' ignored for PRIMARY key.").into())));
            PRIMARY.to_owned()
        }
        (_, Some(name)) => explicit_name(name, taken)?,
        (_, None) if index.columns[0].expression.is_some() => generated_name("functional_index", taken),
        (_, None) => generated_name(&find(columns, &index.columns[0].name)?.1.name, taken),
    };
    let lists = key.iter().filter(|part| columns[usize::from(part.0)].key_list().is_some());
    let is_multi_valued = match lists.count() {
        0 => false,
        1 => true,
        _ => return Err(Error::not_supported("more than one multi-valued key part per index")),
    };
    // The entries of a multi-valued index are found only in its ordered index.
    let by_hash = index.algorithm == Some(ast::IndexAlgorithm::Hash) && !is_multi_valued;
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
    let is_descending = |(_, part): &(&ColumnNumber, &ast::IndexColumn)| part.descending;
    let attributes = IndexAttributes {
        invisible: index.invisible,
        descending: key.iter().zip(&index.columns).filter(is_descending).map(|(column, _)| *column).collect(),
        comment: comment_text("index", &name, index.comment.as_deref(), COMMENT_CHARACTERS_MAX)?,
        names_btree: index.algorithm == Some(ast::IndexAlgorithm::Ordered),
        // As in MySQL, the number has 16 bits.
        key_block_size: u32::from(index.key_block_size as u16),
        of_foreign_key: false,
    };
    Ok(IndexDefinition { id: IndexId(0), name: name.into(), kind, columns: key, state: IndexState::Online, attributes })
}

/// Adds warning 1831 if an earlier index of `table`, a database and a name, has the same kind and key parts.
/// One that a foreign key has added gives way to the new one.
pub(super) fn note_duplicate(
    index: &IndexDefinition,
    earlier: &[IndexDefinition],
    (database, table): (&str, &str),
    notes: &mut Vec<Note>,
) {
    let is_same = |other: &IndexDefinition| {
        let descending =
            |part| other.attributes.descending.contains(part) == index.attributes.descending.contains(part);
        !other.attributes.of_foreign_key
            && std::mem::discriminant(&other.kind) == std::mem::discriminant(&index.kind)
            && other.columns == index.columns
            && index.columns.iter().all(descending)
    };
    if earlier.iter().any(is_same) {
        let text = format!(
            "Duplicate index '{}' defined on the table '{database}.{table}'. This is deprecated and will be disallowed \
             in a future release.",
            index.name
        );
        notes.push((DUPLICATE_INDEX, text.into()));
    }
}

/// The hidden columns that an index needs, besides those that the table has.
pub(super) fn hidden_columns(
    index: &ast::IndexDefinition,
    columns: &[ColumnDefinition],
    context: &DefinitionContext<'_>,
) -> Result<Vec<ColumnDefinition>> {
    let mut hidden: Vec<ColumnDefinition> = Vec::new();
    for part in &index.columns {
        if let Some(expression) = &part.expression {
            let column = key_expression::hidden_column(index, expression, columns, context)?;
            if !columns.iter().chain(&hidden).any(|known| known.hidden && known.name == column.name) {
                hidden.push(column);
            }
            continue;
        }
        let Some(prefix) = prefix_of(index, part, columns)? else { continue };
        let name = prefix.column_name();
        let is_known = |column: &ColumnDefinition| column.hidden && *column.name == *name;
        if !columns.iter().chain(&hidden).any(is_known) {
            hidden.push(prefix_column(prefix, find(columns, &part.name)?.1));
        }
    }
    Ok(hidden)
}

/// Whether an index needs hidden columns.
pub(super) fn has_prefixes(index: &ast::IndexDefinition) -> bool {
    index.columns.iter().any(|part| part.prefix_length.is_some() || part.expression.is_some())
}

/// The prefix of a key part; `None` for a whole column.
fn prefix_of<'p>(
    index: &ast::IndexDefinition,
    part: &'p ast::IndexColumn,
    columns: &[ColumnDefinition],
) -> Result<Option<KeyPrefix<'p>>> {
    let Some(length) = part.prefix_length else { return Ok(None) };
    let (_, column) = find(columns, &part.name)?;
    if !is_shorter(column, length)? {
        return Ok(None);
    }
    let is_binary = column.column_type.collation() == Some(CollationId::BINARY);
    let bytes_max = if is_binary { INDEX_KEY_BYTES_MAX } else { INDEX_KEY_BYTES_MAX / WEIGHT_BYTES as usize };
    if length as usize > bytes_max {
        return Err(message::key_too_long());
    }
    let by_weights = index.kind == ast::IndexKind::Plain && !is_binary;
    Ok(Some(KeyPrefix { column: &part.name, length, by_weights }))
}

/// Whether a key part with this prefix of a column has the whole column after the column has changed: the
/// prefix is not shorter, or the column is no string now.
pub(super) fn becomes_whole(prefix: KeyPrefix<'_>, column: &ColumnDefinition) -> bool {
    !is_shorter(column, prefix.length).unwrap_or(false)
}

/// The hidden column with the prefixes of `column`.
pub(super) fn prefix_column(prefix: KeyPrefix<'_>, column: &ColumnDefinition) -> ColumnDefinition {
    let KeyPrefix { length, by_weights, .. } = prefix;
    let collation = column.column_type.collation().unwrap_or(CollationId::BINARY);
    let name = quoted_name(&column.name);
    let (text, column_type) = match by_weights {
        true => {
            let bytes = length * WEIGHT_BYTES;
            (format!("left(weight_string({name}),{bytes})"), DataType::varchar(bytes as u16, CollationId::BINARY))
        }
        false => (format!("left({name},{length})"), DataType::varchar(length as u16, collation)),
    };
    let prefix = KeyPrefix { column: &column.name, ..prefix };
    ColumnDefinition {
        nullable: true,
        hidden: true,
        expression: Some(ColumnExpression { text: text.into(), kind: ExpressionKind::Virtual }),
        ..ColumnDefinition::new(&prefix.column_name(), column_type)
    }
}

/// The position of the column of a key part, or of the column whose prefixes the part has.
pub(super) fn base_of(columns: &[ColumnDefinition], part: ColumnNumber) -> usize {
    let position = usize::from(part.0);
    let base = columns[position].key_prefix().and_then(|prefix| find(columns, prefix.column).ok());
    base.map_or(position, |(base, _)| base)
}

/// The visible column with this name. Error 1072.
fn find<'c>(columns: &'c [ColumnDefinition], name: &str) -> Result<(usize, &'c ColumnDefinition)> {
    let mut visible = columns.iter().enumerate().filter(|(_, column)| !column.hidden);
    visible.find(|(_, column)| column.name.eq_ignore_ascii_case(name)).ok_or_else(|| message::key_column_missing(name))
}

fn key_columns(index: &ast::IndexDefinition, columns: &[ColumnDefinition]) -> Result<Vec<ColumnNumber>> {
    if index.columns.len() > INDEX_COLUMNS_MAX {
        return Err(message::too_many_parts());
    }
    refuse_spatial(index, columns)?;
    let mut key = Vec::with_capacity(index.columns.len());
    let mut names = std::collections::BTreeSet::new();
    let mut bytes = 0;
    for part in &index.columns {
        if let Some(expression) = &part.expression {
            let name = key_expression::column_name(index, expression)?;
            let found = columns.iter().position(|column| column.hidden && *column.name == *name);
            let position = found.ok_or_else(|| Error::not_supported("this functional index"))?;
            if key.contains(&ColumnNumber(position as u16)) {
                return Err(message::duplicate_column(&name));
            }
            let column = &columns[position];
            if column.key_list().is_some() && part.descending {
                return Err(message::ordered_list());
            }
            bytes += part_bytes(column, &name)?;
            key.push(ColumnNumber(position as u16));
            continue;
        }
        let named = find(columns, &part.name)?;
        if !names.insert(part.name.to_ascii_lowercase()) {
            return Err(message::duplicate_column(&part.name));
        }
        let (position, column) = match prefix_of(index, part, columns)? {
            None => named,
            Some(prefix) => {
                let name = KeyPrefix { column: &named.1.name, ..prefix }.column_name();
                let mut all = columns.iter().enumerate();
                let found = all.find(|(_, column)| column.hidden && *column.name == *name);
                found.ok_or_else(|| Error::not_supported("this prefix index"))?
            }
        };
        let position = ColumnNumber(position as u16);
        bytes += part_bytes(column, &part.name)?;
        key.push(position);
    }
    if bytes > INDEX_KEY_BYTES_MAX {
        return Err(message::key_too_long());
    }
    Ok(key)
}

/// A key of a spatial column is a spatial index in MySQL. Errors: 3728 for a primary or unique key, 1070 for
/// a key of several columns, 1235 for others.
fn refuse_spatial(index: &ast::IndexDefinition, columns: &[ColumnDefinition]) -> Result<()> {
    let is_spatial = |part: &ast::IndexColumn| {
        let column = columns.iter().find(|column| !column.hidden && column.name.eq_ignore_ascii_case(&part.name));
        part.expression.is_none() && column.is_some_and(|column| column.column_type.geometry_kind().is_some())
    };
    if !index.columns.iter().any(is_spatial) {
        return Ok(());
    }
    Err(match index.kind {
        ast::IndexKind::Primary | ast::IndexKind::Unique => message::spatial_unique(),
        ast::IndexKind::Plain if index.columns.len() > 1 => message::too_many_spatial_parts(),
        ast::IndexKind::Plain => Error::not_supported("SPATIAL index"),
    })
}

/// Whether a prefix is shorter than its column. Error 1089 for a longer one, an empty one, and a column that
/// is no string.
fn is_shorter(column: &ColumnDefinition, prefix: u32) -> Result<bool> {
    let column_type = &column.column_type;
    if column_type.is_vector() {
        return Err(message::vector_key());
    }
    let is_text = matches!(column_type.key_part(), KeyPart::Text(_)) && !column_type.is_json();
    if !is_text || prefix == 0 {
        return Err(message::wrong_prefix());
    }
    match prefix.cmp(&column_type.length()) {
        _ if column_type.is_text_or_blob() => Ok(true),
        std::cmp::Ordering::Less => Ok(true),
        std::cmp::Ordering::Equal => Ok(false),
        std::cmp::Ordering::Greater => Err(message::wrong_prefix()),
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
pub(super) fn check_key_bytes<'a>(columns: impl Iterator<Item = &'a ColumnDefinition>) -> Result<()> {
    let mut bytes = 0;
    for column in columns {
        bytes += part_bytes(column, &column.name)?;
    }
    if bytes > INDEX_KEY_BYTES_MAX { Err(message::key_too_long()) } else { Ok(()) }
}

/// Bytes of a key part, of an element in a multi-valued index. Error: 1170, with a name for the part.
fn part_bytes(column: &ColumnDefinition, name: &str) -> Result<usize> {
    match column.key_list() {
        Some(list) => Ok(list.element_bytes.into()),
        None => column.column_type.key_bytes().ok_or_else(|| message::no_whole_key(&column.column_type, name)),
    }
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
