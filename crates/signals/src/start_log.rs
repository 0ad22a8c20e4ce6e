//! The start of the log: an incarnation begins behind the groups that recovery accepted. From main to log.

use junctor_kernel::Address;
use junctor_model::id::CommitNumber;

/// Begins an incarnation: prepares the segment at `position`, and writes and syncs a start group there.
#[derive(Clone, Debug)]
pub struct StartLog {
    /// Main.
    pub reply_to: Address,
    /// The log, as in the identity of the data directory.
    pub log_id: u64,
    /// 64 random bits, drawn for this life.
    pub life: u64,
    /// One more than the incarnation before; 1 in a new log.
    pub incarnation: u32,
    /// Where the start group may lie at the earliest, in blocks.
    pub position: u64,
    /// Checksum of the header of the group before; 0 in a new log.
    pub previous_checksum: u32,
    /// The last commit of the incarnation before that recovery keeps.
    pub previous_cut: CommitNumber,
    /// New commits get numbers above this one.
    pub taken: CommitNumber,
}

/// The reply to [`StartLog`]: the start group is durable, and commits may begin.
#[derive(Debug)]
pub struct StartLogReply {}
