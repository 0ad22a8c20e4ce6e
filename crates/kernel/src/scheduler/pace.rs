//! Decides when the long-running work of a thread gives way to requests from sockets.
//!
//! A turn takes one step of long-running work, so a request waits for at most one step. A connection with
//! many short requests nevertheless waits for a step at almost every request, on each thread that the request
//! passes. While requests arrive on any thread of the node, long-running work therefore runs for a
//! millisecond and pauses for a millisecond. The thread sleeps in the pause if nothing else is to be done,
//! and the operating system then lets it run as soon as a request arrives.

use crate::context::Time;

/// Long-running work that may run before it pauses, in nanoseconds.
const WORK_NS: u64 = 1_000_000;
/// Duration of a pause, in nanoseconds. It is the shortest time for which a thread can wait for sockets.
const PAUSE_NS: u64 = 1_000_000;
/// Time between two looks at the number of requests, in nanoseconds.
const LOOK_NS: u64 = 10_000_000;
/// Nanoseconds for each request, on average, below which there are many. Fewer requests wait for single steps
/// only, and long-running work does not pause.
const REQUEST_NS_MAX: u64 = 500_000;

/// Tells whether many requests arrive at the node.
#[derive(Debug, Default)]
pub struct RequestRate {
    looked_at: Time,
    /// Requests that all threads had taken at the last look.
    requests: u64,
    has_many: bool,
}

impl RequestRate {
    /// Whether many requests arrived between the last two looks, which are at least 10 ms apart. `requests`
    /// counts those that all threads have taken since the start of the node.
    pub fn has_many(&mut self, now: Time, requests: impl FnOnce() -> u64) -> bool {
        let since_look = now.since(self.looked_at).0;
        if since_look >= LOOK_NS {
            let requests = requests();
            let arrived = requests.saturating_sub(self.requests);
            self.has_many = arrived.saturating_mul(REQUEST_NS_MAX) > since_look;
            (self.looked_at, self.requests) = (now, requests);
        }
        self.has_many
    }
}

/// The pace of the long-running work of one thread.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Whether the thread is a background thread: requests preempt it, so its work need not pause.
    is_background: bool,
    rate: RequestRate,
    worked_ns: u64,
    /// When the work goes on.
    resumes_at: Time,
}

impl Pace {
    pub(crate) fn new(is_background: bool) -> Pace {
        Pace { is_background, ..Pace::default() }
    }

    /// Whether long-running work may run in a turn that begins at `now`.
    #[inline]
    pub(crate) fn may_work(&self, now: Time) -> bool {
        now >= self.resumes_at
    }

    /// When paused work goes on.
    pub(crate) fn resumes_at(&self) -> Time {
        self.resumes_at
    }

    /// Notes that long-running work ran from `start` to `end`. `requests` counts those that all threads have
    /// taken since the start of the node.
    pub(crate) fn note_work(&mut self, (start, end): (Time, Time), requests: impl FnOnce() -> u64) {
        if self.is_background {
            return;
        }
        if !self.rate.has_many(end, requests) {
            self.worked_ns = 0;
            return;
        }
        self.worked_ns += end.since(start).0;
        if self.worked_ns >= WORK_NS {
            self.worked_ns = 0;
            self.resumes_at = Time(end.0 + PAUSE_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs steps of 100 microseconds for 100 milliseconds, with `requests` each millisecond. Returns the
    /// nanoseconds of steps.
    fn worked_ns(requests_per_ms: u64) -> u64 {
        let mut pace = Pace::default();
        let (mut now, mut worked) = (Time(1_000_000_000), 0);
        pace.note_work((now, now), || 0);
        let begun = now.0;
        while now.0 < begun + 100_000_000 {
            if pace.may_work(now) {
                let end = Time(now.0 + 100_000);
                pace.note_work((now, end), || (end.0 - begun) / 1_000_000 * requests_per_ms);
                worked += 100_000;
                now = end;
            } else {
                assert!(pace.resumes_at() > now);
                now = pace.resumes_at();
            }
        }
        worked
    }

    #[test]
    fn long_work_has_a_thread_for_itself_without_many_requests() {
        assert_eq!(worked_ns(0), 100_000_000);
        assert_eq!(worked_ns(1), 100_000_000);
    }

    #[test]
    fn many_requests_leave_half_of_the_time_to_long_work() {
        // The first ten milliseconds pass before the first look.
        let half = 10_000_000 + 45_000_000;
        assert!((half - 2_000_000..=half + 2_000_000).contains(&worked_ns(20)), "{}", worked_ns(20));
    }

    #[test]
    fn the_work_of_a_background_thread_does_not_pause() {
        let mut pace = Pace::new(true);
        for step in 1..1000 {
            let end = Time(step * 100_000_000);
            pace.note_work((Time(end.0 - 100_000_000), end), || step * 1_000_000);
            assert!(pace.may_work(end));
        }
    }

    #[test]
    fn the_first_request_after_a_long_silence_pauses_nothing() {
        let mut pace = Pace::default();
        pace.note_work((Time(0), Time(100_000)), || 0);
        let later = Time(60_000_000_000);
        pace.note_work((later, Time(later.0 + 5_000_000)), || 1);
        assert!(pace.may_work(Time(later.0 + 5_000_000)));
    }
}
