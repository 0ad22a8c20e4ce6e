//! Hot path: at most 120 instructions per key.
//!
//! Builds the keys and key ranges of one execution from the templates of its plan, and adds them to the
//! inputs of the partitions. Once its buffers have grown, it allocates nothing.

mod combination;
mod duplicates;
mod integer;
mod range_column;

use std::ops::Range;

use junctor_expression::{Parameters, Scratch};
use junctor_gateway::{PartitionInputs, PartitionScope, TurnContext};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::key::{append_escaped, complement, part_length};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{ColumnDefinition, TableDefinition};
use junctor_model::value::ValueRef;
use junctor_signals::input::KeyRange;

use super::bound::{KeyFit, append_key_floor};
use crate::plan::{Interval, KeyTemplate, KeyValues, Operand, RangeTemplate, ScopeTemplate, ValueSet};
use combination::{for_each_combination, too_complex};
use integer::{integer_list, push_integers, single_integer};
use range_column::RangeColumn;

/// Maximum length of a range's bound, in bytes. A longer bound is truncated, which widens the range; the
/// filter removes the additional rows.
const BOUND_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of ranges of one statement. More give error 1436.
const RANGES_MAX: usize = 1 << 18;
/// Maximum number of probes for a key in the hash table that finds duplicates. Random values practically
/// never need more, but values that an attacker chose for colliding hashes do; sorting then bounds the time.
const PROBES_MAX: usize = 64;

/// The parameters of one execution, and the scratch memory of its expressions.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    pub parameters: Parameters<'a>,
    pub scratch: &'a Scratch,
}

/// The partitions' inputs, to which keys and ranges are added.
pub(crate) struct InputWriter<'i, 't> {
    pub inputs: &'i mut PartitionInputs,
    pub turn: &'i mut TurnContext<'t>,
    /// The parameters that accompany each key or range; empty if the program reads none.
    pub parameters: &'i [u8],
}

/// One alternative of a key template: the values of each column, from which one or several keys are built.
#[derive(Clone, Copy)]
struct KeyAlternative<'k> {
    definition: &'k TableDefinition,
    columns: &'k [ColumnNumber],
    /// The values of each column. At most one column has several values, or several have parallel lists.
    values: &'k [KeyValues],
}

/// Builds the keys and ranges of one statement at a time. Its buffers are reused by all statements of the
/// engine.
#[derive(Debug, Default)]
pub(crate) struct KeyBuilder {
    key: Vec<u8>,
    partition_key: Vec<u8>,
    /// The keys or bounds of the statement, one after the other.
    bytes: Vec<u8>,
    /// Open-addressing hash table that finds duplicates. A slot has a key's position plus one; 0 marks an
    /// empty slot.
    seen: Vec<u32>,
    /// The hash of each key, and the key's position in `bytes`.
    keys: Vec<(u64, Range<u32>)>,
    /// The values of a list of operands, little-endian.
    integers: Vec<[u8; 8]>,
    /// Positions of the list's members, sorted by value. Used only if too many hashes collide.
    order: Vec<u32>,
    spans: Vec<Span>,
    /// The partition of the ranges that are added; `None` for all.
    partition: Option<u16>,
}

/// A key range from `lower` (inclusive) to `upper` (exclusive; `None` for unbounded). Both are positions in
/// `KeyBuilder::bytes`.
#[derive(Clone, Debug)]
struct Span {
    lower: Range<u32>,
    upper: Option<Range<u32>>,
    /// The partition of the range; `None` for all.
    partition: Option<u16>,
}

/// The ranges of one execution.
#[derive(Clone, Copy)]
pub(crate) struct RangesOf<'r> {
    pub template: &'r RangeTemplate,
    /// Whether they are read from their end to their beginning.
    pub descending: bool,
    /// Whether each range is in the partition of its first columns.
    pub by_range: bool,
}

/// The leading columns whose values an execution combines.
#[derive(Clone, Copy)]
struct RangeParts<'r> {
    definition: &'r TableDefinition,
    template: &'r RangeTemplate,
    prefix: &'r [KeyValues],
    /// The values of the column after the prefix of the template; empty for all.
    value_sets: &'r [ValueSet],
    by_range: bool,
}

/// The part of a key that determines its partition.
pub(crate) enum KeyPartition {
    /// The hash of the whole key.
    ByHash,
    /// Only some columns of the key, from whose values this partition number was computed.
    Number(u16),
}

impl Operand {
    /// The operand's value in one execution. Errors: those of the expression.
    #[inline]
    pub(crate) fn value<'a>(&'a self, values: &Values<'a>) -> Result<ValueRef<'a>> {
        match self {
            Operand::Parameter(ordinal) => Ok(values.parameters.get(*ordinal)),
            Operand::Constant(value) => Ok(value.as_ref()),
            Operand::Computed(expression) => expression.evaluate(None, values.parameters, values.scratch),
        }
    }
}

/// Stored keys are at most this long, so a longer key matches no row.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

impl KeyBuilder {
    /// Calls `push` with the partition, hash and bytes of each distinct key of the template. Skips keys that
    /// cannot occur in a row. Errors: 1436 for too many bytes, and those of the expressions that compute
    /// values.
    pub(crate) fn build_keys(
        &mut self,
        definition: &TableDefinition,
        template: &KeyTemplate,
        values: &Values<'_>,
        push: &mut impl FnMut(KeyPartition, u64, &[u8]),
    ) -> Result<()> {
        let outcome = self.push_built_keys((definition, template), values, push);
        self.shrink();
        outcome
    }

    fn push_built_keys(
        &mut self,
        (definition, template): (&TableDefinition, &KeyTemplate),
        values: &Values<'_>,
        push: &mut impl FnMut(KeyPartition, u64, &[u8]),
    ) -> Result<()> {
        self.keys.clear();
        self.bytes.clear();
        let is_base = template.columns == definition.primary().columns;
        let by_hash = !is_base || definition.partition_columns == template.columns;
        for key in &template.alternatives {
            self.add_alternative(KeyAlternative { definition, columns: &template.columns, values: key }, values)?;
        }
        self.remove_duplicates();
        let KeyBuilder { keys, bytes, partition_key, .. } = self;
        for (hash, range) in keys.iter() {
            let key = &bytes[range.start as usize..range.end as usize];
            let partition_source = match by_hash {
                true => KeyPartition::ByHash,
                false => partition_from_columns(definition, &template.columns, key, partition_key),
            };
            push(partition_source, *hash, key);
        }
        Ok(())
    }

    /// Adds all keys of one alternative to `keys`, including duplicates.
    fn add_alternative(&mut self, alternative: KeyAlternative<'_>, values: &Values<'_>) -> Result<()> {
        let several = alternative.values.iter().find(|values| !values.is_single());
        match several {
            None => self.add_key(alternative, &[], values),
            Some(KeyValues::List(list)) => {
                for operand in list {
                    let value = operand.value(values)?;
                    self.add_key(alternative, &[value], values)?;
                }
                Ok(())
            }
            Some(KeyValues::Parameters(ordinal)) => {
                for value in values.parameters.list(*ordinal) {
                    self.add_key(alternative, &[value], values)?;
                }
                Ok(())
            }
            Some(KeyValues::Parallel(_)) => for_each_combination(alternative.values, values, &mut |members| {
                self.add_key(alternative, members, values)
            }),
            Some(KeyValues::One(_) | KeyValues::Null) => Ok(()),
        }
    }

    #[inline]
    fn add_key(
        &mut self,
        alternative: KeyAlternative<'_>,
        members: &[ValueRef<'_>],
        values: &Values<'_>,
    ) -> Result<()> {
        let start = self.bytes.len();
        let is_possible = self.append_key(alternative, members, values)?;
        self.finish_key(start, is_possible);
        self.check_bytes()
    }

    /// Records the bytes from `start` on as a key if it can occur in a row, and removes them otherwise.
    #[inline(always)]
    fn finish_key(&mut self, start: usize, is_possible: bool) {
        if is_possible && self.bytes.len() - start <= KEY_BYTES_MAX {
            self.keys.push((key_hash(&self.bytes[start..]), start as u32..self.bytes.len() as u32));
        } else {
            self.bytes.truncate(start);
        }
    }

    /// Appends one key to `bytes`. `members` are the values for the columns that have several values. Returns
    /// false if the key cannot occur in a row.
    #[inline]
    fn append_key(
        &mut self,
        alternative: KeyAlternative<'_>,
        members: &[ValueRef<'_>],
        values: &Values<'_>,
    ) -> Result<bool> {
        let mut members = members.iter();
        for (column, part) in alternative.columns.iter().zip(alternative.values) {
            let value = match part {
                KeyValues::One(operand) => operand.value(values)?,
                KeyValues::Null => return Ok(false),
                KeyValues::List(_) | KeyValues::Parameters(_) | KeyValues::Parallel(_) => {
                    members.next().copied().unwrap_or(ValueRef::Null)
                }
            };
            let column = &alternative.definition.columns[usize::from(column.0)];
            if append_key_floor(column, value, values.scratch, &mut self.bytes) != KeyFit::Exact {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The partitions that the statement visits; `None` if no row can match.
    pub(crate) fn bind_scope(
        &mut self,
        definition: &TableDefinition,
        scope: &ScopeTemplate,
        values: &Values<'_>,
    ) -> Result<Option<PartitionScope>> {
        let ScopeTemplate::Bound(bound) = scope else { return Ok(Some(PartitionScope::All)) };
        self.partition_key.clear();
        for (column, operand) in bound {
            let column = &definition.columns[usize::from(column.0)];
            if append_key_floor(column, operand.value(values)?, values.scratch, &mut self.partition_key)
                != KeyFit::Exact
            {
                return Ok(None);
            }
        }
        Ok(Some(PartitionScope::One(partition_of(key_hash(&self.partition_key), definition.partition_count))))
    }

    /// Calls `push` with each range and its partition, or `None` for all partitions. The ranges of a
    /// partition come in ascending or descending key order and without overlaps.
    ///
    /// # Errors
    /// 1436 for too many ranges or bytes, and the errors of the expressions that compute bounds.
    pub(crate) fn build_ranges(
        &mut self,
        definition: &TableDefinition,
        ranges: RangesOf<'_>,
        values: &Values<'_>,
        push: &mut dyn FnMut(Option<u16>, KeyRange<'_>),
    ) -> Result<()> {
        let outcome = self.push_built_ranges(definition, ranges, values, push);
        self.shrink();
        outcome
    }

    fn push_built_ranges(
        &mut self,
        definition: &TableDefinition,
        RangesOf { template, descending, by_range }: RangesOf<'_>,
        values: &Values<'_>,
        push: &mut dyn FnMut(Option<u16>, KeyRange<'_>),
    ) -> Result<()> {
        self.bytes.clear();
        self.spans.clear();
        self.partition = None;
        let (prefix, value_sets) = (&template.prefix[..], &template.value_sets[..]);
        let parts = RangeParts { definition, template, prefix, value_sets, by_range };
        self.add_ranges(parts, values)?;
        if self.spans.len() > 1 {
            self.merge_spans();
        }
        if descending {
            self.spans.reverse();
        }
        let slice = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        for span in &self.spans {
            let lower = slice(&span.lower);
            let range = KeyRange {
                lower: (!lower.is_empty()).then_some((lower, true)),
                upper: span.upper.as_ref().map(|upper| (slice(upper), false)),
            };
            push(span.partition, range);
        }
        Ok(())
    }

    fn add_ranges(&mut self, parts: RangeParts<'_>, values: &Values<'_>) -> Result<()> {
        let mut several = parts.prefix.iter().filter(|values| !values.is_single());
        match (several.next(), several.next()) {
            (None, _) => self.add_ranges_after_prefix(parts, &[], values),
            (Some(KeyValues::List(list)), None) => list.iter().try_for_each(|operand| {
                let member = operand.value(values)?;
                self.add_ranges_after_prefix(parts, &[member], values)
            }),
            (Some(KeyValues::Parameters(ordinal)), None) => {
                let mut list = values.parameters.list(*ordinal);
                list.try_for_each(|member| self.add_ranges_after_prefix(parts, &[member], values))
            }
            _ => self.add_combined_ranges(parts, values),
        }
    }

    /// Adds the ranges that begin with one combination of values for the prefix columns.
    fn add_ranges_after_prefix(
        &mut self,
        parts: RangeParts<'_>,
        members: &[ValueRef<'_>],
        values: &Values<'_>,
    ) -> Result<()> {
        let RangeParts { definition, template, prefix, value_sets, by_range } = parts;
        self.key.clear();
        let mut rest = members.iter();
        for (column, part) in template.columns.iter().zip(prefix) {
            let column = RangeColumn::of(definition, template, *column);
            let value = match part {
                KeyValues::Null if column.definition.nullable => {
                    self.key.push(column.null());
                    continue;
                }
                KeyValues::Null => return Ok(()),
                KeyValues::One(operand) => operand.value(values)?,
                KeyValues::List(_) | KeyValues::Parameters(_) | KeyValues::Parallel(_) => {
                    rest.next().copied().unwrap_or(ValueRef::Null)
                }
            };
            if column.append_floor(value, values.scratch, &mut self.key) != KeyFit::Exact {
                return Ok(());
            }
        }
        if by_range {
            self.partition = self.partition_of_prefix(parts, members, values)?;
        }
        if value_sets.is_empty() {
            return self.add_prefix_span();
        }
        let next = template.columns.get(template.prefix.len());
        for set in value_sets {
            if let Some(column) = next {
                self.add_value_set(RangeColumn::of(definition, template, *column), set, values)?;
            }
        }
        Ok(())
    }

    /// The partition of the rows that have these values in the prefix columns; `None` if a partition column
    /// is not among them.
    fn partition_of_prefix(
        &mut self,
        RangeParts { definition, template, prefix, .. }: RangeParts<'_>,
        members: &[ValueRef<'_>],
        values: &Values<'_>,
    ) -> Result<Option<u16>> {
        self.partition_key.clear();
        for column in &definition.partition_columns {
            let place = template.columns.iter().position(|known| known == column);
            let Some((place, part)) = place.and_then(|place| Some((place, prefix.get(place)?))) else {
                return Ok(None);
            };
            let value = match part {
                KeyValues::One(operand) => operand.value(values)?,
                KeyValues::Null => return Ok(None),
                KeyValues::List(_) | KeyValues::Parameters(_) | KeyValues::Parallel(_) => {
                    let before = prefix[..place].iter().filter(|part| !part.is_single()).count();
                    members.get(before).copied().unwrap_or(ValueRef::Null)
                }
            };
            append_key_floor(
                &definition.columns[usize::from(column.0)],
                value,
                values.scratch,
                &mut self.partition_key,
            );
        }
        Ok(Some(partition_of(key_hash(&self.partition_key), definition.partition_count)))
    }

    /// Adds the range of all keys that begin with `self.key`.
    fn add_prefix_span(&mut self) -> Result<()> {
        let lower = self.append_truncated_key();
        let upper = self.append_successor();
        self.add_span(lower, upper)
    }

    fn add_value_set(&mut self, column: RangeColumn<'_>, set: &ValueSet, values: &Values<'_>) -> Result<()> {
        let length = self.key.len();
        let outcome = match set {
            ValueSet::Interval(interval) if column.descending => self.add_descending_interval(column, interval, values),
            ValueSet::Interval(interval) => self.add_interval(column.definition, interval, values),
            ValueSet::Values(KeyValues::Null) if column.definition.nullable => {
                self.key.push(column.null());
                self.add_prefix_span()
            }
            ValueSet::Values(KeyValues::Null) => Ok(()),
            ValueSet::Values(KeyValues::One(operand)) => {
                let value = operand.value(values)?;
                self.add_point(column, value, values)
            }
            ValueSet::Values(KeyValues::List(list)) => list.iter().try_for_each(|operand| {
                let value = operand.value(values)?;
                self.key.truncate(length);
                self.add_point(column, value, values)
            }),
            ValueSet::Values(KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal)) => {
                values.parameters.list(*ordinal).try_for_each(|value| {
                    self.key.truncate(length);
                    self.add_point(column, value, values)
                })
            }
            ValueSet::Prefix { pattern, escape } => {
                let pattern = pattern.value(values)?;
                self.add_like_prefix(column, pattern, *escape)
            }
        };
        self.key.truncate(length);
        outcome
    }

    fn add_point(&mut self, column: RangeColumn<'_>, value: ValueRef<'_>, values: &Values<'_>) -> Result<()> {
        match column.append_floor(value, values.scratch, &mut self.key) {
            KeyFit::Exact => self.add_prefix_span(),
            _ => Ok(()),
        }
    }

    fn add_like_prefix(&mut self, column: RangeColumn<'_>, pattern: ValueRef<'_>, escape: Option<char>) -> Result<()> {
        let ValueRef::Bytes(pattern) = pattern else { return Ok(()) };
        let start = self.key.len();
        if column.definition.nullable {
            self.key.push(1);
        }
        // Only string columns have LIKE ranges.
        let Some(collation) = column.definition.column_type.collation() else { return Ok(()) };
        let mut weights = Vec::new();
        collation.append_prefix_key(fixed_prefix(pattern, escape), &mut weights);
        append_escaped(&weights, &mut self.key);
        // Any text may follow the prefix, so remove the key's two-byte end mark.
        self.key.truncate(self.key.len() - 2);
        if column.descending {
            complement(&mut self.key[start..]);
        }
        self.add_prefix_span()
    }

    fn add_interval(&mut self, column: &ColumnDefinition, interval: &Interval, values: &Values<'_>) -> Result<()> {
        let length = self.key.len();
        let lower = match &interval.lower {
            None => self.append_floor(column),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match append_key_floor(column, value, values.scratch, &mut self.key) {
                    KeyFit::Null | KeyFit::TooHigh => return Ok(()),
                    KeyFit::TooLow => self.append_floor(column),
                    KeyFit::Exact if *inclusive => self.append_truncated_key(),
                    KeyFit::Exact | KeyFit::Above => match self.append_lower_after() {
                        Some(lower) => lower,
                        None => return Ok(()),
                    },
                }
            }
        };
        self.key.truncate(length);
        let upper = match &interval.upper {
            None => self.append_successor(),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match append_key_floor(column, value, values.scratch, &mut self.key) {
                    KeyFit::Null | KeyFit::TooLow => return Ok(()),
                    KeyFit::TooHigh => self.append_successor(),
                    KeyFit::Exact if !*inclusive && self.key.len() <= BOUND_BYTES_MAX => {
                        Some(self.append_truncated_key())
                    }
                    KeyFit::Exact | KeyFit::Above => self.append_successor(),
                }
            }
        };
        self.add_span(lower, upper)
    }

    /// Adds the range of an interval of a descending column: greater values come first, and NULL comes last.
    fn add_descending_interval(
        &mut self,
        column: RangeColumn<'_>,
        interval: &Interval,
        values: &Values<'_>,
    ) -> Result<()> {
        let length = self.key.len();
        let lower = match &interval.upper {
            None => self.append_truncated_key(),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match column.append_floor(value, values.scratch, &mut self.key) {
                    KeyFit::Null | KeyFit::TooLow => return Ok(()),
                    KeyFit::Exact if !*inclusive => match self.append_lower_after() {
                        Some(lower) => lower,
                        None => return Ok(()),
                    },
                    KeyFit::TooHigh | KeyFit::Exact | KeyFit::Above => self.append_truncated_key(),
                }
            }
        };
        self.key.truncate(length);
        let upper = match &interval.lower {
            None => self.append_ceiling(column),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match column.append_floor(value, values.scratch, &mut self.key) {
                    KeyFit::Null | KeyFit::TooHigh => return Ok(()),
                    KeyFit::TooLow => self.append_ceiling(column),
                    KeyFit::Exact if *inclusive => self.append_successor(),
                    KeyFit::Exact | KeyFit::Above if self.key.len() <= BOUND_BYTES_MAX => {
                        Some(self.append_truncated_key())
                    }
                    KeyFit::Exact | KeyFit::Above => self.append_successor(),
                }
            }
        };
        self.add_span(lower, upper)
    }

    /// Appends to `bytes` the least key above all keys that begin with `self.key` and have a value other than
    /// NULL in the next column, which is descending.
    fn append_ceiling(&mut self, column: RangeColumn<'_>) -> Option<Range<u32>> {
        if !column.definition.nullable {
            return self.append_successor();
        }
        let length = self.key.len();
        self.key.push(column.null());
        let ceiling =
            if length < BOUND_BYTES_MAX { Some(self.append_truncated_key()) } else { self.append_successor() };
        self.key.truncate(length);
        ceiling
    }

    /// Appends a lower bound for the keys above all keys that begin with `self.key`; `None` if there are
    /// none.
    fn append_lower_after(&mut self) -> Option<Range<u32>> {
        // Other keys begin with the bytes of a bound that is cut off.
        if self.key.len() > BOUND_BYTES_MAX { Some(self.append_truncated_key()) } else { self.append_successor() }
    }

    /// Appends to `bytes` the least key that begins with `self.key` and has a value other than NULL in the
    /// next column.
    fn append_floor(&mut self, column: &ColumnDefinition) -> Range<u32> {
        let length = self.key.len();
        if column.nullable {
            self.key.push(1);
        }
        let kept = self.append_truncated_key();
        self.key.truncate(length);
        kept
    }

    /// Appends `self.key` to `bytes`, at most [`BOUND_BYTES_MAX`] bytes of it.
    fn append_truncated_key(&mut self) -> Range<u32> {
        let start = self.bytes.len() as u32;
        let length = self.key.len().min(BOUND_BYTES_MAX);
        self.bytes.extend_from_slice(&self.key[..length]);
        start..self.bytes.len() as u32
    }

    /// Appends to `bytes` the least key above all keys that begin with `self.key`; `None` if no such key
    /// exists.
    fn append_successor(&mut self) -> Option<Range<u32>> {
        let start = self.bytes.len();
        let length = self.key.len().min(BOUND_BYTES_MAX);
        let mut end = length;
        while end > 0 && self.key[end - 1] == u8::MAX {
            end -= 1;
        }
        if end == 0 {
            return None;
        }
        self.bytes.extend_from_slice(&self.key[..end]);
        let last = self.bytes.len() - 1;
        self.bytes[last] += 1;
        Some(start as u32..self.bytes.len() as u32)
    }

    fn add_span(&mut self, lower: Range<u32>, upper: Option<Range<u32>>) -> Result<()> {
        self.check_bytes()?;
        if self.spans.len() >= RANGES_MAX {
            return Err(too_complex());
        }
        let slice = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        let is_empty = upper.as_ref().is_some_and(|upper| slice(&lower) >= slice(upper));
        if !is_empty {
            self.spans.push(Span { lower, upper, partition: self.partition });
        }
        Ok(())
    }

    /// Sorts the ranges of each partition and joins those that overlap or touch, so that no row is found
    /// twice.
    fn merge_spans(&mut self) {
        let KeyBuilder { bytes, spans, .. } = self;
        let slice = |range: &Range<u32>| &bytes[range.start as usize..range.end as usize];
        spans.sort_unstable_by(|left, right| {
            (left.partition, slice(&left.lower)).cmp(&(right.partition, slice(&right.lower)))
        });
        let mut kept = 0;
        for position in 1..spans.len() {
            let next = spans[position].clone();
            let joins = spans[kept].partition == next.partition
                && spans[kept].upper.as_ref().is_none_or(|upper| slice(&next.lower) <= slice(upper));
            if !joins {
                kept += 1;
                spans[kept] = next;
                continue;
            }
            let reaches_further = match (&spans[kept].upper, &next.upper) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(now), Some(next)) => slice(next) > slice(now),
            };
            if reaches_further {
                spans[kept].upper = next.upper;
            }
        }
        spans.truncate(kept + 1);
    }
}

/// The literal prefix of a LIKE pattern.
fn fixed_prefix(pattern: &[u8], escape: Option<char>) -> &[u8] {
    let escape = escape.and_then(|escape| u8::try_from(escape).ok());
    let end = pattern.iter().position(|byte| matches!(byte, b'%' | b'_') || Some(*byte) == escape);
    &pattern[..end.unwrap_or(pattern.len())]
}

/// The partition of a complete primary key.
pub(super) fn partition_of_key(
    definition: &TableDefinition,
    primary: &[ColumnNumber],
    key: &[u8],
    partition_key: &mut Vec<u8>,
) -> u16 {
    if definition.partition_columns == primary {
        return partition_of(key_hash(key), definition.partition_count);
    }
    match partition_from_columns(definition, primary, key, partition_key) {
        KeyPartition::Number(partition) => partition,
        KeyPartition::ByHash => partition_of(key_hash(key), definition.partition_count),
    }
}

/// The partition of a key when only some of its columns determine the partition. `columns` are all columns of
/// the key.
fn partition_from_columns(
    definition: &TableDefinition,
    columns: &[ColumnNumber],
    key: &[u8],
    partition_key: &mut Vec<u8>,
) -> KeyPartition {
    partition_key.clear();
    for column in &definition.partition_columns {
        let mut at = 0;
        for known in columns {
            let length = part_length(&definition.columns[usize::from(known.0)], &key[at..]);
            if known == column {
                partition_key.extend_from_slice(&key[at..at + length]);
            }
            at += length;
        }
    }
    KeyPartition::Number(partition_of(key_hash(partition_key), definition.partition_count))
}

/// Adds the primary keys of a template to the partitions' inputs.
pub(crate) fn push_keys(
    writer: &mut InputWriter<'_, '_>,
    key_builder: &mut KeyBuilder,
    definition: &TableDefinition,
    template: &KeyTemplate,
    values: &Values<'_>,
) -> Result<()> {
    let InputWriter { inputs, turn, parameters: sent } = writer;
    let (inputs, sent, buffers) = (&mut **inputs, *sent, &mut *turn.buffers);
    if let [only] = template.alternatives.as_slice()
        && only.iter().all(KeyValues::is_single)
        && definition.partition_columns == template.columns
    {
        // A point select. One key has no duplicates.
        if let Some((bytes, keys, value)) = single_integer(definition, template, only, values) {
            if let Some(key) = keys.leading_bytes(bytes, value) {
                let key = &key[..usize::from(bytes)];
                inputs.push_hashed_key(key_hash(key), key, sent, buffers);
            }
            return Ok(());
        }
        let alternative = KeyAlternative { definition, columns: &template.columns, values: only };
        key_builder.bytes.clear();
        if key_builder.append_key(alternative, &[], values)? && key_builder.bytes.len() <= KEY_BYTES_MAX {
            let key = &key_builder.bytes[..];
            inputs.push_hashed_key(key_hash(key), key, sent, buffers);
        }
        return Ok(());
    }
    let KeyBuilder { integers: gathered, seen, order, .. } = &mut *key_builder;
    if let Some((bytes, keys, integers)) = integer_list(definition, template, values, gathered) {
        let memory = (seen, order);
        // One loop for each key width, so that the compiler can inline the push.
        match bytes {
            4 => push_integers::<4>(integers, keys, memory, |hash, key| {
                inputs.push_hashed_key(hash, key, sent, buffers);
            }),
            8 => push_integers::<8>(integers, keys, memory, |hash, key| {
                inputs.push_hashed_key(hash, key, sent, buffers);
            }),
            3 => push_integers::<3>(integers, keys, memory, |hash, key| {
                inputs.push_hashed_key(hash, key, sent, buffers);
            }),
            2 => push_integers::<2>(integers, keys, memory, |hash, key| {
                inputs.push_hashed_key(hash, key, sent, buffers);
            }),
            _ => push_integers::<1>(integers, keys, memory, |hash, key| {
                inputs.push_hashed_key(hash, key, sent, buffers);
            }),
        }
        return Ok(());
    }
    key_builder.build_keys(definition, template, values, &mut |partition_source, hash, key| match partition_source {
        KeyPartition::ByHash => inputs.push_hashed_key(hash, key, sent, buffers),
        KeyPartition::Number(partition) => inputs.push_key_at(partition, key, sent, buffers),
    })
}

#[cfg(test)]
mod tests;
