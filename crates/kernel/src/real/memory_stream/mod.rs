//! In-memory connections between a node and other threads of the same process. Whole buffers change owner,
//! and no socket is involved.
//!
//! A connection consists of two bounded pipes. The node's end belongs to a thread that owns sockets, and
//! blocks cannot tell the connection from a socket. The client's end belongs to any other thread, or to a
//! future.
//!
//! In reading order:
//! - `pipe`: one direction of a connection, a ring of buffers with a bound in bytes;
//! - `ready_list`: which connections of a thread have input for it;
//! - `waker_slot`: how the node finds a waiting client;
//! - `acceptor`: takes new connections; `end`: the node's end; `client`: the client's end.
//!
//! Wake-ups. A client that sends puts its connection into the ready list and rings the doorbell of the owning
//! thread, which wakes that thread if it sleeps. The node wakes a client only if the client has registered a
//! waker. A client that finds no space registers first and then enters the ready list, so the thread that
//! takes the list sees the waker. If the node finds no space, it sets a flag and checks again; the client
//! checks that flag whenever it has taken a buffer.

mod client;
mod acceptor;
mod end;
mod ready_list;
mod pipe;
mod waker_slot;

pub(super) use acceptor::{Acceptor, Arrival, Bell, Refusal};
pub use client::{MemoryReceiver, MemorySender, MemoryStream, StreamClosed, TrySendError};
pub(super) use end::{HandOver, NodeEnd};

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
