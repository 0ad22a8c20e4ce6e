//! Types and defaults as MySQL 8 prints them.

use junctor_model::collation::CollationId;
use junctor_model::row_encoding::append_text_in;
use junctor_model::schema::{ColumnDefinition, ExpressionKind, IndexDefinition, IndexKind, TableDefinition};
use junctor_model::value::Value;

/// The full type of a column: `int unsigned`, `varchar(20)`, `tinyint(1)`.
pub fn column_type_text(column: &ColumnDefinition) -> String {
    column.column_type.text(column.display_width)
}

/// The default as SHOW COLUMNS prints it: binary strings in hexadecimal, NULL if none.
pub(super) fn default_value(column: &ColumnDefinition) -> Value {
    match &column.default {
        _ if column.default_now => Value::Bytes(clock_text(column).into_bytes()),
        _ if let Some(text) = column.default_expression() => Value::Bytes(escaped(text).into_bytes()),
        None | Some(Value::Null) => Value::Null,
        Some(Value::Bit(bit)) => Value::Bytes(format!("b'{:b}'", bit.number).into_bytes()),
        Some(Value::Bytes(bytes)) if column.column_type.collation() == Some(CollationId::BINARY) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            Value::Bytes(format!("0x{digits}").into_bytes())
        }
        Some(value) => Value::Bytes(value_text(value, column)),
    }
}

/// The text of an expression as `information_schema` shows it.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// `CURRENT_TIMESTAMP` with the digits of the column.
pub(super) fn clock_text(column: &ColumnDefinition) -> String {
    match column.column_type.scale() {
        0 => "CURRENT_TIMESTAMP".to_owned(),
        digits => format!("CURRENT_TIMESTAMP({digits})"),
    }
}

/// The column EXTRA of `information_schema.COLUMNS` and SHOW COLUMNS.
pub(super) fn extra(column: &ColumnDefinition) -> String {
    let kind = column.expression.as_ref().map(|expression| expression.kind);
    let words = [
        (column.auto_increment, "auto_increment".to_owned()),
        (column.default_now || kind == Some(ExpressionKind::Default), "DEFAULT_GENERATED".to_owned()),
        (kind == Some(ExpressionKind::Virtual), "VIRTUAL GENERATED".to_owned()),
        (kind == Some(ExpressionKind::Stored), "STORED GENERATED".to_owned()),
        (column.on_update_now, format!("on update {}", clock_text(column))),
        (column.invisible, "INVISIBLE".to_owned()),
    ];
    let present: Vec<String> = words.into_iter().filter(|(present, _)| *present).map(|(_, word)| word).collect();
    present.join(" ")
}

/// The default of a column as text, with the digits after the point of its type and the zeros of ZEROFILL.
pub(super) fn value_text(value: &Value, column: &ColumnDefinition) -> Vec<u8> {
    let mut text = Vec::new();
    match value {
        Value::Null => text.extend_from_slice(b"NULL"),
        Value::Bytes(bytes) => text.extend_from_slice(bytes),
        value => {
            let zeros = column.column_type.zero_fill(column.display_width);
            append_text_in(value.as_ref(), column.column_type.wire().decimals, zeros, &mut text);
        }
    }
    text
}

/// `PRI` for a column of the primary key, `UNI` for a column that is a unique key by itself, `MUL` for the
/// first column of another key, and otherwise nothing. If the table has no primary key, the first unique key
/// without nullable columns counts as primary, as in MySQL.
pub(super) fn column_key(table: &TableDefinition, position: usize) -> &'static str {
    let is_column = |part: &junctor_model::id::ColumnNumber| {
        let prefix = table.columns[usize::from(part.0)].key_prefix();
        let is_base = prefix.is_some_and(|prefix| *prefix.column == *table.columns[position].name);
        usize::from(part.0) == position || is_base
    };
    let visible = visible_indexes(table);
    let has_no_null =
        |index: &IndexDefinition| index.columns.iter().all(|part| !table.columns[usize::from(part.0)].nullable);
    let first_unique = visible.iter().find(|index| index.is_unique() && has_no_null(index));
    if first_unique.is_some_and(|index| index.columns.iter().any(is_column)) {
        return "PRI";
    }
    let leads = |index: &&&IndexDefinition| index.columns.first().is_some_and(is_column);
    let is_whole = |index: &&&IndexDefinition| usize::from(index.columns[0].0) == position;
    if visible.iter().filter(leads).filter(is_whole).any(|index| index.is_unique() && index.columns.len() == 1) {
        return "UNI";
    }
    if visible.iter().any(|index| index.columns.first().is_some_and(is_column)) { "MUL" } else { "" }
}

/// The keys in MySQL's order: primary key, unique keys without nullable columns, other unique keys, plain
/// keys. A hidden primary key is omitted.
pub(super) fn visible_indexes(table: &TableDefinition) -> Vec<&IndexDefinition> {
    let column = |part: &junctor_model::id::ColumnNumber| &table.columns[usize::from(part.0)];
    let mut indexes: Vec<&IndexDefinition> =
        table.indexes.iter().filter(|index| !index.columns.iter().any(|part| column(part).is_hidden_key())).collect();
    indexes.sort_by_key(|index| match index.kind {
        IndexKind::Primary { .. } => 0,
        IndexKind::Unique { .. } if index.columns.iter().all(|part| !column(part).nullable) => 1,
        IndexKind::Unique { .. } => 2,
        IndexKind::Ordered => 3,
    });
    indexes
}

/// The columns that statements can see, with their positions in the table.
pub(super) fn visible_columns(table: &TableDefinition) -> impl Iterator<Item = (usize, &ColumnDefinition)> {
    table.columns.iter().enumerate().filter(|(_, column)| !column.hidden)
}
