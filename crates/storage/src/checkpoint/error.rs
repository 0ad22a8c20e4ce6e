//! Errors of reading frames and page tables.

use std::fmt;

use junctor_model::id::RowId;

use crate::page::OutOfMemory;

/// Why a frame or a page table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// A checksum, a length or the structure is wrong.
    Damaged,
    /// A later release wrote it: the format version is unknown.
    UnknownVersion(u16),
    /// The bytes are whole, but belong to another place, partition or round.
    Misplaced,
    /// The frames of a page do not follow each other as they were written.
    OutOfOrder,
    /// The image does not have the format of the table's rows.
    InvalidImage(RowId),
    /// The data memory is exhausted.
    OutOfMemory,
}

impl From<OutOfMemory> for CheckpointError {
    fn from(_: OutOfMemory) -> CheckpointError {
        CheckpointError::OutOfMemory
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Damaged => formatter.write_str("the bytes are damaged"),
            CheckpointError::UnknownVersion(version) => write!(formatter, "the format version {version} is unknown"),
            CheckpointError::Misplaced => {
                formatter.write_str("the bytes belong to another place of the checkpoint, or to an earlier one")
            }
            CheckpointError::OutOfOrder => formatter.write_str("the frames of a page are not in order"),
            CheckpointError::InvalidImage(row) => write!(formatter, "the image of row {row} is damaged"),
            CheckpointError::OutOfMemory => OutOfMemory.fmt(formatter),
        }
    }
}

impl std::error::Error for CheckpointError {}
