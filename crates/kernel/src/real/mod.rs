//! The real world: threads of the operating system, sockets and files.

mod foreign_output;
mod doorbell;
mod file;
mod link_socket;
mod listener;
mod memory_stream;
mod node;
mod output;
mod thread_slot;
mod sending;
mod socket;
mod socket_counts;
mod spinner;
mod tcp_info;
mod thread;
mod thread_usage;
mod wake;

pub use file::FileBackend;
pub use memory_stream::{MemoryReceiver, MemorySender, MemoryStream, StreamClosed, TrySendError};
pub use node::{ConnectError, Connector, LinkOptions, Node, NodeOptions, RunningNode, StartError, StopHandle};

/// Aborts the process when its thread unwinds: a panic is a broken invariant, and no thread may continue.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests;
