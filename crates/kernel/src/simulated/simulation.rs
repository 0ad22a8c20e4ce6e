//! The seeded scheduler: a queue of timed events. The seed decides how long everything takes.
//!
//! A thread's turn is two events: the thread runs at one time, and its output is published when its service
//! time is over. Signals between threads keep their order for each pair, priority and class, because the
//! rings are the real ones. Signals between nodes keep their order for each pair of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::Address;
use crate::address::NodeId;
use crate::block::{Host, Signal};
use crate::context::{Duration, Time};
use crate::crash_point::{ArmedCrash, CrashPoint, CrashWatch};
use crate::directory::{Directory, LayoutError, NodeLayout, ThreadAssignment};
use crate::envelope::Envelope;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::random::{Random, mix};
use crate::scheduler::load::{LoadBoard, ThreadState};
use crate::scheduler::run::{Engine, connect_threads};
use crate::turn_clock::TurnClock;
use crate::world::WorldEvent;

use super::file::{Disk, DiskCrash, DiskFaults, DiskOperation, FileOptions, VirtualFiles};
use super::link::{InTransit, SimulatedLink};
use super::network::{LinkRequests, Network, Packet};
use super::node::{NodeEnd, NodeWorld, SimulatedNode, SimulatedThread};
use super::socket::{SocketConditions, SocketFaults, VirtualSockets};

/// How soon a thread that waits for space checks again.
const BLOCKED_PAUSE: Duration = Duration::from_micros(100);

/// Maximum number of socket events that a thread takes in one turn.
const INPUTS_MAX: usize = 16;

/// How a simulation behaves.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// Decides everything that neither the blocks nor the caller decides.
    pub seed: u64,
    /// The kernel's maxima, for every node.
    pub limits: KernelLimits,
    /// Maximum service time of one signal, in nanoseconds.
    pub service_ns_max: u64,
    /// Maximum time until a thread notices input, in nanoseconds.
    pub wake_ns_max: u64,
    /// Maximum latency of a signal to another node, in nanoseconds.
    pub link_ns_max: u64,
    /// Maximum duration of a file request, in nanoseconds.
    pub file_ns_max: u64,
    /// Whether files can bypass the operating system's cache, as on most file systems.
    pub has_direct_files: bool,
    /// Faults of sockets.
    pub sockets: SocketFaults,
    /// The wall clock at the start, in microseconds since 1970-01-01.
    pub wall_clock_us: u64,
}

impl SimulationOptions {
    /// The default behaviour under a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            limits: KernelLimits { trace_entries: 256, ..KernelLimits::default() },
            service_ns_max: 2_000,
            wake_ns_max: 50_000,
            link_ns_max: 200_000,
            file_ns_max: 2_000_000,
            has_direct_files: true,
            sockets: SocketFaults::default(),
            wall_clock_us: 1_700_000_000_000_000,
        }
    }
}

/// The client's end of a virtual connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientSocket {
    /// The node at the other end.
    pub node: NodeId,
    position: usize,
}

pub(super) enum ScheduledEvent<S> {
    /// A thread runs a turn.
    Run { life: u32, node: usize, thread: usize },
    /// The output of a turn is published.
    Flush { life: u32, node: usize, thread: usize },
    /// A signal arrives from another node.
    Arrive { life: u32, node: usize, arrival: Arrival<S> },
    /// Bytes of a link arrive.
    Packet(Packet),
    /// A file request completes.
    CompleteFile { life: u32, node: usize, request: u64 },
}

/// A signal from another node.
pub(super) struct Arrival<S> {
    /// The receiving thread and the sending node.
    thread: usize,
    from: u8,
    signal: InTransit<S>,
}

/// Any number of nodes in one thread, deterministic.
pub struct Simulation<S: Signal, H: Host<S>> {
    options: SimulationOptions,
    random: Random,
    now: Time,
    queue: BTreeMap<(Time, u64), ScheduledEvent<S>>,
    scheduled: u64,
    pub(super) nodes: Vec<SimulatedNode<S, H>>,
    /// The network between linked nodes.
    pub(super) network: Option<Network<S>>,
    make_host: Box<dyn FnMut(ThreadAssignment) -> H>,
    /// The link from each node to each other node that it has sent to.
    links: BTreeMap<(u8, u8), SimulatedLink<S>>,
    digest: u64,
    handled: u64,
    crashes: Vec<(NodeId, CrashPoint)>,
    disk_crashes: Vec<(NodeId, DiskOperation)>,
    halts: Vec<(NodeId, Box<str>)>,
}

impl<S: Signal, H: Host<S>> Simulation<S, H> {
    /// A simulation without nodes. `make_host` creates the blocks of every thread, also after a restart.
    pub fn new(options: SimulationOptions, make_host: impl FnMut(ThreadAssignment) -> H + 'static) -> Self {
        crate::invariant::panic_on_failure();
        Self {
            random: Random::new(options.seed),
            options,
            now: Time(0),
            queue: BTreeMap::new(),
            scheduled: 0,
            nodes: Vec::new(),
            network: None,
            make_host: Box::new(make_host),
            links: BTreeMap::new(),
            digest: 0,
            handled: 0,
            crashes: Vec::new(),
            disk_crashes: Vec::new(),
            halts: Vec::new(),
        }
    }

    /// Starts a node. Nodes are numbered from 1 in the order of these calls.
    pub fn add_node(&mut self, layout: &NodeLayout) -> Result<NodeId, LayoutError> {
        let node = NodeId(self.nodes.len() as u8 + 1);
        let directory = Arc::new(Directory::new(node, layout)?);
        let file_options = FileOptions {
            request_ns_max: self.options.file_ns_max,
            requests_max: self.options.limits.file_requests_max as usize,
            has_direct_files: self.options.has_direct_files,
        };
        let world = NodeWorld {
            directory: directory.clone(),
            limits: self.options.limits.clone(),
            sockets: VirtualSockets::new(directory.instances(ModuleId::SOCKETS)),
            files: VirtualFiles::new(mix(self.options.seed ^ u64::from(node.0)), file_options),
            now: self.now,
            stop_requested: false,
            are_links_over: false,
            halted: None,
        };
        let layout = layout.clone();
        self.nodes.push(SimulatedNode {
            layout,
            directory,
            threads: Vec::new(),
            world,
            started: self.now,
            life: 0,
            incarnation: 0,
            crash_watch: Arc::new(CrashWatch::default()),
            armed_end: NodeEnd::Power,
            paused_until: Time(0),
        });
        self.start_threads(self.nodes.len() - 1);
        Ok(node)
    }

    /// Ends a node abruptly: blocks, signals and sockets are lost, and files keep what `end` leaves of them.
    /// Bytes that a client's machine had received stay readable. A node that is down can only lose power.
    pub fn crash(&mut self, node: NodeId, end: NodeEnd) {
        let position = usize::from(node.0).wrapping_sub(1);
        if self.is_up(node) {
            self.crash_links(position, end);
            self.lose_in_flight(node);
        }
        let Some(node) = self.nodes.get_mut(position) else { return };
        if !node.threads.is_empty() {
            node.threads.clear();
            node.life += 1;
            node.world.sockets.crash();
        } else if end == NodeEnd::Process {
            return;
        }
        match end {
            NodeEnd::Process => node.world.files.end_process(self.now),
            NodeEnd::Power => node.world.files.lose_power(self.now),
        }
    }

    /// Loses the last signals on the way from a node that crashes, of each link as many as are drawn.
    fn lose_in_flight(&mut self, from: NodeId) {
        let mut in_flight: BTreeMap<usize, Vec<(Time, u64)>> = BTreeMap::new();
        for (key, scheduled) in &self.queue {
            if let ScheduledEvent::Arrive { node, arrival, .. } = scheduled
                && arrival.from == from.0
            {
                in_flight.entry(*node).or_default().push(*key);
            }
        }
        // A source of its own: the crashes of all nodes together leave the draws of later lives as they are.
        let mut random = Random::new(self.digest ^ self.now.0);
        for keys in in_flight.into_values() {
            let kept = random.below(keys.len() as u64 + 1) as usize;
            keys[kept..].iter().for_each(|key| _ = self.queue.remove(key));
        }
    }

    /// Whether a node runs.
    pub fn is_up(&self, node: NodeId) -> bool {
        let node = self.nodes.get(usize::from(node.0).wrapping_sub(1));
        node.is_some_and(|node| !node.threads.is_empty())
    }

    /// Makes a node end as `end` says at the armed hit of a crash point. Replaces the hit that was armed
    /// before; `None` disarms.
    pub fn arm_crash(&mut self, node: NodeId, armed: Option<ArmedCrash>, end: NodeEnd) {
        if let Some(node) = self.nodes.get_mut(usize::from(node.0).wrapping_sub(1)) {
            node.crash_watch.arm(armed);
            node.armed_end = end;
        }
    }

    /// Makes a node end in the middle of an operation of its disk. Replaces what was armed; `None` disarms.
    pub fn arm_disk_crash(&mut self, node: NodeId, armed: Option<DiskCrash>) {
        if let Some(node) = self.nodes.get_mut(usize::from(node.0).wrapping_sub(1)) {
            node.world.files.arm_crash(armed);
        }
    }

    /// Removes the crashes in the middle of disk operations since the last call, in order.
    pub fn take_disk_crashes(&mut self) -> Vec<(NodeId, DiskOperation)> {
        std::mem::take(&mut self.disk_crashes)
    }

    /// How many operations of a kind a node's disk has carried out, over all runs of the node.
    pub fn disk_operations(&self, node: NodeId, operation: DiskOperation) -> u64 {
        let node = self.nodes.get(usize::from(node.0).wrapping_sub(1));
        node.map_or(0, |node| node.world.files.operations(operation))
    }

    /// The hits of each crash point that a node hit, over all its runs.
    pub fn crash_point_hits(&self, node: NodeId) -> BTreeMap<CrashPoint, u64> {
        let node = self.nodes.get(usize::from(node.0).wrapping_sub(1));
        node.map(|node| node.crash_watch.hits()).unwrap_or_default()
    }

    /// Removes the crashes at crash points since the last call, in order.
    pub fn take_crashes(&mut self) -> Vec<(NodeId, CrashPoint)> {
        std::mem::take(&mut self.crashes)
    }

    /// Removes the halts since the last call: nodes that a block stopped at once, and why.
    pub fn take_halts(&mut self) -> Vec<(NodeId, Box<str>)> {
        std::mem::take(&mut self.halts)
    }

    /// Whether a running node has nothing to do: no signal and no file request is under way. Timers do not
    /// count.
    pub fn is_idle(&mut self, node: NodeId) -> bool {
        let node = self.nodes.get_mut(usize::from(node.0).wrapping_sub(1));
        let Some(node) = node.filter(|node| !node.threads.is_empty()) else { return false };
        node.world.files.is_idle() && node.threads.iter_mut().all(|thread| !thread.is_busy && thread.engine.is_quiet())
    }

    /// Starts a node after its end, with the files that survived. Does nothing if the node runs.
    pub fn restart(&mut self, node: NodeId) {
        let position = usize::from(node.0).wrapping_sub(1);
        if self.nodes.get(position).is_some_and(|node| node.threads.is_empty()) {
            self.start_threads(position);
        }
    }

    /// Stops the process of a running node for a while, as by SIGSTOP and SIGCONT. What arrives meanwhile
    /// waits.
    pub fn pause(&mut self, node: NodeId, duration: Duration) {
        if let Some(node) = self.nodes.get_mut(usize::from(node.0).wrapping_sub(1)) {
            node.paused_until = self.now.plus(duration);
        }
    }

    /// Asks the blocks of a node to finish their work.
    pub fn request_stop(&mut self, node: NodeId) {
        let position = usize::from(node.0).wrapping_sub(1);
        for thread in 0..self.nodes.get(position).map_or(0, |node| node.threads.len()) {
            let node = &mut self.nodes[position];
            let engine = &mut node.threads[thread].engine;
            for (module, instance) in engine.assignment().modules.clone() {
                let to = node.directory.address(module, instance);
                engine.with_services(|services| services.events.push((to, WorldEvent::Stopping)));
            }
            self.schedule_run(position, thread, self.now);
        }
    }

    /// Delivers a signal to a block of a running node, as if the block had sent it to itself.
    pub fn deliver(&mut self, to: Address, signal: S) {
        let position = usize::from(to.node.0).wrapping_sub(1);
        let Some(node) = self.nodes.get_mut(position) else { return };
        let Some(thread) = node.directory.thread_of(to.module, to.instance).map(usize::from) else { return };
        if let Some(thread) = node.threads.get_mut(thread) {
            thread.engine.receive(Envelope { to, from: to, signal });
        }
        if !node.threads.is_empty() {
            self.schedule_run(position, thread, self.now);
        }
    }

    /// Virtual time since the simulation began.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A hash over every signal delivered so far: time, thread, addresses and number.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Number of signals delivered so far.
    pub fn signals(&self) -> u64 {
        self.handled
    }

    /// The blocks of a thread, for inspection; `None` if the node is down.
    pub fn host_mut(&mut self, node: NodeId, thread: u16) -> Option<&mut H> {
        let node = self.nodes.get_mut(usize::from(node.0).wrapping_sub(1))?;
        Some(node.threads.get_mut(usize::from(thread))?.engine.host_mut())
    }

    /// The content of a node's file as its processes see it; `None` if the file does not exist.
    pub fn file(&self, node: NodeId, path: &str) -> Option<&[u8]> {
        self.disk(node)?.content(path)
    }

    /// The disk of a node, as its processes see it. A copy of a stopped node's disk is an image that
    /// [`Simulation::disk_mut`] can put into this or another node.
    pub fn disk(&self, node: NodeId) -> Option<&Disk> {
        Some(&self.nodes.get(usize::from(node.0).wrapping_sub(1))?.world.files.disk)
    }

    /// The disk of a node, for damaging or replacing it. Replace it only while the node is down.
    pub fn disk_mut(&mut self, node: NodeId) -> Option<&mut Disk> {
        Some(&mut self.nodes.get_mut(usize::from(node.0).wrapping_sub(1))?.world.files.disk)
    }

    /// Replaces the faults of a node's disk, also while the node is down. Their counts start at 0.
    pub fn set_disk_faults(&mut self, node: NodeId, faults: DiskFaults) {
        if let Some(node) = self.nodes.get_mut(usize::from(node.0).wrapping_sub(1)) {
            node.world.files.set_faults(faults);
        }
    }

    /// Changes the faults of sockets.
    pub fn set_socket_faults(&mut self, faults: SocketFaults) {
        self.options.sockets = faults;
    }

    /// Processes the next event. False if none is left.
    pub fn step(&mut self) -> bool {
        let Some(((time, _), scheduled)) = self.queue.pop_first() else { return false };
        self.now = self.now.max(time);
        let Some(scheduled) = self.put_off(time, scheduled) else { return true };
        match scheduled {
            ScheduledEvent::Run { life, node, thread } => {
                if self.is_same_life(life, node) && self.nodes[node].threads[thread].next_run == Some(time) {
                    self.nodes[node].threads[thread].next_run = None;
                    self.run_thread(node, thread);
                }
            }
            ScheduledEvent::Flush { life, node, thread } => {
                if self.is_same_life(life, node) {
                    self.flush_thread(node, thread);
                }
            }
            ScheduledEvent::Arrive { life, node, arrival } => {
                if self.is_same_life(life, node) {
                    self.arrive(node, arrival);
                }
            }
            ScheduledEvent::Packet(packet) => self.arrive_packet(packet),
            ScheduledEvent::CompleteFile { life, node, request } => {
                if self.is_same_life(life, node) {
                    self.complete_file_request(node, request);
                }
            }
        }
        true
    }

    /// Puts off what happens at a node whose process is stopped. Returns the event if it happens now.
    fn put_off(&mut self, time: Time, scheduled: ScheduledEvent<S>) -> Option<ScheduledEvent<S>> {
        let (life, position) = match scheduled {
            ScheduledEvent::Run { life, node, .. }
            | ScheduledEvent::Flush { life, node, .. }
            | ScheduledEvent::Arrive { life, node, .. }
            | ScheduledEvent::CompleteFile { life, node, .. } => (life, node),
            ScheduledEvent::Packet(_) => return Some(scheduled),
        };
        let until = self.nodes[position].paused_until;
        if until <= time || !self.is_same_life(life, position) {
            return Some(scheduled);
        }
        if let ScheduledEvent::Run { thread, .. } = scheduled {
            let next_run = &mut self.nodes[position].threads[thread].next_run;
            if *next_run != Some(time) {
                return None;
            }
            *next_run = Some(until);
        }
        self.schedule(until, scheduled);
        None
    }

    /// Processes events until `duration` of virtual time has passed.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        while self.queue.first_key_value().is_some_and(|(&(time, _), _)| time <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Processes events until the condition holds. False if it does not within `longest` of virtual time.
    pub fn run_until(&mut self, longest: Duration, mut condition: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now.plus(longest);
        loop {
            if condition(self) {
                return true;
            }
            if self.now > end || !self.step() {
                return condition(self);
            }
        }
    }

    fn is_same_life(&self, life: u32, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.life == life && !node.threads.is_empty())
    }

    fn start_threads(&mut self, position: usize) {
        let node = &mut self.nodes[position];
        node.started = self.now;
        node.life += 1;
        node.incarnation += 1;
        (node.world.stop_requested, node.world.are_links_over) = (false, false);
        node.paused_until = Time(0);
        let threads = node.layout.threads.len();
        let loads = Arc::new(LoadBoard::new(threads));
        let stall_after = Duration(self.options.limits.stall_ns);
        let links = self
            .network
            .as_ref()
            .map(|network| network.links_of(node.directory.node(), node.incarnation, &node.directory, stall_after));
        for (index, rings) in connect_threads::<S>(threads, &self.options.limits).into_iter().enumerate() {
            let layout = &node.layout.threads[index];
            let assignment = ThreadAssignment {
                node: node.directory.node(),
                thread: index as u16,
                name: format!("{}:{}", node.directory.node().0, layout.name),
                modules: layout.modules.clone(),
                directory: node.directory.clone(),
                loads: loads.clone(),
                seed: self.random.word(),
            };
            let turn_clock = TurnClock::simulated(assignment.seed);
            let host = (self.make_host)(assignment.clone());
            let mut engine = Engine::new(assignment, host, rings, &self.options.limits, (Time(0), turn_clock));
            engine.keep_digest();
            engine.watch_crash_points(node.crash_watch.clone());
            if let Some((setup, make_links)) = &links {
                let own = make_links(setup.clone(), index as u16, Time(0));
                engine.set_links(own, setup.routes.clone(), setup.board.clone());
            }
            node.threads.push(SimulatedThread { engine, is_busy: false, next_run: None, link_input: Vec::new() });
        }
        for thread in 0..threads {
            let delay = self.random.below(self.options.wake_ns_max + 1);
            self.schedule_run(position, thread, self.now.plus(Duration(delay)));
        }
    }

    /// The seed of the simulation.
    pub(super) fn seed(&self) -> u64 {
        self.options.seed
    }

    /// A random latency between two nodes, in nanoseconds.
    pub(super) fn link_delay(&mut self) -> u64 {
        self.random.below(self.options.link_ns_max.max(1))
    }

    pub(super) fn schedule(&mut self, time: Time, scheduled: ScheduledEvent<S>) {
        self.scheduled += 1;
        self.queue.insert((time, self.scheduled), scheduled);
    }

    /// Schedules a turn at `time`, unless the thread runs earlier anyway or is busy; a busy thread checks by
    /// itself afterwards.
    pub(super) fn schedule_run(&mut self, node: usize, thread: usize, time: Time) {
        let life = self.nodes[node].life;
        let state = &mut self.nodes[node].threads[thread];
        if state.is_busy || state.next_run.is_some_and(|next| next <= time) {
            return;
        }
        state.next_run = Some(time);
        self.schedule(time, ScheduledEvent::Run { life, node, thread });
    }

    fn run_thread(&mut self, position: usize, thread: usize) {
        let node = &mut self.nodes[position];
        let local_now = Time(self.now.since(node.started).0);
        let wall_clock_us = self.options.wall_clock_us + self.now.0 / 1_000;
        let engine = &mut node.threads[thread].engine;
        engine.load.enter(ThreadState::Executing, local_now);
        // A random quota and a random first ring vary how signals of different threads interleave.
        engine.set_quota(1 + self.random.below(u64::from(self.options.limits.quota.max(1))));
        engine.run(local_now, wall_clock_us, self.random.below(256) as usize);
        if let Some(instance) = node.directory.instance_on(ModuleId::SOCKETS, thread as u16) {
            let own = node.directory.address(ModuleId::SOCKETS, instance);
            for connection in node.world.sockets.with_input(instance).into_iter().take(INPUTS_MAX) {
                if !engine.begin_input() {
                    break;
                }
                let (limits, faults) = (&self.options.limits, &self.options.sockets);
                let (sockets, random) = (&mut node.world.sockets, &mut self.random);
                let conditions = SocketConditions { limits, faults, random };
                engine.with_services(|services| sockets.take_input(connection, conditions, services, own));
                engine.run_local();
            }
        }
        let mut link_input = std::mem::take(&mut node.threads[thread].link_input);
        if node.world.are_links_over {
            link_input.clear();
        }
        let engine = &mut node.threads[thread].engine;
        for input in link_input.drain(..) {
            engine.receive_from_node(input.as_input(), local_now);
        }
        if engine.owns_links() {
            engine.want_link_work();
        }
        let handled = engine.end_handling();
        self.digest = mix(self.digest ^ engine.take_digest());
        self.handled += handled;
        if let Some(point) = engine.take_crash() {
            return self.crash_in_turn(position, thread, point);
        }
        node.threads[thread].is_busy = true;
        // The turn's output stays invisible until its service time has passed.
        let service = (0..handled).map(|_| 100 + self.random.below(self.options.service_ns_max.max(1))).sum::<u64>();
        let life = node.life;
        self.schedule(self.now.plus(Duration(service + 1)), ScheduledEvent::Flush { life, node: position, thread });
    }

    /// Ends a node at the armed hit of a crash point. The requests that the thread made before the hit were
    /// either all carried out or not at all.
    fn crash_in_turn(&mut self, position: usize, thread: usize, point: CrashPoint) {
        if self.random.one_in(2) {
            self.carry_out(position, thread);
        }
        let (node, end) = (NodeId(position as u8 + 1), self.nodes[position].armed_end);
        self.digest = mix(self.digest ^ u64::from(point.number()));
        self.crashes.push((node, point));
        self.crash(node, end);
    }

    /// Carries out a thread's requests to the world, and writes to its sockets.
    fn carry_out(&mut self, position: usize, thread: usize) {
        let node = &mut self.nodes[position];
        node.world.now = self.now;
        let engine = &mut node.threads[thread].engine;
        engine.carry_out(&mut node.world);
        for instance in node.world.sockets.written_by(&node.layout.threads[thread].modules) {
            let own = node.directory.address(ModuleId::SOCKETS, instance);
            let (limits, faults) = (&self.options.limits, &self.options.sockets);
            let (sockets, random) = (&mut node.world.sockets, &mut self.random);
            let conditions = SocketConditions { limits, faults, random };
            engine.with_services(|services| sockets.write_output(instance, conditions, own, services));
        }
    }

    fn flush_thread(&mut self, position: usize, thread: usize) {
        self.carry_out(position, thread);
        if let Some(message) = self.nodes[position].world.halted.take() {
            let node = NodeId(position as u8 + 1);
            self.halts.push((node, message));
            return self.crash(node, NodeEnd::Process);
        }
        let node = &mut self.nodes[position];
        let local_now = Time(self.now.since(node.started).0);
        let mut requests = LinkRequests::default();
        let SimulatedThread { engine, is_busy, .. } = &mut node.threads[thread];
        *is_busy = false;
        if engine.has_link_work()
            && let Some(network) = &mut self.network
        {
            engine.work_links(local_now, &mut network.sockets(&mut requests));
        }
        let instances = node.world.sockets.written_by(&node.layout.threads[thread].modules);
        let ended: Vec<u16> = instances.filter(|&instance| node.world.sockets.has_ended(instance)).collect();
        let mut published = Vec::new();
        let moved = engine.flush(|target, _| published.push(usize::from(target)));
        engine.load.enter(ThreadState::Sleeping, local_now);
        engine.report_turn_end(local_now);
        let remote: Vec<Envelope<S>> = engine.remote().drain(..).collect();
        let stop_requested = std::mem::take(&mut node.world.stop_requested);
        let life = node.life;
        for (time, request) in node.world.files.take_scheduled() {
            self.scheduled += 1;
            let scheduled = ScheduledEvent::CompleteFile { life, node: position, request };
            self.queue.insert((time, self.scheduled), scheduled);
        }
        let owners = ended.into_iter().filter_map(|instance| node.directory.thread_of(ModuleId::SOCKETS, instance));
        published.extend(owners.map(usize::from).filter(|&owner| owner != thread));
        for target in published {
            let delay = self.random.below(self.options.wake_ns_max + 1);
            self.schedule_run(position, target, self.now.plus(Duration(delay)));
        }
        for envelope in remote {
            self.send_to_node((position, thread), envelope);
        }
        self.carry_out_wishes(position, thread, requests);
        self.schedule_next(position, thread, moved);
        if stop_requested {
            self.request_stop(NodeId(position as u8 + 1));
        }
    }

    fn complete_file_request(&mut self, position: usize, request: u64) {
        let node = &mut self.nodes[position];
        if let Some(DiskCrash { operation, end, .. }) = node.world.files.begin_completion(request) {
            let node = NodeId(position as u8 + 1);
            self.digest = mix(self.digest ^ operation as u64);
            self.disk_crashes.push((node, operation));
            return self.crash(node, end);
        }
        let Some((to, event)) = node.world.files.complete(request) else { return };
        let Some(thread) = node.directory.thread_of(to.module, to.instance).map(usize::from) else { return };
        node.threads[thread].engine.with_services(|services| services.events.push((to, event)));
        self.schedule_run(position, thread, self.now);
    }

    /// Schedules the next check of a thread that has just ended a turn.
    fn schedule_next(&mut self, position: usize, thread: usize, moved: bool) {
        let node = &mut self.nodes[position];
        let engine = &mut node.threads[thread].engine;
        let started = node.started;
        let mut times = Vec::new();
        if moved || engine.has_local_work() || engine.has_mail() {
            times.push(self.now);
        }
        let has_input = node
            .directory
            .instance_on(ModuleId::SOCKETS, thread as u16)
            .is_some_and(|instance| !node.world.sockets.with_input(instance).is_empty());
        let sockets = &node.world.sockets;
        let window = self.options.sockets.client_window_bytes;
        let mut written = sockets.written_by(&node.layout.threads[thread].modules);
        if written.any(|instance| sockets.has_output(instance, window)) {
            times.push(self.now.plus(Duration(1)));
        }
        if engine.is_blocked() || has_input {
            let pause = if engine.accepts_work() { Duration(1) } else { BLOCKED_PAUSE };
            times.push(self.now.plus(pause));
        }
        if !node.threads[thread].link_input.is_empty() {
            times.push(self.now);
        }
        let engine = &mut node.threads[thread].engine;
        if engine.owns_links() {
            times.push(started.plus(Duration(engine.links_due().0)).max(self.now.plus(Duration(1))));
        }
        if let Some(due) = engine.next_timer() {
            times.push(started.plus(Duration(due.0)).max(self.now));
        }
        if let Some(&time) = times.iter().min() {
            self.schedule_run(position, thread, time);
        }
    }

    /// Sends a signal of a thread, given by node and index, to another node.
    fn send_to_node(&mut self, (sender, thread): (usize, usize), envelope: Envelope<S>) {
        let (from, to) = (envelope.from.node.0, envelope.to.node.0);
        let Some(node) = usize::from(to).checked_sub(1).filter(|&node| node < self.nodes.len()) else { return };
        let delay = Duration(1 + self.random.below(self.options.link_ns_max.max(1)));
        let directory = &self.nodes[node].directory;
        let Some(receiver) = directory.thread_of(envelope.to.module, envelope.to.instance) else { return };
        let life = self.nodes[node].life;
        let lives = (self.nodes[sender].life, life);
        let link = self.links.entry((from, to)).or_insert_with(SimulatedLink::new);
        // Links keep their order, as TCP does.
        link.arrival = link.arrival.max(self.now.plus(delay));
        let time = link.arrival;
        let signal = link.send(envelope, lives, &mut self.nodes[sender].threads[thread].engine.buffers);
        let arrival = Arrival { thread: receiver.into(), from, signal };
        self.schedule(time, ScheduledEvent::Arrive { life, node, arrival });
    }

    fn arrive(&mut self, position: usize, Arrival { thread, from, signal }: Arrival<S>) {
        let engine = &mut self.nodes[position].threads[thread].engine;
        let link = self.links.get_mut(&(from, position as u8 + 1));
        let Some(envelope) = link.and_then(|link| link.receive(signal, &mut engine.buffers)) else { return };
        engine.receive(envelope);
        self.schedule_run(position, thread, self.now);
    }
}

impl<S: Signal, H: Host<S>> Simulation<S, H> {
    /// Connects to a node. The connection is open immediately, like one in a listen queue. Fails if the node
    /// is down or no thread owns sockets.
    pub fn connect(&mut self, node: NodeId, listener: u16) -> Option<ClientSocket> {
        let index = usize::from(node.0).wrapping_sub(1);
        let state = self.nodes.get_mut(index).filter(|node| !node.threads.is_empty())?;
        let (position, owner) = state.world.sockets.connect(listener)?;
        self.notify_owner(node, Some(owner));
        Some(ClientSocket { node, position })
    }

    /// Writes bytes, which the server reads in pieces. False if the connection is closed.
    pub fn write(&mut self, socket: ClientSocket, bytes: &[u8]) -> bool {
        let owner = self.sockets(socket.node).and_then(|sockets| sockets.client_write(socket.position, bytes));
        self.notify_owner(socket.node, owner);
        owner.is_some()
    }

    /// Takes everything that has arrived.
    pub fn read(&mut self, socket: ClientSocket) -> Vec<u8> {
        let read = self.sockets(socket.node).map(|sockets| sockets.client_read(socket.position));
        let (bytes, owner) = read.unwrap_or_default();
        if !bytes.is_empty() {
            self.notify_owner(socket.node, owner);
        }
        bytes
    }

    /// Whether neither side has closed the connection.
    pub fn is_open(&mut self, socket: ClientSocket) -> bool {
        self.sockets(socket.node).is_some_and(|sockets| sockets.is_open(socket.position))
    }

    /// Closes the client's end.
    pub fn close(&mut self, socket: ClientSocket) {
        let owner = self.sockets(socket.node).and_then(|sockets| sockets.client_close(socket.position));
        self.notify_owner(socket.node, owner);
    }

    fn sockets(&mut self, node: NodeId) -> Option<&mut VirtualSockets> {
        self.nodes.get_mut(usize::from(node.0).wrapping_sub(1)).map(|node| &mut node.world.sockets)
    }

    /// Schedules the owner of a socket after something happened to the socket.
    fn notify_owner(&mut self, node: NodeId, owner: Option<u16>) {
        let position = usize::from(node.0).wrapping_sub(1);
        let Some(owner) = owner else { return };
        let Some(node) = self.nodes.get(position).filter(|node| !node.threads.is_empty()) else { return };
        if let Some(thread) = node.directory.thread_of(ModuleId::SOCKETS, owner) {
            let delay = self.random.below(self.options.wake_ns_max + 1);
            self.schedule_run(position, usize::from(thread), self.now.plus(Duration(delay)));
        }
    }
}
