//! Groups that are added to a cluster, from the list of nodes to partitions, and groups that are removed
//! (`docs/decisions/0065-added-node-groups.md`, `docs/decisions/0075-removed-node-groups.md`).

use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, Incarnation};

use super::{ChangeRefused, MEMBERS_MAX, Membership, NodeRecord, NodeSet, NodeState};

/// A data node that was removed, alone or with its group. Its number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedNode {
    /// The node.
    pub node: NodeId,
    /// Its last life that was admitted; 0 if none was.
    pub incarnation: Incarnation,
}

impl Membership {
    /// The open group that is to be removed: the last one.
    pub fn leaving_group(&self) -> Option<u8> {
        self.is_leaving.then(|| self.open_groups.saturating_sub(1))
    }

    /// Number of groups in which tables are placed: all that are open and do not leave.
    pub fn placed_groups(&self) -> u8 {
        self.open_groups.saturating_sub(u8::from(self.is_leaving))
    }

    /// Whether this node was removed, alone or with its group.
    pub fn is_removed(&self, node: NodeId) -> bool {
        self.removed.binary_search_by_key(&node, |removed| removed.node).is_ok()
    }

    /// All nodes that were removed.
    pub fn removed_nodes(&self) -> NodeSet {
        self.removed.iter().map(|removed| removed.node).collect()
    }

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
        if let Some(group) = self.leaving_group() {
            return Err(ChangeRefused::GroupLeaves(group));
        }
        let is_used = |node| self.record(node).is_some() || self.is_removed(node);
        if nodes.is_empty() || self.open_groups == u8::MAX || nodes.iter().any(is_used) {
            return Err(ChangeRefused::WrongGroup);
        }
        if self.nodes.len() + nodes.iter().count() > MEMBERS_MAX {
            return Err(ChangeRefused::TooManyNodes);
        }
        let group = self.open_groups;
        self.nodes.extend(nodes.iter().map(|node| NodeRecord::of_new(node, group)));
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

    /// Marks the last group as leaving, or takes the mark back.
    pub(super) fn leave_group(&mut self, group: u8, leaves: bool) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        if let Some(closed) = self.closed_group() {
            return Err(ChangeRefused::GroupNotOpen(closed));
        }
        let is_last = u16::from(group) + 1 == u16::from(self.open_groups);
        if group == 0 || !is_last || self.is_leaving == leaves {
            return Err(ChangeRefused::WrongGroup);
        }
        (self.is_leaving, self.is_emptied) = (leaves, false);
        Ok(())
    }

    /// Notes that no row depends on the group that leaves: every disk that counts has the commits up to
    /// `number`, and since then no table has partitions there.
    pub(super) fn note_empty(&mut self, group: u8, number: CommitNumber, epoch: Epoch) -> Result<(), ChangeRefused> {
        self.check_request(epoch)?;
        if self.leaving_group() != Some(group) || self.is_emptied {
            return Err(ChangeRefused::WrongGroup);
        }
        self.is_emptied = true;
        // A disk that lacks the last move of rows would look for them in the group.
        self.durable = self.durable.max(number);
        Ok(())
    }

    /// Removes the group that leaves, with its nodes.
    pub(super) fn remove_group(&mut self, group: u8) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        if self.leaving_group() != Some(group) || !self.is_emptied {
            return Err(ChangeRefused::WrongGroup);
        }
        (self.open_groups, self.is_leaving, self.is_emptied) = (group, false, false);
        if let Some(lost) = self.groups().find(|it| !self.serving().any(|record| record.group == *it)) {
            return Err(ChangeRefused::GroupLost(lost));
        }
        let is_of_group = |node: &NodeId| self.record(*node).is_some_and(|record| record.group == group);
        let chains = self.chains.iter().filter(|chain| !chain.iter().any(is_of_group)).cloned().collect();
        self.chains = chains;
        self.forget(|record| record.group == group)
    }

    /// Takes nodes out of the membership, for ever. No chain names them any more.
    pub(super) fn forget(&mut self, is_gone: impl Fn(&NodeRecord) -> bool) -> Result<(), ChangeRefused> {
        let (gone, left): (Vec<NodeRecord>, Vec<NodeRecord>) = self.nodes.iter().partition(|record| is_gone(record));
        self.nodes = left;
        self.removed.extend(gone.iter().map(|it| RemovedNode { node: it.node, incarnation: it.incarnation }));
        self.removed.sort_unstable_by_key(|removed| removed.node);
        for record in &gone {
            self.added.remove(record.node);
            self.leaving.remove(record.node);
        }
        if self.is_removed(self.sequencer) {
            let next = self.serving().next().map(|record| record.node);
            self.sequencer = next.ok_or(ChangeRefused::GroupLost(0))?;
        }
        Ok(())
    }
}

impl NodeRecord {
    /// A node that was never a member.
    pub(super) fn of_new(node: NodeId, group: u8) -> NodeRecord {
        let none = Epoch(0);
        NodeRecord {
            node,
            group,
            incarnation: Incarnation(0),
            state: NodeState::Away,
            is_durable: false,
            admitted: none,
            serving_since: none,
            known_start: none,
        }
    }
}

/// The chains of a group: one for each of its nodes, of which this node is the first.
pub fn rotations(group: &[NodeId]) -> Vec<Vec<NodeId>> {
    (0..group.len()).map(|first| group[first..].iter().chain(&group[..first]).copied().collect()).collect()
}
