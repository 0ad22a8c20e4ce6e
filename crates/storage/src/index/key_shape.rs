//! How the key of an index is compared with a row and made from one, decided once per index.

use junctor_model::id::ColumnIndex;
use junctor_model::key::append_row_key;
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, ColumnType};

/// The key columns of one index.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    columns: Box<[ColumnIndex]>,
    /// Set when the key is one integer that is never NULL: it is compared without making the key.
    integer: Option<IntegerKey>,
    /// Where the columns are when all are in the fixed part, which a stored image has even without its long values.
    fixed: Option<Box<[FixedPart]>>,
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
    /// Where the column is in an image; fixed columns never move.
    offset: usize,
    bytes: u8,
    is_signed: bool,
}

impl KeyShape {
    pub(crate) fn new(definitions: &[ColumnDefinition], columns: &[ColumnIndex]) -> KeyShape {
        let definition = |column: &ColumnIndex| &definitions[usize::from(column.0)];
        let fixed: Option<Box<[FixedPart]>> = columns.iter().map(|column| fixed_part(definitions, *column)).collect();
        let integer = match (columns, fixed.as_deref()) {
            ([column], Some([part])) if part.null_mask == 0 => match definition(column).column_type {
                ColumnType::Integer { bytes, unsigned } => {
                    Some(IntegerKey { offset: part.start, bytes, is_signed: !unsigned })
                }
                _ => None,
            },
            _ => None,
        };
        KeyShape { columns: columns.into(), integer, fixed }
    }

    /// Whether key values can be read from a stored image that is not whole.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// Whether a stored image has exactly that key; `None` when only `matches` can tell.
    #[inline]
    pub(crate) fn stored_matches(&self, stored: &[u8], key: &[u8]) -> Option<bool> {
        let IntegerKey { offset, bytes, is_signed } = self.integer?;
        let stored = &stored[offset..offset + usize::from(bytes)];
        if let (Ok(key), Ok(stored)) = (<[u8; 4]>::try_from(key), <[u8; 4]>::try_from(stored)) {
            return Some(u32::from_be_bytes(key) ^ u32::from(is_signed) << 31 == u32::from_le_bytes(stored));
        }
        if let (Ok(key), Ok(stored)) = (<[u8; 8]>::try_from(key), <[u8; 8]>::try_from(stored)) {
            return Some(u64::from_be_bytes(key) ^ u64::from(is_signed) << 63 == u64::from_le_bytes(stored));
        }
        Some(short_matches(stored, is_signed, key))
    }

    /// Whether the row has exactly that key.
    #[inline(never)]
    pub(crate) fn matches(&self, definitions: &[ColumnDefinition], row: RowView<'_>, key: &[u8]) -> bool {
        let mut own = Vec::with_capacity(key.len() + 16);
        self.append(definitions, row, &mut own);
        own == key
    }

    /// Whether two rows have the same values in the key columns; equal keys of different values count as different.
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

    pub(crate) fn append(&self, definitions: &[ColumnDefinition], row: RowView<'_>, out: &mut Vec<u8>) {
        append_row_key(definitions, &self.columns, row, out);
    }
}

/// Integers of 1 to 3 bytes: the key is the stored bytes turned round, with the sign bit flipped.
fn short_matches(stored: &[u8], is_signed: bool, key: &[u8]) -> bool {
    let flip = |at: usize| if at == 0 && is_signed { 0x80 } else { 0 };
    key.len() == stored.len()
        && key.iter().zip(stored.iter().rev()).enumerate().all(|(at, (key, stored))| key ^ flip(at) == *stored)
}

/// Where a column of the fixed part is in an image (`docs/format.md`, "Row image").
fn fixed_part(definitions: &[ColumnDefinition], column: ColumnIndex) -> Option<FixedPart> {
    let bytes = definitions[usize::from(column.0)].column_type.fixed_bytes()?;
    let is_nullable = |definition: &&ColumnDefinition| definition.nullable;
    let before = &definitions[..usize::from(column.0)];
    let null_bit = before.iter().filter(is_nullable).count();
    let fixed: usize = before.iter().filter_map(|definition| definition.column_type.fixed_bytes()).sum();
    let start = 1 + definitions.iter().filter(is_nullable).count().div_ceil(8) + fixed;
    let (null_byte, null_mask) = match definitions[usize::from(column.0)].nullable {
        true => (1 + null_bit / 8, 1 << (null_bit % 8)),
        false => (0, 0),
    };
    Some(FixedPart { start, end: start + bytes, null_byte, null_mask })
}
