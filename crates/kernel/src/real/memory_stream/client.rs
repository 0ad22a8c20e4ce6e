//! Hot path: at most 150 instructions for a buffer that is sent or received without waiting.
//!
//! The client's end of an in-memory connection, for any thread or future outside the node.
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
use super::end::Waiters;
use super::pipe::{PipeReceiver, PipeSender};

/// Maximum number of bytes that [`Write`] puts into one buffer: what the node takes without copying.
const WRITE_BYTES_MAX: usize = 16 << 10;

/// Maximum total size of received buffers that a stream keeps for sending, in bytes.
const IDLE_BYTES_MAX: usize = 128 << 10;

/// Number of polls between two readings of the clock while a blocking call spins.
const POLLS_PER_CLOCK_READING: u32 = 16;

/// A connection to a node of the same process, equivalent to one over a socket: ordered bytes, bounded in
/// both directions, closed by either side. Dropping it closes it.
///
/// Whole buffers change hands without copying, and without system calls while both sides are busy. Buffer
/// boundaries carry no meaning: what was sent as one buffer may arrive as several, and vice versa.
pub struct MemoryStream {
    sender: MemorySender,
    receiver: MemoryReceiver,
    idle: BufferPool,
    /// The buffer that [`Read`] is returning bytes from, and how many it has returned.
    reading: (Buffer, usize),
}

/// The sending half of a [`MemoryStream`]. Dropping it closes the connection once the node has read
/// everything. Answers that are not in flight by then are lost.
pub struct MemorySender {
    pipe: PipeSender,
    node: NodeSide,
    wait_strategy: WaitStrategy,
}

/// The receiving half of a [`MemoryStream`]. Dropping it tells the node that nothing more will be received.
pub struct MemoryReceiver {
    pipe: PipeReceiver,
    node: NodeSide,
    wait_strategy: WaitStrategy,
}

/// Why a buffer was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub enum TrySendError {
    /// The bound on bytes or buffers in flight is reached. Returns the buffer.
    Full(Buffer),
    /// The node has closed the connection. Returns the buffer.
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
        waiters: Arc<Waiters>,
        acceptor: Arc<Acceptor>,
        slot: u32,
    ) -> Self {
        let node = NodeSide { waiters, acceptor, slot };
        Self {
            sender: MemorySender { pipe: to_node, node: node.clone(), wait_strategy: WaitStrategy::default() },
            receiver: MemoryReceiver { pipe: from_node, node, wait_strategy: WaitStrategy::default() },
            idle: BufferPool::new(IDLE_BYTES_MAX),
            reading: (Buffer::new(), 0),
        }
    }

    /// See [`MemorySender::try_send`].
    ///
    /// # Errors
    /// No space, or the node has closed the connection.
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
    /// The node has closed the connection and everything was received.
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
    /// The node has closed the connection and everything was received.
    pub fn receive_within(&mut self, longest: Duration) -> Result<Option<Buffer>, StreamClosed> {
        self.receiver.receive_within(longest)
    }

    /// An empty buffer with space for at least `capacity` bytes, reusing one that was given back.
    #[inline]
    pub fn buffer(&mut self, capacity: usize) -> Buffer {
        self.idle.take(capacity)
    }

    /// Gives a received buffer back, for reuse by [`MemoryStream::buffer`].
    #[inline]
    pub fn give(&mut self, bytes: Buffer) {
        self.idle.give(bytes);
    }

    /// How long blocking calls spin before they put their thread to sleep; initially 0.
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
    /// Hands a buffer to the node. An empty buffer is dropped.
    ///
    /// # Errors
    /// No space, or the node has closed the connection.
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

    /// Like [`MemorySender::try_send`]. If the pipe has no space, the task is woken once it has. Empties
    /// `bytes` when they are handed over.
    pub fn poll_send(&mut self, context: &mut Context<'_>, bytes: &mut Buffer) -> Poll<Result<(), StreamClosed>> {
        let full = match self.try_send(std::mem::take(bytes)) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(TrySendError::Full(full)) => full,
            Err(TrySendError::Closed(closed)) => {
                *bytes = closed;
                return Poll::Ready(Err(StreamClosed));
            }
        };
        let waits = &self.node.waiters.sender_waits;
        waits.register(context.waker());
        match self.try_send(full) {
            Err(TrySendError::Full(full)) => {
                *bytes = full;
                // The owning thread does not search for waiting clients, so notify it.
                self.node.notify();
                Poll::Pending
            }
            Err(TrySendError::Closed(closed)) => {
                *bytes = closed;
                Poll::Ready(Err(StreamClosed))
            }
            Ok(()) => {
                self.node.waiters.sender_waits.cancel();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Hands a buffer to the node; waits for space.
    ///
    /// # Errors
    /// The node has closed the connection.
    pub fn send(&mut self, mut bytes: Buffer) -> Result<(), StreamClosed> {
        let start = self.wait_strategy.start();
        loop {
            bytes = match self.try_send(bytes) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(StreamClosed),
                Err(TrySendError::Full(bytes)) => bytes,
            };
            if !self.wait_strategy.spins(start) {
                break;
            }
        }
        let waker = self.wait_strategy.waker();
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
        self.wait_strategy.spin = longest;
    }
}

impl Drop for MemorySender {
    fn drop(&mut self) {
        self.pipe.close();
        self.node.notify();
    }
}

impl MemoryReceiver {
    /// The next bytes; `Ok(None)` if none have arrived.
    ///
    /// # Errors
    /// The node has closed the connection and everything was received.
    #[inline]
    pub fn try_receive(&mut self) -> Result<Option<Buffer>, StreamClosed> {
        let mut bytes = self.pipe.pop();
        if bytes.is_none() && self.pipe.is_sender_gone() {
            // Everything sent before the close is visible by now, so this pop finds what remains.
            bytes = Some(self.pipe.pop().ok_or(StreamClosed)?);
        }
        // To wake the node for every buffer would be expensive. Wake it when at most half of the buffers are
        // left, which keeps both sides busy.
        if self.node.waiters.node_waits.load(Ordering::Relaxed) && self.pipe.has_few() {
            self.node.announce_space();
        }
        Ok(bytes)
    }

    /// The next bytes; `None` once the node has closed the connection and everything was received.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Buffer>> {
        match self.try_receive() {
            Ok(None) => {}
            Ok(bytes) => return Poll::Ready(bytes),
            Err(StreamClosed) => return Poll::Ready(None),
        }
        self.node.waiters.receiver_waits.register(context.waker());
        match self.try_receive() {
            Ok(None) => Poll::Pending,
            result => {
                self.node.waiters.receiver_waits.cancel();
                Poll::Ready(result.unwrap_or_default())
            }
        }
    }

    /// Waits for the next bytes; `None` once the node has closed the connection and everything was received.
    pub fn receive(&mut self) -> Option<Buffer> {
        self.receive_until(None).unwrap_or_default()
    }

    /// Waits at most `longest` for the next bytes; `Ok(None)` if none arrived.
    ///
    /// # Errors
    /// The node has closed the connection and everything was received.
    pub fn receive_within(&mut self, longest: Duration) -> Result<Option<Buffer>, StreamClosed> {
        self.receive_until(Some(Instant::now() + longest))
    }

    fn receive_until(&mut self, deadline: Option<Instant>) -> Result<Option<Buffer>, StreamClosed> {
        let start = self.wait_strategy.start();
        loop {
            if let Some(bytes) = self.try_receive()? {
                return Ok(Some(bytes));
            }
            if !self.wait_strategy.spins(start) {
                break;
            }
        }
        let waker = self.wait_strategy.waker();
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
        self.wait_strategy.spin = longest;
    }
}

impl Drop for MemoryReceiver {
    fn drop(&mut self) {
        self.pipe.close();
        self.node.notify();
    }
}

/// Waits for bytes; returns 0 once the node has closed the connection.
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

/// Sends immediately, so flushing does nothing; waits for space.
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

/// The client's path to the node.
#[derive(Clone)]
struct NodeSide {
    waiters: Arc<Waiters>,
    acceptor: Arc<Acceptor>,
    slot: u32,
}

impl NodeSide {
    #[inline]
    fn notify(&self) {
        self.acceptor.notify(self.slot);
    }

    /// If the node waits for space, makes it check again.
    #[cold]
    fn announce_space(&self) {
        if self.waiters.node_waits.swap(false, Ordering::AcqRel) {
            self.notify();
        }
    }
}

/// How a thread waits.
#[derive(Default)]
struct WaitStrategy {
    spin: Duration,
    /// Wakes the thread that waited last.
    waker: Option<(ThreadId, Waker)>,
    polls: u32,
}

impl WaitStrategy {
    fn start(&self) -> Option<Instant> {
        (!self.spin.is_zero()).then(Instant::now)
    }

    /// Whether to poll once more before sleeping.
    #[inline]
    fn spins(&mut self, start: Option<Instant>) -> bool {
        let Some(start) = start else { return false };
        std::hint::spin_loop();
        self.polls = self.polls.wrapping_add(1);
        !self.polls.is_multiple_of(POLLS_PER_CLOCK_READING) || start.elapsed() < self.spin
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

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
