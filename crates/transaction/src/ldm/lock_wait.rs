//! Writes that wait for a lock. They are parked with their position, reported to tc, and resumed once the
//! lock is granted.

use std::collections::{BTreeMap, VecDeque};

use junctor_kernel::{Address, Outbox, require};
use junctor_model::error::Error;
use junctor_model::id::TransactionId;
use junctor_signals::lock_wait::{Blocker, CancelReason, CancelWait, LockWaitEnded, LockWaitStarted};
use junctor_signals::{Signal, TcSignal};
use junctor_storage::lock::{Followers, WaiterId, WaiterToken};

use super::block::LdmBlock;
use super::state::{ParkedWrite, WriteWork};

/// Writes that wait for a lock, and the locks that were granted to them.
#[derive(Debug)]
pub(super) struct LockWaits {
    /// Parked writes by the sequence number of their wait, which is also the token of the lock request.
    pub parked: BTreeMap<u64, ParkedWrite>,
    /// The sequence number of the next wait, from 1.
    next_sequence: u64,
    /// Granted waits whose writes have not yet resumed.
    pub granted: VecDeque<WaiterToken>,
    /// The lock table appends the waits that it grants here, while its caller borrows other fields of the
    /// block. `queue_granted` then moves them to `granted`.
    pub granted_now: Vec<WaiterToken>,
}

impl LockWaits {
    pub fn new() -> LockWaits {
        LockWaits { parked: BTreeMap::new(), next_sequence: 1, granted: VecDeque::new(), granted_now: Vec::new() }
    }

    /// The token for a lock request that may have to wait. It is used up only if the write is parked.
    #[inline]
    pub fn next_token(&self) -> WaiterToken {
        WaiterToken(self.next_sequence)
    }

    /// Queues the writes whose locks were granted.
    #[inline]
    pub fn queue_granted(&mut self) {
        self.granted.extend(self.granted_now.drain(..));
    }
}

impl LdmBlock {
    /// Parks a write that waits for its lock request. The request has the token `next_token`, whose number
    /// becomes the number of this wait.
    pub(super) fn park(&mut self, work: WriteWork, waiter: WaiterId, outbox: &mut Outbox<Signal>) {
        self.counted.lock_waits += 1;
        let sequence = self.waits.next_sequence;
        self.waits.next_sequence += 1;
        self.report_blockers(&work, waiter, sequence, outbox);
        let before = self.waits.parked.insert(sequence, ParkedWrite { work, waiter });
        require!(before.is_none(), "each wait has its own sequence: {sequence}");
    }

    fn report_blockers(&self, work: &WriteWork, waiter: WaiterId, sequence: u64, outbox: &mut Outbox<Signal>) {
        let blockers = self.locks.blockers_of(waiter).into_iter();
        let blocker = |(transaction, ahead): (_, Option<WaiterToken>)| Blocker {
            transaction,
            ahead: ahead.map_or(0, |token| token.0),
        };
        let mut blockers: Vec<Blocker> = blockers.map(blocker).collect();
        blockers.sort_unstable();
        blockers.dedup();
        self.report((work, waiter, sequence), blockers, false, outbox);
    }

    /// Reports all blockers of a wait, or those that are gone.
    fn report(
        &self,
        (work, waiter, sequence): (&WriteWork, WaiterId, u64),
        blockers: Vec<Blocker>,
        are_gone: bool,
        outbox: &mut Outbox<Signal>,
    ) {
        let signal = LockWaitStarted {
            transaction: work.request.transaction,
            at: self.own,
            sequence,
            partition: work.request.partition,
            row: self.locks.awaited_row(waiter).map(|key| key.row),
            changed: work.changed,
            has_other_requests: self.locks.has_other_requests(waiter),
            blockers,
            are_gone,
        };
        outbox.send(work.request.reply_to, Signal::Tc(TcSignal::LockWaitStarted(signal)));
    }

    /// Reports to tc the waits for ranges that now have more blockers.
    pub(super) fn report_newly_blocked(&mut self, outbox: &mut Outbox<Signal>) {
        let blocked = self.locks.take_newly_blocked();
        if !blocked.is_empty() {
            self.report_again(blocked, outbox);
        }
    }

    /// Cancels a wait, and reports the new blockers of the waits behind it. With a stale list, tc would miss
    /// a deadlock, or see one that does not exist.
    fn leave_queue(
        &mut self,
        (transaction, sequence): (TransactionId, u64),
        waiter: WaiterId,
        outbox: &mut Outbox<Signal>,
    ) {
        let Followers { fewer, others } = self.locks.followers_of(waiter);
        self.locks.cancel(waiter, &mut self.waits.granted_now);
        self.waits.queue_granted();
        self.report_again(others, outbox);
        if let Some((parked, token)) = fewer.and_then(|token| self.waiting(token)) {
            let gone = vec![Blocker { transaction, ahead: sequence }];
            self.report((&parked.work, parked.waiter, token.0), gone, true, outbox);
        }
    }

    fn report_again(&self, waits: Vec<WaiterToken>, outbox: &mut Outbox<Signal>) {
        for (parked, token) in waits.into_iter().filter_map(|token| self.waiting(token)) {
            self.report_blockers(&parked.work, parked.waiter, token.0, outbox);
        }
    }

    /// The write of a wait that is in a queue. One that is no longer in a queue was granted in this turn.
    fn waiting(&self, token: WaiterToken) -> Option<(&ParkedWrite, WaiterToken)> {
        let parked = self.waits.parked.get(&token.0)?;
        self.locks.is_waiting(parked.waiter).then_some((parked, token))
    }

    pub(super) fn on_granted(&mut self, token: WaiterToken, outbox: &mut Outbox<Signal>) {
        let Some(ParkedWrite { work, .. }) = self.waits.parked.remove(&token.0) else {
            junctor_kernel::invariant::fail("a lock is granted to a parked write", format_args!("{token:?}"))
        };
        self.report_ended(&work, token.0, outbox);
        self.run_write(work, outbox);
    }

    pub(super) fn on_cancel_wait(&mut self, signal: CancelWait, _from: Address, outbox: &mut Outbox<Signal>) {
        let CancelWait { transaction, sequence, reason } = signal;
        let parked = self.waits.parked.get(&sequence).filter(|parked| parked.work.request.transaction == transaction);
        let Some(waiter) = parked.map(|parked| parked.waiter) else { return };
        // A wait that is no longer in a queue was granted in this turn, and its write continues.
        if !self.locks.is_waiting(waiter) {
            return;
        }
        self.leave_queue((transaction, sequence), waiter, outbox);
        let Some(ParkedWrite { work, .. }) = self.waits.parked.remove(&sequence) else { return };
        self.report_ended(&work, sequence, outbox);
        let error = match reason {
            CancelReason::Deadlock => Error::deadlock(),
            CancelReason::Timeout => Error::lock_wait_timeout(),
            CancelReason::Interrupted => Error::query_interrupted(),
        };
        self.finish_write(work, Some(error), outbox);
    }

    /// Ends the wait of a transaction whose tc is gone. A lock that was granted in this turn is released when
    /// the transaction is undone.
    pub(super) fn end_wait(&mut self, sequence: u64, waiter: WaiterId, outbox: &mut Outbox<Signal>) {
        let parked = self.waits.parked.remove(&sequence);
        if !self.locks.is_waiting(waiter) {
            return self.waits.granted.retain(|token| token.0 != sequence);
        }
        let transaction = parked.map(|parked| parked.work.request.transaction).unwrap_or_default();
        self.leave_queue((transaction, sequence), waiter, outbox);
    }

    fn report_ended(&self, work: &WriteWork, sequence: u64, outbox: &mut Outbox<Signal>) {
        let signal = LockWaitEnded { transaction: work.request.transaction, at: self.own, sequence };
        outbox.send(work.request.reply_to, Signal::Tc(TcSignal::LockWaitEnded(signal)));
    }
}
