//! The steps of a run: deliveries, blocks, clients, snapshots, leases.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_cluster::membership::Membership;
use junctor_kernel::{NodeId, Random, Time};
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};
use junctor_signals::decide::{Applied, Decide};
use junctor_signals::start_epoch::{Installed, StartEpoch};

use super::check::Oracle;
use super::coordinator::Answer;
use super::message::{Bug, FIRST_VOTER, LDMS, Life, Message, ROWS, Row, ldm_of};
use super::node::Node;
use super::voters::{Raft, voter_ids};

/// Open transactions of one tc.
const OPEN_MAX: usize = 6;
/// Answers of one tc that their clients have not read.
const LATE_MAX: usize = 8;

type Channel = ((Life, Life), VecDeque<Message>);

pub struct Simulation {
    pub random: Random,
    /// True nanoseconds.
    pub now: u64,
    pub bug: Bug,
    pub nodes: Vec<Node>,
    pub channels: Vec<Channel>,
    pub raft: Raft,
    pub oracle: Oracle,
    pub partitions: u8,
    /// Whether faults and new transactions occur.
    pub is_disturbed: bool,
    /// Steps between two faults, on average.
    pub fault_period: u64,
    pub has_blackouts: bool,
    /// Links of nodes to voters that carry nothing until a time.
    pub cuts: Vec<((u8, u8), u64)>,
    /// Transactions whose tc is lost, with the epoch that had started everywhere when they began.
    pub orphans: Vec<(GlobalTransactionId, Epoch)>,
    begun: BTreeMap<GlobalTransactionId, Epoch>,
}

impl Simulation {
    pub fn new(seed: u64, bug: Bug) -> Simulation {
        let mut random = Random::new(seed);
        let groups = 1 + random.below(3) as u8;
        let replicas = 1 + random.below(3) as u8;
        let replicas = if groups == 1 || bug != Bug::None { replicas.max(2) } else { replicas };
        let ids: Vec<(NodeId, u8)> = (0..groups * replicas).map(|id| (NodeId(id), id / replicas)).collect();
        let mut chains = Vec::new();
        for group in 0..groups {
            let mut chain: Vec<NodeId> = ids.iter().filter(|it| it.1 == group).map(|it| it.0).collect();
            chains.push(chain.clone());
            chain.reverse();
            chains.push(chain);
        }
        let partitions = chains.len() as u8;
        let sequencer = NodeId(random.below(ids.len() as u64) as u8);
        let membership = Membership::create(&ids, chains, sequencer);
        let drift = if bug == Bug::ClocksBeyondDrift { 300 } else { 10 };
        let rates: Vec<u64> = (0..3 + ids.len()).map(|_| 1000 - drift + 2 * drift * random.below(2)).collect();
        let raft = Raft::new(membership, &rates[..3], &mut random, bug);
        let periods = match bug {
            Bug::None => [400, 2_000, 15_000],
            Bug::HorizonWithoutSnapshots => [200_000; 3],
            _ => [300, 600, 2_000],
        };
        let mut simulation = Simulation {
            now: 1_000_000_000,
            bug,
            nodes: Vec::new(),
            channels: Vec::new(),
            oracle: Oracle::default(),
            partitions,
            is_disturbed: true,
            fault_period: periods[random.below(3) as usize],
            has_blackouts: random.one_in(2),
            cuts: Vec::new(),
            orphans: Vec::new(),
            begun: BTreeMap::new(),
            raft,
            random,
        };
        let membership = Arc::clone(simulation.raft.committed());
        for (index, (id, _)) in ids.iter().enumerate() {
            let incarnation = membership.record(*id).expect("a node").incarnation;
            let mut node = Node::start(id.0, incarnation, &membership, CommitNumber(0), bug);
            node.rate = rates[3 + index];
            node.disk.started = membership.epoch;
            simulation.nodes.push(node);
        }
        (0..ids.len()).for_each(|index| simulation.install(index, &membership));
        simulation
    }

    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
        }
    }

    pub fn step(&mut self) {
        self.pass_time();
        self.request_lease();
        match self.random.below(100) {
            0..54 => self.deliver(),
            54..76 => self.run_block(),
            76..84 => {
                let index = self.any_node();
                self.pump(index);
            }
            84..88 => self.begin(),
            88..91 => self.choose_snapshot(),
            91..93 => self.hold_snapshot(),
            93 => self.purge(),
            94 => self.sync_disk(),
            _ => self.step_membership(),
        }
    }

    /// Moves time, and runs the voters.
    pub fn pass_time(&mut self) {
        self.now += self.random.below(40_000);
        self.raft.step(self.now, &mut self.random);
    }

    pub fn any_node(&mut self) -> usize {
        self.random.below(self.nodes.len() as u64) as usize
    }

    pub fn is_running(&self, index: usize) -> bool {
        self.nodes[index].is_alive && self.nodes[index].paused_until <= self.now
    }

    pub fn send(&mut self, from: Life, to: Life, message: Message) {
        match self.channels.iter_mut().find(|it| it.0 == (from, to)) {
            Some(channel) => channel.1.push_back(message),
            None => self.channels.push(((from, to), VecDeque::from([message]))),
        }
    }

    /// Sends from a node to the lives that it knows.
    pub fn send_all(&mut self, index: usize, messages: Vec<(NodeId, Message)>) {
        let from = self.nodes[index].life();
        for (to, message) in messages {
            let record = self.nodes[index].installed.record(to).copied();
            if let Some(record) = record.filter(|record| record.is_member()) {
                self.send(from, (to.0, record.incarnation), message);
            }
        }
    }

    fn deliver(&mut self) {
        if self.channels.is_empty() {
            return;
        }
        let start = self.random.below(self.channels.len() as u64) as usize;
        let count = self.channels.len();
        let Some(index) = (0..count).map(|it| (start + it) % count).find(|it| !self.channels[*it].1.is_empty()) else {
            return;
        };
        let (from, to) = self.channels[index].0;
        if to.0 >= FIRST_VOTER {
            let now = self.now;
            self.cuts.retain(|(_, until)| *until > now);
            if self.cuts.iter().any(|(link, _)| *link == (from.0, to.0)) {
                return;
            }
            if let Some(message) = self.channels[index].1.pop_front() {
                self.deliver_to_voter(from, to.0, message);
            }
            return;
        }
        let receiver = &self.nodes[usize::from(to.0)];
        if !receiver.is_alive || receiver.incarnation != to.1 {
            self.channels.swap_remove(index);
            return;
        }
        if receiver.paused_until > self.now {
            return;
        }
        let is_voter = from.0 >= FIRST_VOTER;
        if !is_voter && !receiver.installed.has(NodeId(from.0), from.1) {
            // A life that the receiver does not know yet waits; one that was evicted is refused.
            let admitted = receiver.installed.record(NodeId(from.0)).map(|record| record.incarnation);
            if Some(from.1) <= admitted {
                self.channels.swap_remove(index);
            }
            return;
        }
        let installed = receiver.pending_install.as_ref().unwrap_or(&receiver.installed).epoch;
        if let Some(Message::Installed(report)) = self.channels[index].1.front()
            && report.epoch > installed
        {
            return;
        }
        if let Some(message) = self.channels[index].1.pop_front() {
            self.deliver_to_node(from, usize::from(to.0), message);
        }
    }

    fn deliver_to_node(&mut self, from: Life, index: usize, message: Message) {
        let now = Time(self.now);
        let clock = self.nodes[index].clock(self.now);
        self.nodes[index].turn_clock = clock;
        let sender = NodeId(from.0);
        match message {
            Message::TakeNumber(message) => {
                if let Some(sequencer) = &mut self.nodes[index].sequencer {
                    sequencer.on_take_number(sender, message);
                }
            }
            Message::Decide(message) => self.on_decide(index, message),
            Message::Applied(message) => self.on_applied(sender, index, message),
            Message::Installed(message) => self.on_installed(from, index, message),
            Message::StartEpoch(message) => self.on_start_epoch(index, message),
            Message::ToLdm(ldm, message) => {
                let sent = self.nodes[index].on_ldm_message(ldm, message);
                self.send_all(index, sent);
            }
            Message::ToTc(message) => {
                let sent = self.nodes[index].on_tc_message(message);
                self.send_all(index, sent);
                self.take_answers(index);
            }
            Message::RequestLeaseReply(reply) => {
                self.nodes[index].holder.on_reply(&reply);
                self.nodes[index].note_grant(now.0);
            }
            Message::Copy { epoch, partition } => self.on_copy(from, index, (epoch, partition)),
            Message::CopyReply { partition, at, rows } => self.on_copy_reply(index, partition, (at, rows)),
            Message::RequestLease(_) => panic!("only voters grant leases"),
        }
        if self.random.one_in(2) {
            self.pump(index);
        }
    }

    fn on_decide(&mut self, index: usize, mut message: Decide) {
        if self.bug == Bug::CounterWithoutEpoch {
            let number = |it: CommitNumber| CommitNumber::new(Epoch(1), it.counter());
            message.decisions.iter_mut().for_each(|it| it.number = number(it.number));
        }
        let mut orders = Vec::new();
        self.nodes[index].mirror.on_decide(&mut message, &mut orders);
        self.pass(index, orders);
    }

    fn pass(&mut self, index: usize, orders: Vec<junctor_cluster::epoch::mirror::Order>) {
        use junctor_cluster::epoch::mirror::Order;
        for order in &orders {
            if let Order::CommitTransaction { transaction, number, .. }
            | Order::NumberTaken { transaction, number, .. } = order
            {
                self.oracle.on_passed(*number, *transaction);
                self.nodes[index].outcomes.insert(*transaction, *number);
            }
        }
        self.nodes[index].queue_orders(orders);
        self.note_stable(index);
    }

    fn note_stable(&mut self, index: usize) {
        let stable = self.nodes[index].mirror.stable();
        self.oracle.newest_stable = self.oracle.newest_stable.max(stable);
    }

    fn on_applied(&mut self, sender: NodeId, index: usize, message: Applied) {
        let now = Time(self.now);
        if let Some(sequencer) = &mut self.nodes[index].sequencer {
            sequencer.on_applied(sender, &message, now);
        }
    }

    fn on_installed(&mut self, from: Life, index: usize, mut message: Installed) {
        let now = Time(self.now);
        if self.bug == Bug::UnionForgotten && usize::from(from.0) != index {
            message.decisions.clear();
        }
        let Some(change) = &mut self.nodes[index].change else { return };
        let mut start = change.on_installed(NodeId(from.0), from.1, message, now);
        let missing: Vec<NodeId> = change.missing().collect();
        if let ([missing], Bug::StartWithoutOne) = (&missing[..], self.bug) {
            let membership = Arc::clone(change.membership());
            let incarnation = membership.record(*missing).expect("a member").incarnation;
            let empty = Installed {
                epoch: membership.epoch,
                passed: CommitNumber(0),
                durable: CommitNumber(0),
                decisions: vec![],
            };
            start = change.on_installed(*missing, incarnation, empty, now);
        }
        let Some(start) = start else { return };
        let membership = Arc::clone(change.membership());
        let node = &mut self.nodes[index];
        node.change = None;
        node.sequencer = Some(start.sequencer);
        let members: Vec<&Node> =
            self.nodes.iter().filter(|node| membership.has(NodeId(node.id), node.incarnation)).collect();
        let knows = |transaction| members.iter().any(|node| node.outcomes.contains_key(&transaction));
        self.oracle.on_start(membership.epoch, &knows);
        let messages = start.messages.into_iter().map(|(node, message)| (node, Message::StartEpoch(message)));
        self.send_all(index, messages.collect());
    }

    fn on_start_epoch(&mut self, index: usize, message: StartEpoch) {
        let node = &mut self.nodes[index];
        let epoch = message.epoch;
        if let Some(membership) = node.pending_install.take_if(|it| it.epoch == epoch) {
            node.installed = Arc::clone(&membership);
            node.mirror.on_install_membership(&membership);
        }
        let mut orders = Vec::new();
        node.mirror.on_start_epoch(message, &mut orders);
        self.pass(index, orders);
        let node = &mut self.nodes[index];
        let has_started = node.mirror.started() == epoch;
        if let Some(sequencer) = node.sequencer.as_mut().filter(|it| it.epoch() == epoch && has_started) {
            sequencer.open();
        }
    }

    /// A node installs a membership that it is told of.
    pub fn install(&mut self, index: usize, membership: &Arc<Membership>) {
        let node = &mut self.nodes[index];
        let obeys_old = self.bug == Bug::ObeysOldSequencer && node.mirror.started().0 > 0;
        let report = match obeys_old {
            true => node.mirror.clone().on_install_membership(membership),
            false => node.mirror.on_install_membership(membership),
        };
        let Some(mut report) = report else { return };
        if self.bug == Bug::PrefixEndsAtApplied {
            report.passed = node.mirror.applied();
            report.decisions.retain(|decision| decision.number <= report.passed);
        }
        if self.bug == Bug::ForgotForJoining {
            let stable = node.mirror.stable();
            report.decisions.retain(|decision| decision.number > stable);
        }
        node.sequencer = None;
        node.change = None;
        if membership.sequencer == NodeId(node.id) {
            node.change = Some(junctor_cluster::epoch::EpochChange::new(Arc::clone(membership)));
        }
        let links = Arc::clone(&node.installed);
        node.installed = Arc::clone(membership);
        self.send_all(index, vec![(membership.sequencer, Message::Installed(report))]);
        if obeys_old {
            self.nodes[index].installed = links;
            self.nodes[index].pending_install = Some(Arc::clone(membership));
        }
    }

    /// Sends what the machines of a node have to say.
    pub fn pump(&mut self, index: usize) {
        if !self.is_running(index) {
            return;
        }
        let tells_all = self.random.one_in(4);
        let node = &mut self.nodes[index];
        if tells_all {
            node.mirror.tell_all();
            node.sequencer.iter_mut().for_each(|sequencer| sequencer.tell_all());
        }
        let mut messages = Vec::new();
        let sequencer = node.mirror.membership().map(|membership| membership.sequencer);
        if let Some(sequencer) = sequencer {
            messages.extend(node.mirror.next_take_number().map(|it| (sequencer, Message::TakeNumber(it))));
            messages.extend(node.mirror.next_applied().map(|it| (sequencer, Message::Applied(it))));
        }
        if let Some(sequencer) = &mut node.sequencer {
            let members: Vec<NodeId> = node.installed.members().map(|record| record.node).collect();
            for member in members {
                while let Some(message) = sequencer.next_decide(member) {
                    messages.push((member, Message::Decide(message)));
                }
            }
        }
        self.send_all(index, messages);
    }

    fn run_block(&mut self) {
        let index = self.any_node();
        if !self.is_running(index) {
            return;
        }
        let block = self.random.below(u64::from(LDMS) + 2);
        let messages = match block {
            0 => self.nodes[index].run_tc(),
            1 => {
                self.nodes[index].run_mirror();
                self.note_stable(index);
                Vec::new()
            }
            ldm => self.nodes[index].run_ldm(ldm as usize - 2),
        };
        self.send_all(index, messages);
        self.take_answers(index);
    }

    pub fn take_answers(&mut self, index: usize) {
        for (transaction, answer) in std::mem::take(&mut self.nodes[index].tc.answers) {
            let is_late = matches!(answer, Answer::Committed { .. }) && self.is_disturbed && self.random.one_in(16);
            if is_late && self.nodes[index].late_answers.len() < LATE_MAX {
                self.nodes[index].late_answers.push((transaction, answer));
            } else {
                self.answer(transaction, answer);
            }
        }
        if !self.is_disturbed {
            for (transaction, answer) in std::mem::take(&mut self.nodes[index].late_answers) {
                self.answer(transaction, answer);
            }
        }
    }

    fn answer(&mut self, transaction: GlobalTransactionId, answer: Answer) {
        if self.oracle.is_open(&transaction) {
            self.begun.remove(&transaction);
            self.oracle.on_answer(transaction, answer);
        }
    }

    fn begin(&mut self) {
        let index = self.any_node();
        let node = &self.nodes[index];
        let started = self.raft.committed().started;
        if !self.is_running(index) || !self.is_disturbed || !node.serves() || node.tc.open() >= OPEN_MAX {
            return;
        }
        if node.tc.epoch != node.mirror.started() {
            return;
        }
        let count = 1 + self.random.below(3);
        let mut rows: Vec<Row> = Vec::new();
        let first = self.random.below(u64::from(self.partitions)) as u8;
        for _ in 0..count {
            let is_near = self.random.one_in(2);
            let partition = if is_near { first } else { self.random.below(u64::from(self.partitions)) as u8 };
            let row = (partition, self.random.below(u64::from(ROWS)) as u8);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        let awaits_disk = self.random.one_in(2);
        let messages = self.nodes[index].begin(rows.clone(), awaits_disk);
        let transaction = self.nodes[index].tc.last();
        self.oracle.begin(transaction, rows);
        self.begun.insert(transaction, started);
        self.send_all(index, messages);
    }

    /// The transactions of a tc that is gone lose their clients, which ask other nodes for the outcome.
    pub fn orphan(&mut self, index: usize) {
        let mut committing: Vec<GlobalTransactionId> = self.nodes[index].tc.committing().collect();
        committing.extend(self.nodes[index].late_answers.drain(..).map(|(transaction, _)| transaction));
        for transaction in committing {
            if let Some(started) = self.begun.remove(&transaction) {
                self.orphans.push((transaction, started));
            }
        }
    }

    /// Every replica that a client may read shows the snapshot the right versions.
    fn check_read(&self, snapshot: CommitNumber) {
        let latest = self.raft.committed();
        let is_readable = |node: &&Node| {
            let is_member = latest.has(NodeId(node.id), node.incarnation) && node.is_alive;
            is_member && node.serves() && node.mirror.snapshot().is_some() && node.floor <= snapshot
        };
        for node in self.nodes.iter().filter(is_readable) {
            let has_part = |partition: &u8| latest.chains[usize::from(*partition)].contains(&NodeId(node.id));
            for partition in (0..self.partitions).filter(has_part) {
                for row in (0..ROWS).map(|row| (partition, row)) {
                    let (shown, expected) = (node.visible(row, snapshot), self.oracle.expected(row, snapshot));
                    let id = node.id;
                    assert_eq!(shown, expected, "node {id} shows {row:?} the versions of the snapshot {snapshot}");
                }
            }
        }
    }

    fn choose_snapshot(&mut self) {
        let index = self.any_node();
        let Some(snapshot) = self.nodes[index].choose_snapshot(self.now) else { return };
        self.oracle.on_snapshot(snapshot, self.nodes[index].id);
        self.check_read(snapshot);
    }

    fn hold_snapshot(&mut self) {
        let index = self.any_node();
        let is_member = self.raft.committed().has(NodeId(self.nodes[index].id), self.nodes[index].incarnation);
        if let Some(held) = self.nodes[index].held.take() {
            if is_member && self.nodes[index].is_alive {
                self.check_read(held);
            }
            self.nodes[index].mirror.set_oldest_snapshot(None);
        } else if let Some(snapshot) = self.nodes[index].choose_snapshot(self.now) {
            self.oracle.on_snapshot(snapshot, self.nodes[index].id);
            self.nodes[index].held = Some(snapshot);
            if self.bug != Bug::HorizonWithoutSnapshots {
                self.nodes[index].mirror.set_oldest_snapshot(Some(snapshot));
            }
        }
    }

    fn purge(&mut self) {
        let index = self.any_node();
        let horizon = self.nodes[index].mirror.horizon();
        if self.nodes[index].has_checkpoint && self.nodes[index].is_alive {
            self.nodes[index].write_log();
        }
        self.nodes[index].ldms.iter_mut().for_each(|ldm| ldm.purge(horizon));
        let least = self.nodes.iter().filter(|node| node.is_alive).map(|node| node.mirror.horizon()).min();
        let disks = self.nodes.iter().map(|node| node.disk.stable).min();
        let limit = least.unwrap_or_default().min(disks.unwrap_or_default());
        self.oracle.purge(limit);
    }

    fn sync_disk(&mut self) {
        let index = self.any_node();
        if !self.is_running(index) || self.nodes[index].mirror.started() == Epoch(0) {
            return;
        }
        let node = &mut self.nodes[index];
        if node.has_checkpoint {
            node.sync_disk();
        } else if self.bug == Bug::MarkedBeforeCheckpoint {
            let stable = node.mirror.stable();
            node.mirror.set_durable(stable);
        } else if node.serves() && node.copies_left.is_empty() {
            node.end_checkpoint();
        }
    }

    /// A node asks for a lease when one is due.
    fn request_lease(&mut self) {
        let index = self.any_node();
        if self.is_running(index) {
            let clock = self.nodes[index].clock(self.now);
            let life = self.nodes[index].life();
            if let Some(request) = self.nodes[index].holder.next_request(clock) {
                for voter in voter_ids().iter() {
                    self.send(life, (voter.0, Incarnation(0)), Message::RequestLease(request));
                }
            }
        }
    }

    fn deliver_to_voter(&mut self, from: Life, voter: u8, message: Message) {
        let Message::RequestLease(request) = message else { panic!("voters only grant leases") };
        if let Some(reply) = self.raft.on_request_lease(voter, self.now, &request) {
            self.send((voter, Incarnation(0)), from, Message::RequestLeaseReply(reply));
        }
    }

    fn on_copy(&mut self, from: Life, index: usize, (epoch, partition): (Epoch, u8)) {
        let node = &self.nodes[index];
        let stable = node.mirror.stable();
        // The joining node gets no image up to the start of its epoch, so the copy must have all of these.
        let has_all = stable >= CommitNumber::start_of(epoch) || self.bug == Bug::CopyBeforeStart;
        if !node.serves() || !has_all {
            let life = self.nodes[index].life();
            return self.send(from, life, Message::Copy { epoch, partition });
        }
        let rows = (0..ROWS).map(|row| (partition, row));
        let rows = rows.map(|row| (row, node.visible(row, stable))).filter(|(_, number)| number.0 > 0).collect();
        let life = node.life();
        self.send(life, from, Message::CopyReply { partition, at: stable, rows });
    }

    fn on_copy_reply(&mut self, index: usize, partition: u8, (at, rows): (CommitNumber, Vec<(Row, CommitNumber)>)) {
        let node = &mut self.nodes[index];
        if node.copies_left.contains(&partition) {
            node.copies_left.retain(|it| *it != partition);
            node.ldms[usize::from(ldm_of(partition))].take_copy(partition, at, &rows);
            node.floor = node.floor.max(at);
        }
    }
}
