//! Medians, percentiles, and intervals of means and ratios.

/// The middle value, or the mean of the two middle values. 0 without values.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// The smallest value that at least `percent` per cent of all values do not exceed; 0 without values. Sorts
/// the values.
pub fn percentile(values: &mut [u32], percent: usize) -> u32 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100);
    if rank == 0 { 0 } else { values[rank - 1] }
}

/// A mean with its 95 per cent confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean of the sample.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The geometric mean of ratios, for example of paired measurements. Its interval comes from Student's
/// distribution of their logarithms. The interval of a single ratio is 0 to infinity. `None` if no ratio is
/// given, or if one is not above 0.
pub fn ratio_interval(ratios: &[f64]) -> Option<Interval> {
    if ratios.is_empty() || ratios.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
        return None;
    }
    let count = ratios.len() as f64;
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / count;
    let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
    let half = match student_quantile(ratios.len() - 1) {
        Some(quantile) => quantile * (squares / (count - 1.0) / count).sqrt(),
        None => f64::INFINITY,
    };
    Some(Interval { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
}

/// The geometric mean; 0 if no value is given, or if one is not above 0.
pub fn geometric_mean(values: &[f64]) -> f64 {
    if values.is_empty() || values.iter().any(|value| *value <= 0.0) {
        return 0.0;
    }
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// The 97.5th percentile of Student's distribution; `None` without degrees of freedom.
fn student_quantile(degrees_of_freedom: usize) -> Option<f64> {
    const SMALL: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match degrees_of_freedom {
        0 => None,
        few @ 1..=30 => Some(SMALL[few - 1]),
        // The first term of the quantile's expansion about the normal distribution. Its error is below 0.001
        // from 31 degrees on.
        many => Some(1.960 + 2.372 / many as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_equals_the_textbook_example() {
        // Logarithms 0.0, 0.1 and 0.2: mean 0.1, standard deviation 0.1, standard error 0.0577, quantile
        // 4.303.
        let ratios = [1.0, 0.1_f64.exp(), 0.2_f64.exp()];
        let interval = ratio_interval(&ratios).expect("three ratios");
        let expected = [0.1_f64, 0.1 - 0.248_43, 0.1 + 0.248_43].map(f64::exp);
        for (seen, expected) in [interval.mean, interval.low, interval.high].iter().zip(expected) {
            assert!((seen - expected).abs() < 1e-4, "{interval:?}");
        }
    }

    #[test]
    fn one_ratio_has_no_interval_and_an_empty_list_no_mean() {
        let single = ratio_interval(&[2.0]).expect("one ratio");
        assert!((single.mean - 2.0).abs() < 1e-12);
        assert_eq!((single.low, single.high), (0.0, f64::INFINITY));
        assert_eq!(ratio_interval(&[]), None);
        assert_eq!(ratio_interval(&[1.0, 0.0]), None);
        assert_eq!(ratio_interval(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn quantiles_approach_those_of_the_normal_distribution() {
        let quantiles: Vec<f64> = (1..200).filter_map(student_quantile).collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] > pair[1]), "{quantiles:?}");
        assert!((quantiles[198] - 1.972).abs() < 0.001);
    }

    #[test]
    fn a_geometric_mean_multiplies() {
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), 0.0);
        assert_eq!(geometric_mean(&[1.0, 0.0]), 0.0);
    }

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
