//! The high-water mark of an AUTO_INCREMENT counter, as the log stores it (`docs/format.md`, "Mark").

use std::fmt;

use crate::id::TableId;

/// The version that is written.
pub const MARK_FORMAT_VERSION: u16 = 1;

const MARK_BYTES: usize = 16;

/// Every AUTO_INCREMENT value of the table that main has handed out is below the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterMark {
    /// The table with the AUTO_INCREMENT column.
    pub table: TableId,
    /// The first value that a later start of the node may hand out.
    pub mark: u64,
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
        match u16::from_le_bytes(*version) {
            MARK_FORMAT_VERSION => {}
            version => return Err(StoredMarkError::UnknownVersion(version)),
        }
        let [_, _, 0, 0, rest @ ..] = bytes else { return Err(invalid) };
        let (table, mark) = rest.split_first_chunk::<4>().ok_or(invalid)?;
        let mark = <[u8; 8]>::try_from(mark).map_err(|_| invalid)?;
        Ok(CounterMark { table: TableId(u32::from_le_bytes(*table)), mark: u64::from_le_bytes(mark) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_decodes_to_itself() {
        for mark in [0, 1, 0x0102_0304_0506_0708, u64::MAX] {
            let mark = CounterMark { table: TableId(0x0a0b_0c0d), mark };
            assert_eq!(CounterMark::decode(&mark.encode()), Ok(mark));
        }
        let bytes = CounterMark { table: TableId(7), mark: 258 }.encode();
        assert_eq!(bytes, [1, 0, 0, 0, 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0], "the bytes of release 0.1");
    }

    #[test]
    fn bytes_that_are_no_mark_are_refused() {
        let whole = CounterMark { table: TableId(7), mark: 9 }.encode();
        for length in 0..whole.len() {
            assert_eq!(CounterMark::decode(&whole[..length]), Err(StoredMarkError::Invalid(length)));
        }
        assert_eq!(CounterMark::decode(&[whole.as_slice(), &[0]].concat()), Err(StoredMarkError::Invalid(17)));
        assert_eq!(CounterMark::decode(&[2, 0]), Err(StoredMarkError::UnknownVersion(2)));
        let reserved = CounterMark::decode(&[1, 0, 1, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(reserved, Err(StoredMarkError::Invalid(16)));
    }
}
