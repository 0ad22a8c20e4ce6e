//! Checkpoints. Main coordinates rounds: the log block reads the numbers with which a round begins, every ldm
//! writes its changed rows to one file, main writes a manifest that names the files, and the log frees the
//! segments that recovery no longer reads.

use junctor_kernel::Address;
use junctor_model::checkpoint::{CheckpointFile, PageTableLocation};
use junctor_model::id::{CommitNumber, PartitionId};

/// Reads the numbers with which a round begins. From main to log.
#[derive(Debug)]
pub struct BeginCheckpoint {
    /// Main.
    pub reply_to: Address,
}

/// The reply to [`BeginCheckpoint`]. Both numbers are read in one turn.
#[derive(Clone, Copy, Debug)]
pub struct BeginCheckpointReply {
    /// The number that is stable now: the round contains every commit up to it.
    pub begin: CommitNumber,
    /// Position in the log, in blocks, from which recovery replays if the round succeeds: the earliest group
    /// that may hold records of a commit above `begin`.
    pub replay_from: u64,
}

/// Writes the rows that have changed since the last checkpoint to new files. From main to ldm.
#[derive(Debug)]
pub struct WriteCheckpoint {
    /// Main.
    pub reply_to: Address,
    /// The generation of the manifest that will name the file.
    pub generation: u64,
    /// Number of the first file `checkpoint/<number>.data` to create. The next ones have this number plus a
    /// multiple of `file_step`.
    pub file: u32,
    /// Difference between the numbers of the ldm's files.
    pub file_step: u32,
    /// The number from [`BeginCheckpointReply`].
    pub begin: CommitNumber,
    /// Bytes that the ldm may write in a second, until [`SetCheckpointSpeed`] changes them.
    pub bytes_per_second: u64,
    /// Files that are to become free, in ascending order: some of their live bytes are written again.
    pub rewritten_files: Vec<u32>,
}

/// The reply to [`WriteCheckpoint`]: the files and their folder entries are synced. On an error the ldm waits
/// for [`EndCheckpoint`] with `is_kept` false.
#[derive(Debug)]
pub struct WriteCheckpointReply {
    /// The answering ldm.
    pub from: Address,
    /// Copied from the request.
    pub generation: u64,
    /// The files that the ldm has created. Their `live_bytes` are 0. After an error their lengths and
    /// checksums are unknown.
    pub files: Vec<CheckpointFile>,
    /// The contents of the files, or why they could not be written.
    pub result: Result<Box<LdmCheckpoint>, Box<str>>,
}

/// The contribution of one ldm to a round.
#[derive(Clone, Debug, Default)]
pub struct LdmCheckpoint {
    /// The highest commit number that the rows in the files may have. The manifest takes effect only once it
    /// is durable.
    pub newest: CommitNumber,
    /// The page tables of the ldm's partitions, also those of earlier rounds that stay valid. Partitions that
    /// were dropped during the round or never had rows are absent.
    pub partitions: Vec<(PartitionId, PageTableLocation)>,
    /// Bytes of each file that the page tables need, the page tables included.
    pub live_bytes: Vec<(u32, u64)>,
}

/// Changes the speed of a round, and asks for its progress. From main to ldm. Ignored after the round.
#[derive(Debug)]
pub struct SetCheckpointSpeed {
    /// Main.
    pub reply_to: Address,
    /// The generation of the round.
    pub generation: u64,
    /// Bytes that the ldm may write in a second.
    pub bytes_per_second: u64,
}

/// The reply to [`SetCheckpointSpeed`].
#[derive(Clone, Copy, Debug)]
pub struct SetCheckpointSpeedReply {
    /// The answering ldm.
    pub from: Address,
    /// Copied from the request.
    pub generation: u64,
    /// Bytes written to the file of the round.
    pub written_bytes: u64,
    /// Estimated bytes that are left to write.
    pub left_bytes: u64,
    /// Duration of the last write in microseconds; 0 before the first.
    pub write_us: u32,
}

/// Ends a round. From main to ldm, after the manifest is durable or the round has failed.
#[derive(Debug)]
pub struct EndCheckpoint {
    /// The generation of the round.
    pub generation: u64,
    /// Whether a durable manifest names the round's files. Otherwise the next round writes the same rows
    /// again.
    pub is_kept: bool,
}

/// Frees the segments of the log before a position. From main to log, after the manifest with this position
/// is durable.
#[derive(Debug)]
pub struct TrimLog {
    /// `replay_from` of the manifest, in blocks.
    pub replay_from: u64,
}

/// Reads how much of the log is in use. From main to log, for the speed of rounds.
#[derive(Debug)]
pub struct ReadLogUsage {
    /// Main.
    pub reply_to: Address,
}

/// The reply to [`ReadLogUsage`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadLogUsageReply {
    /// Bytes from the start of the oldest segment that is kept to the end of the log.
    pub used_bytes: u64,
    /// Limit of these bytes.
    pub limit_bytes: u64,
    /// Bytes reserved for commits that are not durable yet.
    pub reserved_bytes: u64,
    /// Whether a commit waits until a checkpoint has freed a part of the log.
    pub is_waited_for: bool,
    /// Bytes written since the start of the node.
    pub written_bytes: u64,
    /// Duration of recent syncs in microseconds, averaged; 0 before the first.
    pub sync_us: u32,
    /// Shortest average since the start of the node, in microseconds.
    pub sync_us_min: u32,
    /// Duration of all syncs since the start of the node, in microseconds.
    pub syncs_us: u64,
    /// Syncs of log files for commits since the start of the node.
    pub syncs: u64,
    /// Records of commits formed since the start of the node.
    pub records: u64,
}

/// Loads partitions from checkpoint files. From main to ldm during recovery.
#[derive(Debug)]
pub struct LoadCheckpoint {
    /// Main.
    pub reply_to: Address,
    /// The partitions of the ldm that the manifest names.
    pub partitions: Vec<(PartitionId, PageTableLocation)>,
}

/// The reply to [`LoadCheckpoint`].
#[derive(Debug)]
pub struct LoadCheckpointReply {
    /// The answering ldm.
    pub from: Address,
    /// Why a partition could not be loaded.
    pub error: Option<Box<str>>,
}
