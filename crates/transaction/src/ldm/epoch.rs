//! The membership epoch of an ldm. Prepares, rollbacks and images name the epoch of their sender.
//!
//! A newer signal waits until this ldm has started its epoch. An older prepare or image is dropped: the start
//! of the epoch has undone its transaction. An older rollback is obeyed, because nothing else frees its
//! locks.

use junctor_kernel::{Context, NodeId, Outbox, require};
use junctor_model::id::{Epoch, StatementNumber, TransactionId};
use junctor_model::planted_bug::PlantedBug;
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::start_epoch::{BeginEpoch, has_node};
use junctor_signals::{LdmSignal, Signal, crash_point};
use junctor_storage::lock::WaiterId;

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::state::{ImagesEnd, ImagesEndKind, Resolution, ResolutionKind};

impl LdmBlock {
    /// Starts an epoch. Decided transactions have got their orders before. The tc of a transaction that is in
    /// prepare rolls it back, so the prepare ends without an answer. The first replica that is left is
    /// primary; its writers wait until no image is left. What a tc that is gone has not decided is undone.
    pub(super) fn on_begin_epoch(
        &mut self,
        signal: BeginEpoch,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        outbox.crash_point(crash_point::EPOCH_LDM.before());
        signal.answer(outbox);
        let BeginEpoch { epoch, gone, late, copies_at, admitted, .. } = signal;
        (self.gone, self.late, self.copies_at, self.admitted) = (gone, late, copies_at, admitted);
        let own = self.own;
        for index in self.partitions.indexes() {
            let slot = self.partitions.slot(index);
            slot.chain = self.late.order(&slot.configured, &gone);
            require!(copies_at.is_some() || slot.copy.is_none(), "a node serves when it has all rows: {:?}", slot.id);
            let position = slot.chain.iter().position(|at| *at == own);
            slot.chain_position = position.unwrap_or_default();
        }
        self.end_prepares();
        self.undo_orphans(epoch, outbox);
        self.start_epoch(epoch, context, outbox);
        let is_gone = |transaction: &TransactionId| has_node(&gone, NodeId(transaction.node()));
        let mut orphans: Vec<TransactionId> = self.backed_up.keys().map(|key| key.0).filter(is_gone).collect();
        orphans.dedup();
        for transaction in orphans {
            // A decided transaction ends by its order, which may wait for a reader.
            if self.deferred.commits_images(transaction) && !PlantedBug::UndoDecidedImages.is_planted() {
                continue;
            }
            let reply_to = coordinator(transaction);
            let end = ImagesEnd { transaction, reply_to, kind: ImagesEndKind::Undo(epoch) };
            self.defer(Deferred::Images(end), outbox);
        }
        self.resume_held_writes(context, outbox);
        self.request_copy(outbox);
        outbox.crash_point(crash_point::EPOCH_LDM.after());
    }

    /// Undoes the transactions of tcs that are gone, unless they are decided. Their writes end where they
    /// are.
    fn undo_orphans(&mut self, epoch: Epoch, outbox: &mut Outbox<Signal>) {
        let gone = self.gone;
        let is_orphan = |transaction: TransactionId| has_node(&gone, NodeId(transaction.node()));
        self.held_writes.retain(|request| !is_orphan(request.transaction));
        self.records.held_writes.retain(|request| !is_orphan(request.transaction));
        for work in self.deferred.take_writes(is_orphan) {
            let slot = self.slot(work.slot);
            slot.guard.cancel_write(&mut slot.token);
        }
        let parked = self.waits.parked.iter().filter(|(_, parked)| is_orphan(parked.work.request.transaction));
        let parked: Vec<(u64, WaiterId)> = parked.map(|(sequence, parked)| (*sequence, parked.waiter)).collect();
        for (sequence, waiter) in parked {
            self.end_wait(sequence, waiter, outbox);
        }
        for handle in self.participants.handles() {
            let participant = self.participant(handle);
            let transaction = participant.transaction;
            if !is_orphan(transaction) || PlantedBug::KeepOrphans.is_planted() {
                continue;
            }
            let undo = ResolutionKind::Undo { newer_than: StatementNumber(0), ends: true, epoch };
            match &mut participant.resolution {
                Some(Resolution { kind: kind @ ResolutionKind::Undo { .. }, .. }) => *kind = undo,
                Some(_) => {}
                None => {
                    participant.resolution = Some(Resolution::new(undo, coordinator(transaction)));
                    self.defer(Deferred::Resolution(handle), outbox);
                }
            }
        }
    }

    /// Begins the writes that were held back, as far as nothing holds them any more.
    pub(super) fn resume_held_writes(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        for request in std::mem::take(&mut self.held_writes) {
            self.on_write_rows(request, context, outbox);
        }
    }

    /// Ends the prepares that run or wait for their number. The answers of their chains are dropped.
    fn end_prepares(&mut self) {
        for handle in self.participants.handles() {
            let participant = self.participant(handle);
            let is_prepared = participant.prepare_reply_to.is_some()
                || participant.outstanding > 0
                || participant.collected.is_some()
                || !participant.prepared.is_empty();
            if participant.resolution.is_some() || !is_prepared {
                continue;
            }
            participant.outstanding = 0;
            participant.prepare_reply_to = None;
            participant.prepare_error = None;
            if let Some(collected) = &mut participant.collected {
                collected.next = participant.rows.len();
            }
            self.deferred.forget_prepare(handle);
            self.records.held_prepares.retain(|held| *held != handle);
        }
    }

    /// Starts an epoch, and handles the signals of it that have arrived before.
    pub(crate) fn start_epoch(&mut self, epoch: Epoch, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        require!(epoch > self.epoch, "epochs start in their order: {epoch:?} after {:?}", self.epoch);
        self.epoch = epoch;
        // A signal of an epoch that is newer still is parked again.
        for signal in std::mem::take(&mut self.parked) {
            let own = self.own;
            self.handle(signal, own, context, outbox);
        }
    }

    /// Parks a signal of a newer epoch, and drops one of an older epoch. Members are at most one epoch apart
    /// in prepares, so few signals wait.
    #[cold]
    pub(super) fn set_aside(&mut self, epoch: Epoch, signal: LdmSignal, context: &mut Context<'_>) {
        match epoch > self.epoch {
            true => self.parked.push(signal),
            false => junctor_kernel::WireSignal::recycle(Signal::Ldm(signal), context.buffers),
        }
    }
}
