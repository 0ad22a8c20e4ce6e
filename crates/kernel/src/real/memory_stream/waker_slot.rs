//! Where a waiting client leaves its waker.
//!
//! The client registers, then checks once more, then waits. The node publishes, passes a fence, then wakes,
//! so at least one of them sees the other. The node never waits for the lock. Only a registering client holds
//! it for long, and that client checks again afterwards and finds what the node published.

use std::task::Waker;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering, fence};

pub(super) struct WakerSlot {
    waits: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl WakerSlot {
    pub(super) fn new() -> Self {
        Self { waits: AtomicBool::new(false), waker: Mutex::new(None) }
    }

    /// Announces a waiting client. Between this and waiting, the caller must check once more what it waits
    /// for.
    pub(super) fn register(&self, waker: &Waker) {
        if let Ok(mut slot) = self.waker.lock()
            && !slot.as_ref().is_some_and(|registered| registered.will_wake(waker))
        {
            *slot = Some(waker.clone());
        }
        self.waits.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Revokes the announcement.
    pub(super) fn cancel(&self) {
        self.waits.swap(false, Ordering::AcqRel);
    }

    /// Wakes a waiting client. The caller has published its input and passed a fence of sequential
    /// consistency, or learnt of the client in another way. Returns whether a client waited.
    #[inline]
    pub(super) fn wake(&self) -> bool {
        let waited = self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::AcqRel);
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
