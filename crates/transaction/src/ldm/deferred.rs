//! Work that continues in a later turn, so that no signal takes long.

use std::collections::VecDeque;

use junctor_kernel::{Address, Context, Outbox};
use junctor_model::id::{PartitionId, TransactionId};
use junctor_signals::change_schema::ChangePartition;
use junctor_signals::copy_rows::CopyRowsReply;
use junctor_signals::inbox::ContinueWork;
use junctor_signals::replicate_rows::ReplicateRows;
use junctor_signals::{LdmSignal, Signal};

use super::block::LdmBlock;
use super::change_partition::IndexBuild;
use super::participant_table::ParticipantHandle;
use super::publish_catalog::TakeOver;
use super::replay::AllIndexesBuild;
use super::state::{ImagesEnd, ImagesEndKind, WriteWork};

/// Maximum number of deferred steps in one turn. The others wait for the next turn, so that signals that have
/// arrived run first.
const STEPS_PER_TURN_MAX: usize = 8;

/// Maximum number of writes that are resumed after one signal because it granted their locks. The others wait
/// for the next turn.
const GRANTS_PER_SIGNAL_MAX: usize = 32;

/// Work that continues in a later turn.
#[derive(Debug)]
pub(super) enum Deferred {
    Write(Box<WriteWork>),
    Prepare(ParticipantHandle),
    Resolution(ParticipantHandle),
    Stamp(PartitionId),
    ReleaseLocks(TransactionId),
    Images(ImagesEnd),
    ReplicateRows(Box<ReplicateRows>),
    /// Copied rows that wait for a reader.
    CopyRows(Box<CopyRowsReply>),
    ChangePartition(Box<ChangePartition>),
    /// The first catalog of another main.
    TakeOver(Box<TakeOver>),
    /// Writes whose partition may be written now.
    HeldWrites,
    BuildIndex(IndexBuild),
    /// Batches of recovery that wait for a reader.
    ReplayRows,
    AllIndexesBuild(Box<AllIndexesBuild>),
    WriteCheckpoint,
    LoadCheckpoint,
    Purge,
    Compact(PartitionId),
}

/// Deferred steps, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    queue: VecDeque<Deferred>,
    /// Whether a `ContinueWork` signal to this block is in flight.
    is_reminded: bool,
}

impl DeferredWork {
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Drops the next step of a prepare.
    pub fn forget_prepare(&mut self, participant: ParticipantHandle) {
        self.queue.retain(|work| !matches!(work, Deferred::Prepare(handle) if *handle == participant));
    }

    /// Drops the steps of schema changes of other mains than this one.
    pub fn forget_changes_before(&mut self, main: Address) {
        self.queue.retain(|work| match work {
            Deferred::ChangePartition(signal) => signal.reply_to == main,
            Deferred::BuildIndex(build) => build.reply_to == main,
            Deferred::TakeOver(take_over) => take_over.signal.reply_to == main,
            _ => true,
        });
    }

    /// Takes out the writes of these transactions.
    pub fn take_writes(&mut self, of: impl Fn(TransactionId) -> bool) -> Vec<WriteWork> {
        let mut taken = Vec::new();
        for work in std::mem::take(&mut self.queue) {
            match work {
                Deferred::Write(work) if of(work.request.transaction) => taken.push(*work),
                work => self.queue.push_back(work),
            }
        }
        taken
    }

    /// Whether the commit of the transaction's images waits for a reader.
    pub fn commits_images(&self, transaction: TransactionId) -> bool {
        let commits = |end: &ImagesEnd| matches!(end.kind, ImagesEndKind::Commit { .. });
        let of_transaction = |end: &ImagesEnd| end.transaction == transaction && commits(end);
        self.queue.iter().any(|work| matches!(work, Deferred::Images(end) if of_transaction(end)))
    }
}

impl LdmBlock {
    /// Defers work to a later turn.
    pub(super) fn defer(&mut self, work: Deferred, outbox: &mut Outbox<Signal>) {
        self.deferred.queue.push_back(work);
        self.remind(outbox);
    }

    fn remind(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.deferred.is_reminded {
            self.deferred.is_reminded = true;
            outbox.send_next_turn(self.own, Signal::Ldm(LdmSignal::ContinueWork(ContinueWork { work: 0 })));
        }
    }

    pub(super) fn on_continue_work(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.deferred.is_reminded = false;
        // A step that defers itself again goes to the end of the queue and runs in the next turn.
        for _ in 0..self.deferred.queue.len().min(STEPS_PER_TURN_MAX) {
            match self.deferred.queue.pop_front() {
                Some(Deferred::Write(work)) => self.run_write(*work, outbox),
                Some(Deferred::Prepare(participant)) => self.collect_rows(participant, outbox),
                Some(Deferred::Stamp(partition)) => self.stamp(partition, outbox),
                Some(Deferred::ReleaseLocks(transaction)) => self.release_ended(transaction, outbox),
                Some(Deferred::Resolution(participant)) => self.run_resolution(participant, outbox),
                Some(Deferred::Images(end)) => self.resolve_images(end, outbox),
                Some(Deferred::ReplicateRows(signal)) => self.on_replicate_rows(*signal, context, outbox),
                Some(Deferred::CopyRows(reply)) => self.on_copy_rows_reply(*reply, context, outbox),
                Some(Deferred::ChangePartition(signal)) => self.on_change_partition(*signal, context, outbox),
                Some(Deferred::TakeOver(take_over)) => self.take_over_catalog(take_over, context, outbox),
                Some(Deferred::HeldWrites) => self.resume_held_writes(context, outbox),
                Some(Deferred::BuildIndex(build)) => self.build_index(build, outbox),
                Some(Deferred::ReplayRows) => self.replay_batches(outbox),
                Some(Deferred::AllIndexesBuild(build)) => self.continue_build_indexes(build, outbox),
                Some(Deferred::WriteCheckpoint) => self.continue_checkpoint(context, outbox),
                Some(Deferred::LoadCheckpoint) => self.resume_load(outbox),
                Some(Deferred::Purge) => {
                    self.purge(outbox);
                }
                Some(Deferred::Compact(partition)) => self.compact(partition, outbox),
                None => break,
            }
        }
        if !self.deferred.queue.is_empty() {
            self.remind(outbox);
        }
    }

    /// Resumes writes whose locks were granted while a signal was handled.
    pub(super) fn run_granted(&mut self, outbox: &mut Outbox<Signal>) {
        for _ in 0..GRANTS_PER_SIGNAL_MAX {
            let Some(token) = self.waits.granted.pop_front() else { return };
            self.on_granted(token, outbox);
        }
        if !self.waits.granted.is_empty() {
            self.remind(outbox);
        }
    }
}
