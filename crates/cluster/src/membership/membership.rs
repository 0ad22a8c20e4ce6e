//! The membership of the cluster, the value that raft replicates, in one long file because all its
//! transitions are here and share its rules. Each transition is a pure function of the value before and the
//! change, so every voter computes the same value. A change whose precondition does not hold is refused, and
//! leaves the value as it is.
//!
//! The rules are numbered as in `docs/decisions/0016-cluster-models.md`.

use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, Incarnation};
use junctor_model::planted_bug::PlantedBug;

use super::{NodeSet, RemovedNode};

/// Largest epoch: a commit number holds 24 bits of it.
const EPOCH_MAX: u32 = (1 << 24) - 1;
/// Maximum number of cuts that the membership remembers.
const CUTS_MAX: usize = 64;

/// The state of a data node in the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Not a member. Its disk may still count at a restart of the cluster.
    Away,
    /// Receives images and decisions. It serves nobody, and no commit waits for it.
    Joining,
    /// Serves. Commits wait for it.
    Serving,
}

/// A data node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// The node.
    pub node: NodeId,
    /// The group: the nodes that hold the same partitions.
    pub group: u8,
    /// The last life that was admitted; 0 before the first.
    pub incarnation: Incarnation,
    /// Its state.
    pub state: NodeState,
    /// Whether its disk counts at a restart of the cluster. Also true for the last durable node of a group
    /// after its eviction, until another node of the group becomes durable (rule 11).
    pub is_durable: bool,
    /// The epoch that admitted `incarnation`.
    pub admitted: Epoch,
    /// The first epoch in which `incarnation` serves; 0 before.
    pub serving_since: Epoch,
    /// The last admission of the node whose epoch has started everywhere. A disk whose last start group is
    /// older was put back to an earlier state, and does not count (rule 13).
    pub known_start: Epoch,
}

impl NodeRecord {
    /// Whether the node belongs to the membership.
    pub fn is_member(&self) -> bool {
        self.state != NodeState::Away
    }

    /// Whether the node serves.
    pub fn is_serving(&self) -> bool {
        self.state == NodeState::Serving
    }
}

/// The cut of a restart of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartCut {
    /// The epoch that began with the restart.
    pub epoch: Epoch,
    /// The last number that the cluster kept.
    pub cut: CommitNumber,
}

/// A disk that is present at a restart of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentDisk {
    /// The node.
    pub node: NodeId,
    /// The life of the node that has recovered the disk.
    pub incarnation: Incarnation,
    /// The epoch of the last start group in its log.
    pub started: Epoch,
    /// The stable number of the last group of its log.
    pub stable: CommitNumber,
}

/// A change of the membership: an entry of raft's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipChange {
    /// Removes nodes that are dead, slow or not heard.
    Evict {
        /// The nodes.
        nodes: NodeSet,
        /// A node that should not become the sequencer: the one of raft's leader.
        avoid: Option<NodeId>,
    },
    /// Admits a node that has recovered: it begins to join.
    Admit {
        /// The node.
        node: NodeId,
        /// Its life, later than every life that was admitted before.
        incarnation: Incarnation,
    },
    /// A joining node has its copies and serves from now on.
    Serve {
        /// The node.
        node: NodeId,
        /// The epoch in which the node and the sequencer found that.
        epoch: Epoch,
    },
    /// The disks of serving nodes count from now on. The sequencer of this epoch includes the nodes' syncs in
    /// its durable number already (rule 10). All groups without a serving durable node get one by the same
    /// change: a mark beside the disk of an evicted node would let a restart cut below the node's copy.
    MarkDurable {
        /// The nodes.
        nodes: NodeSet,
        /// The epoch of the sequencer that asks.
        epoch: Epoch,
    },
    /// Every member has started the current epoch. This change begins no epoch.
    NoteStarted {
        /// The epoch.
        epoch: Epoch,
    },
    /// Begins an epoch before the numbers of the last one are used up, or moves the sequencer.
    Renew {
        /// The sequencer from now on.
        sequencer: NodeId,
    },
    /// The cluster restarts from these disks after all nodes have stopped.
    Restart {
        /// Every disk that is present.
        present: Vec<PresentDisk>,
    },
    /// Adds data nodes as the next group. They join as nodes do that return. Nothing depends on them until
    /// the group opens. This change begins no epoch.
    AddGroup {
        /// The nodes, which no group has yet.
        nodes: NodeSet,
    },
    /// The group that was added serves and is durable. From now on tables are placed in it, and it must not
    /// be lost.
    OpenGroup {
        /// The group.
        group: u8,
        /// The epoch in which the leader found that.
        epoch: Epoch,
    },
    /// The last group is to be removed: from now on no tables are placed in it. Or it is to stay.
    LeaveGroup {
        /// The group.
        group: u8,
        /// Whether it is to be removed.
        leaves: bool,
    },
    /// No table has partitions in the group that leaves. This change begins no epoch.
    NoteEmpty {
        /// The group.
        group: u8,
        /// Every disk that counts has the commits up to this number, and with them the moves of all tables.
        number: CommitNumber,
        /// The epoch of the sequencer that has found it.
        epoch: Epoch,
    },
    /// The nodes of the group that leaves and is empty are no members from now on, and never again.
    RemoveGroup {
        /// The group.
        group: u8,
    },
    /// Adds a data node to an open group, as one more replica of its partitions. It joins as a node does that
    /// returns. This change begins no epoch.
    AddReplica {
        /// The node, which no group has yet.
        node: NodeId,
        /// The group.
        group: u8,
    },
    /// A node that was added as a replica is to be removed, or to stay. This change begins no epoch.
    LeaveReplica {
        /// The node.
        node: NodeId,
        /// Whether it is to be removed.
        leaves: bool,
    },
    /// A replica that leaves is no member from now on, and never again: another node of its group serves, and
    /// its disk counts.
    RemoveReplica {
        /// The node.
        node: NodeId,
    },
    /// Every disk that counts has the commits up to this number. This change begins no epoch.
    NoteDurable {
        /// The number.
        number: CommitNumber,
        /// The epoch of the sequencer that has found it.
        epoch: Epoch,
    },
}

/// Why a change was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRefused {
    /// The node is not in the state that the change needs.
    WrongState(NodeId),
    /// A life of the node that is not earlier was admitted before.
    OldIncarnation(NodeId),
    /// The change belongs to an epoch that is over.
    OldEpoch,
    /// Not every member has started the epoch. Planned changes wait for that.
    EpochNotStarted,
    /// No node of this group would be left that serves since an epoch that has started everywhere.
    GroupLost(u8),
    /// The disks of this group are not sufficient for a restart.
    DisksMissing(u8),
    /// This group would be left without a serving durable node, while other marks change.
    NotDurable(u8),
    /// The node's disk stands for its group until another node of the group becomes durable. It joins then.
    KeepsMark(NodeId),
    /// A group was added that is not open yet.
    GroupNotOpen(u8),
    /// This group is to be removed.
    GroupLeaves(u8),
    /// A node has or had a group already, the change names no nodes, no number of a group is left, or the
    /// group does not exist, or is not in the state that the change needs.
    WrongGroup,
    /// The membership would have more than [`MEMBERS_MAX`] nodes, or a group more than [`REPLICAS_MAX`].
    TooManyNodes,
    /// All 24-bit epochs are used up.
    EpochsExhausted,
}

/// Maximum number of data nodes: a word holds the destinations of a decision of the sequencer.
pub const MEMBERS_MAX: usize = 64;
/// Maximum number of data nodes of a group.
pub const REPLICAS_MAX: usize = 4;

/// The committed membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The number of this membership.
    pub epoch: Epoch,
    /// All data nodes, members or not, in ascending order.
    pub nodes: Vec<NodeRecord>,
    /// Number of groups that are open: they have partitions, and must not be lost. The last group is closed
    /// after it was added, until its nodes serve.
    pub open_groups: u8,
    /// Whether the last open group is to be removed. Then no group is closed.
    pub is_leaving: bool,
    /// Whether no table has partitions in the group that leaves.
    pub is_emptied: bool,
    /// The nodes that were removed, alone or with their groups, in ascending order.
    pub removed: Vec<RemovedNode>,
    /// The nodes that were added to an open group, each as one more replica.
    pub added: NodeSet,
    /// The added nodes that are to be removed.
    pub leaving: NodeSet,
    /// The replicas of each group of partitions, the primary first. Joining nodes are last.
    pub chains: Vec<Vec<NodeId>>,
    /// The node that numbers commits.
    pub sequencer: NodeId,
    /// The last epoch that is known to have started at all its members.
    pub started: Epoch,
    /// The last epoch that began with a restart of all nodes, or with the creation of the cluster.
    pub restarted: Epoch,
    /// Cuts of restarts, ascending by epoch and by number.
    pub cuts: Vec<RestartCut>,
    /// Every disk that counts has the commits up to this number at least. A disk that ends below was put back
    /// to an earlier state or has lost writes, and does not count.
    pub durable: CommitNumber,
}

impl Membership {
    /// The membership before the first start of a cluster: no node is a member, and every disk counts as
    /// empty. The first change is a restart of all nodes. `nodes` are pairs of node and group, in ascending
    /// order.
    pub fn unstarted(nodes: &[(NodeId, u8)], chains: Vec<Vec<NodeId>>, sequencer: NodeId) -> Membership {
        let mut membership = Membership::create(nodes, chains, sequencer);
        (membership.epoch, membership.restarted) = (Epoch(0), Epoch(0));
        for record in &mut membership.nodes {
            let (incarnation, state, none) = (Incarnation(0), NodeState::Away, Epoch(0));
            *record = NodeRecord { incarnation, state, admitted: none, serving_since: none, ..*record };
        }
        membership
    }

    /// A membership whose nodes all serve and are durable, in their lives 1, 2 and so on. `nodes` are pairs
    /// of node and group, in ascending order.
    pub fn create(nodes: &[(NodeId, u8)], chains: Vec<Vec<NodeId>>, sequencer: NodeId) -> Membership {
        let epoch = Epoch(1);
        let record = |(index, &(node, group)): (usize, &(NodeId, u8))| NodeRecord {
            node,
            group,
            incarnation: Incarnation(index as u32 + 1),
            state: NodeState::Serving,
            is_durable: true,
            admitted: epoch,
            serving_since: epoch,
            known_start: Epoch(0),
        };
        Membership {
            epoch,
            nodes: nodes.iter().enumerate().map(record).collect(),
            open_groups: nodes.iter().map(|(_, group)| group.saturating_add(1)).max().unwrap_or_default(),
            is_leaving: false,
            is_emptied: false,
            removed: Vec::new(),
            added: NodeSet::EMPTY,
            leaving: NodeSet::EMPTY,
            chains,
            sequencer,
            started: Epoch(0),
            restarted: epoch,
            cuts: Vec::new(),
            durable: CommitNumber(0),
        }
    }

    /// The record of a data node.
    pub fn record(&self, node: NodeId) -> Option<&NodeRecord> {
        let index = self.nodes.binary_search_by_key(&node, |record| record.node).ok()?;
        Some(&self.nodes[index])
    }

    /// The nodes that belong to the membership.
    pub fn members(&self) -> impl Iterator<Item = &NodeRecord> + Clone {
        self.nodes.iter().filter(|record| record.is_member())
    }

    /// The nodes that serve.
    pub fn serving(&self) -> impl Iterator<Item = &NodeRecord> + Clone {
        self.nodes.iter().filter(|record| record.is_serving())
    }

    /// Whether this life of the node belongs to the membership. Links of other lives are refused.
    pub fn has(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.record(node).is_some_and(|record| record.is_member() && record.incarnation == incarnation)
    }

    /// The primary of a chain: its first serving node.
    pub fn primary(&self, chain: usize) -> Option<NodeId> {
        self.chains[chain].iter().copied().find(|node| self.record(*node).is_some_and(NodeRecord::is_serving))
    }

    /// Whether both memberships have the same life of the same node as primary of a chain.
    pub fn has_same_primary(&self, other: &Membership, chain: usize) -> bool {
        let life = |membership: &Membership| {
            let node = membership.primary(chain)?;
            membership.record(node).map(|record| (record.node, record.incarnation))
        };
        life(self) == life(other)
    }

    /// The open groups, ascending.
    pub fn groups(&self) -> impl Iterator<Item = u8> + Clone + use<> {
        0..self.open_groups
    }

    /// The number to which a disk recovers: the stable number of its log, or the least cut of the restarts
    /// after its last start (rule 12).
    pub fn recovers_to(&self, disk: &PresentDisk) -> CommitNumber {
        let later = self.cuts.iter().filter(|cut| cut.epoch > disk.started).map(|cut| cut.cut);
        later.fold(disk.stable, CommitNumber::min)
    }

    /// The nodes that are last in chains: those that serve since a later epoch than others of their group,
    /// then those that do not serve yet.
    pub fn late(&self) -> Vec<NodeId> {
        let since = |record: &NodeRecord| match record.is_serving() {
            true => (record.serving_since, record.admitted),
            false => (Epoch(u32::MAX), record.admitted),
        };
        let first = |group| self.members().filter(|it| it.group == group).map(|it| since(it).0).min();
        let is_late = |record: &&NodeRecord| Some(since(record).0) != first(record.group);
        let mut late: Vec<&NodeRecord> = self.members().filter(is_late).collect();
        late.sort_by_key(|record| since(record));
        late.into_iter().map(|record| record.node).collect()
    }

    /// Whether a serving node has every commit of the epochs before: it serves since an epoch that has
    /// started everywhere, or since the last restart of all nodes.
    pub(super) fn is_complete(&self, record: &NodeRecord) -> bool {
        record.is_serving() && record.serving_since <= self.started.max(self.restarted)
    }

    /// The membership after the change.
    ///
    /// # Errors
    /// The precondition that does not hold.
    pub fn apply(&self, change: &MembershipChange) -> Result<Membership, ChangeRefused> {
        let mut next = self.clone();
        match change {
            MembershipChange::NoteStarted { epoch } => return self.note_started(*epoch),
            MembershipChange::Evict { nodes, avoid } => next.evict(*nodes, *avoid)?,
            MembershipChange::Admit { node, incarnation } => next.admit(*node, *incarnation)?,
            MembershipChange::Serve { node, epoch } => next.serve(*node, *epoch)?,
            MembershipChange::MarkDurable { nodes, epoch } => next.mark_durable(*nodes, *epoch)?,
            MembershipChange::Renew { sequencer } => {
                next.check_planned()?;
                next.check_state(*sequencer, NodeState::Serving)?;
                next.sequencer = *sequencer;
            }
            MembershipChange::Restart { present } => next.restart(present)?,
            MembershipChange::AddGroup { nodes } => {
                next.add_group(*nodes)?;
                return Ok(next);
            }
            MembershipChange::OpenGroup { group, epoch } => next.open_group(*group, *epoch)?,
            MembershipChange::LeaveGroup { group, leaves } => next.leave_group(*group, *leaves)?,
            MembershipChange::NoteEmpty { group, number, epoch } => {
                next.note_empty(*group, *number, *epoch)?;
                return Ok(next);
            }
            MembershipChange::RemoveGroup { group } => next.remove_group(*group)?,
            MembershipChange::AddReplica { node, group } => {
                next.add_replica(*node, *group)?;
                return Ok(next);
            }
            MembershipChange::LeaveReplica { node, leaves } => {
                next.leave_replica(*node, *leaves)?;
                return Ok(next);
            }
            MembershipChange::RemoveReplica { node } => next.remove_replica(*node)?,
            MembershipChange::NoteDurable { number, epoch } => {
                next.check_request(*epoch)?;
                next.durable = next.durable.max(*number);
                return Ok(next);
            }
        }
        if self.epoch.0 == EPOCH_MAX {
            return Err(ChangeRefused::EpochsExhausted);
        }
        // A restart from restored disks begins behind their numbers.
        next.epoch = if next.restarted > self.epoch { next.restarted } else { self.next_epoch() };
        Ok(next)
    }

    fn next_epoch(&self) -> Epoch {
        Epoch(self.epoch.0 + 1)
    }

    pub(super) fn check_planned(&self) -> Result<(), ChangeRefused> {
        if self.started == self.epoch { Ok(()) } else { Err(ChangeRefused::EpochNotStarted) }
    }

    fn check_state(&self, node: NodeId, state: NodeState) -> Result<(), ChangeRefused> {
        let has_state = self.record(node).is_some_and(|record| record.state == state);
        if has_state { Ok(()) } else { Err(ChangeRefused::WrongState(node)) }
    }

    fn record_mut(&mut self, node: NodeId) -> Result<&mut NodeRecord, ChangeRefused> {
        let index = self.nodes.binary_search_by_key(&node, |record| record.node);
        index.map(|index| &mut self.nodes[index]).map_err(|_| ChangeRefused::WrongState(node))
    }

    fn note_started(&self, epoch: Epoch) -> Result<Membership, ChangeRefused> {
        if epoch != self.epoch || epoch <= self.started {
            return Err(ChangeRefused::OldEpoch);
        }
        let mut next = self.clone();
        next.started = epoch;
        for record in next.nodes.iter_mut().filter(|record| record.is_member()) {
            record.known_start = record.admitted;
        }
        Ok(next)
    }

    fn evict(&mut self, nodes: NodeSet, avoid: Option<NodeId>) -> Result<(), ChangeRefused> {
        if let Some(node) = nodes.iter().find(|node| !self.record(*node).is_some_and(NodeRecord::is_member)) {
            return Err(ChangeRefused::WrongState(node));
        }
        if nodes.is_empty() {
            return Err(ChangeRefused::WrongState(self.sequencer));
        }
        for group in self.groups() {
            let mut complete = self.nodes.iter().filter(|record| record.group == group && self.is_complete(record));
            if complete.all(|record| nodes.contains(record.node)) {
                return Err(ChangeRefused::GroupLost(group));
            }
        }
        for node in nodes.iter() {
            let group = self.record_mut(node)?.group;
            let is_in_group = |record: &NodeRecord| record.group == group && record.is_durable && record.node != node;
            // No row is lost with the disks of a closed group.
            let has_other_durable = self.nodes.iter().any(is_in_group) || group >= self.open_groups;
            let record = self.record_mut(node)?;
            record.state = NodeState::Away;
            record.is_durable &= !has_other_durable;
            self.chains.iter_mut().for_each(|chain| chain.retain(|replica| *replica != node));
        }
        if nodes.contains(self.sequencer) {
            let serving = || self.serving().map(|record| record.node);
            let preferred = serving().find(|node| Some(*node) != avoid);
            let chosen = preferred.or_else(|| serving().next());
            self.sequencer = chosen.ok_or(ChangeRefused::WrongState(self.sequencer))?;
        }
        Ok(())
    }

    fn admit(&mut self, node: NodeId, incarnation: Incarnation) -> Result<(), ChangeRefused> {
        self.check_planned()?;
        self.check_state(node, NodeState::Away)?;
        if self.record(node).is_some_and(|record| record.is_durable) {
            return Err(ChangeRefused::KeepsMark(node));
        }
        let admitted = self.next_epoch();
        let record = self.record_mut(node)?;
        if incarnation <= record.incarnation {
            return Err(ChangeRefused::OldIncarnation(node));
        }
        *record = NodeRecord { incarnation, state: NodeState::Joining, admitted, serving_since: Epoch(0), ..*record };
        let group = record.group;
        for index in 0..self.chains.len() {
            let is_of_group =
                self.chains[index].iter().any(|it| self.record(*it).is_some_and(|record| record.group == group));
            if is_of_group {
                self.chains[index].push(node);
            }
        }
        Ok(())
    }

    fn serve(&mut self, node: NodeId, epoch: Epoch) -> Result<(), ChangeRefused> {
        self.check_request(epoch)?;
        self.check_state(node, NodeState::Joining)?;
        let serving_since = self.next_epoch();
        let record = self.record_mut(node)?;
        *record = NodeRecord { state: NodeState::Serving, serving_since, ..*record };
        Ok(())
    }

    fn mark_durable(&mut self, nodes: NodeSet, epoch: Epoch) -> Result<(), ChangeRefused> {
        self.check_request(epoch)?;
        for node in nodes.iter() {
            self.check_state(node, NodeState::Serving)?;
            self.record_mut(node)?.is_durable = true;
        }
        let is_marked = |group| self.serving().any(|record| record.group == group && record.is_durable);
        if let Some(group) = self.groups().find(|group| !is_marked(*group)) {
            return Err(ChangeRefused::NotDurable(group));
        }
        // The disks of serving nodes stand for all groups now.
        let away = self.nodes.iter_mut().filter(|record| record.state != NodeState::Serving);
        away.for_each(|record| record.is_durable = false);
        Ok(())
    }

    /// Checks a request of an epoch's sequencer: it counts only in that epoch.
    pub(super) fn check_request(&self, epoch: Epoch) -> Result<(), ChangeRefused> {
        if epoch != self.epoch {
            return Err(ChangeRefused::OldEpoch);
        }
        self.check_planned()
    }

    /// The disks that count at a restart: those with a mark that have all commits which every such disk has
    /// had.
    pub fn counted_disks<'a>(&'a self, present: &'a [PresentDisk]) -> impl Iterator<Item = &'a PresentDisk> + Clone {
        self.marked_disks(present).filter(|disk| disk.stable >= self.durable)
    }

    /// The disks that are durable by the last membership, and not older than their node's last known start.
    /// The first start of a cluster may be from restored disks. They all have the commits of one backup, and
    /// empty ones beside them do not count.
    pub fn marked_disks<'a>(&'a self, present: &'a [PresentDisk]) -> impl Iterator<Item = &'a PresentDisk> + Clone {
        let is_first = self.epoch == Epoch(0);
        let restored = present.iter().map(|disk| disk.stable).max().filter(|_| is_first).unwrap_or_default();
        present.iter().filter(move |disk| {
            let counts = |record: &NodeRecord| record.is_durable && disk.started >= record.known_start;
            disk.stable >= restored && self.record(disk.node).is_some_and(counts)
        })
    }

    /// The cut of a restart: the least number to which a counted disk recovers.
    ///
    /// # Errors
    /// `DisksMissing` if a group has no counted disk.
    pub fn restart_cut(&self, present: &[PresentDisk]) -> Result<CommitNumber, ChangeRefused> {
        let group_of = |disk: &PresentDisk| self.record(disk.node).map(|record| record.group);
        let counted = self.counted_disks(present);
        let missing = self.groups().find(|group| counted.clone().all(|disk| group_of(disk) != Some(*group)));
        if let Some(group) = missing {
            return Err(ChangeRefused::DisksMissing(group));
        }
        let counted = counted.filter(|disk| !PlantedBug::CutOfOneGroup.is_planted() || group_of(disk) == Some(0));
        Ok(counted.map(|disk| self.recovers_to(disk)).min().unwrap_or_default())
    }

    fn restart(&mut self, present: &[PresentDisk]) -> Result<(), ChangeRefused> {
        let cut = self.restart_cut(present)?;
        let counted: NodeSet = self.counted_disks(present).map(|disk| disk.node).collect();
        // The numbers of the epoch are above those of disks that another cluster has written.
        let epoch = self.next_epoch().max(Epoch(cut.epoch().0 + 1));
        if epoch.0 > EPOCH_MAX {
            return Err(ChangeRefused::EpochsExhausted);
        }
        for record in &mut self.nodes {
            let disk = present.iter().find(|disk| disk.node == record.node && counted.contains(disk.node));
            record.state = if disk.is_some() { NodeState::Serving } else { NodeState::Away };
            record.is_durable = disk.is_some();
            if let Some(disk) = disk {
                if disk.incarnation <= record.incarnation {
                    return Err(ChangeRefused::OldIncarnation(disk.node));
                }
                (record.incarnation, record.admitted, record.serving_since) = (disk.incarnation, epoch, epoch);
            }
        }
        self.restart_chains(counted);
        if !counted.contains(self.sequencer) {
            self.sequencer = counted.iter().next().unwrap_or(self.sequencer);
        }
        self.restarted = epoch;
        self.add_cut(RestartCut { epoch, cut });
        Ok(())
    }

    /// Keeps the order of replicas, and adds counted nodes that the chains of their group lack.
    fn restart_chains(&mut self, counted: NodeSet) {
        for index in 0..self.chains.len() {
            let group = self.chains[index].iter().find_map(|node| self.record(*node)).map(|record| record.group);
            let mut chain = std::mem::take(&mut self.chains[index]);
            chain.retain(|node| counted.contains(*node));
            let added: Vec<NodeId> = self.nodes.iter().filter(|it| Some(it.group) == group).map(|it| it.node).collect();
            let added = added.into_iter().filter(|node| counted.contains(*node));
            for node in added {
                if !chain.contains(&node) {
                    chain.push(node);
                }
            }
            self.chains[index] = chain;
        }
    }

    /// Remembers a cut. An earlier cut that is not lower never decides where a disk recovers to.
    fn add_cut(&mut self, cut: RestartCut) {
        self.cuts.retain(|earlier| earlier.cut < cut.cut);
        self.cuts.push(cut);
        // A disk that was away during as many restarts recovers to a lower number, and copies more.
        while self.cuts.len() > CUTS_MAX {
            let oldest = self.cuts.remove(0);
            self.cuts[0].cut = oldest.cut;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(epoch: u32, counter: u64) -> CommitNumber {
        CommitNumber::new(Epoch(epoch), counter)
    }

    fn set(nodes: &[u8]) -> NodeSet {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    /// Nodes 1 and 2 are a group, 3 and 4 another.
    fn created() -> Membership {
        let nodes = [(NodeId(1), 0), (NodeId(2), 0), (NodeId(3), 1), (NodeId(4), 1)];
        let chains = [[1, 2], [2, 1], [3, 4]].map(|chain| chain.map(NodeId).to_vec()).to_vec();
        noted(Membership::create(&nodes, chains, NodeId(1)))
    }

    fn noted(membership: Membership) -> Membership {
        membership.apply(&MembershipChange::NoteStarted { epoch: membership.epoch }).unwrap()
    }

    fn evict(membership: &Membership, nodes: &[u8]) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::Evict { nodes: set(nodes), avoid: None })
    }

    fn admit(membership: &Membership, node: u8) -> Result<Membership, ChangeRefused> {
        let incarnation = Incarnation(membership.record(NodeId(node)).unwrap().incarnation.0 + 4);
        membership.apply(&MembershipChange::Admit { node: NodeId(node), incarnation })
    }

    fn serve(membership: &Membership, node: u8) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::Serve { node: NodeId(node), epoch: membership.epoch })
    }

    fn mark(membership: &Membership, node: u8) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::MarkDurable { nodes: set(&[node]), epoch: membership.epoch })
    }

    /// Node 2 was evicted, has joined again, and serves.
    fn rejoined() -> Membership {
        let membership = noted(evict(&created(), &[2]).unwrap());
        let membership = noted(admit(&membership, 2).unwrap());
        serve(&membership, 2).unwrap()
    }

    #[test]
    fn an_evicted_node_leaves_its_chains_and_the_next_replica_is_primary() {
        let before = created();
        let after = evict(&before, &[1]).unwrap();
        assert_eq!((after.epoch, after.sequencer), (Epoch(2), NodeId(2)));
        assert_eq!(after.primary(0), Some(NodeId(2)));
        assert!(!after.has_same_primary(&before, 0) && after.has_same_primary(&before, 1));
        assert!(before.has(NodeId(1), Incarnation(1)) && !after.has(NodeId(1), Incarnation(1)));
    }

    #[test]
    fn the_sequencer_moves_only_when_it_must_and_avoids_the_leader() {
        let change = MembershipChange::Evict { nodes: set(&[1]), avoid: Some(NodeId(2)) };
        assert_eq!(created().apply(&change).unwrap().sequencer, NodeId(3));
        assert_eq!(evict(&created(), &[4]).unwrap().sequencer, NodeId(1));
        let moved = created().apply(&MembershipChange::Renew { sequencer: NodeId(3) }).unwrap();
        assert_eq!((moved.sequencer, moved.epoch), (NodeId(3), Epoch(2)));
    }

    #[test]
    fn every_group_keeps_a_node_that_serves_since_a_started_epoch() {
        assert_eq!(evict(&created(), &[1, 2]), Err(ChangeRefused::GroupLost(0)));
        let membership = rejoined();
        assert_eq!(evict(&membership, &[1]), Err(ChangeRefused::GroupLost(0)));
        assert!(evict(&noted(membership), &[1]).is_ok());
    }

    #[test]
    fn planned_changes_wait_until_the_epoch_has_started() {
        let membership = evict(&created(), &[2]).unwrap();
        assert_eq!(admit(&membership, 2), Err(ChangeRefused::EpochNotStarted));
        assert_eq!(admit(&noted(membership.clone()), 1), Err(ChangeRefused::WrongState(NodeId(1))));
        assert!(admit(&noted(membership), 2).is_ok());
    }

    #[test]
    fn an_admitted_node_has_a_new_incarnation_and_is_last_in_its_chains() {
        let membership = noted(evict(&created(), &[1]).unwrap());
        let joining = admit(&membership, 1).unwrap();
        let record = joining.record(NodeId(1)).unwrap();
        assert_eq!((record.incarnation, record.state, record.admitted), (Incarnation(5), NodeState::Joining, Epoch(3)));
        assert_eq!(joining.chains[0], [NodeId(2), NodeId(1)]);
        assert_eq!(joining.chains[2], [NodeId(3), NodeId(4)]);
        assert_eq!(joining.primary(0), Some(NodeId(2)));
        let serving = serve(&noted(joining), 1).unwrap();
        assert_eq!(serving.record(NodeId(1)).unwrap().serving_since, Epoch(4));
    }

    #[test]
    fn a_life_is_admitted_once() {
        let membership = noted(evict(&created(), &[1]).unwrap());
        let again = MembershipChange::Admit { node: NodeId(1), incarnation: Incarnation(1) };
        assert_eq!(membership.apply(&again), Err(ChangeRefused::OldIncarnation(NodeId(1))));
        let present = [1, 3].map(|node| PresentDisk { incarnation: Incarnation(1), ..disk(node, 1, number(1, 5)) });
        assert_eq!(restart(&created(), &present), Err(ChangeRefused::OldIncarnation(NodeId(1))));
    }

    #[test]
    fn the_first_start_of_a_cluster_is_a_restart_from_empty_disks() {
        let nodes = [(NodeId(1), 0), (NodeId(2), 0)];
        let chains = vec![[1, 2].map(NodeId).to_vec(), [2, 1].map(NodeId).to_vec()];
        let unstarted = Membership::unstarted(&nodes, chains.clone(), NodeId(2));
        assert_eq!((unstarted.epoch, unstarted.members().count()), (Epoch(0), 0));
        let present = [1, 2].map(|node| disk(node, 0, CommitNumber(0)));
        let first = restart(&unstarted, &present).unwrap();
        assert_eq!((first.epoch, first.serving().count(), first.sequencer), (Epoch(1), 2, NodeId(2)));
        assert_eq!(first.chains, chains);
        assert!(first.has(NodeId(1), Incarnation(11)));
    }

    #[test]
    fn requests_of_an_earlier_epoch_are_refused() {
        let membership = noted(rejoined());
        let old = MembershipChange::MarkDurable { nodes: set(&[2]), epoch: Epoch(membership.epoch.0 - 1) };
        assert_eq!(membership.apply(&old), Err(ChangeRefused::OldEpoch));
        assert!(mark(&membership, 2).is_ok());
        let note = MembershipChange::NoteStarted { epoch: membership.epoch };
        assert_eq!(membership.apply(&note), Err(ChangeRefused::OldEpoch));
    }

    #[test]
    fn the_last_durable_node_of_a_group_keeps_its_mark_until_another_has_one() {
        let membership = noted(rejoined());
        assert!(!membership.record(NodeId(2)).unwrap().is_durable);
        let without = noted(evict(&membership, &[1]).unwrap());
        assert!(without.record(NodeId(1)).unwrap().is_durable);
        let marked = mark(&without, 2).unwrap();
        assert!(!marked.record(NodeId(1)).unwrap().is_durable && marked.record(NodeId(2)).unwrap().is_durable);
        let both = evict(&created(), &[4]).unwrap();
        assert!(!both.record(NodeId(4)).unwrap().is_durable);
    }

    #[test]
    fn groups_that_lost_their_last_durable_nodes_get_new_ones_by_one_change() {
        let mut membership = created();
        for node in [2, 4] {
            membership = noted(evict(&membership, &[node]).unwrap());
            membership = noted(admit(&membership, node).unwrap());
            membership = noted(serve(&membership, node).unwrap());
        }
        let membership = noted(evict(&membership, &[1, 3]).unwrap());
        assert_eq!(mark(&membership, 2), Err(ChangeRefused::NotDurable(1)));
        assert_eq!(mark(&membership, 4), Err(ChangeRefused::NotDurable(0)));
        assert_eq!(admit(&membership, 1), Err(ChangeRefused::KeepsMark(NodeId(1))));
        let both = MembershipChange::MarkDurable { nodes: set(&[2, 4]), epoch: membership.epoch };
        let marked = noted(membership.apply(&both).unwrap());
        let durable = marked.nodes.iter().filter(|record| record.is_durable).map(|record| record.node.0);
        assert_eq!(durable.collect::<Vec<_>>(), [2, 4]);
        assert!(admit(&marked, 1).is_ok());
    }

    fn disk(node: u8, started: u32, stable: CommitNumber) -> PresentDisk {
        PresentDisk {
            node: NodeId(node),
            incarnation: Incarnation(u32::from(node) + 10),
            started: Epoch(started),
            stable,
        }
    }

    fn restart(membership: &Membership, present: &[PresentDisk]) -> Result<Membership, ChangeRefused> {
        membership.apply(&MembershipChange::Restart { present: present.to_vec() })
    }

    #[test]
    fn a_restart_needs_a_durable_disk_of_every_group_and_cuts_at_the_least() {
        let membership = created();
        let present = [disk(1, 1, number(1, 9)), disk(2, 1, number(1, 7)), disk(4, 1, number(1, 8))];
        assert_eq!(restart(&membership, &present[..2]), Err(ChangeRefused::DisksMissing(1)));
        let after = restart(&membership, &present).unwrap();
        assert_eq!(after.cuts, [RestartCut { epoch: Epoch(2), cut: number(1, 7) }]);
        assert_eq!(after.record(NodeId(3)).unwrap().state, NodeState::Away);
        assert!(!after.record(NodeId(3)).unwrap().is_durable);
        assert_eq!(after.record(NodeId(4)).unwrap().incarnation, Incarnation(14));
        assert_eq!(after.chains, [vec![NodeId(1), NodeId(2)], vec![NodeId(2), NodeId(1)], vec![NodeId(4)]]);
        let of_other_group = [disk(1, 1, number(1, 9)), disk(4, 1, number(1, 6))];
        assert_eq!(membership.restart_cut(&of_other_group), Ok(number(1, 6)));
        // All of them are complete, so one may fail at once.
        assert!(evict(&after, &[1]).is_ok());
    }

    #[test]
    fn the_disk_of_the_last_durable_node_counts_although_it_is_no_member() {
        let membership = noted(evict(&noted(rejoined()), &[1]).unwrap());
        let (own, other) = (disk(1, 1, number(1, 5)), disk(3, 1, number(1, 6)));
        let present = [own, disk(2, 3, number(4, 9)), other];
        let after = restart(&membership, &present).unwrap();
        assert_eq!(after.serving().map(|it| it.node.0).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(after.chains[0], [NodeId(1)]);
    }

    #[test]
    fn a_disk_without_its_last_known_start_does_not_count() {
        let membership = restart(&created(), &[1, 2, 3, 4].map(|node| disk(node, 1, number(1, 5)))).unwrap();
        let present = [disk(1, 1, number(1, 5)), disk(3, 2, number(2, 1))];
        let present = present.map(|disk| PresentDisk { incarnation: Incarnation(50), ..disk });
        // The restart has not started everywhere, so the older start may be the last one.
        assert!(restart(&membership, &present).is_ok());
        assert_eq!(restart(&noted(membership), &present), Err(ChangeRefused::DisksMissing(0)));
    }

    #[test]
    fn a_disk_recovers_to_the_least_cut_since_its_start() {
        let mut membership = created();
        membership.add_cut(RestartCut { epoch: Epoch(2), cut: number(1, 7) });
        membership.add_cut(RestartCut { epoch: Epoch(4), cut: number(2, 30) });
        assert_eq!(membership.recovers_to(&disk(1, 1, number(1, 12))), number(1, 7));
        assert_eq!(membership.recovers_to(&disk(1, 2, number(2, 40))), number(2, 30));
        assert_eq!(membership.recovers_to(&disk(1, 4, number(4, 2))), number(4, 2));
        // A lower cut makes earlier ones superfluous.
        membership.add_cut(RestartCut { epoch: Epoch(6), cut: number(1, 3) });
        assert_eq!(membership.cuts.len(), 1);
        for epoch in 7..200 {
            membership.add_cut(RestartCut { epoch: Epoch(epoch), cut: number(epoch, 1) });
        }
        assert_eq!(membership.cuts.len(), CUTS_MAX);
        assert_eq!(membership.recovers_to(&disk(1, 1, number(900, 1))), number(1, 3));
    }

    #[test]
    fn an_added_group_is_nothing_that_others_depend_on_until_it_opens() {
        let add = MembershipChange::AddGroup { nodes: set(&[7, 8]) };
        let mut membership = created().apply(&add).unwrap();
        assert_eq!((membership.epoch, membership.open_groups, membership.closed_group()), (Epoch(1), 2, Some(2)));
        let another = MembershipChange::AddGroup { nodes: set(&[9]) };
        assert_eq!(membership.apply(&another), Err(ChangeRefused::GroupNotOpen(2)));
        let again = MembershipChange::AddGroup { nodes: set(&[4]) };
        assert_eq!(created().apply(&again), Err(ChangeRefused::WrongGroup));
        let many: Vec<u8> = (10..=10 + MEMBERS_MAX as u8 - 4).collect();
        let add_many = |nodes: &[u8]| created().apply(&MembershipChange::AddGroup { nodes: set(nodes) });
        assert_eq!(add_many(&many), Err(ChangeRefused::TooManyNodes));
        assert!(add_many(&many[1..]).is_ok());
        let open = |membership: &Membership| {
            membership.apply(&MembershipChange::OpenGroup { group: 2, epoch: membership.epoch })
        };
        for node in [7, 8] {
            assert_eq!(open(&membership), Err(ChangeRefused::WrongState(NodeId(node))));
            membership = noted(admit(&membership, node).unwrap());
            membership = noted(serve(&membership, node).unwrap());
            membership = noted(mark(&membership, node).unwrap());
        }
        // Neither its nodes nor its disks are missed.
        let without = noted(evict(&membership, &[7, 8]).unwrap());
        assert!(admit(&without, 7).is_ok());
        let present = [disk(1, 1, number(1, 9)), disk(3, 1, number(1, 9))];
        assert!(restart(&without, &present).is_ok());
        let opened = noted(open(&membership).unwrap());
        let group: Vec<u8> = opened.chains_of_groups()[2].iter().flatten().map(|node| node.0).collect();
        assert_eq!((group, opened.late()), (vec![7, 8, 8, 7], vec![]));
        assert_eq!(evict(&opened, &[7, 8]), Err(ChangeRefused::GroupLost(2)));
        assert_eq!(restart(&opened, &present), Err(ChangeRefused::DisksMissing(2)));
        for membership in [membership, opened] {
            assert_eq!(Membership::decode(&membership.encode()), Ok(membership));
        }
    }

    #[test]
    fn a_removed_group_is_nothing_that_others_depend_on_and_never_returns() {
        let leave =
            |membership: &Membership, group, leaves| membership.apply(&MembershipChange::LeaveGroup { group, leaves });
        let empty = |membership: &Membership, epoch| {
            membership.apply(&MembershipChange::NoteEmpty { group: 1, number: number(1, 7), epoch: Epoch(epoch) })
        };
        let remove = |membership: &Membership| membership.apply(&MembershipChange::RemoveGroup { group: 1 });
        for (group, leaves) in [(0, true), (2, true), (u8::MAX, true), (1, false)] {
            assert_eq!(leave(&created(), group, leaves), Err(ChangeRefused::WrongGroup));
        }
        assert_eq!(empty(&created(), 1), Err(ChangeRefused::WrongGroup));
        let leaving = leave(&created(), 1, true).unwrap();
        assert_eq!((leaving.epoch, leaving.leaving_group(), leaving.placed_groups()), (Epoch(2), Some(1), 1));
        assert_eq!(empty(&leaving, 2), Err(ChangeRefused::EpochNotStarted));
        let leaving = noted(leaving);
        assert_eq!(remove(&leaving), Err(ChangeRefused::WrongGroup), "it may have rows");
        assert_eq!(leave(&leaving, 1, true), Err(ChangeRefused::WrongGroup));
        let add = MembershipChange::AddGroup { nodes: set(&[7, 8]) };
        assert_eq!(leaving.apply(&add), Err(ChangeRefused::GroupLeaves(1)));
        // It still has rows.
        assert_eq!(evict(&leaving, &[3, 4]), Err(ChangeRefused::GroupLost(1)));
        assert_eq!(empty(&leaving, 1), Err(ChangeRefused::OldEpoch));
        let emptied = empty(&leaving, 2).unwrap();
        assert_eq!((emptied.epoch, emptied.durable), (Epoch(2), number(1, 7)));
        assert_eq!(empty(&emptied, 2), Err(ChangeRefused::WrongGroup));
        let stays = noted(leave(&emptied, 1, false).unwrap());
        assert_eq!((stays.leaving_group(), stays.placed_groups(), stays.is_emptied), (None, 2, false));
        let moved = MembershipChange::Evict { nodes: set(&[1]), avoid: Some(NodeId(2)) };
        let leaving = noted(leaving.apply(&moved).unwrap());
        assert_eq!(leaving.sequencer, NodeId(3));
        let emptied = empty(&leaving, 3).unwrap();
        let without = remove(&emptied).unwrap();
        assert_eq!((without.epoch, without.open_groups, without.leaving_group()), (Epoch(4), 1, None));
        assert_eq!((without.sequencer, without.durable), (NodeId(2), number(1, 7)));
        assert_eq!(without.nodes.iter().map(|it| it.node.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(without.chains, [vec![NodeId(2)], vec![NodeId(2)]]);
        assert!(without.is_removed(NodeId(4)) && !without.is_removed(NodeId(2)));
        let removed: Vec<(u8, u32)> = without.removed.iter().map(|it| (it.node.0, it.incarnation.0)).collect();
        assert_eq!(removed, [(3, 3), (4, 4)]);
        let again = MembershipChange::AddGroup { nodes: set(&[4, 9]) };
        assert_eq!(noted(without.clone()).apply(&again), Err(ChangeRefused::WrongGroup));
        // A restart needs no disk of the group, and counts none without the last moves.
        let present = [disk(2, 1, number(1, 9)), disk(3, 1, number(1, 9))];
        assert_eq!(restart(&without, &present).unwrap().serving().count(), 1);
        assert_eq!(restart(&without, &[disk(2, 1, number(1, 6))]), Err(ChangeRefused::DisksMissing(0)));
        for membership in [leaving, emptied, stays, without] {
            assert_eq!(Membership::decode(&membership.encode()), Ok(membership));
        }
    }

    #[test]
    fn a_disk_below_the_number_that_all_disks_have_had_never_counts() {
        let note = |number, epoch| MembershipChange::NoteDurable { number, epoch: Epoch(epoch) };
        let membership = created().apply(&note(number(1, 8), 1)).unwrap();
        assert_eq!((membership.epoch, membership.durable), (Epoch(1), number(1, 8)));
        assert_eq!(membership.apply(&note(number(1, 9), 2)), Err(ChangeRefused::OldEpoch));
        assert_eq!(membership.apply(&note(number(1, 7), 1)).unwrap().durable, number(1, 8), "it never falls");
        let present = [disk(1, 1, number(1, 9)), disk(2, 1, number(1, 7)), disk(4, 1, number(1, 8))];
        let after = restart(&membership, &present).unwrap();
        assert_eq!(after.cuts, [RestartCut { epoch: Epoch(2), cut: number(1, 8) }]);
        assert!(!after.record(NodeId(2)).unwrap().is_durable);
        // The other one was evicted, so the old disk is the only one with a mark.
        let without = noted(evict(&membership, &[1]).unwrap());
        assert_eq!(restart(&without, &present), Err(ChangeRefused::DisksMissing(0)));
        assert_eq!(Membership::decode(&without.encode()), Ok(without));
    }

    #[test]
    fn epochs_end() {
        let mut membership = created();
        membership.epoch = Epoch(EPOCH_MAX);
        assert_eq!(evict(&membership, &[2]), Err(ChangeRefused::EpochsExhausted));
    }
}
