//! Groups that are added to a cluster: from the list of nodes to partitions
//! (`docs/decisions/0065-added-node-groups.md`).

use junctor_kernel::NodeId;
use junctor_model::id::{Epoch, Incarnation};

use super::{ChangeRefused, MEMBERS_MAX, Membership, NodeRecord, NodeSet, NodeState};

impl Membership {
    /// The group that was added and is not open yet.
    pub fn closed_group(&self) -> Option<u8> {
        let is_closed = self.nodes.iter().any(|record| record.group == self.open_groups);
        is_closed.then_some(self.open_groups)
    }

    /// The chains of each open group.
    pub fn chains_of_groups(&self) -> Vec<Vec<Vec<NodeId>>> {
        let group_of =
            |chain: &Vec<NodeId>| chain.iter().find_map(|node| self.record(*node)).map(|record| record.group);
        let of_group = |group| self.chains.iter().filter(|chain| group_of(chain) == Some(group)).cloned().collect();
        self.groups().map(of_group).collect()
    }

    pub(super) fn add_group(&mut self, nodes: NodeSet) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        if let Some(group) = self.closed_group() {
            return Err(ChangeRefused::GroupNotOpen(group));
        }
        if nodes.is_empty() || self.open_groups == u8::MAX || nodes.iter().any(|node| self.record(node).is_some()) {
            return Err(ChangeRefused::WrongGroup);
        }
        if self.nodes.len() + nodes.iter().count() > MEMBERS_MAX {
            return Err(ChangeRefused::TooManyNodes);
        }
        let (group, none) = (self.open_groups, Epoch(0));
        let record = |node| NodeRecord {
            node,
            group,
            incarnation: Incarnation(0),
            state: NodeState::Away,
            is_durable: false,
            admitted: none,
            serving_since: none,
            known_start: none,
        };
        self.nodes.extend(nodes.iter().map(record));
        self.nodes.sort_unstable_by_key(|record| record.node);
        Ok(())
    }

    pub(super) fn open_group(&mut self, group: u8, epoch: Epoch) -> Result<(), ChangeRefused> {
        self.check_request(epoch)?;
        if self.closed_group() != Some(group) {
            return Err(ChangeRefused::WrongGroup);
        }
        let of_group = |record: &&NodeRecord| record.group == group;
        let is_unready = |record: &&NodeRecord| !record.is_serving() || !record.is_durable;
        if let Some(record) = self.nodes.iter().filter(of_group).find(is_unready) {
            return Err(ChangeRefused::WrongState(record.node));
        }
        let nodes: Vec<NodeId> = self.nodes.iter().filter(of_group).map(|record| record.node).collect();
        // The group has no rows yet, so none of its nodes comes behind another one in the chains.
        let since = self.nodes.iter().filter(of_group).map(|record| record.serving_since).max().unwrap_or_default();
        self.nodes.iter_mut().filter(|record| record.group == group).for_each(|record| record.serving_since = since);
        self.chains.extend(rotations(&nodes));
        self.open_groups += 1;
        Ok(())
    }
}

/// The chains of a group: one for each of its nodes, of which this node is the first.
pub fn rotations(group: &[NodeId]) -> Vec<Vec<NodeId>> {
    (0..group.len()).map(|first| group[first..].iter().chain(&group[..first]).copied().collect()).collect()
}
