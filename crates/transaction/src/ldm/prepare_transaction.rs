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
use super::state::{ParticipantHandle, Settle, SettleKind};

impl LdmBlock {
    pub(super) fn on_prepare_transaction(
        &mut self,
        signal: PrepareTransaction,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let PrepareTransaction { transaction, reply_to } = signal;
        if let Some(handle) = self.by_transaction.get(&transaction).copied() {
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
        let Some(handle) = self.by_transaction.get(&transaction).copied() else {
            let reply = CommitTransactionReply { transaction, from: self.own };
            return outbox.send(reply_to, Signal::Tc(TcSignal::CommitTransactionReply(reply)));
        };
        let kind = SettleKind::Commit { number, participants };
        self.begin_settle(handle, kind, reply_to, number, outbox);
    }

    pub(super) fn on_undo_transaction(&mut self, signal: UndoTransaction, outbox: &mut Outbox<Signal>) {
        let UndoTransaction { transaction, reply_to, newer_than, ends } = signal;
        let Some(handle) = self.by_transaction.get(&transaction).copied() else {
            let reply = UndoTransactionReply { transaction, from: self.own };
            return outbox.send(reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
        };
        let kind = SettleKind::Undo { newer_than, ends };
        if ends {
            return self.begin_settle(handle, kind, reply_to, CommitNumber(0), outbox);
        }
        self.participant(handle).settle = Some(Settle::new(kind, reply_to));
        self.run_settle(handle, outbox);
    }

    /// The backups go first, the last one ahead; then the rows here.
    fn begin_settle(
        &mut self,
        handle: ParticipantHandle,
        kind: SettleKind,
        reply_to: Address,
        number: CommitNumber,
        outbox: &mut Outbox<Signal>,
    ) {
        let own = self.own;
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        participant.settle = Some(Settle::new(kind, reply_to));
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
            self.run_settle(handle, outbox);
        }
    }
}
