//! What other nodes have sent to an earlier life of a node, whose loss they did not know yet, does not change
//! its next life (`docs/decisions/0092-signals-for-one-life.md`).

use junctor_model::id::RowId;
use junctor_signals::QuerySignal;
use junctor_signals::change_schema::{Catalog, ChangePartition, PartitionChange, PublishCatalog};
use junctor_signals::copy_rows::CopyRows;
use junctor_signals::start_epoch::{BeginEpoch, LateNodes};

use super::epoch::{deliver_to_backup, ldm, with_open_update, write_from_node_3};
use super::*;
use crate::ldm::LdmBlock;

fn main_of(node: u8) -> Address {
    Address::new(NodeId(node), Module::Main, 0)
}

/// The process of node 2 starts again, without data.
fn start_again(harness: &mut Harness) {
    let shared = harness.empty_node(2);
    *harness.ldm_mut(ldm(2)) = LdmBlock::new(ldm(2), shared, 7).with_voters(true);
}

/// Main of a node creates a partition at node 2, in an epoch.
fn create(harness: &mut Harness, table: &SampleTable, main: NodeId, (index, epoch): (u16, Epoch)) {
    let partition = PartitionId { table: table.layout.definition.id, index };
    let change = PartitionChange::Create { chain: vec![ldm(1), ldm(2)] };
    let (operation, layout) = (OperationId(0), Arc::clone(&table.layout));
    let reply_to = main_of(main.0);
    let signal = ChangePartition { operation, reply_to, partition, layout, change, epoch };
    harness.send(ldm(2), reply_to, Signal::Ldm(LdmSignal::ChangePartition(signal)));
}

/// Node 2, which was admitted in this epoch, begins an epoch without these nodes. Returns what it sends.
fn begin_epoch(harness: &mut Harness, admitted: Epoch, epoch: Epoch, gone: &[u8]) -> Vec<Signal> {
    let gone = [gone.iter().fold(0, |word, node| word | 1 << node), 0, 0, 0];
    let late = LateNodes::default();
    let begin = BeginEpoch { epoch, gone, late, copies_at: None, admitted, reply_to: None };
    harness.send(ldm(2), ldm(2), Signal::Ldm(LdmSignal::BeginEpoch(begin)));
    deliver_to_backup(harness)
}

fn partitions(harness: &Harness) -> Vec<u16> {
    harness.ldm(ldm(2)).partitions().iter().map(|partition| partition.index).collect()
}

#[test]
fn partitions_for_the_life_before_are_not_created() {
    let (mut harness, table, _) = with_open_update();
    start_again(&mut harness);
    let (before, admitted) = (Epoch(1), Epoch(3));
    create(&mut harness, &table, NodeId(1), (0, before));
    create(&mut harness, &table, NodeId(1), (1, admitted));
    deliver_to_backup(&mut harness);
    assert_eq!(harness.ldm(ldm(2)).partitions().len(), 0);
    begin_epoch(&mut harness, admitted, admitted, &[]);
    assert_eq!(partitions(&harness), [1]);
}

#[test]
fn writes_for_the_life_before_take_no_locks() {
    let (mut harness, table, _) = with_open_update();
    start_again(&mut harness);
    create(&mut harness, &table, NodeId(2), (0, Epoch(0)));
    deliver_to_backup(&mut harness);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let third = Address::new(NodeId(3), Module::Tc, 0);
    let admitted = Epoch(3);
    // Before and after the admission. The last one is of a tc that has begun the epoch before this node.
    for (id, epoch) in [(1, Epoch(1)), (2, admitted)] {
        harness.send(ldm(2), third, write_from_node_3(&table, partition, id, epoch));
    }
    assert!(deliver_to_backup(&mut harness).is_empty());
    begin_epoch(&mut harness, admitted, admitted, &[]);
    harness.send(ldm(2), third, write_from_node_3(&table, partition, 3, Epoch(2)));
    assert!(deliver_to_backup(&mut harness).is_empty(), "node 1 is primary");
    // The node becomes primary: what waits begins.
    let answers = begin_epoch(&mut harness, admitted, Epoch(4), &[1]);
    let written = answers.iter().filter_map(|signal| match signal {
        Signal::Tc(TcSignal::WriteRowsReply(reply)) => Some(reply.transaction),
        _ => None,
    });
    assert_eq!(written.collect::<Vec<_>>(), [TransactionId::new(3, 0, 2)]);
    let work = harness.ldm(ldm(2)).work();
    assert_eq!((work.participants, work.waiting_writes), (1, 0));
}

#[test]
fn a_catalog_for_the_life_before_drops_no_partitions() {
    let (mut harness, table, _) = with_open_update();
    start_again(&mut harness);
    let publish = |harness: &mut Harness, main: u8, epoch, catalog: Catalog| {
        let (operation, reply_to, catalog) = (OperationId(0), main_of(main), Arc::new(catalog));
        let signal = PublishCatalog { operation, reply_to, epoch, catalog };
        harness.send(ldm(2), reply_to, Signal::Ldm(LdmSignal::PublishCatalog(signal)));
        deliver_to_backup(harness)
    };
    let catalog = harness.catalog.clone();
    // A node without data never begins an epoch.
    assert_eq!(publish(&mut harness, 1, Epoch(1), catalog.clone()).len(), 1);
    assert_eq!(publish(&mut harness, 2, Epoch(0), catalog).len(), 1);
    create(&mut harness, &table, NodeId(2), (0, Epoch(0)));
    deliver_to_backup(&mut harness);
    let admitted = Epoch(3);
    // The main of node 1 has published a catalog before the table was created.
    assert!(publish(&mut harness, 1, Epoch(1), Catalog::default()).is_empty());
    begin_epoch(&mut harness, admitted, admitted, &[]);
    assert!(publish(&mut harness, 1, Epoch(2), Catalog::default()).is_empty());
    assert_eq!(partitions(&harness), [0]);
    assert_eq!(publish(&mut harness, 1, admitted, Catalog::default()).len(), 1);
    assert!(partitions(&harness).is_empty());
}

#[test]
fn a_life_that_is_not_admitted_answers_no_reads_of_other_nodes() {
    let (mut harness, table, _) = with_open_update();
    start_again(&mut harness);
    create(&mut harness, &table, NodeId(2), (0, Epoch(0)));
    deliver_to_backup(&mut harness);
    // A node that reads what it has read before: the read means the life before, which had all rows.
    let stable = harness.stable();
    harness.begin_read(&table.reading(Access::AllRows, None, Output::Images), table.everything(), stable);
    let Some(Signal::Query(QuerySignal::ReadRows(read))) = harness.delivery.in_flight.pop_back().map(|it| it.signal)
    else {
        panic!("a read was sent")
    };
    harness.send(ldm(2), read.reply_to, Signal::Ldm(LdmSignal::ReadRows(read)));
    assert!(deliver_to_backup(&mut harness).is_empty(), "no answer");
    assert_eq!(harness.ldm(ldm(2)).work().parked, 1);
    harness.start_epoch(ldm(2), Epoch(1));
    assert_eq!((deliver_to_backup(&mut harness).len(), harness.ldm(ldm(2)).work().parked), (1, 0));
}

#[test]
fn a_life_that_was_admitted_since_gets_its_rows_when_the_epoch_begins() {
    let (mut harness, table, _) = with_open_update();
    start_again(&mut harness);
    create(&mut harness, &table, NodeId(2), (0, Epoch(0)));
    begin_epoch(&mut harness, Epoch(1), Epoch(2), &[3]);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let ask = |harness: &mut Harness, epoch| {
        let copy = CopyRows { reply_to: ldm(3), epoch, partition, from: RowId(0), at: CommitNumber(0) };
        harness.send(ldm(2), ldm(3), Signal::Ldm(LdmSignal::CopyRows(copy)));
        deliver_to_backup(harness)
    };
    let epochs = |answers: Vec<Signal>| -> Vec<Epoch> {
        let copied = answers.into_iter().filter_map(|signal| match signal {
            Signal::Ldm(LdmSignal::CopyRowsReply(reply)) => Some(reply.epoch),
            _ => None,
        });
        copied.collect()
    };
    // The life that is gone asks, then the next one, which knows the membership earlier than this node.
    for epoch in [Epoch(2), Epoch(3)] {
        assert_eq!(epochs(ask(&mut harness, epoch)), []);
    }
    assert_eq!(epochs(begin_epoch(&mut harness, Epoch(1), Epoch(3), &[])), [Epoch(3)]);
}
