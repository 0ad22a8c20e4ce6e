//! Writes that wait for a lock: parked with their place, told to tc, gone on with when granted.

use junctor_kernel::{Address, Outbox};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::TransactionId;
use junctor_signals::lock_wait::{CancelReason, CancelWait, LockWaitEnded, LockWaitStarted};
use junctor_signals::{Signal, TcSignal};
use junctor_storage::lock::{LockKey, WaiterId, WaiterToken};

use super::block::LdmBlock;
use super::state::{ParkedWrite, WriteWork};

impl LdmBlock {
    /// Parks a write whose lock request was made with the sequence of the next wait.
    pub(super) fn park(&mut self, work: WriteWork, waiter: WaiterId, outbox: &mut Outbox<Signal>) {
        let sequence = self.next_wait;
        self.next_wait += 1;
        self.tell_blockers(&work, waiter, sequence, outbox);
        self.parked.insert(sequence, ParkedWrite { work, waiter });
    }

    fn tell_blockers(&self, work: &WriteWork, waiter: WaiterId, sequence: u64, outbox: &mut Outbox<Signal>) {
        let mut blockers: Vec<TransactionId> = self.locks.blockers_of(waiter).collect();
        blockers.sort_unstable();
        blockers.dedup();
        let signal = LockWaitStarted {
            transaction: work.request.transaction,
            at: self.own,
            sequence,
            partition: work.request.partition,
            blockers,
        };
        outbox.send(work.request.reply_to, Signal::Tc(TcSignal::LockWaitStarted(signal)));
    }

    /// Whoever gave up its wait may live on, and those behind it wait for it no longer: an old list of blockers would
    /// look like a deadlock one day.
    fn tell_those_behind(&self, key: LockKey, outbox: &mut Outbox<Signal>) {
        for (sequence, parked) in &self.parked {
            if self.locks.waiter(parked.waiter).is_some_and(|(_, other)| other == key) {
                self.tell_blockers(&parked.work, parked.waiter, *sequence, outbox);
            }
        }
    }

    pub(super) fn on_granted(&mut self, token: WaiterToken, outbox: &mut Outbox<Signal>) {
        let Some(ParkedWrite { work, .. }) = self.parked.remove(&token.0) else { return };
        self.tell_ended(&work, token.0, outbox);
        self.run_write(work, outbox);
    }

    pub(super) fn on_cancel_wait(&mut self, signal: CancelWait, _from: Address, outbox: &mut Outbox<Signal>) {
        let CancelWait { transaction, sequence, reason } = signal;
        let parked = self.parked.get(&sequence).filter(|parked| parked.work.request.transaction == transaction);
        let Some(waiter) = parked.map(|parked| parked.waiter) else { return };
        // Without a place in a queue it was granted in this very turn: it goes on.
        let Some((_, key)) = self.locks.waiter(waiter) else { return };
        self.locks.cancel(waiter, &mut self.granted_now);
        self.note_granted();
        if reason != CancelReason::Deadlock {
            self.tell_those_behind(key, outbox);
        }
        let Some(ParkedWrite { work, .. }) = self.parked.remove(&sequence) else { return };
        self.tell_ended(&work, sequence, outbox);
        let error = match reason {
            CancelReason::Deadlock => {
                Error::new(ErrorCode::Deadlock, "Deadlock found when trying to get lock; try restarting transaction")
            }
            CancelReason::Timeout => {
                Error::new(ErrorCode::LockWaitTimeout, "Lock wait timeout exceeded; try restarting transaction")
            }
            CancelReason::Interrupted => Error::new(ErrorCode::QueryInterrupted, "Query execution was interrupted"),
        };
        self.finish_write(work, Some(error), outbox);
    }

    fn tell_ended(&self, work: &WriteWork, sequence: u64, outbox: &mut Outbox<Signal>) {
        let signal = LockWaitEnded { transaction: work.request.transaction, at: self.own, sequence };
        outbox.send(work.request.reply_to, Signal::Tc(TcSignal::LockWaitEnded(signal)));
    }
}
