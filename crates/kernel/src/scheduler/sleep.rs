//! How a thread announces that it sleeps, so that others wake it or run its turn, and only then.
//!
//! A sleeper announces its rest, checks its mailboxes once more, and then rests. A waker publishes, and then
//! checks for an announcement. A fence of sequential consistency separates the two steps on each side, so at
//! least one side sees the other: either the sleeper finds the input, or the waker finds the announcement,
//! which it revokes, or the rest. Exactly one waker ends a rest and makes the system call; the others do
//! nothing.
//!
//! A detached thread is awake but does not hold its state, because it is doing something that does not need
//! it. It returns by itself and then checks for input.
//!
//! Instead of waking a resting thread, or waiting for a detached one, another thread may borrow its state,
//! work with it, and return it by the same two steps. One thread holds the state at a time: the thread itself
//! while it is awake, or a borrower. If a timeout or a socket wakes the thread meanwhile, it waits for the
//! return.

use crate::sync::{
    CachePadded,
    atomic::{AtomicU32, Ordering, fence},
    hint,
};
#[cfg(loom)]
use crate::sync::{Condvar, Mutex};

/// The low bits say what the holder does. It checks for input by itself before it rests.
const AWAKE: u32 = 0;
/// It checks for input for the last time.
const PREPARING_REST: u32 = 1;
/// No holder; the thread sleeps in the cell.
const ASLEEP_HERE: u32 = 2;
/// No holder; the thread sleeps elsewhere.
const ASLEEP_ELSEWHERE: u32 = 3;
/// No holder; the thread returns soon and checks for input by itself.
const DETACHED: u32 = 4;
const PHASE: u32 = 7;

/// Another thread is the holder.
const BORROWED: u32 = 8;
/// The thread itself waits for the return of its state.
const AWAITED: u32 = 16;

/// Polls of a thread that waits for the return of its state, before it sleeps. A delegated turn is usually
/// shorter than a wake-up.
const AWAITED_POLLS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 200 };

/// Where a thread sleeps, which decides how to wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepLocation {
    /// In [`SleepCell::sleep`]; [`SleepCell::ring`] wakes it.
    Cell,
    /// Somewhere with a wake-up of its own, such as a poll of sockets.
    Elsewhere,
}

/// The activity of a borrowed thread, which it continues when its state is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// Resting, at this location.
    Resting(SleepLocation),
    /// Awake without holding its state.
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

    /// The lease available in this state, if any.
    fn of(state: u32) -> Option<Lease> {
        match state {
            ASLEEP_HERE => Some(Lease::Resting(SleepLocation::Cell)),
            ASLEEP_ELSEWHERE => Some(Lease::Resting(SleepLocation::Elsewhere)),
            DETACHED => Some(Lease::Detached),
            _ => None,
        }
    }
}

/// Outcome of returning a borrowed thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnOutcome {
    /// The thread rests or is detached, as before.
    Idle,
    /// The thread was waiting for its state and is awake.
    Awake,
    /// There may be input, so the borrower still holds the state.
    Refused,
}

/// The sleep state of one thread. Only the thread itself rests, detaches and reattaches; any thread may wake
/// it or borrow it.
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

    /// Announces a rest. Afterwards the holder must check everything that could end the rest, before
    /// [`SleepCell::begin_rest`].
    pub fn prepare_rest(&self) {
        // `fetch_or` keeps AWAITED, which the thread may have set. A holder that announces a rest was awake,
        // so the phase bits are 0.
        self.state.fetch_or(PREPARING_REST, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Revokes the announcement of [`SleepCell::prepare_rest`].
    pub fn cancel_rest(&self) {
        self.state.fetch_and(!PHASE, Ordering::Relaxed);
    }

    /// Begins the rest; the thread holds nothing from now on. Returns false if a waker revoked the
    /// announcement, and then the thread goes on.
    pub fn begin_rest(&self, location: SleepLocation) -> bool {
        self.state
            .compare_exchange(PREPARING_REST, Lease::Resting(location).phase(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives up the state of a thread that is awake. The thread must reattach by itself, and soon.
    #[inline]
    pub fn detach(&self) {
        // No other thread changes the state of a thread that is awake, so a store suffices.
        self.state.store(DETACHED, Ordering::Release);
    }

    /// Takes the state back, waiting while it is borrowed.
    #[inline]
    pub fn reattach(&self) {
        if self.state.compare_exchange(DETACHED, AWAKE, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.reattach_slowly();
        }
    }

    fn reattach_slowly(&self) {
        let mut polls = 0;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state & BORROWED == 0 {
                if self.state.compare_exchange(state, AWAKE, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
            } else if polls < AWAITED_POLLS {
                polls += 1;
                hint::spin_loop();
            } else {
                self.wait_for_return(state);
            }
        }
    }

    /// Must stand between publishing input and [`SleepCell::claim`]; one fence serves any number of sleepers.
    #[inline]
    pub fn fence_before_claim() {
        fence(Ordering::SeqCst);
    }

    /// Ends a rest. Returns where the thread sleeps if the caller must wake it; `None` if the thread is awake
    /// or another caller wakes it.
    #[inline]
    pub fn claim(&self) -> Option<SleepLocation> {
        let mut state = self.state.load(Ordering::Relaxed);
        while matches!(state & PHASE, PREPARING_REST | ASLEEP_HERE | ASLEEP_ELSEWHERE) {
            match self.state.compare_exchange_weak(state, state & !PHASE, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(ASLEEP_HERE) => return Some(SleepLocation::Cell),
                Ok(ASLEEP_ELSEWHERE) => return Some(SleepLocation::Elsewhere),
                // The holder was preparing to rest and will see the revocation.
                Ok(_) => return None,
                Err(now) => state = now,
            }
        }
        None
    }

    /// Whether nobody holds the thread's state, so that borrowing is worth a try.
    #[inline]
    pub fn may_be_borrowed(&self) -> bool {
        Lease::of(self.state.load(Ordering::Relaxed)).is_some()
    }

    /// Borrows the thread's state if nobody holds it. The caller must return it.
    #[inline]
    pub fn borrow(&self) -> Option<Lease> {
        let state = self.state.load(Ordering::Relaxed);
        let lease = Lease::of(state)?;
        let borrowed = self.state.compare_exchange(state, BORROWED, Ordering::Acquire, Ordering::Relaxed);
        borrowed.is_ok().then_some(lease)
    }

    /// Returns the state of a thread that is detached or goes on resting, unless a waker revoked
    /// [`SleepCell::prepare_rest`].
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

    /// Whether a borrowed thread waits for its state.
    pub fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// Returns the state and leaves the thread awake. Returns whether the caller must wake it, as after a
    /// claim; otherwise the thread was waiting and has been rung.
    pub fn give_back_awake(&self) -> bool {
        let was_wanted = self.state.swap(AWAKE, Ordering::Release) & AWAITED != 0;
        if was_wanted {
            self.ring();
        }
        !was_wanted
    }

    /// Sleeps on the cell's futex until somebody claims and rings, or until the time is over. May return
    /// early.
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
        // Every error means that the thread must check again: the state changed, a signal arrived, or the
        // time is over.
        let _ = rustix::thread::futex::wait(futex, rustix::thread::futex::Flags::PRIVATE, state, timeout.as_ref());
    }

    /// Sleeps until the state may have been returned; `borrowed` is the value last seen.
    #[cold]
    fn wait_for_return(&self, borrowed: u32) {
        let wanted = borrowed | AWAITED;
        if borrowed == wanted
            || self.state.compare_exchange(borrowed, wanted, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.wait_while(wanted, None);
        }
    }

    /// Wakes the thread from [`SleepCell::sleep`]. For the caller whose claim succeeded.
    #[cfg(not(any(loom, shuttle)))]
    pub fn ring(&self) {
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Waking fails only for an invalid address.
        let _ = rustix::thread::futex::wake(futex, rustix::thread::futex::Flags::PRIVATE, 1);
    }

    /// Models the futex: compares and sleeps in one step. A timed sleep ends immediately.
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

    /// Models the wake-up of a futex.
    #[cfg(loom)]
    pub fn ring(&self) {
        let _guard = self.bell.0.lock().expect("no holder panics");
        self.bell.1.notify_one();
    }

    /// Returns immediately; the checker's scheduler decides who runs.
    #[cfg(all(shuttle, not(loom)))]
    pub fn sleep(&self, longest: Option<crate::context::Duration>) {
        self.wait_while(ASLEEP_HERE, longest);
    }

    #[cfg(all(shuttle, not(loom)))]
    fn wait_while(&self, _state: u32, _longest: Option<crate::context::Duration>) {
        crate::sync::thread::yield_now();
    }

    /// Does nothing, because nobody sleeps.
    #[cfg(all(shuttle, not(loom)))]
    pub fn ring(&self) {}
}

impl Default for SleepCell {
    fn default() -> Self {
        Self::new()
    }
}
