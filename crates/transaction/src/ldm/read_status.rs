//! The rows of `junctor_info.locks` and `junctor_info.memoryusage` of this instance.

use junctor_kernel::Outbox;
use junctor_model::value::Value;
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, StatusTable};
use junctor_signals::{Signal, SqlSignal};
use junctor_storage::lock::LockMode;

use super::block::LdmBlock;

/// Rows of one answer.
const ROWS_MAX: usize = 4096;

impl LdmBlock {
    pub(super) fn on_read_status(&mut self, request: ReadStatus, outbox: &mut Outbox<Signal>) {
        let rows = match request.table {
            StatusTable::Locks => self.lock_rows(),
            StatusTable::MemoryUsage => self.memory_rows(),
            StatusTable::Transactions | StatusTable::Processes => Vec::new(),
        };
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    fn lock_rows(&self) -> Vec<Vec<Value>> {
        let row = |entry: junctor_storage::lock::LockEntry| {
            let mode = if entry.mode == LockMode::Shared { "SHARED" } else { "EXCLUSIVE" };
            let state = if entry.is_granted { "GRANTED" } else { "WAITING" };
            vec![
                Value::UInt(u64::from(self.own.instance)),
                Value::UInt(u64::from(entry.key.partition.table.0)),
                Value::UInt(u64::from(entry.key.partition.index)),
                Value::UInt(u64::from(entry.key.row.0)),
                Value::UInt(entry.transaction.0),
                Value::Bytes(mode.into()),
                Value::Bytes(state.into()),
            ]
        };
        self.locks.locks().take(ROWS_MAX).map(row).collect()
    }

    fn memory_rows(&self) -> Vec<Vec<Value>> {
        let row = |slot: &super::state::PartitionSlot| {
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
        self.slots.iter().flatten().take(ROWS_MAX).map(row).collect()
    }
}
