//! Locking reads among other transactions.

use std::sync::Arc;

use junctor_model::error::ErrorCode;
use junctor_model::id::TransactionId;
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::{Access, LockMode, Output, WhenLocked, WriteAction, WriteProgram};

use super::tests::{NONE, filled};
use crate::harness::{Harness, INDEX_K, K, SampleTable};

fn locking(table: &SampleTable, mode: LockMode, when_locked: WhenLocked, access: Access) -> Arc<WriteProgram> {
    table.program(WriteAction::LockRead { mode, when_locked, output: Output::Images }, access, false)
}

/// A transaction that has changed a row and not ended.
fn holder(harness: &mut Harness, table: &SampleTable, id: i64) -> TransactionId {
    let reply = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1000), table.keys(&[id]));
    assert_eq!(reply.error, None);
    reply.transaction
}

#[test]
fn a_read_that_does_not_wait_fails_and_its_transaction_goes_on() {
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
fn a_read_that_skips_gives_the_rows_that_nobody_else_has_locked() {
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
