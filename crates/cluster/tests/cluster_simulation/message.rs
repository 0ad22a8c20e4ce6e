//! Messages between nodes, and the rules that a run may break.

use junctor_cluster::membership::lease::{RequestLease, RequestLeaseReply};
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};
use junctor_signals::decide::{Applied, Decide};
use junctor_signals::start_epoch::{Installed, StartEpoch};
use junctor_signals::take_number::{Participant, TakeNumber};

pub const ROWS: u8 = 3;
/// Ldms of a node.
pub const LDMS: u16 = 2;

/// A life of a node. Voters are nodes from [`FIRST_VOTER`] on, with one life.
pub type Life = (u8, Incarnation);
pub const FIRST_VOTER: u8 = 200;
pub const VOTERS: u8 = 3;

/// A partition, which has one chain, and a row of it.
pub type Row = (u8, u8);

pub fn ldm_of(partition: u8) -> u16 {
    u16::from(partition) % LDMS
}

/// The designed protocol, or the rule that a run breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// No rule is broken, and faults are as frequent as in the runs that break one.
    NoneAmidFaults,
    AnswerAtOwnStable,
    AnswerAtApplied,
    SnapshotAtApplied,
    LeasesOverAtOnce,
    LeaseFromReceipt,
    GrantAfterEviction,
    /// A voter sends its votes and answers before they are on disk.
    AnswersBeforeSync,
    ClockBeforeInput,
    OneGrantIsEnough,
    ClocksBeyondDrift,
    ObeysOldSequencer,
    NumberForOldRequest,
    PrepareWithoutEpoch,
    StartWithoutOne,
    UnionForgotten,
    PrefixEndsAtApplied,
    CounterWithoutEpoch,
    ForgotForJoining,
    CommittedEpochCounts,
    FreshNodeServes,
    ImagesNotParked,
    ImageNamesNodesNumber,
    ImageSurvivesStart,
    SurvivesItsPrimary,
    SurvivesItsCoordinator,
    BackupsNotAwaited,
    OutcomeUnconfirmed,
    OutcomeBeforeStart,
    OutcomeOfYoungMember,
    EvictedSaysAborted,
    CopyBeforeStart,
    CopyReplacesAll,
    ImageAppliedAgain,
    HorizonWithoutSnapshots,
    MarkedBeforeCheckpoint,
    CutIsMaximum,
    CutsIgnored,
    LastDurableForgotten,
}

/// A message to a block of another node.
#[derive(Clone, Debug)]
pub enum ToBlock {
    Write {
        epoch: Epoch,
        transaction: GlobalTransactionId,
        row: Row,
    },
    WriteReply {
        transaction: GlobalTransactionId,
        is_written: bool,
    },
    Prepare {
        epoch: Epoch,
        transaction: GlobalTransactionId,
        images: Images,
    },
    Replicate {
        epoch: Epoch,
        transaction: GlobalTransactionId,
        partition: u8,
        rows: Vec<Row>,
        /// The applied number of the sender's node, for a planted bug.
        mark: CommitNumber,
        images: Images,
    },
    Prepared {
        epoch: Epoch,
        transaction: GlobalTransactionId,
        partition: u8,
    },
    Rollback {
        epoch: Epoch,
        transaction: GlobalTransactionId,
    },
}

/// The replicas to which a prepare goes, and whether the last of them asks for the number.
#[derive(Clone, Debug)]
pub struct Images {
    pub participants: Vec<Participant>,
    pub asks: bool,
    pub awaits_disk: bool,
}

#[derive(Clone, Debug)]
pub enum Message {
    TakeNumber(TakeNumber),
    Decide(Decide),
    Applied(Applied),
    Installed(Installed),
    StartEpoch(StartEpoch),
    ToLdm(u16, ToBlock),
    ToTc(ToBlock),
    RequestLease(RequestLease),
    RequestLeaseReply(RequestLeaseReply),
    /// From a joining node: asks for a copy of a partition.
    Copy {
        epoch: Epoch,
        partition: u8,
    },
    /// The versions of a partition that are visible at `at`.
    CopyReply {
        partition: u8,
        at: CommitNumber,
        rows: Vec<(Row, CommitNumber)>,
    },
}
