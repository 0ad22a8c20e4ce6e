//! Completes table definitions with ids, versions, and the hidden tables that hold the entries of unique
//! indexes.

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, IndexId, SchemaVersion, TableId};
use junctor_model::limit::INDEXES_MAX;
use junctor_model::schema::{
    ColumnDefinition, Dictionary, IndexDefinition, IndexKind, IndexState, Placement, TableDefinition, TableKind,
    TableLayout,
};
use junctor_model::types::DataType;

/// Whether a node group has one of the partitions of a table with this placement.
pub(super) fn has_partition_in(placement: Placement, group: u8, partition_count: u16) -> bool {
    (0..partition_count.min(placement.groups.into())).any(|partition| placement.group_of(partition) == group)
}

/// The hidden table that holds the entries of a unique index.
pub(super) fn entries_of(index: &IndexDefinition) -> Option<TableId> {
    match index.kind {
        IndexKind::Unique { entries, .. } => Some(entries),
        IndexKind::Primary { .. } | IndexKind::Ordered => None,
    }
}

/// The table to which an ALTER TABLE copies the rows of a table.
pub(super) fn replacement_of(dictionary: &Dictionary, table: TableId) -> Option<&Arc<TableLayout>> {
    // It was made after the old table.
    let mut younger = dictionary.tables_from(table);
    younger.find(|layout| layout.definition.kind == TableKind::Replacement { of: table })
}

/// Refuses invalid indexes in the definition of a new table.
pub(super) fn check_indexes(table: &TableDefinition) -> Result<()> {
    if table.indexes.len() > INDEXES_MAX {
        let message = format!("Too many keys specified; max {INDEXES_MAX} keys allowed");
        return Err(Error::new(ErrorCode::TooManyKeys, message));
    }
    let is_primary = |index: &IndexDefinition| matches!(index.kind, IndexKind::Primary { .. });
    if !table.indexes.first().is_some_and(is_primary) || table.indexes.iter().skip(1).any(is_primary) {
        return Err(Error::new(ErrorCode::MultiplePrimaryKey, "Multiple primary key defined"));
    }
    for (position, index) in table.indexes.iter().enumerate() {
        let same = |other: &&IndexDefinition| other.name.eq_ignore_ascii_case(&index.name);
        if table.indexes[..position].iter().any(|other| same(&other)) {
            return Err(duplicate_key_name(&index.name));
        }
    }
    Ok(())
}

/// Assigns ids to the indexes of a new table.
pub(super) fn with_index_ids(mut table: TableDefinition) -> TableDefinition {
    for (position, index) in table.indexes.iter_mut().enumerate() {
        index.id = IndexId(position as u16);
        index.state = IndexState::Online;
    }
    table.next_index = IndexId(table.indexes.len() as u16);
    table
}

/// Assigns the table's id. Returns the table and the hidden tables of its unique indexes.
pub(super) fn with_ids(mut table: TableDefinition, first: TableId) -> Vec<TableDefinition> {
    table.id = first;
    table.version = SchemaVersion(1);
    table.kind = TableKind::Base;
    // A new table has no rows from before changes of its columns.
    table.forget_old_rows();
    let mut next = first;
    let mut indexes = std::mem::take(&mut table.indexes);
    let mut hidden = Vec::new();
    for index in &mut indexes {
        if let IndexKind::Unique { entries, .. } = &mut index.kind {
            next.0 += 1;
            *entries = next;
            hidden.push(entries_table(&table, index, next));
        }
    }
    table.indexes = indexes;
    hidden.insert(0, table);
    hidden
}

/// Returns the table to which an ALTER TABLE of the table `of` copies the rows, and the hidden tables of its
/// unique indexes. It has no foreign keys until it takes the place of the old table.
pub(super) fn replacement(new: TableDefinition, of: TableId, first: TableId) -> Vec<TableDefinition> {
    let mut tables = with_ids(with_index_ids(new), first);
    tables[0].kind = TableKind::Replacement { of };
    tables[0].foreign_keys = Vec::new();
    tables
}

/// Returns the table's next version with new indexes in state Building, and the hidden tables of the unique
/// ones. The hidden tables get ids from `first` on.
pub(super) fn with_indexes(
    table: &TableDefinition,
    indexes: &[IndexDefinition],
    first: TableId,
) -> (TableDefinition, Vec<TableDefinition>) {
    let mut table = table.clone();
    table.version.0 += 1;
    let mut next = first;
    let mut hidden = Vec::new();
    for index in indexes {
        let mut index = IndexDefinition { id: table.next_index, state: IndexState::Building, ..index.clone() };
        // Ids of dropped indexes are not reused, so a stale plan never reads a different index.
        table.next_index.0 += 1;
        if let IndexKind::Unique { entries, .. } = &mut index.kind {
            *entries = next;
            hidden.push(entries_table(&table, &index, next));
            next.0 += 1;
        }
        table.indexes.push(index);
    }
    (table, hidden)
}

/// Returns the next versions of a renamed table and of its hidden tables, whose names contain the table's
/// name.
pub(super) fn renamed(
    table: &TableDefinition,
    find: &dyn Fn(TableId) -> Option<Arc<TableLayout>>,
) -> Vec<TableDefinition> {
    let mut renamed = table.clone();
    renamed.version.0 += 1;
    let mut tables = hidden_tables(&renamed, find);
    tables.push(renamed);
    tables
}

/// Returns the next versions of a table's hidden tables, named after the table and its indexes.
pub(super) fn hidden_tables(
    table: &TableDefinition,
    find: &dyn Fn(TableId) -> Option<Arc<TableLayout>>,
) -> Vec<TableDefinition> {
    let mut tables = Vec::new();
    for index in &table.indexes {
        let Some(hidden) = entries_of(index).and_then(find) else { continue };
        let mut hidden = hidden.definition.clone();
        hidden.version.0 += 1;
        hidden.database = table.database.clone();
        hidden.name = entries_name(table, index);
        tables.push(hidden);
    }
    tables
}

fn entries_name(base: &TableDefinition, index: &IndexDefinition) -> Box<str> {
    format!("{}.{}", base.name, index.name).into()
}

/// Defines the hidden table of a unique index: key bytes and row reference, partitioned by the key bytes.
fn entries_table(base: &TableDefinition, index: &IndexDefinition, id: TableId) -> TableDefinition {
    let bytes = DataType::varchar(u16::MAX, CollationId::BINARY);
    let columns = ["key", "row"].map(|name| ColumnDefinition::new(name, bytes.clone())).to_vec();
    let kind = IndexKind::Primary { ordered: false };
    let primary = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0)]);
    TableDefinition {
        kind: TableKind::UniqueEntries { base: base.id, index: index.id },
        sharing: base.sharing,
        partition_count: base.partition_count,
        collation: CollationId::BINARY,
        ..TableDefinition::new(id, (&base.database, &entries_name(base, index)), columns, vec![primary])
    }
}

#[cold]
pub(super) fn duplicate_key_name(name: &str) -> Box<Error> {
    Error::new(ErrorCode::DuplicateKeyName, format!("Duplicate key name '{name}'"))
}
