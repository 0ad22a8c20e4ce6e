//! Commit and undo of what a transaction wrote to a row.

use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};

use super::PartitionStore;
use super::remove_version::{Remaining, remove_orphaned_keys};
use crate::invariant::require;
use crate::row::RowVersion;

/// The purge horizon of a partition that nobody reads, such as a backup.
const EVERYTHING: CommitNumber = CommitNumber(u64::MAX);

impl PartitionStore {
    /// Makes the transaction's newest version of the row its committed state, numbered `commit_number`, which
    /// must be above every number in the row. Does nothing when the row has no version of the transaction.
    /// Never fails.
    pub fn commit(&mut self, row: RowId, transaction: TransactionId, commit_number: CommitNumber) {
        let Some(newest) = self.rows.newest(row).filter(|newest| newest.is_of(transaction)) else { return };
        require!(
            commit_number > self.purge_horizon || self.purge_horizon == EVERYTHING,
            "commit {commit_number} of row {row} is above the purge horizon {}, so no snapshot has missed it",
            self.purge_horizon
        );
        let (head, is_live) = (newest.location(), !newest.is_deleted());
        let committed = self.rows.newest_committed(row);
        require!(
            committed.and_then(|committed| committed.commit_number()).is_none_or(|number| number < commit_number),
            "commit {commit_number} of row {row} lies above a version with a lower commit number"
        );
        let before = committed.map(|committed| !committed.is_deleted());
        self.live_rows += u64::from(is_live);
        require!(self.live_rows >= u64::from(before == Some(true)), "a committed row that ends was counted as live");
        self.live_rows -= u64::from(before == Some(true));
        if before.is_none() && !is_live {
            // Inserted and deleted by the same transaction: no other transaction has seen it.
            self.remove_row(row);
            return;
        }
        if before == Some(false) && !is_live {
            // Inserted over a deletion and deleted again. The older deletion stays the newest version: a
            // second one would only add an entry to the purge queue.
            self.undo(row, transaction, StatementNumber(0));
            return;
        }
        // Snapshots see one version per commit; those of earlier statements can no longer be rolled back to.
        while let Some(below) = self.rows.second(row).filter(|below| below.is_of(transaction)) {
            let removed = below.location();
            remove_orphaned_keys(self, row, removed, Remaining::AllOthers);
            self.rows.remove_below(head);
        }
        self.rows.stamp(row, commit_number);
        if before.is_some() {
            self.purge_queue.push_back((commit_number, row));
        }
    }

    /// Removes the transaction's versions of the row that statements after `newer_than` wrote; all of them
    /// with 0. Never fails.
    pub fn undo(&mut self, row: RowId, transaction: TransactionId, newer_than: StatementNumber) {
        let is_undone = |version: &RowVersion<'_>| version.is_of(transaction) && version.statement() > Some(newer_than);
        if self.rows.newest(row).is_some() && self.rows.versions(row).all(|version| is_undone(&version)) {
            self.remove_row(row);
            return;
        }
        while let Some(newest) = self.rows.newest(row).filter(is_undone) {
            let removed = newest.location();
            remove_orphaned_keys(self, row, removed, Remaining::AllOthers);
            self.rows.pop(row);
        }
    }
}
