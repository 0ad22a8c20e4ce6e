//! Where a client that waits leaves its waker.
//!
//! The client registers, then looks once more, then waits. The node publishes, passes a fence, then wakes: at least one
//! of them sees the other. The node never waits for the lock: only a client that registers holds it for long, and that
//! client looks again afterwards and finds what the node published.

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

    /// Says that somebody waits. The caller must look again at what it waits for, after this and before waiting.
    pub(super) fn register(&self, waker: &Waker) {
        if let Ok(mut slot) = self.waker.lock()
            && !slot.as_ref().is_some_and(|registered| registered.will_wake(waker))
        {
            *slot = Some(waker.clone());
        }
        self.waits.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Says that nobody waits after all.
    pub(super) fn cancel(&self) {
        self.waits.swap(false, Ordering::AcqRel);
    }

    /// Wakes whoever waits. The caller published its news, then passed a fence of sequential consistency, or learnt of the
    /// waiting in another way. Returns whether somebody waited.
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
