//! What reads and writes of one partition cost. Each phase is a function of its own, so that instructions can be counted:
//!
//! ```text
//! cargo build --release -p junctor-storage --example point_read
//! valgrind --tool=callgrind --toggle-collect='*phase_read*' target/release/examples/point_read 1000000 100000
//! ```
//!
//! The phases are `phase_insert`, `phase_build`, `phase_read`, `phase_batch`, `phase_range`, `phase_update_plain`,
//! `phase_update_index`, `phase_purge`, `phase_delete` and `phase_lock`; the second argument is how many operations each does.

use std::hint::black_box;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{
    ColumnIndex, CommitNumber, IndexId, PartitionId, RowId, SchemaVersion, StatementNumber, TableId, TransactionId,
};
use junctor_model::key::append_value;
use junctor_model::partition::key_hash;
use junctor_model::schema::{
    ColumnDefinition, ColumnType, IndexDefinition, IndexKind, IndexState, TableDefinition, TableKind, TableLayout,
};
use junctor_model::value::ValueRef;
use junctor_storage::index::{Direction, RangeBounds};
use junctor_storage::lock::{LOCKS_MAX, LockKey, LockMode, LockTable, WaiterToken};
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{Batch, PartitionStore, ScanCursor, ScanRange};

const TRANSACTION: TransactionId = TransactionId(1);
const STATEMENT: StatementNumber = StatementNumber(1);
const INT: ColumnType = ColumnType::Integer { bytes: 4, unsigned: false };

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>().unwrap_or(0));
    let rows = arguments.next().unwrap_or(1_000_000).max(1);
    let operations = arguments.next().unwrap_or(100_000).min(rows);
    let layout = layout();
    let pool = PagePool::new(4 << 30).expect("address space");
    let mut store = PartitionStore::new(Arc::clone(&layout), pool);
    let mut work = Work { layout, rows, operations, number: 0, random: 1 };
    store.drop_index(IndexId(1));
    for id in 0..rows - operations {
        work.insert(&mut store, id);
    }
    phase_insert(&mut work, &mut store);
    phase_build(&work, &mut store);
    phase_read(&mut work, &store);
    phase_batch(&mut work, &store);
    phase_range(&mut work, &store);
    phase_update_plain(&mut work, &mut store);
    phase_update_index(&mut work, &mut store);
    phase_purge(&work, &mut store);
    phase_delete(&mut work, &mut store);
    phase_lock(&mut work);
    println!("{:?}", store.statistics());
}

struct Work {
    layout: Arc<TableLayout>,
    rows: u32,
    operations: u32,
    number: u64,
    random: u64,
}

impl Work {
    fn any_id(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % u64::from(self.rows)) as u32
    }

    fn next_number(&mut self) -> CommitNumber {
        self.number += 1;
        CommitNumber(self.number)
    }

    fn insert(&mut self, store: &mut PartitionStore, id: u32) {
        let k = self.any_id();
        let image = image(&self.layout, id, k, b'c');
        let (key, hash) = key(id);
        let row = store.insert(&key, hash, &image, TRANSACTION, STATEMENT).expect("memory");
        store.commit(row, TRANSACTION, self.next_number());
    }
}

#[inline(never)]
fn phase_insert(work: &mut Work, store: &mut PartitionStore) {
    for id in work.rows - work.operations..work.rows {
        work.insert(store, id);
    }
}

#[inline(never)]
fn phase_build(work: &Work, store: &mut PartitionStore) {
    store.add_index(&work.layout.definition.indexes[1]);
    let mut from = Some(RowId(0));
    while let Some(next) = from {
        from = store.build_index_step(IndexId(1), next, 64).expect("memory");
    }
}

#[inline(never)]
fn phase_read(work: &mut Work, store: &PartitionStore) {
    let snapshot = CommitNumber(work.number);
    for _ in 0..work.operations {
        let (key, hash) = key(work.any_id());
        let found = store.read_primary(&key, hash, snapshot, None);
        black_box(found.map(|(_, version)| version.stored().len()));
    }
}

#[inline(never)]
fn phase_batch(work: &mut Work, store: &PartitionStore) {
    let snapshot = CommitNumber(work.number);
    for _ in 0..work.operations / 50 {
        let keys: [([u8; 4], u64); 50] = std::array::from_fn(|_| key(work.any_id()));
        let keys: [(&[u8], u64); 50] = std::array::from_fn(|at| (&keys[at].0[..], keys[at].1));
        let mut images = Batch::new();
        store.read_batch(keys.into_iter(), snapshot, None, &mut images);
        black_box(images.iter().map(|image| image.len()).sum::<usize>());
    }
}

#[inline(never)]
fn phase_range(work: &mut Work, store: &PartitionStore) {
    let snapshot = CommitNumber(work.number);
    for _ in 0..work.operations / 100 {
        let first = work.any_id();
        let (low, high) = (key(first).0, key(first + 99).0);
        let bounds = RangeBounds { lower: Bound::Included(&low), upper: Bound::Included(&high) };
        let range = ScanRange { index: IndexId(0), bounds, direction: Direction::Forward };
        let mut bytes = 0;
        store.scan(range, &mut ScanCursor::default(), snapshot, None, 1000, |_, view| {
            bytes += view.image().len();
            ControlFlow::Continue(())
        });
        black_box(bytes);
    }
}

#[inline(never)]
fn phase_update_plain(work: &mut Work, store: &mut PartitionStore) {
    for _ in 0..work.operations {
        let id = work.any_id();
        let (key, hash) = key(id);
        let row = store.find_primary(&key, hash).expect("the row");
        let mut image = [0; 256];
        let stored = store.newest(row).expect("a version").stored();
        let length = stored.len();
        image[..length].copy_from_slice(stored);
        image[length - 100] = b'z';
        store.update(row, &image[..length], TRANSACTION, STATEMENT).expect("memory");
        store.commit(row, TRANSACTION, work.next_number());
        store.purge_step(CommitNumber(work.number), 1);
    }
}

#[inline(never)]
fn phase_update_index(work: &mut Work, store: &mut PartitionStore) {
    for _ in 0..work.operations {
        let (id, k) = (work.any_id(), work.any_id());
        let (key, hash) = key(id);
        let row = store.find_primary(&key, hash).expect("the row");
        store.update(row, &image(&work.layout, id, k, b'd'), TRANSACTION, STATEMENT).expect("memory");
        store.commit(row, TRANSACTION, work.next_number());
    }
}

#[inline(never)]
fn phase_purge(work: &Work, store: &mut PartitionStore) {
    while store.purge_step(CommitNumber(work.number), 64).has_more {}
}

#[inline(never)]
fn phase_delete(work: &mut Work, store: &mut PartitionStore) {
    for id in 0..work.operations {
        let (key, hash) = key(id);
        let row = store.find_primary(&key, hash).expect("the row");
        store.delete(row, TRANSACTION, STATEMENT).expect("memory");
        store.commit(row, TRANSACTION, work.next_number());
        store.purge_step(CommitNumber(work.number), 64);
    }
}

#[inline(never)]
fn phase_lock(work: &mut Work) {
    let mut table = LockTable::new(1, LOCKS_MAX);
    let mut granted = Vec::new();
    for number in 0..u64::from(work.operations) {
        let transaction = TransactionId(number % 64 + 1);
        let key = LockKey { partition: PartitionId::default(), row: RowId(work.any_id()) };
        black_box(table.request(key, transaction, LockMode::Exclusive, WaiterToken(number))).expect("room");
        table.release_all(transaction, &mut granted);
    }
}

#[inline(always)]
fn key(id: u32) -> ([u8; 4], u64) {
    let key = (id ^ 1 << 31).to_be_bytes();
    (key, key_hash(&key))
}

fn image(layout: &TableLayout, id: u32, k: u32, letter: u8) -> Vec<u8> {
    let (c, pad) = ([letter; 119], [b'p'; 59]);
    let mut image = Vec::with_capacity(256);
    let values =
        [ValueRef::Int(i64::from(id)), ValueRef::Int(i64::from(k)), ValueRef::Bytes(&c), ValueRef::Bytes(&pad)];
    layout.row_format.encode(&values, &mut image).expect("values of the column types");
    image
}

fn layout() -> Arc<TableLayout> {
    let mut check = Vec::new();
    append_value(INT, false, ValueRef::Int(5), &mut check);
    assert_eq!(check, key(5).0, "the example makes keys by itself");
    let column = |name: &str, column_type| ColumnDefinition {
        name: name.into(),
        column_type,
        nullable: false,
        default: None,
        auto_increment: false,
        hidden: false,
        comment: "".into(),
        display_width: None,
    };
    let index = |id, kind, column| IndexDefinition {
        id: IndexId(id),
        name: "".into(),
        kind,
        columns: vec![ColumnIndex(column)],
        state: IndexState::Online,
    };
    let text = |length| ColumnType::Char { length, collation: CollationId::DEFAULT };
    Arc::new(TableLayout::new(TableDefinition {
        id: TableId(1),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "sbtest1".into(),
        kind: TableKind::Base,
        columns: vec![column("id", INT), column("k", INT), column("c", text(120)), column("pad", text(60))],
        indexes: vec![index(0, IndexKind::Primary { ordered: true }, 0), index(1, IndexKind::Ordered, 1)],
        partition_columns: vec![ColumnIndex(0)],
        partition_count: 1,
        partition_by_written: false,
        collation: CollationId::DEFAULT,
        comment: "".into(),
        next_index: IndexId(2),
        foreign_keys: Vec::new(),
    }))
}
