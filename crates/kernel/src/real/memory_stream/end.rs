//! Hot path: at most 100 instructions per read or write.
//!
//! The node's end of an in-memory connection, owned by a thread with sockets.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::buffer::{Buffer, BufferPool};
use crate::limit::KernelLimits;
use crate::scheduler::sleep::SleepCell;
use crate::sync::atomic::{AtomicBool, Ordering, fence};

use super::acceptor::Acceptor;
use super::client::MemoryStream;
use super::pipe::{PipeBounds, PipeReceiver, PipeSender, pipe};
use super::waker_slot::WakerSlot;

/// Registers which side of a connection waits for the other.
pub(super) struct Waiters {
    /// Set while the client waits for bytes.
    pub(super) receiver_waits: WakerSlot,
    /// Set while the client waits for space.
    pub(super) sender_waits: WakerSlot,
    /// True while the node waits for space.
    pub(super) node_waits: AtomicBool,
}

/// The node's end of a connection.
pub(in crate::real) struct NodeEnd {
    receiver: PipeReceiver,
    sender: PipeSender,
    waiters: Arc<Waiters>,
    slot: u32,
    /// A buffer too large for one read, and how many of its bytes were read.
    rest: Option<(Buffer, usize)>,
    /// Whether buffers were taken since the client was last notified of space.
    made_space: bool,
}

/// Outcome of handing over buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::real) enum HandOver {
    /// The client has all of them.
    All,
    /// The client takes no more for now.
    Full,
    /// The client will take no more.
    Broken,
}

/// Both ends of a new connection.
pub(super) fn connection(acceptor: &Arc<Acceptor>, slot: u32, limits: &KernelLimits) -> (MemoryStream, NodeEnd) {
    let bounds = PipeBounds { buffers_max: limits.stream_buffers_max, bytes_max: limits.stream_bytes_max as u64 };
    let (to_node, from_client) = pipe(bounds);
    let (to_client, from_node) = pipe(bounds);
    let waiters = Arc::new(Waiters {
        receiver_waits: WakerSlot::new(),
        sender_waits: WakerSlot::new(),
        node_waits: AtomicBool::new(false),
    });
    let stream = MemoryStream::new(to_node, from_node, waiters.clone(), acceptor.clone(), slot);
    (stream, NodeEnd { receiver: from_client, sender: to_client, waiters, slot, rest: None, made_space: false })
}

impl NodeEnd {
    /// The connection's slot at the acceptor.
    pub(in crate::real) fn slot(&self) -> u32 {
        self.slot
    }

    /// Takes at most `bytes_max` bytes, without copying if they arrived in a buffer of at most that size;
    /// `None` if there are none.
    #[inline]
    pub(in crate::real) fn read(&mut self, bytes_max: usize, buffers: &mut BufferPool) -> Option<Buffer> {
        if self.rest.is_some() {
            return self.read_rest(bytes_max, buffers);
        }
        let bytes = self.receiver.pop();
        self.made_space |= bytes.is_some();
        self.announce_space();
        let bytes = bytes?;
        if bytes.len() <= bytes_max {
            return Some(bytes);
        }
        self.rest = Some((bytes, 0));
        self.read_rest(bytes_max, buffers)
    }

    #[cold]
    fn read_rest(&mut self, bytes_max: usize, buffers: &mut BufferPool) -> Option<Buffer> {
        let (bytes, read) = self.rest.as_mut()?;
        let length = (bytes.len() - *read).min(bytes_max);
        let mut part = buffers.take(length);
        part.extend_from_slice(&bytes[*read..*read + length]);
        *read += length;
        if *read == bytes.len()
            && let Some((bytes, _)) = self.rest.take()
        {
            buffers.give(bytes);
        }
        Some(part)
    }

    /// Whether another read would return bytes, or the information that the client has closed.
    #[inline]
    pub(in crate::real) fn has_input(&mut self) -> bool {
        self.rest.is_some() || !self.receiver.is_empty() || self.receiver.is_sender_gone()
    }

    /// Whether everything was read and the client will send no more.
    pub(in crate::real) fn is_ended(&mut self) -> bool {
        self.rest.is_none() && self.receiver.is_ended()
    }

    /// Wakes a client that waits for space, if reads have freed space since its last notification. Must be
    /// called after each read and for each entry of the ready list. That suffices, because a client registers
    /// its waker before it puts the connection on the ready list.
    #[inline]
    pub(in crate::real) fn announce_space(&mut self) {
        if self.made_space && self.receiver.has_few() {
            self.made_space = !self.waiters.sender_waits.wake();
        }
    }

    /// Hands over queued buffers as far as there is space, and subtracts their bytes from `queued_bytes`.
    /// [`NodeEnd::wake_client`] must follow.
    #[inline]
    pub(in crate::real) fn hand_over(&mut self, queue: &mut VecDeque<Buffer>, queued_bytes: &mut usize) -> HandOver {
        if self.sender.is_receiver_gone() {
            return HandOver::Broken;
        }
        while let Some(bytes) = queue.pop_front() {
            *queued_bytes -= bytes.len();
            if let Err(bytes) = self.sender.push(bytes) {
                *queued_bytes += bytes.len();
                queue.push_front(bytes);
                self.sender.publish();
                if self.sender.is_receiver_gone() {
                    return HandOver::Broken;
                }
                if !self.has_space_or_registers() {
                    return HandOver::Full;
                }
            }
        }
        self.sender.publish();
        HandOver::All
    }

    /// Whether the client's pipe has space for a buffer. If not, the node is registered as waiting, and the
    /// client puts the connection on the ready list once the pipe has space.
    pub(in crate::real) fn has_space_or_registers(&mut self) -> bool {
        if self.sender.has_space() {
            return true;
        }
        self.waiters.node_waits.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        let has_space = self.sender.has_space();
        if has_space {
            self.waiters.node_waits.swap(false, Ordering::AcqRel);
        }
        has_space
    }

    /// Whether the client will take no more.
    pub(in crate::real) fn is_broken(&self) -> bool {
        self.sender.is_receiver_gone()
    }

    /// The fence between handing over buffers and [`NodeEnd::wake_client`]. One fence serves any number of
    /// connections.
    #[inline]
    pub(in crate::real) fn fence_before_wake() {
        SleepCell::fence_before_wakeup();
    }

    /// Wakes the client if it waits for bytes.
    #[inline]
    pub(in crate::real) fn wake_client(&self) {
        self.waiters.receiver_waits.wake();
    }
}

impl Drop for NodeEnd {
    fn drop(&mut self) {
        self.sender.close();
        self.receiver.close();
        Self::fence_before_wake();
        self.waiters.receiver_waits.wake();
        self.waiters.sender_waits.wake();
    }
}
