//! Recovery: main lets the log block read what earlier runs of the node wrote, and the ldm blocks apply it.

use junctor_kernel::{Address, Buffer, FileError};
use junctor_model::id::{CommitNumber, PartitionId, TableId};

/// The advice at the end of messages about damaged files.
pub const DAMAGE_ADVICE: &str = "restore the directory from a backup";
/// The advice at the end of messages about files that this release does not understand.
pub const RELEASE_ADVICE: &str = "start the release that wrote it, or restore the directory from a backup";
/// The advice at the end of messages about missing files, which may be on a device of their own.
pub const MISSING_ADVICE: &str = "mount its device, or restore the directory from a backup";

/// The advice at the end of messages about failed requests for files.
pub fn advice_about(error: FileError) -> &'static str {
    match error {
        FileError::NotFound => MISSING_ADVICE,
        FileError::Denied => "the user of the server must own the files of the data directory",
        FileError::DiskFull => "free some space on the device",
        FileError::TooManyOpen => "raise the limit of open files",
        _ => "check the device and its file system",
    }
}

/// Reads the log from a checkpoint on, or from its beginning, and decides which commits it keeps. From main
/// to log.
#[derive(Debug)]
pub struct RecoverLog {
    /// Main.
    pub reply_to: Address,
    /// The log, as in the identity of the data directory.
    pub log_id: u64,
    /// Size of its segments in bytes.
    pub segment_bytes: u64,
    /// The checkpoint that was found. The default stands for none: the log is read from its beginning.
    pub checkpoint: CheckpointBounds,
    /// No commit above this number is kept: the cut of a cluster's restart. The largest number without one.
    pub limit: CommitNumber,
}

/// The part of a manifest that decides which records of the log count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointBounds {
    /// The checkpoint contains every commit up to this number.
    pub begin: CommitNumber,
    /// The checkpoint contains no commit above this number, which the log must therefore reach.
    pub newest: CommitNumber,
    /// Position of the first group to read, in blocks.
    pub replay_from: u64,
}

/// The reply to [`RecoverLog`], or why the log cannot be trusted.
#[derive(Debug)]
pub struct RecoverLogReply {
    /// The end of the log and its schema.
    pub result: Result<Box<RecoveredLog>, Box<str>>,
}

/// The state of the log after its first reading.
#[derive(Clone, Debug, Default)]
pub struct RecoveredLog {
    /// The last incarnation (run of the node) that wrote a group; 0 if none did.
    pub incarnation: u32,
    /// Position after the last group, in blocks.
    pub position: u64,
    /// Checksum of the header of the last group; 0 if there is none.
    pub previous_checksum: u32,
    /// The last commit that recovery keeps.
    pub last_commit_kept: CommitNumber,
    /// New commits get numbers above this one.
    pub ceiling: CommitNumber,
    /// The contents of the dictionary records above the checkpoint's `begin` and up to `last_commit_kept`, in
    /// the order of their commits.
    pub dictionary: Vec<Vec<u8>>,
    /// The contents of all marks of AUTO_INCREMENT counters that were read, in the order written.
    pub marks: Vec<Vec<u8>>,
    /// Bytes of the groups that were read.
    pub bytes: u64,
}

/// Reads the log again, and sends the rows of each partition to its owner. From main to log, after
/// [`RecoverLog`].
#[derive(Debug)]
pub struct ReplayLog {
    /// Main.
    pub reply_to: Address,
    /// The partitions that exist, with their ldm. Changes of other partitions belong to dropped tables.
    pub owners: Vec<(PartitionId, Address)>,
}

/// The reply to [`ReplayLog`]: every ldm has applied everything, or one could not.
#[derive(Debug)]
pub struct ReplayLogReply {
    /// The first error.
    pub error: Option<Box<str>>,
}

/// Row changes of earlier runs of the node, for each row in the order of their commits. From log to ldm.
#[derive(Debug)]
pub struct ReplayRows {
    /// Log.
    pub reply_to: Address,
    /// Any number of entries: a commit number (u64), then a section as in a log record.
    pub sections: Buffer,
}

/// The reply to [`ReplayRows`].
#[derive(Debug)]
pub struct ReplayRowsReply {
    /// The answering ldm.
    pub from: Address,
    /// The buffer of the request, for reuse.
    pub bytes: Buffer,
    /// Why a change could not be applied.
    pub error: Option<Box<str>>,
}

/// Builds the indexes of every partition of the ldm from its rows. From main to ldm, after the replay.
#[derive(Debug)]
pub struct BuildIndexes {
    /// Main.
    pub reply_to: Address,
}

/// From main to recv: the data is there, so that clients may log in.
#[derive(Debug)]
pub struct OpenToClients {}

/// The reply to [`BuildIndexes`].
#[derive(Debug)]
pub struct BuildIndexesReply {
    /// The answering ldm.
    pub from: Address,
    /// The greatest AUTO_INCREMENT value in the rows of each table that has such a column. A table can have
    /// an entry for each partition.
    pub greatest: Vec<(TableId, u64)>,
    /// Why an index could not be built.
    pub error: Option<Box<str>>,
}
