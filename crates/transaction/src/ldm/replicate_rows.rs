//! Replica chains. At prepare, the primary ships the images of its final versions. Each backup writes them as
//! uncommitted versions under the same row ids, so that a lack of memory shows before the commit number is
//! taken. Backups keep old versions down to the horizon, as primaries do.

use std::collections::btree_map::Entry;

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{RowId, StatementNumber, TransactionId};
use junctor_model::key::append_row_key;
use junctor_model::partition::{HashedKey, key_hash};
use junctor_model::row::check_image;
use junctor_signals::commit_transaction::PrepareTransactionReply;
use junctor_signals::replicate_rows::{ReplicateRows, ReplicateRowsReply};
use junctor_signals::{LdmSignal, Module, Signal, TcSignal, crash_point};
use junctor_storage::page::OutOfMemory;
use junctor_storage::partition_store::{PartitionStore, WriteError, Writer};

use super::block::LdmBlock;
use super::copy_rows::PartitionCopy;
use super::deferred::Deferred;
use super::participant_table::ParticipantHandle;
use super::partition_table::{PartitionSlot, SlotIndex};
use super::state::PreparedImages;

const PUT: u8 = 0;
const DELETE: u8 = 1;

/// Maximum number of rows that are shipped in one step.
const ROWS_SHIPPED_MAX: usize = 256;
/// Every version at a backup has the first statement's number, because shipped images are final.
pub(super) const SHIPPED: StatementNumber = StatementNumber(1);

pub(super) struct ShippedRow<'a> {
    pub row: RowId,
    kind: u8,
    pub key: &'a [u8],
    pub image: &'a [u8],
}

/// Why a backup could not keep the images.
enum NotKept {
    /// An image follows a version of this transaction, which is not resolved here.
    Follows(TransactionId),
    Failed(Box<Error>),
}

impl LdmBlock {
    /// Ships the images of every written partition with backups, and continues the prepare. If only one chain
    /// gets images of a short participant, which has nothing else to prepare, its last replica answers tc.
    pub(super) fn ship_images(
        &mut self,
        handle: ParticipantHandle,
        reply_to: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let LdmBlock { partitions, participants, .. } = self;
        let participant = participants.record(handle);
        let has_backups = |index: &&SlotIndex| partitions.slot(**index).chain.len() > 1;
        let chains = participant.written.iter().filter(has_backups).count();
        match chains {
            0 => {
                participant.shipped = participant.rows.len();
                participant.prepare_reply_to = Some(reply_to);
                self.finish_prepare(handle, outbox);
            }
            1 if !participant.is_long() => {
                self.ship_next(handle, reply_to, context, outbox);
                let participant = self.participant(handle);
                require!(participant.take_reply(), "the images of a short participant go at once: {chains}");
            }
            _ => {
                participant.prepare_reply_to = Some(reply_to);
                self.ship_next(handle, self.own, context, outbox);
            }
        }
    }

    /// Ships the next rows. The rows after these follow when all chains have answered, so that a long
    /// transaction takes many short steps at every replica.
    fn ship_next(
        &mut self,
        handle: ParticipantHandle,
        reply_to: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let (primary, epoch) = (self.own, self.epoch);
        let LdmBlock { partitions, participants, memory, .. } = self;
        let builder = &mut memory.row_builder;
        let participant = participants.record(handle);
        let transaction = participant.transaction;
        let mut ship = |slot: &PartitionSlot, images| {
            let Some(next) = slot.chain.get(1).copied() else { return };
            let (partition, chain_position) = (slot.id, 1);
            let signal = ReplicateRows { transaction, epoch, partition, primary, reply_to, chain_position, images };
            outbox.send(next, Signal::Ldm(LdmSignal::ReplicateRows(signal)));
        };
        while participant.outstanding == 0 && participant.shipped < participant.rows.len() {
            let end = participant.rows.len().min(participant.shipped + ROWS_SHIPPED_MAX);
            let rows = &mut participant.rows[participant.shipped..end];
            rows.sort_unstable_by_key(|touched| (touched.slot, touched.row));
            participant.shipped = end;
            for rows in rows.chunk_by(|one, next| one.slot == next.slot) {
                let index = rows[0].slot;
                let slot = partitions.slot(index);
                if slot.chain.len() == 1 {
                    continue;
                }
                let mut images = context.buffers.take(4096);
                slot.guard.owner_read(&slot.token, |store| {
                    for of_row in rows.chunk_by(|one, next| one.row == next.row) {
                        append_newest(store, of_row[0].row, transaction, builder, &mut images);
                    }
                });
                require!(participant.written.contains(&index), "tc knows every written partition: {transaction}");
                if !participant.prepared.contains(&index) {
                    participant.prepared.push(index);
                }
                participant.outstanding += 1;
                ship(slot, images);
            }
        }
        if participant.shipped < participant.rows.len() {
            return;
        }
        // A partition whose writes were all undone has no image, but tc counts its backups.
        for index in &participant.written {
            let slot = partitions.slot(*index);
            if slot.chain.len() > 1 && !participant.prepared.contains(index) {
                participant.prepared.push(*index);
                participant.outstanding += 1;
                ship(slot, context.buffers.take(0));
            }
        }
    }

    pub(super) fn on_replicate_rows(
        &mut self,
        signal: ReplicateRows,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if signal.epoch != self.epoch {
            return self.set_aside(signal.epoch, LdmSignal::ReplicateRows(signal), context);
        }
        let ReplicateRows { transaction, partition, chain_position, .. } = signal;
        let Some(index) = self.partitions.find(partition) else {
            if self.copies_at.is_some() {
                return self.unplaced.push(signal);
            }
            // This cannot happen for a partition in use: main creates a partition at its whole chain before
            // anyone writes it, and closes it to writers before it drops it.
            return answer(signal, Some(Error::table_definition_changed()), context, outbox);
        };
        let slot = self.slot(index);
        require!(
            slot.chain_position == usize::from(chain_position) && chain_position > 0,
            "images come to the backup that they name: {partition:?}"
        );
        let next = slot.chain.get(usize::from(chain_position) + 1).copied();
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else {
            return self.defer(Deferred::ReplicateRows(Box::new(signal)), outbox);
        };
        outbox.crash_point(crash_point::IMAGES_KEEP.before());
        let mut rows = Vec::new();
        let kept = keep_images((&mut store, slot.copy.as_deref_mut()), &signal.images, transaction, &mut rows);
        if kept.is_err() {
            rows.iter().for_each(|row| store.undo(*row, transaction, StatementNumber(0)));
        }
        drop(store);
        if let (Err(_), Some(copy)) = (&kept, &mut slot.copy) {
            rows.iter().for_each(|row| copy.undo(*row, transaction));
        }
        match kept {
            Ok(()) => {}
            Err(NotKept::Follows(other)) => return self.wait_for_images(other, signal),
            Err(NotKept::Failed(error)) => return answer(signal, Some(error), context, outbox),
        }
        match self.backed_up.entry((transaction, partition)) {
            Entry::Occupied(mut kept) => kept.get_mut().rows.extend(rows),
            Entry::Vacant(vacant) => {
                vacant.insert(PreparedImages { slot: index, rows, waiting: Vec::new() });
                let slot = self.slot(index);
                slot.enter();
                slot.images += 1;
            }
        }
        outbox.crash_point(crash_point::IMAGES_KEEP.after());
        match next {
            Some(next) => {
                let signal = ReplicateRows { chain_position: chain_position + 1, ..signal };
                outbox.send(next, Signal::Ldm(LdmSignal::ReplicateRows(signal)));
            }
            None => answer(signal, None, context, outbox),
        }
    }

    pub(super) fn on_replicate_rows_reply(
        &mut self,
        signal: ReplicateRowsReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        if signal.epoch != self.epoch {
            return self.set_aside(signal.epoch, LdmSignal::ReplicateRowsReply(signal), context);
        }
        context.buffers.give(signal.images);
        let handle = self.participants.awaiting(signal.transaction);
        let participant = self.participant(handle);
        if let Some(error) = signal.error {
            participant.prepare_error.get_or_insert(error);
        }
        if !participant.take_reply() {
            return;
        }
        if participant.prepare_error.is_none() {
            self.ship_next(handle, self.own, context, outbox);
            if self.participant(handle).outstanding > 0 {
                return;
            }
        }
        match self.participant(handle).prepare_error.is_none() {
            true => self.finish_prepare(handle, outbox),
            false => self.reply_prepare(handle, outbox),
        }
    }
}

/// Answers the primary, or tc in its place.
fn answer(signal: ReplicateRows, error: Option<Box<Error>>, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
    let ReplicateRows { transaction, epoch, partition, primary, reply_to, images, .. } = signal;
    let reply = match Module::of(reply_to.module) {
        Module::Tc => {
            context.buffers.give(images);
            let reply = PrepareTransactionReply { transaction, epoch, from: primary, chunk_blocks: 0, error };
            Signal::Tc(TcSignal::PrepareTransactionReply(reply))
        }
        _ => Signal::Ldm(LdmSignal::ReplicateRowsReply(ReplicateRowsReply {
            transaction,
            epoch,
            partition,
            images,
            error,
        })),
    };
    outbox.send(reply_to, reply);
}

/// Appends the transaction's final version of a row, unless the row was inserted and deleted by the
/// transaction.
fn append_newest(
    store: &PartitionStore,
    row: RowId,
    transaction: TransactionId,
    builder: &mut super::update_row::RowBuilder,
    out: &mut Vec<u8>,
) {
    let Some(newest) = store.newest(row).filter(|newest| store.state(newest).transaction() == Some(transaction)) else {
        return;
    };
    // A row that is inserted again after a committed deletion is new to the backups.
    let is_new = store.newest_committed(row).is_none_or(|committed| committed.is_deleted());
    if newest.is_deleted() && is_new {
        return;
    }
    // For a deletion, ship the key of the last version that was a row.
    let Some(version) = store.versions(row).find(|version| !version.is_deleted()) else { return };
    let definition = &store.layout().definition;
    let view = store.view(&version, &mut builder.image);
    builder.key.clear();
    append_row_key(&definition.columns, &definition.primary().columns, view, &mut builder.key);
    let image = if newest.is_deleted() { &[][..] } else { view.image() };
    append_shipped(row, newest.is_deleted(), (&builder.key, image), out);
}

/// Appends a row as it is shipped.
pub(super) fn append_shipped(row: RowId, is_deleted: bool, (key, image): (&[u8], &[u8]), out: &mut Vec<u8>) {
    out.extend_from_slice(&row.0.to_le_bytes());
    out.push(if is_deleted { DELETE } else { PUT });
    out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(image.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(image);
}

/// Writes shipped rows as uncommitted versions. After an error, `rows` has the rows that were written before
/// it.
fn keep_images(
    (store, mut copy): (&mut PartitionStore, Option<&mut PartitionCopy>),
    mut images: &[u8],
    transaction: TransactionId,
    rows: &mut Vec<RowId>,
) -> Result<(), NotKept> {
    while let Some(shipped) = next_shipped(&mut images) {
        let ShippedRow { row, kind, key, image } = shipped;
        if kind != DELETE && !check_image(store.format(), image) {
            let message = "The primary replica sent an invalid row image";
            return Err(NotKept::Failed(Error::new(ErrorCode::UnknownError, message)));
        }
        let hash = key_hash(key);
        if let Some(copy) = &mut copy {
            match copy.deleted_by(row) {
                Some(other) if other != transaction => return Err(NotKept::Follows(other)),
                Some(_) => continue,
                None if kind == DELETE && store.newest(row).is_none() && copy.lacks(row) => {
                    copy.delete(row, transaction);
                    rows.push(row);
                    continue;
                }
                None => {}
            }
        }
        let written = match kind {
            // A row that several statements changed may be shipped more than once.
            DELETE if is_deleted_by(store, row, transaction) => Ok(()),
            DELETE => store.delete(row, Writer { transaction, statement: SHIPPED }),
            _ => match store.insert_at(row, HashedKey { hash, key }, image, Writer { transaction, statement: SHIPPED })
            {
                Err(WriteError::Duplicate(found)) if found == row => {
                    store.update(row, image, Writer { transaction, statement: SHIPPED })
                }
                inserted => inserted.map(|_| ()),
            },
        };
        match written {
            Ok(()) => rows.push(row),
            Err(WriteError::OutOfMemory) => {
                return Err(NotKept::Failed(OutOfMemory.to_error(&store.layout().definition.name)));
            }
            Err(error) => return Err(NotKept::Follows(open_writer(store, error))),
        }
    }
    Ok(())
}

/// The other transaction whose open version is where the primary had none any more. The primary has resolved
/// that transaction, and this replica will.
fn open_writer(store: &PartitionStore, error: WriteError) -> TransactionId {
    let at = match error {
        WriteError::Uncommitted(row) | WriteError::Duplicate(row) => store.newest(row),
        WriteError::NotFound | WriteError::OutOfMemory => None,
    };
    match at.and_then(|newest| store.state(&newest).transaction()) {
        Some(other) => other,
        None => junctor_kernel::invariant::fail("a backup has the rows of its primary", format_args!("{error}")),
    }
}

fn is_deleted_by(store: &PartitionStore, row: RowId, transaction: TransactionId) -> bool {
    store
        .newest(row)
        .is_some_and(|newest| newest.is_deleted() && store.state(&newest).transaction() == Some(transaction))
}

pub(super) fn next_shipped<'a>(images: &mut &'a [u8]) -> Option<ShippedRow<'a>> {
    let (row, rest) = images.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first()?;
    let (key_length, rest) = rest.split_first_chunk::<2>()?;
    let (image_length, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*key_length)))?;
    let (image, rest) = rest.split_at_checked(u32::from_le_bytes(*image_length) as usize)?;
    *images = rest;
    Some(ShippedRow { row: RowId(u32::from_le_bytes(*row)), kind: *kind, key, image })
}
