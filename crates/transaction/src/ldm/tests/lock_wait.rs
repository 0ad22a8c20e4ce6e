//! Waits for row locks and deadlocks.

use super::*;

#[test]
fn a_writer_waits_for_the_lock_and_sees_the_holders_change() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &program, table.keys(&[1]));
    let second = harness.begin_execute(TestSession::autocommit(1), &program, table.keys(&[1]));
    let third = harness.begin_execute(TestSession::autocommit(0), &program, table.keys(&[1]));
    harness.run();
    assert!(harness.statement(second).is_none() && harness.statement(third).is_none());
    assert_eq!(harness.end(first.transaction, Ending::Commit).error, None);
    for waiting in [second, third] {
        let reply = harness.statement(waiting).expect("the lock was granted");
        assert_eq!((reply.error, reply.changed), (None, 1));
    }
    assert_eq!(table.rows(&mut harness)[0], (1, 13, Some(1)));
    harness.check_idle();
}

#[test]
fn a_waiting_writer_skips_a_row_that_is_deleted_meanwhile() {
    let (mut harness, table) = filled(1, 1, 3);
    let first = harness.execute(NONE, false, &table.delete(Access::PrimaryKeys), table.keys(&[2]));
    let second = harness.begin_execute(
        TestSession::autocommit(1),
        &table.add_to(K, Access::PrimaryKeys, 1),
        table.keys(&[1, 2, 3]),
    );
    let third = harness.begin_execute(TestSession::autocommit(1), &table.add_to(K, RANGES, 1), table.range(0, 100));
    harness.run();
    harness.end(first.transaction, Ending::Commit);
    for waiting in [second, third] {
        assert_eq!(harness.statement(waiting).map(|reply| (reply.error, reply.changed)), Some((None, 2)));
    }
    assert_eq!(table.rows(&mut harness), [(1, 12, Some(1)), (3, 32, Some(3))]);
    harness.check_idle();
}

#[test]
fn an_insert_waits_for_the_holder_of_the_key() {
    for (ending, is_duplicate) in [(Ending::Commit, true), (Ending::Rollback, false)] {
        let (mut harness, table) = started(1, 2);
        let first = harness.execute(NONE, false, &table.insert(), table.images(&[(1, 10, None)]));
        let second = harness.begin_execute(TestSession::autocommit(1), &table.insert(), table.images(&[(1, 20, None)]));
        harness.run();
        assert!(harness.statement(second).is_none());
        harness.end(first.transaction, ending);
        let reply = harness.statement(second).expect("the lock was granted");
        assert_eq!(reply.error.is_some(), is_duplicate);
        let left = if is_duplicate { (1, 10, None) } else { (1, 20, None) };
        assert_eq!(table.rows(&mut harness), [left]);
        harness.check_idle();
    }
}

#[test]
fn a_locking_scan_waits_for_rows_that_others_have_inserted_or_moved_into_it() {
    for access in [RANGES, Access::AllRows] {
        for ending in [Ending::Commit, Ending::Rollback] {
            let (mut harness, table) = filled(1, 2, 2);
            let first = harness.execute(NONE, false, &table.insert(), table.images(&[(7, 70, None)]));
            let rows = if access == RANGES { table.range(65, 75) } else { table.everything() };
            let second = harness.begin_execute(TestSession::autocommit(1), &table.add_to(K, access, 1), rows);
            harness.run();
            assert!(harness.statement(second).is_none(), "{access:?} does not wait");
            harness.end(first.transaction, ending);
            let changed = harness.statement(second).map(|reply| (reply.error, reply.changed));
            let others = if access == RANGES { 0 } else { 2 };
            assert_eq!(changed, Some((None, others + u64::from(ending == Ending::Commit))));
            harness.check_idle();
        }
    }
    let (mut harness, table) = filled(1, 2, 2);
    let first = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 60), table.keys(&[1]));
    let second = harness.begin_execute(TestSession::autocommit(1), &table.add_to(K, RANGES, 1), table.range(65, 75));
    harness.run();
    assert!(harness.statement(second).is_none(), "a row that moves into the range is waited for");
    harness.end(first.transaction, Ending::Commit);
    assert_eq!(harness.statement(second).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    assert_eq!(table.rows(&mut harness)[0], (1, 71, Some(1)));
    harness.check_idle();
}

#[test]
fn inserted_rows_use_no_lock_memory_until_another_transaction_wants_them() {
    let (mut harness, table) = started(1, 1);
    let first = harness.execute(NONE, false, &table.insert(), table.images(&[(1, 10, None), (2, 20, None)]));
    assert_eq!(harness.status(StatusTable::Locks).len(), 0);
    let second =
        harness.begin_execute(TestSession::autocommit(1), &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[2]));
    harness.run();
    assert_eq!(harness.status(StatusTable::Locks).len(), 2, "the inserter's and the waiter's");
    harness.end(first.transaction, Ending::Commit);
    assert_eq!(harness.statement(second).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    harness.check_idle();
}

#[test]
fn shared_locks_are_shared_and_keep_writers_out() {
    let (mut harness, table) = filled(1, 2, 3);
    let lock = table.lock(LockMode::Shared, Access::PrimaryKeys);
    let first = harness.execute(NONE, false, &lock, table.keys(&[1]));
    let second = harness.execute(NONE, false, &lock, table.keys(&[1]));
    assert_eq!(table.rows_of(&second.outputs[0]), [(1, 10, Some(1))]);
    let writer =
        harness.begin_execute(TestSession::autocommit(0), &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1]));
    harness.run();
    assert!(harness.statement(writer).is_none());
    harness.end(first.transaction, Ending::Commit);
    assert!(harness.statement(writer).is_none());
    harness.end(second.transaction, Ending::Rollback);
    assert_eq!(harness.statement(writer).map(|reply| reply.error), Some(None));
    harness.check_idle();
}

#[test]
fn a_lock_that_is_not_granted_in_time_fails_the_statement_alone() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &program, table.keys(&[1]));
    let second = harness.execute(NONE, false, &program, table.keys(&[2]));
    let waiting = harness.begin_execute(TestSession::within(second.transaction), &program, table.keys(&[3, 1]));
    harness.run();
    harness.advance(Duration::from_seconds(49));
    assert!(harness.statement(waiting).is_none());
    harness.advance(Duration::from_seconds(2));
    let reply = harness.statement(waiting).expect("time is up");
    assert_eq!(reply.error.expect("time is up").code, ErrorCode::LockWaitTimeout);
    assert_eq!(reply.transaction, second.transaction);
    harness.end(first.transaction, Ending::Rollback);
    harness.end(second.transaction, Ending::Commit);
    assert_eq!(table.rows(&mut harness), [(1, 10, Some(1)), (2, 21, Some(2)), (3, 30, Some(3))]);
    harness.check_idle();
}

#[test]
fn a_cycle_of_waits_loses_exactly_one_member() {
    for members in [2, 3, 5] {
        for seed in 0..20 {
            let (mut harness, table) = filled(1, 2, members);
            let program = table.add_to(K, Access::PrimaryKeys, 1);
            let transactions: Vec<TransactionId> = (0..members)
                .map(|member| {
                    let operation = harness.begin_execute(
                        TestSession::begin((member % 2) as u16),
                        &program,
                        table.keys(&[member + 1]),
                    );
                    harness.run();
                    harness.statement(operation).expect("the row is free").transaction
                })
                .collect();
            harness.shuffle(seed);
            let mut operations = Vec::new();
            for (member, transaction) in transactions.iter().enumerate() {
                let next = (member as i64 + 1) % members + 1;
                operations.push(harness.begin_execute(
                    TestSession::within(*transaction),
                    &program,
                    table.keys(&[next]),
                ));
                // Each transaction waits before the next one begins to wait, so the last one closes the
                // cycle.
                harness.run();
            }
            let open = transactions.iter().copied().zip(operations).collect();
            let victims = end_cycle(&mut harness, open);
            assert_eq!(victims, 1);
            harness.check_idle();
        }
    }
}

/// Commits each transaction whose statement has been answered, until all have. Returns the number of deadlock
/// victims.
fn end_cycle(harness: &mut Harness, mut open: BTreeMap<TransactionId, OperationId>) -> usize {
    let mut victims = 0;
    while !open.is_empty() {
        let before = open.len();
        for (transaction, operation) in open.clone() {
            let Some(reply) = harness.statement(operation) else { continue };
            open.remove(&transaction);
            match reply.error {
                Some(error) => {
                    assert_eq!((error.code, reply.transaction), (ErrorCode::Deadlock, NONE));
                    victims += 1;
                }
                None => assert_eq!(harness.end(transaction, Ending::Commit).error, None),
            }
        }
        assert!(open.len() < before, "a cycle of waits makes no progress");
    }
    victims
}

#[test]
fn cycles_that_close_at_the_same_time_are_always_broken() {
    for seed in 0..60 {
        let (mut harness, table) = filled(1, 2, 4);
        let program = table.add_to(K, Access::PrimaryKeys, 1);
        let transactions: Vec<TransactionId> = (0..4)
            .map(|member| {
                let operation =
                    harness.begin_execute(TestSession::begin(member as u16 % 2), &program, table.keys(&[member + 1]));
                harness.run();
                harness.statement(operation).expect("the row is free").transaction
            })
            .collect();
        harness.shuffle(seed);
        let mut open = BTreeMap::new();
        for (member, transaction) in transactions.iter().enumerate() {
            let next = (member as i64 + 1) % 4 + 1;
            open.insert(
                *transaction,
                harness.begin_execute(TestSession::within(*transaction), &program, table.keys(&[next])),
            );
        }
        harness.run();
        let victims = end_cycle(&mut harness, open);
        assert_eq!(victims, 1, "seed {seed}");
        harness.check_idle();
    }
}

#[test]
fn a_locking_read_locks_what_it_reads_and_sees_the_newest() {
    let (mut harness, table) = filled(1, 2, 20);
    let open = harness.execute(NONE, false, &table.lock(LockMode::Exclusive, RANGES), table.range(50, 100));
    let mut rows: Vec<Row> = open.outputs.iter().flat_map(|output| table.rows_of(output)).collect();
    rows.sort_unstable();
    let expected: Vec<Row> = (5..=10).map(|id| (id, id * 10, Some(id))).collect();
    assert_eq!((rows, open.matched, open.changed, open.written.len()), (expected, 6, 0, 0));
    let inside =
        harness.begin_execute(TestSession::autocommit(1), &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[7]));
    let outside =
        harness.begin_execute(TestSession::autocommit(1), &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[11]));
    harness.run();
    assert!(harness.statement(inside).is_none() && harness.statement(outside).is_some());
    let taken = harness.stable();
    assert_eq!(harness.end(open.transaction, Ending::Commit).error, None);
    assert!(harness.statement(inside).is_some());
    assert_eq!(harness.stable().0, taken.0 + 1, "a transaction that only locked takes no number");
    harness.check_idle();
}

#[test]
fn a_cancelled_wait_blocks_nobody() {
    let (mut harness, table) = filled(1, 1, 3);
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let holder = harness.execute(NONE, false, &write, table.keys(&[1]));
    let first = harness.execute(NONE, false, &write, table.keys(&[2]));
    let second = harness.execute(NONE, false, &write, table.keys(&[3]));
    let gives_up = harness.begin_execute(TestSession::within(first.transaction), &write, table.keys(&[1]));
    harness.run();
    harness.advance(Duration::from_seconds(30));
    let behind = harness.begin_execute(TestSession::within(second.transaction), &write, table.keys(&[1]));
    harness.run();
    harness.advance(Duration::from_seconds(21));
    let reply = harness.statement(gives_up).expect("time is up");
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::LockWaitTimeout));
    // The waiter behind it now waits only for the holder, so waiting for that waiter closes no cycle.
    let waiting = harness.begin_execute(TestSession::within(first.transaction), &write, table.keys(&[3]));
    harness.run();
    assert!(harness.statement(waiting).is_none() && harness.statement(behind).is_none());
    for transaction in [holder.transaction, second.transaction, first.transaction] {
        assert_eq!(harness.end(transaction, Ending::Commit).error, None);
    }
    for operation in [behind, waiting] {
        assert_eq!(harness.statement(operation).map(|reply| reply.error), Some(None));
    }
    harness.check_idle();
}

#[test]
fn a_long_queue_for_one_row_costs_few_signals() {
    const WAITERS: usize = 300;
    let (mut harness, table) = filled(1, 2, 2);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    let holder = harness.execute(NONE, false, &program, table.keys(&[1]));
    let steps = |harness: &mut Harness| std::iter::from_fn(|| harness.step().then_some(())).count();
    let mut waiting = Vec::new();
    for waiter in 0..WAITERS {
        waiting.push(harness.begin_execute(TestSession::autocommit(waiter as u16 % 2), &program, table.keys(&[1])));
        let spent = steps(&mut harness);
        assert!(spent < 20, "waiter {waiter} cost {spent} signals");
    }
    // A transaction that holds something may close a cycle, so it probes each transaction ahead of it once.
    let holding = harness.execute(NONE, false, &program, table.keys(&[2]));
    let last = harness.begin_execute(TestSession::within(holding.transaction), &program, table.keys(&[1]));
    let spent = steps(&mut harness);
    assert!(spent < 2 * WAITERS, "the last waiter cost {spent} signals");
    assert_eq!(harness.end(holder.transaction, Ending::Commit).error, None);
    for operation in waiting {
        assert_eq!(harness.statement(operation).map(|reply| reply.error), Some(None));
    }
    assert_eq!(harness.statement(last).map(|reply| reply.error), Some(None));
    assert_eq!(harness.end(holding.transaction, Ending::Commit).error, None);
    harness.check_idle();
}

#[test]
fn a_cycle_through_a_queue_is_found_in_any_order() {
    for seed in 0..200 {
        let (mut harness, table) = filled(1, 2, 4);
        let program = table.add_to(K, Access::PrimaryKeys, 1);
        let begin = |harness: &mut Harness, tc: u16, row: i64| {
            let operation = harness.begin_execute(TestSession::begin(tc), &program, table.keys(&[row]));
            harness.run();
            harness.statement(operation).expect("the row is free").transaction
        };
        let holder = begin(&mut harness, 0, 1);
        let second = begin(&mut harness, 1, 2);
        harness.shuffle(seed);
        // Transactions that hold nothing are queued between the two members of the cycle.
        let mut open = Vec::new();
        for waiter in 0..4 {
            open.push(harness.begin_execute(TestSession::autocommit(waiter % 2), &program, table.keys(&[1])));
        }
        let closing = harness.begin_execute(
            TestSession { tc: 1, transaction: second, autocommit: false },
            &program,
            table.keys(&[1]),
        );
        let circle = harness.begin_execute(TestSession::within(holder), &program, table.keys(&[2]));
        harness.run();
        let victims = end_cycle(&mut harness, BTreeMap::from([(holder, circle), (second, closing)]));
        assert_eq!(victims, 1, "seed {seed}");
        for operation in open {
            assert_eq!(harness.statement(operation).map(|reply| reply.error), Some(None), "seed {seed}");
        }
        harness.check_idle();
    }
}

#[test]
fn a_row_that_moves_behind_a_waiting_scan_is_not_missed() {
    let ranges: [&[(i64, i64)]; 2] = [&[(0, 100)], &[(0, 9), (15, 100)]];
    for (descending, ranges) in
        [false, true].into_iter().flat_map(|descending| ranges.map(|ranges| (descending, ranges)))
    {
        let (mut harness, table) = filled(1, 1, 3);
        let holder =
            harness.execute(NONE, false, &table.lock(LockMode::Exclusive, Access::PrimaryKeys), table.keys(&[2]));
        let raise = table.add_to(K, Access::IndexRanges { index: INDEX_K, descending }, 1000);
        let ordered: Vec<(i64, i64)> = match descending {
            false => ranges.to_vec(),
            true => ranges.iter().rev().copied().collect(),
        };
        let mut parts = table.everything();
        for (low, high) in ordered {
            for (partition, part) in table.range(low, high) {
                let header = table.everything()[&partition].len();
                parts.get_mut(&partition).expect("every partition").extend_from_slice(&part[header..]);
            }
        }
        let waiting = harness.begin_execute(TestSession::autocommit(0), &raise, parts);
        harness.run();
        assert!(harness.statement(waiting).is_none());
        // Moves the row from 20 to a position that the scan has already passed.
        let by = if descending { 20 } else { -15 };
        let moved =
            harness.execute(holder.transaction, false, &table.add_to(K, Access::PrimaryKeys, by), table.keys(&[2]));
        assert_eq!((moved.error, moved.changed), (None, 1));
        assert_eq!(harness.end(holder.transaction, Ending::Commit).error, None);
        let reply = harness.statement(waiting).expect("the row is free");
        assert_eq!(reply.error, None);
        let raised = table.rows(&mut harness).iter().find(|row| row.0 == 2).map(|row| row.1);
        assert_eq!(raised, Some(1020 + by), "descending {descending}, ranges {ranges:?}");
        harness.check_idle();
    }
}
