//! The combinations of the values that the parts of a key can have, and the ranges that begin with them.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{BOUND_BYTES_MAX, KeyBuilder, RANGES_MAX, RangeColumn, RangeParts, Values};
use crate::plan::{KeyValues, ValueSet};

/// Maximum number of combinations of several lists. A key of more combinations ends before the list that
/// would make them.
const COMBINATIONS_MAX: usize = 1 << 16;
/// Maximum number of bytes of the bounds that several lists make. A key of more bytes ends before the value
/// that would make them.
const COMBINED_BYTES_MAX: usize = 16 << 20;
/// Maximum number of bytes of the keys or bounds of one statement. More give error 1436.
const BYTES_MAX: usize = 256 << 20;
/// Maximum number of bytes that the buffer of keys or bounds keeps for the next statement.
const BYTES_KEPT_MAX: usize = 1 << 20;

/// The lists among the parts of a key. Parallel lists are one dimension: they advance together.
#[derive(Default)]
struct Lists<'v> {
    /// The values of each part that has several, and its dimension.
    parts: Vec<(usize, Vec<ValueRef<'v>>)>,
    /// The number of values of each dimension.
    sizes: Vec<usize>,
    /// The dimension of parallel lists.
    parallel: Option<usize>,
}

impl<'v> Lists<'v> {
    /// The number of combinations.
    fn count(&self) -> usize {
        self.sizes.iter().fold(1, |product, size| product.saturating_mul(*size))
    }

    /// The number of combinations with `count` more values of a part, and the dimension of the part.
    fn extended(&self, part: &KeyValues, count: usize) -> (usize, usize) {
        match self.parallel.filter(|_| matches!(part, KeyValues::Parallel(_))) {
            Some(dimension) => (self.count(), dimension),
            None => (self.count().saturating_mul(count), self.sizes.len()),
        }
    }

    fn add(&mut self, part: &KeyValues, found: Vec<ValueRef<'v>>) {
        let (_, dimension) = self.extended(part, found.len());
        match self.sizes.get_mut(dimension) {
            Some(size) => *size = found.len().min(*size),
            None => self.sizes.push(found.len()),
        }
        if matches!(part, KeyValues::Parallel(_)) {
            self.parallel = Some(dimension);
        }
        self.parts.push((dimension, found));
    }

    /// Calls `visit` with each combination.
    fn for_each(&self, visit: &mut dyn FnMut(&[ValueRef<'_>]) -> Result<()>) -> Result<()> {
        if self.sizes.contains(&0) {
            return Ok(());
        }
        let mut places = vec![0; self.sizes.len()];
        let mut members = Vec::with_capacity(self.parts.len());
        loop {
            members.clear();
            members.extend(self.parts.iter().map(|(dimension, found)| found[places[*dimension]]));
            visit(&members)?;
            let Some(next) = (0..places.len()).rev().find(|dimension| places[*dimension] + 1 < self.sizes[*dimension])
            else {
                return Ok(());
            };
            places[next] += 1;
            places[next + 1..].fill(0);
        }
    }
}

/// The number of values of a part.
fn count_of(part: &KeyValues, values: &Values<'_>) -> usize {
    match part {
        KeyValues::One(_) | KeyValues::Null => 1,
        KeyValues::List(list) => list.len(),
        KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal) => values.parameters.list(*ordinal).count(),
    }
}

/// The values of a part. Errors: those of the expressions that compute them.
fn values_of<'v>(part: &'v KeyValues, values: &Values<'v>) -> Result<Vec<ValueRef<'v>>> {
    Ok(match part {
        KeyValues::One(operand) => vec![operand.value(values)?],
        KeyValues::Null => vec![ValueRef::Null],
        KeyValues::List(list) => list.iter().map(|operand| operand.value(values)).collect::<Result<_>>()?,
        KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal) => values.parameters.list(*ordinal).collect(),
    })
}

/// Whether so many ranges with bounds of at most so many bytes are within the limits of several lists.
fn fits(ranges: usize, bytes: usize) -> bool {
    ranges.saturating_mul(2 * bytes.min(BOUND_BYTES_MAX)) <= COMBINED_BYTES_MAX
}

/// Calls `visit` with each combination of the values of the parts that have several.
pub(super) fn for_each_combination(
    parts: &[KeyValues],
    values: &Values<'_>,
    visit: &mut dyn FnMut(&[ValueRef<'_>]) -> Result<()>,
) -> Result<()> {
    let mut lists = Lists::default();
    for part in parts.iter().filter(|part| !part.is_single()) {
        lists.add(part, values_of(part, values)?);
    }
    lists.for_each(visit)
}

/// Error 1436.
#[cold]
pub(super) fn too_complex() -> Box<Error> {
    Error::new(ErrorCode::StatementTooComplex, "The condition has too many ranges")
}

impl KeyBuilder {
    /// Adds the ranges that begin with the combinations of several lists. They use the longest beginning of
    /// the prefix whose combinations and bytes are within their limits, but at least its first list of any
    /// length, and leave the value sets out if these would exceed the limits. The filter tests the conditions
    /// from the second list on.
    pub(super) fn add_combined_ranges(&mut self, mut parts: RangeParts<'_>, values: &Values<'_>) -> Result<()> {
        let mut lists = Lists::default();
        let mut bytes = 0;
        for (place, part) in parts.prefix.iter().enumerate() {
            let is_list = !part.is_single();
            let (combinations, dimension) = match is_list {
                true => lists.extended(part, count_of(part, values)),
                false => (lists.count(), 0),
            };
            // With one dimension, the ranges imply conditions that the filter does not test.
            let is_product = lists.sizes.len().max(dimension + 1) > 1;
            if is_product && combinations > COMBINATIONS_MAX {
                parts.prefix = &parts.prefix[..place];
                break;
            }
            let found = values_of(part, values)?;
            bytes += self.longest(parts, place, &found, values);
            if is_product && !fits(combinations, bytes) {
                parts.prefix = &parts.prefix[..place];
                break;
            }
            if is_list {
                lists.add(part, found);
            }
        }
        let is_whole = parts.prefix.len() == parts.template.prefix.len();
        if !is_whole || lists.sizes.len() > 1 && !self.has_room(parts, values, (lists.count(), bytes))? {
            parts.value_sets = &[];
        }
        lists.for_each(&mut |members| self.add_ranges_after_prefix(parts, members, values))
    }

    /// The greatest number of bytes that one of the values takes in a key.
    fn longest(&mut self, parts: RangeParts<'_>, place: usize, found: &[ValueRef<'_>], values: &Values<'_>) -> usize {
        let Some(column) = parts.template.columns.get(place) else { return 0 };
        let column = RangeColumn::of(parts.definition, parts.template, *column);
        let length_of = |value: &ValueRef<'_>| {
            self.key.clear();
            column.append_floor(*value, values.scratch, &mut self.key);
            self.key.len()
        };
        found.iter().map(length_of).max().unwrap_or(0)
    }

    /// Whether the ranges that the value sets make of so many combinations of so many bytes are within the
    /// limits.
    fn has_room(
        &mut self,
        parts: RangeParts<'_>,
        values: &Values<'_>,
        (combinations, bytes): (usize, usize),
    ) -> Result<bool> {
        let (mut count, mut most) = (0usize, 0);
        for set in parts.value_sets {
            let found = match set {
                ValueSet::Values(part) => values_of(part, values)?,
                ValueSet::Interval(interval) => {
                    let bounds = [&interval.lower, &interval.upper].into_iter().flatten();
                    bounds.map(|(operand, _)| operand.value(values)).collect::<Result<_>>()?
                }
                ValueSet::Prefix { pattern, .. } => vec![pattern.value(values)?],
            };
            count += if matches!(set, ValueSet::Values(_)) { found.len() } else { 1 };
            most = most.max(self.longest(parts, parts.template.prefix.len(), &found, values));
        }
        let ranges = combinations.saturating_mul(count);
        Ok(ranges <= RANGES_MAX && fits(ranges, bytes + most))
    }

    /// Error: 1436 if the keys or bounds of the statement have too many bytes.
    #[inline]
    pub(super) fn check_bytes(&self) -> Result<()> {
        if self.bytes.len() > BYTES_MAX {
            return Err(too_complex());
        }
        Ok(())
    }

    /// Gives the memory of many bytes back.
    pub(super) fn shrink(&mut self) {
        if self.bytes.capacity() > BYTES_KEPT_MAX {
            self.bytes = Vec::new();
        }
    }
}
