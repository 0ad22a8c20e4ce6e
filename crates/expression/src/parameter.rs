//! Hot path: at most 15 instructions per lookup.
//!
//! The parameter values of one execution, encoded as one byte string. Signals carry the byte string
//! unchanged.
//!
//! The layout is `[values][offset u32 of each value][count u16]`, with little-endian integers. A value is a
//! tag byte and its content:
//!
//! | tag | value | content |
//! |---|---|---|
//! | 0 | NULL | |
//! | 1 | signed integer | 8 bytes |
//! | 2 | unsigned integer | 8 bytes |
//! | 3 | double | 8 bytes |
//! | 4 | decimal | u8 scale, 16 bytes |
//! | 5 | bytes | u32 length, the bytes |
//! | 6 | list | u32 count, then that many values, none of them a list |
//! | 7 | list of signed integers | u32 count, then 8 bytes each |
//! | 8 | FLOAT | 4 bytes |
//! | 9 | year, day, time or both | u8 kind, u8 digits, 8 bytes of [`Temporal::packed`] |
//! | 10 | BIT | u8 bytes of the text, 8 bytes |
//! | 11 | ENUM or SET | 8 bytes of the number, u32 length, the text |
//! | 12 | JSON document | u32 length, the bytes of `model::json` |
//! | 13 | decimal of more than 38 digits | u8 digits after the point, 37 bytes of [`Wide::to_bytes`] |

use junctor_model::decimal::Wide;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::is_valid;
use junctor_model::limit;
use junctor_model::temporal::{DIGITS_MAX, Temporal, TemporalKind};
use junctor_model::value::{Bit, ChoiceRef, ChoiceText, Decimal, ValueRef};

const TAG_NULL: u8 = 0;
const TAG_INT: u8 = 1;
const TAG_UINT: u8 = 2;
const TAG_DOUBLE: u8 = 3;
const TAG_DECIMAL: u8 = 4;
const TAG_BYTES: u8 = 5;
const TAG_LIST: u8 = 6;
const TAG_INTEGERS: u8 = 7;
const TAG_FLOAT: u8 = 8;
const TAG_TEMPORAL: u8 = 9;
const TAG_BIT: u8 = 10;
const TAG_CHOICE: u8 = 11;
const TAG_JSON: u8 = 12;
const TAG_WIDE_DECIMAL: u8 = 13;

/// The kinds of temporal values, by their number in the layout.
const TEMPORAL_KINDS: [TemporalKind; 5] =
    [TemporalKind::Year, TemporalKind::Date, TemporalKind::Time, TemporalKind::DateTime, TemporalKind::Timestamp];

/// Builds the byte string. The owner of a builder clears and reuses it, so that encoding allocates nothing
/// once the buffers have grown.
#[derive(Clone, Debug, Default)]
pub struct ParametersBuilder {
    values: Vec<u8>,
    offsets: Vec<u32>,
    /// For the open list: the position of its count in `values`, and the number of its values so far.
    list: Option<(usize, u32)>,
}

/// The parameter values of one execution, borrowed. A lookup never fails: malformed bytes read as NULL.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters<'a> {
    values: &'a [u8],
    offsets: &'a [[u8; 4]],
}

/// The values of one list parameter.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParameterList<'a> {
    rest: &'a [u8],
    remaining: u32,
    is_integers: bool,
}

impl ParametersBuilder {
    /// A builder without parameters.
    pub fn new() -> ParametersBuilder {
        ParametersBuilder::default()
    }

    /// Allocated memory for values, in bytes.
    pub fn capacity(&self) -> usize {
        self.values.capacity()
    }

    /// Removes all parameters and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.offsets.clear();
        self.list = None;
    }

    /// Adds the next parameter, or the next value of the open list.
    #[inline]
    pub fn push(&mut self, value: ValueRef<'_>) {
        match &mut self.list {
            Some((_, count)) => *count += 1,
            None => self.offsets.push(self.values.len() as u32),
        }
        append_value(value, &mut self.values);
    }

    /// Equivalent to [`Self::push`] of a signed integer, without the dispatch on its type.
    #[inline]
    pub fn push_int(&mut self, value: i64) {
        match &mut self.list {
            Some((_, count)) => *count += 1,
            None => self.offsets.push(self.values.len() as u32),
        }
        let mut bytes = [TAG_INT; 9];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        self.values.extend_from_slice(&bytes);
    }

    /// Adds a parameter that is a list of signed integers.
    #[inline]
    pub fn push_integers(&mut self, integers: impl ExactSizeIterator<Item = i64>) {
        self.end_list();
        self.offsets.push(self.values.len() as u32);
        self.values.push(TAG_INTEGERS);
        self.values.extend_from_slice(&(integers.len() as u32).to_le_bytes());
        let start = self.values.len();
        self.values.resize(start + integers.len() * 8, 0);
        for (bytes, integer) in self.values[start..].as_chunks_mut().0.iter_mut().zip(integers) {
            *bytes = integer.to_le_bytes();
        }
    }

    /// Opens a parameter that is a list. Values pushed before [`Self::end_list`] belong to it.
    pub fn begin_list(&mut self) {
        self.end_list();
        self.offsets.push(self.values.len() as u32);
        self.values.push(TAG_LIST);
        self.list = Some((self.values.len(), 0));
        self.values.extend_from_slice(&[0; 4]);
    }

    /// Closes the open list, if there is one.
    // The count precedes the values but is known only now.
    pub fn end_list(&mut self) {
        if let Some((at, count)) = self.list.take() {
            self.values[at..at + 4].copy_from_slice(&count.to_le_bytes());
        }
    }

    /// The number of parameters. A list counts as one.
    pub fn count(&self) -> usize {
        self.offsets.len()
    }

    /// Appends the byte string to `out`, and removes all parameters.
    ///
    /// Errors: 1390 beyond [`limit::PARAMETERS_MAX`] parameters, 1153 when the values exceed 4 GiB.
    pub fn append_to(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.end_list();
        if self.offsets.len() > limit::PARAMETERS_MAX {
            let message = "Prepared statement contains too many placeholders";
            return Err(Error::new(ErrorCode::TooManyParameters, message));
        }
        if u32::try_from(self.values.len()).is_err() {
            let message = "Got a packet bigger than 'max_allowed_packet' bytes";
            return Err(Error::new(ErrorCode::PacketTooLarge, message));
        }
        // Values move to an empty output without a copy.
        match out.is_empty() {
            true => std::mem::swap(out, &mut self.values),
            false => out.extend_from_slice(&self.values),
        }
        for offset in &self.offsets {
            out.extend_from_slice(&offset.to_le_bytes());
        }
        out.extend_from_slice(&(self.offsets.len() as u16).to_le_bytes());
        self.clear();
        Ok(())
    }
}

impl<'a> Parameters<'a> {
    /// No parameters.
    pub const NONE: Parameters<'static> = Parameters { values: &[], offsets: &[] };

    /// A view of the byte string that [`ParametersBuilder::append_to`] wrote. Empty or malformed bytes have
    /// no parameters.
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Parameters<'a> {
        Parameters::split(bytes).unwrap_or(Parameters::NONE)
    }

    /// The parameters at these offsets in `values`, which are little-endian.
    #[inline]
    pub fn from_parts(values: &'a [u8], offsets: &'a [[u8; 4]]) -> Parameters<'a> {
        Parameters { values, offsets }
    }

    /// The values and their little-endian offsets, the inverse of [`Self::from_parts`].
    pub fn parts(&self) -> (&'a [u8], &'a [[u8; 4]]) {
        (self.values, self.offsets)
    }

    /// Whether the byte string is well-formed to its end. Check this before using bytes from another node.
    pub fn is_well_formed(bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let Some(parameters) = Parameters::split(bytes) else { return false };
        (0..parameters.offsets.len()).all(|ordinal| {
            let Some(at) = parameters.at(ordinal as u16) else { return false };
            match at.first() {
                Some(&TAG_INTEGERS) => {
                    let Some((count, rest)) = at[1..].split_first_chunk() else { return false };
                    rest.len() / 8 >= u32::from_le_bytes(*count) as usize
                }
                Some(&TAG_LIST) => {
                    let Some(count) = at.get(1..).and_then(|rest| rest.first_chunk::<4>()) else { return false };
                    let mut rest = &at[5..];
                    (0..u32::from_le_bytes(*count)).all(|_| match read_value(rest) {
                        Some((_, after)) => {
                            rest = after;
                            true
                        }
                        None => false,
                    })
                }
                _ => read_value(at).is_some(),
            }
        })
    }

    /// The number of parameters. A list counts as one.
    pub fn count(&self) -> usize {
        self.offsets.len()
    }

    /// The value of one parameter. NULL for a list, and for an ordinal without a parameter.
    #[inline]
    pub fn get(&self, ordinal: u16) -> ValueRef<'a> {
        match self.at(ordinal) {
            Some([TAG_INT, rest @ ..]) if let Some(bytes) = rest.first_chunk() => {
                ValueRef::Int(i64::from_le_bytes(*bytes))
            }
            Some(bytes) => read_single(bytes),
            None => ValueRef::Null,
        }
    }

    /// The values of a list parameter. A parameter that is not a list counts as a list of one value.
    #[inline]
    pub fn list(&self, ordinal: u16) -> ParameterList<'a> {
        let Some(at) = self.at(ordinal) else { return ParameterList::default() };
        let (rest, remaining) = match at {
            [TAG_LIST | TAG_INTEGERS, a, b, c, d, rest @ ..] => (rest, u32::from_le_bytes([*a, *b, *c, *d])),
            _ => (at, 1),
        };
        ParameterList { rest, remaining, is_integers: at.first() == Some(&TAG_INTEGERS) }
    }

    fn split(bytes: &'a [u8]) -> Option<Parameters<'a>> {
        let (bytes, count) = bytes.split_last_chunk::<2>()?;
        let offsets_bytes = usize::from(u16::from_le_bytes(*count)) * 4;
        let (values, offsets) = bytes.split_at_checked(bytes.len().checked_sub(offsets_bytes)?)?;
        Some(Parameters { values, offsets: offsets.as_chunks().0 })
    }

    #[inline]
    fn at(&self, ordinal: u16) -> Option<&'a [u8]> {
        let offset = self.offsets.get(usize::from(ordinal))?;
        self.values.get(u32::from_le_bytes(*offset) as usize..)
    }
}

impl<'a> ParameterList<'a> {
    /// The values as little-endian bytes if this is a list of signed integers (tag 7).
    #[inline]
    pub fn integers(&self) -> Option<&'a [[u8; 8]]> {
        let integers = self.rest.as_chunks().0;
        if self.is_integers { integers.get(..self.remaining as usize) } else { None }
    }
}

impl<'a> Iterator for ParameterList<'a> {
    type Item = ValueRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<ValueRef<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let (value, rest) = match self.is_integers {
            true => {
                self.rest.split_first_chunk().map(|(bytes, rest)| (ValueRef::Int(i64::from_le_bytes(*bytes)), rest))
            }
            false => read_value(self.rest),
        }?;
        self.rest = rest;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.remaining as usize))
    }
}

/// Appends one value with its tag. [`read_value`] is the inverse.
#[inline]
pub fn append_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let eight = |tag: u8, bytes: [u8; 8], out: &mut Vec<u8>| {
        out.push(tag);
        out.extend_from_slice(&bytes);
    };
    match value {
        ValueRef::Null => out.push(TAG_NULL),
        ValueRef::Int(value) => eight(TAG_INT, value.to_le_bytes(), out),
        ValueRef::UInt(value) => eight(TAG_UINT, value.to_le_bytes(), out),
        ValueRef::Double(value) => eight(TAG_DOUBLE, value.to_le_bytes(), out),
        ValueRef::Decimal(Decimal::Narrow { mantissa, scale }) => {
            out.extend_from_slice(&[TAG_DECIMAL, scale]);
            out.extend_from_slice(&mantissa.to_le_bytes());
        }
        ValueRef::Bytes(bytes) => {
            out.push(TAG_BYTES);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        other => append_other(other, out),
    }
}

#[inline(never)]
fn append_other(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Float(value) => {
            out.push(TAG_FLOAT);
            out.extend_from_slice(&value.to_le_bytes());
        }
        ValueRef::Temporal(value) => {
            let kind = TEMPORAL_KINDS.iter().position(|kind| *kind == value.kind).unwrap_or(0) as u8;
            out.extend_from_slice(&[TAG_TEMPORAL, kind, value.digits]);
            out.extend_from_slice(&value.packed.to_le_bytes());
        }
        ValueRef::Bit(bit) => {
            out.extend_from_slice(&[TAG_BIT, bit.bytes]);
            out.extend_from_slice(&bit.number.to_le_bytes());
        }
        ValueRef::Choice(choice) => {
            out.push(TAG_CHOICE);
            out.extend_from_slice(&choice.number.to_le_bytes());
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            choice.append_text(out);
            let length = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        ValueRef::Json(document) => {
            out.push(TAG_JSON);
            out.extend_from_slice(&(document.len() as u32).to_le_bytes());
            out.extend_from_slice(document);
        }
        ValueRef::Decimal(Decimal::Wide(wide)) => {
            out.extend_from_slice(&[TAG_WIDE_DECIMAL, wide.scale()]);
            out.extend_from_slice(&wide.to_bytes());
        }
        _ => out.push(TAG_NULL),
    }
}

#[inline(never)]
fn read_other(tag: u8, rest: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    match tag {
        TAG_FLOAT => {
            let (bytes, rest) = rest.split_first_chunk()?;
            let value = f32::from_le_bytes(*bytes);
            value.is_finite().then_some((ValueRef::Float(value), rest))
        }
        TAG_TEMPORAL => {
            let ([kind, digits], rest) = rest.split_first_chunk::<2>()?;
            let (packed, rest) = rest.split_first_chunk()?;
            let kind = *TEMPORAL_KINDS.get(usize::from(*kind))?;
            let value = Temporal { kind, digits: *digits, packed: i64::from_le_bytes(*packed) };
            (*digits <= DIGITS_MAX && value.is_valid()).then_some((ValueRef::Temporal(value), rest))
        }
        TAG_BIT => {
            let (bytes, rest) = rest.split_first()?;
            let (number, rest) = rest.split_first_chunk()?;
            let value = Bit { number: u64::from_le_bytes(*number), bytes: *bytes };
            (1..=8).contains(bytes).then_some((ValueRef::Bit(value), rest))
        }
        TAG_CHOICE => {
            let (number, rest) = rest.split_first_chunk()?;
            let (length, rest) = rest.split_first_chunk()?;
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            let choice = ChoiceRef { number: u64::from_le_bytes(*number), text: ChoiceText::Text(text) };
            Some((ValueRef::Choice(choice), rest))
        }
        TAG_WIDE_DECIMAL => {
            let (scale, rest) = rest.split_first()?;
            let (bytes, rest) = rest.split_first_chunk()?;
            Some((ValueRef::Decimal(Wide::from_bytes(bytes, *scale)?), rest))
        }
        TAG_JSON => {
            let (length, rest) = rest.split_first_chunk()?;
            let (document, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            is_valid(document).then_some((ValueRef::Json(document), rest))
        }
        _ => None,
    }
}

// A separate function keeps the values of every type out of the callers of `get`.
#[inline(never)]
fn read_single(bytes: &[u8]) -> ValueRef<'_> {
    read_value(bytes).map_or(ValueRef::Null, |(value, _)| value)
}

/// Reads the value at the front and returns the bytes after it; `None` when they are malformed. Lists are not
/// values.
#[inline]
pub fn read_value(bytes: &[u8]) -> Option<(ValueRef<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    match *tag {
        TAG_NULL => Some((ValueRef::Null, rest)),
        TAG_INT => rest.split_first_chunk().map(|(bytes, rest)| (ValueRef::Int(i64::from_le_bytes(*bytes)), rest)),
        TAG_UINT => rest.split_first_chunk().map(|(bytes, rest)| (ValueRef::UInt(u64::from_le_bytes(*bytes)), rest)),
        TAG_DOUBLE => {
            let (bytes, rest) = rest.split_first_chunk()?;
            let value = f64::from_le_bytes(*bytes);
            value.is_finite().then_some((ValueRef::Double(value), rest))
        }
        TAG_DECIMAL => {
            let (scale, rest) = rest.split_first()?;
            let (bytes, rest) = rest.split_first_chunk()?;
            let (mantissa, scale) = (i128::from_le_bytes(*bytes), *scale);
            let fits =
                scale <= crate::decimal::DECIMAL_SCALE_MAX && mantissa.unsigned_abs() < crate::decimal::MANTISSA_LIMIT;
            fits.then_some((ValueRef::Decimal(Decimal::Narrow { mantissa, scale }), rest))
        }
        TAG_BYTES => {
            let (length, rest) = rest.split_first_chunk()?;
            let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            Some((ValueRef::Bytes(bytes), rest))
        }
        tag => read_other(tag, rest),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use junctor_model::value::Value;

    pub(crate) fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
            any::<f64>().prop_filter("SQL has no NaN or infinity", |value| value.is_finite()).prop_map(Value::Double),
            (any::<i64>(), 0u8..=30)
                .prop_map(|(mantissa, scale)| Value::Decimal(Decimal::Narrow { mantissa: mantissa.into(), scale })),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
        ]
    }

    /// One parameter of a test.
    #[derive(Clone, Debug)]
    enum Given {
        /// One value; or a list if there are none or several.
        Values(Vec<Value>),
        /// A list of signed integers of any length.
        Integers(Vec<i64>),
    }

    fn given(length_max: usize) -> impl Strategy<Value = Vec<Given>> {
        let integer = prop_oneof![any::<i64>(), -3i64..3, prop::sample::select(vec![i64::MIN, i64::MAX])];
        let given = prop_oneof![
            2 => prop::collection::vec(value(), 0..5).prop_map(Given::Values),
            1 => prop::collection::vec(integer, 0..20).prop_map(Given::Integers),
        ];
        prop::collection::vec(given, 0..length_max)
    }

    fn encoded(parameters: &[Given]) -> Vec<u8> {
        let mut builder = ParametersBuilder::new();
        for given in parameters {
            match given {
                Given::Integers(integers) => builder.push_integers(integers.iter().copied()),
                Given::Values(values) => match &values[..] {
                    [single] => builder.push(single.as_ref()),
                    list => {
                        builder.begin_list();
                        list.iter().for_each(|value| builder.push(value.as_ref()));
                        builder.end_list();
                    }
                },
            }
        }
        let mut bytes = Vec::new();
        builder.append_to(&mut bytes).unwrap();
        bytes
    }

    fn integers_of(bytes: &[[u8; 8]]) -> Vec<i64> {
        bytes.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
    }

    proptest! {
        #[test]
        fn parameters_and_lists_read_back(parameters in given(8)) {
            let bytes = encoded(&parameters);
            prop_assert!(Parameters::is_well_formed(&bytes));
            let view = Parameters::from_bytes(&bytes);
            prop_assert_eq!(view.count(), parameters.len());
            for (ordinal, given) in parameters.iter().enumerate() {
                let list = view.list(ordinal as u16);
                let integers: Option<Vec<i64>> = list.integers().map(integers_of);
                let values: Vec<_> = list.map(ValueRef::to_value).collect();
                let single = view.get(ordinal as u16).to_value();
                match given {
                    Given::Integers(given) => {
                        prop_assert_eq!(values, given.iter().copied().map(Value::Int).collect::<Vec<_>>());
                        prop_assert_eq!((integers.as_ref(), single), (Some(given), Value::Null));
                    }
                    Given::Values(given) => {
                        prop_assert_eq!(&values, given);
                        let expected = if let [single] = &given[..] { single.clone() } else { Value::Null };
                        prop_assert_eq!((integers, single), (None, expected));
                    }
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic_a_reader(
            parameters in given(5),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            keep in any::<prop::sample::Index>(),
        ) {
            let mut bytes = encoded(&parameters);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len() - keep.index(bytes.len()) / 2);
            let is_well_formed = Parameters::is_well_formed(&bytes);
            let view = Parameters::from_bytes(&bytes);
            for ordinal in 0..10 {
                let _ = view.get(ordinal);
                let list = view.list(ordinal);
                prop_assert!(list.take(1_000_000).count() < 1_000_000);
                if let Some(integers) = list.integers() {
                    let values: Vec<_> = list.map(ValueRef::to_value).collect();
                    prop_assert_eq!(values, integers_of(integers).into_iter().map(Value::Int).collect::<Vec<_>>());
                }
                prop_assert!(!is_well_formed || list.count() == list.size_hint().1.unwrap_or(0));
            }
        }
    }

    #[test]
    fn a_list_that_claims_too_many_integers_is_malformed() {
        let mut bytes = encoded(&[Given::Integers(vec![1, 2, 3])]);
        // The count follows the tag byte.
        bytes[1] += 1;
        assert!(!Parameters::is_well_formed(&bytes));
        let list = Parameters::from_bytes(&bytes).list(0);
        assert_eq!((list.integers(), list.count()), (None, 3));
    }

    #[test]
    fn a_builder_is_used_again_after_clear() {
        let mut builder = ParametersBuilder::new();
        builder.begin_list();
        builder.push(ValueRef::Int(1));
        builder.clear();
        builder.push(ValueRef::Int(2));
        let mut bytes = Vec::new();
        builder.append_to(&mut bytes).unwrap();
        let view = Parameters::from_bytes(&bytes);
        assert_eq!((view.count(), view.get(0), view.get(1)), (1, ValueRef::Int(2), ValueRef::Null));
    }

    #[test]
    fn no_bytes_are_no_parameters() {
        assert_eq!(Parameters::from_bytes(&[]).count(), 0);
        assert!(Parameters::is_well_formed(&[]));
        assert_eq!(Parameters::NONE.get(0), ValueRef::Null);
    }
}
