//! The open files of one lane and the requests about them, whatever backend moves the bytes.
//!
//! Each file has at most one operation under way, so its requests are carried out in order. A request may
//! take several operations: a short read or write is continued, and a fill writes its zeros in steps.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::file_buffer::{FILE_BLOCK_BYTES, FileBuffer};
use crate::require;
use crate::world::{
    FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, FolderEntry, WorldEvent, WorldRequest,
};

use super::beneath::{delete_beneath, open_beneath};
use super::queue::{Answer, Requester};

/// Bytes of zeros that one operation of a fill writes.
const FILL_STEP_BYTES: u64 = 1 << 20;
/// Bytes after which a fill syncs, so that no sync keeps the lane for long.
const FILL_SYNC_BYTES: u64 = 4 << 20;

/// Permissions of new files: the server's user, and its group for reading.
pub(super) const FILE_PERMISSIONS: u32 = 0o640;
/// Asks statx for the alignment of direct reads and writes. Linux 6.1 and later answer.
const STATX_DIOALIGN: u32 = 0x2000;

/// A request about an open file.
#[derive(Debug)]
struct FileJob {
    from: Requester,
    token: u64,
    work: Work,
    bytes: FileBuffer,
    /// Bytes read, written or filled by completed operations.
    done: u64,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Write { offset: u64 },
    Read { offset: u64, length: u32 },
    Sync,
    Fill { length: u64, synced: u64 },
    Close,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// Whether offsets and lengths must be multiples of the block.
    is_aligned: bool,
    /// Whether a sync failed. The state on disk is then unknown for good, because the system may have marked
    /// the pages clean.
    is_poisoned: bool,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    open: Option<OpenFile>,
    under_way: Option<FileJob>,
    waiting: VecDeque<FileJob>,
}

/// One system call about an open file.
pub(super) enum Operation<'a> {
    Write(&'a [u8], u64),
    Read(&'a mut [u8], u64),
    Sync,
}

/// The files and requests of one lane.
#[derive(Debug)]
pub(super) struct Lane {
    lane: FileLane,
    folder: PathBuf,
    slots: Vec<Slot>,
    /// Slots with an operation that has not begun.
    ready: VecDeque<usize>,
    answers: Vec<Answer>,
    zeros: FileBuffer,
}

impl Lane {
    /// Resolves relative paths against `folder`.
    pub(super) fn new(lane: FileLane, folder: PathBuf) -> Self {
        Self { lane, folder, slots: Vec::new(), ready: VecDeque::new(), answers: Vec::new(), zeros: FileBuffer::new() }
    }

    /// The lane itself.
    pub(super) fn lane(&self) -> FileLane {
        self.lane
    }

    /// The answers since the last call.
    pub(super) fn take_answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.answers.drain(..)
    }

    /// Accepts a request. One that names a path is carried out immediately, another when the file's earlier
    /// requests are answered.
    pub(super) fn accept(&mut self, from: Requester, request: WorldRequest) {
        let no_bytes = FileBuffer::new;
        let (file, token, work, bytes) = match request {
            WorldRequest::OpenFile { path, mode, is_direct, token, lane: _ } => {
                let result = self.open(&path, mode, is_direct);
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::OpenBeneath { folder, path, mode, token, lane: _ } => {
                let result = self.add(|| open_beneath(Path::new(&*folder), Path::new(&*path), mode), false);
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::DeleteBeneath { folder, path, token, lane: _ } => {
                let result = delete_beneath(Path::new(&*folder), Path::new(&*path));
                return self.answer(from, token, result.map(|()| FileOutcome::Deleted), no_bytes());
            }
            WorldRequest::DeleteFile { path, token, lane: _ } => {
                let result = delete(&self.folder.join(&*path));
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::RenameFile { from: old, to: new, token, lane: _ } => {
                let result = std::fs::rename(self.folder.join(&*old), self.folder.join(&*new));
                let result = result.map(|()| FileOutcome::Renamed).map_err(file_error);
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::SyncFolder { path, token, lane: _ } => {
                let synced = File::open(self.folder.join(&*path)).and_then(|folder| folder.sync_all());
                let result = synced.map(|()| FileOutcome::FolderSynced).map_err(file_error);
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::CreateFolder { path, token, lane: _ } => {
                let created = std::fs::create_dir_all(self.folder.join(&*path));
                let result = created.map(|()| FileOutcome::FolderCreated).map_err(file_error);
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::ListFolder { path, token, lane: _ } => {
                let result = list(&self.folder.join(&*path)).map(FileOutcome::Listed).map_err(file_error);
                return self.answer(from, token, result, no_bytes());
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => (file, token, Work::Write { offset }, bytes),
            WorldRequest::ReadFile { file, offset, length, bytes, token } => {
                (file, token, Work::Read { offset, length: length.min(WorldRequest::READ_BYTES_MAX) }, bytes)
            }
            WorldRequest::SyncFile { file, token } => (file, token, Work::Sync, no_bytes()),
            WorldRequest::FillFile { file, length, token } => {
                (file, token, Work::Fill { length, synced: 0 }, no_bytes())
            }
            WorldRequest::CloseFile { file, token } => (file, token, Work::Close, no_bytes()),
            other => return require!(false, "a lane gets requests about files, not {other:?}"),
        };
        let generation_of = |slot: &Slot| FileId::new(self.lane, file.slot(), slot.generation);
        match self.slots.get_mut(file.slot()) {
            Some(slot) if slot.open.is_some() && generation_of(slot) == file => {
                slot.waiting.push_back(FileJob { from, token, work, bytes, done: 0 });
                self.begin_next(file.slot());
            }
            _ => self.answer(from, token, Err(FileError::NotOpen), bytes),
        }
    }

    /// Whether the only answer is to a write, and the oldest waiting request is a sync of the same requester.
    /// The worker then carries out the sync before it delivers the answers, so that both answers wake the
    /// requester once. `next_sync` returns the requester of the oldest request in the queue, if that request
    /// is a sync.
    pub(super) fn awaits_sync(&self, next_sync: impl FnOnce() -> Option<Requester>) -> bool {
        let [Answer { to, event: WorldEvent::FileDone { result: Ok(FileOutcome::Written { .. }), .. } }] =
            self.answers.as_slice()
        else {
            return false;
        };
        let requester = match self.ready.front().map(|slot| &self.slots[*slot].under_way) {
            Some(Some(FileJob { work: Work::Sync, from, .. })) => Some(*from),
            Some(_) => None,
            None => next_sync(),
        };
        requester == Some(*to)
    }

    /// The next slot whose operation a backend may begin.
    pub(super) fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop_front()
    }

    /// Whether an operation waits for a backend.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The operation of a slot that [`Lane::next_ready`] returned. The memory of the operation stays where it
    /// is until [`Lane::complete`].
    pub(super) fn operation(&mut self, slot: usize) -> (&File, Operation<'_>) {
        let Slot { open: Some(open), under_way: Some(job), .. } = &mut self.slots[slot] else {
            crate::invariant::fail("a ready slot has an open file and a request", format_args!("slot {slot}"))
        };
        let done = job.done;
        let operation = match job.work {
            Work::Write { offset } => Operation::Write(&job.bytes[done as usize..], offset + done),
            Work::Read { offset, .. } => Operation::Read(&mut job.bytes[done as usize..], offset + done),
            Work::Fill { length, .. } if !job.is_syncing() => {
                let step = (length - done).min(FILL_STEP_BYTES) as usize;
                if self.zeros.is_empty() {
                    self.zeros.resize(FILL_STEP_BYTES as usize, 0);
                }
                Operation::Write(&self.zeros[..step], done)
            }
            // A close needs no operation and never gets here.
            Work::Sync | Work::Fill { .. } | Work::Close => Operation::Sync,
        };
        (&open.file, operation)
    }

    /// Called when the operation of a slot has ended. `result` is the number of bytes moved, which is 0 for a
    /// sync.
    pub(super) fn complete(&mut self, slot: usize, result: Result<usize, Error>) {
        let Slot { open: Some(open), under_way: Some(job), .. } = &mut self.slots[slot] else {
            return require!(false, "an operation ends that has begun, in slot {slot}");
        };
        let moved = match result {
            Ok(moved) => moved as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => return self.ready.push_back(slot),
            Err(error) => {
                open.is_poisoned |= job.is_syncing();
                return self.finish(slot, Err(file_error(error)));
            }
        };
        let is_syncing = job.is_syncing();
        job.done += moved;
        let outcome = match &mut job.work {
            // Without an error, a write that moves no bytes would be repeated for ever.
            Work::Write { .. } | Work::Fill { .. } if moved == 0 && !is_syncing => {
                return self.finish(slot, Err(FileError::System(libc::EIO)));
            }
            Work::Write { offset } => {
                let length = job.bytes.len() as u32;
                (job.done == u64::from(length)).then_some(FileOutcome::Written { offset: *offset, length })
            }
            Work::Read { length, .. } => {
                // A direct read that ends within a block has reached the end of the file.
                let is_end = moved == 0 || open.is_aligned && job.done % FILE_BLOCK_BYTES as u64 != 0;
                (is_end || job.done == u64::from(*length)).then(|| {
                    job.bytes.truncate(job.done as usize);
                    FileOutcome::Read { length: job.done as u32 }
                })
            }
            Work::Sync | Work::Close => Some(FileOutcome::Synced),
            Work::Fill { length, synced } => {
                if is_syncing {
                    *synced = job.done;
                }
                (*synced == *length).then_some(FileOutcome::Filled)
            }
        };
        match outcome {
            Some(outcome) => self.finish(slot, Ok(outcome)),
            None => self.ready.push_back(slot),
        }
    }

    /// Answers the request under way and begins the file's next one.
    fn finish(&mut self, slot: usize, result: FileResult) {
        if let Some(mut job) = self.slots[slot].under_way.take() {
            if matches!((&job.work, &result), (Work::Read { .. }, Err(_))) {
                job.bytes.clear();
            }
            self.answer(job.from, job.token, result, job.bytes);
        }
        self.begin_next(slot);
    }

    /// Begins the next request of a file, after answering those before it that need no operation.
    fn begin_next(&mut self, slot: usize) {
        while self.slots[slot].under_way.is_none()
            && let Some(mut job) = self.slots[slot].waiting.pop_front()
        {
            match self.begin(slot, &mut job) {
                Some(result) => self.answer(job.from, job.token, result, job.bytes),
                None => {
                    self.slots[slot].under_way = Some(job);
                    self.ready.push_back(slot);
                }
            }
        }
    }

    /// Prepares a request; returns its result if it needs no operation.
    fn begin(&mut self, slot: usize, job: &mut FileJob) -> Option<FileResult> {
        let slot = &mut self.slots[slot];
        let Some(open) = &mut slot.open else { return Some(Err(FileError::NotOpen)) };
        if matches!(job.work, Work::Close) {
            slot.open = None;
            slot.generation += 1;
            return Some(Ok(FileOutcome::Closed));
        }
        if open.is_poisoned {
            return Some(Err(FileError::Poisoned));
        }
        let (offset, length) = match job.work {
            Work::Write { offset } => (offset, job.bytes.len() as u64),
            Work::Read { offset, length } => (offset, u64::from(length)),
            Work::Fill { length, .. } => (0, length),
            Work::Sync | Work::Close => (0, 0),
        };
        if open.is_aligned && (offset | length) % FILE_BLOCK_BYTES as u64 != 0 {
            return Some(Err(FileError::Misaligned));
        }
        match job.work {
            Work::Write { offset } if length == 0 => Some(Ok(FileOutcome::Written { offset, length: 0 })),
            Work::Read { .. } => {
                job.bytes.clear();
                job.bytes.set_length(length as usize);
                (length == 0).then_some(Ok(FileOutcome::Read { length: 0 }))
            }
            _ => None,
        }
    }

    fn open(&mut self, path: &str, mode: FileMode, is_direct: bool) -> FileResult {
        let path = self.folder.join(path);
        self.add(|| open_file(&path, mode, is_direct).map_err(file_error), is_direct)
    }

    /// Adds the file that `open` opens to the table. `open` also returns whether the file bypasses the cache.
    fn add(&mut self, open: impl FnOnce() -> Result<(File, bool), FileError>, is_aligned: bool) -> FileResult {
        let slot = match self.slots.iter().position(|slot| slot.open.is_none()) {
            Some(slot) => slot,
            None if self.slots.len() >= FileId::SLOTS_MAX => return Err(FileError::TooManyOpen),
            None => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
        };
        let (file, is_direct) = open()?;
        let length = file.metadata().map_err(file_error)?.len();
        self.slots[slot].open = Some(OpenFile { file, is_aligned, is_poisoned: false });
        let file = FileId::new(self.lane, slot, self.slots[slot].generation);
        Ok(FileOutcome::Opened { file, length, is_direct })
    }

    fn answer(&mut self, to: Requester, token: u64, result: FileResult, bytes: FileBuffer) {
        self.answers.push(Answer { to, event: WorldEvent::FileDone { token, result, bytes } });
    }
}

impl FileJob {
    /// Whether its present operation is a sync.
    fn is_syncing(&self) -> bool {
        match self.work {
            Work::Sync => true,
            Work::Fill { length, synced } => self.done == length || self.done - synced >= FILL_SYNC_BYTES,
            Work::Write { .. } | Work::Read { .. } | Work::Close => false,
        }
    }
}

/// Opens a file; returns also whether it bypasses the cache.
fn open_file(path: &Path, mode: FileMode, is_direct: bool) -> Result<(File, bool), Error> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(mode != FileMode::Read)
        .create(matches!(mode, FileMode::CreateOrOpen | FileMode::CreateEmpty))
        .create_new(mode == FileMode::CreateNew)
        .truncate(mode == FileMode::CreateEmpty)
        .mode(FILE_PERMISSIONS);
    if is_direct {
        match options.clone().custom_flags(libc::O_DIRECT).open(path) {
            Ok(file) if takes_blocks(&file) => return Ok((file, true)),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((options.open(path)?, false))
}

/// Whether direct reads and writes of whole blocks work. If the file system does not tell, the answer is yes.
fn takes_blocks(file: &File) -> bool {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let wanted = StatxFlags::from_bits_retain(STATX_DIOALIGN);
    let Ok(told) = statx(file, c"", AtFlags::EMPTY_PATH, wanted) else { return true };
    if told.stx_mask & STATX_DIOALIGN == 0 {
        return true;
    }
    let fits = |bytes: u32| bytes > 0 && FILE_BLOCK_BYTES.is_multiple_of(bytes as usize);
    fits(told.stx_dio_mem_align) && fits(told.stx_dio_offset_align)
}

fn delete(path: &Path) -> FileResult {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(FileOutcome::Deleted),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileOutcome::Deleted),
        Err(error) => Err(file_error(error)),
    }
}

fn list(path: &Path) -> Result<Vec<FolderEntry>, Error> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Deleted since the folder was read.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let is_folder = metadata.is_dir();
        let name = entry.file_name().to_string_lossy().into();
        entries.push(FolderEntry { name, length: if is_folder { 0 } else { metadata.len() }, is_folder });
    }
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}

/// Carries out an operation with one blocking system call.
pub(super) fn carry_out(file: &File, operation: Operation<'_>) -> Result<usize, Error> {
    match operation {
        Operation::Write(bytes, offset) => file.write_at(bytes, offset),
        Operation::Read(bytes, offset) => file.read_at(bytes, offset),
        Operation::Sync => file.sync_data().map(|()| 0),
    }
}

pub(super) fn file_error(error: Error) -> FileError {
    match error.kind() {
        ErrorKind::NotFound => FileError::NotFound,
        ErrorKind::AlreadyExists => FileError::Exists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => FileError::Denied,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FileError::DiskFull,
        _ => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => FileError::TooManyOpen,
            number => FileError::System(number.unwrap_or(0)),
        },
    }
}
