//! How long a thread spins: polls for work before it sleeps. This is a controller that computes with integers
//! from measurements; it reads no clock.
//!
//! A histogram counts idle periods by their length, the time until work arrives. A spin of length S costs the
//! whole idle period if work arrives within S, and S otherwise. It saves a wake-up if work arrives within S.
//! The histogram of the last window thus gives the cost and the gain of every length, whatever length the
//! thread used. An idle period that a timer ends counts as one without work.
//!
//! Source: RonDB's adaptive spinning (methods, allowed overheads, factors by kind of thread, caps by CPU
//! use). RonDB spaces its slots around the present spin time; these are fixed.

use crate::context::Duration;

/// Number of histogram slots. The last one holds everything longer.
const SLOTS: usize = 20;

/// End of the first slot. Each slot ends at 1.5 times the end of the one before.
const FIRST_SLOT_NS: u64 = 500;

/// Minimum length of a spin, in nanoseconds.
const SPIN_NS_MIN: u64 = 2_000;

/// Maximum number of idle periods in a window with which a thread does not spin: too few to judge from.
const EVENTS_MIN: u32 = 3;

/// A thread that already spins stops only if its overhead exceeds the allowed one by this many percentage
/// points.
const HYSTERESIS_PERCENT: u64 = 20;

/// Overhead below which spinning is cheaper than sleeping, in per cent.
const CHEAPER_PERCENT: u64 = 100;

/// Pairs of a CPU use in thousandths and a share in per cent. Above this CPU use, a spin lasts at most this
/// share of the maximum spin time.
const CAPS: [(u32, u64); 6] = [(900, 25), (800, 33), (700, 45), (600, 60), (500, 75), (400, 90)];

/// Share of time in which a thread waits for a CPU, in thousandths, above which its neighbours, the other
/// threads on its CPUs, need the CPU. The thread then backs off: it does not spin for a while.
const SHARED_PER_MILLE: u32 = 250;

/// Share of time in which a thread waits for a CPU, in thousandths, below which the neighbours are gone.
const ALONE_PER_MILLE: u32 = 100;

/// First and maximum length of a back-off, in adjustments. The neighbours may wait only because this thread
/// spins. Then only another spin shows whether they are still there. If it shows that they are, the next
/// back-off is twice as long. If the neighbours are seen to leave during a back-off, it ends, and the length
/// of the next one halves.
const BACK_OFF: [u32; 2] = [100, 6_000];

/// Number of samples without contention after which the length of the next back-off halves.
const BACK_OFF_FORGOTTEN: u32 = 100;

/// How threads spin. NDB's SpinMethod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinMethod {
    /// For a fixed time, 0 unless set.
    Static,
    /// As long as spinning saves about as much CPU time as it costs.
    #[default]
    CostBased,
    /// Longer, to reduce latency.
    LatencyOptimised,
    /// Longest, for machines on which each thread has a CPU to itself.
    DatabaseMachine,
}

impl SpinMethod {
    /// Every method.
    pub const ALL: [SpinMethod; 4] =
        [SpinMethod::Static, SpinMethod::CostBased, SpinMethod::LatencyOptimised, SpinMethod::DatabaseMachine];

    /// Name in settings, as in NDB.
    pub const fn name(self) -> &'static str {
        match self {
            SpinMethod::Static => "StaticSpinning",
            SpinMethod::CostBased => "CostBasedSpinning",
            SpinMethod::LatencyOptimised => "LatencyOptimisedSpinning",
            SpinMethod::DatabaseMachine => "DatabaseMachineSpinning",
        }
    }

    /// The method with this name; case-insensitive.
    pub fn named(name: &str) -> Option<SpinMethod> {
        SpinMethod::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name))
    }

    /// The settings of the method, given the fixed spin time of the thread or node in microseconds.
    pub fn settings(self, fixed_us: u32) -> SpinSettings {
        let (adaptive, spin_us_max, overhead_percent) = match self {
            SpinMethod::Static => (false, fixed_us, 0),
            SpinMethod::CostBased => (true, 100, 200),
            SpinMethod::LatencyOptimised => (true, 200, 1_000),
            SpinMethod::DatabaseMachine => (true, 500, 10_000),
        };
        SpinSettings { adaptive, spin_us_max, overhead_percent, poll_interval_ns: 1_000 }
    }
}

/// The user's settings for spinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinChoice {
    /// SpinMethod.
    pub method: SpinMethod,
    /// SchedulerSpinTimer: the fixed spin time of StaticSpinning, in microseconds.
    pub timer_us: u32,
    /// EnableAdaptiveSpinning: if off, every method spins for the fixed time.
    pub enable_adaptive: bool,
    /// AllowedSpinOverhead in per cent; `None` takes the method's.
    pub overhead_percent: Option<u32>,
    /// SpintimePerCall: nanoseconds between two polls.
    pub poll_interval_ns: u32,
}

impl Default for SpinChoice {
    fn default() -> SpinChoice {
        SpinChoice {
            method: SpinMethod::default(),
            timer_us: 0,
            enable_adaptive: true,
            overhead_percent: None,
            poll_interval_ns: 1_000,
        }
    }
}

impl SpinChoice {
    /// The settings of the threads that follow from this choice.
    pub fn settings(&self) -> SpinSettings {
        let method = if self.enable_adaptive { self.method } else { SpinMethod::Static };
        let settings = method.settings(self.timer_us);
        let overhead_percent = self.overhead_percent.unwrap_or(settings.overhead_percent);
        SpinSettings { overhead_percent, poll_interval_ns: self.poll_interval_ns, ..settings }
    }
}

/// Settings of a thread's spinning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinSettings {
    /// Whether measurements determine the time (EnableAdaptiveSpinning).
    pub adaptive: bool,
    /// Maximum or, if not adaptive, fixed spin time (SchedulerSpinTimer), in microseconds.
    pub spin_us_max: u32,
    /// CPU time that spins may cost, in per cent of the CPU time of the wake-ups that they save
    /// (AllowedSpinOverhead).
    pub overhead_percent: u32,
    /// Nanoseconds between two polls (SpintimePerCall).
    pub poll_interval_ns: u32,
}

/// How the setting AllowedSpinOverhead applies to one thread. The thread's own allowance is the sum of three
/// terms: `base_percent` of the part of the setting up to 100 per cent, `extra_percent` of the part above 100
/// per cent, and `constant_percent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinScale {
    /// Share of the setting's part up to 100 per cent, in per cent.
    pub base_percent: u64,
    /// Share of the setting's part above 100 per cent, in per cent.
    pub extra_percent: u64,
    /// Allowance independent of the setting, in per cent.
    pub constant_percent: u64,
}

impl Default for SpinScale {
    fn default() -> SpinScale {
        SpinScale { base_percent: 100, extra_percent: 100, constant_percent: 130 }
    }
}

/// Measurements of a thread, from which the controller adjusts the spin time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinMeasurement {
    /// Time from a wake-up until the thread runs, in nanoseconds.
    pub wake_ns: u64,
    /// Thousandths of the time spent executing or sending.
    pub busy_per_mille: u32,
    /// Thousandths of the time since the last sample in which the thread was runnable but did not run; `None`
    /// without a new sample.
    pub waited_per_mille: Option<u32>,
}

/// Controls the spin time of one thread.
#[derive(Clone, Debug)]
pub struct SpinController {
    counts: [u32; SLOTS],
    sums_ns: [u64; SLOTS],
    spin_ns: u64,
    scale: SpinScale,
    /// Number of adjustments left in the current back-off.
    back_off: u32,
    /// Length of the last back-off, in adjustments.
    last_back_off: u32,
    /// Whether contention was seen since the back-off began.
    seen_contention: bool,
    /// Number of consecutive samples without contention.
    samples_alone: u32,
}

impl SpinController {
    /// A controller for a thread with this scale.
    pub fn new(scale: SpinScale) -> SpinController {
        SpinController {
            counts: [0; SLOTS],
            sums_ns: [0; SLOTS],
            spin_ns: 0,
            scale,
            back_off: 0,
            last_back_off: 0,
            seen_contention: false,
            samples_alone: 0,
        }
    }

    /// The current spin time.
    #[inline]
    pub fn spin(&self) -> Duration {
        Duration(self.spin_ns)
    }

    /// Counts an idle period of this length.
    #[inline]
    pub fn observe(&mut self, idle: Duration) {
        let slot = slot_of(idle.0);
        self.counts[slot] = self.counts[slot].saturating_add(1);
        self.sums_ns[slot] = self.sums_ns[slot].saturating_add(idle.0);
    }

    /// Chooses the spin time from the idle periods since the last call.
    pub fn adjust(&mut self, settings: &SpinSettings, measured: &SpinMeasurement) {
        let (counts, sums_ns) = (std::mem::take(&mut self.counts), std::mem::take(&mut self.sums_ns));
        if !settings.adaptive {
            self.spin_ns = u64::from(settings.spin_us_max) * 1_000;
            return;
        }
        let is_shared = self.is_backing_off(measured.waited_per_mille);
        let events: u32 = counts.iter().sum();
        if is_shared || events <= EVENTS_MIN || measured.wake_ns == 0 {
            self.spin_ns = 0;
            return;
        }
        let spin_ns_max = cap(u64::from(settings.spin_us_max) * 1_000, measured.busy_per_mille);
        let allowed = self.allowed(settings) + if self.spin_ns > 0 { HYSTERESIS_PERCENT } else { 0 };
        let chosen = best(&counts, &sums_ns, measured.wake_ns, spin_ns_max, allowed);
        self.spin_ns = match (chosen, self.spin_ns) {
            (0, _) => 0,
            (chosen, 0) => chosen,
            // By one slot at a time, so that a single unusual window does not change the time much.
            (chosen, now) if chosen > now => chosen.min(now + now / 2),
            (chosen, now) => chosen.max(now - now / 3),
        };
        self.spin_ns = self.spin_ns.min(spin_ns_max);
    }

    /// Whether the thread backs off because other threads use its CPU.
    fn is_backing_off(&mut self, waited_per_mille: Option<u32>) -> bool {
        self.back_off = self.back_off.saturating_sub(1);
        let Some(waited_per_mille) = waited_per_mille else { return self.back_off > 0 };
        let are_there = waited_per_mille > SHARED_PER_MILLE;
        if self.back_off > 0 {
            self.seen_contention |= are_there;
            if self.seen_contention && waited_per_mille < ALONE_PER_MILLE {
                (self.back_off, self.last_back_off) = (0, self.last_back_off / 2);
            }
        } else if are_there {
            self.last_back_off = (self.last_back_off * 2).clamp(BACK_OFF[0], BACK_OFF[1]);
            // If the thread waited for a CPU without spinning, its waits during the back-off will show
            // whether the neighbours are still there.
            (self.back_off, self.samples_alone, self.seen_contention) = (self.last_back_off, 0, self.spin_ns == 0);
        } else {
            self.samples_alone += 1;
            if self.samples_alone == BACK_OFF_FORGOTTEN {
                (self.last_back_off, self.samples_alone) = (self.last_back_off / 2, 0);
            }
        }
        self.back_off > 0
    }

    /// The overhead that this thread may have, in per cent.
    fn allowed(&self, settings: &SpinSettings) -> u64 {
        let overhead = u64::from(settings.overhead_percent);
        let (base, extra) = (overhead.min(100), overhead.saturating_sub(100));
        let scale = self.scale;
        (base * scale.base_percent + extra * scale.extra_percent) / 100 + scale.constant_percent
    }
}

/// The spin time with the lowest overhead, or a longer one whose additional gain is worth its additional
/// cost. 0 if no spin time has an allowed overhead.
fn best(counts: &[u32; SLOTS], sums_ns: &[u64; SLOTS], wake_ns: u64, spin_ns_max: u64, allowed: u64) -> u64 {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let (mut ended_within, mut waited_ns) = (0, 0);
    let mut chosen = (0, 0, 0);
    let mut end = FIRST_SLOT_NS;
    for slot in 0..SLOTS - 1 {
        ended_within += u64::from(counts[slot]);
        waited_ns += sums_ns[slot];
        if (SPIN_NS_MIN..=spin_ns_max).contains(&end) && ended_within > 0 {
            let cost = waited_ns + end * (all - ended_within);
            let gain = ended_within * wake_ns;
            let (chosen_ns, chosen_cost, chosen_gain) = chosen;
            let is_good = match chosen_ns {
                0 => cost * 100 <= gain * allowed.max(CHEAPER_PERCENT),
                _ if cost * chosen_gain < chosen_cost * gain => true,
                _ => gain > chosen_gain && cost.saturating_sub(chosen_cost) * 100 <= (gain - chosen_gain) * allowed,
            };
            if is_good {
                chosen = (end, cost, gain);
            }
        }
        end += end / 2;
    }
    chosen.0
}

/// The maximum spin of a thread with this load.
fn cap(spin_ns_max: u64, busy_per_mille: u32) -> u64 {
    let percent = CAPS.into_iter().find(|(above, _)| busy_per_mille > *above).map_or(100, |(_, percent)| percent);
    spin_ns_max * percent / 100
}

#[inline]
fn slot_of(idle_ns: u64) -> usize {
    let mut end = FIRST_SLOT_NS;
    for slot in 0..SLOTS - 1 {
        if idle_ns <= end {
            return slot;
        }
        end += end / 2;
    }
    SLOTS - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKE_NS: u64 = 25_000;
    const LATENCY: SpinSettings =
        SpinSettings { adaptive: true, spin_us_max: 200, overhead_percent: 1_000, poll_interval_ns: 1_000 };
    const COST: SpinSettings = SpinSettings { overhead_percent: 200, spin_us_max: 100, ..LATENCY };
    const QUIET: SpinMeasurement = SpinMeasurement { wake_ns: WAKE_NS, busy_per_mille: 100, waited_per_mille: Some(0) };

    fn controller() -> SpinController {
        SpinController::new(SpinScale { base_percent: 150, extra_percent: 80, constant_percent: 150 })
    }

    fn run(
        controller: &mut SpinController,
        settings: &SpinSettings,
        measured: &SpinMeasurement,
        idle_us: &[u64],
    ) -> u64 {
        for _ in 0..10 {
            idle_us.iter().for_each(|idle| controller.observe(Duration::from_micros(*idle)));
            controller.adjust(settings, measured);
        }
        controller.spin().as_micros()
    }

    /// Adjusts with one sample of the waiting share, after a window in which work arrived soon.
    fn sample(controller: &mut SpinController, waited_per_mille: u32) {
        (0..10).for_each(|_| controller.observe(Duration::from_micros(20)));
        controller.adjust(&COST, &SpinMeasurement { waited_per_mille: Some(waited_per_mille), ..QUIET });
    }

    #[test]
    fn a_thread_spins_for_work_that_comes_soon() {
        let spin_us = run(&mut controller(), &COST, &QUIET, &[10; 100]);
        assert!((10..40).contains(&spin_us), "{spin_us}");
    }

    #[test]
    fn a_thread_sleeps_when_work_comes_late() {
        assert_eq!(run(&mut controller(), &COST, &QUIET, &[3_000; 100]), 0);
        assert_eq!(run(&mut controller(), &SpinMethod::DatabaseMachine.settings(0), &QUIET, &[5_000; 100]), 0);
        // An idle thread has only an occasional timer.
        assert_eq!(run(&mut controller(), &LATENCY, &QUIET, &[1]), 0);
    }

    #[test]
    fn a_higher_allowed_overhead_means_longer_spins() {
        // Every fourth time work arrives after 60 us, otherwise never.
        let mixed: Vec<u64> = (0..100).map(|n| if n % 4 == 0 { 60 } else { 10_000 }).collect();
        assert_eq!(run(&mut controller(), &COST, &QUIET, &mixed), 0);
        let spin_us = run(&mut controller(), &LATENCY, &QUIET, &mixed);
        assert!((60..100).contains(&spin_us), "{spin_us}");
    }

    #[test]
    fn a_busy_thread_spins_less() {
        let idle = [90; 100];
        let free = run(&mut controller(), &LATENCY, &QUIET, &idle);
        let busy = run(&mut controller(), &LATENCY, &SpinMeasurement { busy_per_mille: 950, ..QUIET }, &idle);
        assert!(free >= 90 && busy < 60, "{free} {busy}");
    }

    #[test]
    fn a_thread_that_shares_its_cpu_spins_a_small_part_of_the_time() {
        // Contention shows only while the thread spins.
        let mut controller = controller();
        let (mut spun, all) = (0, 10_000);
        for _ in 0..all {
            (0..50).for_each(|_| controller.observe(Duration::from_micros(90)));
            let waited_per_mille = Some(if controller.spin().0 > 0 { 500 } else { 20 });
            controller.adjust(&LATENCY, &SpinMeasurement { waited_per_mille, ..QUIET });
            spun += u32::from(controller.spin().0 > 0);
        }
        assert!(spun < all / 20, "{spun}");
        // Once the neighbours are gone, the thread spins again. After a quiet time new neighbours stop it for
        // a second only.
        assert!((0..7_000).any(|_| run(&mut controller, &LATENCY, &QUIET, &[90; 10]) > 0));
        for _ in 0..1_000 {
            run(&mut controller, &LATENCY, &QUIET, &[90; 10]);
        }
        controller.adjust(&LATENCY, &SpinMeasurement { waited_per_mille: Some(500), ..QUIET });
        assert_eq!(controller.back_off, BACK_OFF[0]);
    }

    #[test]
    fn a_thread_that_sees_neighbours_leave_spins_immediately() {
        let mut controller = controller();
        // Clients share the CPUs until the back-off reaches its maximum.
        for _ in 0..10_000 {
            run(&mut controller, &COST, &SpinMeasurement { waited_per_mille: Some(600), ..QUIET }, &[20; 10]);
        }
        assert_eq!(controller.spin().0, 0);
        // Then one client is left.
        sample(&mut controller, 15);
        assert!(controller.spin().0 > 0);
        // Neighbours that come and go leave the length of the next back-off unchanged. Once they stay away,
        // the length soon shrinks.
        for _ in 0..20 {
            sample(&mut controller, 600);
            assert_eq!((controller.back_off, controller.spin().0), (BACK_OFF[1], 0));
            sample(&mut controller, 600);
            sample(&mut controller, 15);
            assert!(controller.spin().0 > 0);
        }
        (0..BACK_OFF_FORGOTTEN).for_each(|_| sample(&mut controller, 15));
        sample(&mut controller, 600);
        assert_eq!(controller.back_off, BACK_OFF[1] / 2);
    }

    #[test]
    fn a_back_off_ends_early_only_if_neighbours_were_seen_during_it() {
        let mut controller = controller();
        sample(&mut controller, 15);
        assert!(controller.spin().0 > 0);
        sample(&mut controller, 600);
        assert_eq!((controller.back_off, controller.spin().0), (BACK_OFF[0], 0));
        // A sample without contention proves nothing: the neighbours may compete with this thread only while
        // it spins.
        sample(&mut controller, 15);
        assert_eq!((controller.back_off, controller.spin().0), (BACK_OFF[0] - 1, 0));
        // These neighbours make the thread wait during the back-off, and then leave.
        sample(&mut controller, 600);
        assert_eq!((controller.back_off, controller.spin().0), (BACK_OFF[0] - 2, 0));
        sample(&mut controller, 15);
        assert_eq!(controller.back_off, 0);
        assert!(controller.spin().0 > 0);
    }

    #[test]
    fn a_static_spin_time_is_the_configured_one() {
        assert_eq!(run(&mut controller(), &SpinMethod::Static.settings(40), &QUIET, &[5_000]), 40);
        assert_eq!(run(&mut controller(), &SpinMethod::Static.settings(0), &QUIET, &[5; 100]), 0);
    }

    #[test]
    fn a_longer_spin_is_chosen_if_its_additional_gain_is_worth_the_cost() {
        // Half of the work arrives after 5 us, the other half after 50.
        let mixed: Vec<u64> = (0..100).map(|n| if n % 2 == 0 { 5 } else { 50 }).collect();
        let spin_us = run(&mut controller(), &LATENCY, &QUIET, &mixed);
        assert!(spin_us >= 50, "{spin_us}");
    }

    #[test]
    fn the_time_moves_one_slot_at_a_time_once_a_thread_spins() {
        let mut controller = controller();
        (0..100).for_each(|_| controller.observe(Duration::from_micros(5)));
        controller.adjust(&LATENCY, &QUIET);
        let first = controller.spin().0;
        (0..100).for_each(|_| controller.observe(Duration::from_micros(100)));
        controller.adjust(&LATENCY, &QUIET);
        assert!(controller.spin().0 <= first + first / 2, "{first} {}", controller.spin().0);
    }

    #[test]
    fn explicit_settings_override_the_method() {
        let choice = SpinChoice { method: SpinMethod::LatencyOptimised, timer_us: 70, ..SpinChoice::default() };
        assert_eq!(choice.settings(), LATENCY);
        let cheaper = SpinChoice { overhead_percent: Some(130), poll_interval_ns: 300, ..choice };
        assert_eq!(cheaper.settings(), SpinSettings { overhead_percent: 130, poll_interval_ns: 300, ..LATENCY });
        let fixed = SpinChoice { enable_adaptive: false, ..choice };
        assert_eq!((fixed.settings().adaptive, fixed.settings().spin_us_max), (false, 70));
    }

    #[test]
    fn names_equal_those_of_the_settings() {
        for method in SpinMethod::ALL {
            assert_eq!(SpinMethod::named(&method.name().to_ascii_lowercase()), Some(method));
        }
        assert_eq!(SpinMethod::named("Spinning"), None);
    }
}
