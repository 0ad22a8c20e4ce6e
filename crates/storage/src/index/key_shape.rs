//! How the key of an index is compared with a row and built from a row. This is decided once per index.

use junctor_model::collation::CollationId;
use junctor_model::id::ColumnNumber;
use junctor_model::key::{KeyPart, append_entry_key, append_row_key};
use junctor_model::key_list::{ListKey, list_column};
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, IndexDefinition};
use junctor_model::value::ValueRef;

/// The key columns of one index.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    columns: Box<[ColumnNumber]>,
    /// The columns whose parts of the key are complemented. Such a key is always built.
    descending: Box<[ColumnNumber]>,
    /// Set if the key is one integer column that is never NULL. Such a key is compared without building it.
    integer: Option<IntegerKey>,
    /// The offsets of the columns, if all of them are in the fixed part. A stored image contains the fixed
    /// part even if long values are in overflow pages.
    fixed: Option<Box<[FixedPart]>>,
    /// How to compare each column, if all of them can be compared without building the key.
    direct: Option<Box<[DirectPart]>>,
    /// The column with a list of elements, each of which is in a key of its own: a multi-valued index.
    list: Option<ColumnNumber>,
}

#[derive(Clone, Copy, Debug)]
enum DirectPart {
    Integer(IntegerKey),
    /// A VARBINARY, whose weights are its bytes.
    Binary(ColumnNumber),
}

#[derive(Clone, Copy, Debug)]
struct FixedPart {
    start: usize,
    end: usize,
    null_byte: usize,
    /// 0 for a column that is never NULL.
    null_mask: u8,
}

#[derive(Clone, Copy, Debug)]
struct IntegerKey {
    /// The column's offset in an image; the same in every image.
    offset: usize,
    bytes: u8,
    is_signed: bool,
}

impl KeyShape {
    pub(crate) fn new(definitions: &[ColumnDefinition], columns: &[ColumnNumber]) -> KeyShape {
        let definition = |column: &ColumnNumber| &definitions[usize::from(column.0)];
        let fixed: Option<Box<[FixedPart]>> = columns.iter().map(|column| fixed_part(definitions, *column)).collect();
        let direct = |column: &ColumnNumber| match definition(column).column_type.key_part() {
            _ if definition(column).nullable => None,
            KeyPart::Integer { bytes, unsigned } => {
                let offset = fixed_part(definitions, *column)?.start;
                Some(DirectPart::Integer(IntegerKey { offset, bytes, is_signed: !unsigned }))
            }
            KeyPart::Text(CollationId::BINARY) if definition(column).column_type.is_variable() => {
                Some(DirectPart::Binary(*column))
            }
            KeyPart::Double | KeyPart::Text(_) | KeyPart::Encoded(_) => None,
        };
        let direct: Option<Box<[DirectPart]>> = columns.iter().map(direct).collect();
        let integer = match direct.as_deref() {
            Some([DirectPart::Integer(integer)]) => Some(*integer),
            _ => None,
        };
        KeyShape { columns: columns.into(), descending: Box::default(), integer, fixed, direct, list: None }
    }

    /// The shape of the entries of an ordered index.
    pub(crate) fn of_index(definitions: &[ColumnDefinition], index: &IndexDefinition) -> KeyShape {
        let shape = KeyShape { list: list_column(definitions, index), ..KeyShape::new(definitions, &index.columns) };
        match &index.attributes.descending[..] {
            [] => shape,
            descending => KeyShape { descending: descending.into(), integer: None, direct: None, ..shape },
        }
    }

    /// Whether key values can be read from a stored image whose long values are in overflow pages.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// The fast path of `matches`: whether a stored image has exactly this key. Needs no overflow pages.
    /// `None` if only `matches` can decide.
    #[inline]
    pub(crate) fn stored_matches(&self, stored: &[u8], key: &[u8]) -> Option<bool> {
        self.integer.map(|integer| integer.matches(stored, key))
    }

    /// Whether the row has exactly this key.
    #[inline(never)]
    pub(crate) fn matches(&self, definitions: &[ColumnDefinition], row: RowView<'_>, key: &[u8]) -> bool {
        let Some(parts) = &self.direct else {
            // For a collated string, weights must be computed, which costs far more than this allocation.
            let mut own = Vec::with_capacity(key.len() + 16);
            self.append(definitions, row, &mut own);
            return own == key;
        };
        let mut rest = key;
        for part in parts {
            let after = match part {
                DirectPart::Integer(integer) => {
                    let parts = rest.split_at_checked(usize::from(integer.bytes));
                    parts.filter(|(part, _)| integer.matches(row.image(), part)).map(|(_, after)| after)
                }
                DirectPart::Binary(column) => match row.column(*column) {
                    ValueRef::Bytes(bytes) => strip_escaped(bytes, rest),
                    _ => None,
                },
            };
            match after {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether two rows have equal values in the key columns. Different values count as different even if
    /// their keys are equal.
    pub(crate) fn has_same_values(&self, left: RowView<'_>, right: RowView<'_>) -> bool {
        match &self.fixed {
            Some(parts) => {
                let (left, right) = (left.image(), right.image());
                parts.iter().all(|part| {
                    let is_null = |image: &[u8]| image[part.null_byte] & part.null_mask;
                    is_null(left) == is_null(right) && left[part.start..part.end] == right[part.start..part.end]
                })
            }
            None => self.columns.iter().all(|column| left.column(*column) == right.column(*column)),
        }
    }

    /// Whether a row can have several keys, or none. Then only `for_each_key` builds them.
    #[inline]
    pub(crate) fn is_multi_valued(&self) -> bool {
        self.list.is_some()
    }

    /// Calls `visit` with each key of a row, in an order that is the same for equal rows. `key` is working
    /// memory.
    pub(crate) fn for_each_key(
        &self,
        definitions: &[ColumnDefinition],
        row: RowView<'_>,
        key: &mut Vec<u8>,
        mut visit: impl FnMut(&[u8]),
    ) {
        match self.list {
            Some(list) => {
                let keys = ListKey { definitions, columns: &self.columns, descending: &self.descending, list };
                keys.for_each(row, key, visit);
            }
            None => {
                key.clear();
                self.append(definitions, row, key);
                visit(key);
            }
        }
    }

    /// Appends the key of a row in an index that is not multi-valued.
    #[inline]
    pub(crate) fn append(&self, definitions: &[ColumnDefinition], row: RowView<'_>, out: &mut Vec<u8>) {
        if let Some(integer) = self.integer {
            return integer.append(row.image(), out);
        }
        match self.descending.is_empty() {
            true => _ = append_row_key(definitions, &self.columns, row, out),
            false => append_entry_key(definitions, &self.columns, &self.descending, row, out),
        }
    }
}

impl IntegerKey {
    /// Appends the key of a row, as `append_row_key` does.
    #[inline]
    fn append(&self, image: &[u8], out: &mut Vec<u8>) {
        let stored = &image[self.offset..self.offset + usize::from(self.bytes)];
        // Keys are big-endian with the sign bit flipped, and images are little-endian.
        if let Ok(stored) = <[u8; 4]>::try_from(stored) {
            let key = u32::from_le_bytes(stored) ^ (u32::from(self.is_signed) << 31);
            return out.extend_from_slice(&key.to_be_bytes());
        }
        let start = out.len();
        out.extend(stored.iter().rev());
        out[start] ^= u8::from(self.is_signed) << 7;
    }

    #[inline]
    fn matches(&self, image: &[u8], key: &[u8]) -> bool {
        let stored = &image[self.offset..self.offset + usize::from(self.bytes)];
        if let (Ok(key), Ok(stored)) = (<[u8; 4]>::try_from(key), <[u8; 4]>::try_from(stored)) {
            // Keys are big-endian with the sign bit flipped, and images are little-endian.
            return u32::from_be_bytes(key) ^ (u32::from(self.is_signed) << 31) == u32::from_le_bytes(stored);
        }
        if let (Ok(key), Ok(stored)) = (<[u8; 8]>::try_from(key), <[u8; 8]>::try_from(stored)) {
            return u64::from_be_bytes(key) ^ (u64::from(self.is_signed) << 63) == u64::from_le_bytes(stored);
        }
        short_matches(stored, self.is_signed, key)
    }
}

/// Returns the remainder of the key if the key begins with these bytes, escaped and terminated
/// (`docs/format.md`, "Key bytes").
fn strip_escaped<'a>(bytes: &[u8], key: &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = key;
    for (number, run) in bytes.split(|byte| *byte == 0).enumerate() {
        if number > 0 {
            rest = rest.strip_prefix(&[0, 0xFF])?;
        }
        rest = rest.strip_prefix(run)?;
    }
    rest.strip_prefix(&[0, 0])
}

/// For integers of 1 to 3 bytes: the key is the stored bytes in reverse order with the sign bit flipped.
fn short_matches(stored: &[u8], is_signed: bool, key: &[u8]) -> bool {
    let flip = |at: usize| if at == 0 && is_signed { 0x80 } else { 0 };
    key.len() == stored.len()
        && key.iter().zip(stored.iter().rev()).enumerate().all(|(at, (key, stored))| key ^ flip(at) == *stored)
}

/// The position of a fixed column in an image (`docs/format.md`, "Row image"); `None` for a variable column
/// and for one that ALTER TABLE added without touching the rows.
fn fixed_part(definitions: &[ColumnDefinition], column: ColumnNumber) -> Option<FixedPart> {
    let own = definitions.get(usize::from(column.0)).filter(|own| own.added.is_none())?;
    let bytes = own.column_type.fixed_bytes()?;
    let is_nullable = |definition: &&ColumnDefinition| definition.nullable && definition.added.is_none();
    let before = definitions[..usize::from(column.0)].iter().filter(|definition| definition.added.is_none());
    let null_bit = before.clone().filter(is_nullable).count();
    let fixed: usize = before.filter_map(|definition| definition.column_type.fixed_bytes()).sum();
    let start = 1 + definitions.iter().filter(is_nullable).count().div_ceil(8) + fixed;
    let (null_byte, null_mask) = match own.nullable {
        true => (1 + null_bit / 8, 1 << (null_bit % 8)),
        false => (0, 0),
    };
    Some(FixedPart { start, end: start + bytes, null_byte, null_mask })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use junctor_model::row::RowFormat;
    use junctor_model::types::DataType;
    use proptest::prelude::*;

    use super::*;
    use crate::partition_store::sample::column;

    fn any_integer() -> impl Strategy<Value = (u8, bool)> {
        (prop_oneof![Just(1u8), Just(2), Just(3), Just(4), Just(8)], any::<bool>())
    }

    fn value_of(bytes: u8, unsigned: bool, bits: u64) -> ValueRef<'static> {
        let shift = 64 - u32::from(bytes) * 8;
        if unsigned { ValueRef::UInt(bits << shift >> shift) } else { ValueRef::Int((bits as i64) << shift >> shift) }
    }

    proptest! {
        #[test]
        fn a_row_matches_only_its_own_key(
            integer in any_integer(),
            bits in prop_oneof![any::<u64>(), 0u64..4, (0u64..4).prop_map(|bits| u64::MAX - bits)],
            text in proptest::collection::vec(0u8..3, 0..6),
            flip in 0usize..12,
            columns in prop_oneof![Just(vec![1]), Just(vec![2]), Just(vec![2, 1]), Just(vec![1, 2])],
        ) {
            let binary = DataType::varchar(20, CollationId::BINARY);
            let number = DataType::integer(integer.0, integer.1);
            let definitions = [column("pad", number.clone(), true), column("number", number, false), column("text", binary, false)];
            let columns: Vec<ColumnNumber> = columns.into_iter().map(ColumnNumber).collect();
            let (format, shape) = (RowFormat::new(&definitions), KeyShape::new(&definitions, &columns));
            let mut image = Vec::new();
            let values = [ValueRef::Null, value_of(integer.0, integer.1, bits), ValueRef::Bytes(&text)];
            format.encode(&values, &mut image).unwrap();
            let view = RowView::new(&format, &image);
            let mut key = Vec::new();
            shape.append(&definitions, view, &mut key);
            prop_assert!(shape.direct.is_some());
            prop_assert!(shape.matches(&definitions, view, &key));
            prop_assert_eq!(shape.stored_matches(&image, &key).unwrap_or(true), true);
            let end = flip % key.len();
            let mut other = key.clone();
            other[end] ^= 1;
            for other in [&other[..], &key[..end], &[&key[..], &[0]].concat()] {
                prop_assert!(!shape.matches(&definitions, view, other));
                prop_assert_eq!(shape.stored_matches(&image, other).unwrap_or(false), false);
            }
        }
    }
}
