//! Chooses how many transactions a thread group admits at a time, from the throughput and the latency that it
//! measured at other numbers. The controller does no I/O and reads no clock.
//!
//! The numbers are those of a ladder with steps of about the square root of 2. The controller remembers what
//! it measured on each rung, tries the neighbours of the current one, and moves to the best. If two rungs
//! have about the same throughput, it prefers the one with the lower latency. It tries its neighbours less
//! often as long as that changes nothing. It forgets all other rungs if the throughput of the current one
//! changes much, because that is another workload.

use junctor_kernel::Duration;

/// The smallest number that the controller chooses, unless the maximum is smaller.
const ADMITTED_MIN: usize = 4;
/// The number with which a group starts.
const ADMITTED_START: usize = 64;
/// Rungs of the ladder from 4 to 4,096.
const RUNGS: usize = 21;
/// Samples of a rung until it is compared with others.
const SAMPLES_MIN: u32 = 3;
/// Weight of a new sample in a rung's memory.
const SAMPLE_WEIGHT: f64 = 0.3;
/// Throughputs whose ratio is below this are about the same.
const NOTABLE_RATIO: f64 = 1.03;
/// A throughput that is this factor above or below the remembered one is that of another workload.
const OTHER_WORKLOAD_RATIO: f64 = 1.6;
/// Samples until the neighbours are tried again: at first, and at most.
const PATIENCE_MIN: u32 = 4;
const PATIENCE_MAX: u32 = 64;

/// What a group measured in an interval in which transactions waited to be admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Transactions finished per second.
    pub throughput: f64,
    /// 99th percentile of the time from the admission of a transaction to its end.
    pub latency_p99: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rung {
    samples: u32,
    throughput: f64,
    latency_p99_ns: f64,
}

impl Rung {
    fn add(&mut self, sample: &Sample) {
        let weight = if self.samples == 0 { 1.0 } else { SAMPLE_WEIGHT };
        self.throughput += weight * (sample.throughput - self.throughput);
        self.latency_p99_ns += weight * (sample.latency_p99.0 as f64 - self.latency_p99_ns);
        self.samples = self.samples.saturating_add(1);
    }

    fn is_known(&self) -> bool {
        self.samples >= SAMPLES_MIN
    }

    /// Whether this rung is better than `other`; both are known.
    fn beats(&self, other: &Rung) -> bool {
        if self.throughput > other.throughput * NOTABLE_RATIO {
            return true;
        }
        other.throughput <= self.throughput * NOTABLE_RATIO && self.latency_p99_ns < other.latency_p99_ns
    }
}

/// The controller of one thread group.
#[derive(Debug)]
pub struct ConcurrencyController {
    rungs: [Rung; RUNGS],
    /// The rung in use.
    current: usize,
    /// The best rung known, to which the controller returns from a neighbour.
    home: usize,
    highest: usize,
    maximum: usize,
    /// Samples until a neighbour is tried.
    countdown: u32,
    patience: u32,
    /// Whether the neighbour above is tried next.
    tries_above: bool,
}

impl ConcurrencyController {
    /// Creates a controller that chooses at most `maximum`, at least 1.
    pub fn new(maximum: usize) -> ConcurrencyController {
        let maximum = maximum.max(1);
        let highest = (0..RUNGS).rev().find(|rung| number(*rung) <= maximum).unwrap_or(0);
        let start = (0..=highest).rev().find(|rung| number(*rung) <= ADMITTED_START).unwrap_or(0);
        ConcurrencyController {
            rungs: [Rung::default(); RUNGS],
            current: start,
            home: start,
            highest,
            maximum,
            countdown: 0,
            patience: PATIENCE_MIN,
            tries_above: false,
        }
    }

    /// The number of transactions to admit.
    #[inline]
    pub fn admitted_max(&self) -> usize {
        number(self.current).min(self.maximum)
    }

    /// Forgets all that was measured, and keeps the number.
    pub fn forget(&mut self) {
        self.rungs = [Rung::default(); RUNGS];
        self.home = self.current;
        self.patience = PATIENCE_MIN;
        self.countdown = 0;
    }

    /// Learns from a sample that was measured with the current number.
    pub fn learn(&mut self, sample: &Sample) {
        let rung = &mut self.rungs[self.current];
        let ratio = sample.throughput / rung.throughput.max(f64::MIN_POSITIVE);
        if rung.is_known() && !(1.0 / OTHER_WORKLOAD_RATIO..OTHER_WORKLOAD_RATIO).contains(&ratio) {
            self.forget();
        }
        self.rungs[self.current].add(sample);
        if !self.rungs[self.current].is_known() {
            return;
        }
        if self.current != self.home {
            self.judge_neighbour();
            return;
        }
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown == 0 {
            self.try_neighbour();
        }
    }

    /// Moves to the neighbour that was tried, or returns home.
    fn judge_neighbour(&mut self) {
        let is_better = self.rungs[self.current].beats(&self.rungs[self.home]);
        if is_better {
            // The next rung in the same direction is the most promising one.
            self.tries_above = self.current > self.home;
            self.home = self.current;
            self.patience = PATIENCE_MIN;
            self.countdown = 1;
        } else {
            self.tries_above = self.current < self.home;
            self.current = self.home;
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.countdown = self.patience;
        }
    }

    fn try_neighbour(&mut self) {
        let (above, below) = ((self.home < self.highest).then_some(self.home + 1), self.home.checked_sub(1));
        let next = if self.tries_above { above.or(below) } else { below.or(above) };
        if let Some(next) = next {
            // Old samples of the neighbour count less than those of now.
            self.rungs[next].samples = 0;
            self.current = next;
        } else {
            self.countdown = PATIENCE_MAX;
        }
    }
}

/// The number of a rung: 4, 6, 8, 11, 16, 23, 32 and so on.
fn number(rung: usize) -> usize {
    let power = ADMITTED_MIN << (rung / 2);
    if rung.is_multiple_of(2) { power } else { power * 181 / 128 }
}
