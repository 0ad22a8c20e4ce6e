//! The schema that a node without the sequencer gets.

use junctor_model::id::{Epoch, Incarnation};
use junctor_signals::block_tables::UnblockTables;
use junctor_signals::change_schema::TableLockRequest;
use junctor_signals::share_schema::IntroduceNode;

use super::super::share_schema::prevents_changes;
use super::*;
use crate::membership::{Membership, MembershipChange};

#[test]
fn a_node_that_introduces_itself_keeps_its_sessions_out_of_locked_tables_before_it_is_welcome() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    assert_eq!(stage.create("t", vec![primary()]), None);
    let tables = vec![TableLockRequest { name: ("d".into(), "t".into()), writes: true }];
    assert!(stage.change(SchemaChange::LockTables { tables }).error.is_none());
    let introduction = IntroduceNode {
        epoch: Epoch(1),
        incarnation: Incarnation(1),
        sql: 1,
        tc: 1,
        ldm: 0,
        query: 0,
        version: 0,
        needs_schema: false,
    };
    stage.main.share.introduce((NodeId(2), Incarnation(1)), introduction);
    let mut outbox = Outbox::for_test(stage.own);
    stage.main.publish_to_next(&mut outbox);
    let sent: Vec<&str> = outbox
        .take_sent()
        .iter()
        .filter(|(to, _)| (to.node, Module::of(to.module)) == (NodeId(2), Module::Sql))
        .map(|(_, signal)| match signal {
            Signal::Sql(SqlSignal::UnblockTables(UnblockTables { operation: None })) => "unblock",
            Signal::Sql(SqlSignal::BlockTables(_)) => "block",
            Signal::Sql(SqlSignal::PublishCatalog(_)) => "catalog",
            other => panic!("{other:?}"),
        })
        .collect();
    // Tables may be blocked that the life before of the node was to leave.
    assert_eq!(sent, ["unblock", "block", "catalog"], "the answer to the catalog makes the node welcome");
}

#[test]
fn a_node_of_a_closed_group_prevents_schema_changes_only_while_it_joins() {
    let chains = vec![vec![NodeId(1), NodeId(2)], vec![NodeId(2), NodeId(1)]];
    let mut membership = Membership::create(&[(NodeId(1), 0), (NodeId(2), 0)], chains, NodeId(1));
    let preventing = |membership: &Membership| -> Vec<u8> {
        let records = membership.nodes.iter().filter(|record| prevents_changes(membership, record));
        records.map(|record| record.node.0).collect()
    };
    let apply = |membership: &mut Membership, change: MembershipChange| {
        *membership = membership.apply(&change).expect("it is possible");
        let epoch = membership.epoch;
        *membership = membership.apply(&MembershipChange::NoteStarted { epoch }).unwrap_or(membership.clone());
    };
    let epoch = membership.epoch;
    apply(&mut membership, MembershipChange::NoteStarted { epoch });
    let nodes = [NodeId(3), NodeId(4)].into_iter().collect();
    apply(&mut membership, MembershipChange::AddGroup { nodes });
    assert_eq!(preventing(&membership), Vec::<u8>::new());
    apply(&mut membership, MembershipChange::Admit { node: NodeId(3), incarnation: Incarnation(1) });
    assert_eq!(preventing(&membership), [3]);
    let evict = |node| MembershipChange::Evict { nodes: [NodeId(node)].into_iter().collect(), avoid: None };
    apply(&mut membership, evict(3));
    assert_eq!(preventing(&membership), Vec::<u8>::new());
    apply(&mut membership, evict(2));
    assert_eq!(preventing(&membership), [2], "a node of an open group must copy the schema and rows");
}

#[test]
fn a_node_that_is_away_from_a_group_that_leaves_prevents_no_schema_changes() {
    let chains = [1, 3].map(|node| vec![vec![NodeId(node), NodeId(node + 1)], vec![NodeId(node + 1), NodeId(node)]]);
    let nodes: Vec<(NodeId, u8)> = (1..=4).map(|node| (NodeId(node), (node - 1) / 2)).collect();
    let mut membership = Membership::create(&nodes, chains.concat(), NodeId(1));
    let apply = |membership: &mut Membership, change: MembershipChange| {
        *membership = membership.apply(&change).expect("it is possible");
        let epoch = membership.epoch;
        *membership = membership.apply(&MembershipChange::NoteStarted { epoch }).unwrap_or(membership.clone());
    };
    let preventing = |membership: &Membership| -> Vec<u8> {
        let records = membership.nodes.iter().filter(|record| prevents_changes(membership, record));
        records.map(|record| record.node.0).collect()
    };
    let epoch = membership.epoch;
    apply(&mut membership, MembershipChange::NoteStarted { epoch });
    let evict = |node| MembershipChange::Evict { nodes: [NodeId(node)].into_iter().collect(), avoid: None };
    apply(&mut membership, evict(4));
    assert_eq!(preventing(&membership), [4]);
    apply(&mut membership, MembershipChange::LeaveGroup { group: 1, leaves: true });
    assert_eq!(preventing(&membership), Vec::<u8>::new());
    apply(&mut membership, MembershipChange::Admit { node: NodeId(4), incarnation: Incarnation(9) });
    assert_eq!(preventing(&membership), [4], "it takes over the schema");
    apply(&mut membership, evict(4));
    apply(&mut membership, MembershipChange::LeaveGroup { group: 1, leaves: false });
    assert_eq!(preventing(&membership), [4]);
}

#[test]
fn a_replica_that_was_added_and_is_away_prevents_no_schema_changes() {
    let membership = Membership::create(&[(NodeId(1), 0)], vec![vec![NodeId(1)]], NodeId(1));
    let apply = |membership: Membership, change: MembershipChange| {
        let after = membership.apply(&change).expect("it is possible");
        let epoch = after.epoch;
        after.apply(&MembershipChange::NoteStarted { epoch }).unwrap_or(after)
    };
    let preventing = |membership: &Membership| -> Vec<u8> {
        let records = membership.nodes.iter().filter(|record| prevents_changes(membership, record));
        records.map(|record| record.node.0).collect()
    };
    let epoch = membership.epoch;
    let membership = apply(membership, MembershipChange::NoteStarted { epoch });
    let membership = apply(membership, MembershipChange::AddReplica { node: NodeId(2), group: 0 });
    assert_eq!(preventing(&membership), Vec::<u8>::new());
    let joining = apply(membership, MembershipChange::Admit { node: NodeId(2), incarnation: Incarnation(9) });
    assert_eq!(preventing(&joining), [2], "it takes over the schema");
    let epoch = joining.epoch;
    let serving = apply(joining, MembershipChange::Serve { node: NodeId(2), epoch });
    let (nodes, epoch) = ([NodeId(2)].into_iter().collect(), serving.epoch);
    let marked = apply(serving, MembershipChange::MarkDurable { nodes, epoch });
    let evict = |node| MembershipChange::Evict { nodes: [NodeId(node)].into_iter().collect(), avoid: None };
    assert_eq!(preventing(&apply(marked.clone(), evict(1))), [1]);
    assert_eq!(preventing(&apply(marked, evict(2))), Vec::<u8>::new());
}
