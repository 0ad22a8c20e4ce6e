//! Time stamps with which handlers measure their own work; [`crate::Context::now`] stands still during a
//! turn.

use crate::clock::Clock;
use crate::context::Time;
use crate::random::Random;

/// Maximum step between two stamps of the model, in nanoseconds.
const MODEL_STEP_NS_MAX: u64 = 2_000;

/// Source of a thread's time stamps.
#[derive(Clone, Debug)]
pub struct Stamps(Source);

#[derive(Clone, Debug)]
enum Source {
    Clock(Clock),
    Model { random: Random, turn: Time, ahead_ns: u64 },
}

impl Stamps {
    /// Stamps from the node's clock.
    pub(crate) fn of_clock(clock: Clock) -> Stamps {
        Stamps(Source::Clock(clock))
    }

    /// Stamps derived from a seed. Within a turn each one is a little later than the one before.
    pub fn model(seed: u64) -> Stamps {
        Stamps(Source::Model { random: Random::new(seed), turn: Time(0), ahead_ns: 0 })
    }

    /// The present time, in a turn that began at `now`. About 60 instructions with a real clock.
    #[inline]
    pub fn take(&mut self, now: Time) -> Time {
        match &mut self.0 {
            Source::Clock(clock) => clock.now(),
            Source::Model { random, turn, ahead_ns } => {
                if *turn != now {
                    (*turn, *ahead_ns) = (now, 0);
                }
                *ahead_ns += 1 + random.below(MODEL_STEP_NS_MAX);
                Time(now.0 + *ahead_ns)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_stamps_rise_within_a_turn_and_depend_on_the_seed_only() {
        let [mut one, mut other] = [Stamps::model(7), Stamps::model(7)];
        let first = one.take(Time(1_000));
        let second = one.take(Time(1_000));
        assert!(first > Time(1_000) && second > first);
        assert_eq!([other.take(Time(1_000)), other.take(Time(1_000))], [first, second]);
        assert!(one.take(Time(5_000)) <= Time(5_000 + MODEL_STEP_NS_MAX));
    }
}
