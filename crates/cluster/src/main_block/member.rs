//! The node's part in a cluster: timers, messages and files of [`crate::member`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use junctor_consensus::Write;
use junctor_kernel::transport::board::LinkNews;
use junctor_kernel::{
    Address, Context, FileBuffer, FileLane, FileMode, FileOutcome, FileResult, LinkFigures, NodeId, Outbox, Time,
    WorldRequest,
};
use junctor_model::id::{CommitNumber, Epoch, Incarnation};
use junctor_model::value::Value;
use junctor_signals::cluster_status::{ClusterFigure, ClusterStatus};
use junctor_signals::report_node::ReportNode;
use junctor_signals::request_lease::{RequestLease, RequestLeaseReply};
use junctor_signals::{MainSignal, Module, Signal, crash_point};

use super::block::MainBlock;
use crate::member::node_file::{NEW_NODE_FILE, NODE_FILE, NodeFile, VOTER_FILES};
use crate::member::{EpochProgress, EventKind, Member, MemberMessage, MemberNode, MemberOutput, RemovalRefusal, TICK};
use crate::membership::Membership;
use crate::membership::lease::REQUEST_INTERVAL;

/// The token of the tick.
pub(super) const MEMBER_TIMER: u64 = 3;
/// The token of every request about the files of the membership.
pub(super) const MEMBER_FILE: u64 = 2 << 32;

/// The token of the timer that asks for leases.
pub(super) const LEASE_TIMER: u64 = 5;

/// A node's part in its cluster, with the work on its files.
#[derive(Debug)]
pub(super) struct ClusterMember {
    member: Member,
    waiting: VecDeque<FileWork>,
    running: Option<FileWork>,
    /// The epoch of the admission, which is written when the data is recovered: the log begins its next life
    /// before.
    admission: Option<Epoch>,
    /// Whether main has admitted clients.
    is_open: bool,
    is_ending: bool,
}

#[derive(Debug)]
enum FileWork {
    /// A part of the voter's log.
    Log(Write),
    /// The epoch that has admitted this life.
    Admission(Epoch),
}

impl ClusterMember {
    pub(super) fn note_recovered(&mut self, stable: CommitNumber, checkpoint: CommitNumber) {
        self.member.note_recovered(stable, checkpoint);
    }

    /// Whether this node serves clients.
    pub(super) fn serves_clients(&self) -> bool {
        let settings = self.member.settings();
        settings.node(settings.own).is_some_and(|it| it.roles.sql)
    }

    /// Whether a node has data.
    pub(super) fn has_data(&self, node: NodeId) -> bool {
        self.member.settings().node(node).is_some_and(|it| it.roles.data)
    }

    /// The linked nodes that serve clients without data.
    pub(super) fn clients(&self) -> impl Iterator<Item = NodeId> {
        let settings = self.member.settings();
        let is_client = |it: &&MemberNode| it.roles.sql && !it.roles.data && it.node != settings.own;
        let nodes = settings.nodes.iter().filter(is_client).map(|it| it.node);
        nodes.filter(|node| self.linked_life(*node).is_some())
    }

    /// The life of another node to which the links are open.
    pub(super) fn linked_life(&self, node: NodeId) -> Option<Incarnation> {
        self.member.linked_life(node)
    }

    /// See [`Member::is_lost`].
    pub(super) fn is_lost(&self, node: NodeId, life: Incarnation) -> bool {
        self.member.is_lost(node, life)
    }

    /// The other nodes of the cluster.
    pub(super) fn others(&self) -> impl Iterator<Item = NodeId> {
        let settings = self.member.settings();
        settings.nodes.iter().map(|it| it.node).filter(|node| *node != settings.own)
    }

    /// Whether this node has links to another one.
    pub(super) fn is_linked_with(&self, node: NodeId) -> bool {
        let settings = self.member.settings();
        settings.node(settings.own).zip(settings.node(node)).is_some_and(|(own, other)| own.is_linked_with(other))
    }

    /// A node that has links to all others: the leader, if this node is linked with it.
    pub(super) fn relay(&self) -> Option<NodeId> {
        let settings = self.member.settings();
        let has_all = |it: &&MemberNode| (it.roles.data || it.roles.management) && self.linked_life(it.node).is_some();
        let leader = Some(self.member.leader()).filter(|node| self.linked_life(*node).is_some());
        leader.or_else(|| settings.nodes.iter().find(has_all).map(|it| it.node))
    }

    /// See [`Member::leave`].
    pub(super) fn leave(&mut self, now: Time) -> Option<bool> {
        self.member.leave(now)
    }

    /// The node that leads; node 0 if this node knows none.
    pub(super) fn leader(&self) -> NodeId {
        self.member.leader()
    }

    /// See [`Member::change_group`].
    pub(super) fn change_group(&mut self, group: u8, leaves: bool) -> Result<(), RemovalRefusal> {
        self.member.change_group(group, leaves)
    }

    /// See [`Member::change_replica`].
    pub(super) fn change_replica(&mut self, node: NodeId, leaves: bool) -> Result<(), RemovalRefusal> {
        self.member.change_replica(node, leaves)
    }

    /// See [`Member::link_rows`].
    pub(super) fn link_rows(&self, figures: &LinkFigures, now: Time) -> Vec<Vec<Value>> {
        self.member.link_rows(figures, now)
    }

    /// See [`Member::arbitration_row`].
    pub(super) fn arbitration_row(&self, now: Time) -> Vec<Value> {
        self.member.arbitration_row(now)
    }

    /// See [`Member::event_rows`].
    pub(super) fn event_rows(&self, now: Time, wall_clock_us: u64) -> Vec<Vec<Value>> {
        self.member.event_rows(now, wall_clock_us)
    }

    /// See [`Member::group_without`].
    pub(super) fn group_without(&self, node: NodeId) -> Option<u8> {
        self.member.group_without(node)
    }

    /// See [`Member::takes_majority`].
    pub(super) fn takes_majority(&self, node: NodeId) -> bool {
        self.member.takes_majority(node)
    }

    /// Whether no life of this node was admitted before this one.
    pub(super) fn has_never_started(&self) -> bool {
        self.member.settings().started == Epoch(0)
    }

    /// The installed membership.
    pub(super) fn membership(&self) -> Option<&Arc<Membership>> {
        self.member.membership()
    }
}

impl MainBlock {
    /// Begins the part of a node of a cluster. A node alone has none.
    pub(super) fn begin_member(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let Some(settings) = self.configuration.member.take() else { return };
        let settings = Arc::unwrap_or_clone(settings);
        let now = context.turn_start;
        let has_lease_timer = self.epochs.is_some() || settings.voters().contains(&settings.own);
        if self.epochs.is_some() {
            self.groups = settings.chains_of_groups();
            self.first_groups = settings.first_groups();
            self.beside = settings.beside();
        }
        let mut member = Member::new(settings, now);
        member.set_instances(self.ldm_instances, self.own_count(Module::Tc));
        self.member = Some(Box::new(ClusterMember {
            member,
            waiting: VecDeque::new(),
            running: None,
            admission: None,
            is_open: false,
            is_ending: false,
        }));
        self.on_member_timer(context, outbox);
        if has_lease_timer {
            self.on_lease_timer(context, outbox);
        }
    }

    /// The membership that this node has installed, for checkers. `None` before the first one.
    pub fn installed_membership(&self) -> Option<&Arc<Membership>> {
        self.member.as_ref()?.membership()
    }

    /// Whether the voter of this node counts, for checkers.
    pub fn is_voter(&self) -> bool {
        self.member.as_ref().is_some_and(|cluster| cluster.member.is_voter())
    }

    /// Whether the node stops, for checkers.
    pub fn is_ending(&self) -> bool {
        self.member.as_ref().is_some_and(|cluster| cluster.is_ending)
    }

    /// The last epoch that all blocks of this node have started, for checkers; 0 if none.
    pub fn epoch_started(&self) -> Epoch {
        self.epochs.as_ref().map_or(Epoch(0), |epochs| epochs.progress().started)
    }

    /// The node stops: it does not vote and reports nothing more.
    pub(super) fn end_member(&mut self) {
        if let Some(cluster) = &mut self.member {
            cluster.is_ending = true;
        }
    }

    /// Keeps an event, which the log gets with the next tick.
    pub(super) fn note_event(&mut self, kind: EventKind, line: String) {
        if let Some(cluster) = &mut self.member {
            cluster.member.tell(kind, line);
        }
    }

    /// The rows of `junctor_info.nodes`.
    pub(super) fn member_rows(&self) -> Vec<Vec<Value>> {
        self.member.as_ref().map(|cluster| cluster.member.rows()).unwrap_or_default()
    }

    /// The rows of `junctor_info.node_groups`.
    pub(super) fn group_rows(&self) -> Vec<Vec<Value>> {
        self.member.as_ref().map(|cluster| cluster.member.group_rows()).unwrap_or_default()
    }

    pub(super) fn on_member_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let now = context.turn_start;
        let (has_copies, admits) = (self.is_welcome() && self.has_rows(), self.running.is_none());
        let is_left_group_empty = self.is_left_group_empty();
        let Some(cluster) = self.member.as_mut().filter(|cluster| !cluster.is_ending) else { return };
        if let Some(epochs) = &mut self.epochs {
            let slow = epochs.slow_node(now, cluster.member.settings().standstill_max);
            cluster.member.set_progress(EpochProgress { admits, slow, is_left_group_empty, ..epochs.progress() });
            cluster.member.set_copies(has_copies);
        }
        cluster.member.tick(now);
        outbox.request(WorldRequest::StartTimer { after: TICK, token: MEMBER_TIMER });
        self.perform(now, outbox);
        self.advance_schema(now, outbox);
        self.configuration.cluster_status.set_runs_schema_changes(self.runs_schema_changes());
        self.advance_own_locks(now, outbox);
        if self.runs_schema_changes() {
            self.answer_early_locks(now, outbox);
        }
        self.ask_outcomes_again(now, outbox);
        self.schedule_questions(outbox);
        self.abandon_backup_part(now, outbox);
        if self.configuration.supervision.wants_stop.load(Ordering::Relaxed) {
            self.begin_stop(now, outbox);
        }
        self.restart_info.set_now(now);
    }

    pub(super) fn on_lease_timer(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let now = context.turn_start;
        let Some(cluster) = self.member.as_mut().filter(|cluster| !cluster.is_ending) else { return };
        cluster.member.on_lease_timer(now);
        outbox.request(WorldRequest::StartTimer { after: REQUEST_INTERVAL, token: LEASE_TIMER });
        self.perform(now, outbox);
        self.publish_lease();
    }

    /// A data node asks the voter of this node for a lease.
    pub(super) fn on_request_lease(
        &mut self,
        from: NodeId,
        request: RequestLease,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(cluster) = self.member.as_mut().filter(|cluster| !cluster.is_ending) else { return };
        // The lease counts from the sending, which may be later than the start of this turn.
        let now = context.clock_now();
        cluster.member.on_request_lease(from, request, now);
        self.perform(context.turn_start, outbox);
    }

    /// A voter has granted a lease.
    pub(super) fn on_request_lease_reply(
        &mut self,
        from: NodeId,
        grant: RequestLeaseReply,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(cluster) = self.member.as_mut().filter(|cluster| !cluster.is_ending) else { return };
        cluster.member.on_grant_lease(from, grant);
        self.publish_lease();
        self.answer_snapshots(context, outbox);
    }

    /// Tells the sql blocks until when they may choose snapshots.
    fn publish_lease(&self) {
        if let Some((cluster, epochs)) = self.member.as_ref().zip(self.epochs.as_ref()) {
            epochs.set_lease(cluster.member.lease_until());
        }
    }

    pub(super) fn on_member_signal(
        &mut self,
        from: NodeId,
        signal: MainSignal,
        now: Time,
        outbox: &mut Outbox<Signal>,
    ) {
        let Some(cluster) = self.member.as_mut().filter(|cluster| !cluster.is_ending) else { return };
        match signal {
            MainSignal::ReportNode(signal) => cluster.member.on_report(from, *signal.report),
            MainSignal::ReplicateMembership(signal) => cluster.member.on_replicate(from, &signal),
            MainSignal::InstallMembership(signal) => cluster.member.on_install(&signal),
            MainSignal::LeasesOver(signal) => return self.on_leases_over(signal.epoch, outbox),
            MainSignal::LinkNews(news) => {
                count_news(&self.configuration.cluster_status, &news);
                cluster.member.on_link(news, now);
                if let LinkNews::Dead { node, incarnation, .. } = news {
                    self.leave_client((node, Incarnation(incarnation)), now, outbox);
                }
            }
            _ => {}
        }
        self.perform(now, outbox);
    }

    /// Performs what the member wants.
    pub(super) fn perform(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let serves_clients = self.member.as_ref().is_some_and(|cluster| cluster.serves_clients());
        let is_welcome = (self.epochs.is_none() && !serves_clients) || self.is_welcome();
        let Some(cluster) = &mut self.member else { return };
        let MemberOutput { log, stop, fences, send, writes, admission, has_left } = cluster.member.take_output();
        log.into_iter().for_each(|line| self.configuration.log_lines.write(line));
        if let Some(message) = stop {
            outbox.request(WorldRequest::Halt { message: message.into() });
            return;
        }
        for change in fences {
            outbox.request(WorldRequest::SetMembership { change });
        }
        for (node, message) in send {
            let signal = match message {
                MemberMessage::Report(report) => MainSignal::ReportNode(ReportNode { report }),
                MemberMessage::Replicate(signal) => MainSignal::ReplicateMembership(signal),
                MemberMessage::Install(signal) => MainSignal::InstallMembership(signal),
                MemberMessage::LeasesOver(signal) => MainSignal::LeasesOver(signal),
                MemberMessage::RequestLease(signal) => MainSignal::RequestLease(signal),
                MemberMessage::GrantLease(signal) => MainSignal::RequestLeaseReply(signal),
            };
            outbox.send(Address::new(node, Module::Main, 0), Signal::Main(signal));
        }
        cluster.waiting.extend(writes.into_iter().map(FileWork::Log));
        cluster.admission = admission.or(cluster.admission);
        if has_left {
            outbox.request(WorldRequest::Stop);
        }
        let has_begun = self.epochs.as_ref().is_none_or(|epochs| epochs.has_begun());
        if has_begun {
            cluster.waiting.extend(cluster.admission.take().map(FileWork::Admission));
        }
        let opens = !cluster.is_open && cluster.member.is_ready() && is_welcome;
        cluster.is_open |= opens;
        cluster.begin_file_work(outbox);
        cluster.show(&self.configuration.cluster_status);
        let admitted = cluster.member.admitted_membership().cloned();
        let cut = cluster.member.admitted_cut();
        if opens {
            self.open_to_clients(outbox);
        }
        if let Some(cut) = cut {
            self.on_cut_known(cut, self.is_joining(), outbox);
        }
        // The links refuse the lives that it evicts, and its admission is on disk.
        if let Some(membership) = admitted {
            self.install_epoch(&membership, now, outbox);
        }
        self.choose_host(outbox);
    }

    pub(super) fn on_member_file(&mut self, result: FileResult, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(cluster) = &mut self.member else { return };
        if cluster.on_file(result, outbox) {
            match cluster.running.take() {
                Some(FileWork::Log(write)) => {
                    outbox.crash_point(crash_point::VOTER_WRITE.after());
                    cluster.member.note_written(write.number, now);
                }
                Some(FileWork::Admission(epoch)) => {
                    outbox.crash_point(crash_point::MEMBER_ADMIT.after());
                    cluster.member.note_admission_written(epoch);
                }
                None => {}
            }
            self.perform(now, outbox);
        }
    }
}

fn count_news(status: &ClusterStatus, news: &LinkNews) {
    match news {
        LinkNews::Up { .. } => status.count(ClusterFigure::LinksOpened),
        LinkNews::Dead { .. } => status.count(ClusterFigure::LinksLost),
        LinkNews::Refused { .. } => status.count(ClusterFigure::LinksRefused),
        LinkNews::Suspected { .. } => status.count(ClusterFigure::LinksSilent),
        LinkNews::Unreachable { .. }
        | LinkNews::Reachable { .. }
        | LinkNews::Heard { .. }
        | LinkNews::Evicted { .. }
        | LinkNews::Unknown { .. } => {}
    }
}

impl ClusterMember {
    /// Writes the figures of SHOW STATUS.
    fn show(&self, status: &ClusterStatus) {
        let (settings, membership) = (self.member.settings(), self.member.membership());
        let is_removed = |node| membership.is_some_and(|membership| membership.is_removed(node));
        let data = settings.nodes.iter().filter(|it| it.roles.data && !is_removed(it.node)).count();
        let ready = membership.map_or(0, |membership| membership.serving().count());
        status.set(ClusterFigure::NodeId, u64::from(settings.own.0));
        status.set(ClusterFigure::DataNodes, data as u64);
        status.set(ClusterFigure::ReadyDataNodes, ready as u64);
        status.set(ClusterFigure::Epoch, membership.map_or(0, |membership| u64::from(membership.epoch.0)));
        status.set(ClusterFigure::NodeGroups, membership.map_or(0, |membership| membership.placed_groups().into()));
        status.set(ClusterFigure::Leader, u64::from(self.member.leader().0));
        status.set(ClusterFigure::LinksUp, self.member.links_up() as u64);
    }

    fn begin_file_work(&mut self, outbox: &mut Outbox<Signal>) {
        if self.running.is_some() {
            return;
        }
        let Some(work) = self.waiting.pop_front() else { return };
        let (path, mode) = match &work {
            FileWork::Log(write) if write.offset == 0 => (VOTER_FILES[write.file], FileMode::CreateEmpty),
            FileWork::Log(write) => (VOTER_FILES[write.file], FileMode::ReadWrite),
            FileWork::Admission(_) => (NEW_NODE_FILE, FileMode::CreateEmpty),
        };
        let (path, lane, token) = (path.into(), FileLane::Control, MEMBER_FILE);
        outbox.crash_point(match work {
            FileWork::Log(_) => crash_point::VOTER_WRITE.before(),
            FileWork::Admission(_) => crash_point::MEMBER_ADMIT.before(),
        });
        outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct: false, token });
        self.running = Some(work);
    }

    /// Goes on with the running work. Returns whether it is done.
    fn on_file(&mut self, result: FileResult, outbox: &mut Outbox<Signal>) -> bool {
        let (lane, token) = (FileLane::Control, MEMBER_FILE);
        let settings = self.member.settings();
        let Some(work) = &mut self.running else { return false };
        match result {
            Ok(FileOutcome::Opened { file, .. }) => {
                let (offset, bytes) = match work {
                    FileWork::Log(write) => (write.offset, std::mem::take(&mut write.bytes)),
                    FileWork::Admission(epoch) => {
                        let (cluster, node, incarnation) = (settings.cluster, settings.own, settings.incarnation);
                        (0, NodeFile { cluster, node, incarnation, started: *epoch }.encode())
                    }
                };
                outbox.request(WorldRequest::WriteFile { file, offset, bytes: FileBuffer::from(&bytes[..]), token });
                outbox.request(WorldRequest::SyncFile { file, token });
                outbox.request(WorldRequest::CloseFile { file, token });
                false
            }
            Ok(FileOutcome::Closed) => match work {
                FileWork::Log(write) if write.offset > 0 => true,
                FileWork::Log(_) => {
                    outbox.request(WorldRequest::SyncFolder { path: ".".into(), lane, token });
                    false
                }
                FileWork::Admission(_) => {
                    let (from, to) = (NEW_NODE_FILE.into(), NODE_FILE.into());
                    outbox.request(WorldRequest::RenameFile { from, to, lane, token });
                    outbox.request(WorldRequest::SyncFolder { path: ".".into(), lane, token });
                    false
                }
            },
            Ok(FileOutcome::FolderSynced) => true,
            Ok(_) => false,
            Err(error) => {
                let message = format!("cannot write the files of the membership: {error}");
                outbox.request(WorldRequest::Halt { message: message.into() });
                false
            }
        }
    }
}
