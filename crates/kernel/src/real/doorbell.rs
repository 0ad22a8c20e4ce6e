//! Wakes a sleeping thread by its futex, or through its poll if it waits for sockets.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Time;
use crate::scheduler::sleep::{IdlePhase, SleepCell, SleepLocation};

use crate::clock::Clock;

/// The means to wake one thread.
#[derive(Debug)]
pub(super) struct Doorbell {
    pub(super) cell: SleepCell,
    /// Set for threads that sleep in their poll.
    waker: Option<mio::Waker>,
    /// When the bell last rang, to measure how long a wake-up takes; 0 once taken.
    rang_at: AtomicU64,
}

impl Doorbell {
    pub(super) fn new(waker: Option<mio::Waker>) -> Self {
        Self { cell: SleepCell::new(), waker, rang_at: AtomicU64::new(0) }
    }

    /// Wakes the thread if it sleeps. The caller must have published its input and then called
    /// [`SleepCell::fence_before_wakeup`].
    #[inline]
    pub(super) fn wake(&self, clock: &Clock) {
        if let Some(location) = self.cell.claim_wakeup() {
            self.ring(location, clock);
        }
    }

    /// Ends a delegated turn so that the slot's thread is awake: returns the slot (host and state) that the
    /// turn borrowed, and wakes the thread if it sleeps.
    #[cold]
    pub(super) fn give_back_awake(&self, phase: IdlePhase, clock: &Clock) {
        match phase {
            // A detached thread is awake and reattaches by itself. If it already waits for its slot,
            // `give_back` wakes it.
            IdlePhase::Detached => _ = self.cell.give_back(phase),
            IdlePhase::Asleep(location) if self.cell.give_back_awake() => self.ring(location, clock),
            IdlePhase::Asleep(_) => {}
        }
    }

    /// When the bell last rang; `None` if it has not since the last call.
    pub(super) fn take_rang_at(&self) -> Option<Time> {
        Some(Time(self.rang_at.swap(0, Ordering::Relaxed))).filter(|rang_at| rang_at.0 > 0)
    }

    #[cold]
    fn ring(&self, location: SleepLocation, clock: &Clock) {
        self.rang_at.store(clock.now().0, Ordering::Relaxed);
        match (location, &self.waker) {
            // Writing to the poll's event counter fails only if the poll is gone, and its thread with it.
            (SleepLocation::Poll, Some(waker)) => drop(waker.wake()),
            _ => self.cell.wake_sleeper(),
        }
    }
}
