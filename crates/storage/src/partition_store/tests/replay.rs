//! Recovery: replay by row id, and the indexes built afterwards.

use super::*;
use crate::log::ImageEdit;
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

/// Replays the edits that make `image` of `base`, which was committed as `base_number`.
fn replay_edit(
    store: &mut PartitionStore,
    (row, number): (u32, u64),
    (base, base_number): (&[u8], u64),
    image: &[u8],
) -> Result<(), ReplayError> {
    let mut edits = Vec::new();
    assert!(store.format().append_edits(base, image, usize::MAX / 2, &mut edits));
    let edit = ImageEdit {
        base: CommitNumber(base_number),
        image_bytes: image.len() as u32,
        checksum: crc32c::crc32c(image),
        edits: &edits,
    };
    store.replay_edit(RowId(row), &edit, CommitNumber(number))
}

/// A version of a row: its commit number, and its image unless it is a deletion.
type RowChange = (u64, Option<Vec<u8>>);

/// Replays the changes of a row from its `next` one on.
fn replay_change(store: &mut PartitionStore, row: u32, history: &[RowChange], next: usize, is_whole: bool) {
    let (number, image) = &history[next];
    let before = next.checked_sub(1).and_then(|before| Some((history[before].0, history[before].1.as_ref()?)));
    match (image, before) {
        (None, _) => store.replay_delete(RowId(row)),
        (Some(image), Some((base_number, base))) if !is_whole => {
            replay_edit(store, (row, *number), (base, base_number), image).unwrap();
        }
        (Some(image), _) => store.replay_put(RowId(row), image, CommitNumber(*number)).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A checkpoint has each row as of some commit from its beginning on; deletions and later rows under the
    /// same id are among them. The log has all commits after the beginning.
    #[test]
    fn edits_on_a_fuzzy_checkpoint_give_the_last_rows(
        changes in proptest::collection::vec((any_change(), any::<bool>()), 1..200),
        begin in any::<prop::sample::Index>(),
        seen in proptest::collection::vec(any::<prop::sample::Index>(), 50),
        rounds in 1usize..3,
    ) {
        let mut store = store();
        let layout = store.layout().clone();
        let begin = begin.index(changes.len()) as u64;
        let mut histories: BTreeMap<u32, Vec<RowChange>> = BTreeMap::new();
        let mut log = Vec::new();
        for (number, (change, is_whole)) in (1u64..).zip(&changes) {
            let (row, image) = match *change {
                Change::Put { row, k, body_bytes } => {
                    let value = Values { k: Some(k), name: format!("name {number}"), body_bytes };
                    (row % 50, Some(row_image(&layout, (row % 50) as i32, &value)))
                }
                Change::Delete { row } => (row % 50, None),
            };
            let history = histories.entry(row).or_default();
            if image.is_none() && history.last().is_none_or(|(_, last)| last.is_none()) {
                continue;
            }
            history.push((number, image));
            log.push((number, row, history.len() - 1, *is_whole));
        }
        let last = CommitNumber(changes.len() as u64);
        for (row, history) in &histories {
            // The row as a reader sees it at any number that is not below the beginning.
            let at = begin + seen[*row as usize].index((last.0 - begin) as usize + 1) as u64;
            let version = history.iter().rev().find(|(number, _)| *number <= at);
            if let Some((number, Some(image))) = version {
                store.replay_put(RowId(*row), image, CommitNumber(*number)).unwrap();
            }
        }
        for _ in 0..rounds {
            for (number, row, next, is_whole) in &log {
                if *number > begin {
                    replay_change(&mut store, *row, &histories[row], *next, *is_whole);
                }
            }
        }
        prop_assert_eq!(store.check_replayed(), Ok(()));
        build(&mut store, IndexRebuild::new(), 100);
        let mut scratch = Vec::new();
        for (row, history) in &histories {
            let found = store.visible(RowId(*row), last, None).map(|version| {
                (store.state(&version).commit_number().unwrap().0, store.view(&version, &mut scratch).image().to_vec())
            });
            let expected = history.last().and_then(|(number, image)| Some((*number, image.clone()?)));
            prop_assert_eq!(found, expected, "row {}", row);
        }
    }
}

#[test]
fn edits_of_another_base_are_refused_and_change_nothing() {
    let mut store = store();
    let layout = store.layout().clone();
    let image = |k: i32| row_image(&layout, 7, &Values { body_bytes: 9_000, ..values(k) });
    store.replay_put(RowId(0), &image(1), CommitNumber(3)).unwrap();
    let refused = Err(ReplayError::WrongBase(RowId(0)));
    // Another version, another image, and a damaged one.
    assert_eq!(replay_edit(&mut store, (0, 5), (&image(1), 4), &image(2)), refused);
    let other = |k: i32| {
        let values = Values { k: Some(k), name: "another name".to_owned(), body_bytes: 9_000 };
        row_image(&layout, 7, &values)
    };
    assert_eq!(replay_edit(&mut store, (0, 5), (&other(1), 3), &other(2)), refused);
    let edit = ImageEdit { base: CommitNumber(3), image_bytes: 1, checksum: 0, edits: b"\xFF" };
    assert_eq!(store.replay_edit(RowId(0), &edit, CommitNumber(5)), refused);
    let last = RowId(u32::MAX >> 1);
    assert_eq!(store.replay_edit(last, &edit, CommitNumber(5)), Err(ReplayError::InvalidRow(last)));
    // Whole, but no image of the table.
    let nonsense = ImageEdit { edits: &[0, 0, 1, 0xFF], image_bytes: image(1).len() as u32 + 1, ..edit };
    let made = [&[0xFF][..], &image(1)].concat();
    let nonsense = ImageEdit { checksum: crc32c::crc32c(&made), ..nonsense };
    let invalid = Err(ReplayError::InvalidImage(RowId(0)));
    assert_eq!(store.replay_edit(RowId(0), &nonsense, CommitNumber(5)), invalid);
    assert_eq!(replay_edit(&mut store, (0, 5), (&image(1), 3), &image(2)), Ok(()));
    build(&mut store, IndexRebuild::new(), 100);
    assert_eq!(k_of(&store, 7, 5, None), Some(2));
    assert_eq!(k_of(&store, 7, 4, None), None);
}

#[test]
fn edits_below_the_version_of_a_checkpoint_change_nothing() {
    let mut store = store();
    let layout = store.layout().clone();
    let image = |k: i32| row_image(&layout, 7, &Values { body_bytes: 9_000, ..values(k) });
    store.replay_put(RowId(0), &image(3), CommitNumber(30)).unwrap();
    assert_eq!(replay_edit(&mut store, (0, 20), (&image(1), 10), &image(2)), Ok(()));
    assert_eq!(replay_edit(&mut store, (0, 30), (&image(2), 20), &image(3)), Ok(()));
    assert_eq!(replay_edit(&mut store, (0, 40), (&image(3), 30), &image(4)), Ok(()));
    build(&mut store, IndexRebuild::new(), 100);
    assert_eq!(k_of(&store, 7, 40, None), Some(4));
}

#[test]
fn a_row_without_base_must_end_in_the_log() {
    let mut store = store();
    let layout = store.layout().clone();
    let image = |k: i32| row_image(&layout, 7, &Values { body_bytes: 9_000, ..values(k) });
    for row in [4, 2] {
        assert_eq!(replay_edit(&mut store, (row, 20), (&image(1), 10), &image(2)), Ok(()));
    }
    assert_eq!(store.check_replayed(), Err(ReplayError::MissingBase(RowId(2))));
    store.replay_delete(RowId(2));
    assert_eq!(store.check_replayed(), Err(ReplayError::MissingBase(RowId(4))));
    store.replay_put(RowId(4), &image(3), CommitNumber(30)).unwrap();
    assert_eq!(store.check_replayed(), Ok(()));
    build(&mut store, IndexRebuild::new(), 100);
    assert_eq!(store.statistics().live_rows, 1);
}
