//! What travels in the rings between threads.

use std::net::{SocketAddr, TcpStream};

use crate::address::Address;
use crate::output_batch::OutputBatch;
use crate::world::{WorldEvent, WorldRequest};

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

/// What threads say to each other about sockets; boxed so that what travels more often stays small.
#[derive(Debug)]
pub(crate) enum SocketParcel {
    /// An accepted connection for the recv thread that shall own it.
    Adopt(Box<(TcpStream, SocketAddr, u16)>),
    /// Output for a thread that shall write it for the owner.
    WriteOutput(Box<OutputBatch>),
    /// The output comes back, written or not.
    OutputReturned(Box<OutputBatch>),
}
