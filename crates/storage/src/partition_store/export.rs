//! Output of a partition: redo operations, and a digest to compare replicas.

use junctor_model::id::{CommitNumber, RowId, TransactionId};
use junctor_model::partition::key_hash;

use super::{PartitionStore, key_view};
use crate::redo::RedoBuffer;

impl PartitionStore {
    /// Appends the transaction's change of the row to the open redo record. Must precede `commit` of the row,
    /// while the row's older versions are still present. A row that the transaction inserted and deleted
    /// leaves no operation. Overwrites the contents of `scratch`.
    pub fn append_redo(&self, row: RowId, transaction: TransactionId, redo: &mut RedoBuffer, scratch: &mut Vec<u8>) {
        let Some(newest) = self.rows.newest(row).filter(|newest| newest.is_of(transaction)) else { return };
        if !newest.is_deleted() {
            redo.put(row, self.rows.image(&newest, scratch));
            return;
        }
        let Some(committed) = self.rows.newest_committed(row) else { return };
        if committed.is_deleted() {
            return;
        }
        let mut image = Vec::new();
        let view = key_view(&self.rows, self.format(), &self.primary, &committed, &mut image);
        scratch.clear();
        self.primary.append(self.definitions(), view, scratch);
        redo.delete(row, scratch);
    }

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
