//! Waits for row locks: deadlines, and the search for cycles by probes from tc to tc (edge chasing, after Chandy, Misra and
//! Haas, 1983).
//!
//! Every new wait sends a probe along "waits for". The wait that closes a cycle is known last, and by then the tc of every
//! other member knows its wait, so the probe of the last one comes back; it is the victim.

use junctor_kernel::{Context, Duration, Outbox, WorldRequest};
use junctor_model::limit::TRANSACTIONS_MAX;
use junctor_signals::lock_wait::{CancelReason, CancelWait, LockWaitEnded, LockWaitStarted, ProbeDeadlock};
use junctor_signals::{LdmSignal, Signal, TcSignal};

use super::block::TcBlock;
use super::state::{Phase, ProbeMark, TransactionHandle, Wait};

/// How often waits are looked at for their deadlines, in milliseconds: error 1205 comes at most this much late.
const WAIT_TIMER_MS: u64 = 100;

impl TcBlock {
    pub(super) fn on_lock_wait_started(
        &mut self,
        signal: LockWaitStarted,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let LockWaitStarted { transaction, at, sequence, partition: _, blockers } = signal;
        let handle = self.find(transaction);
        let record = handle.and_then(|handle| self.transactions.get_mut(handle));
        let Some(record) = record.filter(|record| record.phase == Phase::Executing) else { return };
        // A statement that fails anyway, or whose client is gone, waits for nothing.
        if record.running.error.is_some() || record.ending.is_some() {
            return cancel(transaction, at, sequence, CancelReason::Interrupted, outbox);
        }
        let deadline = context.now.plus(Duration::from_millis(u64::from(record.running.lock_wait_ms)));
        let probes = blockers.iter().map(|blocker| ProbeDeadlock {
            initiator: transaction,
            initiator_at: at,
            sequence,
            target: *blocker,
            hops: 0,
        });
        self.probes.extend(probes);
        record.waits.retain(|wait| (wait.at, wait.sequence) != (at, sequence));
        record.waits.push(Wait { at, sequence, blockers, since: context.now, deadline, cancelled: false });
        self.start_wait_timer(outbox);
        self.pass_probes(outbox);
    }

    pub(super) fn on_lock_wait_ended(&mut self, signal: LockWaitEnded) {
        let Some(handle) = self.find(signal.transaction) else { return };
        self.record(handle).waits.retain(|wait| (wait.at, wait.sequence) != (signal.at, signal.sequence));
    }

    pub(super) fn on_probe_deadlock(&mut self, signal: ProbeDeadlock, outbox: &mut Outbox<Signal>) {
        self.probes.push(signal);
        self.pass_probes(outbox);
    }

    /// Follows probes among the transactions of this instance, and sends those that leave it.
    fn pass_probes(&mut self, outbox: &mut Outbox<Signal>) {
        while let Some(probe) = self.probes.pop() {
            if probe.target.instance() != self.own.instance {
                let to = self.tc_address(probe.target.instance());
                outbox.send(to, Signal::Tc(TcSignal::ProbeDeadlock(probe)));
                continue;
            }
            if probe.target == probe.initiator {
                self.break_cycle(&probe, outbox);
                continue;
            }
            let Some(record) = self.find(probe.target).and_then(|handle| self.transactions.get_mut(handle)) else {
                continue;
            };
            let mark =
                ProbeMark { initiator: probe.initiator, at: probe.initiator_at.to_bits(), sequence: probe.sequence };
            let is_waiting = record.waits.iter().any(|wait| !wait.cancelled);
            if !is_waiting || usize::from(probe.hops) >= TRANSACTIONS_MAX || !record.mark_probe(mark) {
                continue;
            }
            for wait in record.waits.iter().filter(|wait| !wait.cancelled) {
                let next = |blocker: &_| ProbeDeadlock { target: *blocker, hops: probe.hops + 1, ..probe };
                self.probes.extend(wait.blockers.iter().map(next));
            }
        }
    }

    /// A probe has come back to its initiator: it is the victim, if it still waits there.
    fn break_cycle(&mut self, probe: &ProbeDeadlock, outbox: &mut Outbox<Signal>) {
        let Some(handle) = self.find(probe.initiator) else { return };
        let waits = &mut self.record(handle).waits;
        let wait = waits.iter_mut().find(|wait| (wait.at, wait.sequence) == (probe.initiator_at, probe.sequence));
        if let Some(wait) = wait.filter(|wait| !wait.cancelled) {
            wait.cancelled = true;
            cancel(probe.initiator, wait.at, wait.sequence, CancelReason::Deadlock, outbox);
        }
    }

    /// Gives up all waits of a transaction whose statement is not wanted any more.
    pub(super) fn cancel_waits(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let record = self.record(handle);
        for wait in record.waits.iter_mut().filter(|wait| !wait.cancelled) {
            wait.cancelled = true;
            cancel(record.id, wait.at, wait.sequence, CancelReason::Interrupted, outbox);
        }
    }

    fn start_wait_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.wait_timer_runs {
            self.wait_timer_runs = true;
            outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(WAIT_TIMER_MS), token: 0 });
        }
    }

    /// One timer for all waits: most end long before their deadline, and a timer of the kernel cannot be taken back.
    pub(super) fn on_wait_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.wait_timer_runs = false;
        let mut any_waits = false;
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            let record = self.record(handle);
            any_waits |= !record.waits.is_empty();
            for wait in record.waits.iter_mut().filter(|wait| !wait.cancelled && wait.deadline <= context.now) {
                wait.cancelled = true;
                cancel(record.id, wait.at, wait.sequence, CancelReason::Timeout, outbox);
            }
        }
        if any_waits {
            self.start_wait_timer(outbox);
        }
    }
}

fn cancel(
    transaction: junctor_model::id::TransactionId,
    at: junctor_kernel::Address,
    sequence: u64,
    reason: CancelReason,
    outbox: &mut Outbox<Signal>,
) {
    let signal = CancelWait { transaction, sequence, reason };
    outbox.send(at, Signal::Ldm(LdmSignal::CancelWait(signal)));
}
