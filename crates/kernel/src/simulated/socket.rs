//! Virtual connections: both ends of each, kept with the server's node.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use crate::address::Address;
use crate::directory::Directory;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::peer::PeerAddress;
use crate::random::Random;
use crate::scheduler::run::Services;
use crate::world::{SocketCloseReason, SocketId, WorldEvent, WorldRequest};

/// Faults of virtual sockets; a chance of 0 disables a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFaults {
    /// One in this many reads returns only part of what has arrived.
    pub short_read_one_in: u64,
    /// One in this many writes takes only part of what is queued.
    pub short_write_one_in: u64,
    /// One in this many reads or writes finds the connection broken.
    pub reset_one_in: u64,
    /// Number of bytes that a client buffers without reading them. Further bytes stay with the server.
    pub client_window_bytes: usize,
}

impl Default for SocketFaults {
    fn default() -> Self {
        Self { short_read_one_in: 4, short_write_one_in: 4, reset_one_in: 0, client_window_bytes: 1 << 20 }
    }
}

/// The connections of one node in the order of connecting, and the socket slots of its instances.
#[derive(Debug, Default)]
pub(super) struct VirtualSockets {
    connections: Vec<Connection>,
    /// By instance and slot: the generation and the connection in the slot.
    slots: Vec<Vec<(u32, Option<usize>)>>,
    last_instance: usize,
}

#[derive(Debug)]
struct Connection {
    id: SocketId,
    peer: PeerAddress,
    listener: u16,
    announced: bool,
    to_server: VecDeque<u8>,
    /// Queued at the server, not yet in the client's window.
    to_client: VecDeque<u8>,
    /// The client's window: bytes that have arrived at the client.
    received: VecDeque<u8>,
    server_open: bool,
    client_open: bool,
    paused: bool,
    closing: bool,
    /// Why the owner must close the socket. Only the owner closes, so that its block sees the end of a socket
    /// before another reuses the slot.
    ended: Option<SocketCloseReason>,
    above_high_water: bool,
}

/// The limits and faults under which simulated sockets move bytes.
pub(super) struct SocketConditions<'a> {
    pub limits: &'a KernelLimits,
    pub faults: &'a SocketFaults,
    /// Draws which faults occur.
    pub random: &'a mut Random,
}

impl VirtualSockets {
    pub(super) fn new(owner_count: u16) -> Self {
        Self { connections: Vec::new(), slots: vec![Vec::new(); usize::from(owner_count)], last_instance: 0 }
    }

    /// Makes a connection. Its owner is the instance with the fewest connections. Returns the connection's
    /// position and its owner.
    pub(super) fn connect(&mut self, listener: u16) -> Option<(usize, u16)> {
        let instances = self.slots.len();
        let load = |instance: usize| self.slots[instance].iter().filter(|(_, connection)| connection.is_some()).count();
        let instance = (1..=instances).map(|step| (self.last_instance + step) % instances).min_by_key(|&i| load(i))?;
        self.last_instance = instance;
        let slots = &mut self.slots[instance];
        let slot = slots.iter().position(|(_, connection)| connection.is_none()).unwrap_or(slots.len());
        if slot == slots.len() {
            slots.push((0, None));
        }
        let position = self.connections.len();
        slots[slot].1 = Some(position);
        self.connections.push(Connection {
            id: SocketId::new(instance as u16, slot as u32, slots[slot].0),
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 10_000 + (position % 50_000) as u16)).into(),
            listener,
            announced: false,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            received: VecDeque::new(),
            server_open: true,
            client_open: true,
            paused: false,
            closing: false,
            ended: None,
            above_high_water: false,
        });
        Some((position, instance as u16))
    }

    pub(super) fn client_write(&mut self, position: usize, bytes: &[u8]) -> Option<u16> {
        let connection = self.connections.get_mut(position)?;
        if !connection.client_open || !connection.server_open {
            return None;
        }
        connection.to_server.extend(bytes);
        Some(connection.id.owner())
    }

    pub(super) fn client_read(&mut self, position: usize) -> (Vec<u8>, Option<u16>) {
        match self.connections.get_mut(position) {
            Some(connection) => (connection.received.drain(..).collect(), Some(connection.id.owner())),
            None => (Vec::new(), None),
        }
    }

    pub(super) fn client_close(&mut self, position: usize) -> Option<u16> {
        let connection = self.connections.get_mut(position)?;
        connection.client_open = false;
        Some(connection.id.owner())
    }

    pub(super) fn is_open(&self, position: usize) -> bool {
        self.connections.get(position).is_some_and(|connection| connection.server_open && connection.client_open)
    }

    /// Breaks all connections, as the end of a node does.
    pub(super) fn crash(&mut self) {
        for connection in &mut self.connections {
            connection.server_open = false;
        }
        for slots in &mut self.slots {
            slots.clear();
        }
    }

    /// Connections of an instance that may have input for it.
    pub(super) fn with_input(&self, instance: u16) -> Vec<usize> {
        let slots = self.slots.get(usize::from(instance)).into_iter().flatten();
        let positions = slots.filter_map(|&(_, connection)| connection);
        positions.filter(|&position| self.connections[position].has_input()).collect()
    }

    /// The next event of a connection for its owner.
    pub(super) fn take_input(
        &mut self,
        position: usize,
        conditions: SocketConditions<'_>,
        services: &mut Services<'_>,
        own: Address,
    ) {
        let SocketConditions { limits, faults, random } = conditions;
        let Some(connection) = self.connections.get_mut(position) else { return };
        let socket = connection.id;
        if !connection.announced {
            connection.announced = true;
            let (peer, listener) = (connection.peer.clone(), connection.listener);
            return services.events.push((own, WorldEvent::SocketOpened { socket, peer, listener }));
        }
        if let Some(reason) = connection.ended {
            return self.close(own, socket, reason, services);
        }
        if random.one_in(faults.reset_one_in) {
            return self.close(own, socket, SocketCloseReason::Broken, services);
        }
        let whole = connection.to_server.len().min(limits.read_bytes);
        if whole == 0 {
            if !connection.client_open {
                self.close(own, socket, SocketCloseReason::Peer, services);
            }
            return;
        }
        let short = random.one_in(faults.short_read_one_in);
        let length = if short { 1 + random.below(whole as u64) as usize } else { whole };
        let mut bytes = services.buffers.take(length);
        bytes.extend(connection.to_server.drain(..length));
        services.events.push((own, WorldEvent::Received { socket, bytes }));
    }

    pub(super) fn carry_out(
        &mut self,
        request: WorldRequest,
        limits: &KernelLimits,
        directory: &Directory,
        services: &mut Services<'_>,
    ) {
        let (WorldRequest::SendBytes { socket, .. }
        | WorldRequest::CloseSocket { socket }
        | WorldRequest::AbortSocket { socket }
        | WorldRequest::PauseReading { socket }
        | WorldRequest::ResumeReading { socket }) = request
        else {
            return;
        };
        let own = directory.address(ModuleId::SOCKETS, socket.owner());
        let connection = self.position_of(socket).map(|position| &mut self.connections[position]);
        match (request, connection) {
            (WorldRequest::SendBytes { bytes, .. }, connection) => {
                if let Some(connection) =
                    connection.filter(|connection| !connection.closing && connection.ended.is_none())
                {
                    connection.to_client.extend(&bytes);
                    let queued = connection.to_client.len();
                    if queued > limits.send_bytes_max {
                        connection.ended = Some(SocketCloseReason::OutputFull);
                    }
                    if queued > limits.send_high_water_bytes && !connection.above_high_water {
                        connection.above_high_water = true;
                        services.events.push((own, WorldEvent::SendBlocked { socket }));
                    }
                }
                services.buffers.give(bytes);
            }
            (WorldRequest::CloseSocket { .. }, Some(connection)) => connection.closing = true,
            (WorldRequest::AbortSocket { .. }, Some(connection)) => {
                connection.ended.get_or_insert(SocketCloseReason::Own);
            }
            (WorldRequest::PauseReading { .. }, Some(connection)) => connection.paused = true,
            (WorldRequest::ResumeReading { .. }, Some(connection)) => connection.paused = false,
            _ => {}
        }
    }

    /// The instances to whose sockets a thread with these modules writes: its own, or any if it sends for
    /// others.
    pub(super) fn written_by(&self, modules: &[(ModuleId, u16)]) -> impl Iterator<Item = u16> + use<> {
        let sends = modules.iter().any(|&(module, _)| module == ModuleId::SEND);
        let own = modules.iter().find(|(module, _)| *module == ModuleId::SOCKETS).map(|&(_, instance)| instance);
        (0..self.slots.len() as u16).filter(move |&instance| sends || own == Some(instance))
    }

    /// Whether an instance has queued bytes that a client with this window would take.
    pub(super) fn has_output(&self, instance: u16, window: usize) -> bool {
        let slots = self.slots.get(usize::from(instance)).into_iter().flatten();
        slots.filter_map(|&(_, connection)| connection).any(|position| {
            let connection = &self.connections[position];
            connection.ended.is_none() && !connection.to_client.is_empty() && connection.received.len() < window
        })
    }

    /// Moves queued bytes into clients' windows, and closes the sockets that waited until their output was
    /// written.
    pub(super) fn write_output(
        &mut self,
        instance: u16,
        conditions: SocketConditions<'_>,
        own: Address,
        services: &mut Services<'_>,
    ) {
        let SocketConditions { limits, faults, random } = conditions;
        let slots = self.slots.get(usize::from(instance)).into_iter().flatten();
        let positions: Vec<usize> = slots.filter_map(|&(_, connection)| connection).collect();
        for position in positions {
            let connection = &mut self.connections[position];
            if connection.ended.is_some() {
                continue;
            }
            let socket = connection.id;
            let space = faults.client_window_bytes.saturating_sub(connection.received.len());
            let mut length = connection.to_client.len().min(space);
            if length > 0 && random.one_in(faults.short_write_one_in) {
                length = random.below(length as u64) as usize;
            }
            if length > 0 && random.one_in(faults.reset_one_in) {
                connection.ended = Some(SocketCloseReason::Broken);
                continue;
            }
            let taken = connection.to_client.drain(..length);
            if connection.client_open {
                connection.received.extend(taken);
            } else {
                drop(taken);
            }
            if connection.above_high_water && connection.to_client.len() < limits.send_low_water_bytes {
                connection.above_high_water = false;
                services.events.push((own, WorldEvent::SendDrained { socket }));
            }
            if connection.closing && connection.to_client.is_empty() {
                connection.ended = Some(SocketCloseReason::Own);
            }
        }
    }

    /// Whether the owner has sockets to close.
    pub(super) fn has_ended(&self, instance: u16) -> bool {
        let slots = self.slots.get(usize::from(instance)).into_iter().flatten();
        slots.filter_map(|&(_, connection)| connection).any(|position| self.connections[position].ended.is_some())
    }

    fn position_of(&self, socket: SocketId) -> Option<usize> {
        let &(generation, connection) = self.slots.get(usize::from(socket.owner()))?.get(socket.index() as usize)?;
        connection.filter(|_| generation == socket.generation())
    }

    fn close(&mut self, own: Address, socket: SocketId, reason: SocketCloseReason, services: &mut Services<'_>) {
        let Some(position) = self.position_of(socket) else { return };
        self.connections[position].server_open = false;
        let slot = &mut self.slots[usize::from(socket.owner())][socket.index() as usize];
        *slot = (slot.0 + 1, None);
        services.events.push((own, WorldEvent::SocketClosed { socket, reason }));
    }
}

impl Connection {
    fn has_input(&self) -> bool {
        !self.announced || self.ended.is_some() || !self.paused && (!self.to_server.is_empty() || !self.client_open)
    }
}
