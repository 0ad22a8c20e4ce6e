//! Wakes a sleeping thread by futex, or through its poll if it has sockets.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Time;
use crate::scheduler::sleep::{Lease, SleepCell, SleepLocation};

use crate::clock::Clock;

/// The means to wake one thread.
#[derive(Debug)]
pub(super) struct Doorbell {
    pub(super) cell: SleepCell,
    /// Set for threads that sleep in their poll.
    waker: Option<mio::Waker>,
    /// When the bell last rang, for measuring wake-ups; 0 once taken.
    rung: AtomicU64,
    /// Whether other threads may run turns for this one. False for a thread that may wait for a disk, because
    /// the borrower would wait too.
    pub(super) may_be_delegated: bool,
}

impl Doorbell {
    pub(super) fn new(waker: Option<mio::Waker>, may_be_delegated: bool) -> Self {
        Self { cell: SleepCell::new(), waker, rung: AtomicU64::new(0), may_be_delegated }
    }

    /// Wakes the thread if it sleeps. The caller has published its input and passed
    /// [`SleepCell::fence_before_claim`].
    #[inline]
    pub(super) fn wake(&self, clock: &Clock) {
        if let Some(location) = self.cell.claim() {
            self.ring(location, clock);
        }
    }

    /// Returns a borrowed thread's state and wakes the thread.
    #[cold]
    pub(super) fn give_back_awake(&self, lease: Lease, clock: &Clock) {
        match lease {
            // The thread reattaches by itself. If it already waits, this wakes it.
            Lease::Detached => _ = self.cell.give_back(lease),
            Lease::Resting(location) if self.cell.give_back_awake() => self.ring(location, clock),
            Lease::Resting(_) => {}
        }
    }

    /// When the bell rang, if it did since the last call.
    pub(super) fn take_rung(&self) -> Option<Time> {
        Some(Time(self.rung.swap(0, Ordering::Relaxed))).filter(|rung| rung.0 > 0)
    }

    #[cold]
    fn ring(&self, location: SleepLocation, clock: &Clock) {
        self.rung.store(clock.now().0, Ordering::Relaxed);
        match (location, &self.waker) {
            // Writing to the event counter fails only if the poll is gone, and then the thread is gone too.
            (SleepLocation::Elsewhere, Some(waker)) => drop(waker.wake()),
            _ => self.cell.ring(),
        }
    }
}
