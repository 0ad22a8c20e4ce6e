//! The nodes of a simulation, assembled from production's roles. The first node serves clients, the others
//! are backups.

use std::sync::Arc;

use junctor_front::account::Accounts;
use junctor_kernel::simulated::{Simulation, SocketFaults};
use junctor_kernel::{Duration, NodeId, NodeLayout, Random};
use junctor_model::id::PartitionId;
use junctor_node::{NodeConfig, NodeHost, Shared};
use junctor_signals::Signal;
use junctor_storage::guard::ReaderSlot;
use junctor_transaction::GuardedPartition;

use crate::draw::Draw;
use crate::fleet::TimeDriver;

/// Memory of a simulated node for rows and indexes, in bytes. Untouched memory costs nothing.
const MEMORY_BYTES: u64 = 256 << 20;

/// Maximum number of partitions that the slow reader holds at a time.
const HELD_MAX: u64 = 4;

/// Maximum time by which the slow reader extends a step, in nanoseconds.
const LINGER_NS_MAX: u64 = 400_000;

/// The simulation type of a cluster.
pub type ClusterSimulation = Simulation<Signal, NodeHost>;

/// The node that clients connect to: the primary of all partitions.
pub const SERVING: NodeId = NodeId(1);

/// A running cluster.
pub struct Cluster {
    /// The simulated nodes, links and sockets.
    pub simulation: ClusterSimulation,
    /// The state that the blocks of each node share, indexed by node.
    pub shared: Vec<Arc<Shared>>,
    /// Number of threads of each node.
    pub threads: Vec<u16>,
    /// The read group of each thread of the serving node.
    groups: Vec<u16>,
    /// The slow reader's guard slot in each read group of the serving node.
    slow_reader_slots: Vec<ReaderSlot>,
}

impl Cluster {
    /// Starts the drawn nodes. Connections do not break until the caller sets socket faults, so that setup
    /// succeeds.
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
        let mut slow_reader_slots = Vec::new();
        for (position, (_, plan)) in draw.nodes.iter().enumerate() {
            let (node, slots) = Shared::with_observer(&config, Accounts::with_local_root(), plan)?;
            let backups = (1..draw.nodes.len()).map(|backup| NodeId(backup as u8 + 1)).collect();
            shared.push(Arc::new(if position == 0 { node.with_backups(backups) } else { node }));
            if position == 0 {
                slow_reader_slots = slots;
            }
        }
        let of_nodes = shared.clone();
        let make_host =
            move |seat: junctor_kernel::ThreadAssignment| NodeHost::new(&seat, &of_nodes[usize::from(seat.node.0) - 1]);
        let mut options = draw.simulation.clone();
        options.sockets = SocketFaults { reset_one_in: 0, ..options.sockets };
        let mut simulation = Simulation::new(options, make_host);
        // Starting the backups first would be safer in production. Here no time passes between the starts.
        for (_, plan) in &draw.nodes {
            simulation.add_node(&NodeLayout::from(plan)).map_err(|error| error.to_string())?;
        }
        let threads = draw.nodes.iter().map(|(_, plan)| plan.threads.len() as u16).collect();
        let groups = draw.nodes[0].1.threads.iter().map(|thread| thread.group).collect();
        Ok(Self { simulation, shared, threads, groups, slow_reader_slots })
    }

    /// The partitions of the serving node, each with its read group.
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

    /// Splits the cluster into the simulation and a slow reader that holds partition guards of the serving
    /// node.
    pub fn with_slow_reader(&mut self, hold_one_in: u64, seed: u64) -> (&mut ClusterSimulation, SlowReader<'_>) {
        let guards = self.guards();
        let slow_reader =
            SlowReader { slots: &self.slow_reader_slots, guards, hold_one_in, random: Random::new(seed), held: 0 };
        (&mut self.simulation, slow_reader)
    }
}

/// Advances virtual time, sometimes while it holds the guards of some partitions. Owners then see a slow
/// reader, and other readers are refused because the owner waits to write. This covers both refusals of the
/// partition guard without test code in production.
pub struct SlowReader<'a> {
    slots: &'a [ReaderSlot],
    guards: Vec<(PartitionId, u16, Arc<GuardedPartition>)>,
    hold_one_in: u64,
    random: Random,
    held: u64,
}

impl SlowReader<'_> {
    /// How many times it has held a partition.
    pub fn held(&self) -> u64 {
        self.held
    }
}

impl TimeDriver<Signal, NodeHost> for SlowReader<'_> {
    fn advance(&mut self, simulation: &mut ClusterSimulation, duration: Duration) {
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
        let (_, group, guard) = &self.guards[first];
        let inside =
            guard.read(&self.slots[usize::from(*group)], |_| self.advance_while_holding(rest, simulation, duration));
        if inside.is_err() {
            // Refused because the owner waits to write.
            self.advance_while_holding(rest, simulation, duration);
        }
    }
}
