//! Hot path, budget 120 instructions a key: converts the key and range templates of a plan into inputs of the
//! partitions, with the values of one execution. Once its memory has grown, it allocates nothing.

use std::ops::Range;

use junctor_expression::{Parameters, Scratch};
use junctor_gateway::{PartitionInputs, PartitionScope, TurnContext};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::{IntegerKeys, append_escaped};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{ColumnDefinition, ColumnType, TableDefinition};
use junctor_model::value::ValueRef;
use junctor_signals::input::KeyRange;

use super::bound::{KeyFit, append_key_floor};
use crate::plan::{Interval, KeyTemplate, KeyValues, Operand, Piece, RangeTemplate, ScopeTemplate};

/// Maximum length of a bound, in bytes. A longer bound is cut, which widens the range; the filter removes the
/// additional rows.
const BOUND_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of ranges of one statement; more is error 1436.
const RANGES_MAX: usize = 1 << 18;
/// Maximum distance of a key from the slot that its hash chooses. Random hashes hardly ever exceed it, but
/// hashes that an attacker chose do. Sorting then bounds the time.
const PROBES_MAX: usize = 64;

/// The parameters of one execution, and the scratch memory of its expressions.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    pub parameters: Parameters<'a>,
    pub scratch: &'a Scratch,
}

/// The destination of keys and ranges.
pub(crate) struct InputWriter<'i, 't> {
    pub inputs: &'i mut PartitionInputs,
    pub turn: &'i mut TurnContext<'t>,
    /// The parameters that accompany each key or range; empty if the program reads none.
    pub parameters: &'i [u8],
}

/// One alternative of a key template.
#[derive(Clone, Copy)]
struct KeyParts<'k> {
    definition: &'k TableDefinition,
    columns: &'k [ColumnNumber],
    /// The values of each column. At most one column has several.
    values: &'k [KeyValues],
}

/// Reusable memory for the keys of one statement, shared by all statements of the engine.
#[derive(Debug, Default)]
pub(crate) struct KeyMaker {
    key: Vec<u8>,
    partition_key: Vec<u8>,
    /// The keys or bounds of the statement, one after the other.
    bytes: Vec<u8>,
    /// Open-addressing hash table of positions in `keys` plus one; 0 marks an empty slot.
    seen: Vec<u32>,
    keys: Vec<(u64, Range<u32>)>,
    /// The values of a list of operands, little-endian.
    integers: Vec<[u8; 8]>,
    /// Positions of a list ordered by their integers; only used if too many hashes collide.
    order: Vec<u32>,
    spans: Vec<Span>,
}

/// A range from `lower` (inclusive) to `upper` (exclusive; `None` for unbounded). Both refer to the byte
/// buffer.
#[derive(Clone, Debug)]
struct Span {
    lower: Range<u32>,
    upper: Option<Range<u32>>,
}

/// The way in which the partition of a key is found.
pub(crate) enum KeyLocation {
    /// The hash of the whole key determines the partition.
    ByHash,
    /// The partition with this number.
    At(u16),
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

impl KeyMaker {
    /// Calls `push` once with each distinct key of the template, its partition and its hash. Keys that no row
    /// can have are skipped.
    pub(crate) fn keys(
        &mut self,
        definition: &TableDefinition,
        template: &KeyTemplate,
        values: &Values<'_>,
        push: &mut impl FnMut(KeyLocation, u64, &[u8]),
    ) -> Result<()> {
        self.keys.clear();
        self.bytes.clear();
        let is_base = template.columns == definition.primary().columns;
        let by_hash = !is_base || definition.partition_columns == template.columns;
        for key in &template.alternatives {
            self.alternative(KeyParts { definition, columns: &template.columns, values: key }, values)?;
        }
        self.drop_equal_keys();
        let KeyMaker { keys, bytes, partition_key, .. } = self;
        for (hash, range) in keys.iter() {
            let key = &bytes[range.start as usize..range.end as usize];
            let location = match by_hash {
                true => KeyLocation::ByHash,
                false => location_of(definition, &template.columns, key, partition_key),
            };
            push(location, *hash, key);
        }
        Ok(())
    }

    /// Adds all keys of one alternative to `keys`.
    fn alternative(&mut self, parts: KeyParts<'_>, values: &Values<'_>) -> Result<()> {
        let several = parts.values.iter().find(|values| !values.is_single());
        match several {
            None => self.keep_key(parts, None, values),
            Some(KeyValues::List(list)) => {
                for operand in list {
                    let value = operand.value(values)?;
                    self.keep_key(parts, Some(value), values)?;
                }
                Ok(())
            }
            Some(KeyValues::Parameters(ordinal)) => {
                for value in values.parameters.list(*ordinal) {
                    self.keep_key(parts, Some(value), values)?;
                }
                Ok(())
            }
            Some(KeyValues::One(_) | KeyValues::Null) => Ok(()),
        }
    }

    #[inline]
    fn keep_key(&mut self, parts: KeyParts<'_>, member: Option<ValueRef<'_>>, values: &Values<'_>) -> Result<()> {
        let start = self.bytes.len();
        let is_possible = self.append_key(parts, member, values)?;
        self.keep_from(start, is_possible);
        Ok(())
    }

    /// Keeps the bytes from `start` on as a key if a row can have it, and removes them otherwise.
    #[inline(always)]
    fn keep_from(&mut self, start: usize, is_possible: bool) {
        // No stored key is longer, so no row can match.
        if is_possible && self.bytes.len() - start <= usize::from(u16::MAX) {
            self.keys.push((key_hash(&self.bytes[start..]), start as u32..self.bytes.len() as u32));
        } else {
            self.bytes.truncate(start);
        }
    }

    /// Appends one key to `bytes`. `member` is the value of the column that has several. Returns false if no
    /// row can have the key.
    #[inline]
    fn append_key(&mut self, parts: KeyParts<'_>, member: Option<ValueRef<'_>>, values: &Values<'_>) -> Result<bool> {
        for (column, part) in parts.columns.iter().zip(parts.values) {
            let value = match part {
                KeyValues::One(operand) => operand.value(values)?,
                KeyValues::Null => return Ok(false),
                KeyValues::List(_) | KeyValues::Parameters(_) => member.unwrap_or(ValueRef::Null),
            };
            let column = &parts.definition.columns[usize::from(column.0)];
            if append_key_floor(column, value, &mut self.bytes) != KeyFit::Exact {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes duplicate keys and keeps the first of each. Uses a hash table with open addressing, and
    /// sorting if too many hashes collide.
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

    /// Does the work of [`KeyMaker::drop_equal_keys`] in a time that does not depend on the hashes.
    #[cold]
    fn sort_out_equal_keys(&mut self) {
        let KeyMaker { bytes, seen: positions, keys, .. } = self;
        let key = |position: u32| {
            let range = &keys[position as usize].1;
            &bytes[range.start as usize..range.end as usize]
        };
        positions.clear();
        positions.extend(0..keys.len() as u32);
        positions.sort_unstable_by(|left, right| (key(*left), left).cmp(&(key(*right), right)));
        positions.dedup_by(|next, first| key(*next) == key(*first));
        positions.sort_unstable();
        for (kept, position) in positions.iter().enumerate() {
            keys[kept] = keys[*position as usize].clone();
        }
        keys.truncate(positions.len());
    }

    /// The partitions of a scope; `None` if no row can match.
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
            if append_key_floor(column, operand.value(values)?, &mut self.partition_key) != KeyFit::Exact {
                return Ok(None);
            }
        }
        Ok(Some(PartitionScope::One(partition_of(key_hash(&self.partition_key), definition.partition_count))))
    }

    /// Calls `push` with each range, in ascending or descending key order and without overlaps.
    ///
    /// # Errors
    /// 1436 for too many ranges, and the errors of the expressions that compute bounds.
    pub(crate) fn ranges(
        &mut self,
        definition: &TableDefinition,
        (template, descending): (&RangeTemplate, bool),
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

    /// Adds the ranges for one combination of leading values.
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
            if append_key_floor(column, value, &mut self.key) != KeyFit::Exact {
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

    /// Adds the range of all keys that begin with the current key.
    fn keep_prefix_span(&mut self) -> Result<()> {
        let lower = self.keep_cut_key();
        let upper = self.successor();
        self.keep_span(lower, upper)
    }

    fn piece(
        &mut self,
        definition: &TableDefinition,
        column: ColumnNumber,
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
        match append_key_floor(column, value, &mut self.key) {
            KeyFit::Exact => self.keep_prefix_span(),
            _ => Ok(()),
        }
    }

    fn like(&mut self, column: &ColumnDefinition, pattern: ValueRef<'_>, escape: Option<char>) -> Result<()> {
        let ValueRef::Bytes(pattern) = pattern else { return Ok(()) };
        if column.nullable {
            self.key.push(1);
        }
        // Only string columns have LIKE ranges.
        let Some(collation) = column.column_type.collation() else { return Ok(()) };
        let mut weights = Vec::new();
        collation.append_prefix_key(fixed_prefix(pattern, escape), &mut weights);
        append_escaped(&weights, &mut self.key);
        // Any text may follow the prefix, so the end mark is removed.
        self.key.truncate(self.key.len() - 2);
        self.keep_prefix_span()
    }

    fn interval(&mut self, column: &ColumnDefinition, interval: &Interval, values: &Values<'_>) -> Result<()> {
        let length = self.key.len();
        let lower = match &interval.lower {
            None => self.keep_floor(column),
            Some((operand, inclusive)) => {
                let value = operand.value(values)?;
                match append_key_floor(column, value, &mut self.key) {
                    KeyFit::Null | KeyFit::TooHigh => return Ok(()),
                    KeyFit::TooLow => self.keep_floor(column),
                    KeyFit::Exact if *inclusive => self.keep_cut_key(),
                    KeyFit::Exact | KeyFit::Above => match self.successor() {
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
                match append_key_floor(column, value, &mut self.key) {
                    KeyFit::Null | KeyFit::TooLow => return Ok(()),
                    KeyFit::TooHigh => self.successor(),
                    KeyFit::Exact if !*inclusive && self.key.len() <= BOUND_BYTES_MAX => Some(self.keep_cut_key()),
                    KeyFit::Exact | KeyFit::Above => self.successor(),
                }
            }
        };
        self.keep_span(lower, upper)
    }

    /// Keeps the least key that begins with the current key and has a value other than NULL in the next
    /// column.
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

    /// Keeps the least key above all keys that begin with the current one; `None` if no such key exists.
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

    /// Sorts the ranges and joins those that overlap or touch, so that no row is found twice.
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
    match location_of(definition, primary, key, partition_key) {
        KeyLocation::At(partition) => partition,
        KeyLocation::ByHash => partition_of(key_hash(key), definition.partition_count),
    }
}

/// The partition of a key of which only some columns determine the partition. `columns` are the columns of
/// the key.
fn location_of(
    definition: &TableDefinition,
    columns: &[ColumnNumber],
    key: &[u8],
    partition_key: &mut Vec<u8>,
) -> KeyLocation {
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
    KeyLocation::At(partition_of(key_hash(partition_key), definition.partition_count))
}

/// Length of the first column's part of a key: fixed for numbers, up to the end mark for strings.
fn part_length(definition: &TableDefinition, column: ColumnNumber, bytes: &[u8]) -> usize {
    let column = &definition.columns[usize::from(column.0)];
    let marker = usize::from(column.nullable);
    if marker == 1 && bytes.first() == Some(&0) {
        return 1;
    }
    let rest = &bytes[marker..];
    let length = match column.column_type.fixed_bytes() {
        Some(length) => length,
        // A zero byte of data is escaped as 00 FF; 00 00 ends the part.
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

/// Writes the primary keys of a template into the inputs.
pub(crate) fn push_keys(
    writer: &mut InputWriter<'_, '_>,
    maker: &mut KeyMaker,
    definition: &TableDefinition,
    template: &KeyTemplate,
    values: &Values<'_>,
) -> Result<()> {
    let InputWriter { inputs, turn, parameters: sent } = writer;
    let (inputs, sent, buffers) = (&mut **inputs, *sent, &mut *turn.buffers);
    let KeyMaker { integers: gathered, seen, order, .. } = &mut *maker;
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
    maker.keys(definition, template, values, &mut |location, hash, key| match location {
        KeyLocation::ByHash => inputs.push_hashed_key(hash, key, sent, buffers),
        KeyLocation::At(partition) => inputs.push_key_at(partition, key, sent, buffers),
    })
}

/// Does the work of [`KeyMaker::keys`] for a list of integers in the only key column. Each key is pushed as
/// soon as it is known to be distinct.
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

/// Whether the integer at `position` is the first of its value in the list.
#[cold]
fn is_first_of_equals(integers: &[[u8; 8]], position: usize, order: &mut Vec<u32>) -> bool {
    if order.is_empty() {
        order.extend(0..integers.len() as u32);
        order.sort_unstable_by_key(|position| (integers[*position as usize], *position));
    }
    let first = order.partition_point(|earlier| integers[*earlier as usize] < integers[position]);
    order[first] as usize == position
}

/// The width, encoding and values of the key if it consists of one integer column, its values are a list of
/// integers, and its hash determines the partition; `None` otherwise. The values of a list of operands are
/// copied first.
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
