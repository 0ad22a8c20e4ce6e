//! A node under load: clients in a closed loop, and requests that move from thread to thread.

use std::rc::Rc;

use junctor_gateway::route::ReadRule;

use super::demand::{Demand, Demands};
use super::engine::{Engine, Event, From, Hops, KINDS_MAX, Task};
use super::layout::Layout;
use super::request::{PartitionWork, Step, TABLE_PARTITIONS, Workload};
use super::router::{LoadSample, Read, Route, Router};
use crate::latency::Latencies;
use crate::random::Random;

/// Network round trip in nanoseconds: a delay without CPU time.
pub const NETWORK_NS: u64 = 40_000;

/// A phase of the load.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The steps of each operation. A client repeats the operation.
    pub steps: Rc<[Step]>,
    /// Number of active clients. The others send nothing.
    pub clients: usize,
    /// Number of tables in use, counted from the first. Using fewer than all creates a hot spot.
    pub tables: usize,
    /// Share of the recv threads whose connections are active, in thousandths, counted from the first.
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
    /// The rule that chooses the thread of a read.
    pub rule: ReadRule,
    /// Nanoseconds between two samples of the loads. Every second sample also renews the prices that routing
    /// puts on the threads, as in a node.
    pub sample_interval_ns: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Number of operations that ended during the measurement.
    pub operations: u64,
    /// Operations per second.
    pub per_s: f64,
    /// Latencies of the operations.
    pub latencies: Latencies,
    /// Utilisation of each thread, from 0 to 1.
    pub busy: Vec<f64>,
    /// Nanoseconds per operation for each kind of work, summed over all threads.
    pub work_ns: [f64; KINDS_MAX],
}

/// Names of the kinds of work, in the order of [`RunReport::work_ns`].
pub const KINDS: [&str; 7] = ["receive", "sql", "read", "tc", "write", "reply", "send"];

struct Request {
    /// The steps of the phase in which the operation began.
    steps: Rc<[Step]>,
    step_index: usize,
    began_ns: u64,
    recv: usize,
    sql: usize,
    tc: usize,
    table: usize,
    /// Number of parts of the current step that have not ended.
    waiting: usize,
    /// For each partition of a read: the chosen thread, and the nanoseconds of work.
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
    samples: u64,
    /// The least busy thread. It may write replies for the recv threads if the placement has no send threads.
    helper: [usize; 1],
    last_totals: Vec<[u64; 2]>,
    /// Utilisation of each thread in thousandths, averaged over about twenty samples.
    average_per_mille: Vec<u32>,
    counting: bool,
    latencies: Latencies,
}

/// First bit of the upper part of [`Task::step`]. For a read, this part is one more than the index in
/// `Request::parts`; otherwise it is zero. The lower part says what the task is, see `on_done`.
const PART_SHIFT: u32 = 16;

impl<'a> Node<'a> {
    /// Creates a node with `clients` connections, all of them inactive, and `tables` tables.
    pub fn new(layout: &'a Layout, demands: &Demands, clients: usize, tables: usize, options: RunOptions) -> Node<'a> {
        let hops = Hops {
            out_ns: demands.ns(Demand::HopOut),
            in_ns: demands.ns(Demand::HopIn),
            wake_ns: demands.ns(Demand::Wake),
            wake_latency_ns: demands.ns(Demand::WakeLatency),
        };
        let of = |list: &[usize], number: usize| list[number % list.len()];
        let same_or_next = |list: &[usize], thread: usize, number: usize| {
            if list.contains(&thread) { thread } else { of(list, number) }
        };
        let request = |number: usize| {
            let recv = of(&layout.recv, number);
            // As in a node: a connection uses the sql instance of its recv thread if the thread has one;
            // otherwise connections use the sql instances in turn. An sql instance chooses its tc instance in
            // the same way.
            let sql = same_or_next(&layout.sql, recv, number);
            let tc = same_or_next(&layout.tc, sql, number);
            Request {
                steps: Rc::new([]),
                step_index: 0,
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
        engine.tick_after(options.sample_interval_ns);
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
            samples: 0,
            helper: [0],
            last_totals: vec![[0; 2]; layout.threads()],
            average_per_mille: vec![0; layout.threads()],
            counting: false,
            latencies: Latencies::default(),
        }
    }

    /// Starts a phase. Clients in the middle of an operation finish that operation first.
    pub fn begin_phase(&mut self, phase: Phase) {
        self.phase = phase;
        let statements: Vec<usize> = (0..self.phase.steps.len())
            .filter(|step_index| matches!(self.phase.steps[*step_index], Step::Receive(_)))
            .collect();
        for number in std::mem::take(&mut self.resting) {
            if self.is_active(number as usize) && !statements.is_empty() {
                // Let clients begin at different statements of an operation. Otherwise they would all stay in
                // step.
                let step_index = statements[self.random.below(statements.len() as u64) as usize];
                self.begin_operation_at(number, step_index);
            }
            let delay_ns = self.random.below(NETWORK_NS);
            self.engine.delay(number, delay_ns);
        }
    }

    /// Starts an operation of the phase for a client, at one of its statements.
    fn begin_operation_at(&mut self, number: u32, step_index: usize) {
        let table = self.random.below(self.phase.tables.min(self.tables).max(1) as u64) as usize;
        let request = &mut self.requests[number as usize];
        request.steps = Rc::clone(&self.phase.steps);
        (request.step_index, request.table, request.began_ns) = (step_index, table, self.engine.now_ns());
    }

    /// Advances the simulated time without measuring.
    pub fn warm_up(&mut self, time_ns: u64) {
        self.run_until(Limit { time_ns: self.engine.now_ns() + time_ns, operations: u64::MAX });
    }

    /// Measures until enough operations have ended, or until the time is over.
    pub fn measure(&mut self, operations: u64, time_ns: u64) -> RunReport {
        self.latencies = Latencies::default();
        let start_ns = self.engine.now_ns();
        let before: Vec<_> = (0..self.engine.threads()).map(|thread| self.engine.busy_ns(thread)).collect();
        self.counting = true;
        self.run_until(Limit { time_ns: start_ns + time_ns, operations });
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

    /// Number of operations in flight, and of inactive clients. The two always add up to the number of
    /// clients.
    pub fn in_flight_and_inactive(&self) -> (usize, usize) {
        (self.requests.len() - self.resting.len(), self.resting.len())
    }

    fn run_until(&mut self, limit: Limit) {
        while self.engine.now_ns() < limit.time_ns && self.latencies.count() < limit.operations {
            match self.engine.next_event() {
                Some(Event::Done(thread, task)) => {
                    self.on_done(thread, task);
                    self.engine.go_on(thread);
                }
                Some(Event::Arrived(request)) => self.begin(request),
                Some(Event::Tick) => self.sample_loads(),
                None => return,
            }
        }
    }

    /// Sends the first or the next statement of a client's operation.
    fn begin(&mut self, number: u32) {
        if self.requests[number as usize].step_index == 0 {
            if !self.is_active(number as usize) {
                self.resting.push(number);
                return;
            }
            self.begin_operation_at(number, 0);
        }
        self.enter(From::Network, number);
    }

    fn is_active(&self, number: usize) -> bool {
        let active_recv = (self.layout.recv.len() * self.phase.recv_per_mille).div_ceil(1000).max(1);
        let recv = number % self.layout.recv.len();
        // Number of this client among the connections of the active recv threads.
        recv < active_recv && number / self.layout.recv.len() * active_recv + recv < self.phase.clients
    }

    /// Starts the current step of a request.
    fn enter(&mut self, from: From, number: u32) {
        let request = &self.requests[number as usize];
        let Some(step) = request.steps.get(request.step_index).copied() else { return };
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

    /// The thread that writes a reply: recv itself while no task waits there; otherwise the thread with the
    /// shortest queue among recv and the helpers. This models adaptive sending, with queue lengths in place
    /// of loads.
    fn sender(&self, recv: usize) -> usize {
        let own = self.engine.queue_length(recv);
        let helpers = if self.layout.send.is_empty() { &self.helper[..] } else { &self.layout.send[..] };
        let least = helpers.iter().copied().min_by_key(|thread| self.engine.queue_length(*thread));
        match least {
            Some(thread) if own > 0 && self.engine.queue_length(thread) < own => thread,
            _ => recv,
        }
    }

    /// The partitions that a read or write touches, starting at a random one.
    fn parts(&mut self, parts: PartitionWork) -> Vec<usize> {
        let first = if self.phase.hot_partition { 0 } else { self.random.below(TABLE_PARTITIONS as u64) as usize };
        let partition = |part| if self.phase.hot_partition { 0 } else { (first + part) % TABLE_PARTITIONS };
        (0..parts.count).map(partition).collect()
    }

    /// The ldm instance that owns a partition. Partitions are assigned to instances in turn.
    fn owner(&self, table: usize, partition: usize) -> usize {
        (table * TABLE_PARTITIONS + partition) % self.layout.ldm.len()
    }

    fn on_done(&mut self, thread: usize, task: Task) {
        let number = task.request as usize;
        match task.step & 0xffff {
            // A step without partitions has ended.
            0 => {
                let request = &mut self.requests[number];
                let is_send = matches!(request.steps.get(request.step_index), Some(Step::Send(_)));
                request.step_index += 1;
                if is_send { self.on_sent(task.request) } else { self.enter(From::Thread(thread), task.request) }
            }
            // The work on one partition has ended. Its reply goes to the thread that requested the work.
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
            // The reply of a partition has arrived.
            _ => self.on_answer(thread, task),
        }
    }

    fn on_answer(&mut self, thread: usize, task: Task) {
        let request = &mut self.requests[task.request as usize];
        if let Some(step_index) = (task.step >> PART_SHIFT).checked_sub(1)
            && let Some((route, service_ns)) = request.parts.get(step_index as usize).copied()
        {
            let router = &mut self.routers[request.sql];
            router.release(route.booked_cost);
            if let Some(sample) = route.sample {
                router.observe(sample, service_ns, self.engine.now_ns());
            }
        }
        request.waiting -= 1;
        if request.waiting == 0 {
            request.step_index += 1;
            self.enter(From::Thread(thread), task.request);
        }
    }

    /// Handles the reply to a statement: the client sends the next statement, or its operation has ended.
    fn on_sent(&mut self, number: u32) {
        let request = &mut self.requests[number as usize];
        if request.step_index >= request.steps.len() {
            request.step_index = 0;
            if self.counting {
                self.latencies.add(self.engine.now_ns() - request.began_ns + NETWORK_NS);
            }
        }
        self.engine.delay(number, NETWORK_NS);
    }

    fn sample_loads(&mut self) {
        self.samples += 1;
        self.engine.tick_after(self.options.sample_interval_ns);
        let mut samples = Vec::with_capacity(self.last_totals.len());
        for (thread, last_totals) in self.last_totals.iter_mut().enumerate() {
            let busy = self.engine.busy_ns(thread).iter().sum::<u64>();
            let done = self.engine.done(thread);
            let [busy_before, done_before] = std::mem::replace(last_totals, [busy, done]);
            let used = busy - busy_before;
            let moment_per_mille = (used * 1000 / self.options.sample_interval_ns).min(1000) as u32;
            let average = &mut self.average_per_mille[thread];
            *average = (*average * 19 + moment_per_mille) / 20;
            // As in a node: the average of the load over 50 ms and the load over a second.
            let busy_per_mille = u32::midpoint(moment_per_mille, *average);
            samples.push(LoadSample { busy_per_mille, task_ns: used.checked_div(done - done_before).unwrap_or(0) });
        }
        let io = |thread: &usize| self.layout.roles[*thread] == "io";
        let least =
            (0..samples.len()).filter(|thread| !io(thread)).min_by_key(|thread| samples[*thread].busy_per_mille);
        self.helper = [least.unwrap_or(0)];
        if self.samples.is_multiple_of(2) && matches!(self.options.rule, ReadRule::Adaptive | ReadRule::Weights) {
            for sql in &self.layout.sql {
                self.routers[*sql].on_load_samples(self.layout, &samples, 2 * self.options.sample_interval_ns);
            }
        }
    }

    /// Varies a demand randomly between half and one and a half times its value.
    fn spread(&mut self, service_ns: u64) -> u64 {
        service_ns / 2 + self.random.below(service_ns + 1)
    }
}

struct Limit {
    time_ns: u64,
    operations: u64,
}
