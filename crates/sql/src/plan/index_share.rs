//! The share of a table's rows in ranges of an index, from the statistics of the table.
//!
//! A plan serves all later values of its parameters, so their values do not enter the estimate: each is taken
//! for one that is as frequent as the others.

use super::access::RangeTemplate;
use super::operand::{Interval, KeyValues, ValueSet};
use crate::statistics::TableProfile;

/// The number of values that a list is assumed to have whose values are not known.
const LIST_VALUES: f64 = 3.0;
/// The shares of a range with two ends, of one with one end, and of the strings with one beginning.
const CLOSED: f64 = 0.1;
const OPEN: f64 = 1.0 / 3.0;
const PATTERN: f64 = 0.1;

/// The share of rows in these ranges. `None` if the values of a column were not sampled.
pub(super) fn index_share(profile: &TableProfile, ranges: &RangeTemplate) -> Option<f64> {
    let rows = profile.rows as f64;
    let (fixed, rest) = ranges.columns.split_at(ranges.prefix.len().min(ranges.columns.len()));
    let mut share = 1.0;
    if let ([KeyValues::Null], [column]) = (&ranges.prefix[..], fixed) {
        share = profile.columns.get(column)?.nulls;
    } else if !fixed.is_empty() {
        let mut values: f64 = ranges.prefix.iter().map(values_of).product();
        if ranges.prefix.iter().any(|part| matches!(part, KeyValues::Parallel(_))) {
            values *= LIST_VALUES;
        }
        share = (values / profile.distinct(fixed, rows)?.max(1.0)).min(1.0);
    }
    if !ranges.value_sets.is_empty() {
        let distinct = profile.distinct(&[*rest.first()?], rows)?.max(1.0);
        let of_set = |set: &ValueSet| match set {
            ValueSet::Values(values) => values_of(values) / distinct,
            ValueSet::Interval(Interval { lower: Some(_), upper: Some(_) }) => CLOSED,
            ValueSet::Interval(_) => OPEN,
            ValueSet::Prefix { .. } => PATTERN,
        };
        share *= ranges.value_sets.iter().map(of_set).sum::<f64>().min(1.0);
    }
    Some(share)
}

/// The assumed number of values.
pub(super) fn values_of(values: &KeyValues) -> f64 {
    match values {
        // Parallel lists have as many keys as one of them.
        KeyValues::One(_) | KeyValues::Null | KeyValues::Parallel(_) => 1.0,
        KeyValues::List(list) => list.len() as f64,
        KeyValues::Parameters(_) => LIST_VALUES,
    }
}
