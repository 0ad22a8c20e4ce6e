//! The texts of SHOW CREATE TABLE and SHOW CREATE DATABASE. Their form is exactly MySQL 8.0's, because dump
//! tools and drivers parse them.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::foreign_key::append_constraint;
use junctor_model::quoted_name::quoted_name;
use junctor_model::schema::{
    ColumnDefinition, DatabaseDefinition, ExpressionKind, IndexDefinition, IndexKind, IndexState, TableDefinition,
    ViewDefinition,
};
use junctor_model::table_options::KeptOption;
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;
use junctor_model::value::Value;

use super::type_text::{clock_text, column_type_text, value_text, visible_columns, visible_indexes};
use crate::parse::keyword::Keyword;

/// The storage engine in results of SHOW and `information_schema`.
pub(super) const ENGINE: &str = "Junctor";

/// The statement that creates the table. `auto_increment` is the next value, printed if it is above 1.
pub fn create_table_text(table: &TableDefinition, auto_increment: Option<u64>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(if table.is_temporary() { b"CREATE TEMPORARY TABLE " } else { b"CREATE TABLE " });
    append_quoted_name(&table.name, &mut out);
    out.extend_from_slice(b" (\n");
    for (ordinal, (_, column)) in visible_columns(table).enumerate() {
        if ordinal > 0 {
            out.extend_from_slice(b",\n");
        }
        append_column(column, table.collation, &mut out);
    }
    // An index under construction is not shown. It may have the name of an index that the same statement
    // drops.
    for index in visible_indexes(table).into_iter().filter(|index| index.state == IndexState::Online) {
        out.extend_from_slice(b",\n");
        append_index(index, table, &mut out);
    }
    for key in &table.foreign_keys {
        let mut constraint = String::from(",\n  ");
        append_constraint(table, key, &mut constraint);
        out.extend_from_slice(constraint.as_bytes());
    }
    for check in &table.checks {
        out.extend_from_slice(b",\n  CONSTRAINT ");
        append_quoted_name(&check.name, &mut out);
        out.extend_from_slice(format!(" CHECK ({})", check.expression).as_bytes());
        if !check.enforced {
            out.extend_from_slice(b" /*!80016 NOT ENFORCED */");
        }
    }
    out.extend_from_slice(b"\n) ENGINE=");
    out.extend_from_slice(ENGINE.as_bytes());
    if let Some(next) = auto_increment.filter(|next| *next > 1 && has_auto_increment(table)) {
        out.extend_from_slice(format!(" AUTO_INCREMENT={next}").as_bytes());
    }
    append_default_collation(table.collation, &mut out);
    for (option, value) in table.options.texts() {
        out.extend_from_slice(format!(" {}={value}", option.name()).as_bytes());
    }
    append_comment(&table.comment, b"=", &mut out);
    if table.has_partition_clause {
        append_partitioning(table, &mut out);
    }
    out
}

/// The statement that creates the view.
pub fn create_view_text(table: &TableDefinition, view: &ViewDefinition) -> String {
    let (user, host) = view.definer.rsplit_once('@').unwrap_or((&view.definer, "%"));
    let security = if view.is_invoker { "INVOKER" } else { "DEFINER" };
    let mut out = format!(
        "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {security} VIEW {} ",
        view.algorithm.name(),
        quoted_name(user),
        quoted_name(host),
        quoted_name(&table.name),
    );
    if view.has_columns {
        let names: Vec<String> = table.columns.iter().map(|column| quoted_name(&column.name)).collect();
        out.push_str(&format!("({}) ", names.join(",")));
    }
    out.push_str("AS ");
    out.push_str(&view.query);
    if let Some(check) = view.check {
        out.push_str(&format!(" WITH {} CHECK OPTION", check.name()));
    }
    out
}

/// The definition of a column, with its character set.
pub fn column_text(column: &ColumnDefinition, out: &mut Vec<u8>) {
    // Columns of strings differ from this collation, so their own is printed.
    append_column(column, CollationId::BINARY, out);
}

/// The statement that creates the database.
pub fn create_database_text(database: &DatabaseDefinition, if_not_exists: bool) -> Vec<u8> {
    let mut out = b"CREATE DATABASE ".to_vec();
    if if_not_exists {
        out.extend_from_slice(b"/*!32312 IF NOT EXISTS*/ ");
    }
    append_quoted_name(&database.name, &mut out);
    let collation = database.collation;
    out.extend_from_slice(b" /*!40100 DEFAULT CHARACTER SET ");
    out.extend_from_slice(collation.character_set().name().as_bytes());
    if collation != CollationId::BINARY {
        out.extend_from_slice(b" COLLATE ");
        out.extend_from_slice(collation.name().as_bytes());
    }
    out.extend_from_slice(b" */ /*!80016 DEFAULT ENCRYPTION='N' */");
    out
}

fn has_auto_increment(table: &TableDefinition) -> bool {
    visible_columns(table).any(|(_, column)| column.auto_increment)
}

fn append_column(column: &ColumnDefinition, table: CollationId, out: &mut Vec<u8>) {
    out.extend_from_slice(b"  ");
    append_quoted_name(&column.name, out);
    out.push(b' ');
    out.extend_from_slice(column_type_text(column).as_bytes());
    if let Some(collation) = column.column_type.collation() {
        append_column_collation(collation, column.has_collation, table, out);
    }
    append_generated(column, out);
    match column.nullable {
        false => out.extend_from_slice(b" NOT NULL"),
        // Old servers took a TIMESTAMP for NOT NULL.
        true if column.column_type.form() == Form::Temporal(TemporalKind::Timestamp) => out.extend_from_slice(b" NULL"),
        true => {}
    }
    if let Some(srid) = column.column_type.reference_system() {
        out.extend_from_slice(format!(" /*!80003 SRID {srid} */").as_bytes());
    }
    match &column.default {
        _ if let Some(text) = column.default_expression() => {
            out.extend_from_slice(format!(" DEFAULT ({text})").as_bytes());
        }
        _ if column.default_now => {
            out.extend_from_slice(b" DEFAULT ");
            out.extend_from_slice(clock_text(column).as_bytes());
        }
        Some(Value::Bit(bit)) => out.extend_from_slice(format!(" DEFAULT b'{:b}'", bit.number).as_bytes()),
        // MySQL prints no DEFAULT for AUTO_INCREMENT, nor DEFAULT NULL for TEXT and BLOB.
        _ if column.auto_increment => out.extend_from_slice(b" AUTO_INCREMENT"),
        Some(Value::Null)
            if !column.column_type.is_text_or_blob()
                || column.column_type.is_json()
                || column.column_type.is_vector()
                || column.column_type.geometry_kind().is_some() =>
        {
            out.extend_from_slice(b" DEFAULT NULL")
        }
        None | Some(Value::Null) => {}
        Some(value) => {
            out.extend_from_slice(b" DEFAULT ");
            append_quoted_text(&value_text(value, column), out);
        }
    }
    if column.on_update_now {
        out.extend_from_slice(b" ON UPDATE ");
        out.extend_from_slice(clock_text(column).as_bytes());
    }
    append_comment(&column.comment, b" ", out);
    if column.invisible {
        out.extend_from_slice(b" /*!80023 INVISIBLE */");
    }
}

fn append_generated(column: &ColumnDefinition, out: &mut Vec<u8>) {
    let Some(expression) = column.expression.as_ref().filter(|_| column.is_generated()) else { return };
    let storage = if expression.kind == ExpressionKind::Stored { "STORED" } else { "VIRTUAL" };
    out.extend_from_slice(format!(" GENERATED ALWAYS AS ({}) {storage}", expression.text).as_bytes());
}

/// Omits the character set if the collation is the table's, and the collation if it is also its character
/// set's default and the definition does not name it (`is_written`).
fn append_column_collation(collation: CollationId, is_written: bool, table: CollationId, out: &mut Vec<u8>) {
    if collation.character_set() == CharacterSet::Binary {
        return;
    }
    // Another collation is shown in any case, so that the text defines a table with the same text.
    let is_shown = is_written && collation == collation.character_set().default_collation();
    if collation != table || is_shown {
        out.extend_from_slice(b" CHARACTER SET ");
        out.extend_from_slice(collation.character_set().name().as_bytes());
    }
    if collation != table || is_shown || collation != collation.character_set().default_collation() {
        out.extend_from_slice(b" COLLATE ");
        out.extend_from_slice(collation.name().as_bytes());
    }
}

fn append_index(index: &IndexDefinition, table: &TableDefinition, out: &mut Vec<u8>) {
    let by_hash = match index.kind {
        IndexKind::Primary { ordered } => {
            out.extend_from_slice(b"  PRIMARY KEY ");
            !ordered
        }
        IndexKind::Unique { ordered, .. } => {
            out.extend_from_slice(b"  UNIQUE KEY ");
            !ordered
        }
        IndexKind::Ordered => {
            out.extend_from_slice(b"  KEY ");
            false
        }
    };
    if !matches!(index.kind, IndexKind::Primary { .. }) {
        append_quoted_name(&index.name, out);
        out.push(b' ');
    }
    out.push(b'(');
    for (position, column) in index.columns.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        let part = &table.columns[usize::from(column.0)];
        match part.key_prefix() {
            None if let Some(expression) = part.key_expression() => {
                out.extend_from_slice(format!("({expression})").as_bytes());
            }
            None => append_quoted_name(&part.name, out),
            Some(prefix) => {
                append_quoted_name(prefix.column, out);
                out.extend_from_slice(format!("({})", prefix.length).as_bytes());
            }
        }
        if index.attributes.descending.contains(column) {
            out.extend_from_slice(b" DESC");
        }
    }
    out.push(b')');
    if by_hash {
        out.extend_from_slice(b" USING HASH");
    } else if index.attributes.names_btree {
        out.extend_from_slice(b" USING BTREE");
    }
    let block_size = index.attributes.key_block_size;
    let of_table = table.options.iter().find(|(option, _)| *option == KeptOption::KeyBlockSize);
    if block_size > 0 && of_table.is_none_or(|(_, size)| size != u64::from(block_size)) {
        out.extend_from_slice(format!(" KEY_BLOCK_SIZE={block_size}").as_bytes());
    }
    append_comment(&index.attributes.comment, b" ", out);
    if index.attributes.invisible {
        out.extend_from_slice(b" /*!80000 INVISIBLE */");
    }
}

fn append_default_collation(collation: CollationId, out: &mut Vec<u8>) {
    out.extend_from_slice(b" DEFAULT CHARSET=");
    out.extend_from_slice(collation.character_set().name().as_bytes());
    if collation != CollationId::BINARY {
        out.extend_from_slice(b" COLLATE=");
        out.extend_from_slice(collation.name().as_bytes());
    }
}

fn append_comment(comment: &str, sign: &[u8], out: &mut Vec<u8>) {
    if !comment.is_empty() {
        out.extend_from_slice(b" COMMENT");
        out.extend_from_slice(sign);
        append_quoted_text(comment.as_bytes(), out);
    }
}

fn append_partitioning(table: &TableDefinition, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\n/*!50100 PARTITION BY KEY (");
    let mut is_first = true;
    for column in &table.partition_columns {
        let column = &table.columns[usize::from(column.0)];
        if column.hidden {
            continue;
        }
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        append_name(&column.name, out);
    }
    out.extend_from_slice(format!(")\nPARTITIONS {} */", table.partition_count).as_bytes());
}

/// A name in backticks; backticks within it are doubled.
pub(super) fn append_quoted_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(quoted_name(name).as_bytes());
}

/// A name without quotes if it is a valid unquoted identifier, otherwise in backticks.
fn append_name(name: &str, out: &mut Vec<u8>) {
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80);
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    let is_reserved = Keyword::find(name.as_bytes()).is_some_and(Keyword::is_reserved);
    if is_plain && !is_number && !is_reserved {
        out.extend_from_slice(name.as_bytes());
    } else {
        append_quoted_name(name, out);
    }
}

/// A string literal in single quotes, with MySQL's escapes.
fn append_quoted_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0 => out.extend_from_slice(b"\\0"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
}
