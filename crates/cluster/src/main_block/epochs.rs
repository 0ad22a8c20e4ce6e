//! Hot path: at most 400 instructions a commit.
//!
//! The machines of [`crate::epoch`] in main of a data node: requests of tcs go to the sequencer, and its
//! decisions to tcs and ldms. Signals only note what has come; one later turn takes all of it together, so
//! that batches form by themselves.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Context, Duration, NodeId, Outbox, Time, WorldRequest, require};
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation, TransactionId};
use junctor_model::planted_bug::PlantedBug;
use junctor_model::value::Value;
use junctor_signals::append_records::AwaitDurable;
use junctor_signals::ask_outcome::{AskOutcome, AskOutcomeReply};
use junctor_signals::commit_transaction::{
    AwaitStable, CommitTransaction, CommitTransactionReply, MAIN_OWNER, TransactionPart, coordinator,
};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::install_membership::InstallMembership;
use junctor_signals::recover_log::OpenToClients;
use junctor_signals::report_node::SlowNode;
use junctor_signals::start_epoch::{BeginEpoch, Installed, LateNodes, SequencerLost, StartEpoch};
use junctor_signals::take_number::{Decision, NumberTaken, Participant, Participants, RequestNumber};
use junctor_signals::{
    LdmSignal, MainSignal, Module, QuerySignal, RecvSignal, Signal, SqlSignal, TcSignal, crash_point,
};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::snapshot::SnapshotRegistry;

use super::block::MainBlock;
use super::tc_waits::{KnownNumbers, TcWaits};
use crate::epoch::mirror::Order;
use crate::epoch::{EpochChange, Mirror, Sequencer};
use crate::member::EpochProgress;
use crate::membership::detector::SlowNodes;
use crate::membership::lease::BootTime;
use crate::membership::{Membership, NodeSet};

/// Identifies the work in [`ContinueWork`].
pub(super) const EPOCH_WORK: u32 = 4;
/// Identifies what waits for the disks of all nodes.
pub(super) const DURABLE_WORK: u32 = 5;
/// The token of the timer that tells what is not urgent, such as snapshots that have ended.
pub(super) const EPOCH_TIMER: u64 = 4;
const EPOCH_TIMER_MS: u64 = 20;
/// Maximum number of signals of one turn. The rest follows in the next one.
const SIGNALS_PER_TURN_MAX: usize = 48;

/// The settings of a node that takes part in the epochs of a cluster.
#[derive(Clone, Debug)]
pub struct EpochSettings {
    /// The life of the node.
    pub incarnation: Incarnation,
    /// Where blocks read the stable number.
    pub sequence: Arc<CommitSequence>,
    /// The snapshots of the node.
    pub snapshots: Arc<SnapshotRegistry>,
    /// The membership of nodes that start together and never change, for a cluster without voters. Its epoch
    /// rises to the one after all numbers that the node has recovered.
    pub fixed: Option<Arc<Membership>>,
}

/// The part of a data node in the epochs of its cluster.
#[derive(Debug)]
pub(super) struct Epochs {
    own: Address,
    settings: EpochSettings,
    /// `None` until the data of the node is recovered.
    mirror: Option<Mirror>,
    sequencer: Option<Sequencer>,
    change: Option<EpochChange>,
    /// The membership before the installed one, for the lives that have ended since.
    before: Option<Arc<Membership>>,
    installed: Option<Arc<Membership>>,
    /// Reports of nodes that have installed a membership before this one.
    early: Vec<(NodeId, Installed)>,
    orders: Vec<Order>,
    queue: VecDeque<(Address, Signal)>,
    /// Main, and every sql, tc and ldm block of the node.
    blocks: Vec<Address>,
    /// The last epoch that all of them have started, and how many have not started the one that the mirror
    /// has.
    started_everywhere: Epoch,
    starting: usize,
    recv_blocks: Vec<Address>,
    tcs: Vec<TcWaits>,
    /// Whether main has asked for the number of its records.
    is_number_requested: bool,
    /// The last number that the log of the node has reported.
    log_durable: CommitNumber,
    /// The durable number that main itself knows.
    told_durable: CommitNumber,
    /// The last epoch for whose sequencer the leases of evicted nodes are over.
    leases_over: Epoch,
    /// Nodes that have left since the start of this one.
    all_gone: NodeSet,
    /// The order of the others in chains, in the started epoch.
    late: LateNodes,
    /// Whether the sequencer of the epoch before the started one is lost.
    pub has_lost_sequencer: bool,
    /// The oldest snapshot that the mirror knows.
    reported_oldest: CommitNumber,
    slow: SlowNodes,
    is_scheduled: bool,
    is_open: bool,
    is_ending: bool,
}

impl Epochs {
    pub fn new(own: Address, settings: EpochSettings, subscribers: &[Address], recv_blocks: &[Address]) -> Epochs {
        let has_epochs =
            |at: &&Address| matches!(Module::of(at.module), Module::Sql | Module::Tc | Module::Ldm | Module::Query);
        // The gateway of main is the first to know, before answers of the others reach it.
        let others = subscribers.iter().filter(has_epochs).copied();
        let blocks: Vec<Address> = std::iter::once(own).chain(others).collect();
        let tcs = blocks.iter().filter(|at| at.module == Module::Tc).count();
        Epochs {
            own,
            settings,
            mirror: None,
            sequencer: None,
            change: None,
            before: None,
            installed: None,
            early: Vec::new(),
            orders: Vec::new(),
            queue: VecDeque::new(),
            blocks,
            started_everywhere: Epoch(0),
            starting: 0,
            recv_blocks: recv_blocks.to_vec(),
            tcs: vec![TcWaits::default(); tcs],
            is_number_requested: false,
            log_durable: CommitNumber(0),
            told_durable: CommitNumber(0),
            leases_over: Epoch(0),
            all_gone: NodeSet::EMPTY,
            late: LateNodes::default(),
            has_lost_sequencer: false,
            reported_oldest: CommitNumber(0),
            slow: SlowNodes::default(),
            is_scheduled: false,
            is_open: false,
            is_ending: false,
        }
    }

    /// The nodes that have left since the start of this one.
    pub fn all_gone(&self) -> NodeSet {
        self.all_gone
    }

    /// The order of the others in chains, in the started epoch.
    pub fn late(&self) -> &LateNodes {
        &self.late
    }

    /// The number that main should ask the log for: a client or main waits for it, and it is stable.
    pub fn wanted_on_disk(&self) -> Option<CommitNumber> {
        let mirror = self.mirror.as_ref()?;
        let stable = mirror.stable();
        let membership = mirror.membership().filter(|_| self.settings.fixed.is_none());
        // A mark waits for the disks of all.
        let is_unmarked = membership.is_some_and(|it| it.serving().any(|record| !record.is_durable));
        // After a stop of all nodes, nothing that was answered may be missing.
        let wanted = if is_unmarked || self.is_ending { stable } else { mirror.wanted_on_disk().min(stable) };
        (wanted > self.log_durable).then_some(wanted)
    }

    /// Main or a tc waits until the number is on the disks of all nodes.
    pub fn want_on_disk(&mut self, number: CommitNumber) {
        self.mirror.iter_mut().for_each(|mirror| mirror.want_on_disk(number));
    }

    /// Versions from here on are kept, because nodes that join copy rows as a snapshot at the start of their
    /// epoch sees them.
    pub fn oldest_copied(&self) -> Option<CommitNumber> {
        let membership = self.mirror.as_ref()?.membership()?;
        let joining = membership.members().filter(|record| !record.is_serving());
        joining.map(|record| CommitNumber(CommitNumber::start_of(record.admitted).0 - 1)).min()
    }

    /// G, as main knows it.
    pub fn durable_everywhere(&self) -> CommitNumber {
        self.told_durable
    }

    /// Reports what the log has synced.
    pub fn report_durable(&mut self) {
        if let Some(mirror) = self.mirror.as_mut() {
            mirror.set_durable(self.log_durable.min(mirror.stable()).max(mirror.durable()));
        }
    }

    /// The last number that the log of the node has reported.
    pub fn durable(&self) -> CommitNumber {
        self.log_durable
    }

    fn schedule(&mut self, outbox: &mut Outbox<Signal>) {
        if !std::mem::replace(&mut self.is_scheduled, true) {
            outbox.send(self.own, Signal::Main(MainSignal::ContinueWork(ContinueWork { work: EPOCH_WORK })));
        }
    }

    fn send(&mut self, to: Address, signal: Signal) {
        self.queue.push_back((to, signal));
    }

    fn send_main(&mut self, node: NodeId, signal: MainSignal) {
        self.send(Address::new(node, Module::Main, 0), Signal::Main(signal));
    }

    /// Installs a membership: the epoch before stops, and the sequencer of the next one gets the report.
    fn install(&mut self, membership: &Arc<Membership>, now: Time) {
        let Some(report) = self.mirror.as_mut().and_then(|mirror| mirror.on_install_membership(membership)) else {
            return;
        };
        (self.sequencer, self.change) = (None, None);
        if self.before.is_none() || self.started() == self.installed.as_ref().map(|it| it.epoch) {
            self.before = self.installed.take();
        }
        self.installed = Some(Arc::clone(membership));
        let own = self.own.node;
        if membership.sequencer != own {
            return self.send_main(membership.sequencer, MainSignal::Installed(report));
        }
        self.change = Some(EpochChange::new(Arc::clone(membership)));
        self.on_installed(own, report, now);
        for (from, report) in std::mem::take(&mut self.early) {
            self.on_installed(from, report, now);
        }
    }

    /// The snapshot of a request of another node that begins now, and the oldest one that this node has
    /// reported.
    pub fn snapshot(&self) -> Option<(CommitNumber, CommitNumber)> {
        let snapshot = self.mirror.as_ref()?.snapshot()?;
        // Blocks read the published number, which follows the mirror's.
        Some((snapshot.min(self.settings.sequence.stable()), self.reported_oldest))
    }

    /// The node is a member until this time at least. It chooses snapshots once it serves.
    pub fn set_lease(&self, until: BootTime) {
        if self.snapshot().is_some() {
            self.settings.snapshots.set_lease(until.0);
        }
    }

    /// Whether the node may choose a snapshot for a request that it has taken before this time.
    pub fn has_lease(&self, now: Time) -> bool {
        self.settings.snapshots.has_lease(now.0)
    }

    /// Whether the data of the node is recovered.
    pub fn has_begun(&self) -> bool {
        self.mirror.is_some()
    }

    /// How far the epochs of this node are.
    pub fn progress(&self) -> EpochProgress {
        let leases_over = self.leases_over;
        let started = self.started_everywhere;
        let sequencer = self.sequencer.as_ref().filter(|sequencer| sequencer.epoch() == started);
        let markable = sequencer.map_or(NodeSet::EMPTY, Sequencer::durable_candidates);
        let durable = sequencer.map_or(CommitNumber(0), Sequencer::durable);
        let (admits, slow, is_left_group_empty) = (true, None, false);
        EpochProgress { started, leases_over, markable, admits, slow, durable, is_left_group_empty }
    }

    /// On the node with the sequencer: a node that has stood still for `limit` while others advance.
    pub fn slow_node(&mut self, now: Time, limit: Duration) -> Option<SlowNode> {
        let progress = self.sequencer.as_ref().map(Sequencer::progress).unwrap_or_default();
        self.slow.observe(now, limit, &progress)
    }

    /// On the node with the sequencer: a row for each member, in the order of `junctor_info.replication_lag`.
    pub fn lag_rows(&self) -> Vec<Vec<Value>> {
        self.sequencer.as_ref().map(|sequencer| sequencer.lag_rows(self.own.node)).unwrap_or_default()
    }

    pub(super) fn started(&self) -> Option<Epoch> {
        self.mirror.as_ref().map(Mirror::started)
    }

    fn on_installed(&mut self, from: NodeId, report: Installed, now: Time) {
        let installed = self.mirror.as_ref().map_or(Epoch(0), Mirror::installed);
        if report.epoch > installed {
            return self.early.push((from, report));
        }
        let Some(change) = &mut self.change else { return };
        // Links refuse other lives than the one of the membership.
        let Some(incarnation) = change.membership().record(from).map(|record| record.incarnation) else { return };
        let Some(start) = change.on_installed(from, incarnation, report, now) else { return };
        let mut sequencer = start.sequencer;
        if self.settings.fixed.is_some() {
            // Without voters there are no leases that could still be in force.
            sequencer.on_leases_over(sequencer.epoch());
        }
        (self.change, self.sequencer) = (None, Some(sequencer));
        for (node, message) in start.messages {
            match node == self.own.node {
                true => self.on_start_epoch(message),
                false => self.send_main(node, MainSignal::StartEpoch(message)),
            }
        }
    }

    fn on_start_epoch(&mut self, message: StartEpoch) {
        let Some(mirror) = &mut self.mirror else { return };
        let epoch = message.epoch;
        mirror.on_start_epoch(message, &mut self.orders);
        if let Some(sequencer) = self.sequencer.as_mut().filter(|it| it.epoch() == epoch && mirror.started() == epoch) {
            sequencer.open();
        }
    }

    /// Lets the mirror and the sequencer of this node exchange their messages, until neither has news. Own
    /// messages come first, so that what others get has the newest numbers.
    fn exchange(&mut self, now: Time) {
        let own = self.own.node;
        let Epochs { mirror: Some(mirror), sequencer, orders, queue, .. } = self else { return };
        let Some(leader) = mirror.membership().map(|membership| membership.sequencer) else { return };
        let main = |node| Address::new(node, Module::Main, 0);
        loop {
            let take = mirror.next_take_number();
            let applied = mirror.next_applied();
            if leader != own {
                queue.extend(take.map(|it| (main(leader), Signal::Main(MainSignal::TakeNumber(it)))));
                queue.extend(applied.map(|it| (main(leader), Signal::Main(MainSignal::Applied(it)))));
                return;
            }
            let Some(sequencer) = sequencer else { return };
            let mut has_news = take.is_some() || applied.is_some();
            take.into_iter().for_each(|message| sequencer.on_take_number(own, message));
            applied.iter().for_each(|message| sequencer.on_applied(own, message, now));
            while let Some(mut message) = sequencer.next_decide(own) {
                mirror.on_decide(&mut message, orders);
                sequencer.recycle(message.decisions);
                has_news = true;
            }
            if !has_news {
                break;
            }
        }
        let (Some(sequencer), Some(membership)) = (sequencer, mirror.membership()) else { return };
        for record in membership.members().filter(|record| record.node != own) {
            while let Some(message) = sequencer.next_decide(record.node) {
                queue.push_back((main(record.node), Signal::Main(MainSignal::Decide(message))));
            }
        }
    }

    /// Stores the numbers that all blocks of the node read.
    fn publish(&self) {
        let Some(mirror) = self.mirror.as_ref().filter(|mirror| mirror.started().0 > 0) else { return };
        let stable = mirror.stable();
        self.settings.sequence.publish(mirror.passed().max(stable), stable);
        self.settings.snapshots.limit_horizon(mirror.horizon());
    }

    /// Passes an order on. Returns the number, the position and the transaction of main's records.
    fn route(&mut self, order: Order) -> Option<(CommitNumber, u64, GlobalTransactionId)> {
        let node = self.own.node;
        match order {
            Order::CommitTransaction { ldm: MAIN_OWNER, position, number, transaction, .. } => {
                return Some((number, position, transaction));
            }
            Order::CommitTransaction { ldm, position, transaction, number, participants, part } => {
                let transaction = local_id(transaction);
                let reply_to = if part == TransactionPart::Locks { coordinator(transaction) } else { self.own };
                let commit = CommitTransaction { transaction, reply_to, number, position, participants, part };
                self.send(Address::new(node, Module::Ldm, ldm), Signal::Ldm(LdmSignal::CommitTransaction(commit)));
            }
            Order::NumberTaken { tc: MAIN_OWNER, .. } => {}
            Order::NumberTaken { tc, transaction, number } => {
                self.tcs[usize::from(tc)].note_own(number);
                let signal = NumberTaken { transaction: local_id(transaction), number };
                self.send(Address::new(node, Module::Tc, tc), Signal::Tc(TcSignal::NumberTaken(signal)));
            }
            Order::StartEpoch { epoch, .. } => self.begin_epoch(epoch),
        }
        None
    }

    /// A block has started an epoch. The epoch counts as started when all have: then nothing that this node
    /// owes to a life that has left can reach the next life of the node, which is admitted later.
    fn on_begin_epoch_reply(&mut self, epoch: Epoch) {
        if self.started() == Some(epoch) {
            self.starting -= 1;
            if self.starting == 0 {
                self.started_everywhere = epoch;
            }
        }
    }

    fn begin_epoch(&mut self, epoch: Epoch) {
        // The request for the number of main's records may have been lost with the epoch before.
        self.is_number_requested = false;
        let gone = self.gone();
        self.all_gone = match self.settings.fixed {
            Some(_) => self.all_gone.union(&gone),
            None => gone,
        };
        let before = self.before.as_ref().filter(|_| self.settings.fixed.is_none()).map(|before| before.sequencer);
        let lost_sequencer = before.filter(|node| self.all_gone.contains(*node));
        self.has_lost_sequencer = lost_sequencer.is_some();
        // All of them: a node may return that was gone in the epoch before.
        let gone = self.all_gone.to_words();
        let installed = self.installed.as_ref();
        let late = installed.map(|it| LateNodes::new(&it.late(), &it.added_replicas())).unwrap_or_default();
        self.late = late.clone();
        let own = installed.and_then(|installed| installed.record(self.own.node));
        let copies_at = own.filter(|own| !own.is_serving()).map(|own| CommitNumber::start_of(own.admitted));
        let admitted = own.map(|own| own.admitted).unwrap_or_default();
        self.starting = self.blocks.len();
        let reply_to = Some(self.own);
        for at in self.blocks.clone() {
            let signal = BeginEpoch { epoch, gone, late: late.clone(), copies_at, admitted, reply_to };
            let signal = match Module::of(at.module) {
                Module::Tc => Signal::Tc(TcSignal::BeginEpoch(signal)),
                Module::Sql | Module::Main => Signal::Sql(SqlSignal::BeginEpoch(signal)),
                Module::Query => Signal::Query(QuerySignal::BeginEpoch(signal)),
                _ => Signal::Ldm(LdmSignal::BeginEpoch(signal)),
            };
            self.send(at, signal);
            if let (Module::Sql, Some(node)) = (Module::of(at.module), lost_sequencer) {
                self.send(at, Signal::Sql(SqlSignal::SequencerLost(SequencerLost { node })));
            }
        }
        // The membership opens a node of a cluster with voters.
        if self.settings.fixed.is_some() && !std::mem::replace(&mut self.is_open, true) {
            for at in self.recv_blocks.clone() {
                self.send(at, Signal::Recv(RecvSignal::OpenToClients(OpenToClients {})));
            }
        }
    }

    /// The nodes whose lives were members of the last started epoch and are not of the installed one. In a
    /// cluster with voters, all data nodes that are no members: chains name every node that is configured.
    fn gone(&self) -> NodeSet {
        if let (None, Some(installed)) = (&self.settings.fixed, &self.installed) {
            let away = installed.nodes.iter().filter(|record| !record.is_member());
            let away: NodeSet = away.map(|record| record.node).collect();
            return away.union(&installed.removed_nodes());
        }
        let (Some(before), Some(installed)) = (&self.before, &self.installed) else { return NodeSet::EMPTY };
        let is_gone = |record: &&crate::membership::NodeRecord| !installed.has(record.node, record.incarnation);
        before.members().filter(is_gone).map(|record| record.node).collect()
    }

    /// Answers those that want to know an outcome, as far as it is known.
    fn answer_outcomes(&mut self, asked: &mut Vec<(NodeId, AskOutcome)>) {
        let Epochs { mirror: Some(mirror), queue, .. } = self else { return };
        asked.retain(|(node, AskOutcome { id, transaction, after })| {
            let Some(outcome) = mirror.outcome(*transaction, *after) else { return true };
            let reply = MainSignal::AskOutcomeReply(AskOutcomeReply { id: *id, outcome });
            queue.push_back((Address::new(*node, Module::Main, 0), Signal::Main(reply)));
            false
        });
    }

    /// Tells tcs and main what has become stable, confirmed and durable.
    fn announce(&mut self) {
        let Some(mirror) = &self.mirror else { return };
        let durable = mirror.durable_everywhere();
        let is_early = PlantedBug::AnswerUnconfirmed.is_planted();
        let stable = mirror.stable();
        let confirmed = if is_early { stable } else { mirror.confirmed() };
        let known = KnownNumbers { stable, confirmed, durable };
        let node = self.own.node;
        for (index, waits) in self.tcs.iter_mut().enumerate() {
            let tc = Address::new(node, Module::Tc, index as u16);
            waits.tell(known, |signal| self.queue.push_back((tc, Signal::Tc(signal))));
        }
        if durable > self.told_durable {
            self.told_durable = durable;
            let signal = MainSignal::ContinueWork(ContinueWork { work: DURABLE_WORK });
            self.queue.push_back((self.own, Signal::Main(signal)));
        }
    }
}

/// The id by which the blocks of a node know a transaction.
fn local_id(transaction: GlobalTransactionId) -> TransactionId {
    TransactionId::new(transaction.node, transaction.tc, transaction.counter)
}

impl MainBlock {
    /// Begins to take part in the epochs of the cluster. The data of the node is recovered.
    pub(super) fn begin_epochs(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = &mut self.epochs else { return };
        let recovered = epochs.settings.sequence.stable();
        epochs.mirror = Some(Mirror::new(epochs.own.node, epochs.settings.incarnation, recovered));
        outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(EPOCH_TIMER_MS), token: EPOCH_TIMER });
        if let Some(fixed) = epochs.settings.fixed.clone() {
            let mut membership = Arc::unwrap_or_clone(fixed);
            membership.epoch = membership.epoch.max(Epoch(recovered.epoch().0 + 1));
            for record in &mut membership.nodes {
                (record.admitted, record.serving_since) = (membership.epoch, membership.epoch);
            }
            self.install_epoch(&Arc::new(membership), now, outbox);
        }
    }

    /// Installs a membership that the voters have committed, unless its epoch is installed.
    pub(super) fn install_epoch(&mut self, membership: &Arc<Membership>, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = &mut self.epochs else { return };
        if epochs.installed.as_ref().is_none_or(|installed| installed.epoch < membership.epoch) {
            outbox.crash_point(crash_point::EPOCH_INSTALL.before());
            epochs.install(membership, now);
            epochs.schedule(outbox);
            outbox.crash_point(crash_point::EPOCH_INSTALL.after());
        }
    }

    /// The leases of the nodes that memberships up to this epoch have evicted are over.
    pub(super) fn on_leases_over(&mut self, epoch: Epoch, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = &mut self.epochs else { return };
        if let Some(sequencer) = epochs.sequencer.as_mut().filter(|sequencer| sequencer.epoch() == epoch) {
            sequencer.on_leases_over(epoch);
            epochs.leases_over = epoch;
            epochs.schedule(outbox);
        }
    }

    /// Installs the membership of a cluster that has no voters here.
    pub(super) fn on_install_membership(&mut self, signal: &InstallMembership, now: Time, outbox: &mut Outbox<Signal>) {
        if let Ok(membership) = Membership::decode(&signal.membership) {
            self.install_epoch(&Arc::new(membership), now, outbox);
        }
    }

    pub(super) fn on_epoch_timer(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = self.epochs.as_mut().filter(|epochs| !epochs.is_ending) else { return };
        outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(EPOCH_TIMER_MS), token: EPOCH_TIMER });
        if let Some(sequencer) = &mut epochs.sequencer {
            sequencer.update_horizon(now);
            sequencer.tell_all();
        }
        epochs.mirror.iter_mut().for_each(Mirror::tell_all);
        epochs.schedule(outbox);
    }

    /// The node stops: its timer must not keep it awake. Its log syncs what becomes stable until its links
    /// have ended.
    pub(super) fn end_epochs(&mut self, outbox: &mut Outbox<Signal>) {
        if let Some(epochs) = &mut self.epochs {
            epochs.is_ending = true;
        }
        self.schedule_epochs(outbox);
    }

    /// Handles a message of the sequencer or of a mirror.
    pub(super) fn on_epoch_signal(&mut self, from: NodeId, signal: MainSignal, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = &mut self.epochs else { return };
        match signal {
            MainSignal::TakeNumber(message) => {
                if let Some(sequencer) = &mut epochs.sequencer {
                    sequencer.on_take_number(from, message);
                }
            }
            MainSignal::Applied(message) => {
                if let Some(sequencer) = &mut epochs.sequencer {
                    sequencer.on_applied(from, &message, now);
                }
            }
            MainSignal::Decide(mut message) => {
                if let Some(mirror) = &mut epochs.mirror {
                    mirror.on_decide(&mut message, &mut epochs.orders);
                }
            }
            MainSignal::Installed(report) => epochs.on_installed(from, report, now),
            MainSignal::StartEpoch(message) => {
                outbox.crash_point(crash_point::EPOCH_START.before());
                epochs.on_start_epoch(message);
            }
            _ => {}
        }
        epochs.schedule(outbox);
    }

    pub(super) fn on_begin_epoch_reply(&mut self, epoch: Epoch) {
        if let Some(epochs) = &mut self.epochs {
            epochs.on_begin_epoch_reply(epoch);
        }
    }

    pub(super) fn on_request_number(&mut self, request: RequestNumber, outbox: &mut Outbox<Signal>) {
        let RequestNumber { epoch, transaction, participants, awaits_disk } = request;
        let Some(Epochs { mirror: Some(mirror), settings, .. }) = self.epochs.as_deref_mut() else { return };
        let transaction = GlobalTransactionId {
            counter: transaction.0 & ((1 << TransactionId::COUNTER_BITS) - 1),
            incarnation: settings.incarnation,
            tc: transaction.tc(),
            node: transaction.node(),
        };
        mirror.request_number(epoch, Decision { number: CommitNumber(0), transaction, participants, awaits_disk });
        self.schedule_epochs(outbox);
    }

    /// Asks for the number of records that these nodes write.
    pub(super) fn request_records_number(&mut self, id: u64, nodes: &[NodeId], outbox: &mut Outbox<Signal>) {
        let Some(epochs) = self.epochs.as_deref_mut() else { return };
        let Epochs { mirror: Some(mirror), is_number_requested, settings, own, .. } = epochs else { return };
        if *is_number_requested || mirror.started().0 == 0 || mirror.is_stopped() {
            return;
        }
        *is_number_requested = true;
        let transaction =
            GlobalTransactionId { counter: id, incarnation: settings.incarnation, tc: MAIN_OWNER, node: own.node.0 };
        let participant = |node: &NodeId| Participant { node: *node, part: TransactionPart::Rows, ldm: MAIN_OWNER };
        let participants: Vec<Participant> = nodes.iter().map(participant).collect();
        let participants = Participants::new(&participants);
        let number = CommitNumber(0);
        mirror.request_number(mirror.started(), Decision { number, transaction, participants, awaits_disk: true });
        self.schedule_epochs(outbox);
    }

    pub(super) fn schedule_epochs(&mut self, outbox: &mut Outbox<Signal>) {
        if let Some(epochs) = &mut self.epochs {
            epochs.schedule(outbox);
        }
    }

    /// An ldm has applied a decision.
    pub(super) fn on_commit_transaction_reply(&mut self, reply: CommitTransactionReply, outbox: &mut Outbox<Signal>) {
        let Some(Epochs { mirror: Some(mirror), .. }) = self.epochs.as_deref_mut() else { return };
        mirror.on_ldm_applied(reply.position);
        self.schedule_epochs(outbox);
    }

    pub(super) fn on_await_stable(&mut self, signal: AwaitStable, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = &mut self.epochs else { return };
        epochs.tcs[usize::from(coordinator(signal.transaction).instance)].note_seen(signal.number);
        epochs.schedule(outbox);
    }

    pub(super) fn on_await_durable(&mut self, signal: AwaitDurable, outbox: &mut Outbox<Signal>) {
        let Some(epochs) = &mut self.epochs else { return };
        epochs.tcs[usize::from(signal.reply_to.instance)].set_durable(signal.number);
        epochs.want_on_disk(signal.number);
        epochs.schedule(outbox);
    }

    /// The log of this node has synced commits.
    pub(super) fn on_log_durable(&mut self, durable: CommitNumber, now: Time, outbox: &mut Outbox<Signal>) {
        let Some(asked) = self.records.take_asked() else {
            junctor_kernel::invariant::fail("the log answers main once", format_args!("{durable:?}"))
        };
        require!(durable >= asked, "the log reports at least the awaited number: {durable}, {asked}");
        if let Some(epochs) = self.epochs.as_deref_mut() {
            epochs.log_durable = epochs.log_durable.max(durable);
        }
        if !self.counts_for_durability() {
            self.on_checkpoint_durable(durable, now, outbox);
        }
        self.schedule_epochs(outbox);
    }

    /// Goes on with the records and the checkpoint that wait until every node has them on disk.
    pub(super) fn on_durable_everywhere(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let durable = self.epochs.as_ref().map_or(CommitNumber(0), |epochs| epochs.told_durable);
        self.on_durable(durable, context, outbox);
    }

    /// Takes everything that has come since the last turn of this work.
    pub(super) fn run_epochs(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let now = context.turn_start;
        let (pinned, counts) = (self.oldest_pin(), self.counts_for_durability());
        let Some(epochs) = &mut self.epochs else { return };
        if counts {
            epochs.report_durable();
        }
        epochs.is_scheduled = false;
        let oldest = epochs.settings.snapshots.oldest().min(pinned);
        if let Some(mirror) = epochs.mirror.as_mut().filter(|mirror| mirror.started().0 > 0) {
            mirror.set_oldest_snapshot(Some(oldest));
            epochs.reported_oldest = oldest;
        }
        epochs.exchange(now);
        epochs.publish();
        let gone_before = epochs.all_gone;
        let mut numbered = Vec::new();
        let passes = !epochs.orders.is_empty();
        let starts = epochs.orders.iter().any(|order| matches!(order, Order::StartEpoch { .. }));
        if passes {
            outbox.crash_point(crash_point::NUMBER_PASS.before());
        }
        for order in std::mem::take(&mut epochs.orders) {
            numbered.extend(epochs.route(order));
        }
        epochs.announce();
        epochs.answer_outcomes(&mut self.outcomes.others);
        let gone = epochs.all_gone.without(&gone_before);
        for (number, position, transaction) in numbered {
            self.write_shared(number, transaction, outbox);
            if let Some(epochs) = self.epochs.as_deref_mut() {
                epochs.is_number_requested &= transaction.node != epochs.own.node.0;
                epochs.mirror.iter_mut().for_each(|mirror| mirror.on_ldm_applied(position));
            }
            self.schedule_epochs(outbox);
        }
        if !gone.is_empty() {
            // A schema change may go on, which uses up the signals of this turn.
            self.leave_nodes(gone, now, outbox);
            return self.schedule_epochs(outbox);
        }
        let Some(epochs) = &mut self.epochs else { return };
        let count = epochs.queue.len().min(SIGNALS_PER_TURN_MAX);
        for (to, signal) in epochs.queue.drain(..count) {
            let step = match &signal {
                Signal::Main(MainSignal::Decide(_)) => Some(crash_point::NUMBER_DECIDE),
                Signal::Main(MainSignal::StartEpoch(_)) => Some(crash_point::EPOCH_GATHER),
                _ => None,
            };
            if let Some(step) = step {
                outbox.crash_point(step.before());
            }
            outbox.send(to, signal);
            if let Some(step) = step {
                outbox.crash_point(step.after());
            }
        }
        if passes {
            outbox.crash_point(crash_point::NUMBER_PASS.after());
        }
        if starts {
            outbox.crash_point(crash_point::EPOCH_START.after());
        }
        if !epochs.queue.is_empty() {
            epochs.schedule(outbox);
        }
        self.write_records(outbox);
        self.ask_for_durable(outbox);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node alone in its cluster, which has started the first epoch.
    fn started(blocks: &[Address]) -> (Epochs, Arc<Membership>) {
        let own = Address::new(NodeId(1), Module::Main, 0);
        let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
        let snapshots = Arc::new(SnapshotRegistry::new(Arc::clone(&sequence), 1));
        let membership = Arc::new(Membership::create(&[(NodeId(1), 0)], vec![vec![NodeId(1)]], NodeId(1)));
        let incarnation = membership.nodes[0].incarnation;
        let settings = EpochSettings { incarnation, sequence, snapshots, fixed: None };
        let mut epochs = Epochs::new(own, settings, blocks, &[]);
        epochs.mirror = Some(Mirror::new(NodeId(1), incarnation, CommitNumber(0)));
        epochs.install(&membership, Time(0));
        for order in std::mem::take(&mut epochs.orders) {
            epochs.route(order);
        }
        (epochs, membership)
    }

    #[test]
    fn a_node_that_stops_syncs_all_that_is_stable() {
        let (mut epochs, membership) = started(&[]);
        epochs.exchange(Time(0));
        let stable = epochs.mirror.as_ref().unwrap().stable();
        assert_eq!(stable, CommitNumber::start_of(membership.epoch));
        assert_eq!(epochs.wanted_on_disk(), None, "nobody waits for it");
        epochs.is_ending = true;
        assert_eq!(epochs.wanted_on_disk(), Some(stable));
        epochs.log_durable = stable;
        assert_eq!(epochs.wanted_on_disk(), None);
    }

    #[test]
    fn an_epoch_counts_as_started_when_all_blocks_have_started_it() {
        let own = Address::new(NodeId(1), Module::Main, 0);
        let blocks =
            [Module::Main, Module::Tc, Module::Ldm, Module::Sql].map(|module| Address::new(NodeId(1), module, 0));
        let (mut epochs, membership) = started(&blocks);
        assert_eq!(epochs.started(), Some(membership.epoch));
        for block in &blocks {
            assert_eq!(epochs.progress().started, Epoch(0));
            let is_asked = |(to, signal): &(Address, Signal)| {
                let begin = match signal {
                    Signal::Tc(TcSignal::BeginEpoch(begin)) => begin,
                    Signal::Ldm(LdmSignal::BeginEpoch(begin)) => begin,
                    Signal::Sql(SqlSignal::BeginEpoch(begin)) => begin,
                    _ => return false,
                };
                to == block && begin.reply_to == Some(own)
            };
            assert!(epochs.queue.iter().any(is_asked));
            // An answer to an epoch before does not count.
            epochs.on_begin_epoch_reply(Epoch(membership.epoch.0 - 1));
            epochs.on_begin_epoch_reply(membership.epoch);
        }
        assert_eq!(epochs.progress().started, membership.epoch);
    }
}
