//! Rows of `junctor_info.locks`, `junctor_info.memoryusage` and `junctor_info.counters` for this instance.

use std::ops::Bound;
use std::sync::Arc;

use junctor_kernel::{Context, Outbox};
use junctor_model::id::{PartitionId, RowId, TransactionId};
use junctor_model::value::Value;
use junctor_signals::counter::{LdmCounters, counter_rows};
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, STATUS_ROWS_MAX, StatusTable};
use junctor_signals::{Signal, SqlSignal};
use junctor_storage::lock::{LockEntry, LockMode, RangeEntry};

use super::block::LdmBlock;
use crate::read::ReadCounts;

/// Maximum number of bytes of a key that are shown. Longer keys are truncated.
const KEY_BYTES_SHOWN_MAX: usize = 60;

/// The transaction, its lock mode, and whether the lock is granted.
type Holding = (TransactionId, LockMode, bool);

impl LdmBlock {
    pub(super) fn on_read_status(&mut self, request: ReadStatus, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
        let rows = match request.table {
            StatusTable::Locks => self.lock_rows(),
            StatusTable::MemoryUsage | StatusTable::TableStatistics => self.memory_rows(&request),
            StatusTable::Counters => counter_rows(&self.counters(), self.own, context.thread()),
            StatusTable::Transactions
            | StatusTable::LockWaits
            | StatusTable::Processes
            | StatusTable::MetadataLocks
            | StatusTable::Routing
            | StatusTable::ThreadPoolGroups
            | StatusTable::ThreadPoolQueues
            | StatusTable::ThreadPoolStatistics
            | StatusTable::ThreadPoolWaits
            | StatusTable::OperationLatency
            | StatusTable::OperationLatencyBuckets
            | StatusTable::StatementDigests
            | StatusTable::StatementHistograms
            | StatusTable::TakenStatementDigests
            | StatusTable::Checkpoints
            | StatusTable::LogSpaces
            | StatusTable::RestartInfo
            | StatusTable::NodeGroups
            | StatusTable::Links
            | StatusTable::Arbitration
            | StatusTable::Restarts
            | StatusTable::ReplicationLag
            | StatusTable::Events
            | StatusTable::Backups
            | StatusTable::Nodes
            | StatusTable::UserLocks => Vec::new(),
        };
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    /// The block's counters, including those of its reader.
    pub(super) fn counters(&self) -> LdmCounters {
        let ReadCounts { reads, keys, ranges, rows_examined, rows_returned } = self.memory.reader.counts;
        let log_bytes = self.records.delivered_bytes();
        LdmCounters { reads, keys, ranges, rows_examined, rows_returned, log_bytes, ..self.counted }
    }

    fn lock_rows(&self) -> Vec<Vec<Value>> {
        let line = |partition: PartitionId, row: Option<RowId>, (transaction, mode, is_granted): Holding| {
            let mode = if mode == LockMode::Shared { "SHARED" } else { "EXCLUSIVE" };
            let state = if is_granted { "GRANTED" } else { "WAITING" };
            vec![
                Value::UInt(u64::from(self.own.instance)),
                Value::UInt(u64::from(partition.table.0)),
                Value::UInt(u64::from(partition.index)),
                row.map_or(Value::Null, |row| Value::UInt(u64::from(row.0))),
                Value::UInt(transaction.0),
                Value::Bytes(mode.into()),
                Value::Bytes(state.into()),
            ]
        };
        let rows = self.locks.locks().map(|entry| {
            let LockEntry { key, transaction, mode, is_granted } = entry;
            let mut values = line(key.partition, Some(key.row), (transaction, mode, is_granted));
            values.extend([Value::Null, Value::Null]);
            values
        });
        let ranges = self.locks.ranges().map(|range| {
            let mut values = line(range.place.partition, None, (range.transaction, range.mode, range.is_granted));
            let index = Value::UInt(u64::from(range.place.index.0));
            values.extend([index, Value::Bytes(shown_range(&range).into_bytes())]);
            values
        });
        rows.chain(ranges).take(STATUS_ROWS_MAX).collect()
    }

    fn memory_rows(&self, request: &ReadStatus) -> Vec<Vec<Value>> {
        let row = |slot: &super::partition_table::PartitionSlot| {
            let figures = slot.guard.owner_read(&slot.token, |store| store.statistics());
            vec![
                Value::UInt(u64::from(self.own.instance)),
                Value::UInt(u64::from(slot.id.table.0)),
                Value::UInt(u64::from(slot.id.index)),
                Value::UInt(figures.live_rows),
                Value::UInt(figures.versions),
                Value::UInt(figures.purge_queue),
                Value::UInt(figures.row_bytes),
                Value::UInt(figures.row_map_bytes),
                Value::UInt(figures.overflow_bytes),
                Value::UInt(figures.hash_bytes),
                Value::UInt(figures.ordered_bytes),
            ]
        };
        // Not limited, because the sum over a table needs every partition.
        self.partitions.iter().filter(|slot| request.wants(slot.id.table)).map(row).collect()
    }
}

/// Formats a range in interval notation, with keys in hexadecimal digits. For a range that covers one prefix,
/// formats only the prefix.
fn shown_range(range: &RangeEntry) -> String {
    let shown = |bound: &Bound<Arc<[u8]>>| {
        let (Bound::Included(key) | Bound::Excluded(key)) = bound else { return String::new() };
        key.iter().take(KEY_BYTES_SHOWN_MAX).map(|byte| format!("{byte:02x}")).collect()
    };
    if range.lower == range.upper && matches!(range.lower, Bound::Included(_)) {
        return shown(&range.lower);
    }
    let open = if matches!(range.lower, Bound::Included(_)) { '[' } else { '(' };
    let close = if matches!(range.upper, Bound::Included(_)) { ']' } else { ')' };
    format!("{open}{}, {}{close}", shown(&range.lower), shown(&range.upper))
}
