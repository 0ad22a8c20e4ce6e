//! Faults of a simulated disk.

use crate::context::Time;
use crate::random::Random;
use crate::simulated::NodeEnd;
use crate::world::{FileError, FileLane, WorldRequest};

/// A kind of operation that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskOperation {
    /// Opening or creating a file.
    Open,
    /// Reading. A failed read returns no bytes.
    Read,
    /// Writing, including the zeros of a fill. A failed write may have written any of its sectors.
    Write,
    /// Syncing a file, including the sync at the end of a fill. After a failed sync, any part of the unsynced
    /// bytes may be on the medium. The other bytes are never written, although reads return them until the
    /// power fails.
    Sync,
    /// Syncing a folder. After a failed sync, changes of names stay unsynced.
    SyncFolder,
    /// Renaming a file. A failed rename changes nothing.
    Rename,
    /// Deleting a file. A failed delete changes nothing.
    Delete,
}

impl DiskOperation {
    /// The kind of a request; `None` for a request without a kind of its own.
    pub(super) fn of(request: &WorldRequest) -> Option<Self> {
        match request {
            WorldRequest::OpenFile { .. } | WorldRequest::OpenBeneath { .. } => Some(Self::Open),
            WorldRequest::ReadFile { .. } => Some(Self::Read),
            WorldRequest::WriteFile { .. } | WorldRequest::FillFile { .. } => Some(Self::Write),
            WorldRequest::SyncFile { .. } => Some(Self::Sync),
            WorldRequest::SyncFolder { .. } => Some(Self::SyncFolder),
            WorldRequest::RenameFile { .. } => Some(Self::Rename),
            WorldRequest::DeleteFile { .. } | WorldRequest::DeleteBeneath { .. } => Some(Self::Delete),
            _ => None,
        }
    }
}

/// The end of a node in the middle of an operation of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCrash {
    /// The kind of operation.
    pub operation: DiskOperation,
    /// The operation of this number, counted from 1 since the crash was armed. It has all of its effect,
    /// part of it or none.
    pub nth: u64,
    /// What happens to the node.
    pub end: NodeEnd,
}

/// Which operations of a kind fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultTime {
    /// The operation of this number, counted from 1 since the fault was set.
    Nth(u64),
    /// One in this many operations, at random; none if 0.
    OneIn(u64),
    /// All from this number on, counted from 1.
    From(u64),
}

/// Operations that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFault {
    /// The kind of operation.
    pub operation: DiskOperation,
    /// Only on paths that begin with this text.
    pub path_prefix: String,
    /// Which of them fail.
    pub when: FaultTime,
    /// The error that they return.
    pub error: FileError,
}

impl DiskFault {
    /// Operations on all files fail with an input/output error.
    pub fn new(operation: DiskOperation, when: FaultTime) -> Self {
        Self { operation, path_prefix: String::new(), when, error: FileError::System(libc::EIO) }
    }
}

/// A time in which a disk is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowWindow {
    /// Begin, in time of the simulation.
    pub from: Time,
    /// End.
    pub until: Time,
    /// Every duration is multiplied by this factor.
    pub factor: u64,
    /// The only lane that is slow; `None` for all lanes.
    pub lane: Option<FileLane>,
}

/// The faults of one node's disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskFaults {
    /// Operations that fail.
    pub failing: Vec<DiskFault>,
    /// Maximum length of all files together, in bytes. A write beyond it fails with
    /// [`FileError::DiskFull`] after some of its bytes. `None` for no maximum.
    pub capacity_bytes: Option<u64>,
    /// Times in which the disk is slow.
    pub slow: Vec<SlowWindow>,
}

/// The faults with the number of operations that each has seen.
#[derive(Debug, Default)]
pub(super) struct FaultState {
    plan: DiskFaults,
    seen: Vec<u64>,
}

impl FaultState {
    pub(super) fn new(plan: DiskFaults) -> Self {
        Self { seen: vec![0; plan.failing.len()], plan }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.plan.capacity_bytes.unwrap_or(u64::MAX)
    }

    /// The error of an operation that is to fail.
    pub(super) fn check(&mut self, operation: DiskOperation, path: &str, random: &mut Random) -> Result<(), FileError> {
        let mut result = Ok(());
        for (fault, seen) in self.plan.failing.iter().zip(&mut self.seen) {
            if fault.operation != operation || !path.starts_with(&fault.path_prefix) {
                continue;
            }
            *seen += 1;
            let fails = match fault.when {
                FaultTime::Nth(number) => *seen == number,
                FaultTime::From(number) => *seen >= number,
                FaultTime::OneIn(chances) => random.one_in(chances),
            };
            if fails {
                result = Err(fault.error);
            }
        }
        result
    }

    /// The factor of a duration that begins now.
    pub(super) fn slowness(&self, lane: FileLane, now: Time) -> u64 {
        let applies = |window: &&SlowWindow| {
            window.from <= now && now < window.until && window.lane.is_none_or(|slow| slow == lane)
        };
        self.plan.slow.iter().filter(applies).map(|window| window.factor).max().unwrap_or(1).max(1)
    }
}
