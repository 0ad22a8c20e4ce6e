//! The membership epoch of an ldm. Prepares, rollbacks and images name the epoch of their sender.
//!
//! A newer signal waits until this ldm has started its epoch. An older prepare or image is dropped: the start
//! of the epoch has undone its transaction. An older rollback is obeyed, because nothing else frees its
//! locks.

use junctor_kernel::{Context, NodeId, Outbox, require};
use junctor_model::id::{Epoch, TransactionId};
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::start_epoch::{BeginEpoch, has_node};
use junctor_signals::{LdmSignal, Signal};

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::state::{ImagesEnd, ImagesEndKind};

impl LdmBlock {
    /// Starts an epoch. Its tc rolls back a transaction that is in prepare, so the prepare ends without an
    /// answer; decided transactions have got their orders before. The first replica that is left is primary.
    /// Images of transactions whose tc is gone are undone here.
    pub(super) fn on_begin_epoch(
        &mut self,
        BeginEpoch { epoch, gone }: BeginEpoch,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.gone.iter_mut().zip(gone).for_each(|(own, gone)| *own |= gone);
        let own = self.own;
        for index in self.partitions.indexes() {
            let slot = self.partitions.slot(index);
            slot.chain.retain(|at| *at == own || !has_node(&gone, at.node));
            let position = slot.chain.iter().position(|at| *at == own);
            let before = std::mem::replace(&mut slot.chain_position, position.unwrap_or_default());
            if slot.chain_position == 0 && before > 0 && !slot.is_dropped {
                let partition = slot.id;
                self.defer(Deferred::OpenPartition(partition), outbox);
            }
        }
        self.end_prepares();
        self.start_epoch(epoch, context, outbox);
        let is_gone = |transaction: &TransactionId| has_node(&gone, NodeId(transaction.node()));
        let mut orphans: Vec<TransactionId> = self.backed_up.keys().map(|key| key.0).filter(is_gone).collect();
        orphans.dedup();
        for transaction in orphans {
            let reply_to = coordinator(transaction);
            let end = ImagesEnd { transaction, reply_to, kind: ImagesEndKind::Undo(epoch) };
            self.defer(Deferred::Images(end), outbox);
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
