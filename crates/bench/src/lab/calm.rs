//! Detects load from other programs, or from other machines on the same hardware, during a measurement. A
//! disturbed measurement is repeated once that load has gone, while time is left. The least disturbed result
//! is kept, whatever its figures.

use std::time::{Duration, Instant};

use super::record::Record;
use super::setup::cpu_count;
use crate::Outcome;
use crate::autobench::program::Interrupt;
use crate::process::measure::{cpu_time_of_others, stolen_time};

/// A measurement is disturbed if other programs and machines used more than this percentage of all CPUs.
pub const DISTURBED_PERCENT: f64 = 5.0;
/// Duration of a check whether the other load has gone.
const CALM_CHECK_TIME: Duration = Duration::from_millis(500);
const TRIES_MAX: u32 = 4;

/// Meters the CPU time that other programs and machines have used since the meter began.
pub struct OtherLoadMeter {
    since: Instant,
    /// CPU time of other programs and machines at `since`.
    before: Duration,
}

impl OtherLoadMeter {
    /// Starts the meter.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn begin() -> Outcome<OtherLoadMeter> {
        Ok(OtherLoadMeter { since: Instant::now(), before: used_by_others()? })
    }

    /// The share of all CPUs that other programs and machines have used since the start, in per cent.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn percent(&self) -> Outcome<f64> {
        // When a program ends without a parent that waits for it, its CPU time disappears from the sum.
        let used = used_by_others()?.saturating_sub(self.before);
        Ok(used.as_secs_f64() / self.since.elapsed().as_secs_f64() / cpu_count() as f64 * 100.0)
    }
}

fn used_by_others() -> Outcome<Duration> {
    Ok(cpu_time_of_others(std::process::id())? + stolen_time()?)
}

/// Time that is left for repeating measurements.
pub struct RetryBudget {
    left: Duration,
}

impl RetryBudget {
    /// Creates the budget of a whole run.
    pub fn new(left: Duration) -> RetryBudget {
        RetryBudget { left }
    }

    /// Calls `measure`, and repeats a disturbed measurement while time is left. Returns the least disturbed
    /// record. The argument of `measure` is the number of earlier attempts.
    ///
    /// # Errors
    /// A measurement fails, or the user interrupts.
    pub fn measure(
        &mut self,
        interrupt: &Interrupt,
        mut measure: impl FnMut(u32) -> Outcome<Record>,
    ) -> Outcome<Record> {
        let mut kept = measure(0)?;
        for attempt in 1..TRIES_MAX {
            let start = Instant::now();
            if kept.others_cpu_percent <= DISTURBED_PERCENT || !self.wait_for_calm(interrupt)? {
                break;
            }
            let next = measure(attempt)?;
            if next.others_cpu_percent < kept.others_cpu_percent {
                kept = next;
            }
            self.left = self.left.saturating_sub(start.elapsed());
        }
        Ok(kept)
    }

    /// Waits until other load has gone. Returns false if no time is left.
    fn wait_for_calm(&mut self, interrupt: &Interrupt) -> Outcome<bool> {
        let end = Instant::now() + self.left;
        while Instant::now() < end {
            let others = OtherLoadMeter::begin()?;
            interrupt.pause(CALM_CHECK_TIME)?;
            if others.percent()? <= DISTURBED_PERCENT {
                return Ok(true);
            }
        }
        self.left = Duration::ZERO;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Tally;
    use super::super::workload::WORKLOADS;
    use super::*;

    fn measured(percents: &[f64], retry_budget: Duration) -> (u32, u64) {
        let mut records = percents.iter().enumerate().map(|(number, percent)| {
            let mut tally = Tally::default();
            (0..=number).for_each(|_| tally.latencies.add(1));
            let mut record = Record::new((&WORKLOADS[0], "ldm", 0), 1, 1.0, tally, (Vec::new(), Vec::new()));
            record.others_cpu_percent = *percent;
            record
        });
        let mut calls = 0;
        let mut measure = |_| {
            calls += 1;
            Ok(records.next().expect("not measured more often than this"))
        };
        let kept = RetryBudget::new(retry_budget).measure(&Interrupt::default(), &mut measure).expect("measured");
        (calls, kept.operations)
    }

    #[test]
    fn a_calm_measurement_and_one_without_time_left_are_not_repeated() {
        assert_eq!(measured(&[0.5], Duration::from_secs(60)), (1, 1));
        assert_eq!(measured(&[50.0], Duration::ZERO), (1, 1));
    }
}
