//! The redo stream of one ldm. Records collect in memory. They are appended to a file every 10 ms or 64 KiB,
//! and the file is synced every second. One append runs at a time, so load makes appends larger instead of
//! more frequent. Two files of 64 MiB are kept.

use std::collections::VecDeque;

use junctor_kernel::{
    Context, Duration, FileBuffer, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, WorldRequest, require,
};
use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion, TransactionId};
use junctor_model::key::append_row_key;
use junctor_signals::Signal;
use junctor_signals::write_rows::WriteRows;
use junctor_storage::partition_store::PartitionStore;
use junctor_storage::redo::{RedoBuffer, RedoHeader};

use super::block::LdmBlock;
use super::partition_table::PartitionSlot;
use super::update_row::RowBuilder;

/// Number of bytes that are written without waiting for the timer.
const FLUSH_BYTES: usize = 64 * 1024;
/// Number of bytes after which the next file begins.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of unwritten redo above which no new write begins.
const WAITING_BYTES_MAX_DEFAULT: usize = 64 * 1024 * 1024;

const WRITE_TIMER_MS: u64 = 10;
const SYNC_TIMER_MS: u64 = 1000;

const WRITE_TIMER: u64 = 1;
const SYNC_TIMER: u64 = 2;
pub(super) const PURGE_TIMER: u64 = 3;

const FOLDER: &str = "redo";
const LANE: FileLane = FileLane::Log;

const OPENED: u64 = 1;
const APPENDED: u64 = 2;
const SYNCED: u64 = 3;
const REMOVED: u64 = 4;

#[derive(Debug)]
pub(super) struct RedoLog {
    instance: u16,
    buffer: RedoBuffer,
    file: Option<FileId>,
    /// Number of the file that is open or being opened.
    file_number: u64,
    /// Bytes appended to the open file, including those in flight.
    file_bytes: u64,
    is_opening: bool,
    /// Bytes of the append in flight.
    under_way: Option<usize>,
    spare: FileBuffer,
    spare_records: Vec<u8>,
    waiting_bytes_max: usize,
    /// Whether bytes were appended since the last sync.
    is_unsynced: bool,
    sync_timer_runs: bool,
    write_timer_runs: bool,
    /// Writes that are held back until the unwritten redo is below its limit.
    pub held_writes: VecDeque<WriteRows>,
}

impl RedoLog {
    pub fn new(instance: u16) -> RedoLog {
        RedoLog {
            instance,
            buffer: RedoBuffer::new(),
            file: None,
            file_number: 0,
            file_bytes: 0,
            is_opening: false,
            under_way: None,
            spare: FileBuffer::new(),
            spare_records: Vec::new(),
            waiting_bytes_max: WAITING_BYTES_MAX_DEFAULT,
            is_unsynced: false,
            sync_timer_runs: false,
            write_timer_runs: false,
            held_writes: VecDeque::new(),
        }
    }

    pub fn start(&mut self, outbox: &mut Outbox<Signal>) {
        outbox.request(WorldRequest::CreateFolder { path: FOLDER.into(), lane: LANE, token: REMOVED });
        self.open(outbox);
    }

    /// Begins the record of a transaction's changes in a partition.
    pub fn begin(&mut self, slot: &PartitionSlot, transaction: TransactionId, number: CommitNumber, participants: u32) {
        self.begin_of((slot.id, slot.layout.definition.version), transaction, number, participants);
    }

    /// As [`RedoLog::begin`], for a partition at this schema version.
    pub fn begin_of(
        &mut self,
        (partition, schema_version): (PartitionId, SchemaVersion),
        transaction: TransactionId,
        number: CommitNumber,
        participants: u32,
    ) {
        self.buffer.begin(RedoHeader {
            commit_number: number,
            transaction,
            participant_count: participants,
            partition,
            schema_version,
        });
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
        let Some(newest) = store.newest(row).filter(|newest| newest.transaction() == Some(transaction)) else { return };
        if !newest.is_deleted() {
            return self.buffer.put(row, store.view(&newest, &mut builder.image).image());
        }
        let Some(before) = store.newest_committed(row) else { return };
        let before = if before.is_deleted() { None } else { Some(before) };
        let Some(before) = before else { return };
        let definition = &store.layout().definition;
        let view = store.view(&before, &mut builder.image);
        builder.key.clear();
        append_row_key(&definition.columns, &definition.primary().columns, view, &mut builder.key);
        self.buffer.delete(row, &builder.key);
    }

    pub fn end(&mut self) {
        self.buffer.end();
    }

    /// Ends a record that is followed by more records of the same transaction and partition.
    pub fn end_continued(&mut self) {
        self.buffer.end_continued();
    }

    /// Whether the amount of unwritten redo forbids new writes.
    pub fn is_behind(&self) -> bool {
        self.waiting_bytes() > self.waiting_bytes_max
    }

    pub fn set_waiting_bytes_max(&mut self, bytes: usize) {
        self.waiting_bytes_max = bytes;
    }

    /// Bytes of records that are not written yet.
    pub fn waiting_bytes(&self) -> usize {
        self.buffer.bytes().len() + self.under_way.unwrap_or(0)
    }

    /// Writes immediately, without waiting for the timer, if enough bytes have collected.
    pub fn flush_if_long(&mut self, outbox: &mut Outbox<Signal>) {
        if self.buffer.bytes().len() >= FLUSH_BYTES {
            self.flush(outbox);
        }
    }

    /// Appends the collected bytes, unless an append is in flight or no file is open.
    fn flush(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(file) = self.file.filter(|_| self.under_way.is_none() && !self.buffer.bytes().is_empty()) else {
            return;
        };
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        let records = self.buffer.take(std::mem::take(&mut self.spare_records));
        bytes.extend_from_slice(&records);
        self.spare_records = records;
        let offset = self.file_bytes;
        self.file_bytes += bytes.len() as u64;
        self.under_way = Some(bytes.len());
        outbox.request(WorldRequest::WriteFile { file, offset, bytes, token: APPENDED });
    }

    /// Writes and syncs the collected bytes before the node stops.
    pub fn stop(&mut self, outbox: &mut Outbox<Signal>) {
        self.flush(outbox);
        if let Some(file) = self.file {
            self.is_unsynced = false;
            outbox.request(WorldRequest::SyncFile { file, token: SYNCED });
        }
    }

    fn open(&mut self, outbox: &mut Outbox<Signal>) {
        self.is_opening = true;
        let path = self.path(self.file_number);
        let (mode, is_direct) = (FileMode::CreateEmpty, false);
        outbox.request(WorldRequest::OpenFile { path, mode, lane: LANE, is_direct, token: OPENED });
    }

    fn path(&self, number: u64) -> Box<str> {
        format!("{FOLDER}/ldm{}-{number}.redo", self.instance).into()
    }

    fn on_opened(&mut self, file: FileId, outbox: &mut Outbox<Signal>) {
        require!(self.is_opening, "a redo file is opened that was asked for");
        self.is_opening = false;
        self.file_bytes = 0;
        if let Some(old) = self.file.replace(file) {
            // Sync the old file's records before closing it, because the next sync covers only the new file.
            outbox.request(WorldRequest::SyncFile { file: old, token: REMOVED });
            outbox.request(WorldRequest::CloseFile { file: old, token: REMOVED });
        }
        if self.file_number >= 2 {
            let path = self.path(self.file_number - 2);
            outbox.request(WorldRequest::DeleteFile { path, lane: LANE, token: REMOVED });
        }
        self.flush(outbox);
    }

    fn on_appended(&mut self, length: u32, bytes: FileBuffer, outbox: &mut Outbox<Signal>) {
        require!(self.under_way == Some(length as usize), "an append of redo is written whole: {length} bytes");
        self.under_way = None;
        self.spare = bytes;
        self.is_unsynced = true;
        if self.file_bytes >= FILE_BYTES_MAX && !self.is_opening {
            self.file_number += 1;
            self.open(outbox);
        }
        if !self.sync_timer_runs {
            self.sync_timer_runs = true;
            let after = Duration::from_millis(SYNC_TIMER_MS);
            outbox.request(WorldRequest::StartTimer { after, token: SYNC_TIMER });
        }
        self.flush_if_long(outbox);
    }

    fn on_sync_timer(&mut self, outbox: &mut Outbox<Signal>) {
        self.sync_timer_runs = false;
        if let Some(file) = self.file.filter(|_| self.is_unsynced) {
            self.is_unsynced = false;
            outbox.request(WorldRequest::SyncFile { file, token: SYNCED });
        }
    }
}

impl LdmBlock {
    /// Bytes of redo records that are not written yet.
    pub fn redo_bytes_waiting(&self) -> usize {
        self.redo.waiting_bytes()
    }

    /// Starts the timer that writes redo, unless it is running.
    pub(super) fn start_write_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.redo.write_timer_runs {
            self.redo.write_timer_runs = true;
            let after = Duration::from_millis(WRITE_TIMER_MS);
            outbox.request(WorldRequest::StartTimer { after, token: WRITE_TIMER });
        }
    }

    pub(super) fn on_timer(&mut self, token: u64, _context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match token {
            SYNC_TIMER => self.redo.on_sync_timer(outbox),
            PURGE_TIMER => self.on_purge_timer(outbox),
            _ => {
                self.redo.write_timer_runs = false;
                self.redo.flush(outbox);
                if self.redo.waiting_bytes() > 0 {
                    self.start_write_timer(outbox);
                }
            }
        }
    }

    pub(super) fn on_file_done(
        &mut self,
        result: FileResult,
        bytes: FileBuffer,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        // These commits were already acknowledged. Continuing would pretend that their records are on disk.
        require!(result.is_ok(), "redo of ldm {}: {result:?}", self.own.instance);
        match result {
            Ok(FileOutcome::Opened { file, .. }) => self.redo.on_opened(file, outbox),
            Ok(FileOutcome::Written { length, .. }) => {
                self.redo.on_appended(length, bytes, outbox);
                while !self.redo.is_behind()
                    && let Some(request) = self.redo.held_writes.pop_front()
                {
                    self.begin_write_rows(request, context, outbox);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
}
