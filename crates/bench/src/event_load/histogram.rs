//! Latencies in bounded memory: an entry is at most a thirty-second too high.

/// Entries for each doubling.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const PLACES: usize = (STEPS as usize) * (65 - STEP_BITS as usize);

/// Counts of numbers by their size.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; PLACES].into(), total: 0 }
    }
}

impl Histogram {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        self.counts[place(number)] += 1;
        self.total += 1;
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// How many numbers there are.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// A number that `per_mille` thousandths of all do not exceed, at most a thirty-second too high; 0 of none.
    pub fn percentile(&self, per_mille: u64) -> u64 {
        let wanted = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000) as u64;
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return highest(place);
            }
        }
        0
    }
}

fn place(number: u64) -> usize {
    if number < STEPS {
        return number as usize;
    }
    let doublings = 63 - number.leading_zeros() - STEP_BITS;
    let step = (number >> doublings) - STEPS;
    (u64::from(doublings + 1) * STEPS + step) as usize
}

/// The highest number that has this place.
fn highest(place: usize) -> u64 {
    let (row, step) = (place as u64 / STEPS, place as u64 % STEPS);
    if row == 0 {
        return step;
    }
    let doublings = row - 1;
    // The last place's end is one above the highest number.
    ((u128::from(STEPS + step + 1) << doublings) - 1).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_whose_end_is_near() {
        for number in (0..64).map(|bit| 1_u64 << bit).flat_map(|power| [power - 1, power, power + power / 3]) {
            let end = highest(place(number));
            assert!(end >= number && end - number <= number / STEPS, "{number} {end}");
        }
        assert_eq!(highest(place(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles_are_not_below_and_hardly_above() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(500), 0);
        let mut other = Histogram::default();
        (1..=5000).for_each(|number| histogram.add(number));
        (5001..=10_000).for_each(|number| other.add(number));
        histogram.merge(&other);
        assert_eq!(histogram.count(), 10_000);
        for (per_mille, exact) in [(1, 10), (500, 5000), (950, 9500), (999, 9990), (1000, 10_000)] {
            let seen = histogram.percentile(per_mille);
            assert!(seen >= exact && seen <= exact + exact / 32, "{per_mille}: {seen}");
        }
    }
}
