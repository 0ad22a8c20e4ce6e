//! The files of the log. Each is filled with zeros and synced under another name before it is used, so that
//! later writes change no metadata of the file system. A segment that a checkpoint has made unnecessary is
//! renamed for a later position, because it is filled already. Recovery does not mistake its old groups for
//! new ones: each group names its position.

use std::collections::{BTreeSet, VecDeque};

use junctor_kernel::{
    Duration, FileError, FileId, FileLane, FileMode, FileOutcome, FileResult, Outbox, WorldRequest, require,
};
use junctor_model::planted_bug::PlantedBug;
use junctor_signals::{Signal, crash_point};
use junctor_storage::log::{SegmentSize, segment_path};

use super::block::LogConfiguration;
use super::cycle::{SEGMENT, SEGMENT_TIMER, TOKEN_KIND_SHIFT, failure};

/// Time between two attempts to create a segment after one failed.
const RETRY_MS: u64 = 10_000;
/// Trimmed segments that are kept for renaming. The others are deleted.
const SPARES_MAX: usize = 8;

/// The segments that are open, and the one that is being prepared.
#[derive(Debug)]
pub(super) struct Segments {
    folder: Box<str>,
    size: SegmentSize,
    /// Maximum number of files.
    segments_max: u64,
    /// Open segments by number: the present one, and the next once it is ready. Older ones are closed once
    /// all their groups are synced.
    open: Vec<(u64, FileId)>,
    /// Segments with a file, spare ones excluded.
    existing: BTreeSet<u64>,
    /// Trimmed segments, whose files wait for a new number.
    spare: VecDeque<u64>,
    /// The first position that recovery would read.
    replay_from: u64,
    preparing: Option<Preparation>,
    /// Whether the preparation has failed and waits for another attempt.
    has_failed: bool,
    retry_timer_runs: bool,
}

#[derive(Debug)]
struct Preparation {
    segment: u64,
    step: Step,
}

/// The request that a preparation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    CreateFolder,
    Create,
    Fill(FileId),
    Close,
    Rename,
    /// Renames a spare segment.
    Reuse(u64),
    SyncFolder,
    Open,
}

impl Segments {
    pub fn new(configuration: &LogConfiguration) -> Segments {
        let LogConfiguration { folder, segment_size, segments_max, .. } = configuration;
        let folder = folder.clone();
        Segments {
            folder,
            size: *segment_size,
            segments_max: *segments_max,
            open: Vec::new(),
            existing: BTreeSet::new(),
            spare: VecDeque::new(),
            replay_from: 0,
            preparing: None,
            has_failed: false,
            retry_timer_runs: false,
        }
    }

    /// Takes over the segments of earlier lives.
    pub fn adopt(&mut self, segments: &[u64], replay_from: u64) {
        self.existing.extend(segments);
        self.trim(replay_from);
    }

    /// Makes the segments before the one with this position spare.
    pub fn trim(&mut self, replay_from: u64) {
        require!(self.replay_from <= replay_from, "a log is trimmed from its beginning on: {replay_from}");
        self.replay_from = replay_from;
        let needed = self.existing.split_off(&self.size.segment_of(replay_from));
        self.spare.extend(std::mem::replace(&mut self.existing, needed));
    }

    /// Deletes the spare segments beyond those that are kept for renaming, and those beyond the limit. A
    /// deletion that fails or that a crash undoes does no harm: the next start finds the file below the
    /// trimmed position.
    pub fn delete_surplus(&mut self, outbox: &mut Outbox<Signal>) {
        while (self.spare.len() > SPARES_MAX || self.files() > self.segments_max)
            && let Some(segment) = self.spare.pop_front()
        {
            let path = segment_path(&self.folder, segment);
            outbox.request(WorldRequest::DeleteFile { path, lane: FileLane::Bulk, token: token(u64::MAX) });
        }
    }

    /// The start of the first segment that recovery would read.
    pub fn first_position(&self) -> u64 {
        self.size.segment_start(self.replay_from)
    }

    /// The file of a segment, if it is ready for writes.
    pub fn file_at(&self, segment: u64) -> Option<FileId> {
        self.open.iter().find(|(number, _)| *number == segment).map(|(_, file)| *file)
    }

    /// Whether the first segment is open.
    pub fn is_ready(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens the segment in which the log goes on. A log that begins with it creates it.
    pub fn open_first(&mut self, position: u64, outbox: &mut Outbox<Signal>) {
        let segment = self.size.segment_of(position);
        // A segment that has no group yet may be one that a crash left unfinished.
        let step = if self.size.is_start(position) { Step::CreateFolder } else { Step::Open };
        self.begin_step(segment, step, outbox);
    }

    /// Number of files.
    fn files(&self) -> u64 {
        (self.existing.len() + self.spare.len()) as u64
    }

    /// Prepares a segment ahead of need, unless it would exceed the limit. The log needs it only after a
    /// checkpoint then.
    pub fn prepare_ahead(&mut self, segment: u64, outbox: &mut Outbox<Signal>) {
        if segment < self.size.segment_of(self.replay_from) + self.segments_max {
            self.prepare(segment, outbox);
        }
    }

    /// Prepares a segment, unless it is ready or another one is being prepared.
    pub fn prepare(&mut self, segment: u64, outbox: &mut Outbox<Signal>) {
        if self.preparing.is_none() && self.file_at(segment).is_none() {
            self.begin_preparation(segment, outbox);
        }
    }

    fn begin_preparation(&mut self, segment: u64, outbox: &mut Outbox<Signal>) {
        let step = match self.existing.contains(&segment) {
            // A crash left a segment that was ready. Its name may not be on disk yet.
            true => Step::SyncFolder,
            false => self.spare.pop_front().map_or(Step::Create, Step::Reuse),
        };
        self.begin_step(segment, step, outbox);
    }

    /// Closes the segments before `present`. All their groups are synced.
    pub fn close_before(&mut self, present: u64, outbox: &mut Outbox<Signal>) {
        for (_, file) in self.open.extract_if(.., |(number, _)| *number < present) {
            outbox.request(WorldRequest::CloseFile { file, token: token(u64::MAX) });
        }
    }

    pub fn on_timer(&mut self, outbox: &mut Outbox<Signal>) {
        self.retry_timer_runs = false;
        self.retry(outbox);
    }

    /// Whether the segment being prepared could not be created.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Tries again to create a segment, if that has failed.
    pub fn retry(&mut self, outbox: &mut Outbox<Signal>) {
        if let Some(preparation) = self.preparing.as_ref().filter(|_| self.has_failed) {
            let Preparation { segment, step } = *preparation;
            self.has_failed = false;
            match step {
                Step::CreateFolder => self.begin_step(segment, step, outbox),
                _ => self.begin_preparation(segment, outbox),
            }
        }
    }

    pub fn on_file_done(&mut self, segment: u64, result: &FileResult, outbox: &mut Outbox<Signal>) {
        let Some(Preparation { segment: awaited, step }) = self.preparing else { return };
        if segment != awaited & u64::from(u32::MAX) {
            // The answer to the close of an older segment.
            return;
        }
        let next = match (step, result) {
            (Step::CreateFolder, Ok(FileOutcome::FolderCreated)) => Step::Create,
            (Step::Create, Ok(FileOutcome::Opened { file, .. })) => {
                outbox.crash_point(crash_point::SEGMENT_CREATE.after());
                Step::Fill(*file)
            }
            (Step::Fill(file), Ok(FileOutcome::Filled)) => {
                outbox.crash_point(crash_point::SEGMENT_FILL.after());
                outbox.crash_point(crash_point::SEGMENT_SYNC.after());
                outbox.request(WorldRequest::CloseFile { file, token: token(awaited) });
                self.preparing = Some(Preparation { segment: awaited, step: Step::Close });
                return;
            }
            (Step::Close, Ok(FileOutcome::Closed)) => Step::Rename,
            (Step::Rename | Step::Reuse(_), Ok(FileOutcome::Renamed)) => {
                outbox.crash_point(crash_point::SEGMENT_RENAME.after());
                if PlantedBug::SkipFolderSync.is_planted() { Step::Open } else { Step::SyncFolder }
            }
            (Step::SyncFolder, Ok(FileOutcome::FolderSynced)) => {
                outbox.crash_point(crash_point::SEGMENT_DIRECTORY.after());
                Step::Open
            }
            (Step::Open, Ok(FileOutcome::Opened { file, length, .. })) => {
                require!(*length >= self.size.bytes(), "segment {awaited} has its size: {length} bytes");
                self.open.push((awaited, *file));
                self.existing.insert(awaited);
                self.preparing = None;
                return;
            }
            (step, result) => return self.on_failure(awaited, step, result, outbox),
        };
        self.begin_step(awaited, next, outbox);
    }

    /// A segment that cannot be created is tried again: the present one may last for long.
    fn on_failure(&mut self, segment: u64, step: Step, result: &FileResult, outbox: &mut Outbox<Signal>) {
        if let Step::Fill(file) = step {
            outbox.request(WorldRequest::CloseFile { file, token: token(u64::MAX) });
        }
        let can_retry = matches!(step, Step::CreateFolder | Step::Create | Step::Fill(_))
            && matches!(result, Err(FileError::DiskFull | FileError::System(_) | FileError::TooManyOpen));
        if !can_retry {
            // After a failed sync of the folder, the names on disk are unknown.
            let message = format!("cannot prepare segment {segment} of the log: {} ({step:?})", failure(result));
            return outbox.request(WorldRequest::Halt { message: message.into() });
        }
        // An unfinished file would keep the room that others need on a full device.
        let path = format!("{}/prepared", self.folder).into();
        outbox.request(WorldRequest::DeleteFile { path, lane: FileLane::Bulk, token: token(u64::MAX) });
        let retried = if step == Step::CreateFolder { step } else { Step::Create };
        self.preparing = Some(Preparation { segment, step: retried });
        self.has_failed = true;
        if !self.retry_timer_runs {
            self.retry_timer_runs = true;
            outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(RETRY_MS), token: SEGMENT_TIMER });
        }
    }

    fn begin_step(&mut self, segment: u64, step: Step, outbox: &mut Outbox<Signal>) {
        self.preparing = Some(Preparation { segment, step });
        let (lane, token) = (FileLane::Bulk, token(segment));
        let prepared = format!("{}/prepared", self.folder).into();
        let name = segment_path(&self.folder, segment);
        let request = match step {
            Step::CreateFolder => WorldRequest::CreateFolder { path: self.folder.clone(), lane, token },
            Step::Create => {
                outbox.crash_point(crash_point::SEGMENT_CREATE.before());
                let mode = FileMode::CreateEmpty;
                WorldRequest::OpenFile { path: prepared, mode, lane, is_direct: true, token }
            }
            Step::Fill(file) => {
                outbox.crash_point(crash_point::SEGMENT_FILL.before());
                outbox.crash_point(crash_point::SEGMENT_SYNC.before());
                WorldRequest::FillFile { file, length: self.size.bytes(), token }
            }
            // Requested together with the answer that precedes it.
            Step::Close => return,
            Step::Rename => {
                outbox.crash_point(crash_point::SEGMENT_RENAME.before());
                WorldRequest::RenameFile { from: prepared, to: name, lane, token }
            }
            Step::Reuse(spare) => {
                outbox.crash_point(crash_point::SEGMENT_RENAME.before());
                let from = segment_path(&self.folder, spare);
                WorldRequest::RenameFile { from, to: name, lane, token }
            }
            Step::SyncFolder => {
                outbox.crash_point(crash_point::SEGMENT_DIRECTORY.before());
                WorldRequest::SyncFolder { path: self.folder.clone(), lane, token }
            }
            Step::Open => {
                let (mode, lane) = (FileMode::ReadWrite, FileLane::Log);
                WorldRequest::OpenFile { path: name, mode, lane, is_direct: true, token }
            }
        };
        outbox.request(request);
    }
}

/// The token of a request about a segment, of whose number it keeps the low 32 bits.
fn token(segment: u64) -> u64 {
    SEGMENT << TOKEN_KIND_SHIFT | segment & u64::from(u32::MAX)
}
