//! A node under load: clients in a closed loop, and requests that move from thread to thread.

use std::rc::Rc;

use junctor_gateway::route::ReadRule;

use super::demand::{Demand, Demands};
use super::engine::{Engine, Event, From, Hops, KINDS_MAX, Task};
use super::layout::Layout;
use super::request::{PartitionWork, Step, TABLE_PARTITIONS, Workload};
use super::router::{Look, Read, Route, Router};
use crate::latency::Latencies;
use crate::random::Random;

/// Network round trip in nanoseconds: a delay without CPU time.
pub const NETWORK_NS: u64 = 40_000;

/// A phase of the load.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Operations of the clients.
    pub steps: Rc<[Step]>,
    /// Number of active clients. The others rest.
    pub clients: usize,
    /// Number of tables in use, from the first. Fewer than all make a hot spot.
    pub tables: usize,
    /// Thousandths of the recv threads whose connections are active, from the first.
    pub recv_per_mille: usize,
    /// Whether reads use only one partition of each table.
    pub hot_partition: bool,
}

impl Phase {
    /// A phase in which all clients use all tables evenly.
    pub fn even(workload: Workload, demands: &Demands, clients: usize, tables: usize) -> Phase {
        let steps = workload.steps(demands).into();
        Phase { steps, clients, tables, recv_per_mille: 1000, hot_partition: false }
    }
}

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Rule of reads.
    pub rule: ReadRule,
    /// Nanoseconds between two samples of the loads. Every second sample renews the prices, as in a node.
    pub look_ns: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Operations that ended during the measurement.
    pub operations: u64,
    /// Operations per second.
    pub per_s: f64,
    /// Latencies of the operations.
    pub latencies: Latencies,
    /// Utilisation of each thread, from 0 to 1.
    pub busy: Vec<f64>,
    /// Nanoseconds per operation of each kind of work, over all threads.
    pub work_ns: [f64; KINDS_MAX],
}

/// Kinds of work in the order of [`RunReport::work_ns`].
pub const KINDS: [&str; 7] = ["receive", "sql", "read", "tc", "write", "reply", "send"];

struct Request {
    /// The operation of the phase in which it began.
    steps: Rc<[Step]>,
    place: usize,
    began_ns: u64,
    recv: usize,
    sql: usize,
    tc: usize,
    table: usize,
    waiting: usize,
    /// Threads of the parts of a read, and their work.
    parts: Vec<(Route, u64)>,
}

/// A node with its clients.
pub struct Node<'a> {
    layout: &'a Layout,
    engine: Engine,
    routers: Vec<Router>,
    requests: Vec<Request>,
    resting: Vec<u32>,
    phase: Phase,
    options: RunOptions,
    random: Random,
    tables: usize,
    looks: u64,
    /// The thread that writes for others if there are no send threads: the least busy one.
    helper: [usize; 1],
    looked: Vec<[u64; 2]>,
    /// Utilisation of each thread over about twenty samples, in thousandths.
    lately_per_mille: Vec<u32>,
    counting: bool,
    latencies: Latencies,
}

/// The bits of a task's number that hold the index of its part.
const PART_SHIFT: u32 = 16;

impl<'a> Node<'a> {
    /// Makes a node with `clients` connections, all of which rest, and `tables` tables.
    pub fn new(layout: &'a Layout, demands: &Demands, clients: usize, tables: usize, options: RunOptions) -> Node<'a> {
        let hops = Hops {
            out_ns: demands.ns(Demand::HopOut),
            in_ns: demands.ns(Demand::HopIn),
            wake_ns: demands.ns(Demand::Wake),
            wake_latency_ns: demands.ns(Demand::WakeLatency),
        };
        let of = |list: &[usize], number: usize| list[number % list.len()];
        let beside = |list: &[usize], thread: usize, number: usize| {
            if list.contains(&thread) { thread } else { of(list, number) }
        };
        let request = |number: usize| {
            let recv = of(&layout.recv, number);
            // As recv chooses sql and sql chooses tc: on the same thread if possible, else in turn.
            let sql = beside(&layout.sql, recv, number);
            let tc = beside(&layout.tc, sql, number);
            Request {
                steps: Rc::new([]),
                place: 0,
                began_ns: 0,
                recv,
                sql,
                tc,
                table: 0,
                waiting: 0,
                parts: Vec::new(),
            }
        };
        let phase = Phase { steps: Rc::new([]), clients: 0, tables, recv_per_mille: 1000, hot_partition: false };
        let mut engine = Engine::new(layout.threads(), hops);
        engine.tick_after(options.look_ns);
        Node {
            layout,
            engine,
            routers: (0..layout.threads()).map(|thread| Router::new(options.rule, thread, layout)).collect(),
            requests: (0..clients).map(request).collect(),
            resting: (0..clients as u32).rev().collect(),
            phase,
            options,
            random: Random::new(options.seed),
            tables,
            looks: 0,
            helper: [0],
            looked: vec![[0; 2]; layout.threads()],
            lately_per_mille: vec![0; layout.threads()],
            counting: false,
            latencies: Latencies::default(),
        }
    }

    /// Starts a phase. Clients within an operation finish it first.
    pub fn begin_phase(&mut self, phase: Phase) {
        self.phase = phase;
        let statements: Vec<usize> =
            (0..self.phase.steps.len()).filter(|place| matches!(self.phase.steps[*place], Step::Receive(_))).collect();
        for number in std::mem::take(&mut self.resting) {
            if self.is_active(number as usize) && !statements.is_empty() {
                // Clients begin at different statements of an operation. Otherwise all would stay in step.
                let place = statements[self.random.below(statements.len() as u64) as usize];
                self.take_up(number, place);
            }
            let delay_ns = self.random.below(NETWORK_NS);
            self.engine.delay(number, delay_ns);
        }
    }

    /// Begins an operation of the phase for a client, at one of its statements.
    fn take_up(&mut self, number: u32, place: usize) {
        let table = self.random.below(self.phase.tables.min(self.tables).max(1) as u64) as usize;
        let request = &mut self.requests[number as usize];
        request.steps = Rc::clone(&self.phase.steps);
        (request.place, request.table, request.began_ns) = (place, table, self.engine.now_ns());
    }

    /// Advances the simulated time without measuring.
    pub fn warm_up(&mut self, time_ns: u64) {
        self.pass(Limit { time_ns: self.engine.now_ns() + time_ns, operations: u64::MAX });
    }

    /// Measures until enough operations have ended or the time is over.
    pub fn count(&mut self, operations: u64, time_ns: u64) -> RunReport {
        self.latencies = Latencies::default();
        let start_ns = self.engine.now_ns();
        let before: Vec<_> = (0..self.engine.threads()).map(|thread| self.engine.busy_ns(thread)).collect();
        self.counting = true;
        self.pass(Limit { time_ns: start_ns + time_ns, operations });
        self.counting = false;
        let elapsed_ns = (self.engine.now_ns() - start_ns).max(1) as f64;
        let latencies = std::mem::take(&mut self.latencies);
        let operations = latencies.count();
        let mut work_ns = [0.0; KINDS_MAX];
        let mut busy = Vec::new();
        for (thread, before) in before.iter().enumerate() {
            let used = self.engine.busy_ns(thread);
            let used: Vec<f64> = used.iter().zip(before).map(|(now, then)| (now - then) as f64).collect();
            busy.push(used.iter().sum::<f64>() / elapsed_ns);
            for (sum, used) in work_ns.iter_mut().zip(&used) {
                *sum += used / operations.max(1) as f64;
            }
        }
        RunReport { operations, per_s: operations as f64 * 1e9 / elapsed_ns, latencies, busy, work_ns }
    }

    /// Operations in flight plus resting clients. The sum is always the number of clients.
    pub fn clients(&self) -> (usize, usize) {
        (self.requests.len() - self.resting.len(), self.resting.len())
    }

    fn pass(&mut self, limit: Limit) {
        while self.engine.now_ns() < limit.time_ns && self.latencies.count() < limit.operations {
            match self.engine.next_event() {
                Some(Event::Done(thread, task)) => {
                    self.on_done(thread, task);
                    self.engine.go_on(thread);
                }
                Some(Event::Arrived(request)) => self.begin(request),
                Some(Event::Tick) => self.on_look(),
                None => return,
            }
        }
    }

    /// Sends the first or next statement of a client's operation.
    fn begin(&mut self, number: u32) {
        if self.requests[number as usize].place == 0 {
            if !self.is_active(number as usize) {
                self.resting.push(number);
                return;
            }
            self.take_up(number, 0);
        }
        self.enter(From::Network, number);
    }

    fn is_active(&self, number: usize) -> bool {
        let active_recv = (self.layout.recv.len() * self.phase.recv_per_mille).div_ceil(1000).max(1);
        let recv = number % self.layout.recv.len();
        // The client's number among the connections of active recv threads.
        recv < active_recv && number / self.layout.recv.len() * active_recv + recv < self.phase.clients
    }

    /// Begins the current step of a request.
    fn enter(&mut self, from: From, number: u32) {
        let request = &self.requests[number as usize];
        let Some(step) = request.steps.get(request.place).copied() else { return };
        let (thread, kind, service_ns) = match step {
            Step::Receive(service_ns) => (request.recv, 0, service_ns),
            Step::Execute(service_ns) => (request.sql, 1, service_ns),
            Step::Coordinate(service_ns) => (request.tc, 3, service_ns),
            Step::Reply(service_ns) => (request.recv, 5, service_ns),
            Step::Send(service_ns) => (self.sender(request.recv), 6, service_ns),
            Step::Read(parts) => return self.read(number, parts),
            Step::Write(parts) => return self.write(number, parts),
        };
        let service_ns = self.spread(service_ns);
        let task = Task { request: number, step: 0, kind, service_ns, hop_ns: 0 };
        self.engine.submit(from, thread, task);
    }

    fn read(&mut self, number: u32, parts: PartitionWork) {
        let request = &self.requests[number as usize];
        let (own, table) = (request.sql, request.table);
        self.requests[number as usize].waiting = parts.count;
        self.requests[number as usize].parts.clear();
        for part in self.parts(parts) {
            let owner = self.owner(table, part);
            let service_ns = self.spread(parts.service_ns);
            let read = Read { kind: parts.kind, units: parts.units, owner };
            let route = self.routers[own].choose(read, self.layout, &self.engine);
            let parts = &mut self.requests[number as usize].parts;
            parts.push((route, service_ns));
            let step = 1 | (parts.len() as u32) << PART_SHIFT;
            let task = Task { request: number, step, kind: 2, service_ns, hop_ns: 0 };
            self.engine.submit(From::Thread(own), route.thread, task);
        }
    }

    fn write(&mut self, number: u32, parts: PartitionWork) {
        let request = &self.requests[number as usize];
        let (tc, table) = (request.tc, request.table);
        self.requests[number as usize].waiting = parts.count;
        for part in self.parts(parts) {
            let owner = self.layout.ldm[self.owner(table, part)];
            let service_ns = self.spread(parts.service_ns);
            let task = Task { request: number, step: 1, kind: 4, service_ns, hop_ns: 0 };
            self.engine.submit(From::Thread(tc), owner, task);
        }
    }

    /// The thread that writes an answer: recv itself while no task waits there, else the helper with the
    /// shortest queue if that is shorter. This models adaptive sending with queue lengths instead of loads.
    fn sender(&self, recv: usize) -> usize {
        let own = self.engine.queue_length(recv);
        let helpers = if self.layout.send.is_empty() { &self.helper[..] } else { &self.layout.send[..] };
        let least = helpers.iter().copied().min_by_key(|thread| self.engine.queue_length(*thread));
        match least {
            Some(thread) if own > 0 && self.engine.queue_length(thread) < own => thread,
            _ => recv,
        }
    }

    /// The partitions of the parts, from a random one.
    fn parts(&mut self, parts: PartitionWork) -> Vec<usize> {
        let first = if self.phase.hot_partition { 0 } else { self.random.below(TABLE_PARTITIONS as u64) as usize };
        let place = |part| if self.phase.hot_partition { 0 } else { (first + part) % TABLE_PARTITIONS };
        (0..parts.count).map(place).collect()
    }

    /// The ldm instance that owns a partition. Partitions are assigned in turn.
    fn owner(&self, table: usize, partition: usize) -> usize {
        (table * TABLE_PARTITIONS + partition) % self.layout.ldm.len()
    }

    fn on_done(&mut self, thread: usize, task: Task) {
        let number = task.request as usize;
        match task.step & 0xffff {
            // A step that has no parts.
            0 => {
                let request = &mut self.requests[number];
                let is_send = matches!(request.steps.get(request.place), Some(Step::Send(_)));
                request.place += 1;
                if is_send { self.on_sent(task.request) } else { self.enter(From::Thread(thread), task.request) }
            }
            // A part. Its answer returns to the thread that sent it.
            1 => {
                let is_read = task.kind == 2;
                let home = if is_read { self.requests[number].sql } else { self.requests[number].tc };
                let answer = Task { step: task.step + 1, service_ns: 0, kind: 1, ..task };
                if home == thread {
                    self.on_answer(thread, answer)
                } else {
                    self.engine.submit(From::Thread(thread), home, answer)
                }
            }
            _ => self.on_answer(thread, task),
        }
    }

    fn on_answer(&mut self, thread: usize, task: Task) {
        let request = &mut self.requests[task.request as usize];
        if let Some(place) = (task.step >> PART_SHIFT).checked_sub(1)
            && let Some((route, service_ns)) = request.parts.get(place as usize).copied()
        {
            let router = &mut self.routers[request.sql];
            router.release(route.booked_cost);
            if let Some(sample) = route.sample {
                router.observe(sample, service_ns, self.engine.now_ns());
            }
        }
        request.waiting -= 1;
        if request.waiting == 0 {
            request.place += 1;
            self.enter(From::Thread(thread), task.request);
        }
    }

    /// Handles the answer to a statement: the client sends the next one, or its operation has ended.
    fn on_sent(&mut self, number: u32) {
        let request = &mut self.requests[number as usize];
        if request.place >= request.steps.len() {
            request.place = 0;
            if self.counting {
                self.latencies.add(self.engine.now_ns() - request.began_ns + NETWORK_NS);
            }
        }
        self.engine.delay(number, NETWORK_NS);
    }

    fn on_look(&mut self) {
        self.looks += 1;
        self.engine.tick_after(self.options.look_ns);
        let mut looks = Vec::with_capacity(self.looked.len());
        for (thread, looked) in self.looked.iter_mut().enumerate() {
            let busy = self.engine.busy_ns(thread).iter().sum::<u64>();
            let done = self.engine.done(thread);
            let [busy_before, done_before] = std::mem::replace(looked, [busy, done]);
            let used = busy - busy_before;
            let moment_per_mille = (used * 1000 / self.options.look_ns).min(1000) as u32;
            let lately = &mut self.lately_per_mille[thread];
            *lately = (*lately * 19 + moment_per_mille) / 20;
            // As in a node: the mean of the load over 50 ms and over a second.
            let busy_per_mille = u32::midpoint(moment_per_mille, *lately);
            looks.push(Look { busy_per_mille, task_ns: used.checked_div(done - done_before).unwrap_or(0) });
        }
        let io = |thread: &usize| self.layout.roles[*thread] == "io";
        let least = (0..looks.len()).filter(|thread| !io(thread)).min_by_key(|thread| looks[*thread].busy_per_mille);
        self.helper = [least.unwrap_or(0)];
        if self.looks.is_multiple_of(2) && matches!(self.options.rule, ReadRule::Adaptive | ReadRule::Weights) {
            for sql in &self.layout.sql {
                self.routers[*sql].look(self.layout, &looks, 2 * self.options.look_ns);
            }
        }
    }

    /// A random value from half to one and a half times the demand.
    fn spread(&mut self, service_ns: u64) -> u64 {
        service_ns / 2 + self.random.below(service_ns + 1)
    }
}

struct Limit {
    time_ns: u64,
    operations: u64,
}
