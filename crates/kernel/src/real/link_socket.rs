//! Hot path: one system call and at most 400 instructions for a read or a write.
//!
//! The sockets of links to other nodes. They share slots, output and writing with the sockets of clients, and
//! have poll tokens and reads of their own: links are read even when the thread has no space for new work,
//! because they bring acknowledgements, credits and reserved signals.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Token};

use crate::address::NodeId;
use crate::block::{Host, Signal};
use crate::buffer::{Buffer, BufferPool};
use crate::context::{Duration, Time};
use crate::envelope::{AcceptedLink, SocketParcel};
use crate::invariant::fail;
use crate::scheduler::run::{Engine, Services};
use crate::transport::board::LinkRoutes;
use crate::transport::hello::{ClusterKey, HelloReader, Nonce, Refusal, route};
use crate::transport::introduction::{answer, is_question};
use crate::transport::link::{ConnectionId, HELLO_MAX};
use crate::transport::security::{Encryption, LinkSecurity, SecurityFault};
use crate::transport::thread_links::{LinkInput, LinkSockets};
use crate::world::{SocketCloseReason, SocketId};

use super::node::LinkOptions;
use super::socket::{LINK_TOKENS, LISTENER_TOKENS, Slot, Socket, Sockets, Stream};
use super::tcp_info;

/// Poll token of the listener for links.
const LISTENER_TOKEN: usize = LINK_TOKENS << 1;

/// Maximum size of one read from a link, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Maximum number of reads from links in one turn.
const READS_MAX: usize = 64;

/// Maximum number of connections whose first message has not arrived. One more closes the oldest.
const RECEPTION_MAX: usize = 64;

/// The part of a thread's sockets for links.
pub(super) struct LinkPorts {
    /// On the first socket thread.
    listener: Option<TcpListener>,
    is_accepting: bool,
    addresses: Vec<(NodeId, SocketAddr)>,
    key: ClusterKey,
    introduction: Arc<[u8]>,
    security: Option<Arc<dyn LinkSecurity>>,
    /// The encryptions of all links of this thread, if there is security.
    encryptions: BTreeMap<SocketId, Box<dyn Encryption>>,
    routes: Arc<LinkRoutes>,
    thread: u16,
    /// Links that may have bytes to read.
    readable: VecDeque<u32>,
    /// Connections whose first message has not arrived.
    reception: VecDeque<Arriving>,
    /// First messages of connections that belong to this thread.
    hellos: Vec<(SocketId, Vec<u8>)>,
    /// Links that are to be closed once their output was tried.
    closing: Vec<SocketId>,
    /// Connections that only ask whether another system answers, and those of them that were answered.
    probes: Vec<SocketId>,
    answered: Vec<SocketId>,
    /// Links that were closed, and whether the other system refused the connection.
    closed: Vec<(SocketId, bool)>,
    /// Whether the node takes nothing more from other nodes.
    is_over: bool,
    random: File,
}

struct Arriving {
    id: SocketId,
    reader: HelloReader,
    /// The connection is closed at this time if its first message has not arrived.
    deadline: Time,
}

impl LinkPorts {
    /// The part of the thread with this index.
    ///
    /// # Errors
    /// The source of random bytes cannot be opened.
    pub(super) fn new(options: &LinkOptions, routes: Arc<LinkRoutes>, thread: u16) -> std::io::Result<Box<Self>> {
        Ok(Box::new(Self {
            listener: None,
            is_accepting: false,
            addresses: options.peers.clone(),
            key: options.key.clone(),
            introduction: options.introduction.clone(),
            security: options.security.clone(),
            encryptions: BTreeMap::new(),
            routes,
            thread,
            readable: VecDeque::new(),
            reception: VecDeque::new(),
            hellos: Vec::new(),
            closing: Vec::new(),
            probes: Vec::new(),
            answered: Vec::new(),
            closed: Vec::new(),
            is_over: false,
            random: File::open("/dev/urandom")?,
        }))
    }
}

impl Sockets {
    /// Uses sockets for links, and accepts connections of other nodes if there is a listener.
    pub(super) fn set_links(
        &mut self,
        mut ports: Box<LinkPorts>,
        listener: Option<TcpListener>,
    ) -> std::io::Result<()> {
        if let Some(mut listener) = listener {
            self.registry.register(&mut listener, Token(LISTENER_TOKEN), Interest::READABLE)?;
            (ports.listener, ports.is_accepting) = (Some(listener), true);
            self.exchange_wanted = true;
        }
        self.links = Some(ports);
        Ok(())
    }

    /// Records an event of a listener or a link.
    #[cold]
    pub(super) fn on_special_ready(&mut self, token: usize, writable: bool, readable: (bool, bool)) {
        if token >= LINK_TOKENS {
            self.on_link_ready(token, writable, readable);
        } else if !self.stopping {
            self.accepting.push_back(token - LISTENER_TOKENS);
        }
    }

    /// Takes input of links, and accepts connections if the thread has space for the resulting signals.
    #[inline(never)]
    pub(super) fn take_arrivals<S: Signal, H: Host<S>>(&mut self, engine: &mut Engine<S, H>) {
        if self.links.is_some() {
            self.take_link_input(engine);
        }
        if engine.accepts_work() {
            engine.with_services(|services| {
                self.accept(services);
                self.admit_streams(services);
            });
        }
        // The admission of streams clears the flag, which links share.
        self.exchange_wanted |= self.has_link_input();
    }

    /// Whether links have input that was not taken yet.
    pub(super) fn has_link_input(&self) -> bool {
        self.links.as_ref().is_some_and(|links| {
            let has_input = links.is_accepting
                || !links.readable.is_empty()
                || !links.hellos.is_empty()
                || !links.closed.is_empty()
                || !links.answered.is_empty();
            has_input && !links.is_over
        })
    }

    /// Records an event of a link, or of the listener for links.
    pub(super) fn on_link_ready(&mut self, token: usize, writable: bool, (readable, is_closed): (bool, bool)) {
        let Some(links) = &mut self.links else { return };
        if token == LISTENER_TOKEN {
            links.is_accepting = true;
            self.exchange_wanted = true;
            return;
        }
        let index = token - LINK_TOKENS;
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index) else { return };
        if writable && !is_closed && !links.probes.is_empty() {
            let answered = links.probes.extract_if(.., |probe| *probe == socket.id);
            links.answered.extend(answered);
            self.exchange_wanted |= !links.answered.is_empty();
        }
        socket.peer_closed |= is_closed;
        if (readable || is_closed) && !socket.readable {
            socket.readable = true;
            links.readable.push_back(index as u32);
            self.exchange_wanted = true;
        }
        // A write to a connection that could not be made would take the error that the read reports.
        if writable && !is_closed && socket.wants_writable && !socket.dirty {
            socket.dirty = true;
            self.dirty.push(index as u32);
        }
    }

    /// Records that a link is closed. The first record of a link counts.
    pub(super) fn on_link_closed(&mut self, id: SocketId, is_refused: bool) {
        let Some(links) = &mut self.links else { return };
        links.reception.retain(|arriving| arriving.id != id);
        links.encryptions.remove(&id);
        links.probes.retain(|probe| *probe != id);
        if links.closed.iter().all(|&(closed, _)| closed != id) {
            links.closed.push((id, is_refused));
        }
        self.exchange_wanted = true;
    }

    /// Accepts connections of other nodes, reads links, and passes on what happened to them.
    pub(super) fn take_link_input<S: Signal, H: Host<S>>(&mut self, engine: &mut Engine<S, H>) {
        if self.are_links_over() {
            return;
        }
        let now = engine.turn_times().0;
        if self.accept_links(now) {
            // Their deadlines are new.
            engine.want_link_work();
        }
        let reads = self.links.as_ref().map_or(0, |links| links.readable.len().min(READS_MAX));
        for _ in 0..reads {
            let Some(index) = self.links.as_mut().and_then(|links| links.readable.pop_front()) else { break };
            self.read_link(index, now, engine);
        }
        let Some(links) = &mut self.links else { return };
        let hellos = std::mem::take(&mut links.hellos);
        let closed = std::mem::take(&mut links.closed);
        for id in std::mem::take(&mut links.answered) {
            engine.receive_from_node(LinkInput::Answered(id.to_u64()), now);
        }
        for (id, message) in hellos {
            let nonce = LinkSockets::nonce(self);
            engine.receive_from_node(LinkInput::Hello(id.to_u64(), &message, nonce), now);
        }
        for (id, is_refused) in closed {
            engine.receive_from_node(LinkInput::Closed(id.to_u64(), is_refused), now);
        }
    }

    /// Whether nothing more is taken from other nodes.
    pub(super) fn are_links_over(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.is_over)
    }

    /// Takes nothing more from other nodes. The links close with the process, so that a connection in their
    /// place is refused.
    pub(super) fn end_links(&mut self) {
        if let Some(links) = &mut self.links {
            links.is_over = true;
        }
    }

    /// Closes the links that are to be closed. What their sockets do not take now is lost: a link that is
    /// closed has nothing to say but the end of a hello. Returns when the next one is due.
    pub(super) fn close_links(&mut self, now: Time, services: &mut Services<'_>) -> Time {
        while let Some(links) = &mut self.links
            && let Some(Arriving { id, .. }) = links.reception.pop_front_if(|arriving| arriving.deadline <= now)
        {
            links.closing.push(id);
        }
        while let Some(id) = self.links.as_mut().and_then(|links| links.closing.pop()) {
            if self.socket(id).is_some_and(|socket| !socket.output.is_with_helper()) {
                self.write_socket(id.index(), services);
            }
            self.close(id, SocketCloseReason::Own, services);
        }
        let next = self.links.as_ref().and_then(|links| links.reception.front());
        next.map_or(Time(u64::MAX), |arriving| arriving.deadline)
    }

    /// Accepts all connections that wait. Returns whether there were any.
    fn accept_links(&mut self, now: Time) -> bool {
        let mut is_any = false;
        while let Some(links) = self.links.as_mut().filter(|links| links.is_accepting) {
            let Some(listener) = &links.listener else { break };
            match listener.accept() {
                Ok((stream, _)) => {
                    is_any = true;
                    if links.reception.len() >= RECEPTION_MAX
                        && let Some(Arriving { id, .. }) = links.reception.pop_front()
                    {
                        LinkSockets::close(self, id.to_u64());
                    }
                    if let Some(id) = self.add_link(stream, false)
                        && self.begin_encryption(id, None)
                        && let Some(links) = &mut self.links
                    {
                        let deadline = now.plus(HELLO_MAX);
                        links.reception.push_back(Arriving { id, reader: HelloReader::default(), deadline });
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(_) => links.is_accepting = false,
            }
        }
        is_any
    }

    /// Makes a socket of a connection to another node.
    fn add_link(&mut self, mut stream: TcpStream, is_connecting: bool) -> Option<SocketId> {
        if !is_connecting {
            set_options(&stream);
        }
        let id = self.allocate_slot();
        let index = id.index();
        let interest = if is_connecting { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        if self.registry.register(&mut stream, Token(LINK_TOKENS + index as usize), interest).is_err() {
            self.free.push(index);
            return None;
        }
        let mut socket = Socket::new(id, Stream::Tcp(Arc::new(stream)));
        socket.is_link = true;
        // A connection that is being made has nothing to read, and is written to once it is made.
        (socket.readable, socket.wants_writable) = (!is_connecting, is_connecting);
        self.slots[index as usize].socket = Some(socket);
        if !is_connecting && let Some(links) = &mut self.links {
            links.readable.push_back(index);
            self.exchange_wanted = true;
        }
        Some(id)
    }

    /// Takes over a connection that another thread has accepted, with its first message.
    pub(super) fn adopt_link(&mut self, AcceptedLink { stream, message, encryption }: AcceptedLink) {
        if let Some(id) = self.add_link(TcpStream::from_std(stream), false)
            && let Some(links) = &mut self.links
        {
            links.encryptions.extend(encryption.map(|encryption| (id, encryption)));
            links.hellos.push((id, message));
        }
    }

    /// Begins the encryption of a new connection, which this node makes to the other or accepts. Closes the
    /// connection if it must have encryption and can have none.
    fn begin_encryption(&mut self, id: SocketId, to: Option<NodeId>) -> bool {
        let Some(links) = &mut self.links else { return false };
        let Some(security) = &links.security else { return true };
        let encryption = match to {
            Some(node) => security.connect(node),
            None => security.accept(),
        };
        match encryption {
            Some(encryption) => links.encryptions.insert(id, encryption),
            None => {
                links.closing.push(id);
                return false;
            }
        };
        true
    }

    /// Passes on bytes of a connection, decrypted if it has encryption.
    fn decrypt<S: Signal, H: Host<S>>(&mut self, id: SocketId, bytes: &[u8], now: Time, engine: &mut Engine<S, H>) {
        let Some(links) = &mut self.links else { return };
        if links.security.is_none() {
            return self.take_bytes(id, bytes, now, engine);
        }
        // Without its encryption, a connection is about to be closed.
        let Some(encryption) = links.encryptions.get_mut(&id) else { return };
        let mut plain = engine.buffers.take(READ_BYTES);
        let received = encryption.receive(bytes, &mut plain);
        self.write_encrypted(id, &mut engine.buffers);
        if !plain.is_empty() {
            self.take_bytes(id, &plain, now, engine);
        }
        engine.buffers.give(plain);
        if let Err(fault) = received {
            self.distrust(id, fault, now, engine);
        }
    }

    /// Closes a connection whose other end is no node, or not the node that it must be.
    fn distrust<S: Signal, H: Host<S>>(
        &mut self,
        id: SocketId,
        fault: SecurityFault,
        now: Time,
        engine: &mut Engine<S, H>,
    ) {
        engine.receive_from_node(LinkInput::Refused(id.to_u64(), fault), now);
        engine.want_link_work();
        LinkSockets::close(self, id.to_u64());
    }

    /// Queues what an encryption has to write.
    fn write_encrypted(&mut self, id: SocketId, buffers: &mut BufferPool) {
        let Some(encryption) = self.links.as_mut().and_then(|links| links.encryptions.get_mut(&id)) else { return };
        let mut output = buffers.take(512);
        encryption.write(&mut output);
        self.queue(id, output, buffers);
    }

    /// Queues bytes to be written to a link.
    fn queue(&mut self, id: SocketId, bytes: Buffer, buffers: &mut BufferPool) {
        let socket = self.socket(id).filter(|socket| !socket.closing && !bytes.is_empty());
        let Some(socket) = socket else { return buffers.give(bytes) };
        let lists = !socket.dirty && !socket.wants_writable;
        socket.dirty |= lists;
        let length = bytes.len();
        socket.output.push_link(bytes);
        self.output_counts.bytes += length as u64;
        if lists {
            self.dirty.push(id.index());
        }
    }

    fn read_link<S: Signal, H: Host<S>>(&mut self, index: u32, now: Time, engine: &mut Engine<S, H>) {
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else { return };
        let (id, Stream::Tcp(stream)) = (socket.id, &socket.stream) else { return };
        let mut buffer = engine.buffers.take(READ_BYTES);
        let space = buffer.capacity() - buffer.len();
        let read = rustix::io::read(stream.as_fd(), rustix::buffer::spare_capacity(&mut buffer));
        match read {
            Ok(length @ 1..) => {
                // The poll reports the end of a connection once, so the socket is read until the end.
                if length == space || socket.peer_closed {
                    if let Some(links) = &mut self.links {
                        links.readable.push_back(index);
                    }
                } else {
                    socket.readable = false;
                }
                self.decrypt(id, &buffer, now, engine);
            }
            Err(rustix::io::Errno::AGAIN) => socket.readable = false,
            Err(rustix::io::Errno::INTR) => {
                if let Some(links) = &mut self.links {
                    links.readable.push_back(index);
                }
            }
            result => {
                let is_refused = result == Err(rustix::io::Errno::CONNREFUSED);
                self.on_link_closed(id, is_refused);
                engine.with_services(|services| self.close(id, SocketCloseReason::Peer, services));
            }
        }
        engine.buffers.give(buffer);
    }

    /// Passes bytes to the link, or collects the first message of an accepted connection.
    fn take_bytes<S: Signal, H: Host<S>>(&mut self, id: SocketId, bytes: &[u8], now: Time, engine: &mut Engine<S, H>) {
        let Some(links) = &mut self.links else { return };
        let Some(position) = links.reception.iter().position(|arriving| arriving.id == id) else {
            return engine.receive_from_node(LinkInput::Bytes(id.to_u64(), bytes), now);
        };
        let mut input = bytes;
        let message = links.reception[position].reader.read(&mut input);
        if message == Ok(None) {
            return;
        }
        links.reception.remove(position);
        // The other side waits for an answer, so nothing may follow.
        let Some(message) = message.ok().flatten().filter(|_| input.is_empty()) else {
            return self.distrust(id, SecurityFault { refusal: Refusal::Malformed, is_own: true }, now, engine);
        };
        if is_question(&message) && links.security.is_none() && !links.introduction.is_empty() {
            match answer(&links.key, &message, &links.introduction) {
                Ok(answer) => {
                    let mut output = engine.buffers.take(answer.len());
                    output.extend_from_slice(&answer);
                    self.queue(id, output, &mut engine.buffers);
                    engine.want_link_work();
                    LinkSockets::close(self, id.to_u64());
                }
                Err(refusal) => self.distrust(id, SecurityFault { refusal, is_own: true }, now, engine),
            }
            return;
        }
        let place = route(&message);
        let is_proven = |node| links.encryptions.get(&id).is_some_and(|encryption| encryption.is_with(node));
        if links.security.is_some() && !place.is_some_and(|(node, _)| is_proven(node)) {
            let fault = SecurityFault { refusal: Refusal::Certificate, is_own: true };
            return self.distrust(id, fault, now, engine);
        }
        let owner = place.and_then(|(_, channel)| links.routes.owner(channel.channel)).unwrap_or(links.thread);
        if owner == links.thread {
            return links.hellos.push((id, message));
        }
        let Some(socket) = self.slots.get_mut(id.index() as usize).and_then(|slot| slot.socket.as_mut()) else {
            return;
        };
        let Stream::Tcp(stream) = &socket.stream else { return };
        // The copy of the descriptor keeps the connection open when this thread closes its own.
        let copy = stream.as_fd().try_clone_to_owned();
        let encryption = self.links.as_mut().and_then(|links| links.encryptions.remove(&id));
        engine.with_services(|services| {
            if let Ok(descriptor) = copy {
                let accepted = AcceptedLink { stream: descriptor.into(), message, encryption };
                services.parcels.push((owner, SocketParcel::AdoptLink(Box::new(accepted))));
            }
            self.close(id, SocketCloseReason::Own, services);
        });
    }
}

/// Sets the options of a connection between nodes. A system that refuses one works as well.
fn set_options(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    if stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
        // A connection within one machine has no congestion, so use the cheapest algorithm.
        let _ = rustix::net::sockopt::set_tcp_congestion(stream, "reno");
    }
}

impl LinkSockets for Sockets {
    fn connect(&mut self, node: NodeId) -> Option<ConnectionId> {
        let links = self.links.as_ref()?;
        let &(_, address) = links.addresses.iter().find(|(peer, _)| *peer == node)?;
        let stream = TcpStream::connect(address).ok()?;
        let _ = stream.set_nodelay(true);
        let id = self.add_link(stream, true)?;
        self.begin_encryption(id, Some(node)).then(|| id.to_u64())
    }

    fn probe(&mut self, node: NodeId) -> Option<ConnectionId> {
        let &(_, address) = self.links.as_ref()?.addresses.iter().find(|(peer, _)| *peer == node)?;
        let id = self.add_link(TcpStream::connect(address).ok()?, true)?;
        if let Some(links) = &mut self.links {
            links.probes.push(id);
        }
        Some(id.to_u64())
    }

    fn send(&mut self, id: ConnectionId, bytes: Buffer, buffers: &mut BufferPool) {
        let id = SocketId::from_u64(id);
        let Some(links) = &mut self.links else { return buffers.give(bytes) };
        if links.security.is_none() {
            return self.queue(id, bytes, buffers);
        }
        if let Some(encryption) = links.encryptions.get_mut(&id) {
            encryption.send(&bytes);
        }
        buffers.give(bytes);
        self.write_encrypted(id, buffers);
    }

    fn close(&mut self, id: ConnectionId) {
        if let Some(links) = &mut self.links {
            links.closing.push(SocketId::from_u64(id));
        }
    }

    fn queued_bytes(&self, id: ConnectionId) -> usize {
        let index = SocketId::from_u64(id).index() as usize;
        self.slots.get(index).and_then(|slot| slot.socket.as_ref()).map_or(0, |socket| socket.output.bytes())
    }

    fn round_trip(&self, id: ConnectionId) -> Option<Duration> {
        let index = SocketId::from_u64(id).index() as usize;
        match &self.slots.get(index)?.socket.as_ref()?.stream {
            Stream::Tcp(stream) => tcp_info::round_trip(stream.as_fd()),
            Stream::Memory(_) => None,
        }
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 32];
        let read = self.links.as_mut().map(|links| links.random.read_exact(&mut nonce));
        match read {
            Some(Ok(())) => nonce,
            other => fail("the system has random bytes", format_args!("{other:?}")),
        }
    }
}
