//! Latencies in bounded memory.

use hdrhistogram::Histogram;

/// Longest latency that is recorded, in nanoseconds: an hour. A longer latency counts as an hour.
const LATENCY_NS_MAX: u64 = 3600 * 1_000_000_000;
/// Decimal digits of a latency that are kept: an entry is at most a thousandth too high.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Counts of latencies in nanoseconds; about 250 KiB.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = Histogram::new_with_max(LATENCY_NS_MAX, SIGNIFICANT_DIGITS);
        Latencies(histogram.expect("the bounds of the histogram are constants that it accepts"))
    }
}

impl Latencies {
    /// Counts a latency, in nanoseconds.
    pub fn add(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in nanoseconds that `per_mille` thousandths of all latencies do not exceed. The result can
    /// be a thousandth too high. 0 if nothing was counted.
    pub fn percentile(&self, per_mille: u64) -> u64 {
        self.0.value_at_quantile(per_mille as f64 / 1000.0)
    }

    /// As [`Latencies::percentile`], in microseconds.
    pub fn percentile_us(&self, per_mille: u64) -> f64 {
        self.percentile(per_mille) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_never_too_low_and_hardly_too_high() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(500), 0);
        let mut other = Latencies::default();
        (1..=5000).for_each(|number| latencies.add(number));
        (5001..=10_000).for_each(|number| other.add(number));
        latencies.merge(&other);
        assert_eq!(latencies.count(), 10_000);
        for (per_mille, exact) in [(1, 10), (500, 5000), (950, 9500), (999, 9990), (1000, 10_000)] {
            let seen = latencies.percentile(per_mille);
            assert!(seen >= exact && seen <= exact + exact / 1000, "{per_mille}: {seen}");
        }
        assert!((latencies.percentile_us(500) - 5.0).abs() < 0.01);
    }

    #[test]
    fn a_latency_of_more_than_an_hour_counts_as_an_hour() {
        let mut latencies = Latencies::default();
        latencies.add(u64::MAX);
        assert!(latencies.percentile(1000) >= LATENCY_NS_MAX);
    }
}
