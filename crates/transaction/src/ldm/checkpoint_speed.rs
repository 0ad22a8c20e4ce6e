//! How fast a checkpoint round may write.

use junctor_kernel::{Duration, Time};

/// Bytes that may be written without waiting after the ldm has written nothing for a while: these, or those
/// of 1/256 of a second. A pause lasts at least a millisecond, and must not lower a high speed.
const BURST_BYTES: u64 = 256 * 1024;
const BURSTS_PER_SECOND: u64 = 256;
/// Shortest and longest pause of a round that has written as much as its speed allows for now, in
/// milliseconds.
const PAUSE_MS_MIN: u64 = 1;
const PAUSE_MS_MAX: u64 = 100;

/// The bytes that may be written: `credit` grows with time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    pub bytes_per_second: u64,
    credit: i64,
    credited: Time,
}

impl Speed {
    pub fn new(bytes_per_second: u64, now: Time) -> Speed {
        Speed { bytes_per_second, credit: BURST_BYTES as i64, credited: now }
    }

    /// Counts bytes that were written.
    pub fn spend(&mut self, bytes: usize) {
        self.credit -= bytes as i64;
    }

    /// Adds the credit earned until `now`. Returns whether something may be written now.
    pub fn has_credit(&mut self, now: Time) -> bool {
        let elapsed = now.since(self.credited);
        let earned = u128::from(self.bytes_per_second) * u128::from(elapsed.0) / 1_000_000_000;
        // Keep the fraction: the time is not counted until it earns a byte.
        if earned > 0 {
            self.credited = now;
            let burst = BURST_BYTES.max(self.bytes_per_second / BURSTS_PER_SECOND);
            self.credit = (self.credit + earned.min(1 << 40) as i64).min(burst as i64);
        }
        self.credit > 0
    }

    /// Time until something may be written again.
    pub fn pause(&self) -> Duration {
        let owed = self.credit.min(0).unsigned_abs() + 1;
        let millis = (owed.saturating_mul(1000) / self.bytes_per_second.max(1)).clamp(PAUSE_MS_MIN, PAUSE_MS_MAX);
        Duration::from_millis(millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_earns_credit_with_time_and_saves_little() {
        let start = Time(5_000_000_000);
        let mut speed = Speed { bytes_per_second: 1 << 20, credit: 0, credited: start };
        let after = |millis| start.plus(Duration::from_millis(millis));
        assert!(!speed.has_credit(start));
        assert!(speed.has_credit(after(1)) && speed.credit == 1048);
        speed.credit -= 100_000;
        assert!(!speed.has_credit(after(2)));
        assert_eq!(speed.pause(), Duration::from_millis(93));
        assert!(speed.has_credit(after(100)));
        assert!(speed.has_credit(after(60_000)));
        assert_eq!(speed.credit, BURST_BYTES as i64);
        // A pause of a millisecond leaves enough for the millisecond after it.
        speed.bytes_per_second = 1 << 30;
        assert!(speed.has_credit(after(60_002)) && speed.credit > 2 << 20, "{}", speed.credit);
        // A time too short for a byte is not lost.
        let mut speed = Speed { bytes_per_second: 1000, credit: 0, credited: start };
        for micros in (100..=1000).step_by(100) {
            speed.has_credit(start.plus(Duration::from_micros(micros)));
        }
        assert_eq!(speed.credit, 1);
        assert_eq!(Speed { bytes_per_second: 0, ..speed }.pause(), Duration::from_millis(100));
    }
}
