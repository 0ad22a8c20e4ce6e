//! Purging and compaction.

use super::*;

#[test]
fn superseded_versions_are_purged() {
    let (mut harness, table) = filled(1, 2, 100);
    for _ in 0..3 {
        let reply = harness.execute(NONE, true, &table.add_to(K, Access::AllRows, 1), table.everything());
        assert_eq!(reply.error, None);
    }
    let queued = |harness: &Harness| -> u64 {
        (0..2)
            .map(|index| harness.ldm(harness.owner(PartitionId { table: table.layout.definition.id, index })))
            .map(|ldm| ldm.purge_queue())
            .sum()
    };
    assert!(queued(&harness) > 0);
    harness.advance(Duration::from_millis(100));
    assert_eq!(queued(&harness), 0);
    harness.check_idle();
}

#[test]
fn the_memory_of_deleted_rows_returns_to_the_pool() {
    let (mut harness, table) = started(1, 1);
    for batch in 0..60 {
        let rows: Vec<Row> = (0..100).map(|row| (batch * 100 + row, row, None)).collect();
        assert_eq!(harness.execute(NONE, true, &table.insert(), table.images(&rows)).error, None);
    }
    let bytes = |harness: &mut Harness| -> u64 {
        harness.status(StatusTable::MemoryUsage).iter().map(|row| number(&row[6])).sum()
    };
    let full = bytes(&mut harness);
    // Every eleventh row stays, so that deletes alone empty no page.
    let ids: Vec<i64> = (0..6000).filter(|id| id % 11 != 0).collect();
    for ids in ids.chunks(200) {
        assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(ids)).error, None);
    }
    harness.advance(Duration::from_seconds(2));
    let left = bytes(&mut harness);
    assert!(left * 2 < full, "{left} of {full} bytes are still in use");
    assert_eq!(table.rows(&mut harness).len(), 6000 - ids.len());
    harness.check_idle();
}
