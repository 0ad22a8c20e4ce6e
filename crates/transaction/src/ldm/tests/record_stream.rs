//! The log records that commits form.

use junctor_storage::log::{Operation, RecordHeader, RecordKind, decode_record};

use junctor_signals::append_records::DeliverRecords;
use junctor_signals::program::LockMode;

use super::*;
use crate::tests::harness::log;

/// The headers of all records of the first node, with their numbers of puts and deletions.
fn records(harness: &Harness) -> Vec<(RecordHeader, usize, usize)> {
    let (mut rest, mut found) = (&harness.records[..], Vec::new());
    while !rest.is_empty() {
        let (record, length) = decode_record(rest).expect("a whole record");
        let operations = || record.sections().flat_map(|section| section.operations());
        let puts = operations().filter(|operation| matches!(operation, Operation::Put { .. })).count();
        found.push((record.header, puts, operations().count() - puts));
        rest = &rest[length..];
    }
    found
}

#[test]
fn each_commit_forms_one_record_at_each_participant() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.records.clear();
    harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2]));
    let undone = harness.execute(NONE, false, &table.insert(), table.images(&[(9, 9, None)]));
    harness.end(undone.transaction, Ending::Rollback);
    let records = records(&harness);
    let deletions: usize = records.iter().map(|(_, _, deletions)| deletions).sum();
    let puts: usize = records.iter().map(|(_, puts, _)| puts).sum();
    assert_eq!((puts, deletions), (0, 2), "the row and its unique entry");
    let number = records[0].0.number;
    assert!(records.iter().all(|(header, ..)| header.kind == RecordKind::Commit && header.number == number));
    assert!(records.iter().all(|(header, ..)| usize::from(header.participants) == records.len()));
    harness.check_idle();
}

#[test]
fn a_participant_whose_changes_were_undone_has_a_record_without_them() {
    let (mut harness, table) = started(1, 1);
    let first = harness.execute(NONE, false, &table.insert(), table.images(&[(1, 10, None)]));
    harness.execute(first.transaction, false, &table.delete(Access::PrimaryKeys), table.keys(&[1]));
    harness.end(first.transaction, Ending::Commit);
    let records = records(&harness);
    assert_eq!(records.iter().map(|(_, puts, deletions)| (*puts, *deletions)).collect::<Vec<_>>(), [(0, 0)]);
    harness.check_idle();
}

#[test]
fn a_participant_with_locks_only_has_no_record() {
    let (mut harness, table) = filled(1, 2, 8);
    harness.records.clear();
    let locks = table.lock(LockMode::Shared, Access::PrimaryKeys);
    let first = harness.execute(NONE, false, &locks, table.keys(&[1, 2, 3, 4, 5, 6, 7, 8]));
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    harness.execute(first.transaction, false, &write, table.keys(&[1]));
    harness.end(first.transaction, Ending::Commit);
    let records = records(&harness);
    assert_eq!(records.len(), 1, "the row is in one partition");
    assert_eq!(records[0].0.participants, 1);
    harness.check_idle();
}

#[test]
fn writers_wait_while_the_log_is_behind() {
    let (mut harness, table) = filled(1, 1, 3);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    harness.ldm_mut(owner).set_untaken_record_bytes_max(0);
    harness.holds_records = true;
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    assert_eq!(harness.execute(NONE, true, &write, table.keys(&[1])).error, None);
    let held = harness.begin_execute(TestSession::autocommit(0), &write, table.keys(&[1]));
    harness.advance(Duration::from_millis(50));
    assert!(harness.statement(held).is_none());
    harness.release_records();
    harness.run();
    assert_eq!(harness.statement(held).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    harness.check_idle();
}

#[test]
fn records_are_kept_while_nobody_awaits_them_and_the_log_has_earlier_ones() {
    let (mut harness, table) = filled(1, 1, 3);
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    harness.records.clear();
    harness.holds_records = true;
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let delivered_after = |harness: &mut Harness, is_awaited| {
        harness.set_awaited(is_awaited);
        assert_eq!(harness.execute(NONE, true, &write, table.keys(&[1])).error, None);
        records(harness).len()
    };
    assert_eq!(delivered_after(&mut harness, false), 1, "the log has none, so it would begin no cycle");
    assert_eq!(delivered_after(&mut harness, false), 1);
    assert_eq!(delivered_after(&mut harness, true), 3);
    assert_eq!(delivered_after(&mut harness, false), 3);
    harness.send(owner, log(), Signal::Ldm(LdmSignal::DeliverRecords(DeliverRecords {})));
    harness.run();
    assert_eq!(records(&harness).len(), 4, "the log has asked");
    assert_eq!(delivered_after(&mut harness, false), 4);
    harness.release_records();
    harness.run();
    assert_eq!(records(&harness).len(), 5, "the log has none again");
    harness.check_idle();
}
