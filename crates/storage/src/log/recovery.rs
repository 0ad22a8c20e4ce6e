//! Decides which records of a log recovery applies.
//!
//! Recovery reads the log twice. The first reading feeds a [`LogAnalysis`], which finds the *cut* of each
//! incarnation: the last commit number that recovery keeps. It also proves that no commit up to a cut is
//! missing or partial. The second reading applies what the [`RecoveryPlan`] decides.

use std::collections::BTreeMap;
use std::fmt;

use junctor_model::id::{CommitNumber, TransactionId};
use junctor_model::planted_bug::PlantedBug;

use super::group::{GroupHeader, GroupKind};
use super::record::{Record, RecordKind};
use super::stream::StreamId;

/// One start of the node, as the log shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Counts the starts, from 1.
    pub incarnation: u32,
    /// Every number that the incarnation took is above this one.
    pub base: CommitNumber,
    /// The last number of the incarnation that recovery keeps; at least `base`.
    pub cut: CommitNumber,
}

/// A contradiction in the log: something that was synced is gone. Recovery refuses to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDamage {
    /// A commit at or below the cut has no record.
    MissingCommit(CommitNumber),
    /// A commit at or below the cut lacks the records of some streams.
    MissingParticipants {
        /// The commit.
        number: CommitNumber,
        /// Number of streams whose record is missing.
        missing: u16,
    },
    /// A commit at or below the cut lacks chunks.
    MissingChunks {
        /// The commit.
        number: CommitNumber,
        /// Number of chunks that its commit record states.
        wanted: u32,
        /// Number of chunks in the log.
        found: u32,
    },
    /// A record contradicts another one, or the header of its group.
    Contradiction(CommitNumber),
    /// Incarnations do not follow each other.
    Incarnation(u32),
    /// The log ends below a commit that the checkpoint contains.
    CutBelowCheckpoint {
        /// The last commit that the log keeps.
        cut: CommitNumber,
        /// The newest commit of the checkpoint.
        newest: CommitNumber,
    },
}

impl fmt::Display for LogDamage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogDamage::MissingCommit(number) => write!(formatter, "commit {number} is missing in the log"),
            LogDamage::MissingParticipants { number, missing } => {
                write!(formatter, "commit {number} lacks the records of {missing} participants")
            }
            LogDamage::MissingChunks { number, wanted, found } => {
                write!(formatter, "commit {number} has {found} of its {wanted} chunks")
            }
            LogDamage::Contradiction(number) => {
                write!(formatter, "the records of commit {number} contradict each other")
            }
            LogDamage::Incarnation(incarnation) => {
                write!(formatter, "incarnation {incarnation} does not follow the one before")
            }
            LogDamage::CutBelowCheckpoint { cut, newest } => {
                write!(formatter, "the log ends at commit {cut}, but the checkpoint contains commit {newest}")
            }
        }
    }
}

impl std::error::Error for LogDamage {}

/// A long transaction's contribution to one stream.
type ChunkKey = (u32, StreamId, TransactionId);

/// The state of the first reading of a log.
#[derive(Debug)]
pub struct LogAnalysis {
    begin: CommitNumber,
    limit: CommitNumber,
    lives: Vec<Life>,
    ceiling: CommitNumber,
    chunks: BTreeMap<ChunkKey, u32>,
    chunk_commits: BTreeMap<ChunkKey, (CommitNumber, u32)>,
    damage: Option<LogDamage>,
}

#[derive(Debug)]
struct Life {
    incarnation: Incarnation,
    /// For each commit number above the base: 0 if no record was seen yet, else one more than the number of
    /// streams whose record is missing.
    missing: Vec<u16>,
    /// The same for numbers of a cluster. A log has only those that concern its node, so none can be said to
    /// be missing.
    of_cluster: BTreeMap<CommitNumber, u16>,
    /// The highest `taken` of the groups of this life.
    taken: CommitNumber,
}

impl LogAnalysis {
    /// An analysis that begins with the group that the checkpoint names. The checkpoint contains every commit
    /// up to `begin`, which is 0 without a checkpoint.
    pub fn new(begin: CommitNumber) -> LogAnalysis {
        LogAnalysis {
            begin,
            limit: CommitNumber(u64::MAX),
            lives: Vec::new(),
            ceiling: CommitNumber(0),
            chunks: BTreeMap::new(),
            chunk_commits: BTreeMap::new(),
            damage: None,
        }
    }

    /// Keeps no commit above this number.
    #[must_use]
    pub fn up_to(self, limit: CommitNumber) -> LogAnalysis {
        LogAnalysis { limit, ..self }
    }

    /// Takes the header of the next group.
    pub fn observe_group(&mut self, header: &GroupHeader) {
        self.ceiling = self.ceiling.max(header.ceiling);
        if header.kind == GroupKind::Start {
            if let Some(before) = self.lives.last_mut() {
                before.incarnation.cut = header.previous_cut;
                if header.incarnation != before.incarnation.incarnation + 1 {
                    self.damage.get_or_insert(LogDamage::Incarnation(header.incarnation));
                }
            }
            self.begin_life(header.incarnation, header.taken);
        } else if self.lives.is_empty() {
            // Reading begins in the middle of a life. The checkpoint contains the earlier commits.
            self.begin_life(header.incarnation, self.begin);
        }
        let Some(life) = self.lives.last_mut() else { return };
        life.taken = life.taken.max(header.taken);
        if header.kind != GroupKind::Start {
            let kept = if PlantedBug::CutTooFar.is_planted() { header.taken } else { header.stable };
            life.incarnation.cut = life.incarnation.cut.max(kept);
        }
    }

    /// Takes a record that ends in the group that was observed last.
    pub fn observe_record(&mut self, stream: StreamId, record: &Record<'_>) {
        let header = &record.header;
        let Some(life) = self.lives.last_mut() else { return };
        let key = (life.incarnation.incarnation, stream, header.transaction);
        match header.kind {
            RecordKind::Mark | RecordKind::ChunkUndo => return,
            RecordKind::Chunk => {
                *self.chunks.entry(key).or_default() += 1;
                return;
            }
            RecordKind::ChunkCommit => _ = self.chunk_commits.insert(key, (header.number, header.chunk)),
            RecordKind::Commit | RecordKind::Dictionary => {}
        }
        let Some(above) = header.number.0.checked_sub(life.incarnation.base.0 + 1) else {
            // The checkpoint contains this commit.
            if header.number > self.begin {
                self.damage.get_or_insert(LogDamage::Contradiction(header.number));
            }
            return;
        };
        if header.number > life.taken {
            self.damage.get_or_insert(LogDamage::Contradiction(header.number));
            return;
        }
        let missing = if header.number.epoch().0 > 0 {
            life.of_cluster.entry(header.number).or_default()
        } else {
            let above = above as usize;
            if life.missing.len() <= above {
                life.missing.resize(above + 1, 0);
            }
            &mut life.missing[above]
        };
        match *missing {
            0 => *missing = header.participants,
            // More records than participants.
            1 => _ = self.damage.get_or_insert(LogDamage::Contradiction(header.number)),
            more => *missing = more - 1,
        }
    }

    /// Ends the first reading. `newest` is the newest commit in the checkpoint.
    ///
    /// # Errors
    /// The log contradicts itself or the checkpoint: synced bytes are lost.
    pub fn finish(mut self, newest: CommitNumber) -> Result<RecoveryPlan, LogDamage> {
        if let Some(damage) = self.damage {
            return Err(damage);
        }
        for life in &mut self.lives {
            life.incarnation.cut = life.incarnation.cut.min(self.limit);
        }
        for life in &self.lives {
            self.check_life(life)?;
        }
        let cut = self.lives.last().map_or(self.begin, |life| life.incarnation.cut);
        if cut < newest {
            return Err(LogDamage::CutBelowCheckpoint { cut, newest });
        }
        Ok(RecoveryPlan {
            begin: self.begin,
            cut,
            ceiling: self.ceiling.max(cut),
            incarnations: self.lives.iter().map(|life| life.incarnation).collect(),
            chunk_commits: self.chunk_commits.into_iter().map(|(key, (number, _))| (key, number)).collect(),
        })
    }

    fn begin_life(&mut self, incarnation: u32, base: CommitNumber) {
        let incarnation = Incarnation { incarnation, base, cut: base };
        self.lives.push(Life { incarnation, missing: Vec::new(), of_cluster: BTreeMap::new(), taken: base });
    }

    fn check_life(&self, life: &Life) -> Result<(), LogDamage> {
        let Incarnation { incarnation, base, cut } = life.incarnation;
        let first = base.max(self.begin).0 + 1;
        for (number, missing) in life.of_cluster.range(CommitNumber(first)..) {
            if *number <= cut && *missing > 1 {
                return Err(LogDamage::MissingParticipants { number: *number, missing: *missing - 1 });
            }
        }
        // The numbers of a node alone are dense.
        let dense = if cut.epoch().0 > 0 { 0 } else { cut.0 };
        for number in (first..=dense).map(CommitNumber) {
            match life.missing.get((number.0 - base.0 - 1) as usize).copied().unwrap_or(0) {
                0 => return Err(LogDamage::MissingCommit(number)),
                1 => {}
                more => return Err(LogDamage::MissingParticipants { number, missing: more - 1 }),
            }
        }
        let keys =
            (incarnation, StreamId(0), TransactionId(0))..=(incarnation, StreamId(u16::MAX), TransactionId(u64::MAX));
        for (key, (number, wanted)) in self.chunk_commits.range(keys) {
            let found = self.chunks.get(key).copied().unwrap_or(0);
            if *number > self.begin && *number <= cut && found != *wanted {
                return Err(LogDamage::MissingChunks { number: *number, wanted: *wanted, found });
            }
        }
        Ok(())
    }
}

/// What recovery does with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Apply its changes, which have this commit number.
    Apply(CommitNumber),
    /// The checkpoint contains it, or it was never acknowledged.
    Skip,
}

/// The result of the first reading.
#[derive(Clone, Debug)]
pub struct RecoveryPlan {
    /// The checkpoint contains every commit up to this number.
    pub begin: CommitNumber,
    /// The last commit that recovery keeps.
    pub cut: CommitNumber,
    /// New commits get numbers above this one.
    pub ceiling: CommitNumber,
    /// The incarnations that the log shows, oldest first.
    pub incarnations: Vec<Incarnation>,
    chunk_commits: BTreeMap<ChunkKey, CommitNumber>,
}

impl RecoveryPlan {
    /// Whether recovery keeps the commit of this incarnation.
    pub fn keeps(&self, incarnation: u32, number: CommitNumber) -> bool {
        let index = self.incarnations.binary_search_by_key(&incarnation, |life| life.incarnation);
        let is_within = |index: usize| number <= self.incarnations[index].cut;
        number > self.begin && index.is_ok_and(|index| is_within(index) || PlantedBug::ReplayBeyondCut.is_planted())
    }

    /// What to do with a record of this incarnation.
    pub fn decide(&self, incarnation: u32, stream: StreamId, record: &Record<'_>) -> Decision {
        let header = &record.header;
        let number = match header.kind {
            RecordKind::Commit | RecordKind::Dictionary => header.number,
            RecordKind::Chunk => match self.chunk_commits.get(&(incarnation, stream, header.transaction)) {
                Some(number) => *number,
                None => return Decision::Skip,
            },
            RecordKind::ChunkCommit | RecordKind::ChunkUndo | RecordKind::Mark => return Decision::Skip,
        };
        match self.keeps(incarnation, number) {
            true => Decision::Apply(number),
            false => Decision::Skip,
        }
    }
}
