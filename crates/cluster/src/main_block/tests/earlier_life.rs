//! Answers of other nodes to what main has asked them in an earlier life of its node, and what they ask that
//! life.

use junctor_kernel::transport::board::LinkNews;
use junctor_kernel::transport::link::Death;
use junctor_model::id::{CommitNumber, Epoch, Incarnation};
use junctor_signals::ask_snapshot::AskSnapshot;
use junctor_signals::change_schema::Catalog;
use junctor_signals::install_membership::InstallMembership;
use junctor_signals::share_schema::{HandOverSchema, WelcomeNode};

use super::super::state::Requester;
use super::ask_node::{LIFE, main_of};
use super::*;
use crate::membership::{Membership, NodeState};

impl Stage {
    /// A node in this life.
    fn of_life(life: u32) -> Stage {
        let mut stage = Stage::new(&[]);
        let directory = Directory::new(NodeId(1), &layout()).expect("a layout without gaps");
        let gateway = alteration::gateway(stage.own, &directory).of_life(Incarnation(life));
        stage.main = MainBlock::new(stage.own, &directory, MainConfiguration::default(), gateway);
        stage
    }
}

#[test]
fn late_answers_to_stages_of_an_earlier_life_are_dropped() {
    let mut stage = Stage::of_life(6);
    let (ldm, tc) = (Address::new(NodeId(2), Module::Ldm, 0), Address::new(NodeId(2), Module::Tc, 0));
    let partition = PartitionId { table: TableId(1), index: 0 };
    for earlier in [Incarnation(0), Incarnation(5)] {
        for number in 0..3 {
            let operation = OperationId(earlier.first_number() + number);
            let reply = ChangePartitionReply { operation, partition, error: None };
            assert!(stage.send_from(ldm, MainSignal::ChangePartitionReply(reply)).is_empty());
            let reply = PublishCatalogReply { operation };
            assert!(stage.send_from(tc, MainSignal::PublishCatalogReply(reply)).is_empty());
        }
    }
}

#[test]
fn numbers_of_a_life_are_above_those_of_earlier_lives() {
    let (mut earlier, mut later) = (Stage::of_life(6), Stage::of_life(7));
    let [of_earlier, of_later] = [&mut earlier, &mut later].map(|stage| {
        let (name, collation) = ("d".into(), CollationId::DEFAULT);
        let reply = stage.change(SchemaChange::CreateDatabase { name, collation, if_not_exists: false });
        assert!(reply.error.is_none());
        [stage.main.stage, stage.main.next_change]
    });
    let first = Incarnation(7).first_number();
    assert!(of_earlier.into_iter().all(|number| number < first));
    assert!(of_later.into_iter().all(|number| number > first));
}

/// The life of node 1 before this one.
const BEFORE: Incarnation = Incarnation(LIFE.0 - 1);

/// Nodes 1 and 2 have data and serve, in epoch 1. Node 1 has had this life.
fn membership(life: Incarnation, sequencer: u8) -> Membership {
    let chains = vec![vec![NodeId(1)], vec![NodeId(2)]];
    let mut membership = Membership::create(&[(NodeId(1), 0), (NodeId(2), 1)], chains, NodeId(sequencer));
    membership.nodes[0].incarnation = life;
    membership.nodes[1].incarnation = Incarnation(1);
    membership
}

impl Stage {
    fn install(&mut self, index: u64, membership: &Membership) {
        let membership = Arc::from(membership.encode());
        let signal = InstallMembership { leader: NodeId(2), index, membership, must_restart: false, refusal: None };
        self.send_from(main_of(2), MainSignal::InstallMembership(signal));
    }

    /// A session of node 3 creates a database. Returns the error of the answer and where the request went.
    fn create_from_node_3(&mut self) -> (Option<ErrorCode>, Vec<NodeId>) {
        let reply_to = Address::new(NodeId(3), Module::Sql, 0);
        let (name, collation) = ("d".into(), CollationId::DEFAULT);
        let change = SchemaChange::CreateDatabase { name, collation, if_not_exists: false };
        let operation = OperationId(1);
        let request = ChangeSchema { operation, reply_to, ..Requester::main(self.own).request(change) };
        let sent = self.send_from(main_of(3), MainSignal::ChangeSchema(request));
        let error = sent.iter().find_map(|(to, signal)| match signal {
            Signal::Sql(SqlSignal::ChangeSchemaReply(reply)) if *to == reply_to => reply.error.as_ref(),
            _ => None,
        });
        let passed = sent.iter().filter(|(_, signal)| matches!(signal, Signal::Main(MainSignal::ChangeSchema(_))));
        (error.map(|error| error.code), passed.map(|(to, _)| to.node).collect())
    }
}

#[test]
fn schema_changes_for_the_life_before_are_refused() {
    let mut stage = Stage::of_cluster(&["data", "data", "sql"]);
    stage.install(1, &membership(BEFORE, 1));
    assert_eq!(stage.create_from_node_3(), (Some(ErrorCode::TemporaryFailure), vec![]));
    assert!(stage.main.waiting.is_empty());
}

#[test]
fn schema_changes_of_another_node_are_not_passed_on() {
    let mut stage = Stage::of_cluster(&["data", "data", "sql"]);
    stage.link(2);
    let membership = membership(LIFE, 2);
    stage.install(1, &membership);
    let welcome = WelcomeNode { epoch: membership.epoch, incarnation: LIFE, tc: 1, refusal: None };
    stage.send_from(main_of(2), MainSignal::WelcomeNode(welcome));
    assert_eq!(stage.create_from_node_3(), (Some(ErrorCode::TemporaryFailure), vec![]));
}

#[test]
fn the_schema_for_the_life_before_is_not_taken_over() {
    let mut stage = Stage::of_cluster(&["data", "data", "sql"]);
    let hand_over = |stage: &mut Stage, epoch: Epoch| {
        let catalog = Arc::new(Catalog::default());
        let (next_table, next_place, marks) = (TableId(9), 0, Vec::new());
        let signal = HandOverSchema { epoch, catalog, next_table, next_place, marks };
        stage.send_from(main_of(2), MainSignal::HandOverSchema(signal));
        stage.main.next_table == next_table
    };
    let mut joining = membership(BEFORE, 2);
    joining.nodes[0].state = NodeState::Joining;
    joining.nodes[0].is_durable = false;
    stage.install(1, &joining);
    assert!(!hand_over(&mut stage, joining.epoch), "before the admission");
    let before = joining.epoch;
    joining.epoch = Epoch(before.0 + 2);
    (joining.nodes[0].incarnation, joining.nodes[0].admitted) = (LIFE, joining.epoch);
    stage.install(2, &joining);
    assert!(!hand_over(&mut stage, before), "after the admission");
    assert!(hand_over(&mut stage, joining.epoch));
}

#[test]
fn a_request_for_a_snapshot_that_comes_behind_the_loss_of_its_node_pins_nothing() {
    let mut stage = Stage::of_cluster(&["data", "data", "sql"]);
    let reply_to = Address::new(NodeId(3), Module::Sql, 0);
    let asks = |stage: &mut Stage, life: u32| {
        let request = Incarnation(life).first_number() + 1;
        let ask = AskSnapshot { reply_to, request, oldest: CommitNumber(7) };
        stage.send_from(reply_to, MainSignal::AskSnapshot(ask));
        stage.main.share.asked_snapshots()
    };
    stage.link(3);
    let lose = |stage: &mut Stage| {
        let dead = LinkNews::Dead { node: NodeId(3), incarnation: 1, death: Death::Restarted };
        stage.send_from(stage.own, MainSignal::LinkNews(dead));
    };
    assert_eq!(asks(&mut stage, 1), 1);
    lose(&mut stage);
    assert_eq!(asks(&mut stage, 1), 0, "a signal of another channel of the link");
    assert_eq!(asks(&mut stage, 2), 1, "the next life, whose link is news later");
    lose(&mut stage);
    assert_eq!(stage.main.share.asked_snapshots(), 1, "only the lost life is left");
}
