//! What a session knows of its transaction. Locks and participants are tc's business.

use junctor_model::id::{CommitNumber, PartitionId, StatementNumber, TableId, TransactionId};
use junctor_signals::execute_statement::Reading;
use junctor_storage::snapshot::SnapshotHandle;

use crate::gateway::WriteOptions;

/// Which snapshot a statement reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// A snapshot per statement; READ UNCOMMITTED is served so too.
    ReadCommitted,
    /// One snapshot per transaction, taken at its first read.
    #[default]
    RepeatableRead,
    /// As REPEATABLE READ; what its statements read in a transaction of several, they lock.
    Serializable,
}

/// The data plane's side of a session's transaction; `Default` is "none begun".
#[derive(Debug, Default)]
pub struct Transaction {
    pub(crate) id: TransactionId,
    pub(crate) snapshot: Option<(SnapshotHandle, CommitNumber)>,
    /// The newest table when the snapshot was taken.
    pub(crate) newest_table: TableId,
    pub(crate) written: Vec<PartitionId>,
    /// The last statement that tc has executed for it; 0 before the first.
    pub(crate) statement: StatementNumber,
    /// Whether statements outside BEGIN commit by themselves; false between BEGIN and its end, and with autocommit off.
    pub explicit: bool,
    /// Which snapshots its statements read.
    pub isolation: Isolation,
    /// The last write was the victim of a deadlock or another failure that rolled back everything.
    pub(crate) ended: bool,
}

impl Transaction {
    /// The id at tc; none while nothing has been written or locked.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Whether tc holds anything for it.
    pub fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    /// The last of its statements: what a savepoint that is set now keeps.
    pub fn statement(&self) -> StatementNumber {
        self.statement
    }

    /// What its statements ask of the rows that they lock or change. A statement that is a transaction by itself locks ranges too: it
    /// looks at its partitions one after the other, and waits, so it could see one row of another transaction and miss an earlier one.
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

    /// Whether the transaction's snapshot was taken before the table was made: what it would see of it is not what was
    /// there.
    pub fn is_older_than(&self, table: TableId) -> bool {
        self.snapshot.is_some() && table > self.newest_table
    }

    pub(crate) fn has_written(&self, partition: PartitionId) -> bool {
        self.written.contains(&partition)
    }
}

#[cfg(test)]
mod tests {
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
