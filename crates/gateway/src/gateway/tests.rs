//! Operations of a gateway alone, without the blocks that answer it.

use junctor_kernel::simulated::{Delivery, InFlight};
use junctor_kernel::{NodeId, NodeLayout};
use junctor_model::id::{ColumnNumber, IndexId, RowId, TransactionId};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_model::types::DataType;
use junctor_signals::program::{Access, Output, ReadProgram};
use junctor_signals::read_rows::{BookedCost, Resume};
use junctor_signals::start_epoch::{BeginEpoch, BeginEpochReply};
use junctor_signals::{MainSignal, Signal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::snapshot::{SnapshotRegistry, SnapshotWord};

use super::*;
use crate::epoch::node_has_left;
use crate::operation::{StoppedPart, Work};

fn layout() -> NodeLayout {
    NodeLayout::new(&[&[(Module::Main, 0), (Module::Sql, 0), (Module::Tc, 0), (Module::Ldm, 0)]])
}

fn gateway_of(incarnation: u32) -> Gateway {
    let layout = layout();
    let directory = Directory::new(NodeId(1), &layout).expect("a layout without gaps");
    let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
    let word = SnapshotWord::claim(Arc::new(SnapshotRegistry::new(sequence, 1)), 0).expect("the word is free");
    let (own, readers) = (directory.address(Module::Sql, 0), vec![Vec::new()]);
    let snapshots = ActiveSnapshots::new(word, 4);
    Gateway::new(own, &directory, (ReadRule::Owner, &readers), snapshots, 4).of_life(Incarnation(incarnation))
}

#[test]
fn a_reply_to_an_operation_of_another_life_finds_none() {
    let lives = [0, 1, 2, 7, 65_533, 65_534, 60_000_000, 60_000_001];
    let open = |life: &u32| {
        let mut gateway = gateway_of(*life);
        let operation = gateway.open(ConnectionId(*life + 1), Work::Schema).expect("a free record");
        (gateway, operation)
    };
    let opened: Vec<(Gateway, OperationId)> = lives.iter().map(open).collect();
    for (place, (gateway, own)) in opened.iter().enumerate() {
        for (_, operation) in &opened {
            let found = gateway.session_of(*operation);
            assert_eq!(found, (operation == own).then_some(ConnectionId(lives[place] + 1)));
        }
        assert_eq!(gateway.session_of(NO_OPERATION), None);
    }
}

#[test]
fn the_file_of_an_operation_is_found_in_every_life() {
    for life in [0, 1, 7, 60_000_000] {
        assert!(gateway_of(life).finds_its_file(), "life {life}");
    }
}

#[test]
fn only_main_changes_the_nodes_that_are_gone() {
    let mut gateway = gateway_of(1);
    let mut delivery = Delivery::<Signal>::new();
    delivery.add_block(gateway.own, &layout(), 1).expect("a layout without gaps");
    delivery.in_flight.clear();
    let (main, own) = (gateway.main, gateway.own);
    let mut begin = |gateway: &mut Gateway, from: Address, epoch: u32, gone: u32| {
        let gone = [1 << gone, 0, 0, 0];
        let (epoch, late, copies_at) = (Epoch(epoch), LateNodes::default(), None);
        let signal = BeginEpoch { epoch, gone, late, copies_at, admitted: Epoch(0), reply_to: Some(main) };
        delivery.handle(own, |context, outbox| {
            gateway.on_begin_epoch(signal, from, &mut TurnContext::new(context, outbox));
        });
        let is_answer = |signal: Signal| match signal {
            Signal::Main(MainSignal::BeginEpochReply(BeginEpochReply { epoch })) => Some(epoch),
            _ => None,
        };
        assert_eq!(delivery.in_flight.pop_front().and_then(|it| is_answer(it.signal)), Some(epoch));
    };
    let away = |gateway: &Gateway| (2..6).filter(|node| gateway.is_gone(NodeId(*node))).collect::<Vec<u8>>();
    begin(&mut gateway, main, 2, 2);
    begin(&mut gateway, main, 3, 3);
    assert_eq!((away(&gateway), gateway.losses.len()), (vec![3], 2));
    // The rest of an epoch comes behind the next one.
    begin(&mut gateway, own, 2, 2);
    assert_eq!((away(&gateway), gateway.losses.len(), gateway.epoch), (vec![3], 2, Epoch(3)));
    // A node without data loses its link to a data node that is still a member.
    begin(&mut gateway, main, 3, 4);
    begin(&mut gateway, own, 3, 3);
    assert_eq!((away(&gateway), gateway.losses.len(), gateway.epoch), (vec![4], 3, Epoch(3)));
    begin(&mut gateway, main, 4, 5);
    assert_eq!((away(&gateway), gateway.losses.len()), (vec![5], 4));
}

#[test]
fn the_outcome_of_a_commit_is_asked_under_the_life_of_its_own_host() {
    let mut gateway = gateway_of(1);
    let mut delivery = Delivery::<Signal>::new();
    delivery.add_block(gateway.own, &layout(), 1).expect("a layout without gaps");
    delivery.in_flight.clear();
    let (main, own, tc) = (gateway.main, gateway.own, Address::new(NodeId(2), Module::Tc, 0));
    gateway.use_host(Some((NodeId(2), 1)), Incarnation(5));
    let transaction = TransactionId::new(tc.node.0, tc.instance, 7);
    let end = Work::End { tc, commits: true, transaction, after: CommitNumber(0) };
    gateway.open(ConnectionId(1), end).expect("a free record");
    // The loss reaches this commit in a later turn than the next host.
    gateway.use_host(Some((NodeId(3), 1)), Incarnation(9));
    let (late, copies_at) = (LateNodes::default(), None);
    let signal =
        BeginEpoch { epoch: Epoch(2), gone: [1 << 2, 0, 0, 0], late, copies_at, admitted: Epoch(0), reply_to: None };
    delivery.handle(own, |context, outbox| {
        gateway.on_begin_epoch(signal, main, &mut TurnContext::new(context, outbox));
    });
    let asked = delivery.in_flight.pop_front().map(|it| it.signal);
    let Some(Signal::Main(MainSignal::ResolveCommit(ask))) = asked else { panic!("{asked:?}") };
    assert_eq!((ask.transaction, ask.incarnation), (transaction, Incarnation(5)));
}

/// A read of all rows of two partitions, each of which has sent its first batch from an ldm of node 2.
fn stopped_read(transaction: TransactionId) -> Work {
    let column = ColumnDefinition::new("id", DataType::integer(4, false));
    let kind = IndexKind::Primary { ordered: false };
    let primary = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0)]);
    let definition = TableDefinition::new(TableId(1), ("test", "t"), vec![column], vec![primary]);
    let program = ReadProgram::new(&Arc::new(TableLayout::new(definition)), Access::AllRows, Output::Images);
    let stopped = |index| StoppedPart {
        partition: PartitionId { table: TableId(1), index },
        to: Address::new(NodeId(2), Module::Ldm, 0),
        booked_cost: BookedCost::default(),
        input: Vec::new(),
        resume: Box::new(Resume { item_position: 0, key: Vec::new(), row: RowId(1), rows: 1 }),
    };
    Work::Read(ReadWork {
        program: Arc::new(program),
        options: ReadOptions { protocol: RowProtocol::Text, bound: RowBound::Reply(1), warnings_max: 0 },
        snapshot: CommitNumber(1),
        own_snapshot: None,
        transaction,
        outstanding: 0,
        prefixed: 0,
        stopped: vec![stopped(0), stopped(1)],
        remote: Vec::new(),
        sample: None,
        abandoned: false,
    })
}

#[test]
fn the_next_batch_of_a_partition_that_was_not_written_does_not_name_the_transaction() {
    let mut gateway = gateway_of(1);
    let mut delivery = Delivery::<Signal>::new();
    delivery.add_block(gateway.own, &layout(), 1).expect("a layout without gaps");
    delivery.in_flight.clear();
    let id = TransactionId::new(2, 0, 7);
    let written = vec![PartitionId { table: TableId(1), index: 1 }];
    let transaction = Transaction { id, written, ..Transaction::default() };
    let read = gateway.open(ConnectionId(1), stopped_read(id)).expect("a free record");
    delivery.handle(gateway.own, |context, outbox| {
        gateway.continue_read(read, &transaction, &mut TurnContext::new(context, outbox));
    });
    // A backup may have run the first batch, and only the primary has what is not committed.
    let named = delivery.in_flight.iter().map(|it| match &it.signal {
        Signal::Ldm(LdmSignal::ReadRows(read)) => (read.partition.index, read.transaction),
        other => panic!("{other:?}"),
    });
    assert_eq!(named.collect::<Vec<_>>(), [(0, TransactionId::default()), (1, id)]);
}

#[test]
fn the_tc_near_a_partition_is_on_the_thread_of_its_owner_if_one_is() {
    let near = |threads: &[&[(Module, u16)]]| {
        tc_of_ldm(&Directory::new(NodeId(1), &NodeLayout::new(threads)).expect("a layout")).to_vec()
    };
    let (tc, ldm) = (Module::Tc, Module::Ldm);
    assert_eq!(near(&[&[(tc, 0), (ldm, 1)], &[(tc, 1), (ldm, 0)]]), [Some(1), Some(0)]);
    assert_eq!(near(&[&[(tc, 0)], &[(ldm, 0)], &[(tc, 1), (ldm, 1)]]), [None, Some(1)]);
}

/// Begins an epoch without these nodes.
fn lose(gateway: &mut Gateway, delivery: &mut Delivery<Signal>, nodes: &[u8]) {
    let gone = [nodes.iter().fold(0, |gone, node| gone | 1 << node), 0, 0, 0];
    let (epoch, late, copies_at) = (Epoch(2), LateNodes::default(), None);
    let signal = BeginEpoch { epoch, gone, late, copies_at, admitted: Epoch(0), reply_to: None };
    let main = gateway.main;
    delivery.handle(gateway.own, |context, outbox| {
        gateway.on_begin_epoch(signal, main, &mut TurnContext::new(context, outbox));
    });
}

/// Delivers the replies under way. Returns the codes of the errors that sessions get.
fn deliver_replies(gateway: &mut Gateway, delivery: &mut Delivery<Signal>) -> Vec<ErrorCode> {
    let mut codes = Vec::new();
    while let Some(InFlight { from, signal, .. }) = delivery.in_flight.pop_front() {
        let Signal::Sql(SqlSignal::ReadRowsReply(reply)) = signal else { panic!("{signal:?}") };
        delivery.handle(gateway.own, |context, outbox| {
            match gateway.on_read_rows_reply(reply, from, &mut TurnContext::new(context, outbox)) {
                Some((_, Event::ReadFailed { error, .. })) => codes.push(error.code),
                Some((_, other)) => panic!("{other:?}"),
                None => {}
            }
        });
    }
    codes
}

#[test]
fn the_loss_of_a_node_ends_a_read_once_if_other_partitions_have_answered() {
    let mut gateway = gateway_of(1);
    let mut delivery = Delivery::<Signal>::new();
    delivery.add_block(gateway.own, &layout(), 1).expect("a layout without gaps");
    delivery.in_flight.clear();
    // Partition 0 of node 2 has not answered, partition 1 has, and waits until its rows have room.
    let mut work = stopped_read(TransactionId::default());
    let Work::Read(read) = &mut work else { panic!("{work:?}") };
    read.stopped.remove(0);
    (read.outstanding, read.remote) = (1, vec![(0, NodeId(2))]);
    let operation = gateway.open(ConnectionId(1), work).expect("a free record");
    assert!(gateway.may_continue(operation));
    lose(&mut gateway, &mut delivery, &[2]);
    assert_eq!(deliver_replies(&mut gateway, &mut delivery), [node_has_left().code]);
    assert_eq!((gateway.operations_under_way(), gateway.may_continue(operation)), (0, false));
}

#[test]
fn a_read_whose_partitions_were_all_on_a_lost_node_fails_once_when_it_goes_on() {
    let mut gateway = gateway_of(1);
    let mut delivery = Delivery::<Signal>::new();
    delivery.add_block(gateway.own, &layout(), 1).expect("a layout without gaps");
    delivery.in_flight.clear();
    let operation = gateway.open(ConnectionId(1), stopped_read(TransactionId::default())).expect("a free record");
    lose(&mut gateway, &mut delivery, &[2]);
    assert_eq!(deliver_replies(&mut gateway, &mut delivery), []);
    delivery.handle(gateway.own, |context, outbox| {
        gateway.continue_read(operation, &Transaction::default(), &mut TurnContext::new(context, outbox));
    });
    assert_eq!(delivery.in_flight.len(), 2, "both partitions fail");
    assert_eq!(deliver_replies(&mut gateway, &mut delivery), [node_has_left().code]);
    assert_eq!(gateway.operations_under_way(), 0);
}
