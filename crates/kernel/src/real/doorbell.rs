//! Wakes a thread that sleeps: by futex, or through its poll if it has sockets.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Time;
use crate::scheduler::sleep::{Lease, SleepCell, SleepLocation};

use crate::clock::Clock;

/// The means to wake one thread.
#[derive(Debug)]
pub(super) struct Doorbell {
    pub(super) cell: SleepCell,
    /// Of threads that sleep in their poll.
    waker: Option<mio::Waker>,
    /// When it was rung last, for whoever measures how long waking takes; 0 once that was taken.
    rung: AtomicU64,
    /// Whether others may stand in for the thread while it rests or is away: not if it waits for disks in its turns.
    pub(super) may_be_delegated: bool,
}

impl Doorbell {
    pub(super) fn new(waker: Option<mio::Waker>, may_be_delegated: bool) -> Self {
        Self { cell: SleepCell::new(), waker, rung: AtomicU64::new(0), may_be_delegated }
    }

    /// Wakes the thread if it sleeps. The caller published its news, then passed
    /// [`SleepCell::fence_before_claim`].
    #[inline]
    pub(super) fn wake(&self, clock: &Clock) {
        if let Some(place) = self.cell.claim() {
            self.ring(place, clock);
        }
    }

    /// Gives a borrowed thread back and wakes it.
    #[cold]
    pub(super) fn give_back_awake(&self, lease: Lease, clock: &Clock) {
        match lease {
            // It comes back by itself; should it wait for that by now, it is woken by this.
            Lease::Detached => _ = self.cell.give_back(lease),
            Lease::Resting(place) if self.cell.give_back_awake() => self.ring(place, clock),
            Lease::Resting(_) => {}
        }
    }

    /// When the bell was rung since this was asked last.
    pub(super) fn take_rung(&self) -> Option<Time> {
        Some(Time(self.rung.swap(0, Ordering::Relaxed))).filter(|rung| rung.0 > 0)
    }

    #[cold]
    fn ring(&self, place: SleepLocation, clock: &Clock) {
        self.rung.store(clock.now().0, Ordering::Relaxed);
        match (place, &self.waker) {
            // The write to the event counter fails only if the thread's poll is gone, and then so is the thread.
            (SleepLocation::Elsewhere, Some(waker)) => drop(waker.wake()),
            _ => self.cell.ring(),
        }
    }
}
