//! Replicas that are added to a group, one node at a time, and removed from it
//! (`docs/decisions/0085-number-of-replicas.md`). Catalogs go on naming the nodes with which a group has
//! opened. The membership says which others hold the same partitions.

use junctor_kernel::NodeId;

use super::membership::REPLICAS_MAX;
use super::{ChangeRefused, MEMBERS_MAX, Membership, NodeRecord};

impl Membership {
    /// The nodes that were added as replicas, each with a node of its group that all chains of the group name
    /// in catalogs.
    pub fn added_replicas(&self) -> Vec<(NodeId, NodeId)> {
        let beside = |node: NodeId| {
            let group = self.record(node)?.group;
            let first = self.nodes.iter().find(|it| it.group == group && !self.added.contains(it.node))?;
            Some((node, first.node))
        };
        self.added.iter().filter_map(beside).collect()
    }

    /// Whether another node of the group has all commits, and a disk that counts.
    pub fn is_replaceable(&self, record: &NodeRecord) -> bool {
        let stays =
            |it: &NodeRecord| it.group == record.group && it.node != record.node && !self.leaving.contains(it.node);
        self.nodes.iter().any(|it| stays(it) && it.is_durable && self.is_complete(it))
    }

    pub(super) fn add_replica(&mut self, node: NodeId, group: u8) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        if group >= self.open_groups || self.record(node).is_some() || self.is_removed(node) {
            return Err(ChangeRefused::WrongGroup);
        }
        if self.leaving_group() == Some(group) {
            return Err(ChangeRefused::GroupLeaves(group));
        }
        let of_group = self.nodes.iter().filter(|record| record.group == group).count();
        if self.nodes.len() >= MEMBERS_MAX || of_group >= REPLICAS_MAX {
            return Err(ChangeRefused::TooManyNodes);
        }
        self.nodes.push(NodeRecord::of_new(node, group));
        self.nodes.sort_unstable_by_key(|record| record.node);
        self.added.insert(node);
        Ok(())
    }

    /// Marks a replica as leaving, or takes the mark back.
    pub(super) fn leave_replica(&mut self, node: NodeId, leaves: bool) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        if !self.added.contains(node) || self.leaving.contains(node) == leaves {
            return Err(ChangeRefused::WrongState(node));
        }
        match leaves {
            true => self.leaving.insert(node),
            false => self.leaving.remove(node),
        }
        Ok(())
    }

    /// Removes a replica that leaves.
    pub(super) fn remove_replica(&mut self, node: NodeId) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        let record = self.record(node).copied().filter(|_| self.leaving.contains(node));
        let record = record.ok_or(ChangeRefused::WrongState(node))?;
        if !self.is_replaceable(&record) {
            return Err(ChangeRefused::GroupLost(record.group));
        }
        self.chains.iter_mut().for_each(|chain| chain.retain(|replica| *replica != node));
        self.forget(|it| it.node == node)
    }
}

#[cfg(test)]
mod tests {
    use junctor_model::id::{CommitNumber, Epoch, Incarnation};

    use super::*;
    use crate::membership::membership::PresentDisk;
    use crate::membership::{MembershipChange, NodeSet, NodeState};

    fn noted(membership: Membership) -> Membership {
        membership.apply(&MembershipChange::NoteStarted { epoch: membership.epoch }).unwrap()
    }

    /// Nodes 1 and 2 are groups of one replica each.
    fn created() -> Membership {
        let nodes = [(NodeId(1), 0), (NodeId(2), 1)];
        noted(Membership::create(&nodes, vec![vec![NodeId(1)], vec![NodeId(2)]], NodeId(1)))
    }

    fn add(membership: &Membership, node: u8, group: u8) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::AddReplica { node: NodeId(node), group })
    }

    fn leave(membership: &Membership, node: u8, leaves: bool) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::LeaveReplica { node: NodeId(node), leaves })
    }

    fn remove(membership: &Membership, node: u8) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::RemoveReplica { node: NodeId(node) })
    }

    fn evict(membership: &Membership, node: u8) -> Result<Membership, ChangeRefused> {
        let nodes: NodeSet = [NodeId(node)].into_iter().collect();
        membership.apply(&MembershipChange::Evict { nodes, avoid: None })
    }

    /// The node joins, serves, and gets its mark.
    fn joined(membership: &Membership, node: u8) -> Membership {
        let node = NodeId(node);
        let incarnation = Incarnation(membership.record(node).unwrap().incarnation.0 + 9);
        let joining = noted(membership.apply(&MembershipChange::Admit { node, incarnation }).unwrap());
        let epoch = joining.epoch;
        let serving = noted(joining.apply(&MembershipChange::Serve { node, epoch }).unwrap());
        let nodes: NodeSet = [node].into_iter().collect();
        noted(serving.apply(&MembershipChange::MarkDurable { nodes, epoch: serving.epoch }).unwrap())
    }

    #[test]
    fn a_group_gets_replicas_which_replace_its_first_node() {
        let before = created();
        assert_eq!(evict(&before, 1), Err(ChangeRefused::GroupLost(0)));
        for (node, group) in [(3, 2), (1, 0), (2, 0)] {
            assert_eq!(add(&before, node, group), Err(ChangeRefused::WrongGroup));
        }
        let added = add(&before, 3, 0).unwrap();
        assert_eq!(
            (added.epoch, added.chains.clone(), added.added_replicas()),
            (before.epoch, before.chains, vec![(NodeId(3), NodeId(1))])
        );
        assert_eq!(added.record(NodeId(3)).unwrap().state, NodeState::Away);
        assert_eq!(evict(&added, 1), Err(ChangeRefused::GroupLost(0)), "the new node has no rows");
        let grown = joined(&added, 3);
        assert_eq!(grown.chains[0], [NodeId(1), NodeId(3)]);
        assert_eq!((grown.primary(0), grown.late()), (Some(NodeId(1)), vec![NodeId(3)]));
        let without = noted(evict(&grown, 1).unwrap());
        assert_eq!((without.primary(0), without.sequencer), (Some(NodeId(3)), NodeId(2)));
        assert!(!without.record(NodeId(1)).unwrap().is_durable, "the disk of the new node stands for the group");
        let back = joined(&without, 1);
        assert_eq!((back.chains[0].clone(), back.late()), (vec![NodeId(3), NodeId(1)], vec![NodeId(1)]));
        for membership in [added, grown, without, back] {
            assert_eq!(Membership::decode(&membership.encode()), Ok(membership));
        }
    }

    #[test]
    fn a_group_has_four_replicas_at_most() {
        let mut membership = created();
        for node in 3..=5 {
            membership = add(&membership, node, 1).unwrap();
        }
        assert_eq!(add(&membership, 6, 1), Err(ChangeRefused::TooManyNodes));
        assert!(add(&membership, 6, 0).is_ok());
    }

    #[test]
    fn a_replica_is_removed_while_another_one_has_everything() {
        let grown = joined(&add(&created(), 3, 0).unwrap(), 3);
        assert_eq!(leave(&grown, 1, true), Err(ChangeRefused::WrongState(NodeId(1))), "it votes");
        assert_eq!(leave(&grown, 3, false), Err(ChangeRefused::WrongState(NodeId(3))));
        assert_eq!(remove(&grown, 3), Err(ChangeRefused::WrongState(NodeId(3))));
        let leaving = leave(&grown, 3, true).unwrap();
        assert_eq!((leaving.epoch, leave(&leaving, 3, false)), (grown.epoch, Ok(grown.clone())));
        // The first node is lost meanwhile: the one that leaves is the last one.
        let without = noted(evict(&leaving, 1).unwrap());
        assert_eq!(remove(&without, 3), Err(ChangeRefused::GroupLost(0)));
        assert_eq!(remove(&joined(&without, 1), 3).unwrap().nodes.len(), 2);
        let removed = remove(&leaving, 3).unwrap();
        assert_eq!((removed.epoch.0, removed.chains.clone()), (leaving.epoch.0 + 1, created().chains));
        assert_eq!((removed.added, removed.leaving), (NodeSet::EMPTY, NodeSet::EMPTY));
        assert!(removed.is_removed(NodeId(3)) && !removed.has(NodeId(3), Incarnation(9)));
        assert_eq!(add(&noted(removed.clone()), 3, 0), Err(ChangeRefused::WrongGroup), "its number is used up");
        // Its disk never counts again.
        let number = CommitNumber::new(Epoch(1), 5);
        let disk = |node: u8| PresentDisk {
            node: NodeId(node),
            incarnation: Incarnation(20),
            started: removed.epoch,
            stable: number,
        };
        let restart = |present: &[PresentDisk]| removed.apply(&MembershipChange::Restart { present: present.to_vec() });
        assert_eq!(restart(&[disk(2), disk(3)]), Err(ChangeRefused::DisksMissing(0)));
        assert!(restart(&[disk(1), disk(2)]).is_ok());
        for membership in [leaving, without, removed] {
            assert_eq!(Membership::decode(&membership.encode()), Ok(membership));
        }
    }

    #[test]
    fn a_restart_needs_one_replica_of_each_group_whichever_it_is() {
        let grown = joined(&add(&created(), 3, 0).unwrap(), 3);
        let disk = |node: u8| PresentDisk {
            node: NodeId(node),
            incarnation: Incarnation(20),
            started: grown.epoch,
            stable: CommitNumber::new(Epoch(1), 5),
        };
        let restart = |present: &[PresentDisk]| grown.apply(&MembershipChange::Restart { present: present.to_vec() });
        let after = restart(&[disk(2), disk(3)]).unwrap();
        assert_eq!((after.chains.clone(), after.late()), (vec![vec![NodeId(3)], vec![NodeId(2)]], vec![]));
        let after = restart(&[disk(1), disk(2), disk(3)]).unwrap();
        assert_eq!((after.chains[0].clone(), after.late()), (vec![NodeId(1), NodeId(3)], vec![]));
        assert_eq!(restart(&[disk(2)]), Err(ChangeRefused::DisksMissing(0)));
    }

    #[test]
    fn the_replicas_of_a_removed_group_go_with_it() {
        let grown = joined(&add(&created(), 3, 1).unwrap(), 3);
        let leaving = noted(grown.apply(&MembershipChange::LeaveGroup { group: 1, leaves: true }).unwrap());
        assert_eq!(add(&leaving, 4, 1), Err(ChangeRefused::GroupLeaves(1)));
        let empty = MembershipChange::NoteEmpty { group: 1, number: CommitNumber(0), epoch: leaving.epoch };
        let without =
            leaving.apply(&empty).and_then(|it| it.apply(&MembershipChange::RemoveGroup { group: 1 })).unwrap();
        assert_eq!((without.nodes.len(), without.removed.len(), without.added), (1, 2, NodeSet::EMPTY));
        assert_eq!(without.chains, [vec![NodeId(1)]]);
    }
}
