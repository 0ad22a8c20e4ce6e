//! The copy of rows from another replica, while this one gets all later changes already. Copied rows go below
//! these changes.

use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::partition::HashedKey;
use junctor_model::planted_bug::PlantedBug;

use super::{PartitionStore, WriteError, Writer};

/// The writer of copied rows. No node has the number 0.
const COPIER: Writer = Writer { transaction: TransactionId(1), statement: StatementNumber(1) };

/// Why a copied row has no place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The data memory is exhausted.
    OutOfMemory,
    /// The other replica has given up versions that the copy needs.
    TooOld,
}

impl PartitionStore {
    /// Puts a row as a snapshot at `number` sees it on another replica. If the row has a committed version,
    /// which is later, nothing changes. An open version stays on top.
    ///
    /// # Errors
    /// After an error, the partition cannot be used.
    pub fn put_copy(
        &mut self,
        row: RowId,
        key: HashedKey<'_>,
        image: &[u8],
        number: CommitNumber,
    ) -> Result<(), CopyError> {
        if number <= self.purge_horizon {
            return Err(CopyError::TooOld);
        }
        self.stamp_settled(row);
        if self.newest_committed(row).is_some() {
            if !PlantedBug::CopyOverNewerRow.is_planted() {
                return Ok(());
            }
            self.remove_row(row);
        }
        let mut scratch = Vec::new();
        let open = self.newest(row).and_then(|newest| {
            let (transaction, statement) = (self.state(&newest).transaction()?, newest.statement()?);
            let image = self.rows.image(&newest, &mut scratch).to_vec();
            Some((Writer { transaction, statement }, image))
        });
        if let Some((writer, _)) = &open {
            self.undo(row, writer.transaction, StatementNumber(0));
        }
        self.insert_at(row, key, image, COPIER).map_err(refused)?;
        self.commit(row, COPIER.transaction, number);
        if let Some((writer, image)) = open {
            self.update(row, &image, writer).map_err(refused)?;
        }
        Ok(())
    }

    /// From now on, rows are put by [`PartitionStore::put_copy`] with this number.
    pub fn begin_copy(&mut self, number: CommitNumber) {
        self.copied_at = Some(number);
    }

    /// All rows are copied. The versions that snapshots below the last change need are not here.
    pub fn end_copy(&mut self, number: CommitNumber) {
        self.copied_at = None;
        self.copy_floor = self.newest_commit.max(number);
    }
}

fn refused(error: WriteError) -> CopyError {
    match error {
        WriteError::OutOfMemory => CopyError::OutOfMemory,
        WriteError::Duplicate(_) | WriteError::Uncommitted(_) | WriteError::NotFound => CopyError::TooOld,
    }
}
