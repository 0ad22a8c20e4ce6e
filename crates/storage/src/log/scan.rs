//! Reading the log back: the chain of groups, and its end.

use junctor_model::planted_bug::PlantedBug;

use super::group::{BLOCK_BYTES, Group, GroupError, GroupHeader, GroupKind, SegmentSize, decode_group, decode_header};

/// A position between two groups of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    /// The log.
    pub log_id: u64,
    /// Life of the group before; 0 before the first group.
    pub life: u64,
    /// Incarnation of the group before; 0 before the first group.
    pub incarnation: u32,
    /// Checksum of the header of the previous group. `None` if reading begins in the middle of a log; the
    /// first group is then accepted by its log id and position alone.
    pub previous_checksum: Option<u32>,
    /// Position of the next group, in blocks.
    pub position: u64,
}

impl ChainPosition {
    /// The beginning of a log without groups.
    pub fn beginning(log_id: u64) -> ChainPosition {
        ChainPosition { log_id, life: 0, incarnation: 0, previous_checksum: Some(0), position: 0 }
    }

    /// Whether the group continues the chain here.
    fn is_continued_by(&self, header: &GroupHeader) -> bool {
        let is_unchecked = PlantedBug::AcceptStaleGroups.is_planted();
        let Some(previous) = self.previous_checksum.filter(|_| !is_unchecked) else {
            return header.log_id == self.log_id && header.position == self.position;
        };
        let is_next_life = header.kind == GroupKind::Start && header.incarnation == self.incarnation + 1;
        let is_same_life =
            header.kind != GroupKind::Start && header.incarnation == self.incarnation && header.life == self.life;
        header.log_id == self.log_id
            && header.position == self.position
            && header.previous_checksum == previous
            && (is_next_life || is_same_life)
    }

    /// The position after a group.
    pub fn after(group: &Group<'_>) -> ChainPosition {
        ChainPosition {
            log_id: group.header.log_id,
            life: group.header.life,
            incarnation: group.header.incarnation,
            previous_checksum: Some(group.checksum),
            position: group.header.position + group.blocks,
        }
    }
}

/// The result of one step of a scan.
#[derive(Debug)]
pub enum ScanStep<'a> {
    /// The next group of the chain. The scan has advanced to the position after it.
    Group(Group<'a>),
    /// A group may begin here, but the bytes end before it does. The scan needs this many blocks.
    NeedBlocks(u64),
    /// No group of the chain begins here. The chain goes on at the start of the next segment, or has ended.
    NoGroup,
    /// A format version that this program does not know.
    UnknownVersion(u16),
}

/// Follows the chain of groups from a position on.
#[derive(Clone, Debug)]
pub struct LogScan {
    chain: ChainPosition,
    segments: SegmentSize,
}

impl LogScan {
    /// A scan from this position on.
    pub fn new(from: ChainPosition, segments: SegmentSize) -> LogScan {
        LogScan { chain: from, segments }
    }

    /// The position of the next group to read.
    pub fn chain(&self) -> ChainPosition {
        self.chain
    }

    /// Examines `bytes`, which begin at the scan's position and lie in one segment.
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> ScanStep<'a> {
        if bytes.len() < BLOCK_BYTES {
            // A segment has a whole number of blocks; fewer bytes are its end.
            return ScanStep::NoGroup;
        }
        match decode_group(bytes) {
            Ok(group) if self.chain.is_continued_by(&group.header) => {
                self.chain = ChainPosition::after(&group);
                ScanStep::Group(group)
            }
            Err(GroupError::Incomplete(blocks)) if self.is_next(bytes, blocks) => ScanStep::NeedBlocks(blocks),
            Err(GroupError::UnknownVersion(version)) => ScanStep::UnknownVersion(version),
            _ => ScanStep::NoGroup,
        }
    }

    /// Moves to the start of the next segment, after `NoGroup`. A group there continues the chain if the rest
    /// of the present segment was too short for it. Returns the segment's number; `None` if the scan is at
    /// the start of a segment, so that the chain has ended.
    pub fn skip_to_next_segment(&mut self) -> Option<u64> {
        if self.segments.is_start(self.chain.position) {
            return None;
        }
        self.chain.position = self.segments.next_start(self.chain.position);
        Some(self.segments.segment_of(self.chain.position))
    }

    /// Whether `bytes` begin with the header of a group that continues the chain and fits in the segment.
    fn is_next(&self, bytes: &[u8], blocks: u64) -> bool {
        self.segments.place(self.chain.position, blocks) == self.chain.position
            && decode_header(bytes).is_ok_and(|(header, _)| self.chain.is_continued_by(&header))
    }
}

/// Blocks behind the end of the log in which every block may show damage. In segments behind these blocks,
/// only the first block can.
pub const TAIL_BLOCKS: u64 = (64 << 20) / BLOCK_BYTES as u64;

/// Whether the block at `position` proves that the log is damaged at `end`, where the chain stops.
///
/// Suppose that a group of the same life, or of a later one, lies beyond `end`. If its header says that the
/// blocks at `end` were synced when it was written, a synced group is gone: the log is damaged. Otherwise the
/// group may be the later of two unsynced writes of which a crash lost the earlier one.
pub fn is_beyond_end(block: &[u8], position: u64, end: &ChainPosition) -> bool {
    decode_header(block).is_ok_and(|(header, _)| {
        let is_current = header.life == end.life || header.incarnation > end.incarnation;
        header.log_id == end.log_id && header.position == position && is_current && header.synced > end.position
    })
}
