//! Replica chains. At prepare, the primary ships the images of its final versions. Each backup writes them as
//! uncommitted versions under the same row ids, so that a lack of memory shows before the commit number is
//! taken. At commit or undo they are stamped or removed, from the last backup towards the primary. Backups
//! keep old versions down to the horizon, as primaries do.

use std::collections::btree_map::Entry;

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::key::append_row_key;
use junctor_model::partition::{HashedKey, key_hash};
use junctor_model::row::check_image;
use junctor_signals::replicate_rows::{ApplyReplica, ReplicateRows, ReplicateRowsReply};
use junctor_signals::{LdmSignal, Signal};
use junctor_storage::page::OutOfMemory;
use junctor_storage::partition_store::{PartitionStore, WriteError, Writer};

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::participant_table::ParticipantHandle;
use super::partition_table::SlotIndex;
use super::purge::PURGE_TIMER_MS;
use super::state::PreparedImages;

const PUT: u8 = 0;
const DELETE: u8 = 1;

/// Maximum number of rows that are shipped, or resolved at a backup, in one step.
const ROWS_SHIPPED_MAX: usize = 256;
/// Every version at a backup has the first statement's number, because shipped images are final.
const SHIPPED: StatementNumber = StatementNumber(1);

struct ShippedRow<'a> {
    row: RowId,
    kind: u8,
    key: &'a [u8],
    image: &'a [u8],
}

impl LdmBlock {
    /// Begins to ship the images of every written partition with backups. `outstanding` counts the answers.
    pub(super) fn ship_images(
        &mut self,
        handle: ParticipantHandle,
        reply_to: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.participant(handle).prepare_reply_to = Some(reply_to);
        self.ship_next(handle, context, outbox);
    }

    /// Ships the next rows. The rows after these follow when all chains have answered, so that a long
    /// transaction takes many short steps at every replica.
    fn ship_next(&mut self, handle: ParticipantHandle, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let (own, epoch) = (self.own, self.epoch);
        let LdmBlock { partitions, participants, memory, .. } = self;
        let builder = &mut memory.row_builder;
        let participant = participants.record(handle);
        let transaction = participant.transaction;
        // Without backups nothing is shipped, and the loop below would visit all rows in one turn.
        if !participant.touched.iter().any(|index| partitions.slot(*index).chain.len() > 1) {
            participant.shipped = participant.rows.len();
        }
        while participant.outstanding == 0 && participant.shipped < participant.rows.len() {
            let end = participant.rows.len().min(participant.shipped + ROWS_SHIPPED_MAX);
            let rows = &mut participant.rows[participant.shipped..end];
            rows.sort_unstable_by_key(|touched| (touched.slot, touched.row));
            participant.shipped = end;
            for rows in rows.chunk_by(|one, next| one.slot == next.slot) {
                let index = rows[0].slot;
                let slot = partitions.slot(index);
                let Some(next) = slot.chain.get(1).copied() else { continue };
                let mut images = context.buffers.take(4096);
                slot.guard.owner_read(&slot.token, |store| {
                    for of_row in rows.chunk_by(|one, next| one.row == next.row) {
                        append_newest(store, of_row[0].row, transaction, builder, &mut images);
                    }
                });
                if !participant.prepared.contains(&index) {
                    participant.prepared.push(index);
                }
                participant.outstanding += 1;
                let signal =
                    ReplicateRows { transaction, epoch, partition: slot.id, primary: own, chain_position: 1, images };
                outbox.send(next, Signal::Ldm(LdmSignal::ReplicateRows(signal)));
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
        let ReplicateRows { transaction, epoch, partition, primary, chain_position, images } = signal;
        let index = self.partitions.find(partition);
        let Some(index) = index else {
            // This cannot happen for a partition in use: main creates a partition at its whole chain before
            // anyone writes it, and closes it to writers before it drops it.
            let error = Some(Error::table_definition_changed());
            return answer(primary, ReplicateRowsReply { transaction, epoch, partition, images, error }, outbox);
        };
        let slot = self.slot(index);
        require!(
            slot.chain_position == usize::from(chain_position) && chain_position > 0,
            "images come to the backup that they name: {partition:?}"
        );
        let next = slot.chain.get(usize::from(chain_position) + 1).copied();
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else {
            let signal = ReplicateRows { transaction, epoch, partition, primary, chain_position, images };
            return self.defer(Deferred::ReplicateRows(Box::new(signal)), outbox);
        };
        let mut rows = Vec::new();
        let kept = prepare_images(&mut store, &images, transaction, &mut rows);
        if let Err(error) = kept {
            rows.iter().for_each(|row| store.undo(*row, transaction, StatementNumber(0)));
            drop(store);
            let reply = ReplicateRowsReply { transaction, epoch, partition, images, error: Some(error) };
            return answer(primary, reply, outbox);
        }
        drop(store);
        match self.backed_up.entry((transaction, partition)) {
            Entry::Occupied(mut kept) => kept.get_mut().rows.extend(rows),
            Entry::Vacant(vacant) => {
                vacant.insert(PreparedImages { slot: index, rows, next: 0 });
                self.slot(index).enter();
            }
        }
        match next {
            Some(next) => {
                let signal = ReplicateRows {
                    transaction,
                    epoch,
                    partition,
                    primary,
                    chain_position: chain_position + 1,
                    images,
                };
                outbox.send(next, Signal::Ldm(LdmSignal::ReplicateRows(signal)));
            }
            None => answer(primary, ReplicateRowsReply { transaction, epoch, partition, images, error: None }, outbox),
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
            self.ship_next(handle, context, outbox);
            if self.participant(handle).outstanding > 0 {
                return;
            }
        }
        match self.participant(handle).prepare_error.is_none() {
            true => self.finish_prepare(handle, outbox),
            false => self.reply_prepare(handle, outbox),
        }
    }

    pub(super) fn on_apply_replica(&mut self, signal: ApplyReplica, outbox: &mut Outbox<Signal>) {
        let ApplyReplica { transaction, partition, primary, chain_position, number, participants } = signal;
        if chain_position == 0 {
            return self.on_chain_applied(transaction, outbox);
        }
        if primary == self.own {
            return self.pass_replica_on(signal, outbox);
        }
        let kept = self.backed_up.get(&(transaction, partition)).map(|kept| kept.slot);
        let Some(index) = kept.or_else(|| self.partitions.find(partition)) else {
            // The partition was dropped here before the images arrived. Only the primary still knows the rest
            // of the chain, so return the order to it.
            return outbox.send(primary, Signal::Ldm(LdmSignal::ApplyReplica(signal)));
        };
        let slot = self.slot(index);
        require!(
            slot.chain_position == usize::from(chain_position),
            "a commit comes to the backup that it names: {partition:?}"
        );
        let chain = &slot.chain;
        let before = chain.get(usize::from(chain_position) - 1).copied().unwrap_or(primary);
        if !self.apply_images(index, transaction, number) {
            let signal = ApplyReplica { transaction, partition, primary, chain_position, number, participants };
            return self.defer(Deferred::ApplyReplica(signal), outbox);
        }
        self.start_purge_timer(PURGE_TIMER_MS, outbox);
        let signal =
            ApplyReplica { transaction, partition, primary, chain_position: chain_position - 1, number, participants };
        outbox.send(before, Signal::Ldm(LdmSignal::ApplyReplica(signal)));
    }

    /// At the primary: continues with the previous replica of the chain, because a backup no longer has the
    /// partition.
    fn pass_replica_on(&mut self, signal: ApplyReplica, outbox: &mut Outbox<Signal>) {
        let chain_position = signal.chain_position - 1;
        let handle = self.participants.find(signal.transaction);
        let participant = handle.and_then(|handle| self.participants.get_mut(handle));
        let touched = participant.into_iter().flat_map(|participant| &participant.touched);
        let mut slots = touched.filter_map(|index| self.partitions.get(*index));
        let chain = slots.find(|slot| slot.id == signal.partition).map(|slot| &slot.chain);
        match chain.and_then(|chain| chain.get(usize::from(chain_position)).copied()).filter(|_| chain_position > 0) {
            Some(before) => {
                outbox.send(before, Signal::Ldm(LdmSignal::ApplyReplica(ApplyReplica { chain_position, ..signal })))
            }
            None => self.on_chain_applied(signal.transaction, outbox),
        }
    }

    /// Resolves the next rows. Returns false when more rows are left, or a reader is inside the guard.
    fn apply_images(&mut self, index: SlotIndex, transaction: TransactionId, number: CommitNumber) -> bool {
        let LdmBlock { partitions, backed_up, purge, .. } = self;
        let slot = partitions.slot(index);
        let key = (transaction, slot.id);
        let Some(kept) = backed_up.get_mut(&key) else {
            // A backup that could not store the images ended the chain, so later backups have none. Such a
            // transaction can only be undone.
            require!(number.0 == 0, "a backup holds the images of transaction {transaction} that commits as {number}");
            return true;
        };
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return false };
        let end = kept.rows.len().min(kept.next + ROWS_SHIPPED_MAX);
        let rows = &kept.rows[kept.next..end];
        for row in rows {
            match number.0 {
                0 => store.undo(*row, transaction, StatementNumber(0)),
                _ => store.commit(*row, transaction, number),
            }
        }
        kept.next = end;
        if store.purge_pending().is_some() {
            purge.add(index, &mut slot.is_purging);
        }
        drop(store);
        if end < kept.rows.len() {
            return false;
        }
        self.backed_up.remove(&key);
        if self.slot(index).leave() {
            self.free_partition(index);
        }
        true
    }

    /// Called when the chain of one partition is resolved. After the last chain, resolves the rows here.
    fn on_chain_applied(&mut self, transaction: TransactionId, outbox: &mut Outbox<Signal>) {
        let handle = self.participants.awaiting(transaction);
        if self.participant(handle).take_reply() {
            self.run_resolution(handle, outbox);
        }
    }
}

fn answer(primary: Address, reply: ReplicateRowsReply, outbox: &mut Outbox<Signal>) {
    outbox.send(primary, Signal::Ldm(LdmSignal::ReplicateRowsReply(reply)));
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
    out.extend_from_slice(&row.0.to_le_bytes());
    out.push(if newest.is_deleted() { DELETE } else { PUT });
    out.extend_from_slice(&(builder.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(image.len() as u32).to_le_bytes());
    out.extend_from_slice(&builder.key);
    out.extend_from_slice(image);
}

/// Writes shipped rows as uncommitted versions. After an error, `rows` has the rows that were written before
/// it.
fn prepare_images(
    store: &mut PartitionStore,
    mut images: &[u8],
    transaction: TransactionId,
    rows: &mut Vec<RowId>,
) -> Result<(), Box<Error>> {
    while let Some(shipped) = next_shipped(&mut images) {
        let ShippedRow { row, kind, key, image } = shipped;
        if kind != DELETE && !check_image(store.format(), image) {
            return Err(Error::new(ErrorCode::UnknownError, "The primary replica sent an invalid row image"));
        }
        let hash = key_hash(key);
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
            Err(WriteError::OutOfMemory) => return Err(OutOfMemory.to_error(&store.layout().definition.name)),
            Err(error) => {
                junctor_kernel::invariant::fail("a backup has the rows of its primary", format_args!("{error}"))
            }
        }
    }
    Ok(())
}

fn is_deleted_by(store: &PartitionStore, row: RowId, transaction: TransactionId) -> bool {
    store
        .newest(row)
        .is_some_and(|newest| newest.is_deleted() && store.state(&newest).transaction() == Some(transaction))
}

fn next_shipped<'a>(images: &mut &'a [u8]) -> Option<ShippedRow<'a>> {
    let (row, rest) = images.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first()?;
    let (key_length, rest) = rest.split_first_chunk::<2>()?;
    let (image_length, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*key_length)))?;
    let (image, rest) = rest.split_at_checked(u32::from_le_bytes(*image_length) as usize)?;
    *images = rest;
    Some(ShippedRow { row: RowId(u32::from_le_bytes(*row)), kind: *kind, key, image })
}
