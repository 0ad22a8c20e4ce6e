//! Recovery: replay by row id, and the indexes built afterwards.

use super::*;
use crate::partition_store::{IndexRebuild, ReplayError};

fn build(store: &mut PartitionStore, mut rebuild: IndexRebuild, budget_rows: usize) {
    while !store.build_indexes_step(&mut rebuild, budget_rows).expect("memory") {}
    store.check().unwrap();
}

/// The id, `k` and length of the body of every row, by row id.
fn rows(store: &PartitionStore, snapshot: CommitNumber) -> BTreeMap<u32, (i64, i64, usize)> {
    let mut scratch = Vec::new();
    let mut rows = BTreeMap::new();
    for row in (0..store.row_id_limit().0).map(RowId) {
        let Some(version) = store.visible(row, snapshot, None) else { continue };
        let view = store.view(&version, &mut scratch);
        let number = |column| match view.column(ColumnNumber(column)) {
            ValueRef::Int(value) => value,
            other => panic!("{other:?}"),
        };
        let ValueRef::Bytes(body) = view.column(ColumnNumber(3)) else { panic!("the body is not null") };
        rows.insert(row.0, (number(0), number(1), body.len()));
    }
    rows
}

#[derive(Clone, Debug)]
enum Change {
    Put { row: u32, k: i32, body_bytes: usize },
    Delete { row: u32 },
}

fn any_change() -> impl Strategy<Value = Change> {
    let row = prop_oneof![0u32..40, 0u32..9_000];
    let body_bytes = prop_oneof![20 => 0usize..60, 1 => 30_000usize..90_000];
    prop_oneof![
        3 => (row.clone(), 0i32..50, body_bytes).prop_map(|(row, k, body_bytes)| Change::Put { row, k, body_bytes }),
        1 => row.prop_map(|row| Change::Delete { row }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn replay_gives_the_last_state_of_each_row_however_often_it_runs(
        changes in proptest::collection::vec(any_change(), 0..400),
        run_bytes_max in prop_oneof![Just(1usize), Just(500), Just(1 << 20)],
        budget_rows in prop_oneof![Just(1_000usize), Just(33)],
        has_lists: bool,
    ) {
        let mut store = if has_lists { PartitionStore::new(lists_layout(), pool(4096)) } else { store() };
        let layout = store.layout().clone();
        let mut expected = BTreeMap::new();
        for _ in 0..2 {
            for (number, change) in changes.iter().enumerate() {
                match *change {
                    Change::Put { row, k, body_bytes } => {
                        // The row id decides the key, so no key occurs twice.
                        let id = row as i32 * 3;
                        let value = Values { k: Some(k), name: format!("name {}", k / 3), body_bytes };
                        let image = row_image(&layout, id, &value);
                        store.replay_put(RowId(row), &image, CommitNumber(number as u64 + 1)).unwrap();
                        expected.insert(row, (i64::from(id), i64::from(k), body_bytes));
                    }
                    Change::Delete { row } => {
                        store.replay_delete(RowId(row));
                        expected.remove(&row);
                    }
                }
            }
            build(&mut store, IndexRebuild::with_run_bytes_max(run_bytes_max), budget_rows);
            let last = CommitNumber(changes.len() as u64);
            prop_assert_eq!(&rows(&store, last), &expected);
            prop_assert_eq!(store.statistics().live_rows, expected.len() as u64);
            prop_assert_eq!(store.row_id_limit().0, expected.keys().last().map_or(0, |last| last + 1));
            let by_k = ids_by_k(&store, RangeBounds::ALL, Direction::Forward, last.0);
            let mut sorted: Vec<_> = expected.iter().map(|(row, (id, k, _))| (*k, *row, *id)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(by_k, sorted.into_iter().map(|(_, _, id)| id).collect::<Vec<_>>());
        }
        // New rows take the lowest free ids, and old rows can be changed.
        let free = (0u32..).find(|row| !expected.contains_key(row));
        let mut number = changes.len() as u64;
        let row = insert(&mut store, 1_000_000, 7, FIRST).unwrap();
        prop_assert_eq!(Some(row.0), free);
        number += 1;
        store.commit(row, FIRST, CommitNumber(number));
        for row in expected.keys().copied().map(RowId) {
            number += 1;
            store.delete(row, writer(FIRST, ONE)).unwrap();
            store.commit(row, FIRST, CommitNumber(number));
        }
        store.check().unwrap();
        store.purge_step(CommitNumber(number), usize::MAX);
        store.check().unwrap();
        prop_assert_eq!(store.statistics().versions, 1);
    }
}

#[test]
fn a_version_has_the_number_and_row_of_its_operation() {
    let mut store = store();
    let image = row_image(&store.layout().clone(), 7, &values(70));
    store.replay_put(RowId(5), &image, CommitNumber(30)).unwrap();
    build(&mut store, IndexRebuild::new(), 100);
    assert_eq!(k_of(&store, 7, 29, None), None);
    assert_eq!(k_of(&store, 7, 30, None), Some(70));
    assert_eq!(insert(&mut store, 7, 71, SECOND), Err(WriteError::Duplicate(RowId(5))));
}

#[test]
fn indexes_are_not_used_before_they_are_built_again() {
    let mut store = store();
    let image = row_image(&store.layout().clone(), 7, &values(70));
    store.replay_put(RowId(0), &image, CommitNumber(1)).unwrap();
    assert!(!store.has_index(IndexId(1)));
    build(&mut store, IndexRebuild::new(), 100);
    assert!(store.has_index(IndexId(1)));
    store.replay_delete(RowId(0));
    assert!(!store.has_index(IndexId(1)));
    build(&mut store, IndexRebuild::new(), 100);
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn damaged_operations_are_refused_and_change_nothing() {
    let mut store = store();
    let image = row_image(&store.layout().clone(), 7, &values(70));
    for bytes in [&image[..image.len() - 1], &[], &[image.clone(), vec![0]].concat()] {
        let refused = store.replay_put(RowId(0), bytes, CommitNumber(1));
        assert_eq!(refused, Err(ReplayError::InvalidImage(RowId(0))));
    }
    let last = RowId(u32::MAX >> 1);
    assert_eq!(store.replay_put(last, &image, CommitNumber(1)), Err(ReplayError::InvalidRow(last)));
    build(&mut store, IndexRebuild::new(), 100);
    assert_eq!(store.statistics(), Default::default());
}

#[test]
fn a_lack_of_memory_is_an_error_of_replay_and_of_the_build() {
    let pool = pool(64);
    let mut store = PartitionStore::new(layout(), Arc::clone(&pool));
    let layout = store.layout().clone();
    // The map alone would exceed the memory.
    let image = row_image(&layout, 1, &values(1));
    let far = store.replay_put(RowId(1 << 30), &image, CommitNumber(1));
    assert_eq!(far, Err(ReplayError::OutOfMemory));
    drop(store);
    let mut store = PartitionStore::new(Arc::clone(&layout), Arc::clone(&pool));
    let full = (0..).find_map(|id| {
        let image = row_image(&layout, id, &values(id));
        store.replay_put(RowId(id as u32), &image, CommitNumber(1)).err()
    });
    assert_eq!(full, Some(ReplayError::OutOfMemory));
    let mut rebuild = IndexRebuild::new();
    let failed = loop {
        match store.build_indexes_step(&mut rebuild, 1_000) {
            Ok(true) => break false,
            Ok(false) => {}
            Err(_) => break true,
        }
    };
    assert!(failed);
    drop(store);
    assert_eq!(pool.used_bytes(), 0);
}

#[test]
fn built_leaves_are_nine_tenths_full() {
    let mut store = PartitionStore::new(sysbench_layout(), pool(8192));
    let layout = store.layout().clone();
    let rows = 50_000;
    for id in 0..rows {
        let k = ValueRef::Int(i64::from((id * 7_919) % rows));
        let values = [ValueRef::Int(i64::from(id)), k, ValueRef::Bytes(b"c"), ValueRef::Bytes(b"p")];
        store.replay_put(RowId(id as u32), &image(&layout, &values), CommitNumber(1)).unwrap();
    }
    build(&mut store, IndexRebuild::new(), 10_000);
    // An entry takes 12 bytes: key, row id, length and slot.
    let used = rows as u64 * 12 * 2;
    let all = store.statistics().ordered_bytes;
    assert!(all * 85 <= used * 100 && used * 100 <= all * 91, "{used} of {all} bytes");
}
