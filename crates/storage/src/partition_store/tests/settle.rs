//! Transactions that commit in constant time, and the stamps that their rows get later.

use super::*;

/// A partition with rows 1 to `count`, committed as 1, whose k is then changed to 70 by a transaction that
/// settles as 2.
fn settled(count: i32) -> (PartitionStore, Vec<RowId>) {
    let mut store = store();
    let layout = store.layout().clone();
    let mut rows = Vec::new();
    for id in 1..=count {
        let row = insert(&mut store, id, id, FIRST).unwrap();
        store.commit(row, FIRST, CommitNumber(1));
        store.update(row, &row_image(&layout, id, &values(69)), writer(SECOND, ONE)).unwrap();
        store.update(row, &row_image(&layout, id, &values(70)), writer(SECOND, TWO)).unwrap();
        rows.push(row);
    }
    store.settle(SECOND, CommitNumber(2), rows.clone());
    store.check().unwrap();
    (store, rows)
}

const THIRD: TransactionId = TransactionId(3);

#[test]
fn a_settled_transaction_is_seen_from_its_number_on_before_and_after_the_stamps() {
    let (mut store, _) = settled(5);
    for unstamped in [5, 3, 1, 0] {
        assert_eq!(store.statistics().unstamped, unstamped);
        assert_eq!(store.has_unstamped(), unstamped > 0);
        for id in 1..=5 {
            assert_eq!(k_of(&store, id, 1, None), Some(i64::from(id)));
            assert_eq!(k_of(&store, id, 2, None), Some(70));
            assert_eq!(k_of(&store, id, 2, Some(THIRD)), Some(70));
        }
        assert_eq!(ids_by_k(&store, RangeBounds::ALL, Direction::Forward, 2), [1, 2, 3, 4, 5]);
        store.check().unwrap();
        store.stamp_step(2);
    }
    assert_eq!(store.statistics().purge_queue, 5);
    store.purge_step(CommitNumber(2), 100);
    store.check().unwrap();
    assert_eq!(store.statistics().versions, 5);
}

#[test]
fn a_writer_stamps_the_row_first_and_another_one() {
    let (mut store, rows) = settled(5);
    let layout = store.layout().clone();
    let newest = store.newest(rows[4]).unwrap();
    assert_eq!(store.state(&newest), VersionState::Committed(CommitNumber(2)));
    store.update(rows[4], &row_image(&layout, 5, &values(71)), writer(THIRD, ONE)).unwrap();
    store.check().unwrap();
    assert_eq!(store.statistics().unstamped, 4);
    assert_eq!(store.state(&store.newest(rows[4]).unwrap()), VersionState::Open(THIRD, ONE));
    assert_eq!((k_of(&store, 5, 2, None), k_of(&store, 5, 2, Some(THIRD))), (Some(70), Some(71)));
    while store.stamp_step(1) {}
    assert_eq!((k_of(&store, 5, 2, None), k_of(&store, 5, 2, Some(THIRD))), (Some(70), Some(71)));
    store.undo(rows[4], THIRD, NOTHING);
    assert_eq!(k_of(&store, 5, 2, Some(THIRD)), Some(70));
    store.check().unwrap();
}

#[test]
fn purge_stamps_a_row_before_it_looks_for_its_base() {
    let (mut store, rows) = settled(2);
    let layout = store.layout().clone();
    // The row's own entry in the purge queue comes from an earlier commit, which an old snapshot keeps.
    store.stamp_step(1);
    store.update(rows[0], &row_image(&layout, 1, &values(72)), writer(THIRD, ONE)).unwrap();
    store.settle(THIRD, CommitNumber(3), vec![rows[0]]);
    store.purge_step(CommitNumber(3), 100);
    assert_eq!(store.versions(rows[0]).count(), 1);
    assert_eq!(k_of(&store, 1, 3, None), Some(72));
    while store.stamp_step(1) {}
    store.purge_step(CommitNumber(3), 100);
    store.check().unwrap();
    assert_eq!(store.statistics().versions, 2);
}

#[test]
fn a_row_that_a_settled_transaction_inserted_and_deleted_is_inserted_again() {
    let mut store = store();
    let row = insert(&mut store, 7, 70, FIRST).unwrap();
    store.delete(row, writer(FIRST, TWO)).unwrap();
    store.settle(FIRST, CommitNumber(1), vec![row, row]);
    assert_eq!(k_of(&store, 7, 1, None), None);
    let again = insert(&mut store, 7, 71, SECOND).unwrap();
    store.check().unwrap();
    while store.stamp_step(1) {}
    store.commit(again, SECOND, CommitNumber(2));
    assert_eq!((k_of(&store, 7, 1, None), k_of(&store, 7, 2, None)), (None, Some(71)));
    assert_eq!(store.statistics().live_rows, 1);
    store.check().unwrap();
}

#[test]
fn a_settled_row_is_a_duplicate_and_a_settled_deletion_is_none() {
    let (mut store, rows) = settled(2);
    assert_eq!(insert(&mut store, 1, 5, THIRD), Err(WriteError::Duplicate(rows[0])));
    while store.stamp_step(1) {}
    store.delete(rows[1], writer(THIRD, ONE)).unwrap();
    store.settle(THIRD, CommitNumber(3), vec![rows[1]]);
    assert_eq!(store.delete(rows[1], writer(TransactionId(4), ONE)), Err(WriteError::NotFound));
    assert_eq!(insert(&mut store, 2, 5, TransactionId(4)), Ok(rows[1]));
    store.check().unwrap();
}

#[test]
fn compaction_leaves_unstamped_versions_in_place() {
    let (mut store, rows) = settled(400);
    while store.compact_step(16) {}
    store.check().unwrap();
    for (id, row) in (1..).zip(&rows) {
        assert_eq!(store.versions(*row).count(), 3);
        assert_eq!(k_of(&store, id, 2, None), Some(70));
    }
    while store.stamp_step(64) {}
    while store.compact_step(16) {}
    store.check().unwrap();
    assert_eq!(k_of(&store, 400, 2, None), Some(70));
}

#[test]
#[should_panic(expected = "a committed transaction is not undone")]
fn a_settled_transaction_is_not_undone() {
    let (mut store, rows) = settled(1);
    store.undo(rows[0], SECOND, NOTHING);
}
