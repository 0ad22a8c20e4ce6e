//! Handles tc's orders to prepare, commit and undo.

use junctor_kernel::{Address, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::TransactionId;
use junctor_signals::commit_transaction::{
    CommitTransaction, CommitTransactionReply, PrepareTransaction, PrepareTransactionReply, TransactionPart,
    UndoTransaction, UndoTransactionReply,
};
use junctor_signals::{LdmSignal, Signal, TcSignal};
use junctor_storage::log::{CHUNK_BYTES_MAX, record_blocks};
use junctor_storage::row::VersionState;

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::participant_table::ParticipantHandle;
use super::record_images::RecordedImages;
use super::state::{
    CommitDecision, ImagesEnd, ImagesEndKind, RECORDED_PER_TURN_MAX, Resolution, ResolutionKind, TouchedRow,
};

/// Maximum number of such steps in one turn.
const COLLECTED_PER_TURN_MAX: usize = 8;

impl LdmBlock {
    pub(super) fn on_prepare_transaction(
        &mut self,
        signal: PrepareTransaction,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let PrepareTransaction { transaction, epoch, reply_to } = signal;
        if epoch != self.epoch {
            return self.set_aside(epoch, LdmSignal::PrepareTransaction(signal), context);
        }
        let error = match self.participants.find(transaction) {
            Some(handle) => {
                let participant = self.participant(handle);
                let is_first = participant.resolution.is_none() && participant.prepare_reply_to.is_none();
                require!(is_first && participant.outstanding == 0, "a transaction is prepared once: {transaction}");
                return self.ship_images(handle, reply_to, context, outbox);
            }
            // tc prepares only ldms where the transaction has written. This one no longer knows the
            // transaction, so its writes are lost.
            None => Some(transaction_unknown(transaction)),
        };
        let reply = PrepareTransactionReply { transaction, epoch, from: self.own, chunk_blocks: 0, error };
        outbox.send(reply_to, Signal::Tc(TcSignal::PrepareTransactionReply(reply)));
    }

    pub(super) fn on_commit_transaction(&mut self, signal: CommitTransaction, outbox: &mut Outbox<Signal>) {
        let CommitTransaction { transaction, reply_to, number, position, participants, part } = signal;
        if part == TransactionPart::Images {
            let recorded = RecordedImages::default();
            let kind = ImagesEndKind::Commit { number, position, participants, recorded };
            return self.commit_images(ImagesEnd { transaction, reply_to, kind }, outbox);
        }
        let has_written = part == TransactionPart::Rows;
        let Some(handle) = self.participants.find(transaction) else {
            // If a statement was refused here, tc counts this ldm as a participant although it has no record
            // of the transaction. That is allowed only if the transaction has written nothing here.
            require!(!has_written, "a participant knows the transaction {transaction} that it commits as {number}");
            let reply = CommitTransactionReply { transaction, from: self.own, part, position };
            return outbox.send(reply_to, reply.to(reply_to));
        };
        let participant = self.participant(handle);
        // A node may have locks only, while the written partitions are on nodes of other groups.
        let is_counted = participants > 0 || !has_written;
        require!(number.0 > 0 && is_counted, "a commit has a number, and its writers are counted");
        require!(
            has_written != participant.written.is_empty(),
            "tc knows where a transaction has written: {transaction}"
        );
        let is_prepared = participant.collected.is_some() || !participant.is_long();
        require!(is_prepared, "a long participant is prepared before it commits: {transaction}");
        let is_shipped = participant.prepared.is_empty() || participant.shipped == participant.rows.len();
        require!(is_shipped, "every image is shipped before the commit: {transaction}");
        let kind = ResolutionKind::Commit(CommitDecision { number, participants, position });
        self.begin_resolution(handle, kind, reply_to, outbox);
    }

    pub(super) fn on_undo_transaction(
        &mut self,
        signal: UndoTransaction,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let UndoTransaction { transaction, epoch, reply_to, newer_than, ends, is_backup } = signal;
        if epoch > self.epoch {
            return self.set_aside(epoch, LdmSignal::UndoTransaction(signal), context);
        }
        if is_backup {
            return self.resolve_images(ImagesEnd { transaction, reply_to, kind: ImagesEndKind::Undo(epoch) }, outbox);
        }
        let Some(handle) = self.participants.find(transaction) else {
            let reply = UndoTransactionReply { transaction, epoch, from: self.own, log_blocks: 0 };
            return outbox.send(reply_to, Signal::Tc(TcSignal::UndoTransactionReply(reply)));
        };
        let kind = ResolutionKind::Undo { newer_than, ends, epoch };
        let running = self.participant(handle).resolution.as_mut().map(|resolution| &mut resolution.kind);
        if let Some(running @ &mut ResolutionKind::Undo { epoch: started, .. }) = running {
            if epoch < started {
                // The order waited for its epoch, and the tc is gone in the one after it.
                return;
            }
            // An epoch has started since the last order: tc repeats it, or undoes all instead of a statement.
            if ends && started < epoch {
                *running = kind;
                return;
            }
        }
        if ends {
            return self.begin_resolution(handle, kind, reply_to, outbox);
        }
        let participant = self.participant(handle);
        require!(participant.resolution.is_none(), "a transaction has one resolution at a time: {transaction}");
        participant.resolution = Some(Resolution::new(kind, reply_to));
        self.run_resolution(handle, outbox);
    }

    /// Begins to commit or undo the rows here.
    fn begin_resolution(
        &mut self,
        handle: ParticipantHandle,
        kind: ResolutionKind,
        reply_to: Address,
        outbox: &mut Outbox<Signal>,
    ) {
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        require!(participant.resolution.is_none(), "a transaction has one resolution at a time: {transaction}");
        let collected = participant.collected.as_ref().map(|collected| collected.next);
        require!(
            collected.is_none_or(|collected| collected == participant.rows.len()),
            "the prepare ends before the transaction, and no row is written in between: {transaction}"
        );
        require!(participant.outstanding == 0, "the prepare ends before the transaction: {transaction}");
        participant.resolution = Some(Resolution::new(kind, reply_to));
        self.run_resolution(handle, outbox);
    }
}

impl LdmBlock {
    /// Continues a prepare whose backups have the images. A short participant has nothing more to prepare.
    pub(super) fn finish_prepare(&mut self, handle: ParticipantHandle, outbox: &mut Outbox<Signal>) {
        match self.participant(handle).is_long() {
            true => self.collect_rows(handle, outbox),
            false => self.reply_prepare(handle, outbox),
        }
    }

    /// Collects the next rows of a long participant by partition, and forms their chunk records. The commit
    /// then takes constant time for each partition and forms only one more record. Continues in later turns.
    pub(super) fn collect_rows(&mut self, handle: ParticipantHandle, outbox: &mut Outbox<Signal>) {
        let mut left = RECORDED_PER_TURN_MAX;
        for _ in 0..COLLECTED_PER_TURN_MAX {
            if self.records.is_behind() {
                // Wait until the log has taken the records that are formed. Other prepares and writes wait as
                // well.
                return self.records.held_prepares.push_back(handle);
            }
            let Some(bytes) = self.collect_next(handle, outbox) else {
                return self.reply_prepare(handle, outbox);
            };
            if bytes > left {
                break;
            }
            left -= bytes;
        }
        self.defer(Deferred::Prepare(handle), outbox);
    }

    /// Collects some rows. Returns the bytes of their records, or `None` when no row is left. The owner reads
    /// its changes without keeping readers out.
    fn collect_next(&mut self, handle: ParticipantHandle, outbox: &mut Outbox<Signal>) -> Option<usize> {
        let own = self.own;
        let LdmBlock { partitions, participants, records, memory, .. } = self;
        let builder = &mut memory.row_builder;
        let participant = participants.record(handle);
        let transaction = participant.transaction;
        let rows_per_step = participant.rows_per_step();
        let collected = participant.collected.get_or_insert_default();
        let next = collected.next;
        let count = rows_per_step.min(participant.rows.len() - next);
        if count == 0 {
            return None;
        }
        let rows = &mut participant.rows[next..next + count];
        rows.sort_unstable_by_key(|touched| (touched.slot, touched.row));
        collected.next += count;
        let mut bytes = 0;
        for rows in rows.chunk_by(|one, next| one.slot == next.slot) {
            let index = rows[0].slot;
            let position = collected.rows.iter().position(|(slot, _)| *slot == index);
            let position = position.unwrap_or_else(|| {
                collected.rows.push((index, Vec::new()));
                collected.rows.len() - 1
            });
            let list = &mut collected.rows[position].1;
            let slot = &*partitions.slot(index);
            let mut has_section = false;
            slot.guard.owner_read(&slot.token, |store| {
                for TouchedRow { row, statement, .. } in rows.iter().copied() {
                    // A row changed by several statements has several entries. Only the last counts.
                    let is_last = store.newest_state(row) == Some(VersionState::Open(transaction, statement));
                    if !is_last || list.last() == Some(&row) {
                        continue;
                    }
                    list.push(row);
                    if !records.is_enabled() || !slot.is_logged() {
                        continue;
                    }
                    if records.open_bytes() == 0 {
                        records.begin_chunk(transaction, collected.chunks);
                        collected.chunks += 1;
                        has_section = false;
                    }
                    if !has_section {
                        records.begin_section(slot);
                        has_section = true;
                    }
                    records.add_newest(store, row, transaction, builder);
                    if records.open_bytes() >= CHUNK_BYTES_MAX / 2 {
                        let length = records.end();
                        bytes += length;
                        collected.chunk_blocks += record_blocks(length);
                    }
                }
            });
        }
        if records.open_bytes() > 0 {
            let length = records.end();
            bytes += length;
            collected.chunk_blocks += record_blocks(length);
        }
        records.deliver_if_long(own, outbox);
        Some(bytes)
    }

    pub(super) fn reply_prepare(&mut self, handle: ParticipantHandle, outbox: &mut Outbox<Signal>) {
        let (from, epoch) = (self.own, self.epoch);
        let participant = self.participant(handle);
        let transaction = participant.transaction;
        let Some(reply_to) = participant.prepare_reply_to.take() else {
            junctor_kernel::invariant::fail("a prepare is answered once", format_args!("{transaction}"))
        };
        let error = participant.prepare_error.take();
        let chunk_blocks = participant.collected.as_ref().map_or(0, |collected| collected.chunk_blocks);
        let reply = PrepareTransactionReply { transaction, epoch, from, chunk_blocks, error };
        outbox.send(reply_to, Signal::Tc(TcSignal::PrepareTransactionReply(reply)));
    }
}

#[cold]
fn transaction_unknown(transaction: TransactionId) -> Box<Error> {
    let message = format!("Got temporary error: a participant does not know transaction {transaction}");
    Error::new(ErrorCode::TemporaryFailure, message)
}
