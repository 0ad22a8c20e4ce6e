//! Handles tc's orders to prepare, commit and undo. Each order first passes along the replica chains.

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, TransactionId};
use junctor_signals::commit_transaction::{
    CommitTransaction, CommitTransactionReply, PrepareTransaction, PrepareTransactionReply, UndoTransaction,
    UndoTransactionReply,
};
use junctor_signals::replicate_rows::ApplyReplica;
use junctor_signals::{LdmSignal, Signal, TcSignal};

use super::block::LdmBlock;
use super::participant_table::ParticipantHandle;
use super::state::{CommitDecision, Resolution, ResolutionKind};

impl LdmBlock {
    pub(super) fn on_prepare_transaction(
        &mut self,
        signal: PrepareTransaction,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let PrepareTransaction { transaction, reply_to } = signal;
        let error = match self.participants.find(transaction) {
            Some(handle) => {
                let participant = self.participant(handle);
                let is_first = participant.resolution.is_none() && participant.prepare_reply_to.is_none();
                require!(is_first && participant.outstanding == 0, "a transaction is prepared once: {transaction}");
                self.ship_images(handle, reply_to, context, outbox);
                if self.participant(handle).outstanding > 0 {
                    return;
                }
                None
            }
            // tc prepares only ldms where the transaction has written. This one no longer knows the
            // transaction, so its writes are lost.
            None => Some(transaction_unknown(transaction)),
        };
        let reply = PrepareTransactionReply { transaction, from: self.own, error };
        outbox.send(reply_to, Signal::Tc(TcSignal::PrepareTransactionReply(reply)));
    }

    pub(super) fn on_commit_transaction(&mut self, signal: CommitTransaction, outbox: &mut Outbox<Signal>) {
        let CommitTransaction { transaction, reply_to, number, participants, has_written } = signal;
        let Some(handle) = self.participants.find(transaction) else {
            // If a statement was refused here, tc counts this ldm as a participant although it has no record
            // of the transaction. That is allowed only if the transaction has written nothing here.
            require!(!has_written, "a participant knows the transaction {transaction} that it commits as {number}");
            let reply = CommitTransactionReply { transaction, from: self.own };
            return outbox.send(reply_to, Signal::Tc(TcSignal::CommitTransactionReply(reply)));
        };
        let participant = self.participant(handle);
        require!(number.0 > 0 && participants > 0, "a commit has a number and at least one written partition");
        require!(
            has_written != participant.written.is_empty(),
            "tc knows where a transaction has written: {transaction}"
        );
        let is_shipped = participant.prepared.is_empty() || participant.shipped == participant.rows.len();
        require!(is_shipped, "backups hold every image before the commit: {transaction}");
        let kind = ResolutionKind::Commit(CommitDecision { number, participants });
        self.begin_resolution(handle, kind, reply_to, outbox);
    }

    pub(super) fn on_undo_transaction(&mut self, signal: UndoTransaction, outbox: &mut Outbox<Signal>) {
        let UndoTransaction { transaction, reply_to, newer_than, ends } = signal;
        let Some(handle) = self.participants.find(transaction) else {
            let reply = UndoTransactionReply { transaction, from: self.own };
            return outbox.send(reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
        };
        let kind = ResolutionKind::Undo { newer_than, ends };
        if ends {
            return self.begin_resolution(handle, kind, reply_to, outbox);
        }
        let participant = self.participant(handle);
        require!(participant.resolution.is_none(), "a transaction has one resolution at a time: {transaction}");
        participant.resolution = Some(Resolution::new(kind, reply_to));
        self.run_resolution(handle, outbox);
    }

    /// Commits or undoes the rows at the backups, starting with the last replica of each chain, and then the
    /// rows here.
    fn begin_resolution(
        &mut self,
        handle: ParticipantHandle,
        kind: ResolutionKind,
        reply_to: Address,
        outbox: &mut Outbox<Signal>,
    ) {
        let own = self.own;
        let (number, participants) = match kind {
            ResolutionKind::Commit(CommitDecision { number, participants }) => (number, participants),
            ResolutionKind::CommitOnePhase { number } => (number, 1),
            ResolutionKind::Undo { .. } => (CommitNumber(0), 0),
        };
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        require!(participant.resolution.is_none(), "a transaction has one resolution at a time: {transaction}");
        participant.resolution = Some(Resolution::new(kind, reply_to));
        let prepared = std::mem::take(&mut participant.prepared);
        participant.outstanding = prepared.len() as u32;
        for index in prepared {
            let slot = self.slot(index);
            require!(slot.chain.len() > 1, "a partition whose images were shipped has a backup");
            let last = slot.chain[slot.chain.len() - 1];
            let place = (slot.chain.len() - 1) as u8;
            let apply = ApplyReplica { transaction, partition: slot.id, primary: own, place, number, participants };
            outbox.send(last, Signal::Ldm(LdmSignal::ApplyReplica(apply)));
        }
        if self.participant(handle).outstanding == 0 {
            self.run_resolution(handle, outbox);
        }
    }
}

#[cold]
fn transaction_unknown(transaction: TransactionId) -> Box<Error> {
    let message = format!("Got temporary error: a participant does not know transaction {transaction}");
    Error::new(ErrorCode::TemporaryFailure, message)
}
