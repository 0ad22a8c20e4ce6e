//! Tests of ldm together with tc and query, one file per topic.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_expression::program::{ArithmeticOperator, CompareOperator};
use junctor_expression::{AggregateKind, Expression};
use junctor_kernel::{Address, Buffer, Duration, NodeId};
use junctor_model::collation::CollationId;
use junctor_model::error::ErrorCode;
use junctor_model::id::{
    ColumnNumber, CommitNumber, Epoch, PartitionId, SchemaVersion, StatementNumber, TransactionId,
};
use junctor_model::limit::TRANSACTIONS_MAX;
use junctor_model::value::Value;
use junctor_signals::Module;
use junctor_signals::commit_transaction::{CommitTransaction, PrepareTransaction, TransactionPart, UndoTransaction};
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::{
    Access, Aggregate, Assignment, AssignmentKind, LockMode, Output, ReadProgram, WhenLocked, WriteAction, WriteProgram,
};
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;
use junctor_signals::replicate_rows::ReplicateRows;
use junctor_signals::{LdmSignal, Signal, TcSignal};

use crate::ldm::LdmWork;
use crate::tests::harness::{Harness, ID, INDEX_K, INDEX_U, K, SampleTable, TestSession, U};

mod checkpoint;
mod copy_rows;
mod diagnostics;
mod earlier_life;
mod epoch;
mod index_scan;
mod locking_read;
mod lock_wait;
mod long_transaction;
mod prepare_transaction;
mod publish_catalog;
mod purge;
mod random;
mod read_rows;
mod record_stream;
mod replay;
mod replicate_rows;
mod snapshot;
mod undo;
mod unique_entry;
mod write_rows;

/// No transaction: a statement with this id begins one.
pub(crate) const NONE: TransactionId = TransactionId(0);

pub(crate) type Row = (i64, i64, Option<i64>);

fn constant(value: i64) -> Expression {
    Expression::constant(Value::Int(value), CollationId::DEFAULT)
}

impl SampleTable {
    fn column(&self, column: ColumnNumber) -> Expression {
        let definition = &self.layout.definition.columns[usize::from(column.0)];
        Expression::column(column, definition, &definition.name)
    }

    pub(super) fn program(&self, action: WriteAction, access: Access, has_unique: bool) -> Arc<WriteProgram> {
        let unique_entries = if has_unique { vec![(INDEX_U, Arc::clone(&self.entries))] } else { Vec::new() };
        Arc::new(WriteProgram { unique_entries, ..WriteProgram::new(&self.layout, action, access) })
    }

    pub(crate) fn insert(&self) -> Arc<WriteProgram> {
        self.program(WriteAction::Insert, Access::PrimaryKeys, false)
    }

    pub(crate) fn insert_unique(&self) -> Arc<WriteProgram> {
        self.program(WriteAction::Insert, Access::PrimaryKeys, true)
    }

    pub(crate) fn delete(&self, access: Access) -> Arc<WriteProgram> {
        self.program(WriteAction::Delete { ignore: false }, access, true)
    }

    pub(super) fn update(&self, access: Access, assignments: Vec<(ColumnNumber, Expression)>) -> Arc<WriteProgram> {
        let assignments = assignments
            .into_iter()
            .map(|(column, value)| Assignment { column, value, kind: AssignmentKind::Always })
            .collect();
        self.program(WriteAction::Update { assignments, ignore: false }, access, true)
    }

    pub(crate) fn add_to(&self, column: ColumnNumber, access: Access, number: i64) -> Arc<WriteProgram> {
        let sum = Expression::arithmetic(ArithmeticOperator::Add, self.column(column), constant(number));
        self.update(access, vec![(column, sum)])
    }

    pub(super) fn lock(&self, mode: LockMode, access: Access) -> Arc<WriteProgram> {
        let when_locked = WhenLocked::Wait;
        self.program(
            WriteAction::LockRead { mode, when_locked, output: Output::Images, is_strict: false },
            access,
            false,
        )
    }

    pub(crate) fn reading(&self, access: Access, filter: Option<Expression>, output: Output) -> Arc<ReadProgram> {
        Arc::new(ReadProgram { filter, ..ReadProgram::new(&self.layout, access, output) })
    }

    pub(super) fn rows_at(
        &self,
        harness: &mut Harness,
        snapshot: CommitNumber,
        transaction: TransactionId,
    ) -> Vec<Row> {
        let program = self.reading(Access::AllRows, None, Output::Images);
        let replies = harness.read(&program, self.everything(), snapshot, transaction);
        let mut rows: Vec<_> = replies.iter().flat_map(|reply| self.rows_of(&reply.output)).collect();
        rows.sort_unstable();
        rows
    }

    pub(crate) fn rows(&self, harness: &mut Harness) -> Vec<Row> {
        let stable = harness.stable();
        self.rows_at(harness, stable, NONE)
    }
}

pub(super) const RANGES: Access = Access::IndexRanges { index: INDEX_K, descending: false };

pub(super) fn started(nodes: u8, partitions: u16) -> (Harness, SampleTable) {
    let mut harness = Harness::new(nodes, 2, 2);
    let table = SampleTable::new(partitions);
    harness.create_tables(&[&table.layout, &table.entries]);
    (harness, table)
}

pub(super) fn filled(nodes: u8, partitions: u16, rows: i64) -> (Harness, SampleTable) {
    let (mut harness, table) = started(nodes, partitions);
    let rows: Vec<Row> = (1..=rows).map(|id| (id, id * 10, Some(id))).collect();
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&rows));
    assert_eq!((reply.error, reply.changed), (None, rows.len() as u64));
    (harness, table)
}

fn number(value: &Value) -> u64 {
    match value {
        Value::UInt(value) => *value,
        other => panic!("{other:?}"),
    }
}
