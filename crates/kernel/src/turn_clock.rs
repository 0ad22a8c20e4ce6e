//! The clock with which handlers measure their own work. [`crate::Context::turn_start`] is the same time
//! throughout a turn and cannot measure it.

use crate::clock::Clock;
use crate::context::Time;
use crate::random::Random;

/// Maximum time between two readings of a simulated clock within a turn, in nanoseconds.
const SIMULATED_STEP_NS_MAX: u64 = 2_000;

/// The clock of one thread, which advances within a turn.
#[derive(Clone, Debug)]
pub struct TurnClock(Source);

#[derive(Clone, Debug)]
enum Source {
    Real(Clock),
    Simulated { random: Random, turn_start: Time, ahead_ns: u64 },
}

impl TurnClock {
    /// Reads the node's clock.
    pub(crate) fn real(clock: Clock) -> TurnClock {
        TurnClock(Source::Real(clock))
    }

    /// Whether the thread belongs to a real node.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self.0, Source::Real(_))
    }

    /// Derives times from a seed. Each reading in a turn is up to 2 microseconds after the one before.
    pub fn simulated(seed: u64) -> TurnClock {
        TurnClock(Source::Simulated { random: Random::new(seed), turn_start: Time(0), ahead_ns: 0 })
    }

    /// Reads the clock in the turn that began at `turn_start`. About 60 instructions with a real clock.
    #[inline]
    pub fn now(&mut self, turn_start: Time) -> Time {
        match &mut self.0 {
            Source::Real(clock) => clock.now(),
            Source::Simulated { random, turn_start: last_start, ahead_ns } => {
                if *last_start != turn_start {
                    (*last_start, *ahead_ns) = (turn_start, 0);
                }
                *ahead_ns += 1 + random.below(SIMULATED_STEP_NS_MAX);
                Time(turn_start.0 + *ahead_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_times_rise_within_a_turn_and_depend_on_the_seed_only() {
        let [mut one, mut other] = [TurnClock::simulated(7), TurnClock::simulated(7)];
        let first = one.now(Time(1_000));
        let second = one.now(Time(1_000));
        assert!(first > Time(1_000) && second > first);
        assert_eq!([other.now(Time(1_000)), other.now(Time(1_000))], [first, second]);
        assert!(one.now(Time(5_000)) <= Time(5_000 + SIMULATED_STEP_NS_MAX));
    }
}
