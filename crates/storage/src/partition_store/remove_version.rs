//! Removes versions, together with the index entries that no remaining version needs.

use junctor_model::id::{IndexId, RowId};
use junctor_model::partition::key_hash;

use super::{LocalIndex, PartitionStore, Scratch, key_view};
use crate::invariant::require;
use crate::page::Location;
use crate::row::{RowStore, RowVersion};

/// Which versions of a row remain after the removal of one.
#[derive(Clone, Copy)]
pub(super) enum Remaining {
    /// All others.
    AllOthers,
    /// The newest versions, down to this one.
    DownTo(Location),
    /// None: the row is removed.
    Nothing,
}

impl PartitionStore {
    /// Removes a row completely: all versions, its index entries and its id.
    pub(super) fn remove_row(&mut self, row: RowId) {
        let PartitionStore { rows, layout, primary, hash, scratch, .. } = self;
        let image = rows.versions(row).find(|version| !version.is_deleted());
        let image = image.expect("a row has a version with its key");
        scratch.key.clear();
        let view = key_view(rows, &layout.row_format, primary, &image, &mut scratch.image);
        primary.append(&layout.definition.columns, view, &mut scratch.key);
        let is_removed = hash.remove(key_hash(&scratch.key), row);
        require!(is_removed, "row {row} has an entry in the hash index");
        while let Some(newest) = self.rows.newest(row) {
            let location = newest.location();
            remove_orphaned_keys(self, row, location, Remaining::Nothing);
            self.rows.pop(row);
        }
        self.rows.map_mut().free(row);
    }
}

/// Removes the ordered index entries of a version that is about to be removed, except for keys that a
/// remaining version also has.
pub(super) fn remove_orphaned_keys(store: &mut PartitionStore, row: RowId, removed: Location, remaining: Remaining) {
    let PartitionStore { rows, ordered, layout, scratch, .. } = store;
    let rows: &RowStore = rows;
    let (version, _) = rows.version_and_below(removed);
    if version.is_deleted() {
        return;
    }
    let (format, columns) = (&layout.row_format, &layout.definition.columns[..]);
    let Scratch { image, other_image, key, other_key, row_keys, other_keys, .. } = &mut *scratch;
    for entry in ordered {
        let LocalIndex { id, shape, tree, is_complete } = entry;
        let view = key_view(rows, format, shape, &version, image);
        let mut has_same_values =
            |other: &RowVersion<'_>| shape.has_same_values(view, key_view(rows, format, shape, other, other_image));
        if any_remaining(rows, row, removed, remaining, &mut has_same_values) {
            continue;
        }
        if shape.is_multi_valued() {
            entry.keys_of(columns, view, key, row_keys);
            if row_keys.is_empty() {
                continue;
            }
            let mut has_all_keys = |other: &RowVersion<'_>| {
                entry.keys_of(columns, key_view(rows, format, &entry.shape, other, other_image), other_key, other_keys);
                row_keys.remove_all_of(other_keys);
                row_keys.is_empty()
            };
            if any_remaining(rows, row, removed, remaining, &mut has_all_keys) {
                continue;
            }
            for key in row_keys.iter() {
                let is_removed = entry.tree.remove(key, row);
                require_removed(is_removed, (entry.id, entry.is_complete), row, remaining);
            }
            continue;
        }
        // Different values can still have the same key, as 'a' and 'A' do in a case-insensitive collation.
        key.clear();
        shape.append(columns, view, key);
        let mut has_same_key = |other: &RowVersion<'_>| {
            other_key.clear();
            shape.append(columns, key_view(rows, format, shape, other, other_image), other_key);
            other_key == key
        };
        if any_remaining(rows, row, removed, remaining, &mut has_same_key) {
            continue;
        }
        let is_removed = tree.remove(key, row);
        require_removed(is_removed, (*id, *is_complete), row, remaining);
    }
    scratch.trim();
}

/// Checks that the entry of a removed version existed.
#[inline]
fn require_removed(is_removed: bool, (index, is_complete): (IndexId, bool), row: RowId, remaining: Remaining) {
    // A version below the purge horizon may already have lost its entry, if a version above it had an equal
    // key. A version that is removed from the top has its entries.
    require!(
        is_removed || !is_complete || !matches!(remaining, Remaining::AllOthers),
        "a version of row {row} that can be read has an entry in index {index}"
    );
}

/// Whether the condition holds for one of the remaining versions, not counting deletions.
fn any_remaining(
    rows: &RowStore,
    row: RowId,
    removed: Location,
    remaining: Remaining,
    condition: &mut dyn FnMut(&RowVersion<'_>) -> bool,
) -> bool {
    if matches!(remaining, Remaining::Nothing) {
        return false;
    }
    for version in rows.versions(row) {
        let location = version.location();
        if location != removed && !version.is_deleted() && condition(&version) {
            return true;
        }
        if matches!(remaining, Remaining::DownTo(last) if last == location) {
            return false;
        }
    }
    false
}
