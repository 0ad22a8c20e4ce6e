//! Replica chains.

use super::*;

#[test]
fn chains_of_two_and_three_hold_the_same_rows() {
    for nodes in [2, 3] {
        for seed in 0..10 {
            let (mut harness, table) = filled(nodes, 2, 30);
            harness.shuffle(seed);
            let updates = harness.begin_execute(
                TestSession::autocommit(0),
                &table.add_to(K, Access::AllRows, 1),
                table.everything(),
            );
            let inserts = harness.begin_execute(
                TestSession::autocommit(1),
                &table.insert_unique(),
                table.images(&[(100, 1, None)]),
            );
            let deletes = harness.begin_execute(
                TestSession::autocommit(1),
                &table.delete(Access::PrimaryKeys),
                table.keys(&[5, 6]),
            );
            harness.run();
            let mut failed = 0;
            for operation in [updates, inserts, deletes] {
                let reply = harness.statement(operation).expect("every statement is answered");
                // Two statements may lock rows of two partitions in different orders.
                failed += usize::from(reply.error.is_some_and(|error| error.code == ErrorCode::Deadlock));
            }
            assert!(failed <= 1, "seed {seed}");
            // Ids of deleted rows are reused, at the backups too.
            for round in 0..3 {
                harness.advance(Duration::from_millis(50));
                let rows: Vec<Row> = (200..220).map(|id| (id, round, None)).collect();
                assert_eq!(harness.execute(NONE, true, &table.insert_unique(), table.images(&rows)).error, None);
                let ids: Vec<i64> = (200..220).collect();
                assert_eq!(
                    harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&ids)).error,
                    None
                );
            }
            harness.check_idle();
        }
    }
}

#[test]
fn a_row_reinserted_and_deleted_in_one_transaction_changes_nothing_at_backups() {
    let (mut harness, table) = filled(2, 2, 10);
    let ids = [1, 2, 3, 4, 5];
    assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&ids)).error, None);
    let rows: Vec<Row> = ids.iter().map(|id| (*id, 0, None)).collect();
    let inserted = harness.execute(NONE, false, &table.insert_unique(), table.images(&rows));
    assert_eq!(inserted.error, None);
    let transaction = inserted.transaction;
    let deleted = harness.execute(transaction, false, &table.delete(Access::PrimaryKeys), table.keys(&ids));
    assert_eq!((deleted.error, deleted.changed), (None, 5));
    harness.end(transaction, Ending::Commit);
    assert_eq!(table.rows(&mut harness).len(), 5);
    harness.check_idle();
}

#[test]
fn a_backup_without_memory_fails_the_commit_and_nothing_else() {
    let mut harness = Harness::with_memory(2, 1, 1, 1 << 20);
    let table = SampleTable::new(1);
    harness.create_tables(&[&table.layout, &table.entries]);
    let mut error = None;
    for batch in 0..2000 {
        let rows: Vec<Row> = (0..50).map(|row| (batch * 50 + row, row, None)).collect();
        let reply = harness.execute(NONE, true, &table.insert(), table.images(&rows));
        if reply.error.is_some() {
            error = reply.error;
            break;
        }
    }
    let error = error.expect("memory is exhausted in the end");
    assert_eq!((error.code, &*error.message), (ErrorCode::TableFull, "The table 't' is full"));
    let reply = harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[1]));
    assert_eq!(reply.error, None);
    harness.check_idle();
}

#[test]
#[should_panic(expected = "a backup holds the images")]
fn a_backup_without_the_images_does_not_commit() {
    let (mut harness, _) = started(2, 1);
    commit_images(&mut harness, TransactionId::new(1, 0, 77), CommitNumber(1));
    harness.run();
}

fn tc() -> Address {
    Address::new(NodeId(1), Module::Tc, 0)
}

fn backup() -> Address {
    Address::new(NodeId(2), Module::Ldm, 0)
}

fn commit_images(harness: &mut Harness, transaction: TransactionId, number: CommitNumber) {
    let part = TransactionPart::Images;
    let commit = CommitTransaction { transaction, reply_to: tc(), number, position: 0, participants: 1, part };
    harness.send(backup(), tc(), Signal::Ldm(LdmSignal::CommitTransaction(commit)));
}

fn undo_images(harness: &mut Harness, transaction: TransactionId) {
    let undo = UndoTransaction {
        transaction,
        epoch: Epoch(0),
        reply_to: tc(),
        newer_than: StatementNumber(0),
        ends: true,
        is_backup: true,
    };
    harness.send(backup(), tc(), Signal::Ldm(LdmSignal::UndoTransaction(undo)));
}

/// Delivers until a signal to the backup is found that `is_wanted` accepts, and takes it.
fn intercept(harness: &mut Harness, is_wanted: impl Fn(&LdmSignal) -> bool) -> LdmSignal {
    loop {
        let is_it = |signal: &Signal| matches!(signal, Signal::Ldm(signal) if is_wanted(signal));
        let in_flight = &mut harness.delivery.in_flight;
        if let Some(position) = in_flight.iter().position(|one| one.to == backup() && is_it(&one.signal)) {
            match in_flight.remove(position).map(|one| one.signal) {
                Some(Signal::Ldm(signal)) => return signal,
                other => panic!("{other:?}"),
            }
        }
        assert!(harness.step(), "no such signal");
    }
}

#[test]
fn images_of_the_next_writer_wait_until_a_backup_that_is_behind_has_applied_the_row() {
    let (mut harness, table) = filled(2, 1, 10);
    let add = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.begin_execute(TestSession::autocommit(0), &add, table.keys(&[5]));
    let commit = intercept(&mut harness, |signal| matches!(signal, LdmSignal::CommitTransaction(_)));
    let second = harness.begin_execute(TestSession::autocommit(1), &add, table.keys(&[5]));
    let other = harness.begin_execute(TestSession::autocommit(1), &add, table.keys(&[6]));
    harness.run();
    let work = harness.ldm(backup()).work();
    assert_eq!((work.backed_up, work.deferred), (1, 1), "the second image of the row waits");
    assert!(harness.statement(first).is_none() && harness.statement(second).is_none());
    assert!(harness.statement(other).is_none(), "its number is not stable before the first one");
    harness.send(backup(), tc(), Signal::Ldm(commit));
    harness.run();
    for operation in [first, second, other] {
        assert_eq!(harness.statement(operation).expect("all are answered").error, None);
    }
    let rows = table.rows(&mut harness);
    assert_eq!((rows[4].1, rows[5].1), (52, 61));
    harness.check_idle();
}

#[test]
fn images_of_the_next_writer_wait_until_a_backup_has_undone_the_row() {
    let (mut harness, table) = filled(2, 1, 10);
    let add = table.add_to(K, Access::PrimaryKeys, 1);
    harness.begin_execute(TestSession::autocommit(0), &add, table.keys(&[5]));
    let LdmSignal::ReplicateRows(images) =
        intercept(&mut harness, |signal| matches!(signal, LdmSignal::ReplicateRows(_)))
    else {
        panic!("images were wanted");
    };
    let [first, second] = [77, 78].map(|counter| TransactionId::new(1, 0, counter));
    let of = |transaction| {
        let ReplicateRows { epoch, partition, primary, chain_position, .. } = images;
        let images = images.images.clone();
        let copy = ReplicateRows { transaction, epoch, partition, primary, reply_to: tc(), chain_position, images };
        Signal::Ldm(LdmSignal::ReplicateRows(copy))
    };
    // The test plays tc for these two.
    let step = |harness: &mut Harness| {
        while harness.delivery.in_flight.front().is_some_and(|one| one.to != tc()) {
            harness.step();
        }
        harness.delivery.in_flight.drain(..).filter(|one| one.to == tc()).count()
    };
    harness.delivery.in_flight.clear();
    harness.send(backup(), tc(), of(first));
    assert_eq!(step(&mut harness), 1);
    harness.send(backup(), tc(), of(second));
    assert_eq!(step(&mut harness), 0, "the second one waits for the first one");
    undo_images(&mut harness, first);
    harness.step();
    harness.step();
    let answers = harness.delivery.in_flight.iter().filter(|one| one.to == tc()).count();
    assert_eq!(answers, 2, "the undo and the second images are answered");
    assert_eq!(harness.ldm(backup()).work().backed_up, 1);
    harness.ldm(backup()).check().expect("partitions are whole");
}

#[test]
fn a_partition_whose_writes_were_undone_takes_part_in_the_commit() {
    for partitions in [1, 2] {
        let (mut harness, table) = filled(3, partitions, 10);
        let add = table.add_to(K, Access::PrimaryKeys, 1);
        let reply = harness.execute(NONE, false, &add, table.keys(&[5]));
        let transaction = reply.transaction;
        assert_eq!(harness.execute(transaction, false, &add, table.keys(&[1, 2, 3, 4, 6])).error, None);
        harness.undo_statements(transaction, StatementNumber(if partitions == 1 { 0 } else { 1 }));
        assert_eq!(harness.end(transaction, Ending::Commit).error, None);
        let changed = i64::from(partitions > 1);
        let rows: Vec<Row> = (1..=10).map(|id| (id, id * 10 + changed * i64::from(id == 5), Some(id))).collect();
        assert_eq!(table.rows(&mut harness), rows);
        harness.check_idle();
    }
}

/// Prepares fail now and then, so that rollbacks and commits of the same rows follow each other, and signals
/// of different senders arrive in any order.
#[test]
fn replicas_agree_after_commits_and_failed_prepares_in_any_order() {
    for nodes in [2, 3] {
        for seed in 0..20 {
            let (mut harness, table) = filled(nodes, 2, 8);
            harness.shuffle(seed);
            harness.fail_prepares(seed);
            let mut counts = [0; 9];
            for round in 0..6 {
                let add = table.add_to(K, Access::PrimaryKeys, 1);
                let mut running = Vec::new();
                for id in [1, 2, 1, 3, 1, 2] {
                    let session = TestSession::autocommit((id % 2) as u16);
                    running.push((id, harness.begin_execute(session, &add, table.keys(&[id]))));
                }
                // Row ids and keys go and come back in changing pairs.
                let (delete, insert) = (table.delete(Access::PrimaryKeys), table.insert_unique());
                let rows = [(7, 70, Some(7)), (8, 80, Some(8))];
                let changes = match round % 2 {
                    0 => harness.begin_execute(TestSession::autocommit(0), &delete, table.keys(&[7, 8])),
                    _ => harness.begin_execute(TestSession::autocommit(1), &insert, table.images(&rows)),
                };
                let both = harness.begin_execute(TestSession::autocommit(1), &add, table.keys(&[4, 5, 6]));
                harness.run();
                for (id, operation) in running {
                    let reply = harness.statement(operation).expect("every statement is answered");
                    counts[id as usize] += i64::from(reply.error.is_none());
                }
                for operation in [changes, both] {
                    harness.statement(operation).expect("every statement is answered");
                }
                harness.advance(Duration::from_millis(30));
            }
            let rows = table.rows(&mut harness);
            for id in 1..=3_i64 {
                let row = rows.iter().find(|row| row.0 == id).expect("nobody deletes it");
                assert_eq!(row.1, id * 10 + counts[id as usize], "seed {seed}");
            }
            harness.check_idle();
        }
    }
}
