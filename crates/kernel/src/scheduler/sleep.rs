//! How a thread says that it sleeps, so that others wake it, and only then.
//!
//! The sleeper announces, then looks at its mailboxes once more, then sleeps. A waker publishes, then looks whether
//! sleep was announced. A fence of sequential consistency stands between the two steps on each side, so at least one
//! of them sees the other: either the sleeper finds the news or the waker finds the sleeper. The one waker that takes
//! the announcement back makes the system call; the others do nothing.

use crate::sync::{
    CachePadded,
    atomic::{AtomicU32, Ordering, fence},
};
#[cfg(loom)]
use crate::sync::{Condvar, Mutex};

const AWAKE: u32 = 0;
const ASLEEP_HERE: u32 = 1;
const ASLEEP_ELSEWHERE: u32 = 2;

/// Where a thread sleeps, which decides how it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepPlace {
    /// In [`SleepCell::sleep`]; woken by [`SleepCell::ring`].
    Cell,
    /// In something else, such as a poll of sockets, which has a bell of its own.
    Elsewhere,
}

/// Whether one thread sleeps. It alone announces and cancels; any thread may wake it.
#[derive(Debug)]
pub struct SleepCell {
    state: CachePadded<AtomicU32>,
    #[cfg(loom)]
    bell: (Mutex<()>, Condvar),
}

impl SleepCell {
    /// A cell of a thread that is awake.
    pub fn new() -> Self {
        Self {
            state: CachePadded(AtomicU32::new(AWAKE)),
            #[cfg(loom)]
            bell: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Says that the thread will sleep. It must look at everything that could wake it after this and before sleeping.
    pub fn announce(&self, place: SleepPlace) {
        let state = match place {
            SleepPlace::Cell => ASLEEP_HERE,
            SleepPlace::Elsewhere => ASLEEP_ELSEWHERE,
        };
        self.state.store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that the thread is awake after all.
    pub fn cancel(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Stands between publishing news and [`SleepCell::claim`]; one for any number of sleepers.
    #[inline]
    pub fn fence_before_claim() {
        fence(Ordering::SeqCst);
    }

    /// Where the thread sleeps if it announced that and the caller is the one to wake it; nothing otherwise.
    #[inline]
    pub fn claim(&self) -> Option<SleepPlace> {
        if self.state.load(Ordering::Relaxed) == AWAKE {
            return None;
        }
        match self.state.swap(AWAKE, Ordering::AcqRel) {
            ASLEEP_HERE => Some(SleepPlace::Cell),
            ASLEEP_ELSEWHERE => Some(SleepPlace::Elsewhere),
            _ => None,
        }
    }

    /// Sleeps on the cell's futex until somebody claims and rings, or the time is over. May return early.
    #[cfg(not(any(loom, shuttle)))]
    pub fn sleep(&self, longest: Option<crate::context::Duration>) {
        let timeout = longest.map(|duration| rustix::thread::Timespec {
            tv_sec: (duration.0 / 1_000_000_000) as i64,
            tv_nsec: (duration.0 % 1_000_000_000) as i64,
        });
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Every error means that the thread should look again: the state changed, a signal came, or the time is over.
        let _ =
            rustix::thread::futex::wait(futex, rustix::thread::futex::Flags::PRIVATE, ASLEEP_HERE, timeout.as_ref());
    }

    /// Wakes the thread out of [`SleepCell::sleep`]; for the one whose claim succeeded.
    #[cfg(not(any(loom, shuttle)))]
    pub fn ring(&self) {
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Waking fails only for addresses that are no futex.
        let _ = rustix::thread::futex::wake(futex, rustix::thread::futex::Flags::PRIVATE, 1);
    }

    /// A model of the futex: compares and sleeps in one step.
    #[cfg(loom)]
    pub fn sleep(&self, _longest: Option<crate::context::Duration>) {
        let guard = self.bell.0.lock().expect("no holder panics");
        if self.state.load(Ordering::Relaxed) == ASLEEP_HERE {
            drop(self.bell.1.wait(guard));
        }
    }

    /// A model of waking a futex.
    #[cfg(loom)]
    pub fn ring(&self) {
        let _guard = self.bell.0.lock().expect("no holder panics");
        self.bell.1.notify_one();
    }

    /// Looks again at once; the scheduler of the checker decides who runs.
    #[cfg(all(shuttle, not(loom)))]
    pub fn sleep(&self, _longest: Option<crate::context::Duration>) {
        crate::sync::thread::yield_now();
    }

    /// Nothing to do, since nobody sleeps.
    #[cfg(all(shuttle, not(loom)))]
    pub fn ring(&self) {}
}

impl Default for SleepCell {
    fn default() -> Self {
        Self::new()
    }
}
