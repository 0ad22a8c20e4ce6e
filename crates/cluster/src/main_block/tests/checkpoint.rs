//! Rounds of checkpoints, with simulated ldm blocks and files.

use junctor_kernel::{FileBuffer, FileError, FileId, FileLane, FileOutcome, FileResult};
use junctor_model::checkpoint::{CheckpointFile, FrameLocation, PageTableLocation, checkpoint_path};
use junctor_model::id::CommitNumber;
use junctor_model::stored_lists::{CheckpointLists, decode_partitions, decode_schema};
use junctor_model::stored_manifest::{ListPlace, MANIFEST_USE, Manifest};
use junctor_model::stored_mark::CounterMark;
use junctor_model::value::Value;
use junctor_signals::checkpoint::{LdmCheckpoint, WriteCheckpointReply};
use junctor_signals::read_status::{ReadStatus, StatusTable};
use junctor_signals::share_schema::ShareRecords;
use junctor_signals::use_user_lock::{UseUserLock, UserLockAction};
use junctor_storage::checkpoint::append_file_checksum;
use junctor_storage::log::decode_slot;

use super::*;

const LIMIT: u64 = 1 << 30;

/// The files of the node, as main sees them.
#[derive(Default)]
struct Disk {
    /// Contents of the files that main has written.
    files: BTreeMap<String, Vec<u8>>,
    open: Option<String>,
    deleted: Vec<String>,
    /// The kind of request that fails.
    failing: Option<&'static str>,
    /// Whether requests about the lists of a checkpoint fail, and not those about the manifest.
    fails_lists: bool,
}

impl Disk {
    fn answer(&mut self, request: WorldRequest) -> Option<WorldEvent> {
        let file = FileId::new(FileLane::Control, 1, 1);
        let is_list = match &request {
            WorldRequest::OpenFile { path, .. } | WorldRequest::SyncFolder { path, .. } => {
                path.starts_with("checkpoint")
            }
            _ => self.open.as_ref().is_some_and(|open| open.starts_with("checkpoint")),
        };
        let (kind, token, outcome) = match request {
            WorldRequest::OpenFile { path, token, .. } => {
                self.files.insert(path.to_string(), Vec::new());
                self.open = Some(path.to_string());
                ("open", token, FileOutcome::Opened { file, length: 0, is_direct: false })
            }
            WorldRequest::WriteFile { offset, bytes, token, .. } => {
                let file = self.open.as_ref().and_then(|path| self.files.get_mut(path)).expect("an open file");
                assert_eq!(offset, file.len() as u64);
                file.extend_from_slice(&bytes);
                ("write", token, FileOutcome::Written { offset, length: bytes.len() as u32 })
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
        let fails = self.failing == Some(kind) && is_list == self.fails_lists;
        let result: FileResult = if fails { Err(FileError::System(5)) } else { Ok(outcome) };
        Some(WorldEvent::FileDone { token, result, bytes: FileBuffer::new() })
    }

    /// The manifest in a file of the pair.
    fn manifest(&self, slot: u64) -> Option<Manifest> {
        let bytes = self.files.get(&format!("manifest.{slot}"))?;
        let slot = decode_slot(MANIFEST_USE, bytes).expect("a known version")?;
        let manifest = Manifest::decode(&slot.content).expect("a manifest");
        assert_eq!(slot.generation, manifest.generation);
        Some(manifest)
    }

    /// The numbers of the files with the schema and the partitions.
    fn list_files(manifest: &Manifest) -> [u32; 2] {
        let ListPlace::Files { schema, partitions } = manifest.lists else { panic!("lists in files") };
        [schema, partitions]
    }

    /// The lists of a manifest.
    fn lists(&self, manifest: &Manifest) -> CheckpointLists {
        let [schema, partitions] = Disk::list_files(manifest).map(|number| {
            let bytes = &self.files[&*checkpoint_path(number)];
            let named = manifest.file(number).expect("a file of the checkpoint");
            assert_eq!((named.bytes, named.live_bytes), (bytes.len() as u64, bytes.len() as u64));
            assert_eq!(named.checksum, Some(append_file_checksum(0, bytes)));
            bytes
        });
        let (marks, partitions) = decode_partitions(partitions).expect("a list");
        CheckpointLists { schema: decode_schema(schema).expect("a schema"), marks, partitions }
    }

    /// The numbers of the files that ldm blocks have written.
    fn data_files(manifest: &Manifest) -> Vec<(u32, u64)> {
        let lists = Disk::list_files(manifest);
        let files = manifest.files.iter().filter(|file| !lists.contains(&file.number));
        files.map(|file| (file.number, file.live_bytes)).collect()
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
                live_bytes: live.iter().copied().chain([(file, 200)]).collect(),
            };
            let result = result.map(|()| Box::new(part)).map_err(Into::into);
            let files = vec![CheckpointFile { number: file, bytes: 4096, live_bytes: 0, checksum: Some(9) }];
            self.run(MainSignal::WriteCheckpointReply(WriteCheckpointReply { from, generation, files, result }));
        }
    }

    fn states(&mut self) -> Vec<(u64, String)> {
        let (operation, table) = (OperationId(1), StatusTable::Checkpoints);
        let request = ReadStatus { operation, reply_to: self.sql, table, only: [].into() };
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
    assert!(disk.files.is_empty(), "the newest commit is not durable");
    assert_eq!(stage.states(), [(1, "WAITING".to_owned())]);
    stage.sync_log();
    assert!(stage.ended().is_empty(), "the manifest is not durable");
    stage.serve_files(&mut disk);
    assert_eq!(stage.ended(), [(1, true), (1, true)]);
    assert_eq!(stage.log.last().map(String::as_str), Some("trim to 65536"));
    assert_eq!(stage.states(), [(1, "DONE".to_owned())]);
    let manifest = disk.manifest(1).expect("the first generation");
    assert_eq!((manifest.log_id, manifest.next_file, manifest.replay_from), (77, 5, 65536));
    assert_eq!(manifest.begin, stage.disk.as_ref().expect("a log").target.sequence.stable());
    let lists = disk.lists(&manifest);
    assert_eq!(lists.partitions.len(), 2, "partitions without a table are left out");
    assert!(lists.partitions.is_sorted_by_key(|(partition, _)| *partition));
    assert_eq!((lists.schema.tables.len(), lists.marks.len()), (1, 1));
    assert_eq!(Disk::list_files(&manifest), [3, 4]);
    assert_eq!(Disk::data_files(&manifest), [(1, 200), (2, 200)]);
    assert_eq!(manifest.file(1).and_then(|file| file.checksum), Some(9));
}

#[test]
fn a_round_waits_for_records_of_another_node_that_its_lists_must_include() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    stage.tick(LIMIT / 4);
    let asked = stage.asked_files();
    let (number, table) = (stage.disk.as_ref().expect("a log").target.sequence.stable(), stage.table("t").id);
    let mark = CounterMark { table, mark: 500, is_exact: false };
    let marks = vec![Box::from(mark.encode())];
    let records = ShareRecords { id: 1, dictionary: None, catalog: None, marks, next_place: 0 };
    stage.main.share.keep_undurable(number, records);
    stage.disk.as_mut().expect("a log").is_stalled = true;
    stage.write(&asked, &[], Ok(()));
    // The log of this node has the number. The others do not have it yet.
    let mut outbox = Outbox::for_test(stage.own);
    stage.main.on_checkpoint_durable(number, stage.now, &mut outbox);
    assert_eq!(stage.states(), [(1, "WAITING".to_owned())]);
    stage.sync_log();
    stage.serve_files(&mut disk);
    assert_eq!(stage.states(), [(1, "DONE".to_owned())]);
    let manifest = disk.manifest(1).expect("the first generation");
    assert_eq!((manifest.begin, disk.lists(&manifest).marks), (number, [(table, 500)].into()));
}

#[test]
fn long_lists_of_partitions_are_merged_in_several_turns() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    stage.tick(LIMIT / 4);
    let asked = stage.asked_files();
    let table = stage.table("t").id;
    let count = 6000 * asked.len() as u16;
    let signals_before = stage.main.counted.signals;
    for (from, generation, file) in asked.iter().copied() {
        let at = |index| {
            let location = FrameLocation { file, offset: u64::from(index) * 4096, length: 100 };
            (PartitionId { table, index }, PageTableLocation { location, checksum: 1 })
        };
        let partitions = (0..count).filter(|index| usize::from(*index) % asked.len() == usize::from(from.instance));
        let newest = stage.disk.as_ref().expect("a log").target.sequence.stable();
        let part = LdmCheckpoint { newest, partitions: partitions.map(at).collect(), live_bytes: vec![(file, 200)] };
        let files = vec![CheckpointFile { number: file, bytes: 4096, live_bytes: 0, checksum: Some(9) }];
        let result = Ok(Box::new(part));
        stage.run(MainSignal::WriteCheckpointReply(WriteCheckpointReply { from, generation, files, result }));
    }
    // Besides the answers of the ldm blocks and of the log.
    let turns = stage.main.counted.signals - signals_before - asked.len() as u64 - 1;
    assert_eq!(turns, 2, "{count} partitions are merged in three turns");
    stage.serve_files(&mut disk);
    let lists = disk.lists(&disk.manifest(1).expect("the first generation"));
    assert!(lists.partitions.iter().map(|(partition, _)| partition.index).eq(0..count));
}

#[test]
fn files_without_live_bytes_are_deleted_after_the_switch() {
    let mut disk = Disk::default();
    let mut stage = Stage::with_checkpoints(&mut disk);
    // The ldm blocks write two files in each round, main a list of partitions, and a schema in the first one.
    for (round, live) in [(1, &[][..]), (2, &[(1, 50)]), (3, &[(5, 10), (6, 10)])] {
        stage.tick(LIMIT / 4);
        let asked = stage.asked_files();
        assert!(disk.deleted.len() <= 2);
        stage.write(&asked, live, Ok(()));
        stage.serve_files(&mut disk);
        assert_eq!(disk.manifest(round % 2).map(|manifest| manifest.generation), Some(round));
    }
    assert_eq!(disk.deleted, [2, 4, 1, 7].map(|number| checkpoint_path(number).into_string()));
    let manifest = disk.manifest(1).expect("the third");
    assert_eq!(Disk::list_files(&manifest), [3, 10]);
    assert_eq!(Disk::data_files(&manifest).iter().map(|file| file.0).collect::<Vec<_>>(), [5, 6, 8, 9]);
    assert_eq!(disk.lists(&manifest).partitions.len(), 2);
    // A changed schema gets a new file.
    assert_eq!(stage.create("v", vec![primary()]), None);
    stage.tick(LIMIT / 4);
    let asked = stage.asked_files();
    stage.write(&asked, &[], Ok(()));
    stage.serve_files(&mut disk);
    let manifest = disk.manifest(0).expect("the fourth");
    assert_eq!(Disk::list_files(&manifest), [13, 14]);
    assert_eq!(disk.lists(&manifest).schema.tables.len(), 2);
    assert!(disk.deleted.contains(&checkpoint_path(3).into_string()), "{:?}", disk.deleted);
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
    assert!(disk.files.is_empty());
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
    let kinds = ["open", "write", "sync", "close", "sync folder"];
    for (failing, fails_lists) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut disk = Disk { fails_lists, ..Disk::default() };
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
        assert!(disk.manifest(1) == first, "{failing}");
        // Without a list there is no manifest that could name the files of the round.
        assert_eq!(disk.deleted.len(), if fails_lists { 3 } else { 0 }, "{failing}: {:?}", disk.deleted);
        // The next manifest goes to the same file again. Then the files of both are known to be unused.
        disk.failing = None;
        for _ in 0..12 {
            stage.tick(LIMIT / 40);
        }
        let asked = stage.asked_files();
        stage.write(&asked, &[], Ok(()));
        stage.serve_files(&mut disk);
        let generation = if fails_lists { 2 } else { 4 };
        assert_eq!(disk.manifest(0).map(|manifest| manifest.generation), Some(generation), "{failing}");
        assert!(disk.manifest(1) == first, "{failing}");
        // Two data files and the list of partitions of each of the two rounds.
        assert_eq!(disk.deleted.len(), 6, "{failing}: {:?}", disk.deleted);
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
    assert_eq!(disk.lists(&manifest).schema.tables.len(), 2, "the schema is the one of the switch");
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
    assert_eq!((disk.deleted.len(), trims(&stage)), (3, 2));
    // The simulated log never shrinks: now it is half full, and the next round finds it three quarters full.
    stage.run(request(UserLockAction::LockForBackup));
    round(&mut stage, &mut disk);
    assert_eq!((disk.deleted.len(), trims(&stage)), (6, 3));
    stage.replies.clear();
    stage.run(request(UserLockAction::UnlockForBackup));
    let Some(SqlSignal::UseUserLockReply(reply)) = stage.replies.pop() else { panic!("a reply") };
    assert!(reply.error.is_some_and(|error| error.message.contains("revoked")));
}
