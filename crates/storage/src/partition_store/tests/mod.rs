//! Tests of a partition as a whole.

mod checkpoint;
mod checkpoint_recovery;
mod memory;
mod model;
mod ordered_index;
mod purge;
mod replay;
mod replica;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{ColumnNumber, CommitNumber, IndexId, PartitionId, RowId, StatementNumber, TransactionId};
use junctor_model::key::append_value;
use junctor_model::key_list::{append_element, append_element_key};
use junctor_model::partition::HashedKey;
use junctor_model::schema::{IndexKind, TableLayout};
use junctor_model::value::ValueRef;
use proptest::prelude::*;

use crate::index::{Direction, RangeBounds};
use crate::page::{PAGE_BYTES, PagePool};
use crate::partition_store::sample::{
    INT, column, image, index, integer_key, layout, lists_layout, sysbench_layout, table,
};
use crate::partition_store::{
    Batch, PartitionStore, PurgeProgress, Reader, ScanCursor, ScanEnd, ScanRange, VersionState, WriteError, Writer,
};

// The transactions and the statement number of most tests.
const FIRST: TransactionId = TransactionId(1);
const SECOND: TransactionId = TransactionId(2);
const ONE: StatementNumber = StatementNumber(1);
const TWO: StatementNumber = StatementNumber(2);
fn writer(transaction: TransactionId, statement: StatementNumber) -> Writer {
    Writer { transaction, statement }
}

const NOTHING: StatementNumber = StatementNumber(0);

fn pool(pages: usize) -> Arc<PagePool> {
    PagePool::new(pages * PAGE_BYTES).expect("address space")
}

fn store() -> PartitionStore {
    PartitionStore::new(layout(), pool(4096))
}

fn row_image(layout: &TableLayout, id: i32, value: &Values) -> Vec<u8> {
    let k = value.k.map_or(ValueRef::Null, |k| ValueRef::Int(i64::from(k)));
    let body = vec![b'x'; value.body_bytes];
    let mut row = vec![ValueRef::Int(i64::from(id)), k, ValueRef::Bytes(value.name.as_bytes()), ValueRef::Bytes(&body)];
    let list = list_of(value);
    if layout.definition.columns.len() > row.len() {
        row.push(list.as_deref().map_or(ValueRef::Null, ValueRef::Bytes));
    }
    image(layout, &row)
}

/// The elements of a row of `lists_layout`: the different bytes of the name, and the name if it is empty;
/// none without a k.
fn elements_of(value: &Values) -> Option<BTreeSet<Vec<u8>>> {
    value.k.map(|k| match (value.name.as_str(), k) {
        // An empty list, and a list of an empty element.
        ("", 0) => BTreeSet::new(),
        ("", _) => BTreeSet::from([Vec::new()]),
        (name, _) => name.bytes().map(|byte| vec![byte, 0]).collect(),
    })
}

fn list_of(value: &Values) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    elements_of(value)?.iter().for_each(|element| append_element(element, &mut list));
    Some(list)
}

/// The ids of the rows with an element, as a scan of an index of `lists_layout` finds them.
fn ids_with(store: &PartitionStore, (index, prefix): (u16, &[u8]), reader: Reader) -> Vec<i64> {
    let mut ids = Vec::new();
    let bounds = RangeBounds::prefix(prefix);
    let range = ScanRange { index: IndexId(index), bounds, direction: Direction::Forward, budget_entries: usize::MAX };
    store.scan(range, &mut ScanCursor::default(), reader, |_, view| {
        if let ValueRef::Int(id) = view.column(ColumnNumber(0)) {
            ids.push(id);
        }
        ControlFlow::Continue(())
    });
    ids
}

fn values(k: i32) -> Values {
    Values { k: Some(k), name: format!("name {k}"), body_bytes: 10 }
}

fn insert(store: &mut PartitionStore, id: i32, k: i32, transaction: TransactionId) -> Result<RowId, WriteError> {
    let (key, hash) = integer_key(id);
    let image = row_image(&store.layout().clone(), id, &values(k));
    store.insert(HashedKey { hash, key: &key }, &image, writer(transaction, ONE))
}

fn k_of(store: &PartitionStore, id: i32, snapshot: u64, own: Option<TransactionId>) -> Option<i64> {
    let (key, hash) = integer_key(id);
    let (_, version) = store.read_primary(&key, hash, CommitNumber(snapshot), own)?;
    let mut scratch = Vec::new();
    match store.view(&version, &mut scratch).column(ColumnNumber(1)) {
        ValueRef::Int(k) => Some(k),
        other => panic!("k is {other:?}"),
    }
}

fn ids_by_k(store: &PartitionStore, bounds: RangeBounds<'_>, direction: Direction, snapshot: u64) -> Vec<i64> {
    let mut ids = Vec::new();
    let range = ScanRange { index: IndexId(1), bounds, direction, budget_entries: usize::MAX };
    let reader = Reader { snapshot: CommitNumber(snapshot), own: None };
    let end = store.scan(range, &mut ScanCursor::default(), reader, |_, view| {
        if let ValueRef::Int(id) = view.column(ColumnNumber(0)) {
            ids.push(id);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end, Some(ScanEnd::Exhausted));
    ids
}

#[test]
fn uncommitted_rows_are_seen_by_their_transaction_only() {
    let mut store = store();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    assert_eq!(k_of(&store, 7, 100, Some(FIRST)), Some(70));
    assert_eq!(k_of(&store, 7, 100, Some(SECOND)), None);
    assert_eq!(k_of(&store, 7, 100, None), None);
    store.commit(row, FIRST, CommitNumber(5));
    assert_eq!(k_of(&store, 7, 4, None), None);
    assert_eq!(k_of(&store, 7, 5, None), Some(70));
    store.check().unwrap();
}

#[test]
fn an_existing_key_is_a_duplicate_but_an_uncommitted_one_needs_a_lock() {
    let mut store = store();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    assert_eq!(insert(&mut store, 7, 71, FIRST), Err(WriteError::Duplicate(row)));
    assert_eq!(insert(&mut store, 7, 71, SECOND), Err(WriteError::Uncommitted(row)));
    store.commit(row, FIRST, CommitNumber(1));
    assert_eq!(insert(&mut store, 7, 71, SECOND), Err(WriteError::Duplicate(row)));
    store.check().unwrap();
}

#[test]
fn a_deleted_row_is_inserted_again_under_its_id_while_old_snapshots_see_it() {
    let mut store = store();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    store.delete(row, writer(FIRST, ONE)).unwrap();
    assert_eq!(insert(&mut store, 7, 72, SECOND), Err(WriteError::Uncommitted(row)));
    store.commit(row, FIRST, CommitNumber(2));
    assert_eq!(insert(&mut store, 7, 72, SECOND), Ok(row));
    store.commit(row, SECOND, CommitNumber(3));
    assert_eq!([1, 2, 3].map(|snapshot| k_of(&store, 7, snapshot, None)), [Some(70), None, Some(72)]);
    assert_eq!(store.statistics().live_rows, 1);
    store.check().unwrap();
    store.purge_step(CommitNumber(3), 100);
    store.check().unwrap();
    assert_eq!(store.statistics().versions, 1);
}

#[test]
fn undoing_a_statement_keeps_earlier_writes() {
    let mut store = store();
    let layout = store.layout().clone();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    store.update(row, &row_image(&layout, 7, &values(71)), writer(FIRST, TWO)).unwrap();
    store.update(row, &row_image(&layout, 7, &values(72)), writer(FIRST, TWO)).unwrap();
    assert_eq!(store.statistics().versions, 2);
    store.check().unwrap();
    store.undo(row, FIRST, ONE);
    assert_eq!(k_of(&store, 7, 0, Some(FIRST)), Some(70));
    store.check().unwrap();
    store.undo(row, FIRST, NOTHING);
    assert_eq!(k_of(&store, 7, 0, Some(FIRST)), None);
    store.check().unwrap();
    assert_eq!(store.statistics().total_bytes(), 0);
}

#[test]
fn a_row_inserted_and_deleted_by_one_transaction_leaves_nothing() {
    let mut store = store();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    store.delete(row, writer(FIRST, ONE)).unwrap();
    store.check().unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    store.check().unwrap();
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn a_partition_can_be_read_from_any_thread() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&store());
}

#[test]
fn a_batch_agrees_with_single_lookups() {
    let mut store = store();
    for id in 0..500 {
        let row = insert(&mut store, id * 2, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let keys: Vec<(Vec<u8>, u64)> = (0..60).map(|id| integer_key(id * 7)).collect();
    let batch = || keys.iter().cycle().map(|(key, hash)| (&key[..], *hash));
    let mut scratch = Vec::new();
    let single: Vec<Vec<u8>> = batch()
        .take(64)
        .map(|(key, hash)| store.read_primary(key, hash, CommitNumber(1), None))
        .map(|found| found.map_or(Vec::new(), |(_, version)| store.view(&version, &mut scratch).image().to_vec()))
        .collect();
    assert_eq!(single.iter().filter(|image| !image.is_empty()).count(), 32);
    let mut images = Batch::new();
    store.read_batch(batch(), CommitNumber(1), None, &mut images);
    assert_eq!(images[..], single);
    images.clear();
    store.read_batch(batch().take(7), CommitNumber(0), None, &mut images);
    assert!(images.len() == 7 && images.iter().all(|image| image.is_empty()));
}

#[derive(Clone, Debug, PartialEq)]
struct Values {
    k: Option<i32>,
    name: String,
    body_bytes: usize,
}
