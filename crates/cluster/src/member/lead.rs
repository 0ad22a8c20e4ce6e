//! The duties of raft's leader.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::{Duration, NodeId, Time};
use junctor_model::id::{CommitNumber, Incarnation};
use junctor_signals::install_membership::{InstallMembership, LeasesOver};
use junctor_signals::report_node::{NodeReport, SlowNode};

use super::events::EventKind;
use super::machine::{Member, MemberMessage, Peer};
use crate::membership::detector::{HeardBy, Hearing};
use crate::membership::membership::PresentDisk;
use crate::membership::{Membership, MembershipChange, NodeRecord, NodeSet, NodeState, Replication};

/// Time for which members do not hear each other until one is evicted, if all go on reporting: another member
/// may have noticed the end of a process, or the cut of a whole node, before this one.
const CUT_MIN: Duration = Duration::from_millis(25);
/// Time without a report of a member during which no other member is evicted for a cut.
const REPORT_MAX: Duration = Duration::from_millis(15);
/// Maximum time for which a report is on its way, or waits for this node.
const REPORT_AGE_MAX: Duration = Duration::from_millis(50);
/// Silence after which all nodes of a group count as lost. The others stop, because nothing of the group can
/// be read or changed.
const GROUP_SILENCE_MAX: Duration = Duration::from_millis(3000);
/// Interval at which the membership notes what all disks have, while commits go on.
const NOTE_DURABLE_EVERY: Duration = Duration::from_millis(5000);
/// Maximum number of nodes that get the membership at a time; the others get it with the next tick.
const ANNOUNCED_MAX: usize = 32;

impl Member {
    /// Does what the leader must do now.
    pub(super) fn lead(&mut self, is_tick: bool) {
        if self.voter.is_none() {
            return;
        }
        if !self.is_raft_leader() {
            (self.leading_since, self.partial_since, self.cut_since) = (None, None, None);
            (self.must_restart, self.announced) = (false, 0);
            return;
        }
        if let Some((index, membership)) = self.skipped.take() {
            self.install(index, membership);
        }
        let Some((index, membership)) = self.installed.clone() else { return };
        // The lists of the others may lack nodes that the rest of the log removes.
        let last = self.voter.as_ref().and_then(Replication::last);
        let removed = last.map_or(0, |last| last.removed.len());
        if removed > membership.removed.len() {
            return;
        }
        if self.leading_since.is_none() {
            self.leading_since = Some(self.now);
            self.leader = self.settings.own;
            self.tell(EventKind::Leader, format!("this node leads the cluster, term {}", self.voter_term()));
        }
        if self.voter.as_ref().is_some_and(|voter| voter.uncommitted().is_empty())
            && !self.replace_voters()
            && let Some((change, kind, reason)) = self.next_change(&membership)
        {
            self.propose(&change, kind, &reason);
        }
        self.tell_leases_over();
        // A report shows only with the next tick whether a node has the membership.
        if is_tick || index > self.announced {
            self.announced = index;
            self.announce(index, &membership);
        }
    }

    fn voter_term(&self) -> u64 {
        self.voter.as_ref().map_or(0, |voter| voter.replica().term())
    }

    fn propose(&mut self, change: &MembershipChange, kind: EventKind, reason: &str) {
        let Some(voter) = &mut self.voter else { return };
        // A change that is not accepted now is found again with the next tick.
        if voter.propose(change).is_ok() && !reason.is_empty() {
            self.tell(kind, reason.to_owned());
        }
    }

    /// Sends the membership to every node that lacks it, and to those that it cannot admit.
    fn announce(&mut self, index: u64, membership: &Arc<Membership>) {
        let refusals = self.refusals(membership);
        let mut encoded: Option<Arc<[u8]>> = None;
        let (leader, must_restart) = (self.settings.own, self.must_restart);
        let mut left = ANNOUNCED_MAX;
        for (node, peer) in self.peers.iter() {
            let lacks = |report: &NodeReport| report.index < index || report.leader != leader;
            let Some(report) = peer.report.as_ref().filter(|_| peer.up.is_some()) else { continue };
            let refusal = refusals.get(node).cloned();
            if left > 0 && (lacks(report) || must_restart || refusal.is_some()) {
                left -= 1;
                let membership = Arc::clone(encoded.get_or_insert_with(|| membership.encode().into()));
                let install = InstallMembership { leader, index, membership, must_restart, refusal };
                self.output.send.push((*node, MemberMessage::Install(install)));
            }
        }
    }

    /// Why the nodes that wait cannot be admitted. Each is told in the log once in a life. If this node is
    /// one of them, it ends.
    fn refusals(&mut self, membership: &Membership) -> BTreeMap<NodeId, (Incarnation, Box<str>)> {
        let Some(needed) = self.needed_instances(membership) else { return BTreeMap::new() };
        let linked = self.peers.iter().filter(|(_, peer)| peer.up.is_some());
        let others = linked.filter_map(|(node, peer)| Some((*node, peer.report?)));
        let is_refused = |(_, report): &(NodeId, NodeReport)| report.disk.is_some() && report.instances != needed;
        let waiting: Vec<(NodeId, NodeReport)> =
            others.chain([(self.settings.own, self.report())]).filter(is_refused).collect();
        let mut refusals = BTreeMap::new();
        for (node, NodeReport { incarnation, instances: (ldm, tc), .. }) in waiting {
            let why = format!(
                "it has {ldm} ldm and {tc} tc instances, and the other data nodes have {} and {} (setting ThreadConfig)",
                needed.0, needed.1
            );
            if self.refused.insert(node, incarnation) != Some(incarnation) {
                self.tell(EventKind::Refused, format!("node {}: not admitted, because {why}", node.0));
            }
            let refusal = format!("node {} is not admitted to the cluster: {why}", node.0);
            match node == self.settings.own {
                true => self.stop(refusal),
                false => _ = refusals.insert(node, (incarnation, refusal.into())),
            }
        }
        refusals
    }

    /// The number of ldm and tc instances of the node with the sequencer, which all others must have, too.
    /// `None` while this life of that node is no member, or has not reported them.
    fn needed_instances(&self, membership: &Membership) -> Option<(u16, u16)> {
        let record = membership.record(membership.sequencer).filter(|record| record.is_member())?;
        if record.node == self.settings.own {
            return (record.incarnation == self.settings.incarnation).then_some(self.instances);
        }
        let report = self.peers.get(&record.node)?.report.as_ref();
        report.filter(|report| report.incarnation == record.incarnation).map(|report| report.instances)
    }

    /// Tells the sequencer that the leases of all evicted nodes are over.
    pub(super) fn tell_leases_over(&mut self) {
        let Some(membership) = self.voter.as_ref().and_then(|voter| voter.leases_over()) else { return };
        let (epoch, node) = (membership.epoch, membership.sequencer);
        let own = self.report();
        if self.report_of(node, &own).is_some_and(|report| report.leases_over < epoch) {
            self.output.send.push((node, MemberMessage::LeasesOver(LeasesOver { epoch })));
        }
    }

    /// The next change of the membership, with its kind and its reason.
    fn next_change(&mut self, membership: &Membership) -> Option<(MembershipChange, EventKind, String)> {
        let gone: NodeSet =
            membership.members().filter(|record| self.is_gone(record)).map(|record| record.node).collect();
        let silent: NodeSet = membership
            .members()
            .filter(|record| !gone.contains(record.node) && self.is_silent(record, Duration(0)))
            .map(|record| record.node)
            .collect();
        let avoid = membership.record(self.settings.own).map(|record| record.node);
        let evict = |nodes| MembershipChange::Evict { nodes, avoid };
        let is_allowed = |nodes: NodeSet| nodes.is_empty() || membership.apply(&evict(nodes)).is_ok();
        let is_first_start = membership.members().next().is_none();
        let is_lost = |it: &NodeRecord| gone.contains(it.node) || self.is_silent(it, GROUP_SILENCE_MAX);
        let is_group_lost = |group| membership.members().filter(|it| it.group == group).all(is_lost);
        let has_lost_group = !is_allowed(gone) || membership.groups().any(is_group_lost);
        self.must_restart = !is_first_start && has_lost_group;
        // After a loss of power, nodes come back one by one. An eviction of the first would take the mark
        // from its disk, although the others may be gone, too.
        let is_present = |group| membership.members().any(|it| it.group == group && self.is_present(it));
        if is_first_start || self.must_restart || !membership.groups().all(is_present) {
            return self.restart(membership).map(|(change, reason)| (change, EventKind::Admitted, reason));
        }
        self.partial_since = None;
        let heard: Vec<HeardBy> = membership.members().map(|record| self.heard_by(record)).collect();
        let keeps_present = |nodes: NodeSet| {
            // Nodes of a group that stop together keep their marks.
            let is_kept = |it: &NodeRecord| {
                let stays = !nodes.contains(it.node) && self.is_present(it) && !self.is_stopping(it);
                stays && nodes.iter().all(|node| self.has_outlived(it, node, membership))
            };
            membership.groups().all(|group| membership.members().any(|it| it.group == group && is_kept(it)))
        };
        let dead = gone.union(&silent);
        let is_possible = |nodes: NodeSet| is_allowed(nodes) && keeps_present(nodes);
        let hearing = Hearing { heard: &heard, dead, sequencer: membership.sequencer };
        let with_cut = hearing.to_evict(&is_possible).unwrap_or_default();
        let without_cut = if is_possible(dead) { dead } else { NodeSet::EMPTY };
        let is_alone_possible = |slow: &SlowNode| is_possible(std::iter::once(slow.node).collect());
        let slow = self.slow_node(membership).filter(is_alone_possible);
        let has_reported = |record: &NodeRecord| {
            let is_recent = |peer: &Peer| self.now.since(peer.reported) <= REPORT_MAX;
            dead.contains(record.node) || self.peers.get(&record.node).is_none_or(is_recent)
        };
        let do_report = membership.members().all(has_reported);
        let is_certain = self.is_cut_certain(!with_cut.without(&dead).is_empty(), do_report);
        let nodes = if is_certain { with_cut } else { without_cut };
        if !nodes.is_empty() && self.hears_majority() {
            let reasons: Vec<String> = nodes.iter().map(|node| self.reason_of(node, &gone, &silent)).collect();
            return Some((evict(nodes), EventKind::Evicted, reasons.join("; ")));
        }
        if let Some(SlowNode { node, is_disk }) = slow {
            let why = if is_disk { "its disk syncs nothing" } else { "it applies no commits" };
            let reason = format!("node {}: evicted, because {why} while others do", node.0);
            return Some((evict(std::iter::once(node).collect()), EventKind::Evicted, reason));
        }
        if let Some(node) = self.leaving(membership).filter(|_| self.hears_majority()) {
            let reason = format!("node {}: leaves, because it stops", node.0);
            return Some((evict(std::iter::once(node).collect()), EventKind::Stopping, reason));
        }
        self.planned_change(membership).map(|(change, reason)| (change, EventKind::Admitted, reason))
    }

    /// A member that wants to leave, while another one of its group stays that has all rows in memory and on
    /// disk.
    fn leaving(&self, membership: &Membership) -> Option<NodeId> {
        let own = self.report();
        let stays = |it: &NodeRecord| it.is_serving() && it.is_durable && self.is_present(it) && !self.is_stopping(it);
        let is_replaced = |record: &&NodeRecord| {
            membership.members().any(|it| it.group == record.group && it.node != record.node && stays(it))
        };
        let leaves = |record: &&NodeRecord| {
            let report = self.report_of(record.node, &own);
            report.is_some_and(|report| report.incarnation == record.incarnation && report.is_leaving)
        };
        membership.members().filter(leaves).find(is_replaced).map(|record| record.node)
    }

    /// Whether a member has said that it stops.
    pub(super) fn is_stopping(&self, record: &NodeRecord) -> bool {
        self.is_life_stopping(record.node, record.incarnation)
    }

    /// Whether this life of a node has said that it stops. Only voters hear of it.
    pub(super) fn is_life_stopping(&self, node: NodeId, life: Incarnation) -> bool {
        if node == self.settings.own {
            return self.leaving_since.is_some();
        }
        let report = self.peers.get(&node).and_then(|peer| peer.report.as_ref());
        report.is_some_and(|report| report.incarnation == life && report.is_stopping)
    }

    /// Whether this node hears most voters. Otherwise it may be the one that is cut off.
    pub(super) fn hears_majority(&self) -> bool {
        self.voters.iter().filter(|node| self.hears(**node)).count() > self.voters.len() / 2
    }

    /// Whether members have not heard each other for long enough, while all of them have reported.
    fn is_cut_certain(&mut self, is_cut: bool, do_report: bool) -> bool {
        if !is_cut || !do_report {
            // A stopped node hears nobody, so its reports count only after it has run again for a while.
            self.cut_since = None;
            return !is_cut;
        }
        self.now.since(*self.cut_since.get_or_insert(self.now)) >= CUT_MIN
    }

    /// A node that the sequencer of the membership finds slow.
    fn slow_node(&self, membership: &Membership) -> Option<SlowNode> {
        let sequencer = membership.record(membership.sequencer)?;
        let own = self.report();
        let report = self.report_of(sequencer.node, &own)?;
        let is_current = report.incarnation == sequencer.incarnation && report.started == membership.epoch;
        report.slow.filter(|slow| is_current && membership.record(slow.node).is_some_and(|it| it.is_member()))
    }

    /// Changes that wait until the epoch has started everywhere.
    fn planned_change(&mut self, membership: &Membership) -> Option<(MembershipChange, String)> {
        let epoch = membership.epoch;
        let own = self.report();
        let report = |record: &NodeRecord| self.report_of(record.node, &own);
        let is_of_life = |record: &NodeRecord, report: &&NodeReport| report.incarnation == record.incarnation;
        if membership.started != epoch {
            let has_started = |record: &NodeRecord| {
                report(record).filter(|it| is_of_life(record, it)).is_some_and(|it| it.started >= epoch)
            };
            let all = membership.members().all(has_started);
            return all.then(|| (MembershipChange::NoteStarted { epoch }, String::new()));
        }
        let of_sequencer = membership
            .record(membership.sequencer)
            .and_then(|record| report(record).filter(|it| is_of_life(record, it)).filter(|it| it.started == epoch));
        let markable = of_sequencer.map_or(NodeSet::EMPTY, |report| NodeSet::from_words(report.markable));
        let admits = of_sequencer.is_some_and(|report| report.admits);
        let is_unmarked = |record: &&NodeRecord| !record.is_durable && markable.contains(record.node);
        let nodes: NodeSet = membership.serving().filter(is_unmarked).map(|record| record.node).collect();
        let mark = MembershipChange::MarkDurable { nodes, epoch };
        if !nodes.is_empty() && membership.apply(&mark).is_ok() {
            return Some((mark, String::new()));
        }
        let number = of_sequencer.map_or(CommitNumber(0), |report| report.durable);
        let is_due =
            self.durable_noted.is_none_or(|(noted, at)| noted != epoch || self.now.since(at) >= NOTE_DURABLE_EVERY);
        if number > membership.durable && is_due {
            self.durable_noted = Some((epoch, self.now));
            return Some((MembershipChange::NoteDurable { number, epoch }, String::new()));
        }
        if let Some(removal) = self.next_removal(membership, &own) {
            return Some(removal);
        }
        for record in &membership.nodes {
            let (node, Some(report)) = (record.node, report(record)) else { continue };
            match record.state {
                NodeState::Joining if is_of_life(record, &report) && report.has_copies => {
                    let reason = format!("node {}: serves", node.0);
                    return Some((MembershipChange::Serve { node, epoch }, reason));
                }
                NodeState::Away
                    if admits
                        && !membership.leaving.contains(node)
                        && self.may_join(membership, record, report, &own) =>
                {
                    let incarnation = report.incarnation;
                    let reason = format!("node {}: admitted, incarnation {incarnation}", node.0);
                    return Some((MembershipChange::Admit { node, incarnation }, reason));
                }
                _ => {}
            }
        }
        if let Some(group) = membership.closed_group() {
            let change = MembershipChange::OpenGroup { group, epoch };
            return membership.apply(&change).is_ok().then(|| (change, format!("node group {group}: opens")));
        }
        if let Some(group) = membership.leaving_group() {
            return match membership.is_emptied {
                true => self.removal(membership, group, &own),
                false => {
                    let is_empty = number.0 > 0 && of_sequencer.is_some_and(|report| report.is_left_group_empty);
                    let change = MembershipChange::NoteEmpty { group, number, epoch };
                    is_empty.then(|| (change, format!("node group {group}: has no rows any more")))
                }
            };
        }
        let next = self.next_replica(membership, &own).or_else(|| self.next_group(membership, &own));
        next.filter(|_| admits)
    }

    /// The next group of the configuration that the membership lacks, if all of its nodes may join.
    fn next_group(&self, membership: &Membership, own: &NodeReport) -> Option<(MembershipChange, String)> {
        let groups = self.settings.groups();
        let is_added = |node: &NodeId| self.settings.node(*node).is_some_and(|it| it.roles.added);
        // Nodes without the role count as voters on the nodes that list them so.
        let nodes = groups.get(usize::from(membership.open_groups)).filter(|nodes| nodes.iter().all(is_added))?;
        let may_join = |node: &NodeId| {
            let report = self.report_of(*node, own);
            report.is_some_and(|report| self.is_ready_to_join(membership, (*node, Incarnation(0)), report, own))
        };
        if !nodes.iter().all(may_join) || !self.do_all_know(nodes) {
            return None;
        }
        let names: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
        let reason = format!("node group {}: added, nodes {}", membership.open_groups, names.join(", "));
        let change = MembershipChange::AddGroup { nodes: nodes.iter().copied().collect() };
        membership.apply(&change).is_ok().then_some((change, reason))
    }

    /// The next replica of the configuration that the membership lacks, if it may join.
    fn next_replica(&self, membership: &Membership, own: &NodeReport) -> Option<(MembershipChange, String)> {
        self.settings.nodes.iter().find_map(|it| {
            let (node, group) = (it.node, it.roles.joins?);
            let change = MembershipChange::AddReplica { node, group };
            membership.apply(&change).ok()?;
            let report = self.report_of(node, own)?;
            let is_ready = self.is_ready_to_join(membership, (node, Incarnation(0)), report, own);
            let reason = format!("node {}: added to node group {group} as one more replica", node.0);
            (is_ready && self.do_all_know(&[node])).then_some((change, reason))
        })
    }

    /// Whether every node that runs, and is to have links to these, hears them. A node without data that does
    /// not know new data nodes would find no rows there.
    fn do_all_know(&self, nodes: &[NodeId]) -> bool {
        self.peers.iter().all(|(other, peer)| {
            let is_linked = |node: &&NodeId| {
                let (one, other) = (self.settings.node(*other), self.settings.node(**node));
                one.zip(other).is_some_and(|(one, other)| one.is_linked_with(other))
            };
            let hears = |report: &NodeReport, node| NodeSet::from_words(report.hears).contains(node);
            let do_hear = |report: NodeReport| nodes.iter().filter(is_linked).all(|node| hears(&report, *node));
            peer.up.is_none() || peer.report.is_some_and(do_hear)
        })
    }

    /// Whether a node that is away may join.
    fn may_join(&self, membership: &Membership, record: &NodeRecord, report: &NodeReport, own: &NodeReport) -> bool {
        // The disk of an evicted node that stands for its group waits for another durable node.
        !record.is_durable && self.is_ready_to_join(membership, (record.node, record.incarnation), report, own)
    }

    /// Whether a node whose lives up to `last` were admitted waits with a later one, and hears all members as
    /// they hear it.
    fn is_ready_to_join(
        &self,
        membership: &Membership,
        (node, last): (NodeId, Incarnation),
        report: &NodeReport,
        own: &NodeReport,
    ) -> bool {
        let hears = |report: &NodeReport, node: NodeId| NodeSet::from_words(report.hears).contains(node);
        let is_linked = |member: &NodeRecord| {
            let of_member = self.report_of(member.node, own);
            hears(report, member.node) && of_member.is_some_and(|it| hears(it, node))
        };
        report.disk.is_some()
            && report.incarnation > last
            && self.needed_instances(membership) == Some(report.instances)
            && self.hears(node)
            && membership.members().all(is_linked)
    }

    pub(super) fn report_of<'a>(&'a self, node: NodeId, own: &'a NodeReport) -> Option<&'a NodeReport> {
        match node == self.settings.own {
            true => Some(own),
            false => self.peers.get(&node)?.report.as_ref(),
        }
    }

    /// Whether this life of a member is heard.
    pub(super) fn is_present(&self, record: &NodeRecord) -> bool {
        let own = (record.node == self.settings.own).then_some(self.settings.incarnation);
        let up = own.or_else(|| self.peers.get(&record.node)?.up);
        up == Some(record.incarnation) && self.hears(record.node)
    }

    /// Whether a member has sent a report since another node of its group is gone, or knows it itself. The
    /// power of both may have failed at once, and only the end of the other has been noticed. An eviction of
    /// the other would then take the mark from a disk that the first may not have any more.
    fn has_outlived(&self, record: &NodeRecord, node: NodeId, membership: &Membership) -> bool {
        let is_of_group = membership.record(node).is_some_and(|it| it.group == record.group);
        let (Some(lost), Some(peer)) = (self.peers.get(&node), self.peers.get(&record.node)) else { return true };
        let hears = |report: &NodeReport| NodeSet::from_words(report.hears).contains(node);
        // A report that still hears the node may be from before the loss, or hear its next life.
        let is_later = peer.reported >= lost.gone.plus(REPORT_AGE_MAX);
        !is_of_group || is_later || peer.report.is_some_and(|report| !hears(&report))
    }

    /// Whether this life of a member is gone for certain.
    fn is_gone(&self, record: &NodeRecord) -> bool {
        if record.node == self.settings.own {
            return record.incarnation < self.settings.incarnation;
        }
        let is_later = |life: Incarnation| life > record.incarnation;
        let is_peer_gone = |peer: &Peer| peer.dead >= record.incarnation || peer.up.is_some_and(is_later);
        self.peers.get(&record.node).is_some_and(is_peer_gone)
    }

    /// Whether nobody has heard a member for so long at least, and for as long as its silence may last. A
    /// leader that has just begun waits for members that it has never heard.
    fn is_silent(&self, record: &NodeRecord, least: Duration) -> bool {
        let node = record.node;
        let Some(peer) = self.peers.get(&node) else { return false };
        let (Some(since), Some(leading)) = (peer.unheard_since, self.leading_since) else { return false };
        let is_unreachable = self.is_unreachable(peer);
        let is_over = |since: Time| {
            let silence = self.now.since(since);
            silence >= least && (is_unreachable || silence >= self.silence_max(peer))
        };
        let hears = |other: &Peer| other.report.is_some_and(|report| NodeSet::from_words(report.hears).contains(node));
        // A suspected node is a witness, too: perhaps this node is cut off.
        let mut others = self.peers.iter().filter(|(other, _)| **other != node && self.hears(**other));
        // It was heard before, so this node has listened long enough.
        let was_heard = is_unreachable || peer.silence_max.is_some();
        let since = if was_heard { since } else { since.max(leading) };
        is_over(since) && !others.any(|(_, peer)| hears(peer))
    }

    fn reason_of(&self, node: NodeId, gone: &NodeSet, silent: &NodeSet) -> String {
        let is_unreachable = self.peers.get(&node).is_some_and(|peer| self.is_unreachable(peer));
        let why = match (gone.contains(node), silent.contains(node)) {
            (true, _) => "its process is gone",
            (_, true) if is_unreachable => "its system answers no connection",
            (_, true) => "it is silent",
            _ => "it and another data node do not hear each other",
        };
        format!("node {}: evicted, because {why}", node.0)
    }

    /// The nodes that a member hears. Nodes that are not linked yet count as heard.
    fn heard_by(&self, record: &NodeRecord) -> HeardBy {
        let node = record.node;
        let hears = match node == self.settings.own {
            true => Some(NodeSet::from_words(self.report().hears)),
            false => {
                let peer = self.peers.get(&node).filter(|peer| peer.unheard_since.is_none());
                let report = peer.and_then(|peer| peer.report.as_ref());
                report.filter(|it| it.incarnation == record.incarnation).map(|it| NodeSet::from_words(it.hears))
            }
        };
        HeardBy { node, hears }
    }

    /// A restart of all nodes: from all disks that count, or after a time from sufficient ones.
    fn restart(&mut self, membership: &Membership) -> Option<(MembershipChange, String)> {
        // The leader is the last one to start again.
        let is_last = membership.members().all(|it| it.node == self.settings.own || !self.is_present(it));
        if self.must_restart && is_last {
            self.stop_for_restart();
        }
        let own = self.report();
        let waiting: Vec<(NodeId, NodeReport)> = membership
            .nodes
            .iter()
            .filter_map(|record| Some((record, *self.report_of(record.node, &own)?)))
            .filter(|(record, report)| report.disk.is_some() && report.incarnation > record.incarnation)
            .map(|(record, report)| (record.node, report))
            .collect();
        let nodes: NodeSet = waiting.iter().map(|(node, _)| *node).collect();
        let is_mesh = waiting.iter().all(|(_, report)| nodes.without(&NodeSet::from_words(report.hears)).is_empty());
        let disk = |(node, report): &(NodeId, NodeReport)| {
            let disk = report.disk?;
            let (incarnation, started, stable) = (report.incarnation, disk.started, disk.stable);
            Some(PresentDisk { node: *node, incarnation, started, stable })
        };
        let mut present: Vec<PresentDisk> = waiting.iter().filter_map(disk).collect();
        let behind = behind(membership, &present, &waiting);
        present.retain(|disk| !behind.contains(disk.node));
        if self.behind != behind {
            self.behind = behind;
            for node in behind.iter() {
                let line = format!("node {}: its disk lacks commits that it has had, and does not count", node.0);
                self.tell(EventKind::Admitted, line);
            }
        }
        let change = MembershipChange::Restart { present };
        if !is_mesh || membership.apply(&change).is_err() {
            self.partial_since = None;
            return None;
        }
        let is_missing = |record: &&NodeRecord| record.is_durable && !nodes.contains(record.node);
        let missing: Vec<String> =
            membership.nodes.iter().filter(is_missing).map(|record| record.node.0.to_string()).collect();
        let since = *self.partial_since.get_or_insert(self.now);
        if missing.is_empty() {
            return Some((change, "all data nodes start".to_owned()));
        }
        let is_over = self.now.since(since) >= self.settings.partial_start_after;
        is_over.then(|| (change, format!("data nodes start without {}", missing.join(", "))))
    }
}

/// The disks with a mark that lack commits which they have had: the membership has noted them, or another one
/// has a checkpoint of them, which is written when all have them. Such a disk was put back to an earlier
/// state, or has lost writes.
fn behind(membership: &Membership, present: &[PresentDisk], waiting: &[(NodeId, NodeReport)]) -> NodeSet {
    let checkpoint = |disk: &PresentDisk| {
        let report = waiting.iter().find(|(node, _)| *node == disk.node).and_then(|(_, report)| report.disk);
        report.map(|report| report.checkpoint)
    };
    let marked = membership.marked_disks(present);
    let newest = marked.clone().filter_map(checkpoint).max().unwrap_or_default().max(membership.durable);
    marked.filter(|disk| disk.stable < newest).map(|disk| disk.node).collect()
}
