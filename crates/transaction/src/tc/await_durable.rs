//! Commits that wait for the log. Hot path, budget 60 instructions a commit.

use std::collections::BTreeSet;

use junctor_kernel::{Address, Outbox, require};
use junctor_model::id::{CommitNumber, TransactionId};
use junctor_signals::append_records::{AwaitDurable, AwaitDurableReply, LogSpaceChanged};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::{LogSignal, Signal, TcSignal};

use super::block::TcBlock;
use super::state::{Phase, TransactionHandle};

/// Maximum number of commits that one signal answers. The others wait for the next turn.
const WOKEN_PER_SIGNAL_MAX: usize = 8;

/// The commits of one tc that are stable and not durable yet.
#[derive(Debug)]
pub(super) struct DurableWaits {
    log: Address,
    /// The last number that the log has reported.
    durable: CommitNumber,
    waiting: BTreeSet<(CommitNumber, TransactionId)>,
    /// Whether a request to the log is unanswered. One request serves every commit of this tc.
    is_asked: bool,
    /// Whether the device of the log is full.
    is_log_full: bool,
}

impl DurableWaits {
    pub fn new(log: Address) -> DurableWaits {
        DurableWaits { log, durable: CommitNumber(0), waiting: BTreeSet::new(), is_asked: false, is_log_full: false }
    }
}

impl TcBlock {
    /// Ends a commit whose number is stable: now, or once its records are on disk if its session requests that.
    pub(super) fn finish_commit(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        // A one-phase statement that changed nothing took no number. `number` is then the newest one that it
        // has seen.
        let has_changed = !record.running.one_phase || record.running.changed > 0;
        let awaits_disk = has_changed && record.durability == CommitDurability::Disk;
        let (number, transaction) = (record.number, record.id);
        let Some(waits) = self.durable_waits.as_mut().filter(|waits| awaits_disk && number > waits.durable) else {
            return self.finish_transaction(handle, outbox);
        };
        waits.waiting.insert((number, transaction));
        self.record(handle).phase = Phase::WaitingDurable;
        self.ask_for_durable(outbox);
    }

    /// Whether writes are refused, because the log cannot be written.
    pub(super) fn is_log_full(&self) -> bool {
        self.durable_waits.as_ref().is_some_and(|waits| waits.is_log_full)
    }

    pub(super) fn on_log_space_changed(&mut self, signal: LogSpaceChanged) {
        if let Some(waits) = &mut self.durable_waits {
            waits.is_log_full = signal.is_full;
        }
    }

    fn ask_for_durable(&mut self, outbox: &mut Outbox<Signal>) {
        let own = self.own;
        let Some(waits) = self.durable_waits.as_mut().filter(|waits| !waits.is_asked) else { return };
        if let Some((number, _)) = waits.waiting.last().copied() {
            waits.is_asked = true;
            let signal = AwaitDurable { number, reply_to: own };
            outbox.send(waits.log, Signal::Log(LogSignal::AwaitDurable(signal)));
        }
    }

    pub(super) fn on_await_durable_reply(&mut self, reply: AwaitDurableReply, outbox: &mut Outbox<Signal>) {
        let Some(waits) = &mut self.durable_waits else {
            junctor_kernel::invariant::fail("a node with a log awaits it", format_args!("{:?}", reply.durable))
        };
        require!(waits.is_asked && waits.durable <= reply.durable, "the log answers once, and never less");
        waits.durable = reply.durable;
        for _ in 0..WOKEN_PER_SIGNAL_MAX {
            let Some(waits) = &mut self.durable_waits else { return };
            let Some((_, transaction)) = waits.waiting.first().copied().filter(|first| first.0 <= reply.durable) else {
                waits.is_asked = false;
                return self.ask_for_durable(outbox);
            };
            waits.waiting.pop_first();
            let Some(handle) = self.find(transaction) else {
                junctor_kernel::invariant::fail("a commit waits until it is durable", format_args!("{transaction}"))
            };
            require!(self.record(handle).phase == Phase::WaitingDurable, "a commit waits for the log: {transaction}");
            self.finish_transaction(handle, outbox);
        }
        // The remaining commits are answered in the next turn.
        outbox.send(self.own, Signal::Tc(TcSignal::AwaitDurableReply(reply)));
    }
}
