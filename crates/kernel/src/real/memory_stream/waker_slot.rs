//! Holds the waker of a client that waits for bytes or for space.
//!
//! The client registers, checks its condition once more, and then waits. The node publishes, executes a
//! fence, and then wakes, so at least one of the two sees the other. The node never waits for the lock: it
//! skips the wake-up if a client holds the lock. That client is registering, and its check afterwards finds
//! what the node has published.

use std::task::Waker;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering, fence};

pub(super) struct WakerSlot {
    has_waiter: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl WakerSlot {
    pub(super) fn new() -> Self {
        Self { has_waiter: AtomicBool::new(false), waker: Mutex::new(None) }
    }

    /// Announces a waiting client. After this call and before it waits, the caller must check its condition
    /// once more.
    pub(super) fn register(&self, waker: &Waker) {
        if let Ok(mut slot) = self.waker.lock()
            && !slot.as_ref().is_some_and(|registered| registered.will_wake(waker))
        {
            *slot = Some(waker.clone());
        }
        self.has_waiter.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Revokes the announcement.
    pub(super) fn cancel(&self) {
        self.has_waiter.swap(false, Ordering::AcqRel);
    }

    /// Wakes a waiting client. The caller must have published its input and then executed a sequentially
    /// consistent fence, or know of the client by other means. Returns whether a client was waiting.
    #[inline]
    pub(super) fn wake(&self) -> bool {
        let waited = self.has_waiter.load(Ordering::Relaxed) && self.has_waiter.swap(false, Ordering::AcqRel);
        if waited {
            self.wake_registered();
        }
        waited
    }

    #[cold]
    fn wake_registered(&self) {
        let waker = self.waker.try_lock().ok().and_then(|slot| slot.clone());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
