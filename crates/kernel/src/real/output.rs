//! The queued output of one socket.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write};

use mio::net::TcpStream;

use crate::buffer::{Buffer, BufferPool};
use crate::limit::KernelLimits;
use crate::output_batch::{OutputBatch, SLICES_MAX, WriteResult};

use super::memory_stream::{HandOver, NodeEnd};

/// Buffers that wait to be written to one socket.
#[derive(Debug, Default)]
pub(super) struct Output {
    queue: VecDeque<Buffer>,
    /// Bytes written of the first buffer.
    written: usize,
    /// Unwritten bytes, including those that a helper is to write.
    bytes: usize,
    above_high_water: bool,
    /// Whether a helping thread has a batch of this socket's earlier output. The queue must then wait.
    is_with_helper: bool,
}

/// How the amount of queued output changed, for the block that owns the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressure {
    Unchanged,
    /// The queue has exceeded the high-water mark.
    Blocked,
    /// The queue has fallen below the low-water mark.
    Drained,
    /// The queue has exceeded its maximum.
    Exceeded,
}

impl Output {
    pub(super) fn push(&mut self, buffer: Buffer, limits: &KernelLimits) -> Pressure {
        self.bytes += buffer.len();
        self.queue.push_back(buffer);
        if self.bytes > limits.send_bytes_max {
            return Pressure::Exceeded;
        }
        if self.bytes > limits.send_high_water_bytes && !self.above_high_water {
            self.above_high_water = true;
            return Pressure::Blocked;
        }
        Pressure::Unchanged
    }

    /// Queues output of a link, which limits the amount itself.
    pub(super) fn push_link(&mut self, buffer: Buffer) {
        self.bytes += buffer.len();
        self.queue.push_back(buffer);
    }

    /// Whether all output is written, including that of a helper.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && !self.is_with_helper
    }

    /// Whether a helper has output of this socket.
    pub(super) fn is_with_helper(&self) -> bool {
        self.is_with_helper
    }

    /// Whether output is queued that this thread may write.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() && !self.is_with_helper
    }

    /// Unwritten bytes, including those that a helper is to write.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Moves all queued buffers to an empty batch.
    pub(super) fn fill_batch(&mut self, batch: &mut OutputBatch) {
        std::mem::swap(&mut self.queue, &mut batch.queue);
        (batch.done, batch.written, batch.result) = (0, std::mem::take(&mut self.written), None);
        self.is_with_helper = true;
    }

    /// Takes a batch back and empties it. The batch's unwritten buffers go in front of those queued since.
    pub(super) fn take_back(&mut self, batch: &mut OutputBatch, buffers: &mut BufferPool) {
        let rest: usize = batch.queue.range(batch.done..).map(Buffer::len).sum();
        let queued: usize = self.queue.iter().map(Buffer::len).sum();
        self.bytes = rest + queued - batch.written;
        for buffer in batch.queue.drain(..batch.done) {
            buffers.give(buffer);
        }
        if !batch.queue.is_empty() {
            batch.queue.append(&mut self.queue);
            std::mem::swap(&mut self.queue, &mut batch.queue);
            self.written = batch.written;
        }
        self.is_with_helper = false;
    }

    /// Writes to the socket, with one system call unless the queue has more than [`SLICES_MAX`] buffers.
    pub(super) fn write(&mut self, mut stream: &TcpStream, buffers: &mut BufferPool) -> WriteResult {
        while !self.queue.is_empty() {
            let (wanted, result) = if self.queue.len() == 1 {
                let bytes = self.queue[0].get(self.written..).unwrap_or_default();
                (bytes.len(), stream.write(bytes))
            } else {
                self.write_several(stream)
            };
            match result {
                Ok(length) => {
                    self.advance(length, buffers);
                    if length < wanted {
                        return WriteResult::Full;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return WriteResult::Full,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return WriteResult::Broken,
            }
        }
        WriteResult::Empty
    }

    /// Hands all queued buffers to a client of this process. The caller must wake the client afterwards.
    pub(super) fn hand_over(&mut self, end: &mut NodeEnd) -> WriteResult {
        match end.hand_over(&mut self.queue, &mut self.bytes) {
            HandOver::All => WriteResult::Empty,
            HandOver::Full => WriteResult::Full,
            HandOver::Broken => WriteResult::Broken,
        }
    }

    /// Writes many buffers with one system call. Returns their total length and the result.
    fn write_several(&self, mut stream: &TcpStream) -> (usize, std::io::Result<usize>) {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut wanted = 0;
        let mut count = 0;
        for (slice, buffer) in slices.iter_mut().zip(&self.queue) {
            let bytes = if count == 0 { buffer.get(self.written..).unwrap_or_default() } else { buffer.as_slice() };
            *slice = IoSlice::new(bytes);
            wanted += bytes.len();
            count += 1;
        }
        (wanted, stream.write_vectored(&slices[..count]))
    }

    fn advance(&mut self, length: usize, buffers: &mut BufferPool) {
        self.bytes -= length;
        self.written += length;
        while let Some(front) = self.queue.front() {
            if self.written < front.len() {
                return;
            }
            self.written -= front.len();
            buffers.give(self.queue.pop_front().unwrap_or_default());
        }
    }

    /// After a write: [`Pressure::Drained`] if a block that was blocked may send again.
    pub(super) fn pressure_after_write(&mut self, limits: &KernelLimits) -> Pressure {
        if self.above_high_water && self.bytes < limits.send_low_water_bytes {
            self.above_high_water = false;
            return Pressure::Drained;
        }
        Pressure::Unchanged
    }

    pub(super) fn discard(&mut self, buffers: &mut BufferPool) {
        for buffer in self.queue.drain(..) {
            buffers.give(buffer);
        }
        *self = Self::default();
    }
}
