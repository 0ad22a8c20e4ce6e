//! The clocks of the operating system. No other file of the kernel reads them.
#![allow(clippy::disallowed_methods, reason = "clocks are read here and nowhere else")]

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::context::Time;

/// Nanoseconds for which a reading of the wall clock is extrapolated with the monotonic clock.
const WALL_REFRESH_NS: u64 = 1_000_000;

/// One thread's view of the node's clock. It goes on while the machine sleeps, because leases depend on it.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
    wall_us: u64,
    wall_read: Time,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start_ns: read_boot_ns(), wall_us: read_wall_us(), wall_read: Time(0) }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time(read_boot_ns() - self.start_ns)
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

/// CLOCK_BOOTTIME, which never goes back.
#[inline]
fn read_boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn read_wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}
