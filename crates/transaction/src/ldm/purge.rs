//! Frees versions that no snapshot can reach. Runs in the background, and holds each guard only for a bounded
//! time.

use junctor_kernel::{Duration, Outbox, WorldRequest};
use junctor_model::id::PartitionId;
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_signals::Signal;

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::partition_table::SlotIndex;

/// Milliseconds from a commit to the first purge of the versions that it superseded.
pub(super) const PURGE_TIMER_MS: u64 = 10;
/// Maximum number of partitions purged in one step.
const PARTITIONS_PURGED_MAX: usize = 16;
/// Number of versions purged from a partition before its pages are compacted.
const COMPACT_AFTER: usize = 4096;
/// Number of superseded versions that a partition keeps for old snapshots, in addition to one for each row.
/// Old versions therefore take about as much memory as the rows. Beyond this number, the oldest snapshots are
/// given up.
const OLD_VERSIONS_KEPT_MIN: usize = 65_536;
/// If less than `1 / SCARCE_SHARE` of the memory is free, each partition keeps only `old_versions_kept_min`
/// old versions.
const SCARCE_SHARE: u64 = 16;
/// Milliseconds between attempts while an old snapshot blocks purging.
const PURGE_RETRY_MS: u64 = 100;

/// The partitions with versions to purge, and the timer that purges them.
#[derive(Debug)]
pub(super) struct PurgeQueue {
    /// Partitions with versions to purge, each at most once.
    pub partitions: Vec<SlotIndex>,
    /// Number of entries at the start of `partitions` that the current round has not reached.
    left: usize,
    /// Whether a partition of this round can be purged further immediately.
    has_more: bool,
    old_versions_kept_min: usize,
    timer_runs: bool,
}

impl PurgeQueue {
    pub fn new() -> PurgeQueue {
        PurgeQueue {
            partitions: Vec::new(),
            left: 0,
            has_more: false,
            old_versions_kept_min: OLD_VERSIONS_KEPT_MIN,
            timer_runs: false,
        }
    }

    /// Adds a partition, unless it is queued.
    pub fn add(&mut self, index: SlotIndex, is_queued: &mut bool) {
        if !std::mem::replace(is_queued, true) {
            self.partitions.push(index);
        }
    }
}

impl LdmBlock {
    /// Purges some partitions, one acquisition of the guard each, and defers the remainder of the round as a
    /// separate step. A partition with a reader inside waits for the next round, because purging is never
    /// urgent enough to keep readers out.
    ///
    /// Returns the number of versions visited.
    pub(super) fn purge(&mut self, outbox: &mut Outbox<Signal>) -> usize {
        let count = self.purge.left.min(self.purge.partitions.len()).min(PARTITIONS_PURGED_MAX);
        self.purge.left = self.purge.left.min(self.purge.partitions.len()) - count;
        let now: Vec<SlotIndex> = self.purge.partitions.drain(..count).collect();
        let horizon = self.shared.snapshots.horizon();
        let stable = self.shared.sequence.stable();
        let (scarce, kept_min) = (self.is_memory_scarce(), self.purge.old_versions_kept_min);
        let partitions = &mut self.partitions;
        let PurgeQueue { partitions: queue, has_more, .. } = &mut self.purge;
        let mut steps = 0;
        let mut compacting = Vec::new();
        queue.extend(now.into_iter().filter(|index| {
            let Some(slot) = partitions.get_mut(*index) else { return false };
            // Unlike `try_enter`, this leaves the guard open to readers if it fails.
            let Some(mut store) = slot.guard.try_write(&mut slot.token) else { return true };
            let rows = if scarce { 0 } else { store.statistics().live_rows as usize };
            // Copied rows belong below all versions.
            if slot.copy.is_none() {
                store.limit_old_versions(rows.saturating_add(kept_min), stable);
            }
            let progress = store.purge_step(horizon, ROWS_PER_HOLD_MAX);
            *has_more |= progress.has_more;
            steps += progress.steps;
            slot.purged += progress.steps;
            if slot.purged >= COMPACT_AFTER && !slot.is_compacting {
                slot.is_compacting = true;
                compacting.push(slot.id);
            }
            let has_more = store.purge_pending().is_some();
            drop(store);
            slot.is_purging = has_more;
            has_more
        }));
        if self.purge.left == 0 && std::mem::take(&mut self.purge.has_more) {
            self.purge.left = self.purge.partitions.len();
        }
        if self.purge.left > 0 {
            self.defer(Deferred::Purge, outbox);
        }
        compacting.into_iter().for_each(|partition| self.defer(Deferred::Compact(partition), outbox));
        steps
    }

    /// Whether memory is too scarce to keep an old version of each row.
    fn is_memory_scarce(&self) -> bool {
        self.shared.pages.available_bytes() < self.shared.pages.total_bytes() / SCARCE_SHARE
    }

    /// Sets the number of superseded versions that each partition keeps for old snapshots, in addition to one
    /// for each row.
    pub fn set_old_versions_kept_min(&mut self, versions: usize) {
        self.purge.old_versions_kept_min = versions;
    }

    /// Moves versions out of sparse pages, within one acquisition of the guard, so that whole pages return to
    /// the pool.
    pub(super) fn compact(&mut self, partition: PartitionId, outbox: &mut Outbox<Signal>) {
        let Some(index) = self.partitions.find(partition) else { return };
        let slot = self.slot(index);
        let has_more = match slot.guard.try_write(&mut slot.token) {
            Some(mut store) => store.compact_step(ROWS_PER_HOLD_MAX),
            None => true,
        };
        if has_more {
            return self.defer(Deferred::Compact(partition), outbox);
        }
        slot.is_compacting = false;
        slot.purged = 0;
    }

    /// Starts the purge timer, unless it is running or nothing is queued.
    pub(super) fn start_purge_timer(&mut self, after_ms: u64, outbox: &mut Outbox<Signal>) {
        if !self.purge.timer_runs && !self.purge.partitions.is_empty() {
            self.purge.timer_runs = true;
            let after = Duration::from_millis(after_ms);
            outbox.request(WorldRequest::StartTimer { after, token: 0 });
        }
    }

    pub(super) fn on_purge_timer(&mut self, outbox: &mut Outbox<Signal>) {
        self.purge.timer_runs = false;
        if self.purge.left > 0 {
            // The last round is not over.
            return self.start_purge_timer(PURGE_TIMER_MS, outbox);
        }
        self.purge.left = self.purge.partitions.len();
        let steps = self.purge(outbox);
        self.start_purge_timer(if steps > 0 { PURGE_TIMER_MS } else { PURGE_RETRY_MS }, outbox);
    }
}
