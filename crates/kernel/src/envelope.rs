//! The items that travel in the rings between threads.

use std::net::{SocketAddr, TcpStream};

use crate::address::Address;
use crate::output_batch::OutputBatch;
use crate::world::{WorldEvent, WorldRequest};

/// A signal with its receiver and sender.
#[derive(Debug)]
pub(crate) struct Envelope<S> {
    pub to: Address,
    pub from: Address,
    pub signal: S,
}

/// A signal, or a message of the kernel itself about the world. Messages of the kernel are always taken, like
/// reserved signals.
#[derive(Debug)]
pub(crate) enum Parcel<S> {
    Signal(Envelope<S>),
    /// For the thread that owns the socket or the files.
    Request(Address, WorldRequest),
    /// The answer, for a block of another thread.
    Event(Address, WorldEvent),
    /// Between threads that read and write the same sockets.
    Socket(SocketParcel),
}

/// Messages between threads about sockets. Boxed, so that they do not enlarge the far more frequent signals.
#[derive(Debug)]
pub(crate) enum SocketParcel {
    /// An accepted connection for the thread that will own it.
    Adopt(Box<(TcpStream, SocketAddr, u16)>),
    /// Output that the receiving thread writes for the socket's owner.
    WriteOutput(Box<OutputBatch>),
    /// The batch comes back to the owner, written or not.
    OutputReturned(Box<OutputBatch>),
}
