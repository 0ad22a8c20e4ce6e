//! Tests of tc by itself: the test plays every other block.

use std::sync::Arc;

use junctor_kernel::context::TestContext;
use junctor_kernel::{Address, Buffer, Directory, NodeId, NodeLayout, Outbox, Time, WorldEvent};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{CommitNumber, ConnectionId, Epoch, PartitionId, StatementNumber, TransactionId};
use junctor_signals::Module;
use junctor_signals::block_tables::NoteTableWait;
use junctor_signals::change_schema::{Catalog, PublishCatalog};
use junctor_signals::commit_transaction::{
    AwaitStable, CommitStable, CommitTransactionReply, PrepareTransactionReply, TransactionPart, UndoTransactionReply,
};
use junctor_signals::end_transaction::{CommitDurability, EndTransaction, Ending};
use junctor_signals::execute_statement::{ExecuteStatement, ExecuteStatementReply, InterruptStatement, Parts, Reading};
use junctor_signals::input::InputReader;
use junctor_signals::lock_wait::{Blocker, CancelReason, LockWaitEnded, LockWaitStarted};
use junctor_signals::program::{Access, RowProtocol, WriteAction, WriteProgram};
use junctor_signals::read_rows::OperationId;
use junctor_signals::undo_statements::UndoStatements;
use junctor_signals::write_rows::{FollowUp, WriteRows, WriteRowsReply};
use junctor_signals::{LdmSignal, Signal, SqlSignal, TcSignal};
use junctor_storage::commit_sequence::CommitSequence;

use super::TcBlock;
use crate::tests::harness::{INDEX_U, SampleTable, insert_program};

mod durable;
mod foreign_key;
mod numbering;

/// One of two tc instances. The test plays everything around it.
struct Stage {
    tc: TcBlock,
    context: TestContext,
    own: Address,
    sequence: Arc<CommitSequence>,
    table: SampleTable,
    now: Time,
    timeout_ends: bool,
    durability: CommitDurability,
    /// Rows that statements have changed when they begin to wait.
    changed: u32,
}

fn ldm(instance: u16) -> Address {
    Address::new(NodeId(1), Module::Ldm, instance)
}

fn backup(instance: u16) -> Address {
    Address::new(NodeId(2), Module::Ldm, instance)
}

fn sql() -> Address {
    Address::new(NodeId(1), Module::Sql, 0)
}

impl Stage {
    /// Partition `n` of both tables is at ldm `n`. With backups, chains have two members.
    fn new(has_backups: bool) -> Stage {
        junctor_kernel::invariant::panic_on_failure();
        let layout =
            NodeLayout::new(&[&[(Module::Tc, 0)], &[(Module::Tc, 1)], &[(Module::Ldm, 0)], &[(Module::Ldm, 1)]]);
        let directory = Directory::new(NodeId(1), &layout).expect("a layout without gaps");
        let own = directory.address(Module::Tc, 0);
        let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
        let table = SampleTable::new(2);
        let mut catalog = Catalog::default();
        for layout in [&table.layout, &table.entries] {
            catalog.dictionary.put_table(layout.definition.clone());
            for index in 0..2 {
                let chain = if has_backups { vec![ldm(index), backup(index)] } else { vec![ldm(index)] };
                catalog.distribution.put(PartitionId { table: layout.definition.id, index }, chain);
            }
        }
        let mut stage = Stage {
            tc: TcBlock::new(own, &directory, Arc::clone(&sequence)),
            context: TestContext::new(own, &layout, 1).expect("a layout without gaps"),
            own,
            sequence,
            table,
            now: Time(0),
            timeout_ends: false,
            durability: CommitDurability::Disk,
            changed: 0,
        };
        stage.publish(catalog);
        stage
    }

    fn publish(&mut self, catalog: Catalog) {
        let (operation, epoch) = (OperationId(0), Epoch(0));
        let publish = PublishCatalog { operation, reply_to: self.own, epoch, catalog: Arc::new(catalog) };
        assert_eq!(self.send(self.own, TcSignal::PublishCatalog(publish)).len(), 1);
    }

    fn send(&mut self, from: Address, signal: TcSignal) -> Vec<(Address, Signal)> {
        let mut outbox = Outbox::for_test(self.own);
        self.tc.handle(signal, from, &mut self.context.at(self.now), &mut outbox);
        outbox.take_sent()
    }

    /// Sends a statement on these partitions. Returns the parts sent to the owners.
    fn execute(
        &mut self,
        transaction: TransactionId,
        autocommit: bool,
        partitions: &[u16],
    ) -> Vec<(Address, WriteRows)> {
        writes(self.request(transaction, autocommit, partitions))
    }

    /// Sends a statement on these partitions. Returns all that tc sends.
    fn request(&mut self, transaction: TransactionId, autocommit: bool, partitions: &[u16]) -> Vec<(Address, Signal)> {
        let part = |index: &u16| (*index, Buffer::new());
        let parts = match partitions {
            [index] => Parts::One(*index, Buffer::new()),
            many => Parts::Many(many.iter().map(part).collect()),
        };
        let program = WriteProgram::new(&self.table.layout, WriteAction::Insert, Access::PrimaryKeys);
        let unique_entries = if autocommit { Vec::new() } else { vec![(INDEX_U, Arc::clone(&self.table.entries))] };
        let request = ExecuteStatement {
            operation: OperationId(1),
            reply_to: sql(),
            epoch: Epoch(0),
            transaction,
            autocommit,
            durability: self.durability,
            protocol: RowProtocol::Text,
            lock_wait_ms: 1000,
            timeout_ends: self.timeout_ends,
            reading: Reading::default(),
            savepoint: StatementNumber(0),
            program: Arc::new(WriteProgram { unique_entries, ..program }),
            parts,
        };
        self.send(sql(), TcSignal::ExecuteStatement(request))
    }

    fn written(&mut self, (from, write): &(Address, WriteRows), follow_ups: Vec<FollowUp>) -> Vec<(Address, Signal)> {
        self.send(*from, TcSignal::WriteRowsReply(reply_of(write, follow_ups, None)))
    }

    fn failed(&mut self, (from, write): &(Address, WriteRows), code: ErrorCode) -> Vec<(Address, Signal)> {
        let error = Some(Error::new(code, "why"));
        self.send(*from, TcSignal::WriteRowsReply(reply_of(write, Vec::new(), error)))
    }

    fn end(&mut self, transaction: TransactionId, ending: Ending) -> Vec<(Address, Signal)> {
        let request = EndTransaction {
            operation: OperationId(2),
            reply_to: sql(),
            transaction,
            ending,
            durability: self.durability,
        };
        self.send(sql(), TcSignal::EndTransaction(request))
    }

    fn prepared(
        &mut self,
        from: Address,
        transaction: TransactionId,
        error: Option<Box<Error>>,
    ) -> Vec<(Address, Signal)> {
        let reply = PrepareTransactionReply { transaction, epoch: Epoch(0), from, chunk_blocks: 0, error };
        self.send(from, TcSignal::PrepareTransactionReply(reply))
    }

    fn committed(&mut self, from: Address, transaction: TransactionId) -> Vec<(Address, Signal)> {
        self.applied(TransactionPart::Rows, from, transaction)
    }

    fn applied(&mut self, part: TransactionPart, from: Address, transaction: TransactionId) -> Vec<(Address, Signal)> {
        self.send(
            from,
            TcSignal::CommitTransactionReply(CommitTransactionReply { transaction, from, part, position: 0 }),
        )
    }

    fn undone(&mut self, from: Address, transaction: TransactionId) -> Vec<(Address, Signal)> {
        self.undone_in(Epoch(0), from, transaction)
    }

    fn undone_in(&mut self, epoch: Epoch, from: Address, transaction: TransactionId) -> Vec<(Address, Signal)> {
        let reply = UndoTransactionReply { transaction, epoch, from, log_blocks: 0 };
        self.send(from, TcSignal::UndoTransactionReply(reply))
    }

    fn waits(&mut self, transaction: TransactionId, sequence: u64, blocker: TransactionId) -> Vec<(Address, Signal)> {
        let partition = PartitionId { table: self.table.layout.definition.id, index: 0 };
        let blockers = vec![Blocker { transaction: blocker, ahead: 0 }];
        let (row, changed) = (None, self.changed);
        let signal = LockWaitStarted {
            transaction,
            at: ldm(0),
            sequence,
            partition,
            row,
            changed,
            has_other_requests: true,
            blockers,
            are_gone: false,
        };
        let mut sent = self.send(ldm(0), TcSignal::LockWaitStarted(signal));
        sent.retain(|(_, signal)| !matches!(signal, Signal::Sql(SqlSignal::NoteLockWait(_))));
        sent
    }
}

fn reply_of(write: &WriteRows, follow_ups: Vec<FollowUp>, error: Option<Box<Error>>) -> WriteRowsReply {
    let is_alone = follow_ups.is_empty();
    WriteRowsReply {
        operation: write.operation,
        transaction: write.transaction,
        partition: write.partition,
        matched: 1,
        changed: u32::from(error.is_none()),
        diagnostics: None,
        newest: CommitNumber(0),
        input: Buffer::new(),
        output: Buffer::new(),
        follow_ups: follow_ups.into_boxed_slice(),
        is_part: false,
        is_long: false,
        log_blocks: 0,
        is_committed: write.one_phase && error.is_none() && is_alone,
        error,
    }
}

fn writes(sent: Vec<(Address, Signal)>) -> Vec<(Address, WriteRows)> {
    let write = |(to, signal)| match signal {
        Signal::Ldm(LdmSignal::WriteRows(write)) => (to, write),
        other => panic!("{other:?}"),
    };
    sent.into_iter().map(write).collect()
}

fn names(sent: &[(Address, Signal)]) -> Vec<(u16, &'static str)> {
    sent.iter().map(|(to, signal)| (to.instance, junctor_kernel::Signal::name(signal))).collect()
}

fn answer(sent: Vec<(Address, Signal)>) -> ExecuteStatementReply {
    match sent.into_iter().next() {
        Some((_, Signal::Sql(SqlSignal::ExecuteStatementReply(reply)))) => reply,
        other => panic!("{other:?}"),
    }
}

/// No transaction: a statement with this id begins one.
const NONE: TransactionId = TransactionId(0);

#[test]
fn one_part_without_entries_and_backups_commits_by_itself() {
    let mut stage = Stage::new(false);
    let write = stage.execute(NONE, true, &[1]).remove(0);
    assert!(write.1.one_phase && write.0 == ldm(1));
    // The ldm takes the number and marks it as applied, while an earlier number is not applied.
    let earlier = stage.sequence.take(1).expect("a number");
    let number = stage.sequence.take(0).expect("a number");
    stage.sequence.mark_applied(number, &mut |_, _| panic!("an earlier number is not applied")).expect("it was taken");
    let reply = WriteRowsReply { newest: number, ..reply_of(&write.1, Vec::new(), None) };
    assert!(stage.send(ldm(1), TcSignal::WriteRowsReply(reply)).is_empty(), "not before it is stable");
    stage.sequence.mark_applied(earlier, &mut |_, _| {}).expect("it was taken");
    let reply = answer(stage.send(stage.own, TcSignal::CommitStable(CommitStable { number })));
    assert_eq!((reply.error, reply.changed, reply.transaction), (None, 1, NONE));
    // A number may become stable before the reply of the partition arrives.
    let write = stage.execute(NONE, true, &[0]).remove(0);
    let number = stage.sequence.take(0).expect("a number");
    stage.sequence.mark_applied(number, &mut |_, _| {}).expect("it was taken");
    assert!(stage.send(stage.own, TcSignal::CommitStable(CommitStable { number })).is_empty());
    let reply = WriteRowsReply { newest: number, ..reply_of(&write.1, Vec::new(), None) };
    assert_eq!(answer(stage.send(ldm(0), TcSignal::WriteRowsReply(reply))).error, None);
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn no_number_is_taken_before_every_participant_is_prepared() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, true, &[0, 1]);
    assert!(parts.iter().all(|(_, write)| !write.one_phase));
    let transaction = parts[0].1.transaction;
    assert!(stage.written(&parts[0], Vec::new()).is_empty());
    let prepares = stage.written(&parts[1], Vec::new());
    assert_eq!(names(&prepares), [(0, "PrepareTransaction"), (1, "PrepareTransaction")]);
    assert!(stage.prepared(ldm(0), transaction, None).is_empty());
    assert_eq!(stage.sequence.taken(), CommitNumber(0));
    let commits = stage.prepared(ldm(1), transaction, None);
    assert_eq!(names(&commits), [(0, "CommitTransaction"), (1, "CommitTransaction")]);
    assert_eq!(stage.sequence.taken(), CommitNumber(1));
    assert!(stage.committed(ldm(1), transaction).is_empty());
    assert_eq!(stage.sequence.stable(), CommitNumber(0));
    assert_eq!(answer(stage.committed(ldm(0), transaction)).error, None);
    assert_eq!(stage.sequence.stable(), CommitNumber(1));
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn a_prepare_that_fails_undoes_everything_and_takes_no_number() {
    let mut stage = Stage::new(true);
    let parts = stage.execute(NONE, true, &[1]);
    assert!(!parts[0].1.one_phase, "the partition has a backup");
    let transaction = parts[0].1.transaction;
    assert_eq!(names(&stage.written(&parts[0], Vec::new())), [(1, "PrepareTransaction")]);
    let undo = stage.prepared(ldm(1), transaction, Some(Error::new(ErrorCode::TableFull, "full")));
    assert_eq!(undo.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [ldm(1), backup(1)]);
    assert_eq!(names(&undo), [(1, "UndoTransaction"), (1, "UndoTransaction")]);
    assert!(stage.undone(backup(1), transaction).is_empty());
    let reply = answer(stage.undone(ldm(1), transaction));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::TableFull));
    assert_eq!((stage.sequence.taken(), stage.tc.transactions_open()), (CommitNumber(0), 0));
}

#[test]
fn replies_to_orders_of_an_earlier_epoch_count_for_these_orders_only() {
    let mut stage = Stage::new(true);
    let parts = stage.execute(NONE, false, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    let parts = stage.execute(transaction, false, &[1]);
    assert_eq!(names(&stage.failed(&parts[0], ErrorCode::DuplicateEntry)), [(1, "UndoTransaction")]);
    stage.tc.start_epoch(Epoch(1));
    let reply = answer(stage.undone(ldm(1), transaction));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::DuplicateEntry));
    for (_, signal) in stage.end(transaction, Ending::Rollback) {
        assert!(matches!(signal, Signal::Ldm(LdmSignal::UndoTransaction(undo)) if undo.epoch == Epoch(1)));
    }
    for at in [ldm(0), ldm(1)] {
        assert!(stage.undone(at, transaction).is_empty(), "an answer to an earlier order");
    }
    assert!(stage.undone_in(Epoch(1), ldm(0), transaction).is_empty());
    assert_eq!(stage.undone_in(Epoch(1), ldm(1), transaction).len(), 1);
    assert_eq!(stage.tc.transactions_open(), 0);
    // The transaction has ended, and a participant repeats an answer of the epoch before.
    assert!(stage.undone(ldm(0), transaction).is_empty());
}

/// The receivers of the orders that end a transaction, each with the part that a commit ends.
fn orders(sent: Vec<(Address, Signal)>) -> Vec<(Address, Option<TransactionPart>)> {
    let part = |signal| match signal {
        Signal::Ldm(LdmSignal::CommitTransaction(commit)) => Some(commit.part),
        Signal::Ldm(LdmSignal::UndoTransaction(_)) => None,
        other => panic!("{other:?}"),
    };
    sent.into_iter().map(|(to, signal)| (to, part(signal))).collect()
}

#[test]
fn backups_of_written_partitions_apply_a_commit_and_it_is_stable_when_all_have() {
    let mut stage = Stage::new(true);
    let parts = stage.execute(NONE, true, &[0, 1]);
    let transaction = parts[0].1.transaction;
    assert!(stage.written(&parts[0], Vec::new()).is_empty());
    // A change of the schema hides the partitions. The transaction still knows the backups.
    stage.publish(Catalog::default());
    let locked = WriteRowsReply { changed: 0, ..reply_of(&parts[1].1, Vec::new(), None) };
    let prepares = stage.send(ldm(1), TcSignal::WriteRowsReply(locked));
    assert_eq!(names(&prepares), [(0, "PrepareTransaction")]);
    let commits = orders(stage.prepared(ldm(0), transaction, None));
    let (rows, locks, images) = (TransactionPart::Rows, TransactionPart::Locks, TransactionPart::Images);
    assert_eq!(commits, [(ldm(0), Some(rows)), (ldm(1), Some(locks)), (backup(0), Some(images))]);
    assert!(stage.applied(locks, ldm(1), transaction).is_empty());
    assert!(stage.committed(ldm(0), transaction).is_empty());
    assert_eq!(stage.sequence.stable(), CommitNumber(0));
    assert_eq!(answer(stage.applied(images, backup(0), transaction)).error, None);
    assert_eq!((stage.sequence.stable(), stage.tc.transactions_open()), (CommitNumber(1), 0));
}

#[test]
fn backups_get_no_order_to_undo_before_the_prepare() {
    let mut stage = Stage::new(true);
    let parts = stage.execute(NONE, false, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    assert_eq!(orders(stage.end(transaction, Ending::Rollback)), [(ldm(0), None)]);
}

#[test]
fn a_commit_is_stable_while_others_still_release_their_locks() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, true, &[0, 1]);
    let transaction = parts[0].1.transaction;
    assert!(stage.written(&parts[0], Vec::new()).is_empty());
    let locked = WriteRowsReply { changed: 0, ..reply_of(&parts[1].1, Vec::new(), None) };
    let commits = stage.send(ldm(1), TcSignal::WriteRowsReply(locked));
    assert_eq!(names(&commits), [(0, "CommitTransaction"), (1, "CommitTransaction")]);
    assert!(stage.committed(ldm(0), transaction).is_empty(), "the record stays until all locks are released");
    assert_eq!(stage.sequence.stable(), CommitNumber(1));
    assert_eq!(answer(stage.applied(TransactionPart::Locks, ldm(1), transaction)).error, None);
    assert_eq!(stage.tc.transactions_open(), 0);
    // In the other order, locks are released first, and nothing is stable before the write is applied.
    let parts = stage.execute(NONE, true, &[0, 1]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    let locked = WriteRowsReply { changed: 0, ..reply_of(&parts[1].1, Vec::new(), None) };
    stage.send(ldm(1), TcSignal::WriteRowsReply(locked));
    assert!(stage.applied(TransactionPart::Locks, ldm(1), transaction).is_empty());
    assert_eq!(stage.sequence.stable(), CommitNumber(1));
    assert_eq!(answer(stage.committed(ldm(0), transaction)).error, None);
    assert_eq!((stage.sequence.stable(), stage.tc.transactions_open()), (CommitNumber(2), 0));
}

#[test]
fn participants_that_wrote_are_counted_and_those_with_locks_are_not() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0, 1]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    let locked = WriteRowsReply { changed: 0, ..reply_of(&parts[1].1, Vec::new(), None) };
    stage.send(ldm(1), TcSignal::WriteRowsReply(locked));
    for (to, signal) in stage.end(transaction, Ending::Commit) {
        match signal {
            Signal::Ldm(LdmSignal::CommitTransaction(commit)) => {
                let part = if to == ldm(0) { TransactionPart::Rows } else { TransactionPart::Locks };
                assert_eq!((commit.participants, commit.part), (1, part));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_reply_waits_until_the_commits_it_shows_are_stable() {
    let mut stage = Stage::new(false);
    let [foreign, own] = [1, 0].map(|owner| stage.sequence.take(owner).expect("a number"));
    for (number, failed, autocommit) in [(foreign, false, false), (foreign, true, false), (own, false, true)] {
        let write = stage.execute(NONE, autocommit, &[1]).remove(0);
        let error = failed.then(|| Error::new(ErrorCode::DuplicateEntry, "there"));
        let reply = WriteRowsReply { newest: number, changed: 0, ..reply_of(&write.1, Vec::new(), error) };
        let sent = stage.send(ldm(1), TcSignal::WriteRowsReply(reply));
        // tc asks the tc that took the number. It is notified of its own numbers anyway.
        match number == foreign {
            true => assert_eq!(names(&sent), [(1, "AwaitStable")]),
            false => assert!(sent.is_empty()),
        }
    }
    let mark = |stage: &Stage, number| stage.sequence.mark_applied(number, &mut |_, _| {}).expect("it was taken");
    mark(&stage, foreign);
    let stable = CommitStable { number: foreign };
    let sent = stage.send(stage.own, TcSignal::CommitStable(stable));
    assert_eq!(names(&sent), [(0, "ExecuteStatementReply"), (1, "UndoTransaction")]);
    mark(&stage, own);
    let sent = stage.send(stage.own, TcSignal::CommitStable(CommitStable { number: own }));
    assert_eq!(names(&sent), [(0, "ExecuteStatementReply")]);
    // A number that has already become stable is not waited for.
    let write = stage.execute(NONE, false, &[1]).remove(0);
    let reply = WriteRowsReply { newest: own, ..reply_of(&write.1, Vec::new(), None) };
    let sent = stage.send(ldm(1), TcSignal::WriteRowsReply(reply));
    assert_eq!(names(&sent), [(0, "ExecuteStatementReply")]);
}

#[test]
fn a_commit_takes_its_number_without_waiting_for_what_it_has_seen() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, true, &[0, 1]);
    let seen = stage.sequence.take(1).expect("a number");
    for (at, write) in &parts {
        let reply = WriteRowsReply { newest: seen, ..reply_of(write, Vec::new(), None) };
        stage.send(*at, TcSignal::WriteRowsReply(reply));
    }
    let transaction = parts[0].1.transaction;
    stage.prepared(ldm(0), transaction, None);
    let commits = stage.prepared(ldm(1), transaction, None);
    assert_eq!(names(&commits), [(0, "CommitTransaction"), (1, "CommitTransaction")]);
}

#[test]
fn a_stable_number_wakes_the_waiters_of_lower_numbers() {
    let mut stage = Stage::new(false);
    let numbers: Vec<CommitNumber> = (0..3).map(|_| stage.sequence.take(0).expect("a number")).collect();
    for (counter, number) in numbers.iter().copied().enumerate() {
        let transaction = TransactionId::new(1, 1, counter as u64);
        assert!(stage.send(stage.own, TcSignal::AwaitStable(AwaitStable { number, transaction })).is_empty());
    }
    for number in &numbers {
        stage.sequence.mark_applied(*number, &mut |_, _| {}).expect("it was taken");
    }
    let woken = |stage: &mut Stage, number| {
        let sent = stage.send(stage.own, TcSignal::CommitStable(CommitStable { number }));
        let number = |(_, signal): (Address, Signal)| match signal {
            Signal::Tc(TcSignal::CommitStable(stable)) => stable.number,
            other => panic!("{other:?}"),
        };
        sent.into_iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(woken(&mut stage, numbers[1]), numbers[..2]);
    assert_eq!(woken(&mut stage, numbers[0]), []);
    assert_eq!(woken(&mut stage, numbers[2]), numbers[2..]);
}

#[test]
fn another_tc_is_notified_when_a_number_taken_here_is_stable() {
    let mut stage = Stage::new(false);
    let number = stage.sequence.take(0).expect("a number");
    let waiters = 40;
    for counter in 0..waiters {
        let transaction = TransactionId::new(1, 1, counter);
        assert!(stage.send(stage.own, TcSignal::AwaitStable(AwaitStable { number, transaction })).is_empty());
    }
    stage.sequence.mark_applied(number, &mut |_, _| {}).expect("it was taken");
    let mut told = 0;
    let mut signals = vec![TcSignal::CommitStable(CommitStable { number })];
    while let Some(signal) = signals.pop() {
        for (to, signal) in stage.send(stage.own, signal) {
            match signal {
                Signal::Tc(TcSignal::CommitStable(stable)) if to == stage.own => {
                    signals.push(TcSignal::CommitStable(stable));
                }
                Signal::Tc(TcSignal::CommitStable(stable)) => {
                    assert_eq!((to.instance, stable.number), (1, number));
                    told += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(told, waiters);
    // A late request is answered immediately.
    let transaction = TransactionId::new(1, 1, 0);
    let sent = stage.send(stage.own, TcSignal::AwaitStable(AwaitStable { number, transaction }));
    assert_eq!(names(&sent), [(1, "CommitStable")]);
}

#[test]
fn numbers_of_other_instances_that_became_stable_are_told_to_them() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "CommitTransaction")]);
    let later = stage.sequence.take(1).expect("a number");
    stage.sequence.mark_applied(later, &mut |_, _| panic!("an earlier number is not applied")).expect("it was taken");
    let sent = stage.committed(ldm(0), transaction);
    assert_eq!(names(&sent), [(0, "EndTransactionReply"), (1, "CommitStable")]);
    assert_eq!(stage.sequence.stable(), later);
}

fn insert_entry(key: &[u8], shown: &str) -> FollowUp {
    FollowUp::InsertEntry { index: INDEX_U, key: key.to_vec(), row_reference: vec![0, 0], shown: shown.into() }
}

#[test]
fn entries_follow_the_rows_deletes_before_inserts_unless_the_key_is_the_same() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0]);
    let insert = |key: &[u8]| insert_entry(key, "7");
    let delete = |key: &[u8]| FollowUp::DeleteEntry { index: INDEX_U, key: key.to_vec() };
    // Key "a" is inserted and then deleted. The other entries are independent.
    let follow_ups = vec![insert(b"a"), delete(b"b"), insert(b"c"), delete(b"a"), delete(b"d")];
    let mut round = writes(stage.written(&parts[0], follow_ups));
    let mut kinds = Vec::new();
    let reply = loop {
        let is_insert = |(_, write): &(_, WriteRows)| matches!(write.program.action, WriteAction::Insert);
        kinds.push(round.iter().map(is_insert).collect::<Vec<_>>());
        assert!(round.iter().all(|(_, write)| write.partition.table == stage.table.entries.definition.id));
        let mut sent = Vec::new();
        for part in &round {
            sent = stage.written(part, Vec::new());
        }
        if matches!(sent[0].1, Signal::Sql(_)) {
            break answer(sent);
        }
        round = writes(sent);
    };
    assert!(kinds.len() == 3 && kinds.iter().all(|kinds| kinds.iter().all(|kind| *kind == kinds[0])), "{kinds:?}");
    assert_eq!(kinds.iter().map(|kinds| kinds[0]).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((reply.error, reply.matched, reply.changed), (None, 1, 1), "entries are not the user's rows");
    assert!(reply.written.len() > 1, "reads of the entries must see them");
}

#[test]
fn follow_ups_may_arrive_in_portions() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0]);
    let insert = |key: &[u8]| insert_entry(key, &String::from_utf8_lossy(key));
    for key in [b"a", b"b"] {
        let told = WriteRowsReply { is_part: true, changed: 0, ..reply_of(&parts[0].1, vec![insert(key)], None) };
        assert!(stage.send(ldm(0), TcSignal::WriteRowsReply(told)).is_empty(), "the rows are not all written");
    }
    let entries = writes(stage.written(&parts[0], vec![insert(b"c")]));
    let images = |write: &WriteRows| {
        let mut reader = InputReader::new(&write.input);
        std::iter::from_fn(|| reader.next_image().map(|row| row.key.key[0])).collect::<Vec<u8>>()
    };
    assert_eq!(entries.iter().map(|(_, write)| images(write).len()).sum::<usize>(), 3);
    // The last entry of a partition is refused, and the error names it.
    let (last, others) = entries.split_last().expect("a part");
    for part in others {
        stage.written(part, Vec::new());
    }
    let keys = images(&last.1);
    let refused = Error::new(ErrorCode::DuplicateEntry, "of the hidden table");
    let reply = WriteRowsReply { matched: keys.len() as u32 - 1, ..reply_of(&last.1, Vec::new(), Some(refused)) };
    stage.send(last.0, TcSignal::WriteRowsReply(reply));
    stage.undone(ldm(0), last.1.transaction);
    let error = answer(stage.undone(ldm(1), last.1.transaction)).error.expect("refused");
    let shown = char::from(*keys.last().expect("an image"));
    assert!(error.message.contains(&format!("'{shown}' for key 't.u'")), "{}", error.message);
}

#[test]
fn what_very_many_rows_ask_for_is_sent_in_parts_of_bounded_length() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0]);
    let count = 40_000u32;
    let key_of = |number: u32| [number.to_be_bytes().as_slice(), &[7; 40]].concat();
    let insert = |number: u32| insert_entry(&key_of(number), &number.to_string());
    for first in (0..count).step_by(1000) {
        let told = reply_of(&parts[0].1, (first..first + 1000).map(insert).collect(), None);
        assert!(stage.send(ldm(0), TcSignal::WriteRowsReply(WriteRowsReply { is_part: true, ..told })).is_empty());
    }
    let entries = writes(stage.written(&parts[0], Vec::new()));
    let images = |write: &WriteRows| {
        let mut reader = InputReader::new(&write.input);
        std::iter::from_fn(|| reader.next_image().map(|_| ())).count()
    };
    assert!(entries.len() > 3 && entries.iter().all(|(_, write)| write.input.len() < 1_100_000), "{}", entries.len());
    assert_eq!(entries.iter().map(|(_, write)| images(write)).sum::<usize>(), count as usize);
    let replies: Vec<Vec<_>> = entries.iter().map(|part| stage.written(part, Vec::new())).collect();
    assert!(replies[..entries.len() - 1].iter().all(Vec::is_empty), "every part is waited for");
    assert_eq!(answer(replies.into_iter().next_back().expect("a reply")).error, None);
}

#[test]
fn a_failed_statement_is_undone_where_it_was_and_the_transaction_goes_on() {
    let mut stage = Stage::new(false);
    let first = stage.execute(NONE, false, &[0]);
    let transaction = first[0].1.transaction;
    let reply = answer(stage.written(&first[0], Vec::new()));
    assert_eq!(reply.transaction, transaction);
    let second = stage.execute(transaction, false, &[0, 1]);
    assert_eq!(second[0].1.statement.0, 2);
    // The other part in flight is interrupted.
    let stopped = stage.failed(&second[0], ErrorCode::OutOfRange);
    assert_eq!(names(&stopped), [(0, "InterruptWrites"), (1, "InterruptWrites")]);
    let undo = stage.failed(&second[1], ErrorCode::QueryInterrupted);
    for (_, signal) in &undo {
        let Signal::Ldm(LdmSignal::UndoTransaction(undo)) = signal else { panic!("{signal:?}") };
        assert_eq!(undo.newer_than.0, 1);
    }
    stage.undone(ldm(0), transaction);
    let reply = answer(stage.undone(ldm(1), transaction));
    assert_eq!((reply.transaction, reply.error.map(|error| error.code)), (transaction, Some(ErrorCode::OutOfRange)));
    assert_eq!(names(&stage.end(transaction, Ending::Rollback)), [(0, "UndoTransaction"), (1, "UndoTransaction")]);
}

#[test]
fn going_back_to_a_savepoint_undoes_later_statements_everywhere_and_keeps_the_locks() {
    let mut stage = Stage::new(false);
    let first = stage.execute(NONE, false, &[0]);
    let transaction = first[0].1.transaction;
    assert_eq!(answer(stage.written(&first[0], Vec::new())).statement, StatementNumber(1));
    let second = stage.execute(transaction, false, &[1]);
    assert_eq!(answer(stage.written(&second[0], Vec::new())).statement, StatementNumber(2));
    for newer_than in [StatementNumber(1), StatementNumber(0)] {
        let request = UndoStatements { operation: OperationId(7), reply_to: sql(), transaction, newer_than };
        let undo = stage.send(sql(), TcSignal::UndoStatements(request));
        assert_eq!(names(&undo), [(0, "UndoTransaction"), (1, "UndoTransaction")]);
        for (_, signal) in &undo {
            let Signal::Ldm(LdmSignal::UndoTransaction(undo)) = signal else { panic!("{signal:?}") };
            assert_eq!((undo.newer_than, undo.ends), (newer_than, false));
        }
        assert!(stage.undone(ldm(1), transaction).is_empty(), "the other participant has not answered");
        let sent = stage.undone(ldm(0), transaction);
        let [(_, Signal::Sql(SqlSignal::UndoStatementsReply(reply)))] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(reply.operation, OperationId(7));
    }
    let third = stage.execute(transaction, false, &[0]);
    assert_eq!(third[0].1.statement.0, 3, "no number is used twice");
    stage.written(&third[0], Vec::new());
    assert_eq!(names(&stage.end(transaction, Ending::Rollback)), [(0, "UndoTransaction"), (1, "UndoTransaction")]);
}

#[test]
fn the_end_of_a_client_that_left_follows_the_undo_to_its_savepoint() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    let newer_than = StatementNumber(0);
    let request = UndoStatements { operation: OperationId(7), reply_to: sql(), transaction, newer_than };
    assert_eq!(stage.send(sql(), TcSignal::UndoStatements(request)).len(), 1);
    assert!(stage.end(transaction, Ending::Rollback).is_empty());
    let sent = stage.undone(ldm(0), transaction);
    assert_eq!(names(&sent), [(0, "UndoStatementsReply"), (0, "UndoTransaction")]);
    assert_eq!(names(&stage.undone(ldm(0), transaction)), [(0, "EndTransactionReply")]);
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn a_wait_in_vain_ends_the_transaction_if_it_was_asked_so() {
    for timeout_ends in [false, true] {
        let mut stage = Stage { timeout_ends, ..Stage::new(false) };
        let parts = stage.execute(NONE, false, &[0]);
        let transaction = parts[0].1.transaction;
        stage.written(&parts[0], Vec::new());
        let parts = stage.execute(transaction, false, &[0]);
        let undo = stage.failed(&parts[0], ErrorCode::LockWaitTimeout);
        let [(_, Signal::Ldm(LdmSignal::UndoTransaction(undo)))] = &undo[..] else { panic!("{undo:?}") };
        assert_eq!((undo.newer_than.0, undo.ends), if timeout_ends { (0, true) } else { (1, false) });
        let reply = answer(stage.undone(ldm(0), transaction));
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::LockWaitTimeout));
        assert_eq!(reply.transaction, if timeout_ends { NONE } else { transaction });
    }
}

#[test]
fn a_statement_that_is_stopped_gives_up_its_waits_and_is_undone() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0, 1]);
    let transaction = parts[0].1.transaction;
    stage.waits(transaction, 1, TransactionId::new(1, 0, 1 << 40));
    let stop = |operation| InterruptStatement { operation: OperationId(operation), reply_to: sql() };
    assert!(stage.send(sql(), TcSignal::InterruptStatement(stop(9))).is_empty(), "another operation is meant");
    let sent = stage.send(sql(), TcSignal::InterruptStatement(stop(1)));
    assert_eq!(names(&sent), [(0, "CancelWait"), (0, "InterruptWrites"), (1, "InterruptWrites")]);
    // A wait that was not known yet.
    assert_eq!(names(&stage.waits(transaction, 2, TransactionId::new(1, 0, 1 << 40))), [(0, "CancelWait")]);
    stage.failed(&parts[0], ErrorCode::QueryInterrupted);
    let undo = stage.written(&parts[1], Vec::new());
    assert_eq!(names(&undo), [(0, "UndoTransaction"), (1, "UndoTransaction")]);
    stage.undone(ldm(0), transaction);
    let reply = answer(stage.undone(ldm(1), transaction));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::QueryInterrupted));
    assert_eq!(reply.transaction, transaction, "the transaction goes on");
    assert!(stage.send(sql(), TcSignal::InterruptStatement(stop(1))).is_empty(), "it is over");
}

#[test]
fn what_has_committed_by_itself_is_not_stopped_any_more() {
    for committed in [true, false] {
        let mut stage = Stage::new(false);
        let write = stage.execute(NONE, true, &[1]).remove(0);
        let stop = InterruptStatement { operation: OperationId(1), reply_to: sql() };
        assert_eq!(names(&stage.send(sql(), TcSignal::InterruptStatement(stop))), [(1, "InterruptWrites")]);
        let number = stage.sequence.take(0).expect("a number");
        stage.sequence.mark_applied(number, &mut |_, _| {}).expect("it was taken");
        let sent = match committed {
            true => {
                let reply = WriteRowsReply { newest: number, ..reply_of(&write.1, Vec::new(), None) };
                stage.send(ldm(1), TcSignal::WriteRowsReply(reply))
            }
            false => {
                assert_eq!(names(&stage.failed(&write, ErrorCode::QueryInterrupted)), [(1, "UndoTransaction")]);
                stage.undone(ldm(1), write.1.transaction)
            }
        };
        assert_eq!(answer(sent).error.is_none(), committed);
        assert_eq!(stage.tc.transactions_open(), 0);
    }
}

#[test]
fn a_deadlock_ends_the_transaction_whatever_else_failed() {
    errors_that_end_the_transaction(ErrorCode::Deadlock);
}

#[test]
fn a_full_lock_table_ends_the_transaction_so_that_its_locks_are_free() {
    errors_that_end_the_transaction(ErrorCode::LockTableFull);
}

fn errors_that_end_the_transaction(code: ErrorCode) {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0, 1]);
    let transaction = parts[0].1.transaction;
    stage.failed(&parts[0], ErrorCode::QueryInterrupted);
    let undo = stage.failed(&parts[1], code);
    assert_eq!(names(&undo), [(0, "UndoTransaction"), (1, "UndoTransaction")]);
    stage.undone(ldm(0), transaction);
    let reply = answer(stage.undone(ldm(1), transaction));
    assert_eq!((reply.transaction, reply.error.map(|error| error.code)), (NONE, Some(code)));
    assert_eq!(stage.tc.transactions_open(), 0);
    // A request to end the transaction changes nothing.
    assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "EndTransactionReply")]);
    assert!(stage.execute_refused(transaction).error.is_some());
}

impl Stage {
    fn execute_refused(&mut self, transaction: TransactionId) -> ExecuteStatementReply {
        answer(self.execute_from(sql(), Epoch(0), transaction))
    }

    /// A statement of one partition from a sql block that knows this epoch.
    fn execute_from(&mut self, reply_to: Address, epoch: Epoch, transaction: TransactionId) -> Vec<(Address, Signal)> {
        let program = insert_program(&self.table.layout);
        let request = ExecuteStatement {
            operation: OperationId(1),
            reply_to,
            epoch,
            transaction,
            autocommit: false,
            durability: CommitDurability::Disk,
            protocol: RowProtocol::Text,
            lock_wait_ms: 1000,
            timeout_ends: false,
            reading: Reading::default(),
            savepoint: StatementNumber(0),
            program,
            parts: Parts::One(0, Buffer::new()),
        };
        self.send(reply_to, TcSignal::ExecuteStatement(request))
    }
}

#[test]
fn a_victim_is_cancelled_only_while_it_waits() {
    let mut stage = Stage::new(false);
    let first = stage.execute(NONE, false, &[0])[0].1.transaction;
    let second = stage.execute(NONE, false, &[0])[0].1.transaction;
    assert!(stage.waits(first, 1, second).is_empty());
    // The wait is over before the cycle closes.
    stage.send(ldm(0), TcSignal::LockWaitEnded(LockWaitEnded { transaction: first, at: ldm(0), sequence: 1 }));
    assert!(stage.waits(second, 2, first).is_empty());
    let sent = stage.waits(first, 3, second);
    let victim = first.max(second);
    let [(to, Signal::Ldm(LdmSignal::CancelWait(cancel)))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((*to, cancel.transaction, cancel.reason), (ldm(0), victim, CancelReason::Deadlock));
    assert_eq!(cancel.sequence, if victim == first { 3 } else { 2 });
}

#[test]
fn blockers_that_are_gone_close_no_cycle_and_the_others_do() {
    let mut stage = Stage::new(false);
    let [first, second, third] = [0; 3].map(|_| stage.execute(NONE, false, &[0])[0].1.transaction);
    let partition = PartitionId { table: stage.table.layout.definition.id, index: 0 };
    let report = |stage: &mut Stage, mut blockers: Vec<Blocker>, are_gone| {
        blockers.sort_unstable();
        let signal = LockWaitStarted {
            transaction: first,
            at: ldm(0),
            sequence: 1,
            partition,
            row: None,
            changed: 0,
            has_other_requests: true,
            blockers,
            are_gone,
        };
        stage.send(ldm(0), TcSignal::LockWaitStarted(signal))
    };
    let queued = Blocker { transaction: second, ahead: 5 };
    report(&mut stage, vec![queued, Blocker { transaction: third, ahead: 0 }], false);
    assert!(report(&mut stage, vec![queued], true).is_empty());
    assert!(stage.waits(second, 2, first).is_empty(), "the first one no longer waits for it");
    assert_eq!(names(&stage.waits(third, 3, first)), [(0, "CancelWait")]);
    // A wait that is over is not known any more.
    stage.send(ldm(0), TcSignal::LockWaitEnded(LockWaitEnded { transaction: first, at: ldm(0), sequence: 1 }));
    assert!(report(&mut stage, vec![queued], true).is_empty());
}

#[test]
fn the_session_is_told_of_the_first_wait_and_of_the_end_of_the_last() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0, 1]);
    let transaction = parts[0].1.transaction;
    let blockers = vec![Blocker { transaction: TransactionId::new(1, 0, 1 << 40), ahead: 0 }];
    let partition = PartitionId { table: stage.table.layout.definition.id, index: 0 };
    let (row, changed, has_other_requests) = (None, 0, false);
    let mut news = |sequence, begins| {
        let (at, blockers) = (ldm(0), blockers.clone());
        let signal = match begins {
            true => TcSignal::LockWaitStarted(LockWaitStarted {
                transaction,
                at,
                sequence,
                partition,
                row,
                changed,
                has_other_requests,
                blockers,
                are_gone: false,
            }),
            false => TcSignal::LockWaitEnded(LockWaitEnded { transaction, at, sequence }),
        };
        let sent = stage.send(ldm(0), signal);
        let of = |(to, signal): &(Address, Signal)| match signal {
            Signal::Sql(SqlSignal::NoteLockWait(note)) if *to == sql() => Some(note.waits),
            _ => None,
        };
        sent.iter().filter_map(of).collect::<Vec<bool>>()
    };
    assert_eq!(news(1, true), [true]);
    assert!(news(1, true).is_empty(), "other blockers of the same wait");
    assert!(news(2, true).is_empty(), "another part waits too");
    assert!(news(1, false).is_empty(), "the other part still waits");
    assert_eq!(news(2, false), [false]);
    assert_eq!(news(3, true), [true], "the statement waits again");
}

#[test]
fn probes_go_to_the_tc_of_the_blocker() {
    let mut stage = Stage::new(false);
    let own = stage.execute(NONE, false, &[0])[0].1.transaction;
    let foreign = TransactionId::new(1, 1, 77);
    let sent = stage.waits(own, 1, foreign);
    let [(to, Signal::Tc(TcSignal::ProbeDeadlock(probe)))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((to.instance, probe.initiator, probe.target.transaction), (1, own, foreign));
}

#[test]
fn every_part_may_wait_and_each_has_its_own_deadline() {
    let mut stage = Stage::new(false);
    let parts = stage.execute(NONE, false, &[0, 1]);
    let transaction = parts[0].1.transaction;
    let blocker = TransactionId::new(1, 0, 1 << 40);
    stage.waits(transaction, 1, blocker);
    stage.now = Time(600_000_000);
    stage.waits(transaction, 2, blocker);
    let fire = |stage: &mut Stage, now| {
        stage.now = now;
        let mut outbox = Outbox::for_test(stage.own);
        stage.tc.on_world(WorldEvent::Timer { token: 0 }, &mut stage.context.at(now), &mut outbox);
        let sequences = outbox.take_sent().into_iter().map(|(_, signal)| match signal {
            Signal::Ldm(LdmSignal::CancelWait(cancel)) => (cancel.sequence, cancel.reason),
            other => panic!("{other:?}"),
        });
        sequences.collect::<Vec<_>>()
    };
    assert_eq!(fire(&mut stage, Time(900_000_000)), []);
    assert_eq!(fire(&mut stage, Time(1_000_000_000)), [(1, CancelReason::Timeout)]);
    assert_eq!(fire(&mut stage, Time(1_100_000_000)), []);
    assert_eq!(fire(&mut stage, Time(1_700_000_000)), [(2, CancelReason::Timeout)]);
}

#[test]
fn a_waiter_for_tables_is_hastened_if_others_wait_for_its_rows() {
    let mut stage = Stage::new(false);
    let holder = TransactionId::new(1, 1, 77);
    let waiter = stage.execute(NONE, false, &[0])[0].1.transaction;
    let note = |waits| {
        let connection = ConnectionId(5);
        TcSignal::NoteTableWait(NoteTableWait { transaction: holder, connection, from: sql(), waits })
    };
    let hastened = |sent: Vec<(Address, Signal)>| {
        let is_it = |(to, signal): &(Address, Signal)| match signal {
            Signal::Sql(SqlSignal::HastenTransaction(signal)) => *to == sql() && signal.transaction == holder,
            _ => false,
        };
        sent.iter().filter(|sent| is_it(sent)).count()
    };
    // It does not matter which wait is reported first, nor whether the row's waiter comes directly or behind
    // another one.
    assert_eq!(hastened(stage.send(sql(), note(true))), 0, "nobody waits for it");
    assert_eq!(hastened(stage.waits(waiter, 1, TransactionId::new(1, 1, 78))), 0);
    assert_eq!(hastened(stage.waits(waiter, 1, holder)), 1);
    assert_eq!(hastened(stage.waits(waiter, 1, holder)), 0, "it is told once");
    assert_eq!(hastened(stage.send(sql(), note(true))), 1, "the next wait is another");
    assert_eq!(hastened(stage.send(sql(), note(false))), 0);
    assert_eq!(hastened(stage.waits(waiter, 1, holder)), 0, "it waits no more");
    stage.send(ldm(0), TcSignal::LockWaitEnded(LockWaitEnded { transaction: waiter, at: ldm(0), sequence: 1 }));
    assert_eq!(hastened(stage.send(sql(), note(true))), 0, "nobody waits for it any more");
    assert_eq!(hastened(stage.waits(waiter, 2, holder)), 1);
}
