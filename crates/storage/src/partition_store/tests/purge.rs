//! Purge of versions that no snapshot can reach.

use super::*;

#[test]
fn a_row_with_very_many_versions_is_purged_in_small_steps() {
    let mut store = store();
    let layout = store.layout().clone();
    let row = insert(&mut store, 7, 0, FIRST).unwrap();
    store.commit(row, FIRST, CommitNumber(1));
    for number in 2..2_000 {
        store.update(row, &row_image(&layout, 7, &values(number)), writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(number as u64));
    }
    store.delete(row, writer(FIRST, ONE)).unwrap();
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
fn excess_old_versions_are_dropped_oldest_first_in_small_steps() {
    let mut store = store();
    let layout = store.layout().clone();
    let rows: Vec<RowId> = (0..10).map(|id| insert(&mut store, id, 0, FIRST).unwrap()).collect();
    rows.iter().zip(1..).for_each(|(row, number)| store.commit(*row, FIRST, CommitNumber(number)));
    // One row changes far more often than the others. An early snapshot is held throughout.
    let old = CommitNumber(10);
    for number in 11..4_011u64 {
        let id = if number % 4 == 0 { number / 4 % 10 } else { 7 };
        let row = rows[id as usize];
        store.update(row, &row_image(&layout, id as i32, &values(number as i32)), writer(FIRST, ONE)).unwrap();
        store.commit(row, FIRST, CommitNumber(number));
        store.limit_old_versions(1_000, CommitNumber(number));
        store.purge_step(old, 64);
        assert!(store.statistics().versions < 1_400, "{:?}", store.statistics());
    }
    store.check().unwrap();
    assert!(store.snapshot_floor() > CommitNumber(3_000), "{}", store.snapshot_floor());
    // Snapshots above the floor can still be read.
    let floor = store.snapshot_floor().0;
    let last = (1..=floor).rev().find(|number| number % 4 != 0).expect("row 7 was changed");
    assert_eq!(k_of(&store, 7, floor, None), Some(last as i64));
    // The floor never exceeds the stable number.
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
    store.delete(row, writer(FIRST, ONE)).unwrap();
    store.commit(row, FIRST, CommitNumber(2));
    assert_eq!(insert(&mut store, 7, 71, SECOND), Ok(row));
    store.delete(row, writer(SECOND, TWO)).unwrap();
    store.commit(row, SECOND, CommitNumber(3));
    store.check().unwrap();
    store.purge_step(CommitNumber(2), 100);
    store.check().unwrap();
    store.purge_step(CommitNumber(3), 100);
    assert_eq!(store.statistics(), Default::default());
}
