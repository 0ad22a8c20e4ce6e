//! The place of a frame or page table, and errors of reading them.

use std::fmt;

use junctor_model::id::RowId;

use crate::page::OutOfMemory;

/// The bytes of a frame or of a page table in the checkpoint files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameLocation {
    /// Number of the file. Later rounds write files with higher numbers.
    pub file: u32,
    /// Byte in the file at which the frame begins.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl fmt::Display for FrameLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FrameLocation { file, offset, length } = self;
        write!(formatter, "checkpoint file {file}, {length} bytes from byte {offset}")
    }
}

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
