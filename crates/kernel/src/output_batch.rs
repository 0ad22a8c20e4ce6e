//! Output of a socket that another thread writes for the socket's owner.
//!
//! At most one batch of each socket is with another thread, and the owner writes nothing to the socket until
//! that batch is back. Two threads therefore never write to one socket at the same time, and bytes are sent
//! in the order in which they were queued.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write};
use std::sync::Arc;

use mio::net::TcpStream;

use crate::buffer::Buffer;
use crate::context::Time;
use crate::world::SocketId;

/// Maximum number of buffers in one system call.
pub(crate) const SLICES_MAX: usize = 32;

/// Outcome of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// Everything is written.
    Empty,
    /// The socket takes no more for now.
    Full,
    /// The connection is broken.
    Broken,
}

/// Bytes, and the stream to which they are to be written. The batch always returns to its owner, with its
/// written and unwritten buffers, so that the buffers go back to the owner's pool.
#[derive(Debug)]
pub(crate) struct OutputBatch {
    pub(crate) socket: SocketId,
    /// Index of the thread that gets the batch back.
    pub(crate) owner: u16,
    /// The stream to write to. `None` while the batch is with its owner.
    pub(crate) stream: Option<Arc<TcpStream>>,
    pub(crate) queue: VecDeque<Buffer>,
    /// Number of completely written buffers.
    pub(crate) done: usize,
    /// Bytes written of the first buffer that is not completely written.
    pub(crate) written: usize,
    /// `None` until the attempt is over.
    pub(crate) result: Option<WriteResult>,
    /// When the helping thread got the batch.
    pub(crate) arrived: Time,
}

impl OutputBatch {
    pub(crate) fn new(socket: SocketId, owner: u16) -> Box<OutputBatch> {
        let (queue, arrived) = (VecDeque::new(), Time(0));
        Box::new(OutputBatch { socket, owner, stream: None, queue, done: 0, written: 0, result: None, arrived })
    }

    /// Writes until everything is written, the socket takes no more, or `bytes_max` bytes are written. In the
    /// last case `result` stays `None`. Returns the number of bytes written.
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
