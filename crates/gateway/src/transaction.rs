//! A session's view of its transaction. tc holds the locks and participants.

use junctor_model::id::{CommitNumber, PartitionId, StatementNumber, TableId, TransactionId};
use junctor_signals::execute_statement::Reading;
use junctor_storage::snapshot::SnapshotHandle;

use crate::gateway::WriteOptions;

/// The isolation level, which decides the snapshot that a statement reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// One snapshot per statement; serves READ UNCOMMITTED, too.
    ReadCommitted,
    /// One snapshot per transaction, taken by its first read.
    #[default]
    RepeatableRead,
    /// As REPEATABLE READ, but statements of an explicit transaction also lock the rows that they read.
    Serializable,
}

/// A session's transaction. The default value is a transaction that has not begun.
#[derive(Debug, Default)]
pub struct Transaction {
    pub(crate) id: TransactionId,
    pub(crate) snapshot: Option<(SnapshotHandle, CommitNumber)>,
    /// The newest table id when the snapshot was taken.
    pub(crate) newest_table: TableId,
    pub(crate) written: Vec<PartitionId>,
    /// How often nodes had left the cluster when its first write began.
    pub(crate) losses: u32,
    /// Number of the last statement that tc executed; 0 before the first.
    pub(crate) statement: StatementNumber,
    /// Whether a statement must not commit by itself: after BEGIN, or with autocommit off.
    pub explicit: bool,
    /// The isolation level of its statements.
    pub isolation: Isolation,
    /// Whether the last write was rolled back together with the whole transaction, for example as a deadlock
    /// victim.
    pub(crate) ended: bool,
}

impl Transaction {
    /// The transaction's id at tc; the default id as long as nothing has been written or locked.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// The number of the snapshot that the transaction holds.
    pub fn snapshot_number(&self) -> Option<CommitNumber> {
        self.snapshot.as_ref().map(|(_, number)| *number)
    }

    /// Whether tc holds locks or writes for the transaction.
    pub fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    /// Number of the transaction's last statement. A savepoint set now keeps it and all earlier ones.
    pub fn statement(&self) -> StatementNumber {
        self.statement
    }

    /// How statements read the rows that they lock or change. An autocommit statement locks ranges, too: it
    /// visits its partitions one after the other and may wait between them. Without range locks it could
    /// therefore see one row of another transaction and miss an earlier row.
    #[inline]
    pub(crate) fn reading(&self, options: &WriteOptions) -> Reading {
        let WriteOptions { keeps_to_snapshot, rows_max, warnings_max, .. } = *options;
        let keeps_to_snapshot = match self.isolation {
            Isolation::ReadCommitted => false,
            Isolation::RepeatableRead => keeps_to_snapshot && self.explicit,
            Isolation::Serializable => keeps_to_snapshot,
        };
        let snapshot = self.snapshot.as_ref().filter(|_| keeps_to_snapshot);
        let changed_after = snapshot.map_or(CommitNumber(0), |(_, number)| *number);
        let locks_ranges = self.isolation != Isolation::ReadCommitted && options.locks_ranges;
        let rows_max = if rows_max == u32::MAX { 0 } else { rows_max };
        Reading { locks_ranges, changed_after, rows_max, warnings_max }
    }

    /// Whether the snapshot is older than the table, so that it cannot show the table's rows.
    pub fn is_older_than(&self, table: TableId) -> bool {
        self.snapshot.is_some() && table > self.newest_table
    }

    pub(crate) fn has_written(&self, partition: PartitionId) -> bool {
        self.written.contains(&partition)
    }
}

#[cfg(test)]
mod tests {
    use junctor_signals::end_transaction::CommitDurability;
    use junctor_signals::program::RowProtocol;

    use super::*;

    fn locks_ranges(isolation: Isolation, explicit: bool, may_lock: bool) -> bool {
        let options = WriteOptions {
            protocol: RowProtocol::Text,
            lock_wait_ms: 1,
            timeout_ends: false,
            keeps_to_snapshot: true,
            rows_max: u32::MAX,
            locks_ranges: may_lock,
            savepoint: StatementNumber(0),
            warnings_max: 0,
            durability: CommitDurability::default(),
        };
        Transaction { isolation, explicit, ..Transaction::default() }.reading(&options).locks_ranges
    }

    #[test]
    fn what_was_looked_at_is_kept_from_repeatable_read_on_by_statements_alone_too() {
        for explicit in [false, true] {
            assert!(!locks_ranges(Isolation::ReadCommitted, explicit, true));
            assert!(locks_ranges(Isolation::RepeatableRead, explicit, true));
            assert!(locks_ranges(Isolation::Serializable, explicit, true));
            assert!(!locks_ranges(Isolation::Serializable, explicit, false));
        }
    }
}
