//! Columns that ALTER TABLE dropped without touching the rows (`docs/decisions/0072-dropped-columns.md`).
//!
//! Such a column stays in the definition as a hidden one, so images keep their form. New and changed rows
//! have a blank in its place: a short value that is not NULL, because rows without NULLs are read faster. A
//! blank of an added column is the value of rows without one, so it is left out where possible.

use super::{RowFormat, RowView, SlotKind};
use crate::id::ColumnNumber;
use crate::schema::{ColumnDefinition, TableDefinition};
use crate::value::Value;

/// The beginning of the names of dropped columns. Their number in the table follows.
const NAME: &str = "!dropped ";

/// A dropped column of a row format.
#[derive(Clone, Debug)]
pub(super) struct DroppedSlot {
    /// The position of the column in the table.
    column: u16,
    /// The value in new and changed rows.
    blank: Value,
}

impl DroppedSlot {
    /// The dropped columns of a table.
    pub fn all(columns: &[ColumnDefinition]) -> Box<[DroppedSlot]> {
        let dropped = columns.iter().enumerate().filter(|(_, column)| column.is_dropped());
        dropped.map(|(position, column)| DroppedSlot { column: position as u16, blank: blank(column) }).collect()
    }
}

impl RowFormat {
    /// Whether rows can have values of dropped columns.
    #[inline]
    pub fn has_dropped_columns(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Appends the image without values of dropped columns. Returns false, and appends nothing, if `image`
    /// has none, or if blanks would make the longest possible row too long.
    #[cold]
    pub fn append_without_dropped(&self, image: &[u8], out: &mut Vec<u8>) -> bool {
        let view = RowView::new(self, image);
        let is_blank = |slot: &DroppedSlot| view.column(ColumnNumber(slot.column)) == slot.blank.as_ref();
        if self.dropped.iter().all(is_blank) {
            return false;
        }
        let mut values: Vec<_> =
            (0..self.column_count()).map(|position| view.column(ColumnNumber(position as u16))).collect();
        for slot in &self.dropped {
            values[usize::from(slot.column)] = slot.blank.as_ref();
        }
        self.encode(&values, out).is_ok()
    }
}

impl ColumnDefinition {
    /// Whether ALTER TABLE dropped the column without touching the rows. No statement can name it.
    pub fn is_dropped(&self) -> bool {
        self.hidden && self.name.starts_with(NAME)
    }

    /// The column after it was dropped, as the one with this number among the dropped columns of the table.
    /// Its place in images is the same; every INSERT gives it a blank.
    pub fn dropped(&self, number: usize) -> ColumnDefinition {
        ColumnDefinition {
            default: Some(blank(self)),
            nullable: self.nullable,
            added: self.added.clone(),
            hidden: true,
            ..ColumnDefinition::new(&format!("{NAME}{number}"), self.column_type.clone())
        }
    }
}

fn blank(column: &ColumnDefinition) -> Value {
    match (&column.added, column.column_type.slot()) {
        (Some(added), _) => added.value.clone(),
        // The implied value of BINARY has the length of the column.
        (None, SlotKind::Variable) => Value::Bytes(Vec::new()),
        (None, _) => column.column_type.implicit_default(),
    }
}

impl TableDefinition {
    /// Makes the definition that of a table without rows, which needs neither dropped columns nor values of
    /// added ones.
    pub fn forget_old_rows(&mut self) {
        self.columns.iter_mut().for_each(|column| column.added = None);
        let mut kept = 0;
        let numbers: Vec<ColumnNumber> = (self.columns.iter())
            .map(|column| {
                kept += u16::from(!column.is_dropped());
                ColumnNumber(kept.saturating_sub(1))
            })
            .collect();
        let renumber = |columns: &mut Vec<ColumnNumber>| {
            columns.iter_mut().for_each(|column| *column = numbers[usize::from(column.0)]);
        };
        for index in &mut self.indexes {
            renumber(&mut index.columns);
            renumber(&mut index.attributes.descending);
        }
        renumber(&mut self.partition_columns);
        self.foreign_keys.iter_mut().for_each(|key| renumber(&mut key.columns));
        self.columns.retain(|column| !column.is_dropped());
    }
}
