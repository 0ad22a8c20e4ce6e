//! Space in the log for commits. Hot path, budget 40 instructions a commit.
//!
//! A commit takes the blocks of all its records at once, before it takes its number. It holds none while it
//! waits for them, so commits cannot wait for each other in a circle.

use junctor_kernel::{Address, Outbox, Time, require};
use junctor_model::error::Error;
use junctor_model::id::TransactionId;
use junctor_signals::append_records::{ReserveLogSpace, ReserveLogSpaceReply};
use junctor_signals::{LogSignal, Signal};
use junctor_storage::log::{CHUNK_UNDO_BLOCKS, ONE_PHASE_BLOCKS_MAX};

use super::await_durable::DurableWaits;
use super::block::TcBlock;
use super::state::{Phase, TransactionHandle, TransactionRecord};

/// Maximum number of waiting commits that one signal continues or undoes.
const CONTINUED_PER_SIGNAL_MAX: usize = 4;

/// A commit that waits for its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingCommit {
    transaction: TransactionId,
    needed: u64,
    /// `None` until a timer has seen the commit.
    deadline: Option<Time>,
}

/// The answer to a commit that asks for its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpaceTaken {
    /// The commit has its blocks.
    Now,
    /// It goes on later.
    Later,
    /// It needs more than one transaction may have.
    Never,
}

impl TransactionRecord {
    /// Blocks of the log that a commit needs now, in all participants.
    pub fn log_blocks(&self) -> u64 {
        let writers = self.participants.iter().filter(|participant| participant.has_written);
        writers.map(|participant| u64::from(participant.log_blocks)).sum()
    }

    /// A prepare has formed records of these blocks. The log releases them itself.
    pub fn note_chunks(&mut self, at: Address, blocks: u64) {
        let Some(participant) = self.participants.iter_mut().find(|participant| participant.at == at) else {
            junctor_kernel::invariant::fail("only participants prepare", format_args!("{at} for {}", self.id))
        };
        participant.has_chunks = true;
        require!(
            blocks + CHUNK_UNDO_BLOCKS <= u64::from(participant.log_blocks) && blocks <= self.reserved_blocks,
            "a participant needs no more blocks than it said: {blocks} of {}",
            participant.log_blocks
        );
        self.reserved_blocks -= blocks;
    }
}

impl TcBlock {
    /// Takes the blocks of a statement that may commit in one phase. Without them it commits in two.
    #[inline]
    pub(super) fn take_one_phase_space(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) -> bool {
        let Some(waits) = &mut self.durable_waits else { return true };
        if !waits.waiting_space.is_empty() || !waits.credit.take(ONE_PHASE_BLOCKS_MAX) {
            return false;
        }
        balance(waits, self.own, outbox);
        self.record(handle).reserved_blocks = ONE_PHASE_BLOCKS_MAX;
        true
    }

    /// Takes the reply of a statement that may have committed in one phase: gives back what its record does
    /// not need.
    #[inline]
    pub(super) fn settle_one_phase_space(&mut self, handle: TransactionHandle, needed: u32) {
        let Some(waits) = &mut self.durable_waits else { return };
        let Some(record) = self.transactions.get_mut(handle) else { return };
        let (reserved, needed) = (record.reserved_blocks, u64::from(needed));
        require!(needed <= reserved, "a commit in one phase needs few blocks: {needed} of {reserved}");
        waits.credit.give_back(reserved - needed);
        record.reserved_blocks = needed;
    }

    /// Takes the blocks of a commit, or lets it wait for them.
    pub(super) fn take_log_space(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) -> SpaceTaken {
        let own = self.own;
        let Some(waits) = &mut self.durable_waits else { return SpaceTaken::Now };
        let Some(record) = self.transactions.get_mut(handle) else { return SpaceTaken::Never };
        require!(record.reserved_blocks == 0, "a transaction takes its blocks once: {}", record.id);
        let needed = record.log_blocks();
        if exceeds_log(waits, needed) {
            return SpaceTaken::Never;
        }
        let is_taken = waits.waiting_space.is_empty() && waits.credit.take(needed);
        match is_taken {
            true => record.reserved_blocks = needed,
            false => {
                record.phase = Phase::WaitingLogSpace;
                waits.waiting_space.push_back(WaitingCommit { transaction: record.id, needed, deadline: None });
                waits.start_held_timer(outbox);
            }
        }
        balance(waits, own, outbox);
        if is_taken { SpaceTaken::Now } else { SpaceTaken::Later }
    }

    /// Whether the transaction has written more than one may.
    #[cold]
    pub(super) fn exceeds_log(&mut self, handle: TransactionHandle) -> bool {
        let needed = self.record(handle).log_blocks();
        self.durable_waits.as_ref().is_some_and(|waits| exceeds_log(waits, needed))
    }

    /// The commit is stable: the log may free its blocks once it is durable.
    #[inline]
    pub(super) fn spend_log_space(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let Some(waits) = &mut self.durable_waits else { return };
        let Some(record) = self.transactions.get_mut(handle) else { return };
        waits.credit.spend(std::mem::take(&mut record.reserved_blocks));
        balance(waits, self.own, outbox);
    }

    /// Gives back the blocks of a transaction that is undone, except those for the undo of its chunks.
    pub(super) fn give_back_log_space(&mut self, handle: TransactionHandle, outbox: &mut Outbox<Signal>) {
        let Some(waits) = &mut self.durable_waits else { return };
        let Some(record) = self.transactions.get_mut(handle) else { return };
        let undone = record.participants.iter().filter(|participant| participant.has_chunks).count() as u64;
        let reserved = std::mem::take(&mut record.reserved_blocks);
        require!(undone * CHUNK_UNDO_BLOCKS <= reserved, "an undo has its blocks: {reserved} for {undone}");
        waits.credit.give_back(reserved - undone * CHUNK_UNDO_BLOCKS);
        balance(waits, self.own, outbox);
    }

    pub(super) fn on_reserve_log_space_reply(
        &mut self,
        reply: ReserveLogSpaceReply,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(waits) = &mut self.durable_waits else {
            junctor_kernel::invariant::fail("a node with a log reserves space", format_args!("{:?}", reply.grant))
        };
        waits.credit.grant(reply.grant);
        balance(waits, self.own, outbox);
        self.continue_waiting_commits(now, outbox);
    }

    /// Continues the first commits that have got their blocks, in the order of their arrival. Undoes those
    /// that have waited too long. The timer continues the others.
    pub(super) fn continue_waiting_commits(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if let Some(waits) = &mut self.durable_waits {
            // The next timer after a commit begins to wait sets its deadline.
            let deadline = Some(now.plus(waits.wait_max));
            let is_new = |commit: &&mut WaitingCommit| commit.deadline.is_none();
            waits.waiting_space.iter_mut().rev().take_while(is_new).for_each(|commit| commit.deadline = deadline);
        }
        for _ in 0..CONTINUED_PER_SIGNAL_MAX {
            let Some(waits) = &mut self.durable_waits else { return };
            let Some(commit) = waits.waiting_space.front().copied() else { return };
            let is_taken = waits.credit.take(commit.needed);
            if !is_taken && commit.deadline.is_none_or(|deadline| deadline > now) {
                return balance(waits, self.own, outbox);
            }
            waits.waiting_space.pop_front();
            balance(waits, self.own, outbox);
            self.continue_waiting_commit(commit, is_taken, outbox);
        }
    }

    fn continue_waiting_commit(&mut self, commit: WaitingCommit, is_taken: bool, outbox: &mut Outbox<Signal>) {
        let WaitingCommit { transaction, needed, .. } = commit;
        let Some(handle) = self.find(transaction) else {
            junctor_kernel::invariant::fail("a commit waits until it has its blocks", format_args!("{transaction}"))
        };
        let record = self.record(handle);
        require!(record.phase == Phase::WaitingLogSpace, "a commit waits for its blocks: {transaction}");
        record.reserved_blocks = if is_taken { needed } else { 0 };
        let error = match (is_taken, self.is_log_full()) {
            (true, false) => return self.prepare(handle, outbox),
            (true, true) => Error::disk_full(),
            (false, _) => Error::log_overloaded(),
        };
        self.record(handle).running.error = Some(error);
        self.roll_back(handle, outbox);
    }
}

fn exceeds_log(waits: &DurableWaits, needed: u64) -> bool {
    let max = waits.credit.transaction_max();
    // Before the first grant, the maximum is unknown.
    max > 0 && needed > max
}

/// Tells the log what it should know.
#[inline]
fn balance(waits: &mut DurableWaits, own: Address, outbox: &mut Outbox<Signal>) {
    if waits.waiting_space.is_empty() && waits.credit.is_balanced() {
        return;
    }
    let needed = waits.waiting_space.front().map_or(0, |commit| commit.needed);
    if let Some(exchange) = waits.credit.balance(needed) {
        let signal = ReserveLogSpace { reply_to: own, exchange };
        outbox.send(waits.log, Signal::Log(LogSignal::ReserveLogSpace(signal)));
    }
}
