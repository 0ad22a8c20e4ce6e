//! The clocks of the operating system. No other file of the kernel reads them.
#![allow(clippy::disallowed_methods, reason = "clocks are read here and nowhere else")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::context::Time;

/// Nanoseconds for which a reading of the wall clock is extrapolated with the monotonic clock.
const WALL_REFRESH_NS: u64 = 1_000_000;

/// One thread's view of the node's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Instant,
    wall_us: u64,
    wall_read: Time,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), wall_us: read_wall_us(), wall_read: Time(0) }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time(self.start.elapsed().as_nanos() as u64)
    }

    /// The wall clock at `now`, in microseconds since 1970-01-01 UTC. If the wall clock is set, the result is
    /// wrong for up to a millisecond.
    #[inline]
    pub(crate) fn wall_us(&mut self, now: Time) -> u64 {
        let age = now.since(self.wall_read);
        if age.0 < WALL_REFRESH_NS {
            return self.wall_us + age.as_micros();
        }
        self.wall_read = now;
        self.wall_us = read_wall_us();
        self.wall_us
    }
}

/// A seed that differs between starts of the process.
pub(super) fn seed_of_start() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    crate::random::mix(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40)
}

fn read_wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}
