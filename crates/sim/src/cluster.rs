//! The nodes of a simulation, assembled from the same blocks as a real node. The first node serves clients,
//! the others are backups; with `fails_over`, all nodes serve clients. A restart assembles a node from
//! nothing but its configuration and its files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use junctor_cluster::member::Roles;
use junctor_cluster::membership::Membership;
use junctor_front::account::Accounts;
use junctor_kernel::simulated::{Disk, DiskFaults, NetworkOptions, NodeEnd, Simulation, SocketFaults};
use junctor_kernel::{Address, CrashPoint, Duration, NodeId, NodeLayout, Random};
use junctor_model::id::{CommitNumber, Epoch, Incarnation};
use junctor_node::placement::PlacementPlan;
use junctor_node::{NodeConfig, NodeHost, Shared};
use junctor_signals::change_schema::{Catalog, PublishCatalog};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::read_rows::OperationId;
use junctor_signals::{Module, QuerySignal, Signal, SqlSignal, TcSignal};
use junctor_storage::guard::ReaderSlot;
use junctor_storage::log::SegmentSize;
use junctor_transaction::GuardedPartition;

use crate::backup_program::BackupProgram;
use crate::draw::RunParameters;
use crate::evictions::Evictions;
use crate::fleet::TimeDriver;
use crate::members::Members;
use crate::plan::WorldPlan;
use crate::trouble::flip_bit;

/// Memory of a simulated node for rows and indexes, in bytes. Untouched memory costs nothing.
const MEMORY_BYTES: u64 = 256 << 20;

/// Size of the log's files in bytes, close to the smallest that is allowed, so that runs use several.
const SEGMENT_BYTES: u64 = 2 << 20;

/// Number of channels between two nodes that vote or are voted for.
const CHANNELS: u8 = 2;

/// How long a start of all nodes waits for nodes that could be missing, in milliseconds.
const PARTIAL_START_MS: u32 = 2_000;

/// Maximum number of partitions that the slow reader holds at a time.
const HELD_MAX: u64 = 4;

/// Maximum time by which the slow reader extends a step, in nanoseconds.
const LINGER_NS_MAX: u64 = 400_000;

/// Maximum time that a clean stop may take. A node that is recovering goes on until its data is complete. A
/// request takes the slowest disk a second, and a recovery needs some hundred requests.
const STOP_MAX: Duration = Duration::from_seconds(1_200);

/// The simulation type of a cluster.
pub type ClusterSimulation = Simulation<Signal, NodeHost>;

/// The node that clients connect to: the primary of all partitions.
pub const SERVING: NodeId = NodeId(1);

/// A running cluster.
pub struct Cluster {
    /// The simulated nodes, links and sockets.
    pub simulation: ClusterSimulation,
    config: NodeConfig,
    plans: Vec<PlacementPlan>,
    memory: NodeMemory,
    /// Whether the nodes are members of a cluster.
    is_cluster: bool,
    /// As many nodes form a group.
    replicas: usize,
    /// Whether every node may be evicted, and clients use all nodes.
    fails_over: bool,
    /// The schema that all nodes got.
    catalog: Arc<Catalog>,
    /// How rarely nodes are evicted, and the random source for it.
    evictions: (u64, Random),
    /// For each node, the slow reader's guard slot in each of its read groups.
    slow_reader_slots: Vec<Vec<ReaderSlot>>,
    /// The serving node's disk as it was before one of its bits flipped, and the highest number taken then.
    sound_disk: Option<(Disk, CommitNumber)>,
    /// The backup program beside the serving node, if the plan has one.
    pub(crate) backup_program: Option<Rc<RefCell<BackupProgram>>>,
    /// The hits of the serving node's crash points before its present life.
    pub(crate) earlier_hits: BTreeMap<CrashPoint, u64>,
    /// The highest commit number that the serving node has taken on its present disk.
    highest_taken: CommitNumber,
    /// Number of lives of the nodes.
    lives: u32,
    /// The nodes of a cluster with voters.
    members: Option<Rc<Members>>,
}

/// The memory that the blocks of each node share in its present life, indexed by node.
pub(crate) type NodeMemory = Rc<RefCell<Vec<Arc<Shared>>>>;

impl Cluster {
    /// Starts the nodes that `parameters` describe. No connection breaks until the caller sets socket faults,
    /// so that setup succeeds.
    ///
    /// # Errors
    /// A node cannot be assembled.
    pub fn start(parameters: &RunParameters, is_durable: bool, world: &WorldPlan) -> Result<Self, String> {
        let mut config = NodeConfig {
            total_memory_bytes: Some(MEMORY_BYTES),
            max_connections: 1_000,
            transactions_max: parameters.transactions_max,
            work_query_us_min: 0,
            is_durable,
            log_segment_size: SegmentSize::of_bytes(SEGMENT_BYTES).unwrap_or_default(),
            ..NodeConfig::default()
        };
        // A checkpoint begins as soon as the one before is complete and something has changed.
        config.checkpoints.growth_log2_words = 0;
        let memory = NodeMemory::default();
        let of_nodes = Rc::clone(&memory);
        let make_host = move |seat: junctor_kernel::ThreadAssignment| {
            NodeHost::new(&seat, &of_nodes.borrow()[usize::from(seat.node.0) - 1])
        };
        let mut options = parameters.simulation.clone();
        options.sockets = SocketFaults { reset_one_in: 0, ..options.sockets };
        let mut simulation = Simulation::new(options, make_host);
        let plans: Vec<PlacementPlan> = parameters.nodes.iter().map(|(_, plan)| plan.clone()).collect();
        let members = world.members.as_ref().map(|members| {
            let (nodes, channels) = (plans.len() as u8, CHANNELS);
            simulation.link_nodes(NetworkOptions { channels, nodes, watcher: (Module::Main.into(), 0) });
            let is_client = |(_, roles): &(NodeId, &Roles)| !roles.data && !roles.management;
            let clients = (1..).map(NodeId).zip(&parameters.roles).filter(is_client);
            simulation.leave_unlinked(clients.map(|(node, _)| node));
            config.is_durable = true;
            let durability = if members.loses_groups { CommitDurability::Disk } else { CommitDurability::Memory };
            config.commit_durability = durability;
            config.cluster.partial_start_ms = PARTIAL_START_MS;
            let settings = (&config, &plans[..]);
            Rc::new(Members::new(&parameters.roles, parameters.replicas, settings, Rc::clone(&memory)))
        });
        let mut cluster = Self {
            simulation,
            config,
            plans,
            memory,
            is_cluster: world.is_cluster,
            replicas: parameters.replicas,
            fails_over: world.fails_over,
            catalog: Arc::default(),
            evictions: (world.evict_one_in, Random::new(parameters.restart_seed ^ 0x65_7669_6374)),
            slow_reader_slots: Vec::new(),
            sound_disk: None,
            backup_program: None,
            earlier_hits: BTreeMap::new(),
            highest_taken: CommitNumber(0),
            lives: 0,
            members,
        };
        cluster.make_memory()?;
        // Starting the backups first would be safer in production. Here no time passes between the starts.
        for plan in &cluster.plans {
            cluster.simulation.add_node(&NodeLayout::from(plan)).map_err(|error| error.to_string())?;
        }
        Ok(cluster)
    }

    /// Makes the memory of a new life of every node.
    fn make_memory(&mut self) -> Result<(), String> {
        if let Some(members) = &self.members {
            let nodes = (1..=self.plans.len() as u8).map(NodeId);
            let memory: Result<Vec<_>, String> = nodes.map(|node| members.begin_life(node, None)).collect();
            *self.memory.borrow_mut() = memory?;
            return Ok(());
        }
        let backups: Vec<NodeId> = self.nodes().skip(1).collect();
        let mut memory = Vec::new();
        // As voters would, each life begins an epoch of its own, even if the one before left nothing on disk.
        self.lives += 1;
        let membership = Membership { epoch: Epoch(self.lives), ..self.membership() };
        for (position, plan) in self.plans.iter().enumerate() {
            let (node, slots) = Shared::with_observer(&self.config, Accounts::with_local_root(), plan)?;
            self.slow_reader_slots.push(slots);
            let node = if position == 0 { node.with_backups(backups.clone()) } else { node };
            let node = match self.is_cluster {
                true => node.with_fixed_membership(Incarnation(position as u32 + 1), membership.clone()),
                false => node,
            };
            memory.push(Arc::new(node));
        }
        *self.memory.borrow_mut() = memory;
        Ok(())
    }

    /// Draws the nodes that crash and are evicted in the life that begins now.
    pub fn next_evictions(&mut self) -> Option<Evictions> {
        // Without failover, the first node of each group stays.
        let (fails_over, replicas) = (self.fails_over, self.replicas);
        let may_leave = |(position, _): &(usize, NodeId)| fails_over || position % replicas > 0;
        let nodes: Vec<NodeId> = self.nodes().enumerate().filter(may_leave).map(|(_, node)| node).collect();
        let count_max = self.plans.len() - self.plans.len() / replicas;
        let (one_in, random) = &mut self.evictions;
        if !self.is_cluster || count_max == 0 || !random.one_in(*one_in) {
            return None;
        }
        let count = 1 + random.below(count_max as u64) as usize;
        let random = Random::new(random.word());
        let membership = self.membership();
        Some(Evictions::draw(&mut self.simulation, random, membership, (nodes, count)))
    }

    /// Gives every node the schema of the first one, so that all nodes serve clients.
    pub fn spread_schema(&mut self) {
        let main = |host: &mut NodeHost| host.main().map(|main| Arc::clone(main.catalog()));
        let hosts = 0..self.threads(SERVING);
        let catalog = { hosts }.find_map(|thread| self.simulation.host_mut(SERVING, thread).and_then(main));
        let Some(catalog) = catalog else { return };
        for (position, plan) in self.plans.clone().iter().enumerate().skip(1) {
            for (module, instance) in plan.threads.iter().flat_map(|thread| &thread.modules) {
                let to = Address::new(NodeId(position as u8 + 1), *module, *instance);
                // Nobody counts the answers.
                let nobody = Address::new(NodeId(u8::MAX), Module::Main, 0);
                let (operation, epoch, catalog) = (OperationId(0), Epoch(0), Arc::clone(&catalog));
                let publish = PublishCatalog { operation, reply_to: nobody, epoch, catalog };
                let signal = match Module::of(to.module) {
                    Module::Sql => Signal::Sql(SqlSignal::PublishCatalog(publish)),
                    Module::Tc => Signal::Tc(TcSignal::PublishCatalog(publish)),
                    Module::Query => Signal::Query(QuerySignal::PublishCatalog(publish)),
                    _ => continue,
                };
                self.simulation.deliver(to, signal);
            }
        }
        self.run_for(Duration::from_millis(20));
        self.catalog = catalog;
    }

    /// The schema of the cluster.
    pub fn catalog(&mut self) -> Arc<Catalog> {
        let main = |host: &mut NodeHost| host.main().map(|main| Arc::clone(main.catalog()));
        let first = self.members.as_ref().and_then(|members| members.data().first().copied()).unwrap_or(SERVING);
        let hosts = 0..self.threads(first);
        let found = { hosts }.find_map(|thread| self.simulation.host_mut(first, thread).and_then(main));
        found.unwrap_or_else(|| Arc::clone(&self.catalog))
    }

    /// The nodes of a cluster with voters.
    pub fn members(&self) -> Option<Rc<Members>> {
        self.members.clone()
    }

    /// Whether every node may be evicted, and clients use all nodes.
    pub fn fails_over(&self) -> bool {
        self.fails_over
    }

    /// The nodes that clients may use.
    pub fn client_nodes(&self) -> Vec<NodeId> {
        if let Some(members) = &self.members {
            return members.serving_clients();
        }
        if self.fails_over { self.running() } else { vec![SERVING] }
    }

    /// All nodes of a group in one chain, or in each chain another one first; the first node numbers commits.
    fn membership(&self) -> Membership {
        let nodes: Vec<NodeId> = self.nodes().collect();
        let of_group: Vec<(NodeId, u8)> =
            (0..).zip(&nodes).map(|(position, node)| (*node, (position / self.replicas) as u8)).collect();
        let chains = if self.fails_over { self.replicas } else { 1 };
        let rotated = |by| {
            let groups = nodes.chunks(self.replicas);
            groups.map(move |group| group.iter().cycle().skip(by).take(group.len()).copied().collect())
        };
        Membership::create(&of_group, (0..chains).flat_map(rotated).collect(), SERVING)
    }

    /// The nodes that run, by group.
    pub fn running_groups(&self) -> Vec<Vec<NodeId>> {
        let groups: Vec<Vec<NodeId>> = match &self.members {
            Some(members) => members.groups(),
            None => self.nodes().collect::<Vec<_>>().chunks(self.replicas).map(<[NodeId]>::to_vec).collect(),
        };
        let is_up = |node: &NodeId| self.simulation.is_up(*node);
        groups.into_iter().map(|group| group.into_iter().filter(is_up).collect()).collect()
    }

    /// Ends the nodes that still run as `end` says, and drops the memory of all nodes. Then restarts every
    /// node with the files that survived.
    ///
    /// # Errors
    /// A node cannot be assembled.
    pub fn restart(&mut self, end: NodeEnd) -> Result<(), String> {
        end_all(&mut self.simulation, self.plans.len(), end);
        self.disarm();
        self.slow_reader_slots.clear();
        self.earlier_hits = self.simulation.crash_point_hits(SERVING);
        self.highest_taken = self.highest_taken();
        let old: Vec<_> = self.memory.borrow_mut().drain(..).map(|node| Arc::downgrade(&node)).collect();
        if old.iter().any(|node| node.strong_count() > 0) {
            return Err("the memory of an ended node is still in use".to_owned());
        }
        self.make_memory()?;
        for node in self.nodes() {
            self.simulation.restart(node);
        }
        Ok(())
    }

    fn highest_taken(&self) -> CommitNumber {
        let taken = self.memory.borrow().first().map(|node| node.sequence().taken());
        self.highest_taken.max(taken.unwrap_or(CommitNumber(0)))
    }

    /// Ends all nodes, gives the serving node this disk, and starts the nodes again.
    ///
    /// # Errors
    /// A node cannot be assembled.
    pub fn restart_from(&mut self, disk: Disk) -> Result<(), String> {
        end_all(&mut self.simulation, self.plans.len(), NodeEnd::Process);
        if let Some(present) = self.simulation.disk_mut(SERVING) {
            *present = disk;
        }
        self.restart(NodeEnd::Process)
    }

    /// Flips a bit of a stored file of the serving node, which is down. Returns whether it did. The node may
    /// then repair it, refuse to start, or work as if nothing had happened; it must not give wrong answers.
    pub fn flip_bit(&mut self, mut random: Random) -> bool {
        let highest_taken = self.highest_taken();
        let Some(disk) = self.simulation.disk_mut(SERVING) else { return false };
        let sound = (disk.clone(), highest_taken);
        let has_flipped = flip_bit(disk, self.config.log_segment_size, &mut random).is_some();
        self.sound_disk = has_flipped.then_some(sound);
        has_flipped
    }

    /// Checks that a durable node goes on above all commit numbers of its earlier lives.
    ///
    /// # Errors
    /// A number that would be used again.
    pub fn check_numbers(&self) -> Result<(), String> {
        let taken = self.memory.borrow().first().map(|node| node.sequence().taken());
        match taken.filter(|taken| self.config.is_durable && *taken < self.highest_taken) {
            Some(taken) => {
                Err(format!("commit number {} was taken before, but numbers go on at {taken}", self.highest_taken))
            }
            None => Ok(()),
        }
    }

    /// Whether a bit has flipped since the last recovery that passed all checks.
    pub fn has_rot(&self) -> bool {
        self.sound_disk.is_some()
    }

    /// Ends the time in which the node may refuse to start because of the flipped bit. If it `has_refused`,
    /// it gets the sound disk back.
    pub fn end_rot(&mut self, has_refused: bool) {
        let sound = self.sound_disk.take().filter(|_| has_refused);
        if let (Some((sound, highest_taken)), Some(disk)) = (sound, self.simulation.disk_mut(SERVING)) {
            *disk = sound;
            // The numbers that lives have taken on the damaged disk do not count.
            self.highest_taken = highest_taken;
            self.memory.borrow_mut().clear();
        }
    }

    /// Ends the trouble of a life's disks, and forgets the crashes that were armed for it and not hit.
    /// Neither may end the next life or the checks.
    pub fn disarm(&mut self) {
        for node in self.nodes() {
            self.simulation.arm_crash(node, None, NodeEnd::Process);
            self.simulation.arm_disk_crash(node, None);
            self.simulation.set_disk_faults(node, DiskFaults::default());
        }
    }

    /// The nodes that run: all but those that are evicted.
    pub fn running(&self) -> Vec<NodeId> {
        self.nodes().filter(|node| self.simulation.is_up(*node)).collect()
    }

    /// The nodes in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (1..=self.plans.len() as u8).map(NodeId)
    }

    /// Number of threads of a node.
    pub fn threads(&self, node: NodeId) -> u16 {
        self.plans.get(usize::from(node.0).wrapping_sub(1)).map_or(0, |plan| plan.threads.len() as u16)
    }

    /// The state that the blocks of each node share in its present life.
    pub fn shared(&self) -> Vec<Arc<Shared>> {
        self.memory.borrow().clone()
    }

    /// The partitions of all nodes.
    fn guards(&mut self) -> Vec<HeldPartition> {
        let mut guards = Vec::new();
        for (position, plan) in self.plans.iter().enumerate() {
            for thread in &plan.threads {
                let node = NodeId(position as u8 + 1);
                let ldm = self.simulation.host_mut(node, thread.index).and_then(|host| host.ldm());
                let here = ldm.map(|ldm| ldm.guards()).unwrap_or_default();
                let group = (position, usize::from(thread.group));
                guards.extend(here.into_iter().map(|(_, guard)| HeldPartition { group, guard }));
            }
        }
        guards
    }

    /// Splits the cluster into the simulation and a slow reader that holds partition guards of all nodes.
    pub fn with_slow_reader(&mut self, hold_one_in: u64, seed: u64) -> (&mut ClusterSimulation, SlowReader<'_>) {
        let guards = self.guards();
        let slow_reader = SlowReader {
            memory: &self.memory,
            is_cluster: self.is_cluster,
            slots: &self.slow_reader_slots,
            guards,
            hold_one_in,
            random: Random::new(seed),
            held: 0,
        };
        (&mut self.simulation, slow_reader)
    }

    /// Lets time pass, with the numbers of the serving node at the backups.
    pub fn run_for(&mut self, duration: Duration) {
        if !self.is_cluster {
            publish_to_backups(&self.memory);
        }
        self.simulation.run_for(duration);
    }
}

/// Gives the backups the stable number and the horizon of the serving node, as the mirrors of a cluster do.
fn publish_to_backups(memory: &NodeMemory) {
    let memory = memory.borrow();
    let Some((serving, backups)) = memory.split_first() else { return };
    let (stable, horizon) = (serving.sequence().stable(), serving.snapshots().horizon());
    for backup in backups {
        backup.sequence().publish(stable, stable);
        backup.snapshots().limit_horizon(horizon);
    }
}

/// Ends the nodes that still run. A chain of replicas has no failover, so its nodes live and end together.
pub fn end_all(simulation: &mut ClusterSimulation, nodes: usize, end: NodeEnd) {
    for node in (1..=nodes as u8).map(NodeId) {
        simulation.crash(node, end);
    }
}

/// Asks all nodes to stop, and returns when all are idle or one of them has crashed.
///
/// # Errors
/// A node did not become idle in time.
pub fn stop_all(simulation: &mut ClusterSimulation, nodes: usize) -> Result<(), String> {
    let all = || (1..=nodes as u8).map(NodeId);
    all().for_each(|node| simulation.request_stop(node));
    let is_over = |simulation: &mut ClusterSimulation| {
        all().any(|node| !simulation.is_up(node)) || all().all(|node| simulation.is_idle(node))
    };
    match simulation.run_until(STOP_MAX, is_over) {
        true => Ok(()),
        false => Err("a node did not become idle after a request to stop".to_owned()),
    }
}

/// Advances virtual time, sometimes while it holds the guards of some partitions. Owners then see a slow
/// reader, and other readers are refused because the owner waits to write. This covers both refusals of the
/// partition guard without test code in production.
pub struct SlowReader<'a> {
    memory: &'a NodeMemory,
    is_cluster: bool,
    slots: &'a [Vec<ReaderSlot>],
    guards: Vec<HeldPartition>,
    hold_one_in: u64,
    random: Random,
    held: u64,
}

/// A partition, and its node's position and read group.
struct HeldPartition {
    group: (usize, usize),
    guard: Arc<GuardedPartition>,
}

impl SlowReader<'_> {
    /// Number of times that the slow reader has held a partition.
    pub fn held(&self) -> u64 {
        self.held
    }
}

impl TimeDriver<Signal, NodeHost> for SlowReader<'_> {
    fn advance(&mut self, simulation: &mut ClusterSimulation, duration: Duration) {
        if !self.is_cluster {
            publish_to_backups(self.memory);
        }
        if self.guards.is_empty() || !self.random.one_in(self.hold_one_in) {
            return simulation.run_for(duration);
        }
        let count = 1 + self.random.below(HELD_MAX);
        let drawn: Vec<usize> = (0..count).map(|_| self.random.below(self.guards.len() as u64) as usize).collect();
        self.held += count;
        let longer = if self.random.one_in(16) { self.random.below(LINGER_NS_MAX) } else { 0 };
        self.advance_while_holding(&drawn, simulation, Duration(duration.0 + longer));
    }
}

impl SlowReader<'_> {
    fn advance_while_holding(&self, drawn: &[usize], simulation: &mut ClusterSimulation, duration: Duration) {
        let Some((&first, rest)) = drawn.split_first() else { return simulation.run_for(duration) };
        let HeldPartition { group: (node, group), guard } = &self.guards[first];
        let slot = &self.slots[*node][*group];
        let inside = guard.read(slot, |_| self.advance_while_holding(rest, simulation, duration));
        if inside.is_err() {
            // Refused because the owner waits to write.
            self.advance_while_holding(rest, simulation, duration);
        }
    }
}
