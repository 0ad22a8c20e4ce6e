//! Blocks that records need in the log. A commit reserves them before it takes its number
//! (`docs/decisions/0014-log-space.md`).

use super::group::{BLOCK_BYTES, GROUP_HEADER_BYTES, PIECE_HEADER_BYTES};
use super::record::{CHUNK_BYTES_MAX, OPERATION_HEADER_BYTES, RECORD_HEADER_BYTES, SECTION_HEADER_BYTES};

/// Bytes of a group that one record causes at most: the header of the group and that of a piece, and the end
/// of the group before, which is too short for the header of a record.
const GROUP_SHARE_BYTES: u64 = (GROUP_HEADER_BYTES + 3 * PIECE_HEADER_BYTES + RECORD_HEADER_BYTES) as u64;
/// A record of many groups causes this share of its bytes in headers of groups.
const GROUP_SHARE: u64 = 512;
/// Maximum number of blocks that the record of a commit in one phase needs. Its tc reserves them before the
/// statement runs. A statement with a longer record commits in two phases.
pub const ONE_PHASE_BLOCKS_MAX: u64 = 8;

/// Blocks that a record of this length needs at most, with its share of its groups.
pub const fn record_blocks(bytes: usize) -> u64 {
    let bytes = bytes as u64;
    (bytes + bytes / GROUP_SHARE + GROUP_SHARE_BYTES).div_ceil(BLOCK_BYTES as u64)
}

/// Blocks that a record with a commit number needs at most: one more for the group that makes the number
/// durable, if the record is in an earlier group.
pub const fn commit_blocks(bytes: usize) -> u64 {
    record_blocks(bytes) + 1
}

/// Blocks for the undo of the chunks of a participant.
pub const CHUNK_UNDO_BLOCKS: u64 = record_blocks(RECORD_HEADER_BYTES);

/// What a participant has written.
#[derive(Clone, Copy, Debug)]
pub struct WrittenExtent {
    /// Number of changes.
    pub rows: usize,
    /// Bytes of images and keys.
    pub bytes: usize,
    /// Number of partitions.
    pub partitions: usize,
}

/// Blocks that the record of a short participant needs at most.
pub const fn short_participant_blocks(extent: WrittenExtent) -> u64 {
    let WrittenExtent { rows, bytes, partitions } = extent;
    let headers = rows * OPERATION_HEADER_BYTES + partitions * SECTION_HEADER_BYTES;
    commit_blocks(RECORD_HEADER_BYTES + headers + bytes)
}

/// Blocks that the records of a long participant need at most, if each step of its prepare forms the records
/// of up to `rows_per_step` rows.
pub const fn long_participant_blocks(extent: WrittenExtent, rows_per_step: usize) -> u64 {
    let WrittenExtent { rows, bytes, partitions } = extent;
    let steps = rows.div_ceil(rows_per_step);
    let bytes = bytes + rows * OPERATION_HEADER_BYTES + steps * partitions * SECTION_HEADER_BYTES;
    // A step ends its last record, and a record ends once it is longer than half of `CHUNK_BYTES_MAX`.
    let chunks = steps + bytes / (CHUNK_BYTES_MAX / 2);
    let bytes = bytes + chunks * (RECORD_HEADER_BYTES + SECTION_HEADER_BYTES);
    let shares = chunks as u64 * (BLOCK_BYTES as u64 + GROUP_SHARE_BYTES) / BLOCK_BYTES as u64 + 1;
    record_blocks(bytes) + shares + commit_blocks(RECORD_HEADER_BYTES)
}
