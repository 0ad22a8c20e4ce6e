//! When a thread spins and for how long: gathers what the controller wants to know.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Duration, Time};
use crate::directory::ThreadLayout;
use crate::module::ModuleId;
use crate::scheduler::spin::{SpinController, SpinMeasurement, SpinSettings};

use super::thread_usage::{RunDelay, thread_ran_ns};
use super::wake::WAKE_NS_MAX;

/// How often the spin time is chosen anew, while the thread has idle moments.
const ADJUST_EVERY: Duration = Duration::from_millis(10);

/// How often it is looked for how much of its time the thread waited for a CPU.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// The settings of all threads: a word that whoever changes them writes whole, with more than one writer for the reasons of
/// [`SendWord`](super::sending::SendWord).
#[derive(Debug, Default)]
pub(super) struct SpinWord(AtomicU64);

impl SpinWord {
    pub(super) fn store(&self, settings: &SpinSettings) {
        let word = u64::from(settings.adaptive)
            | u64::from(settings.spin_us_max as u16) << 16
            | u64::from(settings.overhead_percent as u16) << 32
            | u64::from(settings.call_ns as u16) << 48;
        self.0.store(word, Ordering::Relaxed);
    }

    pub(super) fn load(&self) -> SpinSettings {
        let word = self.0.load(Ordering::Relaxed);
        SpinSettings {
            adaptive: word & 1 != 0,
            spin_us_max: u32::from((word >> 16) as u16),
            overhead_percent: u32::from((word >> 32) as u16),
            call_ns: u32::from((word >> 48) as u16),
        }
    }
}

/// What one thread knows of its idle moments.
pub(super) struct Spinner {
    controller: SpinController,
    /// Threads that wait for disks and not for clients never spin.
    may_spin: bool,
    /// The time of this thread alone, from its ThreadConfig, in microseconds; it wins over SchedulerSpinTimer.
    fixed_us: u32,
    settings: SpinSettings,
    wake_ns: u64,
    adjusted: Time,
    /// Since when the thread is awake.
    woke: Time,
    /// When it went to sleep last.
    slept: Time,
    /// Nanoseconds awake since it was last looked how long the thread waited.
    awake_ns: u64,
    sampled: Time,
    run_delay: RunDelay,
    waited_ns: u64,
    ran_ns: u64,
}

impl Spinner {
    pub(super) fn new(layout: &ThreadLayout, wake_ns: u64) -> Spinner {
        let has = |module| layout.modules.iter().any(|(other, _)| *other == module);
        Spinner {
            controller: SpinController::new(layout.spin_scale),
            may_spin: has(ModuleId::SOCKETS) || !has(ModuleId::FILES),
            fixed_us: layout.spin_us,
            settings: SpinSettings::default(),
            wake_ns,
            adjusted: Time(0),
            woke: Time(0),
            slept: Time(0),
            awake_ns: 0,
            sampled: Time(0),
            run_delay: RunDelay::default(),
            waited_ns: 0,
            ran_ns: 0,
        }
    }

    /// How long to spin now.
    #[inline]
    pub(super) fn spin(&self) -> Duration {
        self.controller.spin()
    }

    /// Nanoseconds between two looks for work.
    pub(super) fn call(&self) -> Duration {
        Duration(u64::from(self.settings.call_ns))
    }

    /// The thread has nothing to do at `now`. Returns whether the spin time was chosen anew.
    pub(super) fn begin_idle(&mut self, now: Time, word: &SpinWord, busy_per_mille: impl FnOnce() -> u32) -> bool {
        if !self.may_spin || self.adjusted.0 > 0 && now.since(self.adjusted).0 < ADJUST_EVERY.0 {
            return false;
        }
        self.adjusted = now;
        self.settings = word.load();
        if !self.settings.adaptive && self.fixed_us > 0 {
            self.settings.spin_us_max = self.fixed_us;
        }
        let samples = self.settings.adaptive && now.since(self.sampled).0 >= SAMPLE_EVERY.0;
        let waited_per_mille = samples.then(|| self.waited_per_mille(now));
        let measured = SpinMeasurement { wake_ns: self.wake_ns, busy_per_mille: busy_per_mille(), waited_per_mille };
        self.controller.adjust(&self.settings, &measured);
        true
    }

    /// The thread goes to sleep at `now`.
    #[inline]
    pub(super) fn begin_sleep(&mut self, now: Time) {
        self.awake_ns += now.since(self.woke).0;
        self.slept = now;
    }

    /// The thread woke at `now`, for it was rung at `rung` if anybody did.
    #[inline]
    pub(super) fn end_sleep(&mut self, now: Time, rung: Option<Time>) {
        self.woke = now;
        // A bell that was rung before the sleep tells nothing of it.
        let rung = rung.filter(|rung| *rung >= self.slept);
        let sample_ns = rung.map(|rung| now.since(rung).0).filter(|sample_ns| *sample_ns <= WAKE_NS_MAX);
        if let Some(sample_ns) = sample_ns {
            self.wake_ns = self.wake_ns - self.wake_ns / 8 + sample_ns / 8;
        }
    }

    /// Work came after the thread was idle from `from` on; `slept` says whether it was woken for it.
    #[inline]
    pub(super) fn end_idle(&mut self, from: Time, now: Time, slept: bool) {
        let idle_ns = now.since(from).0;
        self.controller.observe(Duration(if slept { idle_ns.saturating_sub(self.wake_ns) } else { idle_ns }));
    }

    /// Nothing came but the time: no spin, however long, would have caught work.
    #[inline]
    pub(super) fn end_idle_without_work(&mut self) {
        self.controller.observe(Duration::from_millis(1_000));
    }

    /// The part of the time since the last look for which the thread waited for a CPU, in thousandths: what the operating system
    /// says, or if it does not tell, how long the thread was awake without running.
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

    #[test]
    fn settings_pass_through_the_word_unchanged() {
        let word = SpinWord::default();
        let settings = SpinSettings { adaptive: true, spin_us_max: 500, overhead_percent: 10_000, call_ns: 8_000 };
        word.store(&settings);
        assert_eq!(word.load(), settings);
    }
}
