//! The sleep protocol of a thread. Other threads use it to wake the thread, or to run its turn while it
//! sleeps.
//!
//! **Sleeping and waking.** The sleeper announces that it prepares to sleep, checks its mailboxes once more,
//! and then sleeps. A waker publishes its input, and then checks whether the thread sleeps or prepares to. A
//! sequentially consistent fence separates the two steps on each side, so at least one side sees the other's
//! first step. Either the sleeper finds the input, or the waker finds the sleeper. If the sleeper is still
//! preparing, the waker revokes the announcement. If it sleeps, exactly one waker makes the system call that
//! wakes it; other wakers do nothing.
//!
//! **The slot.** The blocks, mailboxes and timers of a thread are in its slot. One thread holds the slot at a
//! time. Usually that is the thread itself while it is awake. A *detached* thread is awake but has released
//! its slot during work that does not need it, such as a write to a socket. A detached thread takes its slot
//! back without being woken, and then checks for input.
//!
//! **Borrowing.** Another thread may borrow the slot of a sleeping or detached thread, run a turn with it,
//! and give it back. Before giving back the slot of a sleeping thread, the borrower announces and checks as
//! the sleeper would. If a timeout or a socket wakes the thread while its slot is borrowed, the thread waits
//! until the slot is given back.

use crate::sync::{
    CachePadded,
    atomic::{AtomicU32, Ordering, fence},
    hint,
};
#[cfg(loom)]
use crate::sync::{Condvar, Mutex};

/// The slot's holder runs. It checks for input before it sleeps, so nobody needs to wake it.
const AWAKE: u32 = 0;
/// The slot's holder has announced a sleep and checks for input a last time.
const PREPARING_SLEEP: u32 = 1;
/// Nobody holds the slot; the thread sleeps on the cell's futex.
const ASLEEP_IN_CELL: u32 = 2;
/// Nobody holds the slot; the thread sleeps in its poll of sockets.
const ASLEEP_IN_POLL: u32 = 3;
/// Nobody holds the slot; the thread reattaches soon and then checks for input.
const DETACHED: u32 = 4;
/// Mask of the bits with one of the values above.
const PHASE: u32 = 7;

/// Flag: the slot's holder is another thread.
const BORROWED: u32 = 8;
/// Flag: the thread waits until its borrowed slot is given back.
const AWAITED: u32 = 16;

/// Number of times that a thread polls for its borrowed slot before it sleeps. The borrower's turn usually
/// takes less time than a wake-up.
const AWAITED_POLLS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 200 };

/// Where a thread sleeps. This decides how to wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepLocation {
    /// In [`SleepCell::sleep`]; [`SleepCell::wake_sleeper`] wakes it.
    Cell,
    /// In its poll of sockets; the poll's waker wakes it.
    Poll,
}

/// The phase of a thread that does not hold its slot. [`SleepCell::borrow`] returns this phase, and
/// [`SleepCell::give_back`] restores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePhase {
    /// Asleep at this location.
    Asleep(SleepLocation),
    /// Awake, but without its slot.
    Detached,
}

impl IdlePhase {
    fn state_word(self) -> u32 {
        match self {
            IdlePhase::Asleep(SleepLocation::Cell) => ASLEEP_IN_CELL,
            IdlePhase::Asleep(SleepLocation::Poll) => ASLEEP_IN_POLL,
            IdlePhase::Detached => DETACHED,
        }
    }

    /// The idle phase in a state word; `None` if some thread holds the slot.
    fn of(state: u32) -> Option<IdlePhase> {
        match state {
            ASLEEP_IN_CELL => Some(IdlePhase::Asleep(SleepLocation::Cell)),
            ASLEEP_IN_POLL => Some(IdlePhase::Asleep(SleepLocation::Poll)),
            DETACHED => Some(IdlePhase::Detached),
            _ => None,
        }
    }
}

/// Outcome of [`SleepCell::give_back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnOutcome {
    /// The thread is asleep or detached, as before the borrowing.
    Idle,
    /// The thread was waiting for its slot and holds it now.
    Awake,
    /// New input may have arrived, so the borrower still holds the slot.
    Refused,
}

/// The sleep state of one thread. Only the thread itself sleeps, detaches and reattaches. Any thread may wake
/// it or borrow its slot.
#[derive(Debug)]
pub struct SleepCell {
    /// A value within [`PHASE`], and flags.
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

    /// Announces a sleep. The slot's holder calls this, then checks every source of input, and then calls
    /// [`SleepCell::enter_sleep`] or [`SleepCell::cancel_sleep`].
    pub fn prepare_sleep(&self) {
        // The holder is awake, so the phase bits are 0 and `fetch_or` sets the phase. It keeps AWAITED, which
        // the thread may set meanwhile if the holder is a borrower.
        self.state.fetch_or(PREPARING_SLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Revokes the holder's own announcement.
    pub fn cancel_sleep(&self) {
        self.state.fetch_and(!PHASE, Ordering::Relaxed);
    }

    /// Releases the slot and marks the thread as asleep; the caller then sleeps at `location`. Returns false
    /// and changes nothing if a waker has revoked the announcement.
    pub fn enter_sleep(&self, location: SleepLocation) -> bool {
        self.state
            .compare_exchange(
                PREPARING_SLEEP,
                IdlePhase::Asleep(location).state_word(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Releases the slot of the calling thread, which stays awake and must soon call
    /// [`SleepCell::reattach`].
    #[inline]
    pub fn detach(&self) {
        // No other thread changes this word while the thread is awake, so a store suffices.
        self.state.store(DETACHED, Ordering::Release);
    }

    /// Takes the calling thread's slot back. Waits while the slot is borrowed.
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

    /// The waker's fence, between publishing input and [`SleepCell::claim_wakeup`]. One fence serves any
    /// number of sleepers.
    #[inline]
    pub fn fence_before_wakeup() {
        fence(Ordering::SeqCst);
    }

    /// Marks a thread that sleeps or prepares to as awake. Returns where the thread sleeps if the caller must
    /// wake it. Returns `None` if the slot's holder will see the input anyway, or another caller wakes the
    /// thread.
    #[inline]
    pub fn claim_wakeup(&self) -> Option<SleepLocation> {
        let mut state = self.state.load(Ordering::Relaxed);
        while matches!(state & PHASE, PREPARING_SLEEP | ASLEEP_IN_CELL | ASLEEP_IN_POLL) {
            match self.state.compare_exchange_weak(state, state & !PHASE, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(ASLEEP_IN_CELL) => return Some(SleepLocation::Cell),
                Ok(ASLEEP_IN_POLL) => return Some(SleepLocation::Poll),
                // The holder was still preparing; its `enter_sleep` will fail.
                Ok(_) => return None,
                Err(now) => state = now,
            }
        }
        None
    }

    /// Whether nobody holds the slot. A hint: another thread may be faster to borrow it.
    #[inline]
    pub fn may_be_borrowed(&self) -> bool {
        IdlePhase::of(self.state.load(Ordering::Relaxed)).is_some()
    }

    /// Borrows the slot if nobody holds it. The caller must give it back with the phase returned here.
    #[inline]
    pub fn borrow(&self) -> Option<IdlePhase> {
        let state = self.state.load(Ordering::Relaxed);
        let phase = IdlePhase::of(state)?;
        let borrowed = self.state.compare_exchange(state, BORROWED, Ordering::Acquire, Ordering::Relaxed);
        borrowed.is_ok().then_some(phase)
    }

    /// Gives a borrowed slot back and restores `phase`, or leaves the thread awake if it waits for its slot.
    /// For a sleeping thread, the borrower must have called [`SleepCell::prepare_sleep`]; the return is
    /// refused if a waker has revoked that since.
    pub fn give_back(&self, phase: IdlePhase) -> ReturnOutcome {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if phase != IdlePhase::Detached && state & PHASE != PREPARING_SLEEP {
                return ReturnOutcome::Refused;
            }
            let is_awaited = state & AWAITED != 0;
            let next = if is_awaited { AWAKE } else { phase.state_word() };
            match self.state.compare_exchange(state, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if is_awaited => {
                    self.wake_sleeper();
                    return ReturnOutcome::Awake;
                }
                Ok(_) => return ReturnOutcome::Idle,
                Err(now) => state = now,
            }
        }
    }

    /// Whether the thread waits for its borrowed slot.
    pub fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// Gives a borrowed slot back and marks the thread as awake. Returns true if the caller must still wake
    /// the thread, as after a successful claim. Returns false if the thread was waiting for its slot: this
    /// call has woken it.
    pub fn give_back_awake(&self) -> bool {
        let was_awaited = self.state.swap(AWAKE, Ordering::Release) & AWAITED != 0;
        if was_awaited {
            self.wake_sleeper();
        }
        !was_awaited
    }

    /// Sleeps on the cell's futex until a waker calls [`SleepCell::wake_sleeper`], or until the timeout. May
    /// return early.
    #[cfg(not(any(loom, shuttle)))]
    pub fn sleep(&self, timeout: Option<crate::context::Duration>) {
        self.wait_while(ASLEEP_IN_CELL, timeout);
    }

    #[cfg(not(any(loom, shuttle)))]
    fn wait_while(&self, state: u32, timeout: Option<crate::context::Duration>) {
        let timeout = timeout.map(|duration| rustix::thread::Timespec {
            tv_sec: (duration.0 / 1_000_000_000) as i64,
            tv_nsec: (duration.0 % 1_000_000_000) as i64,
        });
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Every error means that the thread must check again: the state has changed, a POSIX signal
        // interrupted the call, or the timeout has passed.
        let _ = rustix::thread::futex::wait(futex, rustix::thread::futex::Flags::PRIVATE, state, timeout.as_ref());
    }

    /// Sleeps until the slot may have been given back. `borrowed` is the last state word seen.
    #[cold]
    fn wait_for_return(&self, borrowed: u32) {
        let awaited = borrowed | AWAITED;
        if borrowed == awaited
            || self.state.compare_exchange(borrowed, awaited, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.wait_while(awaited, None);
        }
    }

    /// Wakes the thread from [`SleepCell::sleep`]. For the caller whose [`SleepCell::claim_wakeup`]
    /// succeeded.
    #[cfg(not(any(loom, shuttle)))]
    pub fn wake_sleeper(&self) {
        let futex: &std::sync::atomic::AtomicU32 = &self.state;
        // Waking fails only for an invalid address.
        let _ = rustix::thread::futex::wake(futex, rustix::thread::futex::Flags::PRIVATE, 1);
    }

    /// Models a futex wait: compares and sleeps in one atomic step. A sleep with a timeout ends immediately.
    #[cfg(loom)]
    pub fn sleep(&self, timeout: Option<crate::context::Duration>) {
        if timeout.is_none() {
            self.wait_while(ASLEEP_IN_CELL, timeout);
        }
    }

    #[cfg(loom)]
    fn wait_while(&self, state: u32, _longest: Option<crate::context::Duration>) {
        let guard = self.bell.0.lock().expect("no holder panics");
        if self.state.load(Ordering::Relaxed) == state {
            drop(self.bell.1.wait(guard));
        }
    }

    /// Models a futex wake.
    #[cfg(loom)]
    pub fn wake_sleeper(&self) {
        let _guard = self.bell.0.lock().expect("no holder panics");
        self.bell.1.notify_one();
    }

    /// Returns immediately: shuttle's scheduler chooses the thread that runs next.
    #[cfg(all(shuttle, not(loom)))]
    pub fn sleep(&self, timeout: Option<crate::context::Duration>) {
        self.wait_while(ASLEEP_IN_CELL, timeout);
    }

    #[cfg(all(shuttle, not(loom)))]
    fn wait_while(&self, _state: u32, _longest: Option<crate::context::Duration>) {
        crate::sync::thread::yield_now();
    }

    /// Does nothing, because nobody sleeps.
    #[cfg(all(shuttle, not(loom)))]
    pub fn wake_sleeper(&self) {}
}

impl Default for SleepCell {
    fn default() -> Self {
        Self::new()
    }
}
