//! The start of an epoch. Transactions without a number that are in prepare are rolled back, here and at
//! their participants, and their clients get error 1213. Nodes that have left take no part any more.

use junctor_kernel::{Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::Epoch;
use junctor_signals::Signal;
use junctor_signals::TcSignal;
use junctor_signals::report_node::NodeWords;
use junctor_signals::start_epoch::{BeginEpoch, has_node};

use super::block::TcBlock;
use super::state::{Phase, TransactionHandle};

/// Maximum number of transactions that one signal rolls back. The others follow in the next turns.
const ENDED_PER_SIGNAL_MAX: usize = 4;

impl TcBlock {
    pub(super) fn on_begin_epoch(&mut self, signal: BeginEpoch, outbox: &mut Outbox<Signal>) {
        let BeginEpoch { epoch, gone } = signal;
        if epoch > self.epoch {
            self.start_epoch(epoch);
            self.leave_nodes(&gone);
        }
        // tc sends itself the signal again until nothing of an earlier epoch is left.
        let mut ended = 0;
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            if !self.belongs_to_earlier_epoch(handle) {
                continue;
            }
            if ended == ENDED_PER_SIGNAL_MAX {
                return outbox.send(self.own, Signal::Tc(TcSignal::BeginEpoch(signal)));
            }
            ended += 1;
            self.end_of_earlier_epoch(handle, outbox);
        }
    }

    /// Starts an epoch. Orders to participants name it from now on.
    pub(crate) fn start_epoch(&mut self, epoch: Epoch) {
        require!(epoch > self.epoch, "epochs start in their order: {epoch:?} after {:?}", self.epoch);
        self.epoch = epoch;
    }

    fn leave_nodes(&mut self, gone: &NodeWords) {
        self.gone.iter_mut().zip(gone).for_each(|(own, gone)| *own |= gone);
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            self.record(handle).backups.retain(|backup| !has_node(gone, backup.at.node));
        }
    }

    /// Whether an epoch that is over has left orders of the transaction unanswered: to prepare, to take a
    /// number, or to undo at backups too.
    fn belongs_to_earlier_epoch(&mut self, handle: TransactionHandle) -> bool {
        let epoch = self.epoch;
        let record = self.record(handle);
        record.epoch < epoch && matches!(record.phase, Phase::Preparing | Phase::TakingNumber | Phase::Releasing)
    }

    /// Rolls the transaction back, or back once more: answers to earlier orders do not count any more.
    fn end_of_earlier_epoch(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        if record.phase != Phase::Releasing {
            record.running.error.get_or_insert_with(lost_with_epoch);
        }
        record.outstanding = 0;
        record.phase = Phase::Preparing;
        self.roll_back(handle, outbox);
    }
}

fn lost_with_epoch() -> Box<Error> {
    let message = "A node of the cluster has left while the transaction committed; try restarting transaction";
    Error::new(ErrorCode::Deadlock, message)
}
