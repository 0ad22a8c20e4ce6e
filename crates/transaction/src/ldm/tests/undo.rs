//! Partial undo within a transaction, and interrupted statements.

use junctor_model::error::ErrorCode;
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::Access;
use junctor_signals::read_status::StatusTable;

use super::{NONE, RANGES, filled};
use crate::tests::harness::{Harness, ID, K, TestSession};

#[test]
fn rolling_back_to_a_savepoint_keeps_earlier_writes_and_all_locks() {
    for nodes in [1, 2] {
        let (mut harness, table) = filled(nodes, 2, 5);
        let add = table.add_to(K, Access::PrimaryKeys, 1);
        let first = harness.execute(NONE, false, &add, table.keys(&[1, 2]));
        let transaction = first.transaction;
        let savepoint = first.statement;
        let later = [
            (table.add_to(K, Access::PrimaryKeys, 100), table.keys(&[1, 3])),
            (table.delete(Access::PrimaryKeys), table.keys(&[2, 4])),
            (table.insert_unique(), table.images(&[(4, 7, Some(4)), (6, 60, Some(6))])),
            (table.add_to(ID, Access::PrimaryKeys, 500), table.keys(&[5])),
        ];
        for (program, parts) in later {
            assert_eq!(harness.execute(transaction, false, &program, parts).error, None);
        }
        harness.undo_statements(transaction, savepoint);
        let stable = harness.stable();
        let expected = [(1, 11, Some(1)), (2, 21, Some(2)), (3, 30, Some(3)), (4, 40, Some(4)), (5, 50, Some(5))];
        assert_eq!(table.rows_at(&mut harness, stable, transaction), expected);
        // Row 3 was changed only after the savepoint, and is still locked. The inserted key is free again.
        let waiting = harness.begin_execute(TestSession::autocommit(1), &add, table.keys(&[3]));
        let free = harness.begin_execute(
            TestSession::autocommit(1),
            &table.insert_unique(),
            table.images(&[(6, 61, Some(6))]),
        );
        harness.run();
        assert!(harness.statement(waiting).is_none());
        assert_eq!(harness.statement(free).expect("nobody holds the key").error, None);
        assert_eq!(harness.end(transaction, Ending::Commit).error, None);
        assert_eq!(harness.statement(waiting).expect("the lock was granted").error, None);
        let mut rows = expected.to_vec();
        rows[2].1 += 1;
        rows.push((6, 61, Some(6)));
        assert_eq!(table.rows(&mut harness), rows);
        harness.check_idle();
    }
}

#[test]
fn rolling_back_every_statement_leaves_a_usable_transaction() {
    let (mut harness, table) = filled(1, 2, 3);
    let before = table.rows(&mut harness);
    let add = table.add_to(K, RANGES, 1);
    let first = harness.execute(NONE, false, &add, table.range(0, 100));
    let transaction = first.transaction;
    harness.undo_statements(transaction, Default::default());
    let waiting = harness.begin_execute(TestSession::autocommit(1), &add, table.range(0, 100));
    harness.run();
    assert!(harness.statement(waiting).is_none(), "its locks are kept");
    let second = harness.execute(transaction, false, &table.insert(), table.images(&[(9, 90, None), (1, 1, None)]));
    assert_eq!(second.error.expect("a duplicate").code, ErrorCode::DuplicateEntry);
    let third = harness.execute(transaction, false, &table.insert(), table.images(&[(9, 91, None)]));
    assert_eq!((third.error, third.statement.0), (None, 3));
    harness.undo_statements(transaction, Default::default());
    assert_eq!(harness.end(transaction, Ending::Commit).error, None);
    assert_eq!(harness.statement(waiting).expect("the locks are free").changed, 3);
    let after: Vec<_> = before.iter().map(|(id, k, u)| (*id, k + 1, *u)).collect();
    assert_eq!(table.rows(&mut harness), after);
    harness.check_idle();
}

#[test]
fn a_row_that_a_transaction_changes_often_keeps_few_versions() {
    let (mut harness, table) = filled(1, 1, 2);
    let add = table.add_to(K, Access::PrimaryKeys, 1);
    let versions = |harness: &mut Harness| match harness.status(StatusTable::MemoryUsage).first().map(|row| &row[4]) {
        Some(Value::UInt(versions)) => *versions,
        other => panic!("{other:?}"),
    };
    let before = versions(&mut harness);
    let mut transaction = NONE;
    let mut savepoints = Vec::new();
    for round in 1..=300 {
        let reply = harness.execute(transaction, false, &add, table.keys(&[1]));
        assert_eq!((reply.error, reply.statement.0), (None, round));
        transaction = reply.transaction;
        if round % 100 == 0 {
            harness.savepoint = reply.statement;
            savepoints.push(reply.statement);
        }
    }
    let kept = versions(&mut harness) - before;
    assert!((4..=6).contains(&kept), "{kept} versions of 300 changes with three savepoints");
    // A failed statement is undone, and every savepoint stays valid.
    let duplicate = harness.execute(transaction, false, &table.insert(), table.images(&[(1, 1, None)]));
    assert_eq!(duplicate.error.expect("the row is there").code, ErrorCode::DuplicateEntry);
    let mut seen = Vec::new();
    for savepoint in savepoints.iter().rev() {
        harness.savepoint = *savepoint;
        harness.execute(transaction, false, &add, table.keys(&[1]));
        harness.undo_statements(transaction, *savepoint);
        let stable = harness.stable();
        seen.push(table.rows_at(&mut harness, stable, transaction)[0].1);
    }
    assert_eq!(seen, [310, 210, 110]);
    harness.undo_statements(transaction, Default::default());
    assert_eq!(harness.end(transaction, Ending::Commit).error, None);
    assert_eq!(table.rows(&mut harness), [(1, 10, Some(1)), (2, 20, Some(2))]);
    harness.check_idle();
}
