//! The rows of `junctor_info.transactions` of this instance.

use junctor_kernel::{Context, Outbox};
use junctor_model::value::Value;
use junctor_signals::read_status::{ReadStatus, ReadStatusReply};
use junctor_signals::{Signal, SqlSignal};

use super::block::TcBlock;

/// Rows of one answer.
const ROWS_MAX: usize = 4096;

impl TcBlock {
    /// Columns: transaction, state, tc instance, statements, participants, milliseconds of its longest wait (or NULL).
    pub(super) fn on_read_status(
        &mut self,
        request: ReadStatus,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let instance = u64::from(self.own.instance);
        let rows = self.transactions.iter().take(ROWS_MAX).map(|(_, record)| {
            let since = record.waits.iter().map(|wait| wait.since).min();
            let state = if since.is_some() { "waiting for a lock" } else { record.phase.name() };
            vec![
                Value::UInt(record.id.0),
                Value::Bytes(state.into()),
                Value::UInt(instance),
                Value::UInt(u64::from(record.statement.0)),
                Value::UInt(record.participants.len() as u64),
                since.map_or(Value::Null, |since| Value::UInt(context.now.since(since).as_millis())),
            ]
        });
        let reply = ReadStatusReply { operation: request.operation, rows: rows.collect() };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }
}
