//! Moving means in integers, which follow a change within a few samples.

/// Weight of one sample: one part in two to this power.
const WEIGHT_SHIFT: u32 = 3;

/// Means are kept in sixteenths.
const FRACTION_BITS: u32 = 4;

/// A sample counts at most as this many times the mean, because a measurement on an interrupted thread
/// includes the interruption.
const OUTLIER_FACTOR: u64 = 4;

/// Minimum cap on a sample, in the unit of the samples, so that a mean near zero can grow.
const OUTLIER_MIN: u64 = 1_000;

/// Number of first samples, which meet cold caches. Only the lowest of them counts.
const COLD_SAMPLES: u32 = 4;

/// Maximum sample. It keeps sums and products of estimates far from overflow.
const SAMPLE_MAX: u64 = 1 << 36;

/// A moving mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    sixteenths: u64,
    samples: u32,
}

impl Mean {
    /// A mean that starts with a guess. The first sample replaces the guess.
    pub const fn guessed(value: u64) -> Mean {
        Mean { sixteenths: value << FRACTION_BITS, samples: 0 }
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: u64) {
        let sample = sample.min(SAMPLE_MAX);
        if self.samples == 0 {
            self.sixteenths = sample << FRACTION_BITS;
        } else if self.samples < COLD_SAMPLES {
            self.sixteenths = self.sixteenths.min(sample << FRACTION_BITS);
        } else {
            let outlier = (self.value() * OUTLIER_FACTOR).max(OUTLIER_MIN);
            let sample = sample.min(outlier) << FRACTION_BITS;
            self.sixteenths = self.sixteenths - (self.sixteenths >> WEIGHT_SHIFT) + (sample >> WEIGHT_SHIFT);
        }
        self.samples = self.samples.saturating_add(1);
    }

    /// The mean, rounded down.
    #[inline]
    pub fn value(&self) -> u64 {
        self.sixteenths >> FRACTION_BITS
    }

    /// The mean in sixteenths.
    #[inline]
    pub fn sixteenths(&self) -> u64 {
        self.sixteenths
    }

    /// Number of samples.
    #[inline]
    pub fn samples(&self) -> u32 {
        self.samples
    }
}
