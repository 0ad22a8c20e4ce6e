//! The acceptor of one thread: takes new in-memory connections, and keeps the ready list of existing ones.
//!
//! Clients hold the lock for a few instructions, once or twice in the life of a connection. The owning thread
//! waits for the lock only when the node halts.

use std::sync::Arc;

use crate::limit::KernelLimits;
use crate::scheduler::sleep::SleepCell;
use crate::sync::Mutex;

use super::client::MemoryStream;
use super::end::{NodeEnd, connection};
use super::ready_list::ReadyList;

/// Wakes the owning thread if it sleeps. The caller must have published its input and then called
/// [`SleepCell::fence_before_wakeup`].
pub(in crate::real) trait Bell: Send + Sync {
    fn ring(&self);
}

/// Accepts the in-memory connections of one thread.
pub(in crate::real) struct Acceptor {
    ready: ReadyList,
    bell: Box<dyn Bell>,
    state: Mutex<AcceptorState>,
}

struct AcceptorState {
    arrivals: Vec<Arrival>,
    free: Vec<u32>,
    /// Slots from here on were never used.
    unused: u32,
    closed: bool,
}

/// A new connection that its thread has not taken yet.
pub(in crate::real) struct Arrival {
    /// The node's end.
    pub(in crate::real) end: NodeEnd,
    /// Number of the listener by which the connection counts as accepted.
    pub(in crate::real) listener: u16,
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::real) enum Refusal {
    Closed,
    Full,
}

impl Acceptor {
    /// An acceptor for at most `slots` connections at a time.
    pub(in crate::real) fn new(slots: u32, bell: Box<dyn Bell>) -> Self {
        let state = AcceptorState { arrivals: Vec::new(), free: Vec::new(), unused: 0, closed: false };
        Self { ready: ReadyList::new(slots), bell, state: Mutex::new(state) }
    }

    /// Makes a connection and announces it to the owning thread.
    pub(in crate::real) fn connect(
        self: &Arc<Self>,
        listener: u16,
        limits: &KernelLimits,
    ) -> Result<MemoryStream, Refusal> {
        let slot = self.allocate_slot()?;
        let (stream, end) = connection(self, slot, limits);
        {
            let Ok(mut state) = self.state.lock() else { return Err(Refusal::Closed) };
            if state.closed {
                return Err(Refusal::Closed);
            }
            state.arrivals.push(Arrival { end, listener });
        }
        self.notify(slot);
        Ok(stream)
    }

    fn allocate_slot(&self) -> Result<u32, Refusal> {
        let Ok(mut state) = self.state.lock() else { return Err(Refusal::Closed) };
        if state.closed {
            return Err(Refusal::Closed);
        }
        if let Some(slot) = state.free.pop() {
            return Ok(slot);
        }
        if state.unused >= self.ready.capacity() {
            return Err(Refusal::Full);
        }
        state.unused += 1;
        Ok(state.unused - 1)
    }

    /// Puts the connection in `slot` on the ready list and wakes the owning thread.
    #[inline]
    pub(super) fn notify(&self, slot: u32) {
        if self.ready.notify(slot) {
            SleepCell::fence_before_wakeup();
            self.bell.ring();
        }
    }

    /// Whether the ready list is not empty.
    #[inline]
    pub(in crate::real) fn is_pending(&self) -> bool {
        self.ready.is_pending()
    }

    /// Takes the ready list. For the owning thread.
    pub(in crate::real) fn take_ready(&self, slots: &mut Vec<u32>) {
        self.ready.take(slots);
    }

    /// Moves new connections to `arrivals`, and frees the slots in `gone`, which belonged to closed
    /// connections. Does nothing and returns false if a client holds the lock. For the owning thread.
    pub(in crate::real) fn exchange(&self, arrivals: &mut impl Extend<Arrival>, gone: &mut Vec<u32>) -> bool {
        let Ok(mut state) = self.state.try_lock() else { return false };
        arrivals.extend(state.arrivals.drain(..));
        state.free.append(gone);
        true
    }

    /// Refuses further connections, and closes those that were not taken.
    pub(in crate::real) fn close(&self) {
        let arrivals = match self.state.lock() {
            Ok(mut state) => {
                state.closed = true;
                std::mem::take(&mut state.arrivals)
            }
            Err(_) => return,
        };
        // Dropping the node's ends wakes clients, which must not happen under the lock.
        drop(arrivals);
    }
}
