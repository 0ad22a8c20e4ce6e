//! Alterations of several steps: the data plane that they use, and what interrupts them.

use std::collections::VecDeque;

use junctor_gateway::Gateway;
use junctor_gateway::route::ReadRule;
use junctor_model::foreign_key::ReferentialAction;
use junctor_model::id::{CommitNumber, StatementNumber, TransactionId};
use junctor_signals::end_transaction::EndTransactionReply;
use junctor_signals::execute_statement::{ExecuteStatement, ExecuteStatementReply};
use junctor_signals::read_rows::{ReadRows, ReadRowsReply};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::snapshot::{ActiveSnapshots, SnapshotRegistry, SnapshotWord};

use super::alter_table::{add_key, foreign_key};
use super::*;

/// The data plane, in which all tables are empty.
#[derive(Default)]
pub(in super::super) struct DataPlane {
    pub(super) replies: VecDeque<SqlSignal>,
    pub(super) is_held: bool,
    /// Errors of the next statements.
    errors: VecDeque<Box<Error>>,
    transactions: u64,
}

/// The gateway of main.
pub(super) fn gateway(own: Address, directory: &Directory) -> Gateway {
    let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
    let word = SnapshotWord::claim(Arc::new(SnapshotRegistry::new(sequence, 1)), 0).expect("the word is free");
    let readers = vec![Vec::new(); 2];
    Gateway::new(own, directory, (ReadRule::Owner, &readers), ActiveSnapshots::new(word, 64), 64)
}

impl DataPlane {
    /// Keeps all replies until `Stage::release_rows`.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    pub(super) fn next_reply(&mut self) -> Option<SqlSignal> {
        if self.is_held { None } else { self.replies.pop_front() }
    }

    pub(super) fn take(&mut self, signal: Signal) {
        self.replies.push_back(match signal {
            Signal::Ldm(LdmSignal::ReadRows(ReadRows { operation, partition, booked_cost, input, output, .. })) => {
                SqlSignal::ReadRowsReply(ReadRowsReply {
                    operation,
                    partition,
                    rows: 0,
                    service_ns: 0,
                    booked_cost,
                    input,
                    output,
                    resume: None,
                    diagnostics: None,
                    error: None,
                })
            }
            Signal::Tc(TcSignal::ExecuteStatement(ExecuteStatement { operation, mut transaction, .. })) => {
                if !transaction.is_some() {
                    self.transactions += 1;
                    transaction = TransactionId::new(1, 0, self.transactions);
                }
                let error = self.errors.pop_front();
                // A deadlock ends the transaction.
                if error.as_ref().is_some_and(|error| error.code == ErrorCode::Deadlock) {
                    transaction = TransactionId::default();
                }
                SqlSignal::ExecuteStatementReply(ExecuteStatementReply {
                    operation,
                    transaction,
                    statement: StatementNumber(1),
                    matched: 0,
                    changed: 0,
                    diagnostics: None,
                    outputs: Vec::new(),
                    written: Vec::new(),
                    error,
                })
            }
            Signal::Tc(TcSignal::InterruptStatement(interrupt)) => {
                let is_meant = |reply: &&mut SqlSignal| {
                    matches!(reply, SqlSignal::ExecuteStatementReply(it) if it.operation == interrupt.operation)
                };
                if let Some(SqlSignal::ExecuteStatementReply(reply)) = self.replies.iter_mut().find(is_meant) {
                    reply.error = Some(Error::query_interrupted());
                }
                return;
            }
            Signal::Tc(TcSignal::EndTransaction(end)) => {
                SqlSignal::EndTransactionReply(EndTransactionReply { operation: end.operation, error: None })
            }
            other => panic!("{other:?}"),
        });
    }
}

impl Stage {
    pub(super) fn send_reply(&mut self, reply: SqlSignal) -> Vec<(Address, Signal)> {
        let mut outbox = Outbox::for_test(self.own);
        self.main.handle_reply(reply, self.sql, &mut self.context.at(self.now), &mut outbox);
        outbox.take_sent()
    }

    /// Lets the alterations go on that wait for rows.
    pub(super) fn release_rows(&mut self) {
        self.rows.is_held = false;
        self.run_all(Vec::new());
    }

    /// Delivers the next reply that is held.
    pub(super) fn release_one(&mut self) {
        let reply = self.rows.replies.pop_front().expect("an alteration waits for rows");
        let sent = self.send_reply(reply);
        let queue = sent.into_iter().filter_map(|(to, signal)| self.answer(to, signal)).collect();
        self.run_all(queue);
    }

    /// The error numbers of the changes that have ended, by operation.
    pub(super) fn ended_changes(&mut self) -> BTreeMap<u64, u16> {
        let replies = self.replies.drain(..).map(|reply| match reply {
            SqlSignal::ChangeSchemaReply(reply) => (reply.operation.0, errno(reply.error)),
            other => panic!("{other:?}"),
        });
        replies.collect()
    }

    pub(super) fn cancel(&mut self, operation: u64) {
        let cancel = CancelSchemaChange { operation: OperationId(operation), reply_to: self.sql };
        self.run(MainSignal::CancelSchemaChange(cancel));
    }

    pub(super) fn nothing_is_held(&self) {
        assert!(self.main.held_by_alterations().iter().all(|(_, count)| *count == 0));
        assert_eq!(self.main.table_locks_held(), 0);
        self.check();
    }
}

/// A database with the tables `p` and `c`.
fn stage() -> (Stage, TableId) {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    assert_eq!(stage.create("p", vec![primary()]), None);
    assert_eq!(stage.create("c", vec![primary()]), None);
    let child = stage.table("c").id;
    (stage, child)
}

/// An alteration with every step.
fn everything() -> Alteration {
    Alteration {
        add_indexes: vec![index("k", IndexKind::Ordered, 1), unique("u")],
        add_foreign_keys: vec![foreign_key("k", "p")],
        needs_parents: true,
        ..Alteration::default()
    }
}

#[test]
fn an_alteration_that_is_cancelled_in_any_stage_leaves_no_index() {
    // The number of replies of sessions and of the data plane after which the alteration is cancelled.
    let mut cancelled = 0;
    for replies in 0.. {
        let (mut stage, child) = stage();
        let before = stage.table("c").indexes;
        (stage.in_use, stage.rows.is_held) = (true, true);
        stage.ask(OperationId(100), alter(child, everything()));
        for _ in 0..replies {
            match stage.blocked.keys().copied().find(|_| stage.main.table_locks_held() == 0) {
                Some(change) => stage.leave(change),
                None if !stage.rows.replies.is_empty() => stage.release_one(),
                None => break,
            }
        }
        let is_over = !stage.replies.is_empty();
        stage.cancel(100);
        stage.in_use = false;
        stage.release_rows();
        let waiting: Vec<u64> = stage.blocked.keys().copied().collect();
        waiting.into_iter().for_each(|change| stage.leave(change));
        stage.release_rows();
        stage.nothing_is_held();
        let ended = stage.ended_changes();
        if is_over {
            assert_eq!((ended[&100], stage.table("c").indexes.len()), (0, 3), "after {replies} replies");
            break;
        }
        assert_eq!((ended[&100], stage.table("c").indexes), (1317, before), "after {replies} replies");
        // The cancelled alteration leaves nothing that makes the next one fail.
        assert_eq!(stage.change(alter(child, everything())).error, None);
        cancelled += 1;
    }
    assert!(cancelled >= 7, "{cancelled}");
}

#[test]
fn a_stop_undoes_the_alteration_that_runs() {
    let (mut stage, child) = stage();
    let before = stage.table("c").indexes;
    stage.rows.hold();
    stage.ask(OperationId(100), add_index(child, unique("u")));
    stage.happen(WorldEvent::Stopping);
    stage.release_rows();
    assert_eq!((stage.ended_changes()[&100], stage.table("c").indexes), (1053, before));
    stage.nothing_is_held();
}

#[test]
fn a_batch_is_repeated_after_deadlocks_up_to_a_bound() {
    let deadlock = || Error::new(ErrorCode::Deadlock, "Deadlock found");
    for (deadlocks, expected) in [(1, 0), (16, 0), (17, 1213)] {
        let (mut stage, child) = stage();
        stage.rows.errors.extend((0..deadlocks).map(|_| deadlock()));
        assert_eq!(errno(stage.change(add_index(child, unique("u"))).error), expected);
        assert_eq!(stage.table("c").indexes.len(), if expected == 0 { 2 } else { 1 });
        stage.nothing_is_held();
    }
    let (mut stage, child) = stage();
    stage.rows.errors.push_back(Error::new(ErrorCode::TableFull, "The table is full"));
    assert_eq!(errno(stage.change(add_index(child, unique("u"))).error), 1114);
    stage.nothing_is_held();
}

#[test]
fn other_tables_change_while_an_index_is_filled() {
    let (mut stage, child) = stage();
    let other = ConnectionId(2);
    stage.rows.hold();
    stage.ask(OperationId(100), add_index(child, unique("u")));
    // Related tables change too, because new indexes do not affect them.
    let parent = stage.table("p").id;
    stage.ask_as(other, OperationId(101), add_index(parent, index("k", IndexKind::Ordered, 1)));
    stage.ask_as(other, OperationId(102), create_table("e", vec![primary()], false));
    assert_eq!(stage.ended_changes(), BTreeMap::from([(101, 0), (102, 0)]));
    // Another alteration fills its index at the same time.
    stage.ask_as(other, OperationId(103), add_index(parent, unique("u")));
    stage.ask_as(ConnectionId(3), OperationId(104), drop_table("c"));
    assert!(stage.replies.is_empty());
    stage.release_rows();
    assert_eq!(stage.ended_changes(), BTreeMap::from([(100, 0), (103, 0), (104, 0)]));
    stage.nothing_is_held();
}

#[test]
fn a_related_table_changes_only_when_the_filling_is_over() {
    let (mut stage, child) = stage();
    assert_eq!(
        stage
            .change(SchemaChange::AlterTable { table: child, alteration: add_key(true), expressions: Arc::default() })
            .error,
        None
    );
    stage.rows.hold();
    stage.ask(OperationId(100), add_index(child, unique("u")));
    let columns = vec![primary(), index("k", IndexKind::Ordered, 1)];
    let SchemaChange::CreateTable { mut definition, if_not_exists, auto_increment } = create_table("e", columns, false)
    else {
        unreachable!()
    };
    let mut key = foreign_key("e", "c");
    key.on_delete = ReferentialAction::NoAction;
    definition.foreign_keys = vec![key];
    // It would give the filled table another version.
    let create = SchemaChange::CreateTable { definition, if_not_exists, auto_increment };
    stage.ask_as(ConnectionId(2), OperationId(101), create);
    assert!(stage.replies.is_empty());
    stage.release_rows();
    assert_eq!(stage.ended_changes(), BTreeMap::from([(100, 0), (101, 0)]));
    stage.nothing_is_held();
}
