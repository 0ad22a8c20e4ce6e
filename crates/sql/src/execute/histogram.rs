//! Hot path: at most 20 instructions per record.
//!
//! A histogram of durations with logarithmic buckets.
//!
//! Each power of two is divided into [`STEPS`] linear buckets, as in Gil Tene's HdrHistogram. A bucket with
//! more than one duration is therefore at most an eighth as wide as its shortest duration. Durations beyond
//! [`DURATION_NS_MAX`] are counted as that maximum.

/// Number of buckets for each power of two.
const STEPS: u64 = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Maximum duration, about 73 minutes. A longer one is recorded as this.
pub(super) const DURATION_NS_MAX: u64 = (1 << 42) - 1;

/// Number of buckets of a histogram.
pub(super) const BUCKETS: usize = bucket_of(DURATION_NS_MAX) + 1;

/// Counts of durations in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: Box::new([0; BUCKETS]), count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Records `count` durations of `duration_ns` each.
    #[inline]
    pub fn record(&mut self, duration_ns: u64, count: u32) {
        let duration_ns = duration_ns.min(DURATION_NS_MAX);
        let count = u64::from(count);
        self.counts[bucket_of(duration_ns)] += count;
        self.count += count;
        self.sum_ns = self.sum_ns.saturating_add(duration_ns.saturating_mul(count));
        self.max_ns = self.max_ns.max(duration_ns);
    }

    /// Number of durations recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the durations in nanoseconds; saturates at `u64::MAX`.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Longest duration in nanoseconds, exact up to [`DURATION_NS_MAX`]; 0 if nothing was recorded.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The quantile of `thousandths` in nanoseconds; 0 if nothing was recorded. Returns the upper end of the
    /// bucket, which is never below the exact quantile and at most an eighth above it.
    pub fn quantile_ns(&self, thousandths: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
            seen += u128::from(count);
            if seen >= rank {
                return bounds_ns(bucket).1.min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// The buckets that are not empty, with their counts, by ascending duration.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// Adds the counts of another histogram; all sums saturate.
    pub fn merge(&mut self, other: &Histogram) {
        for (own, count) in self.counts.iter_mut().zip(other.counts.iter()) {
            *own = own.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Encodes the histogram for [`Histogram::from_numbers`].
    pub fn to_numbers(&self) -> Vec<u64> {
        let buckets = self.buckets().flat_map(|(bucket, count)| [bucket as u64, count]);
        [self.count, self.sum_ns, self.max_ns].into_iter().chain(buckets).collect()
    }

    /// Decodes the output of [`Histogram::to_numbers`]. Buckets that do not exist are ignored.
    pub fn from_numbers(mut numbers: impl Iterator<Item = u64>) -> Histogram {
        let mut next = || numbers.next().unwrap_or(0);
        let mut histogram = Histogram { count: next(), sum_ns: next(), max_ns: next(), ..Histogram::default() };
        while let (Some(bucket), Some(count)) = (numbers.next(), numbers.next()) {
            if let Some(own) = histogram.counts.get_mut(bucket as usize) {
                *own = count;
            }
        }
        histogram
    }
}

/// The bucket of a duration.
#[inline]
const fn bucket_of(duration_ns: u64) -> usize {
    // Durations below `2 * STEPS` have one bucket each. `| STEPS` keeps the scale of the shortest ones at
    // zero.
    let scale = (duration_ns | STEPS).ilog2() - STEP_BITS;
    ((scale as u64 * STEPS) + (duration_ns >> scale)) as usize
}

/// The shortest and the longest duration of a bucket, in nanoseconds.
pub(super) fn bounds_ns(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return (bucket, bucket);
    }
    let (scale, step) = (bucket / STEPS - 1, bucket % STEPS + STEPS);
    (step << scale, ((step + 1) << scale) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(durations: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        durations.iter().for_each(|duration| histogram.record(*duration, 1));
        histogram
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (first, last) = bounds_ns(bucket);
            assert_eq!(first, next, "bucket {bucket}");
            assert_eq!((bucket_of(first), bucket_of(last)), (bucket, bucket));
            assert!((last - first) * STEPS <= first, "bucket {bucket} is an eighth of its durations wide");
            next = last + 1;
        }
        assert_eq!(next, DURATION_NS_MAX + 1);
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        let none = Histogram::default();
        assert_eq!((none.count(), none.sum_ns(), none.max_ns(), none.quantile_ns(999)), (0, 0, 0, 0));
    }

    #[test]
    fn percentiles_are_ranks() {
        let hundred: Vec<u64> = (1..=100).map(|at| at * 1_000).collect();
        let histogram = of(&hundred);
        assert_eq!((histogram.count(), histogram.sum_ns(), histogram.max_ns()), (100, 5_050_000, 100_000));
        let within = |thousandths, exact| {
            let told = histogram.quantile_ns(thousandths);
            assert!(told >= exact && told <= exact + exact / STEPS, "{thousandths}: {told} for {exact}");
        };
        for (thousandths, exact) in [(500, 50_000), (950, 95_000), (990, 99_000), (10, 1_000), (0, 1_000)] {
            within(thousandths, exact);
        }
        assert_eq!(histogram.quantile_ns(999), 100_000, "the longest is known exactly");
        let mut rare = of(&[1_000_000]);
        rare.record(100, 999);
        assert!(rare.quantile_ns(999) < 120 && rare.quantile_ns(1000) == 1_000_000);
    }

    #[test]
    fn durations_and_counts_saturate_at_the_maximum() {
        let mut histogram = of(&[u64::MAX]);
        assert_eq!((histogram.max_ns(), histogram.quantile_ns(500)), (DURATION_NS_MAX, DURATION_NS_MAX));
        let full = Histogram::from_numbers([u64::MAX, u64::MAX, 5, 5, u64::MAX].into_iter());
        histogram.merge(&full);
        assert_eq!((histogram.count(), histogram.sum_ns()), (u64::MAX, u64::MAX));
        assert_eq!(histogram.quantile_ns(500), 5, "as many as can be counted were short");
        let mut long = full.clone();
        long.merge(&full);
        assert_eq!(long, full);
    }

    #[test]
    fn unused_buckets_are_omitted() {
        let odd = Histogram::from_numbers([1, 2, 3, BUCKETS as u64, 9, 4].into_iter());
        assert_eq!((odd.count(), odd.buckets().count()), (1, 0));
        assert_eq!(Histogram::from_numbers(std::iter::empty()), Histogram::default());
    }

    proptest! {
        #[test]
        fn a_merged_histogram_equals_one_that_noted_everything(
            one in prop::collection::vec(0..DURATION_NS_MAX, 0..50),
            other in prop::collection::vec(0..10_000_000u64, 0..50),
        ) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            let both = of(&[one.as_slice(), other.as_slice()].concat());
            prop_assert_eq!(&merged, &both);
            prop_assert_eq!(Histogram::from_numbers(both.to_numbers().into_iter()), both);
        }

        #[test]
        fn a_percentile_is_at_most_slightly_above_that_of_the_sorted_durations(
            mut durations in prop::collection::vec(0..1_000_000_000u64, 1..200),
            thousandths in 1..=1000u64,
        ) {
            let histogram = of(&durations);
            durations.sort_unstable();
            let rank = (durations.len() as u64 * thousandths).div_ceil(1000).max(1) as usize;
            let exact = durations[rank - 1];
            let told = histogram.quantile_ns(thousandths);
            prop_assert!(told >= exact && told <= exact + exact / STEPS);
        }
    }
}
