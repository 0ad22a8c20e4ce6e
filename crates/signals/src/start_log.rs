//! Starts the log of a new incarnation, which is one run of the node from start to end. Its first group (the
//! unit of a log write) comes after the last one that recovery accepted. From main to log.

use junctor_kernel::Address;
use junctor_model::id::CommitNumber;

/// Begins an incarnation: prepares the segment at `position`, and writes and syncs a start group there.
#[derive(Clone, Debug)]
pub struct StartLog {
    /// Main.
    pub reply_to: Address,
    /// The log, as in the identity of the data directory.
    pub log_id: u64,
    /// 64 random bits that identify this run of the node.
    pub life: u64,
    /// One more than the previous incarnation; 1 in a new log.
    pub incarnation: u32,
    /// Earliest position of the start group, in blocks.
    pub position: u64,
    /// Checksum of the previous group's header; 0 in a new log.
    pub previous_checksum: u32,
    /// Number of the previous incarnation's last commit that recovery has kept.
    pub last_commit_kept: CommitNumber,
    /// Highest commit number that may be in use. New commits get higher numbers.
    pub highest_number: CommitNumber,
}

/// The reply to [`StartLog`]: the start group is durable, and commits may begin.
#[derive(Debug)]
pub struct StartLogReply {}
