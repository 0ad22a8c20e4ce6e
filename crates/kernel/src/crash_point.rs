//! Named points in block code at which a test may end the node.
//!
//! A block marks a point with [`Outbox::crash_point`](crate::Outbox::crash_point), a program beside the node
//! with [`CrashWatch::hit`]. On a node without a [`CrashWatch`], a point costs one branch. A watch counts the
//! hits of each point, and the armed hit of the armed point is fatal: in the simulator the node dies, in a
//! real node the process kills itself as `kill -9` would.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A point, by number. The program above the kernel gives each number its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CrashPoint(u16);

impl CrashPoint {
    /// The point of this number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// A crash that is to happen: at hit `hit` of `point`, counted from 1 after arming. 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmedCrash {
    /// The point.
    pub point: CrashPoint,
    /// The hit that is fatal.
    pub hit: u64,
}

/// Counts the hits of all crash points of one node, and knows which hit is fatal.
#[derive(Debug, Default)]
pub struct CrashWatch {
    state: Mutex<WatchState>,
    /// Whether a fatal hit kills the process.
    kills_process: bool,
}

#[derive(Debug, Default)]
struct WatchState {
    hits: BTreeMap<CrashPoint, u64>,
    armed: Option<ArmedCrash>,
}

impl CrashWatch {
    /// A watch that kills the process at the armed hit.
    pub fn killing_process(armed: ArmedCrash) -> Self {
        let state = WatchState { armed: Some(armed), ..WatchState::default() };
        Self { state: Mutex::new(state), kills_process: true }
    }

    /// Replaces the armed crash. `None` disarms.
    pub fn arm(&self, armed: Option<ArmedCrash>) {
        self.state().armed = armed;
    }

    /// The armed crash, with the number of hits that remain until it happens; `None` once it has happened.
    pub fn armed(&self) -> Option<ArmedCrash> {
        self.state().armed
    }

    /// The hits of each point that was hit, over all runs of the node.
    pub fn hits(&self) -> BTreeMap<CrashPoint, u64> {
        self.state().hits.clone()
    }

    /// Counts a hit. Returns whether it is fatal; the crash is then no longer armed.
    pub fn hit(&self, point: CrashPoint) -> bool {
        let mut state = self.state();
        *state.hits.entry(point).or_default() += 1;
        let Some(armed) = state.armed.as_mut().filter(|armed| armed.point == point) else { return false };
        armed.hit = armed.hit.saturating_sub(1);
        if armed.hit > 0 {
            return false;
        }
        state.armed = None;
        drop(state);
        if self.kills_process {
            kill_process(point);
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        // A panic elsewhere leaves the counts usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process without running any destructor or handler, so that nothing is flushed.
fn kill_process(point: CrashPoint) -> ! {
    // Standard error may be closed. The exit status still reports the signal.
    let _ = writeln!(std::io::stderr().lock(), "killed at crash point {}", point.number());
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_armed_hit_of_the_armed_point_is_fatal_once() {
        let (one, other) = (CrashPoint::new(1), CrashPoint::new(2));
        let watch = CrashWatch::default();
        assert!(!watch.hit(one));
        watch.arm(Some(ArmedCrash { point: one, hit: 2 }));
        let fatal: Vec<bool> = [one, other, one, one].map(|point| watch.hit(point)).to_vec();
        assert_eq!(fatal, [false, false, true, false]);
        assert_eq!((watch.armed(), watch.hits()), (None, BTreeMap::from([(one, 4), (other, 1)])));
    }
}
