use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_expression::program::{ArithmeticOperator, CompareOperator};
use junctor_expression::{AggregateKind, Expression};
use junctor_kernel::{Address, Buffer, Duration, NodeId, WorldEvent};
use junctor_model::collation::CollationId;
use junctor_model::error::ErrorCode;
use junctor_model::id::{ColumnIndex, CommitNumber, PartitionId, SchemaVersion, TransactionId};
use junctor_model::limit::TRANSACTIONS_MAX;
use junctor_model::value::Value;
use junctor_signals::Module;
use junctor_signals::commit_transaction::{CommitTransaction, PrepareTransaction};
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::{
    Access, Aggregate, Assignment, LockMode, Output, ReadProgram, WhenLocked, WriteAction, WriteProgram,
};
use junctor_signals::read_rows::OperationId;
use junctor_signals::read_status::StatusTable;
use junctor_signals::replicate_rows::ApplyReplica;
use junctor_signals::{LdmSignal, Signal, TcSignal};
use junctor_storage::redo::RedoRecords;

use crate::harness::{Harness, ID, INDEX_K, INDEX_U, K, SampleTable, U};

pub(crate) const NONE: TransactionId = TransactionId(0);

pub(crate) type Row = (i64, i64, Option<i64>);

fn constant(value: i64) -> Expression {
    Expression::constant(Value::Int(value), CollationId::DEFAULT)
}

impl SampleTable {
    fn column(&self, column: ColumnIndex) -> Expression {
        let definition = &self.layout.definition.columns[usize::from(column.0)];
        Expression::column(column, definition, &definition.name)
    }

    pub(super) fn program(&self, action: WriteAction, access: Access, has_unique: bool) -> Arc<WriteProgram> {
        let unique_entries = if has_unique { vec![(INDEX_U, Arc::clone(&self.entries))] } else { Vec::new() };
        Arc::new(WriteProgram {
            table: Arc::clone(&self.layout),
            action,
            access,
            filter: None,
            reads_parameters: false,
            unique_entries,
            foreign_keys: None,
            returning: None,
        })
    }

    pub(crate) fn insert(&self) -> Arc<WriteProgram> {
        self.program(WriteAction::Insert, Access::PrimaryKeys, false)
    }

    pub(crate) fn insert_unique(&self) -> Arc<WriteProgram> {
        self.program(WriteAction::Insert, Access::PrimaryKeys, true)
    }

    pub(crate) fn delete(&self, access: Access) -> Arc<WriteProgram> {
        self.program(WriteAction::Delete, access, true)
    }

    pub(super) fn update(&self, access: Access, assignments: Vec<(ColumnIndex, Expression)>) -> Arc<WriteProgram> {
        let assignments = assignments.into_iter().map(|(column, value)| Assignment { column, value }).collect();
        self.program(WriteAction::Update { assignments, ignore: false }, access, true)
    }

    pub(crate) fn add_to(&self, column: ColumnIndex, access: Access, number: i64) -> Arc<WriteProgram> {
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

    pub(super) fn reading(&self, access: Access, filter: Option<Expression>, output: Output) -> Arc<ReadProgram> {
        let table = Arc::clone(&self.layout);
        Arc::new(ReadProgram {
            table,
            access,
            filter,
            output,
            reads_parameters: false,
            is_strict: false,
            marks_missing: false,
        })
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

#[test]
fn inserted_rows_are_read_once_they_are_committed() {
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
fn a_failed_statement_leaves_the_statements_before_it() {
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
fn a_row_that_stays_as_it_is_counts_as_matched_only() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.update(Access::AllRows, vec![(K, constant(20))]);
    let reply = harness.execute(NONE, true, &program, table.everything());
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 3, 2));
    harness.check_idle();
}

#[test]
fn assignments_see_what_those_before_them_left() {
    let (mut harness, table) = filled(1, 1, 1);
    let program = table.update(Access::PrimaryKeys, vec![(K, constant(77)), (U, table.column(K))]);
    let reply = harness.execute(NONE, true, &program, table.keys(&[1]));
    assert_eq!(reply.error, None);
    assert_eq!(table.rows(&mut harness), [(1, 77, Some(77))]);
    harness.check_idle();
}

#[test]
fn deleted_rows_are_gone_and_their_keys_free() {
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
fn a_writer_waits_for_the_lock_and_sees_what_its_holder_left() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &program, table.keys(&[1]));
    let second = harness.begin_execute(1, NONE, true, &program, table.keys(&[1]));
    let third = harness.begin_execute(0, NONE, true, &program, table.keys(&[1]));
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
fn a_waiting_writer_passes_over_a_row_that_was_deleted_meanwhile() {
    let (mut harness, table) = filled(1, 1, 3);
    let first = harness.execute(NONE, false, &table.delete(Access::PrimaryKeys), table.keys(&[2]));
    let second = harness.begin_execute(1, NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1, 2, 3]));
    let third = harness.begin_execute(1, NONE, true, &table.add_to(K, RANGES, 1), table.range(0, 100));
    harness.run();
    harness.end(first.transaction, Ending::Commit);
    for waiting in [second, third] {
        assert_eq!(harness.statement(waiting).map(|reply| (reply.error, reply.changed)), Some((None, 2)));
    }
    assert_eq!(table.rows(&mut harness), [(1, 12, Some(1)), (3, 32, Some(3))]);
    harness.check_idle();
}

#[test]
fn an_insert_waits_for_whoever_holds_the_key() {
    for (ending, is_duplicate) in [(Ending::Commit, true), (Ending::Rollback, false)] {
        let (mut harness, table) = started(1, 2);
        let first = harness.execute(NONE, false, &table.insert(), table.images(&[(1, 10, None)]));
        let second = harness.begin_execute(1, NONE, true, &table.insert(), table.images(&[(1, 20, None)]));
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
            let second = harness.begin_execute(1, NONE, true, &table.add_to(K, access, 1), rows);
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
    let second = harness.begin_execute(1, NONE, true, &table.add_to(K, RANGES, 1), table.range(65, 75));
    harness.run();
    assert!(harness.statement(second).is_none(), "a row that moves into the range is waited for");
    harness.end(first.transaction, Ending::Commit);
    assert_eq!(harness.statement(second).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    assert_eq!(table.rows(&mut harness)[0], (1, 71, Some(1)));
    harness.check_idle();
}

#[test]
fn inserted_rows_take_no_room_in_the_lock_table_until_somebody_wants_them() {
    let (mut harness, table) = started(1, 1);
    let first = harness.execute(NONE, false, &table.insert(), table.images(&[(1, 10, None), (2, 20, None)]));
    assert_eq!(harness.status(StatusTable::Locks).len(), 0);
    let second = harness.begin_execute(1, NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[2]));
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
    let writer = harness.begin_execute(0, NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[1]));
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
    let waiting = harness.begin_execute(0, second.transaction, false, &program, table.keys(&[3, 1]));
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
fn a_circle_of_waits_loses_exactly_one_member() {
    for members in [2, 3, 5] {
        for seed in 0..20 {
            let (mut harness, table) = filled(1, 2, members);
            let program = table.add_to(K, Access::PrimaryKeys, 1);
            let transactions: Vec<TransactionId> = (0..members)
                .map(|member| {
                    let operation =
                        harness.begin_execute((member % 2) as u16, NONE, false, &program, table.keys(&[member + 1]));
                    harness.run();
                    harness.statement(operation).expect("the row is free").transaction
                })
                .collect();
            harness.shuffle(seed);
            let mut operations = Vec::new();
            for (member, transaction) in transactions.iter().enumerate() {
                let next = (member as i64 + 1) % members + 1;
                operations.push(harness.begin_execute(0, *transaction, false, &program, table.keys(&[next])));
                // Each waits before the next one comes, so that one of them closes the circle.
                harness.run();
            }
            let open = transactions.iter().copied().zip(operations).collect();
            let victims = end_circle(&mut harness, open);
            assert_eq!(victims, 1);
            harness.check_idle();
        }
    }
}

/// Commits every transaction whose statement is answered, until all are; gives how many were victims of a deadlock.
fn end_circle(harness: &mut Harness, mut open: BTreeMap<TransactionId, OperationId>) -> usize {
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
        assert!(open.len() < before, "a circle of waits stands still");
    }
    victims
}

#[test]
fn circles_that_close_at_once_are_always_broken() {
    for seed in 0..60 {
        let (mut harness, table) = filled(1, 2, 4);
        let program = table.add_to(K, Access::PrimaryKeys, 1);
        let transactions: Vec<TransactionId> = (0..4)
            .map(|member| {
                let operation =
                    harness.begin_execute(member as u16 % 2, NONE, false, &program, table.keys(&[member + 1]));
                harness.run();
                harness.statement(operation).expect("the row is free").transaction
            })
            .collect();
        harness.shuffle(seed);
        let mut open = BTreeMap::new();
        for (member, transaction) in transactions.iter().enumerate() {
            let next = (member as i64 + 1) % 4 + 1;
            open.insert(*transaction, harness.begin_execute(0, *transaction, false, &program, table.keys(&[next])));
        }
        harness.run();
        let victims = end_circle(&mut harness, open);
        assert_eq!(victims, 1, "seed {seed}");
        harness.check_idle();
    }
}

#[test]
fn a_commit_over_partitions_is_seen_whole_or_not_at_all() {
    for seed in 0..40 {
        let (mut harness, table) = filled(1, 4, 8);
        harness.shuffle(seed);
        let program = table.add_to(K, Access::AllRows, 1);
        let operation = harness.begin_execute(0, NONE, true, &program, table.everything());
        // A read at the stable number of every moment: all rows have been raised the same number of times.
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

/// What the partitions hold at a snapshot, without delivering anything.
fn seen_at(harness: &mut Harness, table: &SampleTable, program: &Arc<ReadProgram>, snapshot: CommitNumber) -> Vec<Row> {
    harness.peek(program, table.everything(), snapshot).iter().flat_map(|output| table.rows_of(output)).collect()
}

#[test]
fn a_unique_key_that_exists_is_refused_in_the_words_of_the_table() {
    let (mut harness, table) = filled(1, 2, 3);
    let reply =
        harness.execute(NONE, true, &table.insert_unique(), table.images(&[(8, 80, Some(8)), (9, 90, Some(2))]));
    let error = reply.error.expect("the unique key exists");
    assert_eq!((error.code, &*error.message), (ErrorCode::DuplicateEntry, "Duplicate entry '2' for key 't.u'"));
    assert_eq!(table.rows(&mut harness).len(), 3);
    // NULL is no key.
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(8, 80, None), (9, 90, None)]));
    assert_eq!(reply.error, None);
    harness.check_idle();
}

#[test]
fn unique_keys_follow_their_rows() {
    let (mut harness, table) = filled(1, 2, 3);
    let update = table.add_to(U, Access::PrimaryKeys, 100);
    assert_eq!(harness.execute(NONE, true, &update, table.keys(&[2])).error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(4, 40, Some(2))]));
    assert_eq!(reply.error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(5, 50, Some(102))]));
    assert!(reply.error.is_some());
    assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2])).error, None);
    let reply = harness.execute(NONE, true, &table.insert_unique(), table.images(&[(5, 50, Some(102))]));
    assert_eq!(reply.error, None);
    assert_eq!(entries(&harness, &table), [Some(1), Some(2), Some(3), Some(102)].len());
    harness.check_idle();
}

fn entries(harness: &Harness, table: &SampleTable) -> usize {
    let partitions = 0..table.entries.definition.partition_count;
    let count = |index| {
        let partition = PartitionId { table: table.entries.definition.id, index };
        harness.ldm(harness.owner(partition)).committed_rows(partition).map_or(0, |rows| rows.len())
    };
    partitions.map(count).sum()
}

#[test]
fn a_row_moves_to_the_partition_of_its_new_key_with_its_entries() {
    let (mut harness, table) = filled(1, 4, 20);
    let reply = harness.execute(NONE, true, &table.add_to(ID, Access::AllRows, 1000), table.everything());
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 20, 20));
    let expected: Vec<Row> = (1..=20).map(|id| (id + 1000, id * 10, Some(id))).collect();
    assert_eq!(table.rows(&mut harness), expected);
    assert_eq!(entries(&harness, &table), 20);
    // The keys are where reads look for them.
    let read = table.reading(Access::PrimaryKeys, None, Output::Images);
    let stable = harness.stable();
    let ids: Vec<i64> = (1001..=1020).collect();
    let found = harness.read(&read, table.keys(&ids), stable, NONE);
    assert_eq!(found.iter().map(|reply| reply.rows).sum::<u32>(), 20);
    harness.check_idle();
}

#[test]
fn a_moved_row_that_meets_another_undoes_the_statement() {
    let (mut harness, table) = filled(1, 4, 20);
    let before = table.rows(&mut harness);
    let program = table.update(Access::PrimaryKeys, vec![(ID, constant(7))]);
    for id in [1, 2, 3, 4, 5] {
        let reply = harness.execute(NONE, true, &program, table.keys(&[id]));
        let error = reply.error.expect("row 7 exists");
        assert_eq!(&*error.message, "Duplicate entry '7' for key 't.PRIMARY'");
    }
    assert_eq!(table.rows(&mut harness), before);
    assert_eq!(entries(&harness, &table), 20);
    harness.check_idle();
}

#[test]
fn rollback_takes_everything_back() {
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
fn chains_of_two_and_three_hold_the_same_rows() {
    for nodes in [2, 3] {
        for seed in 0..10 {
            let (mut harness, table) = filled(nodes, 2, 30);
            harness.shuffle(seed);
            let updates =
                harness.begin_execute(0, NONE, true, &table.add_to(K, Access::AllRows, 1), table.everything());
            let inserts = harness.begin_execute(1, NONE, true, &table.insert_unique(), table.images(&[(100, 1, None)]));
            let deletes = harness.begin_execute(1, NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[5, 6]));
            harness.run();
            let mut failed = 0;
            for operation in [updates, inserts, deletes] {
                let reply = harness.statement(operation).expect("every statement is answered");
                // The parts of two statements may lock the rows of two partitions in different orders.
                failed += usize::from(reply.error.is_some_and(|error| error.code == ErrorCode::Deadlock));
            }
            assert!(failed <= 1, "seed {seed}");
            // Ids of deleted rows are used again, at the backups too.
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
fn a_row_that_comes_again_and_goes_in_one_transaction_is_nothing_to_backups() {
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
fn superseded_versions_are_purged() {
    let (mut harness, table) = filled(1, 2, 100);
    for _ in 0..3 {
        let reply = harness.execute(NONE, true, &table.add_to(K, Access::AllRows, 1), table.everything());
        assert_eq!(reply.error, None);
    }
    let queued = |harness: &Harness| -> u64 {
        (0..2)
            .map(|index| harness.ldm(harness.owner(PartitionId { table: table.layout.definition.id, index })))
            .map(|ldm| ldm.purge_queue())
            .sum()
    };
    assert!(queued(&harness) > 0);
    harness.advance(Duration::from_millis(100));
    assert_eq!(queued(&harness), 0);
    harness.check_idle();
}

#[test]
fn what_is_committed_is_in_the_redo_stream() {
    let (mut harness, table) = filled(1, 2, 4);
    harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(&[2]));
    let undone = harness.execute(NONE, false, &table.insert(), table.images(&[(9, 9, None)]));
    harness.end(undone.transaction, Ending::Rollback);
    harness.advance(Duration::from_millis(50));
    let (mut puts, mut deletes) = (0, 0);
    for record in RedoRecords::new(&harness.delivery.appended) {
        let record = record.expect("a whole record");
        for operation in record.operations() {
            match operation {
                junctor_storage::redo::RedoOperation::Put { .. } => puts += 1,
                junctor_storage::redo::RedoOperation::Delete { .. } => deletes += 1,
            }
        }
    }
    assert_eq!((puts, deletes), (8, 2), "four rows and their entries, one of each deleted");
    harness.check_idle();
}

#[test]
fn backups_record_how_many_partitions_a_commit_has() {
    let (mut harness, table) = started(2, 2);
    let rows: Vec<Row> = (0..20).map(|id| (id, id, None)).collect();
    assert_eq!(harness.execute(NONE, true, &table.insert(), table.images(&rows)).error, None);
    harness.advance(Duration::from_millis(50));
    let records = RedoRecords::new(&harness.delivery.appended).map(|record| record.expect("a whole record").header);
    let counts: Vec<u32> = records.map(|header| header.participant_count).collect();
    assert_eq!(counts, [2; 4], "two partitions at two nodes");
    harness.check_idle();
}

/// The address of an ldm that knows no transaction, and a transaction.
fn unknown_transaction() -> (Harness, Address, TransactionId) {
    let (harness, table) = started(1, 1);
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    (harness, owner, TransactionId::new(0, 77))
}

#[test]
fn a_transaction_that_is_not_known_here_cannot_be_prepared() {
    let (mut harness, owner, transaction) = unknown_transaction();
    let tc = Address::new(owner.node, Module::Tc, 0);
    let prepare = PrepareTransaction { transaction, reply_to: tc };
    harness.send(owner, tc, Signal::Ldm(LdmSignal::PrepareTransaction(prepare)));
    assert!(harness.step());
    match harness.delivery.take_next().map(|reply| reply.signal) {
        Some(Signal::Tc(TcSignal::PrepareTransactionReply(reply))) => {
            assert_eq!(reply.error.expect("its writes are lost").code, ErrorCode::TemporaryFailure);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[should_panic(expected = "a participant knows the transaction")]
fn a_transaction_that_is_not_known_here_is_not_committed_with_writes() {
    let (mut harness, owner, transaction) = unknown_transaction();
    let (reply_to, number) = (Address::new(owner.node, Module::Tc, 0), CommitNumber(1));
    let commit = CommitTransaction { transaction, reply_to, number, participants: 1, has_written: true };
    harness.send(owner, reply_to, Signal::Ldm(LdmSignal::CommitTransaction(commit)));
    harness.run();
}

#[test]
#[should_panic(expected = "a backup holds the images")]
fn a_backup_without_the_images_does_not_commit() {
    let (mut harness, table) = started(2, 1);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let primary = harness.owner(partition);
    let backup = Address::new(NodeId(2), Module::Ldm, 0);
    let (transaction, number) = (TransactionId::new(0, 77), CommitNumber(1));
    let apply = ApplyReplica { transaction, partition, primary, place: 1, number, participants: 1 };
    harness.send(backup, primary, Signal::Ldm(LdmSignal::ApplyReplica(apply)));
    harness.run();
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
    let expected = junctor_model::value::Decimal { mantissa: i128::from(total), scale: 0 };
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
fn a_statement_whose_client_left_ends_at_once() {
    let (mut harness, table) = filled(1, 2, 3);
    let program = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &program, table.keys(&[1]));
    let second = harness.execute(NONE, false, &program, table.keys(&[2]));
    let waiting = harness.begin_execute(0, second.transaction, false, &program, table.keys(&[1]));
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
fn any_order_of_delivery_keeps_sums_and_leaves_nothing_behind() {
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
                    harness.begin_execute((step % 2) as u16, NONE, false, &program, table.keys(&[from])),
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
                            let second = harness.begin_execute(0, reply.transaction, false, &program, parts);
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
fn a_reader_inside_delays_the_writer_and_sends_other_readers_to_the_owner() {
    let (mut harness, table) = filled(1, 1, 3);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let guard = Arc::clone(&harness.guards[&partition]);
    let stable = harness.stable();
    let read = table.reading(Access::AllRows, None, Output::Images);
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let (_, slots) = junctor_storage::guard::ReadGroup::new(1);
    let slot = std::mem::replace(&mut harness.spare_slot, slots.into_iter().next().expect("one slot"));
    let inside = guard.read(&slot, |store| {
        let written = harness.begin_execute(0, NONE, true, &write, table.keys(&[1]));
        for _ in 0..50 {
            harness.step();
        }
        assert!(guard.is_write_pending() && harness.statement(written).is_none());
        // The query block finds the guard closed; the owner answers in its place.
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
fn writers_are_held_back_while_redo_is_not_written() {
    let (mut harness, table) = filled(1, 1, 3);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    harness.ldm_mut(owner).set_redo_bytes_waiting_max(0);
    harness.advance(Duration::from_millis(20));
    harness.delivery.holds_files = true;
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    assert_eq!(harness.execute(NONE, true, &write, table.keys(&[1])).error, None);
    let held = harness.begin_execute(0, NONE, true, &write, table.keys(&[1]));
    harness.advance(Duration::from_millis(50));
    assert!(harness.statement(held).is_none());
    harness.delivery.holds_files = false;
    for (to, done) in std::mem::take(&mut harness.delivery.held_files) {
        harness.send(to, to, done);
    }
    harness.advance(Duration::from_millis(50));
    assert_eq!(harness.statement(held).map(|reply| (reply.error, reply.changed)), Some((None, 1)));
    harness.check_idle();
}

#[test]
fn locks_and_memory_are_told() {
    let (mut harness, table) = filled(1, 2, 3);
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let first = harness.execute(NONE, false, &write, table.keys(&[1]));
    let second = harness.begin_execute(0, NONE, true, &write, table.keys(&[1]));
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

fn number(value: &Value) -> u64 {
    match value {
        Value::UInt(value) => *value,
        other => panic!("{other:?}"),
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
    assert_eq!((refused.code, open.len()), (ErrorCode::TooManyTransactions, TRANSACTIONS_MAX / 2));
    for transaction in open {
        harness.end(transaction, Ending::Commit);
    }
    assert_eq!(harness.execute(NONE, true, &lock, table.keys(&[1])).error, None);
    harness.check_idle();
}

#[test]
fn a_locking_read_locks_what_it_reads_and_sees_the_newest() {
    let (mut harness, table) = filled(1, 2, 20);
    let open = harness.execute(NONE, false, &table.lock(LockMode::Exclusive, RANGES), table.range(50, 100));
    let mut rows: Vec<Row> = open.outputs.iter().flat_map(|output| table.rows_of(output)).collect();
    rows.sort_unstable();
    let expected: Vec<Row> = (5..=10).map(|id| (id, id * 10, Some(id))).collect();
    assert_eq!((rows, open.matched, open.changed, open.written.len()), (expected, 6, 0, 0));
    let inside = harness.begin_execute(1, NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[7]));
    let outside = harness.begin_execute(1, NONE, true, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[11]));
    harness.run();
    assert!(harness.statement(inside).is_none() && harness.statement(outside).is_some());
    let taken = harness.stable();
    assert_eq!(harness.end(open.transaction, Ending::Commit).error, None);
    assert!(harness.statement(inside).is_some());
    assert_eq!(harness.stable().0, taken.0 + 1, "a transaction that only locked takes no number");
    harness.check_idle();
}

#[test]
fn a_wait_that_was_given_up_blocks_nobody_any_more() {
    let (mut harness, table) = filled(1, 1, 3);
    let write = table.add_to(K, Access::PrimaryKeys, 1);
    let holder = harness.execute(NONE, false, &write, table.keys(&[1]));
    let first = harness.execute(NONE, false, &write, table.keys(&[2]));
    let second = harness.execute(NONE, false, &write, table.keys(&[3]));
    let gives_up = harness.begin_execute(0, first.transaction, false, &write, table.keys(&[1]));
    harness.run();
    harness.advance(Duration::from_seconds(30));
    let behind = harness.begin_execute(0, second.transaction, false, &write, table.keys(&[1]));
    harness.run();
    harness.advance(Duration::from_seconds(21));
    let reply = harness.statement(gives_up).expect("time is up");
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::LockWaitTimeout));
    // The one that was behind waits for the holder alone, so waiting for it closes no circle.
    let waiting = harness.begin_execute(0, first.transaction, false, &write, table.keys(&[3]));
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
fn the_memory_of_deleted_rows_goes_back_to_the_pool() {
    let (mut harness, table) = started(1, 1);
    for batch in 0..60 {
        let rows: Vec<Row> = (0..100).map(|row| (batch * 100 + row, row, None)).collect();
        assert_eq!(harness.execute(NONE, true, &table.insert(), table.images(&rows)).error, None);
    }
    let bytes = |harness: &mut Harness| -> u64 {
        harness.status(StatusTable::MemoryUsage).iter().map(|row| number(&row[6])).sum()
    };
    let full = bytes(&mut harness);
    // Every eleventh row stays, so that no page is empty by itself.
    let ids: Vec<i64> = (0..6000).filter(|id| id % 11 != 0).collect();
    for ids in ids.chunks(200) {
        assert_eq!(harness.execute(NONE, true, &table.delete(Access::PrimaryKeys), table.keys(ids)).error, None);
    }
    harness.advance(Duration::from_seconds(2));
    let left = bytes(&mut harness);
    assert!(left * 2 < full, "{left} of {full} bytes are still in use");
    assert_eq!(table.rows(&mut harness).len(), 6000 - ids.len());
    harness.check_idle();
}

#[test]
fn a_node_that_stops_writes_what_was_committed() {
    let (mut harness, table) = started(1, 1);
    harness.execute(NONE, true, &table.insert(), table.images(&[(1, 10, None)]));
    assert!(harness.delivery.appended.is_empty());
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    harness.send(owner, owner, Signal::World(WorldEvent::Stopping));
    harness.run();
    assert_eq!(RedoRecords::new(&harness.delivery.appended).filter(Result::is_ok).count(), 1);
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
        waiting.push(harness.begin_execute(waiter as u16 % 2, NONE, true, &program, table.keys(&[1])));
        let spent = steps(&mut harness);
        assert!(spent < 20, "waiter {waiter} cost {spent} signals");
    }
    // Whoever holds something may close a circle, and looks once at each of those before it.
    let holding = harness.execute(NONE, false, &program, table.keys(&[2]));
    let last = harness.begin_execute(0, holding.transaction, false, &program, table.keys(&[1]));
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
fn a_circle_through_a_queue_is_found_in_any_order() {
    for seed in 0..200 {
        let (mut harness, table) = filled(1, 2, 4);
        let program = table.add_to(K, Access::PrimaryKeys, 1);
        let begin = |harness: &mut Harness, tc: u16, row: i64| {
            let operation = harness.begin_execute(tc, NONE, false, &program, table.keys(&[row]));
            harness.run();
            harness.statement(operation).expect("the row is free").transaction
        };
        let holder = begin(&mut harness, 0, 1);
        let second = begin(&mut harness, 1, 2);
        harness.shuffle(seed);
        // Those that hold nothing stand between the two that make the circle.
        let mut open = Vec::new();
        for waiter in 0..4 {
            open.push(harness.begin_execute(waiter % 2, NONE, true, &program, table.keys(&[1])));
        }
        let closing = harness.begin_execute(1, second, false, &program, table.keys(&[1]));
        let circle = harness.begin_execute(0, holder, false, &program, table.keys(&[2]));
        harness.run();
        let victims = end_circle(&mut harness, BTreeMap::from([(holder, circle), (second, closing)]));
        assert_eq!(victims, 1, "seed {seed}");
        for operation in open {
            assert_eq!(harness.statement(operation).map(|reply| reply.error), Some(None), "seed {seed}");
        }
        harness.check_idle();
    }
}

#[test]
fn a_row_that_moved_behind_the_scan_that_waits_for_it_is_not_missed() {
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
        let waiting = harness.begin_execute(0, NONE, true, &raise, parts);
        harness.run();
        assert!(harness.statement(waiting).is_none());
        // From 20 to a place that the scan has passed.
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
