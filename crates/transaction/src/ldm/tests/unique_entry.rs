//! Unique keys and rows that move between partitions.

use super::*;

#[test]
fn a_duplicate_unique_key_is_reported_with_the_table_and_index() {
    let (mut harness, table) = filled(1, 2, 3);
    let reply =
        harness.execute(NONE, true, &table.insert_unique(), table.images(&[(8, 80, Some(8)), (9, 90, Some(2))]));
    let error = reply.error.expect("the unique key exists");
    assert_eq!((error.code, &*error.message), (ErrorCode::DuplicateEntry, "Duplicate entry '2' for key 't.u'"));
    assert_eq!(table.rows(&mut harness).len(), 3);
    // NULL has no entry.
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(8, 80, None), (9, 90, None)]));
    assert_eq!(reply.error, None);
    harness.check_idle();
}

#[test]
fn unique_entries_are_maintained_with_their_rows() {
    let (mut harness, table) = filled(1, 2, 3);
    let update = table.add_to(U, Access::PrimaryKeys, 100);
    assert_eq!(harness.execute(NONE, true, &update, table.keys(&[2])).error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(4, 40, Some(2))]));
    assert_eq!(reply.error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(5, 50, Some(102))]));
    assert!(reply.error.is_some());
    assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2])).error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(5, 50, Some(102))]));
    assert_eq!(reply.error, None);
    assert_eq!(entries(&harness, &table), [Some(1), Some(2), Some(3), Some(102)].len());
    harness.check_idle();
}

fn entries(harness: &Harness, table: &SampleTable) -> usize {
    let partitions = 0..table.entries.definition.partition_count;
    let count = |index| {
        let partition = PartitionId { table: table.entries.definition.id, index };
        harness.ldm(harness.owner(partition)).committed_rows(partition).map_or(0, |rows| rows.len())
    };
    partitions.map(count).sum()
}

#[test]
fn a_row_moves_to_the_partition_of_its_new_key_with_its_entries() {
    let (mut harness, table) = filled(1, 4, 20);
    let reply = harness.execute(NONE, true, &table.add_to(ID, Access::AllRows, 1000), table.everything());
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 20, 20));
    let expected: Vec<Row> = (1..=20).map(|id| (id + 1000, id * 10, Some(id))).collect();
    assert_eq!(table.rows(&mut harness), expected);
    assert_eq!(entries(&harness, &table), 20);
    // Reads find the rows under their new keys.
    let read = table.reading(Access::PrimaryKeys, None, Output::Images);
    let stable = harness.stable();
    let ids: Vec<i64> = (1001..=1020).collect();
    let found = harness.read(&read, table.keys(&ids), stable, NONE);
    assert_eq!(found.iter().map(|reply| reply.rows).sum::<u32>(), 20);
    harness.check_idle();
}

#[test]
fn a_moved_row_with_a_duplicate_key_undoes_the_statement() {
    let (mut harness, table) = filled(1, 4, 20);
    let before = table.rows(&mut harness);
    let program = table.update(Access::PrimaryKeys, vec![(ID, constant(7))]);
    for id in [1, 2, 3, 4, 5] {
        let reply = harness.execute(NONE, true, &program, table.keys(&[id]));
        let error = reply.error.expect("row 7 exists");
        assert_eq!(&*error.message, "Duplicate entry '7' for key 't.PRIMARY'");
    }
    assert_eq!(table.rows(&mut harness), before);
    assert_eq!(entries(&harness, &table), 20);
    harness.check_idle();
}
