//! Decides when a checkpoint round begins, and how fast it writes. The controller sees the node only through
//! [`Observation`], so that tests can replay scripted traces.
//!
//! A round must end before the log is full, and must otherwise leave the processors and the disk to the
//! clients. The speed therefore follows the growth of the log: the round must write what it has left before
//! the log is filled to [`FILL_END_PERCENT`]. An idle node raises the speed, slow syncs of the log lower it.
//! A node whose log syncs most of the time is busy, even if its owners are idle: commits wait for the disk.
//! Above [`FILL_END_PERCENT`] only the limit for restarts applies.

use junctor_kernel::{Duration, Time};

/// Time between two observations.
pub const TICK: Duration = Duration::from_millis(100);
/// Fill of the log at which a round begins.
const FILL_BEGIN_PERCENT: u64 = 25;
/// Fill of the log before which a round should end.
const FILL_END_PERCENT: u64 = 60;
/// A round begins only if the log has grown by this share of its limit since the round before. Without this
/// condition, rounds would follow each other without a pause if the log has few segments and is never much
/// below [`FILL_BEGIN_PERCENT`].
const GROWTH_SHARE: u64 = 16;
/// Weight of the last observation in means of the log's growth and load, as a fraction: 1 / this number.
const LAST_WEIGHT: u64 = 8;
/// Load of the busiest owner or of the log, per mille, up to which a round uses the whole configured speed.
const LOAD_LOW_PER_MILLE: u64 = 300;
/// Load of the busiest owner or of the log, per mille, from which a round is as slow as the log allows.
const LOAD_HIGH_PER_MILLE: u64 = 800;
/// Load of the log for each per mille of the time in which it syncs. A write of the round delays the sync
/// behind it, and with it all commits of a cycle, so a log that syncs for 40 per cent of the time is busy.
const SYNCS_WEIGHT: u64 = 2;
/// Smallest share of the speed, in 1/1024, while syncs are slow.
const SHARE_MIN: u64 = 64;
const SHARE_MAX: u64 = 1024;
/// Syncs are never considered slow below this duration, in microseconds.
const SYNC_US_SLOW_MIN: u64 = 500;

/// The settings of checkpoints. They have NDB's names; `docs/generated/settings.md` gives their meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// `MinDiskWriteSpeed` in bytes per second.
    pub bytes_per_second_min: u64,
    /// `MaxDiskWriteSpeed` in bytes per second.
    pub bytes_per_second_max: u64,
    /// `MaxDiskWriteSpeedOwnRestart` in bytes per second. It applies while the log is nearly full, too.
    pub bytes_per_second_max_restart: u64,
    /// `RecoveryWork`: garbage that checkpoint files may contain, in per cent of their live bytes.
    pub recovery_work_percent: u32,
    /// `EnableRedoControl`: whether the speed follows the fill of the log. Otherwise it is the maximum.
    pub is_redo_controlled: bool,
    /// `TimeBetweenLocalCheckpoints`: the binary logarithm of the 4-byte words that the log grows by between
    /// the beginnings of two rounds.
    pub growth_log2_words: u32,
}

impl Default for CheckpointSettings {
    fn default() -> CheckpointSettings {
        CheckpointSettings {
            bytes_per_second_min: 10 << 20,
            bytes_per_second_max: 200 << 20,
            bytes_per_second_max_restart: 1 << 30,
            recovery_work_percent: 60,
            is_redo_controlled: true,
            growth_log2_words: 24,
        }
    }
}

/// The state of the node at one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The time of the observation.
    pub now: Time,
    /// Bytes of the log that are in use.
    pub log_used_bytes: u64,
    /// Limit of these bytes; 0 without a limit.
    pub log_limit_bytes: u64,
    /// Bytes written to the log since the start of the node.
    pub log_written_bytes: u64,
    /// Whether a commit waits until a round has freed a part of the log.
    pub is_log_waited_for: bool,
    /// Estimated bytes that the round has left to write; 0 between rounds.
    pub left_bytes: u64,
    /// Load of the busiest owner of partitions, per mille of its time.
    pub load_per_mille: u64,
    /// Mean duration of recent syncs of the log, in microseconds.
    pub sync_us: u64,
    /// Shortest such mean since the start of the node.
    pub sync_us_min: u64,
    /// Duration of all syncs of the log since the start of the node, in microseconds.
    pub syncs_us: u64,
}

/// Shortest time in milliseconds between the beginnings of two rounds that the log's growth does not demand.
const FULL_PAUSE_MS: u64 = 1000;

/// The controller of one node.
#[derive(Clone, Debug)]
pub struct Controller {
    settings: CheckpointSettings,
    last: Option<Observation>,
    /// Mean growth of the log in bytes per second.
    growth: u64,
    /// Mean share of the time in which the log syncs, in parts per million.
    syncs_ppm: u64,
    /// Share of the speed that slow syncs leave, in 1/1024.
    share: u64,
    /// Bytes written to the log when the last round began.
    written_at_begin: u64,
    /// When the last round began.
    began: Time,
}

impl Controller {
    /// A controller that has observed nothing.
    pub fn new(settings: CheckpointSettings) -> Controller {
        Controller {
            settings,
            last: None,
            growth: 0,
            syncs_ppm: 0,
            share: SHARE_MAX,
            written_at_begin: 0,
            began: Time(0),
        }
    }

    /// Takes an observation into account.
    pub fn observe(&mut self, observation: Observation) {
        if let Some(last) = self.last {
            let elapsed_ms = observation.now.since(last.now).as_millis().max(1);
            let grown = observation.log_written_bytes.saturating_sub(last.log_written_bytes);
            let growth = grown.saturating_mul(1000) / elapsed_ms;
            self.growth = mean(self.growth, growth);
            let synced_us = observation.syncs_us.saturating_sub(last.syncs_us);
            self.syncs_ppm = mean(self.syncs_ppm, (synced_us.saturating_mul(1000) / elapsed_ms).min(1_000_000));
        }
        let is_slow = observation.sync_us_min > 0
            && observation.sync_us >= SYNC_US_SLOW_MIN
            && observation.sync_us >= 2 * observation.sync_us_min;
        // Lower the share fast and raise it slowly, so that a busy disk recovers before it gets more work.
        self.share = if is_slow { self.share / 2 } else { self.share + self.share / 4 + 1 };
        self.share = self.share.clamp(SHARE_MIN, SHARE_MAX);
        self.last = Some(observation);
    }

    /// Whether a round is to begin. Asked only between rounds.
    pub fn is_due(&self) -> bool {
        let Some(seen) = self.last else { return false };
        // A log that is nearly full holds writes back and no longer grows. Only a round can free it.
        let is_nearly_full = fill_percent(&seen) >= FILL_END_PERCENT || seen.is_log_waited_for;
        if is_nearly_full && seen.now.since(self.began).as_millis() >= FULL_PAUSE_MS {
            return true;
        }
        let grown = seen.log_written_bytes.saturating_sub(self.written_at_begin);
        let is_filled = fill_percent(&seen) >= FILL_BEGIN_PERCENT && grown >= seen.log_limit_bytes / GROWTH_SHARE;
        grown > 0 && (is_filled || grown >= 4 << self.settings.growth_log2_words)
    }

    /// A round begins.
    pub fn begin_round(&mut self) {
        self.written_at_begin = self.last.map_or(0, |seen| seen.log_written_bytes);
        self.began = self.last.map_or(Time(0), |seen| seen.now);
    }

    /// Bytes per second that all owners together may write.
    pub fn bytes_per_second(&self) -> u64 {
        let settings = &self.settings;
        let (min, max) =
            (settings.bytes_per_second_min, settings.bytes_per_second_max.max(settings.bytes_per_second_min));
        let Some(seen) = self.last.filter(|_| settings.is_redo_controlled) else { return max };
        if fill_percent(&seen) >= FILL_END_PERCENT || seen.is_log_waited_for {
            return settings.bytes_per_second_max_restart.max(max);
        }
        let by_log = self.bytes_per_second_for_log(&seen);
        let by_load = by_load(seen.load_per_mille.max(self.syncs_ppm / 1000 * SYNCS_WEIGHT), min, max);
        let wanted = by_log.max(by_load) * self.share / SHARE_MAX;
        // Slow syncs may halve the speed that the log needs, but not lower it further.
        wanted.max(by_log / 2).clamp(min, max)
    }

    /// Bytes per second with which the round ends before the log is filled to [`FILL_END_PERCENT`].
    fn bytes_per_second_for_log(&self, seen: &Observation) -> u64 {
        if seen.log_limit_bytes == 0 || self.growth == 0 {
            return 0;
        }
        let end = seen.log_limit_bytes / 100 * FILL_END_PERCENT;
        let space = end.saturating_sub(seen.log_used_bytes).max(1);
        let needed = u128::from(seen.left_bytes) * u128::from(self.growth) / u128::from(space);
        needed.min(u128::from(u64::MAX >> 16)) as u64
    }
}

fn mean(before: u64, last: u64) -> u64 {
    (before * (LAST_WEIGHT - 1) + last) / LAST_WEIGHT
}

/// The speed for a load: `max` for an idle node, `min` for a busy one.
fn by_load(load: u64, min: u64, max: u64) -> u64 {
    let idle = LOAD_HIGH_PER_MILLE.saturating_sub(load.max(LOAD_LOW_PER_MILLE));
    min + ((u128::from(max - min) * u128::from(idle)) / u128::from(LOAD_HIGH_PER_MILLE - LOAD_LOW_PER_MILLE)) as u64
}

fn fill_percent(seen: &Observation) -> u64 {
    (u128::from(seen.log_used_bytes) * 100).checked_div(u128::from(seen.log_limit_bytes)).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A node whose log grows at a constant rate, with rounds of a constant size.
    struct Trace {
        controller: Controller,
        seen: Observation,
        growth: u64,
        round_bytes: u64,
        /// Used bytes of the log that the running round frees.
        freed: Option<u64>,
        rounds: u32,
        fill_percent_max: u64,
        speed_max: u64,
    }

    impl Trace {
        fn new(settings: CheckpointSettings, growth: u64, round_bytes: u64) -> Trace {
            let limit = 1024 * MIB;
            let seen = Observation { log_limit_bytes: limit, load_per_mille: 1000, ..Observation::default() };
            let controller = Controller::new(settings);
            Trace { controller, seen, growth, round_bytes, freed: None, rounds: 0, fill_percent_max: 0, speed_max: 0 }
        }

        fn run(&mut self, ticks: u32) {
            for _ in 0..ticks {
                let seen = &mut self.seen;
                seen.now = seen.now.plus(TICK);
                seen.log_used_bytes += self.growth / 10;
                seen.log_written_bytes += self.growth / 10;
                if let Some(freed) = self.freed {
                    let speed = self.controller.bytes_per_second();
                    self.speed_max = self.speed_max.max(speed);
                    seen.left_bytes = seen.left_bytes.saturating_sub(speed / 10);
                    if seen.left_bytes == 0 {
                        seen.log_used_bytes -= freed;
                        self.freed = None;
                        self.rounds += 1;
                    }
                }
                self.fill_percent_max = self.fill_percent_max.max(fill_percent(seen));
                self.controller.observe(*seen);
                if self.freed.is_none() && self.controller.is_due() {
                    self.controller.begin_round();
                    self.freed = Some(self.seen.log_used_bytes);
                    self.seen.left_bytes = self.round_bytes;
                }
            }
        }
    }

    fn by_fill() -> CheckpointSettings {
        CheckpointSettings { growth_log2_words: 31, ..CheckpointSettings::default() }
    }

    #[test]
    fn an_idle_node_makes_no_rounds() {
        let mut trace = Trace::new(CheckpointSettings::default(), 0, 100 * MIB);
        trace.run(10_000);
        assert_eq!((trace.rounds, trace.freed), (0, None));
    }

    #[test]
    fn rounds_begin_at_a_quarter_and_end_before_the_log_is_filled_to_sixty_per_cent() {
        for (growth, round_bytes) in [(1, 100), (10, 500), (50, 1000), (100, 300)] {
            let mut trace = Trace::new(by_fill(), growth * MIB, round_bytes * MIB);
            trace.run(6_000);
            assert!(trace.rounds > 0, "{growth} MiB/s, rounds of {round_bytes} MiB");
            assert!(trace.fill_percent_max <= 62, "{growth}, {round_bytes}: {} %", trace.fill_percent_max);
        }
    }

    #[test]
    fn a_busy_node_writes_no_faster_than_its_log_requires() {
        let mut trace = Trace::new(by_fill(), MIB, 1000 * MIB);
        trace.run(20_000);
        assert!(trace.speed_max <= 12 * MIB, "{} bytes per second", trace.speed_max);
        // An idle node uses the configured maximum.
        let mut trace = Trace::new(by_fill(), MIB, 1000 * MIB);
        trace.seen.load_per_mille = 100;
        trace.run(20_000);
        assert_eq!(trace.speed_max, 200 * MIB);
    }

    #[test]
    fn a_node_whose_commits_wait_for_syncs_is_busy() {
        let speed_at_share = |per_mille: u64| {
            let mut trace = Trace::new(by_fill(), MIB, 1000 * MIB);
            trace.seen.load_per_mille = 100;
            for _ in 0..100 {
                trace.seen.syncs_us += TICK.as_micros() * per_mille / 1000;
                trace.run(1);
            }
            trace.controller.bytes_per_second()
        };
        assert_eq!(speed_at_share(450), 10 * MIB);
        assert_eq!(speed_at_share(100), 200 * MIB, "few commits, or commits that do not wait");
    }

    #[test]
    fn a_log_that_grows_faster_than_rounds_may_write_gets_the_speed_of_a_restart() {
        let settings = CheckpointSettings { bytes_per_second_max: 20 * MIB, ..by_fill() };
        let mut trace = Trace::new(settings, 60 * MIB, 1000 * MIB);
        trace.run(3_000);
        assert_eq!(trace.speed_max, 1024 * MIB);
        assert!(trace.fill_percent_max < 75, "{} %", trace.fill_percent_max);
    }

    #[test]
    fn a_round_begins_when_the_log_has_grown_by_the_configured_words() {
        let settings = CheckpointSettings { growth_log2_words: 20, ..CheckpointSettings::default() };
        let mut trace = Trace::new(settings, MIB, MIB);
        trace.run(390);
        assert_eq!(trace.rounds, 9, "one for each 4 MiB");
        // With the smallest value, rounds follow each other without a pause, but only if there are commits.
        let settings = CheckpointSettings { growth_log2_words: 0, ..CheckpointSettings::default() };
        let mut trace = Trace::new(settings, MIB, MIB);
        trace.run(100);
        assert!(trace.rounds > 40, "{}", trace.rounds);
        trace.growth = 0;
        trace.run(10);
        let rounds = trace.rounds;
        trace.run(100);
        assert_eq!(trace.rounds, rounds);
    }

    #[test]
    fn a_log_of_few_segments_does_not_make_rounds_without_growth() {
        let mut controller = Controller::new(by_fill());
        let mut seen = Observation { log_limit_bytes: 4 * MIB, log_used_bytes: MIB, ..Observation::default() };
        for tick in 0..10 {
            seen.now = seen.now.plus(TICK);
            seen.log_written_bytes += 8192;
            controller.observe(seen);
            assert!(!controller.is_due(), "tick {tick}");
        }
        seen.log_written_bytes += MIB;
        controller.observe(seen);
        assert!(controller.is_due());
    }

    #[test]
    fn slow_syncs_halve_the_speed_until_they_are_fast_again() {
        let mut controller = Controller::new(by_fill());
        let mut seen = Observation {
            log_limit_bytes: 1024 * MIB,
            left_bytes: 1024 * MIB,
            sync_us: 1000,
            sync_us_min: 900,
            ..Observation::default()
        };
        let mut speeds = Vec::new();
        for tick in 0..40 {
            seen.now = seen.now.plus(TICK);
            seen.sync_us = if (10..13).contains(&tick) { 2000 } else { 1000 };
            controller.observe(seen);
            speeds.push(controller.bytes_per_second() / MIB);
        }
        assert_eq!(speeds[9..13], [200, 100, 50, 25]);
        assert!(speeds[13..25].is_sorted() && speeds[25..].iter().all(|speed| *speed == 200), "{speeds:?}");
        // Short syncs are never slow: their means vary more.
        (seen.sync_us, seen.sync_us_min) = (400, 100);
        controller.observe(seen);
        assert_eq!(controller.bytes_per_second(), 200 * MIB);
    }

    #[test]
    fn without_control_by_the_log_rounds_write_at_the_maximum() {
        let settings = CheckpointSettings { is_redo_controlled: false, ..by_fill() };
        let mut controller = Controller::new(settings);
        controller.observe(Observation { load_per_mille: 1000, ..Observation::default() });
        assert_eq!(controller.bytes_per_second(), 200 * MIB);
    }

    #[test]
    fn a_nearly_full_log_that_does_not_grow_still_gets_rounds() {
        let mut controller = Controller::new(CheckpointSettings::default());
        let seen = |now_ms: u64| Observation {
            now: Time(now_ms * 1_000_000),
            log_used_bytes: 90,
            log_limit_bytes: 100,
            log_written_bytes: 0,
            is_log_waited_for: false,
            left_bytes: 0,
            load_per_mille: 0,
            ..Observation::default()
        };
        controller.observe(seen(5000));
        assert!(controller.is_due(), "a restart found the log nearly full");
        controller.begin_round();
        controller.observe(seen(5900));
        assert!(!controller.is_due());
        controller.observe(seen(6000));
        assert!(controller.is_due(), "the round before has failed or freed nothing");
    }

    #[test]
    fn a_commit_that_waits_for_the_log_gets_a_round() {
        let mut controller = Controller::new(CheckpointSettings::default());
        let mut seen = Observation {
            now: Time(5_000_000_000),
            log_used_bytes: 20,
            log_limit_bytes: 100,
            load_per_mille: 1000,
            ..Observation::default()
        };
        controller.observe(seen);
        assert!(!controller.is_due());
        seen.is_log_waited_for = true;
        controller.observe(seen);
        assert!(controller.is_due());
        controller.begin_round();
        assert_eq!(controller.bytes_per_second(), CheckpointSettings::default().bytes_per_second_max_restart);
    }
}
