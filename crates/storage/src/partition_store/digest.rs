//! A digest to compare replicas.

use junctor_model::id::{CommitNumber, RowId};
use junctor_model::partition::key_hash;

use super::PartitionStore;

impl PartitionStore {
    /// A digest of the rows that a snapshot sees, and of their ids. Replicas that agree have equal digests.
    pub fn digest(&self, snapshot: CommitNumber) -> u64 {
        let mut scratch = Vec::new();
        let mut digest = 0u64;
        for row in (0..self.row_id_limit().0).map(RowId) {
            let Some(version) = self.visible(row, snapshot, None) else { continue };
            let image = key_hash(self.rows.image(&version, &mut scratch));
            let pair = [u64::from(row.0).to_le_bytes(), image.to_le_bytes()].concat();
            // A sum suffices although it ignores order: each summand includes the row id, and ids without a
            // row add nothing.
            digest = digest.wrapping_add(key_hash(&pair));
        }
        digest
    }
}
