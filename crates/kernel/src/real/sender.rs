//! The write sides of sockets on a send thread.
//!
//! Bytes may come before the owner's news of the socket, and even before its news that the socket which was in the same
//! place is gone: signals and the owner's news take different ways. They wait. Bytes for a socket that the owner has closed
//! are dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::address::Address;
use crate::directory::Directory;
use crate::envelope::SocketParcel;
use crate::limit::KernelLimits;
use crate::placement::Module;
use crate::scheduler::run::Services;
use crate::world::{SocketCloseReason, SocketId, WorldEvent, WorldRequest};

use super::output::{Output, Pressure, WriteResult};

/// Tokens from here up are sockets of a send thread.
pub(super) const SENDER_TOKENS: usize = 1 << 33;

/// The write sides that one send thread has.
pub(super) struct Senders {
    directory: Arc<Directory>,
    registry: Registry,
    limits: KernelLimits,
    /// By owner and index; an entry stays when its socket is gone, for the next of the same place.
    places: BTreeMap<(u16, u32), SendPlace>,
    dirty: Vec<SocketId>,
}

#[derive(Default)]
struct SendPlace {
    /// Of the socket that is or is soon here.
    generation: u32,
    stream: Option<TcpStream>,
    output: Output,
    dirty: bool,
    wants_writable: bool,
    closing: bool,
    ended: bool,
}

impl Senders {
    pub(super) fn new(directory: Arc<Directory>, registry: Registry, limits: KernelLimits) -> Self {
        Self { directory, registry, limits, places: BTreeMap::new(), dirty: Vec::new() }
    }

    pub(super) fn has_output(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Whether nothing queued for any socket is unwritten.
    pub(super) fn is_written(&self) -> bool {
        self.places.values().all(|place| place.output.is_empty() || place.stream.is_none())
    }

    /// A socket of this thread takes bytes again.
    pub(super) fn on_writable(&mut self, token: usize) {
        let key = (token - SENDER_TOKENS) as u64;
        let (owner, index) = ((key >> 24) as u16, (key & 0xff_ffff) as u32);
        if let Some(place) = self.places.get_mut(&(owner, index))
            && place.wants_writable
            && !place.dirty
        {
            place.dirty = true;
            self.dirty.push(SocketId::new(owner, index, place.generation));
        }
    }

    /// Carries out a request to send or to close.
    pub(super) fn carry_out(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        match request {
            WorldRequest::SendBytes { socket, bytes } => {
                let Some(place) = current_place(&mut self.places, socket) else {
                    return services.buffers.give(bytes);
                };
                if place.closing || bytes.is_empty() {
                    return services.buffers.give(bytes);
                }
                let newly_dirty = !place.dirty && !place.wants_writable;
                place.dirty |= newly_dirty;
                let pressure = place.output.push(bytes, &self.limits);
                if newly_dirty {
                    self.dirty.push(socket);
                }
                match pressure {
                    Pressure::Blocked => {
                        services.events.push((self.owner(socket), WorldEvent::SendBlocked { socket }));
                    }
                    Pressure::Exceeded => self.end(socket, SocketCloseReason::OutputFull, services),
                    Pressure::Unchanged | Pressure::Drained => {}
                }
            }
            WorldRequest::CloseSocket { socket } => {
                let Some(place) = current_place(&mut self.places, socket) else { return };
                place.closing = true;
                if place.output.is_empty() {
                    self.end(socket, SocketCloseReason::Own, services);
                }
            }
            _ => {}
        }
    }

    /// The owner shares or takes back the write side of a socket.
    pub(super) fn on_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>) {
        match parcel {
            SocketParcel::ShareOutput(socket, stream) => {
                let Some(place) = current_place(&mut self.places, socket) else { return };
                let mut stream = TcpStream::from_std(*stream);
                let token = token_of(socket);
                let registered = self.registry.register(&mut stream, token, Interest::WRITABLE);
                place.stream = Some(stream);
                let waiting = !place.output.is_empty() && !place.dirty;
                place.dirty |= waiting;
                if waiting {
                    self.dirty.push(socket);
                }
                if registered.is_err() {
                    self.end(socket, SocketCloseReason::Broken, services);
                }
            }
            SocketParcel::DropOutput(socket) => {
                let Some(place) = current_place(&mut self.places, socket) else { return };
                place.output.discard(services.buffers);
                let generation = SocketId::new(0, 0, place.generation + 1).generation();
                *place = SendPlace { generation, ..SendPlace::default() };
            }
            SocketParcel::Adopt(_) | SocketParcel::OutputEnded(..) => {}
        }
    }

    /// Writes what was queued in this turn, one system call a socket.
    pub(super) fn write_output(&mut self, services: &mut Services<'_>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for socket in dirty.drain(..) {
            self.write_socket(socket, services);
        }
        self.dirty = dirty;
    }

    fn write_socket(&mut self, socket: SocketId, services: &mut Services<'_>) {
        let Some(place) = self.places.get_mut(&(socket.owner(), socket.index())) else { return };
        if place.generation != socket.generation() {
            return;
        }
        place.dirty = false;
        let Some(stream) = &place.stream else { return };
        let result = place.output.write(stream, services.buffers);
        place.wants_writable = result == WriteResult::Full;
        let closes = place.closing && result == WriteResult::Empty;
        if place.output.pressure_after_write(&self.limits) == Pressure::Drained {
            services.events.push((self.owner(socket), WorldEvent::SendDrained { socket }));
        }
        if result == WriteResult::Broken {
            self.end(socket, SocketCloseReason::Broken, services);
        } else if closes {
            self.end(socket, SocketCloseReason::Own, services);
        }
    }

    /// Tells the owner, once, that there is no more to write.
    fn end(&mut self, socket: SocketId, reason: SocketCloseReason, services: &mut Services<'_>) {
        let Some(place) = current_place(&mut self.places, socket) else { return };
        place.closing = true;
        if !std::mem::replace(&mut place.ended, true)
            && let Some(thread) = self.directory.thread_of(Module::Recv, socket.owner())
        {
            services.parcels.push((thread, SocketParcel::OutputEnded(socket, reason)));
        }
    }

    fn owner(&self, socket: SocketId) -> Address {
        self.directory.address(Module::Recv, socket.owner())
    }
}

/// The place of a socket, made for one not heard of yet; none for one that is gone. What is heard of a later socket ends the
/// one before, for the owner gives a place away only when it is free.
fn current_place(places: &mut BTreeMap<(u16, u32), SendPlace>, socket: SocketId) -> Option<&mut SendPlace> {
    let place = places.entry((socket.owner(), socket.index())).or_default();
    if socket.is_later_than(place.generation) {
        *place = SendPlace { generation: socket.generation(), ..SendPlace::default() };
    }
    if place.generation == socket.generation() { Some(place) } else { None }
}

fn token_of(socket: SocketId) -> Token {
    Token(SENDER_TOKENS + ((socket.owner() as usize) << 24 | socket.index() as usize))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream as Stream};

    use super::*;
    use crate::address::NodeId;
    use crate::buffer::BufferPool;
    use crate::directory::NodeLayout;

    /// A connection: the side of the node, and the side of the client.
    fn connection() -> (Stream, Stream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = Stream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
    }

    #[test]
    fn generations_wrap_and_half_of_them_count_as_later() {
        let is_later = |generation, than| SocketId::new(0, 0, generation).is_later_than(than);
        assert!(is_later(1, 0) && is_later(0, 0xFF_FFFF) && is_later(5, 0xFF_FFF0));
        assert!(!is_later(0, 0) && !is_later(0, 1) && !is_later(0xFF_FFFF, 0));
        assert!(is_later(0x7F_FFFF, 0) && !is_later(0x80_0000, 0));
    }

    #[test]
    fn bytes_for_a_socket_wait_for_the_news_that_the_one_before_is_gone() {
        let layout = NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Send, 0)]]);
        let directory = Arc::new(Directory::new(NodeId(1), &layout).unwrap());
        let poll = mio::Poll::new().unwrap();
        let registry = poll.registry().try_clone().unwrap();
        let mut senders = Senders::new(directory, registry, KernelLimits::default());
        let (mut buffers, mut events, mut parcels) = (BufferPool::new(1 << 20), Vec::new(), Vec::new());
        let mut services = Services { buffers: &mut buffers, events: &mut events, parcels: &mut parcels };
        let [first, second] = [0, 1].map(|generation| SocketId::new(0, 7, generation));
        let ((first_stream, first_client), (second_stream, mut second_client)) = (connection(), connection());
        senders.on_parcel(SocketParcel::ShareOutput(first, Box::new(first_stream)), &mut services);
        let send = |socket, bytes: &[u8]| WorldRequest::SendBytes { socket, bytes: bytes.to_vec() };
        senders.carry_out(send(second, b"hello"), &mut services);
        senders.carry_out(send(first, b"too late"), &mut services);
        senders.write_output(&mut services);
        senders.on_parcel(SocketParcel::DropOutput(first), &mut services);
        senders.on_parcel(SocketParcel::ShareOutput(second, Box::new(second_stream)), &mut services);
        assert!(senders.has_output());
        senders.write_output(&mut services);
        senders.on_parcel(SocketParcel::DropOutput(second), &mut services);
        let mut received = Vec::new();
        second_client.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"hello");
        drop(first_client);
    }
}
