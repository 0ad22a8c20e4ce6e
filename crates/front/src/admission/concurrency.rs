//! Chooses how many transactions a thread group admits at a time, from the throughput and the latency that it
//! measures. The controller does no I/O and reads no clock.
//!
//! The numbers are those of a ladder with steps of about the square root of 2. The controller climbs: in a
//! trial it compares the number in use, its home, with a neighbour. A trial measures home, the neighbour
//! twice, and home again, so that a load which grows or shrinks meanwhile favours neither. A neighbour wins
//! if its throughput is higher by more than its latency costs. The controller remembers lost trials, and
//! tries neighbours less often as long as they lose. It forgets them if the throughput of home changes much,
//! because that is another workload.

use std::ops::Range;

use junctor_kernel::Duration;

/// The smallest number that the controller chooses, unless the maximum is smaller.
const ADMITTED_MIN: usize = 4;
/// The number with which a group starts.
const ADMITTED_START: usize = 16;
/// Rungs of the ladder from 4 to 32,768.
const RUNGS: usize = 27;
/// Exponent of the latency in the value of a number. A step of the ladder that adds nothing but latency loses
/// 5 per cent, and one that adds as much throughput wins 41.
const LATENCY_WEIGHT: f64 = 0.15;
/// Least difference of the logarithms of two values that decides a trial.
const NOTABLE_DIFFERENCE: f64 = 0.01;
/// A throughput that is this factor above or below the remembered one is that of another workload.
const OTHER_WORKLOAD_RATIO: f64 = 1.6;
/// Weight of a new sample in the remembered throughput.
const SAMPLE_WEIGHT: f64 = 0.3;
/// Samples until a neighbour is tried again: at first, and at most.
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

impl Sample {
    /// The logarithm of the value of what was measured. A ratio of values is a difference here.
    fn value(&self) -> f64 {
        let latency_ns = self.latency_p99.0.max(1) as f64;
        self.throughput.max(f64::MIN_POSITIVE).ln() - LATENCY_WEIGHT * latency_ns.ln()
    }
}

/// A comparison of a neighbour with home.
#[derive(Clone, Copy, Debug)]
struct Trial {
    neighbour: usize,
    /// Number of samples so far. A sample after a change of the number has transactions of both numbers and
    /// counts for neither.
    samples: usize,
    /// Sum of the neighbour's values less that of home's.
    difference: f64,
}

/// The role of a sample in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Home,
    Change,
    Neighbour,
}

/// The first sample of home is the one with which a trial begins.
const STEPS: [Step; 6] = [Step::Home, Step::Change, Step::Neighbour, Step::Neighbour, Step::Change, Step::Home];
/// The samples that are measured with the neighbour's number.
const AWAY: Range<usize> = 1..4;
/// Samples of home, and of the neighbour, that count.
const PAIRS: f64 = 2.0;

/// The controller of one thread group.
#[derive(Debug)]
pub struct ConcurrencyController {
    /// The best rung known.
    home: usize,
    trial: Option<Trial>,
    highest: usize,
    maximum: usize,
    /// Remembered throughput of home; 0 if nothing is remembered.
    throughput: f64,
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
        ConcurrencyController {
            home: (0..=highest).rev().find(|rung| number(*rung) <= ADMITTED_START).unwrap_or(0),
            trial: None,
            highest,
            maximum,
            throughput: 0.0,
            countdown: PATIENCE_MIN,
            patience: PATIENCE_MIN,
            tries_above: false,
        }
    }

    /// The number of transactions to admit.
    #[inline]
    pub fn admitted_max(&self) -> usize {
        let away = self.trial.filter(|trial| AWAY.contains(&trial.samples));
        let rung = away.map_or(self.home, |trial| trial.neighbour);
        number(rung).min(self.maximum)
    }

    /// Forgets all that was measured, and keeps the number.
    pub fn forget(&mut self) {
        self.trial = None;
        self.throughput = 0.0;
        self.patience = PATIENCE_MIN;
        self.countdown = PATIENCE_MIN;
    }

    /// Learns from a sample that was measured with the current number.
    pub fn learn(&mut self, sample: &Sample) {
        let Some(mut trial) = self.trial else {
            self.learn_home(sample);
            return;
        };
        match STEPS[trial.samples] {
            Step::Home => trial.difference -= sample.value(),
            Step::Neighbour => trial.difference += sample.value(),
            Step::Change => {}
        }
        trial.samples += 1;
        if trial.samples < STEPS.len() {
            self.trial = Some(trial);
        } else {
            self.judge(&trial);
        }
    }

    fn learn_home(&mut self, sample: &Sample) {
        let ratio = sample.throughput / self.throughput.max(f64::MIN_POSITIVE);
        if self.throughput == 0.0 {
            self.throughput = sample.throughput;
        } else if (1.0 / OTHER_WORKLOAD_RATIO..OTHER_WORKLOAD_RATIO).contains(&ratio) {
            self.throughput += SAMPLE_WEIGHT * (sample.throughput - self.throughput);
        } else {
            self.forget();
            self.throughput = sample.throughput;
        }
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown > 0 {
            return;
        }
        let (above, below) = ((self.home < self.highest).then_some(self.home + 1), self.home.checked_sub(1));
        let neighbour = if self.tries_above { above.or(below) } else { below.or(above) };
        match neighbour {
            Some(neighbour) => self.trial = Some(Trial { neighbour, samples: 1, difference: -sample.value() }),
            None => self.countdown = PATIENCE_MAX,
        }
    }

    /// Moves to the neighbour if it won.
    fn judge(&mut self, trial: &Trial) {
        self.trial = None;
        let is_above = trial.neighbour > self.home;
        if trial.difference / PAIRS > NOTABLE_DIFFERENCE {
            // The next rung in the same direction is the most promising one. The first sample there is one of
            // a change.
            self.tries_above = is_above;
            self.home = trial.neighbour;
            self.throughput = 0.0;
            self.patience = PATIENCE_MIN;
            self.countdown = 2;
        } else {
            self.tries_above = !is_above;
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.countdown = self.patience;
        }
    }
}

/// The number of a rung: 4, 6, 8, 11, 16, 23, 32 and so on.
fn number(rung: usize) -> usize {
    let power = ADMITTED_MIN << (rung / 2);
    if rung.is_multiple_of(2) { power } else { power * 181 / 128 }
}
