//! Connections between a thread of this process and its node, without a socket: buffers change hands whole.
//!
//! A connection is two bounded pipes. The node's end belongs to a recv thread, which treats it as one more kind of socket:
//! blocks cannot tell. The client's end belongs to any other thread, or to a future.
//!
//! In reading order:
//! - `pipe`: one direction, a ring of buffers with a bound in bytes;
//! - `ready`: which connections of a recv thread have something for it;
//! - `waker_slot`: how the node finds a client that waits;
//! - `acceptor`: where clients knock; `end`: the node's end; `client`: the client's.
//!
//! Who wakes whom. A client that sends puts its connection into the list of news and rings the bell of the recv thread,
//! which sounds only if that thread sleeps. The node wakes a client only if its waker is announced. A client without room says
//! so before it puts itself into the list, so that the recv thread, which takes the list, knows; a node without room
//! announces that and looks again, and the client looks after it has taken something.

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
