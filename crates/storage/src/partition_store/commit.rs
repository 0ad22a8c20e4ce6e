//! Commit and undo of what a transaction wrote.
//!
//! A short transaction stamps its rows at commit. A long one settles in constant time, and its rows are
//! stamped later: in the background, and each row before anything is written over it or purged below it.

use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::planted_bug::PlantedBug;

use super::remove_version::{Remaining, remove_orphaned_keys};
use super::{PartitionStore, StampList};
use crate::invariant::require;
use crate::row::RowVersion;

impl PartitionStore {
    /// Makes the transaction's newest version of the row its committed state, numbered `commit_number`, which
    /// must be above every number in the row. Does nothing when the row has no version of the transaction.
    /// Never fails.
    pub fn commit(&mut self, row: RowId, transaction: TransactionId, commit_number: CommitNumber) {
        require!(
            commit_number > self.purge_horizon,
            "commit {commit_number} of row {row} is above the purge horizon {}, so no snapshot has missed it",
            self.purge_horizon
        );
        self.newest_commit = self.newest_commit.max(commit_number);
        self.stamp(row, transaction, commit_number);
    }

    /// Commits a transaction in constant time. `rows` names every row of this partition in which it has a
    /// version; repetitions are allowed. The caller runs `stamp_step` until it returns false. Never fails.
    pub fn settle(&mut self, transaction: TransactionId, number: CommitNumber, rows: Vec<RowId>) {
        require!(
            number > self.purge_horizon,
            "commit {number} is above the purge horizon {}, so no snapshot has missed it",
            self.purge_horizon
        );
        if rows.is_empty() {
            return;
        }
        self.newest_commit = self.newest_commit.max(number);
        self.rows.settle(transaction, number);
        self.stamping.push_back(StampList { transaction, number, rows, next: 0 });
    }

    /// Whether committed transactions have rows that may lack their stamps.
    #[inline]
    pub fn has_unstamped(&self) -> bool {
        !self.stamping.is_empty()
    }

    /// Stamps at most `budget_rows` rows of committed transactions. Returns whether more are left.
    pub fn stamp_step(&mut self, budget_rows: usize) -> bool {
        for _ in 0..budget_rows {
            let Some(list) = self.stamping.front_mut() else { return false };
            let StampList { transaction, number, .. } = *list;
            let row = list.rows[list.next];
            list.next += 1;
            let is_last = list.next == list.rows.len();
            self.stamp(row, transaction, number);
            if PlantedBug::ForgetSettledEarly.is_planted() {
                self.rows.forget_settled(transaction);
            }
            if is_last {
                self.stamping.pop_front();
                self.rows.forget_settled(transaction);
            }
        }
        !self.stamping.is_empty()
    }

    /// Stamps a row whose newest version belongs to a settled transaction: writes the transaction's commit
    /// number into the version. Returns whether the row had such a version; stamping may have removed the
    /// row. Writers and purge call this first, so that unstamped versions lie on top of a row and belong to
    /// one transaction.
    #[inline]
    pub(super) fn stamp_settled(&mut self, row: RowId) -> bool {
        self.rows.has_settled() && !PlantedBug::WriteAboveUnstamped.is_planted() && self.stamp_if_settled(row)
    }

    #[cold]
    fn stamp_if_settled(&mut self, row: RowId) -> bool {
        let stamp = self.rows.newest(row).and_then(|newest| self.rows.settled_stamp(&newest));
        let Some((transaction, number)) = stamp else { return false };
        self.stamp(row, transaction, number);
        true
    }

    fn stamp(&mut self, row: RowId, transaction: TransactionId, commit_number: CommitNumber) {
        let Some(newest) = self.rows.newest(row).filter(|newest| newest.is_of(transaction)) else { return };
        let (head, is_live) = (newest.location(), !newest.is_deleted());
        let committed = self.rows.newest_stamped(row);
        require!(
            committed
                .and_then(|committed| self.rows.state(&committed).commit_number())
                .is_none_or(|number| number < commit_number),
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
            self.remove_newest(row, transaction, StatementNumber(0));
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
        require!(!self.rows.is_settled(transaction), "a committed transaction is not undone: {transaction}");
        self.remove_newest(row, transaction, newer_than);
    }

    fn remove_newest(&mut self, row: RowId, transaction: TransactionId, newer_than: StatementNumber) {
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
