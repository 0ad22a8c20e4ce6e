//! Columns that are dropped without touching the rows (`docs/decisions/0072-dropped-columns.md`).

use junctor_model::id::ColumnNumber;
use junctor_model::limit::{COLUMNS_MAX, DROPPED_COLUMNS_MAX};
use junctor_model::schema::{ColumnDefinition, Dictionary};

use super::{Draft, NewColumn};

impl Draft<'_> {
    /// Whether rows can have values of columns that the table no longer has, or lack values of its columns.
    pub(super) fn has_old_rows(&self) -> bool {
        self.old.columns.iter().any(|column| column.is_dropped() || column.added.is_some())
    }

    /// Whether the columns that are gone can keep their place in the rows: nothing but the rows has them, and
    /// no child refers to them by name. The copy has the errors of the others.
    pub(super) fn can_leave_dropped(&self, dictionary: &Dictionary) -> bool {
        let old = self.old;
        let children: Vec<&str> =
            dictionary.children_of(old).flat_map(|(_, key)| key.parent_columns.iter().map(|name| &**name)).collect();
        self.gone().all(|column| {
            let has = |columns: &[ColumnNumber]| columns.contains(&column);
            let name = &old.columns[usize::from(column.0)].name;
            !old.indexes.iter().any(|index| has(&index.columns))
                && !old.foreign_keys.iter().any(|key| has(&key.columns))
                && !has(&old.partition_columns)
                && !children.iter().any(|child| child.eq_ignore_ascii_case(name))
        })
    }

    /// Whether the table has room for the columns that are gone.
    pub(super) fn has_room_for_dropped(&self) -> bool {
        let before = self.old.columns.iter().filter(|column| column.is_dropped()).count();
        let dropped = before + self.gone().count();
        dropped <= DROPPED_COLUMNS_MAX && self.columns.len() + dropped <= COLUMNS_MAX
    }

    /// Puts the dropped columns back, those of earlier statements, too. The columns that rows have keep their
    /// order.
    pub(super) fn leave_dropped(&mut self) {
        let gone: Vec<ColumnNumber> = self.gone().collect();
        let mut count = self.old.columns.iter().filter(|column| column.is_dropped()).count();
        for (column, number) in self.old.columns.iter().zip(0..) {
            let old = ColumnNumber(number);
            let definition = match (column.is_dropped(), gone.contains(&old)) {
                (true, _) => column.clone(),
                (false, true) => {
                    count += 1;
                    column.dropped(count)
                }
                (false, false) => continue,
            };
            let after = self.columns.iter().position(|other| other.old.is_some_and(|other| other > old));
            let place = after.unwrap_or(self.columns.len());
            self.columns.insert(place, NewColumn { definition, old: Some(old), written: None });
        }
    }

    /// The columns of the old table that the new one does not have.
    fn gone(&self) -> impl Iterator<Item = ColumnNumber> {
        let is_user = |column: &ColumnDefinition| !column.is_hidden_key() && !column.is_dropped();
        let all = self.old.columns.iter().zip(0..).filter(move |(column, _)| is_user(column));
        let numbers = all.map(|(_, number)| ColumnNumber(number));
        numbers.filter(|number| self.columns.iter().all(|column| column.old != Some(*number)))
    }
}
