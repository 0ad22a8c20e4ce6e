//! Reads at owners and query blocks, and status rows.

use junctor_signals::start_epoch::is_of_membership;

use super::*;

#[test]
fn aggregates_and_filters_run_where_the_rows_are() {
    let (mut harness, table) = filled(1, 2, 500);
    let filter =
        Expression::comparison(CompareOperator::LessOrEqual, table.column(ID), constant(400)).expect("numbers");
    let sum = Aggregate { kind: AggregateKind::Sum, argument: Some(table.column(K)), distinct: false };
    let count = Aggregate { kind: AggregateKind::CountRows, argument: None, distinct: false };
    let program = table.reading(Access::AllRows, Some(filter), Output::Aggregates(vec![sum, count]));
    let stable = harness.stable();
    let replies = harness.read(&program, table.everything(), stable, NONE);
    let operand = table.column(K).result;
    let mut sum = junctor_expression::Accumulator::new(AggregateKind::Sum, operand);
    let mut count = junctor_expression::Accumulator::new(AggregateKind::CountRows, operand);
    for reply in &replies {
        let first = 4 + sum.merge_partial(&reply.output[4..]).expect("a state");
        count.merge_partial(&reply.output[first + 4..]).expect("a state");
    }
    let total: i64 = (1..=400).map(|id| id * 10).sum();
    assert_eq!(count.finish().expect("a count"), Value::Int(400));
    let expected = junctor_model::value::Decimal::Narrow { mantissa: i128::from(total), scale: 0 };
    assert_eq!(sum.finish().expect("a sum"), Value::Decimal(expected));
}

/// Rows of three steps: a step is at most 64 acquisitions of the guard with 64 rows each.
const ROWS_OF_STEPS: i64 = 9000;

#[test]
fn a_scan_answers_once_for_several_steps() {
    let (mut harness, table) = filled(1, 1, ROWS_OF_STEPS);
    let filter = || Expression::comparison(CompareOperator::Greater, table.column(ID), constant(ROWS_OF_STEPS - 10));
    let stable = harness.stable();
    let program = table.reading(Access::AllRows, filter().ok(), Output::Images);
    let replies = harness.read(&program, table.everything(), stable, NONE);
    let ids: Vec<i64> = replies.iter().flat_map(|reply| table.rows_of(&reply.output)).map(|row| row.0).collect();
    assert_eq!((replies.len(), replies[0].rows, ids), (1, 10, (ROWS_OF_STEPS - 9..=ROWS_OF_STEPS).collect()));
    // Aggregates have the states of each step.
    let count = Aggregate { kind: AggregateKind::CountRows, argument: None, distinct: false };
    let program = table.reading(Access::AllRows, None, Output::Aggregates(vec![count]));
    let replies = harness.read(&program, table.everything(), stable, NONE);
    assert_eq!((replies.len(), replies[0].rows), (1, 1));
    let mut count = junctor_expression::Accumulator::new(AggregateKind::CountRows, table.column(K).result);
    let mut states = &replies[0].output[..];
    while !states.is_empty() {
        let bytes = count.merge_partial(&states[4..]).expect("a state");
        states = &states[4 + bytes..];
    }
    assert_eq!(count.finish().expect("a count"), Value::Int(ROWS_OF_STEPS));
}

#[test]
fn the_rows_before_a_step_with_an_error_are_returned_first() {
    let (mut harness, table) = filled(1, 1, ROWS_OF_STEPS);
    let listed = Expression::in_list(false, table.column(ID), vec![constant(1), constant(ROWS_OF_STEPS)]);
    let sum = Expression::arithmetic(ArithmeticOperator::Add, table.column(ID), constant(i64::MAX - ROWS_OF_STEPS + 1));
    let positive = Expression::comparison(CompareOperator::Greater, sum, constant(0)).expect("numbers");
    let filter = Expression::and(vec![listed.expect("numbers"), positive]);
    let program = table.reading(Access::AllRows, Some(filter), Output::Images);
    let stable = harness.stable();
    let replies = harness.read(&program, table.everything(), stable, NONE);
    assert_eq!(table.rows_of(&replies[0].output).len(), 1);
    assert!(replies[0].error.is_none() && replies[0].resume.is_some());
    let error = replies[1].error.as_ref().expect("the sum of the last row is out of range");
    assert_eq!((replies.len(), error.code), (2, ErrorCode::NumericOutOfRange));
}

#[test]
fn a_range_is_read_in_order_and_in_both_directions() {
    let (mut harness, table) = filled(1, 1, 400);
    let stable = harness.stable();
    for descending in [false, true] {
        let access = Access::IndexRanges { index: INDEX_K, descending };
        let program = table.reading(access, None, Output::Images);
        let replies = harness.read(&program, table.range(100, 3000), stable, NONE);
        assert!(replies.len() > 1, "batches of 100 rows");
        let ids: Vec<i64> = replies.iter().flat_map(|reply| table.rows_of(&reply.output)).map(|row| row.0).collect();
        let mut expected: Vec<i64> = (10..=300).collect();
        if descending {
            expected.reverse();
        }
        assert_eq!(ids, expected);
    }
}

#[test]
fn a_running_reader_delays_the_writer_and_later_readers_go_to_the_owner() {
    let (mut harness, table) = filled(1, 1, 3);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let guard = Arc::clone(&harness.guards[&partition]);
    let stable = harness.stable();
    let read = table.reading(Access::AllRows, None, Output::Images);
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let (_, slots) = junctor_storage::guard::ReadGroup::new(1);
    let slot = std::mem::replace(&mut harness.spare_slot, slots.into_iter().next().expect("one slot"));
    let inside = guard.read(&slot, |store| {
        let written = harness.begin_execute(TestSession::autocommit(0), &write, table.keys(&[1]));
        for _ in 0..50 {
            harness.step();
        }
        assert!(guard.is_write_pending() && harness.statement(written).is_none());
        // The query block finds the guard busy, so the owner answers.
        let asked = harness.begin_read(&read, table.everything(), stable);
        for _ in 0..50 {
            harness.step();
        }
        assert_eq!(harness.rows_read(asked).map(|output| table.rows_of(&output).len()), Some(3));
        (written, store.statistics().versions)
    });
    let (written, versions) = inside.expect("the guard was free");
    assert_eq!(versions, 3);
    harness.run();
    assert_eq!(harness.statement(written).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    harness.check_idle();
}

#[test]
fn locks_and_memory_are_reported() {
    let (mut harness, table) = filled(1, 2, 3);
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &write, table.keys(&[1]));
    let second = harness.begin_execute(TestSession::autocommit(0), &write, table.keys(&[1]));
    harness.run();
    harness.advance(Duration::from_millis(30));
    let states: Vec<String> = harness.status(StatusTable::Locks).iter().map(|row| format!("{:?}", row[6])).collect();
    let text = |text: &str| format!("{:?}", Value::Bytes(text.into()));
    assert_eq!(states, [text("GRANTED"), text("WAITING")]);
    let rows: u64 = harness.status(StatusTable::MemoryUsage).iter().map(|row| number(&row[3])).sum();
    assert_eq!(rows, 6, "three rows and three entries");
    let transactions = harness.status(StatusTable::Transactions);
    let waiting: Vec<&Value> = transactions.iter().map(|row| &row[5]).filter(|value| !value.is_null()).collect();
    assert_eq!((transactions.len(), waiting), (2, vec![&Value::UInt(30)]));
    harness.end(first.transaction, Ending::Rollback);
    assert!(harness.statement(second).is_some());
    harness.check_idle();
}

#[test]
fn a_read_of_a_transaction_whose_writes_are_undone_fails() {
    let (mut harness, table) = filled(1, 1, 10);
    let update = table.add_to(K, Access::PrimaryKeys, 1);
    let transaction = harness.execute(NONE, false, &update, table.keys(&[5])).transaction;
    let program = table.reading(Access::PrimaryKeys, None, Output::Images);
    let stable = harness.stable();
    let replies = harness.read(&program, table.keys(&[5]), stable, transaction);
    assert_eq!(table.rows_of(&replies[0].output)[0].1, 51);
    // The tc of the node with the session is gone, and the session does not know it yet.
    assert_eq!(harness.end(transaction, Ending::Rollback).error, None);
    let replies = harness.read(&program, table.keys(&[5]), stable, transaction);
    let error = replies[0].error.as_ref().expect("the answer would lack a write of the transaction");
    assert!(is_of_membership(error), "{error:?}");
}
