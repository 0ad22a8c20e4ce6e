//! One node of a cluster, in one long file because every event of its links, its voter, the installed
//! membership or its reports may change the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_consensus::{Refusal as ConsensusRefusal, Role, Settings, VoterId, Write};
use junctor_kernel::transport::board::{LinkNews, MembershipChange as LinkChange};
use junctor_kernel::transport::hello::Refusal;
use junctor_kernel::transport::link::Death;
use junctor_kernel::{Duration, NodeId, Time};
use junctor_model::id::{CommitNumber, Epoch, Incarnation};
use junctor_model::planted_bug::PlantedBug;
use junctor_signals::install_membership::{InstallMembership, LeasesOver, ReplicateMembership};
use junctor_signals::report_node::{NodeReport, SlowNode, VoterReport, WaitingDisk};
use junctor_signals::request_lease::{RequestLease, RequestLeaseReply};

use super::events::{EventKind, Events};
use super::settings::{MemberSettings, VoterStart};
use crate::membership::lease::{self, BootTime, EntryId, EvictionReport, LeaseHolder};
use crate::membership::membership::RestartCut;
use crate::membership::replication::node_of;
use crate::membership::{Membership, NodeRecord, NodeSet, RemovedNode, Replication};

/// Time after the end of a leader in which the next one campaigns with each tick. Then elections take their
/// course by timeouts.
const CAMPAIGNS_MAX: Duration = Duration::from_millis(100);

/// Each of these parts of `node_silence_max_ms` is a tick of the time without a leader until an election:
/// four tenths of it. Links notice the loss of a leader sooner.
const SILENCE_PER_ELECTION_TICK: Duration = Duration::from_millis(25);

/// A silent node is evicted after this many times the longest gap between its frames lately.
const GAPS_PER_SILENCE: u64 = 4;

/// A node whose system answers is not evicted sooner than after this part of `node_silence_max_ms`: a long
/// statement may keep a thread busy that was never busy before.
const SILENCE_PARTS: u64 = 4;

/// Time from the beginning of a stop until a node asks to be removed. Nodes that stop together must know of
/// each other: the last ones of a group keep their marks.
const LEAVE_AFTER: Duration = Duration::from_millis(30);

/// Time between two ticks of a node that does not stall.
pub const TICK: Duration = Duration::from_millis(10);

/// A tick that comes so long after the one before shows that this node had no processor. All but one [`TICK`]
/// of this time does not count as silence of the others: what they have sent waits in the sockets. A node
/// that always stalls thus still notices silence, though late.
const OWN_STALL: Duration = Duration::from_millis(30);

/// A node without data may be silent for `node_silence_max_ms` this often. Its clients lose their
/// connections.
const CLIENT_SILENCES: u64 = 4;

/// The version of the set of voters. The nodes that vote never change; a voter that lost its files comes back
/// on its node under another id.
const VOTER_SET: u64 = 0;

/// Time between two lines about a node that waits.
pub(super) const WAIT_TOLD_EVERY: Duration = Duration::from_seconds(5);

/// A message to main of another node.
#[derive(Clone, Debug)]
pub enum MemberMessage {
    /// To every voter.
    Report(Box<NodeReport>),
    /// From voter to voter.
    Replicate(ReplicateMembership),
    /// From the leader.
    Install(InstallMembership),
    /// From the leader to the node with the sequencer.
    LeasesOver(LeasesOver),
    /// From a data node to every voter.
    RequestLease(RequestLease),
    /// The grant of a voter.
    GrantLease(RequestLeaseReply),
}

/// How far the epochs of a data node are. Main tells it before each call that may report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochProgress {
    /// The last epoch that the node has started.
    pub started: Epoch,
    /// The last epoch for whose sequencer, on this node, the leases of evicted nodes are over.
    pub leases_over: Epoch,
    /// On the node with the sequencer: the nodes whose disks have everything that they need for a mark.
    pub markable: NodeSet,
    /// On the node with the sequencer: whether no schema change runs, so that a node may join.
    pub admits: bool,
    /// On the node with the sequencer: a node that stands still while others advance.
    pub slow: Option<SlowNode>,
    /// On the node with the sequencer: every disk that counts has the commits up to this number.
    pub durable: CommitNumber,
    /// On the node with the sequencer: whether no table has partitions in the group that leaves, by schema
    /// changes that are in `durable`.
    pub is_left_group_empty: bool,
}

/// Work for the caller, in the order of the fields.
#[derive(Debug, Default)]
pub struct MemberOutput {
    /// Lines for the log.
    pub log: Vec<String>,
    /// Why this node must stop at once.
    pub stop: Option<String>,
    /// Changes of fences, which the links apply before they send a message.
    pub fences: Vec<LinkChange>,
    /// Messages.
    pub send: Vec<(NodeId, MemberMessage)>,
    /// Writes of the voter, to be synced one after the other. Then [`Member::note_written`] is due.
    pub writes: Vec<Write>,
    /// The epoch that has admitted this life of the node, to be made durable. Then
    /// [`Member::note_admission_written`] is due.
    pub admission: Option<Epoch>,
    /// Set once after [`Member::leave`]: the membership has no place for this life any more.
    pub has_left: bool,
}

/// Another node, as this one knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// The life to which all channels are open.
    pub up: Option<Incarnation>,
    /// The version of the signals' encoding on the link to that life.
    pub version: u16,
    /// Since when it is not heard: silent, without a link, or never up.
    pub unheard_since: Option<Time>,
    /// The silence after which it does not count as heard, if shorter than `node_silence_max_ms`: the one
    /// that its frames of the last time allow.
    pub silence_max: Option<Duration>,
    /// Since when its system answers no connection.
    pub unreachable_since: Option<Time>,
    /// When its last report came.
    pub reported: Time,
    /// This life and earlier ones are gone for certain.
    pub dead: Incarnation,
    /// When this node learned that the life before the present one is gone, or that none is left.
    pub gone: Time,
    /// Its last report.
    pub report: Option<NodeReport>,
}

/// A node of a cluster.
#[derive(Debug)]
pub struct Member {
    pub(super) settings: MemberSettings,
    /// The voters of a new cluster, by rank.
    pub(super) voters: Vec<NodeId>,
    /// The nodes with links to this one.
    pub(super) peers: BTreeMap<NodeId, Peer>,
    /// The voter of this node; `None` if it has none, or before it has begun.
    pub(super) voter: Option<Replication>,
    pub(super) had_voter_files: bool,
    pub(super) is_voter_joining: bool,
    pub(super) voters_heard: NodeSet,
    /// The last report of this voter about leases that are over, as it is sent.
    leases_over: [u64; 3],
    /// The leases of this node; `None` without data.
    pub(super) lease: Option<LeaseHolder>,
    /// The installed membership and its position in the log.
    pub(super) installed: Option<(u64, Arc<Membership>)>,
    /// The last membership of the voter's log that was not installed, because its nodes are not in the list.
    pub(super) skipped: Option<(u64, Arc<Membership>)>,
    /// The leader that the installed membership came from.
    pub(super) leader: NodeId,
    /// Set once the data of this node is recovered: the stable number of its log.
    recovered: Option<CommitNumber>,
    /// The newest commit of its checkpoint.
    checkpoint: CommitNumber,
    /// Number of the ldm and of the tc instances of this node.
    pub(super) instances: (u16, u16),
    /// `None` without epochs.
    progress: Option<EpochProgress>,
    /// Whether the node has the schema and the rows of the cluster.
    has_copies: bool,
    /// Whether the membership has admitted this life of this node.
    pub(super) is_admitted: bool,
    /// The last epoch whose start of this node is durable.
    started: Epoch,
    /// Since when this node wants to leave.
    pub(super) leaving_since: Option<Time>,
    /// Whether the membership has no place for this life any more, as it wanted.
    has_left: bool,
    /// Set while this node leads.
    pub(super) leading_since: Option<Time>,
    /// Since when a restart of all nodes is possible without some of them.
    pub(super) partial_since: Option<Time>,
    /// The nodes whose disks lack commits, at a restart of all nodes.
    pub(super) behind: NodeSet,
    /// The epoch and the time in which this leader last noted what all disks have.
    pub(super) durable_noted: Option<(Epoch, Time)>,
    /// Since when members do not hear each other, as this leader knows.
    pub(super) cut_since: Option<Time>,
    /// Whether the data nodes must start again.
    pub(super) must_restart: bool,
    /// Position of the membership that this leader has sent.
    pub(super) announced: u64,
    /// The last life of each node that this leader has refused.
    pub(super) refused: BTreeMap<NodeId, Incarnation>,
    /// When the leader ended that this voter followed.
    leader_ended: Option<Time>,
    ticked: Time,
    /// Since when no two ticks of this node were far apart.
    awake_since: Time,
    /// When the log last said that the node waits.
    pub(super) told_waiting: Time,
    pub(super) now: Time,
    pub(super) events: Events,
    pub(super) output: MemberOutput,
}

impl Member {
    /// A node that begins its life at this time.
    pub fn new(mut settings: MemberSettings, now: Time) -> Member {
        let start = std::mem::replace(&mut settings.voter, VoterStart::Nothing);
        let own = settings.node(settings.own);
        let peers = settings.nodes.iter().filter(|it| own.is_some_and(|own| own.is_linked_with(it)));
        let has_data = own.is_some_and(|own| own.roles.data);
        let voters = settings.voters();
        let lease = has_data
            .then(|| LeaseHolder::new(settings.own, settings.incarnation, voters.iter().copied().collect(), VOTER_SET));
        let peer = Peer { unheard_since: Some(now), ..Peer::default() };
        let peers = peers.map(|it| (it.node, peer.clone())).collect();
        let mut member = Member {
            voters,
            lease,
            peers,
            voter: None,
            had_voter_files: false,
            is_voter_joining: false,
            voters_heard: NodeSet::EMPTY,
            leases_over: [0; 3],
            installed: None,
            skipped: None,
            leader: NodeId(0),
            recovered: None,
            checkpoint: CommitNumber(0),
            instances: (0, 0),
            progress: None,
            has_copies: true,
            is_admitted: false,
            started: settings.started,
            leaving_since: None,
            has_left: false,
            leading_since: None,
            partial_since: None,
            behind: NodeSet::EMPTY,
            durable_noted: None,
            cut_since: None,
            must_restart: false,
            announced: 0,
            refused: BTreeMap::new(),
            leader_ended: None,
            ticked: now,
            awake_since: now,
            told_waiting: now,
            now,
            events: Events::default(),
            output: MemberOutput::default(),
            settings,
        };
        if let VoterStart::Recovered { voter, log } = start {
            let voter = Replication::restarted(&member.raft_settings(VoterId(voter)), log, boot_time(now));
            // Before the first election, nobody has voted.
            member.had_voter_files = voter.replica().term() > 1;
            member.voter = Some(voter);
        }
        member
    }

    pub(super) fn raft_settings(&self, voter: VoterId) -> Settings {
        let seed = u64::from(self.settings.own.0) << 32 | u64::from(self.settings.incarnation.0);
        // A leader is replaced sooner than a silent node is evicted.
        let election_ticks = (self.settings.silence_max.0 / SILENCE_PER_ELECTION_TICK.0) as usize;
        Settings { voter, seed, election_ticks }
    }

    /// The configuration.
    pub fn settings(&self) -> &MemberSettings {
        &self.settings
    }

    /// The installed membership.
    pub fn membership(&self) -> Option<&Arc<Membership>> {
        self.installed.as_ref().map(|(_, membership)| membership)
    }

    /// The node that leads; node 0 if this node knows none.
    pub fn leader(&self) -> NodeId {
        self.leader
    }

    /// The life of another node to which all channels are open.
    pub fn linked_life(&self, node: NodeId) -> Option<Incarnation> {
        self.peers.get(&node)?.up
    }

    /// Whether this life of another node is gone for certain.
    pub fn is_lost(&self, node: NodeId, life: Incarnation) -> bool {
        self.peers.get(&node).is_some_and(|peer| life <= peer.dead)
    }

    /// Number of nodes with open links to this one.
    pub fn links_up(&self) -> usize {
        self.peers.values().filter(|peer| peer.up.is_some()).count()
    }

    /// Whether the node may serve: the cluster has a membership, and a node with data serves in it.
    pub fn is_ready(&self) -> bool {
        let own = self.settings.own;
        let has_data = self.settings.node(own).is_some_and(|it| it.roles.data);
        self.membership().is_some_and(|membership| {
            let is_serving = membership.record(own).is_some_and(|record| record.is_serving());
            membership.epoch.0 > 0 && (!has_data || (self.is_admitted && is_serving))
        })
    }

    /// The data of this node is recovered up to this number: the node asks for its admission. `checkpoint` is
    /// the newest commit of its checkpoint.
    pub fn note_recovered(&mut self, stable: CommitNumber, checkpoint: CommitNumber) {
        (self.recovered, self.checkpoint) = (Some(stable), checkpoint);
    }

    /// The node has so many ldm and tc instances.
    pub fn set_instances(&mut self, ldm: u16, tc: u16) {
        self.instances = (ldm, tc);
    }

    /// The epochs of this node are as far as this.
    pub fn set_progress(&mut self, progress: EpochProgress) {
        self.progress = Some(progress);
    }

    /// Whether the node has the schema and the rows of the cluster.
    pub fn set_copies(&mut self, has_copies: bool) {
        self.has_copies = has_copies;
    }

    /// The last number that the disk of this life keeps, once the life is admitted.
    pub fn admitted_cut(&self) -> Option<CommitNumber> {
        let membership = self.membership()?;
        let record = membership.record(self.settings.own)?;
        if !membership.has(self.settings.own, self.settings.incarnation) {
            return None;
        }
        let is_of_restart = |cut: &&RestartCut| cut.epoch == record.admitted;
        let cut = membership.cuts.iter().find(is_of_restart).map(|cut| cut.cut);
        Some(cut.or(self.recovered).unwrap_or_default())
    }

    /// The membership of which this life is a member, once its admission is on disk. The epochs of the node
    /// begin with it.
    pub fn admitted_membership(&self) -> Option<&Arc<Membership>> {
        let is_member = |membership: &&Arc<Membership>| membership.has(self.settings.own, self.settings.incarnation);
        self.membership().filter(is_member).filter(|_| self.is_admission_durable())
    }

    /// A tick has passed: at most 10 ms, and about as long as at the other nodes.
    pub fn tick(&mut self, now: Time) {
        if now.since(self.ticked) > self.settings.silence_max {
            self.awake_since = now;
        }
        let gap = now.since(self.ticked);
        if gap >= OWN_STALL {
            let later = |since: Time| since.plus(Duration(gap.0 - TICK.0)).min(now);
            for peer in self.peers.values_mut() {
                peer.unheard_since = peer.unheard_since.map(later);
                peer.unreachable_since = peer.unreachable_since.map(later);
            }
        }
        (self.now, self.ticked) = (now, now);
        self.leave_leader();
        self.refuse_silent_clients();
        self.stop_if_refused();
        self.campaign();
        if let Some(voter) = &mut self.voter {
            voter.tick();
        }
        self.note_leases_over();
        self.found_voter();
        self.send_reports();
        self.drive_voter();
        self.lead(true);
        self.drive_voter();
        self.tell_waiting();
    }

    /// Time for the next request for a lease, and for a look at those that this voter has granted.
    pub fn on_lease_timer(&mut self, now: Time) {
        self.now = now;
        let request = self.lease.as_mut().filter(|_| self.is_admitted).and_then(|it| it.next_request(boot_time(now)));
        if let Some(lease::RequestLease { incarnation, sent, voter_set, .. }) = request {
            let request = RequestLease { incarnation, sent_ns: sent.0, voter_set };
            for node in self.voters.clone() {
                if node == self.settings.own {
                    self.on_request_lease(node, request, now);
                } else if self.peers.get(&node).is_some_and(|peer| peer.up.is_some()) {
                    self.output.send.push((node, MemberMessage::RequestLease(request)));
                }
            }
        }
        // A commit of the next epoch may wait for the end of these leases.
        if self.note_leases_over() {
            let leader = self.leader;
            if self.peers.get(&leader).is_some_and(|peer| peer.up.is_some()) {
                self.output.send.push((leader, MemberMessage::Report(Box::new(self.report()))));
            }
            self.lead(false);
        }
    }

    /// Looks whether leases that this voter has granted are over. Returns whether there is news.
    fn note_leases_over(&mut self) -> bool {
        let Some(voter) = &mut self.voter else { return false };
        let was_over = voter.leases_over().map(|membership| membership.epoch);
        let report = voter.next_eviction_report(boot_time(self.now));
        let is_over = voter.leases_over().map(|membership| membership.epoch);
        let Some((_, EvictionReport { term, entry, .. })) = report else { return is_over != was_over };
        let report = [term, entry.index, entry.term];
        std::mem::replace(&mut self.leases_over, report) != report
    }

    /// A data node asks this voter for a lease. `now` is read after the request was taken.
    pub fn on_request_lease(&mut self, node: NodeId, request: RequestLease, now: Time) {
        let RequestLease { incarnation, sent_ns, voter_set } = request;
        let asked = lease::RequestLease { node, incarnation, sent: BootTime(sent_ns), voter_set };
        let Some(voter) = &mut self.voter else { return };
        if voter.on_request_lease(boot_time(now), &asked).is_none() {
            return;
        }
        let grant = RequestLeaseReply { incarnation, sent_ns, voter_set };
        match node == self.settings.own {
            true => self.on_grant_lease(node, grant),
            false => self.output.send.push((node, MemberMessage::GrantLease(grant))),
        }
    }

    /// A voter has granted a lease.
    pub fn on_grant_lease(&mut self, voter: NodeId, grant: RequestLeaseReply) {
        let RequestLeaseReply { incarnation, sent_ns, voter_set } = grant;
        if let Some(lease) = self.lease.as_mut().filter(|_| incarnation == self.settings.incarnation) {
            lease.on_reply(&lease::RequestLeaseReply { voter, sent: BootTime(sent_ns), voter_set });
        }
    }

    /// Until when this node is a member for certain.
    pub fn lease_until(&self) -> BootTime {
        self.lease.as_ref().map_or(BootTime(0), LeaseHolder::until)
    }

    /// A data node refuses nodes without data that are silent for long: their transactions would keep locks.
    fn refuse_silent_clients(&mut self) {
        let settings = &self.settings;
        if !settings.node(settings.own).is_some_and(|it| it.roles.data) {
            return;
        }
        let silence_max = Duration(settings.silence_max.0.saturating_mul(CLIENT_SILENCES));
        let clients = settings.nodes.iter().filter(|it| !it.roles.data && !it.roles.management);
        let silent: Vec<(NodeId, Incarnation)> = clients
            .filter_map(|it| {
                let peer = self.peers.get(&it.node)?;
                let since = peer.unheard_since?.max(self.awake_since);
                (self.now.since(since) >= silence_max).then_some((it.node, peer.up?))
            })
            .collect();
        for (node, incarnation) in silent {
            self.output.fences.push(LinkChange::Evict { node, incarnation: incarnation.0 });
            let line = format!("node {}: its transactions are rolled back, because it is silent", node.0);
            self.tell(EventKind::Evicted, line);
        }
    }

    /// A node without data starts again if it has not heard a data node for so long that this one has refused
    /// it. A data node of an earlier version dials, and cannot tell the reason.
    fn stop_if_refused(&mut self) {
        let settings = &self.settings;
        if settings.node(settings.own).is_none_or(|it| it.roles.data || it.roles.management) {
            return;
        }
        let silence_max = Duration(settings.silence_max.0.saturating_mul(CLIENT_SILENCES + 1));
        let Some(membership) = self.membership() else { return };
        let has_refused = |node: NodeId, peer: &Peer| {
            let is_serving = membership.record(node).is_some_and(|record| record.is_serving());
            // Without `up`, its process is known to be gone.
            let unheard = peer.unheard_since.filter(|_| is_serving && peer.up.is_some());
            unheard.is_some_and(|since| self.now.since(since.max(self.awake_since)) >= silence_max)
        };
        let refused = self.peers.iter().find(|(node, peer)| has_refused(**node, peer)).map(|(node, _)| node.0);
        if let Some(node) = refused {
            self.stop(format!("node {node} has been silent for so long that it has refused this node"));
        }
    }

    /// Follows the leader no more if it is silent or unreachable.
    fn leave_leader(&mut self) {
        let Some(Role::Follower(Some(leader))) = self.voter.as_ref().map(|voter| voter.replica().role()) else {
            return;
        };
        if !self.hears(node_of(leader))
            && let Some(voter) = &mut self.voter
        {
            voter.note_leader_ended(leader);
            self.leader_ended = Some(self.now);
        }
    }

    /// The first voter by rank that lives follows a leader that has ended.
    fn campaign(&mut self) {
        let (own, now) = (self.settings.own, self.now);
        if self.leader_ended.is_none_or(|since| now.since(since) >= CAMPAIGNS_MAX) {
            return;
        }
        let Some(voter) = &self.voter else { return };
        let mut voters = voter.replica().voters().voters().iter().map(|voter| node_of(*voter));
        let is_first = voters.find(|node| self.hears(*node)) == Some(own);
        if let Some(voter) = self.voter.as_mut().filter(|_| is_first) {
            voter.campaign_again();
        }
    }

    /// Sends the report of this node to all voters.
    fn send_reports(&mut self) {
        let report = self.report();
        for node in self.voters.clone() {
            if self.peers.get(&node).is_some_and(|peer| peer.up.is_some()) {
                self.output.send.push((node, MemberMessage::Report(Box::new(report))));
            }
        }
    }

    /// Tells in the log for what a node waits that does not serve.
    fn tell_waiting(&mut self) {
        if self.is_ready() || self.now.since(self.told_waiting) < WAIT_TOLD_EVERY {
            return;
        }
        self.told_waiting = self.now;
        let is_unlinked = |(node, peer): (&NodeId, &Peer)| peer.up.is_none().then(|| node.0.to_string());
        let unlinked: Vec<String> = self.peers.iter().filter_map(is_unlinked).collect();
        self.log(match (unlinked.is_empty(), self.leader.0) {
            (false, _) => format!("waits for the cluster: not linked with nodes {}", unlinked.join(", ")),
            (true, 0) => "waits for the cluster: the voters have no leader".to_owned(),
            (true, leader) => format!("waits for its admission by node {leader}"),
        });
    }

    /// Takes the work that has come up.
    pub fn take_output(&mut self) -> MemberOutput {
        std::mem::take(&mut self.output)
    }

    pub(super) fn log(&mut self, line: String) {
        self.output.log.push(line);
    }

    /// Keeps an event, and writes its line to the log.
    pub fn tell(&mut self, kind: EventKind, line: String) {
        self.events.note(self.now, kind, &line);
        self.log(line);
    }

    pub(super) fn stop(&mut self, reason: String) {
        match self.leaving_since {
            // It stops in order.
            Some(_) if !std::mem::replace(&mut self.has_left, true) => {
                self.output.has_left = true;
                self.tell(EventKind::Stopping, format!("this node is out of the membership: {reason}"));
            }
            Some(_) => {}
            None => _ = self.output.stop.get_or_insert(reason),
        }
    }

    /// The node stops, and wants to be removed before. Returns whether that is possible; `None` if it has
    /// begun already.
    pub fn leave(&mut self, now: Time) -> Option<bool> {
        let is_first = self.leaving_since.is_none();
        self.leaving_since.get_or_insert(now);
        is_first.then_some(self.is_admitted)
    }

    /// Whether an eviction means that this node is removed, alone or with its group. A node whose disk alone
    /// has everything is not: it must start again.
    fn is_about_to_be_removed(&self) -> bool {
        let own = self.settings.own;
        let Some(membership) = self.membership().filter(|_| self.is_admitted) else { return false };
        let Some(record) = membership.record(own) else { return false };
        let is_of_emptied = membership.is_emptied && membership.leaving_group() == Some(record.group);
        is_of_emptied || (membership.leaving.contains(own) && membership.is_replaceable(record))
    }

    /// This node was removed. If it serves, it stops in order. If it has started again, from whatever
    /// directory, it is refused.
    fn stop_removed(&mut self) {
        if self.is_admitted {
            self.leaving_since.get_or_insert(self.now);
        }
        let node = self.settings.own.0;
        let why = "was removed from the cluster, and its number is not used again";
        self.stop(format!("node {node} {why}"));
    }

    /// All data nodes must start again.
    pub(super) fn stop_for_restart(&mut self) {
        if self.is_admitted {
            self.stop("all nodes of a group are gone; all data nodes start again".to_owned());
        }
    }

    /// Whether this node hears another one, or is it. Short silence does not count.
    pub(super) fn hears(&self, node: NodeId) -> bool {
        node == self.settings.own
            || self.peers.get(&node).is_some_and(|peer| {
                let is_silent = |since| self.now.since(since) >= self.silence_max(peer);
                peer.up.is_some() && !self.is_unreachable(peer) && !peer.unheard_since.is_some_and(is_silent)
            })
    }

    /// The silence after which a node does not count as heard.
    pub(super) fn silence_max(&self, peer: &Peer) -> Duration {
        peer.silence_max.unwrap_or(self.settings.silence_max)
    }

    /// Whether the system of a node has answered nothing for `node_cut_max_ms`.
    pub(super) fn is_unreachable(&self, peer: &Peer) -> bool {
        peer.unreachable_since.is_some_and(|since| self.now.since(since) >= self.settings.cut_max)
    }

    /// The report of this node.
    pub(super) fn report(&self) -> NodeReport {
        let own = self.settings.own;
        let hears: NodeSet = self.settings.nodes.iter().map(|it| it.node).filter(|node| self.hears(*node)).collect();
        let has_data = self.settings.node(own).is_some_and(|it| it.roles.data);
        let disk = self.recovered.filter(|_| has_data && !self.is_admitted);
        let (started, checkpoint) = (self.started, self.checkpoint);
        let disk = disk.map(|stable| WaitingDisk { started, stable, checkpoint });
        let has_started = !has_data || (self.is_admitted && self.is_admission_durable());
        let epoch = self.membership().map_or(Epoch(0), |membership| membership.epoch);
        NodeReport {
            incarnation: self.settings.incarnation,
            hears: hears.to_words(),
            leader: self.leader,
            index: self.installed.as_ref().map_or(0, |(index, _)| *index),
            started: match self.progress {
                Some(progress) => progress.started,
                None if has_started => epoch,
                None => Epoch(0),
            },
            leases_over: self.progress.map_or(Epoch(0), |progress| progress.leases_over),
            disk,
            instances: self.instances,
            has_copies: has_started && self.has_copies,
            markable: self.progress.map_or([u64::MAX; 4], |progress| progress.markable.to_words()),
            admits: self.progress.is_none_or(|progress| progress.admits),
            slow: self.progress.and_then(|progress| progress.slow),
            durable: self.progress.map_or(CommitNumber(0), |progress| progress.durable),
            is_left_group_empty: self.progress.is_some_and(|progress| progress.is_left_group_empty),
            is_stopping: self.leaving_since.is_some(),
            is_leaving: self.leaving_since.is_some_and(|since| self.now.since(since) >= LEAVE_AFTER),
            voter: VoterReport {
                voter: self.voter.as_ref().map_or(0, |voter| voter.replica().voter().0),
                had_files: self.had_voter_files,
                is_joining: self.is_voter_joining,
                heard: self.voters_heard.to_words(),
                leases_over: self.leases_over,
            },
        }
    }

    fn is_admission_durable(&self) -> bool {
        let record = self.membership().and_then(|membership| membership.record(self.settings.own));
        record.is_some_and(|record| self.started >= record.admitted)
    }

    /// The epoch of the last admission is on disk.
    pub fn note_admission_written(&mut self, epoch: Epoch) {
        self.started = self.started.max(epoch);
    }

    /// A node has reported.
    pub fn on_report(&mut self, from: NodeId, report: NodeReport) {
        let mut has_news = false;
        if let Some(peer) = self.peers.get_mut(&from)
            && report.incarnation > peer.dead
        {
            has_news = peer.report.is_some_and(|before| before.hears != report.hears);
            (peer.report, peer.reported) = (Some(report), self.now);
        }
        if self.leader_ended.is_some() {
            // This node may know now that the leader has ended, too.
            self.campaign();
            self.drive_voter();
        }
        let [term, index, entry_term] = report.voter.leases_over;
        if let Some(voter) = self.voter.as_mut().filter(|_| index > 0) {
            let entry = EntryId { index, term: entry_term };
            let was_over = voter.leases_over().map(|membership| membership.epoch);
            voter.on_eviction_report(&EvictionReport { voter: from, term, entry });
            if voter.leases_over().map(|membership| membership.epoch) != was_over {
                self.tell_leases_over();
            }
        }
        if has_news {
            // It was perhaps the last node to hear one that is to be evicted.
            self.lead(false);
            self.drive_voter();
        }
    }

    /// Something happened to a link.
    pub fn on_link(&mut self, news: LinkNews, now: Time) {
        self.now = now;
        match news {
            LinkNews::Up { node, incarnation, version } => {
                let Some(peer) = self.peers.get_mut(&node) else { return };
                if peer.up.is_some() {
                    peer.gone = now;
                }
                (peer.up, peer.unheard_since) = (Some(Incarnation(incarnation)), None);
                (peer.silence_max, peer.unreachable_since) = (None, None);
                peer.version = version;
                let line = format!("node {}: linked, incarnation {incarnation}, version {version}", node.0);
                self.tell(EventKind::Linked, line);
            }
            LinkNews::Dead { node, incarnation, death } => self.on_dead(node, Incarnation(incarnation), death),
            LinkNews::Suspected { node, longest_gap } => {
                let most = self.settings.silence_max;
                let allowed = Duration(longest_gap.0.saturating_mul(GAPS_PER_SILENCE));
                let silence_max = allowed.max(Duration(most.0 / SILENCE_PARTS)).min(most);
                if let Some(peer) = self.peers.get_mut(&node) {
                    peer.unheard_since.get_or_insert(now);
                    peer.silence_max = Some(silence_max);
                }
            }
            LinkNews::Unreachable { node } => {
                let Some(peer) = self.peers.get_mut(&node).filter(|peer| peer.unreachable_since.is_none()) else {
                    return;
                };
                peer.unheard_since.get_or_insert(now);
                peer.unreachable_since = Some(now);
                self.leave_leader();
                self.campaign();
                // The leader needs what all nodes hear.
                self.send_reports();
                self.drive_voter();
                self.lead(false);
                self.drive_voter();
            }
            LinkNews::Heard { node } | LinkNews::Reachable { node } => {
                let was_heard = self.hears(node);
                if let Some(peer) = self.peers.get_mut(&node).filter(|peer| peer.up.is_some()) {
                    peer.unreachable_since = None;
                    if let LinkNews::Heard { .. } = news {
                        (peer.unheard_since, peer.silence_max) = (None, None);
                    }
                }
                if !was_heard && self.hears(node) {
                    // The leader must not evict it for what this node said before.
                    self.send_reports();
                }
            }
            LinkNews::Refused { node, refusal, is_own } => self.on_refused(node, refusal, is_own),
            LinkNews::Evicted { node } => {
                if self.is_about_to_be_removed() {
                    self.leaving_since.get_or_insert(now);
                }
                self.stop(format!("node {} says that this node was evicted", node.0));
            }
            LinkNews::Unknown { node, name } => {
                self.log(format!("node {}: does not know {name}, because its program is too old", node.0));
            }
        }
    }

    fn on_refused(&mut self, node: NodeId, refusal: Refusal, is_own: bool) {
        let who = if node.0 == 0 { "a stranger".to_owned() } else { format!("node {}", node.0) };
        let line = match is_own {
            true => format!("{who}: connection refused: {refusal}"),
            false => format!("{who}: refuses this node: {refusal}"),
        };
        self.tell(EventKind::Refused, line);
    }

    fn on_dead(&mut self, node: NodeId, incarnation: Incarnation, death: Death) {
        let (now, has_data) = (self.now, self.settings.node(self.settings.own).is_some_and(|it| it.roles.data));
        let Some(peer) = self.peers.get_mut(&node) else { return };
        if peer.dead < incarnation {
            (peer.dead, peer.gone) = (incarnation, now);
        }
        if peer.up.is_some_and(|up| up <= incarnation) {
            (peer.up, peer.report) = (None, None);
            (peer.silence_max, peer.unreachable_since) = (None, None);
            peer.unheard_since.get_or_insert(now);
        }
        self.tell(EventKind::Lost, format!("node {}: incarnation {incarnation} is gone: {death}", node.0));
        match death {
            // Data nodes wait for the decision of the leader.
            Death::Fenced(refusal) if !has_data => self.stop(format!("node {} refuses this node: {refusal}", node.0)),
            _ => {}
        }
        // The leader asks whether the others of its group are still there.
        self.send_reports();
        if let Some(voter) = &mut self.voter {
            let leaders = voter.replica().voters().voters().iter().filter(|voter| node_of(**voter) == node);
            for leader in leaders.copied().collect::<Vec<_>>() {
                if voter.replica().role() == Role::Follower(Some(leader)) {
                    self.leader_ended = Some(now);
                }
                voter.note_leader_ended(leader);
            }
        }
        self.drive_voter();
        self.lead(false);
        self.drive_voter();
    }

    /// A voter has sent a message.
    pub fn on_replicate(&mut self, from: NodeId, message: &ReplicateMembership) {
        let Some(voter) = &mut self.voter else { return };
        if node_of(VoterId(message.from)) != from {
            return;
        }
        self.voters_heard.insert(from);
        match voter.receive(VoterId(message.from), &message.message) {
            // A voter under its old id gets messages until it is replaced.
            Ok(()) | Err(ConsensusRefusal::WrongAddress) => {}
            Err(ConsensusRefusal::LostEntries) => {
                let advice = "remove consensus.0 and consensus.1 from its data directory, and start it again";
                self.stop(format!("the voter of this node has lost a part of its log; {advice}"));
            }
            Err(refusal) => self.log(format!("node {}: a message of its voter is refused: {refusal}", from.0)),
        }
        self.drive_voter();
        self.lead(false);
        self.drive_voter();
    }

    /// The voter's write with this number is on disk.
    pub fn note_written(&mut self, number: u64, now: Time) {
        self.now = now;
        if let Some(voter) = &mut self.voter {
            voter.note_written(number);
        }
        self.drive_voter();
        self.lead(false);
        self.drive_voter();
    }

    /// The leader has sent the membership.
    pub fn on_install(&mut self, signal: &InstallMembership) {
        let installed = self.installed.as_ref().map_or(0, |(index, _)| *index);
        if signal.index < installed {
            return;
        }
        match Membership::decode(&signal.membership) {
            Ok(membership) => {
                if self.leader != signal.leader {
                    self.leader = signal.leader;
                    self.tell(EventKind::Leader, format!("node {} leads the cluster", signal.leader.0));
                }
                self.install(signal.index, Arc::new(membership));
                if signal.must_restart {
                    self.stop_for_restart();
                }
                let is_own = |(life, _): &&(Incarnation, Box<str>)| *life == self.settings.incarnation;
                if let Some((_, refusal)) = signal.refusal.as_ref().filter(is_own) {
                    self.stop(refusal.to_string());
                }
            }
            Err(malformed) => self.log(format!("node {}: its membership is refused: {malformed}", signal.leader.0)),
        }
    }

    /// Performs the work of the voter.
    pub(super) fn drive_voter(&mut self) {
        while let Some(voter) = &mut self.voter {
            let output = voter.take_output();
            let is_empty = output.send.is_empty() && output.write.is_none() && output.committed.is_empty();
            let from = voter.replica().voter().0;
            let sends = output.send.into_iter().map(|(to, message)| {
                let replicate = ReplicateMembership { from, message: message.into_boxed_slice() };
                (node_of(to), MemberMessage::Replicate(replicate))
            });
            self.output.send.extend(sends);
            self.output.writes.extend(output.write);
            for entry in output.committed {
                self.install_committed(entry.id.index, entry.membership);
            }
            if is_empty {
                break;
            }
        }
        // A voter that joins may start again from its files before it counts.
        self.is_voter_joining = self.voter.is_some() && !self.is_voter();
    }

    /// Whether the voter of this node counts, as far as its log is known here.
    pub fn is_voter(&self) -> bool {
        let replica = self.voter.as_ref().map(Replication::replica);
        replica.is_some_and(|replica| replica.voters().rank(replica.voter()).is_some())
    }

    /// Installs a membership of the voter's log, or skips it: the log of a voter that was away may end before
    /// the removal of nodes that the list lacks rightly. A leader has all entries that are committed, and
    /// announces the last of them.
    fn install_committed(&mut self, index: u64, membership: Arc<Membership>) {
        if !self.is_raft_leader() && self.contradiction(&membership).is_some() {
            self.skipped = Some((index, membership));
        } else {
            self.install(index, membership);
        }
    }

    /// Whether the voter of this node leads.
    pub(super) fn is_raft_leader(&self) -> bool {
        self.voter.as_ref().is_some_and(Replication::is_leader)
    }

    /// Where the membership contradicts the list of this node, except for nodes that the log of the voter
    /// removes.
    fn contradiction(&self, membership: &Membership) -> Option<String> {
        // A voter that starts again goes through memberships from before a removal, with nodes that its list
        // lacks rightly.
        let last = self.voter.as_ref().and_then(Replication::last);
        let is_removed = |record: &&NodeRecord| last.is_some_and(|last| last.is_removed(record.node));
        let mut others = membership.nodes.iter().filter(|record| !is_removed(record));
        others.find_map(|record| self.settings.contradiction(record, membership.added.contains(record.node)))
    }

    pub(super) fn install(&mut self, index: u64, membership: Arc<Membership>) {
        let before = self.installed.as_ref();
        if before.is_some_and(|(installed, _)| *installed >= index) {
            return;
        }
        if let Some(text) = self.contradiction(&membership) {
            return self.stop(format!("{text}; give all nodes the same `nodes` and NoOfReplicas"));
        }
        let groups = self.settings.groups();
        let known = usize::from(membership.open_groups) + usize::from(membership.closed_group().is_some());
        // They would vote, and the other nodes would not know.
        let groups_of_voters = groups.get(known..self.settings.first_groups()).unwrap_or_default();
        if let Some(NodeId(node)) = groups_of_voters.iter().flatten().next() {
            let role = "data nodes that are added need the role added";
            return self.stop(format!("node {node} of `nodes` has a group that the cluster lacks; {role}"));
        }
        let own = self.settings.own;
        let earlier = before.map(|(_, before)| Arc::clone(before));
        self.output.fences.push(LinkChange::Epoch(membership.epoch.0));
        for record in &membership.nodes {
            let fenced = record.incarnation.0.saturating_sub(u32::from(record.is_member()));
            if fenced > 0 && record.node != own && !PlantedBug::ForgetFences.is_planted() {
                self.output.fences.push(LinkChange::Evict { node: record.node, incarnation: fenced });
            }
        }
        let is_fenced = |it: &&RemovedNode| it.node != own && it.incarnation.0 > 0;
        for RemovedNode { node, incarnation } in membership.removed.iter().filter(is_fenced) {
            let incarnation = incarnation.0;
            self.output.fences.push(LinkChange::Evict { node: *node, incarnation });
        }
        if membership.epoch.0 > 0 && earlier.is_none_or(|earlier| earlier.epoch < membership.epoch) {
            let states = membership
                .members()
                .map(|record| format!("{}{}", record.node.0, if record.is_serving() { "" } else { " joining" }));
            let states: Vec<String> = states.collect();
            let line = format!(
                "epoch {}: members {}, sequencer {}",
                membership.epoch,
                states.join(", "),
                membership.sequencer.0
            );
            self.tell(EventKind::Epoch, line);
        }
        let is_member = membership.has(own, self.settings.incarnation);
        let record = membership.record(own).copied();
        self.installed = Some((index, membership));
        if is_member && !self.is_admitted {
            self.is_admitted = true;
            self.output.admission = record.map(|record| record.admitted);
        }
        if self.membership().is_some_and(|membership| membership.is_removed(own)) {
            return self.stop_removed();
        }
        // This life may have been admitted and evicted by memberships that this node has not seen.
        let was_admitted = record.is_some_and(|record| record.incarnation >= self.settings.incarnation);
        if (self.is_admitted || was_admitted) && !is_member {
            let epoch = self.membership().map_or(Epoch(0), |membership| membership.epoch);
            self.stop(match self.leaving_since {
                Some(_) => format!("it has left before epoch {epoch}"),
                None => format!("this node was evicted before epoch {epoch}; it must start again"),
            });
        }
    }
}

/// The clock of leases: that of the node, which goes on while the machine sleeps.
pub(super) fn boot_time(now: Time) -> BootTime {
    BootTime(now.0)
}
