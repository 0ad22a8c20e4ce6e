//! How the key of an index is compared with a row and made from one, decided once per index.

use junctor_model::id::ColumnIndex;
use junctor_model::key::append_row_key;
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, ColumnType};
use junctor_model::value::ValueRef;

/// The key columns of one index.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    columns: Box<[ColumnIndex]>,
    /// The column and its bytes when the key is one integer that is never NULL: compared without making the key.
    integer: Option<(ColumnIndex, u8, bool)>,
    /// Whether every key column is in the fixed part, which a stored image has even without its long values.
    is_fixed: bool,
}

impl KeyShape {
    pub(crate) fn new(definitions: &[ColumnDefinition], columns: &[ColumnIndex]) -> KeyShape {
        let definition = |column: &ColumnIndex| &definitions[usize::from(column.0)];
        let integer = match columns {
            [column] if !definition(column).nullable => match definition(column).column_type {
                ColumnType::Integer { bytes, unsigned } => Some((*column, bytes, unsigned)),
                _ => None,
            },
            _ => None,
        };
        let is_fixed = columns.iter().all(|column| definition(column).column_type.fixed_bytes().is_some());
        KeyShape { columns: columns.into(), integer, is_fixed }
    }

    /// Whether key values can be read from a stored image that is not whole.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Whether the row has exactly that key.
    #[inline]
    pub(crate) fn matches(&self, definitions: &[ColumnDefinition], row: RowView<'_>, key: &[u8]) -> bool {
        match self.integer {
            Some((column, bytes, unsigned)) => integer_of(key, bytes, unsigned) == Some(row.column(column)),
            None => self.matches_any(definitions, row, key),
        }
    }

    /// Whether two rows have the same values in the key columns; equal keys of different values count as different.
    pub(crate) fn has_same_values(&self, left: RowView<'_>, right: RowView<'_>) -> bool {
        self.columns.iter().all(|column| left.column(*column) == right.column(*column))
    }

    pub(crate) fn append(&self, definitions: &[ColumnDefinition], row: RowView<'_>, out: &mut Vec<u8>) {
        append_row_key(definitions, &self.columns, row, out);
    }

    #[inline(never)]
    fn matches_any(&self, definitions: &[ColumnDefinition], row: RowView<'_>, key: &[u8]) -> bool {
        let mut own = Vec::with_capacity(key.len() + 16);
        self.append(definitions, row, &mut own);
        own == key
    }
}

/// The value whose key bytes these are.
#[inline]
fn integer_of(key: &[u8], bytes: u8, unsigned: bool) -> Option<ValueRef<'static>> {
    let wide = match key.len() {
        4 => u64::from(u32::from_be_bytes(*key.first_chunk()?)),
        8 => u64::from_be_bytes(*key.first_chunk()?),
        length if length < 8 => key.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        _ => return None,
    };
    if key.len() != usize::from(bytes) {
        return None;
    }
    if unsigned {
        return Some(ValueRef::UInt(wide));
    }
    let half = 1u64 << (u32::from(bytes) * 8 - 1);
    Some(ValueRef::Int(wide.wrapping_sub(half) as i64))
}
