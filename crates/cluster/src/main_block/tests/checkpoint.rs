//! Rounds of checkpoints, with simulated ldm blocks and files.

use junctor_kernel::{FileBuffer, FileError, FileId, FileLane, FileOutcome, FileResult};
use junctor_model::checkpoint::{FrameLocation, PageTableLocation};
use junctor_model::id::CommitNumber;
use junctor_model::stored_manifest::{MANIFEST_USE, Manifest};
use junctor_model::value::Value;
use junctor_signals::checkpoint::{LdmCheckpoint, WriteCheckpointReply};
use junctor_signals::read_status::{ReadStatus, StatusTable};
use junctor_signals::use_user_lock::{UseUserLock, UserLockAction};
use junctor_storage::log::decode_slot;

use super::*;

const LIMIT: u64 = 1 << 30;

/// The files of the node, as main sees them.
#[derive(Default)]
struct Disk {
    /// Contents of the files that main has written.
    manifests: BTreeMap<String, Vec<u8>>,
    open: Option<String>,
    deleted: Vec<String>,
    /// The kind of request that fails.
    failing: Option<&'static str>,
}

impl Disk {
    fn answer(&mut self, request: WorldRequest) -> Option<WorldEvent> {
        let file = FileId::new(FileLane::Control, 1, 1);
        let (kind, token, outcome) = match request {
            WorldRequest::OpenFile { path, token, .. } => {
                self.manifests.insert(path.to_string(), Vec::new());
                self.open = Some(path.to_string());
                ("open", token, FileOutcome::Opened { file, length: 0, is_direct: false })
            }
            WorldRequest::WriteFile { bytes, token, .. } => {
                let path = self.open.clone().expect("an open file");
                self.manifests.insert(path, bytes.to_vec());
                ("write", token, FileOutcome::Written { offset: 0, length: bytes.len() as u32 })
            }
            WorldRequest::SyncFile { token, .. } => ("sync", token, FileOutcome::Synced),
            WorldRequest::CloseFile { token, .. } => {
                self.open.take().expect("an open file is closed");
                ("close", token, FileOutcome::Closed)
            }
            WorldRequest::SyncFolder { token, .. } => ("sync folder", token, FileOutcome::FolderSynced),
            WorldRequest::CreateFolder { token, .. } => ("create folder", token, FileOutcome::FolderCreated),
            WorldRequest::ListFolder { token, .. } => ("list", token, FileOutcome::Listed(Vec::new())),
            WorldRequest::DeleteFile { path, token, .. } => {
                self.deleted.push(path.to_string());
                ("delete", token, FileOutcome::Deleted)
            }
            WorldRequest::StartTimer { .. } => return None,
            other => panic!("main requests {other:?}"),
        };
        let result: FileResult = if self.failing == Some(kind) { Err(FileError::System(5)) } else { Ok(outcome) };
        Some(WorldEvent::FileDone { token, result, bytes: FileBuffer::new() })
    }

    /// The manifest in a file of the pair.
    fn manifest(&self, slot: u64) -> Option<Manifest> {
        let bytes = self.manifests.get(&format!("manifest.{slot}"))?;
        let slot = decode_slot(MANIFEST_USE, bytes).expect("a known version")?;
        let manifest = Manifest::decode(&slot.content).expect("a manifest");
        assert_eq!(slot.generation, manifest.generation);
        Some(manifest)
    }
}

impl Stage {
    fn serve_files(&mut self, disk: &mut Disk) {
        while !self.requests.is_empty() {
            let request = self.requests.remove(0);
            if let Some(event) = disk.answer(request) {
                self.happen(event);
            }
        }
    }

    /// A node with a table, whose checkpoints may begin.
    fn with_checkpoints(disk: &mut Disk) -> Stage {
        let mut stage = Stage::durable();
        stage.create_database();
        assert_eq!(stage.create("t", vec![primary()]), None);
        let mut outbox = Outbox::for_test(stage.own);
        stage.main.begin_checkpoints(77, None, &mut outbox);
        stage.requests.extend(outbox.take_requests());
        stage.serve_files(disk);
        stage
    }

    fn tick(&mut self, grown: u64) {
        let log = self.disk.as_mut().expect("the node has a log");
        (log.used_bytes, log.written_bytes) = (log.used_bytes + grown, log.written_bytes + grown);
        self.now = self.now.plus(Duration::from_millis(100));
        self.happen(WorldEvent::Timer { token: 2 });
    }

    /// The files that the ldm blocks are asked to write.
    fn asked_files(&mut self) -> Vec<(Address, u64, u32)> {
        let asked = self.ldm_signals.drain(..).filter_map(|(to, signal)| match signal {
            LdmSignal::WriteCheckpoint(signal) => Some((to, signal.generation, signal.file)),
            _ => None,
        });
        asked.collect()
    }

    fn ended(&mut self) -> Vec<(u64, bool)> {
        let ended = self.ldm_signals.drain(..).filter_map(|(_, signal)| match signal {
            LdmSignal::EndCheckpoint(signal) => Some((signal.generation, signal.is_kept)),
            _ => None,
        });
        ended.collect()
    }

    /// Lets the ldm blocks write the files. `live` are live bytes in earlier files.
    fn write(&mut self, asked: &[(Address, u64, u32)], live: &[(u32, u64)], result: Result<(), &str>) {
        for (from, generation, file) in asked.iter().copied() {
            let table = self.table("t").id;
            let location = FrameLocation { file, offset: 0, length: 100 };
            let table = PartitionId { table, index: from.instance };
            // A partition that is not published yet.
            let unknown = PartitionId { table: TableId(999), index: from.instance };
            let at = |location| PageTableLocation { location, checksum: 1 };
            let part = LdmCheckpoint {
                newest: self.disk.as_ref().expect("a log").target.sequence.stable(),
                partitions: vec![(table, at(location)), (unknown, at(location))],
                file_bytes: 4096,
                live_bytes: live.iter().copied().chain([(file, 200)]).collect(),
            };
            let result = result.map(|()| Box::new(part)).map_err(Into::into);
            self.run(MainSignal::WriteCheckpointReply(WriteCheckpointReply { from, generation, result }));
        }
    }

    fn states(&mut self) -> Vec<(u64, String)> {
        let request = ReadStatus { operation: OperationId(1), reply_to: self.sql, table: StatusTable::Checkpoints };
        self.run(MainSignal::ReadStatus(request));
        let Some(SqlSignal::ReadStatusReply(reply)) = self.replies.pop() else { panic!("a reply") };
        let state = |row: &Vec<Value>| match (&row[0], &row[1]) {
            (Value::UInt(generation), Value::Bytes(state)) => {
                (*generation, String::from_utf8_lossy(state).into_owned())
            }
            other => panic!("{other:?}"),
        };
        reply.rows.iter().map(state).collect()
    }
}

#[test]
fn a_round_switches_only_when_everything_that_it_wrote_is_durable() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    stage.tick(0);
    assert!(stage.asked_files().is_empty(), "nothing has changed");
    stage.tick(LIMIT / 4);
    let asked = stage.asked_files();
    assert_eq!(asked.iter().map(|it| (it.1, it.2)).collect::<Vec<_>>(), [(1, 1), (1, 2)]);
    stage.tick(0);
    assert_eq!(stage.ldm_signals.len(), 2, "the speed is set at every tick");
    stage.ldm_signals.clear();
    assert_eq!(stage.states(), [(1, "WRITING".to_owned())]);
    stage.disk.as_mut().expect("a log").is_stalled = true;
    stage.log.clear();
    stage.write(&asked, &[], Ok(()));
    stage.serve_files(&mut disk);
    assert!(disk.manifests.is_empty(), "the newest commit is not durable");
    assert_eq!(stage.states(), [(1, "WAITING".to_owned())]);
    stage.sync_log();
    assert!(stage.ended().is_empty(), "the manifest is not durable");
    stage.serve_files(&mut disk);
    assert_eq!(stage.ended(), [(1, true), (1, true)]);
    assert_eq!(stage.log.last().map(String::as_str), Some("trim to 65536"));
    assert_eq!(stage.states(), [(1, "DONE".to_owned())]);
    let manifest = disk.manifest(1).expect("the first generation");
    assert_eq!((manifest.log_id, manifest.next_file, manifest.replay_from), (77, 3, 65536));
    assert_eq!(manifest.begin, stage.disk.as_ref().expect("a log").target.sequence.stable());
    assert_eq!(manifest.partitions.len(), 2, "partitions without a table are left out");
    assert_eq!(manifest.schema.tables.len(), 1);
    assert_eq!(
        manifest.files.iter().map(|file| (file.number, file.live_bytes)).collect::<Vec<_>>(),
        [(1, 200), (2, 200)]
    );
}

#[test]
fn files_without_live_bytes_are_deleted_after_the_switch() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    for (round, live) in [(1, &[][..]), (2, &[(1, 50)]), (3, &[(3, 10), (4, 10)])] {
        stage.tick(LIMIT / 4);
        let asked = stage.asked_files();
        assert!(disk.deleted.len() <= 1);
        stage.write(&asked, live, Ok(()));
        stage.serve_files(&mut disk);
        assert_eq!(disk.manifest(round % 2).map(|manifest| manifest.generation), Some(round));
    }
    assert_eq!(disk.deleted, ["checkpoint/0000000002.data", "checkpoint/0000000001.data"]);
    let files: Vec<u32> = disk.manifest(1).expect("the third").files.iter().map(|file| file.number).collect();
    assert_eq!(files, [3, 4, 5, 6]);
}

#[test]
fn a_round_that_an_ldm_cannot_write_is_abandoned_and_tried_again_later() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    stage.tick(LIMIT / 4);
    let asked = stage.asked_files();
    stage.write(&asked[..1], &[], Err("the device is full"));
    assert!(stage.ended().is_empty(), "the other ldm still writes");
    stage.write(&asked[1..], &[], Ok(()));
    assert_eq!(stage.ended(), [(1, false), (1, false)]);
    stage.serve_files(&mut disk);
    assert_eq!(disk.deleted.len(), 2);
    assert!(disk.manifests.is_empty());
    stage.tick(LIMIT / 4);
    assert!(stage.asked_files().is_empty(), "not immediately");
    for _ in 0..10 {
        stage.tick(0);
    }
    let asked = stage.asked_files();
    assert_eq!(asked.iter().map(|it| (it.1, it.2)).collect::<Vec<_>>(), [(1, 3), (1, 4)]);
    assert_eq!(stage.states()[0], (1, "FAILED".to_owned()));
}

#[test]
fn a_manifest_that_cannot_be_written_leaves_the_last_one_and_its_files() {
    for failing in ["open", "write", "sync", "close", "sync folder"] {
        let mut disk = Disk::default();
        let mut stage = Stage::with_checkpoints(&mut disk);
        stage.tick(LIMIT / 4);
        let asked = stage.asked_files();
        stage.write(&asked, &[], Ok(()));
        stage.serve_files(&mut disk);
        let first = disk.manifest(1);
        stage.ldm_signals.clear();
        stage.tick(LIMIT / 4);
        let asked = stage.asked_files();
        disk.failing = Some(failing);
        stage.write(&asked, &[(1, 10)], Ok(()));
        stage.serve_files(&mut disk);
        assert_eq!(stage.ended(), [(2, false), (2, false)], "{failing}");
        assert!(disk.deleted.is_empty() && disk.manifest(1) == first, "{failing}");
        // The next manifest goes to the same file again. Then the files of both are known to be unused.
        disk.failing = None;
        for _ in 0..12 {
            stage.tick(LIMIT / 40);
        }
        let asked = stage.asked_files();
        stage.write(&asked, &[], Ok(()));
        stage.serve_files(&mut disk);
        assert_eq!(disk.manifest(0).map(|manifest| manifest.generation), Some(4), "{failing}");
        assert!(disk.manifest(1) == first, "{failing}");
        assert_eq!(disk.deleted.len(), 4, "{failing}: {:?}", disk.deleted);
    }
}

#[test]
fn a_schema_change_and_a_round_await_the_log_in_turn() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    stage.tick(LIMIT / 4);
    let asked = stage.asked_files();
    stage.disk.as_mut().expect("a log").is_stalled = true;
    stage.ask(OperationId(100), create_table("v", vec![primary()], false));
    // The rows that the round has written are newer than the change.
    stage.write(&asked, &[], Ok(()));
    assert!(stage.disk.as_ref().expect("a log").awaited.is_some());
    stage.sync_log();
    assert_eq!(stage.replies.len(), 1, "the change is durable");
    stage.sync_log();
    stage.serve_files(&mut disk);
    let manifest = disk.manifest(1).expect("the first generation");
    assert_eq!(manifest.schema.tables.len(), 2, "the schema is the one of the switch");
    assert!(manifest.newest > manifest.begin && manifest.newest > CommitNumber(0));
    stage.check();
}

#[test]
fn a_backup_keeps_files_and_log_until_it_ends_or_the_log_is_nearly_full() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    let session = ConnectionId(7);
    let request = |action| {
        MainSignal::UseUserLock(UseUserLock {
            operation: OperationId(3),
            reply_to: Address::new(NodeId(1), Module::Sql, 0),
            connection: session,
            action,
        })
    };
    let round = |stage: &mut Stage, disk: &mut Disk| {
        stage.tick(LIMIT / 4);
        let asked = stage.asked_files();
        stage.write(&asked, &[], Ok(()));
        stage.serve_files(disk);
    };
    let trims = |stage: &Stage| stage.log.iter().filter(|line| line.starts_with("trim")).count();
    round(&mut stage, &mut disk);
    assert_eq!((disk.deleted.len(), trims(&stage)), (0, 1));
    stage.run(request(UserLockAction::LockForBackup));
    round(&mut stage, &mut disk);
    assert_eq!((disk.deleted.len(), trims(&stage)), (0, 1), "the backup protects both");
    stage.run(request(UserLockAction::UnlockForBackup));
    stage.serve_files(&mut disk);
    assert_eq!((disk.deleted.len(), trims(&stage)), (2, 2));
    // The simulated log never shrinks: now it is half full, and the next round finds it three quarters full.
    stage.run(request(UserLockAction::LockForBackup));
    round(&mut stage, &mut disk);
    assert_eq!((disk.deleted.len(), trims(&stage)), (4, 3));
    stage.replies.clear();
    stage.run(request(UserLockAction::UnlockForBackup));
    let Some(SqlSignal::UseUserLockReply(reply)) = stage.replies.pop() else { panic!("a reply") };
    assert!(reply.error.is_some_and(|error| error.message.contains("revoked")));
}
