//! Hot path: at most 40 instructions per row, not counting the copy. A long row is compared with its
//! predecessor.
//!
//! The log records of one ldm, formed at commit, or at the prepare of a long participant, and delivered to
//! the log block at the end of the turn. While no commit waits for the log, records of several turns are
//! delivered together. The log already has earlier ones then, so its next cycle asks for them.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Buffer, Context, Outbox, require};
use junctor_model::id::{CommitNumber, RowId, TransactionId};
use junctor_model::key::append_row_key;
use junctor_signals::append_records::{AppendRecords, AppendRecordsReply};
use junctor_signals::write_rows::WriteRows;
use junctor_signals::{LogSignal, Signal};
use junctor_storage::log::{FormedRecords, RecordBuffer, RecordHeader, RecordKind, SectionHeader};
use junctor_storage::partition_store::PartitionStore;

use super::block::LdmBlock;
use super::participant_table::ParticipantHandle;
use super::partition_table::PartitionSlot;
use super::update_row::RowBuilder;

/// Bytes that are delivered before the end of the turn.
const DELIVERED_BYTES: usize = 64 * 1024;
/// Bytes that are delivered although no commit waits for the log.
const COLLECTED_BYTES: usize = 16 * 1024;
/// Delivered bytes that the log has not taken yet, above which no new write begins.
const UNTAKEN_BYTES_MAX_DEFAULT: usize = 64 * 1024 * 1024;
/// Bytes of an image up to which its record has all of it (`docs/decisions/0086-edits-in-the-log.md`).
const WHOLE_IMAGE_BYTES_MAX: usize = 1024;
/// Maximum capacity in bytes of a buffer of images or edits that is kept for the next row.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Buffers kept for reuse.
const SPARE_BUFFERS_MAX: usize = 8;

/// The log block of a durable node, and the counts of records that it reads.
#[derive(Clone, Debug)]
pub struct LogTarget {
    /// The log block.
    pub log: Address,
    /// How many records each stream has formed.
    pub formed: Arc<FormedRecords>,
}

#[derive(Debug)]
pub(super) struct RecordStream {
    /// `None` on a node without a data directory, which forms no records.
    target: Option<LogTarget>,
    instance: u16,
    buffer: RecordBuffer,
    /// Records formed in this life, and how many of them are delivered.
    formed: u64,
    delivered: u64,
    /// Bytes delivered in this life.
    delivered_bytes: u64,
    /// Bytes in delivered buffers that the log has not returned.
    untaken_bytes: usize,
    untaken_bytes_max: usize,
    /// How many transactions have chunks of images here.
    images_ids: u64,
    /// Whether the log has asked for the records.
    is_requested: bool,
    spare: Vec<Buffer>,
    /// Writes that begin once the log has taken enough.
    pub held_writes: VecDeque<WriteRows>,
    /// Long participants whose prepare continues once the log has taken enough.
    pub held_prepares: VecDeque<ParticipantHandle>,
}

impl RecordStream {
    pub fn new(instance: u16, target: Option<LogTarget>) -> RecordStream {
        RecordStream {
            target,
            instance,
            buffer: RecordBuffer::new(),
            formed: 0,
            delivered: 0,
            delivered_bytes: 0,
            untaken_bytes: 0,
            untaken_bytes_max: UNTAKEN_BYTES_MAX_DEFAULT,
            images_ids: 0,
            is_requested: false,
            spare: Vec::new(),
            held_writes: VecDeque::new(),
            held_prepares: VecDeque::new(),
        }
    }

    /// Whether commits are recorded at all.
    pub fn is_enabled(&self) -> bool {
        self.target.is_some()
    }

    /// Begins the record of a short participant.
    pub fn begin_commit(&mut self, transaction: TransactionId, number: CommitNumber, participants: u16) {
        let kind = RecordKind::Commit;
        self.buffer.begin(&RecordHeader { kind, participants, number, transaction, chunk: 0 });
    }

    /// A number for the chunks of a transaction's images.
    pub fn next_images_id(&mut self) -> u64 {
        self.images_ids += 1;
        self.images_ids
    }

    /// Begins a part of a long participant's changes.
    pub fn begin_chunk(&mut self, transaction: TransactionId, chunk: u32) {
        let (kind, number) = (RecordKind::Chunk, CommitNumber(0));
        self.buffer.begin(&RecordHeader { kind, participants: 0, number, transaction, chunk });
    }

    /// Begins the record that commits the chunks of a long participant.
    pub fn begin_chunk_commit(
        &mut self,
        transaction: TransactionId,
        number: CommitNumber,
        participants: u16,
        chunks: u32,
    ) {
        let kind = RecordKind::ChunkCommit;
        self.buffer.begin(&RecordHeader { kind, participants, number, transaction, chunk: chunks });
    }

    /// Forms the record of a long participant that is undone: its chunks no longer keep the log from being
    /// trimmed.
    pub fn add_chunk_undo(&mut self, transaction: TransactionId) {
        let (kind, number) = (RecordKind::ChunkUndo, CommitNumber(0));
        self.buffer.begin(&RecordHeader { kind, participants: 0, number, transaction, chunk: 0 });
        self.end();
    }

    /// Begins the changes of a partition in the open record.
    pub fn begin_section(&mut self, slot: &PartitionSlot) {
        let row_format = slot.layout.definition.version;
        self.buffer.begin_section(&SectionHeader { partition: slot.id, origin: 0, row_format });
    }

    /// Adds the transaction's final version of a row, unless the row was inserted and deleted by the
    /// transaction.
    pub fn add_newest(
        &mut self,
        store: &PartitionStore,
        row: RowId,
        transaction: TransactionId,
        builder: &mut RowBuilder,
    ) {
        let Some(newest) = store.newest(row).filter(|newest| store.state(newest).transaction() == Some(transaction))
        else {
            return;
        };
        if !newest.is_deleted() {
            let image = store.view(&newest, &mut builder.image).image();
            if image.len() > WHOLE_IMAGE_BYTES_MAX {
                return self.add_long(store, (row, image), (&mut builder.base, &mut builder.edits));
            }
            return self.buffer.put(row, image);
        }
        let Some(before) = store.newest_committed(row).filter(|before| !before.is_deleted()) else { return };
        let definition = &store.layout().definition;
        let view = store.view(&before, &mut builder.image);
        builder.key.clear();
        append_row_key(&definition.columns, &definition.primary().columns, view, &mut builder.key);
        self.buffer.delete(row, &builder.key);
    }

    /// Adds a long image: its difference from the committed version below if it has at most half of the
    /// bytes, otherwise the whole image.
    #[inline(never)]
    fn add_long(
        &mut self,
        store: &PartitionStore,
        (row, image): (RowId, &[u8]),
        (base, edits): (&mut Vec<u8>, &mut Vec<u8>),
    ) {
        edits.clear();
        let before = store.newest_committed(row).filter(|before| !before.is_deleted());
        let number = before.as_ref().and_then(|before| store.state(before).commit_number());
        match (before, number) {
            (Some(before), Some(number))
                if store.format().append_edits(store.view(&before, base).image(), image, image.len() / 2, edits) =>
            {
                self.buffer.edit(row, number, image, edits);
            }
            _ => self.buffer.put(row, image),
        }
        for buffer in [base, edits] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }

    /// Ends the open record and publishes that it is formed. The caller stamps, replies or marks only
    /// afterwards. Returns the length of the record.
    pub fn end(&mut self) -> usize {
        let Some(target) = &self.target else {
            junctor_kernel::invariant::fail("only a durable node forms records", format_args!("{}", self.instance))
        };
        let length = self.buffer.end();
        self.formed += 1;
        target.formed.publish(usize::from(self.instance), self.formed);
        length
    }

    /// Bytes of the open record so far.
    pub fn open_bytes(&self) -> usize {
        self.buffer.open_bytes()
    }

    /// Whether the log has so much to take that no new write may begin.
    pub fn is_behind(&self) -> bool {
        self.untaken_bytes > self.untaken_bytes_max
    }

    pub fn set_untaken_bytes_max(&mut self, bytes: usize) {
        self.untaken_bytes_max = bytes;
    }

    /// Bytes of the records formed in this life, those of this turn excluded.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Bytes formed that the log has not taken.
    pub fn untaken_bytes(&self) -> usize {
        self.untaken_bytes + self.buffer.len()
    }

    /// Delivers the formed records before the end of the turn if they are many.
    pub fn deliver_if_long(&mut self, from: Address, outbox: &mut Outbox<Signal>) {
        if self.buffer.len() >= DELIVERED_BYTES {
            self.deliver(from, outbox);
        }
    }

    /// Delivers the formed records at the end of the turn.
    pub fn request(&mut self) {
        self.is_requested = true;
    }

    /// Delivers the records of this turn, and those that were kept, unless they can wait for more.
    fn deliver_or_collect(&mut self, from: Address, outbox: &mut Outbox<Signal>) {
        let is_requested = std::mem::take(&mut self.is_requested);
        let is_awaited = self.target.as_ref().is_some_and(|target| target.formed.is_awaited());
        // The log begins a cycle in time only if it has a record.
        let can_wait = self.untaken_bytes > 0 && self.buffer.len() < COLLECTED_BYTES;
        if is_requested || is_awaited || !can_wait {
            self.deliver(from, outbox);
        }
    }

    fn deliver(&mut self, from: Address, outbox: &mut Outbox<Signal>) {
        let Some(target) = self.target.as_ref().filter(|_| self.formed > self.delivered) else { return };
        let bytes = self.buffer.take(self.spare.pop().unwrap_or_default());
        self.untaken_bytes += bytes.len();
        self.delivered_bytes += bytes.len() as u64;
        self.delivered = self.formed;
        let signal = AppendRecords { from, stream: self.instance, records_formed: self.formed, bytes };
        outbox.send(target.log, Signal::Log(LogSignal::AppendRecords(signal)));
    }
}

impl LdmBlock {
    /// Bytes of log records formed that the log has not taken.
    pub fn untaken_record_bytes(&self) -> usize {
        self.records.untaken_bytes()
    }

    /// Delivers the records of this turn.
    pub fn before_publish(&mut self, outbox: &mut Outbox<Signal>) {
        self.records.deliver_or_collect(self.own, outbox);
    }

    pub(super) fn on_append_records_reply(
        &mut self,
        AppendRecordsReply { bytes }: AppendRecordsReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        require!(self.records.untaken_bytes >= bytes.len(), "a buffer of records returns once");
        self.records.untaken_bytes -= bytes.len();
        if self.records.spare.len() < SPARE_BUFFERS_MAX {
            self.records.spare.push(bytes);
        }
        // Prepares first: their transactions hold locks that writes may wait for.
        while !self.records.is_behind()
            && let Some(participant) = self.records.held_prepares.pop_front()
        {
            self.collect_rows(participant, outbox);
        }
        while !self.records.is_behind()
            && let Some(request) = self.records.held_writes.pop_front()
        {
            self.begin_write_rows(request, context, outbox);
        }
    }
}
