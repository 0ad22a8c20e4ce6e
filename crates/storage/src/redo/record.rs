//! The layout of redo records, and their decoding.

use std::fmt;

use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion, TableId, TransactionId};

/// The format version that is written.
pub const REDO_VERSION: u8 = 2;
/// Size in bytes from which the next operation goes to another record.
pub const REDO_RECORD_BYTES_MAX: usize = 1024 * 1024;

pub(super) const HEADER_BYTES: usize = 44;
pub(super) const CHECKSUM_AT: usize = 4;
pub(super) const OPERATION_HEADER_BYTES: usize = 12;
pub(super) const FLAG_CONTINUED: u8 = 1;
pub(super) const PUT: u8 = 1;
pub(super) const DELETE: u8 = 2;

/// The transaction and partition whose changes a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoHeader {
    /// The transaction's commit number.
    pub commit_number: CommitNumber,
    /// The transaction that made the changes.
    pub transaction: TransactionId,
    /// Number of partitions that the transaction changed.
    pub participant_count: u32,
    /// The partition that was changed.
    pub partition: PartitionId,
    /// The version of the table's definition that the images follow.
    pub schema_version: SchemaVersion,
}

/// One change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoOperation<'a> {
    /// The row has this image now.
    Put {
        /// The row's id in its partition.
        row: RowId,
        /// The whole image, long values included.
        image: &'a [u8],
    },
    /// The row is deleted.
    Delete {
        /// The row's id in its partition.
        row: RowId,
        /// The bytes of its primary key.
        key: &'a [u8],
    },
}

/// A decoded record whose checksum is correct.
#[derive(Clone, Copy, Debug)]
pub struct RedoRecord<'a> {
    /// The transaction and partition of the changes.
    pub header: RedoHeader,
    /// Whether another record of the same transaction and partition follows, not necessarily next.
    pub is_continued: bool,
    operation_count: u32,
    operations: &'a [u8],
}

/// Why decoding a stream stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoError {
    /// The bytes end inside the record: the last write did not reach the disk completely.
    Torn,
    /// The checksum or the structure is wrong.
    Corrupt,
    /// A format version that this program does not know.
    UnknownVersion(u8),
}

impl fmt::Display for RedoError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedoError::Torn => formatter.write_str("the redo record is cut off"),
            RedoError::Corrupt => formatter.write_str("the redo record is damaged"),
            RedoError::UnknownVersion(version) => {
                write!(formatter, "the redo record has the unknown version {version}")
            }
        }
    }
}

impl std::error::Error for RedoError {}

/// Iterates over the records of a stream. Ends after the last record, or after the first error.
#[derive(Clone, Debug)]
pub struct RedoRecords<'a> {
    rest: &'a [u8],
}

impl<'a> RedoRecords<'a> {
    /// An iterator over these bytes. Zeros after the last record count as space that is not written yet.
    pub fn new(bytes: &'a [u8]) -> RedoRecords<'a> {
        RedoRecords { rest: bytes }
    }
}

impl<'a> Iterator for RedoRecords<'a> {
    type Item = Result<RedoRecord<'a>, RedoError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = read_record(&mut self.rest);
        // The position of the next record is unknown after a damaged one.
        if !matches!(record, Some(Ok(_))) {
            self.rest = &[];
        }
        record
    }
}

impl<'a> RedoRecord<'a> {
    /// The changes in the order in which they were recorded.
    pub fn operations(&self) -> impl Iterator<Item = RedoOperation<'a>> + use<'a> {
        let mut rest = self.operations;
        (0..self.operation_count).map_while(move |_| read_operation(&mut rest))
    }
}

fn read_record<'a>(rest: &mut &'a [u8]) -> Option<Result<RedoRecord<'a>, RedoError>> {
    let Some(length) = rest.first_chunk() else { return Some(Err(RedoError::Torn)) };
    let length = u32::from_le_bytes(*length) as usize;
    // Log space is zeroed before use, so a zero length is the end of the records.
    if length == 0 {
        return None;
    }
    if length < HEADER_BYTES {
        return Some(Err(RedoError::Corrupt));
    }
    let Some((record, after)) = rest.split_at_checked(length) else { return Some(Err(RedoError::Torn)) };
    *rest = after;
    Some(check_record(record))
}

fn check_record(record: &[u8]) -> Result<RedoRecord<'_>, RedoError> {
    if u32_at(record, CHECKSUM_AT) != checksum(record) {
        return Err(RedoError::Corrupt);
    }
    if record[8] != REDO_VERSION {
        return Err(RedoError::UnknownVersion(record[8]));
    }
    let header = RedoHeader {
        commit_number: CommitNumber(u64_at(record, 24)),
        transaction: TransactionId(u64_at(record, 32)),
        participant_count: u32_at(record, 20),
        partition: PartitionId {
            table: TableId(u32_at(record, 12)),
            index: u16::from_le_bytes([record[10], record[11]]),
        },
        schema_version: SchemaVersion(u32_at(record, 16)),
    };
    let (operation_count, operations) = (u32_at(record, 40), &record[HEADER_BYTES..]);
    let mut rest = operations;
    // Check all operations here, so that `operations` cannot meet a damaged one.
    let are_whole = (0..operation_count).all(|_| read_operation(&mut rest).is_some());
    if !are_whole || !rest.is_empty() || record[9] & !FLAG_CONTINUED != 0 {
        return Err(RedoError::Corrupt);
    }
    Ok(RedoRecord { header, is_continued: record[9] & FLAG_CONTINUED != 0, operation_count, operations })
}

fn read_operation<'a>(rest: &mut &'a [u8]) -> Option<RedoOperation<'a>> {
    let (header, after) = rest.split_at_checked(OPERATION_HEADER_BYTES)?;
    let (bytes, after) = after.split_at_checked(u32_at(header, 8) as usize)?;
    *rest = after;
    let row = RowId(u32_at(header, 4));
    match header[..4] {
        [PUT, 0, 0, 0] => Some(RedoOperation::Put { row, image: bytes }),
        [DELETE, 0, 0, 0] => Some(RedoOperation::Delete { row, key: bytes }),
        _ => None,
    }
}

/// The checksum of a record without its checksum field.
pub(super) fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..CHECKSUM_AT]), &record[CHECKSUM_AT + 4..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
