//! Hot path: at most 30 instructions per key.
//!
//! The keys of one integer column, from one value or from a list of values.

use junctor_model::key::IntegerKeys;
use junctor_model::partition::key_hash;
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;

use super::{PROBES_MAX, Values};
use crate::plan::{KeyTemplate, KeyValues, Operand};

/// Does the work of [`super::KeyBuilder::build_keys`] for a key of one integer column and a list of values.
/// Pushes each key as soon as it is known to be no duplicate. In a function of its own, because the loop
/// would run out of registers among the variables of its caller.
#[inline(never)]
pub(super) fn push_integers<const BYTES: usize>(
    integers: &[[u8; 8]],
    keys: IntegerKeys,
    (seen, order): (&mut Vec<u32>, &mut Vec<u32>),
    mut push: impl FnMut(u64, &[u8]),
) {
    let size = (integers.len() * 2).next_power_of_two();
    order.clear();
    seen.clear();
    seen.resize(size, 0);
    let seen = &mut seen[..];
    for (position, integer) in integers.iter().enumerate() {
        let Some(key) = keys.key::<BYTES>(i64::from_le_bytes(*integer)) else { continue };
        let hash = key_hash(&key);
        let mut slot = hash as usize & (seen.len() - 1);
        let is_new = loop {
            match seen[slot].checked_sub(1) {
                None => {
                    seen[slot] = position as u32 + 1;
                    break true;
                }
                Some(other) if integers[other as usize] == *integer => break false,
                Some(_) => slot = (slot + 1) & (seen.len() - 1),
            }
            if slot.wrapping_sub(hash as usize) & (seen.len() - 1) >= PROBES_MAX {
                break is_first_of_equals(integers, position, order);
            }
        };
        if is_new {
            push(hash, &key);
        }
    }
}

/// Whether no earlier member of the list equals the integer at `position`.
#[cold]
fn is_first_of_equals(integers: &[[u8; 8]], position: usize, order: &mut Vec<u32>) -> bool {
    if order.is_empty() {
        order.extend(0..integers.len() as u32);
        order.sort_unstable_by_key(|position| (integers[*position as usize], *position));
    }
    let first = order.partition_point(|earlier| integers[*earlier as usize] < integers[position]);
    order[first] as usize == position
}

/// The width in bytes, the encoding and the value of a key that is one signed integer; `None` for every other
/// key.
#[inline(always)]
pub(super) fn single_integer(
    definition: &TableDefinition,
    template: &KeyTemplate,
    key: &[KeyValues],
    values: &Values<'_>,
) -> Option<(u8, IntegerKeys, i64)> {
    let ([column], [KeyValues::One(Operand::Parameter(ordinal))]) = (template.columns.as_slice(), key) else {
        return None;
    };
    let ValueRef::Int(value) = values.parameters.get(*ordinal) else { return None };
    let column = &definition.columns[usize::from(column.0)];
    let (bytes, unsigned) = column.column_type.as_integer()?;
    (!column.nullable).then(|| (bytes, IntegerKeys::new(bytes, unsigned), value))
}

/// The width in bytes, the encoding and the values of a key that has one integer column and a list of integer
/// values; `None` for every other key, and if the key's hash does not determine the partition. The values of
/// a list of operands are copied into `gathered`.
#[inline]
pub(super) fn integer_list<'v>(
    definition: &TableDefinition,
    template: &KeyTemplate,
    values: &Values<'v>,
    gathered: &'v mut Vec<[u8; 8]>,
) -> Option<(u8, IntegerKeys, &'v [[u8; 8]])> {
    let ([column], [key]) = (template.columns.as_slice(), template.alternatives.as_slice()) else { return None };
    let [key @ (KeyValues::Parameters(_) | KeyValues::List(_))] = key.as_slice() else { return None };
    let is_base = template.columns == definition.primary().columns;
    let column = &definition.columns[usize::from(column.0)];
    let (bytes, unsigned) = column.column_type.as_integer()?;
    if !is_base || column.nullable || definition.partition_columns != template.columns {
        return None;
    }
    let keys = IntegerKeys::new(bytes, unsigned);
    match key {
        KeyValues::Parameters(ordinal) => values.parameters.list(*ordinal).integers().map(|list| (bytes, keys, list)),
        KeyValues::List(list) => {
            gathered.clear();
            for operand in list {
                let value = match operand {
                    Operand::Parameter(ordinal) => values.parameters.get(*ordinal),
                    Operand::Constant(value) => value.as_ref(),
                    Operand::Computed(_) => return None,
                };
                let value = match value {
                    ValueRef::Int(value) => value,
                    ValueRef::UInt(value) => i64::try_from(value).ok()?,
                    _ => return None,
                };
                gathered.push(value.to_le_bytes());
            }
            Some((bytes, keys, gathered))
        }
        KeyValues::One(_) | KeyValues::Null | KeyValues::Parallel(_) => None,
    }
}
