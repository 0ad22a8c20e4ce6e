//! Hot path: one system call and at most 400 instructions for a read or a write.
//!
//! The sockets of one thread. The thread accepts and reads them, and writes to them unless it has handed the
//! output to a helper: another thread that writes for it. A connection within the process counts as a socket
//! too, and is never handed to a helper.
//!
//! Readiness is edge-triggered. A read that does not fill its buffer has drained the socket. The socket is
//! then not read again before the next edge, unless the peer has closed its side. Idle sockets hold no
//! buffer.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::address::Address;
use crate::block::{Host, Signal};
use crate::buffer::{Buffer, BufferPool};
use crate::context::Time;
use crate::directory::Directory;
use crate::envelope::SocketParcel;
use crate::invariant::fail;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::peer::PeerAddress;
use crate::scheduler::run::{Engine, Services};
use crate::scheduler::send::DELAY_BYTES_MAX;
use crate::world::{SocketCloseReason, SocketId, WorldEvent, WorldRequest};

use super::link_socket::LinkPorts;
use super::listener::Listener;
use super::memory_stream::{Acceptor, Arrival, NodeEnd};
use super::output::{Output, Pressure};
use super::sending::Sending;
use super::socket_counts::SocketCounts;
use crate::output_batch::{OutputBatch, WriteResult};

/// Maximum number of sockets read in one turn.
const READS_MAX: usize = 64;

/// Maximum number of connections accepted in one turn.
const ACCEPTS_MAX: usize = 64;

/// Marks a slot of the acceptor of in-memory connections that has no socket.
const NO_SOCKET: u32 = u32::MAX;

/// The smallest poll token of a listener; smaller ones are slots of sockets.
pub(super) const LISTENER_TOKENS: usize = 1 << 32;

/// The smallest poll token of a link or of the listener for links.
pub(super) const LINK_TOKENS: usize = 1 << 33;

/// What all socket instances of a node share.
#[derive(Clone)]
pub(super) struct NodeSockets {
    pub directory: Arc<Directory>,
    pub limits: KernelLimits,
    /// Open sockets of each instance.
    pub counts: Arc<SocketCounts>,
}

/// The sockets that one instance owns, and the node's listeners if it is the first instance.
pub(super) struct Sockets {
    own: Address,
    directory: Arc<Directory>,
    pub(super) registry: Registry,
    limits: KernelLimits,
    counts: Arc<SocketCounts>,
    /// Listeners with their numbers.
    listeners: Vec<(u16, Listener)>,
    /// Listeners that may have more connections waiting.
    pub(super) accepting: VecDeque<usize>,
    last_instance: usize,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u32>,
    /// Accepts connections of clients in this process.
    acceptor: Arc<Acceptor>,
    /// Socket slots by acceptor slot.
    socket_by_acceptor_slot: Vec<u32>,
    /// New in-memory connections that have no socket yet.
    arrivals: VecDeque<Arrival>,
    /// Acceptor slots of closed connections, to be returned to the acceptor.
    freed_slots: Vec<u32>,
    /// Whether the acceptor may have new connections, slots are to be returned to it, or links have input.
    pub(super) exchange_wanted: bool,
    /// Scratch memory for the acceptor's ready list. Empty between uses.
    ready: Vec<u32>,
    /// In-memory connections whose clients are woken at the end of the turn.
    handed_over: Vec<u32>,
    /// Sockets that may have bytes to read.
    readable: VecDeque<u32>,
    /// Sockets with output to write at the end of the turn.
    pub(super) dirty: Vec<u32>,
    pub(super) output_counts: OutputCounts,
    /// A file descriptor in reserve. If the process has run out of descriptors, this one is released so that
    /// a waiting connection can be accepted and closed.
    spare: Option<OwnedFd>,
    pub(super) stopping: bool,
    /// The part for links to other nodes.
    pub(super) links: Option<Box<LinkPorts>>,
}

/// Output of one thread's sockets since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutputCounts {
    /// Attempts by this thread to write a socket's output.
    pub(super) writes: u64,
    /// Bytes queued, no matter which thread writes them.
    pub(super) bytes: u64,
    /// Batches handed to other threads.
    pub(super) handed_over: u64,
    /// Number of times that output was delayed to be sent together with later output.
    pub(super) delayed: u64,
}

#[derive(Default)]
pub(super) struct Slot {
    generation: u32,
    pub(super) socket: Option<Socket>,
}

pub(super) struct Socket {
    pub(super) id: SocketId,
    pub(super) stream: Stream,
    pub(super) output: Output,
    pub(super) readable: bool,
    pub(super) peer_closed: bool,
    paused: bool,
    /// Whether the socket must not be added to [`Sockets::dirty`], because it is in that list already or a
    /// helper has its output.
    pub(super) dirty: bool,
    pub(super) wants_writable: bool,
    pub(super) closing: bool,
    /// If set, the socket closes for this reason once its output is back from a helper.
    ending: Option<SocketCloseReason>,
    /// When the delay of the socket's output began; 0 if it is not delayed.
    delayed_since: Time,
    /// The last batch of output, kept for reuse.
    batch: Option<Box<OutputBatch>>,
    /// Whether the peer is another node.
    pub(super) is_link: bool,
}

pub(super) enum Stream {
    /// A TCP connection or a Unix socket. Shared only with the batch of this socket's output.
    Tcp(Arc<TcpStream>),
    Memory(Box<NodeEnd>),
}

/// Outcome of one read.
enum Read {
    Bytes(Buffer),
    Nothing,
    Closed(SocketCloseReason),
}

impl Sockets {
    pub(super) fn new(
        own: Address,
        NodeSockets { directory, limits, counts }: NodeSockets,
        registry: Registry,
        acceptor: Arc<Acceptor>,
    ) -> Self {
        let last_instance = counts.0.len().saturating_sub(1);
        Self {
            own,
            directory,
            registry,
            limits,
            counts,
            listeners: Vec::new(),
            accepting: VecDeque::new(),
            last_instance,
            slots: Vec::new(),
            free: Vec::new(),
            acceptor,
            socket_by_acceptor_slot: Vec::new(),
            arrivals: VecDeque::new(),
            freed_slots: Vec::new(),
            exchange_wanted: false,
            ready: Vec::new(),
            handed_over: Vec::new(),
            readable: VecDeque::new(),
            dirty: Vec::new(),
            output_counts: OutputCounts::default(),
            spare: open_spare(),
            stopping: false,
            links: None,
        }
    }

    pub(super) fn listen(&mut self, number: u16, mut listener: Listener) -> std::io::Result<()> {
        let position = self.listeners.len();
        listener.register(&self.registry, Token(LISTENER_TOKENS + position))?;
        self.listeners.push((number, listener));
        self.accepting.push_back(position);
        Ok(())
    }

    /// Stops accepting connections and reading bytes.
    pub(super) fn stop_reading(&mut self) {
        self.stopping = true;
        self.acceptor.close();
        self.arrivals.clear();
        self.exchange_wanted = self.has_link_input();
        self.accepting.clear();
        self.readable.clear();
        self.listeners.clear();
    }

    /// Records an event of the poll.
    pub(super) fn on_ready(&mut self, token: usize, readable: bool, writable: bool, peer_closed: bool) {
        if token >= LISTENER_TOKENS {
            return self.on_special_ready(token, writable, (readable, peer_closed));
        }
        if self.stopping && !writable {
            return;
        }
        // The socket may have closed after the poll reported the event.
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(token) else { return };
        socket.peer_closed |= peer_closed;
        if (readable || peer_closed) && !socket.readable {
            socket.readable = true;
            self.readable.push_back(token as u32);
        }
        // If no output waits, the edge needs no action: the next write finds out that the socket takes bytes.
        if writable && socket.wants_writable && !socket.dirty {
            socket.dirty = true;
            self.dirty.push(token as u32);
        }
    }

    /// Whether connections wait to be accepted or bytes to be read.
    pub(super) fn has_input(&self) -> bool {
        !self.readable.is_empty() || self.has_arrivals()
    }

    /// Whether clients of this process have announced input that was not examined yet.
    #[inline]
    pub(super) fn has_ready_streams(&self) -> bool {
        self.acceptor.is_pending()
    }

    fn has_arrivals(&self) -> bool {
        !self.accepting.is_empty() || self.exchange_wanted || !self.arrivals.is_empty()
    }

    /// Whether sockets are listed for writing.
    pub(super) fn has_output(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Whether all output of all sockets is written. A link that is not read any more may be broken.
    pub(super) fn is_written(&self) -> bool {
        let are_links_over = self.are_links_over();
        let mut sockets = self.slots.iter().filter_map(|slot| slot.socket.as_ref());
        sockets.all(|socket| socket.output.is_empty() || (socket.is_link && are_links_over))
    }

    /// Accepts connections, then reads each readable socket once. Stops when the thread lacks space for the
    /// resulting signals. Returns the number of sockets read.
    pub(super) fn take_input<S: Signal, H: Host<S>>(&mut self, engine: &mut Engine<S, H>) -> u64 {
        self.take_ready_streams();
        if self.has_arrivals() {
            self.take_arrivals(engine);
        }
        let reads = self.readable.len().min(READS_MAX);
        for read in 0..reads {
            if !engine.begin_input() {
                return read as u64;
            }
            let Some(index) = self.readable.pop_front() else { return read as u64 };
            self.read_socket(index, engine);
        }
        reads as u64
    }

    /// Examines the in-memory connections that have announced input.
    fn take_ready_streams(&mut self) {
        if !self.acceptor.is_pending() {
            return;
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.acceptor.take_ready(&mut ready);
        for slot in ready.drain(..) {
            match self.socket_by_acceptor_slot.get(slot as usize) {
                Some(&index) if index != NO_SOCKET => self.on_stream_ready(index),
                _ => self.exchange_wanted |= !self.stopping,
            }
        }
        self.ready = ready;
    }

    fn on_stream_ready(&mut self, index: u32) {
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else { return };
        let Stream::Memory(end) = &mut socket.stream else { return };
        // The client may have freed space, sent bytes or closed the connection. Check all three.
        end.announce_space();
        if socket.wants_writable && !socket.dirty && (end.has_space_or_registers() || end.is_broken()) {
            socket.dirty = true;
            self.dirty.push(index);
        }
        if !self.stopping && !socket.readable {
            socket.readable = true;
            self.readable.push_back(index);
        }
    }

    fn read_socket<S: Signal, H: Host<S>>(&mut self, index: u32, engine: &mut Engine<S, H>) {
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else { return };
        let id = socket.id;
        if socket.paused || !socket.readable {
            // The socket leaves the list here. Resuming, or the next edge, adds it again.
            return;
        }
        match socket.read(self.limits.read_bytes, &mut engine.buffers) {
            Read::Bytes(bytes) => {
                if socket.readable {
                    self.readable.push_back(index);
                }
                engine.deliver_now(self.own, WorldEvent::Received { socket: id, bytes });
            }
            Read::Nothing if socket.readable => self.readable.push_back(index),
            Read::Nothing => {}
            Read::Closed(reason) => engine.with_services(|services| self.close(id, reason, services)),
        }
    }

    /// Writes the output queued in this turn, with one system call per socket.
    pub(super) fn write_output(&mut self, services: &mut Services<'_>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        self.output_counts.writes += dirty.len() as u64;
        for index in dirty.drain(..) {
            self.write_socket(index, services);
        }
        // A write, or the close after it, adds no other socket to `self.dirty`, so that list is still empty.
        self.dirty = dirty;
        self.wake_clients();
    }

    /// Wakes the clients of this process that got output in this turn.
    fn wake_clients(&mut self) {
        if self.handed_over.is_empty() {
            return;
        }
        NodeEnd::fence_before_wake();
        for index in self.handed_over.drain(..) {
            if let Some(Slot { socket: Some(Socket { stream: Stream::Memory(end), .. }), .. }) =
                self.slots.get(index as usize)
            {
                end.wake_client();
            }
        }
    }

    /// Hands queued output to helpers. Writes output that no helper may take. Unless the thread is idle,
    /// output may also be delayed, to be sent together with later output.
    pub(super) fn hand_over(&mut self, sending: &mut Sending, is_idle: bool, now: Time, services: &mut Services<'_>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.retain(|&index| {
            let is_in_memory = self.is_in_memory(index);
            let waits = !is_idle && !is_in_memory && self.delay(index, sending, now);
            if !waits {
                // Writing to a client of this process costs no system call, so a helper would save nothing.
                match sending.helper_for(index, now).filter(|_| !is_in_memory) {
                    Some(helper) => self.hand_to_helper(index, helper, services),
                    None => {
                        self.output_counts.writes += 1;
                        self.write_socket(index, services);
                    }
                }
            }
            waits
        });
        self.dirty = dirty;
        self.wake_clients();
    }

    fn is_in_memory(&self, index: u32) -> bool {
        let socket = self.slots.get(index as usize).and_then(|slot| slot.socket.as_ref());
        socket.is_some_and(|socket| matches!(socket.stream, Stream::Memory(_)))
    }

    /// Whether the output of a socket is delayed, to be sent together with later output.
    fn delay(&mut self, index: u32, sending: &Sending, now: Time) -> bool {
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else { return false };
        let delay = sending.delay();
        if delay.0 == 0 || socket.closing || socket.output.bytes() >= DELAY_BYTES_MAX {
            return false;
        }
        if socket.delayed_since == Time(0) {
            socket.delayed_since = now;
            self.output_counts.delayed += 1;
        }
        now.since(socket.delayed_since).0 < delay.0
    }

    /// Hands the output of a socket to another thread. The socket stays marked as dirty until the output is
    /// back, so that nothing lists it for writing meanwhile.
    fn hand_to_helper(&mut self, index: u32, helper: u16, services: &mut Services<'_>) {
        let (Some(slot), Some(owner)) =
            (self.slots.get_mut(index as usize), self.directory.thread_of(self.own.module, self.own.instance))
        else {
            return;
        };
        let Some(socket) = &mut slot.socket else { return };
        let Stream::Tcp(stream) = &socket.stream else { return };
        let id = socket.id;
        socket.delayed_since = Time(0);
        if !socket.output.is_waiting() {
            socket.dirty = socket.output.is_with_helper();
            return;
        }
        let mut batch = socket.batch.take().unwrap_or_else(|| OutputBatch::new(id, owner));
        batch.stream = Some(Arc::clone(stream));
        socket.output.fill_batch(&mut batch);
        self.output_counts.handed_over += 1;
        services.parcels.push((helper, SocketParcel::WriteOutput(batch)));
    }

    /// Called when a helper has returned a batch.
    pub(super) fn take_back(&mut self, mut batch: Box<OutputBatch>, services: &mut Services<'_>) {
        let id = batch.socket;
        let index = id.index();
        let Some(socket) = self.socket(id) else {
            fail("a socket stays open while a helper has its output", format_args!("{id:?}"));
        };
        socket.output.take_back(&mut batch, services.buffers);
        socket.dirty = false;
        batch.stream = None;
        let result = batch.result.take();
        socket.batch = Some(batch);
        if let Some(reason) = socket.ending {
            return self.close(id, reason, services);
        }
        match result {
            Some(result) => {
                // While a helper had the output, the poll may have reported that the full socket has space
                // again. Clear the flag, so that `finish_write` registers the socket once more and the poll
                // repeats that event.
                socket.wants_writable &= result != WriteResult::Full;
                self.finish_write(index, result, services);
            }
            None => {
                self.output_counts.writes += 1;
                self.write_socket(index, services);
            }
        }
        let Some(socket) = self.socket(id) else { return };
        if socket.output.is_waiting() && !socket.dirty && !socket.wants_writable {
            socket.dirty = true;
            self.dirty.push(index);
        }
    }

    pub(super) fn write_socket(&mut self, index: u32, services: &mut Services<'_>) {
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else { return };
        if socket.output.is_with_helper() {
            // This entry of the list belongs to an earlier socket of the slot. The output of the present
            // socket is with a helper.
            return;
        }
        (socket.dirty, socket.delayed_since) = (false, Time(0));
        let result = match &mut socket.stream {
            Stream::Tcp(stream) => socket.output.write(stream, services.buffers),
            Stream::Memory(end) => {
                self.handed_over.push(index);
                socket.output.hand_over(end)
            }
        };
        self.finish_write(index, result, services);
    }

    /// Evaluates the result of a write by this thread or by a helper.
    #[inline]
    fn finish_write(&mut self, index: u32, result: WriteResult, services: &mut Services<'_>) {
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else { return };
        let id = socket.id;
        if socket.output.pressure_after_write(&self.limits) == Pressure::Drained && !socket.is_link {
            services.events.push((self.own, WorldEvent::SendDrained { socket: id }));
        }
        let wants_writable = result == WriteResult::Full;
        if wants_writable != socket.wants_writable {
            socket.wants_writable = wants_writable;
            let interest = if wants_writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            let token = Token(index as usize + if socket.is_link { LINK_TOKENS } else { 0 });
            if let Stream::Tcp(stream) = &mut socket.stream
                && Arc::get_mut(stream).is_none_or(|stream| self.registry.reregister(stream, token, interest).is_err())
            {
                return self.close(id, SocketCloseReason::Broken, services);
            }
        }
        match result {
            WriteResult::Empty if socket.closing && socket.output.is_empty() => {
                self.close(id, SocketCloseReason::Own, services)
            }
            WriteResult::Broken => self.close(id, SocketCloseReason::Broken, services),
            WriteResult::Empty | WriteResult::Full => {}
        }
    }

    /// Carries out a block's request about a socket of this thread. Ignored if the socket is closed.
    pub(super) fn carry_out(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        match request {
            WorldRequest::SendBytes { socket, bytes } => self.send(socket, bytes, services),
            WorldRequest::CloseSocket { socket } => self.close_when_written(socket, services),
            WorldRequest::AbortSocket { socket } => self.close(socket, SocketCloseReason::Own, services),
            WorldRequest::PauseReading { socket } => {
                if let Some(socket) = self.socket(socket) {
                    socket.paused = true;
                }
            }
            WorldRequest::ResumeReading { socket: id } => {
                if let Some(socket) = self.socket(id)
                    && socket.paused
                {
                    socket.paused = false;
                    if socket.readable {
                        // The list may contain the socket already. A second read finds nothing.
                        self.readable.push_back(id.index());
                    }
                }
            }
            _ => {}
        }
    }

    fn send(&mut self, id: SocketId, bytes: Buffer, services: &mut Services<'_>) {
        let index = id.index();
        let Some(Slot { socket: Some(socket), .. }) = self.slots.get_mut(index as usize) else {
            return services.buffers.give(bytes);
        };
        if socket.id != id || socket.closing || bytes.is_empty() {
            return services.buffers.give(bytes);
        }
        if !socket.dirty && !socket.wants_writable {
            socket.dirty = true;
            self.dirty.push(index);
        }
        self.output_counts.bytes += bytes.len() as u64;
        match socket.output.push(bytes, &self.limits) {
            Pressure::Blocked => services.events.push((self.own, WorldEvent::SendBlocked { socket: id })),
            Pressure::Exceeded => self.close(id, SocketCloseReason::OutputFull, services),
            Pressure::Unchanged | Pressure::Drained => {}
        }
    }

    fn close_when_written(&mut self, id: SocketId, services: &mut Services<'_>) {
        let Some(socket) = self.socket(id) else { return };
        socket.closing = true;
        if socket.output.is_empty() {
            self.close(id, SocketCloseReason::Own, services);
        }
    }

    pub(super) fn socket(&mut self, id: SocketId) -> Option<&mut Socket> {
        let socket = self.slots.get_mut(id.index() as usize)?.socket.as_mut()?;
        if socket.id == id { Some(socket) } else { None }
    }

    /// Closes a socket and notifies its block. If a helper has output of the socket, this happens once the
    /// output is back, so that a slot is reused only when no thread holds anything of its earlier socket.
    pub(super) fn close(&mut self, id: SocketId, reason: SocketCloseReason, services: &mut Services<'_>) {
        let index = id.index() as usize;
        let Some(socket) = self.socket(id) else { return };
        if socket.output.is_with_helper() {
            (socket.closing, socket.readable) = (true, false);
            socket.ending.get_or_insert(reason);
            return;
        }
        let slot = &mut self.slots[index];
        let mut is_link = false;
        if let Some(mut socket) = slot.socket.take() {
            is_link = socket.is_link;
            // A peer that closed only its own side may still want the queued output.
            let is_awaited = reason == SocketCloseReason::Peer;
            match &mut socket.stream {
                Stream::Tcp(stream) => {
                    if is_awaited {
                        let _ = socket.output.write(stream, services.buffers);
                    }
                    // Closing the descriptor ends the registration too, so an error does not matter.
                    if let Some(stream) = Arc::get_mut(stream) {
                        let _ = self.registry.deregister(stream);
                    }
                }
                Stream::Memory(end) => {
                    if is_awaited {
                        let _ = socket.output.hand_over(end);
                    }
                    if let Some(index) = self.socket_by_acceptor_slot.get_mut(end.slot() as usize) {
                        *index = NO_SOCKET;
                    }
                    self.freed_slots.push(end.slot());
                    self.exchange_wanted = !self.stopping;
                }
            }
            socket.output.discard(services.buffers);
            if socket.dirty {
                // The slot may be reused before the list is processed, so remove its entry.
                self.dirty.retain(|&listed| listed as usize != index);
            }
        }
        // `SocketId` has few bits for the generation; making an id wraps it within them.
        slot.generation = SocketId::new(0, 0, slot.generation + 1).generation();
        self.free.push(index as u32);
        if is_link {
            return self.on_link_closed(id, false);
        }
        if let Some(count) = self.counts.0.get(usize::from(self.own.instance)) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        services.events.push((self.own, WorldEvent::SocketClosed { socket: id, reason }));
    }

    /// Makes this instance the owner of an accepted connection.
    pub(super) fn adopt(
        &mut self,
        stream: std::net::TcpStream,
        peer: PeerAddress,
        listener: u16,
        services: &mut Services<'_>,
    ) {
        let id = self.allocate_slot();
        let index = id.index();
        let mut stream = TcpStream::from_std(stream);
        let registered = self.registry.register(&mut stream, Token(index as usize), Interest::READABLE);
        if registered.is_err() || self.stopping {
            // Dropping the stream closes the connection before any block knows of it.
            self.free.push(index);
            if let Some(count) = self.counts.0.get(usize::from(self.own.instance)) {
                count.fetch_sub(1, Ordering::Relaxed);
            }
            return;
        }
        self.slots[index as usize].socket = Some(Socket::new(id, Stream::Tcp(Arc::new(stream))));
        self.readable.push_back(index);
        services.events.push((self.own, WorldEvent::SocketOpened { socket: id, peer, listener }));
    }

    /// A free slot.
    pub(super) fn allocate_slot(&mut self) -> SocketId {
        let index = self.free.pop().unwrap_or(self.slots.len() as u32);
        if index as usize == self.slots.len() {
            self.slots.push(Slot::default());
        }
        SocketId::new(self.own.instance, index, self.slots[index as usize].generation)
    }

    /// Takes new in-memory connections and returns acceptor slots.
    pub(super) fn admit_streams(&mut self, services: &mut Services<'_>) {
        if self.exchange_wanted {
            self.exchange_wanted = !self.acceptor.exchange(&mut self.arrivals, &mut self.freed_slots);
        }
        for _ in 0..ACCEPTS_MAX {
            let Some(Arrival { end, listener }) = self.arrivals.pop_front() else { return };
            let (id, slot) = (self.allocate_slot(), end.slot() as usize);
            if self.socket_by_acceptor_slot.len() <= slot {
                self.socket_by_acceptor_slot.resize(slot + 1, NO_SOCKET);
            }
            self.socket_by_acceptor_slot[slot] = id.index();
            self.slots[id.index() as usize].socket = Some(Socket::new(id, Stream::Memory(Box::new(end))));
            self.readable.push_back(id.index());
            services
                .events
                .push((self.own, WorldEvent::SocketOpened { socket: id, peer: PeerAddress::Memory, listener }));
        }
    }

    pub(super) fn accept(&mut self, services: &mut Services<'_>) {
        let mut accepted = 0;
        while let Some(&listener) = self.accepting.front() {
            if accepted == ACCEPTS_MAX {
                return;
            }
            accepted += 1;
            let (number, socket) = &self.listeners[listener];
            match socket.accept() {
                Ok((stream, peer)) => self.distribute(stream, peer, *number, services),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) if is_out_of_descriptors(&error) && self.refuse_one(listener) => {}
                Err(_) => {
                    self.accepting.pop_front();
                }
            }
        }
    }

    /// Gives a connection to the instance with the fewest sockets. Closes the connection if the node has its
    /// maximum number.
    fn distribute(&mut self, stream: TcpStream, peer: PeerAddress, listener: u16, services: &mut Services<'_>) {
        if self.counts.total() >= self.limits.sockets_max {
            return;
        }
        if let PeerAddress::Internet(address) = peer {
            if stream.set_nodelay(true).is_err() {
                return;
            }
            if address.ip().is_loopback() {
                // A connection within one machine has no congestion, so use the cheapest algorithm. If the
                // system refuses it, the default one works as well.
                let _ = rustix::net::sockopt::set_tcp_congestion(&stream, "reno");
            }
        }
        let instance = self.counts.least_loaded_after(self.last_instance);
        self.last_instance = instance;
        if let Some(count) = self.counts.0.get(instance) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let stream = std::net::TcpStream::from(stream);
        if instance == usize::from(self.own.instance) {
            return self.adopt(stream, peer, listener, services);
        }
        if let Some(thread) = self.directory.thread_of(ModuleId::SOCKETS, instance as u16) {
            services.parcels.push((thread, SocketParcel::Adopt(Box::new((stream, peer, listener)))));
        }
    }

    /// Accepts and closes one connection. Without free descriptors, edge-triggered polling would never report
    /// a waiting connection again.
    fn refuse_one(&mut self, listener: usize) -> bool {
        let had_spare = self.spare.take().is_some();
        let refused = had_spare && self.listeners[listener].1.accept().is_ok();
        self.spare = open_spare();
        refused
    }
}

impl Drop for Sockets {
    /// Called when the node halts.
    fn drop(&mut self) {
        self.acceptor.close();
    }
}

impl Socket {
    pub(super) fn new(id: SocketId, stream: Stream) -> Self {
        Self {
            id,
            stream,
            output: Output::default(),
            readable: true,
            peer_closed: false,
            paused: false,
            dirty: false,
            wants_writable: false,
            closing: false,
            ending: None,
            delayed_since: Time(0),
            batch: None,
            is_link: false,
        }
    }

    /// Reads once. Clears `readable` when the socket is drained for now.
    fn read(&mut self, bytes_max: usize, buffers: &mut BufferPool) -> Read {
        let stream = match &mut self.stream {
            Stream::Tcp(stream) => stream,
            Stream::Memory(end) => {
                let bytes = end.read(bytes_max, buffers);
                self.readable = end.has_input();
                return match bytes {
                    Some(bytes) => Read::Bytes(bytes),
                    None if end.is_ended() => Read::Closed(SocketCloseReason::Peer),
                    None => Read::Nothing,
                };
            }
        };
        let mut buffer = buffers.take(bytes_max);
        let space = buffer.capacity() - buffer.len();
        let read = match rustix::io::read(stream.as_fd(), rustix::buffer::spare_capacity(&mut buffer)) {
            Ok(0) => Read::Closed(SocketCloseReason::Peer),
            Ok(length) => {
                self.readable = length == space || self.peer_closed;
                return Read::Bytes(buffer);
            }
            Err(rustix::io::Errno::AGAIN) => {
                self.readable = false;
                Read::Nothing
            }
            Err(rustix::io::Errno::INTR) => Read::Nothing,
            Err(_) => Read::Closed(SocketCloseReason::Broken),
        };
        buffers.give(buffer);
        read
    }
}

fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    let number = error.raw_os_error();
    number == Some(libc::EMFILE) || number == Some(libc::ENFILE)
}

fn open_spare() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}
