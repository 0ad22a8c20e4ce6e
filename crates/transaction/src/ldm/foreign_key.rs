//! Follow-ups of changed rows for foreign keys: parents that must exist, and children that lose their
//! parents. tc executes them, because the rows are in other partitions.

use junctor_expression::ParametersBuilder;
use junctor_model::foreign_key::{ChildKey, ForeignKeyWork, ParentKey, key_of_parent};
use junctor_model::id::ColumnNumber;
use junctor_model::row::RowView;
use junctor_signals::write_rows::FollowUp;

/// Adds the follow-ups of an inserted row.
pub(super) fn inserted(work: &ForeignKeyWork, row: RowView<'_>, follow_ups: &mut Vec<FollowUp>) {
    for (position, key) in (0..).zip(&work.parents) {
        if let Some(key) = parent_key(key, row) {
            follow_ups.push(FollowUp::ParentKey { position, key });
        }
    }
}

/// Adds the follow-ups of a deleted row.
pub(super) fn deleted(work: &ForeignKeyWork, row: RowView<'_>, follow_ups: &mut Vec<FollowUp>) {
    for (position, key) in (0..).zip(&work.children) {
        let is_own = names_itself(key, row);
        if let Some(key) = child_key(key, row) {
            follow_ups.push(FollowUp::ChildKey { position, key, new: None, is_own });
        }
    }
}

/// Adds the follow-ups of a row updated from `old` to `new`.
pub(super) fn updated(work: &ForeignKeyWork, (old, new): (RowView<'_>, RowView<'_>), follow_ups: &mut Vec<FollowUp>) {
    for (position, key) in (0..).zip(&work.parents) {
        // As in InnoDB, a row that moves within a watched index is checked like a new one.
        let moves = key.watched.iter().any(|column| old.column(*column) != new.column(*column));
        if moves && let Some(key) = parent_key(key, new) {
            follow_ups.push(FollowUp::ParentKey { position, key });
        }
    }
    for (position, key) in (0..).zip(&work.children) {
        // As in InnoDB, a different text counts as a change even if the collation treats it as equal.
        let changes = key.columns.iter().any(|column| old.column(*column) != new.column(*column));
        if changes && let Some(old_key) = child_key(key, old) {
            let new = Some(values_of(&key.columns, new));
            let is_own = names_itself(key, old);
            follow_ups.push(FollowUp::ChildKey { position, key: old_key, new, is_own });
        }
    }
}

/// The key of the parent that a child references. A child with NULL in one of the columns references none.
fn parent_key(key: &ParentKey, row: RowView<'_>) -> Option<Vec<u8>> {
    let Some(parent) = &key.parent else {
        let has_null = key.columns.iter().any(|column| row.column(*column).is_null());
        return (!has_null).then(Vec::new);
    };
    key_of_parent(row, &key.columns, &parent.layout.definition.columns, &parent.columns)
}

/// The key by which the children of a row are found. A row with NULL in one of the columns has no children.
fn child_key(key: &ChildKey, row: RowView<'_>) -> Option<Vec<u8>> {
    key_of_parent(row, &key.columns, &key.child.definition.columns, &key.child_columns)
}

/// Whether a row is its own parent.
fn names_itself(key: &ChildKey, row: RowView<'_>) -> bool {
    let own = || key_of_parent(row, &key.child_columns, &key.child.definition.columns, &key.child_columns);
    key.is_self && own().is_some_and(|own| child_key(key, row) == Some(own))
}

fn values_of(columns: &[ColumnNumber], row: RowView<'_>) -> Vec<u8> {
    let mut builder = ParametersBuilder::new();
    columns.iter().for_each(|column| builder.push(row.column(*column)));
    let mut bytes = Vec::new();
    let appended = builder.append_to(&mut bytes);
    junctor_kernel::require!(appended.is_ok(), "the values of one foreign key fit into parameters");
    bytes
}
