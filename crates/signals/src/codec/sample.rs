//! Random values for tests, by the same declarations as the encoding.

use std::sync::Arc;

use junctor_kernel::Random;
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_model::types::DataType;

/// Columns of every sampled table. Sampled column numbers are below it.
pub(crate) const COLUMNS: u16 = 4;

/// The source of random values.
pub(crate) struct Draw {
    random: Random,
    /// Levels of expressions that may still open.
    pub(crate) levels: u32,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw { random: Random::new(seed), levels: 3 }
    }

    /// A number, often an extreme one.
    pub(crate) fn number(&mut self) -> u64 {
        match self.random.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => 1,
            _ => self.random.word(),
        }
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// The length of a list or text.
    pub(crate) fn length(&mut self) -> u64 {
        self.random.below(3)
    }
}

/// A table of [`COLUMNS`] integer columns and two indexes.
pub(crate) fn layout() -> Arc<TableLayout> {
    let column = |number: u16| ColumnDefinition::new(&format!("c{number}"), DataType::integer(4, false));
    let index = |id: u16, kind| IndexDefinition::new(IndexId(id), &format!("i{id}"), kind, vec![ColumnNumber(id)]);
    let indexes = vec![index(0, IndexKind::Primary { ordered: true }), index(1, IndexKind::Ordered)];
    let columns = (0..COLUMNS).map(column).collect();
    Arc::new(TableLayout::new(TableDefinition::new(TableId(7), ("d", "t"), columns, indexes)))
}
