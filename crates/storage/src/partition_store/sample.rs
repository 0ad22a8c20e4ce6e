//! A table, its rows and its keys, for tests.

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::key::append_value;
use junctor_model::partition::key_hash;
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, KeyList, TableDefinition, TableLayout};
use junctor_model::types::DataType;
use junctor_model::value::ValueRef;

pub(crate) const INT: DataType = DataType::integer(4, false);

pub(crate) fn column(name: &str, column_type: DataType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition { nullable, ..ColumnDefinition::new(name, column_type) }
}

pub(crate) fn index(id: u16, kind: IndexKind, columns: &[u16]) -> IndexDefinition {
    let columns = columns.iter().copied().map(ColumnNumber).collect();
    IndexDefinition::new(IndexId(id), &format!("index_{id}"), kind, columns)
}

pub(crate) fn table(columns: Vec<ColumnDefinition>, indexes: Vec<IndexDefinition>) -> Arc<TableLayout> {
    Arc::new(TableLayout::new(TableDefinition::new(TableId(1), ("test", "sample"), columns, indexes)))
}

/// id INT primary, k INT NULL indexed, name VARCHAR(40) indexed with k, body TEXT.
pub(crate) fn layout() -> Arc<TableLayout> {
    let name = DataType::varchar(40, CollationId::DEFAULT);
    let body = DataType::text_or_blob(4, CollationId::DEFAULT);
    let columns =
        vec![column("id", INT, false), column("k", INT, true), column("name", name, false), column("body", body, true)];
    let indexes = vec![
        index(0, IndexKind::Primary { ordered: true }, &[0]),
        index(1, IndexKind::Ordered, &[1]),
        index(2, IndexKind::Ordered, &[2, 1]),
    ];
    table(columns, indexes)
}

/// The same with the elements of a list, in an index of their own and between k and name.
pub(crate) fn lists_layout() -> Arc<TableLayout> {
    let TableDefinition { mut columns, mut indexes, .. } = layout().definition.clone();
    let name = KeyList { text: "cast(`name` as char(2) array)", element_bytes: 8 }.column_name();
    let list = column(&name, DataType::text_or_blob(2, CollationId::BINARY), true);
    columns.push(ColumnDefinition { hidden: true, ..list });
    indexes.extend([index(3, IndexKind::Ordered, &[4]), index(4, IndexKind::Ordered, &[1, 4, 2])]);
    table(columns, indexes)
}

/// The table of sysbench: id, k indexed, c CHAR(120), pad CHAR(60).
pub(crate) fn sysbench_layout() -> Arc<TableLayout> {
    let text = |length| DataType::char(length, CollationId::DEFAULT);
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
    append_value(INT.key_part(), false, ValueRef::Int(i64::from(id)), &mut key);
    let hash = key_hash(&key);
    (key, hash)
}
