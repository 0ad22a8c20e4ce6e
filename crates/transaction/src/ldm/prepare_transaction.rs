//! Prepare, commit and undo as tc asks them, with the way along the replica chains before the rows themselves are
//! settled.

use junctor_kernel::{Address, Context, Outbox};
use junctor_model::id::CommitNumber;
use junctor_signals::commit_transaction::{
    CommitTransaction, CommitTransactionReply, PrepareTransaction, PrepareTransactionReply, UndoTransaction,
    UndoTransactionReply,
};
use junctor_signals::replicate_rows::ApplyReplica;
use junctor_signals::{LdmSignal, Signal, TcSignal};

use super::block::LdmBlock;
use super::participant_table::ParticipantHandle;
use super::state::{Resolution, ResolutionKind};

impl LdmBlock {
    pub(super) fn on_prepare_transaction(
        &mut self,
        signal: PrepareTransaction,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let PrepareTransaction { transaction, reply_to } = signal;
        if let Some(handle) = self.participants.find(transaction) {
            self.ship_images(handle, reply_to, context, outbox);
            if self.participant(handle).outstanding > 0 {
                return;
            }
        }
        let reply = PrepareTransactionReply { transaction, from: self.own, error: None };
        outbox.send(reply_to, Signal::Tc(TcSignal::PrepareTransactionReply(reply)));
    }

    pub(super) fn on_commit_transaction(&mut self, signal: CommitTransaction, outbox: &mut Outbox<Signal>) {
        let CommitTransaction { transaction, reply_to, number, participants } = signal;
        let Some(handle) = self.participants.find(transaction) else {
            let reply = CommitTransactionReply { transaction, from: self.own };
            return outbox.send(reply_to, Signal::Tc(TcSignal::CommitTransactionReply(reply)));
        };
        let kind = ResolutionKind::Commit { number, participants };
        self.begin_resolution(handle, kind, reply_to, number, outbox);
    }

    pub(super) fn on_undo_transaction(&mut self, signal: UndoTransaction, outbox: &mut Outbox<Signal>) {
        let UndoTransaction { transaction, reply_to, newer_than, ends } = signal;
        let Some(handle) = self.participants.find(transaction) else {
            let reply = UndoTransactionReply { transaction, from: self.own };
            return outbox.send(reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
        };
        let kind = ResolutionKind::Undo { newer_than, ends };
        if ends {
            return self.begin_resolution(handle, kind, reply_to, CommitNumber(0), outbox);
        }
        self.participant(handle).resolution = Some(Resolution::new(kind, reply_to));
        self.run_resolution(handle, outbox);
    }

    /// The backups go first, the last one ahead; then the rows here.
    fn begin_resolution(
        &mut self,
        handle: ParticipantHandle,
        kind: ResolutionKind,
        reply_to: Address,
        number: CommitNumber,
        outbox: &mut Outbox<Signal>,
    ) {
        let own = self.own;
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        participant.resolution = Some(Resolution::new(kind, reply_to));
        let prepared = std::mem::take(&mut participant.prepared);
        participant.outstanding = prepared.len() as u32;
        for index in prepared {
            let slot = self.slot(index);
            let Some(last) = slot.chain.last().copied() else { continue };
            let place = (slot.chain.len() - 1) as u8;
            let apply = ApplyReplica { transaction, partition: slot.id, primary: own, place, number };
            outbox.send(last, Signal::Ldm(LdmSignal::ApplyReplica(apply)));
        }
        if self.participant(handle).outstanding == 0 {
            self.run_resolution(handle, outbox);
        }
    }
}
