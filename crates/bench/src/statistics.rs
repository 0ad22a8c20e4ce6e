//! Medians and percentiles.

/// The middle value; of an even number of values the mean of the two in the middle. 0 of no values.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// The smallest value that `percent` of all do not exceed; 0 of no values. Sorts the values.
pub fn percentile(values: &mut [u32], percent: usize) -> u32 {
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100);
    if place == 0 { 0 } else { values[place - 1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(percentile(&mut [], 95), 0);
        assert_eq!(percentile(&mut [7], 95), 7);
        let mut values: Vec<u32> = (1..=100).rev().collect();
        assert_eq!(percentile(&mut values, 95), 95);
    }
}
