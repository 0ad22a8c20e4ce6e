//! Hot path: at most 150 instructions per participant.
//!
//! Commit: prepare, take the number, commit at all participants, and wait until the number is stable.

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::error::Error;
use junctor_model::id::CommitNumber;
use junctor_signals::commit_transaction::{
    AwaitStable, CommitStable, CommitTransaction, CommitTransactionReply, MAIN_OWNER, PrepareTransaction,
    PrepareTransactionReply, TransactionPart, coordinator,
};
use junctor_signals::start_epoch::lost_with_node;
use junctor_signals::{LdmSignal, Signal, TcSignal};

use super::block::TcBlock;
use super::reserve_log_space::SpaceTaken;
use super::state::{Phase, TransactionHandle};
use junctor_storage::commit_sequence::Numbering;

/// Maximum number of transactions that one signal wakes. The others wait for the next turn.
pub(super) const WOKEN_PER_SIGNAL_MAX: usize = 32;

impl TcBlock {
    /// Begins the commit of a transaction whose statements have all ended.
    pub(super) fn commit(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        require!(record.outstanding == 0 && record.waits.is_empty(), "a commit begins when no statement runs");
        require!(record.running.error.is_none(), "a transaction with a failed statement is not committed");
        if record.is_lost {
            record.running.error = Some(lost_with_node());
            return self.roll_back(handle, outbox);
        }
        if !record.participants.iter().any(|participant| participant.has_written) {
            return self.roll_back(handle, outbox);
        }
        if self.is_log_full() {
            // No number is taken yet, so the client need not wait for room.
            self.record(handle).running.error = Some(Error::disk_full());
            return self.roll_back(handle, outbox);
        }
        match self.take_log_space(handle, outbox) {
            SpaceTaken::Now => self.prepare(handle, outbox),
            SpaceTaken::Later => {}
            SpaceTaken::Never => {
                self.record(handle).running.error = Some(Error::transaction_exceeds_log());
                self.roll_back(handle, outbox);
            }
        }
    }

    /// Prepares the participants of a commit that has its blocks of the log.
    pub(super) fn prepare(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let (own, epoch, gone) = (self.own, self.epoch, self.gone);
        let record = self.record(handle);
        if record.is_lost {
            record.running.error = Some(lost_with_node());
            return self.roll_back(handle, outbox);
        }
        if !record.backups.is_empty() {
            record.keep_written_backups(&gone);
        }
        let writers = record.participants.iter().filter(|participant| participant.has_written);
        let has_backups = !record.backups.is_empty();
        let (count, is_prepared) = writers.fold((0, has_backups), |(count, any), one| (count + 1, any | one.is_long));
        // A single short participant without backups has nothing to prepare: applying a number in memory
        // cannot fail. A long one forms its log records before the number is taken, because later numbers
        // become stable only after this one.
        if count == 1 && !is_prepared {
            return self.take_number(handle, outbox);
        }
        record.phase = Phase::Preparing;
        record.epoch = epoch;
        record.outstanding = count;
        for participant in record.participants.iter().filter(|participant| participant.has_written) {
            let prepare = PrepareTransaction { transaction: record.id, epoch, reply_to: own };
            outbox.send(participant.at, Signal::Ldm(LdmSignal::PrepareTransaction(prepare)));
        }
    }

    pub(super) fn on_prepare_transaction_reply(&mut self, reply: PrepareTransactionReply, outbox: &mut Outbox<Signal>) {
        let Some(handle) = self.awaiting_order(reply.transaction, reply.epoch) else { return };
        let has_log = self.durable_waits.is_some();
        let record = self.record(handle);
        require!(record.phase == Phase::Preparing, "a prepare is answered while it prepares: {}", reply.transaction);
        let is_last = record.take_reply();
        if reply.chunk_blocks > 0 && has_log {
            record.note_chunks(reply.from, reply.chunk_blocks);
        }
        if let Some(error) = reply.error {
            record.running.error.get_or_insert(error);
        }
        if !is_last {
            return;
        }
        match record.running.error.is_some() {
            true => self.roll_back(handle, outbox),
            false => self.take_number(handle, outbox),
        }
    }

    /// Takes the commit number. Every participant is prepared, so the transaction can no longer fail.
    fn take_number(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        if self.numbering == Numbering::Cluster {
            return self.request_number(handle, outbox);
        }
        match self.sequence.take(self.own.instance) {
            Ok(number) => self.on_number(handle, number, outbox),
            Err(error) => junctor_kernel::invariant::fail("a commit number is free", format_args!("{error}")),
        }
    }

    /// Commits the transaction with its number.
    fn on_number(&mut self, handle: TransactionHandle, number: CommitNumber, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let record = self.record(handle);
        require!(record.outstanding == 0, "a number is taken when every participant is prepared");
        require!(record.number.0 == 0, "a transaction takes one commit number");
        require!(number > record.running.newest, "a commit number is above every commit that the transaction saw");
        record.number = number;
        record.phase = Phase::Committing;
        record.outstanding = (record.participants.len() + record.backups.len()) as u32;
        let writers = record.participants.iter().filter(|participant| participant.has_written).count();
        record.unapplied = (writers + record.backups.len()) as u32;
        let (transaction, participants) = (record.id, writers as u16);
        let order = |part| {
            let commit = CommitTransaction { transaction, reply_to: own, number, position: 0, participants, part };
            Signal::Ldm(LdmSignal::CommitTransaction(commit))
        };
        for participant in &record.participants {
            outbox.send(participant.at, order(participant.part()));
        }
        for backup in &record.backups {
            outbox.send(backup.at, order(TransactionPart::Images));
        }
    }

    pub(super) fn on_commit_transaction_reply(
        &mut self,
        reply: CommitTransactionReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let handle = self.awaiting(reply.transaction);
        if self.numbering == Numbering::Cluster {
            return self.on_locks_released(handle, &reply, outbox);
        }
        let record = self.record(handle);
        require!(record.phase == Phase::Committing, "a commit is answered while it commits: {}", reply.transaction);
        let is_participant = match reply.part {
            TransactionPart::Images => record.backups.iter().any(|backup| backup.at == reply.from),
            part => record.participants.iter().any(|one| one.at == reply.from && one.part() == part),
        };
        require!(is_participant, "a participant answers the commit: {} is none", reply.from);
        let has_versions = reply.part != TransactionPart::Locks;
        require!(record.unapplied > 0 || !has_versions, "each participant applies a commit once");
        let is_complete = record.take_reply();
        record.unapplied -= u32::from(has_versions);
        let is_applied = has_versions && record.unapplied == 0;
        let number = record.number;
        if is_complete && is_applied {
            record.phase = Phase::WaitingStable;
            self.waiting_stable.insert((number, reply.transaction));
        }
        if is_applied {
            // Participants that hold only locks may still be releasing them. Later commits need not wait for
            // that.
            self.mark_applied(number, context, outbox);
        } else if is_complete && !self.wait_until_stable(handle, number, Phase::WaitingStable, outbox) {
            self.finish_commit(handle, outbox);
        }
    }

    /// Marks the number as applied by all writers and backups. Continues every transaction whose number
    /// thereby became stable.
    fn mark_applied(&mut self, number: CommitNumber, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let mut became_stable = std::mem::take(&mut self.became_stable);
        let marked = self.sequence.mark_applied(number, &mut |number, owner| became_stable.push((number, owner)));
        require!(marked.is_ok(), "commit {number}: {marked:?}");
        for (number, owner) in became_stable.drain(..) {
            match owner == self.own.instance {
                true => self.on_commit_stable(number, context, outbox),
                false => {
                    let (to, signal) = CommitStable::for_owner(number, owner, self.own.node);
                    outbox.send(to, signal);
                }
            }
        }
        self.became_stable = became_stable;
    }

    /// Puts the transaction into `phase`, unless the number is already stable. Returns whether the
    /// transaction has to wait.
    pub(super) fn wait_until_stable(
        &mut self,
        handle: TransactionHandle,
        number: CommitNumber,
        phase: Phase,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        if self.numbering == Numbering::Cluster {
            return self.wait_until_seen_is_stable(handle, number, phase, outbox);
        }
        let Some(owner) = self.sequence.owner_unless_stable(number) else { return false };
        let record = self.record(handle);
        record.phase = phase;
        let transaction = record.id;
        self.waiting_stable.insert((number, transaction));
        // A tc is notified of its own numbers anyway.
        if owner != self.own.instance {
            require!(owner != MAIN_OWNER, "no row has a number of main: {number}");
            let signal = Signal::Tc(TcSignal::AwaitStable(AwaitStable { number, transaction }));
            outbox.send(self.tc_address(owner), signal);
        }
        true
    }

    /// Handles the request of a transaction of another tc that has seen a commit of this tc.
    pub(super) fn on_await_stable(&mut self, signal: AwaitStable, outbox: &mut Outbox<Signal>) {
        let AwaitStable { number, transaction } = signal;
        require!(number <= self.sequence.taken(), "a number that is waited for was taken: {number}");
        match self.sequence.stable() >= number {
            true => self.notify_stable(number, coordinator(transaction), outbox),
            false => _ = self.waiting_stable.insert((number, transaction)),
        }
    }

    /// Continues the transactions that wait for this number or a lower one. None waits if the number became
    /// stable before the reply of a one-phase commit arrived.
    pub(super) fn on_commit_stable(
        &mut self,
        number: CommitNumber,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        require!(self.sequence.stable() >= number, "a number is announced once it is stable: {number}");
        self.confirmed = self.confirmed.max(number);
        for _ in 0..WOKEN_PER_SIGNAL_MAX {
            let first = self.waiting_stable.first().copied();
            let Some((awaited, transaction)) = first.filter(|(awaited, _)| *awaited <= number) else { return };
            self.waiting_stable.pop_first();
            match self.find(transaction) {
                Some(handle) => self.resume_stable(handle, context, outbox),
                None => self.notify_stable(awaited, coordinator(transaction), outbox),
            }
        }
        // The remaining waiters are woken in the next turn.
        outbox.send(self.own, Signal::Tc(TcSignal::CommitStable(CommitStable { number })));
    }

    pub(super) fn resume_stable(
        &mut self,
        handle: TransactionHandle,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        match self.record(handle).phase {
            Phase::WaitingStable => self.finish_commit(handle, outbox),
            Phase::WaitingSeen => {
                self.record(handle).phase = Phase::Executing;
                self.advance_statement(handle, context, outbox);
            }
            phase => junctor_kernel::invariant::fail(
                "a transaction does nothing else while it waits for a stable number",
                format_args!("{phase:?}"),
            ),
        }
    }

    fn notify_stable(&mut self, number: CommitNumber, tc: Address, outbox: &mut Outbox<Signal>) {
        if tc != self.own {
            outbox.send(tc, Signal::Tc(TcSignal::CommitStable(CommitStable { number })));
        }
    }
}
