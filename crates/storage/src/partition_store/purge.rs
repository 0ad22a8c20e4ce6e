//! Purge of versions that no snapshot can reach, in steps of bounded work.

use junctor_model::id::{CommitNumber, RowId};
use junctor_model::planted_bug::PlantedBug;

use super::PartitionStore;
use super::remove_version::{Remaining, remove_orphaned_keys};
use crate::invariant::require;
use crate::page::Location;

/// Maximum number of versions of one row that a purge step walks to find one to purge.
const PURGE_WALK_MAX: usize = 256;
/// Maximum number of superseded versions of a partition that stay reachable when older ones are given up. A
/// purge may have to walk over this many.
const KEPT_NEWEST_MAX: usize = 32_768;
/// After a long walk, number of versions walked that allow one more version to be purged.
const VERSIONS_WALKED_PER_PURGED: usize = 16;
/// Entries of the cache of recently purged rows with long version chains.
const PURGED_DEEP_SLOTS: usize = 64;
/// Capacity, in entries, up to which an empty purge queue keeps its memory.
const PURGE_QUEUE_KEPT: usize = 1024;

/// The result of one purge step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeProgress {
    /// Queue entries and versions processed; at most the budget.
    pub steps: usize,
    /// Whether the budget ran out before everything below the horizon was purged.
    pub has_more: bool,
}

impl PartitionStore {
    /// Frees versions that no snapshot at or above `horizon` can reach. `budget` bounds the work: a queue
    /// entry counts one, and so does a freed version.
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

    /// Raises the snapshot floor if the partition keeps more than `kept_max` superseded versions. All but the
    /// newest versions may then be purged, even if a snapshot still reads them. `stable` is the lowest number
    /// that a new snapshot can have; this does not raise the floor above it.
    pub fn limit_old_versions(&mut self, kept_max: usize, stable: CommitNumber) {
        let length = self.purge_queue.len();
        if length <= kept_max {
            return;
        }
        let kept = (kept_max / 2).min(KEPT_NEWEST_MAX);
        let newest_given_up = self.purge_queue.get(length - kept - 1).map_or(stable, |(number, _)| *number);
        self.snapshot_floor = self.snapshot_floor.max(newest_given_up.min(stable));
    }

    /// The lowest horizon with which `purge_step` has work; `None` if the queue is empty.
    pub fn purge_pending(&self) -> Option<CommitNumber> {
        self.purge_queue.front().map(|(commit_number, _)| *commit_number)
    }

    /// Moves at most `budget` row versions out of pages that are at most half full, so that the pages return
    /// to the pool. Returns false at the end of a pass over all pages. Call it again after rows were deleted.
    pub fn compact_step(&mut self, budget: usize) -> bool {
        self.rows.compact_step(budget)
    }

    /// Returns false if the budget ran out before the row was finished.
    fn purge_row(&mut self, row: RowId, horizon: CommitNumber, left: &mut usize) -> bool {
        // The base is the newest version that is at or below the horizon. Versions below the base are
        // unreachable.
        if !PlantedBug::PurgeUnstamped.is_planted() {
            self.stamp_settled(row);
        }
        let mut newer = None;
        let mut base = None;
        // If the horizon is the snapshot floor, purge the whole remainder of a long chain now: its queue
        // entries are dropped too, so nothing would purge it later.
        let walk_max = if horizon == self.snapshot_floor { 2 * KEPT_NEWEST_MAX } else { PURGE_WALK_MAX };
        let mut walked = 0;
        for version in self.rows.versions(row).take(walk_max) {
            walked += 1;
            if version.is_seen_by(horizon, None) {
                base = Some(version);
                break;
            }
            newer = Some(version.location());
        }
        // The row has too many newer versions. Their own queue entries will purge it later.
        let Some(base) = base else { return true };
        let is_deleted = base.is_deleted();
        let base_number = self.rows.state(&base).commit_number();
        // A deletion has no key. Keep the version below it until the whole row goes, so that the row still
        // has a key if newer versions are rolled back.
        let last_kept = if is_deleted { base.older() } else { base.location() };
        // After a long walk, purge more versions than the budget allows. Otherwise walking would dominate the
        // work.
        let mut deep_left = walked / VERSIONS_WALKED_PER_PURGED;
        let row_left = if walked > PURGE_WALK_MAX { &mut deep_left } else { &mut *left };
        if !self.remove_all_below(row, last_kept, horizon, row_left) {
            *left = left.saturating_sub(walked / PURGE_WALK_MAX);
            return false;
        }
        match newer {
            _ if !is_deleted => {}
            None => self.remove_row(row),
            // Below `newer`, only the deletion and the version below it are left. Remove both, because a row
            // that ends with a deletion and a row without a version look the same to readers.
            Some(newer) => _ = self.remove_all_below(row, newer, horizon, &mut 2),
        }
        if walked > PURGE_WALK_MAX {
            self.remember_deep(row, base_number.unwrap_or_default());
        }
        true
    }

    /// Whether the versions of a row that this commit superseded are known to be gone. This saves walking
    /// over the row's many newer versions for each of its queue entries.
    #[inline]
    fn is_purged_deep(&self, row: RowId, commit_number: CommitNumber) -> bool {
        let known = self.purged_deep.get(row.0 as usize % PURGED_DEEP_SLOTS);
        known.is_some_and(|(known, number)| *known == row && commit_number <= *number)
    }

    fn remember_deep(&mut self, row: RowId, number: CommitNumber) {
        if self.purged_deep.is_empty() {
            self.purged_deep = vec![Default::default(); PURGED_DEEP_SLOTS].into();
        }
        self.purged_deep[row.0 as usize % PURGED_DEEP_SLOTS] = (row, number);
    }

    /// Returns false if the budget ran out before all of them were removed.
    #[inline(always)]
    fn remove_all_below(&mut self, row: RowId, last_kept: Location, horizon: CommitNumber, left: &mut usize) -> bool {
        while let (_, Some(below)) = self.rows.version_and_below(last_kept) {
            require!(
                self.rows.state(&below).commit_number().is_some_and(|number| number <= horizon),
                "purge removes only versions of row {row} committed at or below the horizon {horizon}"
            );
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let removed = below.location();
            remove_orphaned_keys(self, row, removed, Remaining::DownTo(last_kept));
            self.rows.remove_below(last_kept);
        }
        true
    }
}
