//! Questions to other nodes, and the sessions that a node of a cluster has lost.

use junctor_kernel::transport::board::LinkNews;
use junctor_kernel::transport::link::Death;
use junctor_model::id::{Epoch, Incarnation, TableOwner};
use junctor_model::value::Value;
use junctor_signals::ask_node::{AskNode, AskNodeReply, ControlNode, NodeQuestion};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::interrupt_session::{InterruptSessionReply, KillOutcome, KillReach};
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, STATUS_ROWS_MAX, StatusTable};

use super::super::ask_node::ASK_WORK;
use super::*;
use crate::member::{MemberNode, MemberSettings, Roles, VoterStart};

/// The life of this node.
pub(super) const LIFE: Incarnation = Incarnation(6);

pub(super) fn main_of(node: u8) -> Address {
    Address::new(NodeId(node), Module::Main, 0)
}

impl Stage {
    /// Node 1 of a cluster whose nodes have these roles. It has no links yet.
    pub(super) fn of_cluster(roles: &[&str]) -> Stage {
        let mut stage = Stage::new(&[]);
        let directory = Directory::new(NodeId(1), &layout()).expect("a layout without gaps");
        let gateway = alteration::gateway(stage.own, &directory).of_life(LIFE);
        let node = |(index, text): (usize, &&str)| MemberNode {
            node: NodeId(index as u8 + 1),
            roles: Roles::named(text).expect("roles"),
            address: "127.0.0.1:1".into(),
            domain: "".into(),
        };
        let settings = MemberSettings {
            cluster: 1,
            own: NodeId(1),
            incarnation: LIFE,
            nodes: roles.iter().enumerate().map(node).collect(),
            replicas: 1,
            started: Epoch(0),
            voter: VoterStart::Nothing,
            silence_max: Duration::from_millis(500),
            cut_max: Duration(0),
            standstill_max: Duration::from_millis(1000),
            partial_start_after: Duration::from_millis(500),
        };
        let configuration = MainConfiguration { member: Some(Arc::new(settings)), ..Default::default() };
        stage.main = MainBlock::new(stage.own, &directory, configuration, gateway);
        let mut outbox = Outbox::for_test(stage.own);
        stage.main.on_world(WorldEvent::Started, &mut stage.context.at(stage.now), &mut outbox);
        stage
    }

    pub(super) fn link(&mut self, node: u8) {
        let up = LinkNews::Up { node: NodeId(node), incarnation: 1, version: 1 };
        self.send_from(self.own, MainSignal::LinkNews(up));
    }

    /// The link to a node ends. Returns what main sends when it looks at its questions.
    fn lose(&mut self, node: u8) -> Vec<(Address, Signal)> {
        let dead = LinkNews::Dead { node: NodeId(node), incarnation: 1, death: Death::Refused };
        self.send_from(self.own, MainSignal::LinkNews(dead));
        self.send_from(self.own, MainSignal::ContinueWork(ContinueWork { work: ASK_WORK }))
    }

    fn stop_node(&mut self, node: u8) -> Vec<(Address, Signal)> {
        let (operation, reply_to, node) = (OperationId(1), self.sql, Some(NodeId(node)));
        let question = Box::new(NodeQuestion::Stop { restarts: false, is_forced: false });
        let signal = ControlNode { operation, reply_to, node, question };
        self.send_from(self.sql, MainSignal::ControlNode(signal))
    }
}

/// The questions among signals: whom main asks, and about which node.
fn asked(sent: &[(Address, Signal)]) -> Vec<(u8, u8, u64)> {
    let question = |(to, signal): &(Address, Signal)| match signal {
        Signal::Main(MainSignal::AskNode(AskNode { id, node, .. })) => Some((to.node.0, node.0, *id)),
        _ => None,
    };
    sent.iter().filter_map(question).collect()
}

/// Whether the statement that stops a node has succeeded; `None` if it has no answer.
fn is_stopped(sent: &[(Address, Signal)]) -> Option<bool> {
    sent.iter().find_map(|(_, signal)| match signal {
        Signal::Sql(SqlSignal::ControlNodeReply(reply)) => Some(reply.error.is_none()),
        _ => None,
    })
}

#[test]
fn the_end_of_a_node_answers_the_request_to_stop_it_and_the_end_of_a_relay_does_not() {
    let mut stage = Stage::of_cluster(&["sql", "data", "sql"]);
    stage.link(2);
    let sent = stage.stop_node(2);
    assert!(matches!(asked(&sent)[..], [(2, 2, _)]), "{sent:?}");
    assert_eq!(is_stopped(&stage.lose(2)), Some(true));
    stage.link(2);
    let sent = stage.stop_node(3);
    assert!(matches!(asked(&sent)[..], [(2, 3, _)]), "{sent:?}");
    assert_eq!(is_stopped(&stage.lose(2)), Some(false));
}

#[test]
fn a_node_that_passes_a_question_on_asks_no_third_one() {
    let mut stage = Stage::of_cluster(&["sql", "data", "sql"]);
    stage.link(2);
    let question = NodeQuestion::Stop { restarts: false, is_forced: false };
    let sent = stage.send_from(main_of(2), MainSignal::AskNode(AskNode { id: 5, node: NodeId(3), question }));
    let [(to, Signal::Main(MainSignal::AskNodeReply(reply)))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((to.node, reply.id, reply.error.is_some()), (NodeId(2), 5, true));
}

#[test]
fn a_status_table_about_all_nodes_has_a_bounded_number_of_rows() {
    let mut stage = Stage::of_cluster(&["sql", "data", "data"]);
    [2, 3].into_iter().for_each(|node| stage.link(node));
    let request =
        ReadStatus { operation: OperationId(1), reply_to: stage.sql, table: StatusTable::Events, only: Box::default() };
    let sent = stage.send_from(stage.sql, MainSignal::ReadStatus(request));
    let mut answered = Vec::new();
    for (to, node, id) in asked(&sent) {
        let rows = vec![vec![Value::UInt(node.into())]; STATUS_ROWS_MAX];
        let reply = AskNodeReply { id, node: NodeId(node), rows, error: None };
        answered.extend(stage.send_from(main_of(to), MainSignal::AskNodeReply(reply)));
    }
    let [(_, Signal::Sql(SqlSignal::ReadStatusReply(reply)))] = &answered[..] else { panic!("{answered:?}") };
    assert_eq!(reply.rows.len(), STATUS_ROWS_MAX);
}

#[test]
fn tables_of_an_earlier_life_of_a_node_have_no_session() {
    let stage = Stage::of_cluster(&["sql", "data"]);
    let owner = |node: u32, life| TableOwner::new(ConnectionId(node << 24 | 1), Incarnation(life), 1);
    let is_lost = |owner| stage.main.is_owner_lost(owner);
    assert_eq!([owner(1, 6), owner(1, 5)].map(is_lost), [false, true]);
    assert!(is_lost(owner(2, 1)), "node 2 is not there");
}

#[test]
fn every_sql_block_contributes_to_an_answer_about_sessions() {
    let mut stage = Stage::of_cluster(&["sql", "data", "sql"]);
    stage.link(2);
    let connection = ConnectionId(1 << 24 | 5);
    for (outcome, errno) in
        [(KillOutcome::Stopped, None), (KillOutcome::Unknown, Some(1094)), (KillOutcome::Denied, Some(1095))]
    {
        let question = NodeQuestion::Kill { connection, closes_connection: true, reach: KillReach::All };
        let sent = stage.send_from(main_of(2), MainSignal::AskNode(AskNode { id: 5, node: NodeId(1), question }));
        let asked: Vec<OperationId> = sent
            .iter()
            .filter_map(|(_, signal)| match signal {
                Signal::Sql(SqlSignal::InterruptSession(signal)) => Some(signal.operation),
                _ => None,
            })
            .collect();
        assert!(!asked.is_empty() && asked.len() == sent.len(), "{sent:?}");
        let mut answers = Vec::new();
        for (index, operation) in asked.iter().enumerate() {
            let outcome = if index == 0 { outcome } else { KillOutcome::Unknown };
            let reply = InterruptSessionReply { operation: *operation, outcome };
            answers.extend(stage.send_from(stage.sql, MainSignal::InterruptSessionReply(reply)));
        }
        let [(to, Signal::Main(MainSignal::AskNodeReply(reply)))] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((to.node, reply.id), (NodeId(2), 5));
        assert_eq!(reply.error.as_ref().map(|error| error.code.errno()), errno);
    }
    let question = NodeQuestion::Status { table: StatusTable::Processes };
    let sent = stage.send_from(main_of(2), MainSignal::AskNode(AskNode { id: 6, node: NodeId(1), question }));
    let mut answers = Vec::new();
    let count = sent.len();
    for (_, signal) in &sent {
        let Signal::Sql(SqlSignal::ReadStatus(request)) = signal else { panic!("{signal:?}") };
        let reply = ReadStatusReply { operation: request.operation, rows: vec![vec![Value::UInt(1)]] };
        answers.extend(stage.send_from(stage.sql, MainSignal::ReadStatusReply(reply)));
    }
    let [(_, Signal::Main(MainSignal::AskNodeReply(reply)))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(reply.rows.len(), count);
}
