//! The copy of rows to a node that returns. From its first epoch on, the node gets the images of all
//! transactions, so it lacks only what a snapshot at the start of that epoch sees. The primaries keep this
//! snapshot. A copied row goes below every version that is here, and a row with a later committed version or
//! deletion needs no copy. So nothing is copied over a newer row, and no deleted row comes back. Rows come in
//! the order of their ids, one request at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use junctor_kernel::{Address, Context, Outbox};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, PartitionId, RowId, TransactionId};
use junctor_model::key::append_row_key;
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_model::partition::{HashedKey, key_hash};
use junctor_model::planted_bug::PlantedBug;
use junctor_model::row::check_image;
use junctor_signals::copy_rows::{CopyPartitions, CopyPartitionsReply, CopyRows, CopyRowsReply};
use junctor_signals::{LdmSignal, MainSignal, Signal, crash_point};
use junctor_storage::page::OutOfMemory;
use junctor_storage::partition_store::{CopyError, PartitionStore, Writer};

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::replicate_rows::{SHIPPED, append_shipped, next_shipped};

/// Bytes after which a reply ends.
const REPLY_BYTES: usize = 64 << 10;
/// Maximum number of row ids that one request examines.
const ROW_IDS_MAX: u32 = if cfg!(test) { 2 } else { 2048 };

/// The copy of one partition while it is not complete.
#[derive(Debug)]
pub(super) struct PartitionCopy {
    /// The snapshot.
    at: CommitNumber,
    /// Rows below this one are copied.
    next: RowId,
    /// Undecided deletions of rows that are not here yet.
    deleting: BTreeMap<RowId, TransactionId>,
    /// Rows from `next` on that are deleted. They are copied no more.
    deleted: BTreeSet<RowId>,
}

/// The partitions that an ldm copies, one after the other.
#[derive(Debug)]
pub(super) struct CopyRun {
    reply_to: Address,
    /// The first is under way.
    partitions: VecDeque<PartitionId>,
}

impl PartitionCopy {
    pub fn new(at: CommitNumber) -> PartitionCopy {
        PartitionCopy { at, next: RowId(0), deleting: BTreeMap::new(), deleted: BTreeSet::new() }
    }

    /// Whether the row may still be copied.
    pub fn lacks(&self, row: RowId) -> bool {
        row >= self.next
    }

    /// The transaction that deletes a row which is not here yet.
    pub fn deleted_by(&self, row: RowId) -> Option<TransactionId> {
        self.deleting.get(&row).copied()
    }

    /// Keeps the undecided deletion of a row that is not here yet.
    pub fn delete(&mut self, row: RowId, transaction: TransactionId) {
        self.deleting.insert(row, transaction);
    }

    /// The transaction, which has an image of the row, commits. `is_deleted` says whether the image is a
    /// deletion of a row that is here.
    pub fn commit(&mut self, row: RowId, transaction: TransactionId, is_deleted: bool) {
        let is_first = self.deleting.get(&row) == Some(&transaction);
        if is_first {
            self.deleting.remove(&row);
        }
        if (is_first || is_deleted) && self.lacks(row) && !PlantedBug::ForgetDeletionInCopy.is_planted() {
            self.deleted.insert(row);
        }
    }

    /// The transaction, which has an image of the row, is rolled back.
    pub fn undo(&mut self, row: RowId, transaction: TransactionId) {
        if self.deleting.get(&row) == Some(&transaction) {
            self.deleting.remove(&row);
        }
    }
}

impl LdmBlock {
    /// Handles the images of a partition that have come before it.
    pub(super) fn resume_unplaced(&mut self, partition: PartitionId, outbox: &mut Outbox<Signal>) {
        for images in std::mem::take(&mut self.unplaced) {
            match images.partition == partition {
                true => self.defer(Deferred::ReplicateRows(Box::new(images)), outbox),
                false => self.unplaced.push(images),
            }
        }
    }

    /// Begins to copy all partitions of this ldm.
    pub(super) fn on_copy_partitions(&mut self, signal: CopyPartitions, outbox: &mut Outbox<Signal>) {
        let partitions = self.partitions.ids().into();
        self.copying = Some(Box::new(CopyRun { reply_to: signal.reply_to, partitions }));
        self.request_copy(outbox);
    }

    /// Asks the primary for the next rows. Repeats the request in each epoch, because another epoch drops it.
    pub(super) fn request_copy(&mut self, outbox: &mut Outbox<Signal>) {
        while let Some(run) = &mut self.copying {
            let Some(partition) = run.partitions.front().copied() else { return self.end_copy_run(None, outbox) };
            let slot = self.partitions.find(partition).map(|index| self.partitions.slot(index));
            let Some((slot, copy)) = slot.and_then(|slot| Some((&slot.chain, slot.copy.as_deref()?))) else {
                run.partitions.pop_front();
                continue;
            };
            let Some(primary) = slot.first().filter(|at| at.node != self.own.node) else { return };
            let (reply_to, epoch) = (self.own, self.epoch);
            let request = CopyRows { reply_to, epoch, partition, from: copy.next, at: copy.at };
            outbox.send(*primary, Signal::Ldm(LdmSignal::CopyRows(request)));
            return;
        }
    }

    fn end_copy_run(&mut self, error: Option<Box<Error>>, outbox: &mut Outbox<Signal>) {
        let Some(run) = self.copying.take() else { return };
        let reply = CopyPartitionsReply { error };
        outbox.send(run.reply_to, Signal::Main(MainSignal::CopyPartitionsReply(reply)));
    }

    /// Sends the next rows of a partition to the node that copies it.
    pub(super) fn on_copy_rows(&mut self, signal: CopyRows, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        if signal.epoch != self.epoch {
            return self.set_aside(signal.epoch, LdmSignal::CopyRows(signal), context);
        }
        let CopyRows { reply_to, epoch, partition, from, at } = signal;
        let (rows, partition_rows) = (Vec::new(), 0);
        let mut reply = CopyRowsReply { epoch, partition, from, next: Some(from), rows, partition_rows, error: None };
        let index = self.partitions.find(partition);
        // A commit below the snapshot may wait for a reader until it is stable.
        if let (Some(index), true) = (index, self.shared.sequence.stable() >= at) {
            let LdmBlock { partitions, memory, .. } = self;
            let slot = partitions.slot(index);
            reply.rows = context.buffers.take(REPLY_BYTES / 4);
            let stop = from.0.saturating_add(ROW_IDS_MAX);
            let mut next = Some(from);
            while let Some(first) = next.filter(|row| row.0 < stop && reply.rows.len() < REPLY_BYTES) {
                let builder = &mut memory.row_builder;
                let rows = &mut reply.rows;
                slot.guard.owner_read(&slot.token, |store| {
                    if store.snapshot_floor() > at {
                        reply.error = Some(given_up());
                    }
                    if from == RowId(0) {
                        reply.partition_rows = store.statistics().live_rows;
                    }
                    next = append_rows(store, (first, stop), at, builder, rows);
                });
            }
            reply.next = next;
        } else if index.is_none() {
            reply.error = Some(Error::table_definition_changed());
        }
        outbox.send(reply_to, Signal::Ldm(LdmSignal::CopyRowsReply(reply)));
    }

    pub(super) fn on_copy_rows_reply(
        &mut self,
        reply: CopyRowsReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let is_awaited = reply.epoch == self.epoch
            && self.copying.as_ref().is_some_and(|run| run.partitions.front() == Some(&reply.partition));
        let index = self.partitions.find(reply.partition).filter(|_| is_awaited);
        let slot = index.map(|index| self.partitions.slot(index));
        let Some(slot) = slot.filter(|slot| slot.copy.as_ref().is_some_and(|copy| copy.next == reply.from)) else {
            return context.buffers.give(reply.rows);
        };
        if reply.error.is_some() {
            return self.end_copy_run(reply.error, outbox);
        }
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else {
            return self.defer(Deferred::CopyRows(Box::new(reply)), outbox);
        };
        let Some(copy) = slot.copy.as_deref_mut() else { return };
        outbox.crash_point(crash_point::COPY_ROWS.before());
        let put = put_rows(&mut store, copy, &reply.rows);
        let progress = &self.shared.progress;
        if reply.from == RowId(0) {
            progress.add_total(reply.partition_rows, 0);
        }
        if let Ok(count) = put {
            progress.add(count, reply.rows.len() as u64);
        }
        if let Some(next) = reply.next {
            copy.next = next;
            copy.deleted = copy.deleted.split_off(&next);
        } else {
            store.end_copy(copy.at);
        }
        drop(store);
        let error = match put {
            Err(error) => Some(error),
            Ok(_) if reply.next.is_none() && !copy.deleting.is_empty() => Some(given_up()),
            Ok(_) => None,
        };
        if reply.next.is_none() {
            slot.copy = None;
        }
        context.buffers.give(reply.rows);
        outbox.crash_point(crash_point::COPY_ROWS.after());
        if error.is_some() {
            return self.end_copy_run(error, outbox);
        }
        self.request_copy(outbox);
    }
}

/// Appends up to a hold of rows that the snapshot sees. Returns where to continue.
fn append_rows(
    store: &PartitionStore,
    (first, stop): (RowId, u32),
    at: CommitNumber,
    builder: &mut super::update_row::RowBuilder,
    out: &mut Vec<u8>,
) -> Option<RowId> {
    let limit = store.row_id_limit();
    let definition = &store.layout().definition;
    let end = limit.0.min(stop).min(first.0.saturating_add(ROWS_PER_HOLD_MAX as u32));
    for row in (first.0..end).map(RowId) {
        if let Some(version) = store.visible(row, at, None) {
            let view = store.view(&version, &mut builder.image);
            builder.key.clear();
            append_row_key(&definition.columns, &definition.primary().columns, view, &mut builder.key);
            append_shipped(row, false, (&builder.key, view.image()), out);
        }
        if out.len() >= REPLY_BYTES {
            return (row.0 + 1 < limit.0).then_some(RowId(row.0 + 1));
        }
    }
    (end < limit.0).then_some(RowId(end))
}

/// Puts copied rows below the changes that came before. Returns the number of rows that it was given.
fn put_rows(store: &mut PartitionStore, copy: &mut PartitionCopy, mut rows: &[u8]) -> Result<u64, Box<Error>> {
    let mut count = 0;
    while let Some(copied) = next_shipped(&mut rows) {
        count += 1;
        if !check_image(store.format(), copied.image) {
            let message = "The primary replica sent an invalid row image";
            return Err(Error::new(ErrorCode::UnknownError, message));
        }
        if copy.deleted.contains(&copied.row) {
            continue;
        }
        let key = HashedKey { hash: key_hash(copied.key), key: copied.key };
        let put = store.put_copy(copied.row, key, copied.image, copy.at);
        let put = put.and_then(|()| match copy.deleting.remove(&copied.row) {
            Some(transaction) => {
                let deletion = store.delete(copied.row, Writer { transaction, statement: SHIPPED });
                deletion.map_err(|_| CopyError::OutOfMemory)
            }
            None => Ok(()),
        });
        put.map_err(|error| match error {
            CopyError::OutOfMemory => OutOfMemory.to_error(&store.layout().definition.name),
            CopyError::TooOld => given_up(),
        })?;
    }
    Ok(count)
}

/// The error of a copy whose snapshot is lost.
#[cold]
fn given_up() -> Box<Error> {
    let message = "Too many rows were changed during the copy, so that their old versions had to be given up";
    Error::new(ErrorCode::SnapshotTooOld, message)
}
