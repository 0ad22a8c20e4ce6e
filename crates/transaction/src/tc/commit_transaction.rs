//! Hot path, budget 150 instructions a participant. Commit: prepare, take the number, commit at all participants, wait
//! until the stable number has reached it.

use junctor_kernel::{Outbox, require};
use junctor_model::id::CommitNumber;
use junctor_signals::commit_transaction::{
    CommitStable, CommitTransaction, CommitTransactionReply, PrepareTransaction, PrepareTransactionReply,
};
use junctor_signals::{LdmSignal, Signal, TcSignal};

use super::block::TcBlock;
use super::state::{Phase, TransactionHandle};

impl TcBlock {
    /// Begins the commit of a transaction of which no statement runs.
    pub(super) fn commit(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let record = self.record(handle);
        let writers = record.participants.iter().filter(|participant| participant.has_written);
        let (count, has_backups) = writers.fold((0, false), |(count, any), one| (count + 1, any | one.has_backups));
        if count == 0 {
            return self.release(handle, outbox);
        }
        // One participant without backups has nothing to prepare: applying the number in memory cannot fail.
        if count == 1 && !has_backups {
            return self.take_number(handle, outbox);
        }
        record.phase = Phase::Preparing;
        record.outstanding = count;
        for participant in record.participants.iter().filter(|participant| participant.has_written) {
            let prepare = PrepareTransaction { transaction: record.id, reply_to: own };
            outbox.send(participant.at, Signal::Ldm(LdmSignal::PrepareTransaction(prepare)));
        }
    }

    pub(super) fn on_prepare_transaction_reply(&mut self, reply: PrepareTransactionReply, outbox: &mut Outbox<Signal>) {
        let Some(handle) = self.find(reply.transaction) else { return };
        let record = self.record(handle);
        if record.phase != Phase::Preparing {
            return;
        }
        record.outstanding -= 1;
        if let Some(error) = reply.error {
            record.running.error.get_or_insert(error);
        }
        if record.outstanding > 0 {
            return;
        }
        match record.running.error.is_some() {
            true => self.release(handle, outbox),
            false => self.take_number(handle, outbox),
        }
    }

    /// Every participant is prepared: from here on the transaction cannot fail.
    fn take_number(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let number = match self.sequence.take(own.instance) {
            Ok(number) => number,
            Err(error) => junctor_kernel::invariant::fail("a commit number is free", format_args!("{error}")),
        };
        let record = self.record(handle);
        record.number = number;
        record.phase = Phase::Committing;
        record.outstanding = record.participants.len() as u32;
        let participants = record.written.len() as u16;
        for participant in &record.participants {
            let commit = CommitTransaction { transaction: record.id, reply_to: own, number, participants };
            outbox.send(participant.at, Signal::Ldm(LdmSignal::CommitTransaction(commit)));
        }
    }

    pub(super) fn on_commit_transaction_reply(&mut self, reply: CommitTransactionReply, outbox: &mut Outbox<Signal>) {
        let Some(handle) = self.find(reply.transaction) else { return };
        let record = self.record(handle);
        if record.phase != Phase::Committing {
            return;
        }
        record.outstanding -= 1;
        if record.outstanding > 0 {
            return;
        }
        let number = record.number;
        record.phase = Phase::WaitingStable;
        self.waiting_stable.insert(number, handle);
        let mut became_stable = std::mem::take(&mut self.became_stable);
        let marked = self.sequence.mark_applied(number, &mut |number, owner| became_stable.push((number, owner)));
        require!(marked.is_ok(), "commit {number}: {marked:?}");
        for (number, owner) in became_stable.drain(..) {
            match owner == self.own.instance {
                true => self.on_commit_stable(number, outbox),
                false => {
                    let signal = Signal::Tc(TcSignal::CommitStable(CommitStable { number }));
                    outbox.send(self.tc_address(owner), signal);
                }
            }
        }
        self.became_stable = became_stable;
    }

    /// The transaction is applied, by an ldm that marked its number: it is over when the number is stable.
    pub(super) fn wait_stable(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let number = self.record(handle).number;
        if self.sequence.stable() >= number {
            return self.answer(handle, outbox);
        }
        self.record(handle).phase = Phase::WaitingStable;
        self.waiting_stable.insert(number, handle);
    }

    /// Nobody waits when the stable number was faster than the reply of a partition that committed by itself.
    pub(super) fn on_commit_stable(&mut self, number: CommitNumber, outbox: &mut Outbox<Signal>) {
        if let Some(handle) = self.waiting_stable.remove(&number) {
            self.answer(handle, outbox);
        }
    }
}
