//! The items in the mailbox rings between threads.

use std::net::TcpStream;

use crate::address::Address;
use crate::output_batch::OutputBatch;
use crate::peer::PeerAddress;
use crate::transport::security::Encryption;
use crate::world::{WorldEvent, WorldRequest};

/// A signal with its receiver and sender.
#[derive(Debug)]
pub(crate) struct Envelope<S> {
    pub to: Address,
    pub from: Address,
    pub signal: S,
}

/// A signal, or one of the kernel's own messages about sockets and files. A thread always takes the kernel's
/// messages out of a ring, as it does with reserved signals.
#[derive(Debug)]
pub(crate) enum Parcel<S> {
    Signal(Envelope<S>),
    /// A signal for another node, for the thread that owns its channel. Boxed, because a second variant of
    /// this size would make every parcel larger.
    Remote(Box<Envelope<S>>),
    /// A block's request, for the thread that owns the socket.
    Request(Address, WorldRequest),
    /// An event for a block of another thread.
    Event(Address, WorldEvent),
    /// For a thread that owns a socket, or that writes for such a thread.
    Socket(SocketParcel),
}

/// Messages between threads about sockets. Boxed, so that they do not enlarge the far more frequent signals.
#[derive(Debug)]
pub(crate) enum SocketParcel {
    /// An accepted connection for the thread that will own it.
    Adopt(Box<(TcpStream, PeerAddress, u16)>),
    /// A connection of another node for the thread that owns its channel.
    AdoptLink(Box<AcceptedLink>),
    /// Output that the receiving thread writes for the socket's owner.
    WriteOutput(Box<OutputBatch>),
    /// A batch that returns to its owner, written or not.
    OutputReturned(Box<OutputBatch>),
}

/// A connection of another node, whose first message says for which channel it is.
#[derive(Debug)]
pub(crate) struct AcceptedLink {
    pub stream: TcpStream,
    pub message: Vec<u8>,
    /// If connections are encrypted.
    pub encryption: Option<Box<dyn Encryption>>,
}
