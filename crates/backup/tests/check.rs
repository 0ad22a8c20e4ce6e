//! `junctor check` on a small directory in which one bit is flipped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use junctor_backup::{CheckOptions, CheckReport, check};
use junctor_model::checkpoint::{CheckpointFile, FrameLocation, PageTableLocation};
use junctor_model::collation::CollationId;
use junctor_model::id::{
    ColumnNumber, CommitNumber, IndexId, PartitionId, SchemaVersion, StatementNumber, TableId, TransactionId,
};
use junctor_model::key::append_value;
use junctor_model::partition::{HashedKey, key_hash};
use junctor_model::schema::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition, TableKind, TableLayout,
};
use junctor_model::stored_identity::{DIRECTORY_FORMAT_VERSION, Identity};
use junctor_model::stored_lists::{
    CheckpointLists, append_partition, append_schema_part, begin_partitions, begin_schema,
};
use junctor_model::stored_manifest::{ListPlace, MANIFEST_USE, Manifest};
use junctor_model::stored_schema::DictionaryChange;
use junctor_model::types::DataType;
use junctor_model::value::ValueRef;
use junctor_storage::checkpoint::{CheckpointError, FrameBuilder, append_file_checksum};
use junctor_storage::log::{
    BLOCK_BYTES, GroupHeader, GroupKind, Piece, RecordBuffer, RecordHeader, RecordKind, StreamId, encode_group,
    encode_slot, group_blocks,
};
use junctor_storage::page::{PAGE_BYTES, PagePool};
use junctor_storage::partition_store::{CheckpointStep, IndexRebuild, PartitionStore, Writer};

const PARTITION: PartitionId = PartitionId { table: TableId(1), index: 0 };
const LOG_ID: u64 = 77;
const SEGMENT_BYTES: u64 = 1 << 20;
const SECTOR: usize = 512;
const ROWS: i64 = 300;
/// The commit of the checkpoint, and the last commit of the log.
const BEGIN: CommitNumber = CommitNumber(1);
const LAST: CommitNumber = CommitNumber(3);

fn layout() -> Arc<TableLayout> {
    let column = ColumnDefinition {
        name: "id".into(),
        column_type: DataType::integer(4, false),
        nullable: false,
        default: None,
        default_now: false,
        expression: None,
        on_update_now: false,
        auto_increment: false,
        hidden: false,
        invisible: false,
        comment: "".into(),
        display_width: None,
        has_collation: false,
        added: None,
    };
    let text = DataType::char(40, CollationId::DEFAULT);
    let primary = IndexDefinition {
        id: IndexId(0),
        name: "PRIMARY".into(),
        kind: IndexKind::Primary { ordered: false },
        columns: vec![ColumnNumber(0)],
        state: IndexState::Online,
        attributes: Default::default(),
    };
    Arc::new(TableLayout::new(TableDefinition {
        id: PARTITION.table,
        version: SchemaVersion(1),
        database: "test".into(),
        name: "sample".into(),
        kind: TableKind::Base,
        sharing: Default::default(),
        partition_columns: vec![ColumnNumber(0)],
        columns: vec![column.clone(), ColumnDefinition { name: "text".into(), column_type: text, ..column }],
        next_index: IndexId(1),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        view: None,
        indexes: vec![primary],
        partition_count: 1,
        has_partition_clause: false,
        placement: None,
        collation: CollationId::DEFAULT,
        comment: "".into(),
        options: Default::default(),
    }))
}

fn empty_store() -> PartitionStore {
    PartitionStore::new(layout(), PagePool::new(256 * PAGE_BYTES).expect("address space"))
}

fn filled_store() -> PartitionStore {
    let (mut store, layout) = (empty_store(), layout());
    let writer = Writer { transaction: TransactionId(1), statement: StatementNumber(1) };
    for id in 0..ROWS {
        let (mut image, mut key) = (Vec::new(), Vec::new());
        let text = format!("row {id}");
        let values = [ValueRef::Int(id), ValueRef::Bytes(text.as_bytes())];
        layout.row_format.encode(&values, &mut image).expect("values of the columns");
        append_value(layout.definition.columns[0].column_type.key_part(), false, values[0], &mut key);
        let hash = key_hash(&key);
        let row = store.insert(HashedKey { key: &key, hash }, &image, writer).expect("memory");
        store.commit(row, writer.transaction, BEGIN);
    }
    store
}

/// Writes the store's rows to checkpoint file 1. Returns the place of the page table.
fn write_checkpoint(folder: &Path, store: &mut PartitionStore) -> PageTableLocation {
    let mut cursor = store.begin_checkpoint(PARTITION, BEGIN, &[]).expect("the partition has rows");
    let (mut frame, mut file) = (FrameBuilder::new(), Vec::new());
    loop {
        match store.checkpoint_step(&mut cursor, BEGIN, &mut frame) {
            CheckpointStep::MoreRows => {}
            CheckpointStep::FrameFull => {
                let offset = file.len() as u64;
                file.extend_from_slice(cursor.place_frame(&mut frame, 1, offset));
            }
            CheckpointStep::Done => break,
        }
    }
    let offset = file.len();
    let checksum = store.encode_page_table(&cursor, &mut file);
    let location = FrameLocation { file: 1, offset: offset as u64, length: (file.len() - offset) as u32 };
    let location = PageTableLocation { location, checksum };
    store.place_page_table(&mut cursor, location);
    store.end_checkpoint(cursor, true);
    write_file(folder, 1, &file);
    location
}

fn write_file(folder: &Path, number: u32, bytes: &[u8]) -> CheckpointFile {
    std::fs::create_dir_all(folder.join("checkpoint")).unwrap();
    std::fs::write(folder.join(format!("checkpoint/000000000{number}.data")), bytes).unwrap();
    let (checksum, bytes) = (Some(append_file_checksum(0, bytes)), bytes.len() as u64);
    CheckpointFile { number, bytes, live_bytes: bytes, checksum }
}

/// Writes the lists to the checkpoint files 2 and 3.
fn write_lists(folder: &Path, table: &PageTableLocation) -> [CheckpointFile; 2] {
    let (mut schema, mut partitions) = (Vec::new(), Vec::new());
    begin_schema(&mut schema);
    append_schema_part(&DictionaryChange::default(), &mut schema);
    begin_partitions(0, 1, &mut partitions);
    append_partition(PARTITION, table, &mut partitions);
    [write_file(folder, 2, &schema), write_file(folder, 3, &partitions)]
}

/// Writes a log of one life: a start group, a group for each commit, a closing group. Returns the position of
/// the closing group, in blocks.
fn write_log(folder: &Path) -> usize {
    let mut segment = Vec::new();
    let mut previous_checksum = 0;
    let mut write = |kind: GroupKind, number: u64, records: &[u8]| {
        let position = (segment.len() / BLOCK_BYTES) as u64;
        let header = GroupHeader {
            kind,
            position,
            log_id: LOG_ID,
            life: 5,
            incarnation: 1,
            previous_checksum,
            stable: CommitNumber(number),
            taken: CommitNumber(number),
            ceiling: CommitNumber(1 << 32),
            synced: position,
            previous_cut: CommitNumber(0),
            wall_clock_us: 0,
        };
        let piece = Piece { stream: StreamId(0), first_record: Some(0), bytes: records };
        let pieces = if records.is_empty() { &[][..] } else { &[piece][..] };
        let mut group = vec![0; group_blocks(pieces.len(), records.len()) as usize * BLOCK_BYTES];
        previous_checksum = encode_group(&header, pieces.iter().copied(), &mut group);
        segment.extend_from_slice(&group);
        position as usize
    };
    write(GroupKind::Start, 0, &[]);
    for number in 1..=LAST.0 {
        let mut buffer = RecordBuffer::new();
        let transaction = TransactionId(number);
        let number = CommitNumber(number);
        buffer.begin(&RecordHeader { kind: RecordKind::Commit, participants: 1, number, transaction, chunk: 0 });
        buffer.end();
        write(GroupKind::Data, number.0, &buffer.take(Vec::new()));
    }
    let closing = write(GroupKind::Closing, LAST.0, &[]);
    segment.resize(SEGMENT_BYTES as usize, 0);
    std::fs::create_dir_all(folder.join("log")).unwrap();
    std::fs::write(folder.join("log/0000000000.log"), segment).unwrap();
    closing
}

struct Directory {
    folder: PathBuf,
    table: PageTableLocation,
    digest: u64,
    closing: usize,
}

impl Directory {
    fn new(name: &str) -> Directory {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("check-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut store = filled_store();
        let table = write_checkpoint(&folder, &mut store);
        let closing = write_log(&folder);
        let bytes = folder.join("checkpoint/0000000001.data").metadata().unwrap().len();
        let [schema, partitions] = write_lists(&folder, &table);
        let manifest = Manifest {
            generation: 1,
            log_id: LOG_ID,
            begin: BEGIN,
            newest: BEGIN,
            lists: ListPlace::Files { schema: 2, partitions: 3 },
            next_file: 4,
            files: vec![CheckpointFile { number: 1, bytes, live_bytes: bytes, checksum: None }, schema, partitions],
            ..Manifest::default()
        };
        let identity = Identity { format: DIRECTORY_FORMAT_VERSION, log_id: LOG_ID, segment_bytes: SEGMENT_BYTES };
        std::fs::write(folder.join("identity.1"), encode_slot(1, 1, &identity.encode())).unwrap();
        std::fs::write(folder.join("manifest.1"), encode_slot(MANIFEST_USE, 1, &manifest.encode())).unwrap();
        Directory { folder, table, digest: store.digest(BEGIN), closing }
    }

    fn check(&self) -> CheckReport {
        check(&CheckOptions { data_dir: self.folder.clone() }).expect("a data directory")
    }

    /// Loads the checkpoint as an ldm does. Returns a digest of the rows.
    fn load(&self) -> Result<u64, CheckpointError> {
        let file = std::fs::read(self.folder.join("checkpoint/0000000001.data")).unwrap();
        let bytes = |location: FrameLocation| &file[location.offset as usize..][..location.length as usize];
        let mut store = empty_store();
        let table = bytes(self.table.location);
        for location in store.load_page_table(PARTITION, self.table, table)? {
            store.load_frame(location, bytes(location))?;
        }
        let mut rebuild = IndexRebuild::new();
        while !store.build_indexes_step(&mut rebuild, 1_000)? {}
        Ok(store.digest(BEGIN))
    }
}

#[test]
fn an_intact_directory_has_no_damage() {
    let directory = Directory::new("intact");
    let report = directory.check();
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(report.notes, ["checkpoint 1 up to commit 1: 1 frames, 300 rows", "log: 5 groups up to commit 3"]);
    assert_eq!(directory.load(), Ok(directory.digest));
}

#[test]
fn folders_on_other_devices_are_checked_behind_their_links() {
    let directory = Directory::new("linked");
    let devices = directory.folder.with_file_name("check-linked-devices");
    let _ = std::fs::remove_dir_all(&devices);
    std::fs::create_dir_all(&devices).unwrap();
    for below in ["checkpoint", "log"] {
        std::fs::rename(directory.folder.join(below), devices.join(below)).unwrap();
        std::os::unix::fs::symlink(devices.join(below), directory.folder.join(below)).unwrap();
    }
    assert_eq!(directory.check().damage, Vec::<String>::new());
    assert_eq!(directory.check().notes.len(), 2);
    for (name, at) in [("checkpoint/0000000001.data", 200), ("log/0000000000.log", BLOCK_BYTES + 40)] {
        let path = devices.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(directory.check().damage[0].starts_with(name), "{:?}", directory.check());
        std::fs::write(&path, whole).unwrap();
    }
    // A device that is not mounted.
    for (below, problem) in [
        ("checkpoint", "checkpoint file 1: the file is missing"),
        ("log", "log/0000000000.log, byte 0: the log does not begin here"),
    ] {
        std::fs::rename(devices.join(below), devices.join("elsewhere")).unwrap();
        assert_eq!(directory.check().damage[0], problem);
        std::fs::rename(devices.join("elsewhere"), devices.join(below)).unwrap();
    }
}

#[test]
fn a_flipped_bit_of_any_sector_is_reported_with_its_place() {
    let directory = Directory::new("flipped");
    for name in [
        "identity.1",
        "manifest.1",
        "checkpoint/0000000001.data",
        "checkpoint/0000000002.data",
        "checkpoint/0000000003.data",
        "log/0000000000.log",
    ] {
        let path = directory.folder.join(name);
        let whole = std::fs::read(&path).unwrap();
        // Nothing was written behind the closing group. Recovery ends the log before a damaged closing group,
        // which carries nothing.
        let end = if name.starts_with("log") { directory.closing * BLOCK_BYTES } else { whole.len() };
        for sector in 0..end.div_ceil(SECTOR) {
            let mut bytes = whole.clone();
            // Another byte and bit in each sector. The last sector of a file may be short.
            let at = (sector * SECTOR + sector * 37 % SECTOR).min(end - 1);
            bytes[at] ^= 1 << (sector % 8);
            std::fs::write(&path, bytes).unwrap();
            let report = directory.check();
            assert!(!report.damage.is_empty(), "{name}, byte {at}: {report:?}");
            assert!(report.damage[0].contains(name.split('.').next().unwrap()), "{name}, byte {at}: {report:?}");
            if name == "checkpoint/0000000001.data" {
                assert!(directory.load().is_err(), "{name}, byte {at}");
            }
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(directory.check().damage, Vec::<String>::new());
}

#[test]
fn the_manifest_of_the_first_release_is_checked_too() {
    let directory = Directory::new("inline");
    let bytes = directory.folder.join("checkpoint/0000000001.data").metadata().unwrap().len();
    let lists = CheckpointLists { partitions: vec![(PARTITION, directory.table)], ..CheckpointLists::default() };
    let manifest = Manifest {
        generation: 1,
        log_id: LOG_ID,
        begin: BEGIN,
        newest: BEGIN,
        lists: ListPlace::Inline(Box::new(lists)),
        next_file: 2,
        files: vec![CheckpointFile { number: 1, bytes, live_bytes: bytes, checksum: None }],
        ..Manifest::default()
    };
    std::fs::write(directory.folder.join("manifest.1"), encode_slot(MANIFEST_USE, 1, &manifest.encode())).unwrap();
    assert_eq!(directory.check().damage, Vec::<String>::new());
    assert_eq!(directory.check().notes[0], "checkpoint 1 up to commit 1: 1 frames, 300 rows");
}

#[test]
fn missing_and_cut_files_are_reported() {
    let directory = Directory::new("missing");
    for (name, problem) in [
        ("checkpoint/0000000001.data", "checkpoint file 1: the file is missing"),
        ("checkpoint/0000000003.data", "checkpoint file 3: the file is missing"),
        ("log/0000000000.log", "log/0000000000.log, byte 0: the log does not begin here"),
    ] {
        let path = directory.folder.join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(directory.check().damage[0], problem);
        std::fs::write(&path, &whole[..whole.len().min(10_000) - 1]).unwrap();
        assert!(!directory.check().damage.is_empty(), "{name} is cut");
        std::fs::write(&path, whole).unwrap();
    }
    std::fs::remove_file(directory.folder.join("identity.1")).unwrap();
    let error = check(&CheckOptions { data_dir: directory.folder.clone() }).unwrap_err();
    assert!(error.to_string().contains("is not the data directory of a durable server"), "{error}");
}

#[test]
fn a_directory_in_use_is_refused() {
    let directory = Directory::new("used");
    let lock = std::fs::File::create(directory.folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let error = check(&CheckOptions { data_dir: directory.folder.clone() }).unwrap_err();
    assert!(error.to_string().contains("a server uses"), "{error}");
}
