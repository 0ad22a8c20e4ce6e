//! How a thread says that it sleeps, so that others wake it or stand in for it, and only then.
//!
//! The sleeper says that it lets go, then looks at its mailboxes once more, then rests. A waker publishes, then looks whether
//! that was said. A fence of sequential consistency stands between the two steps on each side, so at least one
//! of them sees the other: either the sleeper finds the news, or the waker finds that it lets go, and takes that back, or that it
//! rests. The one waker that ends the rest makes the system call; the others do nothing.
//!
//! A thread that is away, which is awake and does something for which it needs nothing of what belongs to it, comes back and looks by itself.
//!
//! Instead of waking a thread that rests, or waiting for one that is away, another may borrow it, do what there is to do with what belongs to it, and give it back by
//! the same two steps. There is one at a time who holds what belongs
//! to the thread: the thread itself when it is awake, or the borrower. A thread that wakes meanwhile, by the clock or a socket, waits
//! until it is given back.

use crate::sync::{
    CachePadded,
    atomic::{AtomicU32, Ordering, fence},
    hint,
};
#[cfg(loom)]
use crate::sync::{Condvar, Mutex};

/// What the holder does, in the low bits: it looks for news by itself before it rests,
const AWAKE: u32 = 0;
/// it looks for the last time,
const PREPARING_REST: u32 = 1;
/// nobody holds, and the thread sleeps in the cell,
const ASLEEP_HERE: u32 = 2;
/// or elsewhere.
const ASLEEP_ELSEWHERE: u32 = 3;
/// Nobody holds, and the thread comes back soon and looks by itself.
const DETACHED: u32 = 4;
const PHASE: u32 = 7;

/// Another thread holds.
const BORROWED: u32 = 8;
/// The thread itself waits to be given back.
const AWAITED: u32 = 16;

/// Looks of a thread that waits to be given back, before it sleeps for it.
const AWAITED_POLLS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 200 };

/// Where a thread sleeps, which decides how it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepLocation {
    /// In [`SleepCell::sleep`]; woken by [`SleepCell::ring`].
    Cell,
    /// In something else, such as a poll of sockets, which has a bell of its own.
    Elsewhere,
}

/// What a thread does that was borrowed, and will do when it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It rests there.
    Resting(SleepLocation),
    /// It is away for a moment.
    Detached,
}

impl Lease {
    fn phase(self) -> u32 {
        match self {
            Lease::Resting(SleepLocation::Cell) => ASLEEP_HERE,
            Lease::Resting(SleepLocation::Elsewhere) => ASLEEP_ELSEWHERE,
            Lease::Detached => DETACHED,
        }
    }

    /// What may be had of a thread in this state.
    fn of(state: u32) -> Option<Lease> {
        match state {
            ASLEEP_HERE => Some(Lease::Resting(SleepLocation::Cell)),
            ASLEEP_ELSEWHERE => Some(Lease::Resting(SleepLocation::Elsewhere)),
            DETACHED => Some(Lease::Detached),
            _ => None,
        }
    }
}

/// What came of giving a borrowed thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnOutcome {
    /// It rests or is away as before.
    Idle,
    /// It was waiting for it, and is awake.
    Awake,
    /// There may be news: the borrower still holds.
    Refused,
}

/// Whether one thread rests. It alone lets go and comes back; any thread may wake it or borrow it.
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

    /// Says that the thread is about to rest. The holder must look at everything that could end the rest after this and before
    /// [`SleepCell::begin_rest`].
    pub fn prepare_rest(&self) {
        // Adds to what a thread that waits has said. A holder that lets go was awake.
        self.state.fetch_or(PREPARING_REST, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that the holder goes on, after [`SleepCell::prepare_rest`].
    pub fn cancel_rest(&self) {
        self.state.fetch_and(!PHASE, Ordering::Relaxed);
    }

    /// The thread rests from now on and holds nothing; false if somebody had news since it let go, and then it goes on.
    pub fn begin_rest(&self, place: SleepLocation) -> bool {
        self.state
            .compare_exchange(PREPARING_REST, Lease::Resting(place).phase(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The thread, which is awake, holds nothing until it comes back. It does so by itself, and soon.
    #[inline]
    pub fn detach(&self) {
        // Nobody else changes the state of a thread that is awake.
        self.state.store(DETACHED, Ordering::Release);
    }

    /// The thread is awake and holds again what belongs to it, which it waits for while it is lent.
    #[inline]
    pub fn reattach(&self) {
        if self.state.compare_exchange(DETACHED, AWAKE, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.reattach_slowly();
        }
    }

    fn reattach_slowly(&self) {
        let mut looks = 0;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state & BORROWED == 0 {
                if self.state.compare_exchange(state, AWAKE, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
            } else if looks < AWAITED_POLLS {
                looks += 1;
                hint::spin_loop();
            } else {
                self.wait_for_return(state);
            }
        }
    }

    /// Stands between publishing news and [`SleepCell::claim`]; one for any number of sleepers.
    #[inline]
    pub fn fence_before_claim() {
        fence(Ordering::SeqCst);
    }

    /// Where the thread rests if it does and the caller is the one to wake it; nothing otherwise.
    #[inline]
    pub fn claim(&self) -> Option<SleepLocation> {
        let mut state = self.state.load(Ordering::Relaxed);
        while matches!(state & PHASE, PREPARING_REST | ASLEEP_HERE | ASLEEP_ELSEWHERE) {
            match self.state.compare_exchange_weak(state, state & !PHASE, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(ASLEEP_HERE) => return Some(SleepLocation::Cell),
                Ok(ASLEEP_ELSEWHERE) => return Some(SleepLocation::Elsewhere),
                // Who was about to let go sees it.
                Ok(_) => return None,
                Err(now) => state = now,
            }
        }
        None
    }

    /// Whether nobody holds what belongs to the thread, so that it is worth a try to borrow it.
    #[inline]
    pub fn may_be_borrowed(&self) -> bool {
        Lease::of(self.state.load(Ordering::Relaxed)).is_some()
    }

    /// What the thread does, if nobody holds what belongs to it; then the caller holds it, and gives it back.
    #[inline]
    pub fn borrow(&self) -> Option<Lease> {
        let state = self.state.load(Ordering::Relaxed);
        let lease = Lease::of(state)?;
        let lent = self.state.compare_exchange(state, BORROWED, Ordering::Acquire, Ordering::Relaxed);
        lent.is_ok().then_some(lease)
    }

    /// Gives back a thread that is away, or that is to rest on, unless there was news since [`SleepCell::prepare_rest`].
    pub fn give_back(&self, lease: Lease) -> ReturnOutcome {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if lease != Lease::Detached && state & PHASE != PREPARING_REST {
                return ReturnOutcome::Refused;
            }
            let is_awaited = state & AWAITED != 0;
            let next = if is_awaited { AWAKE } else { lease.phase() };
            match self.state.compare_exchange(state, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if is_awaited => {
                    self.ring();
                    return ReturnOutcome::Awake;
                }
                Ok(_) => return ReturnOutcome::Idle,
                Err(now) => state = now,
            }
        }
    }

    /// Whether a thread that is lent waits for its return.
    pub fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// Gives the thread back awake. Returns whether it must be woken as after a claim; else it was waiting for it.
    pub fn give_back_awake(&self) -> bool {
        let was_wanted = self.state.swap(AWAKE, Ordering::Release) & AWAITED != 0;
        if was_wanted {
            self.ring();
        }
        !was_wanted
    }

    /// Sleeps on the cell's futex until somebody claims and rings, or the time is over. May return early.
    #[cfg(not(any(loom, shuttle)))]
    pub fn sleep(&self, longest: Option<crate::context::Duration>) {
        self.wait_while(ASLEEP_HERE, longest);
    }

    #[cfg(not(any(loom, shuttle)))]
    fn wait_while(&self, state: u32, longest: Option<crate::context::Duration>) {
        let timeout = longest.map(|duration| rustix::thread::Timespec {
            tv_sec: (duration.0 / 1_000_000_000) as i64,
            tv_nsec: (duration.0 % 1_000_000_000) as i64,
        });
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Every error means that the thread should look again: the state changed, a signal came, or the time is over.
        let _ = rustix::thread::futex::wait(futex, rustix::thread::futex::Flags::PRIVATE, state, timeout.as_ref());
    }

    /// Sleeps until what was lent may have been given back, of which `lent` is the state seen.
    #[cold]
    fn wait_for_return(&self, lent: u32) {
        let wanted = lent | AWAITED;
        if lent == wanted || self.state.compare_exchange(lent, wanted, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.wait_while(wanted, None);
        }
    }

    /// Wakes the thread out of [`SleepCell::sleep`]; for the one whose claim succeeded.
    #[cfg(not(any(loom, shuttle)))]
    pub fn ring(&self) {
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Waking fails only for addresses that are no futex.
        let _ = rustix::thread::futex::wake(futex, rustix::thread::futex::Flags::PRIVATE, 1);
    }

    /// A model of the futex: compares and sleeps in one step. A sleep with an end ends at once.
    #[cfg(loom)]
    pub fn sleep(&self, longest: Option<crate::context::Duration>) {
        if longest.is_none() {
            self.wait_while(ASLEEP_HERE, longest);
        }
    }

    #[cfg(loom)]
    fn wait_while(&self, state: u32, _longest: Option<crate::context::Duration>) {
        let guard = self.bell.0.lock().expect("no holder panics");
        if self.state.load(Ordering::Relaxed) == state {
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
    pub fn sleep(&self, longest: Option<crate::context::Duration>) {
        self.wait_while(ASLEEP_HERE, longest);
    }

    #[cfg(all(shuttle, not(loom)))]
    fn wait_while(&self, _state: u32, _longest: Option<crate::context::Duration>) {
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
