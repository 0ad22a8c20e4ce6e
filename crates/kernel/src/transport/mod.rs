//! Links between nodes: bytes in, signals out, without sockets and clocks. The real and the simulated node
//! drive the same state machines.
//!
//! In reading order:
//! - [`frame`]: how bytes are divided into frames and checked;
//! - [`hello`]: how two nodes prove to each other that they belong to one cluster;
//! - [`introduction`]: what a node asks before it has links;
//! - [`channel`]: numbered frames, acknowledgements, credits, and repetition after a reset;
//! - [`link`]: one channel with its connections: reconnecting, heartbeats, fencing;
//! - [`detection`]: when silence becomes suspicion;
//! - [`board`]: what the threads of a node share; `thread_links`: the links of one thread;
//! - [`figures`]: what those who watch the links see;
//! - [`security`]: how connections are encrypted.

pub mod board;
pub mod channel;
pub mod detection;
pub mod figures;
pub mod frame;
pub mod hello;
pub mod introduction;
pub mod link;
pub mod security;
pub(crate) mod thread_links;

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
