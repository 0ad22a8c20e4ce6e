//! The membership epoch of an ldm. Prepares, rollbacks and images name the epoch of their sender.
//!
//! A newer signal waits until this ldm has started its epoch. An older prepare or image is dropped: the start
//! of the epoch has undone its transaction. An older rollback is obeyed, because nothing else frees its
//! locks.

use junctor_kernel::{Context, Outbox, require};
use junctor_model::id::Epoch;
use junctor_signals::{LdmSignal, Signal};

use super::block::LdmBlock;

impl LdmBlock {
    /// Starts an epoch, and handles the signals of it that have arrived before.
    pub fn start_epoch(&mut self, epoch: Epoch, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
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
