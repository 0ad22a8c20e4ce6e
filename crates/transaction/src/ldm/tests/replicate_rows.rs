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
    let (mut harness, table) = started(2, 1);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let primary = harness.owner(partition);
    let backup = Address::new(NodeId(2), Module::Ldm, 0);
    let (transaction, number) = (TransactionId::new(1, 0, 77), CommitNumber(1));
    let apply = ApplyReplica { transaction, partition, primary, chain_position: 1, number, participants: 1 };
    harness.send(backup, primary, Signal::Ldm(LdmSignal::ApplyReplica(apply)));
    harness.run();
}
