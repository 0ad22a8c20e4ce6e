//! The bytes of the log: records, the groups that carry them, and the files that groups lie in
//! (`docs/format.md`, "Log"). Nothing here accesses a file: callers pass and receive bytes.
//!
//! Each ldm forms *records* of the transactions that it commits; block main forms records of schema changes.
//! The records of one block make a *stream*. The log block gathers the streams into *groups*, and writes and
//! syncs one group after the other. Recovery reads the groups back, joins the streams, and decides which
//! records to apply.

mod formed;
mod group;
mod pair;
mod record;
mod recovery;
mod scan;
mod segment;
mod space;
mod stream;

pub use formed::FormedRecords;
pub use group::{
    BLOCK_BYTES, GROUP_BYTES_MAX, GROUP_HEADER_BYTES, GROUP_VERSION, Group, GroupError, GroupHeader, GroupKind,
    PIECE_HEADER_BYTES, Piece, SEGMENT_BYTES_DEFAULT, SegmentSize, decode_group, decode_header, encode_group,
    group_blocks, move_group,
};
pub use pair::{PAIR_CONTENT_BYTES_MAX, PairCopy, PairSlot, UnknownPairVersion, decode_slot, encode_slot, newest_slot};
pub use record::{
    CHUNK_BYTES_MAX, ImageEdit, Operation, RECORD_BYTES_MAX, Record, RecordBuffer, RecordError, RecordHeader,
    RecordKind, Section, SectionHeader, chunk_headers, decode_record,
};
pub use recovery::{Decision, Incarnation, LogAnalysis, LogDamage, RecoveryPlan};
pub use scan::{ChainPosition, LogScan, ScanStep, TAIL_BLOCKS, is_beyond_end};
pub use segment::{LOG_FOLDER, segment_number, segment_path};
pub use space::{
    CHUNK_UNDO_BLOCKS, ONE_PHASE_BLOCKS_MAX, WrittenExtent, commit_blocks, long_participant_blocks, record_blocks,
    short_participant_blocks,
};
pub use stream::{MAIN_STREAM, StreamCutter, StreamId, StreamReader};

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
