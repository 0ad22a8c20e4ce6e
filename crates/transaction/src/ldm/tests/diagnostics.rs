//! Additional results of writes and reads: RETURNING, warnings, LAST_INSERT_ID(expression).

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_expression::program::ArithmeticOperator;
use junctor_model::collation::CollationId;
use junctor_model::error::ErrorCode;
use junctor_model::id::ColumnNumber;
use junctor_model::value::Value;
use junctor_signals::execute_statement::{ExecuteStatementReply, Reading};
use junctor_signals::program::{Access, Output, Projection, Returning, WriteProgram};

use super::{NONE, RANGES, filled};
use crate::tests::harness::{Harness, ID, K, SampleTable};

fn constant(value: i64) -> Expression {
    Expression::constant(Value::Int(value), CollationId::DEFAULT)
}

fn column(table: &SampleTable, column: ColumnNumber) -> Expression {
    let definition = &table.layout.definition.columns[usize::from(column.0)];
    Expression::column(column, definition, &definition.name)
}

fn divided_by_zero(table: &SampleTable) -> Expression {
    Expression::arithmetic(ArithmeticOperator::Divide, column(table, K), constant(0))
}

fn returning(program: &WriteProgram, output: Output, is_strict: bool) -> Arc<WriteProgram> {
    Arc::new(WriteProgram { returning: Some(Returning { output, is_strict }), ..program.clone() })
}

fn returned(table: &SampleTable, reply: &ExecuteStatementReply) -> Vec<(i64, i64, Option<i64>)> {
    let mut rows: Vec<_> = reply.outputs.iter().flat_map(|output| table.rows_of(output)).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn returning_has_old_rows_for_delete_and_new_rows_for_update() {
    for (nodes, autocommit) in [(1, true), (1, false), (2, true)] {
        let (mut harness, table) = filled(nodes, 3, 200);
        let update = returning(&table.add_to(K, RANGES, 5), Output::Images, true);
        let reply = harness.execute(NONE, autocommit, &update, table.range(10, 1000));
        assert_eq!((&reply.error, reply.changed), (&None, 100));
        let expected: Vec<_> = (1..=100).map(|id| (id, id * 10 + 5, Some(id))).collect();
        assert_eq!(returned(&table, &reply), expected);
        let delete = returning(&table.delete(Access::PrimaryKeys), Output::Images, false);
        let reply = harness.execute(reply.transaction, autocommit, &delete, table.keys(&[3, 100, 150, 900]));
        assert_eq!((&reply.error, reply.changed), (&None, 3));
        assert_eq!(returned(&table, &reply), [(3, 35, Some(3)), (100, 1005, Some(100)), (150, 1500, Some(150))]);
    }
}

#[test]
fn returning_has_moved_and_unchanged_rows_once() {
    let (mut harness, table) = filled(1, 4, 4);
    let moved = returning(&table.add_to(ID, Access::PrimaryKeys, 100), Output::Images, true);
    let reply = harness.execute(NONE, true, &moved, table.keys(&[1, 2, 3, 4]));
    assert_eq!((&reply.error, reply.changed), (&None, 4));
    let expected: Vec<_> = (1..=4).map(|id| (id + 100, id * 10, Some(id))).collect();
    assert_eq!(returned(&table, &reply), expected);
    let same = returning(&table.add_to(K, Access::PrimaryKeys, 0), Output::Images, true);
    let reply = harness.execute(NONE, true, &same, table.keys(&[101]));
    assert_eq!((reply.matched, reply.changed), (1, 0));
    assert_eq!(returned(&table, &reply), [(101, 10, Some(1))]);
    harness.check_idle();
}

#[test]
fn returning_follows_its_strict_mode_and_a_failure_changes_nothing() {
    let (mut harness, table) = filled(1, 2, 3);
    harness.reading = Reading { warnings_max: 2, ..Reading::default() };
    let value = divided_by_zero(&table);
    let columns = vec![value.result.result_column("")];
    let output = Output::Packets(Projection::new(vec![value], columns));
    let strict = returning(&table.delete(Access::PrimaryKeys), output.clone(), true);
    let reply = harness.execute(NONE, true, &strict, table.keys(&[1, 2, 3]));
    assert_eq!(reply.error.expect("a division by zero").code, ErrorCode::DivisionByZero);
    assert!(reply.outputs.is_empty());
    assert_eq!(table.rows(&mut harness).len(), 3);
    let lenient = returning(&table.delete(Access::PrimaryKeys), output, false);
    let reply = harness.execute(NONE, true, &lenient, table.keys(&[1, 2, 3]));
    assert_eq!((&reply.error, reply.changed), (&None, 3));
    let diagnostics = reply.diagnostics.expect("there are warnings");
    assert_eq!((diagnostics.count, diagnostics.warnings.len()), (3, 2));
    harness.check_idle();
}

#[test]
fn last_insert_id_is_returned_even_if_the_statement_fails() {
    let (mut harness, table) = filled(1, 2, 3);
    let next = Expression::arithmetic(ArithmeticOperator::Add, column(&table, K), constant(1));
    let call = Expression::call("LAST_INSERT_ID", vec![next]).expect("it has one argument");
    let update = table.update(Access::PrimaryKeys, vec![(K, call.clone())]);
    let reply = harness.execute(NONE, true, &update, table.keys(&[2]));
    assert_eq!(reply.diagnostics.expect("it was called").last_insert_id, Some(21));
    assert_eq!(table.rows(&mut harness)[1], (2, 21, Some(2)));
    let failing = table.update(Access::PrimaryKeys, vec![(K, call), (K, divided_by_zero(&table))]);
    let reply = harness.execute(NONE, true, &failing, table.keys(&[3]));
    assert_eq!(reply.error.expect("a division by zero").code, ErrorCode::DivisionByZero);
    assert_eq!(reply.diagnostics.expect("it was called").last_insert_id, Some(31));
}

#[test]
fn the_warnings_of_a_read_come_with_its_rows_only() {
    let (mut harness, table) = filled(1, 1, 5);
    let value = divided_by_zero(&table);
    let columns = vec![value.result.result_column("")];
    let output = Output::Packets(Projection::new(vec![value], columns));
    let program = table.reading(Access::PrimaryKeys, None, output);
    let stable = harness.stable();
    let count = |harness: &mut Harness, ids: &[i64]| {
        let replies = harness.read(&program, table.keys(ids), stable, NONE);
        assert!(replies.iter().all(|reply| reply.error.is_none()));
        let diagnostics = replies.into_iter().filter_map(|reply| reply.diagnostics);
        diagnostics.map(|diagnostics| (diagnostics.count, diagnostics.warnings.len())).collect::<Vec<_>>()
    };
    assert_eq!(count(&mut harness, &[1, 2, 3]), [(3, 2)]);
    assert_eq!(count(&mut harness, &[77]), []);
    assert_eq!(count(&mut harness, &[4]), [(1, 1)]);
}
