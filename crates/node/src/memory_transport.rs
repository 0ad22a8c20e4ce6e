//! The Rust driver's transport to a node in the same process.

use std::io;
use std::task::{Context, Poll};

use junctor_client::Transport;
use junctor_kernel::MemoryStream;

/// A stream in memory to a recv thread. Whole buffers change owner, so no byte is copied.
pub struct MemoryTransport(pub MemoryStream);

impl Transport for MemoryTransport {
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        self.0.poll_send(context, bytes).map_err(|closed| io::Error::new(io::ErrorKind::BrokenPipe, closed))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        self.0.poll_receive(context).map(|bytes| Ok(bytes.unwrap_or_default()))
    }

    fn is_private(&self) -> bool {
        true
    }

    fn take_buffer(&mut self, bytes: usize) -> Vec<u8> {
        self.0.buffer(bytes)
    }

    fn recycle_buffer(&mut self, bytes: Vec<u8>) {
        self.0.give(bytes);
    }
}
