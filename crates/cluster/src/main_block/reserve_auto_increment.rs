//! Reserves consecutive ranges of AUTO_INCREMENT numbers.

use junctor_kernel::{Outbox, require};
use junctor_model::error::Error;
use junctor_signals::reserve_auto_increment::{ReserveAutoIncrement, ReserveAutoIncrementReply};
use junctor_signals::{Signal, SqlSignal};

use super::block::MainBlock;

impl MainBlock {
    pub(super) fn on_reserve_auto_increment(&mut self, request: ReserveAutoIncrement, outbox: &mut Outbox<Signal>) {
        self.counted.auto_increment_ranges += 1;
        let ReserveAutoIncrement { operation, reply_to, table, count, beyond } = request;
        let reply = match self.counters.get_mut(&table) {
            None => ReserveAutoIncrementReply {
                operation,
                first: 0,
                count: 0,
                error: Some(Error::table_definition_changed()),
            },
            Some(next) => {
                *next = (*next).max(beyond.saturating_add(1));
                let first = *next;
                // The counter stops at its maximum, so the largest number is never assigned.
                let count = count.min(u64::MAX - first);
                *next += count;
                require!(*next >= first, "AUTO_INCREMENT counters never decrease: table {table:?}");
                ReserveAutoIncrementReply { operation, first, count, error: None }
            }
        };
        outbox.send(reply_to, Signal::Sql(SqlSignal::ReserveAutoIncrementReply(reply)));
    }
}
