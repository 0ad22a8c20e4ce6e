//! Measures the latency of a wake-up: the time from the call until the thread runs. At the node's start, two
//! threads wake each other. The module `doorbell` contains the wake-ups of the node's own threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::clock::Clock;

/// Number of round trips measured.
const ROUNDS: u32 = 50;

/// Maximum length of a sample, in nanoseconds. Longer ones are ignored, because the thread must have waited
/// for something other than the wake-up.
pub(super) const WAKE_NS_MAX: u64 = 100_000;

/// Assumed time if nothing could be measured, in nanoseconds.
const WAKE_NS_GUESS: u64 = 25_000;

/// Mean time from a wake-up until the thread runs, in nanoseconds.
pub(super) fn measure(clock: &Clock) -> u64 {
    let turn = Arc::new(AtomicU32::new(0));
    let (other_turn, caller) = (Arc::clone(&turn), thread::current());
    let other = thread::Builder::new().name("wake".into()).spawn(move || {
        for round in 0..ROUNDS {
            while other_turn.load(Ordering::Acquire) != 2 * round + 1 {
                thread::park();
            }
            other_turn.store(2 * round + 2, Ordering::Release);
            caller.unpark();
        }
    });
    let Ok(other) = other else { return WAKE_NS_GUESS };
    let (mut sum_ns, mut samples) = (0, 0);
    for round in 0..ROUNDS {
        let start = clock.now();
        turn.store(2 * round + 1, Ordering::Release);
        other.thread().unpark();
        while turn.load(Ordering::Acquire) != 2 * round + 2 {
            thread::park();
        }
        // A round trip consists of two wake-ups.
        let took_ns = clock.now().since(start).0 / 2;
        if took_ns <= WAKE_NS_MAX {
            sum_ns += took_ns;
            samples += 1;
        }
    }
    // The other thread has finished its last round, so joining it does not wait.
    let _ = other.join();
    sum_ns.checked_div(samples).unwrap_or(WAKE_NS_GUESS)
}
