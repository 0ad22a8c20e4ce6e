use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{
    ColumnIndex, CommitNumber, IndexId, PartitionId, RowId, SchemaVersion, StatementNumber, TransactionId,
};
use junctor_model::key::append_value;
use junctor_model::schema::{ColumnType, IndexKind, TableLayout};
use junctor_model::value::ValueRef;
use proptest::prelude::*;

use super::sample::{INT, column, image, index, integer_key, layout, sysbench_layout, table};
use super::{Batch, PartitionStore, PurgeProgress, ScanCursor, ScanEnd, ScanRange, WriteError};
use crate::index::{Direction, RangeBounds};
use crate::page::{PAGE_BYTES, PagePool};
use crate::redo::{RedoBuffer, RedoHeader, RedoOperation, RedoRecords};

const FIRST: TransactionId = TransactionId(1);
const SECOND: TransactionId = TransactionId(2);
const ONE: StatementNumber = StatementNumber(1);
const TWO: StatementNumber = StatementNumber(2);
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
    image(layout, &[ValueRef::Int(i64::from(id)), k, ValueRef::Bytes(value.name.as_bytes()), ValueRef::Bytes(&body)])
}

fn values(k: i32) -> Values {
    Values { k: Some(k), name: format!("name {k}"), body_bytes: 10 }
}

fn insert(store: &mut PartitionStore, id: i32, k: i32, transaction: TransactionId) -> Result<RowId, WriteError> {
    let (key, hash) = integer_key(id);
    let image = row_image(&store.layout().clone(), id, &values(k));
    store.insert(&key, hash, &image, transaction, ONE)
}

fn k_of(store: &PartitionStore, id: i32, snapshot: u64, own: Option<TransactionId>) -> Option<i64> {
    let (key, hash) = integer_key(id);
    let (_, version) = store.read_primary(&key, hash, CommitNumber(snapshot), own)?;
    let mut scratch = Vec::new();
    match store.view(&version, &mut scratch).column(ColumnIndex(1)) {
        ValueRef::Int(k) => Some(k),
        other => panic!("k is {other:?}"),
    }
}

fn ids_by_k(store: &PartitionStore, bounds: RangeBounds<'_>, direction: Direction, snapshot: u64) -> Vec<i64> {
    let mut ids = Vec::new();
    let range = ScanRange { index: IndexId(1), bounds, direction };
    let end = store.scan(range, &mut ScanCursor::default(), CommitNumber(snapshot), None, usize::MAX, |_, view| {
        if let ValueRef::Int(id) = view.column(ColumnIndex(0)) {
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
fn a_second_row_with_the_key_is_a_duplicate_and_one_in_doubt_must_be_locked() {
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
    store.delete(row, FIRST, ONE).unwrap();
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
fn undo_to_a_statement_keeps_what_the_statement_before_wrote() {
    let mut store = store();
    let layout = store.layout().clone();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    store.update(row, &row_image(&layout, 7, &values(71)), FIRST, TWO).unwrap();
    store.update(row, &row_image(&layout, 7, &values(72)), FIRST, TWO).unwrap();
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
    store.delete(row, FIRST, ONE).unwrap();
    store.check().unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    store.check().unwrap();
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn a_scan_finds_each_row_once_under_the_key_that_its_reader_sees() {
    let mut store = store();
    let layout = store.layout().clone();
    for id in 0..20 {
        let row = insert(&mut store, id, id % 5, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
        store.update(row, &row_image(&layout, id, &values(100 - id)), SECOND, ONE).unwrap();
        store.commit(row, SECOND, CommitNumber(2));
    }
    let forward = ids_by_k(&store, RangeBounds::ALL, Direction::Forward, 2);
    assert_eq!(forward, (0..20).rev().collect::<Vec<i64>>());
    let old = ids_by_k(&store, RangeBounds::ALL, Direction::Backward, 1);
    assert_eq!(old.len(), 20);
    assert!(old.windows(2).all(|pair| (pair[0] % 5, pair[0]) > (pair[1] % 5, pair[1])));
    let mut bound = Vec::new();
    append_value(INT, true, ValueRef::Int(90), &mut bound);
    let bounds = RangeBounds { lower: Bound::Excluded(&bound), upper: Bound::Unbounded };
    assert_eq!(ids_by_k(&store, bounds, Direction::Forward, 2), (0..10).rev().collect::<Vec<i64>>());
    store.check().unwrap();
}

#[test]
fn a_range_of_keys_longer_than_an_index_keeps_is_exact() {
    let body = ColumnType::Text { length_bytes: 4, collation: CollationId::BINARY };
    let columns = vec![column("id", INT, false), column("body", body, false)];
    let indexes = vec![index(0, IndexKind::Primary { ordered: false }, &[0]), index(1, IndexKind::Ordered, &[1])];
    let mut store = PartitionStore::new(table(columns, indexes), pool(1024));
    let body_of = |id: i32| [&[b'a'; 40_000][..], &[b'0' + id as u8]].concat();
    for id in 0..8 {
        let (key, hash) = integer_key(id);
        let body = body_of(id);
        let image = image(store.layout(), &[ValueRef::Int(i64::from(id)), ValueRef::Bytes(&body)]);
        let row = store.insert(&key, hash, &image, FIRST, ONE).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    store.check().unwrap();
    let mut bound = Vec::new();
    append_value(body, false, ValueRef::Bytes(&body_of(5)), &mut bound);
    let bounds = RangeBounds { lower: Bound::Excluded(&bound), upper: Bound::Unbounded };
    assert_eq!(ids_by_k(&store, bounds, Direction::Forward, 1), [6, 7]);
    assert_eq!(ids_by_k(&store, RangeBounds::prefix(&bound), Direction::Backward, 1), [5]);
}

#[test]
fn an_index_built_while_rows_are_written_is_complete() {
    let layout = layout();
    let mut definition = layout.definition.clone();
    let added = definition.indexes.remove(1);
    let mut store = PartitionStore::new(Arc::new(TableLayout::new(definition)), pool(1024));
    for id in 0..100 {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    store.add_index(&added);
    assert!(!store.has_index(IndexId(1)));
    let mut from = Some(RowId(0));
    let mut step = 0;
    while let Some(next) = from {
        from = store.build_index_step(IndexId(1), next, 7).unwrap();
        let row = store.find_primary(&integer_key(step).0, integer_key(step).1).unwrap();
        store.update(row, &row_image(&layout, step, &values(1000 + step)), SECOND, ONE).unwrap();
        store.commit(row, SECOND, CommitNumber(2 + step as u64));
        step += 1;
        store.check().unwrap();
    }
    store.replace_layout(layout);
    assert!(store.has_index(IndexId(1)));
    store.check().unwrap();
    assert_eq!(ids_by_k(&store, RangeBounds::ALL, Direction::Forward, 1), (0..100).collect::<Vec<i64>>());
    store.drop_index(IndexId(1));
    assert!(!store.has_index(IndexId(1)));
    store.check().unwrap();
}

#[test]
fn running_out_of_memory_changes_nothing_and_deleting_helps() {
    let pool = pool(64);
    let mut store = PartitionStore::new(layout(), Arc::clone(&pool));
    let layout = store.layout().clone();
    let mut count = 0;
    let error = loop {
        match insert(&mut store, count, count, FIRST) {
            Ok(row) => store.commit(row, FIRST, CommitNumber(1)),
            Err(error) => break error,
        }
        count += 1;
    };
    assert_eq!(error, WriteError::OutOfMemory);
    assert!(count > 1000);
    store.check().unwrap();
    assert_eq!(store.statistics().live_rows, count as u64);
    let big = Values { k: Some(1), name: "y".into(), body_bytes: 300_000 };
    let before = (store.statistics(), pool.used_bytes());
    assert_eq!(store.update(RowId(3), &row_image(&layout, 3, &big), FIRST, ONE), Err(WriteError::OutOfMemory));
    assert_eq!((store.statistics(), pool.used_bytes()), before);
    store.check().unwrap();
    for row in (0..count as u32).map(RowId) {
        store.delete(row, SECOND, ONE).unwrap();
        store.commit(row, SECOND, CommitNumber(2));
        store.purge_step(CommitNumber(2), 10);
    }
    store.check().unwrap();
    assert_eq!((store.statistics(), pool.used_bytes()), (Default::default(), 0));
    let mut other = PartitionStore::new(sysbench_layout(), Arc::clone(&pool));
    let text = [b'a'; 120];
    for id in 0..count {
        let (key, hash) = integer_key(id);
        let values =
            [ValueRef::Int(i64::from(id)), ValueRef::Int(1), ValueRef::Bytes(&text[..1]), ValueRef::Bytes(b"")];
        let row = other.insert(&key, hash, &image(other.layout(), &values), FIRST, ONE).unwrap();
        other.commit(row, FIRST, CommitNumber(1));
    }
    other.check().unwrap();
    drop(other);
    assert_eq!(pool.used_bytes(), 0);
}

#[test]
fn a_sysbench_row_takes_at_most_340_bytes_with_its_indexes() {
    const ROWS: i32 = 120_000;
    let layout = sysbench_layout();
    let mut definition = layout.definition.clone();
    let secondary = definition.indexes.pop().unwrap();
    let mut store = PartitionStore::new(Arc::new(TableLayout::new(definition)), pool(8192));
    let (c, pad) = ([b'c'; 119], [b'p'; 59]);
    let mut random = 1u64;
    for id in 1..=ROWS {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let k = (random >> 33) as i64 % i64::from(ROWS);
        let values = [ValueRef::Int(i64::from(id)), ValueRef::Int(k), ValueRef::Bytes(&c), ValueRef::Bytes(&pad)];
        let (key, hash) = integer_key(id);
        let row = store.insert(&key, hash, &image(&layout, &values), FIRST, ONE).unwrap();
        store.commit(row, FIRST, CommitNumber(id as u64));
    }
    store.add_index(&secondary);
    let mut from = Some(RowId(0));
    while let Some(next) = from {
        from = store.build_index_step(secondary.id, next, 64).unwrap();
    }
    let sizes = store.statistics();
    let each = |bytes: u64| bytes as f64 / f64::from(ROWS);
    println!(
        "bytes a row: {:.1} = versions {:.1} + map {:.1} + hash {:.1} + ordered {:.1}",
        each(sizes.total_bytes()),
        each(sizes.row_bytes),
        each(sizes.row_map_bytes),
        each(sizes.hash_bytes),
        each(sizes.ordered_bytes)
    );
    assert!(each(sizes.total_bytes()) <= 340.0);
    assert!(each(sizes.ordered_bytes) <= 36.0);
}

#[test]
fn pages_of_a_thinned_out_table_go_back_to_the_pool() {
    let mut store = store();
    for id in 0..5_000 {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
    }
    let full = store.statistics().row_bytes;
    for row in (0..5_000).filter(|id| id % 10 != 0).map(RowId) {
        store.delete(row, FIRST, ONE).unwrap();
        store.commit(row, FIRST, CommitNumber(2));
    }
    store.purge_step(CommitNumber(2), usize::MAX);
    let before = store.digest(CommitNumber(2));
    assert!(store.statistics().row_bytes > full / 2);
    for _ in 0..3 {
        while store.compact_step(64) {
            store.rows.check().unwrap();
        }
    }
    store.check().unwrap();
    assert_eq!(store.digest(CommitNumber(2)), before);
    assert!(store.statistics().row_bytes <= full / 5, "{} of {full}", store.statistics().row_bytes);
}

#[test]
fn pages_are_emptied_while_rows_come_and_go() {
    let mut store = store();
    let layout = store.layout().clone();
    let mut random = 1u64;
    let mut moved = 0;
    for number in 1..6_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let id = (random >> 33) as i32 % 700;
        // Growing and shrinking by turns, so that pages get sparse.
        let is_growing = number / 1_000 % 2 == 0;
        let transaction = TransactionId(number);
        let (key, hash) = integer_key(id);
        let row = match store.find_primary(&key, hash) {
            Some(row) if is_growing => {
                let body_bytes = (random >> 20) as usize % 900;
                let values = Values { k: Some(id), name: "n".into(), body_bytes };
                store.update(row, &row_image(&layout, id, &values), transaction, ONE).map(|()| row)
            }
            Some(row) => store.delete(row, transaction, ONE).map(|()| row),
            None => insert(&mut store, id, id, transaction),
        };
        match row {
            Ok(row) if number % 7 == 0 => store.undo(row, transaction, NOTHING),
            Ok(row) => store.commit(row, transaction, CommitNumber(number)),
            Err(error) => assert_eq!(error, WriteError::NotFound),
        }
        let before = store.digest(CommitNumber(number));
        moved += usize::from(store.compact_step(3));
        assert_eq!(store.digest(CommitNumber(number)), before);
        if number % 50 == 0 {
            store.purge_step(CommitNumber(number - 10), 100);
            store.check().unwrap();
        }
    }
    assert!(moved > 1_000, "{moved} steps had work");
}

#[test]
fn a_row_with_very_many_versions_is_purged_in_small_steps() {
    let mut store = store();
    let layout = store.layout().clone();
    let row = insert(&mut store, 7, 0, FIRST).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    for number in 2..2_000 {
        store.update(row, &row_image(&layout, 7, &values(number)), FIRST, ONE).unwrap();
        store.commit(row, FIRST, CommitNumber(number as u64));
    }
    store.delete(row, FIRST, ONE).unwrap();
    store.commit(row, FIRST, CommitNumber(2_000));
    assert_eq!(store.purge_step(CommitNumber(1_000), 10), PurgeProgress { steps: 10, has_more: true });
    store.check().unwrap();
    assert_eq!(k_of(&store, 7, 1_000, None), Some(1_000));
    let mut steps = 0;
    while store.purge_step(CommitNumber(2_000), 10).has_more {
        steps += 1;
        assert!(steps < 1_000);
    }
    store.check().unwrap();
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn too_many_old_versions_are_given_up_the_oldest_first_and_in_small_steps() {
    let mut store = store();
    let layout = store.layout().clone();
    let rows: Vec<RowId> = (0..10).map(|id| insert(&mut store, id, 0, FIRST).unwrap()).collect();
    rows.iter().zip(1..).for_each(|(row, number)| store.commit(*row, FIRST, CommitNumber(number)));
    // One row is changed far more often than the others, all under a snapshot of the beginning.
    let old = CommitNumber(10);
    for number in 11..4_011u64 {
        let id = if number % 4 == 0 { number / 4 % 10 } else { 7 };
        let row = rows[id as usize];
        store.update(row, &row_image(&layout, id as i32, &values(number as i32)), FIRST, ONE).unwrap();
        store.commit(row, FIRST, CommitNumber(number));
        store.limit_old_versions(1_000, CommitNumber(number));
        store.purge_step(old, 64);
        assert!(store.statistics().versions < 1_400, "{:?}", store.statistics());
    }
    store.check().unwrap();
    assert!(store.snapshot_floor() > CommitNumber(3_000), "{}", store.snapshot_floor());
    // What is above the floor can still be read.
    let floor = store.snapshot_floor().0;
    let last = (1..=floor).rev().find(|number| number % 4 != 0).expect("row 7 was changed");
    assert_eq!(k_of(&store, 7, floor, None), Some(last as i64));
    // A floor is never above what new snapshots are.
    store.limit_old_versions(0, CommitNumber(3_900));
    assert!(store.snapshot_floor() <= CommitNumber(3_900));
    while store.purge_step(CommitNumber(4_010), 64).has_more {}
    store.check().unwrap();
    assert_eq!(store.statistics().versions, 10);
}

#[test]
fn a_deletion_of_a_row_inserted_over_a_deletion_keeps_the_key() {
    let mut store = store();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    store.delete(row, FIRST, ONE).unwrap();
    store.commit(row, FIRST, CommitNumber(2));
    assert_eq!(insert(&mut store, 7, 71, SECOND), Ok(row));
    store.delete(row, SECOND, TWO).unwrap();
    store.commit(row, SECOND, CommitNumber(3));
    store.check().unwrap();
    store.purge_step(CommitNumber(2), 100);
    store.check().unwrap();
    store.purge_step(CommitNumber(3), 100);
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn a_partition_can_be_read_from_any_thread() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&store());
}

#[test]
fn a_batch_finds_what_single_lookups_find() {
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

#[test]
fn a_backup_takes_the_row_ids_of_its_primary() {
    let (mut store, mut backup) = (store(), store());
    let layout = store.layout().clone();
    for id in (0..50).rev() {
        insert(&mut store, id, id, FIRST).unwrap();
    }
    for id in 0..50 {
        let (key, hash) = integer_key(id);
        let row = store.find_primary(&key, hash).unwrap();
        let image = row_image(&layout, id, &values(id));
        assert_eq!(backup.insert_at(row, &key, hash, &image, FIRST, ONE), Ok(row));
        backup.check().unwrap();
    }
    let (key, hash) = integer_key(90);
    let image = row_image(&layout, 90, &values(90));
    assert_eq!(backup.insert_at(RowId(3), &key, hash, &image, FIRST, ONE), Err(WriteError::Uncommitted(RowId(3))));
}

#[test]
fn redo_of_a_commit_says_what_became_of_each_row() {
    let (mut store, mut replica) = (store(), store());
    let layout = store.layout().clone();
    let rows: Vec<RowId> = (0..3).map(|id| insert(&mut store, id, id, FIRST).unwrap()).collect();
    rows.iter().for_each(|row| store.commit(*row, FIRST, CommitNumber(1)));
    store.update(rows[0], &row_image(&layout, 0, &values(50)), SECOND, ONE).unwrap();
    store.delete(rows[1], SECOND, ONE).unwrap();
    let passing = insert(&mut store, 8, 8, SECOND).unwrap();
    store.delete(passing, SECOND, TWO).unwrap();
    let (mut redo, mut scratch) = (RedoBuffer::new(), Vec::new());
    redo.begin(RedoHeader {
        commit_number: CommitNumber(2),
        transaction: SECOND,
        participant_count: 1,
        partition: PartitionId::default(),
        schema_version: SchemaVersion(1),
    });
    for row in [rows[0], rows[1], rows[2], passing] {
        store.append_redo(row, SECOND, &mut redo, &mut scratch);
        store.commit(row, SECOND, CommitNumber(2));
    }
    let bytes = redo.take(Vec::new());
    let record = RedoRecords::new(&bytes).next().unwrap().unwrap();
    let image = row_image(&layout, 0, &values(50));
    let expected = [
        RedoOperation::Put { row: rows[0], image: &image },
        RedoOperation::Delete { row: rows[1], key: &integer_key(1).0 },
    ];
    assert_eq!(record.operations().collect::<Vec<_>>(), expected);
    for (id, k) in [(2, 2), (0, 50)] {
        let (key, hash) = integer_key(id);
        let row = replica.insert_at(rows[id as usize], &key, hash, &row_image(&layout, id, &values(k)), FIRST, ONE);
        replica.commit(row.unwrap(), FIRST, CommitNumber(9));
    }
    assert_eq!(store.digest(CommitNumber(2)), replica.digest(CommitNumber(9)));
    assert_ne!(store.digest(CommitNumber(1)), store.digest(CommitNumber(2)));
}

#[test]
fn a_backup_follows_its_primary_through_ids_that_are_used_again() {
    let (mut primary, mut backup) = (store(), store());
    let layout = primary.layout().clone();
    let mut number = 0;
    // The primary purges at once and the backup never, so ids and keys come back in other pairs.
    for id in [1, 2, -1, 3, -2, 1, 4, -4, -3, 4, 3, -1, 2, 1] {
        number += 1;
        let (transaction, commit) = (TransactionId(number), CommitNumber(number));
        let (key, hash) = integer_key(i32::abs(id));
        let row = match id {
            1.. => {
                let image = row_image(&layout, id, &values(number as i32));
                let row = primary.insert(&key, hash, &image, transaction, ONE).unwrap();
                assert_eq!(backup.insert_at(row, &key, hash, &image, transaction, ONE), Ok(row));
                row
            }
            _ => {
                let row = primary.find_primary(&key, hash).unwrap();
                primary.delete(row, transaction, ONE).unwrap();
                backup.delete(row, transaction, ONE).unwrap();
                row
            }
        };
        primary.commit(row, transaction, commit);
        backup.commit(row, transaction, commit);
        primary.purge_step(commit, 100);
        backup.check().unwrap();
        assert_eq!(primary.digest(commit), backup.digest(commit));
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Values {
    k: Option<i32>,
    name: String,
    body_bytes: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Insert { transaction: usize, id: i32, values: Values },
    Update { transaction: usize, id: i32, values: Values },
    Delete { transaction: usize, id: i32 },
    NextStatement { transaction: usize },
    UndoStatement { transaction: usize },
    Commit { transaction: usize },
    Abort { transaction: usize },
    TakeSnapshot,
    DropSnapshot,
    Purge { budget: usize },
    Compact { budget: usize },
}

#[derive(Clone, Debug, PartialEq)]
enum Stamp {
    Committed(u64),
    Open(usize, u32),
}

/// What a partition must do, said as simply as possible: all versions of all keys for ever.
struct Model {
    versions: BTreeMap<i32, Vec<(Stamp, Option<Values>)>>,
    statements: [u32; 3],
    committed: u64,
    snapshots: Vec<u64>,
}

impl Model {
    fn newest(&self, id: i32) -> Option<&(Stamp, Option<Values>)> {
        self.versions.get(&id).and_then(|versions| versions.last())
    }

    fn is_locked_by_other(&self, id: i32, transaction: usize) -> bool {
        matches!(self.newest(id), Some((Stamp::Open(owner, _), _)) if *owner != transaction)
    }

    fn exists(&self, id: i32) -> bool {
        matches!(self.newest(id), Some((_, Some(_))))
    }

    fn put(&mut self, transaction: usize, id: i32, values: Option<Values>) {
        let stamp = Stamp::Open(transaction, self.statements[transaction]);
        self.versions.entry(id).or_default().push((stamp, values));
    }

    fn visible(&self, id: i32, snapshot: u64, own: Option<usize>) -> Option<&Values> {
        let seen = |stamp: &Stamp| match stamp {
            Stamp::Committed(number) => *number <= snapshot,
            Stamp::Open(transaction, _) => own == Some(*transaction),
        };
        let (_, values) = self.versions.get(&id)?.iter().rev().find(|(stamp, _)| seen(stamp))?;
        values.as_ref()
    }
}

struct Pair {
    store: PartitionStore,
    model: Model,
    /// Writes refused for want of memory.
    refused: usize,
}

impl Pair {
    fn new() -> Pair {
        Pair::with_pages(4096)
    }

    fn with_pages(pages: usize) -> Pair {
        let model = Model { versions: BTreeMap::new(), statements: [1; 3], committed: 0, snapshots: Vec::new() };
        Pair { store: PartitionStore::new(layout(), pool(pages)), model, refused: 0 }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Insert { transaction, id, values } => self.insert(transaction, id, values),
            Step::Update { transaction, id, values } => self.change(transaction, id, Some(values)),
            Step::Delete { transaction, id } => self.change(transaction, id, None),
            Step::NextStatement { transaction } => self.model.statements[transaction] += 1,
            Step::UndoStatement { transaction } => self.undo(transaction, self.model.statements[transaction] - 1),
            Step::Abort { transaction } => self.undo(transaction, 0),
            Step::Commit { transaction } => self.commit(transaction),
            Step::TakeSnapshot => self.model.snapshots.push(self.model.committed),
            Step::DropSnapshot => drop(self.model.snapshots.pop()),
            Step::Compact { budget } => _ = self.store.compact_step(budget),
            Step::Purge { budget } => {
                let horizon = self.model.snapshots.iter().copied().min().unwrap_or(self.model.committed);
                let progress = self.store.purge_step(CommitNumber(horizon), budget);
                assert!(progress.steps <= budget);
            }
        }
    }

    fn insert(&mut self, transaction: usize, id: i32, values: Values) {
        let (key, hash) = integer_key(id);
        let image = row_image(self.store.layout(), id, &values);
        let statement = StatementNumber(self.model.statements[transaction]);
        let result = self.store.insert(&key, hash, &image, name_of(transaction), statement);
        if self.model.is_locked_by_other(id, transaction) {
            assert!(matches!(result, Err(WriteError::Uncommitted(_))), "{result:?}");
        } else if self.model.exists(id) {
            assert!(matches!(result, Err(WriteError::Duplicate(_))), "{result:?}");
        } else if result == Err(WriteError::OutOfMemory) {
            self.refused += 1;
        } else {
            assert!(self.store.is_row_of(result.unwrap(), &key));
            self.model.put(transaction, id, Some(values));
        }
    }

    fn change(&mut self, transaction: usize, id: i32, values: Option<Values>) {
        let (key, hash) = integer_key(id);
        let statement = StatementNumber(self.model.statements[transaction]);
        let Some(row) = self.store.find_primary(&key, hash) else {
            assert!(!self.model.exists(id));
            return;
        };
        let result = match &values {
            Some(values) => {
                let image = row_image(self.store.layout(), id, values);
                self.store.update(row, &image, name_of(transaction), statement)
            }
            None => self.store.delete(row, name_of(transaction), statement),
        };
        if self.model.is_locked_by_other(id, transaction) {
            assert_eq!(result, Err(WriteError::Uncommitted(row)));
        } else if !self.model.exists(id) {
            assert_eq!(result, Err(WriteError::NotFound));
        } else if result == Err(WriteError::OutOfMemory) {
            self.refused += 1;
        } else {
            assert_eq!(result, Ok(()));
            self.model.put(transaction, id, values);
        }
    }

    fn rows_of(&self, transaction: usize) -> Vec<i32> {
        let is_own = |versions: &[(Stamp, Option<Values>)]| {
            versions.iter().any(|(stamp, _)| matches!(stamp, Stamp::Open(owner, _) if *owner == transaction))
        };
        self.model.versions.iter().filter(|(_, versions)| is_own(versions)).map(|(id, _)| *id).collect()
    }

    fn undo(&mut self, transaction: usize, newer_than: u32) {
        for id in self.rows_of(transaction) {
            let (key, hash) = integer_key(id);
            let row = self.store.find_primary(&key, hash).unwrap();
            self.store.undo(row, name_of(transaction), StatementNumber(newer_than));
            let versions = self.model.versions.get_mut(&id).unwrap();
            versions.retain(|(stamp, _)| {
                !matches!(stamp, Stamp::Open(owner, statement) if *owner == transaction && *statement > newer_than)
            });
        }
    }

    fn commit(&mut self, transaction: usize) {
        let rows = self.rows_of(transaction);
        self.model.committed += 1;
        for id in rows {
            let (key, hash) = integer_key(id);
            let row = self.store.find_primary(&key, hash).unwrap();
            self.store.commit(row, name_of(transaction), CommitNumber(self.model.committed));
            let versions = self.model.versions.get_mut(&id).unwrap();
            let (_, newest) = versions.last().unwrap().clone();
            versions.retain(|(stamp, _)| matches!(stamp, Stamp::Committed(_)));
            versions.push((Stamp::Committed(self.model.committed), newest));
        }
        self.model.statements[transaction] = 1;
    }

    fn compare(&self) {
        self.store.check().unwrap();
        let mut readers: Vec<(u64, Option<usize>)> =
            self.model.snapshots.iter().map(|number| (*number, None)).collect();
        readers.push((self.model.committed, None));
        readers.extend((0..3).map(|transaction| (self.model.committed, Some(transaction))));
        for (snapshot, own) in readers {
            self.compare_reader(snapshot, own);
        }
    }

    fn compare_reader(&self, snapshot: u64, own: Option<usize>) {
        let own_name = own.map(name_of);
        let mut scratch = Vec::new();
        let mut by_k = Vec::new();
        for id in self.model.versions.keys() {
            let (key, hash) = integer_key(*id);
            let found = self.store.read_primary(&key, hash, CommitNumber(snapshot), own_name);
            let found = found.map(|(_, version)| self.store.view(&version, &mut scratch).image().to_vec());
            let expected = self.model.visible(*id, snapshot, own);
            assert_eq!(found, expected.map(|values| row_image(self.store.layout(), *id, values)), "row {id}");
            by_k.extend(expected.map(|values| (values.k, *id)));
        }
        by_k.sort();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut found = Vec::new();
            let mut cursor = ScanCursor::default();
            let range = ScanRange { index: IndexId(1), bounds: RangeBounds::ALL, direction };
            loop {
                let end = self.store.scan(range, &mut cursor, CommitNumber(snapshot), own_name, 3, |_, view| {
                    let number = |column| match view.column(ColumnIndex(column)) {
                        ValueRef::Int(value) => Some(value as i32),
                        _ => None,
                    };
                    found.push((number(1), number(0).unwrap()));
                    ControlFlow::Continue(())
                });
                if end == Some(ScanEnd::Exhausted) {
                    break;
                }
            }
            if direction == Direction::Backward {
                found.reverse();
            }
            assert!(found.is_sorted_by_key(|(k, _)| *k));
            found.sort();
            assert_eq!(found, by_k);
        }
    }
}

fn name_of(transaction: usize) -> TransactionId {
    TransactionId(transaction as u64 + 1)
}

fn any_values() -> impl Strategy<Value = Values> {
    let body = prop_oneof![8 => 0usize..300, 1 => 7_000usize..9_000, 1 => 30_000usize..80_000];
    (proptest::option::of(0..5), "[abB]{0,3}", body).prop_map(|(k, name, body_bytes)| Values { k, name, body_bytes })
}

fn any_step() -> impl Strategy<Value = Step> {
    let (transaction, id) = (0usize..3, 0i32..12);
    prop_oneof![
        6 => (transaction.clone(), id.clone(), any_values())
            .prop_map(|(transaction, id, values)| Step::Insert { transaction, id, values }),
        6 => (transaction.clone(), id.clone(), any_values())
            .prop_map(|(transaction, id, values)| Step::Update { transaction, id, values }),
        4 => (transaction.clone(), id).prop_map(|(transaction, id)| Step::Delete { transaction, id }),
        3 => transaction.clone().prop_map(|transaction| Step::NextStatement { transaction }),
        1 => transaction.clone().prop_map(|transaction| Step::UndoStatement { transaction }),
        3 => transaction.clone().prop_map(|transaction| Step::Commit { transaction }),
        1 => transaction.prop_map(|transaction| Step::Abort { transaction }),
        1 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        2 => (1usize..4).prop_map(|budget| Step::Purge { budget }),
        2 => (1usize..4).prop_map(|budget| Step::Compact { budget }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_partition_does_what_the_model_of_versions_does(steps in proptest::collection::vec(any_step(), 1..80)) {
        let mut pair = Pair::new();
        for step in steps {
            pair.run(step);
            pair.compare();
        }
        (0..3).for_each(|transaction| pair.undo(transaction, 0));
        pair.model.snapshots.clear();
        for id in 0..12 {
            pair.change(0, id, None);
        }
        pair.commit(0);
        pair.run(Step::Purge { budget: usize::MAX });
        pair.compare();
        prop_assert_eq!(pair.store.statistics().total_bytes(), 0);
        prop_assert_eq!(pair.refused, 0);
    }

    #[test]
    fn a_write_refused_for_want_of_memory_changes_nothing(
        pages in 9usize..24,
        steps in proptest::collection::vec(any_step(), 1..80),
    ) {
        let mut pair = Pair::with_pages(pages);
        for step in steps {
            pair.run(step);
            pair.compare();
        }
    }
}
