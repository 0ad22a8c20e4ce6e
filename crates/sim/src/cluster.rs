//! Nodes from production's role assembly in one simulation: the first serves clients, the others back its partitions up.

use std::sync::Arc;

use junctor_front::mysql::auth::Accounts;
use junctor_kernel::simulated::{Simulation, SocketFaults};
use junctor_kernel::{Duration, NodeId, NodeLayout, Random};
use junctor_model::id::PartitionId;
use junctor_node::{NodeConfig, NodeHost, Shared};
use junctor_signals::Signal;
use junctor_storage::guard::ReaderSlot;
use junctor_transaction::GuardedPartition;

use crate::draw::Draw;
use crate::fleet::Passage;

/// Memory of a simulated node for rows and indexes, in bytes; touched only when used.
const MEMORY_BYTES: u64 = 256 << 20;

/// The most partitions that a reader stays inside of at once.
const HELD_MAX: u64 = 4;

/// The longest time that a reader stays inside beyond the time that was to pass, in nanoseconds.
const LINGER_NS_MAX: u64 = 400_000;

/// The simulation of a cluster.
pub type ClusterSimulation = Simulation<Signal, NodeHost>;

/// The node that clients connect to.
pub const SERVING: NodeId = NodeId(1);

/// A running cluster.
pub struct Cluster {
    /// The nodes.
    pub simulation: ClusterSimulation,
    /// What the blocks of each node share, by node.
    pub shared: Vec<Arc<Shared>>,
    /// How many threads each node has.
    pub threads: Vec<u16>,
    /// The read group of each thread of the serving node.
    groups: Vec<u16>,
    /// A slot for each read group of the serving node.
    observer_slots: Vec<ReaderSlot>,
}

impl Cluster {
    /// Starts the nodes that were drawn. Sockets have no faults yet but cuts.
    ///
    /// # Errors
    /// A node cannot be assembled.
    pub fn start(draw: &Draw) -> Result<Self, String> {
        let config = NodeConfig {
            total_memory_bytes: Some(MEMORY_BYTES),
            max_connections: 1_000,
            transactions_max: draw.transactions_max,
            ..NodeConfig::default()
        };
        let mut shared = Vec::new();
        let mut observer_slots = Vec::new();
        for (position, (_, plan)) in draw.nodes.iter().enumerate() {
            let (node, slots) = Shared::with_observer(&config, Accounts::with_local_root(), plan)?;
            let backups = (1..draw.nodes.len()).map(|backup| NodeId(backup as u8 + 1)).collect();
            shared.push(Arc::new(if position == 0 { node.with_backups(backups) } else { node }));
            if position == 0 {
                observer_slots = slots;
            }
        }
        let of_nodes = shared.clone();
        let make_host =
            move |seat: junctor_kernel::ThreadSeat| NodeHost::new(&seat, &of_nodes[usize::from(seat.node.0) - 1]);
        let mut options = draw.simulation.clone();
        options.sockets = SocketFaults { reset_one_in: 0, ..options.sockets };
        let mut simulation = Simulation::new(options, make_host);
        // Backups first would be safer in the real world; here all nodes start at the same time.
        for (_, plan) in &draw.nodes {
            simulation.add_node(&NodeLayout::from(plan)).map_err(|error| error.to_string())?;
        }
        let threads = draw.nodes.iter().map(|(_, plan)| plan.threads.len() as u16).collect();
        let groups = draw.nodes[0].1.threads.iter().map(|thread| thread.group).collect();
        Ok(Self { simulation, shared, threads, groups, observer_slots })
    }

    /// The partitions of the serving node with their read groups.
    fn guards(&mut self) -> Vec<(PartitionId, u16, Arc<GuardedPartition>)> {
        let mut guards = Vec::new();
        for thread in 0..self.threads[0] {
            let group = self.groups[usize::from(thread)];
            let ldm = self.simulation.host_mut(SERVING, thread).and_then(|host| host.ldm());
            let here = ldm.map(|ldm| ldm.guards()).unwrap_or_default();
            guards.extend(here.into_iter().map(|(partition, guard)| (partition, group, guard)));
        }
        guards
    }

    /// Splits the cluster into the simulation and a reader that gets in the way of the serving node.
    pub fn observe(&mut self, hold_one_in: u64, seed: u64) -> (&mut ClusterSimulation, Observer<'_>) {
        let guards = self.guards();
        let observer =
            Observer { slots: &self.observer_slots, guards, hold_one_in, random: Random::new(seed), held: 0 };
        (&mut self.simulation, observer)
    }
}

/// Lets time pass, now and then while it stays inside some partitions. To their owners it is a reader that is slow;
/// other readers are then refused by the owners that wait. So both refusals of the guard happen, and production knows
/// nothing of it.
pub struct Observer<'a> {
    slots: &'a [ReaderSlot],
    guards: Vec<(PartitionId, u16, Arc<GuardedPartition>)>,
    hold_one_in: u64,
    random: Random,
    held: u64,
}

impl Observer<'_> {
    /// How often it stayed inside a partition.
    pub fn held(&self) -> u64 {
        self.held
    }
}

impl Passage<Signal, NodeHost> for Observer<'_> {
    fn pass(&mut self, simulation: &mut ClusterSimulation, duration: Duration) {
        if self.guards.is_empty() || !self.random.one_in(self.hold_one_in) {
            return simulation.run_for(duration);
        }
        let count = 1 + self.random.below(HELD_MAX);
        let drawn: Vec<usize> = (0..count).map(|_| self.random.below(self.guards.len() as u64) as usize).collect();
        self.held += count;
        let longer = if self.random.one_in(16) { self.random.below(LINGER_NS_MAX) } else { 0 };
        self.pass_inside(&drawn, simulation, Duration(duration.0 + longer));
    }
}

impl Observer<'_> {
    fn pass_inside(&self, drawn: &[usize], simulation: &mut ClusterSimulation, duration: Duration) {
        let Some((&first, rest)) = drawn.split_first() else { return simulation.run_for(duration) };
        let (_, group, guard) = &self.guards[first];
        let inside = guard.read(&self.slots[usize::from(*group)], |_| self.pass_inside(rest, simulation, duration));
        if inside.is_err() {
            // The owner waits to write.
            self.pass_inside(rest, simulation, duration);
        }
    }
}
