//! The high-water mark of an AUTO_INCREMENT counter, as the log stores it (`docs/format.md`, "Mark").

use std::fmt;

use crate::id::TableId;

/// The version that is written.
pub const MARK_FORMAT_VERSION: u16 = 2;
/// The version before, whose marks are not exact.
const FIRST_VERSION: u16 = 1;
/// The flag of an exact mark.
const EXACT: u8 = 1;

const MARK_BYTES: usize = 16;

/// Every AUTO_INCREMENT value of the table that a row may have got is below the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterMark {
    /// The table with the AUTO_INCREMENT column.
    pub table: TableId,
    /// The first value that a later start of the node may hand out.
    pub mark: u64,
    /// Whether the mark replaces those before it. Otherwise the highest is valid.
    pub is_exact: bool,
}

/// Why stored bytes are not a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredMarkError {
    /// The bytes have a version that this program does not know.
    UnknownVersion(u16),
    /// The bytes are not a mark. The field is their number.
    Invalid(usize),
}

impl fmt::Display for StoredMarkError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredMarkError::UnknownVersion(version) => {
                write!(formatter, "the stored AUTO_INCREMENT mark has the unknown version {version}")
            }
            StoredMarkError::Invalid(bytes) => {
                write!(formatter, "the stored AUTO_INCREMENT mark is invalid: {bytes} bytes")
            }
        }
    }
}

impl std::error::Error for StoredMarkError {}

impl CounterMark {
    /// The bytes on disk.
    pub fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..2].copy_from_slice(&MARK_FORMAT_VERSION.to_le_bytes());
        bytes[2] = u8::from(self.is_exact) * EXACT;
        bytes[4..8].copy_from_slice(&self.table.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.mark.to_le_bytes());
        bytes
    }

    /// The mark that the bytes describe.
    ///
    /// # Errors
    /// The version is unknown, or the bytes are not a mark.
    pub fn decode(bytes: &[u8]) -> Result<CounterMark, StoredMarkError> {
        let invalid = StoredMarkError::Invalid(bytes.len());
        // The version decides the length, so it is read first.
        let version = bytes.first_chunk::<2>().ok_or(invalid)?;
        let flags_max = match u16::from_le_bytes(*version) {
            FIRST_VERSION => 0,
            MARK_FORMAT_VERSION => EXACT,
            version => return Err(StoredMarkError::UnknownVersion(version)),
        };
        let [_, _, flags, 0, rest @ ..] = bytes else { return Err(invalid) };
        if *flags > flags_max {
            return Err(invalid);
        }
        let (table, mark) = rest.split_first_chunk::<4>().ok_or(invalid)?;
        let mark = <[u8; 8]>::try_from(mark).map_err(|_| invalid)?;
        let (table, mark) = (TableId(u32::from_le_bytes(*table)), u64::from_le_bytes(mark));
        Ok(CounterMark { table, mark, is_exact: *flags == EXACT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_decodes_to_itself() {
        for mark in [0, 1, 0x0102_0304_0506_0708, u64::MAX] {
            for is_exact in [false, true] {
                let mark = CounterMark { table: TableId(0x0a0b_0c0d), mark, is_exact };
                assert_eq!(CounterMark::decode(&mark.encode()), Ok(mark));
            }
        }
        let mark = CounterMark { table: TableId(7), mark: 258, is_exact: false };
        assert_eq!(mark.encode(), [2, 0, 0, 0, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        let first_version = [1, 0, 0, 0, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(CounterMark::decode(&first_version), Ok(mark));
    }

    #[test]
    fn bytes_that_are_no_mark_are_refused() {
        let whole = CounterMark { table: TableId(7), mark: 9, is_exact: true }.encode();
        for length in 0..whole.len() {
            assert_eq!(CounterMark::decode(&whole[..length]), Err(StoredMarkError::Invalid(length)));
        }
        assert_eq!(CounterMark::decode(&[whole.as_slice(), &[0]].concat()), Err(StoredMarkError::Invalid(17)));
        assert_eq!(CounterMark::decode(&[3, 0]), Err(StoredMarkError::UnknownVersion(3)));
        for flags in [[1, 0, 1, 0], [2, 0, 2, 0], [2, 0, 0, 1]] {
            let reserved = CounterMark::decode(&[&flags, &whole[4..]].concat());
            assert_eq!(reserved, Err(StoredMarkError::Invalid(16)), "{flags:?}");
        }
    }
}
