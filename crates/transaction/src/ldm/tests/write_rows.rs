//! Writes: inserts, updates, deletes, undo and commits over partitions.

use super::*;

#[test]
fn inserted_rows_are_visible_after_the_commit() {
    let (mut harness, table) = started(1, 2);
    let reply = harness.execute(NONE, true, &table.insert(), table.images(&[(7, 70, None)]));
    assert_eq!((reply.error, reply.changed, reply.transaction), (None, 1, NONE));
    let reply = harness.execute(NONE, false, &table.insert(), table.images(&[(8, 80, None), (9, 90, None)]));
    assert_eq!(reply.error, None);
    assert!(reply.transaction.is_some() && !reply.written.is_empty());
    assert_eq!(table.rows(&mut harness), [(7, 70, None)]);
    let stable = harness.stable();
    let own = table.rows_at(&mut harness, stable, reply.transaction);
    assert_eq!(own, [(7, 70, None), (8, 80, None), (9, 90, None)]);
    assert_eq!(harness.end(reply.transaction, Ending::Commit).error, None);
    assert_eq!(table.rows(&mut harness), own);
    assert_eq!(table.rows_at(&mut harness, stable, NONE), [(7, 70, None)]);
    harness.check_idle();
}

#[test]
fn a_duplicate_key_undoes_the_statement_and_names_the_key() {
    let (mut harness, table) = filled(1, 2, 3);
    let reply = harness.execute(NONE, true, &table.insert(), table.images(&[(5, 1, None), (2, 1, None)]));
    let error = reply.error.expect("the key exists");
    assert_eq!(error.code, ErrorCode::DuplicateEntry);
    assert_eq!(&*error.message, "Duplicate entry '2' for key 't.PRIMARY'");
    assert_eq!(table.rows(&mut harness).len(), 3);
    harness.check_idle();
}

#[test]
fn a_failed_statement_keeps_earlier_statements() {
    let (mut harness, table) = filled(1, 2, 3);
    let first = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 5), table.keys(&[1]));
    assert_eq!((first.matched, first.changed, first.error), (1, 1, None));
    let images = table.images(&[(4, 40, Some(4)), (5, 50, Some(5)), (3, 30, Some(6))]);
    let second = harness.execute(first.transaction, false, &table.insert_unique(), images);
    assert_eq!(second.error.expect("a duplicate").code, ErrorCode::DuplicateEntry);
    assert_eq!(second.transaction, first.transaction);
    assert_eq!(harness.end(first.transaction, Ending::Commit).error, None);
    assert_eq!(table.rows(&mut harness), [(1, 15, Some(1)), (2, 20, Some(2)), (3, 30, Some(3))]);
    harness.check_idle();
}

#[test]
fn an_update_of_a_range_sees_every_row_once() {
    let (mut harness, table) = filled(1, 2, 200);
    let reply = harness.execute(NONE, true, &table.add_to(K, RANGES, 10), table.range(10, 1500));
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 150, 150));
    let expected: Vec<Row> =
        (1..=200).map(|id| (id, if id <= 150 { id * 10 + 10 } else { id * 10 }, Some(id))).collect();
    assert_eq!(table.rows(&mut harness), expected);
    harness.check_idle();
}

#[test]
fn an_unchanged_row_counts_only_as_matched() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.update(Access::AllRows, vec![(K, constant(20))]);
    let reply = harness.execute(NONE, true, &program, table.everything());
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 3, 2));
    harness.check_idle();
}

#[test]
fn assignments_see_earlier_assignments() {
    let (mut harness, table) = filled(1, 1, 1);
    let program = table.update(Access::PrimaryKeys, vec![(K, constant(77)), (U, table.column(K))]);
    let reply = harness.execute(NONE, true, &program, table.keys(&[1]));
    assert_eq!(reply.error, None);
    assert_eq!(table.rows(&mut harness), [(1, 77, Some(77))]);
    harness.check_idle();
}

#[test]
fn deleted_rows_are_gone_and_their_keys_can_be_reused() {
    let (mut harness, table) = filled(1, 2, 10);
    let before = harness.stable();
    let reply = harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2, 3, 99]));
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 2, 2));
    assert_eq!(table.rows(&mut harness).len(), 8);
    assert_eq!(table.rows_at(&mut harness, before, NONE).len(), 10);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(2, 1, Some(3)), (3, 1, Some(2))]));
    assert_eq!(reply.error, None);
    assert_eq!(table.rows(&mut harness).len(), 10);
    harness.check_idle();
}

#[test]
fn a_commit_over_partitions_is_seen_whole_or_not_at_all() {
    for seed in 0..40 {
        let (mut harness, table) = filled(1, 4, 8);
        harness.shuffle(seed);
        let program = table.add_to(K, Access::AllRows, 1);
        let operation = harness.begin_execute(TestSession::autocommit(0), &program, table.everything());
        // At every stable number, a read must see the same number of increments in all rows.
        while harness.step() {
            let stable = harness.stable();
            let query = table.reading(Access::AllRows, None, Output::Images);
            let seen = seen_at(&mut harness, &table, &query, stable);
            let raised: Vec<i64> = seen.iter().map(|(id, k, _)| k - id * 10).collect();
            assert!(raised.iter().all(|by| *by == raised[0]), "seed {seed}: {seen:?}");
        }
        assert_eq!(harness.statement(operation).map(|reply| reply.changed), Some(8));
        harness.check_idle();
    }
}

/// The rows visible at a snapshot, read without delivering any signal.
fn seen_at(harness: &mut Harness, table: &SampleTable, program: &Arc<ReadProgram>, snapshot: CommitNumber) -> Vec<Row> {
    harness.peek(program, table.everything(), snapshot).iter().flat_map(|output| table.rows_of(output)).collect()
}

#[test]
fn rollback_undoes_everything() {
    let (mut harness, table) = filled(1, 2, 10);
    let before = table.rows(&mut harness);
    let mut transaction = NONE;
    let statements = [
        (table.add_to(K, Access::AllRows, 1), table.everything()),
        (table.delete(Access::PrimaryKeys), table.keys(&[1, 2])),
        (table.insert_unique(), table.images(&[(1, 1, Some(77)), (50, 1, None)])),
        (table.add_to(ID, Access::PrimaryKeys, 500), table.keys(&[3, 4, 5])),
    ];
    for (program, parts) in statements {
        let reply = harness.execute(transaction, false, &program, parts);
        assert_eq!(reply.error, None);
        transaction = reply.transaction;
    }
    harness.end(transaction, Ending::Rollback);
    assert_eq!(table.rows(&mut harness), before);
    harness.check_idle();
}

#[test]
fn a_plan_for_an_older_definition_is_refused() {
    let (mut harness, table) = filled(1, 2, 3);
    let mut newer = table.layout.definition.clone();
    newer.version = SchemaVersion(2);
    harness.catalog.dictionary.put_table(newer);
    harness.publish();
    let reply = harness.execute(NONE, true, &table.insert(), table.images(&[(9, 9, None)]));
    assert_eq!(reply.error.expect("the plan is stale").code, ErrorCode::TableDefinitionChanged);
    harness.check_idle();
}

#[test]
fn a_statement_of_a_closed_connection_ends_at_once() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &program, table.keys(&[1]));
    let second = harness.execute(NONE, false, &program, table.keys(&[2]));
    let waiting = harness.begin_execute(TestSession::within(second.transaction), &program, table.keys(&[1]));
    harness.run();
    let ended = harness.end(second.transaction, Ending::Rollback);
    assert_eq!(ended.error, None);
    let reply = harness.statement(waiting).expect("the wait is given up");
    assert_eq!(reply.error.expect("interrupted").code, ErrorCode::QueryInterrupted);
    harness.end(first.transaction, Ending::Commit);
    assert_eq!(table.rows(&mut harness), [(1, 11, Some(1)), (2, 20, Some(2)), (3, 30, Some(3))]);
    harness.check_idle();
}

#[test]
fn any_order_of_delivery_keeps_sums_and_frees_everything() {
    for nodes in [1, 2] {
        for seed in 0..30 {
            let (mut harness, table) = filled(nodes, 4, 6);
            harness.shuffle(seed);
            let mut random = junctor_kernel::Random::new(seed);
            let mut open = Vec::new();
            for step in 0..12u64 {
                let (from, to) = (random.below(6) as i64 + 1, random.below(6) as i64 + 1);
                let program = table.add_to(K, Access::PrimaryKeys, -1);
                open.push((
                    from,
                    to,
                    harness.begin_execute(TestSession::begin((step % 2) as u16), &program, table.keys(&[from])),
                ));
            }
            let mut ends: Vec<(TransactionId, _)> = Vec::new();
            for _ in 0..40 {
                harness.run();
                for (_, to, operation) in std::mem::take(&mut open) {
                    match harness.statement(operation) {
                        None => open.push((0, to, operation)),
                        Some(reply) if reply.error.is_some() => {
                            if reply.transaction.is_some() {
                                harness.end(reply.transaction, Ending::Rollback);
                            }
                        }
                        Some(reply) => {
                            let program = table.add_to(K, Access::PrimaryKeys, 1);
                            let parts: BTreeMap<u16, Buffer> = table.keys(&[to]);
                            let second = harness.begin_execute(TestSession::within(reply.transaction), &program, parts);
                            ends.push((reply.transaction, second));
                        }
                    }
                }
                for (transaction, operation) in std::mem::take(&mut ends) {
                    match harness.statement(operation) {
                        None => ends.push((transaction, operation)),
                        Some(reply) if reply.error.is_some() => assert_eq!(reply.transaction, NONE),
                        Some(_) => assert_eq!(harness.end(transaction, Ending::Commit).error, None),
                    }
                }
            }
            assert!(open.is_empty() && ends.is_empty(), "seed {seed}: somebody waits for ever");
            let total: i64 = table.rows(&mut harness).iter().map(|row| row.1).sum();
            assert_eq!(total, (1..=6).map(|id| id * 10).sum::<i64>(), "seed {seed}");
            harness.check_idle();
        }
    }
}

#[test]
fn a_transaction_beyond_the_maximum_is_refused() {
    let (mut harness, table) = filled(1, 1, 1);
    let lock = table.lock(LockMode::Shared, Access::PrimaryKeys);
    let mut open = Vec::new();
    let refused = loop {
        let reply = harness.execute(NONE, false, &lock, table.keys(&[1]));
        match reply.error {
            None => open.push(reply.transaction),
            Some(error) => break error,
        }
    };
    assert_eq!((refused.code, open.len()), (ErrorCode::TemporaryOverload, TRANSACTIONS_MAX / 2));
    for transaction in open {
        harness.end(transaction, Ending::Commit);
    }
    assert_eq!(harness.execute(NONE, true, &lock, table.keys(&[1])).error, None);
    harness.check_idle();
}
