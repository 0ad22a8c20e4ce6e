//! Recovery: applies the row changes that the log block reads back, and builds the indexes afterwards. Both
//! end before the node serves anyone, so nothing is locked and no record is formed.

use std::collections::VecDeque;

use junctor_kernel::{Address, Outbox};
use junctor_model::id::{CommitNumber, PartitionId, TableId};
use junctor_signals::recover_log::{BuildIndexes, BuildIndexesReply, DAMAGE_ADVICE, ReplayRows, ReplayRowsReply};
use junctor_signals::{LogSignal, MainSignal, Signal, crash_point};
use junctor_storage::log::{Operation, Section};
use junctor_storage::partition_store::{IndexRebuild, PartitionStore, ReplayError};

use super::block::LdmBlock;
use super::deferred::Deferred;

/// Maximum number of rows of one step of an index build.
const ROWS_PER_STEP_MAX: usize = 8192;
/// Bytes of the commit number before each section of a batch.
const NUMBER_BYTES: usize = 8;

/// Batches of changes, in the order in which they must be applied.
#[derive(Debug, Default)]
pub(super) struct ReplayQueue {
    batches: VecDeque<ReplayRows>,
    /// Bytes of the first batch that are applied.
    position: usize,
}

impl ReplayQueue {
    pub fn len(&self) -> usize {
        self.batches.len()
    }
}

/// The build of all indexes of this ldm, one partition after the other.
#[derive(Debug)]
pub(super) struct AllIndexesBuild {
    reply_to: Address,
    /// The partitions that are not complete; the last one is under way.
    partitions: Vec<PartitionId>,
    rebuild: IndexRebuild,
    /// The greatest AUTO_INCREMENT value of each complete partition that has one.
    greatest: Vec<(TableId, u64)>,
}

/// How the changes of a batch ended.
enum ReplayEnd {
    Done,
    /// A reader is inside the guard of a partition.
    Busy,
    Failed(Box<str>),
}

impl LdmBlock {
    pub(super) fn on_replay_rows(&mut self, signal: ReplayRows, outbox: &mut Outbox<Signal>) {
        self.replay.batches.push_back(signal);
        // A batch that waits for a reader keeps the later ones waiting too: changes of a row must stay in
        // order.
        if self.replay.batches.len() == 1 {
            self.replay_batches(outbox);
        }
    }

    /// Applies the queued batches. Defers a batch while a reader is inside the guard of its partition.
    pub(super) fn replay_batches(&mut self, outbox: &mut Outbox<Signal>) {
        while let Some(batch) = self.replay.batches.pop_front() {
            outbox.crash_point(crash_point::RECOVERY_APPLY.before());
            let mut position = std::mem::take(&mut self.replay.position);
            let error = match self.replay_sections(&batch.sections, &mut position) {
                ReplayEnd::Done => None,
                ReplayEnd::Failed(error) => Some(error),
                ReplayEnd::Busy => {
                    self.replay.position = position;
                    self.replay.batches.push_front(batch);
                    return self.defer(Deferred::ReplayRows, outbox);
                }
            };
            outbox.crash_point(crash_point::RECOVERY_APPLY.after());
            let ReplayRows { reply_to, sections: bytes } = batch;
            let reply = ReplayRowsReply { from: self.own, bytes, error };
            outbox.send(reply_to, Signal::Log(LogSignal::ReplayRowsReply(reply)));
        }
    }

    /// Applies the sections from `position` on, and moves `position` past each section that is applied.
    fn replay_sections(&mut self, sections: &[u8], position: &mut usize) -> ReplayEnd {
        while *position < sections.len() {
            let rest = &sections[*position..];
            let Some((number, section, length)) = next_section(rest) else {
                return ReplayEnd::Failed(format!("a section of the log is damaged; {DAMAGE_ADVICE}").into());
            };
            // A section of a table that was dropped later has no partition.
            if let Some(index) = self.partitions.find(section.header.partition) {
                let slot = self.partitions.slot(index);
                let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return ReplayEnd::Busy };
                if let Err(error) = replay_section(&mut store, &section, number) {
                    let table = &slot.layout.definition.name;
                    let text = message(error, section.header.partition, table);
                    return ReplayEnd::Failed(match error {
                        ReplayError::OutOfMemory => text,
                        _ => format!("commit {number} in the log: {text}").into(),
                    });
                }
            }
            self.shared.progress.add(section.operations().count() as u64, 0);
            *position += length;
        }
        ReplayEnd::Done
    }

    pub(super) fn on_build_indexes(&mut self, signal: BuildIndexes, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::RECOVERY_INDEX.before());
        let BuildIndexes { reply_to } = signal;
        let (partitions, rebuild) = (self.partitions.ids(), IndexRebuild::new());
        for partition in &partitions {
            let Some(slot) = self.partitions.find(*partition).map(|index| self.partitions.slot(index)) else {
                continue;
            };
            if let Some(store) = slot.guard.try_enter(&mut slot.token) {
                self.shared.progress.add_total(store.statistics().live_rows, 0);
            }
        }
        let build = AllIndexesBuild { reply_to, partitions, rebuild, greatest: Vec::new() };
        self.continue_build_indexes(Box::new(build), outbox);
    }

    /// Runs one step of the build, and defers the others.
    pub(super) fn continue_build_indexes(&mut self, mut build: Box<AllIndexesBuild>, outbox: &mut Outbox<Signal>) {
        let Some(partition) = build.partitions.last().copied() else {
            return self.end_build_indexes(*build, None, outbox);
        };
        if let Some(index) = self.partitions.find(partition) {
            let slot = self.partitions.slot(index);
            let Some(mut store) = slot.guard.try_enter(&mut slot.token) else {
                return self.defer(Deferred::AllIndexesBuild(build), outbox);
            };
            if let Err(error) = store.check_replayed() {
                drop(store);
                let table = &self.partitions.slot(index).layout.definition.name;
                let error = message(error, partition, table);
                return self.end_build_indexes(*build, Some(error), outbox);
            }
            match store.build_indexes_step(&mut build.rebuild, ROWS_PER_STEP_MAX) {
                Ok(false) => {
                    drop(store);
                    self.shared.progress.add(build.rebuild.take_rows(), 0);
                    return self.defer(Deferred::AllIndexesBuild(build), outbox);
                }
                Ok(true) => self.shared.progress.add(build.rebuild.take_rows(), 0),
                Err(_) => {
                    drop(store);
                    let error = out_of_memory(&self.partitions.slot(index).layout.definition.name);
                    return self.end_build_indexes(*build, Some(error), outbox);
                }
            }
        }
        build.partitions.pop();
        let greatest = build.rebuild.end_partition();
        if greatest > 0 {
            build.greatest.push((partition.table, greatest));
        }
        self.defer(Deferred::AllIndexesBuild(build), outbox);
    }

    fn end_build_indexes(&mut self, build: AllIndexesBuild, error: Option<Box<str>>, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::RECOVERY_INDEX.after());
        let reply = BuildIndexesReply { from: self.own, greatest: build.greatest, error };
        outbox.send(build.reply_to, Signal::Main(MainSignal::BuildIndexesReply(reply)));
    }
}

/// The commit number and the section at the start of a batch, and the bytes of both. `None` if the bytes are
/// damaged.
fn next_section(bytes: &[u8]) -> Option<(CommitNumber, Section<'_>, usize)> {
    let (number, rest) = bytes.split_first_chunk::<NUMBER_BYTES>()?;
    let (section, after) = Section::decode(rest)?;
    Some((CommitNumber(u64::from_le_bytes(*number)), section, bytes.len() - after.len()))
}

fn replay_section(store: &mut PartitionStore, section: &Section<'_>, number: CommitNumber) -> Result<(), ReplayError> {
    for operation in section.operations() {
        match operation {
            Operation::Put { row, image } => store.replay_put(row, image, number)?,
            Operation::Edit { row, edit } => store.replay_edit(row, &edit, number)?,
            Operation::Delete { row, .. } => store.replay_delete(row),
        }
    }
    Ok(())
}

#[cold]
fn message(error: ReplayError, partition: PartitionId, table: &str) -> Box<str> {
    match error {
        ReplayError::OutOfMemory => out_of_memory(table),
        error => format!("table '{table}', partition {}: {error}; {DAMAGE_ADVICE}", partition.index).into(),
    }
}

#[cold]
fn out_of_memory(table: &str) -> Box<str> {
    format!("the data memory is exhausted while table '{table}' is recovered; raise TotalMemory").into()
}
