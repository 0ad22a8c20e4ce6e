use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::*;
use crate::address::NodeId;
use crate::block::{Endpoints, Host};
use crate::context::Context;
use crate::directory::NodeLayout;
use crate::outbox::Outbox;
use crate::simulated::{NodeEnd, Simulation, SimulationOptions};
use crate::toy::{STARTER, ToySignal};

const NODE: NodeId = NodeId(1);
const LANE: FileLane = FileLane::Log;

fn files(seed: u64) -> VirtualFiles {
    VirtualFiles::new(seed, FileOptions { request_ns_max: 1_000, requests_max: 10, has_direct_files: true })
}

fn accept(files: &mut VirtualFiles, request: WorldRequest) -> Option<WorldEvent> {
    files.accept(Address::new(NODE, STARTER, 0), request, Time(0))
}

/// Carries out a request; returns its result and the bytes of its answer.
fn ask(files: &mut VirtualFiles, request: WorldRequest) -> (FileResult, Vec<u8>) {
    assert!(accept(files, request).is_none());
    let (_, number) = files.take_scheduled().pop().unwrap();
    match files.complete(number) {
        Some((_, WorldEvent::FileDone { result, bytes, .. })) => (result, bytes.to_vec()),
        other => panic!("{other:?} is no answer"),
    }
}

fn open(files: &mut VirtualFiles, path: &str, mode: FileMode) -> Result<FileId, FileError> {
    let request = WorldRequest::OpenFile { path: path.into(), mode, lane: LANE, is_direct: false, token: 0 };
    match ask(files, request).0? {
        FileOutcome::Opened { file, .. } => Ok(file),
        other => panic!("{other:?} is no open file"),
    }
}

fn write(files: &mut VirtualFiles, file: FileId, offset: u64, bytes: &[u8]) -> FileResult {
    ask(files, WorldRequest::WriteFile { file, offset, bytes: bytes.into(), token: 0 }).0
}

fn sync(files: &mut VirtualFiles, file: FileId) -> FileResult {
    ask(files, WorldRequest::SyncFile { file, token: 0 }).0
}

fn read(files: &mut VirtualFiles, file: FileId, offset: u64, length: u32) -> Result<Vec<u8>, FileError> {
    let (result, bytes) =
        ask(files, WorldRequest::ReadFile { file, offset, length, bytes: FileBuffer::new(), token: 0 });
    result.map(|_| bytes)
}

fn sync_folder(files: &mut VirtualFiles, path: &str) -> FileResult {
    ask(files, WorldRequest::SyncFolder { path: path.into(), lane: LANE, token: 0 }).0
}

fn rename(files: &mut VirtualFiles, from: &str, to: &str) -> FileResult {
    ask(files, WorldRequest::RenameFile { from: from.into(), to: to.into(), lane: LANE, token: 0 }).0
}

fn delete(files: &mut VirtualFiles, path: &str) -> FileResult {
    ask(files, WorldRequest::DeleteFile { path: path.into(), lane: LANE, token: 0 }).0
}

fn create_folder(files: &mut VirtualFiles, path: &str) -> FileResult {
    ask(files, WorldRequest::CreateFolder { path: path.into(), lane: LANE, token: 0 }).0
}

/// A file with a durable name and this durable content.
fn durable_file(files: &mut VirtualFiles, path: &str, content: &[u8]) -> FileId {
    let file = open(files, path, FileMode::CreateEmpty).unwrap();
    write(files, file, 0, content).unwrap();
    sync(files, file).unwrap();
    sync_folder(files, "").unwrap();
    file
}

fn fault(operation: DiskOperation, when: FaultTime) -> DiskFaults {
    DiskFaults { failing: vec![DiskFault::new(operation, when)], ..DiskFaults::default() }
}

/// The contents of `path` on the disk after many runs that end by a loss of power.
fn after_power_loss(path: &str, run: impl Fn(&mut VirtualFiles)) -> BTreeSet<Option<Vec<u8>>> {
    let outcome = |seed| {
        let mut files = files(seed);
        run(&mut files);
        files.lose_power(Time(0));
        files.disk.content(path).map(<[u8]>::to_vec)
    };
    (0..300).map(outcome).collect()
}

/// The first byte of each sector.
fn heads(content: &Option<Vec<u8>>) -> Vec<u8> {
    content.iter().flatten().step_by(SECTOR_BYTES).copied().collect()
}

#[test]
fn an_effect_happens_when_its_request_completes() {
    let mut files = files(1);
    let file = durable_file(&mut files, "a", b"old");
    let (bytes, token) = (b"new"[..].into(), 7);
    assert!(accept(&mut files, WorldRequest::WriteFile { file, offset: 0, bytes, token }).is_none());
    assert_eq!(files.disk.content("a"), Some(&b"old"[..]));
    let (time, number) = files.take_scheduled().pop().unwrap();
    assert!(time > Time(0));
    let Some((_, WorldEvent::FileDone { token: 7, result, .. })) = files.complete(number) else { panic!() };
    assert_eq!(result, Ok(FileOutcome::Written { offset: 0, length: 3 }));
    assert_eq!(files.disk.content("a"), Some(&b"new"[..]));
}

#[test]
fn requests_complete_in_order_within_a_file_but_not_across_files() {
    let mut overtakes = false;
    for seed in 0..20 {
        let mut files = files(seed);
        let (one, other) = (durable_file(&mut files, "a", b""), durable_file(&mut files, "b", b""));
        for file in [one, one, other] {
            accept(&mut files, WorldRequest::SyncFile { file, token: 0 });
        }
        let [first, second, other] = files.take_scheduled().try_into().unwrap();
        assert!(first.0 < second.0);
        overtakes |= other.0 < first.0;
    }
    assert!(overtakes);
}

#[test]
fn a_full_lane_refuses_requests() {
    let mut files = files(1);
    let file = durable_file(&mut files, "a", b"");
    for _ in 0..10 {
        assert!(accept(&mut files, WorldRequest::SyncFile { file, token: 0 }).is_none());
    }
    let refused = accept(&mut files, WorldRequest::SyncFile { file, token: 3 });
    assert!(matches!(refused, Some(WorldEvent::FileDone { token: 3, result: Err(FileError::QueueFull), .. })));
}

#[test]
fn any_subset_of_unsynced_writes_may_survive() {
    let outcomes = after_power_loss("a", |files| {
        let file = durable_file(files, "a", &[1; 2048]);
        write(files, file, 0, &[2; 1024]).unwrap();
        write(files, file, 512, &[3; 1536]).unwrap();
    });
    let outcomes: BTreeSet<Vec<u8>> = outcomes.iter().map(heads).collect();
    // Nothing, all, only the first, only the second, and a torn one.
    for wanted in [[1, 1, 1, 1], [2, 3, 3, 3], [2, 2, 1, 1], [1, 3, 3, 3], [1, 3, 1, 3]] {
        assert!(outcomes.contains(&wanted[..]), "{wanted:?} is missing in {outcomes:?}");
    }
    let possible = |heads: &Vec<u8>| {
        [&[1, 2][..], &[1, 2, 3], &[1, 3], &[1, 3]].iter().zip(heads).all(|(versions, head)| versions.contains(head))
    };
    assert!(outcomes.iter().all(possible));
}

#[test]
fn synced_writes_survive_a_power_loss() {
    let outcomes = after_power_loss("a", |files| {
        let file = durable_file(files, "a", &[1; 2048]);
        write(files, file, 0, &[2; 2048]).unwrap();
        sync(files, file).unwrap();
    });
    assert_eq!(outcomes, BTreeSet::from([Some(vec![2; 2048])]));
}

#[test]
fn unsynced_length_and_unsynced_bytes_may_be_lost_independently() {
    let outcomes = after_power_loss("a", |files| {
        let file = durable_file(files, "a", &[1; 512]);
        write(files, file, 512, &[2; 1024]).unwrap();
    });
    let outcomes: BTreeSet<Vec<u8>> = outcomes.iter().map(heads).collect();
    for wanted in [&[1][..], &[1, 2, 2], &[1, 0, 0], &[1, 0, 2]] {
        assert!(outcomes.contains(wanted), "{wanted:?} is missing in {outcomes:?}");
    }
}

#[test]
fn a_truncation_that_was_not_synced_may_be_undone() {
    let outcomes = after_power_loss("a", |files| {
        durable_file(files, "a", &[1; 512]);
        open(files, "a", FileMode::CreateEmpty).unwrap();
    });
    assert!(outcomes.contains(&Some(vec![1; 512])) && outcomes.contains(&Some(Vec::new())));
}

#[test]
fn a_process_crash_loses_no_completed_write() {
    let mut files = files(1);
    let file = open(&mut files, "a", FileMode::CreateEmpty).unwrap();
    write(&mut files, file, 0, &[1; 600]).unwrap();
    files.end_process(Time(0));
    assert_eq!(files.disk.content("a"), Some(&[1; 600][..]));
    assert_eq!(read(&mut files, file, 0, 1), Err(FileError::NotOpen));
    // A later loss of power still does.
    let survives = |seed| {
        let (mut files, mut disk) = (self::files(seed), files.disk.clone());
        std::mem::swap(&mut files.disk, &mut disk);
        files.lose_power(Time(0));
        files.disk.content("a").map(<[u8]>::len)
    };
    let lengths: BTreeSet<_> = (0..100).map(survives).collect();
    assert!(lengths.contains(&None) && lengths.contains(&Some(600)));
}

#[test]
fn a_write_in_flight_at_a_process_crash_happens_in_part() {
    let outcome = |seed| {
        let mut files = files(seed);
        let file = durable_file(&mut files, "a", &[1; 2048]);
        let (now, from) = (Time(1_000_000), Address::new(NODE, STARTER, 0));
        // The second write has not begun, because the first is under way.
        for byte in [2, 3] {
            let bytes = [byte; 2048][..].into();
            files.accept(from, WorldRequest::WriteFile { file, offset: 0, bytes, token: 0 }, now);
        }
        files.end_process(now);
        heads(&files.disk.content("a").map(<[u8]>::to_vec))
    };
    let outcomes: BTreeSet<Vec<u8>> = (0..100).map(outcome).collect();
    assert!(outcomes.contains(&vec![1; 4]) && outcomes.contains(&vec![2; 4]) && outcomes.len() > 4);
    assert!(!outcomes.iter().flatten().any(|&head| head == 3));
}

#[test]
fn unsynced_names_survive_as_a_prefix_of_their_changes() {
    let run = |syncs: bool| {
        let mut outcomes = BTreeSet::new();
        for seed in 0..200 {
            let mut files = files(seed);
            durable_file(&mut files, "a", b"a");
            durable_file(&mut files, "b", b"b");
            rename(&mut files, "a", "c").unwrap();
            delete(&mut files, "b").unwrap();
            let file = open(&mut files, "d", FileMode::CreateEmpty).unwrap();
            sync(&mut files, file).unwrap();
            if syncs {
                sync_folder(&mut files, "").unwrap();
            }
            files.lose_power(Time(0));
            outcomes.insert(files.disk.paths().collect::<Vec<_>>().join(""));
        }
        outcomes.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(run(false), ["ab", "bc", "c", "cd"]);
    assert_eq!(run(true), ["cd"]);
}

#[test]
fn losing_an_unsynced_folder_loses_its_content() {
    let outcomes = after_power_loss("one/two/a", |files| {
        create_folder(files, "one/two").unwrap();
        let file = open(files, "one/two/a", FileMode::CreateEmpty).unwrap();
        write(files, file, 0, b"a").unwrap();
        sync(files, file).unwrap();
        sync_folder(files, "one/two").unwrap();
        sync_folder(files, "one").unwrap();
    });
    assert_eq!(outcomes, BTreeSet::from([None, Some(b"a".to_vec())]));
}

#[test]
fn folders_are_listed_with_lengths() {
    let mut files = files(1);
    assert_eq!(open(&mut files, "x/a", FileMode::CreateEmpty), Err(FileError::NotFound));
    create_folder(&mut files, "x/sub").unwrap();
    let file = open(&mut files, "x/b", FileMode::CreateEmpty).unwrap();
    write(&mut files, file, 0, b"123").unwrap();
    open(&mut files, "/x/./a", FileMode::CreateEmpty).unwrap_err();
    open(&mut files, "x//a", FileMode::CreateEmpty).unwrap();
    let (result, _) = ask(&mut files, WorldRequest::ListFolder { path: "x/".into(), lane: LANE, token: 0 });
    let Ok(FileOutcome::Listed(entries)) = result else { panic!("{result:?}") };
    let shown: Vec<_> = entries.iter().map(|entry| (&*entry.name, entry.length, entry.is_folder)).collect();
    assert_eq!(shown, [("a", 0, false), ("b", 3, false), ("sub", 0, true)]);
}

#[test]
fn a_fill_is_durable_and_direct_files_require_aligned_requests() {
    let outcomes = after_power_loss("a", |files| {
        let file = durable_file(files, "a", &[1; 8192]);
        write(files, file, 0, &[2; 8192]).unwrap();
        assert_eq!(ask(files, WorldRequest::FillFile { file, length: 4096, token: 0 }).0, Ok(FileOutcome::Filled));
    });
    assert_eq!(outcomes, BTreeSet::from([Some([vec![0; 4096], vec![2; 4096]].concat())]));
    let mut files = files(1);
    let (path, mode) = ("a".into(), FileMode::CreateEmpty);
    let request = WorldRequest::OpenFile { path, mode, lane: LANE, is_direct: true, token: 0 };
    let Ok(FileOutcome::Opened { file, is_direct: true, .. }) = ask(&mut files, request).0 else { panic!() };
    assert_eq!(write(&mut files, file, 0, b"1"), Err(FileError::Misaligned));
    assert_eq!(read(&mut files, file, 512, 4096), Err(FileError::Misaligned));
    assert!(write(&mut files, file, 4096, &[1; 4096]).is_ok());
}

#[test]
fn reads_writes_and_names_fail_as_planned() {
    let mut files = files(1);
    let file = durable_file(&mut files, "a", &[1; 4096]);
    let error = FileError::System(libc::EIO);
    files.set_faults(fault(DiskOperation::Read, FaultTime::Nth(2)));
    let reads = [(); 3].map(|()| read(&mut files, file, 0, 1));
    assert_eq!(reads, [Ok(vec![1]), Err(error), Ok(vec![1])]);
    files.set_faults(fault(DiskOperation::Write, FaultTime::From(2)));
    let writes = [(); 3].map(|()| write(&mut files, file, 0, &[2; 4096]).err());
    assert_eq!(writes, [None, Some(error), Some(error)]);
    files.set_faults(fault(DiskOperation::Rename, FaultTime::OneIn(1)));
    assert_eq!(rename(&mut files, "a", "b"), Err(error));
    let only_there = DiskFault { path_prefix: "b".into(), ..DiskFault::new(DiskOperation::Open, FaultTime::From(1)) };
    files.set_faults(DiskFaults { failing: vec![only_there], ..DiskFaults::default() });
    assert!(open(&mut files, "a", FileMode::Read).is_ok());
    assert_eq!(open(&mut files, "b", FileMode::CreateEmpty), Err(error));
}

#[test]
fn after_a_failed_sync_the_cache_has_bytes_that_the_medium_may_never_get() {
    let outcomes = after_power_loss("a", |files| {
        let file = durable_file(files, "a", &[1; 1024]);
        write(files, file, 0, &[2; 1024]).unwrap();
        files.set_faults(fault(DiskOperation::Sync, FaultTime::Nth(1)));
        assert_eq!(sync(files, file), Err(FileError::System(libc::EIO)));
        assert_eq!(read(files, file, 0, 1), Err(FileError::Poisoned));
        // Opened again, the file seems whole, and the next sync succeeds.
        let again = open(files, "a", FileMode::ReadWrite).unwrap();
        assert_eq!(read(files, again, 0, 1024).unwrap(), [2; 1024]);
        assert_eq!(sync(files, again), Ok(FileOutcome::Synced));
    });
    let outcomes: BTreeSet<Vec<u8>> = outcomes.iter().map(heads).collect();
    assert_eq!(outcomes, [[1, 1], [1, 2], [2, 1], [2, 2]].map(Vec::from).into());
}

#[test]
fn bytes_that_are_written_and_synced_again_after_a_failed_sync_survive() {
    let outcomes = after_power_loss("a", |files| {
        let file = durable_file(files, "a", &[1; 512]);
        write(files, file, 0, &[2; 1024]).unwrap();
        files.set_faults(fault(DiskOperation::Sync, FaultTime::Nth(1)));
        assert_eq!(sync(files, file), Err(FileError::System(libc::EIO)));
        let again = open(files, "a", FileMode::ReadWrite).unwrap();
        write(files, again, 0, &[2; 1024]).unwrap();
        assert_eq!(sync(files, again), Ok(FileOutcome::Synced));
    });
    let outcomes: BTreeSet<Vec<u8>> = outcomes.iter().map(heads).collect();
    assert_eq!(outcomes, [vec![2, 2]].into());
}

#[test]
fn a_disk_is_full_at_its_capacity_until_space_is_freed() {
    let mut files = files(1);
    let file = durable_file(&mut files, "a", &[1; 4096]);
    let full = |capacity| DiskFaults { capacity_bytes: Some(capacity), ..DiskFaults::default() };
    files.set_faults(full(6000));
    assert!(write(&mut files, file, 0, &[2; 4096]).is_ok(), "bytes that exist need no room");
    assert_eq!(write(&mut files, file, 4096, &[2; 4096]), Err(FileError::DiskFull));
    assert!(files.disk.used_bytes() <= 6000);
    let other = open(&mut files, "b", FileMode::CreateEmpty).unwrap();
    assert_eq!(
        ask(&mut files, WorldRequest::FillFile { file: other, length: 4096, token: 0 }).0,
        Err(FileError::DiskFull)
    );
    files.set_faults(full(10_000));
    assert!(write(&mut files, file, 4096, &[2; 4096]).is_ok());
    delete(&mut files, "a").unwrap();
    assert!(write(&mut files, other, 0, &[2; 8192]).is_ok());
}

#[test]
fn a_flipped_bit_affects_reads_and_survives_a_power_loss() {
    let mut files = files(1);
    let file = durable_file(&mut files, "a", &[0; 1000]);
    write(&mut files, file, 0, &[0; 600]).unwrap();
    assert!(files.disk.flip_bit("a", 511, 7) && files.disk.flip_bit("a", 999, 0));
    assert!(!files.disk.flip_bit("a", 1000, 0) && !files.disk.flip_bit("b", 0, 0));
    assert_eq!(read(&mut files, file, 511, 1).unwrap(), [128]);
    files.lose_power(Time(0));
    let content = files.disk.content("a").unwrap();
    assert_eq!((content[511], content[999]), (128, 1));
}

#[test]
fn a_slow_window_multiplies_durations() {
    let window = SlowWindow { from: Time(10_000), until: Time(20_000), factor: 1_000, lane: Some(LANE) };
    let mut files = files(1);
    let file = durable_file(&mut files, "a", b"");
    files.set_faults(DiskFaults { slow: vec![window], ..DiskFaults::default() });
    for (now, range) in [(5_000, 0..2_000), (15_000, 1_000..1_000_001), (2_000_000, 0..2_000)] {
        let from = Address::new(NODE, STARTER, 0);
        files.accept(from, WorldRequest::SyncFile { file, token: 0 }, Time(now));
        let (done, _) = files.take_scheduled().pop().unwrap();
        assert!(range.contains(&done.since(Time(now)).0), "{done:?}");
    }
}

/// The mistakes of a program that keeps a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    AcknowledgesBeforeSync,
    ForgetsFolder,
    RetriesFailedSync,
}

/// Appends numbered records to a file and acknowledges each when it is durable.
struct LogProgram {
    mistake: Mistake,
    file: Option<FileId>,
    records: u64,
    is_failed: bool,
    acknowledged: Rc<RefCell<u64>>,
}

const RECORD_BYTES: usize = 700;
const FOLDER: &str = "log";
const PATH: &str = "log/a";

const FOLDER_CREATED: u64 = 1;
const ROOT_SYNCED: u64 = 2;
const OPENED: u64 = 3;
const FOLDER_SYNCED: u64 = 4;
const WRITTEN: u64 = 5;
const SYNCED: u64 = 6;
const OPENED_AGAIN: u64 = 7;

fn record(number: u64) -> [u8; RECORD_BYTES] {
    [number as u8 + 1; RECORD_BYTES]
}

impl LogProgram {
    fn append(&mut self, outbox: &mut Outbox<ToySignal>) {
        let Some(file) = self.file else { return };
        let bytes = record(self.records)[..].into();
        let offset = self.records * RECORD_BYTES as u64;
        self.records += 1;
        outbox.request(WorldRequest::WriteFile { file, offset, bytes, token: WRITTEN });
        outbox.request(WorldRequest::SyncFile { file, token: SYNCED });
    }

    /// After an error that it cannot handle, the program does nothing more.
    fn on_done(&mut self, token: u64, result: FileResult, outbox: &mut Outbox<ToySignal>) {
        let sync_folder = |path: &str, token| WorldRequest::SyncFolder { path: path.into(), lane: LANE, token };
        let open = |token| {
            let (path, mode) = (PATH.into(), FileMode::CreateOrOpen);
            WorldRequest::OpenFile { path, mode, lane: LANE, is_direct: false, token }
        };
        if let Ok(FileOutcome::Opened { file, .. }) = result {
            self.file = Some(file);
        }
        match (token, result, self.file) {
            (FOLDER_CREATED, Ok(_), _) => outbox.request(sync_folder("", ROOT_SYNCED)),
            (ROOT_SYNCED, Ok(_), _) => outbox.request(open(OPENED)),
            (OPENED, Ok(_), _) if self.mistake != Mistake::ForgetsFolder => {
                outbox.request(sync_folder(FOLDER, FOLDER_SYNCED));
            }
            (OPENED | FOLDER_SYNCED, Ok(_), _) => self.append(outbox),
            // The sync that follows may succeed and would prove nothing.
            (WRITTEN, Err(_), _) => self.is_failed = true,
            (WRITTEN, Ok(_), _) if self.mistake == Mistake::AcknowledgesBeforeSync => {
                *self.acknowledged.borrow_mut() = self.records;
            }
            (SYNCED, Ok(_), _) if !self.is_failed => {
                *self.acknowledged.borrow_mut() = self.records;
                self.append(outbox);
            }
            (SYNCED, Err(_), _) if self.mistake == Mistake::RetriesFailedSync => outbox.request(open(OPENED_AGAIN)),
            (OPENED_AGAIN, Ok(_), Some(file)) => outbox.request(WorldRequest::SyncFile { file, token: SYNCED }),
            _ => {}
        }
    }
}

impl Host<ToySignal> for LogProgram {
    fn handle(
        &mut self,
        _endpoints: Endpoints,
        signal: ToySignal,
        _context: &mut Context<'_>,
        outbox: &mut Outbox<ToySignal>,
    ) {
        match signal {
            ToySignal::World(WorldEvent::Started) => {
                let (path, lane) = (FOLDER.into(), LANE);
                outbox.request(WorldRequest::CreateFolder { path, lane, token: FOLDER_CREATED });
            }
            ToySignal::World(WorldEvent::FileDone { token, result, .. }) => self.on_done(token, result, outbox),
            _ => {}
        }
    }
}

type LogSimulation = Simulation<ToySignal, LogProgram>;

/// Starts a node with the program. Returns also the number of acknowledged records, which changes as the node
/// runs.
fn start_log(seed: u64, mistake: Mistake, faults: DiskFaults) -> (LogSimulation, Rc<RefCell<u64>>) {
    let acknowledged = Rc::new(RefCell::new(0));
    let shared = acknowledged.clone();
    let make = move |_| LogProgram { mistake, file: None, records: 0, is_failed: false, acknowledged: shared.clone() };
    let mut simulation = Simulation::new(SimulationOptions::new(seed), make);
    simulation.add_node(&NodeLayout::new(&[&[(STARTER, 0)]])).unwrap();
    simulation.set_disk_faults(NODE, faults);
    (simulation, acknowledged)
}

/// Runs the program until the node ends. Returns the simulation and the number of acknowledged records.
fn run_log(seed: u64, mistake: Mistake, faults: DiskFaults, end: NodeEnd) -> (LogSimulation, u64) {
    let (mut simulation, acknowledged) = start_log(seed, mistake, faults);
    simulation.run_for(Duration::from_micros(Random::new(seed).below(60_000)));
    simulation.crash(NODE, end);
    let acknowledged = *acknowledged.borrow();
    (simulation, acknowledged)
}

/// Whether the first `count` records are on the disk.
fn holds_records(simulation: &LogSimulation, count: u64) -> bool {
    let content = simulation.file(NODE, PATH).unwrap_or_default();
    (0..count).all(|number| {
        let start = number as usize * RECORD_BYTES;
        content.get(start..start + RECORD_BYTES) == Some(&record(number))
    })
}

/// Whether all acknowledged records are on the disk, in each of many runs.
fn keeps_acknowledged_records(mistake: Mistake, faults: &DiskFaults, end: NodeEnd) -> bool {
    let mut records = 0;
    let is_kept = (0..300).all(|seed| {
        let (simulation, acknowledged) = run_log(seed, mistake, faults.clone(), end);
        records += acknowledged;
        holds_records(&simulation, acknowledged)
    });
    assert!(!is_kept || records > 1_000, "{records} acknowledged records prove little");
    is_kept
}

#[test]
fn a_correct_program_loses_nothing_acknowledged() {
    let none = DiskFaults::default();
    assert!(keeps_acknowledged_records(Mistake::None, &none, NodeEnd::Power));
    assert!(keeps_acknowledged_records(Mistake::None, &none, NodeEnd::Process));
    let failing = fault(DiskOperation::Sync, FaultTime::OneIn(20));
    assert!(keeps_acknowledged_records(Mistake::None, &failing, NodeEnd::Power));
    let failing = fault(DiskOperation::Write, FaultTime::OneIn(20));
    assert!(keeps_acknowledged_records(Mistake::None, &failing, NodeEnd::Power));
}

#[test]
fn a_program_that_acknowledges_before_the_sync_is_caught() {
    let none = DiskFaults::default();
    assert!(!keeps_acknowledged_records(Mistake::AcknowledgesBeforeSync, &none, NodeEnd::Power));
    // The end of the process alone does not show it.
    assert!(keeps_acknowledged_records(Mistake::AcknowledgesBeforeSync, &none, NodeEnd::Process));
}

#[test]
fn a_program_that_forgets_to_sync_the_folder_is_caught() {
    assert!(!keeps_acknowledged_records(Mistake::ForgetsFolder, &DiskFaults::default(), NodeEnd::Power));
}

#[test]
fn a_program_that_retries_a_failed_sync_is_caught() {
    let failing = fault(DiskOperation::Sync, FaultTime::OneIn(10));
    assert!(!keeps_acknowledged_records(Mistake::RetriesFailedSync, &failing, NodeEnd::Power));
}

#[test]
fn equal_seeds_give_equal_disks_and_an_image_survives_a_restart() {
    let image = |seed| {
        let (simulation, _) = run_log(seed, Mistake::None, DiskFaults::default(), NodeEnd::Power);
        simulation.file(NODE, PATH).map(<[u8]>::to_vec)
    };
    assert_eq!((0..20).map(image).collect::<Vec<_>>(), (0..20).map(image).collect::<Vec<_>>());
    let (mut simulation, acknowledged) = run_log(3, Mistake::None, DiskFaults::default(), NodeEnd::Power);
    let image = simulation.disk(NODE).unwrap().clone();
    simulation.restart(NODE);
    simulation.run_for(Duration::from_millis(1));
    simulation.crash(NODE, NodeEnd::Process);
    *simulation.disk_mut(NODE).unwrap() = image.clone();
    assert!(acknowledged > 0 && simulation.file(NODE, PATH) == image.content(PATH));
}

#[test]
fn a_node_killed_during_any_operation_keeps_what_it_acknowledged() {
    for operation in [DiskOperation::Open, DiskOperation::Write, DiskOperation::Sync, DiskOperation::SyncFolder] {
        let mut hits = 0;
        for (nth, seed) in (1..=20).zip(0..) {
            let (mut simulation, acknowledged) = start_log(seed, Mistake::None, DiskFaults::default());
            let crash = DiskCrash { operation, nth, end: NodeEnd::Power };
            simulation.arm_disk_crash(NODE, Some(crash));
            simulation.run_for(Duration::from_millis(100));
            if simulation.is_up(NODE) {
                assert!(simulation.disk_operations(NODE, operation) < nth);
                simulation.crash(NODE, NodeEnd::Power);
            } else {
                hits += 1;
                assert_eq!(simulation.take_disk_crashes(), [(NODE, operation)]);
                assert_eq!(simulation.disk_operations(NODE, operation), nth);
            }
            assert!(holds_records(&simulation, *acknowledged.borrow()), "{operation:?} {nth}");
        }
        assert!(hits > 0 && (hits == 20 || matches!(operation, DiskOperation::Open | DiskOperation::SyncFolder)));
    }
}

#[test]
fn a_fill_in_flight_at_a_power_loss_leaves_a_prefix_of_zeros() {
    let outcome = |seed| {
        let mut files = files(seed);
        let file = durable_file(&mut files, "a", &[1; 4 * 4096]);
        let (now, from) = (Time(1_000_000), Address::new(NODE, STARTER, 0));
        files.accept(from, WorldRequest::FillFile { file, length: 4 * 4096, token: 0 }, now);
        files.lose_power(now);
        let content = files.disk.content("a").unwrap();
        content.iter().step_by(4096).copied().collect::<Vec<_>>()
    };
    let outcomes: BTreeSet<Vec<u8>> = (0..100).map(outcome).collect();
    assert_eq!(outcomes, [[1; 4], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0; 4]].map(Vec::from).into());
}

#[test]
fn a_path_beneath_a_folder_stays_beneath_it() {
    let mut files = files(1);
    create_folder(&mut files, "/shared/in").unwrap();
    let mut open_beneath = |path: &str, mode| {
        let (folder, path, lane) = ("/shared".into(), path.into(), FileLane::Outside);
        ask(&mut files, WorldRequest::OpenBeneath { folder, path, mode, lane, token: 0 }).0.map(drop)
    };
    for path in ["../x", "in/../../x", "/other/x", "/sharedx", "/shared/../x"] {
        assert_eq!(open_beneath(path, FileMode::CreateNew), Err(FileError::Outside), "{path}");
    }
    assert_eq!(open_beneath("in/../x", FileMode::CreateNew), Ok(()));
    assert_eq!(open_beneath("/shared/x", FileMode::CreateNew), Err(FileError::Exists));
    assert_eq!(open_beneath("in/x", FileMode::Read), Err(FileError::NotFound));
    let (folder, path, lane) = ("/shared".into(), "x".into(), FileLane::Outside);
    let deleted = ask(&mut files, WorldRequest::DeleteBeneath { folder, path, lane, token: 0 }).0;
    assert_eq!(deleted, Ok(FileOutcome::Deleted));
    assert_eq!(files.disk.paths().count(), 0);
}
