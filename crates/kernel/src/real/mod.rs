//! The real world: threads of the operating system, sockets, files and clocks.

pub(crate) mod clock;
mod doorbell;
mod file;
mod node;
mod output;
mod sender;
mod socket;
mod spinner;
mod thread;
mod thread_usage;
mod wake;

pub use node::{Node, NodeOptions, RunningNode, StartError, StopHandle};

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
