//! A table, its rows and its keys, for tests.

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{ColumnNumber, IndexId, SchemaVersion, TableId};
use junctor_model::key::append_value;
use junctor_model::partition::key_hash;
use junctor_model::schema::{
    ColumnDefinition, ColumnType, IndexDefinition, IndexKind, IndexState, TableDefinition, TableKind, TableLayout,
};
use junctor_model::value::ValueRef;

pub(crate) const INT: ColumnType = ColumnType::Integer { bytes: 4, unsigned: false };

pub(crate) fn column(name: &str, column_type: ColumnType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition {
        name: name.into(),
        column_type,
        nullable,
        default: None,
        auto_increment: false,
        hidden: false,
        comment: "".into(),
        display_width: None,
    }
}

pub(crate) fn index(id: u16, kind: IndexKind, columns: &[u16]) -> IndexDefinition {
    IndexDefinition {
        id: IndexId(id),
        name: format!("index_{id}").into(),
        kind,
        columns: columns.iter().copied().map(ColumnNumber).collect(),
        state: IndexState::Online,
    }
}

pub(crate) fn table(columns: Vec<ColumnDefinition>, indexes: Vec<IndexDefinition>) -> Arc<TableLayout> {
    Arc::new(TableLayout::new(TableDefinition {
        id: TableId(1),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "sample".into(),
        kind: TableKind::Base,
        partition_columns: indexes[0].columns.clone(),
        columns,
        next_index: IndexId(indexes.len() as u16),
        foreign_keys: Vec::new(),
        indexes,
        partition_count: 1,
        has_partition_clause: false,
        collation: CollationId::DEFAULT,
        comment: "".into(),
    }))
}

/// id INT primary, k INT NULL indexed, name VARCHAR(40) indexed with k, body TEXT.
pub(crate) fn layout() -> Arc<TableLayout> {
    let name = ColumnType::VarChar { length: 40, collation: CollationId::DEFAULT };
    let body = ColumnType::Text { length_bytes: 4, collation: CollationId::DEFAULT };
    let columns =
        vec![column("id", INT, false), column("k", INT, true), column("name", name, false), column("body", body, true)];
    let indexes = vec![
        index(0, IndexKind::Primary { ordered: true }, &[0]),
        index(1, IndexKind::Ordered, &[1]),
        index(2, IndexKind::Ordered, &[2, 1]),
    ];
    table(columns, indexes)
}

/// The table of sysbench: id, k indexed, c CHAR(120), pad CHAR(60).
pub(crate) fn sysbench_layout() -> Arc<TableLayout> {
    let text = |length| ColumnType::Char { length, collation: CollationId::DEFAULT };
    let columns = vec![
        column("id", INT, false),
        column("k", INT, false),
        column("c", text(120), false),
        column("pad", text(60), false),
    ];
    table(columns, vec![index(0, IndexKind::Primary { ordered: true }, &[0]), index(1, IndexKind::Ordered, &[1])])
}

pub(crate) fn image(layout: &TableLayout, values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut image = Vec::new();
    layout.row_format.encode(values, &mut image).expect("values of the column types");
    image
}

pub(crate) fn integer_key(id: i32) -> (Vec<u8>, u64) {
    let mut key = Vec::new();
    append_value(INT, false, ValueRef::Int(i64::from(id)), &mut key);
    let hash = key_hash(&key);
    (key, hash)
}
