//! Hot path: at most 40 instructions per buffer at each end, not counting those of the ring.
//!
//! One direction of an in-memory connection: a ring of buffers that is also bounded in bytes.

use crate::buffer::Buffer;
use crate::mailbox::{Consumer, Producer, ring};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, CachePadded};

/// Bounds on what may be in flight in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipeBounds {
    /// Maximum number of buffers, rounded up to a power of two.
    pub(super) buffers_max: u32,
    /// A buffer is accepted while fewer bytes than this are in flight, so a buffer of any size can pass.
    pub(super) bytes_max: u64,
}

struct PipeState {
    /// Bytes taken by the receiver since the start.
    taken_bytes: CachePadded<AtomicU64>,
    gone: CachePadded<DroppedEnds>,
}

/// Which ends have been dropped.
struct DroppedEnds {
    sender: AtomicBool,
    receiver: AtomicBool,
}

/// The sending end of a pipe.
pub(super) struct PipeSender {
    ring: Producer<Buffer>,
    state: Arc<PipeState>,
    sent_bytes: u64,
    /// Last value loaded from `taken_bytes`.
    taken_bytes_seen: u64,
    bytes_max: u64,
}

/// The receiving end of a pipe.
pub(super) struct PipeReceiver {
    ring: Consumer<Buffer>,
    state: Arc<PipeState>,
    taken_bytes: u64,
    /// Half of the ring.
    few_buffers: u64,
}

/// Both ends of a new pipe.
pub(super) fn pipe(bounds: PipeBounds) -> (PipeSender, PipeReceiver) {
    let (producer, consumer) = ring(bounds.buffers_max);
    let gone = DroppedEnds { sender: AtomicBool::new(false), receiver: AtomicBool::new(false) };
    let state = Arc::new(PipeState { taken_bytes: CachePadded(AtomicU64::new(0)), gone: CachePadded(gone) });
    let few_buffers = producer.capacity() / 2;
    let bytes_max = bounds.bytes_max.max(1);
    let sender = PipeSender { ring: producer, state: state.clone(), sent_bytes: 0, taken_bytes_seen: 0, bytes_max };
    (sender, PipeReceiver { ring: consumer, state, taken_bytes: 0, few_buffers })
}

impl PipeSender {
    /// Appends a buffer without publishing it. Returns the buffer if the pipe has no space.
    #[inline]
    pub(super) fn push(&mut self, bytes: Buffer) -> Result<(), Buffer> {
        if !self.has_space_for_bytes() {
            return Err(bytes);
        }
        let length = bytes.len() as u64;
        self.ring.push(bytes)?;
        self.sent_bytes += length;
        Ok(())
    }

    /// Makes all appended buffers visible to the receiver.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.ring.publish();
    }

    /// Whether a buffer would be accepted, by the receiver's current figures.
    pub(super) fn has_space(&mut self) -> bool {
        self.has_space_for_bytes() && self.ring.free() > 0
    }

    #[inline]
    fn has_space_for_bytes(&mut self) -> bool {
        if self.sent_bytes - self.taken_bytes_seen < self.bytes_max {
            return true;
        }
        self.taken_bytes_seen = self.state.taken_bytes.load(Ordering::Acquire);
        self.sent_bytes - self.taken_bytes_seen < self.bytes_max
    }

    /// Whether the receiving end is closed.
    #[inline]
    pub(super) fn is_receiver_gone(&self) -> bool {
        self.state.gone.receiver.load(Ordering::Acquire)
    }

    /// Announces that no more buffers will be sent. The receiver still gets the buffers in the pipe.
    pub(super) fn close(&mut self) {
        self.ring.publish();
        self.state.gone.sender.store(true, Ordering::Release);
    }
}

impl Drop for PipeSender {
    fn drop(&mut self) {
        self.close();
    }
}

impl PipeReceiver {
    /// Takes the oldest buffer and returns its space to the sender.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Buffer> {
        let bytes = match self.ring.pop() {
            Some(bytes) => bytes,
            None => {
                self.ring.refresh();
                self.ring.pop()?
            }
        };
        self.taken_bytes += bytes.len() as u64;
        self.state.taken_bytes.store(self.taken_bytes, Ordering::Release);
        self.ring.release();
        Some(bytes)
    }

    /// Whether the pipe is empty at this moment.
    #[inline]
    pub(super) fn is_empty(&mut self) -> bool {
        self.ring.refresh() == 0
    }

    /// Whether at most half of the buffers are left, so that waking a waiting sender is worthwhile.
    pub(super) fn has_few(&mut self) -> bool {
        self.ring.refresh() <= self.few_buffers
    }

    /// Whether everything was taken and nothing more will arrive.
    pub(super) fn is_ended(&mut self) -> bool {
        self.is_sender_gone() && self.ring.refresh() == 0
    }

    /// Whether the sending end is closed.
    #[inline]
    pub(super) fn is_sender_gone(&self) -> bool {
        self.state.gone.sender.load(Ordering::Acquire)
    }

    /// Announces that nothing more will be taken.
    pub(super) fn close(&mut self) {
        self.state.gone.receiver.store(true, Ordering::Release);
    }
}

impl Drop for PipeReceiver {
    fn drop(&mut self) {
        self.close();
    }
}
