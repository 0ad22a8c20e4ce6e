//! Hot path: at most 100 instructions a commit.
//!
//! Commit numbers in a cluster: main gets them from the sequencer, and passes the decisions to all
//! participants of its node. tc waits for participants with locks only, and until main says that the number
//! is confirmed.

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::id::CommitNumber;
use junctor_signals::commit_transaction::{AwaitStable, CommitTransactionReply, SeenStable, TransactionPart};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::take_number::{NumberTaken, Participant, Participants, RequestNumber};
use junctor_signals::{MainSignal, Module, Signal, TcSignal, crash_point};

use super::block::TcBlock;
use super::commit_transaction::WOKEN_PER_SIGNAL_MAX;
use super::state::{Phase, TransactionHandle};

impl TcBlock {
    /// Asks for the number of a transaction whose participants are all prepared.
    pub(super) fn request_number(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let epoch = self.epoch;
        let main = Address::new(self.own.node, Module::Main, 0);
        let mut list = std::mem::take(&mut self.requested);
        let record = self.record(handle);
        require!(record.outstanding == 0, "a number is taken when every participant is prepared");
        record.phase = Phase::TakingNumber;
        record.epoch = epoch;
        let of = |at: Address, part| Participant { node: at.node, part, ldm: at.instance };
        list.extend(record.participants.iter().map(|participant| of(participant.at, participant.part())));
        list.extend(record.backups.iter().map(|backup| of(backup.at, TransactionPart::Images)));
        // Their replies may arrive before the number.
        record.outstanding = list.iter().filter(|one| !one.has_written()).count() as u32;
        let awaits_disk = record.durability == CommitDurability::Disk;
        let request =
            RequestNumber { epoch, transaction: record.id, participants: Participants::new(&list), awaits_disk };
        outbox.crash_point(crash_point::NUMBER_REQUEST.before());
        outbox.send(main, Signal::Main(MainSignal::RequestNumber(request)));
        outbox.crash_point(crash_point::NUMBER_REQUEST.after());
        list.clear();
        self.requested = list;
    }

    /// The transaction commits. Its participants have their orders from the mains of their nodes.
    pub(super) fn on_number_taken(&mut self, signal: NumberTaken, outbox: &mut Outbox<Signal>) {
        let NumberTaken { transaction, number } = signal;
        let handle = self.awaiting(transaction);
        let record = self.record(handle);
        require!(record.phase == Phase::TakingNumber, "a transaction takes one commit number: {transaction}");
        require!(number > record.running.newest, "a commit number is above every commit that the transaction saw");
        record.number = number;
        record.phase = Phase::Committing;
        if record.outstanding == 0 {
            self.end_commit(handle, outbox);
        }
    }

    /// A participant with locks only has released them.
    pub(super) fn on_locks_released(
        &mut self,
        handle: TransactionHandle,
        reply: &CommitTransactionReply,
        outbox: &mut Outbox<Signal>,
    ) {
        let record = self.record(handle);
        let is_expected = matches!(record.phase, Phase::TakingNumber | Phase::Committing);
        require!(is_expected && reply.part == TransactionPart::Locks, "main awaits what has versions: {}", record.id);
        let released = record.participants.iter_mut().filter(|participant| participant.at == reply.from);
        released.for_each(|participant| participant.has_released = true);
        if record.take_reply() && record.phase == Phase::Committing {
            self.end_commit(handle, outbox);
        }
    }

    /// Answers the commit once its number is confirmed. Main knows that tc waits for its own numbers.
    pub(super) fn end_commit(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let confirmed = self.confirmed;
        let record = self.record(handle);
        if record.number <= confirmed {
            return self.finish_commit(handle, outbox);
        }
        record.phase = Phase::WaitingStable;
        let waiting = (record.number, record.id);
        self.waiting_stable.insert(waiting);
    }

    /// Lets a statement wait that has seen a number which is not stable. Returns whether it has to wait. It
    /// need not wait until the number is confirmed: a snapshot of this node would show the same.
    pub(super) fn wait_until_seen_is_stable(
        &mut self,
        handle: TransactionHandle,
        number: CommitNumber,
        phase: Phase,
        outbox: &mut Outbox<Signal>,
    ) -> bool {
        if self.sequence.stable() >= number {
            return false;
        }
        let main = Address::new(self.own.node, Module::Main, 0);
        let record = self.record(handle);
        record.phase = phase;
        let transaction = record.id;
        self.waiting_seen.insert((number, transaction));
        outbox.send(main, Signal::Main(MainSignal::AwaitStable(AwaitStable { number, transaction })));
        true
    }

    /// Continues the statements that have seen this number or a lower one.
    pub(super) fn on_seen_stable(
        &mut self,
        number: CommitNumber,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        require!(self.sequence.stable() >= number, "a number is announced once it is stable: {number}");
        for _ in 0..WOKEN_PER_SIGNAL_MAX {
            let first = self.waiting_seen.first().copied();
            let Some((_, transaction)) = first.filter(|(awaited, _)| *awaited <= number) else { return };
            self.waiting_seen.pop_first();
            if let Some(handle) = self.find(transaction) {
                self.resume_stable(handle, context, outbox);
            }
        }
        // The remaining waiters are woken in the next turn.
        outbox.send(self.own, Signal::Tc(TcSignal::SeenStable(SeenStable { number })));
    }
}
