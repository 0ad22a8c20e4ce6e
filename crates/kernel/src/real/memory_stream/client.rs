//! Hot path: at most 150 instructions a buffer that is sent or received without waiting.
//!
//! The client's end of a connection in memory, for any thread or future outside the node.
#![allow(clippy::disallowed_methods, reason = "clients of a node are no blocks: they may wait, and for a limited time")]

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use crate::buffer::{Buffer, BufferPool};
use crate::sync::atomic::Ordering;

use super::acceptor::Acceptor;
use super::end::Link;
use super::pipe::{PipeReceiver, PipeSender};

/// The most bytes that [`Write`] puts into one buffer; what the node takes without copying.
const WRITE_BYTES_MAX: usize = 16 << 10;

/// Bytes of received buffers that a stream keeps for what it will send.
const IDLE_BYTES_MAX: usize = 128 << 10;

/// Looks between two looks at the clock while a blocking call has not gone to sleep yet.
const LOOKS_PER_CLOCK: u32 = 16;

/// A connection to a node of the same process, as good as one over a socket: bytes in order, bounded both ways, closed by
/// either side. Dropping it closes it.
///
/// Whole buffers change hands, nothing is copied, and no system call is made while both sides are busy. Bytes have no
/// boundaries: what was sent as one buffer may come as several, and the other way round.
pub struct MemoryStream {
    sender: MemorySender,
    receiver: MemoryReceiver,
    idle: BufferPool,
    /// What [`Read`] has taken and not yet given out, and how much of it it gave out.
    reading: (Buffer, usize),
}

/// The half of a [`MemoryStream`] that sends. Dropping it closes the connection once the node has read everything; answers
/// that are not under way by then are lost.
pub struct MemorySender {
    pipe: PipeSender,
    node: NodeSide,
    patience: Patience,
}

/// The half of a [`MemoryStream`] that receives. Dropping it tells the node that nothing more is wanted.
pub struct MemoryReceiver {
    pipe: PipeReceiver,
    node: NodeSide,
    patience: Patience,
}

/// Why a buffer was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum TrySendError {
    /// As much is under way as may be; the buffer comes back.
    Full(Buffer),
    /// The node has closed the connection; the buffer comes back.
    Closed(Buffer),
}

impl fmt::Display for TrySendError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => formatter.write_str("the node takes no more for now"),
            Self::Closed(_) => StreamClosed.fmt(formatter),
        }
    }
}

impl std::error::Error for TrySendError {}

/// The node has closed the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamClosed;

impl fmt::Display for StreamClosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the node has closed the connection")
    }
}

impl std::error::Error for StreamClosed {}

impl MemoryStream {
    pub(super) fn new(
        to_node: PipeSender,
        from_node: PipeReceiver,
        link: Arc<Link>,
        acceptor: Arc<Acceptor>,
        slot: u32,
    ) -> Self {
        let node = NodeSide { link, acceptor, slot };
        Self {
            sender: MemorySender { pipe: to_node, node: node.clone(), patience: Patience::default() },
            receiver: MemoryReceiver { pipe: from_node, node, patience: Patience::default() },
            idle: BufferPool::new(IDLE_BYTES_MAX),
            reading: (Buffer::new(), 0),
        }
    }

    /// See [`MemorySender::try_send`].
    ///
    /// # Errors
    /// No room, or the node has closed the connection.
    #[inline]
    pub fn try_send(&mut self, bytes: Buffer) -> Result<(), TrySendError> {
        self.sender.try_send(bytes)
    }

    /// See [`MemorySender::poll_send`].
    pub fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Buffer) -> Poll<Result<(), StreamClosed>> {
        self.sender.poll_send(context, bytes)
    }

    /// See [`MemorySender::send`].
    ///
    /// # Errors
    /// The node has closed the connection.
    pub fn send(&mut self, bytes: Buffer) -> Result<(), StreamClosed> {
        self.sender.send(bytes)
    }

    /// See [`MemoryReceiver::try_receive`].
    ///
    /// # Errors
    /// The node has closed the connection and everything was taken.
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Buffer>, StreamClosed> {
        self.receiver.try_receive()
    }

    /// See [`MemoryReceiver::poll_receive`].
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Buffer>> {
        self.receiver.poll_receive(context)
    }

    /// See [`MemoryReceiver::receive`].
    pub fn receive(&mut self) -> Option<Buffer> {
        self.receiver.receive()
    }

    /// See [`MemoryReceiver::receive_within`].
    ///
    /// # Errors
    /// The node has closed the connection and everything was taken.
    pub fn receive_within(&mut self, longest: Duration) -> Result<Option<Buffer>, StreamClosed> {
        self.receiver.receive_within(longest)
    }

    /// An empty buffer with room for at least `capacity` bytes, one that was given back if there is one.
    #[inline]
    pub fn buffer(&mut self, capacity: usize) -> Buffer {
        self.idle.take(capacity)
    }

    /// Gives a received buffer back, to be used again for what is sent.
    #[inline]
    pub fn give(&mut self, bytes: Buffer) {
        self.idle.give(bytes);
    }

    /// How long blocking calls keep looking before they put their thread to sleep; 0 at first.
    pub fn set_spin(&mut self, longest: Duration) {
        self.sender.set_spin(longest);
        self.receiver.set_spin(longest);
    }

    /// The two halves, for two threads or tasks.
    pub fn split(self) -> (MemorySender, MemoryReceiver) {
        (self.sender, self.receiver)
    }

    fn flush_read(&mut self) {
        let (bytes, _) = std::mem::take(&mut self.reading);
        self.idle.give(bytes);
    }
}

impl MemorySender {
    /// Hands a buffer to the node. One without bytes is dropped.
    ///
    /// # Errors
    /// No room, or the node has closed the connection.
    #[inline]
    pub fn try_send(&mut self, bytes: Buffer) -> Result<(), TrySendError> {
        if self.pipe.is_receiver_gone() {
            return Err(TrySendError::Closed(bytes));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.pipe.push(bytes).map_err(TrySendError::Full)?;
        self.pipe.publish();
        self.node.notify();
        Ok(())
    }

    /// As [`MemorySender::try_send`]; without room the task is woken when there is some. Empties `bytes` when they are
    /// handed over.
    pub fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Buffer) -> Poll<Result<(), StreamClosed>> {
        let full = match self.try_send(std::mem::take(bytes)) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(TrySendError::Full(full)) => full,
            Err(TrySendError::Closed(closed)) => {
                *bytes = closed;
                return Poll::Ready(Err(StreamClosed));
            }
        };
        let waits = &self.node.link.sender_waits;
        waits.register(context.waker());
        match self.try_send(full) {
            Err(TrySendError::Full(full)) => {
                *bytes = full;
                // The recv thread does not look for those who wait; it is told.
                self.node.notify();
                Poll::Pending
            }
            Err(TrySendError::Closed(closed)) => {
                *bytes = closed;
                Poll::Ready(Err(StreamClosed))
            }
            Ok(()) => {
                self.node.link.sender_waits.cancel();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Hands a buffer to the node; waits while there is no room.
    ///
    /// # Errors
    /// The node has closed the connection.
    pub fn send(&mut self, mut bytes: Buffer) -> Result<(), StreamClosed> {
        let start = self.patience.start();
        loop {
            bytes = match self.try_send(bytes) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(StreamClosed),
                Err(TrySendError::Full(bytes)) => bytes,
            };
            if !self.patience.spins(start) {
                break;
            }
        }
        let waker = self.patience.waker();
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(result) = self.poll_send(&mut context, &mut bytes) {
                return result;
            }
            std::thread::park();
        }
    }

    /// See [`MemoryStream::set_spin`].
    pub fn set_spin(&mut self, longest: Duration) {
        self.patience.spin = longest;
    }
}

impl Drop for MemorySender {
    fn drop(&mut self) {
        self.pipe.close();
        self.node.notify();
    }
}

impl MemoryReceiver {
    /// The next bytes; `Ok(None)` if there are none yet.
    ///
    /// # Errors
    /// The node has closed the connection and everything was taken.
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Buffer>, StreamClosed> {
        let mut bytes = self.pipe.pop();
        if bytes.is_none() && self.pipe.is_sender_gone() {
            // What came before the end is seen now at the latest.
            bytes = Some(self.pipe.pop().ok_or(StreamClosed)?);
        }
        if self.node.link.node_waits.load(Ordering::Relaxed) && self.pipe.has_few() {
            self.node.announce_room();
        }
        Ok(bytes)
    }

    /// The next bytes; nothing when the node has closed the connection and everything was taken.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Buffer>> {
        match self.try_receive() {
            Ok(None) => {}
            Ok(bytes) => return Poll::Ready(bytes),
            Err(StreamClosed) => return Poll::Ready(None),
        }
        self.node.link.receiver_waits.register(context.waker());
        match self.try_receive() {
            Ok(None) => Poll::Pending,
            result => {
                self.node.link.receiver_waits.cancel();
                Poll::Ready(result.unwrap_or_default())
            }
        }
    }

    /// The next bytes, waited for; nothing when the node has closed the connection and everything was taken.
    pub fn receive(&mut self) -> Option<Buffer> {
        self.receive_until(None).unwrap_or_default()
    }

    /// The next bytes, waited for so long and no longer; `Ok(None)` if none came.
    ///
    /// # Errors
    /// The node has closed the connection and everything was taken.
    pub fn receive_within(&mut self, longest: Duration) -> Result<Option<Buffer>, StreamClosed> {
        self.receive_until(Some(Instant::now() + longest))
    }

    fn receive_until(&mut self, deadline: Option<Instant>) -> Result<Option<Buffer>, StreamClosed> {
        let start = self.patience.start();
        loop {
            if let Some(bytes) = self.try_receive()? {
                return Ok(Some(bytes));
            }
            if !self.patience.spins(start) {
                break;
            }
        }
        let waker = self.patience.waker();
        let mut context = Context::from_waker(&waker);
        loop {
            match self.poll_receive(&mut context) {
                Poll::Ready(None) => return Err(StreamClosed),
                Poll::Ready(bytes) => return Ok(bytes),
                Poll::Pending => {}
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => std::thread::park(),
                Some(Duration::ZERO) => return Ok(None),
                Some(rest) => std::thread::park_timeout(rest),
            }
        }
    }

    /// See [`MemoryStream::set_spin`].
    pub fn set_spin(&mut self, longest: Duration) {
        self.patience.spin = longest;
    }
}

impl Drop for MemoryReceiver {
    fn drop(&mut self) {
        self.pipe.close();
        self.node.notify();
    }
}

/// Waits for bytes; 0 when the node has closed the connection.
impl Read for MemoryStream {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if self.reading.1 == self.reading.0.len() {
            self.flush_read();
            match self.receive() {
                Some(bytes) => self.reading = (bytes, 0),
                None => return Ok(0),
            }
        }
        let (bytes, read) = &mut self.reading;
        let length = out.len().min(bytes.len() - *read);
        out[..length].copy_from_slice(&bytes[*read..*read + length]);
        *read += length;
        Ok(length)
    }
}

/// Sends at once, so flushing does nothing; waits for room.
impl Write for MemoryStream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let length = bytes.len().min(WRITE_BYTES_MAX);
        let mut buffer = self.buffer(length);
        buffer.extend_from_slice(&bytes[..length]);
        self.send(buffer).map_err(|closed| std::io::Error::new(ErrorKind::BrokenPipe, closed))?;
        Ok(length)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The way to the node.
#[derive(Clone)]
struct NodeSide {
    link: Arc<Link>,
    acceptor: Arc<Acceptor>,
    slot: u32,
}

impl NodeSide {
    #[inline]
    fn notify(&self) {
        self.acceptor.notify(self.slot);
    }

    /// The node, which waits for room, looks again.
    #[cold]
    fn announce_room(&self) {
        if self.link.node_waits.swap(false, Ordering::AcqRel) {
            self.notify();
        }
    }
}

/// How a thread waits.
#[derive(Default)]
struct Patience {
    spin: Duration,
    /// Wakes the thread that waited last.
    waker: Option<(ThreadId, Waker)>,
    looks: u32,
}

impl Patience {
    fn start(&self) -> Option<Instant> {
        (!self.spin.is_zero()).then(Instant::now)
    }

    /// Whether to look once more before going to sleep.
    #[inline]
    fn spins(&mut self, start: Option<Instant>) -> bool {
        let Some(start) = start else { return false };
        std::hint::spin_loop();
        self.looks = self.looks.wrapping_add(1);
        !self.looks.is_multiple_of(LOOKS_PER_CLOCK) || start.elapsed() < self.spin
    }

    fn waker(&mut self) -> Waker {
        let thread = std::thread::current();
        match &self.waker {
            Some((id, waker)) if *id == thread.id() => waker.clone(),
            _ => {
                let id = thread.id();
                let waker = Waker::from(Arc::new(Unpark(thread)));
                self.waker = Some((id, waker.clone()));
                waker
            }
        }
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
