//! Nodes that are members of a cluster by the vote of others: their roles, the start of each life from its
//! disk, and how far the cluster is.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use junctor_cluster::MainBlock;
use junctor_cluster::member::node_file::{NODE_FILE, NodeFile, VOTER_FILES};
use junctor_cluster::member::settings::voters;
use junctor_cluster::member::{LogLines, MemberNode, MemberSettings, Roles, VoterStart};
use junctor_cluster::membership::{Membership, NodeSet};
use junctor_consensus::{recover, voter_of};
use junctor_front::account::Accounts;
use junctor_kernel::simulated::{Disk, NodeEnd};
use junctor_kernel::{Duration, NodeId, Time};
use junctor_model::id::{Epoch, Incarnation};
use junctor_node::placement::PlacementPlan;
use junctor_node::{NodeConfig, Shared};

use crate::cluster::{ClusterSimulation, NodeMemory};

/// The cluster's name, as the simulated network has it.
const CLUSTER: u128 = 1;
/// Lines of the logs of all nodes that are kept for reports of violations.
const LINES_MAX: usize = 400;
/// Lines of all nodes that wait until somebody takes them.
const LINES_WAITING_MAX: usize = 4096;

/// The nodes of a cluster.
pub struct Members {
    /// All nodes, ascending.
    nodes: Arc<[MemberNode]>,
    replicas: u8,
    config: NodeConfig,
    plans: Vec<PlacementPlan>,
    memory: NodeMemory,
    /// Whether the added nodes run.
    has_grown: Cell<bool>,
    /// The nodes that were removed.
    removed: Cell<NodeSet>,
    /// Number of lives that each node has begun.
    lives: RefCell<Vec<u32>>,
    lines: RefCell<VecDeque<String>>,
    queues: Vec<(SyncSender<String>, Receiver<String>)>,
}

impl Members {
    /// Nodes with these roles. `config` is that of a data node.
    pub fn new(
        roles: &[Roles],
        replicas: usize,
        (config, plans): (&NodeConfig, &[PlacementPlan]),
        memory: NodeMemory,
    ) -> Self {
        let node = |(position, roles): (usize, &Roles)| MemberNode {
            node: NodeId(position as u8 + 1),
            roles: *roles,
            address: "".into(),
            domain: "".into(),
        };
        let nodes: Arc<[MemberNode]> = roles.iter().enumerate().map(node).collect();
        Self {
            replicas: replicas as u8,
            config: config.clone(),
            plans: plans.to_vec(),
            memory,
            has_grown: Cell::new(false),
            removed: Cell::new(NodeSet::EMPTY),
            lives: RefCell::new(vec![0; nodes.len()]),
            lines: RefCell::default(),
            queues: nodes.iter().map(|_| sync_channel(LINES_WAITING_MAX)).collect(),
            nodes,
        }
    }

    /// The nodes that are there. Added nodes are when the cluster has grown, until their removal.
    fn present(&self) -> impl Iterator<Item = &MemberNode> {
        let is_there =
            |it: &&MemberNode| !it.roles.added || (self.has_grown.get() && !self.removed.get().contains(it.node));
        self.nodes.iter().filter(is_there)
    }

    /// Looks whether nodes were removed. Returns the nodes that are removed since the last look.
    pub fn note_removed(&self, simulation: &mut ClusterSimulation) -> NodeSet {
        if !self.has_grown.get() || !self.nodes.iter().any(|it| it.roles.added) {
            return NodeSet::EMPTY;
        }
        let Some(membership) = self.membership(simulation) else { return NodeSet::EMPTY };
        let (before, now) = (self.removed.get(), membership.removed_nodes());
        self.removed.set(before.union(&now));
        now.without(&before)
    }

    /// The nodes that were removed.
    pub fn removed(&self) -> NodeSet {
        self.removed.get()
    }

    /// All nodes that are there.
    pub fn all(&self) -> impl Iterator<Item = NodeId> + use<'_> {
        self.present().map(|it| it.node)
    }

    /// The nodes that are added to the cluster.
    pub fn added(&self) -> Vec<NodeId> {
        self.nodes.iter().filter(|it| it.roles.added).map(|it| it.node).collect()
    }

    /// From now on the added nodes are there.
    pub fn grow(&self) {
        self.has_grown.set(true);
    }

    /// The nodes with data, ascending.
    pub fn data(&self) -> Vec<NodeId> {
        self.present().filter(|it| it.roles.data).map(|it| it.node).collect()
    }

    /// The nodes with data of each group, those with which it began first.
    pub fn groups(&self) -> Vec<Vec<NodeId>> {
        let of = |joins: Option<u8>| {
            let nodes = self.present().filter(move |it| it.roles.data && it.roles.joins == joins);
            nodes.map(|it| it.node).collect::<Vec<NodeId>>()
        };
        let first = of(None);
        let groups = (0..).zip(first.chunks(usize::from(self.replicas)));
        groups.map(|(group, nodes)| [nodes, &of(Some(group))].concat()).collect()
    }

    /// The nodes that serve clients.
    pub fn serving_clients(&self) -> Vec<NodeId> {
        self.present().filter(|it| it.roles.sql).map(|it| it.node).collect()
    }

    /// The nodes that vote.
    pub fn voters(&self) -> Vec<NodeId> {
        voters(&self.nodes, self.replicas)
    }

    /// Makes the memory of the next life of a node, which begins with what `disk` has.
    ///
    /// # Errors
    /// The files of the node cannot be read, or it cannot be assembled.
    pub fn begin_life(&self, node: NodeId, disk: Option<&Disk>) -> Result<Arc<Shared>, String> {
        let position = usize::from(node.0) - 1;
        let roles = self.nodes[position].roles;
        let incarnation = {
            let mut lives = self.lives.borrow_mut();
            lives[position] += 1;
            Incarnation(lives[position])
        };
        let file = disk.and_then(|disk| disk.content(NODE_FILE)).map(NodeFile::decode).transpose()?;
        let settings = MemberSettings {
            cluster: CLUSTER,
            own: node,
            incarnation,
            nodes: Arc::clone(&self.nodes),
            replicas: self.replicas,
            started: file.map_or(Epoch(0), |file| file.started),
            voter: disk.map_or(Ok(VoterStart::Nothing), read_voter)?,
            silence_max: Duration::from_millis(u64::from(self.config.cluster.silence_max_ms)),
            cut_max: Duration::from_millis(u64::from(self.config.cluster.cut_max_ms)),
            standstill_max: Duration::from_millis(u64::from(self.config.cluster.standstill_max_ms)),
            partial_start_after: Duration::from_millis(u64::from(self.config.cluster.partial_start_ms)),
        };
        let mut config = self.config.clone();
        config.is_durable &= roles.data;
        config.cluster.node_id = Some(node.0);
        let shared = Shared::new(&config, Accounts::with_local_root(), &self.plans[position])?;
        let log_lines = LogLines::to(self.queues[position].0.clone());
        Ok(Arc::new(shared.with_member(Arc::new(settings), log_lines)))
    }

    /// Starts a node that is down.
    ///
    /// # Errors
    /// As [`Members::begin_life`].
    pub fn restart(&self, simulation: &mut ClusterSimulation, node: NodeId) -> Result<(), String> {
        let shared =
            self.begin_life(node, simulation.disk(node)).map_err(|fault| format!("node {}: {fault}", node.0))?;
        self.memory.borrow_mut()[usize::from(node.0) - 1] = shared;
        simulation.restart(node);
        Ok(())
    }

    /// The present life of a node.
    pub fn life(&self, node: NodeId) -> Incarnation {
        Incarnation(self.lives.borrow()[usize::from(node.0) - 1])
    }

    /// The newest membership that a running node has installed.
    pub fn membership(&self, simulation: &mut ClusterSimulation) -> Option<Arc<Membership>> {
        let installed =
            self.all().filter_map(|node| self.installed(simulation, node)).map(|(membership, _)| membership);
        installed.max_by_key(|membership| (membership.epoch, membership.started))
    }

    /// Whether a node has begun to stop.
    pub fn is_ending(&self, simulation: &mut ClusterSimulation, node: NodeId) -> bool {
        self.is_main(simulation, node, MainBlock::is_ending)
    }

    /// Whether a node has a voter that counts.
    pub fn is_voter(&self, simulation: &mut ClusterSimulation, node: NodeId) -> bool {
        self.is_main(simulation, node, MainBlock::is_voter)
    }

    fn is_main(&self, simulation: &mut ClusterSimulation, node: NodeId, is: fn(&MainBlock) -> bool) -> bool {
        let threads = self.plans[usize::from(node.0) - 1].threads.len() as u16;
        (0..threads).any(|thread| simulation.host_mut(node, thread).and_then(|host| host.main()).is_some_and(is))
    }

    /// The membership that a running node has installed, and the last epoch that its blocks have started.
    fn installed(&self, simulation: &mut ClusterSimulation, node: NodeId) -> Option<(Arc<Membership>, Epoch)> {
        let threads = self.plans[usize::from(node.0) - 1].threads.len() as u16;
        (0..threads).find_map(|thread| {
            let main = simulation.host_mut(node, thread)?.main()?;
            Some((Arc::clone(main.installed_membership()?), main.epoch_started()))
        })
    }

    /// The cause for which the cluster is not whole. `None` once all nodes run and serve, and the disks of
    /// all data nodes count.
    pub fn missing(&self, simulation: &mut ClusterSimulation) -> Option<String> {
        if let Some(node) = self.all().find(|node| !simulation.is_up(*node)) {
            return Some(format!("node {} is down", node.0));
        }
        let Some(membership) = self.membership(simulation) else { return Some("no membership".to_owned()) };
        if membership.started != membership.epoch {
            return Some(format!("epoch {} has not started everywhere", membership.epoch));
        }
        if let Some(group) = membership.closed_group() {
            return Some(format!("group {group} is not open"));
        }
        if let Some(group) = membership.leaving_group() {
            return Some(format!("group {group} leaves"));
        }
        if let Some(node) = membership.leaving.iter().next() {
            return Some(format!("node {} leaves", node.0));
        }
        if let Some(node) = self.removed.get().iter().find(|node| simulation.is_up(*node)) {
            return Some(format!("node {} was removed, and still runs", node.0));
        }
        if let Some(node) = self.data().into_iter().find(|node| membership.record(*node).is_none()) {
            return Some(format!("node {} has no group", node.0));
        }
        for record in &membership.nodes {
            let node = record.node;
            if !record.is_serving() || !record.is_durable || record.incarnation != self.life(node) {
                return Some(format!("node {} in life {}: {record:?}", node.0, self.life(node)));
            }
            let started = self.installed(simulation, node).map(|(_, started)| started);
            if started != Some(membership.epoch) {
                return Some(format!("node {} has started {started:?}, not {}", node.0, membership.epoch));
            }
        }
        let closed = self
            .serving_clients()
            .into_iter()
            .find(|node| !self.memory.borrow()[usize::from(node.0) - 1].readiness().is_open());
        closed.map(|node| format!("node {} is closed to clients", node.0))
    }

    /// Keeps the lines that the nodes have written to their logs by now.
    pub fn keep_lines(&self, now: Time) {
        let mut lines = self.lines.borrow_mut();
        for (position, (_, queue)) in self.queues.iter().enumerate() {
            lines.extend(queue.try_iter().map(|line| format!("{} node {}: {line}", moment(now), position + 1)));
        }
        let surplus = lines.len().saturating_sub(LINES_MAX);
        lines.drain(..surplus);
    }

    /// Adds a line about a fault to the logs.
    pub fn note(&self, now: Time, line: &str) {
        self.keep_lines(now);
        self.lines.borrow_mut().push_back(format!("{} {line}", moment(now)));
    }

    /// The last lines of all logs, for reports of violations.
    pub fn last_lines(&self, now: Time) -> Vec<String> {
        self.keep_lines(now);
        self.lines.borrow().iter().cloned().collect()
    }

    /// Ends all nodes as `end` says.
    pub fn end_all(&self, simulation: &mut ClusterSimulation, end: NodeEnd) {
        self.all().for_each(|node| simulation.crash(node, end));
    }
}

/// The log of the node's voter, if its disk has one.
fn read_voter(disk: &Disk) -> Result<VoterStart, String> {
    let files = VOTER_FILES.map(|name| disk.content(name).unwrap_or_default());
    let Some(voter) = voter_of(files) else { return Ok(VoterStart::Nothing) };
    let recovered = recover(voter, files).map_err(|error| error.to_string())?;
    Ok(recovered.map_or(VoterStart::Nothing, |log| VoterStart::Recovered { voter: voter.0, log }))
}

/// A time in milliseconds, as logs show it.
fn moment(now: Time) -> String {
    format!("{}.{:03}", now.0 / 1_000_000, now.0 / 1_000 % 1_000)
}
