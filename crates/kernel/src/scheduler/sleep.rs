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
const LETTING_GO: u32 = 1;
/// nobody holds, and the thread sleeps in the cell,
const ASLEEP_HERE: u32 = 2;
/// or elsewhere.
const ASLEEP_ELSEWHERE: u32 = 3;
/// Nobody holds, and the thread comes back soon and looks by itself.
const AWAY: u32 = 4;
const PHASE: u32 = 7;

/// Another thread holds.
const LENT: u32 = 8;
/// The thread itself waits to be given back.
const WANTED: u32 = 16;

/// Looks of a thread that waits to be given back, before it sleeps for it.
const WANTED_LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 200 };

/// Where a thread sleeps, which decides how it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepPlace {
    /// In [`SleepCell::sleep`]; woken by [`SleepCell::ring`].
    Cell,
    /// In something else, such as a poll of sockets, which has a bell of its own.
    Elsewhere,
}

/// What a thread does that was borrowed, and will do when it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It rests there.
    Resting(SleepPlace),
    /// It is away for a moment.
    Away,
}

impl Lease {
    fn phase(self) -> u32 {
        match self {
            Lease::Resting(SleepPlace::Cell) => ASLEEP_HERE,
            Lease::Resting(SleepPlace::Elsewhere) => ASLEEP_ELSEWHERE,
            Lease::Away => AWAY,
        }
    }

    /// What may be had of a thread in this state.
    fn of(state: u32) -> Option<Lease> {
        match state {
            ASLEEP_HERE => Some(Lease::Resting(SleepPlace::Cell)),
            ASLEEP_ELSEWHERE => Some(Lease::Resting(SleepPlace::Elsewhere)),
            AWAY => Some(Lease::Away),
            _ => None,
        }
    }
}

/// What came of giving a borrowed thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenBack {
    /// It rests or is away as before.
    AsItWas,
    /// It was waiting for it, and is awake.
    Awake,
    /// There may be news: the borrower still holds.
    No,
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
    /// [`SleepCell::rest`].
    pub fn let_go(&self) {
        // Adds to what a thread that waits has said. A holder that lets go was awake.
        self.state.fetch_or(LETTING_GO, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Says that the holder goes on, after [`SleepCell::let_go`].
    pub fn go_on(&self) {
        self.state.fetch_and(!PHASE, Ordering::Relaxed);
    }

    /// The thread rests from now on and holds nothing; false if somebody had news since it let go, and then it goes on.
    pub fn rest(&self, place: SleepPlace) -> bool {
        self.state
            .compare_exchange(LETTING_GO, Lease::Resting(place).phase(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// The thread, which is awake, holds nothing until it comes back. It does so by itself, and soon.
    #[inline]
    pub fn leave(&self) {
        // Nobody else changes the state of a thread that is awake.
        self.state.store(AWAY, Ordering::Release);
    }

    /// The thread is awake and holds again what belongs to it, which it waits for while it is lent.
    #[inline]
    pub fn come_back(&self) {
        if self.state.compare_exchange(AWAY, AWAKE, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.come_back_slowly();
        }
    }

    fn come_back_slowly(&self) {
        let mut looks = 0;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state & LENT == 0 {
                if self.state.compare_exchange(state, AWAKE, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
            } else if looks < WANTED_LOOKS {
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
    pub fn claim(&self) -> Option<SleepPlace> {
        let mut state = self.state.load(Ordering::Relaxed);
        while matches!(state & PHASE, LETTING_GO | ASLEEP_HERE | ASLEEP_ELSEWHERE) {
            match self.state.compare_exchange_weak(state, state & !PHASE, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(ASLEEP_HERE) => return Some(SleepPlace::Cell),
                Ok(ASLEEP_ELSEWHERE) => return Some(SleepPlace::Elsewhere),
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
        let lent = self.state.compare_exchange(state, LENT, Ordering::Acquire, Ordering::Relaxed);
        lent.is_ok().then_some(lease)
    }

    /// Gives back a thread that is away, or that is to rest on, unless there was news since [`SleepCell::let_go`].
    pub fn give_back(&self, lease: Lease) -> GivenBack {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if lease != Lease::Away && state & PHASE != LETTING_GO {
                return GivenBack::No;
            }
            let is_wanted = state & WANTED != 0;
            let next = if is_wanted { AWAKE } else { lease.phase() };
            match self.state.compare_exchange(state, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if is_wanted => {
                    self.ring();
                    return GivenBack::Awake;
                }
                Ok(_) => return GivenBack::AsItWas,
                Err(now) => state = now,
            }
        }
    }

    /// Whether a thread that is lent waits for its return.
    pub fn is_wanted(&self) -> bool {
        self.state.load(Ordering::Relaxed) & WANTED != 0
    }

    /// Gives the thread back awake. Returns whether it must be woken as after a claim; else it was waiting for it.
    pub fn give_back_awake(&self) -> bool {
        let was_wanted = self.state.swap(AWAKE, Ordering::Release) & WANTED != 0;
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
        let wanted = lent | WANTED;
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
