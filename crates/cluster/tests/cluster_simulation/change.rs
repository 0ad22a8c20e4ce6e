//! Changes of the membership, and faults: crashes, evictions of live nodes, pauses, losses of all power.

use std::sync::Arc;

use junctor_cluster::membership::membership::PresentDisk;
use junctor_cluster::membership::{Membership, MembershipChange, NodeRecord, NodeSet, NodeState};
use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};

use super::coordinator::Answer;
use super::message::{Bug, FIRST_VOTER, Message, VOTERS};
use super::node::{Disk, Node};
use super::simulation::Simulation;

/// Steps of time within which the voters commit a restart.
const VOTER_STEPS_MAX: u32 = 200_000;

impl Simulation {
    pub fn step_membership(&mut self) {
        if self.is_disturbed && self.random.one_in(self.fault_period / 20) {
            self.fault();
        }
        match self.random.below(5) {
            0 | 1 => self.learn_membership(),
            2 => self.lead(),
            3 => self.end_leases(),
            _ => self.finish_orphans(),
        }
    }

    fn is_life(&self, membership: &Membership, index: usize) -> bool {
        let node = &self.nodes[index];
        membership.has(NodeId(node.id), node.incarnation)
    }

    /// A node installs the latest membership, or begins the life that it admits.
    fn learn_membership(&mut self) {
        let index = self.any_node();
        let latest = Arc::clone(self.raft.committed());
        let Some(record) = latest.record(NodeId(self.nodes[index].id)).copied() else { return };
        if record.is_member() && record.incarnation > self.nodes[index].incarnation {
            self.orphan(index);
            self.begin_life(index, &latest);
        } else if self.is_running(index) {
            let is_pending = self.nodes[index].pending_install.as_ref().is_some_and(|it| it.epoch >= latest.epoch);
            if latest.epoch > self.nodes[index].installed.epoch && !is_pending {
                self.install(index, &latest);
            }
            self.request_copy(index);
        }
    }

    fn begin_life(&mut self, index: usize, membership: &Arc<Membership>) {
        let id = NodeId(self.nodes[index].id);
        let record = *membership.record(id).expect("a member");
        let disk = std::mem::take(&mut self.nodes[index].disk);
        let present =
            PresentDisk { node: id, incarnation: record.incarnation, started: disk.started, stable: disk.stable };
        let recovered = membership.recovers_to(&present);
        let mut node = Node::start(id.0, record.incarnation, membership, recovered, self.bug);
        node.rate = self.nodes[index].rate;
        node.disk = cut_disk(disk, recovered, record.admitted);
        let is_joining = record.state == NodeState::Joining;
        node.has_checkpoint = !is_joining;
        if is_joining {
            let chains = 0..self.partitions;
            node.copies_left = chains.filter(|it| membership.chains[usize::from(*it)].contains(&id)).collect();
            self.oracle.counts.joins += 1;
        }
        self.nodes[index] = node;
        self.install(index, membership);
    }

    /// A joining node that has started asks a serving replica for a copy that it lacks.
    fn request_copy(&mut self, index: usize) {
        let node = &self.nodes[index];
        let Some(record) = node.record().copied() else { return };
        let left = &node.copies_left;
        if left.is_empty() || record.state != NodeState::Joining {
            return;
        }
        let partition = left[self.random.below(left.len() as u64) as usize];
        let serving = |it: &&NodeId| node.installed.record(**it).is_some_and(|record| record.is_serving());
        let chain = &node.installed.chains[usize::from(partition)];
        let donors: Vec<NodeId> = chain.iter().filter(serving).copied().collect();
        let donor = donors[self.random.below(donors.len() as u64) as usize];
        self.send_all(index, vec![(donor, Message::Copy { epoch: record.admitted, partition })]);
    }

    /// The leader of raft proposes what is due.
    fn lead(&mut self) {
        let Some(latest) = self.raft.leaders_membership() else { return };
        let dead = self.dead(&latest);
        let sequencer = self.nodes.iter().find_map(|node| {
            let sequencer = node.sequencer.as_ref()?;
            (node.is_alive && sequencer.epoch() == latest.epoch).then_some(sequencer)
        });
        let have_started = sequencer.is_some_and(|sequencer| sequencer.have_all_started());
        let is_noted = have_started || self.bug == Bug::CommittedEpochCounts;
        if is_noted && latest.started < latest.epoch {
            let lagging = sequencer.and_then(|sequencer| sequencer.lagging_joiner());
            assert_eq!(lagging, None);
            self.propose(&MembershipChange::NoteStarted { epoch: latest.epoch });
            return;
        }
        let candidates = sequencer.map(|it| it.durable_candidates()).unwrap_or_default();
        let avoid = self.random.one_in(2).then_some(latest.sequencer);
        if !dead.is_empty() {
            let change = MembershipChange::Evict { nodes: dead, avoid };
            self.propose(&change);
        } else if have_started {
            self.propose_planned(&latest, candidates);
        }
    }

    fn propose_planned(&mut self, latest: &Arc<Membership>, candidates: NodeSet) {
        if !candidates.is_empty() {
            let change = MembershipChange::MarkDurable { nodes: candidates, epoch: latest.epoch };
            if self.propose(&change) {
                self.oracle.counts.durable_marks += 1;
            }
            return;
        }
        let of_latest = |node: &&Node| node.is_alive && node.mirror.started() == latest.epoch;
        let sequencers = self.nodes.iter().filter(of_latest).filter_map(|node| node.sequencer.as_ref());
        let number =
            sequencers.filter(|it| it.epoch() == latest.epoch).map(|it| it.durable()).max().unwrap_or_default();
        if number > latest.durable && self.random.one_in(8) {
            self.propose(&MembershipChange::NoteDurable { number, epoch: latest.epoch });
            return;
        }
        let joined = self.nodes.iter().find(|node| {
            let is_joining = latest.record(NodeId(node.id)).is_some_and(|it| it.state == NodeState::Joining);
            is_joining && node.copies_left.is_empty() && node.mirror.started() == latest.epoch
        });
        if let Some(node) = joined {
            let change = MembershipChange::Serve { node: NodeId(node.id), epoch: latest.epoch };
            self.propose(&change);
            return;
        }
        let may_join = |record: &&NodeRecord| !record.is_member() && !record.is_durable;
        let away: Vec<NodeId> = latest.nodes.iter().filter(may_join).map(|it| it.node).collect();
        if !away.is_empty() && self.random.one_in(4) {
            let node = away[self.random.below(away.len() as u64) as usize];
            let incarnation = next_life(latest, node);
            self.propose(&MembershipChange::Admit { node, incarnation });
        } else if self.is_disturbed && self.random.one_in(400) {
            let serving: Vec<NodeId> = latest.serving().map(|it| it.node).collect();
            let sequencer = serving[self.random.below(serving.len() as u64) as usize];
            self.propose(&MembershipChange::Renew { sequencer });
        }
    }

    fn propose(&mut self, change: &MembershipChange) -> bool {
        self.raft.propose(change, self.now, &mut self.random).is_ok()
    }

    /// Members whose life is over.
    fn dead(&self, membership: &Membership) -> NodeSet {
        let is_dead = |index: &usize| {
            let node = &self.nodes[*index];
            let record = membership.record(NodeId(node.id));
            let has_begun = record.is_some_and(|record| record.incarnation == node.incarnation);
            record.is_some_and(|record| record.is_member()) && has_begun && !node.is_alive
        };
        (0..self.nodes.len()).filter(is_dead).map(|index| NodeId(self.nodes[index].id)).collect()
    }

    /// Whether the membership survives the loss of a node, whichever entries are committed.
    fn can_lose(&self, index: usize) -> bool {
        self.raft.possible().all(|membership| {
            if !self.is_life(membership, index) {
                return false;
            }
            let mut nodes = self.dead(membership);
            nodes.insert(NodeId(self.nodes[index].id));
            // A life that has not begun is as good as dead.
            let is_unborn = |node: &&Node| {
                membership.record(NodeId(node.id)).is_some_and(|it| it.is_member() && it.incarnation > node.incarnation)
            };
            self.nodes.iter().filter(is_unborn).for_each(|node| nodes.insert(NodeId(node.id)));
            membership.apply(&MembershipChange::Evict { nodes, avoid: None }).is_ok()
        })
    }

    /// The leader tells the sequencer that leases are over.
    fn end_leases(&mut self) {
        let over = self.raft.leases_over(self.now).map(|membership| membership.epoch);
        for sequencer in self.nodes.iter_mut().filter_map(|node| node.sequencer.as_mut()) {
            let over = if self.bug == Bug::LeasesOverAtOnce { Some(sequencer.epoch()) } else { over };
            over.into_iter().for_each(|epoch| sequencer.on_leases_over(epoch));
        }
    }

    fn fault(&mut self) {
        let index = self.any_node();
        match self.random.below(16) {
            14.. => self.raft.fault(self.now, &mut self.random),
            12.. => {
                let voter = FIRST_VOTER + self.random.below(u64::from(VOTERS)) as u8;
                let until = self.now + self.random.below(200_000_000);
                self.cuts.push(((self.nodes[index].id, voter), until));
            }
            0..4 if self.nodes[index].is_alive && self.can_lose(index) => self.crash(index),
            4..7 if self.raft.is_idle() && self.nodes[index].is_alive && self.can_lose(index) => {
                let nodes = [NodeId(self.nodes[index].id)].into_iter().collect();
                self.propose(&MembershipChange::Evict { nodes, avoid: None });
            }
            7..11 => self.nodes[index].paused_until = self.now + self.random.below(60_000_000),
            11 if self.has_blackouts => self.blackout(),
            _ => {}
        }
    }

    fn crash(&mut self, index: usize) {
        self.orphan(index);
        let life = self.nodes[index].life();
        self.nodes[index].is_alive = false;
        self.nodes[index].held = None;
        // Frames that the node has sent may be lost, from some frame on.
        for position in 0..self.channels.len() {
            if self.channels[position].0.0 == life {
                let length = self.channels[position].1.len() as u64;
                let kept = self.random.below(length + 1) as usize;
                self.channels[position].1.truncate(kept);
            }
        }
    }

    /// Evicted nodes give up at some time, and clients learn what became of transactions whose tc is gone.
    fn finish_orphans(&mut self) {
        let latest = Arc::clone(self.raft.committed());
        let index = self.any_node();
        let is_evicted = latest.record(NodeId(self.nodes[index].id)).is_some_and(|it| !it.is_member());
        if is_evicted && self.nodes[index].is_alive && self.is_running(index) && self.random.one_in(10) {
            self.nodes[index].answer();
            self.take_answers(index);
            self.orphan(index);
            self.nodes[index].tc.give_up();
            self.take_answers(index);
            self.nodes[index].is_alive = false;
        }
        if let Some(orphan) = self.orphans.first().copied() {
            if self.learn_outcome(&latest, orphan) {
                self.orphans.remove(0);
            } else {
                self.orphans.rotate_left(1);
            }
        }
    }

    /// A client asks the data nodes for the outcome. Returns whether it knows, or never will.
    fn learn_outcome(
        &mut self,
        latest: &Arc<Membership>,
        (transaction, started): (GlobalTransactionId, Epoch),
    ) -> bool {
        if !self.oracle.is_open(&transaction) {
            return true;
        }
        let tc = NodeId(transaction.node);
        let mut log = self.raft.history();
        let is_over = |it: &&Arc<Membership>| {
            let admitted = it.record(tc).map(|record| record.incarnation);
            !it.has(tc, transaction.incarnation) && admitted >= Some(transaction.incarnation)
        };
        let Some(without) = log.find(is_over) else {
            return false;
        };
        let without = without.epoch;
        let serving: Vec<&Node> = latest
            .serving()
            .filter_map(|record| self.nodes.iter().find(|node| node.life() == (record.node.0, record.incarnation)))
            .collect();
        let has_started = |node: &&Node| self.bug == Bug::OutcomeBeforeStart || node.mirror.started() >= without;
        if serving.len() != latest.serving().count() || !serving.iter().all(has_started) {
            return false;
        }
        let knowing = serving.iter().find_map(|node| Some((node, *node.outcomes.get(&transaction)?)));
        let answer = match knowing {
            Some((node, number)) => {
                if node.mirror.confirmed() < number && self.bug != Bug::OutcomeUnconfirmed {
                    return false;
                }
                Answer::Committed { number, is_durable: false }
            }
            None => {
                let last_admission = if self.bug == Bug::OutcomeOfYoungMember { without } else { started };
                let counts = |group: u8| latest.serving().any(|it| it.group == group && it.admitted <= last_admission);
                if !latest.groups().all(counts) {
                    // The client gets 1180: the outcome is unknown.
                    return true;
                }
                Answer::RolledBack
            }
        };
        self.oracle.counts.learned += 1;
        self.oracle.on_answer(transaction, answer);
        true
    }

    /// All nodes lose power, and some disks return.
    fn blackout(&mut self) {
        self.stop_all();
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        if self.random.one_in(3) {
            // Power is lost again before all have recovered.
            let some: Vec<usize> = all.iter().copied().filter(|_| self.random.one_in(2)).collect();
            let membership = self.restart_raft();
            self.recover(&some, &membership);
            self.stop_all();
        }
        let membership = self.restart_raft();
        self.recover(&all, &membership);
    }

    fn stop_all(&mut self) {
        for node in &mut self.nodes {
            node.is_alive = false;
            node.held = None;
        }
        self.channels.clear();
        self.orphans.clear();
    }

    /// The restart from a sufficient set of disks.
    fn restarted(&mut self, latest: &Arc<Membership>) -> MembershipChange {
        let mut latest = Membership::clone(latest);
        if self.bug == Bug::LastDurableForgotten {
            let is_away = |record: &&mut NodeRecord| record.state == NodeState::Away;
            latest.nodes.iter_mut().filter(is_away).for_each(|record| record.is_durable = false);
        }
        let disk = |node: &Node| {
            let started = if self.bug == Bug::CutsIgnored { Epoch(u32::MAX) } else { node.disk.started };
            let incarnation = next_life(&latest, NodeId(node.id));
            PresentDisk { node: NodeId(node.id), incarnation, started, stable: node.disk.stable }
        };
        let mut all: Vec<PresentDisk> = self.nodes.iter().map(disk).collect();
        if self.bug == Bug::CutIsMaximum {
            let most = all.iter().map(|disk| disk.stable).max().unwrap_or_default();
            all.iter_mut().for_each(|disk| disk.stable = most);
        }
        let some: Vec<PresentDisk> = all.iter().copied().filter(|_| !self.random.one_in(3)).collect();
        let present = if latest.restart_cut(&some).is_ok() { some } else { all };
        let change = MembershipChange::Restart { present };
        latest.apply(&change).expect("all disks are sufficient");
        change
    }

    /// Commits a restart.
    fn restart_raft(&mut self) -> Arc<Membership> {
        let before = self.raft.committed().restarted;
        for _ in 0..VOTER_STEPS_MAX {
            let latest = Arc::clone(self.raft.committed());
            if latest.restarted > before && latest.restarted == latest.epoch {
                self.oracle.on_restart(cut_of(&latest), latest.epoch);
                return latest;
            }
            if let Some(leaders) = self.raft.leaders_membership() {
                let change = self.restarted(&leaders);
                self.propose(&change);
            }
            self.pass_time();
        }
        panic!("in the end the voters commit the restart");
    }

    /// Nodes recover to the cut and start.
    fn recover(&mut self, nodes: &[usize], membership: &Arc<Membership>) {
        let cut = cut_of(membership);
        for index in nodes.iter().copied() {
            let id = NodeId(self.nodes[index].id);
            let record = *membership.record(id).expect("a node");
            if !record.is_serving() {
                continue;
            }
            let disk = std::mem::take(&mut self.nodes[index].disk);
            let mut node = Node::start(id.0, record.incarnation, membership, cut, self.bug);
            node.rate = self.nodes[index].rate;
            node.disk = cut_disk(disk, cut, record.admitted);
            for (row, versions) in &node.disk.rows {
                let ldm = usize::from(super::message::ldm_of(row.0));
                node.ldms[ldm].rows.insert(*row, versions.clone());
            }
            self.nodes[index] = node;
        }
        for index in nodes.iter().copied() {
            if self.is_life(membership, index) {
                self.install(index, membership);
            }
        }
    }

    /// Ends the faults, and asserts that everything is decided and free in the end.
    pub fn settle(&mut self) {
        self.is_disturbed = false;
        self.raft.calm();
        for node in &mut self.nodes {
            node.paused_until = 0;
        }
        for _ in 0..400 {
            self.run(1000);
            if self.is_settled() {
                return;
            }
        }
        panic!("in the end everything is decided, answered and free: {}", self.describe());
    }

    fn is_settled(&self) -> bool {
        let latest = self.raft.committed();
        let is_done = |record: &NodeRecord| {
            let node = self.nodes.iter().find(|node| node.life() == (record.node.0, record.incarnation));
            node.is_some_and(|node| {
                let is_free = node.ldms.iter().all(|ldm| ldm.parts.is_empty()) && node.tc.open() == 0;
                let has_started =
                    node.mirror.started() == latest.epoch && node.mirror.applied() == node.mirror.stable();
                let has_mark = record.is_durable || !record.is_serving();
                node.is_alive && is_free && has_started && has_mark && node.is_quiet()
            })
        };
        self.raft.is_idle() && self.orphans.is_empty() && latest.members().all(is_done)
    }

    fn describe(&self) -> String {
        let latest = self.raft.committed();
        let node = |node: &Node| {
            let parts: Vec<usize> = node.ldms.iter().map(|ldm| ldm.parts.len()).collect();
            format!(
                "\n{:?} alive {} started {} installed {} A {} M {} C {} G {} open {} parts {parts:?} quiet {}",
                node.life(),
                node.is_alive,
                node.mirror.started(),
                node.installed.epoch,
                node.mirror.applied(),
                node.mirror.stable(),
                node.mirror.confirmed(),
                node.mirror.durable_everywhere(),
                node.tc.open(),
                node.is_quiet(),
            )
        };
        let nodes: String = self.nodes.iter().map(node).collect();
        format!("{latest:?} idle {} orphans {} {nodes}", self.raft.is_idle(), self.orphans.len())
    }
}

/// The cut of the restart that began the epoch of the membership.
fn cut_of(membership: &Membership) -> CommitNumber {
    let last = membership.cuts.last().filter(|cut| cut.epoch == membership.epoch);
    last.expect("the epoch began with a restart").cut
}

/// The disk after a recovery to a number, with the start of a life.
fn cut_disk(disk: Disk, cut: CommitNumber, started: Epoch) -> Disk {
    let mut rows = disk.rows;
    for versions in rows.values_mut() {
        versions.retain(|version| version.number.is_some_and(|number| number <= cut));
    }
    Disk { stable: cut, started, rows }
}

/// The life with which a node starts next.
fn next_life(membership: &Membership, node: NodeId) -> Incarnation {
    Incarnation(membership.record(node).expect("a node").incarnation.0 + 1)
}
