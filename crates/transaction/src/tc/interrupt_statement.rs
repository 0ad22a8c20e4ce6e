//! Interrupts a statement: cancels its waits, stops its parts and undoes it.

use junctor_kernel::Outbox;
use junctor_model::error::Error;
use junctor_signals::execute_statement::InterruptStatement;
use junctor_signals::write_rows::InterruptWrites;
use junctor_signals::{LdmSignal, Signal};

use super::block::TcBlock;
use super::state::{Phase, TransactionHandle, TransactionRecord};

impl TcBlock {
    /// Searches all transactions, because interrupts are rare and a session does not know the transaction of
    /// its first statement.
    pub(super) fn on_interrupt_statement(&mut self, signal: InterruptStatement, outbox: &mut Outbox<Signal>) {
        let is_target = |record: &TransactionRecord| {
            let is_requested =
                (record.running.operation, record.running.reply_to) == (signal.operation, signal.reply_to);
            is_requested && record.owes_statement && record.phase == Phase::Executing
        };
        let places = 0..self.transactions.high_water() as u32;
        let handles = places.filter_map(|place| self.transactions.handle_at(place));
        let found = { handles }.find(|handle| self.transactions.get(*handle).is_some_and(|record| is_target(record)));
        if let Some(handle) = found {
            self.interrupt(handle, outbox);
        }
    }

    /// Stops the parts in flight. Their answers fail the statement, unless it has committed in one phase in
    /// the meantime.
    pub(super) fn interrupt(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        self.record(handle).running.is_interrupted = true;
        self.stop_parts(handle, outbox);
    }

    /// Cancels the waits of parts that wait, and interrupts the other parts. Their answers no longer matter,
    /// because the statement fails.
    pub(super) fn stop_parts(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        self.cancel_waits(handle, outbox);
        let record = self.record(handle);
        if record.outstanding == 0 {
            return;
        }
        for at in &record.running.touched {
            let signal = InterruptWrites { transaction: record.id, statement: record.statement };
            outbox.send(*at, Signal::Ldm(LdmSignal::InterruptWrites(signal)));
        }
    }
}

impl TransactionRecord {
    /// Fails an interrupted statement once all parts have answered. A one-phase part that succeeded has
    /// already committed.
    pub fn fail_if_interrupted(&mut self) {
        let running = &mut self.running;
        let has_committed = running.one_phase && running.error.is_none() && running.planned.is_empty();
        if running.is_interrupted && !has_committed {
            running.error.get_or_insert_with(Error::query_interrupted);
        }
    }
}
