//! The schema that a node without the sequencer gets.

use junctor_model::id::{Epoch, Incarnation};
use junctor_signals::change_schema::TableLockRequest;
use junctor_signals::share_schema::IntroduceNode;

use super::*;

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
            Signal::Sql(SqlSignal::BlockTables(_)) => "block",
            Signal::Sql(SqlSignal::PublishCatalog(_)) => "catalog",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sent, ["block", "catalog"], "the answer to the catalog makes the node welcome");
}
