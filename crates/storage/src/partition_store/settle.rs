//! What becomes of versions: commit, undo, and purge of those that no snapshot can reach.

use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::partition::key_hash;

use super::{OrderedEntry, PartitionStore, Scratch, key_view};
use crate::page::Location;
use crate::row::{RowStore, RowVersion};

/// Versions of one row that are walked to find what can be purged.
const PURGE_WALK_MAX: usize = 256;
/// Superseded versions of a partition that stay reachable when others are given up, at most: as many may have to be walked.
const KEPT_NEWEST_MAX: usize = 32_768;
/// Versions that may be walked for each one that is taken out then.
const VERSIONS_WALKED_FOR_ONE: usize = 16;
/// Rows with very many versions of which it is remembered that they are purged.
const PURGED_DEEP: usize = 64;
/// Entries for which the purge queue keeps its memory when it is empty.
const PURGE_QUEUE_KEPT: usize = 1024;

/// What one step of the purge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeProgress {
    /// Entries of the queue and versions that were looked at.
    pub steps: usize,
    /// Whether more could be purged with the same horizon now.
    pub has_more: bool,
}

/// Which versions of a row stay when one is removed.
#[derive(Clone, Copy)]
pub(super) enum Rest {
    /// All others.
    Except,
    /// The newest ones down to this one.
    DownTo(Location),
    /// None.
    Nothing,
}

impl PartitionStore {
    /// Makes what the transaction did to the row its committed state under `commit_number`, which must be above every
    /// number of the row. Nothing happens when the row has no version of the transaction. Never fails.
    pub fn commit(&mut self, row: RowId, transaction: TransactionId, commit_number: CommitNumber) {
        let Some(newest) = self.rows.newest(row).filter(|newest| newest.is_of(transaction)) else { return };
        let (head, is_live) = (newest.location(), !newest.is_deleted());
        let before = self.rows.newest_committed(row).map(|committed| !committed.is_deleted());
        self.live_rows += u64::from(is_live);
        self.live_rows -= u64::from(before == Some(true));
        if before.is_none() && !is_live {
            // Inserted and deleted by the same transaction: nobody else has seen it.
            self.remove_row(row);
            return;
        }
        if before == Some(false) && !is_live {
            // Inserted over a deletion and deleted again: the deletion that everybody knows stays the newest.
            self.undo(row, transaction, StatementNumber(0));
            return;
        }
        while let Some(below) = self.rows.second(row).filter(|below| below.is_of(transaction)) {
            let removed = below.location();
            forget_keys(self, row, removed, Rest::Except);
            self.rows.remove_below(head);
        }
        self.rows.stamp(row, commit_number);
        if before.is_some() {
            self.purge_queue.push_back((commit_number, row));
        }
    }

    /// Takes back what the transaction did to the row in statements after `newer_than`; all of it with 0. Never fails.
    pub fn undo(&mut self, row: RowId, transaction: TransactionId, newer_than: StatementNumber) {
        let is_undone = |version: &RowVersion<'_>| version.is_of(transaction) && version.statement() > Some(newer_than);
        if self.rows.newest(row).is_some() && self.rows.versions(row).all(|version| is_undone(&version)) {
            self.remove_row(row);
            return;
        }
        while let Some(newest) = self.rows.newest(row).filter(is_undone) {
            let removed = newest.location();
            forget_keys(self, row, removed, Rest::Except);
            self.rows.pop(row);
        }
    }

    /// Frees versions that no snapshot from `horizon` on can reach. Does at most `budget` things: working off an entry
    /// of the queue, freeing a version.
    pub fn purge_step(&mut self, horizon: CommitNumber, budget: usize) -> PurgeProgress {
        let mut left = budget;
        let horizon = horizon.max(self.snapshot_floor);
        self.purge_horizon = self.purge_horizon.max(horizon);
        while let Some((commit_number, row)) = self.purge_queue.front().copied()
            && commit_number <= horizon
        {
            if left == 0 {
                return PurgeProgress { steps: budget, has_more: true };
            }
            left -= 1;
            if self.is_purged_deep(row, commit_number) || self.purge_row(row, horizon, &mut left) {
                self.purge_queue.pop_front();
            }
        }
        if self.purge_queue.is_empty() && self.purge_queue.capacity() > PURGE_QUEUE_KEPT {
            self.purge_queue = Default::default();
        }
        PurgeProgress { steps: budget - left, has_more: false }
    }

    /// Gives up old snapshots when more than `kept_max` superseded versions are kept: all but the newest of them may be purged then,
    /// whoever reads. `stable` bounds what new snapshots can be.
    pub fn limit_old_versions(&mut self, kept_max: usize, stable: CommitNumber) {
        let length = self.purge_queue.len();
        if length <= kept_max {
            return;
        }
        let kept = (kept_max / 2).min(KEPT_NEWEST_MAX);
        let newest_given_up = self.purge_queue.get(length - kept - 1).map_or(stable, |(number, _)| *number);
        self.snapshot_floor = self.snapshot_floor.max(newest_given_up.min(stable));
    }

    /// The commit number from which on a horizon lets `purge_step` do something.
    pub fn purge_pending(&self) -> Option<CommitNumber> {
        self.purge_queue.front().map(|(commit_number, _)| *commit_number)
    }

    /// Moves at most `budget` row versions out of pages that are at most half used, so that the pages go back to the
    /// pool. False at the end of a pass over all pages: to be called again when rows were deleted.
    pub fn compact_step(&mut self, budget: usize) -> bool {
        self.rows.compact_step(budget)
    }

    /// False when the budget ended before the row was done.
    fn purge_row(&mut self, row: RowId, horizon: CommitNumber, left: &mut usize) -> bool {
        // The oldest version that some snapshot may see; what is below it is out of reach.
        let mut newer = None;
        let mut base = None;
        // With snapshots given up, the rest of a long list has to go at once, for its entries in the queue go too.
        let walk_max = if horizon == self.snapshot_floor { 2 * KEPT_NEWEST_MAX } else { PURGE_WALK_MAX };
        let mut walked = 0;
        for version in self.rows.versions(row).take(walk_max) {
            walked += 1;
            if version.is_committed() && version.is_seen_by(horizon, None) {
                base = Some(version);
                break;
            }
            newer = Some(version.location());
        }
        // A row with very many newer versions is left to the entries that those have in the queue.
        let Some(base) = base else { return true };
        let is_deleted = base.is_deleted();
        let base_number = base.commit_number();
        // Under a deletion the version with the key stays to the last: whatever is undone meanwhile, the row has its
        // key.
        let last_kept = if is_deleted { base.older() } else { base.location() };
        // Who has walked far takes so many more out that not the walks are most of the work.
        let mut deep_left = walked / VERSIONS_WALKED_FOR_ONE;
        let of_this_row = if walked > PURGE_WALK_MAX { &mut deep_left } else { &mut *left };
        if !self.remove_all_below(row, last_kept, of_this_row) {
            *left = left.saturating_sub(walked / PURGE_WALK_MAX);
            return false;
        }
        match newer {
            _ if !is_deleted => {}
            None => self.remove_row(row),
            // A deletion with nothing to hide says no more than nothing; it goes in one step with what it hides.
            Some(newer) => _ = self.remove_all_below(row, newer, &mut 2),
        }
        if walked > PURGE_WALK_MAX {
            self.remember_deep(row, base_number.unwrap_or_default());
        }
        true
    }

    /// Whether all versions of a row that a commit superseded are known to be gone, so that its many newer ones need not be walked
    /// again for each entry of the queue.
    #[inline]
    fn is_purged_deep(&self, row: RowId, commit_number: CommitNumber) -> bool {
        let known = self.purged_deep.get(row.0 as usize % PURGED_DEEP);
        known.is_some_and(|(known, number)| *known == row && commit_number <= *number)
    }

    fn remember_deep(&mut self, row: RowId, number: CommitNumber) {
        if self.purged_deep.is_empty() {
            self.purged_deep = vec![Default::default(); PURGED_DEEP].into();
        }
        self.purged_deep[row.0 as usize % PURGED_DEEP] = (row, number);
    }

    /// False when the budget ended before all were removed.
    fn remove_all_below(&mut self, row: RowId, last_kept: Location, left: &mut usize) -> bool {
        while let (_, Some(below)) = self.rows.version_and_below(last_kept) {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let removed = below.location();
            forget_keys(self, row, removed, Rest::DownTo(last_kept));
            self.rows.remove_below(last_kept);
        }
        true
    }

    /// Takes a row out of everything: all versions, index entries and the id.
    pub(super) fn remove_row(&mut self, row: RowId) {
        let PartitionStore { rows, layout, primary, hash, scratch, .. } = self;
        let image = rows.versions(row).find(|version| !version.is_deleted());
        let image = image.expect("a row has a version with its key");
        scratch.key.clear();
        let view = key_view(rows, &layout.row_format, primary, &image, &mut scratch.image);
        primary.append(&layout.definition.columns, view, &mut scratch.key);
        let removed = hash.remove(key_hash(&scratch.key), row);
        assert!(removed, "every row has an entry in the hash index");
        while let Some(newest) = self.rows.newest(row) {
            let location = newest.location();
            forget_keys(self, row, location, Rest::Nothing);
            self.rows.pop(row);
        }
        self.rows.map_mut().free(row);
    }
}

/// Removes the index entries for the keys of a version about to be removed, unless one of the rest has the same key.
pub(super) fn forget_keys(store: &mut PartitionStore, row: RowId, removed: Location, rest: Rest) {
    let PartitionStore { rows, ordered, layout, scratch, .. } = store;
    let rows: &RowStore = rows;
    let (version, _) = rows.version_and_below(removed);
    if version.is_deleted() {
        return;
    }
    let (format, columns) = (&layout.row_format, &layout.definition.columns[..]);
    let Scratch { image, other_image, key, other_key, .. } = &mut *scratch;
    for OrderedEntry { shape, tree, .. } in ordered {
        let view = key_view(rows, format, shape, &version, image);
        let mut has_same_values =
            |other: &RowVersion<'_>| shape.has_same_values(view, key_view(rows, format, shape, other, other_image));
        if any_left(rows, row, removed, rest, &mut has_same_values) {
            continue;
        }
        // Different values can still have one key.
        key.clear();
        shape.append(columns, view, key);
        let mut has_same_key = |other: &RowVersion<'_>| {
            other_key.clear();
            shape.append(columns, key_view(rows, format, shape, other, other_image), other_key);
            other_key == key
        };
        if !any_left(rows, row, removed, rest, &mut has_same_key) {
            tree.remove(key, row);
        }
    }
    scratch.trim();
}

/// Whether the condition holds for one of the versions that stay and are no deletions.
fn any_left(
    rows: &RowStore,
    row: RowId,
    removed: Location,
    rest: Rest,
    condition: &mut dyn FnMut(&RowVersion<'_>) -> bool,
) -> bool {
    if matches!(rest, Rest::Nothing) {
        return false;
    }
    for version in rows.versions(row) {
        let location = version.location();
        if location != removed && !version.is_deleted() && condition(&version) {
            return true;
        }
        if matches!(rest, Rest::DownTo(last) if last == location) {
            return false;
        }
    }
    false
}
