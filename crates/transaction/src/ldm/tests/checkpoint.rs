//! Rounds of checkpoints and their loading, with files that the test holds.

use junctor_kernel::{FileBuffer, FileError, FileId, FileMode, FileOutcome, FileResult, WorldEvent, WorldRequest};
use junctor_model::checkpoint::{CheckpointFile, PageTableLocation, checkpoint_path};
use junctor_model::id::TableId;
use junctor_signals::MainSignal;
use junctor_signals::checkpoint::{
    EndCheckpoint, LoadCheckpoint, LoadCheckpointReply, WriteCheckpoint, WriteCheckpointReply,
};
use junctor_storage::checkpoint::append_file_checksum;

use super::*;

const SPEED: u64 = 1 << 40;

fn main() -> Address {
    Address::new(NodeId(1), Module::Main, 0)
}

fn ldm() -> Address {
    Address::new(NodeId(1), Module::Ldm, 0)
}

type Rows = Vec<(junctor_model::id::RowId, Vec<u8>)>;
type Tables = Vec<(PartitionId, PageTableLocation)>;

/// The checkpoint files of a node.
#[derive(Clone, Default)]
struct Disk {
    files: BTreeMap<String, Vec<u8>>,
    open: BTreeMap<FileId, String>,
    opened: usize,
    /// The first write to this file fails.
    failing: Option<String>,
}

impl Disk {
    fn carry_out(&mut self, request: WorldRequest) -> (u64, FileResult, FileBuffer) {
        let mut answer = FileBuffer::new();
        let (token, result) = match request {
            WorldRequest::OpenFile { path, mode, lane, is_direct, token } => {
                let path = path.into_string();
                if mode == FileMode::CreateEmpty {
                    self.files.insert(path.clone(), Vec::new());
                }
                let Some(length) = self.files.get(&path).map(|bytes| bytes.len() as u64) else {
                    return (token, Err(FileError::NotFound), answer);
                };
                self.opened += 1;
                let file = FileId::new(lane, self.opened, 0);
                self.open.insert(file, path);
                (token, Ok(FileOutcome::Opened { file, length, is_direct }))
            }
            WorldRequest::WriteFile { file, offset, bytes, token } => {
                let path = &self.open[&file];
                if self.failing.as_ref() == Some(path) {
                    return (token, Err(FileError::DiskFull), bytes);
                }
                let stored = self.files.get_mut(path).expect("an open file exists");
                assert_eq!(offset, stored.len() as u64, "files are written from their beginning on");
                stored.extend_from_slice(&bytes);
                (token, Ok(FileOutcome::Written { offset, length: bytes.len() as u32 }))
            }
            WorldRequest::ReadFile { file, offset, length, mut bytes, token } => {
                let stored = &self.files[&self.open[&file]];
                let start = stored.len().min(offset as usize);
                let end = stored.len().min(start + length as usize);
                bytes.clear();
                bytes.extend_from_slice(&stored[start..end]);
                answer = bytes;
                (token, Ok(FileOutcome::Read { length: (end - start) as u32 }))
            }
            WorldRequest::SyncFile { token, .. } => (token, Ok(FileOutcome::Synced)),
            WorldRequest::SyncFolder { token, .. } => (token, Ok(FileOutcome::FolderSynced)),
            WorldRequest::CloseFile { file, token } => {
                self.open.remove(&file).expect("an open file is closed");
                (token, Ok(FileOutcome::Closed))
            }
            other => panic!("an ldm requests {other:?}"),
        };
        (token, result, answer)
    }
}

impl Harness {
    /// Carries out file requests until none is left. With `is_reversed`, the answers to requests that are
    /// under way together arrive in the reverse order. Returns the largest number of reads under way.
    fn run_files(&mut self, disk: &mut Disk, is_reversed: bool) -> usize {
        let mut reads_max = 0;
        loop {
            self.run();
            let requests = std::mem::take(&mut self.file_requests);
            if requests.is_empty() {
                let later = self.delivery.now.plus(Duration::from_millis(100));
                match self.is_answered() || !self.delivery.fire_timer_until(later) {
                    true => return reads_max,
                    false => continue,
                }
            }
            let reads = requests.iter().filter(|(_, request)| matches!(request, WorldRequest::ReadFile { .. }));
            reads_max = reads_max.max(reads.count());
            let mut answers: Vec<_> = requests.into_iter().map(|(to, it)| (to, disk.carry_out(it))).collect();
            if is_reversed {
                answers.reverse();
            }
            for (to, (token, result, bytes)) in answers {
                self.send(to, to, Signal::World(WorldEvent::FileDone { token, result, bytes }));
                self.run();
            }
        }
    }

    /// Whether main has an answer to the round or to the load.
    fn is_answered(&self) -> bool {
        let is_answer =
            |it: &MainSignal| matches!(it, MainSignal::WriteCheckpointReply(_) | MainSignal::LoadCheckpointReply(_));
        self.main_replies.iter().any(is_answer)
    }

    /// Lets the first ldm begin a round.
    fn begin_checkpoint(&mut self, file: u32, rewritten_files: Vec<u32>) {
        self.delivery.returns_files = true;
        self.main_replies.clear();
        let signal = WriteCheckpoint {
            reply_to: main(),
            generation: u64::from(file),
            file,
            file_step: 2,
            begin: self.stable(),
            bytes_per_second: SPEED,
            rewritten_files,
        };
        self.send(ldm(), main(), Signal::Ldm(LdmSignal::WriteCheckpoint(signal)));
    }

    /// Runs a round in the first ldm, up to its answer.
    fn write_checkpoint(&mut self, disk: &mut Disk, file: u32, rewritten_files: Vec<u32>) -> WriteCheckpointReply {
        self.begin_checkpoint(file, rewritten_files);
        self.run_files(disk, false);
        match self.main_replies.pop() {
            Some(MainSignal::WriteCheckpointReply(reply)) => {
                assert_eq!((reply.from, disk.open.len()), (ldm(), 0));
                reply
            }
            other => panic!("{other:?}"),
        }
    }

    fn end_checkpoint(&mut self, generation: u64, is_kept: bool) {
        self.main_replies.clear();
        self.send(ldm(), main(), Signal::Ldm(LdmSignal::EndCheckpoint(EndCheckpoint { generation, is_kept })));
        self.run();
    }

    /// Runs a round and keeps it. Returns the page tables, and the files that were written.
    fn checkpoint(&mut self, disk: &mut Disk, file: u32, rewritten_files: Vec<u32>) -> (Tables, Vec<CheckpointFile>) {
        let reply = self.write_checkpoint(disk, file, rewritten_files);
        for file in &reply.files {
            let stored = &disk.files[&*checkpoint_path(file.number)];
            assert_eq!((file.bytes, file.checksum), (stored.len() as u64, Some(append_file_checksum(0, stored))));
        }
        self.end_checkpoint(reply.generation, true);
        let mut tables = reply.result.expect("a round").partitions;
        tables.sort_by_key(|(partition, _)| *partition);
        (tables, reply.files)
    }

    /// Loads the page tables in the first ldm. Returns the answer, and the largest number of reads under way.
    fn load(&mut self, disk: &mut Disk, partitions: &Tables, is_reversed: bool) -> (LoadCheckpointReply, usize) {
        self.delivery.returns_files = true;
        self.main_replies.clear();
        let load = LoadCheckpoint { reply_to: main(), partitions: partitions.clone() };
        self.send(ldm(), main(), Signal::Ldm(LdmSignal::LoadCheckpoint(load)));
        let reads_max = self.run_files(disk, is_reversed);
        assert_eq!(disk.open.len(), 0, "all files are closed");
        match self.main_replies.pop() {
            Some(MainSignal::LoadCheckpointReply(reply)) => (reply, reads_max),
            other => panic!("{other:?}"),
        }
    }

    fn partition_rows(&self) -> Vec<Option<Rows>> {
        self.ldm(ldm()).partitions().into_iter().map(|partition| self.ldm(ldm()).committed_rows(partition)).collect()
    }
}

/// One node with one ldm and rows of about 9 KiB.
fn with_long_rows(rows: i64) -> (Harness, SampleTable) {
    let mut harness = Harness::new(1, 2, 1);
    let table = SampleTable::new(2);
    harness.create_tables(&[&table.layout, &table.entries]);
    insert(&mut harness, &table, 1..=rows);
    (harness, table)
}

fn insert(harness: &mut Harness, table: &SampleTable, ids: std::ops::RangeInclusive<i64>) {
    let text = "long ".repeat(1_800);
    let ids: Vec<i64> = ids.collect();
    for ids in ids.chunks(50) {
        let rows: Vec<Row> = ids.iter().map(|id| (*id, id * 10, Some(*id))).collect();
        let reply = harness.execute(NONE, true, &table.insert_unique(), table.images_with_text(&rows, &text));
        assert_eq!(reply.error, None);
    }
}

/// A new node with the empty tables.
fn restarted(before: &Harness, table: &SampleTable) -> Harness {
    let mut harness = Harness::restarted(1, before.stable(), 64 << 20);
    harness.create_tables(&[&table.layout, &table.entries]);
    harness
}

#[test]
fn a_node_loads_the_rows_that_rounds_have_written() {
    let (mut harness, table) = with_long_rows(700);
    let mut disk = Disk::default();
    let (first, files) = harness.checkpoint(&mut disk, 1, Vec::new());
    assert_eq!((first.len(), files.len()), (4, 1));
    let reply = harness.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[5, 600]));
    assert_eq!(reply.error, None);
    let (tables, _) = harness.checkpoint(&mut disk, 3, Vec::new());
    for is_reversed in [false, true] {
        let mut after = restarted(&harness, &table);
        let (reply, reads_max) = after.load(&mut disk, &tables, is_reversed);
        assert_eq!((reply.error, reads_max), (None, 2), "two reads are under way");
        assert_eq!(after.partition_rows(), harness.partition_rows());
        after.delivery.returns_files = false;
        assert_eq!(after.build_indexes(), Vec::<Box<str>>::new());
        after.check();
        assert_eq!(table.rows(&mut after), table.rows(&mut harness));
        // The node goes on where the one before has stopped: nothing has changed since the last round.
        after.delivery.returns_files = true;
        assert_eq!(after.checkpoint(&mut disk.clone(), 5, Vec::new()), (tables.clone(), Vec::new()));
    }
}

#[test]
fn a_stop_does_not_wait_for_a_round() {
    let (mut harness, _) = with_long_rows(700);
    let mut disk = Disk::default();
    harness.begin_checkpoint(1, Vec::new());
    harness.run();
    harness.send(ldm(), ldm(), Signal::World(WorldEvent::Stopping));
    harness.run_files(&mut disk, false);
    assert!(!harness.is_answered(), "the round has not ended");
    assert!(disk.files.values().all(Vec::is_empty), "nothing is written after the stop");
}

#[test]
fn a_partition_without_changes_keeps_its_page_table() {
    let (mut harness, table) = started(1, 4);
    let mut disk = Disk::default();
    assert_eq!(harness.checkpoint(&mut disk, 1, Vec::new()), (Vec::new(), Vec::new()), "empty tables need nothing");
    let rows: Vec<Row> = (1..=100).map(|id| (id, id, Some(id))).collect();
    assert_eq!(harness.execute(NONE, true, &table.insert_unique(), table.images(&rows)).error, None);
    let (first, files) = harness.checkpoint(&mut disk, 1, Vec::new());
    assert_eq!((first.len(), files.len()), (4, 1), "two partitions of each table are at this ldm");
    assert_eq!(harness.checkpoint(&mut disk, 3, Vec::new()), (first.clone(), Vec::new()));
    // One row of one partition.
    let id = (1..).find(|id| table.key(*id).0 == 2).expect("a row of partition 2");
    assert_eq!(harness.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[id])).error, None);
    let (second, files) = harness.checkpoint(&mut disk, 5, Vec::new());
    assert_eq!(files.iter().map(|file| file.number).collect::<Vec<_>>(), [5]);
    for table in &second {
        let is_changed = table.0 == PartitionId { table: TableId(1), index: 2 };
        assert_eq!(!is_changed, first.contains(table), "{table:?}");
    }
    // The first file is to become free. A partition writes half of its pages in a round, but at least one.
    let (third, files) = harness.checkpoint(&mut disk, 7, vec![1]);
    assert_eq!(files.iter().map(|file| file.number).collect::<Vec<_>>(), [7]);
    assert!(third.iter().all(|(_, place)| place.location.file == 7), "{third:?}");
    let reply = harness.write_checkpoint(&mut disk, 9, Vec::new());
    harness.end_checkpoint(9, true);
    let live = reply.result.expect("a round").live_bytes;
    assert_eq!(live.iter().map(|(file, _)| *file).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_round_goes_on_in_the_next_file_when_one_is_full() {
    let (mut harness, table) = with_long_rows(700);
    harness.ldm_mut(ldm()).checkpoint.file_bytes = 1 << 20;
    let mut disk = Disk::default();
    let (tables, files) = harness.checkpoint(&mut disk, 1, Vec::new());
    let numbers: Vec<u32> = files.iter().map(|file| file.number).collect();
    // A page of long rows is in one file.
    assert_eq!(numbers, [1, 3, 5]);
    let mut after = restarted(&harness, &table);
    assert_eq!(after.load(&mut disk, &tables, false).0.error, None);
    assert_eq!(after.partition_rows(), harness.partition_rows());
    // A round that fails in its second file tells both.
    insert(&mut harness, &table, 701..=1_400);
    disk.failing = Some(checkpoint_path(9).into_string());
    let reply = harness.write_checkpoint(&mut disk, 7, Vec::new());
    let error = reply.result.expect_err("the device is full");
    assert!(error.starts_with("cannot write checkpoint/0000000009.data"), "{error}");
    assert_eq!(reply.files.iter().map(|file| file.number).collect::<Vec<_>>(), [7, 9]);
    harness.end_checkpoint(7, false);
    disk.failing = None;
    let (tables, _) = harness.checkpoint(&mut disk, 11, Vec::new());
    let mut after = restarted(&harness, &table);
    assert_eq!(after.load(&mut disk, &tables, true).0.error, None);
    assert_eq!(after.partition_rows(), harness.partition_rows());
}

#[test]
fn damaged_and_missing_files_are_refused_with_their_place() {
    let (mut harness, table) = with_long_rows(400);
    let mut whole = Disk::default();
    let (tables, _) = harness.checkpoint(&mut whole, 1, Vec::new());
    let path = checkpoint_path(1).into_string();
    let refusal = |disk: &mut Disk, tables: &Tables| {
        let mut after = restarted(&harness, &table);
        let (reply, _) = after.load(disk, tables, false);
        reply.error.expect("the load is refused").into_string()
    };
    let mut missing = Disk::default();
    assert_eq!(
        refusal(&mut missing, &tables),
        "checkpoint/0000000001.data is missing; mount its device, or restore the directory from a backup"
    );
    let table_at = |partition: usize| tables[partition].1.location.offset as usize;
    let length = whole.files[&path].len();
    // The first frames, one in the middle that is read together with others, and each page table.
    let places = [0, 100, 300_000, 1_500_000, 2_500_000, table_at(0) + 9, table_at(1) + 40, table_at(3) + 20];
    for at in places {
        let mut disk = whole.clone();
        disk.files.get_mut(&path).expect("the file")[at] ^= 4;
        let error = refusal(&mut disk, &tables);
        assert!(error.starts_with("checkpoint/0000000001.data cannot be used at byte "), "{at}: {error}");
        assert!(error.ends_with("the bytes are damaged; restore the directory from a backup"), "{at}: {error}");
        let named: usize = error.split(' ').nth(6).and_then(|it| it.parse().ok()).expect("a number");
        assert!(named <= at && at < named + 400_000, "{at}: {error}");
    }
    for cut in [0, 4096, 1_000_000, length - 4096] {
        let mut disk = whole.clone();
        disk.files.get_mut(&path).expect("the file").truncate(cut);
        assert!(refusal(&mut disk, &tables).contains("the bytes are damaged"), "cut at {cut}");
    }
    // The page table of another partition, and one of another round.
    let mut swapped = tables.clone();
    (swapped[0].1, swapped[1].1) = (tables[1].1, tables[0].1);
    let misplaced = "the bytes belong to another place of the checkpoint, or to an earlier one";
    assert!(refusal(&mut whole.clone(), &swapped).contains(misplaced));
    let mut earlier = tables.clone();
    earlier[2].1.checksum ^= 1;
    let error = refusal(&mut whole.clone(), &earlier);
    assert!(error.contains("(table 't.u', partition 0)") && error.contains(misplaced), "{error}");
    // Memory for a part of the rows only.
    let mut small = Harness::restarted(1, harness.stable(), 2 << 20);
    small.create_tables(&[&table.layout, &table.entries]);
    let (reply, _) = small.load(&mut whole.clone(), &tables, false);
    assert!(reply.error.is_some_and(|error| error.contains("the data memory is exhausted while table 't' is loaded")));
}
