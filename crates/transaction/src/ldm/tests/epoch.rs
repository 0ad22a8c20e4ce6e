//! Epochs of orders and images: the sender or the receiver has started the later one.

use junctor_signals::execute_statement::Reading;
use junctor_signals::program::RowProtocol;
use junctor_signals::start_epoch::{BeginEpoch, LateNodes};
use junctor_signals::write_rows::WriteRows;

use super::*;

const FIRST: Epoch = Epoch(1);

fn tc() -> Address {
    Address::new(NodeId(1), Module::Tc, 0)
}

pub(super) fn ldm(node: u8) -> Address {
    Address::new(NodeId(node), Module::Ldm, 0)
}

/// Two replicas of one partition, and a transaction that has added 1 to `k` of a row.
pub(super) fn with_open_update() -> (Harness, SampleTable, TransactionId) {
    let (mut harness, table) = filled(2, 1, 10);
    let reply = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[5]));
    assert_eq!(reply.error, None);
    (harness, table, reply.transaction)
}

#[test]
fn orders_and_images_of_a_later_epoch_wait_until_it_starts() {
    for late in [ldm(1), ldm(2)] {
        for ending in [Ending::Commit, Ending::Rollback] {
            let (mut harness, table, transaction) = with_open_update();
            for at in [tc(), ldm(1), ldm(2)].into_iter().filter(|at| *at != late) {
                harness.start_epoch(at, FIRST);
            }
            harness.begin_end(transaction, ending);
            harness.run();
            let waits = ending == Ending::Commit || late == ldm(1);
            assert_eq!(harness.transactions_open(), usize::from(waits), "{late} {ending:?}");
            assert_eq!(harness.ldm(late).work().parked, usize::from(waits));
            harness.start_epoch(late, FIRST);
            harness.run();
            let committed = i64::from(ending == Ending::Commit);
            assert_eq!(table.rows(&mut harness)[4].1, 50 + committed);
            harness.check_idle();
        }
    }
}

#[test]
fn a_prepare_of_an_earlier_epoch_is_dropped_and_a_rollback_is_obeyed() {
    let (mut harness, table, transaction) = with_open_update();
    harness.start_epoch(ldm(1), FIRST);
    harness.start_epoch(ldm(2), FIRST);
    let prepare = PrepareTransaction { transaction, epoch: Epoch(0), reply_to: tc() };
    harness.send(ldm(1), tc(), Signal::Ldm(LdmSignal::PrepareTransaction(prepare)));
    assert!(harness.step() && !harness.step(), "nobody answers");
    assert_eq!(harness.end(transaction, Ending::Rollback).error, None);
    assert_eq!(table.rows(&mut harness)[4].1, 50);
    harness.check_idle();
}

#[test]
fn images_of_an_earlier_epoch_are_dropped() {
    let (mut harness, table, transaction) = with_open_update();
    harness.start_epoch(ldm(2), FIRST);
    harness.begin_end(transaction, Ending::Commit);
    harness.run();
    assert_eq!(harness.ldm(ldm(2)).work(), LdmWork::default());
    assert_eq!(harness.transactions_open(), 1, "tc waits until the start of the epoch undoes the transaction");
    assert_eq!(table.rows(&mut harness)[4].1, 50);
}

fn send_commit_to_backup(harness: &mut Harness, transaction: TransactionId) {
    let part = TransactionPart::Images;
    // Main of node 2 passes the order, and gets the answer.
    let reply_to = Address::new(NodeId(2), Module::Main, 0);
    let (number, position, participants) = (CommitNumber(100), 0, 1);
    let commit = CommitTransaction { transaction, reply_to, number, position, participants, part };
    harness.send(ldm(2), reply_to, Signal::Ldm(LdmSignal::CommitTransaction(commit)));
}

fn lose_first_node(harness: &mut Harness) {
    begin_epoch_without(harness, ldm(2), (FIRST, 1));
}

/// Starts an epoch at a block, without this node.
fn begin_epoch_without(harness: &mut Harness, at: Address, (epoch, lost): (Epoch, u8)) {
    let begin = BeginEpoch {
        epoch,
        gone: [1 << lost, 0, 0, 0],
        late: LateNodes::default(),
        copies_at: None,
        admitted: Epoch(0),
        reply_to: None,
    };
    harness.send(at, at, Signal::Ldm(LdmSignal::BeginEpoch(begin)));
}

/// Delivers signals, except those to blocks that the test does not have or plays.
pub(super) fn deliver_to_backup(harness: &mut Harness) -> Vec<Signal> {
    let mut others = Vec::new();
    while let Some(next) = harness.delivery.in_flight.front() {
        if next.to == ldm(2) || next.to.module == Module::Query {
            harness.step();
        } else {
            others.extend(harness.delivery.in_flight.pop_front().map(|one| one.signal));
        }
    }
    others
}

/// A transaction with images in more partitions of the backup than one turn resolves. Its node is lost when
/// the backup has resolved some of them.
fn half_committed() -> (Harness, SampleTable, Vec<PartitionId>) {
    let (mut harness, table) = filled(3, 48, 300);
    let reply = harness.execute(NONE, false, &table.add_to(K, Access::AllRows, 1), table.everything());
    harness.begin_end(reply.transaction, Ending::Commit);
    while !harness.delivery.in_flight.iter().any(
        |one| matches!(&one.signal, Signal::Ldm(LdmSignal::CommitTransaction(commit)) if commit.part == TransactionPart::Images),
    ) {
        assert!(harness.step());
    }
    harness.delivery.in_flight.clear();
    let of_table = |partition: &PartitionId| partition.table == table.layout.definition.id;
    let partitions = harness.ldm(ldm(2)).partitions().into_iter().filter(of_table).collect();
    send_commit_to_backup(&mut harness, reply.transaction);
    assert!(harness.step());
    lose_first_node(&mut harness);
    // Before the next step of the commit.
    harness.delivery.in_flight.rotate_right(1);
    assert!(harness.step());
    (harness, table, partitions)
}

fn stored_rows(harness: &Harness, at: Address, partitions: &[PartitionId]) -> Vec<Vec<u8>> {
    let rows = |partition: &PartitionId| harness.ldm(at).committed_rows(*partition).expect("a partition");
    partitions.iter().flat_map(rows).map(|(_, image)| image).collect()
}

#[test]
fn what_is_decided_is_committed_at_a_backup_whose_tc_is_lost() {
    let (mut harness, table, partitions) = half_committed();
    assert!(partitions.len() > 16 && harness.ldm(ldm(2)).work().backed_up > 0);
    deliver_to_backup(&mut harness);
    assert_eq!(harness.ldm(ldm(2)).work(), LdmWork::default());
    let (before, _) = filled(3, 48, 300);
    let before = stored_rows(&before, ldm(2), &partitions);
    let after = stored_rows(&harness, ldm(2), &partitions);
    assert_eq!((before.len(), partitions[0].table), (after.len(), table.layout.definition.id));
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "every row has changed");
    harness.ldm(ldm(2)).check().expect("partitions are whole");
}

/// A statement of node 3, sent in this epoch, that adds 1 to `k` of a row.
pub(super) fn write_from_node_3(table: &SampleTable, partition: PartitionId, id: i64, epoch: Epoch) -> Signal {
    Signal::Ldm(LdmSignal::WriteRows(WriteRows {
        operation: OperationId(1),
        reply_to: Address::new(NodeId(3), Module::Tc, 0),
        epoch,
        transaction: TransactionId::new(3, 0, id as u64),
        statement: StatementNumber(1),
        first: StatementNumber(1),
        savepoint: StatementNumber(0),
        partition,
        protocol: RowProtocol::Text,
        reading: Reading::default(),
        one_phase: false,
        program: table.add_to(K, Access::PrimaryKeys, 1),
        input: table.keys(&[id]).remove(&partition.index).expect("an input"),
        output: Buffer::new(),
    }))
}

#[test]
fn a_backup_that_becomes_primary_takes_writes_once_no_image_is_left() {
    let (mut harness, table, partitions) = half_committed();
    let partition = *partitions.last().expect("a partition");
    let id = (1..300).find(|id| table.key(*id).0 == partition.index).expect("a row of the last partition");
    let third = Address::new(NodeId(3), Module::Tc, 0);
    harness.send(ldm(2), third, write_from_node_3(&table, partition, id, Epoch(0)));
    // The write is handled before the images are resolved.
    harness.delivery.in_flight.rotate_right(1);
    assert!(harness.step());
    assert_eq!(harness.ldm(ldm(2)).work().waiting_writes, 1);
    let answers = deliver_to_backup(&mut harness);
    let is_written = |signal: &&Signal| matches!(signal, Signal::Tc(TcSignal::WriteRowsReply(reply)) if reply.error.is_none() && reply.changed == 1);
    assert_eq!(answers.iter().filter(is_written).count(), 1, "{answers:?}");
    assert_eq!(harness.ldm(ldm(2)).work().backed_up, 0);
}

#[test]
fn a_primary_undoes_what_a_lost_tc_has_not_decided() {
    let (mut harness, table) = filled(3, 1, 10);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let before = stored_rows(&harness, ldm(1), &[partition]);
    let third = Address::new(NodeId(3), Module::Tc, 0);
    // A transaction of node 1 waits for the row of one of node 3, and another one of node 3 for its row.
    let add = table.add_to(K, Access::PrimaryKeys, 1);
    let open = harness.execute(NONE, false, &add, table.keys(&[6])).transaction;
    for id in [5, 6] {
        harness.send(ldm(1), third, write_from_node_3(&table, partition, id, Epoch(0)));
    }
    for _ in 0..2 {
        assert!(harness.step());
    }
    harness.delivery.in_flight.clear();
    let waiting = harness.begin_execute(TestSession::begin(1), &add, table.keys(&[5]));
    harness.run();
    assert_eq!(harness.ldm(ldm(1)).work().waiting_writes, 2);
    begin_epoch_without(&mut harness, ldm(1), (FIRST, 3));
    // A late signal of the lost node is dropped.
    harness.send(ldm(1), third, write_from_node_3(&table, partition, 7, Epoch(0)));
    while harness.statement(waiting).is_none() {
        harness.delivery.in_flight.retain(|one| one.to.node == NodeId(1));
        assert!(harness.step());
    }
    harness.delivery.in_flight.retain(|one| one.to.node == NodeId(1));
    harness.run();
    let work = harness.ldm(ldm(1)).work();
    assert_eq!((work.participants, work.waiting_writes, work.deferred), (2, 0, 0), "those of node 1: {open}");
    assert_eq!(stored_rows(&harness, ldm(1), &[partition]), before);
    harness.ldm(ldm(1)).check().expect("partitions are whole");
}

#[test]
fn an_undo_that_waits_for_its_epoch_is_void_if_its_tc_is_lost_in_the_next_one() {
    let (mut harness, table) = filled(3, 1, 10);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let before = stored_rows(&harness, ldm(1), &[partition]);
    let third = Address::new(NodeId(3), Module::Tc, 0);
    harness.send(ldm(1), third, write_from_node_3(&table, partition, 5, Epoch(0)));
    assert!(harness.step());
    let (newer_than, ends, is_backup) = (StatementNumber(0), true, false);
    let transaction = TransactionId::new(3, 0, 5);
    let undo = UndoTransaction { transaction, epoch: FIRST, reply_to: third, newer_than, ends, is_backup };
    harness.send(ldm(1), third, Signal::Ldm(LdmSignal::UndoTransaction(undo)));
    // Node 1 skips the epoch of the order.
    begin_epoch_without(&mut harness, ldm(1), (Epoch(2), 3));
    while let Some(next) = harness.delivery.in_flight.front() {
        match next.to.node == NodeId(1) {
            true => _ = harness.step(),
            false => _ = harness.delivery.in_flight.pop_front(),
        }
    }
    assert_eq!(harness.ldm(ldm(1)).work(), LdmWork::default());
    assert_eq!(stored_rows(&harness, ldm(1), &[partition]), before);
}
