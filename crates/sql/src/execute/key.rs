//! Hot path, budget 120 instructions a key: keys and ranges of a plan with the values of one execution, sorted into inputs.
//! Nothing is allocated once the memory has grown.

use std::ops::Range;

use junctor_expression::{Parameters, Scratch};
use junctor_gateway::{PartitionInputs, PartitionScope, TurnContext};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnIndex;
use junctor_model::key::{IntegerKeys, append_escaped};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{ColumnDefinition, ColumnType, TableDefinition};
use junctor_model::value::ValueRef;
use junctor_signals::input::KeyRange;

use super::bound::{Place, append_place};
use crate::plan::{Interval, KeyTemplate, KeyValues, Operand, Piece, RangeTemplate, ScopeTemplate};

/// Bytes of the longest bound that is sent; a longer one is cut, which lets more keys in.
const BOUND_BYTES_MAX: usize = 16 * 1024;
/// Ranges of one statement.
const RANGES_MAX: usize = 1 << 18;
/// Slots that a key may be away from the one that its hash chooses. Chance hardly brings it further, values that were
/// chosen for their hashes do.
const PROBES_MAX: usize = 64;

/// The values of one execution.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    pub parameters: Parameters<'a>,
    pub scratch: &'a Scratch,
}

/// Memory for keys that are being made; one per engine.
#[derive(Debug, Default)]
pub(crate) struct KeyMaker {
    key: Vec<u8>,
    partition_key: Vec<u8>,
    /// All keys or bounds of the statement, one after the other.
    bytes: Vec<u8>,
    /// The keys of the statement by hash, to find equal ones.
    seen: Vec<u32>,
    keys: Vec<(u64, Range<u32>)>,
    /// The values of a list of operands, little-endian.
    integers: Vec<[u8; 8]>,
    /// The places of a list in the order of its integers, made when their hashes are too much alike.
    order: Vec<u32>,
    spans: Vec<Span>,
}

/// A range from `lower` (inclusive) to `upper` (exclusive; `None` is no end), as places in the bytes.
#[derive(Clone, Debug)]
struct Span {
    lower: Range<u32>,
    upper: Option<Range<u32>>,
}

/// A place for keys whose partition the caller has to know.
pub(crate) enum KeyPlace {
    /// The hash of the whole key chooses it.
    ByHash,
    /// This one.
    At(u16),
}

impl Operand {
    /// The value in one execution. Error: what computing it fails with.
    #[inline]
    pub(crate) fn value<'a>(&'a self, values: &Values<'a>) -> Result<ValueRef<'a>> {
        match self {
            Operand::Parameter(ordinal) => Ok(values.parameters.get(*ordinal)),
            Operand::Constant(value) => Ok(value.as_ref()),
            Operand::Computed(expression) => expression.evaluate(None, values.parameters, values.scratch),
        }
    }
}

impl KeyMaker {
    /// Calls `push` with each different key of the template, its hash, and where it belongs. Keys that no row can have are
    /// left out.
    pub(crate) fn keys(
        &mut self,
        definition: &TableDefinition,
        template: &KeyTemplate,
        values: &Values<'_>,
        push: &mut impl FnMut(KeyPlace, u64, &[u8]),
    ) -> Result<()> {
        self.keys.clear();
        self.bytes.clear();
        let is_base = template.columns == definition.primary().columns;
        let by_hash = !is_base || definition.partition_columns == template.columns;
        for key in &template.alternatives {
            self.alternative(definition, template, key, values)?;
        }
        self.drop_equal_keys();
        let KeyMaker { keys, bytes, partition_key, .. } = self;
        for (hash, range) in keys.iter() {
            let key = &bytes[range.start as usize..range.end as usize];
            let place =
                if by_hash { KeyPlace::ByHash } else { place_in(definition, &template.columns, key, partition_key) };
            push(place, *hash, key);
        }
        Ok(())
    }

    /// Every key of one alternative into `keys`.
    fn alternative(
        &mut self,
        definition: &TableDefinition,
        template: &KeyTemplate,
        key: &[KeyValues],
        values: &Values<'_>,
    ) -> Result<()> {
        let several = key.iter().find(|values| !values.is_single());
        match several {
            None => self.keep_key(definition, template, key, None, values),
            Some(KeyValues::List(list)) => {
                for operand in list {
                    let value = operand.value(values)?;
                    self.keep_key(definition, template, key, Some(value), values)?;
                }
                Ok(())
            }
            Some(KeyValues::Parameters(ordinal)) => {
                for value in values.parameters.list(*ordinal) {
                    self.keep_key(definition, template, key, Some(value), values)?;
                }
                Ok(())
            }
            Some(KeyValues::One(_) | KeyValues::Null) => Ok(()),
        }
    }

    fn keep_key(
        &mut self,
        definition: &TableDefinition,
        template: &KeyTemplate,
        key: &[KeyValues],
        member: Option<ValueRef<'_>>,
        values: &Values<'_>,
    ) -> Result<()> {
        let start = self.bytes.len();
        let is_possible = self.append_key(definition, template, key, member, values)?;
        self.keep_from(start, is_possible);
        Ok(())
    }

    /// Keeps what was appended since `start` as a key, if some row can have it.
    #[inline(always)]
    fn keep_from(&mut self, start: usize, is_possible: bool) {
        // A key that is longer than any stored one is none of them.
        if is_possible && self.bytes.len() - start <= usize::from(u16::MAX) {
            self.keys.push((key_hash(&self.bytes[start..]), start as u32..self.bytes.len() as u32));
        } else {
            self.bytes.truncate(start);
        }
    }

    /// Appends one key to `bytes`; `member` is the value of the column that has several. False when no row can have the key.
    #[inline]
    fn append_key(
        &mut self,
        definition: &TableDefinition,
        template: &KeyTemplate,
        key: &[KeyValues],
        member: Option<ValueRef<'_>>,
        values: &Values<'_>,
    ) -> Result<bool> {
        for (column, part) in template.columns.iter().zip(key) {
            let value = match part {
                KeyValues::One(operand) => operand.value(values)?,
                KeyValues::Null => return Ok(false),
                KeyValues::List(_) | KeyValues::Parameters(_) => member.unwrap_or(ValueRef::Null),
            };
            let column = &definition.columns[usize::from(column.0)];
            if append_place(column, value, &mut self.bytes) != Place::At {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps the first of equal keys, by open addressing on their hashes. Where that takes too long, by sorting.
    fn drop_equal_keys(&mut self) {
        if self.keys.len() < 2 {
            return;
        }
        let size = (self.keys.len() * 2).next_power_of_two();
        self.seen.clear();
        self.seen.resize(size, 0);
        let KeyMaker { bytes, seen, keys, .. } = self;
        let mut kept = 0;
        for position in 0..keys.len() {
            let (hash, range) = keys[position].clone();
            let key = &bytes[range.start as usize..range.end as usize];
            let mut slot = hash as usize & (size - 1);
            let is_new = loop {
                let Some(other) = seen[slot].checked_sub(1) else { break true };
                let (other_hash, other) = &keys[other as usize];
                if *other_hash == hash && bytes[other.start as usize..other.end as usize] == *key {
                    break false;
                }
                slot = (slot + 1) & (size - 1);
                if slot.wrapping_sub(hash as usize) & (size - 1) >= PROBES_MAX {
                    keys.drain(kept..position);
                    return self.sort_out_equal_keys();
                }
            };
            if is_new {
                keys[kept] = (hash, range);
                kept += 1;
                seen[slot] = kept as u32;
            }
        }
        keys.truncate(kept);
    }

    /// As `drop_equal_keys`, whatever the hashes.
    #[cold]
    fn sort_out_equal_keys(&mut self) {
        let KeyMaker { bytes, seen: places, keys, .. } = self;
        let key = |place: u32| {
            let range = &keys[place as usize].1;
            &bytes[range.start as usize..range.end as usize]
        };
        places.clear();
        places.extend(0..keys.len() as u32);
        places.sort_unstable_by(|left, right| (key(*left), left).cmp(&(key(*right), right)));
        places.dedup_by(|next, first| key(*next) == key(*first));
        places.sort_unstable();
        for (kept, place) in places.iter().enumerate() {
            keys[kept] = keys[*place as usize].clone();
        }
        keys.truncate(places.len());
    }

    /// The partitions of a scope; `None` when no row can be in any.
    pub(crate) fn scope(
        &mut self,
        definition: &TableDefinition,
        scope: &ScopeTemplate,
        values: &Values<'_>,
    ) -> Result<Option<PartitionScope>> {
        let ScopeTemplate::Bound(bound) = scope else { return Ok(Some(PartitionScope::All)) };
        self.partition_key.clear();
        for (column, operand) in bound {
            let column = &definition.columns[usize::from(column.0)];
            if append_place(column, operand.value(values)?, &mut self.partition_key) != Place::At {
                return Ok(None);
            }
        }
        Ok(Some(PartitionScope::One(partition_of(key_hash(&self.partition_key), definition.partition_count))))
    }

    /// Calls `push` with each range, in order and without overlaps.
    ///
    /// # Errors
    /// 1436 for too many ranges, and what computing a bound fails with.
    pub(crate) fn ranges(
        &mut self,
        definition: &TableDefinition,
        template: &RangeTemplate,
        descending: bool,
        values: &Values<'_>,
        push: &mut dyn FnMut(KeyRange<'_>),
    ) -> Result<()> {
        self.bytes.clear();
        self.spans.clear();
        self.prefixes(definition, template, values)?;
        if self.spans.len() > 1 {
            self.merge_spans();
        }
        if descending {
            self.spans.reverse();
        }
        let slice = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        for span in &self.spans {
            let lower = slice(&span.lower);
            push(KeyRange {
                lower: (!lower.is_empty()).then_some((lower, true)),
                upper: span.upper.as_ref().map(|upper| (slice(upper), false)),
            });
        }
        Ok(())
    }

    fn prefixes(&mut self, definition: &TableDefinition, template: &RangeTemplate, values: &Values<'_>) -> Result<()> {
        let several = template.prefix.iter().find(|values| !values.is_single());
        match several {
            Some(KeyValues::List(list)) => {
                for operand in list {
                    let member = operand.value(values)?;
                    self.prefix(definition, template, Some(member), values)?;
                }
                Ok(())
            }
            Some(KeyValues::Parameters(ordinal)) => {
                for member in values.parameters.list(*ordinal) {
                    self.prefix(definition, template, Some(member), values)?;
                }
                Ok(())
            }
            _ => self.prefix(definition, template, None, values),
        }
    }

    /// The ranges of one choice of leading values.
    fn prefix(
        &mut self,
        definition: &TableDefinition,
        template: &RangeTemplate,
        member: Option<ValueRef<'_>>,
        values: &Values<'_>,
    ) -> Result<()> {
        self.key.clear();
        for (column, part) in template.columns.iter().zip(&template.prefix) {
            let column = &definition.columns[usize::from(column.0)];
            let value = match part {
                KeyValues::Null if column.nullable => {
                    self.key.push(0);
                    continue;
                }
                KeyValues::Null => return Ok(()),
                KeyValues::One(operand) => operand.value(values)?,
                KeyValues::List(_) | KeyValues::Parameters(_) => member.unwrap_or(ValueRef::Null),
            };
            if append_place(column, value, &mut self.key) != Place::At {
                return Ok(());
            }
        }
        let next = template.columns.get(template.prefix.len());
        if template.pieces.is_empty() {
            return self.keep_prefix_span();
        }
        for piece in &template.pieces {
            if let Some(column) = next {
                self.piece(definition, *column, piece, values)?;
            }
        }
        Ok(())
    }

    /// The range of all keys that begin with the key made so far.
    fn keep_prefix_span(&mut self) -> Result<()> {
        let lower = self.keep_cut_key();
        let upper = self.successor();
        self.keep_span(lower, upper)
    }

    fn piece(
        &mut self,
        definition: &TableDefinition,
        column: ColumnIndex,
        piece: &Piece,
        values: &Values<'_>,
    ) -> Result<()> {
        let length = self.key.len();
        let definition = &definition.columns[usize::from(column.0)];
        let outcome = match piece {
            Piece::Interval(interval) => self.interval(definition, interval, values),
            Piece::Values(KeyValues::Null) if definition.nullable => {
                self.key.push(0);
                self.keep_prefix_span()
            }
            Piece::Values(KeyValues::Null) => Ok(()),
            Piece::Values(KeyValues::One(operand)) => {
                let value = operand.value(values)?;
                self.point(definition, value)
            }
            Piece::Values(KeyValues::List(list)) => list.iter().try_for_each(|operand| {
                let value = operand.value(values)?;
                self.key.truncate(length);
                self.point(definition, value)
            }),
            Piece::Values(KeyValues::Parameters(ordinal)) => values.parameters.list(*ordinal).try_for_each(|value| {
                self.key.truncate(length);
                self.point(definition, value)
            }),
            Piece::Prefix { pattern, escape } => {
                let pattern = pattern.value(values)?;
                self.like(definition, pattern, *escape)
            }
        };
        self.key.truncate(length);
        outcome
    }

    fn point(&mut self, column: &ColumnDefinition, value: ValueRef<'_>) -> Result<()> {
        match append_place(column, value, &mut self.key) {
            Place::At => self.keep_prefix_span(),
            _ => Ok(()),
        }
    }

    fn like(&mut self, column: &ColumnDefinition, pattern: ValueRef<'_>, escape: Option<char>) -> Result<()> {
        let ValueRef::Bytes(pattern) = pattern else { return Ok(()) };
        if column.nullable {
            self.key.push(1);
        }
        let fixed = fixed_prefix(pattern, escape);
        append_escaped(fixed, &mut self.key);
        // What follows the prefix may be anything, so its end mark goes.
        self.key.truncate(self.key.len() - 2);
        self.keep_prefix_span()
    }

    fn interval(&mut self, column: &ColumnDefinition, interval: &Interval, values: &Values<'_>) -> Result<()> {
        let length = self.key.len();
        let lower = match &interval.lower {
            None => self.keep_floor(column),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match append_place(column, value, &mut self.key) {
                    Place::Null | Place::TooHigh => return Ok(()),
                    Place::TooLow => self.keep_floor(column),
                    Place::At if *inclusive => self.keep_cut_key(),
                    Place::At | Place::Above => match self.successor() {
                        Some(lower) => lower,
                        None => return Ok(()),
                    },
                }
            }
        };
        self.key.truncate(length);
        let upper = match &interval.upper {
            None => self.successor(),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match append_place(column, value, &mut self.key) {
                    Place::Null | Place::TooLow => return Ok(()),
                    Place::TooHigh => self.successor(),
                    Place::At if !*inclusive && self.key.len() <= BOUND_BYTES_MAX => Some(self.keep_cut_key()),
                    Place::At | Place::Above => self.successor(),
                }
            }
        };
        self.keep_span(lower, upper)
    }

    /// The place of the least key that is not NULL with the key made so far as its beginning.
    fn keep_floor(&mut self, column: &ColumnDefinition) -> Range<u32> {
        let length = self.key.len();
        if column.nullable {
            self.key.push(1);
        }
        let kept = self.keep_cut_key();
        self.key.truncate(length);
        kept
    }

    fn keep_cut_key(&mut self) -> Range<u32> {
        let start = self.bytes.len() as u32;
        let length = self.key.len().min(BOUND_BYTES_MAX);
        self.bytes.extend_from_slice(&self.key[..length]);
        start..self.bytes.len() as u32
    }

    /// Keeps the first key after all that begin with the key made so far; `None` when there is none.
    fn successor(&mut self) -> Option<Range<u32>> {
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

    fn keep_span(&mut self, lower: Range<u32>, upper: Option<Range<u32>>) -> Result<()> {
        if self.spans.len() >= RANGES_MAX {
            return Err(Error::new(ErrorCode::StatementTooComplex, "The condition has too many ranges"));
        }
        let slice = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        let is_empty = upper.as_ref().is_some_and(|upper| slice(&lower) >= slice(upper));
        if !is_empty {
            self.spans.push(Span { lower, upper });
        }
        Ok(())
    }

    /// Sorts the ranges and joins those that touch.
    fn merge_spans(&mut self) {
        let KeyMaker { bytes, spans, .. } = self;
        let slice = |range: &Range<u32>| &bytes[range.start as usize..range.end as usize];
        spans.sort_unstable_by(|left, right| slice(&left.lower).cmp(slice(&right.lower)));
        let mut kept = 0;
        for position in 1..spans.len() {
            let next = spans[position].clone();
            let joins = spans[kept].upper.as_ref().is_none_or(|upper| slice(&next.lower) <= slice(upper));
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

/// The beginning of a LIKE pattern that stands for itself.
fn fixed_prefix(pattern: &[u8], escape: Option<char>) -> &[u8] {
    let escape = escape.and_then(|escape| u8::try_from(escape).ok());
    let end = pattern.iter().position(|byte| matches!(byte, b'%' | b'_') || Some(*byte) == escape);
    &pattern[..end.unwrap_or(pattern.len())]
}

/// The partition of a whole primary key by its bytes.
pub(super) fn partition_of_key(
    definition: &TableDefinition,
    primary: &[ColumnIndex],
    key: &[u8],
    partition_key: &mut Vec<u8>,
) -> u16 {
    if definition.partition_columns == primary {
        return partition_of(key_hash(key), definition.partition_count);
    }
    match place_in(definition, primary, key, partition_key) {
        KeyPlace::At(partition) => partition,
        KeyPlace::ByHash => partition_of(key_hash(key), definition.partition_count),
    }
}

/// The same where the partition columns are not the whole key; `columns` are those of the key.
fn place_in(
    definition: &TableDefinition,
    columns: &[ColumnIndex],
    key: &[u8],
    partition_key: &mut Vec<u8>,
) -> KeyPlace {
    partition_key.clear();
    for column in &definition.partition_columns {
        let mut at = 0;
        for known in columns {
            let length = part_length(definition, *known, &key[at..]);
            if known == column {
                partition_key.extend_from_slice(&key[at..at + length]);
            }
            at += length;
        }
    }
    KeyPlace::At(partition_of(key_hash(partition_key), definition.partition_count))
}

/// Bytes of the key part at the front: fixed for numbers, up to the end mark for strings.
fn part_length(definition: &TableDefinition, column: ColumnIndex, bytes: &[u8]) -> usize {
    let column = &definition.columns[usize::from(column.0)];
    let marker = usize::from(column.nullable);
    if marker == 1 && bytes.first() == Some(&0) {
        return 1;
    }
    let rest = &bytes[marker..];
    let length = match column.column_type.fixed_bytes() {
        Some(length) => length,
        // 00 is followed by FF where it is data and by 00 where the part ends.
        None => {
            let mut at = 0;
            while at + 1 < rest.len() && !(rest[at] == 0 && rest[at + 1] == 0) {
                at += if rest[at] == 0 { 2 } else { 1 };
            }
            at + 2
        }
    };
    (marker + length).min(bytes.len())
}

/// Sends keys of the table itself into the inputs.
pub(crate) fn push_keys(
    maker: &mut KeyMaker,
    definition: &TableDefinition,
    template: &KeyTemplate,
    values: &Values<'_>,
    sent: &[u8],
    inputs: &mut PartitionInputs,
    turn: &mut TurnContext<'_>,
) -> Result<()> {
    let buffers = &mut *turn.buffers;
    let KeyMaker { integers: gathered, seen, order, .. } = &mut *maker;
    if let Some((bytes, keys, integers)) = integer_list(definition, template, values, gathered) {
        let memory = (seen, order);
        // Each width has a loop of its own, into which the push is compiled.
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
    maker.keys(definition, template, values, &mut |place, hash, key| match place {
        KeyPlace::ByHash => inputs.push_hashed_key(hash, key, sent, buffers),
        KeyPlace::At(partition) => inputs.push_key_at(partition, key, sent, buffers),
    })
}

/// As [`KeyMaker::keys`] for a list of integers in the only column of a key: each key is pushed as soon as it is made and
/// found to be new.
#[inline(always)]
fn push_integers<const BYTES: usize>(
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

/// Whether no integer before that position of a list is the same.
#[cold]
fn is_first_of_equals(integers: &[[u8; 8]], position: usize, order: &mut Vec<u32>) -> bool {
    if order.is_empty() {
        order.extend(0..integers.len() as u32);
        order.sort_unstable_by_key(|place| (integers[*place as usize], *place));
    }
    let first = order.partition_point(|place| integers[*place as usize] < integers[position]);
    order[first] as usize == position
}

/// The width of the key, how it is made, and its values when it is one integer, they are a list of integers, and the hash
/// of the key chooses the partition. A list of operands is gathered first.
#[inline]
fn integer_list<'v>(
    definition: &TableDefinition,
    template: &KeyTemplate,
    values: &Values<'v>,
    gathered: &'v mut Vec<[u8; 8]>,
) -> Option<(u8, IntegerKeys, &'v [[u8; 8]])> {
    let ([column], [key]) = (template.columns.as_slice(), template.alternatives.as_slice()) else { return None };
    let [key @ (KeyValues::Parameters(_) | KeyValues::List(_))] = key.as_slice() else { return None };
    let is_base = template.columns == definition.primary().columns;
    let column = &definition.columns[usize::from(column.0)];
    let ColumnType::Integer { bytes, unsigned } = column.column_type else { return None };
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
        KeyValues::One(_) | KeyValues::Null => None,
    }
}

#[cfg(test)]
mod tests;
