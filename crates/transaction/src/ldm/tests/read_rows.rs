//! Reads at owners and query blocks, and status rows.

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
