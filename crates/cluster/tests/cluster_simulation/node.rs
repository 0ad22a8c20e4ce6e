//! A data node: its machines, its toy blocks, and the queues between them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_cluster::epoch::mirror::Order;
use junctor_cluster::epoch::{EpochChange, Mirror, Sequencer};
use junctor_cluster::membership::lease::{BootTime, LEASE, LeaseHolder};
use junctor_cluster::membership::{Membership, NodeRecord};
use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};
use junctor_signals::take_number::{Decision, Participants};

use super::coordinator::{Answer, Tc};
use super::message::{Bug, Images, LDMS, Life, Message, Row, ToBlock, ldm_of};
use super::partition::{Ldm, Sent, Version};
use super::voters::voter_ids;

/// The state of a node that survives its death.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub stable: CommitNumber,
    /// The epoch of the last start.
    pub started: Epoch,
    pub rows: BTreeMap<Row, Vec<Version>>,
}

/// A message from a block to the mirror of its node.
#[derive(Debug)]
pub enum ToMirror {
    Applied(u64),
    Request(Epoch, Decision),
}

/// An order to an ldm or tc, with the membership for the start of an epoch.
pub type QueuedOrder = (Order, Option<Arc<Membership>>);

#[derive(Debug)]
pub struct Node {
    pub id: u8,
    pub incarnation: Incarnation,
    pub is_alive: bool,
    pub bug: Bug,
    /// Nanoseconds of its clock in a thousand nanoseconds.
    pub rate: u64,
    pub paused_until: u64,
    /// Its clock when its last turn began.
    pub turn_clock: BootTime,
    pub installed: Arc<Membership>,
    pub mirror: Mirror,
    pub change: Option<EpochChange>,
    pub sequencer: Option<Sequencer>,
    pub holder: LeaseHolder,
    /// The end of the lease if it counted from the arrival of grants.
    late_lease: BootTime,
    pub tc: Tc,
    pub ldms: Vec<Ldm>,
    pub ldm_orders: Vec<VecDeque<QueuedOrder>>,
    pub tc_orders: VecDeque<QueuedOrder>,
    pub to_mirror: VecDeque<ToMirror>,
    /// Numbers of the decisions that this life knows.
    pub outcomes: BTreeMap<GlobalTransactionId, CommitNumber>,
    /// The partitions that a joining node has asked for, and the ones it has.
    pub copies_left: Vec<u8>,
    pub floor: CommitNumber,
    pub has_checkpoint: bool,
    /// A snapshot that the node holds for a reader.
    pub held: Option<CommitNumber>,
    /// Answers whose clients have not read them yet.
    pub late_answers: Vec<(GlobalTransactionId, Answer)>,
    pub disk: Disk,
    /// The machine of the epoch before, if a bug lets the node obey it until the next epoch starts.
    pub pending_install: Option<Arc<Membership>>,
}

impl Node {
    /// A life that begins with the data of its disk up to `recovered`.
    pub fn start(
        id: u8,
        incarnation: Incarnation,
        membership: &Arc<Membership>,
        recovered: CommitNumber,
        bug: Bug,
    ) -> Node {
        let life = (id, incarnation);
        let ldm = |_| Ldm::new(id, Arc::clone(membership), bug);
        let voters = if bug == Bug::OneGrantIsEnough { voter_ids().iter().take(1).collect() } else { voter_ids() };
        Node {
            id,
            incarnation,
            is_alive: true,
            bug,
            rate: 1000,
            paused_until: 0,
            turn_clock: BootTime(0),
            installed: Arc::clone(membership),
            mirror: Mirror::new(NodeId(id), incarnation, recovered),
            change: None,
            sequencer: None,
            holder: LeaseHolder::new(NodeId(id), incarnation, voters, 0),
            late_lease: BootTime(0),
            tc: Tc::new(life, Arc::clone(membership), bug),
            ldms: (0..LDMS).map(ldm).collect(),
            ldm_orders: (0..LDMS).map(|_| VecDeque::new()).collect(),
            tc_orders: VecDeque::new(),
            to_mirror: VecDeque::new(),
            outcomes: BTreeMap::new(),
            copies_left: Vec::new(),
            floor: CommitNumber(0),
            has_checkpoint: true,
            held: None,
            late_answers: Vec::new(),
            disk: Disk::default(),
            pending_install: None,
        }
    }

    pub fn life(&self) -> Life {
        (self.id, self.incarnation)
    }

    pub fn clock(&self, now: u64) -> BootTime {
        BootTime(now / 1000 * self.rate)
    }

    /// Its record in the membership that it has started.
    pub fn record(&self) -> Option<&NodeRecord> {
        self.mirror.membership()?.record(NodeId(self.id))
    }

    pub fn serves(&self) -> bool {
        self.record().is_some_and(NodeRecord::is_serving)
    }

    /// The snapshot of a request that arrives now.
    pub fn choose_snapshot(&self, now: u64) -> Option<CommitNumber> {
        let clock = if self.bug == Bug::ClockBeforeInput { self.turn_clock } else { self.clock(now) };
        let has_lease = self.holder.holds(clock) || clock < self.late_lease;
        let snapshot = match self.bug {
            Bug::FreshNodeServes => self.serves().then(|| self.mirror.stable()),
            Bug::SnapshotAtApplied => self.mirror.snapshot().map(|_| self.mirror.applied()),
            _ => self.mirror.snapshot(),
        };
        snapshot.filter(|_| has_lease && self.is_alive && self.paused_until <= now)
    }

    pub fn note_grant(&mut self, now: u64) {
        if self.bug == Bug::LeaseFromReceipt && self.holder.holds(self.clock(now)) {
            self.late_lease = self.clock(now).plus(LEASE);
        }
    }

    /// Puts the mirror's orders into the queues of the blocks.
    pub fn queue_orders(&mut self, orders: Vec<Order>) {
        let membership = self.mirror.membership().cloned();
        for order in orders {
            match order {
                Order::CommitTransaction { ldm, .. } => self.ldm_orders[usize::from(ldm)].push_back((order, None)),
                Order::NumberTaken { .. } => self.tc_orders.push_back((order, None)),
                Order::StartEpoch { .. } => {
                    self.ldm_orders.iter_mut().for_each(|queue| queue.push_back((order, membership.clone())));
                    self.tc_orders.push_back((order, membership.clone()));
                }
            }
        }
    }

    /// An ldm carries out its next order.
    pub fn run_ldm(&mut self, ldm: usize) -> Vec<(NodeId, Message)> {
        let mut sent = Vec::new();
        if let Some((order, membership)) = self.ldm_orders[ldm].pop_front() {
            match (order, membership) {
                (Order::CommitTransaction { transaction, number, position, .. }, _) => {
                    self.ldms[ldm].commit(transaction, number);
                    self.to_mirror.push_back(ToMirror::Applied(position));
                }
                (Order::StartEpoch { .. }, Some(membership)) => self.ldms[ldm].start_epoch(&membership),
                (other, _) => panic!("an ldm gets no {other:?}"),
            }
        }
        self.ldms[ldm].revisit(&self.mirror, &mut sent);
        self.route(sent)
    }

    /// The tc carries out its next order.
    pub fn run_tc(&mut self) -> Vec<(NodeId, Message)> {
        let mut sent = Vec::new();
        match self.tc_orders.pop_front() {
            Some((Order::NumberTaken { transaction, number, .. }, _)) => self.tc.on_number(transaction, number),
            Some((Order::StartEpoch { .. }, Some(membership))) => self.tc.start_epoch(&membership, &mut sent),
            Some((other, _)) => panic!("a tc gets no {other:?}"),
            None => {}
        }
        self.answer();
        self.route(sent)
    }

    pub fn answer(&mut self) {
        self.tc.answer(&self.mirror);
    }

    pub fn run_mirror(&mut self) {
        match self.to_mirror.pop_front() {
            Some(ToMirror::Applied(position)) => self.mirror.on_ldm_applied(position),
            Some(ToMirror::Request(epoch, decision)) => {
                let epoch = if self.bug == Bug::NumberForOldRequest { self.mirror.started() } else { epoch };
                self.mirror.request_number(epoch, decision);
            }
            None => {}
        }
    }

    pub fn on_ldm_message(&mut self, ldm: u16, message: ToBlock) -> Vec<(NodeId, Message)> {
        let mut sent = Vec::new();
        self.ldms[usize::from(ldm)].on_message(message, &self.mirror, &mut sent);
        self.route(sent)
    }

    pub fn on_tc_message(&mut self, message: ToBlock) -> Vec<(NodeId, Message)> {
        let mut sent = Vec::new();
        self.tc.on_message(message, &mut sent);
        self.route(sent)
    }

    pub fn begin(&mut self, rows: Vec<Row>, awaits_disk: bool) -> Vec<(NodeId, Message)> {
        let mut sent = Vec::new();
        self.tc.begin(rows, awaits_disk, &mut sent);
        self.route(sent)
    }

    /// Addresses what a block sends. Requests for numbers go to the own mirror.
    fn route(&mut self, sent: Vec<Sent>) -> Vec<(NodeId, Message)> {
        let mut messages = Vec::new();
        for one in sent {
            match one {
                Sent::ToNode(node, ldm, message) => messages.push((node, Message::ToLdm(ldm, message))),
                Sent::ToTc(message) => {
                    let transaction = match &message {
                        ToBlock::WriteReply { transaction, .. } | ToBlock::Prepared { transaction, .. } => transaction,
                        other => panic!("a tc gets no {other:?}"),
                    };
                    messages.push((NodeId(transaction.node), Message::ToTc(message)));
                }
                Sent::Request { epoch, transaction, images } => {
                    self.to_mirror.push_back(ToMirror::Request(epoch, request(transaction, &images)));
                }
            }
        }
        messages
    }

    /// Whether nothing waits in the queues of the node.
    pub fn is_quiet(&self) -> bool {
        self.ldm_orders.iter().all(VecDeque::is_empty) && self.tc_orders.is_empty() && self.to_mirror.is_empty()
    }

    pub fn visible(&self, row: Row, snapshot: CommitNumber) -> CommitNumber {
        self.ldms[usize::from(ldm_of(row.0))].visible(row, snapshot)
    }

    /// The log syncs what is stable.
    pub fn sync_disk(&mut self) {
        self.write_log();
        let stable = self.mirror.stable();
        self.disk.stable = stable;
        self.mirror.set_durable(stable);
    }

    /// The log writes the versions of the memory. The disk keeps those that the memory purges, because no
    /// checkpoint is above G.
    pub fn write_log(&mut self) {
        let stable = self.mirror.stable();
        let durable = self.mirror.durable_everywhere();
        for (row, versions) in self.ldms.iter().flat_map(|ldm| ldm.kept(stable)) {
            let on_disk = self.disk.rows.entry(row).or_default();
            let last = on_disk.last().and_then(|version| version.number);
            on_disk.extend(versions.into_iter().filter(|version| version.number > last));
            let is_old = |version: &&Version| version.number <= Some(durable);
            let old = on_disk.iter().take_while(is_old).count();
            on_disk.drain(..old.saturating_sub(1));
        }
    }

    /// A joined node has the checkpoint of its copies, which replaces what the disk had before.
    pub fn end_checkpoint(&mut self) {
        self.has_checkpoint = true;
        self.disk.rows.clear();
        self.sync_disk();
    }
}

fn request(transaction: GlobalTransactionId, images: &Images) -> Decision {
    Decision {
        number: CommitNumber(0),
        transaction,
        participants: Participants::new(&images.participants),
        awaits_disk: images.awaits_disk,
    }
}
