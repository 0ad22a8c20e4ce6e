//! Where clients knock at a recv thread: new connections, and news of those that there are.
//!
//! The lock is held for a few instructions, once or twice in the life of a connection; the recv thread only tries it.

use std::sync::Arc;

use crate::limit::KernelLimits;
use crate::scheduler::sleep::SleepCell;
use crate::sync::Mutex;

use super::client::MemoryStream;
use super::end::{NodeEnd, connection};
use super::ready_list::ReadyList;

/// Wakes a recv thread if it sleeps. Whoever rings has published its news and passed [`SleepCell::fence_before_claim`].
pub(in crate::real) trait Bell: Send + Sync {
    fn ring(&self);
}

/// The door of one recv thread.
pub(in crate::real) struct Acceptor {
    ready: ReadyList,
    bell: Box<dyn Bell>,
    entrance: Mutex<Entrance>,
}

struct Entrance {
    arrivals: Vec<Arrival>,
    free: Vec<u32>,
    /// Places from here on were never used.
    unused: u32,
    closed: bool,
}

/// A new connection that its recv thread has not seen yet.
pub(in crate::real) struct Arrival {
    /// The node's end.
    pub(in crate::real) end: NodeEnd,
    /// The listener that it counts as accepted by.
    pub(in crate::real) listener: u16,
}

/// Why nobody was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::real) enum Refusal {
    Closed,
    Full,
}

impl Acceptor {
    /// A door for at most so many connections at once.
    pub(in crate::real) fn new(slots: u32, bell: Box<dyn Bell>) -> Self {
        let entrance = Entrance { arrivals: Vec::new(), free: Vec::new(), unused: 0, closed: false };
        Self { ready: ReadyList::new(slots), bell, entrance: Mutex::new(entrance) }
    }

    /// Makes a connection and announces it to the recv thread.
    pub(in crate::real) fn connect(
        self: &Arc<Self>,
        listener: u16,
        limits: &KernelLimits,
    ) -> Result<MemoryStream, Refusal> {
        let slot = self.allocate_slot()?;
        let (stream, end) = connection(self, slot, limits);
        {
            let Ok(mut entrance) = self.entrance.lock() else { return Err(Refusal::Closed) };
            if entrance.closed {
                return Err(Refusal::Closed);
            }
            entrance.arrivals.push(Arrival { end, listener });
        }
        self.notify(slot);
        Ok(stream)
    }

    fn allocate_slot(&self) -> Result<u32, Refusal> {
        let Ok(mut entrance) = self.entrance.lock() else { return Err(Refusal::Closed) };
        if entrance.closed {
            return Err(Refusal::Closed);
        }
        if let Some(slot) = entrance.free.pop() {
            return Ok(slot);
        }
        if entrance.unused >= self.ready.capacity() {
            return Err(Refusal::Full);
        }
        entrance.unused += 1;
        Ok(entrance.unused - 1)
    }

    /// Tells the recv thread that the connection at `slot` has something for it.
    #[inline]
    pub(super) fn notify(&self, slot: u32) {
        if self.ready.notify(slot) {
            SleepCell::fence_before_claim();
            self.bell.ring();
        }
    }

    /// Whether any connection has something for the recv thread.
    #[inline]
    pub(in crate::real) fn is_pending(&self) -> bool {
        self.ready.is_pending()
    }

    /// Takes the places that have news. For the recv thread.
    pub(in crate::real) fn take_ready(&self, slots: &mut Vec<u32>) {
        self.ready.take(slots);
    }

    /// Takes new connections and gives back the places of those that are gone. Does nothing and returns false if a client is
    /// just knocking. For the recv thread.
    pub(in crate::real) fn exchange(&self, arrivals: &mut impl Extend<Arrival>, gone: &mut Vec<u32>) -> bool {
        let Ok(mut entrance) = self.entrance.try_lock() else { return false };
        arrivals.extend(entrance.arrivals.drain(..));
        entrance.free.append(gone);
        true
    }

    /// Lets nobody in any more; who knocked and was not seen is closed.
    pub(in crate::real) fn close(&self) {
        let arrivals = match self.entrance.lock() {
            Ok(mut entrance) => {
                entrance.closed = true;
                std::mem::take(&mut entrance.arrivals)
            }
            Err(_) => return,
        };
        // Their ends wake clients, which is not done under the lock.
        drop(arrivals);
    }
}
