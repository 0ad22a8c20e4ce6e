//! The combinations of the values that the parts of a key can have.

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::Values;
use crate::plan::KeyValues;

/// Maximum number of combinations of several lists. A key of more combinations ends before the list that
/// would make them.
const COMBINATIONS_MAX: usize = 1 << 16;

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

impl Lists<'_> {
    /// The number of combinations with `count` more values of a part, and the dimension of the part.
    fn extended(&self, part: &KeyValues, count: usize) -> (usize, usize) {
        let known = self.parallel.filter(|_| matches!(part, KeyValues::Parallel(_)));
        let so_far = self.sizes.iter().fold(1usize, |product, size| product.saturating_mul(*size));
        match known {
            Some(dimension) => (so_far, dimension),
            None => (so_far.saturating_mul(count), self.sizes.len()),
        }
    }

    fn add(&mut self, part: &KeyValues, count: usize) -> usize {
        let (_, dimension) = self.extended(part, count);
        match self.sizes.get_mut(dimension) {
            Some(size) => *size = count.min(*size),
            None => self.sizes.push(count),
        }
        if matches!(part, KeyValues::Parallel(_)) {
            self.parallel = Some(dimension);
        }
        dimension
    }
}

/// The number of values of a part that has several.
fn count_of(part: &KeyValues, values: &Values<'_>) -> Option<usize> {
    match part {
        KeyValues::One(_) | KeyValues::Null => None,
        KeyValues::List(list) => Some(list.len()),
        KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal) => Some(values.parameters.list(*ordinal).count()),
    }
}

/// The longest beginning of a key whose lists have at most [`COMBINATIONS_MAX`] combinations, or one list of
/// any length.
pub(super) fn bounded_prefix<'k>(parts: &'k [KeyValues], values: &Values<'_>) -> &'k [KeyValues] {
    let mut lists = Lists::default();
    for (place, part) in parts.iter().enumerate() {
        let Some(count) = count_of(part, values) else { continue };
        if !lists.sizes.is_empty() && lists.extended(part, count).0 > COMBINATIONS_MAX {
            return &parts[..place];
        }
        lists.add(part, count);
    }
    parts
}

/// Calls `visit` with each combination of the values of the parts that have several.
pub(super) fn for_each_combination(
    parts: &[KeyValues],
    values: &Values<'_>,
    visit: &mut dyn FnMut(&[ValueRef<'_>]) -> Result<()>,
) -> Result<()> {
    let mut lists = Lists::default();
    for part in parts {
        let found: Vec<ValueRef<'_>> = match part {
            KeyValues::One(_) | KeyValues::Null => continue,
            KeyValues::List(list) => list.iter().map(|operand| operand.value(values)).collect::<Result<_>>()?,
            KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal) => values.parameters.list(*ordinal).collect(),
        };
        let dimension = lists.add(part, found.len());
        lists.parts.push((dimension, found));
    }
    if lists.sizes.contains(&0) {
        return Ok(());
    }
    let mut places = vec![0; lists.sizes.len()];
    let mut members = Vec::with_capacity(lists.parts.len());
    loop {
        members.clear();
        members.extend(lists.parts.iter().map(|(dimension, found)| found[places[*dimension]]));
        visit(&members)?;
        let Some(next) = (0..places.len()).rev().find(|dimension| places[*dimension] + 1 < lists.sizes[*dimension])
        else {
            return Ok(());
        };
        places[next] += 1;
        places[next + 1..].fill(0);
    }
}
