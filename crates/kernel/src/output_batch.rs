//! Output of a socket on its way to a thread that writes it for the owner, and back.
//!
//! At most one loan of a socket is under way. What is queued meanwhile stays with the owner, so bytes of one socket are never
//! with two threads that may write, and their order is that in which they were queued.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write};
use std::sync::Arc;

use mio::net::TcpStream;

use crate::buffer::Buffer;
use crate::context::Time;
use crate::world::SocketId;

/// The most buffers given to one system call.
pub(crate) const SLICES_MAX: usize = 32;

/// What became of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// Everything is written.
    Empty,
    /// The socket takes no more for now.
    Full,
    /// The connection is broken.
    Broken,
}

/// Bytes to write and the means to do so. It comes back in any case, with what was written and what was not, so that the buffers
/// go back where they came from.
#[derive(Debug)]
pub(crate) struct OutputBatch {
    pub(crate) socket: SocketId,
    /// The thread that it goes back to.
    pub(crate) owner: u16,
    /// Only written to; none while the loan lies with its owner.
    pub(crate) stream: Option<Arc<TcpStream>>,
    pub(crate) queue: VecDeque<Buffer>,
    /// Whole buffers that are written.
    pub(crate) done: usize,
    /// Bytes written of the buffer after those.
    pub(crate) written: usize,
    /// What came of it; none if nothing was tried, or there is more to try.
    pub(crate) result: Option<WriteResult>,
    /// When the helper got it.
    pub(crate) came: Time,
}

impl OutputBatch {
    pub(crate) fn new(socket: SocketId, owner: u16) -> Box<OutputBatch> {
        let (queue, came) = (VecDeque::new(), Time(0));
        Box::new(OutputBatch { socket, owner, stream: None, queue, done: 0, written: 0, result: None, came })
    }

    /// Writes all, or as much as the socket takes, or `bytes_max` bytes, and then it has no result yet. Returns how many bytes.
    pub(crate) fn write(&mut self, bytes_max: usize) -> usize {
        let Some(stream) = self.stream.take() else { return 0 };
        let mut bytes = 0;
        let result = loop {
            if self.done == self.queue.len() {
                break WriteResult::Empty;
            }
            if bytes >= bytes_max {
                self.stream = Some(stream);
                return bytes;
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let (mut wanted, mut count) = (0, 0);
            for (slice, buffer) in slices.iter_mut().zip(self.queue.range(self.done..)) {
                let rest = if count == 0 { buffer.get(self.written..).unwrap_or_default() } else { buffer.as_slice() };
                let rest = &rest[..rest.len().min(bytes_max - bytes - wanted)];
                *slice = IoSlice::new(rest);
                wanted += rest.len();
                count += 1;
            }
            match (&*stream).write_vectored(&slices[..count]) {
                Ok(length) => {
                    bytes += length;
                    self.advance(length);
                    if length < wanted {
                        break WriteResult::Full;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break WriteResult::Full,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break WriteResult::Broken,
            }
        };
        self.result = Some(result);
        bytes
    }

    fn advance(&mut self, length: usize) {
        self.written += length;
        while let Some(buffer) = self.queue.get(self.done)
            && self.written >= buffer.len()
        {
            self.written -= buffer.len();
            self.done += 1;
        }
    }
}
