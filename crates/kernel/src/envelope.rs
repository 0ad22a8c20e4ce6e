//! What travels in the rings between threads.

use std::net::{SocketAddr, TcpStream};

use crate::address::Address;
use crate::world::{SocketCloseReason, SocketId, WorldEvent, WorldRequest};

/// A signal with where it goes and where it came from.
#[derive(Debug)]
pub(crate) struct Envelope<S> {
    pub to: Address,
    pub from: Address,
    pub signal: S,
}

/// A signal, or what threads of the kernel say to each other about the world. Everything but signals is taken at once,
/// like a reply.
#[derive(Debug)]
pub(crate) enum Parcel<S> {
    Signal(Envelope<S>),
    /// For the thread that owns the socket or the files.
    Request(Address, WorldRequest),
    /// The answer to a block elsewhere.
    Event(Address, WorldEvent),
    /// About sockets, between the threads that read and write them.
    Socket(SocketParcel),
}

/// What threads say to each other about sockets; boxed because it happens once in the life of a connection.
#[derive(Debug)]
pub(crate) enum SocketParcel {
    /// An accepted connection for the recv thread that shall own it.
    Adopt(Box<(TcpStream, SocketAddr, u16)>),
    /// The write side of a socket for the send thread that shall write to it.
    ShareOutput(SocketId, Box<TcpStream>),
    /// The owner has closed the socket; its write side is of no more use.
    DropOutput(SocketId),
    /// The send thread has written what it had, or failed; the owner may close.
    OutputEnded(SocketId, SocketCloseReason),
}
