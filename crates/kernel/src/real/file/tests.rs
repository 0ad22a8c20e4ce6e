use std::fs::OpenOptions;
use std::io::Error;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::lane::Operation;
use super::*;
use crate::address::{Address, NodeId};
use crate::file_buffer::FileBuffer;
use crate::toy::STARTER;
use crate::world::{FileId, FileMode, FileOutcome, FileResult, FolderEntry};

fn from() -> Requester {
    Requester { thread: 3, block: Address::new(NodeId(1), STARTER, 0) }
}

struct Answers(Mutex<Sender<Answer>>);

impl AnswerSink for Answers {
    fn deliver(&self, _lane: FileLane, answers: std::vec::Drain<'_, Answer>) {
        let sender = self.0.lock().unwrap();
        // The receiver is gone at the end of a test.
        answers.for_each(|answer| _ = sender.send(answer));
    }
}

/// A folder of its own with the workers of its lanes.
pub(super) struct Fixture {
    pub(super) folder: PathBuf,
    workers: Option<FileWorkers>,
    queues: FileQueues,
    answers: Receiver<Answer>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.workers = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Fixture {
    pub(super) fn new(requests_max: u32, backend: FileBackend) -> Fixture {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("junctor-file-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (sender, answers) = channel();
        let sink = Arc::new(Answers(Mutex::new(sender)));
        let options = FileOptions { folder: &folder, requests_max, backend };
        let workers = FileWorkers::start(&options, &sink, || {}).unwrap();
        Fixture { folder, queues: workers.queues().clone(), workers: Some(workers), answers }
    }

    pub(super) fn submit(&self, request: WorldRequest) {
        self.queues.submit(from(), request).unwrap();
    }

    /// The next answer, of any lane.
    pub(super) fn answer(&self) -> (u64, FileResult, FileBuffer) {
        let answer = self.answers.recv().unwrap();
        assert_eq!(answer.to, from());
        match answer.event {
            WorldEvent::FileDone { token, result, bytes } => (token, result, bytes),
            other => panic!("{other:?} is no answer"),
        }
    }

    pub(super) fn ask(&self, request: WorldRequest) -> FileResult {
        self.submit(request);
        self.answer().1
    }

    fn open(&self, path: &str, mode: FileMode, lane: FileLane) -> Result<FileId, FileError> {
        match self.ask(open(path, mode, lane, 0))? {
            FileOutcome::Opened { file, .. } => Ok(file),
            other => panic!("{other:?} is no open file"),
        }
    }

    fn read(&self, file: FileId, offset: u64, length: u32) -> Result<Vec<u8>, FileError> {
        self.submit(WorldRequest::ReadFile { file, offset, length, bytes: FileBuffer::new(), token: 0 });
        let (_, result, bytes) = self.answer();
        assert!(result.is_err() || result == Ok(FileOutcome::Read { length: bytes.len() as u32 }));
        result.map(|_| bytes.to_vec())
    }

    /// Makes the lane wait until the returned guard is dropped: the worker opens a pipe that nobody writes.
    fn block(&self, lane: FileLane) -> BlockedLane {
        let path = self.folder.join(format!("pipe-{}", lane.name()));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        self.submit(open(path.to_str().unwrap(), FileMode::Read, lane, 77));
        while !self.queues.0[lane.index()].is_empty() {
            std::thread::yield_now();
        }
        BlockedLane(path)
    }
}

struct BlockedLane(PathBuf);

impl Drop for BlockedLane {
    fn drop(&mut self) {
        // Opening the pipe for writing lets the worker's open return.
        drop(OpenOptions::new().write(true).open(&self.0).unwrap());
    }
}

fn open(path: &str, mode: FileMode, lane: FileLane, token: u64) -> WorldRequest {
    WorldRequest::OpenFile { path: path.into(), mode, lane, is_direct: false, token }
}

fn write(file: FileId, offset: u64, bytes: &[u8], token: u64) -> WorldRequest {
    WorldRequest::WriteFile { file, offset, bytes: bytes.into(), token }
}

#[test]
fn a_failed_sync_poisons_the_file() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        // A device that cannot be synced.
        let file = fixture.open("/dev/null", FileMode::ReadWrite, FileLane::Log).unwrap();
        assert_eq!(fixture.ask(WorldRequest::SyncFile { file, token: 0 }), Err(FileError::System(libc::EINVAL)));
        fixture.submit(write(file, 0, &[1], 5));
        assert_eq!(fixture.answer(), (5, Err(FileError::Poisoned), FileBuffer::from(&[1][..])));
        assert_eq!(fixture.read(file, 0, 1), Err(FileError::Poisoned));
        assert_eq!(fixture.ask(WorldRequest::SyncFile { file, token: 0 }), Err(FileError::Poisoned));
        assert_eq!(fixture.ask(WorldRequest::CloseFile { file, token: 0 }), Ok(FileOutcome::Closed));
    }
}

#[test]
fn a_fill_that_cannot_sync_fails_and_poisons_too() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        let file = fixture.open("/dev/null", FileMode::ReadWrite, FileLane::Log).unwrap();
        let filled = fixture.ask(WorldRequest::FillFile { file, length: 10, token: 0 });
        assert_eq!(filled, Err(FileError::System(libc::EINVAL)));
        assert_eq!(fixture.read(file, 0, 1), Err(FileError::Poisoned));
    }
}

#[test]
fn errors_have_distinct_kinds() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        assert_eq!(fixture.open("no/such/file", FileMode::Read, FileLane::Log), Err(FileError::NotFound));
        let below_a_file = fixture.open("/proc/version/file", FileMode::Read, FileLane::Log);
        assert_eq!(below_a_file, Err(FileError::System(libc::ENOTDIR)));
        let full = fixture.open("/dev/full", FileMode::ReadWrite, FileLane::Log).unwrap();
        assert_eq!(fixture.ask(write(full, 0, &[1], 0)), Err(FileError::DiskFull));
        fixture.ask(WorldRequest::CloseFile { file: full, token: 0 }).unwrap();
        assert_eq!(fixture.ask(write(full, 0, &[1], 0)), Err(FileError::NotOpen));
        // The slot is used again, and its earlier name stays invalid.
        assert_ne!(fixture.open("/dev/full", FileMode::ReadWrite, FileLane::Log).unwrap(), full);
        assert_eq!(fixture.ask(write(full, 0, &[1], 0)), Err(FileError::NotOpen));
    }
}

#[test]
fn requests_of_a_file_are_carried_out_in_order() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(1000, backend);
        let file = fixture.open("a", FileMode::CreateEmpty, FileLane::Log).unwrap();
        for token in 1..=100 {
            fixture.submit(write(file, token % 3, &[token as u8; 5], token));
            fixture.submit(WorldRequest::ReadFile { file, offset: 0, length: 10, bytes: FileBuffer::new(), token });
        }
        fixture.submit(WorldRequest::CloseFile { file, token: 101 });
        fixture.submit(WorldRequest::SyncFile { file, token: 102 });
        for token in 1..=100_u64 {
            let offset = token % 3;
            assert_eq!(fixture.answer().1, Ok(FileOutcome::Written { offset, length: 5 }));
            let (read_token, _, bytes) = fixture.answer();
            assert_eq!((read_token, &bytes[offset as usize..offset as usize + 5]), (token, &[token as u8; 5][..]));
        }
        assert_eq!(fixture.answer().1, Ok(FileOutcome::Closed));
        assert_eq!(fixture.answer().1, Err(FileError::NotOpen));
    }
}

#[test]
fn a_read_at_the_end_returns_the_remaining_bytes() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        let file = fixture.open("a", FileMode::CreateEmpty, FileLane::Read).unwrap();
        fixture.ask(write(file, 2, b"abc", 0)).unwrap();
        assert_eq!(fixture.read(file, 1, 100).unwrap(), b"\0abc");
        assert_eq!(fixture.read(file, 5, 100).unwrap(), b"");
        assert_eq!(fixture.ask(write(file, 2, b"", 0)), Ok(FileOutcome::Written { offset: 2, length: 0 }));
    }
}

#[test]
fn a_lane_that_waits_for_its_device_delays_no_other() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        let blocked = fixture.block(FileLane::Control);
        for lane in [FileLane::Log, FileLane::Checkpoint, FileLane::Bulk, FileLane::Read] {
            let file = fixture.open("a", FileMode::CreateOrOpen, lane).unwrap();
            fixture.ask(write(file, 0, &[1], 0)).unwrap();
            assert_eq!(fixture.ask(WorldRequest::SyncFile { file, token: 0 }), Ok(FileOutcome::Synced));
        }
        drop(blocked);
        assert_eq!(fixture.answer().0, 77);
    }
}

#[test]
fn a_fill_writes_zeros_and_requests_of_other_files_overtake_it() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        let (lane, length) = (FileLane::Bulk, 9 << 20);
        let (file, other) =
            (fixture.open("a", FileMode::CreateEmpty, lane), fixture.open("b", FileMode::CreateEmpty, lane));
        let (file, other) = (file.unwrap(), other.unwrap());
        fixture.ask(write(file, 100, &[1; 100], 0)).unwrap();
        let blocked = fixture.block(lane);
        fixture.submit(WorldRequest::FillFile { file, length, token: 1 });
        fixture.submit(write(file, 1, &[5], 2));
        fixture.submit(write(other, 0, &[1], 3));
        drop(blocked);
        let tokens = [fixture.answer().0, fixture.answer().0, fixture.answer().0, fixture.answer().0];
        assert_eq!(tokens, [77, 3, 1, 2]);
        let bytes = std::fs::read(fixture.folder.join("a")).unwrap();
        assert_eq!((bytes.len() as u64, bytes[1]), (length, 5));
        assert!(bytes.iter().enumerate().all(|(at, &byte)| at == 1 || byte == 0));
    }
}

#[test]
fn a_full_queue_refuses_a_request_and_returns_its_buffer() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(2, backend);
        let file = fixture.open("a", FileMode::CreateEmpty, FileLane::Log).unwrap();
        let blocked = fixture.block(FileLane::Log);
        fixture.submit(write(file, 0, &[1], 1));
        fixture.submit(write(file, 0, &[2], 2));
        match fixture.queues.submit(from(), write(file, 0, &[3], 3)) {
            Err(WorldEvent::FileDone { token: 3, result: Err(FileError::QueueFull), bytes }) => assert_eq!(*bytes, [3]),
            other => panic!("{other:?}"),
        }
        drop(blocked);
        assert_eq!([fixture.answer().0, fixture.answer().0, fixture.answer().0], [77, 1, 2]);
        assert_eq!(fixture.read(file, 0, 10).unwrap(), [2]);
    }
}

#[test]
fn a_stop_ends_the_operation_under_way_and_drops_the_requests_that_wait() {
    for backend in FileBackend::ALL {
        let mut fixture = Fixture::new(100, backend);
        let file = fixture.open("a", FileMode::CreateEmpty, FileLane::Log).unwrap();
        let blocked = fixture.block(FileLane::Log);
        fixture.submit(write(file, 0, &[1], 1));
        let workers = fixture.workers.take();
        let stopper = std::thread::Builder::new().spawn(move || drop(workers)).unwrap();
        while !fixture.queues.0[FileLane::Log.index()].is_stopped() {
            std::thread::yield_now();
        }
        assert!(fixture.queues.submit(from(), write(file, 0, &[1], 1)).is_err());
        drop(blocked);
        stopper.join().unwrap();
        assert_eq!(fixture.answer().0, 77);
        assert!(fixture.answers.recv().is_err(), "no request is answered after a stop");
        assert_eq!(std::fs::read(fixture.folder.join("a")).unwrap(), b"");
    }
}

#[test]
fn folders_are_created_listed_and_synced_and_names_change() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        let lane = FileLane::Control;
        let path = |path: &str| -> Box<str> { path.into() };
        let create = || WorldRequest::CreateFolder { path: path("one/two"), lane, token: 0 };
        assert_eq!(fixture.ask(create()), Ok(FileOutcome::FolderCreated));
        assert_eq!(fixture.ask(create()), Ok(FileOutcome::FolderCreated));
        for (name, length) in [("one/b", 3), ("one/a", 5), ("one/c", 7)] {
            let file = fixture.open(name, FileMode::CreateEmpty, lane).unwrap();
            fixture.ask(write(file, 0, &vec![1; length], 0)).unwrap();
            fixture.ask(WorldRequest::CloseFile { file, token: 0 }).unwrap();
        }
        let sync = |name: &str| fixture.ask(WorldRequest::SyncFolder { path: path(name), lane, token: 0 });
        assert_eq!(sync("one"), Ok(FileOutcome::FolderSynced));
        assert_eq!(sync(""), Ok(FileOutcome::FolderSynced));
        assert_eq!(sync("three"), Err(FileError::NotFound));
        let rename =
            |from, to| fixture.ask(WorldRequest::RenameFile { from: path(from), to: path(to), lane, token: 0 });
        assert_eq!(rename("one/c", "one/a"), Ok(FileOutcome::Renamed));
        assert_eq!(rename("one/c", "one/a"), Err(FileError::NotFound));
        let delete = || fixture.ask(WorldRequest::DeleteFile { path: path("one/b"), lane, token: 0 });
        assert_eq!((delete(), delete()), (Ok(FileOutcome::Deleted), Ok(FileOutcome::Deleted)));
        let entry = |name: &str, length, is_folder| FolderEntry { name: name.into(), length, is_folder };
        let listed = fixture.ask(WorldRequest::ListFolder { path: path("one"), lane, token: 0 });
        assert_eq!(listed, Ok(FileOutcome::Listed(vec![entry("a", 7, false), entry("two", 0, true)])));
        assert_eq!(
            fixture.ask(WorldRequest::ListFolder { path: path("two"), lane, token: 0 }),
            Err(FileError::NotFound)
        );
    }
}

#[test]
fn direct_files_require_whole_blocks_on_every_file_system() {
    for backend in FileBackend::ALL {
        let fixture = Fixture::new(100, backend);
        let (lane, is_direct) = (FileLane::Checkpoint, true);
        let direct = |path: &str, mode| WorldRequest::OpenFile { path: path.into(), mode, lane, is_direct, token: 0 };
        // A file system without direct reads.
        let Ok(FileOutcome::Opened { file, is_direct: false, .. }) =
            fixture.ask(direct("/proc/version", FileMode::Read))
        else {
            panic!("an ordinary file is opened instead")
        };
        assert!(fixture.read(file, 0, 4096).unwrap().starts_with(b"Linux"));
        assert_eq!(fixture.read(file, 0, 100), Err(FileError::Misaligned));

        let Ok(FileOutcome::Opened { file, .. }) = fixture.ask(direct("a", FileMode::CreateEmpty)) else { panic!() };
        assert_eq!(fixture.ask(write(file, 0, &[1; 100], 0)), Err(FileError::Misaligned));
        assert_eq!(fixture.ask(write(file, 512, &[1; 4096], 0)), Err(FileError::Misaligned));
        assert_eq!(
            fixture.ask(write(file, 4096, &[2; 8192], 0)),
            Ok(FileOutcome::Written { offset: 4096, length: 8192 })
        );
        assert_eq!(fixture.ask(WorldRequest::SyncFile { file, token: 0 }), Ok(FileOutcome::Synced));
        let bytes = fixture.read(file, 0, 65_536).unwrap();
        assert!(bytes.len() == 12_288 && bytes[..4096] == [0; 4096] && bytes[4096..] == [2; 8192]);
        assert_eq!(fixture.ask(WorldRequest::FillFile { file, length: 5000, token: 0 }), Err(FileError::Misaligned));
        assert_eq!(fixture.ask(WorldRequest::FillFile { file, length: 8192, token: 0 }), Ok(FileOutcome::Filled));
        assert_eq!(fixture.read(file, 4096, 4096).unwrap(), [0; 4096]);
        // A direct read ends within a block at the end of the file.
        std::fs::write(fixture.folder.join("odd"), [7; 5000]).unwrap();
        let Ok(FileOutcome::Opened { file, .. }) = fixture.ask(direct("odd", FileMode::Read)) else { panic!() };
        assert_eq!(fixture.read(file, 0, 16_384).unwrap(), [7; 5000]);
    }
}

#[test]
fn a_write_continues_after_interruptions_and_short_writes() {
    let mut lane = Lane::new(FileLane::Log, std::env::temp_dir());
    lane.accept(from(), open("/dev/null", FileMode::ReadWrite, FileLane::Log, 0));
    let opened = lane.take_answers().next().unwrap().event;
    let WorldEvent::FileDone { result: Ok(FileOutcome::Opened { file, .. }), .. } = opened else { panic!() };
    lane.accept(from(), write(file, 100, b"0123456789", 0));
    let results = [Ok(4), Err(libc::EINTR), Ok(6)];
    let mut operations = Vec::new();
    for result in results {
        let slot = lane.next_ready().unwrap();
        let Operation::Write(bytes, offset) = lane.operation(slot).1 else { panic!() };
        operations.push((bytes.to_vec(), offset));
        lane.complete(slot, result.map_err(Error::from_raw_os_error));
    }
    let wanted = [(&b"0123456789"[..], 100), (b"456789", 104), (b"456789", 104)];
    assert_eq!(operations, wanted.map(|(bytes, offset)| (bytes.to_vec(), offset)));
    let event = lane.take_answers().next().unwrap().event;
    assert!(matches!(event, WorldEvent::FileDone { result: Ok(FileOutcome::Written { offset: 100, length: 10 }), .. }));

    // A write that makes no progress fails instead of going on for ever.
    lane.accept(from(), write(file, 0, b"0", 0));
    let slot = lane.next_ready().unwrap();
    lane.complete(slot, Ok(0));
    let event = lane.take_answers().next().unwrap().event;
    assert!(matches!(event, WorldEvent::FileDone { result: Err(FileError::System(libc::EIO)), .. }));
}

#[test]
fn a_synced_write_is_answered_after_its_sync_without_waiting_for_other_requests() {
    let mut lane = Lane::new(FileLane::Log, std::env::temp_dir());
    lane.accept(from(), open("/dev/zero", FileMode::ReadWrite, FileLane::Log, 0));
    let opened = lane.take_answers().next().unwrap().event;
    let WorldEvent::FileDone { result: Ok(FileOutcome::Opened { file, .. }), .. } = opened else { panic!() };
    let other = Requester { thread: 4, ..from() };
    let step = |lane: &mut Lane| {
        let slot = lane.next_ready().unwrap();
        lane.complete(slot, Ok(1));
    };
    for (next, waits) in [(None, false), (Some(from()), true), (Some(other), false)] {
        // The sync is still in the queue, or accepted.
        lane.accept(from(), write(file, 0, &[1], 0));
        step(&mut lane);
        assert_eq!(lane.awaits_sync(|| next), waits);
        assert_eq!(lane.take_answers().count(), 1);
        lane.accept(from(), write(file, 0, &[1], 0));
        if let Some(next) = next {
            lane.accept(next, WorldRequest::SyncFile { file, token: 0 });
        }
        step(&mut lane);
        assert_eq!(lane.awaits_sync(|| None), waits);
        if next.is_some() {
            step(&mut lane);
            assert!(!lane.awaits_sync(|| next), "a sync is answered immediately");
        }
        lane.take_answers().for_each(drop);
    }
}
