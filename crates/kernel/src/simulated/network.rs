//! The network between simulated nodes: connections that carry links, with delay, resets, damaged bytes and
//! cuts in one or both directions.
//!
//! A cut delays bytes, as lost packets do, until it ends; a connection is not made across it. The end of a
//! process resets its connections; a loss of power says nothing to the other side.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::address::NodeId;
use crate::block::{Host, Signal};
use crate::buffer::{Buffer, BufferPool};
use crate::context::{Duration, Time};
use crate::module::ModuleId;
use crate::random::Random;
use crate::transport::board::{LinkBoard, LinkRoutes};
use crate::transport::figures::LinkFigures;
use crate::transport::hello::{ClusterKey, HelloReader, Identity, Nonce, route};
use crate::transport::link::ConnectionId;
use crate::transport::thread_links::{LinkInput, LinkSetup, LinkSockets, ThreadLinks, Transport};
use crate::wire_signal::WireSignal;

use super::node::NodeEnd;
use super::simulation::{ScheduledEvent, Simulation};

/// How simulated nodes are linked.
#[derive(Clone, Copy, Debug)]
pub struct NetworkOptions {
    /// Number of channels between two nodes.
    pub channels: u8,
    /// The nodes are numbered from 1 to this number.
    pub nodes: u8,
    /// The block that gets news of links.
    pub watcher: (ModuleId, u16),
}

/// Faults of the network; a chance of 0 disables a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    /// One in this many deliveries resets its connection instead.
    pub reset_one_in: u64,
    /// One in this many deliveries has a flipped bit.
    pub damage_one_in: u64,
}

/// Makes the links of a thread.
type MakeLinks<S> = fn(Arc<LinkSetup>, u16, Time) -> Option<Box<dyn Transport<S>>>;

/// All connections between simulated nodes.
pub(super) struct Network<S: Signal> {
    options: NetworkOptions,
    make_links: MakeLinks<S>,
    pub(super) faults: NetworkFaults,
    connections: BTreeMap<ConnectionId, Connection>,
    last: ConnectionId,
    /// Nodes without links among each other.
    unlinked: BTreeSet<NodeId>,
    /// Directions, from node to node, that let nothing through.
    cuts: BTreeSet<(usize, usize)>,
    random: Random,
}

/// A connection; end 0 made it.
struct Connection {
    ends: [ConnectionEnd; 2],
    /// The first message, until the thread at end 1 is known.
    reception: Option<HelloReader>,
}

/// One end of a connection.
struct ConnectionEnd {
    node: usize,
    thread: usize,
    is_open: bool,
    /// Arrival of the last bytes at this end.
    last: Time,
    /// Bytes that a cut keeps from this end, each with whether the connection closes behind them.
    held: VecDeque<(Vec<u8>, bool)>,
}

/// Input of a link that waits for the thread's next turn.
pub(super) enum QueuedInput {
    Hello(ConnectionId, Vec<u8>, Nonce),
    Bytes(ConnectionId, Vec<u8>),
    Closed(ConnectionId, bool),
    Answered(ConnectionId),
}

impl QueuedInput {
    pub(super) fn as_input(&self) -> LinkInput<'_> {
        match self {
            Self::Hello(id, message, nonce) => LinkInput::Hello(*id, message, *nonce),
            Self::Bytes(id, bytes) => LinkInput::Bytes(*id, bytes),
            Self::Closed(id, is_refused) => LinkInput::Closed(*id, *is_refused),
            Self::Answered(id) => LinkInput::Answered(*id),
        }
    }
}

/// Bytes, or the end of a connection, on the way to one of its ends.
pub(super) struct Packet {
    id: ConnectionId,
    end: usize,
    bytes: Vec<u8>,
    /// Whether the connection ends behind the bytes.
    closes: bool,
    is_refused: bool,
}

/// Requests of a thread's links to the network, carried out after the thread's turn.
#[derive(Default)]
pub(super) struct LinkRequests {
    connects: Vec<(ConnectionId, NodeId)>,
    probes: Vec<(ConnectionId, NodeId)>,
    sends: Vec<(ConnectionId, Vec<u8>)>,
    closes: Vec<ConnectionId>,
}

/// The sockets of a thread's links.
pub(super) struct SimulatedLinks<'a> {
    last: &'a mut ConnectionId,
    random: &'a mut Random,
    requests: &'a mut LinkRequests,
}

impl LinkSockets for SimulatedLinks<'_> {
    fn connect(&mut self, node: NodeId) -> Option<ConnectionId> {
        *self.last += 1;
        self.requests.connects.push((*self.last, node));
        Some(*self.last)
    }

    fn probe(&mut self, node: NodeId) -> Option<ConnectionId> {
        *self.last += 1;
        self.requests.probes.push((*self.last, node));
        Some(*self.last)
    }

    fn send(&mut self, id: ConnectionId, bytes: Buffer, buffers: &mut BufferPool) {
        self.requests.sends.push((id, bytes.clone()));
        buffers.give(bytes);
    }

    fn close(&mut self, id: ConnectionId) {
        self.requests.closes.push(id);
    }

    fn queued_bytes(&self, _id: ConnectionId) -> usize {
        0
    }

    fn round_trip(&self, _id: ConnectionId) -> Option<Duration> {
        None
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 32];
        self.random.bytes(&mut nonce);
        nonce
    }
}

impl<S: Signal> Network<S> {
    /// The links of a thread that begins a life of its node.
    pub(super) fn links_of(
        &self,
        node: NodeId,
        incarnation: u32,
        directory: &crate::directory::Directory,
        stall_after: Duration,
    ) -> (Arc<LinkSetup>, MakeLinks<S>) {
        let instances = directory.instances(ModuleId::SOCKETS);
        let owners = (0..u16::from(self.options.channels)).map(|channel| channel % instances.max(1));
        let threads = owners.filter_map(|owner| directory.thread_of(ModuleId::SOCKETS, owner)).collect();
        let is_linked =
            |peer: &NodeId| *peer != node && !(self.unlinked.contains(peer) && self.unlinked.contains(&node));
        let setup = LinkSetup {
            own: Identity { cluster: 1, node, incarnation },
            key: ClusterKey([1; 32]),
            peers: (1..=self.options.nodes).map(NodeId).filter(is_linked).collect(),
            routes: Arc::new(LinkRoutes::new(threads)),
            board: Arc::new(LinkBoard::new()),
            figures: LinkFigures::default(),
            watcher: self.options.watcher,
            stall_after,
        };
        (Arc::new(setup), self.make_links)
    }

    pub(super) fn sockets<'a>(&'a mut self, requests: &'a mut LinkRequests) -> SimulatedLinks<'a> {
        SimulatedLinks { last: &mut self.last, random: &mut self.random, requests }
    }
}

impl<S: WireSignal, H: Host<S>> Simulation<S, H> {
    /// Links all nodes that are added from now on.
    pub fn link_nodes(&mut self, options: NetworkOptions) {
        self.network = Some(Network {
            options,
            make_links: ThreadLinks::<S>::of_thread,
            faults: NetworkFaults::default(),
            connections: BTreeMap::new(),
            last: 0,
            unlinked: BTreeSet::new(),
            cuts: BTreeSet::new(),
            random: Random::new(crate::random::mix(self.seed())),
        });
    }
}

impl<S: Signal, H: Host<S>> Simulation<S, H> {
    /// These nodes have no links among each other in the lives that begin from now on.
    pub fn leave_unlinked(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        if let Some(network) = &mut self.network {
            network.unlinked.extend(nodes);
        }
    }

    /// Changes the faults of the network between nodes.
    pub fn set_network_faults(&mut self, faults: NetworkFaults) {
        if let Some(network) = &mut self.network {
            network.faults = faults;
        }
    }

    /// Lets nothing through from one node to another, until [`Simulation::heal`].
    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        if let Some(network) = &mut self.network {
            network.cuts.insert((usize::from(from.0) - 1, usize::from(to.0) - 1));
        }
    }

    /// Ends a cut. The bytes that it delayed arrive.
    pub fn heal(&mut self, from: NodeId, to: NodeId) {
        let (from, to) = (usize::from(from.0) - 1, usize::from(to.0) - 1);
        let Some(network) = &mut self.network else { return };
        network.cuts.remove(&(from, to));
        let mut held = Vec::new();
        for (&id, connection) in &mut network.connections {
            for end in 0..2 {
                let is_across = connection.ends[end].node == to && connection.ends[1 - end].node == from;
                if is_across {
                    let packets = connection.ends[end].held.drain(..);
                    held.extend(packets.map(|(bytes, closes)| Packet { id, end, bytes, closes, is_refused: false }));
                }
            }
        }
        for packet in held {
            self.send_packet(packet);
        }
    }

    /// Carries out what the links of a thread want.
    pub(super) fn carry_out_wishes(&mut self, node: usize, thread: usize, requests: LinkRequests) {
        for (id, target) in requests.connects {
            self.connect_nodes(id, (node, thread), usize::from(target.0) - 1);
        }
        for (id, target) in requests.probes {
            self.probe_node(id, (node, thread), usize::from(target.0) - 1);
        }
        for (id, bytes) in requests.sends {
            self.send_from(node, id, bytes, false);
        }
        for id in requests.closes {
            self.send_from(node, id, Vec::new(), true);
        }
    }

    /// The system of a node that runs answers, also while the node is paused. Nobody answers for a machine
    /// without power, and the end of a process shows by its connections.
    fn probe_node(&mut self, id: ConnectionId, (node, thread): (usize, usize), target: usize) {
        let is_up = self.nodes.get(target).is_some_and(|node| !node.threads.is_empty());
        let Some(network) = &self.network else { return };
        let is_cut = network.cuts.contains(&(node, target)) || network.cuts.contains(&(target, node));
        if is_up && !is_cut {
            self.queue_input(node, thread, QueuedInput::Answered(id));
        }
    }

    fn connect_nodes(&mut self, id: ConnectionId, (node, thread): (usize, usize), target: usize) {
        let end = |node: usize, thread: usize| ConnectionEnd {
            node,
            thread,
            is_open: true,
            last: Time(0),
            held: VecDeque::new(),
        };
        let ends = [end(node, thread), end(target, 0)];
        let is_up = self.nodes.get(target).is_some_and(|node| !node.threads.is_empty());
        let Some(network) = &mut self.network else { return };
        let is_cut = network.cuts.contains(&(node, target)) || network.cuts.contains(&(target, node));
        network.connections.retain(|_, connection| connection.ends.iter().any(|end| end.is_open));
        network.connections.insert(id, Connection { ends, reception: Some(HelloReader::default()) });
        let connection = network.connections.get_mut(&id);
        if let Some(connection) = connection.filter(|_| is_cut || !is_up) {
            // Without an answer, the hello ends by its deadline.
            connection.ends[1].is_open = false;
        }
        if !is_up && !is_cut {
            self.send_packet(Packet { id, end: 0, bytes: Vec::new(), closes: true, is_refused: true });
        }
    }

    fn send_from(&mut self, node: usize, id: ConnectionId, bytes: Vec<u8>, closes: bool) {
        let Some(network) = &mut self.network else { return };
        let Some(connection) = network.connections.get_mut(&id) else { return };
        let from = usize::from(connection.ends[0].node != node);
        if !connection.ends[from].is_open {
            return;
        }
        connection.ends[from].is_open = !closes;
        let (from_node, to_node) = (connection.ends[from].node, connection.ends[1 - from].node);
        if network.cuts.contains(&(from_node, to_node)) {
            connection.ends[1 - from].held.push_back((bytes, closes));
        } else {
            self.send_packet(Packet { id, end: 1 - from, bytes, closes, is_refused: false });
        }
    }

    /// Schedules the arrival of a packet behind everything that is under way to the same end.
    fn send_packet(&mut self, packet: Packet) {
        let delay = Duration(1 + self.link_delay());
        let now = self.now();
        let Some(network) = &mut self.network else { return };
        let Some(connection) = network.connections.get_mut(&packet.id) else { return };
        let end = &mut connection.ends[packet.end];
        end.last = end.last.max(now.plus(delay));
        let time = end.last;
        self.schedule(time, ScheduledEvent::Packet(packet));
    }

    /// A packet arrives.
    pub(super) fn arrive_packet(&mut self, Packet { id, end, mut bytes, closes, is_refused }: Packet) {
        let Some(network) = &mut self.network else { return };
        let Some(connection) = network.connections.get_mut(&id) else { return };
        let own = &connection.ends[end];
        let is_up = self.nodes.get(own.node).is_some_and(|node| !node.threads.is_empty());
        if !own.is_open {
            // The system of a node that runs answers bytes of a connection that it does not know.
            if is_up && !closes && connection.ends[1 - end].is_open {
                self.send_packet(Packet { id, end: 1 - end, bytes: Vec::new(), closes: true, is_refused: false });
            }
            return;
        }
        let resets = !bytes.is_empty() && network.random.one_in(network.faults.reset_one_in);
        if !bytes.is_empty() && network.random.one_in(network.faults.damage_one_in) {
            let bit = network.random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if resets {
            connection.ends[end].is_open = false;
            let (node, thread) = (connection.ends[end].node, connection.ends[end].thread);
            let is_routed = end == 0 || connection.reception.is_none();
            let other = Packet { id, end: 1 - end, bytes: Vec::new(), closes: true, is_refused: false };
            if is_routed {
                self.queue_input(node, thread, QueuedInput::Closed(id, false));
            }
            return self.send_packet(other);
        }
        let mut input = bytes.as_slice();
        if end == 1
            && let Some(reader) = &mut connection.reception
        {
            match reader.read(&mut input) {
                Ok(Some(message)) => {
                    connection.reception = None;
                    return self.route_hello(id, message);
                }
                Ok(None) if !closes => return,
                _ => {
                    connection.ends[1].is_open = false;
                    let answer = Packet { id, end: 0, bytes: Vec::new(), closes: true, is_refused: false };
                    return self.send_packet(answer);
                }
            }
        }
        let (node, thread) = (connection.ends[end].node, connection.ends[end].thread);
        connection.ends[end].is_open = !closes;
        if !bytes.is_empty() {
            self.queue_input(node, thread, QueuedInput::Bytes(id, bytes));
        }
        if closes {
            self.queue_input(node, thread, QueuedInput::Closed(id, is_refused));
        }
    }

    /// Gives a connection to the thread that owns its channel.
    fn route_hello(&mut self, id: ConnectionId, message: Vec<u8>) {
        let Some(network) = &mut self.network else { return };
        let Some(connection) = network.connections.get_mut(&id) else { return };
        let end = &mut connection.ends[1];
        let directory = &self.nodes[end.node].directory;
        let instances = directory.instances(ModuleId::SOCKETS).max(1);
        let owner = route(&message).map_or(0, |(_, channel)| u16::from(channel.channel) % instances);
        end.thread = directory.thread_of(ModuleId::SOCKETS, owner).map_or(0, usize::from);
        let (node, thread) = (end.node, end.thread);
        let mut nonce = [0; 32];
        network.random.bytes(&mut nonce);
        self.queue_input(node, thread, QueuedInput::Hello(id, message, nonce));
    }

    fn queue_input(&mut self, node: usize, thread: usize, input: QueuedInput) {
        let Some(state) = self.nodes.get_mut(node).and_then(|node| node.threads.get_mut(thread)) else { return };
        state.link_input.push(input);
        let now = self.now();
        self.schedule_run(node, thread, now);
    }

    /// The connections of a node end with it.
    pub(super) fn crash_links(&mut self, node: usize, end: NodeEnd) {
        let Some(network) = &mut self.network else { return };
        let mut resets = Vec::new();
        for (&id, connection) in &mut network.connections {
            for own in 0..2 {
                if connection.ends[own].node == node && connection.ends[own].is_open {
                    connection.ends[own].is_open = false;
                    resets.push((id, 1 - own, connection.ends[1 - own].node));
                }
            }
        }
        resets.retain(|&(_, _, to)| end == NodeEnd::Process && !network.cuts.contains(&(node, to)));
        for (id, end, _) in resets {
            self.send_packet(Packet { id, end, bytes: Vec::new(), closes: true, is_refused: false });
        }
    }
}
