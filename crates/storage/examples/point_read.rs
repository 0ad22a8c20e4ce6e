//! Measures the cost of reads and writes of one partition. Each phase is a separate function, so that its
//! instructions can be counted:
//!
//! ```text
//! cargo build --release -p junctor-storage --example point_read
//! valgrind --tool=callgrind --toggle-collect='*phase_read*' \
//!     target/release/examples/point_read 1000000 100000
//! ```
//!
//! The phases are `phase_insert`, `phase_build`, `phase_read`, `phase_batch`, `phase_range`,
//! `phase_update_plain`, `phase_update_index`, `phase_purge`, `phase_delete` and `phase_lock`. The first
//! argument is the number of rows, the second the number of operations in each phase.

mod table;

use std::hint::black_box;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use junctor_model::id::{CommitNumber, IndexId, PartitionId, RowId, TransactionId};
use junctor_storage::index::{Direction, RangeBounds};
use junctor_storage::lock::{LOCKS_MAX, LockKey, LockMode, LockTable, WaiterToken};
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{Batch, PartitionStore, Reader, ScanCursor, ScanRange, Writer};
use table::{Run, STATEMENT, TRANSACTION, image, key};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>().unwrap_or(0));
    let rows = arguments.next().unwrap_or(1_000_000).max(1);
    let operations = arguments.next().unwrap_or(100_000).min(rows);
    let mut run = Run::new(rows, operations);
    let pool = PagePool::new(4 << 30).expect("address space");
    let mut store = PartitionStore::new(Arc::clone(&run.layout), pool);
    store.drop_index(IndexId(1));
    for id in 0..rows - operations {
        run.insert(&mut store, id);
    }
    phase_insert(&mut run, &mut store);
    phase_build(&run, &mut store);
    phase_read(&mut run, &store);
    phase_batch(&mut run, &store);
    phase_range(&mut run, &store);
    phase_update_plain(&mut run, &mut store);
    phase_update_index(&mut run, &mut store);
    phase_purge(&run, &mut store);
    phase_delete(&mut run, &mut store);
    phase_lock(&mut run);
    println!("{:?}", store.statistics());
}

#[inline(never)]
fn phase_insert(run: &mut Run, store: &mut PartitionStore) {
    for id in run.rows - run.operations..run.rows {
        run.insert(store, id);
    }
}

#[inline(never)]
fn phase_build(run: &Run, store: &mut PartitionStore) {
    store.add_index(&run.layout.definition.indexes[1]);
    let mut from = Some(RowId(0));
    while let Some(next) = from {
        from = store.build_index_step(IndexId(1), next, 64).expect("memory");
    }
}

#[inline(never)]
fn phase_read(run: &mut Run, store: &PartitionStore) {
    let snapshot = CommitNumber(run.last_commit);
    for _ in 0..run.operations {
        let (key, hash) = key(run.any_id());
        let found = store.read_primary(&key, hash, snapshot, None);
        black_box(found.map(|(_, version)| version.stored().len()));
    }
}

#[inline(never)]
fn phase_batch(run: &mut Run, store: &PartitionStore) {
    let snapshot = CommitNumber(run.last_commit);
    for _ in 0..run.operations / 50 {
        let keys: [([u8; 4], u64); 50] = std::array::from_fn(|_| key(run.any_id()));
        let keys: [(&[u8], u64); 50] = std::array::from_fn(|at| (&keys[at].0[..], keys[at].1));
        let mut images = Batch::new();
        store.read_batch(keys.into_iter(), snapshot, None, &mut images);
        black_box(images.iter().map(|image| image.len()).sum::<usize>());
    }
}

#[inline(never)]
fn phase_range(run: &mut Run, store: &PartitionStore) {
    let snapshot = CommitNumber(run.last_commit);
    for _ in 0..run.operations / 100 {
        let first = run.any_id();
        let (low, high) = (key(first).0, key(first + 99).0);
        let bounds = RangeBounds { lower: Bound::Included(&low), upper: Bound::Included(&high) };
        let range = ScanRange { index: IndexId(0), bounds, direction: Direction::Forward, budget_entries: 1000 };
        let mut bytes = 0;
        store.scan(range, &mut ScanCursor::default(), Reader { snapshot, own: None }, |_, view| {
            bytes += view.image().len();
            ControlFlow::Continue(())
        });
        black_box(bytes);
    }
}

#[inline(never)]
fn phase_update_plain(run: &mut Run, store: &mut PartitionStore) {
    for _ in 0..run.operations {
        let id = run.any_id();
        let (key, hash) = key(id);
        let row = store.find_primary(&key, hash).expect("the row");
        let mut image = [0; 256];
        let stored = store.newest(row).expect("a version").stored();
        let length = stored.len();
        image[..length].copy_from_slice(stored);
        image[length - 100] = b'z';
        store.update(row, &image[..length], Writer { transaction: TRANSACTION, statement: STATEMENT }).expect("memory");
        store.commit(row, TRANSACTION, run.next_number());
        store.purge_step(CommitNumber(run.last_commit), 1);
    }
}

#[inline(never)]
fn phase_update_index(run: &mut Run, store: &mut PartitionStore) {
    for _ in 0..run.operations {
        let (id, k) = (run.any_id(), run.any_id());
        let (key, hash) = key(id);
        let row = store.find_primary(&key, hash).expect("the row");
        store
            .update(row, &image(&run.layout, id, k, b'd'), Writer { transaction: TRANSACTION, statement: STATEMENT })
            .expect("memory");
        store.commit(row, TRANSACTION, run.next_number());
    }
}

#[inline(never)]
fn phase_purge(run: &Run, store: &mut PartitionStore) {
    while store.purge_step(CommitNumber(run.last_commit), 64).has_more {}
}

#[inline(never)]
fn phase_delete(run: &mut Run, store: &mut PartitionStore) {
    for id in 0..run.operations {
        let (key, hash) = key(id);
        let row = store.find_primary(&key, hash).expect("the row");
        store.delete(row, Writer { transaction: TRANSACTION, statement: STATEMENT }).expect("memory");
        store.commit(row, TRANSACTION, run.next_number());
        store.purge_step(CommitNumber(run.last_commit), 64);
    }
}

#[inline(never)]
fn phase_lock(run: &mut Run) {
    let mut table = LockTable::new(1, LOCKS_MAX);
    let mut granted = Vec::new();
    for number in 0..u64::from(run.operations) {
        let transaction = TransactionId(number % 64 + 1);
        let key = LockKey { partition: PartitionId::default(), row: RowId(run.any_id()) };
        black_box(table.request(key, transaction, LockMode::Exclusive, WaiterToken(number))).expect("room");
        table.release_all(transaction, &mut granted);
    }
}
