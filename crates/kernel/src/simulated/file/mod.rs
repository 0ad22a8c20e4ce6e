//! Files of a simulated node, on a disk that loses what a real one may lose.
//!
//! A request takes a random time, and its effect happens when that time is over. A request that is under way
//! when the node ends has all of its effect, part of it or none.

mod disk;
mod fault;
mod inode;

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::context::{Duration, Time};
use crate::file_buffer::{FILE_BLOCK_BYTES, FileBuffer};
use crate::random::Random;
use crate::world::{FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, WorldEvent, WorldRequest};

pub use disk::Disk;
pub use fault::{DiskCrash, DiskFault, DiskFaults, DiskOperation, FaultTime, SlowWindow};

use disk::InodeId;
use fault::FaultState;
use inode::{ChangeStamp, SECTOR_BYTES};

/// Maximum size of a file, so that a wrong offset does not exhaust the machine's memory.
const FILE_BYTES_MAX: u64 = 1 << 32;

/// The files of one node: its disk, and the file requests that the running node has made.
#[derive(Debug)]
pub(super) struct VirtualFiles {
    pub(super) disk: Disk,
    faults: FaultState,
    armed_crash: Option<DiskCrash>,
    /// Operations carried out, over all runs of the node.
    operations: BTreeMap<DiskOperation, u64>,
    random: Random,
    lanes: [Vec<Slot>; FileLane::ALL.len()],
    /// By request number. `scheduled` contains the same numbers.
    requests: BTreeMap<u64, PendingRequest>,
    requests_made: u64,
    /// When the last request of each file completes. Under `None`: when the last of the lane's requests
    /// completes that name a path instead of an open file.
    busy_until: BTreeMap<(FileLane, Option<FileId>), Time>,
    /// Completions that the scheduler does not know yet.
    scheduled: Vec<(Time, u64)>,
    options: FileOptions,
}

/// How the disk works without faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileOptions {
    pub(super) request_ns_max: u64,
    /// Maximum number of requests that wait in a lane.
    pub(super) requests_max: usize,
    /// Whether files can bypass the operating system's cache.
    pub(super) has_direct_files: bool,
}

#[derive(Debug)]
struct PendingRequest {
    from: Address,
    request: WorldRequest,
    /// When the disk begins with the request.
    start: Time,
    /// Number of the disk's changes when the request was made. A sync makes these changes durable, and all
    /// changes of its own file or lane.
    changes: u64,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    open: Option<OpenFile>,
}

#[derive(Clone, Debug)]
struct OpenFile {
    path: String,
    inode: InodeId,
    is_writable: bool,
    is_direct: bool,
    is_poisoned: bool,
}

/// The token, result and buffer of an answer.
type Reply = (u64, FileResult, FileBuffer);

impl VirtualFiles {
    pub(super) fn new(seed: u64, options: FileOptions) -> Self {
        Self {
            disk: Disk::default(),
            faults: FaultState::default(),
            armed_crash: None,
            operations: BTreeMap::new(),
            random: Random::new(seed),
            lanes: Default::default(),
            requests: BTreeMap::new(),
            requests_made: 0,
            busy_until: BTreeMap::new(),
            scheduled: Vec::new(),
            options,
        }
    }

    pub(super) fn set_faults(&mut self, faults: DiskFaults) {
        self.faults = FaultState::new(faults);
    }

    /// Accepts a request. Returns the answer if its lane is full.
    pub(super) fn accept(&mut self, from: Address, request: WorldRequest, now: Time) -> Option<WorldEvent> {
        let lane = request.file_lane()?;
        let waiting = self.requests.values().filter(|waiting| waiting.request.file_lane() == Some(lane)).count();
        if waiting >= self.options.requests_max {
            let (token, bytes) = request.into_token_and_bytes();
            return Some(WorldEvent::FileDone { token, result: Err(FileError::QueueFull), bytes });
        }
        let busy_until = self.busy_until.entry((lane, request.file())).or_default();
        let start = now.max(*busy_until);
        let duration = 1 + self.random.below(self.options.request_ns_max.max(1)) + transfer_ns(&request);
        *busy_until = start.plus(Duration(duration.saturating_mul(self.faults.slowness(lane, start))));
        self.requests_made += 1;
        self.scheduled.push((*busy_until, self.requests_made));
        let changes = self.disk.changes();
        self.requests.insert(self.requests_made, PendingRequest { from, request, start, changes });
        None
    }

    /// Completions to schedule, as (time, number of the request).
    pub(super) fn take_scheduled(&mut self) -> Vec<(Time, u64)> {
        std::mem::take(&mut self.scheduled)
    }

    pub(super) fn arm_crash(&mut self, armed: Option<DiskCrash>) {
        self.armed_crash = armed;
    }

    pub(super) fn operations(&self, operation: DiskOperation) -> u64 {
        self.operations.get(&operation).copied().unwrap_or_default()
    }

    /// Counts a request whose time has come. If the armed crash interrupts this request, disarms and returns
    /// the crash.
    pub(super) fn begin_completion(&mut self, number: u64) -> Option<DiskCrash> {
        let operation = DiskOperation::of(&self.requests.get(&number)?.request)?;
        *self.operations.entry(operation).or_default() += 1;
        let armed = self.armed_crash.as_mut().filter(|armed| armed.operation == operation)?;
        armed.nth = armed.nth.saturating_sub(1);
        if armed.nth > 0 {
            return None;
        }
        self.armed_crash.take()
    }

    /// Carries out a request whose time has come. Returns the answer and its receiver.
    pub(super) fn complete(&mut self, number: u64) -> Option<(Address, WorldEvent)> {
        let PendingRequest { from, request, changes, .. } = self.requests.remove(&number)?;
        let (token, result, bytes) = self.carry_out(request, changes);
        Some((from, WorldEvent::FileDone { token, result, bytes }))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// The process ends. Its files are closed, and the operating system keeps what it has accepted.
    pub(super) fn end_process(&mut self, now: Time) {
        self.scheduled.clear();
        for (_, pending) in std::mem::take(&mut self.requests) {
            if pending.start > now {
                continue;
            }
            match (self.random.below(3), pending.request) {
                (0, _) => {}
                (1, WorldRequest::WriteFile { file, offset, bytes, .. }) => self.write_some(file, offset, &bytes),
                (1, WorldRequest::FillFile { file, length, .. }) => {
                    let blocks = self.random.below(length / FILE_BLOCK_BYTES as u64 + 1);
                    _ = self.fill(file, blocks * FILE_BLOCK_BYTES as u64, pending.changes);
                }
                (_, request) => _ = self.carry_out(request, pending.changes),
            }
        }
        self.busy_until.clear();
        for slot in self.lanes.iter_mut().flatten() {
            slot.open = None;
            slot.generation += 1;
        }
        self.disk.drop_unnamed(&BTreeSet::new());
    }

    /// The power fails: the process ends, and what was not synced may be lost.
    pub(super) fn lose_power(&mut self, now: Time) {
        self.end_process(now);
        self.disk.lose_power(&mut self.random);
    }

    fn carry_out(&mut self, request: WorldRequest, changes: u64) -> Reply {
        let no_bytes = FileBuffer::new;
        match request {
            WorldRequest::OpenFile { path, mode, lane, is_direct, token } => {
                (token, self.open(&path, mode, lane, is_direct), no_bytes())
            }
            WorldRequest::OpenBeneath { folder, path, mode, lane, token } => {
                let opened = beneath(&folder, &path).and_then(|path| self.open(&path, mode, lane, false));
                (token, opened, no_bytes())
            }
            WorldRequest::DeleteBeneath { folder, path, lane, token } => {
                let deleted = beneath(&folder, &path).and_then(|path| {
                    self.faults.check(DiskOperation::Delete, &path, &mut self.random)?;
                    self.disk.delete(&path, lane)
                });
                (token, deleted.map(|()| FileOutcome::Deleted), no_bytes())
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => (token, self.write(file, offset, &bytes), bytes),
            WorldRequest::SyncFile { file, token } => (token, self.sync(file, changes), no_bytes()),
            WorldRequest::FillFile { file, length, token } => (token, self.fill(file, length, changes), no_bytes()),
            WorldRequest::ReadFile { file, offset, length, mut bytes, token } => {
                bytes.clear();
                (token, self.read(file, offset, length, &mut bytes), bytes)
            }
            WorldRequest::CloseFile { file, token } => (token, self.close(file), no_bytes()),
            WorldRequest::DeleteFile { path, lane, token } => {
                let checked = self.faults.check(DiskOperation::Delete, &path, &mut self.random);
                let result = checked.and_then(|()| self.disk.delete(&path, lane));
                (token, result.map(|()| FileOutcome::Deleted), no_bytes())
            }
            WorldRequest::RenameFile { from, to, lane, token } => {
                let checked = self.faults.check(DiskOperation::Rename, &from, &mut self.random);
                let result = checked.and_then(|()| self.disk.rename(&from, &to, lane));
                (token, result.map(|()| FileOutcome::Renamed), no_bytes())
            }
            WorldRequest::SyncFolder { path, lane, token } => {
                let checked = self.faults.check(DiskOperation::SyncFolder, &path, &mut self.random);
                let result = checked.and_then(|()| self.disk.sync_folder(&path, lane, changes));
                (token, result.map(|()| FileOutcome::FolderSynced), no_bytes())
            }
            WorldRequest::CreateFolder { path, lane, token } => {
                let result = self.disk.create_folder(&path, lane);
                (token, result.map(|()| FileOutcome::FolderCreated), no_bytes())
            }
            WorldRequest::ListFolder { path, token, .. } => {
                (token, self.disk.list(&path).map(FileOutcome::Listed), no_bytes())
            }
            other => {
                let (token, bytes) = other.into_token_and_bytes();
                (token, Err(FileError::NotOpen), bytes)
            }
        }
    }

    fn open(&mut self, path: &str, mode: FileMode, lane: FileLane, is_direct: bool) -> FileResult {
        self.faults.check(DiskOperation::Open, path, &mut self.random)?;
        let is_direct = is_direct && self.options.has_direct_files;
        let creates = matches!(mode, FileMode::CreateOrOpen | FileMode::CreateEmpty | FileMode::CreateNew);
        let existing = self.disk.inode(path);
        if existing.is_some() && mode == FileMode::CreateNew {
            return Err(FileError::Exists);
        }
        let inode = match existing {
            Some(inode) => inode,
            None if creates => self.disk.create(path, lane)?,
            None => return Err(FileError::NotFound),
        };
        let slots = &mut self.lanes[lane.index()];
        let place = slots.iter().position(|slot| slot.open.is_none()).unwrap_or(slots.len());
        if place == FileId::SLOTS_MAX {
            return Err(FileError::TooManyOpen);
        }
        if place == slots.len() {
            slots.push(Slot::default());
        }
        let is_writable = mode != FileMode::Read;
        let open = OpenFile { path: path.to_owned(), inode, is_writable, is_direct, is_poisoned: false };
        slots[place].open = Some(open);
        let file = FileId::new(lane, place, slots[place].generation);
        if mode == FileMode::CreateEmpty && existing.is_some() {
            let stamp = ChangeStamp { number: self.disk.next_change(), file };
            if let Some(inode) = self.disk.file_mut(inode) {
                inode.truncate(stamp);
            }
        }
        let length = self.disk.file(inode).map_or(0, |inode| inode.content().len() as u64);
        Ok(FileOutcome::Opened { file, length, is_direct })
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> FileResult {
        let open = self.open_for_range(file, offset, bytes.len() as u64)?;
        if !open.is_writable {
            return Err(FileError::System(libc::EBADF));
        }
        let checked = self.faults.check(DiskOperation::Write, &open.path, &mut self.random);
        let checked = checked.and_then(|()| self.check_space(open.inode, offset + bytes.len() as u64));
        if let Err(error) = checked {
            self.write_some(file, offset, bytes);
            return Err(error);
        }
        let stamp = ChangeStamp { number: self.disk.next_change(), file };
        if let Some(inode) = self.disk.file_mut(open.inode) {
            inode.write(stamp, offset, bytes);
        }
        Ok(FileOutcome::Written { offset, length: bytes.len() as u32 })
    }

    /// Writes a random selection of the sectors, as far as the disk has room.
    fn write_some(&mut self, file: FileId, offset: u64, bytes: &[u8]) {
        let Ok(open) = self.opened(file) else { return };
        let stamp = ChangeStamp { number: self.disk.next_change(), file };
        let mut at = 0;
        while at < bytes.len() {
            let start = offset + at as u64;
            let length = (SECTOR_BYTES - start as usize % SECTOR_BYTES).min(bytes.len() - at);
            let has_room = self.check_space(open.inode, start + length as u64).is_ok();
            if has_room
                && self.random.one_in(2)
                && let Some(inode) = self.disk.file_mut(open.inode)
            {
                inode.write(stamp, start, &bytes[at..at + length]);
            }
            at += length;
        }
    }

    fn sync(&mut self, file: FileId, changes: u64) -> FileResult {
        let open = self.opened(file)?;
        let checked = self.faults.check(DiskOperation::Sync, &open.path, &mut self.random);
        let Some(inode) = self.disk.file_mut(open.inode) else { return Err(FileError::NotFound) };
        if let Err(error) = checked {
            // After a failed sync, the cache treats its content as written. Direct writes have no content in
            // the cache.
            if !open.is_direct {
                inode.fail_sync(&mut self.random);
            }
            self.poison(file);
            return Err(error);
        }
        inode.sync(|stamp| stamp.file == file || stamp.number <= changes);
        Ok(FileOutcome::Synced)
    }

    fn fill(&mut self, file: FileId, length: u64, changes: u64) -> FileResult {
        let open = self.open_for_range(file, 0, length)?;
        self.faults.check(DiskOperation::Write, &open.path, &mut self.random)?;
        self.check_space(open.inode, length)?;
        self.sync(file, changes)?;
        if let Some(inode) = self.disk.file_mut(open.inode) {
            inode.fill(length);
        }
        Ok(FileOutcome::Filled)
    }

    fn read(&mut self, file: FileId, offset: u64, length: u32, bytes: &mut FileBuffer) -> FileResult {
        let length = length.min(WorldRequest::READ_BYTES_MAX);
        let open = self.open_for_range(file, offset, u64::from(length))?;
        self.faults.check(DiskOperation::Read, &open.path, &mut self.random)?;
        let content = self.disk.file(open.inode).map_or(&[][..], |inode| inode.content());
        let start = (offset as usize).min(content.len());
        let end = start.saturating_add(length as usize).min(content.len());
        bytes.extend_from_slice(&content[start..end]);
        Ok(FileOutcome::Read { length: (end - start) as u32 })
    }

    fn close(&mut self, file: FileId) -> FileResult {
        self.slot(file)?.open = None;
        let slot = &mut self.lanes[file.lane().index()][file.slot()];
        slot.generation += 1;
        let open = self.lanes.iter().flatten().filter_map(|slot| slot.open.as_ref()).map(|open| open.inode);
        self.disk.drop_unnamed(&open.collect());
        Ok(FileOutcome::Closed)
    }

    fn poison(&mut self, file: FileId) {
        if let Ok(Slot { open: Some(open), .. }) = self.slot(file) {
            open.is_poisoned = true;
        }
    }

    fn check_space(&self, inode: InodeId, end: u64) -> Result<(), FileError> {
        let present = self.disk.file(inode).map_or(0, |inode| inode.content().len() as u64);
        let grows = end.saturating_sub(present);
        if end > FILE_BYTES_MAX || grows > 0 && self.disk.used_bytes() + grows > self.faults.capacity_bytes() {
            return Err(FileError::DiskFull);
        }
        Ok(())
    }

    /// Returns the open file, if the range may be read or written.
    fn open_for_range(&mut self, file: FileId, offset: u64, length: u64) -> Result<OpenFile, FileError> {
        let open = self.opened(file)?;
        if open.is_direct && !(offset | length).is_multiple_of(FILE_BLOCK_BYTES as u64) {
            return Err(FileError::Misaligned);
        }
        Ok(open)
    }

    fn opened(&mut self, file: FileId) -> Result<OpenFile, FileError> {
        match &self.slot(file)?.open {
            Some(open) if open.is_poisoned => Err(FileError::Poisoned),
            Some(open) => Ok(open.clone()),
            None => Err(FileError::NotOpen),
        }
    }

    fn slot(&mut self, file: FileId) -> Result<&mut Slot, FileError> {
        let slot = self.lanes[file.lane().index()].get_mut(file.slot());
        let slot = slot.filter(|slot| FileId::new(file.lane(), file.slot(), slot.generation) == file);
        slot.filter(|slot| slot.open.is_some()).ok_or(FileError::NotOpen)
    }
}

/// The absolute path of a file beneath a folder. A simulated disk has no links, so only `..` may lead out.
fn beneath(folder: &str, path: &str) -> Result<String, FileError> {
    let relative = match path.starts_with('/') {
        true => path.strip_prefix(folder).filter(|rest| folder.ends_with('/') || rest.starts_with('/')),
        false => Some(path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in relative.ok_or(FileError::Outside)?.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Err(FileError::Outside),
            ".." => {}
            name => parts.push(name),
        }
    }
    Ok(format!("{}/{}", folder.trim_end_matches('/'), parts.join("/")))
}

/// The time that the transfer of the request's bytes adds, at a gigabyte a second.
fn transfer_ns(request: &WorldRequest) -> u64 {
    match request {
        WorldRequest::WriteFile { bytes, .. } => bytes.len() as u64,
        WorldRequest::ReadFile { length, .. } => u64::from(*length),
        WorldRequest::FillFile { length, .. } => *length,
        _ => 0,
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
