//! Groups: the units in which the log is written and synced.
//!
//! A group lies in whole blocks of one segment. Each header names its position and the checksum of the header
//! before it. A reader can therefore distinguish a group of the current log from an older one in a reused
//! segment.

use std::fmt;

use junctor_model::id::CommitNumber;

use super::stream::StreamId;
use crate::bytes::{checksum_without, set_u16, set_u32, set_u64, u16_at, u32_at, u64_at};
use crate::invariant::require;

/// Size of a block in bytes: the unit of positions, and of writes.
pub const BLOCK_BYTES: usize = 4096;
/// Maximum size of a group in bytes, header included.
pub const GROUP_BYTES_MAX: usize = 1 << 20;
/// Size of a segment file in bytes, unless the log was created with another one.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;
/// The version of groups and of the records in them that is written. Records of version 1 have no edits; they
/// are read, too.
pub const GROUP_VERSION: u16 = 2;
const GROUP_VERSION_FIRST: u16 = 1;
/// Bytes of a group before the headers of its pieces.
pub const GROUP_HEADER_BYTES: usize = 128;
/// Bytes of the header of a piece.
pub const PIECE_HEADER_BYTES: usize = 12;

const MAGIC: u32 = u32::from_le_bytes(*b"JLOG");
const CHECKSUM_AT: usize = 4;
const FIRST_RECORD_NONE: u32 = u32::MAX;

/// The kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Carries records.
    Data,
    /// The first group of a life, the time from one start of the node to the next. It repeats which commits
    /// of the previous life recovery kept.
    Start,
    /// Written when the log is idle and at a clean stop, so that the last data group is known to be synced.
    Closing,
}

/// The header of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// The kind.
    pub kind: GroupKind,
    /// Position of the group in blocks from the beginning of the log.
    pub position: u64,
    /// The log that the group belongs to: a number chosen at random when the log was created.
    pub log_id: u64,
    /// The life of the node that wrote the group: 64 random bits.
    pub life: u64,
    /// Counts the lives, from 1.
    pub incarnation: u32,
    /// Checksum of the header of the previous group; 0 in the first group of a log.
    pub previous_checksum: u32,
    /// Every commit up to this number is in this group or an earlier one.
    pub stable: CommitNumber,
    /// Every commit whose record is in this group or an earlier one has at most this number.
    pub taken: CommitNumber,
    /// The node takes no commit number above this one until a group with a higher ceiling is durable.
    pub ceiling: CommitNumber,
    /// Every block below this position is synced.
    pub synced: u64,
    /// In a start group: the last commit number of the previous incarnation (run of the node) that recovery
    /// kept.
    pub previous_cut: CommitNumber,
    /// Wall clock in microseconds since 1970. For people and point-in-time recovery; never used to order
    /// groups.
    pub wall_clock_us: u64,
}

/// Part of a stream in a group. Records may begin and end anywhere in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The stream.
    pub stream: StreamId,
    /// Offset of the first record that begins in the piece; `None` if no record begins in it.
    pub first_record: Option<u32>,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A decoded group whose checksums are correct.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The header.
    pub header: GroupHeader,
    /// Checksum of the header, which the next group repeats.
    pub checksum: u32,
    /// Number of blocks that the group occupies.
    pub blocks: u64,
    pieces: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Group<'a> {
    /// The pieces, in the order in which they were gathered.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'a>> + use<'a> {
        let mut payload = self.payload;
        self.pieces.chunks_exact(PIECE_HEADER_BYTES).map_while(move |header| {
            let (bytes, rest) = payload.split_at_checked(u32_at(header, 8) as usize)?;
            payload = rest;
            let first = u32_at(header, 4);
            Some(Piece {
                stream: StreamId(u16_at(header, 0)),
                first_record: (first != FIRST_RECORD_NONE).then_some(first),
                bytes,
            })
        })
    }
}

/// Why bytes are not a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// The header is whole, but the bytes end before the group does. The group has this many blocks.
    Incomplete(u64),
    /// No header: never written, torn, or damaged.
    NoHeader,
    /// The header is whole and the payload is not.
    TornPayload,
    /// A format version that this program does not know.
    UnknownVersion(u16),
}

impl fmt::Display for GroupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Incomplete(blocks) => write!(formatter, "the group has {blocks} blocks, not all are there"),
            GroupError::NoHeader => formatter.write_str("no group begins here"),
            GroupError::TornPayload => formatter.write_str("the group was not written completely, or is damaged"),
            GroupError::UnknownVersion(version) => write!(formatter, "the log has the unknown version {version}"),
        }
    }
}

impl std::error::Error for GroupError {}

/// The size of a log's files, the segments. It never changes after the log is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize {
    blocks: u64,
}

impl SegmentSize {
    /// Segments of this many bytes. `None` unless that is a whole number of blocks and holds the largest
    /// group.
    pub const fn of_bytes(bytes: u64) -> Option<SegmentSize> {
        match bytes >= GROUP_BYTES_MAX as u64 && bytes.is_multiple_of(BLOCK_BYTES as u64) {
            true => Some(SegmentSize { blocks: bytes / BLOCK_BYTES as u64 }),
            false => None,
        }
    }

    /// Bytes of a segment.
    pub const fn bytes(self) -> u64 {
        self.blocks * BLOCK_BYTES as u64
    }

    /// The segment that holds a position, counted from 0.
    pub const fn segment_of(self, position: u64) -> u64 {
        position / self.blocks
    }

    /// Number of blocks from a position to the end of its segment.
    pub const fn blocks_left(self, position: u64) -> u64 {
        self.blocks - position % self.blocks
    }

    /// Offset of a position in its segment, in bytes.
    pub const fn offset_of(self, position: u64) -> u64 {
        position % self.blocks * BLOCK_BYTES as u64
    }

    /// The first position of the segment that holds a position.
    pub const fn segment_start(self, position: u64) -> u64 {
        position - position % self.blocks
    }

    /// Whether the position is the first of a segment.
    pub const fn is_start(self, position: u64) -> bool {
        position.is_multiple_of(self.blocks)
    }

    /// The position of a group of this many blocks whose predecessor ended at `position`. It is `position`
    /// itself, or the start of the next segment if the remainder of this segment is too short.
    pub const fn place(self, position: u64, blocks: u64) -> u64 {
        match position % self.blocks + blocks <= self.blocks {
            true => position,
            false => self.next_start(position),
        }
    }

    /// The first position of the next segment; `position` itself if a segment starts there.
    pub const fn next_start(self, position: u64) -> u64 {
        position.next_multiple_of(self.blocks)
    }
}

impl Default for SegmentSize {
    fn default() -> SegmentSize {
        SegmentSize { blocks: SEGMENT_BYTES_DEFAULT / BLOCK_BYTES as u64 }
    }
}

/// Number of blocks of a group with `piece_count` pieces of `piece_bytes` bytes together.
pub const fn group_blocks(piece_count: usize, piece_bytes: usize) -> u64 {
    (GROUP_HEADER_BYTES + piece_count * PIECE_HEADER_BYTES + piece_bytes).div_ceil(BLOCK_BYTES) as u64
}

/// Writes a group to `target`, which has exactly its blocks. Returns the checksum of the header.
pub fn encode_group<'a>(
    header: &GroupHeader,
    pieces: impl Iterator<Item = Piece<'a>> + Clone,
    target: &mut [u8],
) -> u32 {
    let piece_bytes = pieces.clone().map(|piece| piece.bytes.len()).sum();
    let piece_count = pieces.clone().count();
    let blocks = group_blocks(piece_count, piece_bytes);
    require!(target.len() as u64 == blocks * BLOCK_BYTES as u64, "a group fills its blocks: {blocks}");
    require!(target.len() <= GROUP_BYTES_MAX, "a group has at most {GROUP_BYTES_MAX} bytes: {}", target.len());
    require!(
        header.stable <= header.taken && header.taken <= header.ceiling,
        "stable, taken and ceiling are in order: {header:?}"
    );
    let (fixed, rest) = target.split_at_mut(GROUP_HEADER_BYTES);
    let mut at = 0;
    for piece in pieces.clone() {
        set_u16(rest, at, piece.stream.0);
        set_u16(rest, at + 2, 0);
        set_u32(rest, at + 4, piece.first_record.unwrap_or(FIRST_RECORD_NONE));
        set_u32(rest, at + 8, piece.bytes.len() as u32);
        at += PIECE_HEADER_BYTES;
    }
    for piece in pieces {
        rest[at..at + piece.bytes.len()].copy_from_slice(piece.bytes);
        at += piece.bytes.len();
    }
    rest[at..].fill(0);
    fixed.fill(0);
    set_u32(fixed, 0, MAGIC);
    set_u32(fixed, 8, at as u32);
    // The checksum includes the zeros after the payload, so that it also reveals a last sector that was not
    // written.
    set_u32(fixed, 12, crc32c::crc32c(rest));
    set_u64(fixed, 16, header.position);
    set_u64(fixed, 24, header.log_id);
    set_u64(fixed, 32, header.life);
    set_u32(fixed, 40, header.incarnation);
    set_u32(fixed, 44, header.previous_checksum);
    set_u64(fixed, 48, header.stable.0);
    set_u64(fixed, 56, header.taken.0);
    set_u64(fixed, 64, header.ceiling.0);
    set_u64(fixed, 72, header.synced);
    set_u64(fixed, 80, header.previous_cut.0);
    set_u64(fixed, 88, header.wall_clock_us);
    set_u16(fixed, 96, kind_to_word(header.kind));
    set_u16(fixed, 98, piece_count as u16);
    set_u16(fixed, 100, GROUP_VERSION);
    let checksum = checksum_without(fixed, CHECKSUM_AT);
    set_u32(fixed, CHECKSUM_AT, checksum);
    checksum
}

/// Moves a whole group to another log, behind a group whose header has the given checksum. Returns the new
/// checksum of the header. For restores: the groups keep their positions.
pub fn move_group(group: &mut [u8], log_id: u64, previous_checksum: u32) -> u32 {
    let fixed = &mut group[..GROUP_HEADER_BYTES];
    set_u64(fixed, 24, log_id);
    set_u32(fixed, 44, previous_checksum);
    let checksum = checksum_without(fixed, CHECKSUM_AT);
    set_u32(fixed, CHECKSUM_AT, checksum);
    checksum
}

/// The header at the start of a block, whatever its payload, and the number of blocks of the group.
///
/// # Errors
/// `NoHeader` or `UnknownVersion`.
pub fn decode_header(block: &[u8]) -> Result<(GroupHeader, u64), GroupError> {
    let Some(fixed) = block.get(..GROUP_HEADER_BYTES) else { return Err(GroupError::NoHeader) };
    if u32_at(fixed, 0) != MAGIC || u32_at(fixed, CHECKSUM_AT) != checksum_without(fixed, CHECKSUM_AT) {
        return Err(GroupError::NoHeader);
    }
    let version = u16_at(fixed, 100);
    if !(GROUP_VERSION_FIRST..=GROUP_VERSION).contains(&version) {
        return Err(GroupError::UnknownVersion(version));
    }
    let Some(kind) = kind_from_word(u16_at(fixed, 96)) else { return Err(GroupError::NoHeader) };
    let header = GroupHeader {
        kind,
        position: u64_at(fixed, 16),
        log_id: u64_at(fixed, 24),
        life: u64_at(fixed, 32),
        incarnation: u32_at(fixed, 40),
        previous_checksum: u32_at(fixed, 44),
        stable: CommitNumber(u64_at(fixed, 48)),
        taken: CommitNumber(u64_at(fixed, 56)),
        ceiling: CommitNumber(u64_at(fixed, 64)),
        synced: u64_at(fixed, 72),
        previous_cut: CommitNumber(u64_at(fixed, 80)),
        wall_clock_us: u64_at(fixed, 88),
    };
    let bytes = GROUP_HEADER_BYTES + u32_at(fixed, 8) as usize;
    let blocks = bytes.div_ceil(BLOCK_BYTES) as u64;
    if bytes > GROUP_BYTES_MAX {
        return Err(GroupError::NoHeader);
    }
    Ok((header, blocks))
}

/// The group at the start of `bytes`.
///
/// # Errors
/// `Incomplete` if the group is longer than the bytes; otherwise the bytes are no group.
pub fn decode_group(bytes: &[u8]) -> Result<Group<'_>, GroupError> {
    let (header, blocks) = decode_header(bytes)?;
    let Some(whole) = bytes.get(..blocks as usize * BLOCK_BYTES) else { return Err(GroupError::Incomplete(blocks)) };
    let (fixed, rest) = whole.split_at(GROUP_HEADER_BYTES);
    if crc32c::crc32c(rest) != u32_at(fixed, 12) {
        return Err(GroupError::TornPayload);
    }
    let length = u32_at(fixed, 8) as usize;
    let pieces_bytes = usize::from(u16_at(fixed, 98)) * PIECE_HEADER_BYTES;
    let Some((pieces, payload)) = rest[..length].split_at_checked(pieces_bytes) else {
        return Err(GroupError::TornPayload);
    };
    let group = Group { header, checksum: u32_at(fixed, CHECKSUM_AT), blocks, pieces, payload };
    let piece_bytes: usize = pieces.chunks_exact(PIECE_HEADER_BYTES).map(|piece| u32_at(piece, 8) as usize).sum();
    // The checksum is correct, so a wrong sum is a fault of the writer. The bytes are refused all the same.
    if piece_bytes != payload.len() { Err(GroupError::TornPayload) } else { Ok(group) }
}

const fn kind_to_word(kind: GroupKind) -> u16 {
    match kind {
        GroupKind::Data => 1,
        GroupKind::Start => 2,
        GroupKind::Closing => 3,
    }
}

const fn kind_from_word(word: u16) -> Option<GroupKind> {
    match word {
        1 => Some(GroupKind::Data),
        2 => Some(GroupKind::Start),
        3 => Some(GroupKind::Closing),
        _ => None,
    }
}
