//! The leader's part in the removal of node groups and of single replicas
//! (`docs/decisions/0075-removed-node-groups.md`, `docs/decisions/0085-number-of-replicas.md`).

use std::sync::Arc;

use junctor_kernel::NodeId;
use junctor_signals::report_node::NodeReport;

use super::events::EventKind;
use super::machine::Member;
use crate::membership::{Membership, MembershipChange, NodeRecord};

/// Why a node group, or a node, does not leave, or stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalRefusal {
    /// It may be tried again.
    Passing(String),
    /// It is never possible with these nodes.
    Lasting(String),
}

impl Member {
    /// The removal of the group that leaves and is empty, once its nodes that are heard know that. They then
    /// know why they are refused.
    pub(super) fn removal(
        &self,
        membership: &Membership,
        group: u8,
        own: &NodeReport,
    ) -> Option<(MembershipChange, String)> {
        let change = MembershipChange::RemoveGroup { group };
        let mut of_group = membership.nodes.iter().filter(|it| it.group == group);
        let is_due = of_group.all(|it| self.knows_membership(it, own)) && membership.apply(&change).is_ok();
        is_due.then(|| (change, format!("node group {group}: removed")))
    }

    /// A session wants a node group to leave or to stay. On return the change is under way, or done.
    ///
    /// # Errors
    /// The group cannot leave, or this node cannot change the membership now. The text says which, and
    /// whether it passes.
    pub fn change_group(&mut self, group: u8, leaves: bool) -> Result<(), RemovalRefusal> {
        let membership = self.led_membership()?;
        if group >= membership.open_groups {
            let closed = membership.closed_group() == Some(group);
            let text = if closed { "has not opened yet" } else { "does not exist" };
            return Err(RemovalRefusal::Lasting(format!("node group {group} {text}")));
        }
        if !self.knows_last_change() {
            return Err(RemovalRefusal::Passing("the membership changes".to_owned()));
        }
        if (membership.leaving_group() == Some(group)) == leaves {
            return Ok(());
        }
        let is_first = usize::from(group) < self.settings.first_groups();
        if is_first {
            let text = format!("node group {group} has been there since the first start, and its nodes vote");
            return Err(RemovalRefusal::Lasting(text));
        }
        let last = membership.open_groups - 1;
        if group != last {
            let text = format!("only the last node group can be removed, which is node group {last}");
            return Err(RemovalRefusal::Lasting(text));
        }
        if let Some(closed) = membership.closed_group() {
            let text = format!("node group {closed} was added and has not opened yet");
            return Err(RemovalRefusal::Passing(text));
        }
        if membership.started != membership.epoch {
            return Err(RemovalRefusal::Passing("the membership changes".to_owned()));
        }
        let change = MembershipChange::LeaveGroup { group, leaves };
        let what = if leaves { "is to be removed" } else { "is to stay" };
        self.propose_asked(&change, format!("node group {group}: {what}, as a statement says"))
    }

    /// Whether a member that is heard has installed the membership of this leader.
    fn knows_membership(&self, record: &NodeRecord, own: &NodeReport) -> bool {
        let index = self.installed.as_ref().map_or(0, |(index, _)| *index);
        let report = self.report_of(record.node, own);
        !self.is_present(record) || report.is_some_and(|report| report.index >= index)
    }

    /// The removal of a replica that leaves, once it knows that, if it is heard, and another node of its
    /// group is heard that has everything.
    pub(super) fn next_removal(&self, membership: &Membership, own: &NodeReport) -> Option<(MembershipChange, String)> {
        membership.leaving.iter().find_map(|node| {
            let record = membership.record(node)?;
            let change = MembershipChange::RemoveReplica { node };
            let stays = |it: &NodeRecord| {
                let is_other = it.group == record.group && !membership.leaving.contains(it.node);
                is_other && it.is_serving() && it.is_durable && self.is_present(it) && !self.is_stopping(it)
            };
            let is_due = self.knows_membership(record, own)
                && membership.members().any(stays)
                && membership.apply(&change).is_ok();
            is_due.then(|| (change, format!("node {}: removed from node group {}", node.0, record.group)))
        })
    }

    /// A session wants a data node to leave its group for ever, or to stay. On return the change is under
    /// way, or done. It is done for a node that is to leave and was removed: the statement may be repeated.
    ///
    /// # Errors
    /// The node cannot leave, or this node cannot change the membership now. The text says which, and
    /// whether it passes.
    pub fn change_replica(&mut self, node: NodeId, leaves: bool) -> Result<(), RemovalRefusal> {
        let membership = self.led_membership()?;
        // No change under way can alter these.
        if membership.is_removed(node) {
            let refusal = RemovalRefusal::Lasting(format!("node {} was removed already", node.0));
            return if leaves { Ok(()) } else { Err(refusal) };
        }
        if membership.record(node).is_some() && !membership.added.contains(node) {
            let why = "is one of those with which its node group began; only an added replica can be removed alone";
            return Err(RemovalRefusal::Lasting(format!("node {} {why}", node.0)));
        }
        if !self.knows_last_change() || membership.started != membership.epoch {
            return Err(RemovalRefusal::Passing("the membership changes".to_owned()));
        }
        let Some(record) = membership.record(node) else {
            return Err(RemovalRefusal::Lasting(format!("node {} is in no node group", node.0)));
        };
        if membership.leaving.contains(node) == leaves {
            return Ok(());
        }
        if leaves && !membership.is_replaceable(record) {
            let why = format!("no other node of node group {} serves with a disk that counts", record.group);
            return Err(RemovalRefusal::Passing(format!("node {} cannot leave: {why}", node.0)));
        }
        let what = if leaves { "is to be removed" } else { "is to stay" };
        let change = MembershipChange::LeaveReplica { node, leaves };
        self.propose_asked(&change, format!("node {}: {what}, as a statement says", node.0))
    }

    /// The membership of the cluster that this node leads.
    fn led_membership(&self) -> Result<Arc<Membership>, RemovalRefusal> {
        let membership = self.membership().filter(|_| self.is_raft_leader()).map(Arc::clone);
        membership.ok_or_else(|| RemovalRefusal::Passing("this node does not lead the cluster".to_owned()))
    }

    /// Whether no change is under way. It may be the opposite one, and another leader may have made it.
    fn knows_last_change(&self) -> bool {
        self.voter.as_ref().is_some_and(|voter| voter.uncommitted().is_empty()) && self.hears_majority()
    }

    fn propose_asked(&mut self, change: &MembershipChange, line: String) -> Result<(), RemovalRefusal> {
        match self.voter.as_mut().map(|voter| voter.propose(change)) {
            Some(Ok(())) => {
                self.tell(EventKind::Admitted, line);
                self.drive_voter();
                Ok(())
            }
            _ => Err(RemovalRefusal::Passing("the leader takes no change now".to_owned())),
        }
    }
}
