//! The values of the hidden column of a multi-valued index: the elements of an array, encoded, sorted and
//! distinct. A row has an entry in the index for each element.
//!
//! A list is the elements one after the other, each behind its length (`docs/format.md`, "Key bytes"). Equal
//! elements have equal bytes; the order of the bytes means nothing to users.

use crate::id::ColumnNumber;
use crate::key::{append_escaped, append_row_key, append_value, complement};
use crate::row::RowView;
use crate::schema::{ColumnDefinition, IndexDefinition};
use crate::value::ValueRef;

/// Lengths from here on take two bytes, of which the first is `LONG + length / 256`.
const LONG: usize = 128;
/// Maximum number of bytes of an element.
pub const ELEMENT_BYTES_MAX: usize = 0x7FFF;

/// Appends an element of at most [`ELEMENT_BYTES_MAX`] bytes.
pub fn append_element(element: &[u8], list: &mut Vec<u8>) {
    let length = element.len().min(ELEMENT_BYTES_MAX);
    match length < LONG {
        true => list.push(length as u8),
        false => list.extend_from_slice(&[(LONG + length / 256) as u8, length as u8]),
    }
    list.extend_from_slice(&element[..length]);
}

/// The elements of a list, in the order of their bytes.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'l>(&'l [u8]);

impl<'l> Elements<'l> {
    /// The elements of a list. Bytes that are no list have fewer elements.
    pub fn of(list: &'l [u8]) -> Elements<'l> {
        Elements(list)
    }
}

impl<'l> Iterator for Elements<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let (first, rest) = self.0.split_first()?;
        let (length, rest) = match usize::from(*first) {
            short @ ..LONG => (short, rest),
            long => {
                let (low, rest) = rest.split_first()?;
                ((long - LONG) * 256 + usize::from(*low), rest)
            }
        };
        let (element, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(element)
    }
}

/// The column of an index that has several values in a row; `None` for an ordinary index.
pub fn list_column(columns: &[ColumnDefinition], index: &IndexDefinition) -> Option<ColumnNumber> {
    list_among(columns, &index.columns)
}

/// The column that has several values in a row, among those of a key.
pub fn list_among(columns: &[ColumnDefinition], key: &[ColumnNumber]) -> Option<ColumnNumber> {
    key.iter().copied().find(|part| columns[usize::from(part.0)].key_list().is_some())
}

/// The parts of a multi-valued index from which the keys of a row are built.
#[derive(Clone, Copy, Debug)]
pub struct ListKey<'k> {
    /// All columns of the table.
    pub definitions: &'k [ColumnDefinition],
    /// The columns of the index.
    pub columns: &'k [ColumnNumber],
    /// The columns in descending order, whose parts are complemented.
    pub descending: &'k [ColumnNumber],
    /// The one with the list.
    pub list: ColumnNumber,
}

impl ListKey<'_> {
    /// Calls `visit` with the key of each entry of a row, in the order of the elements. A row with NULL in
    /// place of a list, or with an empty list, has no entry. `key` is working memory.
    pub fn for_each(&self, row: RowView<'_>, key: &mut Vec<u8>, mut visit: impl FnMut(&[u8])) {
        let ValueRef::Bytes(list) = row.column(self.list) else { return };
        let mut after = Vec::new();
        key.clear();
        let at = self.columns.iter().position(|column| *column == self.list).unwrap_or(self.columns.len());
        for (position, column) in self.columns.iter().enumerate().filter(|(position, _)| *position != at) {
            let out = if position < at { &mut *key } else { &mut after };
            let (definition, value) = (&self.definitions[usize::from(column.0)], row.column(*column));
            let start = out.len();
            append_value(definition.column_type.key_part(), definition.nullable, value, out);
            if self.descending.contains(column) {
                complement(&mut out[start..]);
            }
        }
        let before = key.len();
        for element in Elements::of(list) {
            key.truncate(before);
            append_element_key(element, key);
            key.extend_from_slice(&after);
            visit(key);
        }
    }
}

/// Calls `visit` with the key of each unique entry of a row, and with its element in a multi-valued index. A
/// row with NULL in one of the columns has no entry.
pub fn for_each_entry(
    definitions: &[ColumnDefinition],
    columns: &[ColumnNumber],
    row: RowView<'_>,
    mut visit: impl FnMut(Vec<u8>, Option<&[u8]>),
) {
    let Some(list) = list_among(definitions, columns) else {
        let mut key = Vec::new();
        if !append_row_key(definitions, columns, row, &mut key) {
            visit(key, None);
        }
        return;
    };
    let has_null = |column: &ColumnNumber| *column != list && row.column(*column).is_null();
    let ValueRef::Bytes(elements) = row.column(list) else { return };
    if columns.iter().any(has_null) {
        return;
    }
    let mut elements = Elements::of(elements);
    let keys = ListKey { definitions, columns, descending: &[], list };
    keys.for_each(row, &mut Vec::new(), |key| visit(key.to_vec(), elements.next()));
}

/// Appends the part of a key that has an element: the key bytes of a nullable binary string.
pub fn append_element_key(element: &[u8], key: &mut Vec<u8>) {
    key.push(1);
    append_escaped(element, key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_elements_that_were_appended() {
        let elements: Vec<Vec<u8>> =
            [0, 1, 127, 128, 255, 256, 3072, ELEMENT_BYTES_MAX].iter().map(|length| vec![7; *length]).collect();
        let mut list = Vec::new();
        elements.iter().for_each(|element| append_element(element, &mut list));
        let read: Vec<&[u8]> = Elements::of(&list).collect();
        assert_eq!(read, elements);
        // A list that is cut off ends before its last element.
        assert_eq!(Elements::of(&list[..list.len() - 1]).count(), elements.len() - 1);
    }
}
