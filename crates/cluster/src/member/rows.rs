//! The rows of `junctor_info.nodes`, `node_groups`, `links`, `arbitration` and `events`.

use junctor_consensus::Role;
use junctor_kernel::{LinkFigures, NodeId, Time};
use junctor_model::value::Value;
use junctor_signals::codec::VERSION;

use super::machine::{Member, Peer};
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
            // A removed node has no mark any more.
            text(match membership.is_some_and(|membership| membership.leaving.contains(it.node)) {
                true => "LEAVING",
                false => self.state_of(it.node, record),
            }),
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
            let state = match serving {
                _ if membership.closed_group() == Some(group) => "JOINING",
                0 => "DOWN",
                _ if membership.leaving_group() == Some(group) => "LEAVING",
                _ => "SERVING",
            };
            let numbers = [count(&|_| true), serving, count(&|record| record.is_durable)];
            let mut row = vec![Value::UInt(u64::from(group)), Value::Bytes(state.as_bytes().to_vec())];
            row.extend(numbers.map(|number| Value::UInt(number as u64)));
            row
        };
        membership.groups().chain(membership.closed_group()).map(row).collect()
    }

    /// A row for each link of this node, in the order of the table's columns.
    pub fn link_rows(&self, figures: &LinkFigures, now: Time) -> Vec<Vec<Value>> {
        let row = |(node, peer): (&NodeId, &Peer)| {
            let figures = figures.of(*node).unwrap_or_default();
            let state = match peer.up {
                None => "DOWN",
                Some(_) if peer.unreachable_since.is_some() => "UNREACHABLE",
                Some(_) if peer.unheard_since.is_some() => "SILENT",
                Some(_) => "UP",
            };
            let number = |number: Option<u64>| number.map_or(Value::Null, Value::UInt);
            vec![
                Value::UInt(self.settings.own.0.into()),
                Value::UInt(node.0.into()),
                Value::Bytes(state.into()),
                number(peer.up.map(|life| life.0.into())),
                number(peer.up.map(|_| peer.version.into())),
                Value::UInt(figures.channels.into()),
                Value::UInt(figures.connections.into()),
                number(figures.round_trip.map(|time| time.as_micros())),
                Value::UInt(figures.sent_bytes),
                Value::UInt(figures.received_bytes),
                Value::UInt(figures.unacknowledged_bytes),
                Value::UInt(figures.credit_bytes),
                Value::UInt(peer.unheard_since.map_or(0, |since| now.since(since).as_millis())),
                Value::UInt(figures.sent_frames),
                Value::UInt(figures.sent_signals),
            ]
        };
        self.peers.iter().map(row).collect()
    }

    /// What this node knows of the votes and of its lease, in the order of the table's columns.
    pub fn arbitration_row(&self, now: Time) -> Vec<Value> {
        let voter = self.voter.as_ref().map(|voter| voter.replica());
        let role = voter.map(|voter| match voter.role() {
            Role::Leader => "LEADER",
            Role::Follower(_) => "FOLLOWER",
            Role::Candidate => "CANDIDATE",
        });
        let heard = self.voters.iter().filter(|node| self.hears(**node)).count();
        let lease = self.lease.as_ref().filter(|_| self.is_admitted);
        let lease_us = lease.map(|lease| Time(lease.until().0).since(now).as_micros());
        let leader = Some(u64::from(self.leader.0)).filter(|node| *node > 0);
        let number = |number: Option<u64>| number.map_or(Value::Null, Value::UInt);
        vec![
            Value::UInt(self.settings.own.0.into()),
            Value::UInt(u64::from(self.voters.contains(&self.settings.own))),
            role.map_or(Value::Null, |role| Value::Bytes(role.into())),
            number(leader),
            number(voter.map(|voter| voter.term())),
            number(voter.map(|voter| voter.applied())),
            Value::UInt(self.membership().map_or(0, |membership| membership.epoch.0.into())),
            Value::UInt(self.voters.len() as u64),
            Value::UInt(heard as u64),
            number(lease_us),
        ]
    }

    /// A row for each event that is kept, in the order of the table's columns.
    pub fn event_rows(&self, now: Time, wall_clock_us: u64) -> Vec<Vec<Value>> {
        self.events.rows(self.settings.own, now, wall_clock_us)
    }

    /// The group that would have no replica with all its rows, in memory and on disk, without this node.
    pub fn group_without(&self, node: NodeId) -> Option<u8> {
        let membership = self.membership()?;
        let record = membership.record(node).filter(|record| record.is_serving())?;
        let mut others = membership.serving().filter(|it| it.node != node && it.group == record.group);
        let is_whole =
            |it: &NodeRecord| it.is_durable && self.state_of(it.node, Some(it)) == "SERVING" && !self.is_stopping(it);
        (!others.any(is_whole)).then_some(record.group)
    }

    /// Whether the voters that this node hears are no majority without a node. No data node could serve then.
    pub fn takes_majority(&self, node: NodeId) -> bool {
        let is_stopping = |voter| self.is_life_stopping(voter, self.linked_life(voter).unwrap_or_default());
        let stays = |voter: &&NodeId| **voter != node && self.hears(**voter) && !is_stopping(**voter);
        self.voters.contains(&node) && self.voters.iter().filter(stays).count() <= self.voters.len() / 2
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
        if self.membership().is_some_and(|membership| membership.is_removed(node)) {
            return "REMOVED";
        }
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
