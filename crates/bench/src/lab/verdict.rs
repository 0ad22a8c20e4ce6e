//! Finds the best static setup of a workload, and compares the other setups with it by paired ratios.

use super::record::{Record, by_setup};
use super::setup::{ADAPTIVE, Role, Setup};
use super::workload::Workload;
use crate::statistics::{Interval, geometric_mean, ratio_interval};

/// Target for the ratio of the adaptive setup to the best static setup.
pub const RATIO_MIN: f64 = 0.98;
/// A control setup (one fixed routing rule) is too weak for a workload if its ratio to the best static setup
/// is below this.
pub const FIXED_RULE_RATIO_MIN: f64 = 0.9;

/// Comparison of the setups on one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the workload.
    pub workload: &'static str,
    /// The static setup with the highest geometric mean over all repetitions.
    pub best_static: Option<&'static str>,
    /// Ratio of each setup to the best static one in the same repetition.
    pub to_best: Vec<(&'static str, Interval)>,
    /// For each static setup, the ratio of the adaptive setup to it in the same repetition. Above 1, adaptive
    /// is better.
    pub adaptive_to: Vec<(&'static str, Interval)>,
}

impl Comparison {
    /// Compares the measurements of a workload.
    pub fn new(workload: &Workload, setups: &[Setup], records: &[Record]) -> Comparison {
        let measured = by_setup(records, workload.name);
        let figures = |setup: &str| -> Vec<f64> {
            let all = measured.get(setup).map_or(&[][..], |all| all);
            all.iter().map(|record| record.figure(workload.judged)).collect()
        };
        let statics = setups.iter().filter(|setup| setup.role == Role::Static).map(|setup| setup.name);
        let mut best: Option<(&'static str, f64)> = None;
        for setup in statics.clone() {
            let mean = geometric_mean(&figures(setup));
            if mean > best.map_or(0.0, |(_, highest)| highest) {
                best = Some((setup, mean));
            }
        }
        let best_static = best.map(|(setup, _)| setup);
        let ratio = |one: &str, other: &str| paired_ratios(&figures(one), &figures(other));
        let to_best = setups.iter().filter_map(|setup| Some((setup.name, ratio(setup.name, best_static?)?)));
        Comparison {
            workload: workload.name,
            best_static,
            to_best: to_best.collect(),
            adaptive_to: statics.filter_map(|setup| Some((setup, ratio(ADAPTIVE, setup)?))).collect(),
        }
    }

    /// Ratio of a setup to the best static one.
    pub fn ratio(&self, setup: &str) -> Option<Interval> {
        self.to_best.iter().find(|(name, _)| *name == setup).map(|(_, ratio)| *ratio)
    }

    /// Whether the adaptive setup meets the target: the upper end of its interval is at least [`RATIO_MIN`].
    /// `None` if it was not measured.
    pub fn adaptive_meets_target(&self) -> Option<bool> {
        Some(self.ratio(ADAPTIVE)?.high >= RATIO_MIN)
    }

    /// Whether a setup is certainly too weak: even the upper end of its interval is below
    /// [`FIXED_RULE_RATIO_MIN`].
    pub fn is_too_weak(&self, setup: &str) -> bool {
        self.ratio(setup).is_some_and(|ratio| ratio.high < FIXED_RULE_RATIO_MIN)
    }

    /// Whether the adaptive setup is certainly better than every static setup.
    pub fn beats_all(&self) -> bool {
        !self.adaptive_to.is_empty() && self.adaptive_to.iter().all(|(_, ratio)| ratio.low > 1.0)
    }
}

/// Ratios of measurements of the same repetition. `None` if one of the two setups was not measured.
fn paired_ratios(one: &[f64], other: &[f64]) -> Option<Interval> {
    let ratios: Vec<f64> = one.iter().zip(other).map(|(one, other)| one / other).collect();
    ratio_interval(&ratios)
}

#[cfg(test)]
mod tests {
    use super::super::client::Tally;
    use super::super::setup::setups;
    use super::super::workload::WORKLOADS;
    use super::*;

    fn records(figures: &[(&'static str, [usize; 3])]) -> Vec<Record> {
        let mut records = Vec::new();
        for (setup, operations) in figures {
            for (repetition, operations) in operations.iter().enumerate() {
                let mut tally = Tally::default();
                (0..*operations).for_each(|_| tally.latencies.add(1000));
                records.push(Record::new(
                    (&WORKLOADS[0], setup, repetition as u32),
                    1,
                    1.0,
                    tally,
                    (Vec::new(), Vec::new()),
                ));
            }
        }
        // The order of measurements must not matter.
        records.reverse();
        records
    }

    #[test]
    fn ratios_are_of_the_same_repetition() {
        // The machine is half as fast in the second repetition. The adaptive setup is always a tenth slower
        // than ldm.
        let records = records(&[
            ("ldm", [1000, 500, 2000]),
            ("receive", [800, 400, 1500]),
            ("adaptive", [900, 450, 1800]),
            ("always-owner", [1100, 300, 400]),
        ]);
        let comparison = Comparison::new(&WORKLOADS[0], &setups(2), &records);
        assert_eq!(comparison.best_static, Some("ldm"));
        let ratio = comparison.ratio(ADAPTIVE).expect("measured");
        for end in [ratio.mean, ratio.low, ratio.high] {
            assert!((end - 0.9).abs() < 1e-9, "{ratio:?}");
        }
        assert_eq!((comparison.adaptive_meets_target(), comparison.beats_all()), (Some(false), false));
        assert!(!comparison.is_too_weak("always-owner"), "three values so far apart prove nothing");
        assert!(comparison.is_too_weak("receive"));
        assert_eq!(comparison.ratio("single-thread"), None);
    }

    #[test]
    fn without_adaptive_there_is_no_verdict() {
        let comparison = Comparison::new(&WORKLOADS[0], &setups(2), &records(&[("ldm", [1, 1, 1])]));
        assert_eq!((comparison.adaptive_meets_target(), comparison.beats_all()), (None, false));
    }
}
