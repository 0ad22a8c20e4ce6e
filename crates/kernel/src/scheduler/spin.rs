//! How long a thread looks for work before it sleeps: a controller of measurements and integers, without a clock.
//!
//! Each time a thread has nothing to do, the time until something came is counted in a histogram. A spin of length S costs
//! that time where work came within S, and S where it did not; it gains a wake-up wherever work came within S. From the counts of the
//! last moment the cost of every length is known, whatever the thread did: idle moments that end by a timer count as such in which
//! nothing came.
//!
//! Source: RonDB's adaptive spinning (methods, allowed overheads, factors by kind of thread, caps by use of the CPU); its slots
//! are spaced around the present spin time, these are fixed.

use crate::context::Duration;

/// Slots of the histogram; the last holds everything longer.
const SLOTS: usize = 20;

/// The end of the first slot; each is half as long again as the one before.
const FIRST_SLOT_NS: u64 = 500;

/// The shortest spin that is worth a try.
const SPIN_NS_MIN: u64 = 2_000;

/// Idle moments in a window up to which a thread does not spin.
const EVENTS_MIN: u32 = 3;

/// Points of overhead by which a spinning thread may be worse before it stops.
const HYSTERESIS_PERCENT: u64 = 20;

/// An overhead below which spinning is cheaper than sleeping, in per cent.
const CHEAPER_PERCENT: u64 = 100;

/// Use of the CPU in thousandths, and the part of the longest spin that is left above it, in per cent.
const CAPS: [(u32, u64); 6] = [(900, 25), (800, 33), (700, 45), (600, 60), (500, 75), (400, 90)];

/// The part of the time for which a thread waits for a CPU, in thousandths, above which spinning stops for a time.
const SHARED_PER_MILLE: u32 = 250;

/// The part below which those who were seen beside the resting thread are gone.
const ALONE_PER_MILLE: u32 = 100;

/// How long it stops, in adjustments: at first, and at most. Others who take their CPU from the spinning alone are not seen while
/// it rests, so that they are still there shows only by trying again; each time that it does, the time doubles. Those who are seen to
/// leave end the rest and halve the time, so that who comes and goes neither lengthens the rests nor undoes what others made of them.
const REST: [u32; 2] = [100, 6_000];

/// Looks at which nobody was there after which the time halves.
const REST_FORGOTTEN: u32 = 100;

/// How threads spin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinMethod {
    /// For a fixed time, 0 unless set.
    Static,
    /// As long as it saves about what it costs.
    #[default]
    CostBased,
    /// Longer, for latency.
    LatencyOptimised,
    /// Longest: each thread has a CPU to itself.
    DatabaseMachine,
}

impl SpinMethod {
    /// All of them.
    pub const ALL: [SpinMethod; 4] =
        [SpinMethod::Static, SpinMethod::CostBased, SpinMethod::LatencyOptimised, SpinMethod::DatabaseMachine];

    /// The name in settings, which is NDB's.
    pub const fn name(self) -> &'static str {
        match self {
            SpinMethod::Static => "StaticSpinning",
            SpinMethod::CostBased => "CostBasedSpinning",
            SpinMethod::LatencyOptimised => "LatencyOptimisedSpinning",
            SpinMethod::DatabaseMachine => "DatabaseMachineSpinning",
        }
    }

    /// The method of that name, in any case of letters.
    pub fn named(name: &str) -> Option<SpinMethod> {
        SpinMethod::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name))
    }

    /// What the method means, with the fixed spin time that is set for the thread or the node.
    pub fn settings(self, fixed_us: u32) -> SpinSettings {
        let (adaptive, spin_us_max, overhead_percent) = match self {
            SpinMethod::Static => (false, fixed_us, 0),
            SpinMethod::CostBased => (true, 100, 200),
            SpinMethod::LatencyOptimised => (true, 200, 1_000),
            SpinMethod::DatabaseMachine => (true, 500, 10_000),
        };
        SpinSettings { adaptive, spin_us_max, overhead_percent, call_ns: 1_000 }
    }
}

/// What users set of spinning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinChoice {
    /// SpinMethod.
    pub method: SpinMethod,
    /// SchedulerSpinTimer: the fixed spin time of StaticSpinning, in microseconds.
    pub timer_us: u32,
    /// EnableAdaptiveSpinning: off makes every method spin for the fixed time.
    pub enable_adaptive: bool,
    /// AllowedSpinOverhead in per cent; none takes that of the method.
    pub overhead_percent: Option<u32>,
    /// SpintimePerCall: nanoseconds between two looks for work.
    pub call_ns: u32,
}

impl Default for SpinChoice {
    fn default() -> SpinChoice {
        SpinChoice {
            method: SpinMethod::default(),
            timer_us: 0,
            enable_adaptive: true,
            overhead_percent: None,
            call_ns: 1_000,
        }
    }
}

impl SpinChoice {
    /// What it means for the threads.
    pub fn settings(&self) -> SpinSettings {
        let method = if self.enable_adaptive { self.method } else { SpinMethod::Static };
        let settings = method.settings(self.timer_us);
        let overhead_percent = self.overhead_percent.unwrap_or(settings.overhead_percent);
        SpinSettings { overhead_percent, call_ns: self.call_ns, ..settings }
    }
}

/// What bounds the spinning of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinSettings {
    /// Whether the time is chosen by measurements (EnableAdaptiveSpinning).
    pub adaptive: bool,
    /// The longest spin, or the fixed one (SchedulerSpinTimer), in microseconds.
    pub spin_us_max: u32,
    /// CPU time that may be burnt for latency gained, in per cent (AllowedSpinOverhead).
    pub overhead_percent: u32,
    /// Nanoseconds between two looks for work (SpintimePerCall).
    pub call_ns: u32,
}

/// How the allowed overhead (AllowedSpinOverhead) applies to one thread. The thread may have `base_percent` of the
/// part up to 100 per cent, `extra_percent` of the part above, and `constant_percent` in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinScale {
    /// Share of the allowed overhead up to 100 per cent, in per cent.
    pub base_percent: u64,
    /// Share of the allowed overhead above 100 per cent, in per cent.
    pub extra_percent: u64,
    /// Overhead allowed independently of the setting, in per cent.
    pub constant_percent: u64,
}

impl Default for SpinScale {
    fn default() -> SpinScale {
        SpinScale { base_percent: 100, extra_percent: 100, constant_percent: 130 }
    }
}

/// What is known of a thread when its spin time is chosen anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinMeasurement {
    /// What a sleep costs until the thread runs again, in nanoseconds.
    pub wake_ns: u64,
    /// Thousandths of the time that it executed or sent.
    pub busy_per_mille: u32,
    /// Thousandths of the time since this was last told for which the thread wanted to run and the operating system ran others.
    pub waited_per_mille: Option<u32>,
}

/// The controller of one thread.
#[derive(Clone, Debug)]
pub struct SpinController {
    counts: [u32; SLOTS],
    sums_ns: [u64; SLOTS],
    spin_ns: u64,
    scale: SpinScale,
    /// Adjustments for which there is no spinning, for others use the CPU, and for how many that was the last time.
    rest: u32,
    last_rest: u32,
    /// Whether others were seen since the rest began.
    seen: bool,
    /// Looks since others were seen.
    alone: u32,
}

impl SpinController {
    /// The controller of a thread that may spin as `scale` says.
    pub fn new(scale: SpinScale) -> SpinController {
        SpinController {
            counts: [0; SLOTS],
            sums_ns: [0; SLOTS],
            spin_ns: 0,
            scale,
            rest: 0,
            last_rest: 0,
            seen: false,
            alone: 0,
        }
    }

    /// How long the thread spins.
    #[inline]
    pub fn spin(&self) -> Duration {
        Duration(self.spin_ns)
    }

    /// Counts an idle moment: how long it was until work came.
    #[inline]
    pub fn observe(&mut self, idle: Duration) {
        let slot = slot_of(idle.0);
        self.counts[slot] = self.counts[slot].saturating_add(1);
        self.sums_ns[slot] = self.sums_ns[slot].saturating_add(idle.0);
    }

    /// Chooses the spin time anew, from the idle moments since the last time.
    pub fn adjust(&mut self, settings: &SpinSettings, measured: &SpinMeasurement) {
        let (counts, sums_ns) = (std::mem::take(&mut self.counts), std::mem::take(&mut self.sums_ns));
        if !settings.adaptive {
            self.spin_ns = u64::from(settings.spin_us_max) * 1_000;
            return;
        }
        let is_shared = self.rests(measured.waited_per_mille);
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
            // One slot at a time, so that one odd moment does not throw it about.
            (chosen, now) if chosen > now => chosen.min(now + now / 2),
            (chosen, now) => chosen.max(now - now / 3),
        };
        self.spin_ns = self.spin_ns.min(spin_ns_max);
    }

    /// Whether others use the CPU, or did not long ago.
    fn rests(&mut self, waited_per_mille: Option<u32>) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let Some(waited_per_mille) = waited_per_mille else { return self.rest > 0 };
        let are_there = waited_per_mille > SHARED_PER_MILLE;
        if self.rest > 0 {
            self.seen |= are_there;
            if self.seen && waited_per_mille < ALONE_PER_MILLE {
                (self.rest, self.last_rest) = (0, self.last_rest / 2);
            }
        } else if are_there {
            self.last_rest = (self.last_rest * 2).clamp(REST[0], REST[1]);
            // Who makes a thread wait that does not spin is seen while it rests, too.
            (self.rest, self.alone, self.seen) = (self.last_rest, 0, self.spin_ns == 0);
        } else {
            self.alone += 1;
            if self.alone == REST_FORGOTTEN {
                (self.last_rest, self.alone) = (self.last_rest / 2, 0);
            }
        }
        self.rest > 0
    }

    /// The overhead that this kind of thread may have, in per cent.
    fn allowed(&self, settings: &SpinSettings) -> u64 {
        let overhead = u64::from(settings.overhead_percent);
        let (base, extra) = (overhead.min(100), overhead.saturating_sub(100));
        let scale = self.scale;
        (base * scale.base_percent + extra * scale.extra_percent) / 100 + scale.constant_percent
    }
}

/// The spin time with the least overhead if that is allowed, or a longer one whose gain over it is worth its cost; else 0.
fn best(counts: &[u32; SLOTS], sums_ns: &[u64; SLOTS], wake_ns: u64, spin_ns_max: u64, allowed: u64) -> u64 {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let (mut caught, mut waited_ns) = (0, 0);
    let mut chosen = (0, 0, 0);
    let mut end = FIRST_SLOT_NS;
    for slot in 0..SLOTS - 1 {
        caught += u64::from(counts[slot]);
        waited_ns += sums_ns[slot];
        if (SPIN_NS_MIN..=spin_ns_max).contains(&end) && caught > 0 {
            let cost = waited_ns + end * (all - caught);
            let gain = caught * wake_ns;
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

/// The longest spin of a thread that is so busy.
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
        SpinSettings { adaptive: true, spin_us_max: 200, overhead_percent: 1_000, call_ns: 1_000 };
    const COST: SpinSettings = SpinSettings { overhead_percent: 200, spin_us_max: 100, ..LATENCY };
    const QUIET: SpinMeasurement = SpinMeasurement { wake_ns: WAKE_NS, busy_per_mille: 100, waited_per_mille: Some(0) };

    fn recv() -> SpinController {
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

    /// The thread looks once how long it waited, after work that came soon.
    fn look(controller: &mut SpinController, waited_per_mille: u32) {
        (0..10).for_each(|_| controller.observe(Duration::from_micros(20)));
        controller.adjust(&COST, &SpinMeasurement { waited_per_mille: Some(waited_per_mille), ..QUIET });
    }

    #[test]
    fn work_that_comes_soon_is_waited_for_awake() {
        let spin_us = run(&mut recv(), &COST, &QUIET, &[10; 100]);
        assert!((10..40).contains(&spin_us), "{spin_us}");
    }

    #[test]
    fn work_that_comes_late_is_waited_for_asleep() {
        assert_eq!(run(&mut recv(), &COST, &QUIET, &[3_000; 100]), 0);
        assert_eq!(run(&mut recv(), &SpinMethod::DatabaseMachine.settings(0), &QUIET, &[5_000; 100]), 0);
        // An idle thread has a timer now and then and nothing else.
        assert_eq!(run(&mut recv(), &LATENCY, &QUIET, &[1]), 0);
    }

    #[test]
    fn more_is_burnt_when_more_is_allowed() {
        // One in four comes after 60 us, the others never.
        let mixed: Vec<u64> = (0..100).map(|n| if n % 4 == 0 { 60 } else { 10_000 }).collect();
        assert_eq!(run(&mut recv(), &COST, &QUIET, &mixed), 0);
        let spin_us = run(&mut recv(), &LATENCY, &QUIET, &mixed);
        assert!((60..100).contains(&spin_us), "{spin_us}");
    }

    #[test]
    fn a_busy_thread_spins_less() {
        let idle = [90; 100];
        let free = run(&mut recv(), &LATENCY, &QUIET, &idle);
        let busy = run(&mut recv(), &LATENCY, &SpinMeasurement { busy_per_mille: 950, ..QUIET }, &idle);
        assert!(free >= 90 && busy < 60, "{free} {busy}");
    }

    #[test]
    fn a_thread_that_shares_its_cpu_spins_a_small_part_of_the_time() {
        // What is stolen is stolen from the spinning: while it does not spin, nothing shows that others are there.
        let mut controller = recv();
        let (mut spun, all) = (0, 10_000);
        for _ in 0..all {
            (0..50).for_each(|_| controller.observe(Duration::from_micros(90)));
            let waited_per_mille = Some(if controller.spin().0 > 0 { 500 } else { 20 });
            controller.adjust(&LATENCY, &SpinMeasurement { waited_per_mille, ..QUIET });
            spun += u32::from(controller.spin().0 > 0);
        }
        assert!(spun < all / 20, "{spun}");
        // When they are gone, it spins again, and after a quiet time the next ones stop it but for a second.
        assert!((0..7_000).any(|_| run(&mut controller, &LATENCY, &QUIET, &[90; 10]) > 0));
        for _ in 0..1_000 {
            run(&mut controller, &LATENCY, &QUIET, &[90; 10]);
        }
        controller.adjust(&LATENCY, &SpinMeasurement { waited_per_mille: Some(500), ..QUIET });
        assert_eq!(controller.rest, REST[0]);
    }

    #[test]
    fn a_thread_that_sees_others_leave_spins_at_once() {
        let mut controller = recv();
        // Clients share the CPUs for so long that a rest is as long as it gets.
        for _ in 0..10_000 {
            run(&mut controller, &COST, &SpinMeasurement { waited_per_mille: Some(600), ..QUIET }, &[20; 10]);
        }
        assert_eq!(controller.spin().0, 0);
        // Then one is left.
        look(&mut controller, 15);
        assert!(controller.spin().0 > 0);
        // Others who come and go leave the next rest as long as this was, and are soon forgotten when nobody comes.
        for _ in 0..20 {
            look(&mut controller, 600);
            assert_eq!((controller.rest, controller.spin().0), (REST[1], 0));
            look(&mut controller, 600);
            look(&mut controller, 15);
            assert!(controller.spin().0 > 0);
        }
        (0..REST_FORGOTTEN).for_each(|_| look(&mut controller, 15));
        look(&mut controller, 600);
        assert_eq!(controller.rest, REST[1] / 2);
    }

    #[test]
    fn a_thread_that_stopped_spinning_for_others_sees_them_leave_if_they_are_seen_meanwhile() {
        let mut controller = recv();
        look(&mut controller, 15);
        assert!(controller.spin().0 > 0);
        look(&mut controller, 600);
        assert_eq!((controller.rest, controller.spin().0), (REST[0], 0));
        // They may have been there for the spinning alone: that they do not show tells nothing.
        look(&mut controller, 15);
        assert_eq!((controller.rest, controller.spin().0), (REST[0] - 1, 0));
        // But these make it wait as it rests, and leave.
        look(&mut controller, 600);
        assert_eq!((controller.rest, controller.spin().0), (REST[0] - 2, 0));
        look(&mut controller, 15);
        assert_eq!(controller.rest, 0);
        assert!(controller.spin().0 > 0);
    }

    #[test]
    fn a_static_spin_is_what_was_set() {
        assert_eq!(run(&mut recv(), &SpinMethod::Static.settings(40), &QUIET, &[5_000]), 40);
        assert_eq!(run(&mut recv(), &SpinMethod::Static.settings(0), &QUIET, &[5; 100]), 0);
    }

    #[test]
    fn a_longer_spin_is_taken_if_what_it_adds_is_worth_it() {
        // Half of the work comes after 5 us, half after 50.
        let mixed: Vec<u64> = (0..100).map(|n| if n % 2 == 0 { 5 } else { 50 }).collect();
        let spin_us = run(&mut recv(), &LATENCY, &QUIET, &mixed);
        assert!(spin_us >= 50, "{spin_us}");
    }

    #[test]
    fn the_time_moves_one_slot_at_a_time_once_a_thread_spins() {
        let mut controller = recv();
        (0..100).for_each(|_| controller.observe(Duration::from_micros(5)));
        controller.adjust(&LATENCY, &QUIET);
        let first = controller.spin().0;
        (0..100).for_each(|_| controller.observe(Duration::from_micros(100)));
        controller.adjust(&LATENCY, &QUIET);
        assert!(controller.spin().0 <= first + first / 2, "{first} {}", controller.spin().0);
    }

    #[test]
    fn what_is_set_wins_over_the_method() {
        let choice = SpinChoice { method: SpinMethod::LatencyOptimised, timer_us: 70, ..SpinChoice::default() };
        assert_eq!(choice.settings(), LATENCY);
        let cheaper = SpinChoice { overhead_percent: Some(130), call_ns: 300, ..choice };
        assert_eq!(cheaper.settings(), SpinSettings { overhead_percent: 130, call_ns: 300, ..LATENCY });
        let fixed = SpinChoice { enable_adaptive: false, ..choice };
        assert_eq!((fixed.settings().adaptive, fixed.settings().spin_us_max), (false, 70));
    }

    #[test]
    fn names_are_those_of_the_settings() {
        for method in SpinMethod::ALL {
            assert_eq!(SpinMethod::named(&method.name().to_ascii_lowercase()), Some(method));
        }
        assert_eq!(SpinMethod::named("Spinning"), None);
    }
}
