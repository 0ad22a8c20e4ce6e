//! In-memory connections between a thread of this process and its node: whole buffers change hands without a
//! socket.
//!
//! A connection is two bounded pipes. The node's end belongs to a thread that owns sockets, which treats it
//! as one more kind of socket; blocks cannot tell. The client's end belongs to any other thread, or to a
//! future.
//!
//! In reading order:
//! - `pipe`: one direction, a ring of buffers with a bound in bytes;
//! - `ready_list`: which connections of a thread have input for it;
//! - `waker_slot`: how the node finds a waiting client;
//! - `acceptor`: where clients connect; `end`: the node's end; `client`: the client's.
//!
//! Wake-ups. A client that sends puts its connection into the ready list and rings the bell of the owning
//! thread, which has an effect only if that thread sleeps. The node wakes a client only if the client
//! registered a waker. A client without space registers before it enters the ready list, so the thread that
//! takes the list knows. A node without space sets a flag and checks again, and the client checks the flag
//! after it has taken something.

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
