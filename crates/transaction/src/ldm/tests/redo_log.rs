//! The redo stream.

use super::*;

#[test]
fn what_is_committed_is_in_the_redo_stream() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2]));
    let undone = harness.execute(NONE, false, &table.insert(), table.images(&[(9, 9, None)]));
    harness.end(undone.transaction, Ending::Rollback);
    harness.advance(Duration::from_millis(50));
    let (mut puts, mut deletes) = (0, 0);
    for record in RedoRecords::new(&harness.delivery.written) {
        let record = record.expect("a whole record");
        for operation in record.operations() {
            match operation {
                junctor_storage::redo::RedoOperation::Put { .. } => puts += 1,
                junctor_storage::redo::RedoOperation::Delete { .. } => deletes += 1,
            }
        }
    }
    assert_eq!((puts, deletes), (8, 2), "four rows and their entries, one of each deleted");
    harness.check_idle();
}

#[test]
fn backups_record_how_many_partitions_a_commit_has() {
    let (mut harness, table) = started(2, 2);
    let rows: Vec<Row> = (0..20).map(|id| (id, id, None)).collect();
    assert_eq!(harness.execute(NONE, true, &table.insert(), table.images(&rows)).error, None);
    harness.advance(Duration::from_millis(50));
    let records = RedoRecords::new(&harness.delivery.written).map(|record| record.expect("a whole record").header);
    let counts: Vec<u32> = records.map(|header| header.participant_count).collect();
    assert_eq!(counts, [2; 4], "two partitions at two nodes");
    harness.check_idle();
}

#[test]
fn writers_are_held_back_while_redo_is_not_written() {
    let (mut harness, table) = filled(1, 1, 3);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    harness.ldm_mut(owner).set_redo_bytes_waiting_max(0);
    harness.advance(Duration::from_millis(20));
    harness.delivery.holds_files = true;
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    assert_eq!(harness.execute(NONE, true, &write, table.keys(&[1])).error, None);
    let held = harness.begin_execute(TestSession::autocommit(0), &write, table.keys(&[1]));
    harness.advance(Duration::from_millis(50));
    assert!(harness.statement(held).is_none());
    harness.delivery.holds_files = false;
    for (to, done) in std::mem::take(&mut harness.delivery.held_files) {
        harness.send(to, to, done);
    }
    harness.advance(Duration::from_millis(50));
    assert_eq!(harness.statement(held).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    harness.check_idle();
}

#[test]
fn a_node_that_stops_writes_what_was_committed() {
    let (mut harness, table) = started(1, 1);
    harness.execute(NONE, true, &table.insert(), table.images(&[(1, 10, None)]));
    assert!(harness.delivery.written.is_empty());
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    harness.send(owner, owner, Signal::World(WorldEvent::Stopping));
    harness.run();
    assert_eq!(RedoRecords::new(&harness.delivery.written).filter(Result::is_ok).count(), 1);
}
