//! Simulates commits of a cluster. Numbers, decisions and confirmations come from the node's own sequencer
//! and mirrors; CPUs and the network are queues and delays.
//!
//! A node has one CPU for main, with the mirror and perhaps the sequencer, and the others for everything
//! else. Main takes all messages that have come in one turn, as in the node, so batches form by themselves.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use junctor_cluster::epoch::mirror::Order;
use junctor_cluster::epoch::{Mirror, Sequencer};
use junctor_cluster::membership::Membership;
use junctor_kernel::{NodeId, Time};
use junctor_model::id::{CommitNumber, GlobalTransactionId, Incarnation};
use junctor_signals::commit_transaction::TransactionPart;
use junctor_signals::decide::{Applied, Decide};
use junctor_signals::start_epoch::StartEpoch;
use junctor_signals::take_number::{Decision, Participant, Participants, TakeNumber};

use super::costs::Costs;
use crate::latency::Latencies;
use crate::random::Random;

/// The simulated cluster and its load.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Number of data nodes, a multiple of `replicas`. Node 0 has the sequencer.
    pub nodes: u8,
    /// Replicas of each row.
    pub replicas: u8,
    /// CPUs of a node, that of main included.
    pub cpus: u32,
    /// Where transactions come from.
    pub load: Load,
    /// Time that is not measured.
    pub warm_up_ns: u64,
    /// Measured time.
    pub measured_ns: u64,
    /// Equal seeds give equal runs.
    pub seed: u64,
}

/// Where transactions come from. Each updates one row of any group, at any node.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// This number of clients at each node, each of which waits for its answer.
    Clients(u32),
    /// At random moments, this number a second in the whole cluster.
    PerSecond(f64),
}

/// Figures of a run.
#[derive(Clone, Default)]
pub struct Report {
    /// Answered commits.
    pub commits: u64,
    /// Commits a second.
    pub per_s: f64,
    /// From the arrival at the tc to the answer.
    pub latencies: Latencies,
    /// Part of the time in which main of the sequencer's node works.
    pub sequencer_busy: f64,
    /// The mean of the other mains.
    pub main_busy: f64,
    /// The mean of all other CPUs.
    pub workers_busy: f64,
    /// Frames between mains for each commit.
    pub frames: f64,
    /// Decisions in a message that has any.
    pub batch: f64,
}

/// A step of a transaction that a worker runs.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// At the tc: the statement begins.
    Begin,
    /// At the primary: the write; with the tc elsewhere, its answer goes back first.
    Write,
    /// At the tc: the write is done, the commit begins.
    Prepare,
    /// At the primary: the image goes to the backups.
    Replicate,
    /// At the backup with this position in the chain.
    Image(u8),
    /// At the tc: all replicas are prepared.
    Prepared,
    /// At a replica: the decision is applied.
    Apply(u64),
    /// At the tc: the commit is confirmed.
    Answer,
}

#[derive(Clone, Copy, Debug)]
struct Work {
    transaction: u32,
    step: Step,
    cost_ns: u64,
}

/// What main of a node takes.
#[derive(Clone, Debug)]
enum Message {
    Request(Decision),
    Applied(NodeId, Applied),
    Take(NodeId, TakeNumber),
    Decide(Decide),
    LdmApplied(u64),
}

#[derive(Debug)]
enum Due {
    /// A transaction of a client arrives at its tc.
    Arrive(u32),
    Work(u8, Work),
    WorkDone(u8, Work),
    Message(u8, Box<Message>),
    MainDone(u8),
    /// Nodes tell each other news that is not urgent.
    Tick,
    NextArrival,
}

struct Node {
    queue: VecDeque<Work>,
    idle: u32,
    busy_ns: u64,
    mirror: Mirror,
    inbox: Vec<Message>,
    is_main_busy: bool,
    main_busy_ns: u64,
    /// Own commits with their numbers, ascending, that are not confirmed.
    unconfirmed: VecDeque<(CommitNumber, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Transaction {
    tc: u8,
    group: u8,
    begun_ns: u64,
}

/// An event, ordered by its time and then by the order in which it was planned, the first one greatest.
struct Planned {
    at: (u64, u64),
    due: Due,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Planned) -> bool {
        self.at == other.at
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Planned) -> Ordering {
        other.at.cmp(&self.at)
    }
}

/// A run.
pub struct Simulation<'a> {
    setup: Setup,
    costs: &'a Costs,
    now_ns: u64,
    events: BinaryHeap<Planned>,
    sequence: u64,
    nodes: Vec<Node>,
    sequencer: Sequencer,
    membership: Arc<Membership>,
    transactions: Vec<Transaction>,
    free: Vec<u32>,
    random: Random,
    report: Report,
    frames: u64,
    decided: u64,
    batches: u64,
}

/// How often what is not urgent is told.
const TICK_NS: u64 = 20_000_000;

impl Simulation<'_> {
    /// Runs a cluster.
    pub fn run(setup: Setup, costs: &Costs) -> Report {
        let mut simulation = Simulation::new(setup, costs);
        simulation.begin();
        let end = setup.warm_up_ns + setup.measured_ns;
        let mut is_measured = false;
        while let Some(Planned { at: (time, _), due }) = simulation.events.pop() {
            if time > end {
                break;
            }
            if !is_measured && time >= setup.warm_up_ns {
                is_measured = true;
                simulation.forget();
            }
            simulation.now_ns = time;
            simulation.handle(due);
        }
        simulation.finish()
    }

    fn new(setup: Setup, costs: &Costs) -> Simulation<'_> {
        let ids: Vec<(NodeId, u8)> = (0..setup.nodes).map(|node| (NodeId(node), node / setup.replicas)).collect();
        let chains = ids.chunks(usize::from(setup.replicas)).map(|group| group.iter().map(|it| it.0).collect());
        let membership = Arc::new(Membership::create(&ids, chains.collect(), NodeId(0)));
        let mut sequencer = Sequencer::new(&membership, &|_| CommitNumber(0), Time(0));
        sequencer.open();
        sequencer.on_leases_over(membership.epoch);
        let node = |node: &(NodeId, u8)| {
            let incarnation = membership.record(node.0).map_or(Incarnation(0), |record| record.incarnation);
            let mut mirror = Mirror::new(node.0, incarnation, CommitNumber(0));
            mirror.on_install_membership(&membership);
            let start = StartEpoch { epoch: membership.epoch, prefix: CommitNumber(0), missing: Vec::new() };
            mirror.on_start_epoch(start, &mut Vec::new());
            Node {
                queue: VecDeque::new(),
                idle: setup.cpus - 1,
                busy_ns: 0,
                mirror,
                inbox: Vec::new(),
                is_main_busy: false,
                main_busy_ns: 0,
                unconfirmed: VecDeque::new(),
            }
        };
        Simulation {
            setup,
            costs,
            now_ns: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            nodes: ids.iter().map(node).collect(),
            sequencer,
            membership: Arc::clone(&membership),
            transactions: Vec::new(),
            free: Vec::new(),
            random: Random::new(setup.seed),
            report: Report::default(),
            frames: 0,
            decided: 0,
            batches: 0,
        }
    }

    fn begin(&mut self) {
        self.plan(0, Due::Tick);
        match self.setup.load {
            Load::Clients(clients) => {
                for index in 0..clients * u32::from(self.setup.nodes) {
                    let tc = (index % u32::from(self.setup.nodes)) as u8;
                    let transaction = self.new_transaction(tc);
                    let wait_ns = self.random.below(200_000);
                    self.plan(wait_ns, Due::Arrive(transaction));
                }
            }
            Load::PerSecond(_) => self.plan(0, Due::NextArrival),
        }
    }

    /// The warm-up is over.
    fn forget(&mut self) {
        self.report = Report::default();
        (self.frames, self.decided, self.batches) = (0, 0, 0);
        for node in &mut self.nodes {
            (node.busy_ns, node.main_busy_ns) = (0, 0);
        }
    }

    fn finish(mut self) -> Report {
        let span = self.setup.measured_ns as f64;
        let commits = self.report.commits.max(1) as f64;
        let others = self.nodes.len().saturating_sub(1).max(1) as f64;
        let mains: f64 = self.nodes[1..].iter().map(|node| node.main_busy_ns as f64).sum();
        let workers: f64 = self.nodes.iter().map(|node| node.busy_ns as f64).sum();
        let all_workers = self.nodes.len() as f64 * f64::from(self.setup.cpus - 1);
        self.report.per_s = self.report.commits as f64 / span * 1e9;
        self.report.sequencer_busy = (self.nodes[0].main_busy_ns as f64 / span).min(1.0);
        self.report.main_busy = mains / others / span;
        self.report.workers_busy = (workers / all_workers / span).min(1.0);
        self.report.frames = self.frames as f64 / commits;
        self.report.batch = self.decided as f64 / self.batches.max(1) as f64;
        self.report
    }

    fn plan(&mut self, after_ns: u64, due: Due) {
        self.sequence += 1;
        self.events.push(Planned { at: (self.now_ns + after_ns, self.sequence), due });
    }

    fn new_transaction(&mut self, tc: u8) -> u32 {
        let groups = u64::from(self.setup.nodes / self.setup.replicas);
        let group = self.random.below(groups) as u8;
        let transaction = Transaction { tc, group, begun_ns: self.now_ns };
        match self.free.pop() {
            Some(place) => {
                self.transactions[place as usize] = transaction;
                place
            }
            None => {
                self.transactions.push(transaction);
                self.transactions.len() as u32 - 1
            }
        }
    }

    /// The replica of a transaction's row with this position in the chain, the primary first. The primaries
    /// of a group's partitions are spread over its nodes.
    fn replica(&self, transaction: u32, position: u8) -> u8 {
        let replicas = self.setup.replicas;
        let shift = (transaction % u32::from(replicas)) as u8;
        self.transactions[transaction as usize].group * replicas + (shift + position) % replicas
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Arrive(transaction) => {
                self.transactions[transaction as usize].begun_ns = self.now_ns;
                let tc = self.transactions[transaction as usize].tc;
                self.give(tc, transaction, Step::Begin, self.costs.statement);
            }
            Due::NextArrival => self.arrive_at_random(),
            Due::Work(node, work) => self.queue(node, work),
            Due::WorkDone(node, work) => {
                match self.nodes[usize::from(node)].queue.pop_front() {
                    Some(next) => self.run_work(node, next),
                    None => self.nodes[usize::from(node)].idle += 1,
                }
                self.on_done(node, work);
            }
            Due::Message(node, message) => {
                self.nodes[usize::from(node)].inbox.push(*message);
                self.wake_main(node);
            }
            Due::MainDone(node) => {
                self.nodes[usize::from(node)].is_main_busy = false;
                if !self.nodes[usize::from(node)].inbox.is_empty() {
                    self.wake_main(node);
                }
            }
            Due::Tick => {
                self.sequencer.update_horizon(Time(self.now_ns));
                self.sequencer.tell_all();
                self.nodes.iter_mut().for_each(|node| node.mirror.tell_all());
                (0..self.setup.nodes).for_each(|node| self.wake_main(node));
                self.plan(TICK_NS, Due::Tick);
            }
        }
    }

    fn arrive_at_random(&mut self) {
        let Load::PerSecond(per_s) = self.setup.load else { return };
        let tc = self.random.below(u64::from(self.setup.nodes)) as u8;
        let transaction = self.new_transaction(tc);
        self.plan(0, Due::Arrive(transaction));
        let uniform = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let wait_ns = -(1.0 - uniform).ln() * 1e9 / per_s;
        self.plan(wait_ns as u64, Due::NextArrival);
    }

    /// Gives work to the own node.
    fn give(&mut self, node: u8, transaction: u32, step: Step, cost_ns: u64) {
        // Uniformly between half and one and a half times the cost.
        let cost_ns = cost_ns / 2 + self.random.below(cost_ns.max(1));
        self.queue(node, Work { transaction, step, cost_ns });
    }

    /// Sends a signal, whose cost the sender has paid, and gives the work to its receiver.
    fn send(&mut self, (from, to): (u8, u8), transaction: u32, step: Step, cost_ns: u64) {
        if from == to {
            return self.give(to, transaction, step, cost_ns);
        }
        let cost_ns = self.costs.signal + cost_ns / 2 + self.random.below(cost_ns.max(1));
        self.plan(self.costs.network, Due::Work(to, Work { transaction, step, cost_ns }));
    }

    fn queue(&mut self, node: u8, work: Work) {
        match self.nodes[usize::from(node)].idle {
            0 => self.nodes[usize::from(node)].queue.push_back(work),
            _ => {
                self.nodes[usize::from(node)].idle -= 1;
                self.run_work(node, work);
            }
        }
    }

    fn run_work(&mut self, node: u8, work: Work) {
        let it = self.transactions[work.transaction as usize];
        // The signals that it sends to other nodes.
        let primary = self.replica(work.transaction, 0);
        let sent = match work.step {
            Step::Begin | Step::Prepare => u64::from(primary != it.tc),
            Step::Write => u64::from(primary != it.tc),
            Step::Replicate => 1,
            Step::Image(position) if position + 1 < self.setup.replicas => 1,
            Step::Image(_) => u64::from(node != it.tc),
            _ => 0,
        };
        let cost_ns = work.cost_ns + sent * self.costs.signal;
        self.nodes[usize::from(node)].busy_ns += cost_ns;
        self.plan(cost_ns, Due::WorkDone(node, work));
    }

    fn on_done(&mut self, node: u8, work: Work) {
        let (transaction, costs) = (work.transaction, self.costs);
        let it = self.transactions[transaction as usize];
        let primary = self.replica(transaction, 0);
        match work.step {
            Step::Begin => self.send((node, primary), transaction, Step::Write, costs.write),
            Step::Write if primary == it.tc => self.give(node, transaction, Step::Replicate, 0),
            Step::Write => self.send((node, it.tc), transaction, Step::Prepare, 0),
            Step::Prepare => self.send((node, primary), transaction, Step::Replicate, 0),
            Step::Replicate if self.setup.replicas == 1 => self.send((node, it.tc), transaction, Step::Prepared, 0),
            Step::Replicate => {
                let backup = self.replica(transaction, 1);
                self.send((node, backup), transaction, Step::Image(1), costs.image);
            }
            Step::Image(position) if position + 1 < self.setup.replicas => {
                let next = self.replica(transaction, position + 1);
                self.send((node, next), transaction, Step::Image(position + 1), costs.image);
            }
            Step::Image(_) => self.send((node, it.tc), transaction, Step::Prepared, 0),
            Step::Prepared => {
                let decision = self.decision(transaction);
                self.tell_main(node, Message::Request(decision));
            }
            Step::Apply(position) => self.tell_main(node, Message::LdmApplied(position)),
            Step::Answer => {
                self.report.commits += 1;
                self.report.latencies.add(self.now_ns - it.begun_ns);
                match self.setup.load {
                    Load::Clients(_) => {
                        self.free.push(transaction);
                        let next = self.new_transaction(it.tc);
                        self.plan(2 * costs.network, Due::Arrive(next));
                    }
                    Load::PerSecond(_) => self.free.push(transaction),
                }
            }
        }
    }

    fn decision(&self, transaction: u32) -> Decision {
        let it = self.transactions[transaction as usize];
        let participant = |position| Participant {
            node: NodeId(self.replica(transaction, position)),
            part: if position == 0 { TransactionPart::Rows } else { TransactionPart::Images },
            ldm: 0,
        };
        let participants: Vec<Participant> = (0..self.setup.replicas).map(participant).collect();
        let incarnation = self.membership.record(NodeId(it.tc)).map_or(Incarnation(0), |record| record.incarnation);
        let counter = u64::from(transaction);
        Decision {
            number: CommitNumber(0),
            transaction: GlobalTransactionId { counter, incarnation, tc: 0, node: it.tc },
            participants: Participants::new(&participants),
            awaits_disk: false,
        }
    }

    fn tell_main(&mut self, node: u8, message: Message) {
        self.nodes[usize::from(node)].inbox.push(message);
        self.wake_main(node);
    }

    /// Main takes everything that has come, if it does nothing else.
    fn wake_main(&mut self, node: u8) {
        if std::mem::replace(&mut self.nodes[usize::from(node)].is_main_busy, true) {
            return;
        }
        let inbox = std::mem::take(&mut self.nodes[usize::from(node)].inbox);
        let costs = self.costs;
        let mut cost_ns = costs.turn;
        let mut orders = Vec::new();
        for message in inbox {
            cost_ns += self.take(node, message, &mut orders);
        }
        let mut sent: Vec<(u8, Message)> = Vec::new();
        cost_ns += self.exchange(node, &mut sent, &mut orders);
        for (_, message) in &sent {
            cost_ns += costs.frame
                + match message {
                    Message::Decide(decide) => costs.destination * decide.decisions.len() as u64,
                    Message::Take(_, take) => costs.destination * take.requests.len() as u64,
                    _ => 0,
                };
        }
        self.frames += sent.len() as u64;
        self.nodes[usize::from(node)].main_busy_ns += cost_ns;
        self.plan(cost_ns, Due::MainDone(node));
        for (to, message) in sent {
            self.plan(cost_ns + costs.network, Due::Message(to, Box::new(message)));
        }
        self.pass(node, orders, cost_ns);
        self.answer(node, cost_ns);
    }

    /// Gives a message to the machines. Returns its cost.
    fn take(&mut self, node: u8, message: Message, orders: &mut Vec<Order>) -> u64 {
        let costs = self.costs;
        let mirror = &mut self.nodes[usize::from(node)].mirror;
        match message {
            Message::Request(decision) => {
                mirror.request_number(mirror.started(), decision);
                costs.destination
            }
            Message::LdmApplied(position) => {
                mirror.on_ldm_applied(position);
                0
            }
            Message::Decide(mut decide) => {
                self.decided += decide.decisions.len() as u64;
                self.batches += u64::from(!decide.decisions.is_empty());
                let cost = costs.frame + costs.decision * decide.decisions.len() as u64;
                mirror.on_decide(&mut decide, orders);
                cost
            }
            Message::Take(from, take) => {
                let cost = costs.frame + costs.request * take.requests.len() as u64;
                self.sequencer.on_take_number(from, take);
                cost
            }
            Message::Applied(from, report) => {
                self.sequencer.on_applied(from, &report, Time(self.now_ns));
                costs.frame + costs.report * u64::from(self.setup.nodes)
            }
        }
    }

    /// As in main of the node: the own mirror and the sequencer first, until neither has news. Returns the
    /// cost of what stays in the node.
    fn exchange(&mut self, node: u8, sent: &mut Vec<(u8, Message)>, orders: &mut Vec<Order>) -> u64 {
        let (own, costs) = (NodeId(node), self.costs);
        let mut cost_ns = 0;
        loop {
            let mirror = &mut self.nodes[usize::from(node)].mirror;
            let (take, applied) = (mirror.next_take_number(), mirror.next_applied());
            if node != 0 {
                sent.extend(take.map(|take| (0, Message::Take(own, take))));
                sent.extend(applied.map(|report| (0, Message::Applied(own, report))));
                return cost_ns;
            }
            let mut has_news = take.is_some() || applied.is_some();
            if let Some(take) = take {
                cost_ns += costs.request * take.requests.len() as u64;
                self.sequencer.on_take_number(own, take);
            }
            if let Some(report) = applied {
                cost_ns += costs.report * u64::from(self.setup.nodes);
                self.sequencer.on_applied(own, &report, Time(self.now_ns));
            }
            while let Some(mut decide) = self.sequencer.next_decide(own) {
                cost_ns += costs.decision * decide.decisions.len() as u64;
                self.nodes[0].mirror.on_decide(&mut decide, orders);
                has_news = true;
            }
            if !has_news {
                break;
            }
        }
        for to in 1..self.setup.nodes {
            while let Some(decide) = self.sequencer.next_decide(NodeId(to)) {
                sent.push((to, Message::Decide(decide)));
            }
        }
        cost_ns
    }

    /// Orders of the mirror go to workers of the node.
    fn pass(&mut self, node: u8, orders: Vec<Order>, after_ns: u64) {
        for order in orders {
            match order {
                Order::CommitTransaction { position, transaction, part, .. } => {
                    let is_primary = part == TransactionPart::Rows;
                    let cost_ns = if is_primary { self.costs.commit } else { 0 };
                    let step = Step::Apply(position);
                    let work = Work { transaction: transaction.counter as u32, step, cost_ns };
                    self.plan(after_ns, Due::Work(node, work));
                }
                Order::NumberTaken { transaction, number, .. } => {
                    let unconfirmed = &mut self.nodes[usize::from(node)].unconfirmed;
                    unconfirmed.push_back((number, transaction.counter as u32));
                }
                Order::StartEpoch { .. } => {}
            }
        }
    }

    /// Commits that are confirmed are answered.
    fn answer(&mut self, node: u8, after_ns: u64) {
        let it = &mut self.nodes[usize::from(node)];
        let confirmed = it.mirror.confirmed();
        let mut answered = Vec::new();
        while let Some((_, transaction)) = it.unconfirmed.front().filter(|(number, _)| *number <= confirmed) {
            answered.push(*transaction);
            it.unconfirmed.pop_front();
        }
        for transaction in answered {
            self.plan(after_ns, Due::Work(node, Work { transaction, step: Step::Answer, cost_ns: 0 }));
        }
    }
}
