//! Hot path: at most 40 instructions a request and 25 a destination, frames not counted.
//!
//! The sequencer of an epoch: numbers transactions in the order of arrival, tells every node of its
//! decisions, and computes from the nodes' reports up to where all have applied, confirmed and synced. Its
//! state is lost with its node: the next epoch begins with the members' reports.
//!
//! The proof is the model in `crates/cluster/tests/epoch_model`; for durable nodes, `cut_model.rs`.

use std::collections::VecDeque;

use junctor_kernel::{Duration, NodeId, Time, require};
use junctor_model::id::{CommitNumber, Epoch};
use junctor_model::planted_bug::PlantedBug;
use junctor_model::value::Value;

use junctor_signals::decide::{Applied, Decide};
use junctor_signals::take_number::{Decision, TakeNumber};

use crate::membership::detector::Progress;
use crate::membership::{MEMBERS_MAX, Membership, NodeSet};

/// Decisions that some member has not passed. Beyond it requests wait unnumbered.
pub const KEPT_MAX: u64 = 65_536;
/// Messages to one node that it has not answered: one that it may leave unanswered until it has news, and two
/// on their way.
const UNANSWERED_MAX: u64 = 3;
/// Decisions in one message.
const DECISIONS_PER_MESSAGE_MAX: usize = 4096;
/// Counter at which a new epoch is planned, long before the numbers of this one are used up.
const RENEWAL: u64 = CommitNumber::COUNTER_MAX / 2;
/// How long the horizon stands still after the start of an epoch. SQL nodes that have lost the data node with
/// their snapshots register them at another one in this time.
pub const HORIZON_FROZEN: Duration = Duration::from_millis(1000);

/// A member, as the sequencer knows it.
#[derive(Debug)]
struct Member {
    node: NodeId,
    group: u8,
    is_serving: bool,
    /// Whether raft has marked the node as durable.
    is_durable: bool,
    /// Whether its syncs count for the durable number before raft marks it (rule 10).
    is_counted: bool,
    applied: CommitNumber,
    stable: CommitNumber,
    durable: CommitNumber,
    /// The first synced number that a node without a mark reported. It bounds the commits in the copies of
    /// the node.
    copied: CommitNumber,
    oldest_snapshot: CommitNumber,
    batch_received: u64,
    batch_numbered: u64,
    /// The last message sent, and the last one answered.
    sent: u64,
    answered: u64,
    /// The counters, cut to 32 bits, of decisions that are not sent.
    pending: Vec<u32>,
    /// The last number of a transaction whose tc is at the node: it waits until the number is confirmed.
    coordinated: CommitNumber,
    /// Whether the next message is due although nothing in it is urgent.
    is_due: bool,
    last: Status,
}

/// The part of a message that describes the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    batch_numbered: u64,
    upto: CommitNumber,
    others: CommitNumber,
    least_applied: CommitNumber,
    confirmed: CommitNumber,
    durable: CommitNumber,
    horizon: CommitNumber,
    wanted_on_disk: CommitNumber,
}

impl Status {
    /// Whether a node that knows `last` has to learn of this at once. What may be given up can wait, and so
    /// can the confirmed number where no tc waits for it.
    fn is_urgent(&self, last: &Status, coordinated: CommitNumber) -> bool {
        let Status { confirmed, least_applied, horizon, .. } = *last;
        let is_awaited = self.confirmed > confirmed && confirmed < coordinated;
        is_awaited || Status { confirmed, least_applied, horizon, ..*self } != *last
    }
}

/// The least applied numbers of serving nodes.
#[derive(Clone, Copy, Debug, Default)]
struct LeastServing {
    first: CommitNumber,
    /// The member with the least.
    holder: usize,
    /// The least of the others.
    second: CommitNumber,
}

/// A batch that waits for numbers.
#[derive(Debug)]
struct WaitingBatch {
    member: usize,
    batch: u64,
    /// In reverse order.
    requests: Vec<Decision>,
}

/// The sequencer of one epoch.
#[derive(Debug)]
pub struct Sequencer {
    epoch: Epoch,
    members: Vec<Member>,
    groups: Vec<u8>,
    /// For each node id, the bit of its member; no bit for other nodes.
    bits: Box<[u64; 256]>,
    /// Whether every group has a serving node that raft has marked as durable (rule 11).
    has_durable_groups: bool,
    /// Whether the own node has started the epoch.
    is_open: bool,
    are_leases_over: bool,
    /// Counter of the last number.
    last: u64,
    /// Counter up to which every member has passed the decisions.
    released: u64,
    /// The decisions from `released` + 1 to `last`.
    kept: VecDeque<Decision>,
    waiting: VecDeque<WaitingBatch>,
    least_serving: LeastServing,
    least_applied: CommitNumber,
    confirmed: CommitNumber,
    durable: CommitNumber,
    horizon: CommitNumber,
    horizon_from: Time,
    wanted_on_disk: CommitNumber,
    /// Lists for messages.
    spare: Vec<Vec<Decision>>,
}

impl Sequencer {
    /// The sequencer of this membership. `durable` has the synced number of each member. It numbers nothing
    /// before [`Sequencer::open`].
    pub fn new(membership: &Membership, durable: &dyn Fn(NodeId) -> CommitNumber, now: Time) -> Sequencer {
        let members: Vec<Member> = membership
            .members()
            .map(|record| Member {
                node: record.node,
                group: record.group,
                is_serving: record.is_serving(),
                is_durable: record.is_serving() && record.is_durable,
                is_counted: false,
                applied: CommitNumber(0),
                stable: CommitNumber(0),
                durable: durable(record.node),
                copied: durable(record.node),
                oldest_snapshot: CommitNumber(0),
                batch_received: 0,
                batch_numbered: 0,
                sent: 0,
                answered: 0,
                pending: Vec::new(),
                coordinated: CommitNumber::start_of(membership.epoch),
                is_due: false,
                last: Status::default(),
            })
            .collect();
        require!(members.len() <= MEMBERS_MAX, "a cluster has at most {MEMBERS_MAX} data nodes");
        let mut bits = Box::new([0; 256]);
        members.iter().enumerate().for_each(|(index, member)| bits[usize::from(member.node.0)] = 1 << index);
        let is_marked = |group| membership.serving().any(|record| record.group == group && record.is_durable);
        Sequencer {
            epoch: membership.epoch,
            members,
            groups: membership.groups().collect(),
            bits,
            has_durable_groups: membership.groups().all(is_marked),
            is_open: false,
            are_leases_over: PlantedBug::LeasesOverAtOnce.is_planted(),
            last: 0,
            released: 0,
            kept: VecDeque::new(),
            waiting: VecDeque::new(),
            least_serving: LeastServing::default(),
            least_applied: CommitNumber(0),
            confirmed: CommitNumber(0),
            durable: CommitNumber(0),
            horizon: CommitNumber(0),
            horizon_from: now.plus(HORIZON_FROZEN),
            wanted_on_disk: CommitNumber(0),
            spare: Vec::new(),
        }
    }

    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The last number.
    pub fn last_number(&self) -> CommitNumber {
        CommitNumber::new(self.epoch, self.last)
    }

    /// C: every serving node has confirmed the numbers up to here. 0 while leases of evicted nodes may last.
    pub fn confirmed(&self) -> CommitNumber {
        self.confirmed
    }

    /// G: every durable node has synced the numbers up to here. 0 while a group has no durable node.
    pub fn durable(&self) -> CommitNumber {
        self.durable
    }

    /// No snapshot of any serving node is below.
    pub fn horizon(&self) -> CommitNumber {
        self.horizon
    }

    /// Whether so many numbers are taken that a new epoch should begin.
    pub fn needs_renewal(&self) -> bool {
        self.last >= RENEWAL
    }

    /// Whether every member has started the epoch, for `MembershipChange::NoteStarted`.
    pub fn have_all_started(&self) -> bool {
        self.least_applied >= CommitNumber::start_of(self.epoch)
    }

    /// The nodes whose syncs count although raft has not marked them, for `MembershipChange::MarkDurable`.
    /// Empty while a group has no node that is marked or counted: its evicted node keeps the mark, and the
    /// disk of that node may be older than the copies of the nodes here. Empty, too, while one of these disks
    /// is behind the copies of a node: a restart could cut below them.
    pub fn durable_candidates(&self) -> NodeSet {
        let with_disk = || self.members.iter().filter(|it| it.is_durable || it.is_counted);
        let least = with_disk().map(|it| it.durable).min();
        if with_disk().filter(|it| it.is_counted).any(|it| Some(it.copied) > least) {
            return NodeSet::EMPTY;
        }
        let has_disk = |group: &u8| with_disk().any(|it| it.group == *group);
        let is_complete = self.groups.iter().all(has_disk);
        self.members.iter().filter(|it| it.is_counted && is_complete).map(|it| it.node).collect()
    }

    /// How far each serving node is, for the detection of slow nodes.
    pub fn progress(&self) -> Vec<(NodeId, Progress)> {
        let synced = |member: &Member| member.durable.min(self.wanted_on_disk);
        let progress = |it: &Member| Progress { applied: it.applied, durable: it.is_durable.then(|| synced(it)) };
        self.members.iter().filter(|it| it.is_serving).map(|it| (it.node, progress(it))).collect()
    }

    /// A row for each member: node, group, this node, epoch, state, the counters of the last number and of
    /// those up to which it has applied, knows as stable and has synced, and how many it has not applied and
    /// synced.
    pub fn lag_rows(&self, own: NodeId) -> Vec<Vec<Value>> {
        let counter = |number: CommitNumber| if number.epoch() < self.epoch { 0 } else { number.counter() };
        let row = |member: &Member| {
            let [applied, stable, durable] = [member.applied, member.stable, member.durable].map(counter);
            let state = if member.is_serving { "SERVING" } else { "JOINING" };
            let counts = member.is_durable || member.is_counted;
            let sync_lag = if counts { Value::UInt(self.last - durable.min(self.last)) } else { Value::Null };
            let mut row = [member.node.0, member.group, own.0].map(|number| Value::UInt(number.into())).to_vec();
            row.push(Value::UInt(self.epoch.0.into()));
            row.push(Value::Bytes(state.into()));
            row.extend([self.last, applied, stable, durable].map(Value::UInt));
            row.extend([Value::UInt(self.last - applied.min(self.last)), sync_lag]);
            row
        };
        self.members.iter().map(row).collect()
    }

    /// A joining node that is so far behind that requests wait for it. It is evicted.
    pub fn lagging_joiner(&self) -> Option<NodeId> {
        let released = CommitNumber::new(self.epoch, self.released);
        let is_limit = |member: &&Member| match member.is_serving {
            true => member.stable <= released,
            false => member.applied <= released,
        };
        if self.last - self.released < KEPT_MAX || self.members.iter().filter(is_limit).any(|it| it.is_serving) {
            return None;
        }
        self.members.iter().find(is_limit).map(|member| member.node)
    }

    /// The own node has started the epoch. From now on requests get numbers.
    pub fn open(&mut self) {
        self.is_open = true;
        self.number_waiting();
    }

    /// The leases of all nodes that are evicted up to this epoch are over.
    pub fn on_leases_over(&mut self, epoch: Epoch) {
        if epoch == self.epoch {
            self.are_leases_over = true;
            self.update_confirmed();
        }
    }

    /// Numbers the requests of a node. A message of another epoch or a repeated batch is ignored.
    pub fn on_take_number(&mut self, from: NodeId, message: TakeNumber) {
        let TakeNumber { epoch, batch, mut requests } = message;
        let Some(member) = self.position(from).filter(|_| epoch == self.epoch) else { return };
        if batch != self.members[member].batch_received + 1 {
            return;
        }
        self.members[member].batch_received = batch;
        if self.waiting.is_empty() && requests.len() as u64 <= self.room() {
            requests.drain(..).for_each(|decision| self.number(decision));
            self.members[member].batch_numbered = batch;
            return self.recycle(requests);
        }
        requests.reverse();
        self.waiting.push_back(WaitingBatch { member, batch, requests });
        self.number_waiting();
    }

    /// How many requests may get numbers now.
    fn room(&self) -> u64 {
        let room = (KEPT_MAX - (self.last - self.released)).min(CommitNumber::COUNTER_MAX - self.last);
        if self.is_open { room } else { 0 }
    }

    /// Takes the report of a node into account. A message of another epoch is ignored.
    pub fn on_applied(&mut self, from: NodeId, message: &Applied, now: Time) {
        let Some(index) = self.position(from).filter(|_| message.epoch == self.epoch) else { return };
        let start = CommitNumber::start_of(self.epoch);
        let member = &mut self.members[index];
        let Applied { applied, stable, .. } = *message;
        require!(stable <= applied, "{from:?} has applied what it takes for stable: {applied}, {stable}");
        require!(applied <= member.last.upto.max(start), "{from:?} applies what it was sent: {applied}");
        member.answered = member.answered.max(message.received.min(member.sent));
        member.applied = member.applied.max(message.applied);
        member.stable = member.stable.max(message.stable);
        member.durable = member.durable.max(message.durable);
        if member.copied.0 == 0 {
            member.copied = message.durable;
        }
        member.oldest_snapshot = message.oldest_snapshot;
        self.wanted_on_disk = self.wanted_on_disk.max(message.wanted_on_disk);
        self.update_applied();
        self.update_confirmed();
        self.update_durable();
        self.update_horizon(now);
        self.number_waiting();
    }

    /// All nodes learn now of what was not urgent.
    pub fn tell_all(&mut self) {
        self.members.iter_mut().for_each(|member| member.is_due = true);
    }

    /// The message to send to a node now: `None` if it would say nothing that is urgent or due, or the node
    /// has not answered [`UNANSWERED_MAX`] earlier ones.
    pub fn next_decide(&mut self, node: NodeId) -> Option<Decide> {
        let index = self.position(node)?;
        let others = match self.least_serving {
            _ if PlantedBug::StableInOneGroup.is_planted() => self.least_applied_of_group(index),
            LeastServing { second, holder, .. } if holder == index => second,
            LeastServing { first, .. } => first,
        };
        let without_part = PlantedBug::WakeDisksOfParts.is_planted() && self.members[index].pending.is_empty();
        let Sequencer { epoch, members, kept, released, spare, .. } = self;
        let member = &mut members[index];
        if member.sent - member.answered >= UNANSWERED_MAX {
            return None;
        }
        let count = member.pending.len().min(DECISIONS_PER_MESSAGE_MAX);
        let is_cut = count < member.pending.len();
        let mut decisions = spare.pop().unwrap_or_default();
        decisions.reserve(count);
        // The counters ascend, so the difference to the first kept decision is its position.
        let position = |counter: u32| counter.wrapping_sub(*released as u32).wrapping_sub(1) as usize;
        decisions.extend(member.pending.drain(..count).map(|counter| kept[position(counter)].clone()));
        let last_sent = decisions.last().map(|decision| decision.number);
        let status = Status {
            batch_numbered: member.batch_numbered,
            upto: last_sent.filter(|_| is_cut).unwrap_or(CommitNumber::new(*epoch, self.last)),
            others,
            least_applied: self.least_applied,
            confirmed: self.confirmed,
            durable: self.durable,
            horizon: self.horizon,
            wanted_on_disk: if without_part { CommitNumber(0) } else { self.wanted_on_disk },
        };
        let is_due = std::mem::take(&mut member.is_due) && status != member.last;
        if !is_due && !status.is_urgent(&member.last, member.coordinated) {
            spare.push(decisions);
            return None;
        }
        member.last = status;
        member.sent += 1;
        let Status { batch_numbered, upto, others, least_applied, confirmed, durable, horizon, wanted_on_disk } =
            status;
        let batch = member.sent;
        let epoch = *epoch;
        Some(Decide {
            epoch,
            batch,
            batch_numbered,
            upto,
            others,
            least_applied,
            confirmed,
            durable,
            horizon,
            wanted_on_disk,
            decisions,
        })
    }

    /// The least applied number of the other serving nodes in the group of a member.
    fn least_applied_of_group(&self, index: usize) -> CommitNumber {
        let group = self.members[index].group;
        let others = self.members.iter().enumerate().filter(|(other, it)| *other != index && it.group == group);
        let least = others.filter(|(_, it)| it.is_serving).map(|(_, it)| it.applied).min();
        least.unwrap_or(CommitNumber::new(self.epoch, self.last)).max(self.members[index].last.others)
    }

    /// Returns the list of a message that was sent, for reuse.
    pub fn recycle(&mut self, mut decisions: Vec<Decision>) {
        if self.spare.len() < MEMBERS_MAX {
            decisions.clear();
            self.spare.push(decisions);
        }
    }

    fn position(&self, node: NodeId) -> Option<usize> {
        let bit = self.bits[usize::from(node.0)];
        (bit != 0).then_some(bit.trailing_zeros() as usize)
    }

    fn number_waiting(&mut self) {
        while let Some(mut front) = self.waiting.pop_front() {
            let left = front.requests.len() - front.requests.len().min(self.room() as usize);
            front.requests.drain(left..).rev().for_each(|decision| self.number(decision));
            if left > 0 {
                return self.waiting.push_front(front);
            }
            self.members[front.member].batch_numbered = front.batch;
            self.recycle(front.requests);
        }
    }

    #[inline]
    fn number(&mut self, mut decision: Decision) {
        self.last += 1;
        decision.number = CommitNumber::new(self.epoch, self.last);
        if decision.awaits_disk {
            self.wanted_on_disk = decision.number;
        }
        let mut destinations = self.bits[usize::from(decision.transaction.node)];
        if destinations != 0 {
            self.members[destinations.trailing_zeros() as usize].coordinated = decision.number;
        }
        for participant in decision.participants.as_slice() {
            destinations |= self.bits[usize::from(participant.node.0)];
        }
        while destinations != 0 {
            let member = destinations.trailing_zeros() as usize;
            destinations &= destinations - 1;
            self.members[member].pending.push(self.last as u32);
        }
        self.kept.push_back(decision);
    }

    fn update_applied(&mut self) {
        let most = CommitNumber(u64::MAX);
        let mut serving = LeastServing { first: most, holder: usize::MAX, second: most };
        let mut joining = most;
        for (index, member) in self.members.iter().enumerate() {
            if !member.is_serving {
                joining = joining.min(member.applied);
            } else if member.applied < serving.first {
                serving = LeastServing { first: member.applied, holder: index, second: serving.first };
            } else {
                serving.second = serving.second.min(member.applied);
            }
        }
        self.least_serving = serving;
        self.least_applied = serving.first.min(joining);
    }

    /// Computes C, and gives up decisions that every member has passed.
    fn update_confirmed(&mut self) {
        let mut stable = CommitNumber(u64::MAX);
        let mut passed = stable;
        let mut of_group = stable;
        for member in &self.members {
            if member.is_serving {
                stable = stable.min(member.stable);
                if member.group == self.groups[0] {
                    of_group = of_group.min(member.stable);
                }
            } else {
                passed = passed.min(member.applied);
            }
        }
        let start = CommitNumber::start_of(self.epoch);
        if stable < start {
            return;
        }
        if self.are_leases_over {
            let confirmed = if PlantedBug::ConfirmOneGroup.is_planted() { of_group } else { stable };
            require!(confirmed >= self.confirmed, "confirmed numbers ascend");
            self.confirmed = confirmed;
        }
        let passed = passed.min(stable);
        if passed >= start {
            let released = passed.counter();
            require!(released >= self.released, "what every member has passed ascends");
            self.kept.drain(..(released - self.released) as usize);
            self.released = released;
        }
    }

    /// Computes G, and counts nodes that have caught up with it. A node has no state of its rows below the
    /// number of its copy, which is of an earlier epoch. It therefore counts when no marked disk can lead a
    /// restart below this epoch.
    fn update_durable(&mut self) {
        let is_early = |member: &&Member| PlantedBug::DurableInOneGroup.is_planted() && member.group != self.groups[0];
        let counted = self.members.iter().filter(|it| it.is_durable || it.is_counted).filter(|it| !is_early(it));
        let least = counted.map(|member| member.durable).min().unwrap_or_default();
        if self.has_durable_groups {
            require!(least >= self.durable, "the durable number ascends: {least} after {}", self.durable);
            self.durable = least;
        }
        let start = CommitNumber::start_of(self.epoch);
        let is_behind = |member: &Member| member.is_durable && member.durable < start;
        if self.members.iter().any(is_behind) {
            return;
        }
        // Every earlier answer is below the start. G may be above it.
        let wanted = self.durable.max(start);
        for member in self.members.iter_mut().filter(|member| member.is_serving && !member.is_durable) {
            member.is_counted |= member.durable >= wanted;
        }
    }

    /// Computes the horizon: with each report, and from time to time, because it stands still at first.
    pub fn update_horizon(&mut self, now: Time) {
        let serving = self.members.iter().filter(|member| member.is_serving);
        let least = serving.map(|member| member.oldest_snapshot).min().unwrap_or_default();
        if now >= self.horizon_from || PlantedBug::ForgetFloor.is_planted() {
            self.horizon = self.horizon.max(least);
        }
    }
}
