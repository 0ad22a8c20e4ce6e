//! Wakes a thread that sleeps: by futex, or through its poll if it has sockets.

use crate::scheduler::sleep::{SleepCell, SleepPlace};

/// The means to wake one thread.
#[derive(Debug)]
pub(super) struct Doorbell {
    pub(super) cell: SleepCell,
    /// Of threads that sleep in their poll.
    waker: Option<mio::Waker>,
}

impl Doorbell {
    pub(super) fn new(waker: Option<mio::Waker>) -> Self {
        Self { cell: SleepCell::new(), waker }
    }

    /// Wakes the thread if it sleeps. The caller published its news, then passed
    /// [`SleepCell::fence_before_claim`].
    #[inline]
    pub(super) fn wake(&self) {
        if let Some(place) = self.cell.claim() {
            self.ring(place);
        }
    }

    #[cold]
    fn ring(&self, place: SleepPlace) {
        match (place, &self.waker) {
            // The write to the event counter fails only if the thread's poll is gone, and then so is the thread.
            (SleepPlace::Elsewhere, Some(waker)) => drop(waker.wake()),
            _ => self.cell.ring(),
        }
    }
}
