//! Bugs that the simulator plants into the code of the log, of commits and of recovery. They prove that its
//! plans notice what they are meant to notice (`docs/testing.md`, "Planted bugs").
//!
//! Only builds with the feature `planted_bugs` contain them. In every other build [`PlantedBug::is_planted`]
//! is the constant `false`.

#[cfg(all(feature = "planted_bugs", not(debug_assertions)))]
compile_error!("planted bugs lose data: a release build must not contain them");

macro_rules! planted_bugs {
    ($($(#[$meta:meta])* $variant:ident = $name:literal,)*) => {
        /// A bug, named after the rule that it breaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PlantedBug {
            $($(#[$meta])* $variant,)*
        }

        impl PlantedBug {
            /// Every bug.
            pub const ALL: &[PlantedBug] = &[$(PlantedBug::$variant,)*];

            /// The name on the command line of the simulator.
            pub fn name(self) -> &'static str {
                match self {
                    $(PlantedBug::$variant => $name,)*
                }
            }
        }
    };
}

planted_bugs! {
    /// A commit is acknowledged when its group is written, before the sync.
    AcknowledgeBeforeSync = "acknowledge_before_sync",
    /// A group does not wait for records that are formed and still on their way to the log.
    IgnoreFormedRecords = "ignore_formed_records",
    /// The stable number of a group is read after its records were collected.
    StableAfterCollecting = "stable_after_collecting",
    /// Recovery keeps every commit up to the highest number taken.
    CutTooFar = "cut_too_far",
    /// Recovery applies the commits beyond the cut of their incarnation.
    ReplayBeyondCut = "replay_beyond_cut",
    /// Recovery continues the chain of groups with what an earlier life or use of the segment left there.
    AcceptStaleGroups = "accept_stale_groups",
    /// Recovery takes the damage of a synced group for the end of the log.
    TakeRotForTail = "take_rot_for_tail",
    /// Recovery accepts groups of which only later ones could know that they are synced, and does not sync
    /// them.
    SkipResync = "skip_resync",
    /// The stamps of a long commit end with its first rows.
    ForgetSettledEarly = "forget_settled_early",
    /// A write goes on top of a committed version without a stamp.
    WriteAboveUnstamped = "write_above_unstamped",
    /// Purge looks for the base of a row below a committed version without a stamp.
    PurgeUnstamped = "purge_unstamped",
    /// A schema change is published before its record is durable.
    PublishSchemaEarly = "publish_schema_early",
    /// A copied row replaces a newer one that is there already.
    CopyOverNewerRow = "copy_over_newer_row",
    /// A row that is deleted while rows are copied to a node that returns is copied afterwards.
    ForgetDeletionInCopy = "forget_deletion_in_copy",
    /// A manifest is written before its newest commit is durable.
    EarlyManifest = "early_manifest",
    /// The replay position of a checkpoint ignores the chunks of long transactions.
    TrimPastChunks = "trim_past_chunks",
    /// The replay position of a checkpoint is the end of the log.
    ReplayFromEnd = "replay_from_end",
    /// Replay applies the edits of a row to a later version of the row.
    EditNewerRow = "edit_newer_row",
    /// A checkpoint forgets the cells in which it met open versions.
    ForgetOpenVersions = "forget_open_versions",
    /// The marks of a table go with its last row.
    ForgetEmptiedTables = "forget_emptied_tables",
    /// AUTO_INCREMENT hands out numbers above the durable mark.
    CounterBeyondMark = "counter_beyond_mark",
    /// The folder of a new segment is not synced.
    SkipFolderSync = "skip_folder_sync",
    /// A failed sync counts as a success, which is the answer to a second one.
    RetryFailedSync = "retry_failed_sync",
    /// A restart continues commit numbers at the cut.
    ReuseNumbers = "reuse_numbers",
    /// A backup that becomes primary takes writes while it has images that are not resolved.
    OpenPromotedEarly = "open_promoted_early",
    /// Transactions of a tc that is gone keep their versions and locks.
    KeepOrphans = "keep_orphans",
    /// The start of an epoch undoes images whose commit waits for a reader.
    UndoDecidedImages = "undo_decided_images",
    /// A transaction commits although a node is gone at which it has written.
    CommitLost = "commit_lost",
    /// The start of an epoch gives no node the decisions that it lacks.
    ForgetMissing = "forget_missing",
    /// A commit is answered when its own node knows that it is stable.
    AnswerUnconfirmed = "answer_unconfirmed",
    /// A commit is answered when the nodes of one group have confirmed it.
    ConfirmOneGroup = "confirm_one_group",
    /// A number is stable when the nodes of the own group have applied it.
    StableInOneGroup = "stable_in_one_group",
    /// A commit is durable when the nodes of one group have synced it.
    DurableInOneGroup = "durable_in_one_group",
    /// Only nodes with a part in a commit learn that a client waits for their disks.
    WakeDisksOfParts = "wake_disks_of_parts",
    /// A restart of all nodes cuts at the least number of one group.
    CutOfOneGroup = "cut_of_one_group",
    /// The links go on accepting lives that the membership has evicted.
    ForgetFences = "forget_fences",
    /// A commit of a new epoch is answered while evicted nodes may still have leases.
    LeasesOverAtOnce = "leases_over_at_once",
    /// After a promotion, nodes purge versions before all snapshots are known.
    ForgetFloor = "forget_floor",
    /// A node group is removed while tables have rows there.
    RemoveGroupWithRows = "remove_group_with_rows",
}

/// The environment variable that plants the bug of this name in a process with the feature `planted_bugs`.
pub const VARIABLE: &str = "JUNCTOR_PLANTED_BUG";

/// The number of the planted bug, counted from 1; 0 for none.
#[cfg(feature = "planted_bugs")]
static PLANTED: std::sync::LazyLock<std::sync::atomic::AtomicU8> = std::sync::LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let position = PlantedBug::ALL.iter().position(|bug| bug.name() == name);
    std::sync::atomic::AtomicU8::new(position.map_or(0, |position| position as u8 + 1))
});

impl PlantedBug {
    /// Whether this process has the bug.
    #[inline(always)]
    pub fn is_planted(self) -> bool {
        #[cfg(feature = "planted_bugs")]
        let is_planted = PLANTED.load(std::sync::atomic::Ordering::Relaxed) == self as u8 + 1;
        #[cfg(not(feature = "planted_bugs"))]
        let is_planted = false;
        is_planted
    }

    /// Plants this bug in the place of the present one; `None` plants none. A build without the feature
    /// ignores it.
    pub fn plant(bug: Option<PlantedBug>) {
        #[cfg(feature = "planted_bugs")]
        PLANTED.store(bug.map_or(0, |bug| bug as u8 + 1), std::sync::atomic::Ordering::Relaxed);
        let _ = bug;
    }
}
