//! Adds and drops ordered indexes while the partition is in use.

use std::sync::Arc;

use junctor_model::id::{IndexId, RowId};
use junctor_model::schema::{IndexDefinition, TableDefinition, TableLayout};

use super::{LocalIndex, PartitionStore, key_view};
use crate::index::KeyShape;
use crate::invariant::require;
use crate::page::{MemoryNeed, OutOfMemory};

impl PartitionStore {
    /// Adds an ordered index, which every write maintains from now on. Existing rows get their entries from
    /// `build_index_step`. Does nothing if the partition has the index already, or if it is not an ordered
    /// index.
    pub fn add_index(&mut self, definition: &IndexDefinition) {
        if !definition.is_ordered() || self.ordered.iter().any(|entry| entry.id == definition.id) {
            return;
        }
        let mut entry = LocalIndex::new(definition, self.definitions(), Arc::clone(&self.pool));
        entry.is_complete = self.rows.map().used() == 0;
        self.ordered.push(entry);
    }

    /// Inserts the entries of at most `budget_rows` row ids from `from` on. Returns the id to continue with,
    /// or `None` when the index is complete. After `OutOfMemory` the caller drops the index.
    ///
    /// # Panics
    /// If the index was not added.
    pub fn build_index_step(
        &mut self,
        index: IndexId,
        from: RowId,
        budget_rows: usize,
    ) -> Result<Option<RowId>, OutOfMemory> {
        let PartitionStore { rows, ordered, layout, scratch, .. } = self;
        // Reporting a missing index as complete would hide rows from its scans.
        let entry = ordered.iter_mut().find(|entry| entry.id == index).expect("an index is added before it is built");
        let end = rows.map().end().0;
        let stop = u64::from(from.0).saturating_add(budget_rows as u64).min(u64::from(end)) as u32;
        for row in (from.0..stop).map(RowId) {
            // Index all versions, because older snapshots may scan the index once it is complete.
            for version in rows.versions(row).filter(|version| !version.is_deleted()) {
                let view = key_view(rows, &layout.row_format, &entry.shape, &version, &mut scratch.image);
                entry.keys_of(&layout.definition.columns, view, &mut scratch.key, &mut scratch.row_keys);
                for key in scratch.row_keys.iter() {
                    entry.tree.reserve(key, row, MemoryNeed::Growth)?;
                    entry.tree.insert(key, row);
                }
            }
        }
        require!(
            from.0 <= end || stop == end,
            "a step of an index build begins at row id {from}, up to which all rows have their entries"
        );
        entry.is_complete |= stop == end;
        Ok((stop < end).then_some(RowId(stop)))
    }

    /// Drops an ordered index and frees its memory.
    pub fn drop_index(&mut self, index: IndexId) {
        self.ordered.retain(|entry| entry.id != index);
    }

    /// Installs a new definition of the table, with the same columns in the rows. Other columns may have come
    /// between them (`docs/decisions/0060-added-columns.md`). Drops indexes that the definition lacks, and
    /// adds new ones as `add_index` does.
    pub fn replace_layout(&mut self, layout: Arc<TableLayout>) {
        let is_kept = |entry: &LocalIndex| layout.definition.index(entry.id).is_some_and(IndexDefinition::is_ordered);
        self.ordered.retain(is_kept);
        let in_rows = |layout: &TableLayout| layout.definition.columns.len() - layout.row_format.added_column_count();
        require!(
            layout.definition.id == self.layout.definition.id && in_rows(&layout) == in_rows(&self.layout),
            "a new layout of a partition is of the same table and has the columns of its rows"
        );
        self.layout = Arc::clone(&layout);
        let TableDefinition { columns, .. } = &layout.definition;
        self.primary = KeyShape::new(columns, &layout.definition.primary().columns);
        for entry in &mut self.ordered {
            if let Some(definition) = layout.definition.index(entry.id) {
                entry.shape = KeyShape::of_index(columns, definition);
            }
        }
        for definition in &layout.definition.indexes {
            self.add_index(definition);
        }
    }

    /// Whether readers can use the index: it exists here, and its build is complete.
    pub fn has_index(&self, index: IndexId) -> bool {
        self.ordered.iter().any(|entry| entry.id == index && entry.is_complete)
    }
}
