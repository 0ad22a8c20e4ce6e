//! Waits for row locks: deadlines, and the search for cycles. Probes travel from tc to tc (edge chasing,
//! after Chandy, Misra and Haas, 1983).
//!
//! A new wait sends a probe along the "waits for" relation. The wait that closes a cycle is reported last. By
//! then, the tc of every other member knows that member's wait, so the probe of the last wait travels around
//! the cycle and returns. A wait whose blockers change sends a probe too, because other probes may have
//! stopped at the blocker that is gone.
//!
//! A transaction that holds nothing and waits nowhere else sends no probe. A queue for one row therefore
//! costs nothing, however long it is. In every cycle, some member held something when it began to wait, and
//! that member probes. Its probe may reach a member whose wait is not known yet; that member then sends a
//! probe when its wait is reported.
//!
//! If several members begin to wait at the same time, all of them may find the cycle. Their probes have seen
//! the same members and choose the same victim: the member with the fewest rows changed when it began to
//! wait. This number is fixed during the wait.

use std::cmp::Reverse;

use junctor_kernel::{Address, Context, Duration, Outbox, WorldRequest, require};
use junctor_model::id::TransactionId;
use junctor_model::limit::TRANSACTIONS_MAX;
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::lock_wait::{
    Blocker, CancelReason, CancelWait, LockWaitEnded, LockWaitStarted, NoteLockWait, ProbeDeadlock, ProbeStep,
};
use junctor_signals::{LdmSignal, Signal, SqlSignal, TcSignal};

use super::block::TcBlock;
use super::state::{Phase, ProbeMark, Statement, TransactionHandle, Wait};

/// Milliseconds between checks of deadlines, and thus the maximum delay of error 1205.
const WAIT_TIMER_MS: u64 = 100;

impl TcBlock {
    pub(super) fn on_lock_wait_started(
        &mut self,
        signal: LockWaitStarted,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let LockWaitStarted { transaction, at, sequence, partition, row, changed, has_other_requests, .. } = signal;
        let blockers = signal.blockers;
        let handle = self.awaiting(transaction);
        let Some(record) = self.transactions.get_mut(handle) else { return };
        if signal.are_gone {
            // Fewer blockers close no cycle, and no probe has stopped at one that is gone: every other path
            // through this wait remains.
            if let Some(wait) = record.waits.iter_mut().find(|wait| (wait.at, wait.sequence) == (at, sequence)) {
                forget_blockers(&mut wait.blockers, &blockers);
            }
            return;
        }
        require!(record.phase == Phase::Executing, "only parts of a running statement wait: {transaction}");
        // A statement that fails anyway, or whose client is gone, need not wait.
        if record.running.error.is_some() || record.running.is_interrupted || record.ending.is_some() {
            return cancel(transaction, at, sequence, CancelReason::Interrupted, outbox);
        }
        if let Some(wait) = record.waits.iter_mut().find(|wait| (wait.at, wait.sequence) == (at, sequence)) {
            wait.blockers.clone_from(&blockers);
            self.hasten_blockers(&blockers, outbox);
            self.search(transaction, at, sequence);
            return self.pass_probes(outbox);
        }
        let deadline = context.turn_start.plus(Duration::from_millis(u64::from(record.running.lock_wait_ms)));
        let changed = record.changed.saturating_add(u64::from(changed)).min(u64::from(u32::MAX)) as u32;
        self.counted.lock_waits += 1;
        let may_be_waited_for = has_other_requests || record.was_probed || record.participants.len() > 1;
        let awaited = if self.table_waits.is_empty() { Vec::new() } else { blockers.clone() };
        let since = context.turn_start;
        if record.waits.is_empty() {
            note_wait(&record.running, true, outbox);
        }
        record.waits.push(Wait {
            at,
            sequence,
            partition,
            row,
            changed,
            blockers,
            round: 0,
            since,
            deadline,
            cancelled: false,
        });
        self.start_wait_timer(outbox);
        self.hasten_blockers(&awaited, outbox);
        if may_be_waited_for {
            self.search(transaction, at, sequence);
            self.pass_probes(outbox);
        }
    }

    /// Begins a search for cycles through a wait of this instance.
    fn search(&mut self, initiator: TransactionId, initiator_at: Address, sequence: u64) {
        let Some(wait) = self.find_wait(initiator, initiator_at, sequence) else { return };
        wait.round = wait.round.wrapping_add(1);
        let (round, blockers) = (wait.round, wait.blockers.clone());
        let probes = blockers.into_iter().map(|target| ProbeDeadlock {
            initiator,
            initiator_at,
            sequence,
            target,
            target_at: initiator_at,
            hops: 0,
            victim: TransactionId::default(),
            victim_changed: u32::MAX,
            victim_at: initiator_at,
            victim_sequence: 0,
            round,
            step: ProbeStep::Search,
        });
        self.probes.extend(probes);
    }

    pub(super) fn on_lock_wait_ended(&mut self, signal: LockWaitEnded, outbox: &mut Outbox<Signal>) {
        let handle = self.awaiting(signal.transaction);
        let record = self.record(handle);
        let before = record.waits.len();
        record.waits.retain(|wait| (wait.at, wait.sequence) != (signal.at, signal.sequence));
        if record.waits.is_empty() && before > 0 && record.owes_statement {
            note_wait(&record.running, false, outbox);
        }
    }

    pub(super) fn on_probe_deadlock(&mut self, signal: ProbeDeadlock, outbox: &mut Outbox<Signal>) {
        self.probes.push(signal);
        self.pass_probes(outbox);
    }

    /// Follows probes among the transactions of this instance, and forwards those that leave it.
    fn pass_probes(&mut self, outbox: &mut Outbox<Signal>) {
        while let Some(probe) = self.probes.pop() {
            let receiver = match probe.step {
                ProbeStep::Search => probe.target.transaction,
                ProbeStep::Break => probe.victim,
                ProbeStep::SearchAgain => probe.initiator,
            };
            let to = coordinator(receiver);
            if to != self.own {
                outbox.send(to, Signal::Tc(TcSignal::ProbeDeadlock(probe)));
                continue;
            }
            match probe.step {
                ProbeStep::Search if probe.target.transaction != probe.initiator => {}
                ProbeStep::Search => {
                    // The probe is back at the initiator. If the initiator still waits, the cycle is real.
                    if let Some(wait) = self.find_wait(probe.initiator, probe.initiator_at, probe.sequence) {
                        let closed = with_candidate(probe, probe.initiator, wait);
                        // A queue alone forms no cycle. Without a candidate, the probe followed a stale list
                        // of blockers.
                        if closed.victim.is_some() {
                            self.probes.push(ProbeDeadlock { step: ProbeStep::Break, ..closed });
                        }
                    }
                    continue;
                }
                ProbeStep::Break => {
                    self.break_cycle(&probe, outbox);
                    continue;
                }
                ProbeStep::SearchAgain => {
                    self.search(probe.initiator, probe.initiator_at, probe.sequence);
                    continue;
                }
            }
            let Some(record) = self.find(probe.target.transaction).and_then(|handle| self.transactions.get_mut(handle))
            else {
                continue;
            };
            let mark = ProbeMark {
                initiator: probe.initiator,
                at: probe.initiator_at.to_bits(),
                sequence: probe.sequence,
                round: probe.round,
            };
            let is_waiting = record.waits.iter().any(|wait| !wait.cancelled);
            record.was_probed |= !is_waiting;
            if !is_waiting || usize::from(probe.hops) >= TRANSACTIONS_MAX || !record.mark_probe(mark) {
                continue;
            }
            for wait in record.waits.iter().filter(|wait| !wait.cancelled) {
                let forwarded = with_candidate(probe, probe.target.transaction, wait);
                let hops = probe.hops + 1;
                let next = |blocker: &_| ProbeDeadlock { target: *blocker, target_at: wait.at, hops, ..forwarded };
                self.probes.extend(wait.blockers.iter().map(next));
            }
        }
    }

    /// Cancels the victim's wait. The initiator searches again, because it may be part of another cycle.
    fn break_cycle(&mut self, probe: &ProbeDeadlock, outbox: &mut Outbox<Signal>) {
        if let Some(wait) = self.find_wait(probe.victim, probe.victim_at, probe.victim_sequence) {
            wait.cancelled = true;
            self.counted.deadlocks += 1;
            cancel(probe.victim, probe.victim_at, probe.victim_sequence, CancelReason::Deadlock, outbox);
        }
        if probe.victim != probe.initiator {
            self.probes.push(ProbeDeadlock { step: ProbeStep::SearchAgain, ..*probe });
        }
    }

    /// A wait of a transaction of this instance, unless it is cancelled.
    fn find_wait(&mut self, transaction: TransactionId, at: Address, sequence: u64) -> Option<&mut Wait> {
        let handle = self.find(transaction)?;
        let waits = &mut self.transactions.get_mut(handle)?.waits;
        waits.iter_mut().find(|wait| (wait.at, wait.sequence) == (at, sequence) && !wait.cancelled)
    }

    /// Cancels all waits of a transaction whose statement was interrupted.
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

    /// Cancels overdue waits. One timer serves all waits, because most waits end long before their deadline
    /// and kernel timers cannot be cancelled.
    pub(super) fn on_wait_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.wait_timer_runs = false;
        let (mut any_waits, mut timeouts) = (false, 0);
        for place in 0..self.transactions.high_water() as u32 {
            let Some(handle) = self.transactions.handle_at(place) else { continue };
            let record = self.record(handle);
            any_waits |= !record.waits.is_empty();
            for wait in record.waits.iter_mut().filter(|wait| !wait.cancelled && wait.deadline <= context.turn_start) {
                wait.cancelled = true;
                timeouts += 1;
                cancel(record.id, wait.at, wait.sequence, CancelReason::Timeout, outbox);
            }
        }
        self.counted.lock_wait_timeouts += timeouts;
        if any_waits {
            self.hasten_awaited(outbox);
            self.start_wait_timer(outbox);
        }
    }
}

/// The probe after it passed a waiting transaction, which becomes the victim if it is cheaper. A waiter that
/// is only ahead in the queue of this wait is no candidate, because undoing it would not break the cycle.
fn with_candidate(probe: ProbeDeadlock, passed: TransactionId, wait: &Wait) -> ProbeDeadlock {
    let is_merely_ahead = (probe.target_at, probe.target.ahead) == (wait.at, wait.sequence);
    let cost = |changed: u32, id: TransactionId| (changed, Reverse(id));
    let is_dearer = probe.victim.is_some() && cost(wait.changed, passed) > cost(probe.victim_changed, probe.victim);
    if is_merely_ahead || is_dearer {
        return probe;
    }
    let (victim_at, victim_sequence) = (wait.at, wait.sequence);
    ProbeDeadlock { victim: passed, victim_changed: wait.changed, victim_at, victim_sequence, ..probe }
}

/// Removes blockers from a sorted list.
fn forget_blockers(blockers: &mut Vec<Blocker>, gone: &[Blocker]) {
    for blocker in gone {
        if let Ok(position) = blockers.binary_search(blocker) {
            blockers.remove(position);
        }
    }
}

/// Tells the session of a statement that it begins or no longer waits for row locks.
fn note_wait(statement: &Statement, waits: bool, outbox: &mut Outbox<Signal>) {
    let signal = NoteLockWait { operation: statement.operation, waits };
    outbox.send(statement.reply_to, Signal::Sql(SqlSignal::NoteLockWait(signal)));
}

fn cancel(transaction: TransactionId, at: Address, sequence: u64, reason: CancelReason, outbox: &mut Outbox<Signal>) {
    let signal = CancelWait { transaction, sequence, reason };
    outbox.send(at, Signal::Ldm(LdmSignal::CancelWait(signal)));
}
