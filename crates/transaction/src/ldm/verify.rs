//! Checks for tests and the simulator: the contents of partitions, and the state kept for open transactions.

use std::sync::Arc;

use junctor_model::id::{PartitionId, RowId};

use super::block::LdmBlock;
use crate::GuardedPartition;

/// State that an instance keeps for open transactions and requests; all 0 when the instance is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LdmWork {
    /// Open transactions that have touched a partition.
    pub participants: usize,
    /// Lock requests, granted or waiting.
    pub lock_requests: usize,
    /// Writes parked until a lock is granted.
    pub waiting_writes: usize,
    /// Steps deferred to a later turn, including batches of recovery and images that follow others.
    pub deferred: usize,
    /// Transactions of other nodes whose images this backup keeps.
    pub backed_up: usize,
    /// Signals of an epoch that has not started here.
    pub parked: usize,
}

impl LdmBlock {
    /// Counts the state held for open transactions.
    pub fn work(&self) -> LdmWork {
        LdmWork {
            participants: self.participants.len(),
            lock_requests: self.locks.request_count(),
            waiting_writes: self.waits.parked.len() + self.held_writes.len(),
            deferred: self.deferred.len()
                + self.waits.granted.len()
                + self.replay.len()
                + self.backed_up.values().map(|images| images.waiting.len()).sum::<usize>(),
            backed_up: self.backed_up.len(),
            parked: self.parked.len(),
        }
    }

    /// The partitions placed here, as primary or backup, in order.
    pub fn partitions(&self) -> Vec<PartitionId> {
        self.partitions.ids()
    }

    /// The guards of the partitions placed here, by partition, for tests that place a reader inside.
    pub fn guards(&self) -> Vec<(PartitionId, Arc<GuardedPartition>)> {
        let guard = |slot: &super::partition_table::PartitionSlot| (slot.id, Arc::clone(&slot.guard));
        let mut guards: Vec<_> = self.partitions.iter().map(guard).collect();
        guards.sort_unstable_by_key(|&(partition, _)| partition);
        guards
    }

    /// The newest committed rows of a partition with their images, by row id. Replicas agree when no
    /// transaction is open. `None` if the partition is not here.
    pub fn committed_rows(&self, partition: PartitionId) -> Option<Vec<(RowId, Vec<u8>)>> {
        let slot = self.partitions.get(self.partitions.find(partition)?)?;
        let rows = slot.guard.owner_read(&slot.token, |store| {
            let mut rows = Vec::new();
            let mut scratch = Vec::new();
            for row in (0..store.row_id_limit().0).map(RowId) {
                let version = store.newest_committed(row).filter(|version| !version.is_deleted());
                if let Some(version) = version {
                    rows.push((row, store.view(&version, &mut scratch).image().to_vec()));
                }
            }
            rows
        });
        Some(rows)
    }

    /// Number of versions that purging has not freed yet, over all partitions.
    pub fn purge_queue(&self) -> u64 {
        let queue = |slot: &super::partition_table::PartitionSlot| {
            slot.guard.owner_read(&slot.token, |store| store.statistics().purge_queue)
        };
        self.partitions.iter().map(queue).sum()
    }

    /// Verifies every partition. The error names the partition and the broken condition.
    pub fn check(&self) -> Result<(), String> {
        for slot in self.partitions.iter() {
            let checked = slot.guard.owner_read(&slot.token, |store| store.check());
            checked.map_err(|problem| format!("partition {:?}: {problem}", slot.id))?;
        }
        Ok(())
    }
}
