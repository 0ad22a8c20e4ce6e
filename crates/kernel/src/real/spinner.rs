//! Feeds the spin controller of one thread with measurements, and keeps its decision.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Duration, Time};
use crate::directory::ThreadLayout;
use crate::module::ModuleId;
use crate::scheduler::spin::{SpinController, SpinMeasurement, SpinSettings};

use super::thread_usage::{RunDelay, thread_ran_ns};
use super::wake::WAKE_NS_MAX;

/// Minimum time between two decisions. A decision is made when the thread becomes idle.
const ADJUST_EVERY: Duration = Duration::from_millis(10);

/// Minimum time between two samples of how long the thread waited for a CPU.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The spin settings of all threads, packed into one atomic word. The word has several writers, for the
/// reasons given at [`AtomicSendSettings`](super::sending::AtomicSendSettings).
#[derive(Debug, Default)]
pub(super) struct AtomicSpinSettings(AtomicU64);

impl AtomicSpinSettings {
    pub(super) fn store(&self, settings: &SpinSettings) {
        let word = u64::from(settings.adaptive)
            | u64::from(settings.spin_us_max as u16) << 16
            | u64::from(settings.overhead_percent as u16) << 32
            | u64::from(settings.poll_interval_ns as u16) << 48;
        self.0.store(word, Ordering::Relaxed);
    }

    pub(super) fn load(&self) -> SpinSettings {
        let word = self.0.load(Ordering::Relaxed);
        SpinSettings {
            adaptive: word & 1 != 0,
            spin_us_max: u32::from((word >> 16) as u16),
            overhead_percent: u32::from((word >> 32) as u16),
            poll_interval_ns: u32::from((word >> 48) as u16),
        }
    }
}

/// Kinds of idle periods, by the event that will probably end them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Awaits {
    /// Clients and other threads.
    #[default]
    Work,
    /// Perhaps the log: its files are being written or synced, and most clients may wait for that.
    Log,
}

/// The spin controllers of one thread and the figures of its idle periods.
pub(super) struct Spinner {
    /// One controller for each kind of idle period, because work comes much later after a period that begins
    /// with a sync.
    controllers: [SpinController; 2],
    /// The kind of the present idle period.
    awaits: Awaits,
    /// False for threads that wait for disks instead of clients.
    may_spin: bool,
    /// The spin time of this thread's ThreadConfig entry, in microseconds. Overrides SchedulerSpinTimer.
    fixed_us: u32,
    settings: SpinSettings,
    wake_ns: u64,
    last_adjusted: Time,
    /// When the thread last woke.
    woke: Time,
    /// When it last went to sleep.
    slept: Time,
    /// Nanoseconds awake from `sampled` to `slept`.
    awake_ns: u64,
    /// When `waited_ns` and `ran_ns` were read.
    sampled: Time,
    run_delay: RunDelay,
    /// Total time that the thread has waited for a CPU.
    waited_ns: u64,
    /// Total CPU time of the thread.
    ran_ns: u64,
}

impl Spinner {
    pub(super) fn new(layout: &ThreadLayout, wake_ns: u64) -> Spinner {
        let has = |module| layout.modules.iter().any(|(other, _)| *other == module);
        Spinner {
            controllers: std::array::from_fn(|_| SpinController::new(layout.spin_scale)),
            awaits: Awaits::default(),
            may_spin: has(ModuleId::SOCKETS) || !has(ModuleId::FILES),
            fixed_us: layout.spin_us,
            settings: SpinSettings::default(),
            wake_ns,
            last_adjusted: Time(0),
            woke: Time(0),
            slept: Time(0),
            awake_ns: 0,
            sampled: Time(0),
            run_delay: RunDelay::default(),
            waited_ns: 0,
            ran_ns: 0,
        }
    }

    /// The spin time of the present idle period.
    #[inline]
    pub(super) fn spin(&self) -> Duration {
        self.controllers[self.awaits as usize].spin()
    }

    /// The longer of the two spin times.
    pub(super) fn longest_spin(&self) -> Duration {
        Duration(self.controllers.iter().map(|controller| controller.spin().0).max().unwrap_or(0))
    }

    /// Time between two polls while spinning.
    pub(super) fn poll_interval(&self) -> Duration {
        Duration(u64::from(self.settings.poll_interval_ns))
    }

    /// Called when the thread becomes idle at `now`. Returns whether new spin times were chosen.
    pub(super) fn begin_idle(
        &mut self,
        (now, awaits): (Time, Awaits),
        word: &AtomicSpinSettings,
        busy_per_mille: impl FnOnce() -> u32,
    ) -> bool {
        self.awaits = awaits;
        if !self.may_spin || self.last_adjusted.0 > 0 && now.since(self.last_adjusted).0 < ADJUST_EVERY.0 {
            return false;
        }
        self.last_adjusted = now;
        self.settings = word.load();
        if !self.settings.adaptive && self.fixed_us > 0 {
            self.settings.spin_us_max = self.fixed_us;
        }
        let samples = self.settings.adaptive && now.since(self.sampled).0 >= SAMPLE_EVERY.0;
        let waited_per_mille = samples.then(|| self.waited_per_mille(now));
        let measured = SpinMeasurement { wake_ns: self.wake_ns, busy_per_mille: busy_per_mille(), waited_per_mille };
        self.controllers.iter_mut().for_each(|controller| controller.adjust(&self.settings, &measured));
        true
    }

    /// Called when the thread goes to sleep at `now`.
    #[inline]
    pub(super) fn begin_sleep(&mut self, now: Time) {
        self.awake_ns += now.since(self.woke).0;
        self.slept = now;
    }

    /// Called when the thread has woken at `now`. `rang_at` is when its doorbell rang, if it did.
    #[inline]
    pub(super) fn end_sleep(&mut self, now: Time, rang_at: Option<Time>) {
        self.woke = now;
        // A doorbell that rang before the sleep did not cause this wake-up.
        let rang_at = rang_at.filter(|rang_at| *rang_at >= self.slept);
        let sample_ns = rang_at.map(|rang_at| now.since(rang_at).0).filter(|sample_ns| *sample_ns <= WAKE_NS_MAX);
        if let Some(sample_ns) = sample_ns {
            self.wake_ns = self.wake_ns - self.wake_ns / 8 + sample_ns / 8;
        }
    }

    /// Called when work arrives for a thread that was idle since `from`. `slept` tells whether the thread had
    /// to be woken.
    #[inline]
    pub(super) fn end_idle(&mut self, from: Time, now: Time, slept: bool) {
        let idle_ns = now.since(from).0;
        self.observe(Duration(if slept { idle_ns.saturating_sub(self.wake_ns) } else { idle_ns }));
    }

    /// Called when an idle period ends without work, or with an answer about a file. Counts as a long period,
    /// which no spin could have covered: the worker that answers can run the turn of a sleeping thread
    /// itself.
    #[inline]
    pub(super) fn end_idle_without_work(&mut self) {
        self.observe(Duration::from_millis(1_000));
    }

    #[inline]
    fn observe(&mut self, idle: Duration) {
        self.controllers[self.awaits as usize].observe(idle);
    }

    /// Share of the time since the last sample in which the thread waited for a CPU, in thousandths. If the
    /// operating system does not report that time, it is the time awake minus the CPU time.
    #[cold]
    fn waited_per_mille(&mut self, now: Time) -> u32 {
        let ran_ns = thread_ran_ns();
        let awake_ns = self.awake_ns + now.since(self.woke).0;
        let mut new_ns = awake_ns.saturating_sub(ran_ns.saturating_sub(self.ran_ns));
        if let Some(waited_ns) = self.run_delay.nanoseconds() {
            new_ns = waited_ns.saturating_sub(self.waited_ns);
            self.waited_ns = waited_ns;
        }
        let all_ns = now.since(self.sampled).0.max(1);
        (self.sampled, self.ran_ns, self.awake_ns, self.woke) = (now, ran_ns, 0, now);
        (new_ns.saturating_mul(1_000) / all_ns).min(1_000) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::NodeLayout;
    use crate::scheduler::spin::SpinMethod;

    #[test]
    fn idle_periods_that_begin_with_a_sync_have_a_spin_time_of_their_own() {
        let layout = NodeLayout::new(&[&[(ModuleId::SOCKETS, 0)]]);
        let mut spinner = Spinner::new(&layout.threads[0], 25_000);
        let word = AtomicSpinSettings::default();
        word.store(&SpinMethod::CostBased.settings(0));
        // Shorter than the time after which the thread measures how long it waited for a CPU.
        for window in 1..9 {
            let now = Time(window * ADJUST_EVERY.0);
            for _ in 0..20 {
                spinner.begin_idle((now, Awaits::Work), &word, || 100);
                spinner.end_idle(now, now.plus(Duration::from_micros(10)), false);
                spinner.begin_idle((now, Awaits::Log), &word, || 100);
                spinner.end_idle_without_work();
            }
        }
        spinner.begin_idle((Time(9 * ADJUST_EVERY.0), Awaits::Work), &word, || 100);
        assert!(spinner.spin().0 >= 10_000 && spinner.longest_spin() == spinner.spin(), "{:?}", spinner.spin());
        spinner.begin_idle((Time(9 * ADJUST_EVERY.0), Awaits::Log), &word, || 100);
        assert_eq!(spinner.spin(), Duration(0));
    }

    #[test]
    fn settings_pass_through_the_word_unchanged() {
        let word = AtomicSpinSettings::default();
        let settings =
            SpinSettings { adaptive: true, spin_us_max: 500, overhead_percent: 10_000, poll_interval_ns: 8_000 };
        word.store(&settings);
        assert_eq!(word.load(), settings);
    }
}
