//! Writes the changed rows of this ldm to checkpoint files, in steps between other work. A partition without
//! changes keeps the page table of an earlier round.
//!
//! A step reads at most [`HOLDS_PER_TURN_MAX`] cells (a cell is 64 row ids), and only at the speed that main
//! allows. The ldm keeps its cursors until main ends the round: only then is it known whether the rows count
//! as written.

use junctor_kernel::{
    Address, Context, Duration, FileBuffer, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox,
    Time, WorldRequest, require,
};
use junctor_model::checkpoint::{
    CHECKPOINT_FILE_BYTES, CHECKPOINT_FOLDER, CheckpointFile, FrameLocation, PageTableLocation, checkpoint_path,
};
use junctor_model::id::{CommitNumber, PartitionId};
use junctor_signals::checkpoint::{
    EndCheckpoint, LdmCheckpoint, SetCheckpointSpeed, SetCheckpointSpeedReply, WriteCheckpoint, WriteCheckpointReply,
};
use junctor_signals::{MainSignal, Signal, crash_point};
use junctor_storage::checkpoint::{FrameBuilder, LiveBytes, append_file_checksum};
use junctor_storage::partition_store::{CheckpointCursor, CheckpointStep};

use super::block::LdmBlock;
use super::checkpoint_left::LeftPartitions;
use super::checkpoint_speed::Speed;
use super::deferred::Deferred;

/// Maximum number of cells that one step reads, each under one hold of its partition's guard. The beginning
/// of a partition counts as a cell, and ends the step if readers are in the guard.
const HOLDS_PER_TURN_MAX: usize = 4;
/// Bytes of one write.
const WRITE_BYTES: usize = 1 << 20;
/// Maximum number of writes without an answer.
const WRITES_MAX: usize = 2;
/// Unit of file positions and lengths, in bytes.
const FILE_BLOCK_BYTES: usize = 4096;
/// Token of the timer that ends a pause.
pub(super) const CHECKPOINT_TIMER: u64 = 1;
/// Marks the answers to this module's file requests: the upper byte of their tokens.
pub(super) const CHECKPOINT_FILE: u64 = 1;
pub(super) const TOKEN_KIND_SHIFT: u32 = 56;
const TOKEN: u64 = CHECKPOINT_FILE << TOKEN_KIND_SHIFT;

/// The part of this ldm in checkpoints.
#[derive(Debug)]
pub(super) struct CheckpointWriter {
    /// Size in bytes from which a round goes on in the next file.
    pub file_bytes: u64,
    round: Option<Box<Round>>,
    /// Cursors of ended rounds whose partitions had readers in the guard, and whether the round is kept.
    ending: Vec<(CheckpointCursor, bool)>,
    spare: Vec<FileBuffer>,
    is_deferred: bool,
    timer_runs: bool,
    is_stopping: bool,
}

impl CheckpointWriter {
    /// A writer without a round.
    pub fn new() -> CheckpointWriter {
        let file_bytes = CHECKPOINT_FILE_BYTES;
        let (ending, spare) = (Vec::new(), Vec::new());
        CheckpointWriter {
            file_bytes,
            round: None,
            ending,
            spare,
            is_deferred: false,
            timer_runs: false,
            is_stopping: false,
        }
    }

    /// The node stops. A round stays as it is: the stop does not wait for it, and the next start deletes its
    /// files.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }
}

/// A round under way.
#[derive(Debug)]
struct Round {
    reply_to: Address,
    generation: u64,
    begin: CommitNumber,
    /// Files that are to become free.
    rewritten_files: Vec<u32>,
    speed: Speed,
    step: Step,
    /// The number of the present file or the next one, and the distance to the one after it.
    file_number: u32,
    file_step: u32,
    file: Option<FileId>,
    /// The files that were created, the present one last. Its length and checksum follow when it ends.
    files: Vec<CheckpointFile>,
    /// The partitions that are not begun.
    left: LeftPartitions,
    cursor: Option<CheckpointCursor>,
    frame: FrameBuilder,
    /// The cursors of partitions whose rows and page tables are in the buffer or in files.
    done: Vec<CheckpointCursor>,
    /// Partitions without changes.
    unchanged: Vec<PartitionId>,
    /// Bytes of the file that are not requested yet.
    buffer: FileBuffer,
    /// Position of the first byte of `buffer` in the file, and the checksum of the bytes before it.
    buffer_offset: u64,
    checksum: u32,
    /// Bytes of the files that have ended.
    ended_bytes: u64,
    /// Requests without an answer, and the writes among them.
    requests: usize,
    writes: usize,
    last_write: Time,
    write_us: u32,
    error: Option<Box<str>>,
}

/// The event that a round awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The next file.
    Open,
    /// A later turn, the end of a pause, or the answers to writes.
    Write,
    Sync,
    Close,
    SyncFolder,
    /// Main's `EndCheckpoint`.
    End,
}

impl LdmBlock {
    pub(super) fn on_write_checkpoint(
        &mut self,
        signal: WriteCheckpoint,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let WriteCheckpoint { reply_to, generation, file, file_step, begin, bytes_per_second, rewritten_files } =
            signal;
        require!(self.checkpoint.round.is_none(), "one round runs at a time: generation {generation}");
        let left = LeftPartitions::new(self.partitions.kept_ids());
        let now = context.turn_start;
        self.checkpoint.round = Some(Box::new(Round {
            reply_to,
            generation,
            begin,
            rewritten_files,
            speed: Speed::new(bytes_per_second, now),
            step: Step::Write,
            file_number: file,
            file_step,
            file: None,
            files: Vec::new(),
            left,
            cursor: None,
            frame: FrameBuilder::new(),
            done: Vec::new(),
            unchanged: Vec::new(),
            buffer: self.checkpoint.spare.pop().unwrap_or_default(),
            buffer_offset: 0,
            checksum: 0,
            ended_bytes: 0,
            requests: 0,
            writes: 0,
            last_write: now,
            write_us: 0,
            error: None,
        }));
        self.defer_checkpoint(outbox);
    }

    pub(super) fn on_set_checkpoint_speed(
        &mut self,
        signal: SetCheckpointSpeed,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let SetCheckpointSpeed { reply_to, generation, bytes_per_second } = signal;
        let Some(round) = self.checkpoint.round.as_mut().filter(|round| round.generation == generation) else { return };
        // The time until now earns credit at the old speed.
        round.speed.has_credit(context.turn_start);
        round.speed.bytes_per_second = bytes_per_second;
        let partitions = &self.partitions;
        let bytes_left = |partition: PartitionId, cursor: Option<&CheckpointCursor>| {
            let slot = partitions.find(partition).and_then(|index| partitions.get(index));
            slot.map_or(0, |slot| slot.guard.owner_read(&slot.token, |store| store.checkpoint_bytes_left(cursor)))
        };
        let open = round.cursor.as_ref().map_or(0, |cursor| bytes_left(cursor.partition(), Some(cursor)));
        let left = round.left.estimate(|partition| bytes_left(partition, None));
        let reply = SetCheckpointSpeedReply {
            from: self.own,
            generation,
            written_bytes: round.ended_bytes + round.end_offset(),
            left_bytes: open + left,
            write_us: round.write_us,
        };
        outbox.send(reply_to, Signal::Main(MainSignal::SetCheckpointSpeedReply(reply)));
    }

    pub(super) fn on_end_checkpoint(&mut self, signal: EndCheckpoint, outbox: &mut Outbox<Signal>) {
        let EndCheckpoint { generation, is_kept } = signal;
        let Some(round) = self.checkpoint.round.take_if(|round| round.generation == generation) else {
            junctor_kernel::invariant::fail("main ends the round that runs", format_args!("generation {generation}"))
        };
        let Round { step, error, done, cursor, mut buffer, .. } = *round;
        require!(step == Step::End, "a round ends after the ldm has answered: {step:?}");
        require!(!is_kept || error.is_none() && cursor.is_none(), "a failed round is not kept: {error:?}");
        buffer.clear();
        self.checkpoint.spare.push(buffer);
        self.checkpoint.ending.extend(done.into_iter().chain(cursor).map(|cursor| (cursor, is_kept)));
        self.continue_checkpoint_end(outbox);
    }

    /// Ends the round in each partition. Returns whether that is complete; a reader in a guard delays it.
    fn continue_checkpoint_end(&mut self, outbox: &mut Outbox<Signal>) -> bool {
        let partitions = &mut self.partitions;
        let ending = std::mem::take(&mut self.checkpoint.ending);
        for (cursor, is_kept) in ending {
            // A dropped partition has no later round.
            let Some(index) = partitions.find(cursor.partition()) else { continue };
            let slot = partitions.slot(index);
            match slot.guard.try_enter(&mut slot.token) {
                Some(mut store) => store.end_checkpoint(cursor, is_kept),
                None => self.checkpoint.ending.push((cursor, is_kept)),
            }
        }
        let is_complete = self.checkpoint.ending.is_empty();
        if !is_complete {
            self.defer_checkpoint(outbox);
        }
        is_complete
    }

    fn defer_checkpoint(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.checkpoint.is_deferred {
            self.checkpoint.is_deferred = true;
            self.defer(Deferred::WriteCheckpoint, outbox);
        }
    }

    /// Runs a deferred step.
    pub(super) fn continue_checkpoint(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.checkpoint.is_deferred = false;
        if self.checkpoint.ending.is_empty() || self.continue_checkpoint_end(outbox) {
            self.write_checkpoint(context.turn_start, outbox);
        }
    }

    pub(super) fn on_checkpoint_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.checkpoint.timer_runs = false;
        self.continue_checkpoint(context, outbox);
    }

    /// Reads the next cells into frames, and requests the writes of full buffers. Returns when it has to
    /// wait.
    fn write_checkpoint(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        if self.checkpoint.is_stopping {
            return;
        }
        let Some(mut round) = self.checkpoint.round.take_if(|round| round.step == Step::Write) else { return };
        let mut holds = 0;
        let is_waiting = loop {
            if round.error.is_some() {
                break true;
            }
            if round.buffer.len() >= WRITE_BYTES {
                if round.writes == WRITES_MAX {
                    break true;
                }
                round.request_write(self.checkpoint.spare.pop().unwrap_or_default(), now, outbox);
            }
            if round.is_file_full(self.checkpoint.file_bytes) {
                if round.writes < WRITES_MAX {
                    round.request_sync(now, outbox);
                }
                break true;
            }
            if round.file.is_none() && round.cursor.is_some() {
                round.request_open(outbox);
                break true;
            }
            if holds == HOLDS_PER_TURN_MAX {
                break false;
            }
            if !round.speed.has_credit(now) {
                self.start_checkpoint_timer(round.speed.pause(), outbox);
                break true;
            }
            holds += 1;
            match self.read_next_cell(&mut round, outbox) {
                CellRead::Read => {}
                CellRead::GuardIsBusy => break false,
                CellRead::NothingLeft if round.writes == WRITES_MAX => break true,
                CellRead::NothingLeft => {
                    match round.file {
                        Some(_) => round.request_sync(now, outbox),
                        None => round.end_files(outbox),
                    }
                    break true;
                }
            }
        };
        let is_ended = round.step == Step::End;
        self.checkpoint.round = Some(round);
        if is_ended {
            return self.reply_checkpoint(outbox);
        }
        if !is_waiting {
            self.defer_checkpoint(outbox);
        }
    }

    fn read_next_cell(&mut self, round: &mut Round, outbox: &mut Outbox<Signal>) -> CellRead {
        let stable = self.shared.sequence.stable();
        let Some(mut cursor) = round.cursor.take() else { return self.begin_next_partition(round) };
        let Some(slot) = self.partitions.find(cursor.partition()).and_then(|index| self.partitions.get(index)) else {
            // The partition was dropped. Its frames are garbage.
            round.frame = FrameBuilder::new();
            return CellRead::Read;
        };
        let step =
            slot.guard.owner_read(&slot.token, |store| store.checkpoint_step(&mut cursor, stable, &mut round.frame));
        match step {
            CheckpointStep::MoreRows => {}
            CheckpointStep::FrameFull => {
                outbox.crash_point(crash_point::CHECKPOINT_PAGE.before());
                let (file, offset) = (round.file_number, round.end_offset());
                let bytes = cursor.place_frame(&mut round.frame, file, offset);
                round.speed.spend(bytes.len());
                round.buffer.extend_from_slice(bytes);
            }
            CheckpointStep::Done => {
                outbox.crash_point(crash_point::CHECKPOINT_TABLE.before());
                let mut bytes = Vec::new();
                let (file, offset) = (round.file_number, round.end_offset());
                slot.guard.owner_read(&slot.token, |store| {
                    let checksum = store.encode_page_table(&cursor, &mut bytes);
                    let location = FrameLocation { file, offset, length: bytes.len() as u32 };
                    store.place_page_table(&mut cursor, PageTableLocation { location, checksum });
                });
                round.speed.spend(bytes.len());
                round.buffer.extend_from_slice(&bytes);
                round.done.push(cursor);
                return CellRead::Read;
            }
        }
        round.cursor = Some(cursor);
        CellRead::Read
    }

    fn begin_next_partition(&mut self, round: &mut Round) -> CellRead {
        let Some(partition) = round.left.first() else { return CellRead::NothingLeft };
        if let Some(index) = self.partitions.find(partition) {
            let slot = self.partitions.slot(index);
            let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return CellRead::GuardIsBusy };
            round.cursor = store.begin_checkpoint(partition, round.begin, &round.rewritten_files);
            if round.cursor.is_none() {
                round.unchanged.push(partition);
            }
        }
        round.left.remove_first();
        CellRead::Read
    }

    fn start_checkpoint_timer(&mut self, after: Duration, outbox: &mut Outbox<Signal>) {
        if !self.checkpoint.timer_runs {
            self.checkpoint.timer_runs = true;
            outbox.request(WorldRequest::StartTimer { after, token: CHECKPOINT_TIMER });
        }
    }

    pub(super) fn on_checkpoint_file(
        &mut self,
        (result, mut bytes): (FileResult, FileBuffer),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let now = context.turn_start;
        let Some(round) = &mut self.checkpoint.round else { return };
        require!(round.requests > 0, "a request about a checkpoint file is answered once: {result:?}");
        round.requests -= 1;
        if let Err(error) = &result {
            round.fail(*error);
        }
        if round.error.is_some() {
            // The file is closed after the last answer.
            match round.file {
                _ if round.requests > 0 => {}
                Some(_) => round.request_close(outbox),
                None => self.reply_checkpoint(outbox),
            }
            return;
        }
        match result {
            Ok(FileOutcome::Opened { file, .. }) => {
                round.file = Some(file);
                round.step = Step::Write;
                self.defer_checkpoint(outbox);
            }
            Ok(FileOutcome::Written { .. }) => {
                outbox.crash_point(crash_point::CHECKPOINT_PAGE.after());
                round.writes -= 1;
                round.write_us = now.since(round.last_write).as_micros().min(u64::from(u32::MAX)) as u32;
                bytes.clear();
                if self.checkpoint.spare.len() < WRITES_MAX {
                    self.checkpoint.spare.push(bytes);
                }
                self.write_checkpoint(now, outbox);
            }
            Ok(FileOutcome::Synced) => {
                outbox.crash_point(crash_point::CHECKPOINT_TABLE.after());
                round.step = Step::Close;
                round.end_file();
                round.request_close(outbox);
            }
            Ok(FileOutcome::Closed) if round.cursor.is_none() && round.left.is_empty() => round.end_files(outbox),
            Ok(FileOutcome::Closed) => {
                round.step = Step::Write;
                self.defer_checkpoint(outbox);
            }
            Ok(FileOutcome::FolderSynced) => {
                outbox.crash_point(crash_point::CHECKPOINT_SYNC.after());
                self.reply_checkpoint(outbox);
            }
            other => junctor_kernel::invariant::fail("a request has its own answer", format_args!("{other:?}")),
        }
    }

    fn reply_checkpoint(&mut self, outbox: &mut Outbox<Signal>) {
        let Some(round) = &mut self.checkpoint.round else { return };
        round.step = Step::End;
        let result = match round.error.clone() {
            Some(error) => Err(error),
            None => {
                let mut checkpoint = LdmCheckpoint { newest: round.begin, ..LdmCheckpoint::default() };
                let mut live_bytes = LiveBytes::default();
                let mut add = |file, bytes| live_bytes.add(file, bytes);
                let partitions = &self.partitions;
                for cursor in round.done.iter().filter(|it| partitions.find(it.partition()).is_some()) {
                    checkpoint.newest = checkpoint.newest.max(cursor.newest());
                    checkpoint.partitions.push((cursor.partition(), cursor.table(&mut add)));
                }
                for partition in &round.unchanged {
                    let Some(slot) = partitions.find(*partition).and_then(|index| partitions.get(index)) else {
                        continue;
                    };
                    let table = slot.guard.owner_read(&slot.token, |store| store.checkpointed_table(&mut add));
                    checkpoint.partitions.extend(table.map(|table| (*partition, table)));
                }
                checkpoint.live_bytes = live_bytes.into();
                Ok(Box::new(checkpoint))
            }
        };
        let (generation, files) = (round.generation, std::mem::take(&mut round.files));
        let reply = WriteCheckpointReply { from: self.own, generation, files, result };
        outbox.send(round.reply_to, Signal::Main(MainSignal::WriteCheckpointReply(reply)));
    }
}

/// The result of an attempt to read a cell.
enum CellRead {
    Read,
    GuardIsBusy,
    NothingLeft,
}

impl Round {
    /// Length of the file with everything that is in the buffer.
    fn end_offset(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    fn request(&mut self, request: WorldRequest, outbox: &mut Outbox<Signal>) {
        self.requests += 1;
        outbox.request(request);
    }

    /// Requests the write of the whole blocks in the buffer. `next` gets the other bytes.
    fn request_write(&mut self, mut next: FileBuffer, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(file) = self.file else { return };
        let length = self.buffer.len() / FILE_BLOCK_BYTES * FILE_BLOCK_BYTES;
        next.clear();
        next.extend_from_slice(&self.buffer[length..]);
        let mut bytes = std::mem::replace(&mut self.buffer, next);
        bytes.truncate(length);
        let offset = self.buffer_offset;
        self.buffer_offset += length as u64;
        self.checksum = append_file_checksum(self.checksum, &bytes);
        self.writes += 1;
        self.last_write = now;
        self.request(WorldRequest::WriteFile { file, offset, bytes, token: TOKEN }, outbox);
    }

    /// Whether the round goes on in the next file. The frames of an entry lie in one file.
    fn is_file_full(&self, file_bytes: u64) -> bool {
        let is_between_pages = self.cursor.as_ref().is_none_or(CheckpointCursor::is_between_pages);
        let is_complete = self.cursor.is_none() && self.left.is_empty();
        self.file.is_some() && self.end_offset() >= file_bytes && is_between_pages && !is_complete
    }

    fn request_open(&mut self, outbox: &mut Outbox<Signal>) {
        let number = self.file_number;
        self.files.push(CheckpointFile { number, bytes: 0, live_bytes: 0, checksum: None });
        self.step = Step::Open;
        let (path, mode) = (checkpoint_path(number), FileMode::CreateEmpty);
        let lane = FileLane::Checkpoint;
        self.request(WorldRequest::OpenFile { path, mode, lane, is_direct: true, token: TOKEN }, outbox);
    }

    /// Requests the last write of the file and the sync.
    fn request_sync(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(file) = self.file else { return };
        self.buffer.pad_to_block();
        if !self.buffer.is_empty() {
            self.request_write(FileBuffer::new(), now, outbox);
        }
        outbox.crash_point(crash_point::CHECKPOINT_SYNC.before());
        self.step = Step::Sync;
        self.request(WorldRequest::SyncFile { file, token: TOKEN }, outbox);
    }

    /// Takes the length and the checksum of the synced file. The next file begins.
    fn end_file(&mut self) {
        if let Some(file) = self.files.last_mut() {
            (file.bytes, file.checksum) = (self.buffer_offset, Some(self.checksum));
        }
        self.ended_bytes += self.buffer_offset;
        (self.buffer_offset, self.checksum) = (0, 0);
        self.file_number += self.file_step;
    }

    /// Syncs the names of the files. Ends the round if it has created none.
    fn end_files(&mut self, outbox: &mut Outbox<Signal>) {
        if self.files.is_empty() {
            self.step = Step::End;
            return;
        }
        self.step = Step::SyncFolder;
        let (path, lane) = (CHECKPOINT_FOLDER.into(), FileLane::Checkpoint);
        self.request(WorldRequest::SyncFolder { path, lane, token: TOKEN }, outbox);
    }

    fn request_close(&mut self, outbox: &mut Outbox<Signal>) {
        if let Some(file) = self.file.take() {
            self.request(WorldRequest::CloseFile { file, token: TOKEN }, outbox);
        }
    }

    #[cold]
    fn fail(&mut self, error: FileError) {
        let action = match self.step {
            Step::Open => "create",
            Step::Write => "write",
            Step::Sync | Step::SyncFolder => "sync",
            Step::Close | Step::End => "close",
        };
        let path = checkpoint_path(self.files.last().map_or(self.file_number, |file| file.number));
        self.error.get_or_insert_with(|| format!("cannot {action} {path}: {error}").into());
    }
}
