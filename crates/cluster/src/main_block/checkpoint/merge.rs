//! Merges the lists of partitions of the ldm blocks, some partitions in each turn: a node may have hundreds
//! of thousands.

use std::sync::Arc;
use std::vec::IntoIter;

use junctor_model::checkpoint::PageTableLocation;
use junctor_model::id::{PartitionId, TableId};
use junctor_signals::change_schema::Catalog;

/// Maximum number of partitions that one turn takes.
pub(super) const PARTITIONS_PER_TURN_MAX: usize = 4096;

/// The contents of a round's lists. Schema and marks are those at one moment.
#[derive(Debug)]
pub(super) struct RoundLists {
    pub catalog: Arc<Catalog>,
    pub next_table: TableId,
    pub marks: Vec<(TableId, u64)>,
    /// The partitions that were merged, in order.
    pub partitions: Vec<(PartitionId, PageTableLocation)>,
    /// The partitions that are not merged yet, of each ldm in order.
    parts: Vec<IntoIter<(PartitionId, PageTableLocation)>>,
}

impl RoundLists {
    /// The lists of a round in which each ldm block has listed its partitions in order.
    pub fn new(
        catalog: Arc<Catalog>,
        next_table: TableId,
        marks: Vec<(TableId, u64)>,
        parts: impl Iterator<Item = Vec<(PartitionId, PageTableLocation)>>,
    ) -> RoundLists {
        let parts: Vec<_> = parts.map(Vec::into_iter).collect();
        let partitions = Vec::with_capacity(parts.iter().map(ExactSizeIterator::len).sum());
        RoundLists { catalog, next_table, marks, partitions, parts }
    }

    /// Merges the next partitions. Returns whether all are merged.
    pub fn merge(&mut self) -> bool {
        for _ in 0..PARTITIONS_PER_TURN_MAX {
            let first = |part: &IntoIter<(PartitionId, PageTableLocation)>| part.as_slice().first().map(|it| it.0);
            let parts = self.parts.iter_mut().filter(|part| first(part).is_some());
            let Some((partition, table)) = parts.min_by_key(|part| first(part)).and_then(Iterator::next) else {
                return true;
            };
            // A table that is not created yet, or dropped meanwhile, is in no schema.
            if self.catalog.dictionary.table(partition.table).is_some() {
                self.partitions.push((partition, table));
            }
        }
        self.parts.iter().all(|part| part.as_slice().is_empty())
    }
}
