//! Rows of `junctor_info.transactions`, `junctor_info.lock_waits` and `junctor_info.counters` for this
//! instance.

use junctor_kernel::{Context, Outbox, Time};
use junctor_model::value::Value;
use junctor_signals::counter::counter_rows;
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, STATUS_ROWS_MAX, StatusTable};
use junctor_signals::{Signal, SqlSignal};

use super::block::TcBlock;

impl TcBlock {
    pub(super) fn on_read_status(
        &mut self,
        request: ReadStatus,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let rows = match request.table {
            StatusTable::LockWaits => self.lock_wait_rows(context.turn_start),
            StatusTable::Counters => counter_rows(&self.counted, self.own, context.thread()),
            _ => self.transaction_rows(context.turn_start),
        };
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    /// Columns of [`StatusTable::Transactions`].
    fn transaction_rows(&self, now: Time) -> Vec<Vec<Value>> {
        let instance = u64::from(self.own.instance);
        let rows = self.transactions.iter().take(STATUS_ROWS_MAX).map(|(_, record)| {
            let since = record.waits.iter().map(|wait| wait.since).min();
            let state = if since.is_some() { "waiting for a lock" } else { record.phase.name() };
            vec![
                Value::UInt(record.id.0),
                Value::Bytes(state.into()),
                Value::UInt(instance),
                Value::UInt(u64::from(record.statement.0)),
                Value::UInt(record.participants.len() as u64),
                since.map_or(Value::Null, |since| Value::UInt(now.since(since).as_millis())),
            ]
        });
        rows.collect()
    }

    /// Columns of [`StatusTable::LockWaits`].
    fn lock_wait_rows(&self, now: Time) -> Vec<Vec<Value>> {
        let instance = u64::from(self.own.instance);
        let waits = self.transactions.iter().flat_map(|(_, record)| record.waits.iter().map(|wait| (record.id, wait)));
        let rows = waits.flat_map(|(waiting, wait)| {
            wait.blockers.iter().map(move |blocker| {
                vec![
                    Value::UInt(waiting.0),
                    Value::UInt(blocker.transaction.0),
                    Value::UInt(instance),
                    Value::UInt(u64::from(wait.at.instance)),
                    Value::UInt(u64::from(wait.partition.table.0)),
                    Value::UInt(u64::from(wait.partition.index)),
                    wait.row.map_or(Value::Null, |row| Value::UInt(u64::from(row.0))),
                    Value::UInt(now.since(wait.since).as_millis()),
                ]
            })
        });
        rows.take(STATUS_ROWS_MAX).collect()
    }
}
