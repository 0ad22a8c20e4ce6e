//! Hot path: at most 10 instructions per buffer of records.
//!
//! Whether the next cycle waits for more commits.
//!
//! A client that waits for its answer commits again soon after it. A cycle that begins with the first client
//! leaves the others to the next cycle. Then every sync serves a part of the clients, and every commit waits
//! for the rest of one sync and for a whole one. A cycle therefore waits until as many records have arrived
//! as the last one made durable, but only if they usually arrive soon. How soon is measured in every cycle,
//! whether the cycle waited or not, so a wait that would be in vain is not tried.

use junctor_kernel::{Duration, Time};

/// Length of the longest wait, in mean durations of a sync.
const SYNCS_MAX: u32 = 2;
/// Share of an observation in the mean: one in so many.
const WEIGHT: u32 = 8;

/// Measures how soon records follow a cycle.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Records that have arrived in this life.
    arrived: u64,
    /// Records of the cycles so far, and of the last one.
    collected: u64,
    last: u64,
    /// The number of records whose arrival ends the observation under way.
    expected: u64,
    /// The end of the last cycle, until the expected records have arrived.
    since: Option<Time>,
    /// Mean time in microseconds from the end of a cycle until the expected records arrived; 0 before the
    /// first observation.
    mean_us: u32,
    /// The longest wait in microseconds. A longer observation counts as twice that.
    wait_us_max: u32,
    pub timer_runs: bool,
}

impl Gathering {
    /// Called when `count` records arrive.
    pub fn arrive(&mut self, count: u64, now: Time) {
        self.arrived += count;
        if self.arrived >= self.expected
            && let Some(since) = self.since.take()
        {
            self.observe(now.since(since));
        }
    }

    /// Called when a cycle has collected every record that has arrived.
    pub fn collect(&mut self) {
        self.last = self.arrived - self.collected;
        self.collected = self.arrived;
    }

    /// Called at the end of a cycle. The mean duration of a sync is `sync_us` microseconds.
    pub fn end_cycle(&mut self, now: Time, sync_us: u32) {
        if self.since.take().is_some() {
            // The records did not arrive during a whole cycle.
            self.observe(Duration(u64::MAX));
        }
        self.wait_us_max = sync_us.saturating_mul(SYNCS_MAX);
        self.expected = self.arrived + self.last;
        // A cycle without records acknowledges nobody.
        self.since = (self.last > 0).then_some(now);
    }

    /// How long the next cycle should still wait; `None` if it should begin. `formed` counts the records that
    /// have arrived or are on their way.
    pub fn wait(&self, now: Time, formed: impl FnOnce() -> u64) -> Option<Duration> {
        let is_worthwhile = (1..=self.wait_us_max).contains(&self.mean_us);
        let since = self.since.filter(|_| is_worthwhile && formed() < self.expected)?;
        let (waited, max) = (now.since(since), Duration::from_micros(u64::from(self.wait_us_max)));
        (waited < max).then(|| Duration(max.0 - waited.0))
    }

    fn observe(&mut self, time: Duration) {
        let sample_us = time.as_micros().min(u64::from(self.wait_us_max.saturating_mul(2))) as u32;
        let mean_us = match self.mean_us {
            0 => sample_us,
            mean_us => mean_us - mean_us / WEIGHT + sample_us / WEIGHT,
        };
        self.mean_us = mean_us.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC_US: u32 = 100;

    fn at(us: u64) -> Time {
        Time(us * 1_000)
    }

    /// Runs cycles of `records` records each. They arrive again `after_us` after the end of a cycle.
    fn cycles(gathering: &mut Gathering, count: u64, (records, after_us): (u64, u64), start_us: u64) -> u64 {
        let mut now_us = start_us;
        for _ in 0..count {
            gathering.collect();
            now_us += u64::from(SYNC_US);
            gathering.end_cycle(at(now_us), SYNC_US);
            now_us += after_us;
            gathering.arrive(records, at(now_us));
        }
        now_us
    }

    #[test]
    fn nothing_is_awaited_before_the_first_observation() {
        let mut gathering = Gathering::default();
        gathering.arrive(1, at(0));
        gathering.collect();
        gathering.end_cycle(at(100), SYNC_US);
        assert_eq!(gathering.wait(at(100), || 0), None);
    }

    #[test]
    fn a_cycle_waits_for_clients_that_come_back_soon_and_not_longer_than_two_syncs() {
        let mut gathering = Gathering::default();
        gathering.arrive(4, at(0));
        let now_us = cycles(&mut gathering, 10, (4, 50), 0);
        gathering.collect();
        gathering.end_cycle(at(now_us), SYNC_US);
        gathering.arrive(3, at(now_us + 40));
        assert_eq!(gathering.wait(at(now_us + 40), || 0), Some(Duration::from_micros(160)));
        assert_eq!(gathering.wait(at(now_us + 200), || 0), None);
        let formed = gathering.arrived + 1;
        assert_eq!(gathering.wait(at(now_us + 50), || formed), None, "the last one is on its way");
        gathering.arrive(1, at(now_us + 50));
        assert_eq!(gathering.wait(at(now_us + 50), || 0), None, "all are back");
    }

    #[test]
    fn a_cycle_does_not_wait_for_clients_that_think() {
        let mut gathering = Gathering::default();
        gathering.arrive(4, at(0));
        let now_us = cycles(&mut gathering, 10, (4, 1_000), 0);
        gathering.collect();
        gathering.end_cycle(at(now_us), SYNC_US);
        gathering.arrive(1, at(now_us + 10));
        assert_eq!(gathering.wait(at(now_us + 10), || 0), None);
    }

    #[test]
    fn waiting_ends_once_clients_stop_coming_back_and_begins_again_when_they_do() {
        let mut gathering = Gathering::default();
        gathering.arrive(4, at(0));
        let mut now_us = cycles(&mut gathering, 20, (4, 50), 0);
        // One record a cycle arrives at once, the others never.
        let mut waits = 0;
        for _ in 0..100 {
            gathering.collect();
            gathering.end_cycle(at(now_us), SYNC_US);
            gathering.arrive(1, at(now_us));
            waits += u32::from(gathering.wait(at(now_us), || 0).is_some());
            now_us += 300;
        }
        assert!(waits <= 3, "{waits} waits for clients that are gone");
        now_us = cycles(&mut gathering, 40, (4, 50), now_us);
        gathering.collect();
        gathering.end_cycle(at(now_us), SYNC_US);
        assert!(gathering.wait(at(now_us), || 0).is_some());
    }
}
