//! The rows of an INSERT, kept in the order of the statement because a later step may need them.

use junctor_signals::input::{HashedKey, KeyedImage};

/// Rows of an INSERT, stored in one buffer.
#[derive(Debug, Default)]
pub(crate) struct RowList {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    start: usize,
    key_end: usize,
    image_end: usize,
    end: usize,
    hash: u64,
    generated: u64,
    partition: u16,
}

/// One row of a [`RowList`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRef<'l> {
    pub partition: u16,
    /// The primary key and image of the row.
    pub image: KeyedImage<'l>,
    /// The parameters that the row was made from; empty if they are the statement's own.
    pub parameters: &'l [u8],
    /// The generated AUTO_INCREMENT value of the row, or 0.
    pub generated: u64,
}

impl RowList {
    pub(crate) fn push(&mut self, row: RowRef<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row.image.key.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(row.image.image);
        let image_end = self.bytes.len();
        self.bytes.extend_from_slice(row.parameters);
        let (hash, generated, partition) = (row.image.key.hash, row.generated, row.partition);
        self.rows.push(Row { start, key_end, image_end, end: self.bytes.len(), hash, generated, partition });
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row at `position`, which must exist.
    pub(crate) fn get(&self, position: usize) -> RowRef<'_> {
        let row = self.rows[position];
        RowRef {
            partition: row.partition,
            image: KeyedImage {
                key: HashedKey { hash: row.hash, key: &self.bytes[row.start..row.key_end] },
                image: &self.bytes[row.key_end..row.image_end],
            },
            parameters: &self.bytes[row.image_end..row.end],
            generated: row.generated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_rows_are_returned_unchanged() {
        let mut rows = RowList::default();
        for number in 0..3u8 {
            let key = HashedKey { hash: number.into(), key: &[number; 2] };
            let image = KeyedImage { key, image: &[number; 5] };
            let parameters: &[u8] = if number == 1 { b"p" } else { b"" };
            rows.push(RowRef { partition: number.into(), image, parameters, generated: u64::from(number) * 10 });
        }
        assert_eq!(rows.len(), 3);
        let row = rows.get(1);
        assert_eq!((row.partition, row.generated, row.parameters), (1, 10, &b"p"[..]));
        assert_eq!((row.image.key.key, row.image.image), (&[1; 2][..], &[1; 5][..]));
        assert_eq!(rows.get(2).parameters, b"");
    }
}
