//! The space that checkpoint files take after long random updating.

use std::sync::Arc;

use junctor_kernel::Random;
use junctor_model::checkpoint::{CheckpointFile, FrameLocation, PageTableLocation};
use junctor_model::collation::CollationId;
use junctor_model::id::{
    ColumnNumber, CommitNumber, IndexId, PartitionId, RowId, SchemaVersion, StatementNumber, TableId, TransactionId,
};
use junctor_model::key::append_value;
use junctor_model::partition::{HashedKey, key_hash};
use junctor_model::schema::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition, TableKind, TableLayout,
};
use junctor_model::types::DataType;
use junctor_model::value::ValueRef;
use junctor_storage::checkpoint::FrameBuilder;
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{CheckpointStep, PartitionStore, Writer};

use super::files::{files_to_rewrite, live_files};

const PARTITION: PartitionId = PartitionId { table: TableId(1), index: 0 };
const ROWS: i64 = 60_000;
/// Files are as small beside the rows as those of a large database.
const FILE_BYTES: u64 = 256 << 10;
const RECOVERY_WORK: u32 = 60;
/// `files_to_rewrite` ignores 1 MiB of garbage. A few files are partly rewritten.
const CONSTANT: u64 = (1 << 20) + 4 * FILE_BYTES;

fn layout() -> Arc<TableLayout> {
    let id = ColumnDefinition {
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
    let text = DataType::varchar(200, CollationId::BINARY);
    let text = ColumnDefinition { name: "text".into(), column_type: text, ..id.clone() };
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
        columns: vec![id, text],
        indexes: vec![primary],
        partition_columns: vec![ColumnNumber(0)],
        partition_count: 1,
        has_partition_clause: false,
        placement: None,
        collation: CollationId::DEFAULT,
        comment: "".into(),
        options: Default::default(),
        next_index: IndexId(1),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        view: None,
    }))
}

/// A partition and its checkpoint files.
struct Node {
    store: PartitionStore,
    rows: Vec<RowId>,
    next_id: i64,
    last: u64,
    files: Vec<CheckpointFile>,
    next_file: u32,
    file_bytes: u64,
    /// The largest garbage beyond `RECOVERY_WORK` so far.
    excess: u64,
}

impl Node {
    /// A partition with rows, and a round that has written all of them.
    fn filled(file_bytes: u64) -> Node {
        let store = PartitionStore::new(layout(), PagePool::new(512 << 20).expect("address space"));
        let rows = Vec::new();
        let mut node =
            Node { store, rows, next_id: 0, last: 0, files: Vec::new(), next_file: 1, file_bytes, excess: 0 };
        (0..ROWS).for_each(|_| node.insert());
        node.round();
        node.file_bytes = FILE_BYTES;
        node
    }

    fn image(id: i64, letter: u8) -> Vec<u8> {
        let mut image = Vec::new();
        let text = [b'a' + letter % 26; 60];
        let values = [ValueRef::Int(id), ValueRef::Bytes(&text)];
        layout().row_format.encode(&values, &mut image).expect("values of the columns");
        image
    }

    fn writer(&mut self) -> Writer {
        self.last += 1;
        Writer { transaction: TransactionId(self.last), statement: StatementNumber(1) }
    }

    fn insert(&mut self) {
        let (id, writer) = (self.next_id, self.writer());
        self.next_id += 1;
        let mut key = Vec::new();
        append_value(DataType::integer(4, false).key_part(), false, ValueRef::Int(id), &mut key);
        let key = HashedKey { key: &key, hash: key_hash(&key) };
        let row = self.store.insert(key, &Node::image(id, 0), writer).expect("memory");
        self.store.commit(row, writer.transaction, CommitNumber(self.last));
        self.rows.push(row);
    }

    fn update(&mut self, index: u64) {
        let (row, writer) = (self.rows[index as usize], self.writer());
        self.store.update(row, &Node::image(index as i64, self.last as u8), writer).expect("memory");
        self.store.commit(row, writer.transaction, CommitNumber(self.last));
    }

    fn delete(&mut self, index: u64) {
        let (row, writer) = (self.rows.swap_remove(index as usize), self.writer());
        self.store.delete(row, writer).expect("memory");
        self.store.commit(row, writer.transaction, CommitNumber(self.last));
    }

    /// A round as main and an ldm make it.
    fn round(&mut self) {
        let begin = CommitNumber(self.last);
        self.store.purge_step(begin, usize::MAX);
        let rewritten = files_to_rewrite(self.files.iter(), RECOVERY_WORK);
        let Some(mut cursor) = self.store.begin_checkpoint(PARTITION, begin, &rewritten) else { return };
        let mut frame = FrameBuilder::new();
        let mut new = vec![self.new_file()];
        loop {
            if new[0].bytes >= self.file_bytes && cursor.is_between_pages() {
                new.insert(0, self.new_file());
            }
            match self.store.checkpoint_step(&mut cursor, begin, &mut frame) {
                CheckpointStep::MoreRows => {}
                CheckpointStep::FrameFull => {
                    new[0].bytes += cursor.place_frame(&mut frame, new[0].number, new[0].bytes).len() as u64;
                }
                CheckpointStep::Done => break,
            }
        }
        let mut table = Vec::new();
        let checksum = self.store.encode_page_table(&cursor, &mut table);
        let location = FrameLocation { file: new[0].number, offset: new[0].bytes, length: table.len() as u32 };
        new[0].bytes += table.len() as u64;
        self.store.place_page_table(&mut cursor, PageTableLocation { location, checksum });
        let mut live = Vec::new();
        cursor.table(|file, bytes| live.push((file, bytes)));
        self.store.end_checkpoint(cursor, true);
        self.files = live_files(&self.files, new.iter(), live.into_iter());
        let (bytes, live) = self.space();
        self.excess = self.excess.max(bytes.saturating_sub(live + live * u64::from(RECOVERY_WORK) / 100));
    }

    fn new_file(&mut self) -> CheckpointFile {
        self.next_file += 1;
        CheckpointFile { number: self.next_file - 1, bytes: 0, live_bytes: 0, checksum: None }
    }

    /// Bytes of the files, and live bytes.
    fn space(&self) -> (u64, u64) {
        let sum = |bytes: fn(&CheckpointFile) -> u64| self.files.iter().map(bytes).sum();
        (sum(|file| file.bytes), sum(|file| file.live_bytes))
    }
}

#[test]
fn garbage_stays_below_recovery_work_while_rows_change_at_random() {
    // The share of the rows that change, and the number of changes between two rounds.
    for (hot_percent, changes) in [(100, 600), (100, 6_000), (70, 3_000), (50, 3_000), (10, 1_000)] {
        let mut random = Random::new(hot_percent);
        let mut node = Node::filled(FILE_BYTES);
        let (whole, _) = node.space();
        for _ in 0..60 {
            for _ in 0..changes {
                node.update(random.below(ROWS as u64 * hot_percent / 100));
            }
            node.round();
        }
        assert!(node.excess <= CONSTANT, "{hot_percent} %, {changes} changes: {} bytes too much", node.excess);
        // Deltas take at most half of the whole pages.
        let (_, live) = node.space();
        assert!(live <= whole * 8 / 5, "{hot_percent} %, {changes} changes: {live} of {whole}");
    }
}

#[test]
fn garbage_of_deleted_rows_is_collected() {
    let mut random = Random::new(7);
    let mut node = Node::filled(FILE_BYTES);
    for _ in 0..40 {
        for _ in 0..1_000 {
            let index = random.below(node.rows.len() as u64);
            node.delete(index);
        }
        node.round();
    }
    assert!(node.excess <= CONSTANT, "{} bytes too much", node.excess);
    for _ in 0..40 {
        for _ in 0..1_000 {
            let index = random.below(node.rows.len() as u64);
            node.delete(index);
            node.insert();
        }
        node.round();
    }
    assert!(node.excess <= CONSTANT, "{} bytes too much", node.excess);
}

#[test]
fn a_large_file_of_an_earlier_release_is_freed_by_several_rounds() {
    let mut random = Random::new(7);
    let mut node = Node::filled(u64::MAX);
    assert_eq!(node.files.len(), 1);
    let mut rounds = 0;
    while node.files[0].number == 1 {
        // Only the rows of the first half change, so the garbage alone would never free the file.
        (0..3_000).for_each(|_| node.update(random.below(ROWS as u64 / 2)));
        node.round();
        rounds += 1;
        assert!(rounds < 60, "{:?}", node.files);
    }
    assert!(node.files.iter().all(|file| file.bytes < 4 * FILE_BYTES), "{:?}", node.files);
}
