//! Locking reads concurrent with other transactions.

use std::sync::Arc;

use junctor_model::error::ErrorCode;
use junctor_model::id::{CommitNumber, TransactionId};
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;
use junctor_signals::execute_statement::{ExecuteStatementReply, Reading};
use junctor_signals::program::{Access, LockMode, Output, WhenLocked, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;

use super::{NONE, filled};
use crate::tests::harness::{Harness, INDEX_K, K, SampleTable, TestSession};

/// Access by the index on `k`.
const BY_K: Access = Access::IndexRanges { index: INDEX_K, descending: false };
/// How transactions read at REPEATABLE READ and above.
const RANGES: Reading = Reading { locks_ranges: true, changed_after: CommitNumber(0), rows_max: 0, warnings_max: 0 };

fn locking(table: &SampleTable, mode: LockMode, when_locked: WhenLocked, access: Access) -> Arc<WriteProgram> {
    table.program(WriteAction::LockRead { mode, when_locked, output: Output::Images, is_strict: false }, access, false)
}

/// An open transaction that has changed a row.
fn holder(harness: &mut Harness, table: &SampleTable, id: i64) -> TransactionId {
    let reply = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1000), table.keys(&[id]));
    assert_eq!(reply.error, None);
    reply.transaction
}

#[test]
fn a_nowait_read_fails_and_its_transaction_continues() {
    let (mut harness, table) = filled(1, 2, 4);
    let writer = holder(&mut harness, &table, 2);
    let nowait = locking(&table, LockMode::Shared, WhenLocked::Fail, Access::PrimaryKeys);
    let free = harness.execute(NONE, false, &nowait, table.keys(&[1]));
    let reply = harness.execute(free.transaction, false, &nowait, table.keys(&[2]));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::LockNotAvailable));
    assert_eq!(reply.transaction, free.transaction);
    harness.end(writer, Ending::Commit);
    let reply = harness.execute(free.transaction, false, &nowait, table.keys(&[1, 2]));
    assert_eq!((reply.error, reply.matched), (None, 2));
    harness.end(free.transaction, Ending::Commit);
    harness.check_idle();
}

#[test]
fn a_skip_locked_read_returns_the_rows_that_are_not_locked() {
    let (mut harness, table) = filled(1, 2, 6);
    let writer = holder(&mut harness, &table, 2);
    let inserted = harness.execute(writer, false, &table.insert_unique(), table.images(&[(7, 70, None)]));
    assert_eq!(inserted.error, None);
    let reader = harness.execute(NONE, false, &table.lock(LockMode::Shared, Access::PrimaryKeys), table.keys(&[4]));
    let index = Access::IndexRanges { index: INDEX_K, descending: false };
    for access in [Access::AllRows, index] {
        for (mode, expected) in [(LockMode::Exclusive, vec![1, 3, 5, 6]), (LockMode::Shared, vec![1, 3, 4, 5, 6])] {
            let program = locking(&table, mode, WhenLocked::Skip, access);
            let parts = if access == index { table.range(0, 5000) } else { table.everything() };
            let reply = harness.execute(NONE, false, &program, parts);
            assert_eq!(reply.error, None);
            let mut ids: Vec<i64> =
                reply.outputs.iter().flat_map(|output| table.rows_of(output)).map(|row| row.0).collect();
            ids.sort_unstable();
            assert_eq!(ids, expected, "{mode:?} {access:?}");
            harness.end(reply.transaction, Ending::Commit);
        }
    }
    harness.end(writer, Ending::Rollback);
    harness.end(reader.transaction, Ending::Commit);
    harness.check_idle();
}

#[test]
fn a_read_that_awaits_writers_keeps_no_lock_and_returns_no_row() {
    let (mut harness, table) = filled(1, 2, 6);
    let program = locking(&table, LockMode::Shared, WhenLocked::AwaitWriter, Access::AllRows);
    let updater = holder(&mut harness, &table, 2);
    let inserted = harness.execute(NONE, false, &table.insert_unique(), table.images(&[(7, 70, None)]));
    let locked = harness.execute(NONE, false, &table.lock(LockMode::Exclusive, Access::PrimaryKeys), table.keys(&[4]));
    let read = harness.begin_execute(TestSession::autocommit(0), &program, table.everything());
    harness.run();
    assert!(!is_done(&mut harness, read));
    harness.end(updater, Ending::Commit);
    // The read has locked none of the rows that it has passed.
    assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[1, 2])).error, None);
    assert!(!is_done(&mut harness, read));
    harness.end(inserted.transaction, Ending::Rollback);
    let reply = harness.statement(read).expect("a row that is only locked has no writer");
    assert_eq!((reply.error, reply.matched, reply.outputs.len()), (None, 0, 0));
    harness.end(locked.transaction, Ending::Commit);
    harness.check_idle();
}

#[test]
fn a_read_that_awaits_writers_tells_the_newest_commit_that_it_has_seen() {
    let (mut harness, table) = filled(1, 1, 6);
    harness.newest_seen = CommitNumber(0);
    let program = locking(&table, LockMode::Shared, WhenLocked::AwaitWriter, Access::AllRows);
    let reply = harness.execute(NONE, true, &program, table.everything());
    assert_eq!((reply.error, harness.newest_seen), (None, harness.stable()), "a later snapshot has these rows");
    let writer = holder(&mut harness, &table, 2);
    let read = harness.begin_execute(TestSession::autocommit(0), &program, table.everything());
    harness.run();
    harness.end(writer, Ending::Commit);
    assert!(is_done(&mut harness, read));
    assert_eq!(harness.newest_seen, harness.stable(), "also that of the writer");
    harness.check_idle();
}

/// Begins an autocommit insert.
fn begin_insert(harness: &mut Harness, table: &SampleTable, id: i64, k: i64) -> OperationId {
    let insert =
        harness.begin_execute(TestSession::autocommit(0), &table.insert_unique(), table.images(&[(id, k, None)]));
    harness.run();
    insert
}

fn is_done(harness: &mut Harness, operation: OperationId) -> bool {
    harness.statement(operation).is_some_and(|reply| {
        assert_eq!(reply.error, None);
        true
    })
}

#[test]
fn no_row_is_inserted_into_a_locked_range_until_its_reader_ends() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.reading = RANGES;
    let lock = table.lock(LockMode::Shared, BY_K);
    let first = harness.execute(NONE, false, &lock, table.range(15, 35));
    let second = harness.execute(NONE, false, &lock, table.range(30, 45));
    assert_eq!((first.matched, second.matched), (2, 2));
    let inside = begin_insert(&mut harness, &table, 100, 35);
    let outside = begin_insert(&mut harness, &table, 101, 14);
    assert!(is_done(&mut harness, outside));
    assert!(!is_done(&mut harness, inside));
    let again = harness.execute(first.transaction, false, &lock, table.range(15, 35));
    assert_eq!(again.matched, 2, "no phantom");
    harness.end(first.transaction, Ending::Commit);
    assert!(!is_done(&mut harness, inside), "the second reader has 35 too");
    harness.end(second.transaction, Ending::Rollback);
    assert!(is_done(&mut harness, inside));
    harness.check_idle();
}

#[test]
fn no_row_moves_into_a_locked_range() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.reading = RANGES;
    let reader = harness.execute(NONE, false, &table.lock(LockMode::Exclusive, BY_K), table.range(200, 300));
    assert_eq!(reader.matched, 0);
    let update = |by| (table.add_to(K, Access::PrimaryKeys, by), table.keys(&[1]));
    let (into, keys) = update(210);
    let inside = harness.begin_execute(TestSession::autocommit(0), &into, keys);
    harness.run();
    assert!(!is_done(&mut harness, inside));
    harness.end(reader.transaction, Ending::Commit);
    assert!(is_done(&mut harness, inside));
    // A transaction may move its own rows within the range and out of the range.
    let reader = harness.execute(NONE, false, &table.lock(LockMode::Exclusive, BY_K), table.range(200, 300));
    assert_eq!(reader.matched, 1);
    for by in [10, 500, -500] {
        let (program, keys) = update(by);
        assert_eq!(harness.execute(reader.transaction, false, &program, keys).error, None);
    }
    harness.end(reader.transaction, Ending::Commit);
    harness.check_idle();
}

#[test]
fn a_missing_key_that_was_read_with_a_lock_stays_absent() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.reading = RANGES;
    for program in [table.lock(LockMode::Shared, Access::PrimaryKeys), table.delete(Access::PrimaryKeys)] {
        let reader = harness.execute(NONE, false, &program, table.keys(&[50, 51]));
        assert_eq!((reader.error, reader.matched), (None, 0));
        let same = begin_insert(&mut harness, &table, 50, 1);
        let other = begin_insert(&mut harness, &table, 52, 1);
        assert!(is_done(&mut harness, other));
        assert!(!is_done(&mut harness, same));
        harness.end(reader.transaction, Ending::Commit);
        assert!(is_done(&mut harness, same));
        let reply = harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[50, 52]));
        assert_eq!(reply.changed, 2);
    }
    harness.check_idle();
}

#[test]
fn a_locking_read_of_all_rows_keeps_all_new_rows_out() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.reading = RANGES;
    let reader = harness.execute(NONE, false, &table.lock(LockMode::Shared, Access::AllRows), table.everything());
    let insert = begin_insert(&mut harness, &table, 50, 1);
    assert!(!is_done(&mut harness, insert));
    // Inserting an existing row fails immediately, because no new key would enter the range.
    let duplicate = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(2, 1, None)]));
    assert_eq!(duplicate.error.map(|error| error.code), Some(ErrorCode::DuplicateEntry));
    harness.end(reader.transaction, Ending::Commit);
    assert!(is_done(&mut harness, insert));
    harness.check_idle();
}

#[test]
fn read_committed_locks_no_ranges() {
    let (mut harness, table) = filled(1, 2, 4);
    let reader = harness.execute(NONE, false, &table.lock(LockMode::Exclusive, BY_K), table.range(0, 100));
    let absent = harness.execute(
        reader.transaction,
        false,
        &table.lock(LockMode::Exclusive, Access::PrimaryKeys),
        table.keys(&[7]),
    );
    assert_eq!((reader.matched, absent.matched), (4, 0));
    for id in [7, 8] {
        let insert = begin_insert(&mut harness, &table, id, 55);
        assert!(is_done(&mut harness, insert));
    }
    harness.end(reader.transaction, Ending::Commit);
    harness.check_idle();
}

#[test]
fn two_readers_of_a_range_that_both_insert_are_one_deadlock_with_one_victim() {
    for seed in 0..40 {
        let (mut harness, table) = filled(1, 2, 4);
        harness.reading = RANGES;
        let lock = table.lock(LockMode::Shared, BY_K);
        let readers = [0, 1].map(|_| harness.execute(NONE, false, &lock, table.range(100, 200)).transaction);
        harness.shuffle(seed);
        let inserts = [0, 1].map(|member| {
            let row = (50 + member as i64, 150, None);
            harness.begin_execute(TestSession::within(readers[member]), &table.insert_unique(), table.images(&[row]))
        });
        harness.run();
        let replies = inserts.map(|insert| harness.statement(insert).expect("the cycle is broken"));
        let victims = replies.iter().filter(|reply| reply.error.is_some()).count();
        assert_eq!(victims, 1, "seed {seed}: {replies:?}");
        for reply in replies.iter().filter(|reply| reply.error.is_none()) {
            harness.end(reply.transaction, Ending::Commit);
        }
        harness.check_idle();
    }
}

#[test]
fn an_insert_also_waits_for_a_range_locked_later_and_can_close_a_cycle() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.reading = RANGES;
    let lock = table.lock(LockMode::Shared, BY_K);
    let first = harness.execute(NONE, false, &lock, table.range(100, 200));
    let writer = holder(&mut harness, &table, 1);
    let insert =
        harness.begin_execute(TestSession::within(writer), &table.insert_unique(), table.images(&[(50, 150, None)]));
    harness.run();
    let second = harness.execute(NONE, false, &lock, table.range(140, 160));
    let wait = harness.begin_execute(
        TestSession::within(second.transaction),
        &table.lock(LockMode::Shared, Access::PrimaryKeys),
        table.keys(&[1]),
    );
    harness.run();
    // The writer waits for both readers, and the second reader for the writer, which has changed more rows.
    let reply = harness.statement(wait).expect("the cycle is broken");
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::Deadlock));
    assert!(harness.statement(insert).is_none());
    let blockers: Vec<Value> =
        harness.status(StatusTable::LockWaits).into_iter().map(|mut row| row.remove(1)).collect();
    assert!(blockers.contains(&Value::UInt(first.transaction.0)), "{blockers:?}");
    harness.end(first.transaction, Ending::Commit);
    assert!(is_done(&mut harness, insert));
    harness.end(writer, Ending::Commit);
    harness.check_idle();
}

#[test]
fn the_victim_of_a_deadlock_has_changed_the_fewest_rows() {
    for seed in 0..40 {
        let (mut harness, table) = filled(1, 4, 8);
        let program = table.add_to(K, Access::PrimaryKeys, 1);
        let big = harness.execute(NONE, false, &program, table.keys(&[1, 2, 3])).transaction;
        let small = holder(&mut harness, &table, 5);
        // The victim does not depend on the transactions' age.
        let (big, small) = if seed % 2 == 0 { (big, small) } else { swapped(&mut harness, &table, big, small) };
        harness.shuffle(seed);
        let waits = [(big, 5), (small, 1)].map(|(transaction, id)| {
            harness.begin_execute(TestSession::within(transaction), &program, table.keys(&[id]))
        });
        harness.run();
        let [of_big, of_small] = waits.map(|wait| harness.statement(wait).expect("the cycle is broken"));
        assert_eq!(of_small.error.map(|error| error.code), Some(ErrorCode::Deadlock), "seed {seed}");
        assert_eq!(of_big.error, None, "seed {seed}");
        harness.end(big, Ending::Commit);
        harness.check_idle();
    }
}

/// The same transactions, begun in the opposite order.
fn swapped(
    harness: &mut Harness,
    table: &SampleTable,
    big: TransactionId,
    small: TransactionId,
) -> (TransactionId, TransactionId) {
    harness.end(big, Ending::Rollback);
    harness.end(small, Ending::Rollback);
    let small = holder(harness, table, 5);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    (harness.execute(NONE, false, &program, table.keys(&[1, 2, 3])).transaction, small)
}

#[test]
fn locking_a_row_changed_since_the_snapshot_ends_the_transaction_under_snapshot_isolation() {
    let (mut harness, table) = filled(1, 2, 6);
    let snapshot = harness.stable();
    assert_eq!(harness.execute(NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1])).error, None);
    assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2])).error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(9, 90, None)]));
    assert_eq!(reply.error, None);
    harness.reading = Reading { changed_after: snapshot, ..RANGES };
    let lock = table.lock(LockMode::Shared, Access::PrimaryKeys);
    for id in [1, 2, 9] {
        let begun = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[3]));
        assert_eq!(begun.error, None, "row 3 is as it was");
        let reply = harness.execute(begun.transaction, false, &lock, table.keys(&[id]));
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::RecordChanged), "row {id}");
        assert_eq!(reply.transaction, NONE);
    }
    let reply = harness.execute(NONE, false, &table.insert_unique(), table.images(&[(9, 90, None)]));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::RecordChanged));
    harness.check_idle();
}

#[test]
fn waiting_ranges_and_keys_are_reported() {
    let (mut harness, table) = filled(1, 1, 4);
    harness.reading = RANGES;
    let reader = harness.execute(NONE, false, &table.lock(LockMode::Shared, BY_K), table.range(100, 200));
    let insert = begin_insert(&mut harness, &table, 50, 150);
    let text = |text: &str| Value::Bytes(text.into());
    let locks = harness.status(StatusTable::Locks);
    let ranges: Vec<_> = locks.iter().filter(|row| row[3] == Value::Null).collect();
    assert_eq!(ranges.len(), 2);
    assert_eq!((&ranges[0][4], &ranges[0][5]), (&Value::UInt(reader.transaction.0), &text("SHARED")));
    assert_eq!(ranges[0][6], text("GRANTED"));
    assert_eq!(ranges[0][8], text("[80000064, 800000c8]"));
    assert_eq!((&ranges[1][6], &ranges[1][8]), (&text("WAITING"), &text("80000096")));
    let waits = harness.status(StatusTable::LockWaits);
    assert_eq!(waits.len(), 1);
    assert_eq!((&waits[0][1], &waits[0][6]), (&Value::UInt(reader.transaction.0), &Value::Null));
    harness.end(reader.transaction, Ending::Commit);
    assert!(is_done(&mut harness, insert));
    assert_eq!(harness.status(StatusTable::LockWaits), Vec::<Vec<Value>>::new());
    harness.check_idle();
}

#[test]
fn a_limited_read_locks_only_what_it_has_scanned() {
    let (mut harness, table) = filled(1, 1, 6);
    for (when_locked, direction) in
        [(WhenLocked::Skip, false), (WhenLocked::Wait, false), (WhenLocked::Skip, true), (WhenLocked::Wait, true)]
    {
        let access = Access::IndexRanges { index: INDEX_K, descending: direction };
        let program = locking(&table, LockMode::Exclusive, when_locked, access);
        harness.reading = Reading { rows_max: 2, ..RANGES };
        let first = harness.execute(NONE, false, &program, table.range(15, 100));
        let ids = |reply: &ExecuteStatementReply| -> Vec<i64> {
            reply.outputs.iter().flat_map(|output| table.rows_of(output)).map(|row| row.0).collect()
        };
        assert_eq!(ids(&first), if direction { [6, 5] } else { [2, 3] });
        let (passed, ahead) = if direction { (55, 41) } else { (25, 41) };
        let inserts = [(100, passed), (101, ahead)].map(|(id, k)| begin_insert(&mut harness, &table, id, k));
        assert!(!is_done(&mut harness, inserts[0]));
        assert!(is_done(&mut harness, inserts[1]));
        if when_locked == WhenLocked::Skip {
            let second = harness.execute(NONE, false, &program, table.range(15, 100));
            assert_eq!(ids(&second), if direction { [101, 4] } else { [4, 101] });
            harness.end(second.transaction, Ending::Commit);
        }
        harness.end(first.transaction, Ending::Commit);
        assert!(is_done(&mut harness, inserts[0]));
        // If fewer rows than the limit exist, the read has scanned the whole range.
        let all = harness.execute(NONE, false, &program, table.range(58, 100));
        let insert = begin_insert(&mut harness, &table, 102, 99);
        assert_eq!((all.matched, is_done(&mut harness, insert)), (1, false));
        harness.end(all.transaction, Ending::Commit);
        harness.reading = RANGES;
        let reply = harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[100, 101, 102]));
        assert_eq!(reply.changed, 3);
        harness.check_idle();
        harness.statement(insert);
    }
}

#[test]
fn a_limited_read_of_all_rows_lets_inserts_pass_once_it_has_enough_rows() {
    let (mut harness, table) = filled(1, 1, 6);
    let program = table.lock(LockMode::Shared, Access::AllRows);
    for (rows_max, is_free) in [(3, true), (10, false)] {
        harness.reading = Reading { rows_max, ..RANGES };
        let reader = harness.execute(NONE, false, &program, table.everything());
        assert_eq!(reader.matched, u64::from(rows_max.min(6)));
        let insert = begin_insert(&mut harness, &table, 50, 500);
        assert_eq!(is_done(&mut harness, insert), is_free);
        harness.end(reader.transaction, Ending::Commit);
        assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[50])).changed, 1);
        harness.statement(insert);
    }
    harness.check_idle();
}

/// Otherwise a session could lock a row, see its commit, and not see that commit in the next statement.
#[test]
fn a_row_that_a_locking_read_returned_is_seen_by_later_reads() {
    let mut seen = 0;
    for seed in 0..300 {
        let (mut harness, table) = filled(1, 2, 8);
        let (first, second) = (1..=8).find_map(|id| (table.key(id).0 != table.key(1).0).then_some((1, id))).unwrap();
        let writer =
            harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1000), table.keys(&[first, second]));
        harness.shuffle(seed);
        harness.begin_end(writer.transaction, Ending::Commit);
        let program = table.lock(LockMode::Shared, Access::PrimaryKeys);
        let operation = harness.begin_execute(
            TestSession { tc: 1, transaction: NONE, autocommit: seed % 2 == 0 },
            &program,
            table.keys(&[first]),
        );
        let reply = loop {
            assert!(harness.step(), "the read is answered");
            if let Some(reply) = harness.statement(operation) {
                break reply;
            }
        };
        let locked = reply.outputs.iter().flat_map(|output| table.rows_of(output)).next().unwrap();
        let stable = harness.stable();
        let program = table.reading(Access::PrimaryKeys, None, Output::Images);
        let outputs = harness.peek(&program, table.keys(&[first, second]), stable);
        let mut rows: Vec<_> = outputs.iter().flat_map(|output| table.rows_of(output)).collect();
        rows.sort_unstable();
        assert!(rows.contains(&locked), "seed {seed}: {locked:?} was locked, {rows:?} is read");
        let changed = rows.iter().filter(|row| row.1 > 1000).count();
        assert!(changed == 0 || changed == 2, "seed {seed}: {rows:?}");
        seen += u32::from(locked.1 > 1000);
        harness.run();
        if reply.transaction.is_some() {
            harness.end(reply.transaction, Ending::Commit);
        }
        harness.check_idle();
    }
    assert!(seen > 100, "the commit came first {seen} times");
}

#[test]
fn an_insert_that_waits_for_an_update_continues_when_the_update_ends() {
    for ending in [Ending::Rollback, Ending::Commit] {
        let (mut harness, table) = filled(1, 2, 4);
        let writer = holder(&mut harness, &table, 2);
        let shared = table.lock(LockMode::Shared, Access::PrimaryKeys);
        let reader = harness.begin_execute(TestSession::begin(0), &shared, table.keys(&[2]));
        harness.run();
        let insert = begin_insert(&mut harness, &table, 2, 99);
        assert!(harness.statement(reader).is_none() && harness.statement(insert).is_none());
        harness.end(writer, ending);
        let reader = harness.statement(reader).expect("nobody else has the row");
        let insert = harness.statement(insert).expect("the reader does not mind that the row is looked at");
        assert_eq!(insert.error.map(|error| error.code), Some(ErrorCode::DuplicateEntry));
        harness.end(reader.transaction, Ending::Commit);
        harness.check_idle();
    }
}

#[test]
fn inserts_that_wait_for_a_delete_get_the_key_one_after_the_other() {
    let (mut harness, table) = filled(1, 2, 4);
    let deleted = harness.execute(NONE, false, &table.delete(Access::PrimaryKeys), table.keys(&[2]));
    let inserts = [50, 51].map(|k| begin_insert(&mut harness, &table, 2, k));
    harness.end(deleted.transaction, Ending::Commit);
    let errors =
        inserts.map(|insert| harness.statement(insert).expect("the key is free").error.map(|error| error.code));
    assert_eq!(errors, [None, Some(ErrorCode::DuplicateEntry)]);
    harness.check_idle();
}
