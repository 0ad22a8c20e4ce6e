//! Recovery: loads the rows of this ldm's partitions from checkpoint files, before the log is replayed.
//!
//! The page table of a partition names its frames. Frames that lie next to each other are read together, and
//! two reads are under way while rows are put, so that disk and processor work at the same time.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{
    Address, FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, WorldRequest, require,
};
use junctor_model::checkpoint::{FrameLocation, PageTableLocation, checkpoint_path};
use junctor_model::id::PartitionId;
use junctor_signals::checkpoint::{LoadCheckpoint, LoadCheckpointReply};
use junctor_signals::recover_log::{DAMAGE_ADVICE, MISSING_ADVICE, advice_about};
use junctor_signals::restart_progress::RestartProgress;
use junctor_signals::{MainSignal, Signal, crash_point};
use junctor_storage::checkpoint::CheckpointError;
use junctor_storage::partition_store::PartitionStore;

use super::block::LdmBlock;
use super::deferred::Deferred;

/// Bytes of frames that one read fetches. A single longer item has a read of its own.
const READ_BYTES: u64 = 1 << 20;
/// Bytes of a page table that one read fetches. A page table has no limit, but a read has one.
const TABLE_READ_BYTES: u64 = if cfg!(test) { 100 } else { 1 << 20 };
/// Reads under way.
const READS_MAX: usize = 2;
/// Files that stay open. More than the reads under way, because the frames of a partition change between few
/// files.
const FILES_MAX: usize = 4;
/// Offsets and lengths of reads are multiples of this.
const BLOCK_BYTES: u64 = 4096;

/// The upper byte of the tokens of this file's requests. The lower bytes count the reads.
pub(super) const LOAD_FILE: u64 = 2;
const TOKEN: u64 = LOAD_FILE << 56;
/// The token of opens and closes, in place of a count.
const NO_READ: u64 = (1 << 56) - 1;

/// The loading under way.
#[derive(Debug)]
pub(super) struct CheckpointLoad {
    reply_to: Address,
    /// The partitions that are not complete. The first is under way.
    partitions: VecDeque<(PartitionId, PageTableLocation)>,
    /// Bytes of the first partition's page table that are requested, and those that are read.
    table_requested: u64,
    table: Vec<u8>,
    /// Frames of the first partition that are not requested yet, in the order of loading.
    frames: VecDeque<FrameLocation>,
    /// Requested reads, in the order of loading.
    reads: VecDeque<Read>,
    /// Open files by number, the one that was used last at the end.
    files: Vec<(u32, FileId)>,
    /// The file that is being opened.
    opening: Option<u32>,
    next_read: u64,
    is_deferred: bool,
    progress: Arc<RestartProgress>,
    spare: Vec<FileBuffer>,
}

/// A read, and the items that lie in its bytes.
#[derive(Debug)]
struct Read {
    number: u64,
    /// Offset of the first byte in the file.
    start: u64,
    items: Vec<FrameLocation>,
    /// Whether the only item is a part of the page table.
    is_table: bool,
    /// The answer.
    bytes: Option<FileBuffer>,
}

/// How a step ended that works on rows.
enum Taken {
    Done,
    /// A reader is inside the guard of the partition.
    Busy,
    Failed(Box<str>),
}

impl LdmBlock {
    pub(super) fn on_load_checkpoint(&mut self, signal: LoadCheckpoint, outbox: &mut Outbox<Signal>) {
        require!(self.load.is_none(), "an ldm loads one checkpoint");
        let LoadCheckpoint { reply_to, partitions } = signal;
        self.load = Some(Box::new(CheckpointLoad {
            reply_to,
            partitions: partitions.into(),
            table_requested: 0,
            table: Vec::new(),
            frames: VecDeque::new(),
            reads: VecDeque::new(),
            files: Vec::new(),
            opening: None,
            next_read: 0,
            is_deferred: false,
            progress: Arc::clone(&self.shared.progress),
            spare: Vec::new(),
        }));
        self.continue_load(outbox);
    }

    pub(super) fn on_load_file(
        &mut self,
        (token, result, bytes): (u64, FileResult, FileBuffer),
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(load) = &mut self.load else { return };
        match result {
            Ok(FileOutcome::Opened { file, .. }) => {
                if let Some(number) = load.opening.take() {
                    load.files.push((number, file));
                }
            }
            Ok(FileOutcome::Read { .. }) => {
                let number = token & NO_READ;
                if let Some(read) = load.reads.iter_mut().find(|read| read.number == number) {
                    read.bytes = Some(bytes);
                }
            }
            Ok(FileOutcome::Closed) => return,
            Ok(other) => junctor_kernel::invariant::fail("a request has its own answer", format_args!("{other:?}")),
            Err(error) => {
                let text = load.read_error(token & NO_READ, error);
                return self.end_load(Some(text), outbox);
            }
        }
        self.continue_load(outbox);
    }

    /// Takes the reads that are answered, and requests the next ones.
    pub(super) fn continue_load(&mut self, outbox: &mut Outbox<Signal>) {
        loop {
            match self.take_read() {
                Some(Taken::Done) => continue,
                Some(Taken::Failed(error)) => return self.end_load(Some(error), outbox),
                Some(Taken::Busy) => {
                    let Some(load) = &mut self.load else { return };
                    if !std::mem::replace(&mut load.is_deferred, true) {
                        self.defer(Deferred::LoadCheckpoint, outbox);
                    }
                    return;
                }
                None => {}
            }
            let Some(load) = &mut self.load else { return };
            if load.has_table() && load.frames.is_empty() && load.reads.is_empty() {
                outbox.crash_point(crash_point::RECOVERY_LOAD.after());
                load.partitions.pop_front();
                load.table_requested = 0;
            }
            if load.partitions.is_empty() {
                return self.end_load(None, outbox);
            }
            while load.request_next(outbox) {}
            return;
        }
    }

    pub(super) fn resume_load(&mut self, outbox: &mut Outbox<Signal>) {
        if let Some(load) = &mut self.load {
            load.is_deferred = false;
            self.continue_load(outbox);
        }
    }

    /// Takes the first read if it is answered.
    fn take_read(&mut self) -> Option<Taken> {
        let LdmBlock { load: Some(load), partitions, .. } = self else { return None };
        let (partition, table) = *load.partitions.front()?;
        let read = load.reads.pop_front_if(|read| read.bytes.is_some())?;
        let Some(index) = partitions.find(partition) else {
            junctor_kernel::invariant::fail("partitions are made before they are loaded", format_args!("{partition:?}"))
        };
        let slot = partitions.slot(index);
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else {
            load.reads.push_front(read);
            return Some(Taken::Busy);
        };
        let result = match read.is_table {
            true => load.take_table(&mut store, partition, table, &read),
            false => load.take_frames(&mut store, &read),
        };
        let failed = result.err().map(|(location, error)| {
            let FrameLocation { file, offset, .. } = location;
            let (path, name) = (checkpoint_path(file), &slot.layout.definition.name);
            let text = match error {
                CheckpointError::OutOfMemory => {
                    format!("the data memory is exhausted while table '{name}' is loaded; raise TotalMemory")
                }
                error => format!(
                    "{path} cannot be used at byte {offset} (table '{name}', partition {}): {error}; {DAMAGE_ADVICE}",
                    partition.index
                ),
            };
            Taken::Failed(text.into())
        });
        if let (Some(bytes), true) = (read.bytes, load.spare.len() < READS_MAX) {
            load.spare.push(bytes);
        }
        Some(failed.unwrap_or(Taken::Done))
    }

    fn end_load(&mut self, error: Option<Box<str>>, outbox: &mut Outbox<Signal>) {
        let Some(load) = self.load.take() else { return };
        for (_, file) in load.files {
            outbox.request(WorldRequest::CloseFile { file, token: TOKEN | NO_READ });
        }
        let reply = LoadCheckpointReply { from: self.own, error };
        outbox.send(load.reply_to, Signal::Main(MainSignal::LoadCheckpointReply(reply)));
    }
}

impl CheckpointLoad {
    fn take_table(
        &mut self,
        store: &mut PartitionStore,
        partition: PartitionId,
        table: PageTableLocation,
        read: &Read,
    ) -> Result<(), (FrameLocation, CheckpointError)> {
        let damaged = (table.location, CheckpointError::Damaged);
        for piece in &read.items {
            self.table.extend_from_slice(read.item(*piece).ok_or(damaged)?);
        }
        if self.table.len() < table.location.length as usize {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.table);
        self.progress.add(0, bytes.len() as u64);
        let frames = store.load_page_table(partition, table, &bytes).map_err(|error| (table.location, error))?;
        self.frames = frames.into_iter().collect();
        Ok(())
    }

    fn take_frames(&mut self, store: &mut PartitionStore, read: &Read) -> Result<(), (FrameLocation, CheckpointError)> {
        for location in &read.items {
            let bytes = read.item(*location).ok_or((*location, CheckpointError::Damaged))?;
            let rows = store.load_frame(*location, bytes).map_err(|error| (*location, error))?;
            self.progress.add(rows, bytes.len() as u64);
        }
        Ok(())
    }

    /// Whether the whole page table of the first partition is requested.
    fn has_table(&self) -> bool {
        let table = self.partitions.front();
        table.is_some_and(|(_, table)| self.table_requested == u64::from(table.location.length))
    }

    /// The next part of the page table, or the next frame.
    fn next_item(&self) -> Option<FrameLocation> {
        let (_, PageTableLocation { location, .. }) = self.partitions.front()?;
        match u64::from(location.length) - self.table_requested {
            0 => self.frames.front().copied(),
            left => {
                let length = left.min(TABLE_READ_BYTES) as u32;
                Some(FrameLocation { file: location.file, offset: location.offset + self.table_requested, length })
            }
        }
    }

    /// Requests the next read, or the open of its file. False if nothing can be requested now.
    fn request_next(&mut self, outbox: &mut Outbox<Signal>) -> bool {
        if self.reads.len() >= READS_MAX || self.opening.is_some() {
            return false;
        }
        let Some(first) = self.next_item() else { return false };
        let Some(file) = self.use_file(first.file, outbox) else { return false };
        let start = first.offset / BLOCK_BYTES * BLOCK_BYTES;
        let mut end = first.offset + u64::from(first.length);
        let mut items = vec![first];
        let is_table = !self.has_table();
        if !is_table {
            self.frames.pop_front();
            while let Some(next) = self.frames.front()
                && next.file == first.file
                && next.offset >= end
                && next.offset + u64::from(next.length) <= start + READ_BYTES
            {
                end = next.offset + u64::from(next.length);
                items.extend(self.frames.pop_front());
            }
        } else {
            outbox.crash_point(crash_point::RECOVERY_LOAD.before());
            self.table_requested += u64::from(first.length);
        }
        let number = self.next_read;
        self.next_read += 1;
        let length = (end.next_multiple_of(BLOCK_BYTES) - start) as u32;
        let bytes = self.spare.pop().unwrap_or_default();
        self.reads.push_back(Read { number, start, items, is_table, bytes: None });
        outbox.request(WorldRequest::ReadFile { file, offset: start, length, bytes, token: TOKEN | number });
        true
    }

    /// The open file with this number. Otherwise requests that it be opened.
    fn use_file(&mut self, number: u32, outbox: &mut Outbox<Signal>) -> Option<FileId> {
        if let Some(index) = self.files.iter().position(|(open, _)| *open == number) {
            let used = self.files.remove(index);
            self.files.push(used);
            return Some(used.1);
        }
        if self.files.len() >= FILES_MAX {
            // A file carries out its requests in order, so reads under way are answered before the close.
            let (_, file) = self.files.remove(0);
            outbox.request(WorldRequest::CloseFile { file, token: TOKEN | NO_READ });
        }
        self.opening = Some(number);
        let (mode, lane) = (FileMode::Read, FileLane::Bulk);
        let (path, token) = (checkpoint_path(number), TOKEN | NO_READ);
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: true, token });
        None
    }

    fn read_error(&self, number: u64, error: FileError) -> Box<str> {
        let read = self.reads.iter().find(|read| read.number == number);
        let file = read.and_then(|read| read.items.first()).map(|item| item.file).or(self.opening);
        let path = checkpoint_path(file.unwrap_or_default());
        match error {
            FileError::NotFound => format!("{path} is missing; {MISSING_ADVICE}").into(),
            error => format!("cannot read {path}: {error}; {}", advice_about(error)).into(),
        }
    }
}

impl Read {
    /// The bytes of an item; `None` if the file ends before it does.
    fn item(&self, location: FrameLocation) -> Option<&[u8]> {
        let start = (location.offset - self.start) as usize;
        self.bytes.as_ref()?.get(start..start + location.length as usize)
    }
}
