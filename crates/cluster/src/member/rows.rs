//! The rows of `junctor_info.nodes`.

use junctor_kernel::NodeId;
use junctor_model::value::Value;
use junctor_signals::codec::VERSION;

use super::machine::Member;
use super::settings::MemberNode;
use crate::membership::{NodeRecord, NodeState};

impl Member {
    /// A row for each node of the cluster, in the order of the table's columns.
    pub fn rows(&self) -> Vec<Vec<Value>> {
        self.settings.nodes.iter().map(|node| self.row(node)).collect()
    }

    fn row(&self, it: &MemberNode) -> Vec<Value> {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let number = |number: Option<u32>| number.map_or(Value::Null, |number| Value::UInt(u64::from(number)));
        let flag = |flag: bool| Value::UInt(u64::from(flag));
        let membership = self.membership();
        let record = membership.and_then(|membership| membership.record(it.node));
        let epoch = membership.map(|membership| membership.epoch.0);
        vec![
            Value::UInt(u64::from(it.node.0)),
            text(&it.roles.to_string()),
            text(self.state_of(it.node, record)),
            text(&it.address),
            number(self.life_of(it.node, record)),
            number(epoch),
            number(record.map(|record| u32::from(record.group))),
            flag(it.node == self.leader),
            flag(membership.is_some_and(|it| it.epoch.0 > 0) && membership.map(|it| it.sequencer) == Some(it.node)),
            flag(record.is_some_and(|record| record.is_durable)),
            flag(self.voters.contains(&it.node)),
            text(&it.domain),
            number(self.version_of(it.node).map(u32::from)),
        ]
    }

    /// A row for each node group, in the order of the table's columns.
    pub fn group_rows(&self) -> Vec<Vec<Value>> {
        let Some(membership) = self.membership() else { return Vec::new() };
        let row = |group: u8| {
            let of_group = || membership.nodes.iter().filter(move |record| record.group == group);
            let count = |matches: &dyn Fn(&NodeRecord) -> bool| of_group().filter(|record| matches(record)).count();
            let serving = count(&|record| self.state_of(record.node, Some(record)) == "SERVING");
            let state = if serving > 0 { "SERVING" } else { "DOWN" };
            let numbers = [count(&|_| true), serving, count(&|record| record.is_durable)];
            let mut row = vec![Value::UInt(u64::from(group)), Value::Bytes(state.as_bytes().to_vec())];
            row.extend(numbers.map(|number| Value::UInt(number as u64)));
            row
        };
        membership.groups().map(row).collect()
    }

    /// The version in which this node and another one talk; for this node, the newest that it speaks.
    fn version_of(&self, node: NodeId) -> Option<u16> {
        let own = (node == self.settings.own).then_some(VERSION);
        own.or_else(|| self.peers.get(&node).filter(|peer| peer.up.is_some()).map(|peer| peer.version))
    }

    fn life_of(&self, node: NodeId, record: Option<&NodeRecord>) -> Option<u32> {
        let own = (node == self.settings.own).then_some(self.settings.incarnation);
        let up = own.or_else(|| self.peers.get(&node)?.up);
        up.or_else(|| record.map(|record| record.incarnation).filter(|life| life.0 > 0)).map(|life| life.0)
    }

    fn state_of(&self, node: NodeId, record: Option<&NodeRecord>) -> &'static str {
        if node != self.settings.own && !self.peers.contains_key(&node) {
            return "UNKNOWN";
        }
        let is_heard = self.hears(node);
        let is_up = node == self.settings.own || self.peers.get(&node).is_some_and(|peer| peer.up.is_some());
        let is_of_life = |record: &NodeRecord| self.life_of(node, Some(record)) == Some(record.incarnation.0);
        match record.map(|record| if is_of_life(record) { record.state } else { NodeState::Away }) {
            Some(NodeState::Serving) if is_heard => "SERVING",
            Some(NodeState::Joining) if is_heard => "JOINING",
            Some(NodeState::Away) if is_heard => "WAITING",
            None if is_heard => "CONNECTED",
            _ if is_up => "SILENT",
            _ => "DOWN",
        }
    }
}
