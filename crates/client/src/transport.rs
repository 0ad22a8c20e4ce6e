//! What carries bytes to a node and back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::task::{Context, Poll, ready};

use async_io::Async;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Buffers that are kept for reuse, and the longest of them.
const IDLE_MAX: usize = 4;
const IDLE_BYTES_MAX: usize = 256 * 1024;

/// A stream of bytes in either direction, to be polled by one task at a time.
pub trait Transport: Send {
    /// Sends bytes. While it is pending the same buffer must be given again, for part of it may have been sent. When it is ready the
    /// buffer is empty.
    ///
    /// # Errors
    /// The stream is of no use any more.
    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>>;

    /// Waits for bytes; an empty buffer when the other side has closed the stream.
    ///
    /// # Errors
    /// The stream is of no use any more.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>>;

    /// An empty buffer, perhaps one that was given back.
    fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        Vec::with_capacity(bytes)
    }

    /// Takes back a buffer that [`Transport::poll_receive`] or [`Transport::buffer`] has made.
    fn give(&mut self, bytes: Vec<u8>) {
        drop(bytes);
    }
}

/// TCP.
#[derive(Debug)]
pub struct TcpTransport {
    stream: Async<TcpStream>,
    /// Bytes of the buffer under way that are sent.
    sent: usize,
    scratch: Box<[u8]>,
    idle: Vec<Vec<u8>>,
}

impl TcpTransport {
    /// Connects to an address.
    ///
    /// # Errors
    /// Those of the operating system.
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
                Ok(count) => {
                    let mut bytes = self.buffer(count);
                    bytes.extend_from_slice(&self.scratch[..count]);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.stream.poll_readable(context))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        self.idle.pop().unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    fn give(&mut self, mut bytes: Vec<u8>) {
        if self.idle.len() < IDLE_MAX && (1..=IDLE_BYTES_MAX).contains(&bytes.capacity()) {
            bytes.clear();
            self.idle.push(bytes);
        }
    }
}
