//! Transports: byte streams between the driver and a node.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::task::{Context, Poll, ready};

use async_io::Async;

/// Maximum number of bytes that one system call reads.
const READ_BYTES: usize = 64 * 1024;
/// Maximum number of buffers kept for reuse.
const IDLE_MAX: usize = 4;
/// Maximum capacity in bytes of a buffer kept for reuse.
const IDLE_BYTES_MAX: usize = 256 * 1024;

/// A bidirectional byte stream. One task polls it at a time.
pub trait Transport: Send {
    /// Sends `bytes` and empties the buffer. While the result is pending, the caller must pass the same
    /// buffer with the same contents again, since a part may already be sent.
    ///
    /// # Errors
    /// The stream failed and can no longer be used.
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>>;

    /// Receives bytes. An empty buffer means that the peer closed the stream.
    ///
    /// # Errors
    /// The stream failed and can no longer be used.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>>;

    /// Whether nobody but driver and node can read the stream: it is encrypted, or within a process. Only
    /// then does the driver send a password in plain text.
    fn is_private(&self) -> bool {
        false
    }

    /// Returns an empty buffer: a reused one, or a new one with a capacity of `bytes`.
    fn take_buffer(&mut self, bytes: usize) -> Vec<u8> {
        Vec::with_capacity(bytes)
    }

    /// Returns a buffer from [`Transport::poll_receive`] or [`Transport::take_buffer`] to the transport for
    /// reuse.
    fn recycle_buffer(&mut self, bytes: Vec<u8>) {
        drop(bytes);
    }
}

/// A TCP connection. It sends without delay (`TCP_NODELAY`).
#[derive(Debug)]
pub struct TcpTransport {
    stream: Async<TcpStream>,
    /// Number of bytes of the current buffer that are already sent.
    sent: usize,
    scratch: Box<[u8]>,
    idle: Vec<Vec<u8>>,
}

impl TcpTransport {
    /// Connects to an address.
    ///
    /// # Errors
    /// The operating system's error.
    pub async fn connect(address: SocketAddr) -> io::Result<TcpTransport> {
        let stream = Async::<TcpStream>::connect(address).await?;
        stream.get_ref().set_nodelay(true)?;
        Ok(TcpTransport { stream, sent: 0, scratch: vec![0; READ_BYTES].into(), idle: Vec::new() })
    }
}

impl Transport for TcpTransport {
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        while self.sent < bytes.len() {
            match self.stream.get_ref().write(&bytes[self.sent..]) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.stream.poll_writable(context))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.sent = 0;
        bytes.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        loop {
            match self.stream.get_ref().read(&mut self.scratch) {
                // Copied out of the large read buffer, because a reply keeps its bytes as long as the caller
                // keeps its rows.
                Ok(count) => {
                    let mut bytes = self.take_buffer(count);
                    bytes.extend_from_slice(&self.scratch[..count]);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.stream.poll_readable(context))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn take_buffer(&mut self, bytes: usize) -> Vec<u8> {
        self.idle.pop().unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    fn recycle_buffer(&mut self, mut bytes: Vec<u8>) {
        // Free a large buffer; otherwise one huge reply would hold its memory for the life of the connection.
        if self.idle.len() < IDLE_MAX && (1..=IDLE_BYTES_MAX).contains(&bytes.capacity()) {
            bytes.clear();
            self.idle.push(bytes);
        }
    }
}
