//! Interrupts statements: their writes here end at the next step. tc cancels the waits of writes that wait
//! for a lock.

use junctor_kernel::Outbox;
use junctor_model::error::Error;
use junctor_signals::Signal;
use junctor_signals::write_rows::InterruptWrites;

use super::block::LdmBlock;
use super::state::WriteWork;
use super::write_rows::refuse;

impl LdmBlock {
    pub(super) fn on_interrupt_writes(&mut self, signal: InterruptWrites, outbox: &mut Outbox<Signal>) {
        let InterruptWrites { transaction, statement } = signal;
        if let Some(handle) = self.participants.find(transaction) {
            self.participant(handle).interrupted = statement;
        }
        for request in std::mem::take(&mut self.held_writes) {
            match request.transaction == transaction && request.statement <= statement {
                true => refuse(request, Error::query_interrupted(), outbox),
                false => self.held_writes.push(request),
            }
        }
        // Writes that wait because the log is behind have not begun.
        for _ in 0..self.records.held_writes.len() {
            let Some(request) = self.records.held_writes.pop_front() else { break };
            match request.transaction == transaction && request.statement <= statement {
                true => refuse(request, Error::query_interrupted(), outbox),
                false => self.records.held_writes.push_back(request),
            }
        }
    }

    /// Whether the statement of a write was interrupted.
    #[inline]
    pub(super) fn is_interrupted(&self, work: &WriteWork) -> bool {
        let participant = self.participants.get(work.participant);
        participant.is_some_and(|participant| participant.interrupted >= work.request.statement)
    }
}
