//! Hot path: at most 20 instructions per number; no allocation once the output has grown.
//!
//! Keys are byte strings whose byte order is the SQL order. Within an index, no key is a prefix of another. A
//! nullable column starts with 0 for NULL and 1 for a value. Integers are big-endian at column width with the
//! sign bit flipped. A DOUBLE is its bits, all of them flipped if it is negative, and with the sign bit set
//! otherwise; -0 becomes 0. Temporal values and decimals are the bytes of the row ([`Packed`]). A string is
//! its collation weight key with every 0x00 written as 00 FF, followed
//! by 00 00.

use crate::collation::CollationId;
use crate::id::ColumnNumber;
use crate::row::RowView;
use crate::schema::{ColumnDefinition, IndexDefinition};
use crate::types::Packed;
use crate::value::ValueRef;

/// How the key bytes of a value are made. Several types share a form of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// Big-endian, with the sign bit flipped.
    Integer {
        /// 1, 2, 3, 4 or 8.
        bytes: u8,
        /// UNSIGNED.
        unsigned: bool,
    },
    /// The bits of a double, ordered.
    Double,
    /// The weights of a collation, escaped and terminated.
    Text(CollationId),
    /// The bytes of the row, which have the order of the values.
    Encoded(Packed),
}

/// Appends the key bytes of one value, which must already have the column's type. A value outside the
/// column's range gets the key of the nearest value inside it. NULL for a column that is not nullable appends
/// nothing.
#[inline]
pub fn append_value(part: KeyPart, nullable: bool, value: ValueRef<'_>, out: &mut Vec<u8>) {
    if nullable {
        out.push(u8::from(!value.is_null()));
    }
    match (part, value) {
        (_, ValueRef::Null) => {}
        (KeyPart::Integer { bytes, unsigned }, ValueRef::Int(value)) => {
            let value = if unsigned { value.max(0) as u64 } else { value as u64 };
            append_integer(bytes, unsigned, value, out);
        }
        (KeyPart::Integer { bytes, unsigned }, ValueRef::UInt(value)) => {
            let value = if unsigned { value } else { value.min(i64::MAX as u64) };
            append_integer(bytes, unsigned, value, out);
        }
        (KeyPart::Integer { bytes, unsigned }, value) => append_foreign_integer(bytes, unsigned, value, out),
        (KeyPart::Encoded(form), value) => append_encoded(form, value, out),
        (KeyPart::Double, value) => out.extend_from_slice(&double_key(number_of(value)).to_be_bytes()),
        (KeyPart::Text(collation), value) => {
            let start = out.len();
            // A number here is an error of the caller. It has no text, so it sorts as the empty string.
            let text = if let ValueRef::Bytes(bytes) = value { bytes } else { b"" };
            match collation.append_weights(text, out) {
                true => escape_from(start, out),
                false => out.extend_from_slice(&[0, 0]),
            }
        }
    }
}

/// Appends the key of a row in an index with these columns. Returns whether any key column is NULL.
#[inline]
pub fn append_row_key(columns: &[ColumnDefinition], key: &[ColumnNumber], row: RowView<'_>, out: &mut Vec<u8>) -> bool {
    let mut any_null = false;
    for index in key {
        let column = &columns[usize::from(index.0)];
        let value = row.column(*index);
        any_null |= value.is_null();
        append_value(column.column_type.key_part(), column.nullable, value, out);
    }
    any_null
}

/// Like [`append_row_key`], for the entries of an ordered index, whose descending parts are complemented. The
/// keys that find single rows, those of the primary key and of unique entries, are never complemented.
pub fn append_entry_key(
    columns: &[ColumnDefinition],
    key: &[ColumnNumber],
    descending: &[ColumnNumber],
    row: RowView<'_>,
    out: &mut Vec<u8>,
) {
    for index in key {
        let column = &columns[usize::from(index.0)];
        let start = out.len();
        append_value(column.column_type.key_part(), column.nullable, row.column(*index), out);
        if descending.contains(index) {
            complement(&mut out[start..]);
        }
    }
}

/// Reverses the order of key bytes.
#[inline]
pub fn complement(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

/// Complements the descending ones of the leading columns of an index in a key that has these columns.
pub fn complement_descending(columns: &[ColumnDefinition], index: &IndexDefinition, key: &mut [u8]) {
    let mut at = 0;
    for column in &index.columns {
        if at == key.len() {
            break;
        }
        let length = part_length(&columns[usize::from(column.0)], &key[at..]);
        if index.attributes.descending.contains(column) {
            complement(&mut key[at..at + length]);
        }
        at += length;
    }
}

/// Length in bytes of a key's first part: fixed for numbers, up to and including the end mark for strings.
pub fn part_length(column: &ColumnDefinition, bytes: &[u8]) -> usize {
    let marker = usize::from(column.nullable);
    if marker == 1 && bytes.first() == Some(&0) {
        return 1;
    }
    let rest = &bytes[marker..];
    let length = match column.column_type.key_part() {
        KeyPart::Integer { bytes, .. } => usize::from(bytes),
        KeyPart::Double => 8,
        KeyPart::Encoded(form) => form.bytes(),
        // A zero byte of data is escaped as 00 FF; 00 00 ends the part.
        KeyPart::Text(_) => {
            let mut at = 0;
            while at + 1 < rest.len() && !(rest[at] == 0 && rest[at + 1] == 0) {
                at += if rest[at] == 0 { 2 } else { 1 };
            }
            at + 2
        }
    };
    (marker + length).min(bytes.len())
}

/// Appends weights, or any other bytes, as one key part: escaped and terminated.
pub fn append_escaped(weights: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(weights);
    escape_from(start, out);
}

/// Appends the key bytes of an integer in a column of this width. A value outside the column's range gets the
/// key of the nearest value inside it.
#[inline]
pub fn append_integer(bytes: u8, unsigned: bool, value: u64, out: &mut Vec<u8>) {
    let bits = u32::from(bytes) * 8;
    match (bytes, unsigned) {
        (8, false) => out.extend_from_slice(&(value ^ (1 << 63)).to_be_bytes()),
        (8, true) => out.extend_from_slice(&value.to_be_bytes()),
        (4, false) => {
            let clamped = (value as i64).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
            out.extend_from_slice(&(clamped as u32 ^ (1 << 31)).to_be_bytes());
        }
        (4, true) => out.extend_from_slice(&(value.min(u64::from(u32::MAX)) as u32).to_be_bytes()),
        (_, false) => {
            let half = 1i64 << (bits - 1);
            let shifted = ((value as i64).clamp(-half, half - 1) + half) as u64;
            out.extend_from_slice(&shifted.to_be_bytes()[8 - usize::from(bytes)..]);
        }
        (_, true) => {
            let clamped = value.min((1 << bits) - 1);
            out.extend_from_slice(&clamped.to_be_bytes()[8 - usize::from(bytes)..]);
        }
    }
}

/// A converter from signed integers to the keys of an integer column that is not nullable.
#[derive(Clone, Copy, Debug)]
pub struct IntegerKeys {
    /// Added to a value, so that the column's lowest value has the key 0.
    offset: u64,
    /// The highest key of a signed integer in the column's range.
    last: u64,
}

impl IntegerKeys {
    /// A converter for a column of this many bytes.
    #[inline]
    pub fn new(bytes: u8, unsigned: bool) -> IntegerKeys {
        let unused_bits = 64 - u32::from(bytes) * 8;
        let half = 1 << 63 >> unused_bits;
        match (bytes, unsigned) {
            (8, true) => IntegerKeys { offset: 0, last: i64::MAX as u64 },
            (_, true) => IntegerKeys { offset: 0, last: u64::MAX >> unused_bits },
            (_, false) => IntegerKeys { offset: half, last: u64::MAX >> unused_bits },
        }
    }

    /// The key of a value in a column of `BYTES` bytes; `None` if the value is outside the column's range.
    #[inline(always)]
    pub fn key<const BYTES: usize>(self, value: i64) -> Option<[u8; BYTES]> {
        let key = (value as u64).wrapping_add(self.offset);
        let bytes = key.to_be_bytes().last_chunk().copied();
        if key <= self.last { bytes } else { None }
    }

    /// The key of a value in a column of `bytes` bytes, in the first bytes of the array. `None` if the column
    /// cannot have the value.
    #[inline(always)]
    pub fn leading_bytes(self, bytes: u8, value: i64) -> Option<[u8; 8]> {
        let key = (value as u64).wrapping_add(self.offset);
        (key <= self.last).then(|| (key << (64 - u32::from(bytes) * 8)).to_be_bytes())
    }
}

#[inline(never)]
fn append_encoded(form: Packed, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + form.bytes(), 0);
    // A value that is not one of the type is an error of the caller. It sorts as the lowest value.
    let written = form.write(value, &mut out[start..]);
    debug_assert!(written, "{value:?} is no value of {form:?}");
}

#[cold]
fn append_foreign_integer(bytes: u8, unsigned: bool, value: ValueRef<'_>, out: &mut Vec<u8>) {
    // The number of a YEAR, BIT, ENUM or SET has more digits than a double.
    if let ValueRef::UInt(value) = value.as_number() {
        return append_integer(bytes, unsigned, value, out);
    }
    let number = number_of(value);
    let value = if unsigned { number as u64 } else { number as i64 as u64 };
    append_integer(bytes, unsigned, value, out);
}

#[inline]
fn number_of(value: ValueRef<'_>) -> f64 {
    value.to_double().unwrap_or(0.0)
}

#[inline]
fn double_key(value: f64) -> u64 {
    // Adding 0 turns -0 into 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The number of the key of a FLOAT or DOUBLE column that is not nullable; `None` for other keys.
pub fn double_of_key(key: &[u8]) -> Option<f64> {
    let key = u64::from_be_bytes(key.try_into().ok()?);
    Some(f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key }))
}

/// Whether any byte is 0. Compares sixteen bytes at a time.
#[inline]
fn has_zero(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk::<16>() else { return bytes.contains(&0) };
    let mut least = *last;
    for step in bytes.as_chunks::<16>().0 {
        for (least, byte) in least.iter_mut().zip(step) {
            *least = (*byte).min(*least);
        }
    }
    least.into_iter().fold(0xFF, u8::min) == 0
}

/// Escapes the bytes appended since `start` in place, and terminates them.
#[inline]
fn escape_from(start: usize, out: &mut Vec<u8>) {
    if has_zero(&out[start..]) {
        let zeros = out[start..].iter().filter(|byte| **byte == 0).count();
        let mut read = out.len();
        out.resize(read + zeros, 0);
        let mut write = out.len();
        // From the back, so that each byte is moved before it is overwritten. Stops when no zero is left in
        // front.
        while read < write {
            read -= 1;
            write -= 1;
            if out[read] == 0 {
                out[write] = 0xFF;
                write -= 1;
                out[write] = 0;
            } else {
                out[write] = out[read];
            }
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::row::tests::{packed_type, value_of};
    use crate::types::DataType;
    use crate::value::Value;

    fn key(column_type: &DataType, nullable: bool, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        append_value(column_type.key_part(), nullable, value.as_ref(), &mut out);
        out
    }

    #[test]
    fn numbers_are_read_from_keys() {
        for number in [0.0, 1.0, -1.0, 7.5, -7.5, 16_777_216.0, 1e300, f64::MIN] {
            assert_eq!(double_of_key(&double_key(number).to_be_bytes()), Some(number));
        }
        assert_eq!(double_of_key(&[1, 2]), None);
    }

    /// The order of SQL: NULL first, numbers by value, strings by collation.
    fn order(column_type: &DataType, left: &Value, right: &Value) -> Ordering {
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => left.cmp(right),
            (Value::UInt(left), Value::UInt(right)) => left.cmp(right),
            (Value::Double(left), Value::Double(right)) => left.partial_cmp(right).unwrap(),
            (Value::Temporal(left), Value::Temporal(right)) => left.packed.cmp(&right.packed),
            (Value::Float(left), Value::Float(right)) => left.partial_cmp(right).unwrap(),
            (Value::Decimal(left), Value::Decimal(right)) => left.cmp(right),
            (Value::Bit(left), Value::Bit(right)) => left.number.cmp(&right.number),
            (Value::Choice(left), Value::Choice(right)) => left.number.cmp(&right.number),
            (Value::Bytes(left), Value::Bytes(right)) => column_type.collation().unwrap().compare(left, right),
            (left, right) => right.is_null().cmp(&left.is_null()),
        }
    }

    fn double() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>().prop_filter("SQL has no such number", |value| value.is_finite()),
            prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324]),
        ]
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[a-cA-C é\u{0}\u{1}ß\u{ff}]{0,6}".prop_map(String::into_bytes),
            prop::collection::vec(prop::sample::select(vec![0u8, 1, 0x20, b'a', b'b', 0xFE, 0xFF]), 0..6),
        ]
    }

    fn type_and_values() -> impl Strategy<Value = (DataType, bool, Vec<Value>)> {
        let integers =
            (prop::sample::select(vec![1u8, 2, 3, 4, 8]), any::<bool>()).prop_flat_map(|(bytes, unsigned)| {
                let shift = 64 - 8 * u32::from(bytes);
                let value =
                    prop_oneof![any::<u64>(), 0u64..300, (0u64..300).prop_map(|value| 0u64.wrapping_sub(value))];
                let value = value.prop_map(move |value| match unsigned {
                    true => Value::UInt((value << shift) >> shift),
                    false => Value::Int(((value << shift) as i64) >> shift),
                });
                (Just(DataType::integer(bytes, unsigned)), prop::collection::vec(value, 3))
            });
        let doubles = (Just(DataType::double()), prop::collection::vec(double().prop_map(Value::Double), 3));
        let texts = (prop::sample::select(CollationId::ALL.to_vec()), prop::collection::vec(text(), 3)).prop_map(
            |(collation, texts)| {
                (DataType::varchar(9, collation), texts.into_iter().map(Value::Bytes).collect::<Vec<_>>())
            },
        );
        let packed = packed_type().prop_flat_map(|column_type| {
            let values = prop::collection::vec(value_of(&column_type, false), 3);
            (Just(column_type), values)
        });
        (prop_oneof![integers, doubles, texts, packed], any::<bool>()).prop_map(
            |((column_type, mut values), nullable)| {
                if nullable {
                    values.push(Value::Null);
                }
                (column_type, nullable, values)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_order_of_keys_is_the_order_of_values((column_type, nullable, values) in type_and_values()) {
            for left in &values {
                for right in &values {
                    let keys = key(&column_type, nullable, left).cmp(&key(&column_type, nullable, right));
                    prop_assert_eq!(keys, order(&column_type, left, right), "{:?} and {:?} as {:?}", left, right, column_type);
                }
            }
        }

        #[test]
        fn no_key_is_a_prefix_of_another((column_type, nullable, values) in type_and_values()) {
            for left in &values {
                for right in &values {
                    let (left, right) = (key(&column_type, nullable, left), key(&column_type, nullable, right));
                    prop_assert!(left == right || !right.starts_with(&left));
                }
            }
        }
    }

    #[test]
    fn integer_keys_equal_the_keys_of_their_values() {
        fn check<const BYTES: usize>(values: &[i64]) {
            for unsigned in [false, true] {
                let bits = BYTES as u32 * 8;
                let range = match unsigned {
                    true => 0..=(1i128 << bits) - 1,
                    false => -(1i128 << (bits - 1))..=(1i128 << (bits - 1)) - 1,
                };
                let column_type = DataType::integer(BYTES as u8, unsigned);
                for value in values {
                    let expected =
                        range.contains(&i128::from(*value)).then(|| key(&column_type, false, &Value::Int(*value)));
                    let found = IntegerKeys::new(BYTES as u8, unsigned).key::<BYTES>(*value).map(|key| key.to_vec());
                    assert_eq!(found, expected, "{value} as {column_type:?}");
                    let leading = IntegerKeys::new(BYTES as u8, unsigned).leading_bytes(BYTES as u8, *value);
                    assert_eq!(leading.map(|bytes| bytes[..BYTES].to_vec()), expected, "{value} as {column_type:?}");
                }
            }
        }
        // Values around the limits of every width, signed or not, including the words that wrap.
        let ends = (0..64).flat_map(|bit| [1i64 << bit, (1i64 << bit).wrapping_neg()]);
        let values: Vec<i64> = ends.flat_map(|end| (-2..=2).map(move |step| end.wrapping_add(step))).collect();
        assert!(values.contains(&i64::MIN) && values.contains(&i64::MAX) && values.contains(&0));
        check::<1>(&values);
        check::<2>(&values);
        check::<3>(&values);
        check::<4>(&values);
        check::<8>(&values);
    }

    #[test]
    fn keys_have_the_documented_bytes() {
        let int = DataType::integer(4, false);
        let medium = DataType::integer(3, false);
        let binary = DataType::varchar(9, CollationId::BINARY);
        assert_eq!(key(&int, false, &Value::Int(1)), [0x80, 0, 0, 1]);
        assert_eq!(key(&int, true, &Value::Int(-1)), [1, 0x7F, 0xFF, 0xFF, 0xFF]);
        assert_eq!(key(&int, true, &Value::Null), [0]);
        assert_eq!(key(&medium, false, &Value::Int(-1)), [0x7F, 0xFF, 0xFF]);
        assert_eq!(key(&DataType::double(), false, &Value::Double(-0.0)), [0x80, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(key(&binary, false, &Value::Bytes(b"a\0\0b".to_vec())), b"a\0\xFF\0\xFFb\0\0");
        assert_eq!(key(&binary, false, &Value::Bytes(vec![])), [0, 0]);
    }

    #[test]
    fn a_number_out_of_range_has_the_key_of_the_nearest_number() {
        let tiny = DataType::integer(1, false);
        let int_unsigned = DataType::integer(4, true);
        assert_eq!(key(&tiny, false, &Value::Int(1000)), key(&tiny, false, &Value::Int(127)));
        assert_eq!(key(&tiny, false, &Value::UInt(u64::MAX)), key(&tiny, false, &Value::Int(127)));
        assert_eq!(key(&tiny, false, &Value::Int(-1000)), key(&tiny, false, &Value::Int(-128)));
        assert_eq!(key(&int_unsigned, false, &Value::Int(-1)), key(&int_unsigned, false, &Value::UInt(0)));
        assert_eq!(key(&int_unsigned, false, &Value::Double(1e30)), key(&int_unsigned, false, &Value::UInt(u64::MAX)));
    }
}
